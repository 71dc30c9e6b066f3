/* raster_backward on CUDA: laid out as raster's kernels, with their search and quarters
 * (raster_pixels_cuda.cuh). A block of four warps takes a tile, each warp a quarter of it, 8 x 8
 * pixels, two a thread; none waits for another. A warp looks at 32 pairs at once, a lane each, and
 * walks through those that may reach its quarter.
 *
 * A warp sums what its 64 pixels add to a Gaussian as integers, 26 bits and the rest separately,
 * because the hardware reduces 32 bits. One atomic for each plane then adds the result to the sums
 * of all warps. Integers add up to the same in any order.
 */
#include "kernels/raster_backward/raster_backward.h"

#include "kernels/cuda.cuh"
#include "kernels/raster/raster_pixels_cuda.cuh"
#include "kernels/raster/raster_plan_cuda.cuh"
#include "kernels/raster_backward/raster_backward_math.h"

namespace
{

enum : uint32_t {
    FLAT_BLOCK = 256, /* of kernels over pixels, pairs and Gaussians */
    LOW_BITS = 26,
};

struct sweep {
    kiln_raster_backward_args a; /* its view is the host's: not to be read here */
    job j;                       /* the lists and their tiles */
    const kiln_backward_most *most;
    int64_t *sums; /* [KILN_BACKWARD_PLANES][n_rows] */
    uint64_t pixels;
};

/* What a quarter needs of one Gaussian. */
struct entry {
    float x, y, half_a, b, half_c, opacity, power_min, rgb[3];
    uint32_t row;
    kiln_backward_units units;
};

struct backward_pixel {
    float x, t, rest, residual[3]; /* t: transmittance; 0: the pixel has stopped */
};

/* ---- the largest magnitudes ------------------------------------------------------------------ */
__device__ void leave_most(uint32_t *to, uint32_t mine)
{
    for (int step = LANES / 2; step > 0; step /= 2)
        mine = kiln_most(mine, __shfl_xor_sync(ALL_LANES, mine, step));
    if (threadIdx.x % LANES == 0) atomicMax(to, mine);
}

__global__ void __launch_bounds__(FLAT_BLOCK) find_most(const sweep s, kiln_backward_most *most)
{
    uint32_t residual = 0, colour = kiln_bits_of(1.0f);
    for (int k = 0; k < 3; k++) colour = kiln_most(colour, kiln_magnitude(s.a.background[k]));
    for (uint64_t i = kiln::thread_index(); i < s.pixels; i += kiln::thread_count()) {
        const kiln_backward_pixel p =
            kiln_backward_start(s.a.rgba + 4 * i, s.a.target + 4 * i, s.a.background);
        for (int k = 0; k < 3; k++) residual = kiln_most(residual, kiln_magnitude(p.residual[k]));
    }
    for (uint64_t i = kiln::thread_index(); i < s.a.n; i += kiln::thread_count())
        for (int k = 0; k < 3; k++)
            colour = kiln_most(colour, kiln_magnitude(s.a.splats[i].rgb[k]));
    leave_most(&most->residual, residual);
    leave_most(&most->colour, colour);
}

/* ---- lists ----------------------------------------------------------------------------------- */
/* A rank that no Gaussian has is bad wherever it stands. */
__global__ void __launch_bounds__(FLAT_BLOCK) check_ranks(const job j)
{
    if (!lists_are_given(j)) return;
    for (uint64_t i = kiln::thread_index(); i < j.ends[j.tiles - 1]; i += kiln::thread_count())
        (void)names_gaussian(j, j.ranks + i, j.ranks[i]);
}

__device__ entry entry_of(const record &r, uint32_t row, kiln_backward_most most)
{
    entry e;
    e.x = r.x;
    e.y = r.y;
    e.half_a = kiln_power_half(r.conic[0]);
    e.b = r.conic[1];
    e.half_c = kiln_power_half(r.conic[2]);
    e.opacity = r.opacity;
    e.power_min = kiln_least_power(r.power_min);
    for (int k = 0; k < 3; k++) e.rgb[k] = r.rgb[k];
    e.row = row;
    e.units = kiln_backward_units_of(r.conic, r.power_min, most);
    return e;
}

/* ---- pixels ---------------------------------------------------------------------------------- */
/* A contribution in units: rounded to even, like the CPU's. */
__device__ int64_t units(float v, float factor)
{
    return __float2ll_rn(kiln_backward_limited(v, factor));
}

/* The sum over a warp of what is at most 2^41. All lanes have it. */
__device__ int64_t sum_warp(int64_t v)
{
#if __CUDA_ARCH__ >= 800
    const uint32_t low =
        __reduce_add_sync(ALL_LANES, static_cast<uint32_t>(v) & ((1u << LOW_BITS) - 1));
    const int32_t high = __reduce_add_sync(ALL_LANES, static_cast<int32_t>(v >> LOW_BITS));
    return (static_cast<int64_t>(high) << LOW_BITS) + low;
#else
    for (int step = LANES / 2; step > 0; step /= 2) v += __shfl_xor_sync(ALL_LANES, v, step);
    return v;
#endif
}

/* One pixel, as the CPU sibling takes it. Returns whether the Gaussian is drawn, with its terms. */
__device__ bool blend_pixel_backward(const entry &e, const kiln_blend_rule &rule, float slope,
                                     float base, float dy, backward_pixel *p,
                                     float terms[KILN_BACKWARD_PLANES])
{
    const float dx = e.x - p->x, power = kiln_power_at(e.half_a, slope, base, dx);
    if (!(power >= e.power_min && power <= 0.0f && p->t > 0.0f)) return false;
    const float raw = e.opacity * kiln_expf_normal(power),
                alpha = raw > rule.max_alpha ? rule.max_alpha : raw;
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
    kiln_backward_terms(raw > rule.max_alpha ? 0.0f : kiln_backward_power(w, gd, p->rest, alpha),
                        dx, dy, w, p->residual, terms);
    return true;
}

__device__ void add_sums(const sweep &s, const entry &e, const int64_t mine[KILN_BACKWARD_PLANES])
{
    const uint32_t lane = threadIdx.x % LANES;
    int64_t own = 0;
#pragma unroll
    for (uint32_t k = 0; k < KILN_BACKWARD_PLANES; k++) {
        const int64_t sum = sum_warp(mine[k]);
        if (lane == k) own = sum;
    }
    if (lane >= KILN_BACKWARD_PLANES || own == 0) return;
    /* cut by project */
    if (lane >= KILN_BACKWARD_RED && !(e.rgb[lane - KILN_BACKWARD_RED] > 0.0f)) return;
    kiln::add64(reinterpret_cast<uint64_t *>(s.sums) + uint64_t(lane) * s.a.n_rows + e.row,
                static_cast<uint64_t>(own));
}

__device__ void take_entry(const sweep &s, const entry &e, float centre_y, backward_pixel *pixels)
{
    const float dy = e.y - centre_y, slope = kiln_power_slope(e.b, dy),
                base = kiln_power_base(e.half_c, dy);
    int64_t mine[KILN_BACKWARD_PLANES] = {};
    float factors[KILN_BACKWARD_PLANES];
    bool drawn = false;
    kiln_backward_factors(e.units, factors);
#pragma unroll
    for (uint32_t i = 0; i < PIXELS; i++) {
        float terms[KILN_BACKWARD_PLANES];
        if (!blend_pixel_backward(e, s.j.rule, slope, base, dy, &pixels[i], terms)) continue;
        drawn = true;
#pragma unroll
        for (int k = 0; k < KILN_BACKWARD_PLANES; k++) mine[k] += units(terms[k], factors[k]);
    }
    if (e.row < s.a.n_rows && __any_sync(ALL_LANES, drawn)) add_sums(s, e, mine);
}

__device__ void start_pixel(const sweep &s, uint32_t x, uint32_t y, backward_pixel *p)
{
    *p = {};
    p->x = -kiln_power_offset(0.0f, x);
    if (x >= s.j.width || y >= s.j.height) return;
    const uint64_t at = 4 * (uint64_t(y - s.j.row0 * KILN_TILE) * s.j.width + x);
    const kiln_backward_pixel start =
        kiln_backward_start(s.a.rgba + at, s.a.target + at, s.a.background);
    for (int k = 0; k < 3; k++) p->residual[k] = start.residual[k];
    p->rest = start.rest;
    p->t = 1.0f;
}

/* ---- a tile ---------------------------------------------------------------------------------- */
__device__ void take_quarter(const sweep &s, uint64_t index, entry *entries)
{
    const uint32_t lane = threadIdx.x % LANES;
    const quarter q = quarter_of(s.j, index);
    const uint32_t x = q.x0 + lane % ACROSS, y = q.y0 + lane / ACROSS;
    const float centre_y = -kiln_power_offset(0.0f, y);
    backward_pixel pixels[PIXELS];
    rest todo = {q.list, q.length};
    if (todo.count == 0) return;
    for (uint32_t i = 0; i < PIXELS; i++) start_pixel(s, x + i * ACROSS, y, &pixels[i]);
    while (todo.count > 0 && __any_sync(ALL_LANES, pixels[0].t > 0.0f || pixels[1].t > 0.0f)) {
        const uint32_t rank = lane < todo.count ? todo.ranks[lane] : 0;
        const found f = find_records<load_record<false>>(
            s.j, todo, rank, q, [&](const record &r, uint32_t place) {
                entries[place] = entry_of(r, s.j.splats[rank].row, *s.most);
            });
        __syncwarp();
        for (uint32_t i = 0; i < f.count; i++) take_entry(s, entries[i], centre_y, pixels);
        __syncwarp();
        todo.ranks += LANES;
        todo.count -= min(todo.count, LANES);
    }
}

__global__ void __launch_bounds__(BLOCK) take_tiles(const sweep s)
{
    __shared__ entry entries[WARPS][LANES];
    if (!lists_are_given(s.j)) return;
    for (uint64_t turn = blockIdx.x; turn < s.j.tiles; turn += gridDim.x)
        take_quarter(s, s.j.order[turn], entries[threadIdx.x / LANES]);
}

__global__ void __launch_bounds__(FLAT_BLOCK) write_gradients(const sweep s)
{
    for (uint64_t i = kiln::thread_index(); i < s.a.n; i += kiln::thread_count()) {
        const kiln_splat2d &splat = s.a.splats[i];
        float factors[KILN_BACKWARD_PLANES];
        if (splat.row >= s.a.n_rows) continue;
        kiln_backward_factors(kiln_backward_units_of(splat.conic, splat.power_min, *s.most),
                              factors);
        for (uint64_t k = 0; k < KILN_BACKWARD_PLANES; k++) {
            const uint64_t at = k * s.a.n_rows + splat.row;
            s.a.gradients[at] = kiln_backward_value(s.sums[at], factors[k]);
        }
    }
}

/* What raster was given. */
kiln_raster_args lists_of(const kiln_raster_backward_args *a)
{
    kiln_raster_args r = {};
    r.n = a->n;
    r.splats = a->splats;
    r.view = a->view;
    r.profile = a->profile;
    r.row0 = a->row0;
    r.row1 = a->row1;
    r.tile_counts = a->tile_counts;
    r.ranks = a->ranks;
    r.n_pairs = a->n_pairs;
    return r;
}

} // namespace

