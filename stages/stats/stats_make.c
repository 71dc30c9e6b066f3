/* stats_make -- see stats.h. The parent: which rows, three passes over their columns; then for
 * pairs one over where they lie, if there are no cameras, and one that counts. */
#include "stages/stats/stats.h"

#include "base/checked.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "schema/layers.h"
#include "stages/import/import_options.h"
#include "stages/import/own_cameras.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

kiln_stats_options kiln_stats_given;

enum { UNITS = 16, COUNTS_BYTES = 64 << 20 };

/* ---- memory ---------------------------------------------------------------------------------- */

static uint64_t largest_block(const kiln_stats *s)
{
    uint64_t most = s->of_layer ? 0 : KILN_BLOCK_ROWS;
    for (uint32_t c = 0; s->of_layer && c < s->layer->n_chunks; c++)
        most = kiln_max_u64(most, s->layer->chunks[c].count);
    return most;
}

static uint64_t reading_ram(const kiln_stats *s)
{
    uint64_t most = 0;
    if (!s->of_layer) return kiln_import_block_ram(&s->rows.in);
    for (uint32_t c = 0; c < s->layer->n_chunks; c++) {
        uint64_t all = 0;
        for (uint32_t p = 0; p < s->layer->chunks[c].n_planes; p++)
            all += s->layer->chunks[c].planes[p].data.raw_bytes;
        most = kiln_max_u64(most, all + kiln_read_ram(all));
    }
    return most;
}

/* As many as their counts have room for; blocks one behind the other. */
static uint64_t units_of_pass(const kiln_stats_shared *shared, uint64_t n_blocks)
{
    const uint64_t counts =
        shared->pass < KILN_STATS_PASSES
            ? shared->n_columns * (uint64_t)kiln_stats_counters(shared->pass) * sizeof(uint32_t)
            : 1;
    return kiln_min_u64(
        n_blocks, kiln_max_u64(1, kiln_min_u64(UNITS, COUNTS_BYTES / kiln_max_u64(counts, 1))));
}

/* Where memory is too short for the first list, what is named has room for all passes. reading:
 * what a block takes; packed: the requests of all. */
static void foresee_passes(kiln_run *r, const kiln_stats *s, uint64_t reading, uint64_t packed)
{
    const uint32_t end = kiln_stats_given.pairs ? KILN_STATS_PAIRS + 1 : KILN_STATS_PASSES;
    const uint64_t n_views = kiln_max_u64(s->rows.in.data.set.n_cameras, KILN_ORBIT_CAMERAS);
    for (uint32_t pass = 0; pass < end; pass++) {
        const kiln_stats_shared shared = {.pass = pass, .n_columns = s->columns.n};
        const uint64_t n = units_of_pass(&shared, s->n_blocks),
                       bytes = sizeof shared + s->columns.n * sizeof s->of[0].search +
                               n_views * sizeof *s->views + packed;
        if (n)
            kiln_run_foresee_ram(r,
                                 reading + kiln_shared_payload_ram(bytes) +
                                     kiln_stats_unit_ram(&shared,
                                                         (uint32_t)kiln_div_up(s->n_blocks, n),
                                                         largest_block(s)),
                                 n);
    }
}

/* ---- which rows ------------------------------------------------------------------------------ */

static bool is_manifest(const char *path)
{
    static const char head[] = "SQLite format 3";
    char first[sizeof head];
    int fd;
    if (!kiln_is_file(path) || kiln_file_open(path, &fd, NULL) != KILN_OK) return false;
    const bool is = kiln_file_read_at(fd, path, 0, first, sizeof first, NULL) == KILN_OK &&
                    memcmp(first, head, sizeof head) == 0;
    (void)close(fd); /* was only read */
    return is;
}

static kiln_status open_layer(kiln_run *r, const char *path, kiln_stats *s, kiln_error *err)
{
    s->of_layer = true;
    KILN_TRY(kiln_run_open_existing(r, path, KILN_OPEN_READ, err));
    if (!kiln_run_manifest(r)) return kiln_fail(err, KILN_E_INPUT, "'%s' is empty", path);
    KILN_TRY(kiln_scene_get(kiln_run_manifest(r), &s->scene, err));
    KILN_TRY(kiln_layer_current(kiln_run_manifest(r),
                                kiln_layer_kind_chosen(kiln_drawable_names, kiln_stats_given.layer),
                                &s->layer, err));
    (void)snprintf(s->format, sizeof s->format, "manifest");
    s->n_blocks = s->layer->n_chunks;
    s->n_rows = s->layer->count;
    if (s->n_blocks)
        kiln_stats_columns_of_chunk(&s->layer->chunks[0], NULL, s->scene.origin, &s->columns);
    foresee_passes(r, s, reading_ram(s), 0);
    return KILN_OK;
}

