/* resident -- see resident.h. The scratch block is laid out anew for each count and each band. */
#include "kernels/draw/resident.h"

#include "base/carve.h"
#include "kernels/device.h"
#include "kernels/draw/settle.h"
#include "kernels/draw/store.h"

typedef struct {
    uint64_t *violation, *row_pairs;
    uint32_t *counts, *ranks;
    float *rgba, *depth;
    kiln_raster_state *state;
    kiln_blend_totals totals;
    uint8_t *mask;
    void *work;
    size_t work_bytes, bytes;
    uint64_t left; /* the violation word, copied to the host */
} band;

static kiln_store_ordered ordered_of(const kiln_drawing *d)
{
    return kiln_store_ordered_at(kiln_store_records(d->store)->at, d->n);
}

/* Enlarges the work space to what this operation needs. Operations share it, because they run one
 * after the other. */
static kiln_status add_work(kiln_runner *r, kiln_op_id op, const void *args, band *b,
                            kiln_error *err)
{
    size_t bytes = 0;
    KILN_TRY(kiln_runner_work(r, op, args, &bytes, err));
    if (bytes > b->work_bytes) b->work_bytes = bytes;
    return KILN_OK;
}

static void take_work(kiln_carve *c, band *b)
{
    b->work = kiln_take(c, b->work_bytes, 1);
    b->bytes = c->used;
}

/* Lays out the block at `at` (NULL: measures) and points `a` into it. */
static kiln_status lay_out_count(const kiln_drawing *d, char *at, kiln_tile_pairs_count_args *a,
                                 band *b, kiln_error *err)
{
    kiln_carve c = {at, 0};
    *b = (band){0};
    b->violation = kiln_take(&c, 1, sizeof *b->violation);
    b->row_pairs = kiln_take(&c, a->row1 - a->row0, sizeof *b->row_pairs);
    a->n = d->n;
    a->splats = ordered_of(d).splats;
    KILN_TRY(add_work(kiln_store_runner(d->store), KILN_OP_tile_pairs_count, a, b, err));
    take_work(&c, b);
    a->row_pairs = b->row_pairs;
    return KILN_OK;
}

static kiln_tile_pairs_emit_args emit_of(const kiln_drawing *d, const kiln_view *view,
                                         uint32_t row0, uint32_t row1, uint64_t pairs,
                                         const band *b)
{
    return (kiln_tile_pairs_emit_args){.n = d->n,
                                       .splats = ordered_of(d).splats,
                                       .view = view,
                                       .row0 = row0,
                                       .row1 = row1,
                                       .capacity = pairs,
                                       .tile_counts = b->counts,
                                       .ranks = b->ranks};
}

static kiln_raster_args raster_of(const kiln_drawing *d, const kiln_raster_args *a, const band *b)
{
    kiln_raster_args on_device = *a;
    on_device.n = d->n;
    on_device.splats = ordered_of(d).splats;
    on_device.tile_counts = b->counts;
    on_device.ranks = b->ranks;
    on_device.rgba = b->rgba;
    on_device.depth = b->depth;
    on_device.state = b->state;
    return on_device;
}

static uint64_t tiles_of(const kiln_view *view, uint32_t row0, uint32_t row1)
{
    return (uint64_t)(row1 - row0) * kiln_view_tiles_x(view);
}

/* Lays out the lists of a band and, if `a` is given, its pixels. */
static kiln_status lay_out_band(const kiln_drawing *d, char *at, const kiln_tile_pairs_emit_args *e,
                                const kiln_raster_args *a, band *b, kiln_error *err)
{
    kiln_carve c = {at, 0};
    *b = (band){0};
    b->violation = kiln_take(&c, 1, sizeof *b->violation);
    b->counts = kiln_take(&c, tiles_of(e->view, e->row0, e->row1), sizeof *b->counts);
    b->ranks = kiln_take(&c, e->capacity, sizeof *b->ranks);
    if (a && a->rgba) b->rgba = kiln_take(&c, 4 * kiln_raster_pixels(a), sizeof *b->rgba);
    if (a && a->state) b->state = kiln_take(&c, kiln_raster_pixels(a), sizeof *b->state);
    if (a && a->depth) b->depth = kiln_take(&c, kiln_raster_pixels(a), sizeof *b->depth);
    const kiln_tile_pairs_emit_args emit = emit_of(d, e->view, e->row0, e->row1, e->capacity, b);
    KILN_TRY(add_work(kiln_store_runner(d->store), KILN_OP_tile_pairs_emit, &emit, b, err));
    if (a) {
        const kiln_raster_args raster = raster_of(d, a, b);
        KILN_TRY(add_work(kiln_store_runner(d->store), KILN_OP_raster, &raster, b, err));
    }
    take_work(&c, b);
    return KILN_OK;
}

