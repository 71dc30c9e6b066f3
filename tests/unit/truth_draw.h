/* truth_draw -- a scene through the kernels to a picture: project, depth_order, tile_pairs,
 * raster. */
#ifndef KILN_TESTS_TRUTH_DRAW_H
#define KILN_TESTS_TRUTH_DRAW_H

#include "tests/unit/test_runner.h"
#include "tests/unit/truth_scene.h"

/* What a view of a scene comes to. Owned by whoever calls picture_release. */
typedef struct {
    kiln_view view;
    uint64_t visible, pairs, box_pairs; /* box_pairs: what the renderer's own boxes list */
    kiln_splat2d *splats;               /* in depth order */
    uint32_t *tile_counts, *ranks;
    float *rgba, *depth;
} picture;

static void picture_release(picture *p)
{
    free(p->splats);
    free(p->tile_counts);
    free(p->ranks);
    free(p->rgba);
    free(p->depth);
    *p = (picture){0};
}

#define RUN(op, args) KILN_GO(test_run(KILN_OP_##op, (args), err))

/* Visible Gaussians of the scene in depth order: p->splats, p->visible, p->box_pairs. */
static kiln_status list_visible(const truth_scene *s, const kiln_view *view,
                                kiln_profile_id profile, bool aa, picture *p, kiln_error *err)
{
    kiln_status st;
    kiln_splat2d *found = NULL;
    float *depths = NULL;
    uint32_t *rows = NULL, *order = NULL;
    KILN_GO(KILN_ALLOC(&found, s->n, "splats", err));
    kiln_project_args project = {.n = s->n,
                                 .means = s->means,
                                 .log_scales = s->log_scales,
                                 .quats = s->quats,
                                 .opacity_logits = s->opacity_logits,
                                 .sh0 = s->sh0,
                                 .shN = s->shN,
                                 .sh_degree = 3,
                                 .view = view,
                                 .profile = profile,
                                 .antialiased = aa,
                                 .splats = found,
                                 .n_visible = &p->visible,
                                 .box_pairs = &p->box_pairs};
    RUN(project, &project);
    KILN_GO(KILN_ALLOC(&depths, p->visible, "depths", err));
    KILN_GO(KILN_ALLOC(&rows, p->visible, "rows", err));
    KILN_GO(KILN_ALLOC(&order, p->visible, "order", err));
    KILN_GO(KILN_ALLOC(&p->splats, p->visible, "splats", err));
    for (uint64_t i = 0; i < p->visible; i++) {
        depths[i] = found[i].depth;
        rows[i] = found[i].row;
    }
    kiln_depth_order_args sort = {
        .n = p->visible, .depths = depths, .source_rows = rows, .order = order};
    RUN(depth_order, &sort);
    for (uint64_t i = 0; i < p->visible; i++) p->splats[i] = found[order[i]];
done:
    free(order);
    free(rows);
    free(depths);
    free(found);
    return st;
}

/* The visible Gaussians and all tile lists, in one band. */
static kiln_status list_pairs(const truth_scene *s, const kiln_view *view, kiln_profile_id profile,
                              bool aa, picture *p, kiln_error *err)
{
    kiln_status st;
    const uint32_t tiles_x = kiln_view_tiles_x(view), tiles_y = kiln_view_tiles_y(view);
    uint64_t *row_pairs = NULL;
    *p = (picture){.view = *view};
    KILN_GO(list_visible(s, view, profile, aa, p, err));
    KILN_GO(KILN_ALLOC(&row_pairs, tiles_y, "row pairs", err));
    kiln_tile_pairs_count_args count = {.n = p->visible,
                                        .splats = p->splats,
                                        .view = view,
                                        .row1 = tiles_y,
                                        .row_pairs = row_pairs};
    RUN(tile_pairs_count, &count);
    for (uint32_t r = 0; r < tiles_y; r++) p->pairs += row_pairs[r];
    KILN_GO(KILN_ALLOC(&p->tile_counts, (uint64_t)tiles_x * tiles_y, "tile counts", err));
    KILN_GO(KILN_ALLOC(&p->ranks, p->pairs, "ranks", err));
    kiln_tile_pairs_emit_args emit = {.n = p->visible,
                                      .splats = p->splats,
                                      .view = view,
                                      .row1 = tiles_y,
                                      .capacity = p->pairs,
                                      .tile_counts = p->tile_counts,
                                      .ranks = p->ranks};
    RUN(tile_pairs_emit, &emit);
done:
    free(row_pairs);
    return st;
}

/* The picture over `background`, and its depth. */
static kiln_status draw(const truth_scene *s, const kiln_view *view, kiln_profile_id profile,
                        bool aa, float background, picture *p, kiln_error *err)
{
    kiln_status st;
    KILN_GO(list_pairs(s, view, profile, aa, p, err));
    KILN_GO(KILN_ALLOC(&p->rgba, (uint64_t)4 * view->width * view->height, "picture", err));
    KILN_GO(KILN_ALLOC(&p->depth, (uint64_t)view->width * view->height, "depth", err));
    kiln_raster_args raster = {.n = p->visible,
                               .splats = p->splats,
                               .view = view,
                               .profile = profile,
                               .row1 = kiln_view_tiles_y(view),
                               .tile_counts = p->tile_counts,
                               .ranks = p->ranks,
                               .n_pairs = p->pairs,
                               .background = {background, background, background},
                               .rgba = p->rgba,
                               .depth = p->depth};
    RUN(raster, &raster);
done:
    return st;
}

#endif
