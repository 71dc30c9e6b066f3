/* raster on CUDA: a block of four warps draws a tile, each warp a quarter of it, 8 x 8 pixels, by
 * itself: nothing is shared between them but the caches, and none waits for another. A thread has
 * two pixels of one row, four columns apart, whose state stays in registers: what depends on the
 * row alone, and the Gaussian itself, is taken once for both. Tiles with long lists come first
 * (raster_plan_cuda.cuh).
 *
 * A warp looks at 32 pairs of the tile's list at once, a lane each. It puts the Gaussians that may
 * reach its quarter (raster_reach.h) into shared memory, one after the other. Then its lanes walk
 * through them together. A half of which no pixel reaches the threshold skips the exponential. A
 * warp of which every pixel has stopped looks at no more.
 *
 * A pixel does the steps of the CPU sibling in its order. What is skipped around it does not show
 * in its bits.
 */
#include "kernels/raster/raster.h"

#include "kernels/early_cuda.cuh"
#include "kernels/raster/raster_math.h"
#include "kernels/raster/raster_plan_cuda.cuh"
#include "kernels/raster/raster_fast_cuda.cuh"
#include "kernels/raster/raster_pixels_cuda.cuh"
#include "kernels/raster/raster_reach.h"

namespace
{

enum : uint32_t { BLOCKS_AT_A_TIME = 9 }; /* on one multiprocessor: 56 registers a thread */

/* What a quarter needs of one Gaussian, read by all lanes of a warp at once, three vectors: halves
 * of the conic's diagonal, and constants of the exponential, which so come with the load and need
 * no instruction of their own. */
struct alignas(VECTOR) entry {
    float x, y, half_a, b, half_c, opacity, power_min;
    float depth; /* or KILN_EXP_FOURTH where no depth is drawn */
    float rgb[3];
    float magic; /* KILN_EXP_MAGIC */
};
static_assert(sizeof(entry) == 3 * VECTOR, "three vectors");

/* ---- 32 pairs -------------------------------------------------------------------------------- */
/* An opacity that is NaN becomes 0: its alpha never shows. */
template <bool DEPTH> __device__ void write_entry(const record &r, entry *to)
{
    float4 *const vectors = reinterpret_cast<float4 *>(to);
    vectors[0] = {r.x, r.y, kiln_power_half(r.conic[0]), r.conic[1]};
    vectors[1] = {kiln_power_half(r.conic[2]), fmaxf(r.opacity, 0.0f),
                  kiln_least_power(r.power_min), DEPTH ? r.depth : KILN_EXP_FOURTH};
    vectors[2] = {r.rgb[0], r.rgb[1], r.rgb[2], KILN_EXP_MAGIC};
}

/* ---- pixels ---------------------------------------------------------------------------------- */
/* As vectors: the compiler does not know that it may. */
__device__ entry read_entry(const entry *from)
{
    entry e;
    float4 *const to = reinterpret_cast<float4 *>(&e);
#pragma unroll
    for (int k = 0; k < 3; k++) to[k] = reinterpret_cast<const float4 *>(from)[k];
    return e;
}

/* kiln_alpha of an opacity that is a number. */
template <bool DEPTH> __device__ float alpha_of(const entry &e, float power, float max_alpha)
{
    const float fourth = DEPTH ? KILN_EXP_FOURTH : e.depth;
    return fminf(e.opacity * kiln_expf_normal_with(e.magic, fourth, power), max_alpha);
}

template <bool DEPTH>
__device__ void blend_pixel(const entry &e, const kiln_blend_rule &rule, bool drawn, float power,
                            pixel *p)
{
    const float alpha = alpha_of<DEPTH>(e, power, rule.max_alpha);
    const float left = p->t * (1.0f - alpha), w = alpha * p->t;
    const bool shows = drawn && kiln_alpha_shows(alpha), stops = left < rule.stop_below;
    if (shows && stops) p->x = NAN;
    if (shows && !stops) {
        p->red += e.rgb[0] * w;
        p->green += e.rgb[1] * w;
        p->blue += e.rgb[2] * w;
        if (DEPTH) {
            p->weight += w;
            p->depth += e.depth * w;
        }
        p->t = left;
    }
}

/* PROVEN: no power is above 0. */
template <bool DEPTH, bool PROVEN>
__device__ void blend_row(const entry &e, const kiln_blend_rule &rule, pixel_row *row)
{
    const float dy = e.y - row->centre_y, slope = kiln_power_slope(e.b, dy),
                base = kiln_power_base(e.half_c, dy);
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) {
        pixel *const p = &row->pixels[k];
        const float power = kiln_power_at(e.half_a, slope, base, e.x - p->x);
        const bool drawn = power >= e.power_min && (PROVEN || power <= 0.0f);
        if (__any_sync(ALL_LANES, drawn)) blend_pixel<DEPTH>(e, rule, drawn, power, p);
    }
}

template <bool DEPTH>
__device__ void blend_entries(const entry *entries, found f, const kiln_blend_rule &rule,
                              pixel_row *row)
{
    if (f.proven) {
#pragma unroll 4
        for (uint32_t i = 0; i < f.count; i++)
            blend_row<DEPTH, true>(read_entry(&entries[i]), rule, row);
    } else {
#pragma unroll 1
        for (uint32_t i = 0; i < f.count; i++)
            blend_row<DEPTH, false>(read_entry(&entries[i]), rule, row);
    }
}