/* Reserves the scratch block for the size that was measured. */
static kiln_status reserve(const kiln_drawing *d, const band *b, bool *done, kiln_error *err)
{
    *done = b->bytes < SIZE_MAX;
    return *done ? kiln_store_reserve(d->store, kiln_store_scratch(d->store), b->bytes, done, err)
                 : KILN_OK;
}

static kiln_status count_band_pairs(const kiln_drawing *d, const kiln_exec *x,
                                    const kiln_tile_pairs_count_args *a,
                                    const kiln_tile_pairs_count_args *on_device, band *b,
                                    kiln_error *err)
{
    KILN_TRY(kiln_violation_clear(x, b->violation, err));
    KILN_TRY(kiln_runner_launch(kiln_store_runner(d->store), KILN_OP_tile_pairs_count, on_device,
                                b->work, b->work_bytes, b->violation, err));
    KILN_TRY(kiln_device_copy_out(x, a->row_pairs, b->row_pairs,
                                  (a->row1 - a->row0) * sizeof *b->row_pairs, err));
    KILN_TRY(kiln_violation_read(x, b->violation, &b->left, err));
    if (a->row0 > 0 || a->row1 < kiln_view_tiles_y(a->view)) return KILN_OK;
    /* a whole picture: remembered for the next one */
    kiln_pass_sizes *const sizes = kiln_store_sizes(d->store);
    sizes->pairs = 0;
    for (uint32_t i = 0; i < a->row1; i++) sizes->pairs += a->row_pairs[i];
    return KILN_OK;
}

kiln_status kiln_resident_count(const kiln_drawing *d, const kiln_tile_pairs_count_args *a,
                                bool *done, kiln_error *err)
{
    const kiln_exec x = kiln_store_exec(d->store);
    kiln_tile_pairs_count_args on_device = *a;
    band b;
    KILN_TRY(lay_out_count(d, NULL, &on_device, &b, err));
    KILN_TRY(reserve(d, &b, done, err));
    if (!*done) return KILN_OK;
    KILN_TRY(lay_out_count(d, kiln_store_scratch(d->store)->at, &on_device, &b, err));
    return kiln_settle(&x, count_band_pairs(d, &x, a, &on_device, &b, err));
}

static kiln_status emit(const kiln_drawing *d, const kiln_tile_pairs_emit_args *e, const band *b,
                        kiln_error *err)
{
    const kiln_tile_pairs_emit_args on_device =
        emit_of(d, e->view, e->row0, e->row1, e->capacity, b);
    return kiln_runner_launch(kiln_store_runner(d->store), KILN_OP_tile_pairs_emit, &on_device,
                              b->work, b->work_bytes, b->violation, err);
}

static kiln_status list_band_pairs(const kiln_drawing *d, const kiln_exec *x,
                                   const kiln_tile_pairs_emit_args *a, band *b, kiln_error *err)
{
    KILN_TRY(kiln_violation_clear(x, b->violation, err));
    KILN_TRY(emit(d, a, b, err));
    KILN_TRY(kiln_device_copy_out(x, a->tile_counts, b->counts,
                                  tiles_of(a->view, a->row0, a->row1) * sizeof *b->counts, err));
    KILN_TRY(kiln_device_copy_out(x, a->ranks, b->ranks, a->capacity * sizeof *b->ranks, err));
    return kiln_violation_read(x, b->violation, &b->left, err);
}

kiln_status kiln_resident_emit(const kiln_drawing *d, const kiln_tile_pairs_emit_args *a,
                               bool *done, kiln_error *err)
{
    const kiln_exec x = kiln_store_exec(d->store);
    band b;
    KILN_TRY(lay_out_band(d, NULL, a, NULL, &b, err));
    KILN_TRY(reserve(d, &b, done, err));
    if (!*done) return KILN_OK;
    KILN_TRY(lay_out_band(d, kiln_store_scratch(d->store)->at, a, NULL, &b, err));
    return kiln_settle(&x, list_band_pairs(d, &x, a, &b, err));
}