extern "C" kiln_status kiln_raster_backward_cuda(const kiln_exec *x,
                                                 const kiln_raster_backward_args *a, void *work,
                                                 size_t *work_bytes, kiln_error *err)
{
    KILN_TRY(kiln_raster_backward_check(a, err));
    const kiln::entry entry(x, "raster_backward");
    CUDA_ENTER(entry.guard);
    const kiln_raster_args lists = lists_of(a);
    const uint64_t tiles = uint64_t(a->row1 - a->row0) * kiln_view_tiles_x(a->view),
                   values = KILN_BACKWARD_PLANES * a->n_rows;
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
    if (values > 0)
        CUDA_RUN(cudaMemsetAsync(a->gradients, 0, values * sizeof *a->gradients, x->stream));
    if (tiles == 0) return KILN_OK;
    if (values > 0) CUDA_RUN(cudaMemsetAsync(sums, 0, values * sizeof *sums, x->stream));
    CUDA_RUN(cudaMemsetAsync(most, 0, sizeof *most, x->stream));
    LAUNCH(plan_tiles, plan_blocks(tiles), PLAN_BLOCK, 0,
           plan_of(tiles, a->tile_counts, ends, order));
    sweep s = {};
    s.a = *a;
    s.j = job_of(x, &lists, tiles, ends, order);
    s.most = most;
    s.sums = sums;
    s.pixels = kiln_raster_backward_pixels(a);
    LAUNCH(find_most, kiln::blocks_for(s.pixels > a->n ? s.pixels : a->n, FLAT_BLOCK), FLAT_BLOCK,
           0, s, most);
    LAUNCH(check_ranks, kiln::blocks_for(a->n_pairs, FLAT_BLOCK), FLAT_BLOCK, 0, s.j);
    LAUNCH(take_tiles, kiln::blocks_for(tiles, 1, INT32_MAX), BLOCK, 0, s);
    LAUNCH(write_gradients, kiln::blocks_for(a->n, FLAT_BLOCK), FLAT_BLOCK, 0, s);
    return KILN_OK;
}
