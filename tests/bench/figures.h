/* figures -- what other programs take for the same inputs, so that a run can say ours beside
 * theirs, and what ours are to take.
 *
 * Measured by us on one NVIDIA H200 (driver 580.159.04, CUDA 13.0), medians of 20 after warm-up by
 * CUDA events; scenes of stages/generate/inputs.h, seed 1, SH 3, 1920 x 1080, camera 0 of 16. The
 * programs, by commit:
 *   simple-knn   camenduru/simple-knn 60f461f           inria       graphdeco-inria/diff-gaussian-rasterization
 *                                                                   59f5f77
 *   gsplat-1.5   nerfstudio-project/gsplat v1.5.3       gsplat-1.6  the same, main, 90d7b4b
 *                                                                   (packed=False both)
 *   HiGS         gsplat-1.6's fp16 inference, tile 8, SH uncompressed: lossy, 65 dB from inria
 *   Faster-GS    nerficg-project/faster-gaussian-splatting 3cb0b75 (inference)
 *   Speedy-Splat j-alex-hanson/speedy-splat-rasterizer 0a4245f
 *   fused-ssim   rahul-goel/fused-ssim 0ac916a: its kernel, which writes the map; "fused-ssim +
 *                mse" is its call and PyTorch's mean squared error, which together give what
 *                metrics gives
 * Where a program was measured as a range its lowest figure stands here. A case is named as the
 * bench names its own. */
#ifndef KILN_TESTS_BENCH_FIGURES_H
#define KILN_TESTS_BENCH_FIGURES_H

#include <stddef.h>

typedef struct {
    const char *what, *program;
    double ms;
} bench_figure;

static const bench_figure bench_figures[] = {
    {"knn uniform 10k", "simple-knn", 1.42},
    {"knn uniform 100k", "simple-knn", 7.30},
    {"knn uniform 1M", "simple-knn", 28.0},
    {"knn uniform 10M", "simple-knn", 377},
    {"knn uniform 100M", "simple-knn", 14884},
    {"knn clustered 10k", "simple-knn", 1.60},
    {"knn clustered 100k", "simple-knn", 9.85},
    {"knn clustered 1M", "simple-knn", 27.6},
    {"knn clustered 10M", "simple-knn", 425},
    {"knn clustered 100M", "simple-knn", 20295},
    {"knn moved 1M", "simple-knn", 1032},
    {"metrics 1080p", "fused-ssim", 0.117},
    {"metrics 1080p", "fused-ssim + mse", 0.192},
    /* projection and SH together */
    {"project 1M", "inria", 0.115},
    {"project 1M", "gsplat-1.5", 0.087},
    {"project 1M", "gsplat-1.6", 0.124},
    {"project 1M", "Faster-GS", 0.135},
    {"project 1M", "HiGS", 0.045},
    {"project 6M", "inria", 0.607},
    {"project 6M", "gsplat-1.5", 0.479},
    {"project 6M", "gsplat-1.6", 0.682},
    {"project 6M", "Faster-GS", 0.600},
    {"project 6M", "HiGS", 0.233},
    {"depth_order 1M", "Faster-GS", 0.058},
    {"depth_order 6M", "Faster-GS", 0.165},
    /* counting, emission, sorts and ranges: ours are tile_lists */
    {"lists 1M", "inria", 1.081},
    {"lists 1M", "gsplat-1.5", 0.550},
    {"lists 1M", "gsplat-1.6", 0.612},
    {"lists 1M", "Faster-GS", 0.326},
    {"lists 1M", "HiGS", 0.180},
    {"lists 6M", "inria", 1.381},
    {"lists 6M", "gsplat-1.5", 0.978},
    {"lists 6M", "gsplat-1.6", 1.017},
    {"lists 6M", "Faster-GS", 0.671},
    {"lists 6M", "HiGS", 0.511},
    {"raster 1M", "inria", 1.270},
    {"raster 1M", "gsplat-1.5", 0.695},
    {"raster 1M", "gsplat-1.6", 0.597},
    {"raster 1M", "Faster-GS", 0.377},
    {"raster 1M", "HiGS", 0.302},
    {"raster 6M", "inria", 2.470},
    {"raster 6M", "gsplat-1.5", 1.465},
    {"raster 6M", "gsplat-1.6", 1.550},
    {"raster 6M", "Faster-GS", 0.642},
    {"raster 6M", "HiGS", 0.876},
    {"frame 1M", "inria", 2.52},
    {"frame 1M", "gsplat-1.5", 1.8},
    {"frame 1M", "gsplat-1.6", 1.6},
    {"frame 1M", "Speedy-Splat", 1.36},
    {"frame 1M", "Faster-GS", 0.94},
    {"frame 1M", "HiGS", 0.555},
    {"frame 6M", "inria", 4.53},
    {"frame 6M", "gsplat-1.5", 3.2},
    {"frame 6M", "gsplat-1.6", 3.5},
    {"frame 6M", "Speedy-Splat", 3.1},
    {"frame 6M", "Faster-GS", 2.01},
    {"frame 6M", "HiGS", 1.66},
    {"project 1M --fast", "HiGS", 0.045},
    {"project 6M --fast", "HiGS", 0.233},
    {"raster 1M --fast", "HiGS", 0.302},
    {"raster 6M --fast", "HiGS", 0.876},
    {"frame 1M --fast", "HiGS", 0.555},
    {"frame 6M --fast", "HiGS", 1.66},
    {"frame exploded 1M", "inria", 4.99},
    {"frame exploded 1M", "gsplat-1.5", 3.75},
    {"frame exploded 1M", "gsplat-1.6", 4.41},
    {"frame exploded 1M", "Faster-GS", 2.89},
    {"frame exploded 6M", "inria", 11.3},
    {"frame exploded 6M", "Faster-GS", 4.30},
};
enum { BENCH_FIGURES = sizeof bench_figures / sizeof *bench_figures };

