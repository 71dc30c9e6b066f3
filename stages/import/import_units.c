/* import_units -- see import_units.h. */
#include "stages/import/import_units.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "stages/engine/hosts/decisions.h"
#include "stages/import/import_options.h"
#include "stages/import/random_points.h"
#include "stages/import/undistorted/undistorted.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* ---- the worker ------------------------------------------------------------------------------ */

typedef struct {
    char reader[32];
    kiln_place place;
    kiln_similarity move;
} scan_request;
#define CUBE_UNIT "root cube"

/* One unit for all files: the origin is of all their rows. */
static kiln_status scan_unit(kiln_worker *w, const scan_request *q, uint32_t n, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_scan *scan = NULL;
    kiln_scan_part *parts = NULL;
    kiln_buffer offsets = {0};
    KILN_GO(KILN_ALLOC(&scan, n, "scan", err));
    KILN_GO(KILN_ALLOC(&parts, n, "files of rows", err));
    for (uint32_t k = 0; k < n; k++) {
        parts[k] =
            (kiln_scan_part){kiln_reader_named(q[k].reader), kiln_place_at(&q[k].place), q[k].move};
        if (!parts[k].reader)
            KILN_GO(kiln_fail(err, KILN_E_BUG, "no reader is called '%s'", q[k].reader));
    }
    KILN_GO(kiln_scan_sources(w, parts, n, scan, &offsets, err));
    KILN_GO(kiln_worker_put(w, "scan", scan, n * sizeof *scan, 1, err));
    KILN_GO(kiln_worker_put(w, "offsets", offsets.data, offsets.size, 8, err));
done:
    kiln_buffer_release(&offsets);
    free(parts);
    free(scan);
    return st;
}

kiln_status kiln_import_unit(kiln_worker *w, const char *name, const void *payload, size_t bytes,
                             kiln_error *err)
{
    if (strcmp(name, KILN_HASH_UNIT) == 0) return kiln_sources_unit(w, payload, bytes, err);
    if (strcmp(name, CUBE_UNIT) == 0)
        return kiln_cube_unit(w, payload, bytes / sizeof(kiln_cube_part), err);
    if (bytes == sizeof(kiln_spool_request) &&
        (strcmp(name, KILN_UNPACK_UNIT) == 0 || strcmp(name, KILN_SPOOL_UNIT) == 0))
        return kiln_spool_unit(w, payload, err);
    if (strcmp(name, KILN_SCAN_UNIT) == 0 && bytes % sizeof(scan_request) == 0)
        return scan_unit(w, payload, (uint32_t)(bytes / sizeof(scan_request)), err);
    _Static_assert(sizeof(kiln_undistorted_request) != sizeof(kiln_block_request),
                   "units of import are told apart by these");
    if (bytes == sizeof(kiln_undistorted_request)) return kiln_undistorted_unit(w, payload, err);
    if (bytes == sizeof(kiln_block_request)) return kiln_block_unit(w, payload, err);
    return kiln_fail(err, KILN_E_BUG, "import has no unit '%s' of %zu bytes", name, bytes);
}

/* ---- what rows come from --------------------------------------------------------------------- */

/* A member's path as its file names it: below the folder of that file. */
static const char *below_folder(const char *file, const char *member)
{
    const size_t n = (size_t)(kiln_path_base(file) - file);
    return strncmp(file, member, n) == 0 ? member + n : member;
}

/* All that the rows of a part come from: one file, or it and its members in the order of their
 * paths. */
static kiln_hash content_hash(const kiln_join_part *p, const kiln_sources *s)
{
    const kiln_source_file *file = kiln_sources_find(s, p->path);
    if (p->n_members == 0) return file->hash;
    kiln_hasher *h = kiln_hasher_new();
    kiln_key_hash(h, "content", file->hash);
    for (uint32_t k = 0; k < p->n_members; k++) {
        const kiln_source_file *member = kiln_sources_find(s, p->members[k].text);
        kiln_key_text(h, "member", below_folder(p->path, p->members[k].text));
        kiln_key_hash(h, "content", member ? member->hash : (kiln_hash){{0}});
    }
    return kiln_key_end(h);
}