/* Before the file is unpacked and checked: what its header says of the passes behind that. */
static kiln_status foresee_file(kiln_run *r, kiln_stats *s, kiln_error *err)
{
    kiln_plain_expected expected;
    static const double anywhere[3];
    KILN_TRY(kiln_plain_rows_expect(r, &s->rows, &expected, err));
    if (expected.layer) {
        s->n_blocks = expected.layer->n_chunks;
        kiln_stats_columns_of_chunk(&expected.layer->chunks[0], NULL, anywhere, &s->columns);
        foresee_passes(r, s, expected.block_ram, expected.packed_bytes);
    }
    kiln_layer_free(expected.layer);
    return KILN_OK;
}

static kiln_status open_file(kiln_run *r, const char *path, kiln_stats *s, kiln_error *err)
{
    const char *temporary = getenv("TMPDIR"), *const files[] = {path};
    char near[KILN_PATH_MAX];
    KILN_TRY(kiln_path_join(near, sizeof near, temporary && *temporary ? temporary : "/tmp",
                            "kiln-stats", err));
    KILN_TRY(kiln_plain_rows_find(files, 1, kiln_stats_given.cameras, &s->rows, err));
    KILN_TRY(foresee_file(r, s, err));
    KILN_TRY(kiln_plain_rows_open(r, near, &s->rows, err));
    kiln_import_result *i = &s->rows.in;
    i->up = kiln_import_given_up();
    i->counts.read = i->counts.kept = i->scan.info.n_rows;
    KILN_TRY(kiln_import_scene(i, &s->scene, err));
    (void)snprintf(s->format, sizeof s->format, "%s", i->parts[0].reader->name);
    s->n_blocks = i->scan.n_blocks;
    s->n_rows = i->scan.info.n_rows;
    kiln_stats_columns_of_rows(&i->scan.info, NULL, s->scene.origin, &s->columns);
    return KILN_OK;
}

/* ---- lists of units -------------------------------------------------------------------------- */

typedef struct {
    kiln_unit *units;
    kiln_stats_request *requests;
    uint64_t n;
    kiln_buffer shared;
} unit_list;

static void release_units(unit_list *l)
{
    if (l->units) kiln_units_release(l->units, l->n);
    free(l->units);
    free(l->requests);
    kiln_buffer_release(&l->shared);
}

static kiln_status share_facts(const kiln_stats *s, const kiln_stats_shared *shared, unit_list *l,
                               kiln_error *err)
{
    KILN_TRY(kiln_buffer_put(&l->shared, shared, sizeof *shared, err));
    for (uint32_t c = 0;
         shared->pass > 0 && shared->pass < KILN_STATS_PASSES && c < shared->n_columns; c++)
        KILN_TRY(kiln_buffer_put(&l->shared, &s->of[c].search, sizeof s->of[c].search, err));
    if (shared->n_views)
        KILN_TRY(kiln_buffer_put(&l->shared, s->views, s->n_views * sizeof *s->views, err));
    return kiln_buffer_put(&l->shared, s->rows.packed.data, s->rows.packed.size, err);
}

static kiln_status run_pass(kiln_run *r, const kiln_stats *s, uint32_t pass, unit_list *l,
                            kiln_error *err)
{
    const kiln_stats_shared shared = {
        .pass = pass,
        .n_columns = s->columns.n,
        .n_views = pass == KILN_STATS_PAIRS ? s->n_views : 0,
        .of_layer = s->of_layer,
        .kind = s->of_layer ? kiln_layer_kind_find(s->layer->kind) : KILN_LAYER_source,
        .origin = {s->scene.origin[0], s->scene.origin[1], s->scene.origin[2]},
        .stride = kiln_scene_core_stride(s->n_rows)};
    l->n = units_of_pass(&shared, s->n_blocks);
    KILN_TRY(share_facts(s, &shared, l, err));
    KILN_TRY(KILN_ALLOC(&l->units, l->n, "units", err));
    KILN_TRY(KILN_ALLOC(&l->requests, l->n, "units", err));
    for (uint64_t u = 0; u < l->n; u++) {
        const uint32_t first = (uint32_t)(s->n_blocks * u / l->n),
                       end = (uint32_t)(s->n_blocks * (u + 1) / l->n);
        l->requests[u] =
            (kiln_stats_request){first, end - first, s->of_layer ? 0 : s->rows.requests[first].row};
        l->units[u] =
            (kiln_unit){.payload = &l->requests[u],
                        .payload_bytes = sizeof l->requests[u],
                        .shared_payload = l->shared.data,
                        .shared_payload_bytes = l->shared.size,
                        .cost = end - first,
                        .n_outputs = 3,
                        .ram = reading_ram(s) + kiln_shared_payload_ram(l->shared.size) +
                               kiln_stats_unit_ram(&shared, end - first, largest_block(s)),
                        .volatile_result = true};
        (void)snprintf(l->units[u].name, sizeof l->units[u].name, "rows %llu",
                       (unsigned long long)u);
    }
    static const char *const what[] = {
        [KILN_STATS_PLACES] = "placing cameras", [KILN_STATS_PAIRS] = "counting pairs"};
    return kiln_run_units(r, pass < KILN_STATS_PASSES ? "measuring" : what[pass], l->units, l->n,
                          err);
}

