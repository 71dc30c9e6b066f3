/* blend_weights on CUDA: laid out as raster_cuda.cu, with its loads, plan and pixels. A warp draws
 * a quarter of a tile, 8 x 8 pixels, two a lane; it looks at 32 pairs at once and walks through
 * those that may reach its quarter. What its lanes draw of a Gaussian is summed over the warp in 32
 * bits (64 pixels of less than 2^24) and added to the Gaussian's 64 bits by one lane: integers, so
 * that the order in which warps come does not show. Peaks and sums of alphas come and go likewise,
 * in kernels of their own (`form`): the one for shares alone has no further instruction.
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

/* What a call asks for besides shares: nothing; peaks; alphas, and peaks if there are any. */
enum form { SHARES, PEAKS, REACHES };

/* Where sums go, and which pixels count. */
struct totals {
    uint64_t *weights;
    uint32_t *peaks;
    uint64_t *alphas;
    const uint8_t *mask;
};

/* Of the pixels of a thread: their places, which p.x no longer has where they have stopped, and
 * whether they count. */
struct places {
    float x[PIXELS];
    bool count[PIXELS];
};

/* Blends one pixel whose alpha shows and returns its share. */
__device__ int32_t blend_share(float alpha, const kiln_blend_rule &rule, pixel *p)
{
    const float left = p->t * (1.0f - alpha), w = alpha * p->t;
    if (left < rule.stop_below) {
        p->x = NAN;
        return 0;
    }
    p->t = left;
    return kiln_blend_units(w);
}

template <class T> __device__ T sum_of_warp(T v)
{
#pragma unroll
    for (uint32_t half = LANES / 2; half > 0; half /= 2)
        v += __shfl_xor_sync(ALL_LANES, v, static_cast<int>(half));
    return v;
}

__device__ int32_t most_of_warp(int32_t v)
{
#pragma unroll
    for (uint32_t half = LANES / 2; half > 0; half /= 2)
        v = max(v, __shfl_xor_sync(ALL_LANES, v, static_cast<int>(half)));
    return v;
}

template <form F>
__device__ void blend_entries(const entry *entries, uint32_t n, const kiln_blend_rule &rule,
                              pixel_row *row, const places &at, const totals &to)
{
    for (uint32_t i = 0; i < n; i++) {
        const entry e = entries[i];
        const float dy = e.y - row->centre_y, slope = kiln_power_slope(e.b, dy),
                    base = kiln_power_base(e.half_c, dy);
        int32_t units = 0, peak = 0, alphas = 0;
#pragma unroll
        for (uint32_t k = 0; k < PIXELS; k++) {
            pixel *const p = &row->pixels[k];
            const float power =
                kiln_power_at(e.half_a, slope, base, e.x - (F == REACHES ? at.x[k] : p->x));
            if (!(power >= e.power_min && power <= 0.0f)) continue;
            const float alpha = kiln_alpha(e.opacity, power, rule.max_alpha);
            if (!kiln_alpha_shows(alpha)) continue;
            if (F == REACHES && at.count[k]) alphas += kiln_blend_units(alpha);
            if (F == REACHES && isnan(p->x)) continue;
            const int32_t share = blend_share(alpha, rule, p);
            units += share;
            if (F != SHARES) peak = max(peak, share);
        }
        if (!__any_sync(ALL_LANES, units > 0 || alphas > 0)) continue;
        units = sum_of_warp(units);
        if (F != SHARES) peak = most_of_warp(peak);
        if (F == REACHES) alphas = sum_of_warp(alphas);
        if (threadIdx.x % LANES != 0) continue;
        if (F == SHARES || units > 0)
            kiln::add64(&to.weights[e.rank], static_cast<uint64_t>(units));
        if (F != SHARES && to.peaks && peak > 0)
            atomicMax(&to.peaks[e.rank], static_cast<uint32_t>(peak));
        if (F == REACHES && alphas > 0)
            kiln::add64(&to.alphas[e.rank], static_cast<uint64_t>(alphas));
    }
}

