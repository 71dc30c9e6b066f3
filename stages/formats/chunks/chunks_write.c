/* chunks_write -- a folder of raw arrays for renderers that want no SQLite: each plane and each
 * array of a tile table is one file named by the hash of its content, little-endian, component
 * after component; index.json (chunks_index.h) says what is where. The same array is one file
 * however many chunks share it, and a second export writes only what changed.
 *
 * index.json is written last, and then the files are removed that only the index before it named.
 * An export that is interrupted has written files that no index names. So the new index is written
 * first as index.json.unfinished: the next export finds it, and removes the files that neither it
 * nor index.json needs.
 *
 * Tile tables are written where they are of the chunks that are written: of a whole layer, by a
 * stage that is up to date.
 */
#include "stages/formats/chunks/chunks_index.h"
#include "stages/formats/folder_owner.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "schema/layers.h"
#include "stages/engine/engine.h"
#include "stages/engine/parent/run_layers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INDEX "index.json"
#define UNFINISHED "index.json.unfinished"

/* The plan, where tables are written: this, n_units of table_unit, n_tables of table_ref, and the
 * texts that these name by their place. With many cameras tables are many and small, and so a unit
 * has several. */
typedef struct {
    uint64_t n_units, n_tables;
} table_plan;
typedef struct {
    uint64_t first, n; /* tables */
    uint64_t largest;  /* bytes of their largest array */
} table_unit;
typedef struct {
    uint64_t camera; /* place of its name in the texts */
    double near_m;
    uint32_t antialiased, zero;
    char profile[32];
} table_ref;
enum { TABLES_A_UNIT = 64 };
#define BYTES_A_UNIT ((uint64_t)4 << 20) /* of all arrays; a larger table is a unit of its own */

/* A worker that was killed in the midst of a file leaves a temporary name. Files of processes that
 * run stay. */
static void drop_half_written(const char *folder)
{
    char inside[KILN_PATH_MAX];
    if (kiln_path_join(inside, sizeof inside, folder, "x.bin", NULL) == KILN_OK)
        kiln_leftovers_drop(inside);
    if (kiln_path_join(inside, sizeof inside, folder, INDEX, NULL) == KILN_OK)
        kiln_leftovers_drop(inside);
    if (kiln_path_join(inside, sizeof inside, folder, UNFINISHED, NULL) == KILN_OK)
        kiln_leftovers_drop(inside);
}

/* ---- tile tables ----------------------------------------------------------------------------- */

/* The plan while it is made. */
typedef struct {
    kiln_buffer units, tables, texts;
    uint64_t bytes; /* of the unit in work */
} table_lists;

static kiln_status add_size(void *sizes, const char *name, const kiln_array *a, kiln_error *err)
{
    uint64_t *const size = sizes; /* sum and largest */
    (void)name, (void)err;
    size[0] += a->raw_bytes;
    if (a->raw_bytes > size[1]) size[1] = a->raw_bytes;
    return KILN_OK;
}

static kiln_status list_table(void *context, const kiln_tile_table *t, kiln_error *err)
{
    table_lists *l = context;
    table_unit *last =
        l->units.size ? (table_unit *)(void *)(l->units.data + l->units.size) - 1 : NULL;
    table_ref ref = {.camera = l->texts.size, .near_m = t->near_m, .antialiased = t->antialiased};
    uint64_t size[2] = {0};
    memcpy(ref.profile, t->profile, sizeof ref.profile);
    KILN_TRY(kiln_chunks_each_array(t, add_size, size, err));
    if (!last || last->n == TABLES_A_UNIT || l->bytes + size[0] > BYTES_A_UNIT) {
        const table_unit next = {.first = l->tables.size / sizeof ref};
        KILN_TRY(kiln_buffer_put(&l->units, &next, sizeof next, err));
        last = (table_unit *)(void *)(l->units.data + l->units.size) - 1;
        l->bytes = 0;
    }
    last->n++;
    last->largest = kiln_max_u64(last->largest, size[1]);
    l->bytes += size[0];
    KILN_TRY(kiln_buffer_put(&l->tables, &ref, sizeof ref, err));
    return kiln_buffer_put(&l->texts, t->camera, strlen(t->camera) + 1, err);
}

