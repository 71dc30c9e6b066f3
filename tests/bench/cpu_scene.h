/* cpu_scene -- a scene of stages/generate/inputs.h and all that one view of it comes to, in host
 * memory. */
#ifndef KILN_TESTS_BENCH_CPU_SCENE_H
#define KILN_TESTS_BENCH_CPU_SCENE_H

#include "kernels/ops.h"

enum { CPU_SCENE_SEED = 1, CPU_SCENE_SH = 3, CPU_SCENE_SH_REST = 45 };

typedef struct {
    uint64_t n;
    float *means, *log_scales, *quats, *opacity_logits, *sh0, *shN; /* planes, as in the manifest */
} cpu_scene;

/* cpu_scene_release also after a failure. */
kiln_status cpu_scene_init(cpu_scene *s, uint64_t n, kiln_error *err) KILN_MUST_CHECK;
void cpu_scene_release(cpu_scene *s);

/* The arrays that the operations of one frame pass on, and their arguments. The arguments point
 * into it: it does not move. */
typedef struct {
    kiln_view view;
    uint64_t n_visible, n_pairs;
    kiln_splat2d *found, *splats; /* in row order, in depth order */
    float *depths, *rgba, *plain;
    uint32_t *rows, *order, *tile_counts, *ranks;
    uint64_t *row_pairs, *starts;
    kiln_project_args project;
    kiln_depth_order_args depth_order;
    kiln_tile_pairs_count_args count;
    kiln_tile_pairs_emit_args emit;
    kiln_raster_args raster;
} cpu_frame;

/* Runs everything once with `threads`. cpu_frame_release also after a failure. */
kiln_status cpu_frame_init(cpu_frame *f, const cpu_scene *s, unsigned threads,
                           kiln_error *err) KILN_MUST_CHECK;
void cpu_frame_release(cpu_frame *f);

#endif
