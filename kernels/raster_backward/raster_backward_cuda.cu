/* raster_backward on CUDA: as raster, a block of four warps takes a tile, each warp a quarter of it, 8 x 8 pixels, two a thread;
 * none waits for another. A warp looks at 32 pairs at once, a lane each, and walks through those that may reach its quarter.
 *
 * What its 64 pixels add to a Gaussian is summed within the warp as integers, 26 bits and the rest apart so that the hardware's
 * 32-bit reductions do it, then added to the sums of all warps with one atomic for each plane. Integers add up to the same in any
 * order.
 */
#include "kernels/raster_backward/raster_backward.h"

#include "kernels/cuda.cuh"
#include "kernels/raster/raster_plan_cuda.cuh"
#include "kernels/raster/raster_reach.h"
#include "kernels/raster_backward/raster_backward_math.h"

namespace
{

enum : uint32_t {
    WARP = 32,
    WARPS = 4, /* quarters of a tile */
    SWEEP_BLOCK = WARP * WARPS,
    BLOCK = 256,
    ACROSS_QUARTER = 4, /* lanes; the second pixel of a lane is as many to the right */
    PIXELS = 2,
    LOW_BITS = 26,
};
constexpr uint32_t ALL = 0xffffffffu;

struct sweep {
    kiln_raster_backward_args a; /* its view is the host's: not to be read here */
    const uint64_t *ends;        /* of the tiles' lists */
    const uint32_t *order;       /* of the tiles */
    const kiln_backward_most *most;
    int64_t *sums; /* [KILN_BACKWARD_PLANES][n_rows] */
    uint64_t *violation;
    uint64_t tiles, pixels;
    uint32_t width, height, tiles_x;
    kiln_blend_rule rule;
};

/* What a quarter needs of one Gaussian. */
struct entry {
    float x, y, half_a, b, half_c, opacity, power_min, rgb[3];
    uint32_t row;
    kiln_backward_units units;
};

struct pixel {
    float x, t, rest, residual[3]; /* t: transmittance; 0: the pixel has stopped */
};

/* ---- the largest magnitudes -------------------------------------------------------------------------------------------- */
__device__ void leave_most(uint32_t *to, uint32_t mine)
{
    for (int step = WARP / 2; step > 0; step /= 2) mine = kiln_most(mine, __shfl_xor_sync(ALL, mine, step));
    if (threadIdx.x % WARP == 0) atomicMax(to, mine);
}

__global__ void __launch_bounds__(BLOCK) find_most(const sweep s, kiln_backward_most *most)
{
    uint32_t residual = 0, colour = kiln_bits_of(1.0f);
    for (int k = 0; k < 3; k++) colour = kiln_most(colour, kiln_magnitude(s.a.background[k]));
    for (uint64_t i = kiln::thread_index(); i < s.pixels; i += kiln::thread_count()) {
        const kiln_backward_pixel p = kiln_backward_start(s.a.rgba + 4 * i, s.a.target + 4 * i, s.a.background);
        for (int k = 0; k < 3; k++) residual = kiln_most(residual, kiln_magnitude(p.residual[k]));
    }
    for (uint64_t i = kiln::thread_index(); i < s.a.n; i += kiln::thread_count())
        for (int k = 0; k < 3; k++) colour = kiln_most(colour, kiln_magnitude(s.a.splats[i].rgb[k]));
    leave_most(&most->residual, residual);
    leave_most(&most->colour, colour);
}

/* ---- lists ------------------------------------------------------------------------------------------------------------- */
/* false: the lists may lie outside of ranks, so nothing is read. */
__device__ bool lists_are_given(const sweep &s)
{
    if (s.ends[s.tiles - 1] <= s.a.n_pairs) return true;
    if (kiln::thread_index() == 0)
        kiln::leave_violation(s.violation, KILN_VIOLATION(KILN_VIOLATION_RASTER_PAIRS, s.ends[s.tiles - 1]));
    return false;
}

/* A rank that no Gaussian has is bad wherever it stands. */
__global__ void __launch_bounds__(BLOCK) check_ranks(const sweep s)
{
    if (!lists_are_given(s)) return;
    for (uint64_t i = kiln::thread_index(); i < s.ends[s.tiles - 1]; i += kiln::thread_count())
        if (s.a.ranks[i] >= s.a.n) kiln::leave_violation(s.violation, KILN_VIOLATION(KILN_VIOLATION_RASTER_RANK, i));
}

/* Puts those of the next pairs that may reach a quarter into entries, in their order. Returns how many. */
__device__ uint32_t find(const sweep &s, const uint32_t *ranks, uint32_t count, float corner_x, float corner_y, entry *entries)
{
    const uint32_t lane = threadIdx.x % WARP, rank = lane < count ? ranks[lane] : UINT32_MAX;
    kiln_splat2d splat;
    bool hit = false;
    if (rank < s.a.n) {
        splat = s.a.splats[rank];
        hit = kiln_quarter_reach(splat.x, splat.y, splat.conic, splat.power_min, corner_x, corner_y) != KILN_REACH_NONE;
    }
    const uint32_t hits = __ballot_sync(ALL, hit);
    if (hit) {
        entry *const e = &entries[__popc(static_cast<int>(hits & ((1u << lane) - 1)))];
        e->x = splat.x;
        e->y = splat.y;
        e->half_a = kiln_power_half(splat.conic[0]);
        e->b = splat.conic[1];
        e->half_c = kiln_power_half(splat.conic[2]);
        e->opacity = splat.opacity;
        e->power_min = kiln_least_power(splat.power_min);
        for (int k = 0; k < 3; k++) e->rgb[k] = splat.rgb[k];
        e->row = splat.row;
        e->units = kiln_backward_units_of(&splat, *s.most);
    }
    return static_cast<uint32_t>(__popc(static_cast<int>(hits)));
}

/* ---- pixels ------------------------------------------------------------------------------------------------------------ */
/* A contribution in units: rounded to even, like the CPU's. */
__device__ int64_t units(float v, float factor) { return __float2ll_rn(kiln_backward_limited(v, factor)); }

/* The sum over a warp of what is at most 2^41. All lanes have it. */
__device__ int64_t sum_warp(int64_t v)
{
#if __CUDA_ARCH__ >= 800
    const uint32_t low = __reduce_add_sync(ALL, static_cast<uint32_t>(v) & ((1u << LOW_BITS) - 1));
    const int32_t high = __reduce_add_sync(ALL, static_cast<int32_t>(v >> LOW_BITS));
    return (static_cast<int64_t>(high) << LOW_BITS) + low;
#else
    for (int step = WARP / 2; step > 0; step /= 2) v += __shfl_xor_sync(ALL, v, step);
    return v;
#endif
}

/* One pixel, as the CPU sibling takes it. Returns whether the Gaussian is drawn, with its terms. */
__device__ bool blend(const entry &e, const kiln_blend_rule &rule, float slope, float base, float dy, pixel *p,
                      float terms[KILN_BACKWARD_PLANES])
{
    const float dx = e.x - p->x, power = kiln_power_at(e.half_a, slope, base, dx);
    if (!(power >= e.power_min && power <= 0.0f && p->t > 0.0f)) return false;
    const float raw = e.opacity * kiln_expf_normal(power), alpha = raw > rule.max_alpha ? rule.max_alpha : raw;
    const float left = p->t * (1.0f - alpha);
    if (!kiln_alpha_shows(alpha)) return false;
    if (left < rule.stop_below) {
        p->t = 0.0f;
        return false;
    }
    const float w = alpha * p->t;
    const float gd = kiln_backward_dot(p->residual, e.rgb[0], e.rgb[1], e.rgb[2]);
    p->rest = kiln_fmaf(-w, gd, p->rest);
    p->t = left;
    kiln_backward_terms(raw > rule.max_alpha ? 0.0f : kiln_backward_power(w, gd, p->rest, alpha), dx, dy, w, p->residual, terms);
    return true;
}

__device__ void add_sums(const sweep &s, const entry &e, const int64_t mine[KILN_BACKWARD_PLANES])
{
    const uint32_t lane = threadIdx.x % WARP;
    int64_t own = 0;
#pragma unroll
    for (uint32_t k = 0; k < KILN_BACKWARD_PLANES; k++) {
        const int64_t sum = sum_warp(mine[k]);
        if (lane == k) own = sum;
    }
    if (lane >= KILN_BACKWARD_PLANES || own == 0) return;
    if (lane >= KILN_BACKWARD_RED && !(e.rgb[lane - KILN_BACKWARD_RED] > 0.0f)) return; /* cut by project */
    kiln::add64(reinterpret_cast<uint64_t *>(s.sums) + uint64_t(lane) * s.a.n_rows + e.row, static_cast<uint64_t>(own));
}

__device__ void take_entry(const sweep &s, const entry &e, float centre_y, pixel *pixels)
{
    const float dy = e.y - centre_y, slope = kiln_power_slope(e.b, dy), base = kiln_power_base(e.half_c, dy);
    int64_t mine[KILN_BACKWARD_PLANES] = {};
    float factors[KILN_BACKWARD_PLANES];
    bool drawn = false;
    kiln_backward_factors(e.units, factors);
#pragma unroll
    for (uint32_t i = 0; i < PIXELS; i++) {
        float terms[KILN_BACKWARD_PLANES];
        if (!blend(e, s.rule, slope, base, dy, &pixels[i], terms)) continue;
        drawn = true;
#pragma unroll
        for (int k = 0; k < KILN_BACKWARD_PLANES; k++) mine[k] += units(terms[k], factors[k]);
    }
    if (e.row < s.a.n_rows && __any_sync(ALL, drawn)) add_sums(s, e, mine);
}

__device__ void start_pixel(const sweep &s, uint32_t x, uint32_t y, pixel *p)
{
    *p = {};
    p->x = -kiln_power_offset(0.0f, x);
    if (x >= s.width || y >= s.height) return;
    const uint64_t at = 4 * (uint64_t(y - s.a.row0 * KILN_TILE) * s.width + x);
    const kiln_backward_pixel start = kiln_backward_start(s.a.rgba + at, s.a.target + at, s.a.background);
    for (int k = 0; k < 3; k++) p->residual[k] = start.residual[k];
    p->rest = start.rest;
    p->t = 1.0f;
}

/* ---- a tile ------------------------------------------------------------------------------------------------------------ */
__device__ void take_quarter(const sweep &s, uint64_t index, entry *entries)
{
    const uint32_t warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint32_t x0 = static_cast<uint32_t>(index % s.tiles_x) * KILN_TILE + warp % 2 * KILN_QUARTER;
    const uint32_t y0 = (s.a.row0 + static_cast<uint32_t>(index / s.tiles_x)) * KILN_TILE + warp / 2 * KILN_QUARTER;
    const uint32_t x = x0 + lane % ACROSS_QUARTER, y = y0 + lane / ACROSS_QUARTER;
    const float corner_x = -kiln_power_offset(0.0f, x0), corner_y = -kiln_power_offset(0.0f, y0);
    const float centre_y = -kiln_power_offset(0.0f, y);
    uint32_t left = s.a.tile_counts[index];
    const uint32_t *ranks = s.a.ranks + (s.ends[index] - left);
    pixel pixels[PIXELS];
    if (left == 0) return;
    for (uint32_t i = 0; i < PIXELS; i++) start_pixel(s, x + i * ACROSS_QUARTER, y, &pixels[i]);
    while (left > 0 && __any_sync(ALL, pixels[0].t > 0.0f || pixels[1].t > 0.0f)) {
        const uint32_t count = find(s, ranks, left, corner_x, corner_y, entries);
        __syncwarp();
        for (uint32_t i = 0; i < count; i++) take_entry(s, entries[i], centre_y, pixels);
        __syncwarp();
        ranks += WARP;
        left -= min(left, WARP);
    }
}

__global__ void __launch_bounds__(SWEEP_BLOCK) take_tiles(const sweep s)
{
    __shared__ entry entries[WARPS][WARP];
    if (!lists_are_given(s)) return;
    for (uint64_t turn = blockIdx.x; turn < s.tiles; turn += gridDim.x) take_quarter(s, s.order[turn], entries[threadIdx.x / WARP]);
}

__global__ void __launch_bounds__(BLOCK) write_gradients(const sweep s)
{
    for (uint64_t i = kiln::thread_index(); i < s.a.n; i += kiln::thread_count()) {
        const kiln_splat2d &splat = s.a.splats[i];
        float factors[KILN_BACKWARD_PLANES];
        if (splat.row >= s.a.n_rows) continue;
        kiln_backward_factors(kiln_backward_units_of(&splat, *s.most), factors);
        for (uint64_t k = 0; k < KILN_BACKWARD_PLANES; k++) {
            const uint64_t at = k * s.a.n_rows + splat.row;
            s.a.gradients[at] = kiln_backward_value(s.sums[at], factors[k]);
        }
    }
}

} // namespace