static kiln_status list_tables(kiln_export_parent *p, kiln_error *err)
{
    table_lists l = {.bytes = 0};
    kiln_status st = kiln_tile_tables_each(p->e->views->m, true, list_table, &l, err);
    const table_plan head = {l.units.size / sizeof(table_unit), l.tables.size / sizeof(table_ref)};
    if (st == KILN_OK) st = kiln_buffer_put(p->plan, &head, sizeof head, err);
    if (st == KILN_OK) st = kiln_buffer_put(p->plan, l.units.data, l.units.size, err);
    if (st == KILN_OK) st = kiln_buffer_put(p->plan, l.tables.data, l.tables.size, err);
    if (st == KILN_OK) st = kiln_buffer_put(p->plan, l.texts.data, l.texts.size, err);
    kiln_buffer_release(&l.units);
    kiln_buffer_release(&l.tables);
    kiln_buffer_release(&l.texts);
    return st;
}

/* Their slots are chunks, so that a part of the chunks is not enough for a renderer. */
static kiln_status plan_tables(kiln_export_parent *p, kiln_error *err)
{
    const kiln_export *e = p->e;
    const kiln_export_views *v = e->views;
    const kiln_layer *layer = e->bakes[0].layer;
    if (v->n_tables == 0 ||
        kiln_layer_kinds[kiln_layer_kind_find(layer->kind)].form != KILN_FORM_CHUNKS)
        return KILN_OK;
    if (v->tiles != KILN_STAGE_FRESH)
        return kiln_export_note(
            p, err, "tile tables are left out, because the stage tiles is %s; run kiln-tiles first",
            kiln_stage_state_name(v->tiles));
    if (kiln_chunks_rows(e) != layer->count)
        return kiln_export_note(p, err,
                                "tile tables are left out, because they describe all chunks");
    return list_tables(p, err);
}

static const table_unit *units_of(const kiln_export *e)
{
    return (const table_unit *)(const void *)((const table_plan *)e->plan + 1);
}
static uint64_t table_units(const kiln_export *e)
{
    return e->plan_bytes ? ((const table_plan *)e->plan)->n_units : 0;
}

static const table_ref *tables_of(const kiln_export *e)
{
    return (const table_ref *)(const void *)(units_of(e) + table_units(e));
}

static uint64_t table_ram(const kiln_export *e, uint64_t unit)
{
    const uint64_t largest = units_of(e)[unit].largest;
    return 2 * largest + kiln_read_ram(largest) + (1 << 20); /* and the lists of its segments */
}

/* ---- the folder that is there ---------------------------------------------------------------- */

/* name: INDEX or UNFINISHED. */
static kiln_chunks_index_kind read_index(const char *folder, const char *name,
                                         kiln_chunks_file_fn *fn, void *context)
{
    char path[KILN_PATH_MAX];
    if (kiln_path_join(path, sizeof path, folder, name, NULL) != KILN_OK)
        return KILN_CHUNKS_NO_INDEX;
    return kiln_chunks_index_read(path, fn, context);
}

/* index.json is a name that many programs give. What is named by a hash has our names alone. name:
 * INDEX or UNFINISHED. */
static kiln_status check_index(const kiln_export *e, const char *name, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    struct stat s;
    KILN_TRY(kiln_path_join(path, sizeof path, e->target, name, err));
    if (e->replace || lstat(path, &s) != 0 ||
        kiln_chunks_index_read(path, NULL, NULL) == KILN_CHUNKS_OURS)
        return KILN_OK;
    return kiln_folder_fail_foreign(e->target, name, err);
}

/* ---- plan ------------------------------------------------------------------------------------ */

