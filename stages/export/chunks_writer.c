/* chunks_writer -- a folder of raw arrays for renderers that want no SQLite: each plane and each array of a tile table is one file
 * named by the hash of its content, little-endian, component after component; index.json (chunks_index.h) says what is where. The
 * same array is one file however many chunks share it, and a second export writes only what changed.
 *
 * index.json is written last, and then the files are removed that only the index before it named. An export that is interrupted has
 * written files that no index names. So the new index is written first as index.json.unfinished: the next export finds it, and
 * removes the files that neither it nor index.json needs.
 *
 * Tile tables are written where they are of the chunks that are written: of a whole layer, by a stage that is up to date.
 */
#include "stages/export/chunks_index.h"
#include "stages/export/folder_owner.h"

#include "base/file.h"
#include "base/memory.h"
#include "schema/layers.h"
#include "stages/engine/engine.h"
#include "stages/engine/json_text.h"
#include "stages/engine/run_layers.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INDEX "index.json"
#define UNFINISHED "index.json.unfinished"
enum { INDEX_MAX = 1 << 30 };

/* A table as its worker finds it. The plan is an array of these: the tables that are written. */
typedef struct {
    char camera[1025], profile[32];
    bool antialiased;
    double near_m;
    uint64_t largest; /* bytes of its largest array */
} table_ref;

/* A worker that was killed in the midst of a file leaves NAME.tmp.PID. Files of processes that run stay. */
static void drop_half_written(const kiln_export *e)
{
    char inside[KILN_PATH_MAX];
    if (kiln_path_join(inside, sizeof inside, e->target, "x.bin", NULL) == KILN_OK) kiln_leftovers_drop(inside);
    if (kiln_path_join(inside, sizeof inside, e->target, INDEX, NULL) == KILN_OK) kiln_leftovers_drop(inside);
    if (kiln_path_join(inside, sizeof inside, e->target, UNFINISHED, NULL) == KILN_OK) kiln_leftovers_drop(inside);
}

/* ---- tile tables ------------------------------------------------------------------------------------------------------------ */

static kiln_status note_size(void *context, const char *name, const kiln_array *a, kiln_error *err)
{
    table_ref *ref = context;
    (void)name, (void)err;
    if (a->raw_bytes > ref->largest) ref->largest = a->raw_bytes;
    return KILN_OK;
}

/* Their slots are chunks, so that a part of the chunks is not enough for a renderer. */
static kiln_status plan_tables(kiln_export_parent *p, kiln_error *err)
{
    const kiln_export *e = p->e;
    const kiln_export_views *v = e->views;
    const kiln_layer *layer = e->bakes[0].layer;
    if (v->n_tables == 0 || kiln_layer_kinds[kiln_layer_kind_find(layer->kind)].form != KILN_FORM_CHUNKS) return KILN_OK;
    if (v->tiles != KILN_STAGE_FRESH)
        return kiln_export_note(p, err, "tile tables are left out, because the stage tiles is %s; run kiln-tiles first",
                                kiln_stage_state_name(v->tiles));
    if (kiln_chunks_rows(e) != layer->count)
        return kiln_export_note(p, err, "tile tables are left out, because they are of all chunks");
    for (uint32_t i = 0; i < v->n_tables; i++) {
        const kiln_tile_table *t = &v->tables[i];
        table_ref ref;
        memset(&ref, 0, sizeof ref);
        (void)snprintf(ref.camera, sizeof ref.camera, "%s", t->camera);
        (void)snprintf(ref.profile, sizeof ref.profile, "%s", t->profile);
        ref.antialiased = t->antialiased;
        ref.near_m = t->near_m;
        KILN_TRY(kiln_chunks_each_array(t, note_size, &ref, err));
        KILN_TRY(kiln_buffer_put(p->plan, &ref, sizeof ref, err));
    }
    return KILN_OK;
}

static const table_ref *table_at(const kiln_export *e, uint64_t unit) { return (const table_ref *)e->plan + unit; }
static uint64_t tables(const kiln_export *e) { return e->plan_bytes / sizeof(table_ref); }
static uint64_t table_ram(const kiln_export *e, uint64_t unit)
{
    const uint64_t largest = table_at(e, unit)->largest;
    return 2 * largest + kiln_read_ram(largest) + (1 << 20); /* and the lists of its segments */
}

/* ---- the folder that is there ------------------------------------------------------------------------------------------------ */

/* name: INDEX or UNFINISHED. NULL: it is not there, or no JSON. */
static json_t *load_index(const char *folder, const char *name)
{
    char path[KILN_PATH_MAX];
    unsigned char *text = NULL;
    size_t size = 0;
    if (kiln_path_join(path, sizeof path, folder, name, NULL) != KILN_OK || !kiln_is_file(path) ||
        kiln_file_read(path, INDEX_MAX, &text, &size, NULL) != KILN_OK)
        return NULL;
    json_t *index = NULL;
    if (kiln_json_parse((const char *)text, size, 0, path, &index, NULL, NULL) != KILN_OK)
        index = NULL; /* as if it were not there */
    free(text);
    return index;
}

