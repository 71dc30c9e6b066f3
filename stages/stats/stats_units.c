/* stats_units -- see the header. */
#include "stages/stats/stats_units.h"

#include "base/memory.h"
#include "stages/import/plain_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    kiln_worker *w;
    const kiln_stats_shared *shared;
    const kiln_stats_search *search; /* passes 1 and 2 */
    const kiln_view_request *views;  /* of pairs */
    const void *packed;
    kiln_plain_reader *plain; /* of a file */
    kiln_manifest *m;         /* of a layer */
    kiln_layer *layer;
    void **planes; /* [chunk's planes], owned */
    uint32_t n_planes;
    kiln_stats_columns columns;
} stats_pass;

/* ---- rows ------------------------------------------------------------------------------------ */

static kiln_status open_rows(stats_pass *p, kiln_error *err)
{
    if (!p->shared->of_layer) return kiln_plain_reader_open(p->packed, &p->plain, err);
    KILN_TRY(kiln_worker_manifest(p->w, &p->m, err));
    return kiln_layer_current(p->m, p->shared->kind, &p->layer, err);
}

static void drop_planes(stats_pass *p)
{
    for (uint32_t i = 0; i < p->n_planes; i++) free(p->planes[i]);
    free(p->planes);
    p->planes = NULL;
    p->n_planes = 0;
}

static void close_rows(stats_pass *p)
{
    drop_planes(p);
    kiln_plain_reader_close(p->plain);
    kiln_layer_free(p->layer);
}

static kiln_status read_chunk_planes(stats_pass *p, const kiln_chunk *c, kiln_error *err)
{
    drop_planes(p);
    KILN_TRY(KILN_ALLOC(&p->planes, c->n_planes, "planes of a chunk", err));
    for (; p->n_planes < c->n_planes; p->n_planes++) {
        const kiln_plane *plane = &c->planes[p->n_planes];
        KILN_TRY(kiln_alloc_unset(&p->planes[p->n_planes], plane->data.raw_bytes, 1,
                                  "planes of a chunk", err));
        const kiln_status st = kiln_plane_read(p->m, c, plane->name, p->planes[p->n_planes],
                                               plane->data.raw_bytes, err);
        if (st == KILN_OK) continue;
        p->n_planes++;
        return st;
    }
    return KILN_OK;
}

