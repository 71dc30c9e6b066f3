/* raster_fast_cuda -- the kernel of a fast picture (raster.h): not the pinned arithmetic, but what
 * takes the fewest instructions on a GPU and stays near it. It looks at the same pairs of the same
 * lists and leaves out what stays below 1/255, as the exact kernel does. What differs:
 *
 * - log2 of alpha instead of the power: a quadratic form of the pixel's column u and row v within
 *   the warp's 8 x 8 pixels,
 *
 *        at_corner + along_x u + along_y v + xx u^2 + xy u v + yy v^2,
 *
 *   opacity included (it comes with power_min, power_math.h). The lane that looks at a pair makes
 *   the six numbers once. A pixel takes two fused multiply-adds for it; what depends on the row
 *   alone takes three for all of a thread's pixels;
 * - ex2.approx (off by 2^-22 of itself) instead of ten pinned instructions, right behind it;
 * - sums of colour are fused;
 * - alpha may be as large as the opacity, whatever the profile says of the largest;
 * - a pixel stops when less than 2^-9 of what lies behind would show, and that is taken to have
 *   the colour of what was drawn. The Gaussian by which it gets there is drawn, whatever the
 *   profile says of the one that ends a pixel;
 * - no branch around what draws: to ask whether any pixel of a warp needs it costs as much as it
 *   saves.
 *
 * Nothing asks whether a pixel has stopped. Its transmittance is kept 2^-117 times as large, so
 * that 2^-9 of it is the least normal float, and alpha is kept 2^117 times as large, so that their
 * product is the weight. mul.ftz takes a transmittance below that for 0: a pixel that has stopped
 * adds 0 to its sums. That saves a comparison for each pixel and pair. Powers of two scale without
 * rounding, so a slab leaves and resumes a transmittance without changing a bit. log2 of alpha is
 * near 117 instead of 0, where rounding it is off by up to 2^-18.
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
/* Alpha is kept SCALE times as large as it is, transmittance 1 / SCALE times. */
constexpr float SCALE = 0x1p117f, SCALE_LOG2 = 117.0f;
constexpr float ENOUGH = 0x1p-9f; /* transmittance below which a pixel stops */
/* The least normal float: mul.ftz takes for 0 what is below. */
constexpr float LEAST_LIVE = ENOUGH / SCALE;
static_assert(LEAST_LIVE == 0x1p-126f, "a pixel stops where mul.ftz flushes");
constexpr float NOTHING = 1e-10f; /* what a pixel that stops leaves: 1 - NOTHING is 1 */
/* log2(1/255): alpha shows from here */
constexpr float LEAST = SCALE_LOG2 - 7.99435344f;
/* log2((1 - 2^-14)/255): alpha at a power of power_min (power_math.h) */
constexpr float AT_POWER_MIN = SCALE_LOG2 - 7.99444149f;
/* rounding leaves a log2 of alpha no more than that above its opacity's */
constexpr float OVER_OPACITY = 0x1p-6f;
/* A Gaussian reaches a pixel if its form falls by at most this many times what takes its opacity to
 * LEAST: room for rounding, as in raster_reach.h. */
constexpr float REACH_MARGIN = 1 + 0x1p-6f;

/* What a quarter needs of one Gaussian beside the floats of `entries`, two vectors. */
struct alignas(VECTOR) entry {
    float at_corner, along_x, along_y, xx;
    float xy, yy, red, green;
};
enum : uint32_t { ENTRY = 2 * VECTOR, FLOAT = sizeof(float) };
static_assert(sizeof(entry) == ENTRY, "two vectors");

/* What a quarter needs of up to 32 Gaussians. The floats behind the entries are read for four
 * Gaussians at once. */
struct alignas(VECTOR) entries {
    entry at[LANES];
    float blue[LANES], depth[LANES];
    float most[LANES]; /* no log2 of alpha above this is drawn; INFINITY where none can be */
};

/* Bytes from the first of `entries`. */
enum : uint32_t {
    BLUE = offsetof(entries, blue),
    DEPTHS = offsetof(entries, depth),
    MOST = offsetof(entries, most)
};

/* ---- shared memory --------------------------------------------------------------------------- */
/* By 32-bit addresses in a register: of a variable the compiler makes them anew at each use. */
__device__ uint32_t address_of(const void *shared)
{
    uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
    asm volatile("" : "+r"(at));
    return at;
}

