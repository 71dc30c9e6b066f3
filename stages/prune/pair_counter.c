/* pair_counter -- see the header. */
#include "stages/prune/pair_counter.h"

kiln_status kiln_pair_counter_project(const kiln_pair_counter *c, const kiln_geometry *g,
                                      uint64_t *visible, kiln_error *err)
{
    kiln_project_args a = {.n = g->n,
                           KILN_PROJECT_PLANES(g),
                           .view = &c->request->view,
                           .profile = c->request->profile,
                           .antialiased = c->request->antialiased,
                           .splats = c->splats,
                           .n_visible = visible};
    *visible = 0;
    return g->n ? KILN_WORK(c->w, project, &a, err) : KILN_OK;
}

kiln_status kiln_pair_counter_count(const kiln_pair_counter *c, uint64_t n,
                                    const kiln_splat2d *splats, uint64_t *pairs, kiln_error *err)
{
    const uint32_t tiles_y = kiln_view_tiles_y(&c->request->view);
    kiln_tile_pairs_count_args a = {.n = n,
                                    .splats = splats,
                                    .view = &c->request->view,
                                    .row0 = 0,
                                    .row1 = tiles_y,
                                    .row_pairs = c->row_pairs};
    *pairs = 0;
    if (n == 0) return KILN_OK;
    KILN_TRY(KILN_WORK(c->w, tile_pairs_count, &a, err));
    for (uint32_t r = 0; r < tiles_y; r++) *pairs += c->row_pairs[r];
    return KILN_OK;
}

static const float *gather_plane(const kiln_geometry *g, const uint8_t *which, const float *from,
                                 uint64_t components, float **at)
{
    const float *first = *at;
    for (uint64_t c = 0; c < components; c++)
        for (uint64_t i = 0; i < g->n; i++)
            if (which[i]) *(*at)++ = from[c * g->n + i];
    return first;
}

void kiln_geometry_gather(const kiln_geometry *from, const uint8_t *which, float *to,
                          kiln_geometry *out)
{
    out->n = 0;
    for (uint64_t i = 0; i < from->n; i++) out->n += which[i] != 0;
    out->means = gather_plane(from, which, from->means, 3, &to);
    out->log_scales = gather_plane(from, which, from->log_scales, 3, &to);
    out->quats = gather_plane(from, which, from->quats, 4, &to);
    out->opacity_logits = gather_plane(from, which, from->opacity_logits, 1, &to);
}
