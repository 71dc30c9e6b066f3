/* exact_raster -- see exact.cuh: one thread a pixel walks its tile's list from front to back, with
 * the arithmetic that is pinned for all siblings (raster_math.h) and nothing left out. */
#include "tests/bench/exact.cuh"

#include "kernels/cuda.cuh"
#include "kernels/raster/raster_math.h"

namespace bench
{

namespace
{

constexpr unsigned BLOCK = 256;

struct drawing {
    const kiln_splat2d *splats;
    const uint32_t *ranks;
    const uint64_t *begins; /* of each tile's list; [tiles + 1] */
    float *rgba;
    uint32_t width, height, tiles_x;
    float background[3];
    kiln_blend_rule rule;
    uint64_t *blends;
};

__global__ void draw_pixels(const drawing d)
{
    uint64_t blends = 0;
    for (uint64_t at = kiln::thread_index(); at < uint64_t(d.width) * d.height;
         at += kiln::thread_count()) {
        const uint32_t x = static_cast<uint32_t>(at % d.width),
                       y = static_cast<uint32_t>(at / d.width);
        const uint64_t tile = uint64_t(y / KILN_TILE) * d.tiles_x + x / KILN_TILE;
        float t = 1.0f, rgb[3] = {0, 0, 0};
        for (uint64_t i = d.begins[tile]; i < d.begins[tile + 1]; i++) {
            const kiln_splat2d &s = d.splats[d.ranks[i]];
            const float power = kiln_power(s.conic[0], s.conic[1], s.conic[2],
                                           kiln_power_offset(s.x, x), kiln_power_offset(s.y, y));
            if (!(power >= kiln_least_power(s.power_min) && power <= 0.0f)) continue;
            const float alpha = kiln_alpha(s.opacity, power, d.rule.max_alpha);
            if (!kiln_alpha_shows(alpha)) continue;
            const float left = t * (1.0f - alpha), w = alpha * t;
            if (left < d.rule.stop_below) break;
            for (int c = 0; c < 3; c++) rgb[c] += s.rgb[c] * w;
            t = left;
            blends++;
        }
        for (int c = 0; c < 3; c++) d.rgba[4 * at + c] = rgb[c] + t * d.background[c];
        d.rgba[4 * at + 3] = 1.0f - t;
    }
    kiln::add64(d.blends, blends);
}

__global__ void count_different(uint64_t n, const float *a, const float *b, uint64_t *wrong)
{
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count())
        if (__float_as_uint(a[i]) != __float_as_uint(b[i])) kiln::add64(wrong, 1);
}

} // namespace

finding check_raster(const std::string &what, const kiln_raster_args &a, uint64_t *blends)
{
    const uint32_t tiles_x = kiln_view_tiles_x(a.view), tiles_y = kiln_view_tiles_y(a.view);
    const uint64_t tiles = uint64_t(tiles_x) * tiles_y,
                   floats = uint64_t(4) * a.view->width * a.view->height;
    array<uint64_t> begins(tiles + 1), counts(2);
    array<float> rgba(floats);
    begins.from_host(list_begins(a.tile_counts, tiles).data());
    counts.fill(0);
    rgba.fill(0xA5);
    drawing d = {a.splats,       a.ranks, begins.get(), rgba.get(), a.view->width,
                 a.view->height, tiles_x, {},           {},         counts.get()};
    for (int c = 0; c < 3; c++) d.background[c] = a.background[c];
    d.rule = kiln_blend_rule_of(a.profile);
    draw_pixels<<<kiln::blocks_for(floats / 4, BLOCK, INT32_MAX), BLOCK>>>(d);
    BENCH_CUDA(cudaGetLastError());
    count_different<<<kiln::blocks_for(floats, BLOCK), BLOCK>>>(floats, rgba.get(), a.rgba,
                                                                counts.get() + 1);
    BENCH_CUDA(cudaGetLastError());
    const std::vector<uint64_t> found = counts.to_host();
    *blends = found[0];
    return {what, "floats differ from one thread a pixel", floats, found[1]};
}

} // namespace bench