/* Fills p->columns; *n: rows. */
static kiln_status read_columns(stats_pass *p, uint32_t block, uint64_t *n, kiln_error *err)
{
    const kiln_block_reader *b;
    const kiln_source_info *info;
    const kiln_rows *rows;
    if (p->layer) {
        const kiln_chunk *c = &p->layer->chunks[block];
        KILN_TRY(read_chunk_planes(p, c, err));
        kiln_stats_columns_of_chunk(c, (const void *const *)p->planes, p->shared->origin,
                                    &p->columns);
        *n = c->count;
    } else {
        KILN_TRY(kiln_plain_reader_raw(p->plain, block, &b, err));
        kiln_block_raw(b, &info, &rows);
        kiln_stats_columns_of_rows(info, rows, p->shared->origin, &p->columns);
        *n = rows->n;
    }
    return p->columns.n == p->shared->n_columns
               ? KILN_OK
               : kiln_fail(err, KILN_E_INPUT, "block %u has other columns", block);
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Area of a Gaussian's ellipse, seen along its shortest axis, at one standard deviation. */
static double sum_areas(const kiln_stats_columns *c, uint64_t n)
{
    const uint32_t first = kiln_stats_column_find(c, "scale_0");
    double sum = 0;
    if (first == UINT32_MAX) return 0;
    for (uint64_t i = 0; i < n; i++) {
        const double a = exp((double)kiln_stats_value(&c->at[first], i)),
                     b = exp((double)kiln_stats_value(&c->at[first + 1], i)),
                     d = exp((double)kiln_stats_value(&c->at[first + 2], i)),
                     least = fmin(a, fmin(b, d));
        const double area = M_PI * (a == least ? b * d : b == least ? a * d : a * b);
        if (!isnan(area)) sum += area;
    }
    return sum;
}

static kiln_status put_moments(stats_pass *p, const kiln_stats_request *q,
                               const kiln_stats_moments *moments, const double *areas,
                               kiln_error *err)
{
    KILN_TRY(kiln_worker_put(p->w, KILN_STATS_MOMENTS, moments,
                             (uint64_t)q->n * p->shared->n_columns * sizeof *moments, 1, err));
    return kiln_worker_put(p->w, KILN_STATS_AREAS, areas, q->n * sizeof *areas, 1, err);
}

typedef struct {
    kiln_stats_moments *moments;
    double *areas;
    uint32_t *counts;
    uint64_t *bars;
} tallies;

static kiln_status tally_block(stats_pass *p, uint32_t block, uint32_t index, const tallies *t,
                               kiln_error *err)
{
    const uint32_t n_columns = p->shared->n_columns, pass = p->shared->pass;
    uint64_t n;
    KILN_TRY(read_columns(p, block, &n, err));
    for (uint32_t c = 0; c < n_columns; c++) {
        const kiln_stats_column *column = &p->columns.at[c];
        if (pass == 0)
            kiln_stats_moments_of(column, n, &t->moments[(uint64_t)index * n_columns + c]);
        kiln_stats_count(column, n, pass ? &p->search[c] : NULL, pass,
                         t->counts + (uint64_t)c * kiln_stats_counters(pass));
        if (pass == 1)
            kiln_stats_bars(column, n, &p->search[c], t->bars + (uint64_t)c * KILN_STATS_BARS);
    }
    if (pass == 0) t->areas[index] = sum_areas(&p->columns, n);
    return KILN_OK;
}

static kiln_status tally_rows(stats_pass *p, const kiln_stats_request *q, kiln_error *err)
{
    const uint64_t n_columns = p->shared->n_columns,
                   n_counts = n_columns * kiln_stats_counters(p->shared->pass);
    tallies t = {0};
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC(&t.counts, n_counts, "counts", err));
    KILN_GO(KILN_ALLOC(&t.moments, q->n * n_columns, "moments", err));
    KILN_GO(KILN_ALLOC(&t.areas, q->n, "areas", err));
    KILN_GO(KILN_ALLOC(&t.bars, n_columns * KILN_STATS_BARS, "a histogram", err));
    for (uint32_t i = 0; i < q->n; i++) KILN_GO(tally_block(p, q->first + i, i, &t, err));
    KILN_GO(
        kiln_worker_put(p->w, KILN_STATS_COUNTS, t.counts, n_counts * sizeof *t.counts, 1, err));
    if (p->shared->pass == 0) KILN_GO(put_moments(p, q, t.moments, t.areas, err));
    if (p->shared->pass == 1)
        KILN_GO(kiln_worker_put(p->w, KILN_STATS_BAR_COUNTS, t.bars,
                                n_columns * KILN_STATS_BARS * sizeof *t.bars, 1, err));
done:
    free(t.bars);
    free(t.areas);
    free(t.moments);
    free(t.counts);
    return st;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

typedef struct {
    uint64_t n;
    const float *means, *log_scales, *quats, *opacity_logits;
} geometry;

static kiln_status take_geometry(void *context, const char *name, const void *data, uint64_t bytes,
                                 uint32_t elem, kiln_error *err)
{
    geometry *g = context;
    (void)bytes, (void)elem, (void)err;
    if (strcmp(name, "means") == 0) g->means = data;
    if (strcmp(name, "log_scales") == 0) g->log_scales = data;
    if (strcmp(name, "quats") == 0) g->quats = data;
    if (strcmp(name, "opacity_logits") == 0) g->opacity_logits = data;
    return KILN_OK;
}

static kiln_status read_geometry(stats_pass *p, uint32_t block, geometry *g, kiln_error *err)
{
    *g = (geometry){0};
    if (!p->layer) {
        KILN_TRY(kiln_plain_reader_clean(p->plain, block, kiln_worker_threads(p->w), &g->n, err));
        return kiln_plain_reader_planes(p->plain, take_geometry, g, err);
    }
    const kiln_chunk *c = &p->layer->chunks[block];
    KILN_TRY(read_chunk_planes(p, c, err));
    g->n = c->count;
    for (uint32_t i = 0; i < c->n_planes; i++)
        KILN_TRY(take_geometry(g, c->planes[i].name, p->planes[i], 0, 0, err));
    return KILN_OK;
}

/* ---- places ---------------------------------------------------------------------------------- */

typedef struct {
    float box[2][3];
    uint64_t row; /* of the sanitised ones: the next */
    kiln_buffer sample;
} places;

static kiln_status take_places(const stats_pass *p, const geometry *g, places *out, kiln_error *err)
{
    const uint64_t n = g->n, stride = p->shared->stride;
    for (uint64_t a = 0; a < 3; a++)
        for (uint64_t i = 0; i < n; i++) {
            out->box[0][a] = fminf(out->box[0][a], g->means[a * n + i]);
            out->box[1][a] = fmaxf(out->box[1][a], g->means[a * n + i]);
        }
    for (uint64_t i = (stride - out->row % stride) % stride; i < n; i += stride) {
        const float *s = g->log_scales;
        const float row[4] = {g->means[i], g->means[n + i], g->means[2 * n + i],
                              s ? fmaxf(s[i], fmaxf(s[n + i], s[2 * n + i])) : 0};
        KILN_TRY(kiln_buffer_put(&out->sample, row, sizeof row, err));
    }
    out->row += n;
    return KILN_OK;
}

static kiln_status find_places(stats_pass *p, const kiln_stats_request *q, kiln_error *err)
{
    places out = {.box = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}},
                  .row = q->row};
    kiln_status st = KILN_OK;
    geometry g;
    for (uint32_t i = 0; i < q->n; i++) {
        KILN_GO(read_geometry(p, q->first + i, &g, err));
        KILN_GO(take_places(p, &g, &out, err));
    }
    KILN_GO(kiln_worker_put(p->w, KILN_STATS_BOX, out.box, sizeof out.box, 1, err));
    KILN_GO(kiln_worker_put(p->w, KILN_STATS_SAMPLE, out.sample.data, out.sample.size, 1, err));