static kiln_status plan_chunks(kiln_export_parent *p, kiln_error *err)
{
    const kiln_export *e = p->e;
    if (!kiln_export_is_as_stored(e))
        return kiln_fail(err, KILN_E_INPUT,
                         "the format chunks copies the stored chunks of one bake; leave out "
                         "options that change them: filters, "
                         "--sh-degree, moves, --add");
    if (kiln_is_file(e->target))
        return kiln_fail(err, KILN_E_USAGE, "'%s' is a file; the format chunks writes a folder",
                         e->target);
    KILN_TRY(check_index(e, INDEX, err));
    KILN_TRY(check_index(e, UNFINISHED, err));
    return plan_tables(p, err);
}

/* A plane, and the file that is there compared with it. */
static uint64_t chunks_writer_ram(const kiln_export *e, uint64_t unit)
{
    const kiln_export_bake *bake = &e->bakes[e->chunks[unit].bake];
    const kiln_layer_size size =
        kiln_layer_size_of(e->chunks[unit].level ? bake->levels : bake->layer);
    return 2 * size.plane + kiln_read_ram(size.plane);
}

static bool has_size(const char *path, uint64_t bytes)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) && (uint64_t)s.st_size == bytes;
}

/* Is this file there with these bytes? Then it is left alone. */
static bool same_content(const char *path, const void *data, size_t bytes)
{
    unsigned char *there = NULL;
    size_t size = 0;
    if (!has_size(path, bytes) || kiln_file_read(path, bytes, &there, &size, NULL) != KILN_OK)
        return false;
    bool same = size == bytes && memcmp(there, data, bytes) == 0;
    free(there);
    return same;
}

/* Reads an array for write_array. */
typedef kiln_status read_fn(kiln_manifest *m, const void *of, void *dst, kiln_error *err);

static kiln_status write_array(const kiln_export *e, kiln_manifest *m, const kiln_array *a,
                               read_fn *read, const void *of, kiln_error *err)
{
    kiln_status st = KILN_OK;
    char name[KILN_CHUNKS_FILE_NAME], path[KILN_PATH_MAX];
    void *data = NULL;
    kiln_chunks_file_name(a, name);
    KILN_TRY(kiln_path_join(path, sizeof path, e->target, name, err));
    KILN_GO(kiln_alloc(&data, a->raw_bytes, 1, "an array", err));
    KILN_GO(read(m, of, data, err));
    if (!same_content(path, data, a->raw_bytes))
        KILN_GO(kiln_file_write(path, data, a->raw_bytes, err));
done:
    free(data);
    return st;
}

typedef struct {
    const kiln_chunk *chunk;
    const kiln_plane *plane;
} plane_of;

static kiln_status read_chunk_plane(kiln_manifest *m, const void *of, void *dst, kiln_error *err)
{
    const plane_of *p = of;
    return kiln_plane_read(m, p->chunk, p->plane->name, dst, p->plane->data.raw_bytes, err);
}

static kiln_status write_chunk_planes(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const kiln_chunk *chunk = x->e->chunks[unit].chunk;
    kiln_manifest *m;
    KILN_TRY(kiln_worker_manifest(x->w, &m, err));
    for (uint32_t i = 0; i < chunk->n_planes; i++) {
        const plane_of p = {chunk, &chunk->planes[i]};
        KILN_TRY(write_array(x->e, m, &p.plane->data, read_chunk_plane, &p, err));
    }
    return KILN_OK;
}

static kiln_status read_segments(kiln_manifest *m, const void *of, void *dst, kiln_error *err)
{
    return kiln_manifest_read_array(m, of, dst, err);
}

typedef struct {
    const kiln_export *e;
    kiln_manifest *m;
} array_place;

static kiln_status write_one(void *context, const char *name, const kiln_array *a, kiln_error *err)
{
    const array_place *at = context;
    const kiln_status st = write_array(at->e, at->m, a, read_segments, a, err);
    if (st != KILN_OK) kiln_note(err, "array '%s'", name);
    return st;
}

