/* drawing -- see drawing.h: on a device where that fits, else in host memory. */
#include "kernels/draw/drawing.h"

#include "base/memory.h"
#include "kernels/draw/fit.h"
#include "kernels/draw/host_collect.h"
#include "kernels/draw/resident.h"
#include "kernels/draw/resident_collect.h"

#include <stdlib.h>
#include <string.h>

kiln_status kiln_draw_collect(kiln_runner *r, const kiln_draw_scene *s, kiln_drawing *out,
                              kiln_error *err)
{
    bool done = false;
    memset(out, 0, sizeof *out);
    if (s->store && s->header) KILN_TRY(kiln_resident_collect(s, out, &done, err));
    return done ? KILN_OK : kiln_host_collect(r, s, out, err);
}

void kiln_drawing_release(kiln_drawing *d)
{
    if (d->store) kiln_store_release_drawing(d->store);
    free(d->splats);
    free(d->chunk);
    memset(d, 0, sizeof *d);
}

kiln_status kiln_drawing_fetch(kiln_drawing *d, kiln_error *err)
{
    kiln_status st;
    kiln_drawing here = {.n = d->n};
    if (!d->store) return KILN_OK;
    KILN_GO(KILN_ALLOC_UNSET(&here.splats, d->n, "visible Gaussians", err));
    KILN_GO(KILN_ALLOC_UNSET(&here.chunk, d->n, "visible Gaussians", err));
    KILN_GO(kiln_resident_read(d, here.splats, here.chunk, NULL, err));
    kiln_drawing_release(d);
    *d = here;
    return KILN_OK;
done:
    kiln_drawing_release(&here);
    return st;
}

kiln_status kiln_drawing_names(kiln_runner *r, const kiln_drawing *d, uint32_t *chunk,
                               uint32_t *row, kiln_error *err)
{
    const int threads = (int)kiln_runner_get_info(r).threads;
    if (d->store) return kiln_resident_read(d, NULL, chunk, row, err);
#pragma omp parallel for num_threads(threads)
    for (uint64_t i = 0; i < d->n; i++) {
        chunk[i] = d->chunk[i];
        row[i] = d->splats[i].row;
    }
    return KILN_OK;
}

/* ---- operations on it ------------------------------------------------------------------------ */
kiln_status kiln_draw_count(kiln_runner *r, kiln_drawing *d, const kiln_tile_pairs_count_args *a,
                            kiln_error *err)
{
    bool done = false;
    kiln_tile_pairs_count_args with = *a;
    if (d->store) KILN_TRY(kiln_resident_count(d, a, &done, err));
    if (done) return KILN_OK;
    KILN_TRY(kiln_drawing_fetch(d, err));
    with.n = d->n;
    with.splats = d->splats;
    return kiln_fit_count(r, &with, err);
}

kiln_status kiln_draw_emit(kiln_runner *r, kiln_drawing *d, const kiln_tile_pairs_emit_args *a,
                           kiln_error *err)
{
    bool done = false;
    kiln_tile_pairs_emit_args with = *a;
    if (d->store) KILN_TRY(kiln_resident_emit(d, a, &done, err));
    if (done) return KILN_OK;
    KILN_TRY(kiln_drawing_fetch(d, err));
    with.n = d->n;
    with.splats = d->splats;
    return kiln_fit_emit(r, &with, err);
}

kiln_status kiln_draw_raster(kiln_runner *r, kiln_drawing *d, const kiln_raster_args *a,
                             kiln_error *err)
{
    bool done = false;
    kiln_raster_args with = *a;
    if (d->store) KILN_TRY(kiln_resident_raster(d, a, &done, err));
    if (done) return KILN_OK;
    KILN_TRY(kiln_drawing_fetch(d, err));
    with.n = d->n;
    with.splats = d->splats;
    return kiln_fit_raster(r, &with, err);
}