__device__ float4 load_vector(uint32_t at)
{
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(at)
                 : "memory");
    return v;
}

__device__ float load_float(uint32_t at)
{
    float v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(at) : "memory");
    return v;
}

__device__ void store_vector(uint32_t at, float4 v)
{
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(v.x), "f"(v.y), "f"(v.z),
                 "f"(v.w)
                 : "memory");
}

__device__ void store_float(uint32_t at, float v)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(v) : "memory");
}

/* ---- looking at 32 pairs --------------------------------------------------------------------- */
/* What a lane finds out about its Gaussian. */
struct seen {
    entry e;
    float at_mean; /* log2 of the opacity */
    bool reaches;  /* a pixel of the quarter may be drawn */
    /* no log2 of alpha is above its opacity's, and its colour is finite: times 0 it is 0 */
    bool sure;
};

/* The largest of -(a u^2 + 2b u v + c v^2) / 2 for u in [-x, 7 - x] and v in [-y, 7 - y]: found as
 * kiln_least_form finds the least, but not proven. xx and yy: -a/2 and -c/2. */
__device__ float largest_form(float a, float b, float c, float xx, float yy, float x, float y)
{
    const float far_x = (KILN_QUARTER - 1) - x, far_y = (KILN_QUARTER - 1) - y;
    const float u0 = fmaxf(-x, fminf(0.0f, far_x)), v0 = fmaxf(-y, fminf(0.0f, far_y));
    const float bu = b * u0, bv = b * v0;
    const float v = fmaxf(-y, fminf(-bu * kiln_rough_inverse(c), far_y)),
                u = fmaxf(-x, fminf(-bv * kiln_rough_inverse(a), far_x));
    const float across = fmaf(v, fmaf(yy, v, -bu), xx * u0 * u0),
                along = fmaf(u, fmaf(xx, u, -bv), yy * v0 * v0);
    return fmaxf(across, along);
}

__device__ bool has_finite_colour(const record &r)
{
    return fmaf(0.0f, r.rgb[0], fmaf(0.0f, r.rgb[1], 0.0f * r.rgb[2])) == 0.0f;
}

__device__ seen see_record(const record &r, const quarter &q)
{
    const float a = LOG2_E * r.conic[0], b = LOG2_E * r.conic[1], c = LOG2_E * r.conic[2];
    const float x = r.x - q.corner_x, y = r.y - q.corner_y;
    const float along_x = fmaf(a, x, b * y), along_y = fmaf(b, x, c * y);
    seen s;
    s.at_mean = fmaf(-LOG2_E, r.power_min, AT_POWER_MIN);
    s.e = {fmaf(-0.5f, fmaf(along_x, x, along_y * y), s.at_mean),
           along_x,
           along_y,
           -0.5f * a,
           -b,
           -0.5f * c,
           r.rgb[0],
           r.rgb[1]};
    /* and not a needle, as in raster_reach.h */
    const bool definite =
        (a >= 1e-15f) & (c >= 1e-15f) & (fmaf(-b, b, (1 - 0x1p-11f) * a * c) >= 0.0f);
    const float least = fmaf(-REACH_MARGIN, s.at_mean, REACH_MARGIN * LEAST);
    s.reaches = !definite | (largest_form(a, b, c, s.e.xx, s.e.yy, x, y) >= least);
    s.sure = definite & has_finite_colour(r);
    return s;
}

/* A lane's pair in the list of a tile, and how many are left from the first of its warp's on. */
struct lane_place {
    const uint32_t *rank;
    uint32_t left;
};

/* Writes those of the next 32 Gaussians that may reach the quarter to the entries at `to`, in their
 * order. Each lane has read the rank of its own, if there is one. All lanes must call. */
