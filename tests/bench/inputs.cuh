/* inputs -- the generated inputs of stages/generate/inputs.h, made on the device in the layout of
 * the operations. */
#ifndef KILN_TESTS_BENCH_INPUTS_CUH
#define KILN_TESTS_BENCH_INPUTS_CUH

#include "kernels/profiles/profiles.h"
#include "kernels/view.h"
#include "tests/bench/timer.cuh"

#include <memory>
#include <string>

namespace bench
{

enum { SEED = 1, SH_DEGREE = 3, SH_REST = 15, WIDTH = 1920, HEIGHT = 1080 };

/* What the others' frames were measured with: figures.h. */
constexpr kiln_profile_id PROFILE = KILN_PROFILE_GSPLAT_16;
constexpr float NEAR_M = 0.2f;

/* [3][n]; moved is added to every coordinate, in float32. */
void make_points(array<float> *means, uint64_t n, bool clustered, float moved);

/* Planes of a layer of n Gaussians (project.h). */
struct scene {
    uint64_t n;
    array<float> means, log_scales, quats, opacity_logits, sh0, shN;
    explicit scene(uint64_t n);
};

/* Of so many per mille the scales are e^4 times what they were. */
void make_scene(scene *s, uint32_t exploded_per_mille);
/* Camera k of 16 on the orbit. */
kiln_view make_view(int k, uint32_t width, uint32_t height);
/* A trained scene of the reference data, and a camera of it that was widened to 1920 x 1080; NULL,
 * and a line that says why, where it cannot be read. which is below bench_real_scenes(). */
std::unique_ptr<scene> real_scene(const char *shared, unsigned which, std::string *name,
                                  kiln_view *view);

/* [HEIGHT][WIDTH][3], the first or second of a pair. */
void make_picture(array<float> *rgb, int which);

} // namespace bench

#endif
