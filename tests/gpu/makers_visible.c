/* makers_visible -- The visible Gaussians of several chunks. */
#include "tests/gpu/makers_internal.h"

#include "kernels/depth_order/depth_order_math.h"

#include <string.h>

/* What a scene's camera sees, as it comes from project: room for all rows, the visible ones first.
 * Variant 0: the first chunk, with room to spare; 1: behind five others, with room for half; 2: no
 * room is left. */
bool make_visible_gather(scene *s, unsigned variant, kiln_visible_gather_args *a, made_call *c)
{
    if (variant > 2 || s->n == 0 || !scene_look_quickly(s)) return false;
    const uint64_t capacity[] = {s->visible + 3, 5 + s->visible / 2, 4};
    kiln_splat2d *splats = made_own(c, s->n, sizeof *splats);
    uint64_t *visible = made_own(c, 1, sizeof *visible), *total = made_own(c, 1, sizeof *total);
    uint32_t *source_rows = made_own(c, s->n, sizeof *source_rows);
    memcpy(splats, s->splats, s->visible * sizeof *splats);
    *visible = s->visible;
    *total = variant ? 5 : 0;
    for (uint64_t i = 0; i < s->n; i++) source_rows[i] = (uint32_t)(7 * i + 1);
    *a = (kiln_visible_gather_args){.n = s->n,
                                    .splats = splats,
                                    .n_visible = visible,
                                    .source_rows = source_rows,
                                    .chunk = 3 + variant,
                                    .capacity = capacity[variant],
                                    .total = total,
                                    .all = made_own(c, capacity[variant], sizeof *a->all),
                                    .depths = made_own(c, capacity[variant], sizeof *a->depths),
                                    .rows = made_own(c, capacity[variant], sizeof *a->rows),
                                    .chunks = made_own(c, capacity[variant], sizeof *a->chunks)};
    return true;
}

/* The tiles that ask for more: a checkerboard, or all; summed as visible.h says. */
static const uint32_t *make_live(made_call *c, const kiln_view *view, bool all)
{
    const uint64_t wide = (uint64_t)kiln_view_tiles_x(view) + 1,
                   high = (uint64_t)kiln_view_tiles_y(view) + 1;
    uint32_t *live = made_own(c, wide * high, sizeof *live);
    for (uint64_t y = 1; y < high; y++)
        for (uint64_t x = 1; x < wide; x++)
            live[y * wide + x] = live[(y - 1) * wide + x] + live[y * wide + x - 1] -
                                 live[(y - 1) * wide + x - 1] + (all || (x / 3 + y / 2) % 2 == 0);
    return live;
}

/* Variant 0: the middle half in depth, some tiles; 1: of the depth in the middle those with higher
 * rows, all tiles; 2: none, as the slab is empty. */
bool make_visible_window(scene *s, unsigned variant, kiln_visible_window_args *a, made_call *c)
{
    kiln_visible_gather_args g;
    if (variant > 2 || !make_visible_gather(s, 0, &g, c) || s->visible < 4) return false;
    const kiln_splat2d *from = &s->splats[s->visible / 4], *middle = &s->splats[s->visible / 2],
                       *to = &s->splats[s->visible / 4 * 3];
    const uint64_t keys[][2] = {{kiln_depth_key(from->depth, 0), kiln_depth_key(to->depth, 0)},
                                {kiln_depth_key(middle->depth, g.source_rows[middle->row]),
                                 kiln_depth_key(middle->depth, UINT32_MAX)},
                                {1, 2}};
    *a = (kiln_visible_window_args){.n = g.n,
                                    .splats = g.splats,
                                    .n_visible = g.n_visible,
                                    .source_rows = g.source_rows,
                                    .window = {.from = keys[variant][0],
                                               .to = keys[variant][1],
                                               .tiles_x = kiln_view_tiles_x(&s->view),
                                               .tiles_y = kiln_view_tiles_y(&s->view),
                                               .live = make_live(c, &s->view, variant == 1)},
                                    .kept = made_own(c, g.n, sizeof *a->kept),
                                    .n_kept = made_own(c, 1, sizeof *a->n_kept)};
    return true;
}

/* Backwards, and all of them the same one; backwards without chunks. */
bool make_visible_order(scene *s, unsigned variant, kiln_visible_order_args *a, made_call *c)
{
    if (variant > 2 || !scene_look_quickly(s)) return false;
    const uint64_t n = s->visible;
    uint32_t *chunks = made_own(c, n, sizeof *chunks), *order = made_own(c, n, sizeof *order);
    for (uint64_t i = 0; i < n; i++) {
        chunks[i] = (uint32_t)(i / 3);
        order[i] = (uint32_t)(variant == 1 ? n / 2 : n - 1 - i);
    }
    *a = (kiln_visible_order_args){
        .n = n,
        .splats = s->splats,
        .chunks = variant < 2 ? chunks : NULL,
        .order = order,
        .ordered = made_own(c, n, sizeof *a->ordered),
        .ordered_chunks = variant < 2 ? made_own(c, n, sizeof *a->ordered_chunks) : NULL,
        .ordered_rows = made_own(c, n, sizeof *a->ordered_rows)};
    return true;
}
