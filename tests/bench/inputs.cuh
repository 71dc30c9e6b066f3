/* inputs -- the generated inputs of stages/generate/inputs.h, made on the device in the layout of the operations. */
#ifndef KILN_TESTS_BENCH_INPUTS_CUH
#define KILN_TESTS_BENCH_INPUTS_CUH

#include "kernels/view.h"
#include "tests/bench/bench.cuh"

namespace bench
{

enum { SEED = 1, SH_DEGREE = 3, SH_REST = 15, WIDTH = 1920, HEIGHT = 1080 };

/* [3][n] */
void make_points(array<float> *means, uint64_t n, bool clustered);

/* Planes of a layer of n Gaussians (project.h). */
struct scene {
    uint64_t n;
    array<float> means, log_scales, quats, opacity_logits, sh0, shN;
    explicit scene(uint64_t n);
};

/* Camera k of 16 on the orbit, 1920 x 1080. */
kiln_view make_view(int k, float near_m, float far_m);

/* [HEIGHT][WIDTH][3], the first or second of a pair. */
void make_picture(array<float> *rgb, int which);

} // namespace bench

#endif