/* ---- scan ------------------------------------------------------------------------------------ */

/* Each part may have two files of scratch, which stay open until its blocks are read. */
static kiln_status raise_open_files(uint32_t n_parts, kiln_error *err)
{
    enum { OTHERS = 256 };
    struct rlimit most;
    const rlim_t need = 2 * (rlim_t)n_parts + OTHERS;
    if (getrlimit(RLIMIT_NOFILE, &most) != 0 || most.rlim_cur >= need) return KILN_OK;
    most.rlim_cur = most.rlim_max < need ? most.rlim_max : need;
    if (most.rlim_cur < need)
        return kiln_fail(
            err, KILN_E_IO,
            "%u files of rows may need %llu open files, but %llu are allowed; raise ulimit -n",
            n_parts, (unsigned long long)need, (unsigned long long)most.rlim_max);
    (void)setrlimit(RLIMIT_NOFILE, &most); /* where it stays as it was, opening tells */
    return KILN_OK;
}

/* Members are read here and not later, so that here is where they must be as they were hashed. */
kiln_status kiln_import_prepare(kiln_run *r, const char *manifest, kiln_import_result *i,
                                const kiln_sources *s, kiln_error *err)
{
    bool members = false;
    KILN_TRY(raise_open_files(i->n_parts, err));
    for (uint32_t k = 0; k < i->n_parts; k++) {
        kiln_join_part *p = &i->parts[k];
        const kiln_source_file *f = kiln_sources_find(s, p->path);
        const kiln_source_wanted wanted = {
            .reader = p->reader,
            .path = p->path,
            .options = &i->data.read,
            .max_inflated = kiln_import_given.max_inflated,
            .file = {.size = f->size, .mtime_ns = f->mtime_ns, .inode = f->inode}};
        KILN_TRY(kiln_prepare(r, manifest, &wanted, &p->prepared, err));
        members |= p->n_members > 0;
    }
    return members ? kiln_sources_unchanged(s, err) : KILN_OK;
}

/* A scan that is not stored was made by this program just now. */
static kiln_status check_scans(const kiln_unit *u, const kiln_scan *scans, uint64_t bytes,
                               const kiln_import_result *i, kiln_error *err)
{
    if (bytes != i->n_parts * sizeof *scans)
        return kiln_fail(err, u->volatile_result ? KILN_E_BUG : KILN_E_IO,
                         "the scan has %llu bytes for %u files", (unsigned long long)bytes,
                         i->n_parts);
    return u->volatile_result ? KILN_OK : kiln_scan_check(scans, i->n_parts, err);
}

static kiln_status take_scans(kiln_run *r, kiln_import_result *i, const kiln_unit *u,
                              uint64_t **offsets, kiln_error *err)
{
    kiln_scan *scans = NULL;
    uint64_t bytes, n_blocks = 0;
    kiln_status st = kiln_unit_data(r, u, "scan", (void **)&scans, &bytes, err);
    if (st == KILN_OK) st = kiln_unit_refuse(r, u, check_scans(u, scans, bytes, i, err), err);
    for (uint32_t k = 0; k < i->n_parts && st == KILN_OK; k++) {
        i->parts[k].scan = scans[k];
        n_blocks += scans[k].n_blocks;
    }
    free(scans);
    if (st == KILN_OK) st = kiln_unit_data(r, u, "offsets", (void **)offsets, &bytes, err);
    if (st == KILN_OK && bytes != n_blocks * sizeof **offsets)
        st = kiln_unit_refuse(r, u,
                              kiln_fail(err, u->volatile_result ? KILN_E_BUG : KILN_E_IO,
                                        "the scan has %llu bytes of offsets",
                                        (unsigned long long)bytes),
                              err);
    return st == KILN_OK ? kiln_join(i->parts, i->n_parts, *offsets, &i->scan, err) : st;
}