/* index.json is a name that many programs give. What is named by a hash has our names alone. name: INDEX or UNFINISHED. */
static kiln_status check_index(const kiln_export *e, const char *name, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    struct stat s;
    KILN_TRY(kiln_path_join(path, sizeof path, e->target, name, err));
    if (e->replace || lstat(path, &s) != 0) return KILN_OK;
    json_t *index = load_index(e->target, name);
    const char *format = json_string_value(json_object_get(index, "format"));
    const bool ours = format && strcmp(format, KILN_CHUNKS_FORMAT) == 0;
    json_decref(index);
    return ours ? KILN_OK : kiln_folder_fail_foreign(e->target, name, err);
}

/* ---- plan -------------------------------------------------------------------------------------------------------------------- */

static kiln_status plan(kiln_export_parent *p, kiln_error *err)
{
    const kiln_export *e = p->e;
    if (!kiln_export_is_as_stored(e))
        return kiln_fail(err, KILN_E_INPUT,
                         "the format chunks gives the chunks of one bake as they are stored; leave out what changes them: filters, "
                         "--sh-degree, moves, --add");
    if (kiln_is_file(e->target))
        return kiln_fail(err, KILN_E_USAGE, "'%s' is a file; the format chunks writes a folder", e->target);
    KILN_TRY(check_index(e, INDEX, err));
    KILN_TRY(check_index(e, UNFINISHED, err));
    return plan_tables(p, err);
}

/* A plane, and the file that is there compared with it. */
static uint64_t ram(const kiln_export *e, uint64_t unit)
{
    const kiln_export_bake *bake = &e->bakes[e->chunks[unit].bake];
    const kiln_layer_size size = kiln_layer_size_of(e->chunks[unit].level ? bake->levels : bake->layer);
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
    if (!has_size(path, bytes) || kiln_file_read(path, bytes, &there, &size, NULL) != KILN_OK) return false;
    bool same = size == bytes && memcmp(there, data, bytes) == 0;
    free(there);
    return same;
}

/* Reads an array for write_array. */
typedef kiln_status read_fn(kiln_manifest *m, const void *of, void *dst, kiln_error *err);

static kiln_status write_array(const kiln_export *e, kiln_manifest *m, const kiln_array *a, read_fn *read, const void *of,
                               kiln_error *err)
{
    kiln_status st = KILN_OK;
    char name[KILN_CHUNKS_FILE_NAME], path[KILN_PATH_MAX];
    void *data = NULL;
    kiln_chunks_file_name(a, name);
    KILN_TRY(kiln_path_join(path, sizeof path, e->target, name, err));
    KILN_GO(kiln_alloc(&data, a->raw_bytes, 1, "an array", err));
    KILN_GO(read(m, of, data, err));
    if (!same_content(path, data, a->raw_bytes)) KILN_GO(kiln_file_write(path, data, a->raw_bytes, err));
done:
    free(data);
    return st;
}

typedef struct {
    const kiln_chunk *chunk;
    const kiln_plane *plane;
} plane_of;

static kiln_status read_plane(kiln_manifest *m, const void *of, void *dst, kiln_error *err)
{
    const plane_of *p = of;
    return kiln_plane_read(m, p->chunk, p->plane->name, dst, p->plane->data.raw_bytes, err);
}

static kiln_status write_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const kiln_chunk *chunk = x->e->chunks[unit].chunk;
    kiln_manifest *m;
    KILN_TRY(kiln_worker_manifest(x->w, &m, err));
    for (uint32_t i = 0; i < chunk->n_planes; i++) {
        const plane_of p = {chunk, &chunk->planes[i]};
        KILN_TRY(write_array(x->e, m, &p.plane->data, read_plane, &p, err));
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

static kiln_status write_table(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const table_ref *ref = table_at(x->e, unit);
    array_place at = {.e = x->e};
    kiln_tile_table *t = NULL;
    KILN_TRY(kiln_worker_manifest(x->w, &at.m, err));
    KILN_TRY(kiln_tile_table_get(at.m, ref->camera, ref->profile, ref->antialiased, ref->near_m, &t, err));
    if (!t) return kiln_fail(err, KILN_E_IO, "the tile table of '%s' is gone", ref->camera);
    const kiln_status st = kiln_chunks_each_array(t, write_one, &at, err);
    if (st != KILN_OK) kiln_note(err, "the tile table of '%s'", ref->camera);
    kiln_tile_tables_free(t, 1);
    return st;
}

/* ---- index ------------------------------------------------------------------------------------------------------------------- */

static bool is_there(void *context, const char *name, uint64_t bytes)
{
    char path[KILN_PATH_MAX];
    return kiln_path_join(path, sizeof path, context, name, NULL) == KILN_OK && has_size(path, bytes);
}

static bool exists(const char *folder, const char *name)
{
    char path[KILN_PATH_MAX];
    struct stat s;
    return kiln_path_join(path, sizeof path, folder, name, NULL) == KILN_OK && lstat(path, &s) == 0;
}

/* An interrupted export may have left files, so the folder is not as it should be. */
static bool complete(const char *target)
{
    char folder[KILN_PATH_MAX];
    json_t *index = exists(target, UNFINISHED) ? NULL : load_index(target, INDEX);
    snprintf(folder, sizeof folder, "%s", target);
    bool all = index && kiln_chunks_each_file(index, is_there, folder);
    json_decref(index);
    return all;
}

/* ---- what an earlier export left --------------------------------------------------------------------------------------------- */

static bool remember(void *context, const char *name, uint64_t bytes)
{
    (void)bytes;
    return json_object_set_new(context, name, json_true()) == 0;
}

typedef struct {
    int folder;
    const json_t *needed;
} leftovers;

/* A name that we could have given: 32 hexadecimal digits, ".bin". The index of a folder may be a stranger's and name any file. */
static bool is_named_by_hash(const char *name) { return strspn(name, "0123456789abcdef") == 32 && strcmp(name + 32, ".bin") == 0; }

static bool remove_unneeded(void *context, const char *name, uint64_t bytes)
{
    const leftovers *l = context;
    (void)bytes;
    if (is_named_by_hash(name) && !json_object_get(l->needed, name))
        (void)unlinkat(l->folder, name, 0); /* two chunks may share it */
    return true;
}

/* Removes the files that the index `before` names and that are not needed. A folder that is a link may be a stranger's way to
 * another one: there everything stays. */
static void remove_leftovers(const char *folder, const json_t *before, const json_t *needed)
{
    leftovers l = {.folder = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), .needed = needed};
    if (l.folder < 0) return;
    (void)kiln_chunks_each_file(before, remove_unneeded, &l);
    (void)close(l.folder);
}