/* ---- what comes back ------------------------------------------------------------------------- */

static kiln_status take_moments(kiln_run *r, const unit_list *l, kiln_stats *s, double *area,
                                kiln_error *err)
{
    for (uint64_t u = 0; u < l->n; u++) {
        kiln_stats_moments *moments = NULL;
        double *areas = NULL;
        uint64_t bytes;
        kiln_status st =
            kiln_unit_data(r, &l->units[u], KILN_STATS_MOMENTS, (void **)&moments, &bytes, err);
        if (st == KILN_OK)
            st = kiln_unit_data(r, &l->units[u], KILN_STATS_AREAS, (void **)&areas, &bytes, err);
        for (uint64_t b = 0; st == KILN_OK && b < l->requests[u].n; b++) {
            *area += areas[b];
            for (uint32_t c = 0; c < s->columns.n; c++)
                kiln_stats_moments_add(&s->of[c].moments, &moments[b * s->columns.n + c]);
        }
        free(areas);
        free(moments);
        KILN_TRY(st);
    }
    return KILN_OK;
}

static kiln_status take_counts(kiln_run *r, const unit_list *l, kiln_stats *s, uint32_t pass,
                               kiln_error *err)
{
    const uint64_t counters = kiln_stats_counters(pass);
    uint64_t *sums, bytes;
    kiln_status st = KILN_OK;
    KILN_TRY(KILN_ALLOC(&sums, s->columns.n * counters, "counts", err));
    for (uint64_t u = 0; u < l->n && st == KILN_OK; u++) {
        uint32_t *counts = NULL;
        st = kiln_unit_data(r, &l->units[u], KILN_STATS_COUNTS, (void **)&counts, &bytes, err);
        for (uint64_t k = 0; st == KILN_OK && k < s->columns.n * counters; k++)
            sums[k] += counts[k];
        free(counts);
    }
    for (uint32_t c = 0; st == KILN_OK && c < s->columns.n; c++)
        kiln_stats_search_pass(&s->of[c].search, pass, sums + c * counters);
    free(sums);
    return st;
}

static kiln_status take_bars(kiln_run *r, const unit_list *l, kiln_stats *s, kiln_error *err)
{
    for (uint64_t u = 0; u < l->n; u++) {
        uint64_t *bars, bytes;
        KILN_TRY(
            kiln_unit_data(r, &l->units[u], KILN_STATS_BAR_COUNTS, (void **)&bars, &bytes, err));
        for (uint32_t c = 0; c < s->columns.n; c++)
            for (int k = 0; k < KILN_STATS_BARS; k++)
                s->of[c].bars[k] += bars[c * KILN_STATS_BARS + (uint32_t)k];
        free(bars);
    }
    return KILN_OK;
}

static kiln_status make_pass(kiln_run *r, kiln_stats *s, uint32_t pass, double *area,
                             kiln_error *err)
{
    unit_list l = {0};
    kiln_status st = run_pass(r, s, pass, &l, err);
    if (st == KILN_OK && pass == 0) st = take_moments(r, &l, s, area, err);
    for (uint32_t c = 0; pass == 0 && st == KILN_OK && c < s->columns.n; c++)
        kiln_stats_search_begin(&s->of[c].search, &s->of[c].moments);
    if (st == KILN_OK) st = take_counts(r, &l, s, pass, err);
    if (st == KILN_OK && pass == 1) st = take_bars(r, &l, s, err);
    release_units(&l);
    return st;
}