/* Of what came later only what is asked for, so that keys of older bakes hold. */
static void key_columns(kiln_hasher *h, const kiln_read_options *o)
{
    if (o->is_static) kiln_key_u64(h, "static", 1);
    if (o->activated) kiln_key_u64(h, "activated", 1);
    if (o->no_extras) kiln_key_u64(h, "no extras", 1);
}

/* A scan is of this build's shape, and what it finds depends on the content, on how it is read and
 * on how it is moved. */
static kiln_hash scan_key(kiln_run *r, const kiln_import_result *i, const kiln_sources *s,
                          const scan_request *q)
{
    kiln_hasher *h = kiln_run_key_bare(r, "scan");
    kiln_key_u64(h, "bytes", sizeof(kiln_scan));
    for (uint32_t k = 0; k < i->n_parts; k++) {
        kiln_key_text(h, "reader", q[k].reader);
        kiln_key_hash(h, "content", content_hash(&i->parts[k], s));
        kiln_key_u64(h, "frame", q[k].place.options.frame);
        kiln_key_u64(h, "lod", q[k].place.options.lod);
        key_columns(h, &q[k].place.options);
        kiln_key_bytes(h, "move", &q[k].move, sizeof q[k].move);
    }
    return kiln_key_end(h);
}

/* Rows in scratch, which only this process has. */
static bool has_scratch(const kiln_import_result *i)
{
    bool has = false;
    for (uint32_t k = 0; k < i->n_parts; k++)
        has |= i->parts[k].prepared.place.unpacked[0] || i->parts[k].prepared.place.spool[0];
    return has;
}

/* In a round it is stored, so that tasks find it; of rows in scratch there is no round. */
static kiln_status run_scan(kiln_run *r, kiln_import_result *i, const kiln_sources *s,
                            uint64_t **offsets, kiln_error *err)
{
    kiln_status st = KILN_OK;
    scan_request *q = NULL;
    kiln_unit u = {.name = KILN_SCAN_UNIT,
                   .ram = kiln_max_u64(KILN_SCAN_RAM, i->scan_ram),
                   .volatile_result = !kiln_run_is_round(r) || has_scratch(i)};
    KILN_TRY(KILN_ALLOC(&q, i->n_parts, "files of rows", err));
    for (uint32_t k = 0; k < i->n_parts; k++) {
        snprintf(q[k].reader, sizeof q[k].reader, "%s", i->parts[k].reader->name);
        q[k].place = i->parts[k].prepared.place;
        q[k].move = i->parts[k].move;
    }
    u.key = scan_key(r, i, s, q);
    u.payload = q;
    u.payload_bytes = i->n_parts * sizeof *q;
    kiln_run_shares_nothing(r, has_scratch(i));
    KILN_GO(kiln_run_units(r, "checking", &u, 1, err));
    KILN_GO(take_scans(r, i, &u, offsets, err));
done:
    free(q);
    kiln_units_release(&u, 1);
    return st;
}

static bool is_blender(const kiln_dataset *d)
{
    for (uint32_t i = 0; i < d->set.n_findings; i++)
        if (d->set.findings[i].used && strcmp(d->set.findings[i].role, "cameras") == 0 &&
            strncmp(kiln_path_base(d->set.findings[i].path), "transforms_", 11) == 0)
            return true;
    return false;
}

/* Without rows in the data set: random ones if asked for, else a sentence. */
static void plan_without_rows(kiln_import_result *i)
{
    memset(&i->scan, 0, sizeof i->scan);
    i->random = kiln_import_given.random_points > 0 && i->data.set.n_cameras > 0;
    if (i->random) {
        i->scan.info.kind = KILN_SCENE_POINTS;
        i->scan.info.n_rows = kiln_import_given.random_points;
        i->scan.info.has_rgb = true;
        i->scan.n_blocks =
            (kiln_import_given.random_points + KILN_BLOCK_ROWS - 1) / KILN_BLOCK_ROWS;
        return;
    }
    kiln_warn("'%s' holds %u camera%s but neither Gaussians nor points; --random-points N makes N "
              "points to start from",
              i->data.set.root, i->data.set.n_cameras, i->data.set.n_cameras == 1 ? "" : "s");
}