static kiln_status write_one_table(kiln_export_worker *x, kiln_manifest *m, const table_ref *ref,
                                   kiln_error *err)
{
    const uint64_t n_tables = ((const table_plan *)x->e->plan)->n_tables;
    /* names stand behind the tables */
    const char *camera = (const char *)(tables_of(x->e) + n_tables) + ref->camera;
    array_place at = {.e = x->e, .m = m};
    kiln_tile_table *t = NULL;
    KILN_TRY(
        kiln_tile_table_get(m, camera, ref->profile, ref->antialiased != 0, ref->near_m, &t, err));
    if (!t) return kiln_fail(err, KILN_E_IO, "the tile table of '%s' is missing", camera);
    const kiln_status st = kiln_chunks_each_array(t, write_one, &at, err);
    if (st != KILN_OK) kiln_note(err, "the tile table of '%s'", camera);
    kiln_tile_tables_free(t, 1);
    return st;
}

static kiln_status write_tables(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const table_unit *u = &units_of(x->e)[unit];
    kiln_manifest *m;
    KILN_TRY(kiln_worker_manifest(x->w, &m, err));
    for (uint64_t i = 0; i < u->n; i++)
        KILN_TRY(write_one_table(x, m, &tables_of(x->e)[u->first + i], err));
    return KILN_OK;
}

/* ---- index ----------------------------------------------------------------------------------- */

static bool listed_file_is_there(void *context, const char *name, uint64_t bytes)
{
    char path[KILN_PATH_MAX];
    return kiln_path_join(path, sizeof path, context, name, NULL) == KILN_OK &&
           has_size(path, bytes);
}

static bool path_exists(const char *folder, const char *name)
{
    char path[KILN_PATH_MAX];
    struct stat s;
    return kiln_path_join(path, sizeof path, folder, name, NULL) == KILN_OK && lstat(path, &s) == 0;
}

/* An interrupted export may have left files, so the folder is not as it should be. */
static bool chunks_are_complete(const char *target)
{
    char folder[KILN_PATH_MAX];
    (void)snprintf(folder, sizeof folder, "%s", target);
    return !path_exists(target, UNFINISHED) &&
           read_index(target, INDEX, listed_file_is_there, folder) == KILN_CHUNKS_OURS;
}

/* ---- what an earlier export left ------------------------------------------------------------- */

/* Files by the hashes that they are named by. */
typedef struct {
    kiln_buffer hashes;
    bool sorted;
} name_set;

/* A name that we could have given: 32 hexadecimal digits, ".bin". The index of a folder may be a
 * stranger's and name any file. */
static bool hash_of_name(const char *name, kiln_hash *out)
{
    static const char digits[] = "0123456789abcdef";
    if (strspn(name, digits) != 32 || strcmp(name + 32, ".bin") != 0) return false;
    for (size_t i = 0; i < sizeof out->bytes; i++)
        out->bytes[i] = (uint8_t)((strchr(digits, name[2 * i]) - digits) << 4 |
                                  (strchr(digits, name[2 * i + 1]) - digits));
    return true;
}

static bool remember_file_name(void *context, const char *name, uint64_t bytes)
{
    name_set *set = context;
    kiln_hash hash;
    (void)bytes;
    set->sorted = false;
    return !hash_of_name(name, &hash) ||
           kiln_buffer_put(&set->hashes, &hash, sizeof hash, NULL) == KILN_OK;
}

static int hashes_by_bytes(const void *a, const void *b) { return memcmp(a, b, sizeof(kiln_hash)); }

static bool is_in(const name_set *set, const kiln_hash *hash)
{
    const size_t n = set->hashes.size / sizeof *hash;
    return n && bsearch(hash, set->hashes.data, n, sizeof *hash, hashes_by_bytes);
}

typedef struct {
    int folder;
    const name_set *needed;
} leftovers;

