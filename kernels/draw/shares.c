/* shares -- see shares.h. */
#include "kernels/draw/shares.h"

#include "base/carve.h"
#include "base/memory.h"
#include "kernels/device.h"
#include "kernels/draw/drawing.h"
#include "kernels/draw/fit.h"
#include "kernels/draw/resident.h"
#include "kernels/draw/settle.h"

#include <stdlib.h>

/* Without room on the device, bands copy the shares in and out. */
static kiln_status begin_there(kiln_shares *s, kiln_error *err)
{
    const kiln_exec x = kiln_store_exec(s->store);
    kiln_carve size = {NULL, 0}, c = {NULL, 0};
    bool fits;
    (void)kiln_blend_totals_take(&size, s->n, &s->totals);
    KILN_TRY(kiln_store_reserve(s->store, &s->there, size.used, &fits, err));
    if (!fits) return KILN_OK;
    /* before the arrays are laid out: what lies between them is not to be written afterwards */
    KILN_TRY(kiln_settle(&x, kiln_device_fill(&x, s->there.at, 0, size.used, err)));
    c.base = s->there.at;
    s->totals_there = kiln_blend_totals_take(&c, s->n, &s->totals);
    return KILN_OK;
}

kiln_status kiln_shares_begin(kiln_runner *r, kiln_drawing *d, const kiln_draw_want *want,
                              kiln_shares *out, kiln_error *err)
{
    *out = (kiln_shares){
        .of = {.runner = r, .drawing = d}, .want = want, .store = d->store, .n = d->n};
    KILN_TRY(KILN_ALLOC(&out->totals.weights, d->n, "shares of visible Gaussians", err));
    if (want->alphas)
        KILN_TRY(KILN_ALLOC(&out->totals.alphas, d->n, "shares of visible Gaussians", err));
    if (want->peaks)
        KILN_TRY(KILN_ALLOC(&out->totals.peaks, d->n, "shares of visible Gaussians", err));
    return d->store && d->n > 0 ? begin_there(out, err) : KILN_OK;
}

/* Brings them to host memory. */
static kiln_status fetch_shares(kiln_shares *s, kiln_error *err)
{
    if (!s->there.at) return KILN_OK;
    const kiln_exec x = kiln_store_exec(s->store);
    KILN_TRY(kiln_settle(&x, kiln_blend_totals_out(&x, &s->totals, &s->totals_there, s->n, err)));
    KILN_TRY(kiln_device_wait(&x, err));
    kiln_store_drop_block(s->store, &s->there);
    return KILN_OK;
}

void kiln_shares_release(kiln_shares *s)
{
    if (s->there.at) kiln_store_drop_block(s->store, &s->there);
    free(s->totals.weights);
    free(s->totals.alphas);
    free(s->totals.peaks);
}

/* ---- a band ---------------------------------------------------------------------------------- */
/* The mask from the band's first row on; NULL: there is none. */
static const uint8_t *mask_of(const kiln_shares *s, const kiln_raster_args *a)
{
    return s->want->mask ? s->want->mask + (uint64_t)a->row0 * KILN_TILE * a->view->width : NULL;
}

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
                                       .weights = s->totals.weights,
                                       .peaks = s->totals.peaks,
                                       .alphas = s->totals.alphas,
                                       .mask = mask_of(s, a),
                                       .state = a->state};
    KILN_TRY(kiln_fit_emit(s->of.runner, &e, err));
    return kiln_runner_run(s->of.runner, KILN_OP_blend_weights, &b,
                           err); /* on the CPU where the device has no room: the same bits */
}

static kiln_status weigh_band(void *context, const kiln_band *b, bool *all, kiln_error *err)
{
    kiln_shares *const s = context;
    kiln_drawing *const d = s->of.drawing;
    const kiln_resident_blend on_device = {.totals = &s->totals_there,
                                           .there = true,
                                           .mask = mask_of(s, &b->a)},
                              copied = {.totals = &s->totals, .mask = mask_of(s, &b->a)};
    bool done = false;
    (void)all;
    if (s->there.at) KILN_TRY(kiln_resident_weights(d, &b->a, &on_device, &done, err));
    if (done) return KILN_OK;
    KILN_TRY(fetch_shares(s, err)); /* it leaves no room for the lists */
    if (d->store) KILN_TRY(kiln_resident_weights(d, &b->a, &copied, &done, err));
    if (done) return KILN_OK;
    KILN_TRY(kiln_drawing_fetch(d, err));
    return weigh_here(s, b, err);
}

static kiln_status count_shares(void *context, const kiln_tile_pairs_count_args *a, bool *done,
                                kiln_error *err)
{
    return kiln_bands_count(&((kiln_shares *)context)->of, a, done, err);
}

kiln_band_way kiln_shares_bands(kiln_shares *s)
{
    return (kiln_band_way){.count = count_shares, .draw = weigh_band, .context = s, .lists = true};
}

/* ---- to the rows ----------------------------------------------------------------------------- */
/* A row is once in a drawing. False: its chunk has no sums. */
static bool add_share(const kiln_shares *s, uint64_t i, uint32_t chunk, uint32_t row)
{
    const kiln_draw_want *w = s->want;
    if (!w->sums[chunk] || (w->peaks && !w->peaks[chunk]) || (w->alphas && !w->alphas[chunk]))
        return false;
    w->sums[chunk][row] += s->totals.weights[i];
    if (w->peaks && s->totals.peaks[i] > w->peaks[chunk][row])
        w->peaks[chunk][row] = s->totals.peaks[i];
    if (w->alphas) w->alphas[chunk][row] += s->totals.alphas[i];
    return true;
}

kiln_status kiln_shares_add(kiln_shares *s, kiln_error *err)
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
    for (uint64_t i = 0; i < s->n; i++)
        if (!add_share(s, i, chunk[i], row[i])) lost = true;
    if (lost) st = kiln_fail(err, KILN_E_BUG, "a chunk without sums has visible Gaussians");
done:
    free(row);
    free(chunk);
    return st;
}
