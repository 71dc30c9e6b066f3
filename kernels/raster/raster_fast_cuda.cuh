/* raster_fast_cuda -- the kernel of a fast picture (raster.h): not the pinned arithmetic, but what
 * takes the fewest instructions on a GPU and stays near it. It looks at the same pairs of the same
 * lists and leaves out what stays below 1/255, as the exact kernel does. What differs:
 *
 * - log2 of alpha instead of the power: a quadratic form of the pixel's column u and row v within
 * the warp's 8 x 8 pixels,
 *
 *        at_corner + along_x u + along_y v + xx u^2 + xy u v + yy v^2,
 *
 *    opacity included (it comes with power_min, power_math.h). The lane that looks at a pair makes the six numbers once; a pixel
 *    takes two fused multiply-adds for it, what depends on the row alone three for all of a thread's pixels;
 * - ex2.approx (off by 2^-22 of itself) instead of ten pinned instructions, right behind it; - sums
 * of colour are fused; - alpha may be as large as the opacity, whatever the profile says of the
 * largest; - a pixel stops when less than 1/400 of what lies behind would show, and that is taken
 * to have the colour of what was drawn. The Gaussian by which it gets there is drawn, whatever
 * the profile says of the one that ends a pixel;
 * - no branch around what draws: to ask whether any pixel of a warp needs it costs as much as it
 * saves.
 *
 * A pixel's bits depend on nothing but its tile's list and its Gaussians: bands, slabs and the
 * order of tiles do not show.
 */
#ifndef KILN_KERNELS_RASTER_FAST_CUDA_CUH
#define KILN_KERNELS_RASTER_FAST_CUDA_CUH

#include "kernels/raster/raster_pixels_cuda.cuh"
#include "kernels/raster/raster_reach.h"

namespace
{

namespace fast
{

enum : uint32_t { BLOCKS_AT_A_TIME = 9 }; /* on one multiprocessor: 56 registers a thread */

constexpr float LOG2_E = 1.44269504f;
constexpr float LEAST = -7.99435344f; /* log2(1/255): alpha shows from here */
/* log2((1 - 2^-14)/255): alpha at a power of power_min (power_math.h) */
constexpr float AT_POWER_MIN = -7.99444149f;
constexpr float ENOUGH = 2.5e-3f; /* transmittance below which a pixel stops */
constexpr float NOTHING = 1e-10f; /* and what it leaves then: 1 - NOTHING is 1 */
/* rounding leaves a log2 of alpha no more than that above its opacity's */
constexpr float OVER_OPACITY = 0x1p-6f;

/* What a quarter needs of one Gaussian, three vectors. */
struct alignas(VECTOR) entry {
    float at_corner, along_x, along_y, xx;
    float xy, yy, red, green;
    float blue, depth;
    float most; /* no log2 of alpha above this is drawn; INFINITY where none can be */
    float unused;
};
static_assert(sizeof(entry) == 3 * VECTOR, "three vectors");

/* Of a Gaussian at (x, y) from the corner of the quarter. */
__device__ void write_entry(const record &r, float x, float y, bool proven, entry *to)
{
    const float a = LOG2_E * r.conic[0], b = LOG2_E * r.conic[1], c = LOG2_E * r.conic[2];
    const float along_x = fmaf(a, x, b * y), along_y = fmaf(b, x, c * y);
    const float at_mean = fmaf(-LOG2_E, r.power_min, AT_POWER_MIN); /* log2 of the opacity */
    const float at_corner = fmaf(-0.5f, fmaf(along_x, x, along_y * y), at_mean);
    float4 *const vectors = reinterpret_cast<float4 *>(to);
    vectors[0] = {at_corner, along_x, along_y, -0.5f * a};
    vectors[1] = {-b, -0.5f * c, r.rgb[0], r.rgb[1]};
    vectors[2] = {r.rgb[2], r.depth, proven ? INFINITY : at_mean + OVER_OPACITY, 0.0f};
}

__device__ float exp2_approx(float v)
{
    float e;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(v));
    return e;
}

/* at: the log2 of alpha; reaches: it shows, where the pixel has not stopped. */
template <bool DEPTH>
__device__ void blend_pixel_fast(const float rgb[3], float depth, bool reaches, float at, pixel *p)
{
    const float w = exp2_approx(at) * p->t;
    if (!reaches || p->t < ENOUGH) return;
    p->red = fmaf(rgb[0], w, p->red);
    p->green = fmaf(rgb[1], w, p->green);
    p->blue = fmaf(rgb[2], w, p->blue);
    if (DEPTH) {
        p->weight += w;
        p->depth = fmaf(depth, w, p->depth);
    }
    p->t -= w;
}

/* row_v: the row of the thread's pixels in the quarter. PROVEN: no log2 of alpha is above its
 * opacity's. */
template <bool DEPTH, bool PROVEN>
__device__ void blend_row(const entry *from, float row_v, pixel_row *row)
{
    const float4 first = reinterpret_cast<const float4 *>(from)[0],
                 second = reinterpret_cast<const float4 *>(from)[1];
    const float rgb[3] = {second.z, second.w, from->blue}, depth = DEPTH ? from->depth : 0.0f;
    const float slope = fmaf(second.x, row_v, first.y),
                base = fmaf(row_v, fmaf(row_v, second.y, first.z), first.x);
    const float most = PROVEN ? INFINITY : from->most;
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) {
        pixel *const p = &row->pixels[k];
        const float at = fmaf(p->x, fmaf(p->x, first.w, slope), base);
        blend_pixel_fast<DEPTH>(rgb, depth, at >= LEAST && (PROVEN || at <= most), at, p);
    }
}

