/* cpu_scene -- see cpu_scene.h. The view is the bench's own: camera 0 of 16, 1920 x 1080, profile
 * gsplat-1.6, near 0.2. */
#include "tests/bench/cpu_scene.h"

#include "base/memory.h"
#include "stages/generate/inputs.h"
#include "tests/bench/cpu_bench.h"

#include <stdlib.h>

enum { WIDTH = 1920, HEIGHT = 1080 };
static const kiln_profile_id profile = KILN_PROFILE_GSPLAT_16;

static void put_splat(cpu_scene *s, uint64_t i, const kg_splat *g)
{
    for (uint64_t c = 0; c < 3; c++) {
        s->means[c * s->n + i] = g->pos[c];
        s->log_scales[c * s->n + i] = g->scale[c];
        s->sh0[c * s->n + i] = g->f_dc[c];
        for (uint64_t k = 0; k < CPU_SCENE_SH_REST / 3; k++)
            s->shN[(3 * k + c) * s->n + i] = g->f_rest[CPU_SCENE_SH_REST / 3 * c + k];
    }
    for (uint64_t c = 0; c < 4; c++) s->quats[c * s->n + i] = g->rot[c];
    s->opacity_logits[i] = g->opacity;
}

kiln_status cpu_scene_init(cpu_scene *s, uint64_t n, kiln_error *err)
{
    kg_scene kg;
    *s = (cpu_scene){.n = n};
    KILN_TRY(KILN_ALLOC(&s->means, 3 * n, "means", err));
    KILN_TRY(KILN_ALLOC(&s->log_scales, 3 * n, "scales", err));
    KILN_TRY(KILN_ALLOC(&s->quats, 4 * n, "rotations", err));
    KILN_TRY(KILN_ALLOC(&s->opacity_logits, n, "opacities", err));
    KILN_TRY(KILN_ALLOC(&s->sh0, 3 * n, "colours", err));
    KILN_TRY(KILN_ALLOC(&s->shN, CPU_SCENE_SH_REST * n, "colours", err));
    kg_scene_init(&kg, n, CPU_SCENE_SEED);
#pragma omp parallel for
    for (int64_t i = 0; i < (int64_t)n; i++) {
        kg_splat g;
        kg_splat_at(&kg, (uint64_t)i, &g);
        put_splat(s, (uint64_t)i, &g);
    }
    return KILN_OK;
}

void cpu_scene_release(cpu_scene *s)
{
    free(s->means);
    free(s->log_scales);
    free(s->quats);
    free(s->opacity_logits);
    free(s->sh0);
    free(s->shN);
    *s = (cpu_scene){0};
}

static kiln_view first_camera(void)
{
    kg_cam c;
    kiln_view v;
    double r[9], t[3];
    kg_camera(0, 16, WIDTH, HEIGHT, &c);
    for (int i = 0; i < 9; i++) r[i] = (double)c.R[i];
    for (int i = 0; i < 3; i++) t[i] = (double)c.t[i];
    const double origin[3] = {0, 0, 0}, intrinsics[4] = {c.fx, c.fy, c.cx, c.cy};
    kiln_view_init(&v, r, t, origin, intrinsics, WIDTH, HEIGHT, 0.2f, kiln_profiles[profile].far_m);
    return v;
}

static kiln_status run(kiln_op_id op, const void *args, unsigned threads, kiln_error *err)
{
    cpu_op o = {.op = op, .args = args, .threads = threads};
    kiln_status st;
    KILN_GO(cpu_prepare_op(&o, err));
    KILN_GO(cpu_run_op(&o, err));
done:
    free(o.work);
    return st;
}

static kiln_status project(cpu_frame *f, const cpu_scene *s, unsigned threads, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC_UNSET(&f->found, s->n, "splats", err));
    f->project = (kiln_project_args){.n = s->n,
                                     .means = s->means,
                                     .log_scales = s->log_scales,
                                     .quats = s->quats,
                                     .opacity_logits = s->opacity_logits,
                                     .sh0 = s->sh0,
                                     .shN = s->shN,
                                     .sh_degree = CPU_SCENE_SH,
                                     .view = &f->view,
                                     .profile = profile,
                                     .splats = f->found,
                                     .n_visible = &f->n_visible};
    return run(KILN_OP_project, &f->project, threads, err);
}