template <bool DEPTH, bool VECTORS>
__device__ found find_entries(const job &j, const lane_place &at, uint32_t rank, const quarter &q,
                              uint32_t to)
{
    const uint32_t lane = threadIdx.x % LANES;
    const bool listed = lane < at.left, known = listed && rank < j.n;
    record r = {};
    if (known)
        r = load_record<VECTORS>(j, rank);
    else if (listed)
        (void)names_gaussian(j, at.rank, rank);
    const seen s = see_record(r, q);
    const bool hit = known && s.reaches;
    const uint32_t hits = __ballot_sync(ALL_LANES, hit);
    const bool sure = !__any_sync(ALL_LANES, hit && !s.sure);
    if (hit) {
        const uint32_t before = static_cast<uint32_t>(__popc(hits & ((1u << lane) - 1))),
                       vectors = to + before * ENTRY, floats = to + before * FLOAT;
        store_vector(vectors, {s.e.at_corner, s.e.along_x, s.e.along_y, s.e.xx});
        store_vector(vectors + VECTOR, {s.e.xy, s.e.yy, s.e.red, s.e.green});
        store_float(floats + BLUE, r.rgb[2]);
        if (DEPTH) store_float(floats + DEPTHS, r.depth);
        if (!sure) store_float(floats + MOST, s.sure ? INFINITY : s.at_mean + OVER_OPACITY);
    }
    return {static_cast<uint32_t>(__popc(hits)), sure};
}

/* ---- blending -------------------------------------------------------------------------------- */
__device__ float exp2_approx(float v)
{
    float e;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(v));
    return e;
}

/* Alpha times transmittance, both scaled; 0 where the pixel has stopped. */
__device__ float scaled_weight(float alpha, float left)
{
    float w;
    asm("mul.ftz.f32 %0, %1, %2;" : "=f"(w) : "f"(alpha), "f"(left));
    return w;
}

/* The transmittance behind a weight, scaled; at least 0, however alpha was rounded. */
__device__ float left_behind(float w, float left)
{
    float t;
    asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(t) : "f"(w), "f"(-1.0f / SCALE), "f"(left));
    return t;
}

/* Of one Gaussian, in registers. */
struct colour {
    float red, green, blue, depth;
};

/* at: the log2 of alpha; shows: it is drawn. */
template <bool DEPTH>
__device__ void blend_pixel_fast(const colour &c, bool shows, float at, pixel *p)
{
    const float alpha = exp2_approx(at);
    if (!shows) return;
    const float w = scaled_weight(alpha, p->t);
    p->red = fmaf(c.red, w, p->red);
    p->green = fmaf(c.green, w, p->green);
    p->blue = fmaf(c.blue, w, p->blue);
    if (DEPTH) {
        p->weight += w;
        p->depth = fmaf(c.depth, w, p->depth);
    }
    p->t = left_behind(w, p->t);
}

/* from: an entry; blue, depth, most: its floats. row_v: the row of the thread's pixels in the
 * quarter. SURE: of the Gaussian; then most is not read. */
template <bool DEPTH, bool SURE>
__device__ void blend_row(uint32_t from, float blue, float depth, float most, float row_v,
                          pixel_row *row)
{
    const float4 first = load_vector(from), second = load_vector(from + VECTOR);
    const colour c = {second.z, second.w, blue, depth};
    const float slope = fmaf(second.x, row_v, first.y),
                base = fmaf(row_v, fmaf(row_v, second.y, first.z), first.x);
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) {
        pixel *const p = &row->pixels[k];
        const float at = fmaf(p->x, fmaf(p->x, first.w, slope), base);
        const bool shows = at >= LEAST && (SURE || (at <= most && p->t >= LEAST_LIVE));
        blend_pixel_fast<DEPTH>(c, shows, at, p);
    }
}

/* vectors, floats: of the first of four entries. */
template <bool DEPTH>
__device__ void blend_four(uint32_t vectors, uint32_t floats, float row_v, pixel_row *row)
{
    const float4 blue = load_vector(floats + BLUE);
    float4 depth = {};
    if (DEPTH) depth = load_vector(floats + DEPTHS);
    blend_row<DEPTH, true>(vectors, blue.x, depth.x, INFINITY, row_v, row);
    blend_row<DEPTH, true>(vectors + ENTRY, blue.y, depth.y, INFINITY, row_v, row);
    blend_row<DEPTH, true>(vectors + 2 * ENTRY, blue.z, depth.z, INFINITY, row_v, row);
    blend_row<DEPTH, true>(vectors + 3 * ENTRY, blue.w, depth.w, INFINITY, row_v, row);
}

