/* draw_weights -- see draw_weights.h. A drawing's shares stand in the drawing's order while its bands are drawn; then each is added
 * to the row that it belongs to. */
#include "kernels/draw/draw_weights.h"

#include "base/memory.h"
#include "kernels/draw/fit.h"
#include "kernels/draw/resident.h"
#include "kernels/draw/slabs.h"

#include <stdlib.h>

/* ---- shares of a drawing --------------------------------------------------------------------------------------------------- */
/* Without room on the device, bands copy the shares in and out. */
static kiln_status begin_there(const kiln_drawing *d, kiln_draw_shares *s, kiln_error *err)
{
    const kiln_exec x = kiln_runner_exec(d->store->runner);
    bool fits;
    s->store = d->store;
    KILN_TRY(kiln_store_reserve(d->store, &s->there, d->n * sizeof *s->weights, &fits, err));
    return fits ? kiln_store_settle(&x, kiln_device_fill(&x, s->there.at, 0, d->n * sizeof *s->weights, err)) : KILN_OK;
}

kiln_status kiln_draw_shares_begin(const kiln_drawing *d, uint64_t *const *sums, kiln_draw_shares *out, kiln_error *err)
{
    *out = (kiln_draw_shares){.sums = sums, .n = d->n};
    KILN_TRY(KILN_ALLOC(&out->weights, d->n, "shares of visible Gaussians", err));
    return d->store && d->n > 0 ? begin_there(d, out, err) : KILN_OK;
}

/* Brings them to host memory. */
static kiln_status fetch(kiln_draw_shares *s, kiln_error *err)
{
    if (!s->there.at) return KILN_OK;
    const kiln_exec x = kiln_runner_exec(s->store->runner);
    KILN_TRY(kiln_store_settle(&x, kiln_device_copy_out(&x, s->weights, s->there.at, s->n * sizeof *s->weights, err)));
    KILN_TRY(kiln_device_wait(&x, err));
    kiln_store_drop_block(s->store, &s->there);
    return KILN_OK;
}

void kiln_draw_shares_release(kiln_draw_shares *s)
{
    if (s->there.at) kiln_store_drop_block(s->store, &s->there);
    free(s->weights);
}

kiln_status kiln_draw_shares_add(kiln_runner *r, const kiln_drawing *d, kiln_draw_shares *s, kiln_error *err)
{
    kiln_status st;
    const int threads = (int)kiln_runner_get_info(r).threads;
    uint32_t *chunk = NULL, *row = NULL;
    bool lost = false;
    KILN_GO(fetch(s, err));
    KILN_GO(KILN_ALLOC_UNSET(&chunk, d->n, "visible Gaussians", err));
    KILN_GO(KILN_ALLOC_UNSET(&row, d->n, "visible Gaussians", err));
    KILN_GO(kiln_drawing_names(r, d, chunk, row, err));
#pragma omp parallel for num_threads(threads) reduction(|| : lost)
    for (uint64_t i = 0; i < d->n; i++) {
        uint64_t *const sums = s->sums[chunk[i]];
        lost = lost || !sums;
        if (sums) sums[row[i]] += s->weights[i]; /* a row is once in a drawing */
    }
    if (lost) st = kiln_fail(err, KILN_E_BUG, "a chunk without sums has visible Gaussians");
done:
    free(row);
    free(chunk);
    return st;
}

/* ---- a band ---------------------------------------------------------------------------------------------------------------- */
static kiln_status weigh_here(kiln_runner *r, const kiln_drawing *d, const kiln_raster_args *a, uint64_t *weights, uint32_t *counts,
                              uint32_t *ranks, kiln_error *err)
{
    const kiln_tile_pairs_emit_args e = {.n = d->n,
                                         .splats = d->splats,
                                         .view = a->view,
                                         .row0 = a->row0,
                                         .row1 = a->row1,
                                         .capacity = a->n_pairs,
                                         .tile_counts = counts,
                                         .ranks = ranks};
    const kiln_blend_weights_args b = {.n = d->n,
                                       .splats = d->splats,
                                       .view = a->view,
                                       .profile = a->profile,
                                       .row0 = a->row0,
                                       .row1 = a->row1,
                                       .tile_counts = counts,
                                       .ranks = ranks,
                                       .n_pairs = a->n_pairs,
                                       .weights = weights,
                                       .state = a->state};
    KILN_TRY(kiln_fit_emit(r, &e, err));
    return kiln_runner_run(r, KILN_OP_blend_weights, &b, err); /* on the CPU where the device has no room: the same bits */
}

kiln_status kiln_draw_band_shares(kiln_runner *r, kiln_drawing *d, const kiln_raster_args *a, kiln_draw_shares *shares,
                                  uint32_t *counts, uint32_t *ranks, kiln_error *err)
{
    bool done = false;
    if (shares->there.at) KILN_TRY(kiln_resident_weights(d, a, (uint64_t *)shares->there.at, NULL, &done, err));
    if (done) return KILN_OK;
    KILN_TRY(fetch(shares, err)); /* it leaves no room for the lists */
    if (d->store) KILN_TRY(kiln_resident_weights(d, a, NULL, shares->weights, &done, err));
    if (done) return KILN_OK;
    KILN_TRY(kiln_drawing_fetch(d, err));
    return weigh_here(r, d, a, shares->weights, counts, ranks, err);
}

/* ---- a view ---------------------------------------------------------------------------------------------------------------- */
static kiln_status weigh_drawing(kiln_runner *r, const kiln_draw_scene *s, kiln_drawing *d, uint64_t *const *sums,
                                 kiln_draw_stats *stats, kiln_error *err)
{
    kiln_status st;
    kiln_draw_shares shares;
    const kiln_raster_args a = {.view = s->view, .profile = s->profile, .row1 = kiln_view_tiles_y(s->view)};
    KILN_GO(kiln_draw_shares_begin(d, sums, &shares, err));
    KILN_GO(kiln_draw_rows(r, d, &a, &shares, &stats->pairs, err));
    KILN_GO(kiln_draw_shares_add(r, d, &shares, err));
    stats->visible = d->n;
    stats->listed = stats->pairs;
done:
    kiln_draw_shares_release(&shares);
    return st;
}

kiln_status kiln_draw_weights(kiln_runner *r, const kiln_draw_scene *s, uint64_t capacity, uint64_t *const *sums,
                              kiln_draw_stats *stats, kiln_error *err)
{
    kiln_draw_stats t = {0};
    kiln_drawing d = {0};
    uint64_t room = capacity;
    if (room == 0) KILN_TRY(kiln_draw_collect_or_slabs(r, s, &d, &room, err));
    const kiln_status st = room > 0 ? kiln_draw_slabs_weights(r, s, room, sums, &t, err) : weigh_drawing(r, s, &d, sums, &t, err);
    kiln_drawing_release(&d);
    if (stats) *stats = t;
    return st;
}