/* Computes in less than float32. */
static const char bench_lossy[] = "HiGS";

/* Device memory that a program takes at most beside the scene. */
typedef struct {
    const char *what, *program;
    double mib;
} bench_memory;

static const bench_memory bench_memories[] = {
    {"frame 1M", "gsplat-1.5", 222},          {"frame 1M", "gsplat-1.6", 151},
    {"frame 6M", "gsplat-1.5", 661},          {"frame 6M", "gsplat-1.6", 553},
    {"frame exploded 1M", "gsplat-1.5", 845}, {"frame exploded 1M", "gsplat-1.6", 679},
};

/* What our own row is to take: ms, or times what the row `of` took in the same run; and bytes of
 * device memory beside the input, of each item. 0: nothing is asked. The bar is to be met, the aim
 * is worth the work. */
typedef struct {
    const char *what, *of;
    double bar, aim, bytes_each;
} bench_goal;

static const bench_goal bench_goals[] = {
    {"knn uniform 1M", NULL, 0.36, 0.30, 28},
    {"knn uniform 10M", NULL, 2.9, 2.3, 28},
    {"knn uniform 100M", NULL, 31, 25, 28},
    {"knn clustered 1M", NULL, 0.44, 0.36, 28},
    {"knn clustered 10M", NULL, 3.3, 2.8, 28},
    {"knn clustered 100M", NULL, 36, 30, 28},
    {"knn moved 1M", "knn uniform 1M", 1.10, 0, 28},
    {"knn_join 1M", NULL, 1.2, 0.8, 28},
    {"project 1M", NULL, 0.078, 0.062, 0},
    {"project 6M", NULL, 0.36, 0.32, 0},
    {"lists 1M", NULL, 0.20, 0.15, 12},
    {"lists 6M", NULL, 0.45, 0.36, 12},
    {"lists exploded 1M", NULL, 0.60, 0.45, 12},
    {"raster 1M", NULL, 0.22, 0.16, 0},
    {"raster 6M", NULL, 0.38, 0.30, 0},
    {"frame 1M", NULL, 0.50, 0.40, 0},
    {"frame 6M", NULL, 1.20, 1.00, 0},
    {"frame 6M 4K", NULL, 1.9, 1.5, 0},
    {"frame 1M --fast", NULL, 0.36, 0.28, 0},
    {"frame 6M --fast", NULL, 0.95, 0.80, 0},
    {"frame chair", NULL, 0.13, 0.10, 0},
    {"drawn chair", NULL, 0.72, 0.68, 0},
    {"drawn chair as 8-bit", NULL, 0.30, 0.25, 0},
    {"metrics 1080p", NULL, 0.042, 0.033, 0},
};

/* What that machine could do, so that a run shows whether its own is the same. Sorts carry a 32-bit
 * value. */
typedef struct {
    const char *what;
    double value; /* in the bench's unit */
} bench_ceiling;

static const bench_ceiling bench_ceilings[] = {
    {"copy, read and written", 4.29},
    {"fma, float32", 32.6},
    {"sort 32 bits 100k", 0.062},
    {"sort 32 bits 1M", 0.093},
    {"sort 32 bits 10M", 0.396},
    {"sort 32 bits 100M", 3.19},
    {"sort 13 bits 4M", 0.104},
    {"sort 13 bits 10M", 0.198},
    {"scan 1M", 0.015},
    {"scan 6M", 0.028},
    {"a launch alone", 0.011},
};

#endif
