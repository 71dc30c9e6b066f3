/* draw_tally -- see kiln_draw_count_all: counts visible Gaussians and pairs without drawing; on a device if all Gaussians fit
 * there, else chunk by chunk in the memory of one chunk. Counts add up, so both give the same. */
#include "base/memory.h"
#include "kernels/draw/fit.h"
#include "kernels/draw/resident.h"
#include "kernels/draw/slabs.h"

#include <stdlib.h>
#include <string.h>

static kiln_status make_probe_room(kiln_draw_probe *g, const kiln_view *view, uint64_t n, kiln_error *err)
{
    if (!g->row_pairs) KILN_TRY(KILN_ALLOC(&g->row_pairs, kiln_view_tiles_y(view), "pairs of tile rows", err));
    if (n <= g->capacity && g->splats) return KILN_OK;
    free(g->splats);
    g->splats = NULL;
    g->capacity = n;
    return KILN_ALLOC_UNSET(&g->splats, n, "projected chunk", err);
}

kiln_status kiln_draw_probe_chunk(kiln_runner *r, const kiln_draw_scene *s, uint32_t chunk, kiln_draw_probe *g, kiln_error *err)
{
    kiln_draw_chunk c = {0};
    g->n = g->box_pairs = 0;
    KILN_TRY(s->chunk(s->context, chunk, &c, err));
    if (c.n == 0) return KILN_OK;
    KILN_TRY(make_probe_room(g, s->view, c.n, err));
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
    const kiln_tile_pairs_count_args a = {
        .n = g->n, .splats = g->splats, .view = s->view, .row1 = kiln_view_tiles_y(s->view), .row_pairs = g->row_pairs};
    return kiln_fit_count(r, &a, err);
}

void kiln_draw_probe_release(kiln_draw_probe *g)
{
    free(g->splats);
    free(g->row_pairs);
}

static kiln_status add_chunks(kiln_runner *r, const kiln_draw_scene *s, kiln_draw_tally *t, kiln_error *err)
{
    kiln_draw_probe g = {0};
    kiln_status st = KILN_OK;
    for (uint32_t i = 0; st == KILN_OK && i < s->n_chunks; i++) {
        st = kiln_draw_probe_chunk(r, s, i, &g, err);
        if (st != KILN_OK || g.n == 0) continue;
        for (uint32_t row = 0; row < kiln_view_tiles_y(s->view); row++) t->row_pairs[row] += g.row_pairs[row];
        t->visible += g.n;
        t->box_pairs += g.box_pairs;
    }
    kiln_draw_probe_release(&g);
    return st;
}

kiln_status kiln_draw_count_all(kiln_runner *r, const kiln_draw_scene *s, kiln_draw_tally *t, kiln_error *err)
{
    const uint32_t tiles_y = kiln_view_tiles_y(s->view);
    bool done = false;
    t->visible = t->pairs = t->box_pairs = 0;
    memset(t->row_pairs, 0, tiles_y * sizeof *t->row_pairs);
    if (s->store && s->header) KILN_TRY(kiln_resident_count_all(s, t, &done, err));
    if (!done) KILN_TRY(add_chunks(r, s, t, err));
    for (uint32_t row = 0; row < tiles_y; row++) t->pairs += t->row_pairs[row];
    return KILN_OK;
}