/* The box of the central rows, by two of the quantiles. */
static bool central_box(const kiln_stats *s, uint32_t low, uint32_t high, double lo[3],
                        double hi[3])
{
    const uint32_t x = kiln_stats_column_find(&s->columns, "x");
    if (x == UINT32_MAX) return false;
    for (uint32_t a = 0; a < 3; a++) {
        lo[a] = (double)kiln_stats_quantile(&s->of[x + a].search, low);
        hi[a] = (double)kiln_stats_quantile(&s->of[x + a].search, high);
    }
    return true;
}

static double fill_ratio(const kiln_stats *s, double area)
{
    double lo[3], hi[3];
    if (s->scene.kind != KILN_SCENE_SPLATS || !central_box(s, 1, 7, lo, hi)) return (double)NAN;
    const double x = hi[0] - lo[0], y = hi[1] - lo[1], z = hi[2] - lo[2],
                 faces = (x * y + y * z + z * x) / 3;
    return faces > 0 ? area / faces : (double)INFINITY;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* Digits alone, 1 to 2^20; *text moves behind them. */
static bool read_side(const char **text, uint32_t *out)
{
    enum { MOST = 1 << 20 };
    uint64_t v = 0;
    while (**text >= '0' && **text <= '9' && v <= MOST) v = 10 * v + (uint64_t)(*(*text)++ - '0');
    *out = (uint32_t)v;
    return v >= 1 && v <= MOST;
}

kiln_status kiln_stats_size(const char *text, uint32_t size[2], kiln_error *err)
{
    const char *text_left = text;
    size[0] = size[1] = 0;
    if (strcmp(text, "own") == 0) return KILN_OK;
    if (read_side(&text_left, &size[0]) && *text_left++ == 'x' && read_side(&text_left, &size[1]) &&
        *text_left == '\0')
        return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE, "--pairs takes a size such as 512x512, or own, not '%.40s'",
                     text);
}

/* Adds what a unit found; *sample grows. */
static kiln_status take_places(kiln_run *r, const kiln_unit *u, kiln_own_scene *own,
                               kiln_buffer *sample, kiln_error *err)
{
    float box[2][3];
    void *rows = NULL;
    uint64_t bytes;
    KILN_TRY(kiln_unit_struct(r, u, KILN_STATS_BOX, box, sizeof box, err));
    for (int a = 0; a < 3; a++) {
        own->lo[a] = fmin(own->lo[a], (double)box[0][a]);
        own->hi[a] = fmax(own->hi[a], (double)box[1][a]);
    }
    KILN_TRY(kiln_unit_data(r, u, KILN_STATS_SAMPLE, &rows, &bytes, err));
    const kiln_status st = bytes ? kiln_buffer_put(sample, rows, bytes, err) : KILN_OK;
    free(rows);
    return st;
}

/* Those that kiln-import places: the same where it drops no row. */
static kiln_status place_cameras(kiln_run *r, kiln_stats *s, kiln_error *err)
{
    enum { LOW = 2, HIGH = 6 }; /* of kiln_stats_thousandths: the central 96 % */
    unit_list l = {0};
    kiln_buffer sample = {0};
    kiln_own_scene own = {.up = s->scene.up_axis,
                          .lo = {INFINITY, INFINITY, INFINITY},
                          .hi = {-INFINITY, -INFINITY, -INFINITY}};
    if (!central_box(s, LOW, HIGH, own.inner_lo, own.inner_hi)) return KILN_OK;
    memcpy(own.origin, s->scene.origin, sizeof own.origin);
    kiln_status st = run_pass(r, s, KILN_STATS_PLACES, &l, err);
    for (uint64_t u = 0; u < l.n && st == KILN_OK; u++)
        st = take_places(r, &l.units[u], &own, &sample, err);
    release_units(&l);
    const uint64_t n = sample.size / (4 * sizeof(float));
    if (st == KILN_OK) st = kiln_scene_core_of((const float *)sample.data, n, &own.core, err);
    kiln_buffer_release(&sample);
    if (st != KILN_OK || n == 0) return st;
    KILN_TRY(KILN_ALLOC(&s->own_cameras, KILN_ORBIT_CAMERAS, "cameras", err));
    kiln_own_cameras_say_inside(kiln_own_cameras_make(&own, s->own_cameras));
    s->cameras = s->own_cameras;
    s->n_views = KILN_ORBIT_CAMERAS;
    return KILN_OK;
}