static bool remove_unneeded(void *context, const char *name, uint64_t bytes)
{
    const leftovers *l = context;
    kiln_hash hash;
    (void)bytes;
    /* two chunks may share it */
    if (hash_of_name(name, &hash) && !is_in(l->needed, &hash)) (void)unlinkat(l->folder, name, 0);
    return true;
}

/* Removes the files that were named before, and that are not needed. A folder that is a link may be
 * a stranger's way to another one: there everything stays. */
static void remove_leftovers(const char *folder, const name_set *before, name_set *needed)
{
    leftovers l = {.folder = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                   .needed = needed};
    char name[KILN_CHUNKS_FILE_NAME], hex[33];
    kiln_hash hash;
    if (l.folder < 0) return;
    const size_t n = needed->hashes.size / sizeof hash;
    if (n && !needed->sorted) qsort(needed->hashes.data, n, sizeof hash, hashes_by_bytes);
    needed->sorted = true;
    for (size_t at = 0; at < before->hashes.size; at += sizeof hash) {
        memcpy(&hash, before->hashes.data + at, sizeof hash);
        (void)snprintf(name, sizeof name, "%s.bin", kiln_hash_hex(hash, hex));
        (void)remove_unneeded(&l, name, 0);
    }
    (void)close(l.folder);
}

/* ---- begin and finish ------------------------------------------------------------------------ */

/* index.json may have come from somebody else since it was looked at; index.json.unfinished is no
 * name that others give. */
static kiln_status name_index(const kiln_export *e, const char *name, const char *temporary,
                              const char *path, kiln_error *err)
{
    if (strcmp(name, INDEX) == 0) return kiln_product_put(temporary, path, &e->seen, err);
    return rename(temporary, path) == 0 ? KILN_OK : kiln_file_write_failed(path, errno, err);
}

static kiln_status write_index(const kiln_export_parent *p, const char *name, bool indented,
                               kiln_error *err)
{
    char path[KILN_PATH_MAX], temporary[KILN_PATH_MAX];
    kiln_text_file f = {.path = path};
    KILN_TRY(kiln_path_join(path, sizeof path, p->e->target, name, err));
    KILN_TRY(kiln_file_replaceable(path, err));
    KILN_TRY(kiln_temporary_path(path, temporary, err));
    KILN_TRY(kiln_file_create(temporary, &f.fd, err));
    kiln_status st =
        kiln_chunks_index_write(p->e, p->plan->size > 0, indented, kiln_text_file_put, &f, err);
    if (st == KILN_OK) st = kiln_text_file_flush(&f, err);
    if (st == KILN_OK && fsync(f.fd) != 0) st = kiln_file_write_failed(path, errno, err);
    if (close(f.fd) != 0 && st == KILN_OK) st = kiln_file_write_failed(path, errno, err);
    if (st == KILN_OK) st = name_index(p->e, name, temporary, path, err);
    if (st != KILN_OK) (void)unlink(temporary);
    kiln_text_file_release(&f);
    return st;
}

static kiln_status need_files(const kiln_export_parent *p, name_set *needed, kiln_error *err)
{
    return kiln_chunks_index_files(p->e, p->plan->size > 0, remember_file_name, needed, err);
}

/* Removes what an interrupted export left, and notes what this one is about to write. What the last
 * whole one wrote stays. */
static kiln_status begin_chunks(kiln_export_parent *p, kiln_error *err)
{
    kiln_status st = KILN_OK;
    const kiln_export *e = p->e;
    char inside[KILN_PATH_MAX];
    name_set needed = {.sorted = false}, left = {.sorted = false};
    KILN_GO(kiln_path_join(inside, sizeof inside, e->target, INDEX, err));
    drop_half_written(e->target);
    KILN_GO(kiln_make_parents(inside, err));
    if (read_index(e->target, UNFINISHED, remember_file_name, &left) != KILN_CHUNKS_NO_INDEX) {
        KILN_GO(need_files(p, &needed, err));
        if (!kiln_is_file(inside) ||
            read_index(e->target, INDEX, remember_file_name, &needed) != KILN_CHUNKS_NO_INDEX)
            remove_leftovers(e->target, &left, &needed);
    }
    KILN_GO(write_index(p, UNFINISHED, false, err));
done:
    kiln_buffer_release(&needed.hashes);
    kiln_buffer_release(&left.hashes);
    return st;
}