/* ---- begin and finish ------------------------------------------------------------------------------------------------------- */

static kiln_status write_index(const kiln_export *e, const char *name, const json_t *index, size_t flags, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    char *text = kiln_json_text(index, flags | JSON_REAL_PRECISION(17));
    if (!text) return kiln_fail(err, KILN_E_NOMEM, "out of memory while writing the index of '%s'", e->target);
    kiln_status st = kiln_path_join(path, sizeof path, e->target, name, err);
    if (st == KILN_OK) st = kiln_file_write(path, text, strlen(text), err);
    free(text);
    return st;
}

/* The index that will be written, and the names of its files as the keys of an object. Both are given to the caller. */
static kiln_status make_index(const kiln_export_parent *p, json_t **index, json_t **names, kiln_error *err)
{
    *index = kiln_chunks_index(p->e, p->plan->size > 0);
    *names = json_object();
    if (*names && kiln_chunks_each_file(*index, remember, *names)) return KILN_OK;
    return kiln_fail(err, KILN_E_NOMEM, "out of memory while making the index of '%s'", p->e->target);
}

/* Removes what an interrupted export left, and notes what this one is about to write. */
static kiln_status begin(kiln_export_parent *p, kiln_error *err)
{
    kiln_status st = KILN_OK;
    const kiln_export *e = p->e;
    char inside[KILN_PATH_MAX];
    json_t *now = NULL, *needed = NULL, *before = load_index(e->target, INDEX), *unfinished = load_index(e->target, UNFINISHED);
    KILN_GO(kiln_path_join(inside, sizeof inside, e->target, INDEX, err));
    drop_half_written(e);
    KILN_GO(kiln_make_parents(inside, err));
    KILN_GO(make_index(p, &now, &needed, err));
    if (unfinished && (!before || kiln_chunks_each_file(before, remember, needed))) remove_leftovers(e->target, unfinished, needed);
    KILN_GO(write_index(e, UNFINISHED, now, JSON_COMPACT, err));
done:
    json_decref(unfinished);
    json_decref(before);
    json_decref(needed);
    json_decref(now);
    return st;
}

static kiln_status finish(kiln_export_parent *p, kiln_error *err)
{
    kiln_status st = KILN_OK;
    const kiln_export *e = p->e;
    char path[KILN_PATH_MAX];
    json_t *now = NULL, *needed = NULL, *before = load_index(e->target, INDEX);
    KILN_GO(make_index(p, &now, &needed, err));
    KILN_GO(write_index(e, INDEX, now, JSON_INDENT(1), err));
    if (before) remove_leftovers(e->target, before, needed);
    drop_half_written(e); /* of a worker that was replaced */
    KILN_GO(kiln_path_join(path, sizeof path, e->target, UNFINISHED, err));
    (void)unlink(path); /* if it stays, the next export looks through its files once more */
done:
    json_decref(needed);
    json_decref(now);
    json_decref(before);
    return st;
}

/* Whole files stay: they are named by their content, and the next export uses or removes them. No worker runs any more. */
static void abandon(const kiln_export *e) { drop_half_written(e); }

static const kiln_export_round rounds[] = {
    {.what = "exporting", .ram = ram, .run = write_chunk},
    {.what = "tile tables", .units = tables, .ram = table_ram, .run = write_table},
};

const kiln_writer_functions kiln_writer_chunks = {
    .place = KILN_PLACE_SHARED,
    .plan = plan,
    .begin = begin,
    .rounds = rounds,
    .n_rounds = 2,
    .views = true,
    .finish = finish,
    .abandon = abandon,
    .last_file = INDEX,
    .complete = complete,
};
