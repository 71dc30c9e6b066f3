/* photograph -- a picture of generated Gaussians at three times the sampling, averaged: what a
 * camera with pixels of finite size would see, so that a bake at single sampling has something to
 * be measured against. */
#include "stages/generate/generate.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 3 };

typedef kiln_status any_op(const kiln_exec *, const void *, void *, size_t *, kiln_error *);

static kiln_status run_op(any_op *op, const kiln_exec *x, const void *args, kiln_error *err)
{
    size_t bytes = 0;
    void *work;
    KILN_TRY(op(x, args, NULL, &bytes, err));
    KILN_TRY(kiln_alloc(&work, bytes, 1, "workspace", err));
    kiln_status st = op(x, args, work, &bytes, err);
    free(work);
    return st;
}
#define RUN(op, args) run_op((any_op *)kiln_ops_cpu()->op, x, (args), err)

/* The planes that project reads, planar. */
typedef struct {
    float *means, *log_scales, *quats, *opacity_logits, *sh0, *shN;
} planes;

static void planes_release(planes *p)
{
    free(p->means), free(p->log_scales), free(p->quats), free(p->opacity_logits), free(p->sh0),
        free(p->shN);
}

static kiln_status fill_planes(const kg_splat *splats, uint64_t n, planes *p, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&p->means, 3 * n, "means", err));
    KILN_TRY(KILN_ALLOC(&p->log_scales, 3 * n, "scales", err));
    KILN_TRY(KILN_ALLOC(&p->quats, 4 * n, "rotations", err));
    KILN_TRY(KILN_ALLOC(&p->opacity_logits, n, "opacities", err));
    KILN_TRY(KILN_ALLOC(&p->sh0, 3 * n, "colours", err));
    KILN_TRY(KILN_ALLOC(&p->shN, 45 * n, "harmonics", err));
    for (uint64_t i = 0; i < n; i++) {
        const kg_splat *g = &splats[i];
        for (uint64_t c = 0; c < 3; c++) {
            p->means[c * n + i] = g->pos[c];
            p->log_scales[c * n + i] = g->scale[c];
            p->sh0[c * n + i] = g->f_dc[c];
            for (uint64_t k = 0; k < 15; k++) p->shN[(3 * k + c) * n + i] = g->f_rest[15 * c + k];
        }
        for (uint64_t c = 0; c < 4; c++) p->quats[c * n + i] = g->rot[c];
        p->opacity_logits[i] = g->opacity;
    }
    return KILN_OK;
}

/* Visible Gaussians in drawing order; *splats owned by the caller. */
static kiln_status project(const kiln_exec *x, const kg_splat *in, uint64_t n,
                           const kiln_view *view, kiln_splat2d **splats, uint64_t *visible,
                           kiln_error *err)
{
    kiln_status st;
    planes p = {0};
    kiln_splat2d *found = NULL;
    float *depths = NULL;
    uint32_t *rows = NULL, *order = NULL;
    KILN_GO(fill_planes(in, n, &p, err));
    KILN_GO(KILN_ALLOC(&found, n, "projected", err));
    kiln_project_args a = {.n = n,
                           .means = p.means,
                           .log_scales = p.log_scales,
                           .quats = p.quats,
                           .opacity_logits = p.opacity_logits,
                           .sh0 = p.sh0,
                           .shN = p.shN,
                           .sh_degree = 3,
                           .view = view,
                           .profile = KILN_PROFILE_INRIA,
                           .splats = found,
                           .n_visible = visible};
    KILN_GO(RUN(project, &a));
    KILN_GO(KILN_ALLOC(&depths, *visible, "depths", err));
    KILN_GO(KILN_ALLOC(&rows, *visible, "rows", err));
    KILN_GO(KILN_ALLOC(&order, *visible, "order", err));
    KILN_GO(KILN_ALLOC(splats, *visible, "projected", err));
    for (uint64_t i = 0; i < *visible; i++) depths[i] = found[i].depth, rows[i] = found[i].row;
    kiln_depth_order_args d = {
        .n = *visible, .depths = depths, .source_rows = rows, .order = order};
    KILN_GO(RUN(depth_order, &d));
    for (uint64_t i = 0; i < *visible; i++) (*splats)[i] = found[order[i]];
done:
    free(order), free(rows), free(depths), free(found);
    planes_release(&p);
    return st;
}