static kiln_status put_in_order(cpu_frame *f, unsigned threads, kiln_error *err)
{
    const uint64_t n = f->n_visible;
    KILN_TRY(KILN_ALLOC(&f->depths, n, "depths", err));
    KILN_TRY(KILN_ALLOC(&f->rows, n, "rows", err));
    KILN_TRY(KILN_ALLOC(&f->order, n, "order", err));
    KILN_TRY(KILN_ALLOC(&f->splats, n, "splats", err));
    for (uint64_t i = 0; i < n; i++) {
        f->depths[i] = f->found[i].depth;
        f->rows[i] = f->found[i].row;
    }
    f->depth_order = (kiln_depth_order_args){
        .n = n, .depths = f->depths, .source_rows = f->rows, .order = f->order};
    KILN_TRY(run(KILN_OP_depth_order, &f->depth_order, threads, err));
    for (uint64_t i = 0; i < n; i++) f->splats[i] = f->found[f->order[i]];
    return KILN_OK;
}

static kiln_status list_pairs(cpu_frame *f, unsigned threads, kiln_error *err)
{
    const uint32_t tiles_y = kiln_view_tiles_y(&f->view);
    const uint64_t tiles = (uint64_t)tiles_y * kiln_view_tiles_x(&f->view);
    KILN_TRY(KILN_ALLOC(&f->row_pairs, tiles_y, "pairs of rows", err));
    KILN_TRY(KILN_ALLOC(&f->tile_counts, tiles, "pairs of tiles", err));
    KILN_TRY(KILN_ALLOC(&f->starts, tiles, "starts of tiles", err));
    f->count = (kiln_tile_pairs_count_args){.n = f->n_visible,
                                            .splats = f->splats,
                                            .view = &f->view,
                                            .row1 = tiles_y,
                                            .row_pairs = f->row_pairs};
    KILN_TRY(run(KILN_OP_tile_pairs_count, &f->count, threads, err));
    for (uint32_t y = 0; y < tiles_y; y++) f->n_pairs += f->row_pairs[y];
    KILN_TRY(KILN_ALLOC(&f->ranks, f->n_pairs, "pairs", err));
    f->emit = (kiln_tile_pairs_emit_args){.n = f->n_visible,
                                          .splats = f->splats,
                                          .view = &f->view,
                                          .row1 = tiles_y,
                                          .capacity = f->n_pairs,
                                          .tile_counts = f->tile_counts,
                                          .ranks = f->ranks};
    KILN_TRY(run(KILN_OP_tile_pairs_emit, &f->emit, threads, err));
    for (uint64_t i = 1; i < tiles; i++) f->starts[i] = f->starts[i - 1] + f->tile_counts[i - 1];
    return KILN_OK;
}

kiln_status cpu_frame_init(cpu_frame *f, const cpu_scene *s, unsigned threads, kiln_error *err)
{
    *f = (cpu_frame){.view = first_camera()};
    KILN_TRY(project(f, s, threads, err));
    KILN_TRY(put_in_order(f, threads, err));
    KILN_TRY(list_pairs(f, threads, err));
    KILN_TRY(KILN_ALLOC(&f->rgba, (uint64_t)4 * WIDTH * HEIGHT, "a picture", err));
    KILN_TRY(KILN_ALLOC(&f->plain, (uint64_t)4 * WIDTH * HEIGHT, "a picture", err));
    f->raster = (kiln_raster_args){.n = f->n_visible,
                                   .splats = f->splats,
                                   .view = &f->view,
                                   .profile = profile,
                                   .row1 = kiln_view_tiles_y(&f->view),
                                   .tile_counts = f->tile_counts,
                                   .ranks = f->ranks,
                                   .n_pairs = f->n_pairs,
                                   .rgba = f->rgba};
    return run(KILN_OP_raster, &f->raster, threads, err);
}

void cpu_frame_release(cpu_frame *f)
{
    void *const owned[] = {f->found, f->splats,      f->depths, f->rgba,      f->plain, f->rows,
                           f->order, f->tile_counts, f->ranks,  f->row_pairs, f->starts};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
    *f = (cpu_frame){0};
}