/* Blends lists that are on the device and copies the result to host memory; waits. */
static kiln_status blend_band(const kiln_drawing *d, const kiln_exec *x, const kiln_raster_args *a,
                              band *b, kiln_error *err)
{
    const kiln_raster_args on_device = raster_of(d, a, b);
    const uint64_t pixels = kiln_raster_pixels(a);
    if (a->state)
        KILN_TRY(kiln_device_copy_in(x, b->state, a->state, pixels * sizeof *b->state, err));
    KILN_TRY(kiln_runner_launch(kiln_store_runner(d->store), KILN_OP_raster, &on_device, b->work,
                                b->work_bytes, b->violation, err));
    if (a->state)
        KILN_TRY(kiln_device_copy_out(x, a->state, b->state, pixels * sizeof *b->state, err));
    if (a->rgba)
        KILN_TRY(kiln_device_copy_out(x, a->rgba, b->rgba, 4 * pixels * sizeof *b->rgba, err));
    if (a->depth)
        KILN_TRY(kiln_device_copy_out(x, a->depth, b->depth, pixels * sizeof *b->depth, err));
    return kiln_violation_read(x, b->violation, &b->left, err);
}

static kiln_status draw_resident_band(const kiln_drawing *d, const kiln_exec *x,
                                      const kiln_tile_pairs_emit_args *e, const kiln_raster_args *a,
                                      band *b, kiln_error *err)
{
    KILN_TRY(kiln_violation_clear(x, b->violation, err));
    if (a->ranks) {
        KILN_TRY(kiln_device_copy_in(x, b->counts, a->tile_counts,
                                     tiles_of(a->view, a->row0, a->row1) * sizeof *b->counts, err));
        KILN_TRY(kiln_device_copy_in(x, b->ranks, a->ranks, a->n_pairs * sizeof *b->ranks, err));
    } else {
        KILN_TRY(emit(d, e, b, err));
    }
    return blend_band(d, x, a, b, err);
}

kiln_status kiln_resident_raster(const kiln_drawing *d, const kiln_raster_args *a, bool *done,
                                 kiln_error *err)
{
    const kiln_exec x = kiln_store_exec(d->store);
    const kiln_tile_pairs_emit_args e = {
        .view = a->view, .row0 = a->row0, .row1 = a->row1, .capacity = a->n_pairs};
    band b;
    KILN_TRY(lay_out_band(d, NULL, &e, a, &b, err));
    KILN_TRY(reserve(d, &b, done, err));
    if (!*done) return KILN_OK;
    KILN_TRY(lay_out_band(d, kiln_store_scratch(d->store)->at, &e, a, &b, err));
    return kiln_settle(&x, draw_resident_band(d, &x, &e, a, &b, err));
}

/* ---- shares of a picture --------------------------------------------------------------------- */
static kiln_blend_weights_args weights_of(const kiln_drawing *d, const kiln_raster_args *a,
                                          const band *b)
{
    return (kiln_blend_weights_args){.n = d->n,
                                     .splats = ordered_of(d).splats,
                                     .view = a->view,
                                     .profile = a->profile,
                                     .row0 = a->row0,
                                     .row1 = a->row1,
                                     .tile_counts = b->counts,
                                     .ranks = b->ranks,
                                     .n_pairs = a->n_pairs,
                                     .weights = b->totals.weights,
                                     .peaks = b->totals.peaks,
                                     .alphas = b->totals.alphas,
                                     .mask = b->mask,
                                     .state = b->state};
}

static kiln_status lay_out_weights(const kiln_drawing *d, char *at, const kiln_raster_args *a,
                                   const kiln_resident_blend *to, band *b, kiln_error *err)
{
    kiln_carve c = {at, 0};
    *b = (band){0};
    b->violation = kiln_take(&c, 1, sizeof *b->violation);
    b->counts = kiln_take(&c, tiles_of(a->view, a->row0, a->row1), sizeof *b->counts);
    b->ranks = kiln_take(&c, a->n_pairs, sizeof *b->ranks);
    b->totals = to->there ? *to->totals : kiln_blend_totals_take(&c, d->n, to->totals);
    if (to->mask) b->mask = kiln_take(&c, kiln_raster_pixels(a), sizeof *b->mask);
    if (a->state) b->state = kiln_take(&c, kiln_raster_pixels(a), sizeof *b->state);
    const kiln_tile_pairs_emit_args emit = emit_of(d, a->view, a->row0, a->row1, a->n_pairs, b);
    const kiln_blend_weights_args blend = weights_of(d, a, b);
    KILN_TRY(add_work(kiln_store_runner(d->store), KILN_OP_tile_pairs_emit, &emit, b, err));
    KILN_TRY(add_work(kiln_store_runner(d->store), KILN_OP_blend_weights, &blend, b, err));
    take_work(&c, b);
    return KILN_OK;
}

