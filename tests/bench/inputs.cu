/* inputs -- see inputs.cuh. Element i depends on (seed, i) alone: one thread an element. */
#include "tests/bench/inputs.cuh"

#include "stages/generate/inputs.h"
#include "tests/bench/real_scene.h"

#include <stdio.h>
#include <stdlib.h>

namespace bench
{

namespace
{

constexpr unsigned BLOCK = 256, GRID = 1024;

__device__ uint64_t first() { return uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ uint64_t step() { return uint64_t(gridDim.x) * blockDim.x; }

__global__ void points(uint64_t n, bool clustered, float moved, float *means)
{
    for (uint64_t i = first(); i < n; i += step()) {
        float p[3];
        if (clustered)
            kg_clustered_point(SEED, i, p);
        else
            kg_uniform_point(SEED, i, p);
        for (int c = 0; c < 3; c++) means[c * n + i] = p[c] + moved;
    }
}

struct planes {
    float *means, *log_scales, *quats, *opacity_logits, *sh0, *shN;
};

__global__ void gaussians(kg_scene s, uint32_t exploded_per_mille, planes out)
{
    for (uint64_t i = first(); i < s.n; i += step()) {
        kg_splat g;
        kg_splat_at(&s, i, &g);
        kg_explode(&s, i, exploded_per_mille, &g);
        for (int c = 0; c < 3; c++) {
            out.means[c * s.n + i] = g.pos[c];
            out.log_scales[c * s.n + i] = g.scale[c];
            out.sh0[c * s.n + i] = g.f_dc[c];
            for (int k = 0; k < SH_REST; k++)
                out.shN[(3 * k + c) * s.n + i] = g.f_rest[SH_REST * c + k];
        }
        for (int c = 0; c < 4; c++) out.quats[c * s.n + i] = g.rot[c];
        out.opacity_logits[i] = g.opacity;
    }
}

__global__ void picture(int which, float *rgb)
{
    for (uint64_t i = first(); i < uint64_t(WIDTH) * HEIGHT * 3; i += step()) {
        const uint32_t c = uint32_t(i % 3), x = uint32_t(i / 3 % WIDTH),
                       y = uint32_t(i / 3 / WIDTH);
        rgb[i] = float(kg_image(SEED, which, c, x, y)) / 65535.0f;
    }
}

} // namespace

void make_points(array<float> *means, uint64_t n, bool clustered, float moved)
{
    points<<<GRID, BLOCK>>>(n, clustered, moved, means->get());
    BENCH_CUDA(cudaGetLastError());
    BENCH_CUDA(cudaDeviceSynchronize());
}

scene::scene(uint64_t count)
    : n(count), means(3 * n), log_scales(3 * n), quats(4 * n), opacity_logits(n), sh0(3 * n),
      shN(3 * SH_REST * n)
{
}

void make_scene(scene *s, uint32_t exploded_per_mille)
{
    kg_scene source;
    kg_scene_init(&source, s->n, SEED);
    const planes out = {s->means.get(),          s->log_scales.get(), s->quats.get(),
                        s->opacity_logits.get(), s->sh0.get(),        s->shN.get()};
    gaussians<<<GRID, BLOCK>>>(source, exploded_per_mille, out);
    BENCH_CUDA(cudaGetLastError());
    BENCH_CUDA(cudaDeviceSynchronize());
}

namespace
{

kiln_view view_of(const float rotation[9], const float translation[3], const float intrinsics[4],
                  uint32_t width, uint32_t height)
{
    const double origin[3] = {0, 0, 0};
    kiln_view v;
    double r[9], t[3], k[4];
    for (int i = 0; i < 9; i++) r[i] = static_cast<double>(rotation[i]);
    for (int i = 0; i < 3; i++) t[i] = static_cast<double>(translation[i]);
    for (int i = 0; i < 4; i++) k[i] = static_cast<double>(intrinsics[i]);
    kiln_view_init(&v, r, t, origin, k, width, height, NEAR_M, kiln_profiles[PROFILE].far_m);
    return v;
}

} // namespace

kiln_view make_view(int k, uint32_t width, uint32_t height)
{
    kg_cam c;
    kg_camera(k, 16, static_cast<int>(width), static_cast<int>(height), &c);
    const float intrinsics[4] = {c.fx, c.fy, c.cx, c.cy};
    return view_of(c.R, c.t, intrinsics, width, height);
}

std::unique_ptr<scene> real_scene(const char *shared, unsigned which, std::string *name,
                                  kiln_view *view)
{
    const uint32_t width = 1920, height = 1080;
    bench_real_scene r;
    kiln_error err = {};
    if (bench_real_scene_read(shared, which, &r, &err) != KILN_OK) {
        printf("not drawn: %s\n", err.msg);
        return nullptr;
    }
    std::unique_ptr<scene> s(new scene(r.n));
    const float *from = r.planes;
    for (const array<float> *plane :
         {&s->means, &s->log_scales, &s->quats, &s->opacity_logits, &s->sh0, &s->shN}) {
        plane->from_host(from);
        from += plane->size();
    }
    const float intrinsics[4] = {r.focal * height, r.focal * height, 0.5f * width, 0.5f * height};
    *name = r.name;
    *view = view_of(r.rotation, r.translation, intrinsics, width, height);
    free(r.planes);
    return s;
}

void make_picture(array<float> *rgb, int which)
{
    picture<<<GRID, BLOCK>>>(which, rgb->get());
    BENCH_CUDA(cudaGetLastError());
    BENCH_CUDA(cudaDeviceSynchronize());
}

} // namespace bench