static kiln_status draw_photograph(const kiln_exec *x, const kiln_view *view,
                                   const kiln_splat2d *splats, uint64_t n, float *rgba,
                                   kiln_error *err)
{
    kiln_status st;
    uint32_t tiles_x = kiln_view_tiles_x(view), tiles_y = kiln_view_tiles_y(view), n_bands;
    uint64_t *row_pairs = NULL;
    uint32_t *starts = NULL, *counts = NULL, *ranks = NULL;
    KILN_GO(KILN_ALLOC(&row_pairs, tiles_y, "pairs", err));
    KILN_GO(KILN_ALLOC(&starts, tiles_y + 1, "bands", err));
    KILN_GO(KILN_ALLOC(&counts, (uint64_t)tiles_x * tiles_y, "tiles", err));
    kiln_tile_pairs_count_args c = {
        .n = n, .splats = splats, .view = view, .row1 = tiles_y, .row_pairs = row_pairs};
    KILN_GO(RUN(tile_pairs_count, &c));
    n_bands = kiln_tile_bands(row_pairs, tiles_y, starts);
    for (uint32_t b = 0; b < n_bands; b++) {
        uint64_t pairs = 0;
        for (uint32_t r = starts[b]; r < starts[b + 1]; r++) pairs += row_pairs[r];
        free(ranks);
        ranks = NULL;
        KILN_GO(KILN_ALLOC(&ranks, pairs, "pairs", err));
        kiln_tile_pairs_emit_args e = {.n = n,
                                       .splats = splats,
                                       .view = view,
                                       .row0 = starts[b],
                                       .row1 = starts[b + 1],
                                       .capacity = pairs,
                                       .tile_counts = counts,
                                       .ranks = ranks};
        KILN_GO(RUN(tile_pairs_emit, &e));
        kiln_raster_args a = {.n = n,
                              .splats = splats,
                              .view = view,
                              .profile = KILN_PROFILE_INRIA,
                              .row0 = starts[b],
                              .row1 = starts[b + 1],
                              .tile_counts = counts,
                              .ranks = ranks,
                              .n_pairs = pairs,
                              .rgba = rgba + 4 * (size_t)starts[b] * KILN_TILE * view->width};
        KILN_GO(RUN(raster, &a));
    }
done:
    free(ranks), free(counts), free(starts), free(row_pairs);
    return st;
}

static float clamped(float v) { return v < 0 ? 0 : v > 1 ? 1 : v; }

static void average(const float *rgba, uint32_t width, uint32_t height, float *rgb)
{
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            for (uint32_t c = 0; c < 3; c++) {
                float sum = 0;
                for (uint32_t v = 0; v < SAMPLES; v++)
                    for (uint32_t u = 0; u < SAMPLES; u++)
                        sum += clamped(rgba[4 * ((size_t)(y * SAMPLES + v) * width * SAMPLES +
                                                 x * SAMPLES + u) +
                                            c]);
                rgb[3 * ((size_t)y * width + x) + c] = sum / (SAMPLES * SAMPLES);
            }
}

kiln_status kiln_photograph(const kg_splat *splats, uint64_t n, const kg_cam *camera,
                            unsigned threads, float **rgb, kiln_error *err)
{
    kiln_status st;
    const kiln_exec exec = {.device = -1, .threads = threads}, *x = &exec;
    const double origin[3] = {0},
                 k[4] = {(double)camera->fx * SAMPLES, (double)camera->fy * SAMPLES,
                         (double)camera->cx * SAMPLES, (double)camera->cy * SAMPLES};
    double r[9], t[3];
    for (int i = 0; i < 9; i++) r[i] = (double)camera->R[i];
    for (int i = 0; i < 3; i++) t[i] = (double)camera->t[i];
    uint32_t width = (uint32_t)camera->width, height = (uint32_t)camera->height;
    kiln_view view;
    kiln_splat2d *visible = NULL;
    uint64_t n_visible = 0;
    float *rgba = NULL;
    *rgb = NULL;
    kiln_view_init(&view, r, t, origin, k, width * SAMPLES, height * SAMPLES,
                   kiln_profiles[KILN_PROFILE_INRIA].near_m,
                   kiln_profiles[KILN_PROFILE_INRIA].far_m);
    KILN_GO(project(x, splats, n, &view, &visible, &n_visible, err));
    KILN_GO(KILN_ALLOC(&rgba, 4 * (uint64_t)view.width * view.height, "picture", err));
    KILN_GO(draw_photograph(x, &view, visible, n_visible, rgba, err));
    KILN_GO(KILN_ALLOC(rgb, 3 * (uint64_t)width * height, "photo", err));
    average(rgba, width, height, *rgb);
done:
    free(rgba);
    free(visible);
    return st;
}