static kiln_status weigh(const kiln_drawing *d, const kiln_exec *x, const kiln_raster_args *a,
                         const kiln_resident_blend *to, band *b, kiln_error *err)
{
    const uint64_t pixels = kiln_raster_pixels(a);
    const kiln_tile_pairs_emit_args e = {
        .view = a->view, .row0 = a->row0, .row1 = a->row1, .capacity = a->n_pairs};
    const kiln_blend_weights_args blend = weights_of(d, a, b);
    KILN_TRY(kiln_violation_clear(x, b->violation, err));
    if (!to->there) KILN_TRY(kiln_blend_totals_in(x, &b->totals, to->totals, d->n, err));
    if (to->mask) KILN_TRY(kiln_device_copy_in(x, b->mask, to->mask, pixels, err));
    if (a->state)
        KILN_TRY(kiln_device_copy_in(x, b->state, a->state, pixels * sizeof *b->state, err));
    KILN_TRY(emit(d, &e, b, err));
    KILN_TRY(kiln_runner_launch(kiln_store_runner(d->store), KILN_OP_blend_weights, &blend, b->work,
                                b->work_bytes, b->violation, err));
    if (a->state)
        KILN_TRY(kiln_device_copy_out(x, a->state, b->state, pixels * sizeof *b->state, err));
    if (!to->there) KILN_TRY(kiln_blend_totals_out(x, to->totals, &b->totals, d->n, err));
    return kiln_violation_read(x, b->violation, &b->left, err);
}

kiln_status kiln_resident_weights(const kiln_drawing *d, const kiln_raster_args *a,
                                  const kiln_resident_blend *to, bool *done, kiln_error *err)
{
    const kiln_exec x = kiln_store_exec(d->store);
    band b;
    KILN_TRY(lay_out_weights(d, NULL, a, to, &b, err));
    KILN_TRY(reserve(d, &b, done, err));
    if (!*done) return KILN_OK;
    KILN_TRY(lay_out_weights(d, kiln_store_scratch(d->store)->at, a, to, &b, err));
    return kiln_settle(&x, weigh(d, &x, a, to, &b, err));
}

/* ---- to host memory -------------------------------------------------------------------------- */
/* Translates rows of the whole scene to chunks and rows in them. */
static void tell_chunks(const kiln_drawing *d, kiln_splat2d *splats, uint32_t *chunks,
                        uint32_t *rows)
{
    const int threads = (int)kiln_runner_get_info(kiln_store_runner(d->store)).threads;
#pragma omp parallel for num_threads(threads)
    for (uint64_t i = 0; i < d->n; i++) {
        uint32_t row;
        const uint32_t chunk =
            kiln_whole_chunk(kiln_store_whole(d->store), rows ? rows[i] : splats[i].row, &row);
        if (chunks) chunks[i] = chunk;
        if (rows) rows[i] = row;
        if (splats) splats[i].row = row;
    }
}

kiln_status kiln_resident_read(const kiln_drawing *d, kiln_splat2d *splats, uint32_t *chunks,
                               uint32_t *rows, kiln_error *err)
{
    const kiln_exec x = kiln_store_exec(d->store);
    const kiln_store_ordered o = ordered_of(d);
    kiln_status st = KILN_OK;
    if (splats) KILN_GO(kiln_device_copy_out(&x, splats, o.splats, d->n * sizeof *splats, err));
    if (chunks && !kiln_store_drawing_is_whole(d->store))
        KILN_GO(kiln_device_copy_out(&x, chunks, o.chunks, d->n * sizeof *chunks, err));
    if (rows) KILN_GO(kiln_device_copy_out(&x, rows, o.rows, d->n * sizeof *rows, err));
    KILN_GO(kiln_device_wait(&x, err));
    if (kiln_store_drawing_is_whole(d->store)) tell_chunks(d, splats, chunks, rows);
done:
    return kiln_settle(&x, st);
}