/* Pixels that the mask leaves out have stopped. Those outside of the picture have no place. */
template <form F> __device__ places place_row(const job &j, const uint8_t *mask, pixel_row *row)
{
    places at;
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) {
        const uint32_t x = row->x + k * ACROSS;
        const bool inside = x < j.width && row->y < j.height;
        at.count[k] = inside && (!mask || mask[uint64_t(row->y - j.y0) * j.width + x] != 0);
        if (F == REACHES) at.x[k] = inside ? -kiln_power_offset(0.0f, x) : NAN;
        if (!at.count[k]) row->pixels[k].x = NAN;
    }
    return at;
}

template <bool VECTORS, bool SLAB, form F>
__device__ void draw_quarter(const job &j, uint64_t index, entry *entries, const totals &to)
{
    const uint32_t lane = threadIdx.x % LANES;
    const quarter q = quarter_of(j, index);
    pixel_row row = exact::start_row(j, q);
    places at = {};
    if (SLAB) resume_row(j, &row);
    if (F == REACHES || to.mask) at = place_row<F>(j, to.mask, &row);
    rest todo = {q.list, q.length};
    while (todo.count > 0 && (F == REACHES || __any_sync(ALL_LANES, exact::is_live(row)))) {
        const uint32_t rank = lane < todo.count ? todo.ranks[lane] : 0;
        const found f = find_records<load_record<VECTORS>>(
            j, todo, rank, q,
            [&](const record &r, uint32_t place) { entries[place] = entry_of(r, rank); });
        __syncwarp();
        blend_entries<F>(entries, f.count, j.rule, &row, at, to);
        __syncwarp();
        todo.ranks += LANES;
        todo.count -= min(todo.count, LANES);
    }
    if (SLAB) leave_row(j, row);
    check_rest(j, q.list, q.length, q.length - todo.count);
}

template <bool VECTORS, bool SLAB, form F>
__global__ void __launch_bounds__(BLOCK) draw_tiles(const job j, const totals to)
{
    __shared__ entry entries[WARPS][LANES];
    if (!lists_are_given(j)) return;
    for (uint64_t turn = blockIdx.x; turn < j.tiles; turn += gridDim.x)
        draw_quarter<VECTORS, SLAB, F>(j, j.order[turn], entries[threadIdx.x / LANES], to);
}

/* ---- launchers ------------------------------------------------------------------------------- */
using draw_kernel = void (*)(job, totals);

template <bool VECTORS, bool SLAB> draw_kernel kernel_of(const kiln_blend_weights_args *a)
{
    if (a->alphas) return draw_tiles<VECTORS, SLAB, REACHES>;
    return a->peaks ? draw_tiles<VECTORS, SLAB, PEAKS> : draw_tiles<VECTORS, SLAB, SHARES>;
}

template <bool VECTORS> draw_kernel kernel_for(const kiln_blend_weights_args *a)
{
    return a->state ? kernel_of<VECTORS, true>(a) : kernel_of<VECTORS, false>(a);
}

} // namespace

extern "C" kiln_status kiln_blend_weights_cuda(const kiln_exec *x, const kiln_blend_weights_args *a,
                                               void *work, size_t *work_bytes, kiln_error *err)
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
    LAUNCH(plan_tiles, plan_blocks(tiles), PLAN_BLOCK, 0,
           plan_of(tiles, a->tile_counts, ends, order));
    const job j = job_of(x, &as_raster, tiles, ends, order);
    const draw_kernel draw = j.splats_as_vectors ? kernel_for<true>(a) : kernel_for<false>(a);
    LAUNCH(draw, kiln::blocks_for(tiles, 1, INT32_MAX), BLOCK, 0, j,
           totals{a->weights, a->peaks, a->alphas, a->mask});
    return KILN_OK;
}