done:
    kiln_buffer_release(&out.sample);
    return st;
}

/* ---- counting -------------------------------------------------------------------------------- */

typedef struct {
    kiln_splat2d *splats; /* [rows of the largest block] */
    uint64_t *row_pairs;  /* [tile rows of the largest view] */
} pair_arrays;

static kiln_status count_pairs(stats_pass *p, const kiln_view_request *v, const geometry *g,
                               const pair_arrays *arrays, kiln_stats_pairs *out, kiln_error *err)
{
    uint64_t visible = 0, boxes = 0;
    const uint32_t tiles_y = kiln_view_tiles_y(&v->view);
    kiln_project_args project = {.n = g->n,
                                 KILN_PROJECT_PLANES(g),
                                 .view = &v->view,
                                 .profile = v->profile,
                                 .antialiased = v->antialiased,
                                 .splats = arrays->splats,
                                 .n_visible = &visible,
                                 .box_pairs = &boxes};
    KILN_TRY(KILN_WORK(p->w, project, &project, err));
    out->visible += visible;
    out->box_pairs += boxes;
    if (visible == 0) return KILN_OK;
    kiln_tile_pairs_count_args count = {.n = visible,
                                        .splats = arrays->splats,
                                        .view = &v->view,
                                        .row0 = 0,
                                        .row1 = tiles_y,
                                        .row_pairs = arrays->row_pairs};
    KILN_TRY(KILN_WORK(p->w, tile_pairs_count, &count, err));
    for (uint32_t r = 0; r < tiles_y; r++) out->pairs += arrays->row_pairs[r];
    return KILN_OK;
}