template <bool DEPTH>
__device__ void blend_entries(const entry *entries, found f, float row_v, pixel_row *row)
{
    if (f.proven) {
#pragma unroll 4
        for (uint32_t i = 0; i < f.count; i++) blend_row<DEPTH, true>(&entries[i], row_v, row);
    } else {
#pragma unroll 1
        for (uint32_t i = 0; i < f.count; i++) blend_row<DEPTH, false>(&entries[i], row_v, row);
    }
}

__device__ bool is_live(const pixel_row &row)
{
    bool live = false;
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) live = live || row.pixels[k].t >= ENOUGH;
    return live;
}

/* x of a pixel is its column in the quarter; outside of the image it has stopped. */
__device__ pixel_row start_row(const job &j, const quarter &q)
{
    const uint32_t lane = threadIdx.x % LANES;
    pixel_row row = {};
    row.x = q.x0 + lane % ACROSS;
    row.y = q.y0 + lane / ACROSS;
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) {
        const uint32_t column = lane % ACROSS + k * ACROSS;
        row.pixels[k].x = static_cast<float>(column);
        row.pixels[k].t = q.x0 + column < j.width && row.y < j.height ? 1.0f : 0.0f;
    }
    return row;
}

/* Fills what stopped pixels left with the mean of what they have, and marks them for leave_row.
 * Changes nothing where it was done before, by an earlier slab. */
__device__ void settle_row(pixel_row *row)
{
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) {
        pixel *const p = &row->pixels[k];
        if (!(p->t < ENOUGH)) continue;
        const float scale = 1.0f / (1.0f - p->t);
        p->red *= scale;
        p->green *= scale;
        p->blue *= scale;
        p->weight *= scale;
        p->depth *= scale;
        p->t = NOTHING;
        p->x = NAN;
    }
}

template <bool DEPTH, bool SLAB>
__device__ void draw_quarter(const job &j, uint64_t index, entry *entries)
{
    const uint32_t lane = threadIdx.x % LANES;
    const quarter q = quarter_of(j, index);
    const float row_v = static_cast<float>(lane / ACROSS);
    pixel_row row = start_row(j, q);
    if (SLAB) resume_row(j, &row);
    rest todo = {q.list, q.length};
    uint32_t rank = lane < q.length ? q.list[lane] : 0;
    while (todo.count > 0 && __any_sync(ALL_LANES, is_live(row))) {
        /* on its way while these are drawn */
        const uint32_t next = LANES + lane < todo.count ? todo.ranks[LANES + lane] : 0;
        const found f = find_records<load_any_record>(
            j, todo, rank, q, [&](const record &r, kiln_raster_reach reach, uint32_t place) {
                write_entry(r, r.x - q.corner_x, r.y - q.corner_y, reach == KILN_REACH_SOME,
                            &entries[place]);
            });
        __syncwarp();
        blend_entries<DEPTH>(entries, f, row_v, &row);
        __syncwarp();
        rank = next;
        todo.ranks += LANES;
        todo.count -= min(todo.count, LANES);
    }
    settle_row(&row);
    if (SLAB)
        leave_row(j, row);
    else
        write_row<DEPTH>(j, row);
    check_rest(j, q.list, q.length, q.length - todo.count);
}

/* SLAB with DEPTH, as its sums are carried on. */
template <bool DEPTH, bool SLAB>
__global__ void __launch_bounds__(BLOCK, BLOCKS_AT_A_TIME) draw_tiles(const job j)
{
    __shared__ entry entries[WARPS][LANES];
    kiln::launch_before_is_done();
    if (!lists_are_given(j)) return;
    for (uint64_t turn = blockIdx.x; turn < j.drawn; turn += gridDim.x)
        draw_quarter<DEPTH, SLAB>(j, j.order[turn], entries[threadIdx.x / LANES]);
}

} // namespace fast

} // namespace

#endif