kiln_status kiln_import_scan(kiln_run *r, kiln_import_result *i, const kiln_sources *s,
                             uint64_t **offsets, kiln_error *err)
{
    if (i->n_parts) KILN_TRY(run_scan(r, i, s, offsets, err));
    if (i->scan.info.n_rows == 0) {
        if (i->data.set.n_cameras == 0)
            return kiln_fail(
                err, KILN_E_INPUT,
                "'%s' holds neither Gaussians nor points nor cameras; there is nothing to import",
                i->data.set.root);
        plan_without_rows(i);
    } else if (kiln_import_given.random_points) {
        kiln_say("--random-points is not needed: '%s' has rows", i->data.rows_path);
    }
    return KILN_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void fill_random(const kiln_import_result *i, const double box[6], uint64_t block,
                        kiln_block_request *q)
{
    const uint64_t first = block * KILN_BLOCK_ROWS, left = i->scan.info.n_rows - first;
    memset(q, 0, sizeof *q);
    snprintf(q->reader, sizeof q->reader, "%s", KILN_RANDOM_READER);
    q->block = block;
    q->first = q->row = first;
    q->n = left < KILN_BLOCK_ROWS ? left : KILN_BLOCK_ROWS;
    q->offset = UINT64_MAX;
    q->seed = kiln_import_given.seed;
    kiln_similarity_identity(&q->move);
    memcpy(q->box, box, sizeof q->box);
}

static void fill_request(const kiln_join_part *p, const kiln_source_file *file, uint64_t block,
                         kiln_block_request *q)
{
    const uint64_t own = block - p->first_block, first = own * KILN_BLOCK_ROWS,
                   left = p->scan.info.n_rows - first;
    memset(q, 0, sizeof *q);
    q->place = p->prepared.place;
    snprintf(q->reader, sizeof q->reader, "%s", p->reader->name);
    q->file =
        (kiln_file_info){.size = file->size, .mtime_ns = file->mtime_ns, .inode = file->inode};
    q->block = block;
    q->first = first;
    q->n = left < KILN_BLOCK_ROWS ? left : KILN_BLOCK_ROWS;
    q->offset = p->offsets[own];
    memcpy(q->origin, p->scan.origin, sizeof q->origin);
    memcpy(q->keep, p->scan.keep, sizeof q->keep);
    q->row = p->first_row + first;
    q->move = p->move;
    q->sh_degree = p->scan.info.sh_degree;
    q->has_rgb = p->scan.info.has_rgb;
    q->n_zeros = p->n_zeros;
    memcpy(q->zeros, p->zeros, sizeof q->zeros);
}

/* What a file alone and not moved does not have is in no key: such a block is the same in a joined
 * scene. */
static void key_join(kiln_hasher *h, const kiln_join_part *p, const kiln_block_request *q)
{
    if (q->row != q->first) kiln_key_u64(h, "row", q->row);
    if (q->sh_degree != p->file_degree) kiln_key_u64(h, "sh_degree", q->sh_degree);
    if (q->has_rgb != p->file_rgb) kiln_key_u64(h, "has_rgb", q->has_rgb);
    if (!kiln_similarity_is_identity(&q->move)) {
        kiln_key_f64(h, "scale", q->move.scale);
        kiln_key_bytes(h, "rotation", q->move.r, sizeof q->move.r);
        kiln_key_bytes(h, "translation", q->move.t, sizeof q->move.t);
    }
    for (uint32_t z = 0; z < q->n_zeros; z++) {
        kiln_key_text(h, "zeros", q->zeros[z].name);
        kiln_key_u64(h, "type", q->zeros[z].type);
    }
}

/* part NULL: random points */
static kiln_hash block_key(kiln_run *r, const kiln_join_part *p, const kiln_block_request *q,
                           kiln_hash content)
{
    KILN_KEY_LISTS(kiln_block_request, 5904);
    kiln_hasher *h = kiln_run_key_bare(r, "block");
    kiln_key_text(h, "reader", q->reader);
    kiln_key_hash(h, "content", content);
    if (p && p->reader->has_options) {
        kiln_key_u64(h, "frame", q->place.options.frame);
        kiln_key_u64(h, "lod", q->place.options.lod);
    }
    key_columns(h, &q->place.options);
    kiln_key_u64(h, "first", q->first);
    kiln_key_u64(h, "n", q->n);
    kiln_key_bytes(h, "origin", q->origin, sizeof q->origin);
    kiln_key_bytes(h, "keep", q->keep, sizeof q->keep);
    kiln_key_u64(h, "seed", q->seed);
    kiln_key_bytes(h, "box", q->box, sizeof q->box);
    if (p) key_join(h, p, q);
    return kiln_key_end(h);
}

static kiln_status take_counters(kiln_run *r, kiln_import_result *i, const kiln_unit *u,
                                 kiln_error *err)
{
    json_t *c = NULL;
    kiln_row_counts counts;
    KILN_TRY(kiln_unit_counters(r, u, &c, err));
    kiln_status st =
        kiln_unit_refuse(r, u,
                         kiln_row_counts_parse(json_object_get(c, "dropped"),
                                               json_object_get(c, "clamped"), &counts, err),
                         err);
    if (st == KILN_OK) st = kiln_unit_count(r, u, c, "rows", &counts.read, err);
    if (st == KILN_OK) st = kiln_unit_count(r, u, c, "kept", &counts.kept, err);
    if (st == KILN_OK) {
        kiln_row_counts_add(&i->counts, &counts);
        if (json_array_size(i->dropped_rows) < 100 &&
            json_array_extend(i->dropped_rows, json_object_get(c, "dropped_rows")) != 0)
            st = kiln_fail(err, KILN_E_NOMEM, "out of memory while counting rows");
    }
    json_decref(c);
    return st;
}

static void fill_units(kiln_run *r, const kiln_import_result *i, const kiln_sources *s,
                       kiln_unit *units, kiln_block_request *requests)
{
    double box[6] = {0};
    kiln_hash content = {{0}};
    const kiln_join_part *p = NULL;
    if (i->random)
        kiln_random_box(i->data.set.cameras, i->data.set.n_cameras, is_blender(&i->data), box);
    for (uint64_t b = 0; b < i->scan.n_blocks; b++) {
        const kiln_join_part *now = i->random ? NULL : kiln_part_of_block(i->parts, i->n_parts, b);
        if (now && now != p) content = content_hash(now, s);
        p = now;
        if (p)
            fill_request(p, kiln_sources_find(s, p->path), b, &requests[b]);
        else
            fill_random(i, box, b, &requests[b]);
        snprintf(units[b].name, sizeof units[b].name, "block %llu", (unsigned long long)b);
        units[b].key = block_key(r, p, &requests[b], content);
        units[b].payload = &requests[b];
        units[b].payload_bytes = sizeof requests[b];
        units[b].cost = requests[b].n;
        units[b].ram = p ? kiln_block_ram(p->reader, &p->scan.info, p->scan.keep)
                         : kiln_block_ram(NULL, &i->scan.info, i->scan.keep);
        units[b].optional = true;
    }
}

kiln_status kiln_import_blocks(kiln_run *r, kiln_import_result *i, const kiln_sources *s,
                               kiln_unit *units, kiln_block_request *requests, kiln_error *err)
{
    fill_units(r, i, s, units, requests);
    KILN_TRY(kiln_run_units(r, "importing", units, i->scan.n_blocks, err));
    for (uint64_t b = 0; b < i->scan.n_blocks; b++) {
        if (!units[b].quarantined) {
            KILN_TRY(kiln_unit_pass(r, &units[b], take_counters(r, i, &units[b], err)));
            continue;
        }
        i->n_missing++;
        i->rows_missing += requests[b].n;
    }
    KILN_TRY(kiln_run_refused(r, err));
    if (i->n_missing == i->scan.n_blocks && i->n_missing > 0)
        return kiln_fail(err, KILN_E_PARTIAL, "no block of '%s' could be imported",
                         i->data.rows_path);
    return KILN_OK;
}

uint64_t kiln_import_block_ram(const kiln_import_result *i)
{
    uint64_t most = 0;
    for (uint32_t k = 0; k < i->n_parts; k++) {
        const kiln_source_info *info = &i->parts[k].scan.info;
        most = kiln_max_u64(most, kiln_rows_ram(info) +
                                      kiln_reader_ram(i->parts[k].reader, info, KILN_PASS_BLOCK));
    }
    return most;
}

void kiln_import_requests(const kiln_import_result *i, const kiln_sources *s,
                          kiln_block_request *requests)
{
    for (uint64_t b = 0; b < i->scan.n_blocks; b++) {
        const kiln_join_part *p = kiln_part_of_block(i->parts, i->n_parts, b);
        fill_request(p, kiln_sources_find(s, p->path), b, &requests[b]);
    }
}

kiln_status kiln_import_measure(kiln_run *r, kiln_import_result *i, kiln_unit *units,
                                kiln_block_request *requests, kiln_error *err)
{
    const uint64_t ram = kiln_import_block_ram(i) + (1 << 16); /* names, statistics */
    for (uint64_t b = 0; b < i->scan.n_blocks; b++) {
        units[b] = (kiln_unit){.payload = &requests[b],
                               .payload_bytes = sizeof requests[b],
                               .cost = requests[b].n,
                               .ram = ram,
                               .n_outputs = 2,
                               .volatile_result = true};
        (void)snprintf(units[b].name, sizeof units[b].name, KILN_BLOCK_UNIT "%llu",
                       (unsigned long long)b);
    }
    KILN_TRY(kiln_run_units(r, "measuring", units, i->scan.n_blocks, err));
    for (uint64_t b = 0; b < i->scan.n_blocks; b++) KILN_TRY(take_counters(r, i, &units[b], err));
    return KILN_OK;
}

static bool is_cube(const kiln_cube *c)
{
    bool sound = isfinite(c->half) && c->half > 0;
    for (int a = 0; a < 3; a++)
        sound = sound && isfinite(c->centre[a]) && isfinite(c->inner_lo[a]) &&
                isfinite(c->inner_hi[a]) && c->inner_lo[a] <= c->inner_hi[a];
    return sound;
}

kiln_status kiln_import_cube(kiln_run *r, kiln_import_result *i, const kiln_layer *l,
                             kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_cube_part *parts = NULL;
    const uint64_t ram = kiln_cube_ram(KILN_BLOCK_ROWS);
    kiln_unit u = {.name = CUBE_UNIT, .ram = ram, .ram_thread = ram + KILN_CONNECTION_RAM};
    KILN_TRY(KILN_ALLOC(&parts, l->n_chunks, "blocks", err));
    kiln_hasher *h = kiln_run_key_bare(r, "cube");
    for (uint32_t b = 0; b < l->n_chunks; b++) {
        const kiln_plane *means = kiln_chunk_plane(&l->chunks[b], "means");
        parts[b] = (kiln_cube_part){.means = means->data.segments[0], .n = l->chunks[b].count};
        kiln_key_hash(h, "means", parts[b].means);
    }
    u.key = kiln_key_end(h);
    u.payload = parts;
    u.payload_bytes = l->n_chunks * sizeof *parts;
    KILN_GO(kiln_run_units(r, "measuring", &u, 1, err));
    KILN_GO(kiln_unit_struct(r, &u, "cube", &i->cube, sizeof i->cube, err));
    if (!is_cube(&i->cube))
        KILN_GO(
            kiln_unit_refuse(r, &u, kiln_fail(err, KILN_E_IO, "its root cube is invalid"), err));
done:
    kiln_units_release(&u, 1);
    free(parts);
    return st;
}