static uint64_t most_rows(const stats_pass *p)
{
    uint64_t most = KILN_BLOCK_ROWS;
    for (uint32_t c = 0; p->layer && c < p->layer->n_chunks; c++)
        if (p->layer->chunks[c].count > most) most = p->layer->chunks[c].count;
    return most;
}

static kiln_status count_blocks(stats_pass *p, const kiln_stats_request *q, kiln_error *err)
{
    kiln_status st = KILN_OK;
    pair_arrays arrays = {0};
    kiln_stats_pairs *sums = NULL;
    geometry g;
    const uint32_t n_views = p->shared->n_views;
    uint32_t tiles_y = 1;
    for (uint32_t v = 0; v < n_views; v++)
        if (kiln_view_tiles_y(&p->views[v].view) > tiles_y)
            tiles_y = kiln_view_tiles_y(&p->views[v].view);
    KILN_GO(KILN_ALLOC(&sums, n_views, "pairs", err));
    KILN_GO(KILN_ALLOC_UNSET(&arrays.splats, most_rows(p), "projected Gaussians", err));
    KILN_GO(KILN_ALLOC(&arrays.row_pairs, tiles_y, "pairs of tile rows", err));
    for (uint32_t i = 0; i < q->n; i++) {
        KILN_GO(read_geometry(p, q->first + i, &g, err));
        for (uint32_t v = 0; v < n_views && g.n; v++)
            KILN_GO(count_pairs(p, &p->views[v], &g, &arrays, &sums[v], err));
    }
    KILN_GO(kiln_worker_put(p->w, KILN_STATS_PAIR_COUNTS, sums, n_views * sizeof *sums, 1, err));
done:
    free(arrays.row_pairs);
    free(arrays.splats);
    free(sums);
    return st;
}

/* ---- the unit -------------------------------------------------------------------------------- */

uint64_t kiln_stats_unit_ram(const kiln_stats_shared *s, uint32_t n_blocks, uint64_t rows)
{
    if (s->pass == KILN_STATS_PLACES) return (uint64_t)4 << 20;
    if (s->pass == KILN_STATS_PAIRS) return rows * (sizeof(kiln_splat2d) + 64) + (16 << 20);
    const uint64_t outputs =
        (uint64_t)s->n_columns *
        (kiln_stats_counters(s->pass) * sizeof(uint32_t) + n_blocks * sizeof(kiln_stats_moments) +
         KILN_STATS_BARS * sizeof(uint64_t));
    return outputs + kiln_outputs_ram(outputs) + (1 << 20);
}

kiln_status kiln_stats_unit(kiln_worker *w, const char *name, const void *payload, size_t bytes,
                            kiln_error *err)
{
    bool reads;
    kiln_stats_request q;
    kiln_stats_shared shared;
    stats_pass *p;
    KILN_TRY(kiln_plain_rows_unit(w, name, payload, bytes, &reads, err));
    if (reads) return KILN_OK;
    const unsigned char *at = payload;
    memcpy(&q, at, sizeof q);
    memcpy(&shared, at + sizeof q, sizeof shared);
    at += sizeof q + sizeof shared;
    KILN_TRY(KILN_ALLOC(&p, 1, "statistics", err));
    p->w = w;
    p->shared = &shared;
    p->search = (const void *)at;
    p->views = (const void *)at;
    p->packed = at + (shared.pass == KILN_STATS_PAIRS ? shared.n_views * sizeof *p->views
                      : shared.pass && shared.pass < KILN_STATS_PASSES
                          ? shared.n_columns * sizeof *p->search
                          : 0);
    kiln_status st = open_rows(p, err);
    if (st == KILN_OK)
        st = shared.pass == KILN_STATS_PAIRS    ? count_blocks(p, &q, err)
             : shared.pass == KILN_STATS_PLACES ? find_places(p, &q, err)
                                                : tally_rows(p, &q, err);
    close_rows(p);
    free(p);
    return st;
}