/* ---- a tile ---------------------------------------------------------------------------------- */
template <bool DEPTH, bool VECTORS, bool SLAB>
__device__ void draw_quarter(const job &j, uint64_t index, entry *entries)
{
    const uint32_t lane = threadIdx.x % LANES;
    const quarter q = quarter_of(j, index);
    pixel_row row = exact::start_row(j, q);
    if (SLAB) resume_row(j, &row);
    rest todo = {q.list, q.length};
    uint32_t rank = lane < q.length ? q.list[lane] : 0;
    while (todo.count > 0 && __any_sync(ALL_LANES, exact::is_live(row))) {
        /* on its way while these are drawn */
        const uint32_t next = LANES + lane < todo.count ? todo.ranks[LANES + lane] : 0;
        const found f = find_records<load_record<VECTORS>>(
            j, todo, rank, q,
            [&](const record &r, uint32_t place) { write_entry<DEPTH>(r, &entries[place]); });
        __syncwarp();
        blend_entries<DEPTH>(entries, f, j.rule, &row);
        __syncwarp();
        rank = next;
        todo.ranks += LANES;
        todo.count -= min(todo.count, LANES);
    }
    if (SLAB)
        leave_row(j, row);
    else
        write_row<DEPTH>(j, row);
    check_rest(j, q.list, q.length, q.length - todo.count);
}

/* SLAB with DEPTH, as its sums are carried on. */
template <bool DEPTH, bool VECTORS, bool SLAB>
__global__ void __launch_bounds__(BLOCK, BLOCKS_AT_A_TIME) draw_tiles(const job j)
{
    __shared__ entry entries[WARPS][LANES];
    kiln::launch_before_is_done();
    if (!lists_are_given(j)) return;
    for (uint64_t turn = blockIdx.x; turn < j.drawn; turn += gridDim.x)
        draw_quarter<DEPTH, VECTORS, SLAB>(j, j.order[turn], entries[threadIdx.x / LANES]);
}

/* ---- launchers ------------------------------------------------------------------------------- */
template <bool VECTORS> auto exact_kernel_for(const kiln_raster_args *a) -> void (*)(job)
{
    if (a->state) return draw_tiles<true, VECTORS, true>;
    return a->depth ? draw_tiles<true, VECTORS, false> : draw_tiles<false, VECTORS, false>;
}

template <bool VECTORS> auto fast_kernel_for(const kiln_raster_args *a) -> void (*)(job)
{
    if (a->state) return fast::draw_tiles<true, VECTORS, true>;
    return a->depth ? fast::draw_tiles<true, VECTORS, false>
                    : fast::draw_tiles<false, VECTORS, false>;
}

/* Is what is drawn one of the plan's parts? */
bool is_planned(const kiln_raster_args *a)
{
    const kiln_raster_plan &p = a->plan;
    for (uint32_t k = 0; p.ends && k < p.parts; k++)
        if (kiln_raster_from(a) == kiln_plan_row(a->row0, a->row1, p.parts, k) &&
            kiln_raster_to(a) == kiln_plan_row(a->row0, a->row1, p.parts, k + 1))
            return true;
    return false;
}

/* A plan of what is drawn alone: what comes before it is a part, and what comes behind it. */
plan_job own_plan_of(const kiln_raster_args *a, uint64_t tiles, uint64_t *ends, uint32_t *order)
{
    const uint64_t tiles_x = kiln_view_tiles_x(a->view);
    plan_job p = plan_of(tiles, a->tile_counts, ends, order);
    p.starts[0] = (kiln_raster_from(a) - a->row0) * tiles_x;
    p.starts[1] = (kiln_raster_to(a) - a->row0) * tiles_x;
    return p;
}

template <bool VECTORS> auto kernel_for(const kiln_raster_args *a) -> void (*)(job)
{
    return a->fast ? fast_kernel_for<VECTORS>(a) : exact_kernel_for<VECTORS>(a);
}

} // namespace

extern "C" kiln_status kiln_raster_cuda(const kiln_exec *x, const kiln_raster_args *a, void *work,
                                        size_t *work_bytes, kiln_error *err)
{
    KILN_TRY(kiln_raster_check(a, err));
    const kiln::entry entry(x, "raster");
    CUDA_ENTER(entry.guard);
    const uint64_t tiles = uint64_t(a->row1 - a->row0) * kiln_view_tiles_x(a->view);
    const bool planned = is_planned(a);
    kiln_carve c = {static_cast<char *>(work), 0};
    uint64_t *const ends = planned ? a->plan.ends : kiln::take<uint64_t>(&c, tiles);
    uint32_t *const order = planned ? a->plan.order : kiln::take<uint32_t>(&c, tiles);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("raster", c.used, *work_bytes, err));
    if (kiln_raster_from(a) == kiln_raster_to(a) || tiles == 0) return KILN_OK;
    if (!planned)
        LAUNCH_EARLY(plan_tiles, plan_blocks(tiles), PLAN_BLOCK,
                     own_plan_of(a, tiles, ends, order));
    const job j = job_of(x, a, tiles, ends, order);
    void (*const draw)(job) = j.splats_as_vectors ? kernel_for<true>(a) : kernel_for<false>(a);
    LAUNCH_EARLY(draw, kiln::blocks_for(j.drawn, 1, INT32_MAX), BLOCK, j);
    return KILN_OK;
}
