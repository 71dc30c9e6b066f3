/* blend_weights on CUDA: laid out as raster_cuda.cu, with its loads, plan and pixels. A warp draws a quarter of a tile, 8 x 8
 * pixels, two a lane; it looks at 32 pairs at once and walks through those that may reach its quarter. What its lanes draw of a
 * Gaussian is summed over the warp in 32 bits (64 pixels of less than 2^24) and added to the Gaussian's 64 bits by one lane:
 * integers, so that the order in which warps come does not show.
 */
#include "kernels/blend_weights/blend_weights.h"

#include "kernels/blend_weights/blend_weights_math.h"
#include "kernels/cuda.cuh"
#include "kernels/raster/raster_math.h"
#include "kernels/raster/raster_plan_cuda.cuh"
#include "kernels/raster/raster_pixels_cuda.cuh"
#include "kernels/raster/raster_reach.h"

namespace
{

/* What a quarter needs of one Gaussian: two vectors. */
struct alignas(VECTOR) entry {
    float x, y, half_a, b, half_c, opacity, power_min;
    uint32_t rank;
};
static_assert(sizeof(entry) == 2 * VECTOR, "two vectors");

/* An opacity that is NaN becomes 0: its alpha never shows. */
__device__ entry entry_of(const record &r, uint32_t rank)
{
    return {r.x,
            r.y,
            kiln_power_half(r.conic[0]),
            r.conic[1],
            kiln_power_half(r.conic[2]),
            fmaxf(r.opacity, 0.0f),
            kiln_least_power(r.power_min),
            rank};
}

/* Blends one pixel and returns its share. */
__device__ int32_t blend_share(const entry &e, const kiln_blend_rule &rule, float power, pixel *p)
{
    const float alpha = kiln_alpha(e.opacity, power, rule.max_alpha), left = p->t * (1.0f - alpha), w = alpha * p->t;
    if (!kiln_alpha_shows(alpha)) return 0;
    if (left < rule.stop_below) {
        p->x = NAN;
        return 0;
    }
    p->t = left;
    return kiln_blend_units(w);
}

__device__ void blend_entries(const entry *entries, uint32_t n, const kiln_blend_rule &rule, pixel_row *row, uint64_t *weights)
{
    for (uint32_t i = 0; i < n; i++) {
        const entry e = entries[i];
        const float dy = e.y - row->centre_y, slope = kiln_power_slope(e.b, dy), base = kiln_power_base(e.half_c, dy);
        int32_t units = 0;
#pragma unroll
        for (uint32_t k = 0; k < PIXELS; k++) {
            pixel *const p = &row->pixels[k];
            const float power = kiln_power_at(e.half_a, slope, base, e.x - p->x);
            if (power >= e.power_min && power <= 0.0f) units += blend_share(e, rule, power, p);
        }
        if (!__any_sync(ALL_LANES, units > 0)) continue;
#pragma unroll
        for (uint32_t half = LANES / 2; half > 0; half /= 2) units += __shfl_xor_sync(ALL_LANES, units, static_cast<int>(half));
        if (threadIdx.x % LANES == 0) kiln::add64(&weights[e.rank], static_cast<uint64_t>(units));
    }
}

template <bool VECTORS, bool SLAB> __device__ void draw_quarter(const job &j, uint64_t index, entry *entries, uint64_t *weights)
{
    const uint32_t lane = threadIdx.x % LANES;
    const quarter q = quarter_of(j, index);
    pixel_row row = exact::start_row(j, q);
    if (SLAB) resume_row(j, &row);
    rest todo = {q.list, q.length};
    while (todo.count > 0 && __any_sync(ALL_LANES, exact::is_live(row))) {
        const uint32_t rank = lane < todo.count ? todo.ranks[lane] : 0;
        const found f = find_records<load_record<VECTORS>>(
            j, todo, rank, q, [&](const record &r, kiln_raster_reach, uint32_t place) { entries[place] = entry_of(r, rank); });
        __syncwarp();
        blend_entries(entries, f.count, j.rule, &row, weights);
        __syncwarp();
        todo.ranks += LANES;
        todo.count -= min(todo.count, LANES);
    }
    if (SLAB) leave_row(j, row);
    check_rest(j, q.list, q.length, q.length - todo.count);
}

template <bool VECTORS, bool SLAB> __global__ void __launch_bounds__(BLOCK) draw_tiles(const job j, uint64_t *weights)
{
    __shared__ entry entries[WARPS][LANES];
    if (!lists_are_given(j)) return;
    for (uint64_t turn = blockIdx.x; turn < j.tiles; turn += gridDim.x)
        draw_quarter<VECTORS, SLAB>(j, j.order[turn], entries[threadIdx.x / LANES], weights);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------- */
template <bool VECTORS> auto kernel_for(bool slab) -> void (*)(job, uint64_t *)
{
    return slab ? draw_tiles<VECTORS, true> : draw_tiles<VECTORS, false>;
}

} // namespace

extern "C" kiln_status kiln_blend_weights_cuda(const kiln_exec *x, const kiln_blend_weights_args *a, void *work, size_t *work_bytes,
                                               kiln_error *err)
{
    const kiln_raster_args as_raster = kiln_blend_weights_raster(a);
    KILN_TRY(kiln_raster_check(&as_raster, err));
    const kiln::entry entry(x, "blend_weights");
    CUDA_ENTER(entry.guard);
    const uint64_t tiles = uint64_t(a->row1 - a->row0) * kiln_view_tiles_x(a->view);
    kiln_carve c = {static_cast<char *>(work), 0};
    uint64_t *const ends = kiln::take<uint64_t>(&c, tiles);
    uint32_t *const order = kiln::take<uint32_t>(&c, tiles);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("blend_weights", c.used, *work_bytes, err));
    if (tiles == 0) return KILN_OK;
    LAUNCH(plan_tiles, kiln::blocks_for(tiles, PLAN_BLOCK, INT32_MAX), PLAN_BLOCK, 0, tiles, tile_range{0, tiles}, a->tile_counts,
           ends, order);
    const job j = job_of(x, &as_raster, tiles, ends, order);
    void (*const draw)(job, uint64_t *) = j.splats_as_vectors ? kernel_for<true>(a->state) : kernel_for<false>(a->state);
    LAUNCH(draw, kiln::blocks_for(tiles, 1, INT32_MAX), BLOCK, 0, j, a->weights);
    return KILN_OK;
}