template <bool DEPTH, bool SURE>
__device__ void blend_one(uint32_t vectors, uint32_t floats, float row_v, pixel_row *row)
{
    blend_row<DEPTH, SURE>(vectors, load_float(floats + BLUE),
                           DEPTH ? load_float(floats + DEPTHS) : 0.0f,
                           SURE ? INFINITY : load_float(floats + MOST), row_v, row);
}

template <bool DEPTH>
__device__ void blend_entries(uint32_t from, found f, float row_v, pixel_row *row)
{
    uint32_t vectors = from, floats = from;
    const uint32_t end = from + f.count * FLOAT;
    if (f.proven) {
#pragma unroll 1
        for (; floats + 4 * FLOAT <= end; floats += 4 * FLOAT, vectors += 4 * ENTRY)
            blend_four<DEPTH>(vectors, floats, row_v, row);
#pragma unroll 1
        for (; floats < end; floats += FLOAT, vectors += ENTRY)
            blend_one<DEPTH, true>(vectors, floats, row_v, row);
    } else {
#pragma unroll 1
        for (; floats < end; floats += FLOAT, vectors += ENTRY)
            blend_one<DEPTH, false>(vectors, floats, row_v, row);
    }
}

/* ---- a quarter ------------------------------------------------------------------------------- */
__device__ bool is_live(const pixel_row &row)
{
    bool live = false;
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) live = live || row.pixels[k].t >= LEAST_LIVE;
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

__device__ void scale_transmittances(pixel_row *row, float by)
{
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) row->pixels[k].t *= by;
}

/* Fills what stopped pixels left with the mean of what they have, and marks them for leave_row.
 * Changes nothing where an earlier slab did it. Transmittances are not scaled here. */
__device__ void settle_row(pixel_row *row)
{
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) {
        pixel *const p = &row->pixels[k];
        if (!(p->t < ENOUGH)) continue;
        const float scale = kiln_rough_inverse(1.0f - p->t);
        p->red *= scale;
        p->green *= scale;
        p->blue *= scale;
        p->weight *= scale;
        p->depth *= scale;
        p->t = NOTHING;
        p->x = NAN;
    }
}

template <bool DEPTH, bool VECTORS, bool SLAB>
__device__ void draw_quarter(const job &j, uint64_t index, uint32_t mine)
{
    const uint32_t lane = threadIdx.x % LANES;
    quarter q = quarter_of(j, index);
    /* The compiler would make them anew for each 32 pairs. */
    asm volatile("" : "+f"(q.corner_x), "+f"(q.corner_y));
    const float row_v = static_cast<float>(lane / ACROSS);
    pixel_row row = start_row(j, q);
    if (SLAB) resume_row(j, &row);
    scale_transmittances(&row, 1.0f / SCALE);
    lane_place at = {q.list + lane, q.length};
    uint32_t rank = lane < q.length ? *at.rank : 0;
    while (at.left > 0 && __any_sync(ALL_LANES, is_live(row))) {
        /* on its way while these are drawn */
        const uint32_t next = LANES + lane < at.left ? at.rank[LANES] : 0;
        const found f = find_entries<DEPTH, VECTORS>(j, at, rank, q, mine);
        __syncwarp();
        blend_entries<DEPTH>(mine, f, row_v, &row);
        __syncwarp();
        rank = next;
        at.rank += LANES;
        at.left -= min(at.left, LANES);
    }
    scale_transmittances(&row, SCALE);
    settle_row(&row);
    if (SLAB)
        leave_row(j, row);
    else
        write_row<DEPTH>(j, row);
    check_rest(j, q.list, q.length, q.length - at.left);
}

/* SLAB with DEPTH, as its sums are carried on. */
template <bool DEPTH, bool VECTORS, bool SLAB>
__global__ void __launch_bounds__(BLOCK, BLOCKS_AT_A_TIME) draw_tiles(const job j)
{
    __shared__ entries of_warp[WARPS];
    kiln::launch_before_is_done();
    if (!lists_are_given(j)) return;
    const uint32_t mine = address_of(&of_warp[threadIdx.x / LANES]);
    for (uint64_t turn = blockIdx.x; turn < j.drawn; turn += gridDim.x)
        draw_quarter<DEPTH, VECTORS, SLAB>(j, j.order[turn], mine);
}

} // namespace fast

} // namespace

#endif