/* Those of --cameras, of the manifest, or eight on an orbit. */
static kiln_status choose_cameras(kiln_run *r, kiln_stats *s, kiln_error *err)
{
    const kiln_camera_set *set = &s->rows.in.data.set;
    if (s->of_layer && !kiln_stats_given.cameras)
        KILN_TRY(kiln_cameras_get(kiln_run_manifest(r), &s->own_cameras, &s->n_views, err));
    const char *given = kiln_stats_given.cameras ? "cameras" : kiln_stats_given.orbit;
    if (s->of_layer && given)
        return kiln_fail(err, KILN_E_USAGE,
                         "--%s is for files; of a manifest its own cameras are taken", given);
    s->cameras = s->own_cameras;
    if (!s->of_layer && set->n_cameras) {
        s->cameras = set->cameras;
        s->n_views = set->n_cameras;
    }
    if (s->n_views > KILN_STATS_VIEWS)
        return kiln_fail(err, KILN_E_USAGE, "%u cameras are too many for --pairs, which takes %d",
                         s->n_views, KILN_STATS_VIEWS);
    return s->n_views || s->of_layer ? KILN_OK : place_cameras(r, s, err);
}

/* A camera of another size sees as much of the scene along the shorter side. */
static void resize_camera(kiln_camera *c, const uint32_t size[2])
{
    if (size[0] == 0) return;
    const double scale = fmin((double)size[0] / c->width, (double)size[1] / c->height);
    c->cx = size[0] / 2.0 + (c->cx - c->width / 2.0) * scale;
    c->cy = size[1] / 2.0 + (c->cy - c->height / 2.0) * scale;
    c->fx *= scale;
    c->fy *= scale;
    c->width = size[0];
    c->height = size[1];
}

static kiln_status make_views(kiln_stats *s, kiln_error *err)
{
    uint32_t size[2];
    KILN_TRY(kiln_stats_size(kiln_stats_given.pairs, size, err));
    KILN_TRY(KILN_ALLOC(&s->views, s->n_views, "views", err));
    KILN_TRY(KILN_ALLOC(&s->names, s->n_views, "views", err));
    KILN_TRY(KILN_ALLOC(&s->pairs, s->n_views, "views", err));
    for (uint32_t v = 0; v < s->n_views; v++) {
        kiln_camera c = s->cameras[v];
        resize_camera(&c, size);
        (void)snprintf(s->names[v], sizeof s->names[v], "%.63s", c.name);
        KILN_TRY(kiln_view_request_init(&s->views[v], &kiln_stats_given.view, &s->scene, &c, err));
    }
    return KILN_OK;
}

static kiln_status count_all_pairs(kiln_run *r, kiln_stats *s, kiln_error *err)
{
    unit_list l = {0};
    kiln_stats_pairs *sums;
    uint64_t bytes;
    if (s->scene.kind != KILN_SCENE_SPLATS)
        return kiln_fail(err, KILN_E_USAGE,
                         "--pairs counts those of Gaussians, and these are points");
    KILN_TRY(choose_cameras(r, s, err));
    KILN_TRY(make_views(s, err));
    kiln_status st = run_pass(r, s, KILN_STATS_PAIRS, &l, err);
    for (uint64_t u = 0; u < l.n && st == KILN_OK; u++) {
        st = kiln_unit_data(r, &l.units[u], KILN_STATS_PAIR_COUNTS, (void **)&sums, &bytes, err);
        for (uint32_t v = 0; st == KILN_OK && v < s->n_views; v++) {
            s->pairs[v].visible += sums[v].visible;
            s->pairs[v].pairs += sums[v].pairs;
            s->pairs[v].box_pairs += sums[v].box_pairs;
        }
        if (st == KILN_OK) free(sums);
    }
    release_units(&l);
    return st;
}

/* ---- all of it ------------------------------------------------------------------------------- */

kiln_status kiln_stats_make(kiln_run *r, const char *path, kiln_stats *s, kiln_error *err)
{
    double area = 0;
    KILN_TRY(is_manifest(path) ? open_layer(r, path, s, err) : open_file(r, path, s, err));
    KILN_TRY(KILN_ALLOC(&s->of, s->columns.n, "columns", err));
    for (uint32_t c = 0; c < s->columns.n; c++)
        s->of[c].moments = (kiln_stats_moments){.min = INFINITY, .max = -INFINITY};
    for (uint32_t pass = 0; pass < KILN_STATS_PASSES; pass++)
        KILN_TRY(make_pass(r, s, pass, &area, err));
    s->fill_ratio = fill_ratio(s, area);
    return kiln_stats_given.pairs ? count_all_pairs(r, s, err) : KILN_OK;
}

void kiln_stats_release(kiln_stats *s)
{
    kiln_plain_rows_release(&s->rows);
    kiln_layer_free(s->layer);
    free(s->of);
    free(s->views);
    free(s->names);
    free(s->pairs);
    free(s->own_cameras);
}