extern "C" kiln_status kiln_raster_backward_cuda(const kiln_exec *x, const kiln_raster_backward_args *a, void *work,
                                                 size_t *work_bytes, kiln_error *err)
{
    KILN_TRY(kiln_raster_backward_check(a, err));
    const kiln::entry entry(x, "raster_backward");
    CUDA_ENTER(entry.guard);
    const uint64_t tiles = uint64_t(a->row1 - a->row0) * kiln_view_tiles_x(a->view), values = KILN_BACKWARD_PLANES * a->n_rows;
    kiln_carve c = {static_cast<char *>(work), 0};
    uint64_t *const ends = kiln::take<uint64_t>(&c, tiles);
    uint32_t *const order = kiln::take<uint32_t>(&c, tiles);
    kiln_backward_most *const most = kiln::take<kiln_backward_most>(&c, 1);
    int64_t *const sums = kiln::take<int64_t>(&c, values);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("raster_backward", c.used, *work_bytes, err));
    if (values > 0) CUDA_RUN(cudaMemsetAsync(a->gradients, 0, values * sizeof *a->gradients, x->stream));
    if (tiles == 0) return KILN_OK;
    if (values > 0) CUDA_RUN(cudaMemsetAsync(sums, 0, values * sizeof *sums, x->stream));
    CUDA_RUN(cudaMemsetAsync(most, 0, sizeof *most, x->stream));
    LAUNCH(plan_tiles, kiln::blocks_for(tiles, PLAN_BLOCK, INT32_MAX), PLAN_BLOCK, 0, tiles, a->tile_counts, ends, order);
    sweep s = {};
    s.a = *a;
    s.ends = ends;
    s.order = order;
    s.most = most;
    s.sums = sums;
    s.violation = x->violation;
    s.tiles = tiles;
    s.pixels = kiln_raster_backward_pixels(a);
    s.width = a->view->width;
    s.height = a->view->height;
    s.tiles_x = kiln_view_tiles_x(a->view);
    s.rule = kiln_blend_rule_of(a->profile);
    LAUNCH(find_most, kiln::blocks_for(s.pixels > a->n ? s.pixels : a->n, BLOCK), BLOCK, 0, s, most);
    LAUNCH(check_ranks, kiln::blocks_for(a->n_pairs, BLOCK), BLOCK, 0, s);
    LAUNCH(take_tiles, kiln::blocks_for(tiles, 1, INT32_MAX), SWEEP_BLOCK, 0, s);
    LAUNCH(write_gradients, kiln::blocks_for(a->n, BLOCK), BLOCK, 0, s);
    return KILN_OK;
}
