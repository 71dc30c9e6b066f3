/* draw_probe -- see draw_probe.h. */
#include "kernels/draw/draw_probe.h"

#include "base/memory.h"
#include "kernels/draw/fit.h"

#include <stdlib.h>

static kiln_status reserve_probe(kiln_probe *g, const kiln_view *view, uint64_t n, kiln_error *err)
{
    if (!g->row_pairs)
        KILN_TRY(KILN_ALLOC(&g->row_pairs, kiln_view_tiles_y(view), "pairs of tile rows", err));
    if (n <= g->capacity && g->splats) return KILN_OK;
    free(g->splats);
    g->splats = NULL;
    g->capacity = n;
    return KILN_ALLOC_UNSET(&g->splats, n, "projected chunk", err);
}

kiln_status kiln_probe_chunk(kiln_runner *r, const kiln_draw_scene *s, uint32_t chunk,
                             kiln_probe *g, kiln_error *err)
{
    kiln_draw_chunk c = {0};
    g->n = g->box_pairs = 0;
    KILN_TRY(s->chunk(s->context, chunk, &c, err));
    if (c.n == 0) return KILN_OK;
    KILN_TRY(reserve_probe(g, s->view, c.n, err));
    g->source_rows = c.source_rows;
    const kiln_project_args p = {.n = c.n,
                                 .means = c.means,
                                 .log_scales = c.log_scales,
                                 .quats = c.quats,
                                 .opacity_logits = c.opacity_logits,
                                 .view = s->view,
                                 .cut = s->cut,
                                 .profile = s->profile,
                                 .antialiased = s->antialiased,
                                 .splats = g->splats,
                                 .n_visible = &g->n,
                                 .box_pairs = &g->box_pairs};
    KILN_TRY(kiln_runner_run(r, KILN_OP_project, &p, err));
    if (g->n == 0) return KILN_OK;
    const kiln_tile_pairs_count_args a = {.n = g->n,
                                          .splats = g->splats,
                                          .view = s->view,
                                          .row1 = kiln_view_tiles_y(s->view),
                                          .row_pairs = g->row_pairs};
    return kiln_fit_count(r, &a, err);
}

void kiln_probe_release(kiln_probe *g)
{
    free(g->splats);
    free(g->row_pairs);
}
