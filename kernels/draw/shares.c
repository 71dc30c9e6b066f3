/* shares -- see shares.h. */
#include "kernels/draw/shares.h"

#include "base/memory.h"
#include "kernels/device.h"
#include "kernels/draw/drawing.h"
#include "kernels/draw/fit.h"
#include "kernels/draw/resident.h"
#include "kernels/draw/settle.h"

#include <stdlib.h>

kiln_status kiln_shares_begin(kiln_runner *r, kiln_drawing *d, kiln_shares *out, kiln_error *err)
{
    *out = (kiln_shares){.of = {.runner = r, .drawing = d}, .store = d->store, .n = d->n};
    KILN_TRY(KILN_ALLOC(&out->weights, d->n, "shares of visible Gaussians", err));
    if (!d->store || d->n == 0) return KILN_OK;
    const uint64_t bytes = d->n * sizeof *out->weights;
    const kiln_exec x = kiln_store_exec(d->store);
    bool fits; /* without room on the device, bands copy the shares in and out */
    KILN_TRY(kiln_store_reserve(d->store, &out->there, bytes, &fits, err));
    return fits ? kiln_settle(&x, kiln_device_fill(&x, out->there.at, 0, bytes, err)) : KILN_OK;
}

/* Brings them to host memory. */
static kiln_status fetch_shares(kiln_shares *s, kiln_error *err)
{
    if (!s->there.at) return KILN_OK;
    const kiln_exec x = kiln_store_exec(s->store);
    KILN_TRY(kiln_settle(&x, kiln_device_copy_out(&x, s->weights, s->there.at, s->n * sizeof *s->weights, err)));
    KILN_TRY(kiln_device_wait(&x, err));
    kiln_store_drop_block(s->store, &s->there);
    return KILN_OK;
}

void kiln_shares_release(kiln_shares *s)
{
    if (s->there.at) kiln_store_drop_block(s->store, &s->there);
    free(s->weights);
}

/* ---- a band ---------------------------------------------------------------------------------------------------------------- */
static kiln_status weigh_here(const kiln_shares *s, const kiln_band *band, kiln_error *err)
{
    const kiln_drawing *d = s->of.drawing;
    const kiln_raster_args *a = &band->a;
    const kiln_tile_pairs_emit_args e = {.n = d->n,
                                         .splats = d->splats,
                                         .view = a->view,
                                         .row0 = a->row0,
                                         .row1 = a->row1,
                                         .capacity = a->n_pairs,
                                         .tile_counts = band->counts,
                                         .ranks = band->ranks};
    const kiln_blend_weights_args b = {.n = d->n,
                                       .splats = d->splats,
                                       .view = a->view,
                                       .profile = a->profile,
                                       .row0 = a->row0,
                                       .row1 = a->row1,
                                       .tile_counts = band->counts,
                                       .ranks = band->ranks,
                                       .n_pairs = a->n_pairs,
                                       .weights = s->weights,
                                       .state = a->state};
    KILN_TRY(kiln_fit_emit(s->of.runner, &e, err));
    return kiln_runner_run(s->of.runner, KILN_OP_blend_weights, &b,
                           err); /* on the CPU where the device has no room: the same bits */
}

static kiln_status weigh_band(void *context, const kiln_band *b, bool *all, kiln_error *err)
{
    kiln_shares *const s = context;
    kiln_drawing *const d = s->of.drawing;
    bool done = false;
    (void)all;
    if (s->there.at) KILN_TRY(kiln_resident_weights(d, &b->a, (uint64_t *)s->there.at, NULL, &done, err));
    if (done) return KILN_OK;
    KILN_TRY(fetch_shares(s, err)); /* it leaves no room for the lists */
    if (d->store) KILN_TRY(kiln_resident_weights(d, &b->a, NULL, s->weights, &done, err));
    if (done) return KILN_OK;
    KILN_TRY(kiln_drawing_fetch(d, err));
    return weigh_here(s, b, err);
}

static kiln_status count_shares(void *context, const kiln_tile_pairs_count_args *a, bool *done, kiln_error *err)
{
    return kiln_bands_count(&((kiln_shares *)context)->of, a, done, err);
}

kiln_band_way kiln_shares_bands(kiln_shares *s)
{
    return (kiln_band_way){.count = count_shares, .draw = weigh_band, .context = s, .lists = true};
}

/* ---- to the rows ----------------------------------------------------------------------------------------------------------- */
kiln_status kiln_shares_add(kiln_shares *s, uint64_t *const *sums, kiln_error *err)
{
    kiln_status st;
    const int threads = (int)kiln_runner_get_info(s->of.runner).threads;
    uint32_t *chunk = NULL, *row = NULL;
    bool lost = false;
    KILN_GO(fetch_shares(s, err));
    KILN_GO(KILN_ALLOC_UNSET(&chunk, s->n, "visible Gaussians", err));
    KILN_GO(KILN_ALLOC_UNSET(&row, s->n, "visible Gaussians", err));
    KILN_GO(kiln_drawing_names(s->of.runner, s->of.drawing, chunk, row, err));
#pragma omp parallel for num_threads(threads) reduction(|| : lost)
    for (uint64_t i = 0; i < s->n; i++) {
        uint64_t *const of_chunk = sums[chunk[i]];
        lost = lost || !of_chunk;
        if (of_chunk) of_chunk[row[i]] += s->weights[i]; /* a row is once in a drawing */
    }
    if (lost) st = kiln_fail(err, KILN_E_BUG, "a chunk without sums has visible Gaussians");
done:
    free(row);
    free(chunk);
    return st;
}