/* Somebody else has put an index there meanwhile: its files stay, those of this export go. */
static void withdraw_chunks(const kiln_export_parent *p)
{
    char path[KILN_PATH_MAX];
    const char *const target = p->e->target;
    name_set needed = {.sorted = false}, own = {.sorted = false};
    if (read_index(target, INDEX, remember_file_name, &needed) == KILN_CHUNKS_OURS &&
        need_files(p, &own, NULL) == KILN_OK &&
        kiln_path_join(path, sizeof path, target, UNFINISHED, NULL) == KILN_OK) {
        remove_leftovers(target, &own, &needed);
        (void)unlink(path);
    }
    kiln_buffer_release(&needed.hashes);
    kiln_buffer_release(&own.hashes);
}

static kiln_status finish_chunks(kiln_export_parent *p, kiln_error *err)
{
    kiln_status st = KILN_OK;
    const kiln_export *e = p->e;
    char path[KILN_PATH_MAX];
    name_set needed = {.sorted = false}, before = {.sorted = false};
    const bool known =
        read_index(e->target, INDEX, remember_file_name, &before) != KILN_CHUNKS_NO_INDEX;
    st = write_index(p, INDEX, true, err);
    if (st == KILN_E_USAGE) withdraw_chunks(p);
    if (st != KILN_OK) goto done;
    if (known) KILN_GO(need_files(p, &needed, err));
    if (known) remove_leftovers(e->target, &before, &needed);
    drop_half_written(e->target); /* of a worker that was replaced */
    KILN_GO(kiln_path_join(path, sizeof path, e->target, UNFINISHED, err));
    (void)unlink(path); /* if it stays, the next export looks through its files once more */
done:
    kiln_buffer_release(&needed.hashes);
    kiln_buffer_release(&before.hashes);
    return st;
}

/* Whole files stay: they are named by their content, and the next export uses or removes them. No
 * worker runs any more. */
static void abandon_chunks(const kiln_export *e) { drop_half_written(e->target); }

/* All that only an export that failed has named. */
static void discard_chunks(const char *target)
{
    char path[KILN_PATH_MAX];
    name_set needed = {.sorted = false}, left = {.sorted = false};
    drop_half_written(target);
    const bool begun =
        read_index(target, UNFINISHED, remember_file_name, &left) == KILN_CHUNKS_OURS;
    const bool known = !path_exists(target, INDEX) ||
                       read_index(target, INDEX, remember_file_name, &needed) == KILN_CHUNKS_OURS;
    if (begun && known && kiln_path_join(path, sizeof path, target, UNFINISHED, NULL) == KILN_OK) {
        remove_leftovers(target, &left, &needed);
        (void)unlink(path);
    }
    kiln_buffer_release(&needed.hashes);
    kiln_buffer_release(&left.hashes);
}

static const kiln_export_round rounds[] = {
    {.what = "exporting", .ram = chunks_writer_ram, .run = write_chunk_planes},
    {.what = "tile tables", .units = table_units, .ram = table_ram, .run = write_tables},
};

const kiln_writer_functions kiln_writer_chunks = {
    .place = KILN_PLACE_SHARED,
    .plan = plan_chunks,
    .begin = begin_chunks,
    .rounds = rounds,
    .n_rounds = 2,
    .views = true,
    .finish = finish_chunks,
    .abandon = abandon_chunks,
    .discard = discard_chunks,
    .last_file = INDEX,
    .complete = chunks_are_complete,
};
