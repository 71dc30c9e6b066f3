/* inputs -- see inputs.cuh. Element i depends on (seed, i) alone: one thread an element. */
#include "tests/bench/inputs.cuh"

#include "stages/generate/inputs.h"

namespace bench
{

namespace
{

constexpr unsigned BLOCK = 256, GRID = 1024;

__device__ uint64_t first() { return uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ uint64_t step() { return uint64_t(gridDim.x) * blockDim.x; }

__global__ void points(uint64_t n, bool clustered, float *means)
{
    for (uint64_t i = first(); i < n; i += step()) {
        float p[3];
        if (clustered)
            kg_clustered_point(SEED, i, p);
        else
            kg_uniform_point(SEED, i, p);
        for (int c = 0; c < 3; c++) means[c * n + i] = p[c];
    }
}

struct planes {
    float *means, *log_scales, *quats, *opacity_logits, *sh0, *shN;
};

__global__ void gaussians(kg_scene s, planes out)
{
    for (uint64_t i = first(); i < s.n; i += step()) {
        kg_splat g;
        kg_splat_at(&s, i, &g);
        for (int c = 0; c < 3; c++) {
            out.means[c * s.n + i] = g.pos[c];
            out.log_scales[c * s.n + i] = g.scale[c];
            out.sh0[c * s.n + i] = g.f_dc[c];
            for (int k = 0; k < SH_REST; k++) out.shN[(3 * k + c) * s.n + i] = g.f_rest[SH_REST * c + k];
        }
        for (int c = 0; c < 4; c++) out.quats[c * s.n + i] = g.rot[c];
        out.opacity_logits[i] = g.opacity;
    }
}

__global__ void picture(int which, float *rgb)
{
    for (uint64_t i = first(); i < uint64_t(WIDTH) * HEIGHT * 3; i += step()) {
        const uint32_t c = uint32_t(i % 3), x = uint32_t(i / 3 % WIDTH), y = uint32_t(i / 3 / WIDTH);
        rgb[i] = float(kg_image(SEED, which, c, x, y)) / 65535.0f;
    }
}

} // namespace

void make_points(array<float> *means, uint64_t n, bool clustered)
{
    points<<<GRID, BLOCK>>>(n, clustered, means->get());
    BENCH_CUDA(cudaGetLastError());
    BENCH_CUDA(cudaDeviceSynchronize());
}

scene::scene(uint64_t count)
    : n(count), means(3 * n), log_scales(3 * n), quats(4 * n), opacity_logits(n), sh0(3 * n), shN(3 * SH_REST * n)
{
    kg_scene s;
    kg_scene_init(&s, n, SEED);
    const planes out = {means.get(), log_scales.get(), quats.get(), opacity_logits.get(), sh0.get(), shN.get()};
    gaussians<<<GRID, BLOCK>>>(s, out);
    BENCH_CUDA(cudaGetLastError());
    BENCH_CUDA(cudaDeviceSynchronize());
}

kiln_view make_view(int k, float near_m, float far_m)
{
    kg_cam c;
    kiln_view v;
    double r[9], t[3];
    kg_camera(k, 16, WIDTH, HEIGHT, &c);
    for (int i = 0; i < 9; i++) r[i] = static_cast<double>(c.R[i]);
    for (int i = 0; i < 3; i++) t[i] = static_cast<double>(c.t[i]);
    const double origin[3] = {0, 0, 0}, intrinsics[4] = {c.fx, c.fy, c.cx, c.cy};
    kiln_view_init(&v, r, t, origin, intrinsics, WIDTH, HEIGHT, near_m, far_m);
    return v;
}

void make_picture(array<float> *rgb, int which)
{
    picture<<<GRID, BLOCK>>>(which, rgb->get());
    BENCH_CUDA(cudaGetLastError());
    BENCH_CUDA(cudaDeviceSynchronize());
}

} // namespace bench
