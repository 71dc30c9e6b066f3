/* raster_pixels_cuda -- what the exact kernel and the fast one share: what a call is given, how a Gaussian's record is loaded, and
 * the pixels of a thread, from where a slab before left them to the picture. A warp has 4 x 8 lanes, and a lane as many
 * pixels of one row, four columns apart, as its kernel wants.
 */
#ifndef KILN_KERNELS_RASTER_PIXELS_CUDA_CUH
#define KILN_KERNELS_RASTER_PIXELS_CUDA_CUH

#include "kernels/cuda.cuh"
#include "kernels/raster/raster.h"
#include "kernels/raster/raster_math.h"

namespace
{

enum : uint32_t {
    LANES = 32,
    ACROSS = 4,  /* lanes side by side; the lanes of a warp are 4 x 8 pixels */
    VECTOR = 16, /* bytes */
    ALL_LANES = 0xffffffffu,
};

struct job {
    const kiln_splat2d *splats;
    const uint32_t *tile_counts, *ranks;
    const uint64_t *ends;  /* of each tile's list */
    const uint32_t *order; /* of drawing */
    uint64_t *violation;
    float *rgba, *depth;
    kiln_raster_state *state; /* of a slab, instead of a picture */
    uint64_t n, n_pairs, tiles;
    uint32_t width, height, tiles_x, row0;
    float background[3];
    kiln_blend_rule rule;
    bool rgba_as_vectors, splats_as_vectors; /* they are aligned so */
};

/* The first 48 bytes of a kiln_splat2d, three vectors, as they are loaded. */
struct alignas(VECTOR) record {
    float x, y, conic[3], opacity, power_min, depth, rgb[3];
    uint32_t row;
};
static_assert(sizeof(record) == 3 * VECTOR && offsetof(kiln_splat2d, row) == offsetof(record, row), "three vectors");
static_assert(sizeof(kiln_splat2d) % VECTOR == 0, "one aligned, all aligned");

struct pixel {
    float x; /* its place, as its kernel counts it; NaN when it has stopped, for the exact one at once: then no power compares */
    float t; /* transmittance */
    float red, green, blue;
    float weight, depth; /* sum(w), sum(w z) */
};

/* The pixels of a thread: (x, y), (x + ACROSS, y) and so on. */
template <uint32_t PIXELS> struct pixel_row {
    uint32_t x, y;
    float centre_y;
    pixel pixels[PIXELS];
};

/* What a warp has not yet looked at of its tile's list. */
struct rest {
    const uint32_t *ranks;
    uint32_t count;
};

/* ---- a list ---------------------------------------------------------------------------------------------------------- */
__device__ bool names_gaussian(const job &j, const uint32_t *at, uint32_t rank)
{
    if (rank < j.n) return true;
    kiln::leave_violation(j.violation, KILN_VIOLATION(KILN_VIOLATION_RASTER_RANK, static_cast<uint64_t>(at - j.ranks)));
    return false;
}

template <bool VECTORS> __device__ record load_record(const kiln_splat2d *from)
{
    record r;
    if (VECTORS) {
        const float4 *const vectors = reinterpret_cast<const float4 *>(from);
        float4 *const to = reinterpret_cast<float4 *>(&r);
#pragma unroll
        for (int k = 0; k < 3; k++) to[k] = vectors[k];
    } else {
        const float *const floats = reinterpret_cast<const float *>(from);
        float *const to = reinterpret_cast<float *>(&r);
#pragma unroll
        for (int k = 0; k < 11; k++) to[k] = floats[k];
    }
    return r;
}

/* false: the lists may lie outside of ranks, so nothing is read. */
__device__ bool lists_are_given(const job &j)
{
    if (j.ends[j.tiles - 1] <= j.n_pairs) return true;
    if (kiln::thread_index() == 0)
        kiln::leave_violation(j.violation, KILN_VIOLATION(KILN_VIOLATION_RASTER_PAIRS, j.ends[j.tiles - 1]));
    return false;
}

/* A rank that no Gaussian has is bad wherever it stands, also behind the last pair that a pixel asked for. The warps of a
 * tile share what is left: pairs of the tile by 32, counted from its list's beginning, each warp its share of these in turn. */
template <uint32_t WARPS> __device__ void check_rest(const job &j, const uint32_t *list, uint32_t length, uint32_t looked_at)
{
    const uint32_t warp = threadIdx.x / LANES, lane = threadIdx.x % LANES, group = looked_at / LANES;
    const uint64_t first = (group + (warp - group) % WARPS) * uint64_t(LANES) + lane;
    uint32_t largest = 0;
#pragma unroll 8
    for (uint64_t at = first; at < length; at += WARPS * LANES) largest = max(largest, list[at]);
    if (first >= length || largest < j.n) return;
    for (uint64_t at = first; at < length; at += WARPS * LANES) (void)names_gaussian(j, list + at, list[at]);
}

/* ---- pixels ---------------------------------------------------------------------------------------------------------- */
template <uint32_t PIXELS> __device__ bool is_live(const pixel_row<PIXELS> &row)
{
    bool live = false;
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) live = live || !isnan(row.pixels[k].x);
    return live;
}

template <bool DEPTH, uint32_t PIXELS> __device__ void write_row(const job &j, const pixel_row<PIXELS> &row)
{
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) {
        const pixel &p = row.pixels[k];
        const uint32_t x = row.x + k * ACROSS;
        if (x >= j.width || row.y >= j.height) continue;
        const uint64_t at = uint64_t(row.y - j.row0 * KILN_TILE) * j.width + x;
        const float4 c = {p.red + p.t * j.background[0], p.green + p.t * j.background[1], p.blue + p.t * j.background[2],
                          1.0f - p.t};
        if (j.rgba_as_vectors) {
            reinterpret_cast<float4 *>(j.rgba)[at] = c;
        } else {
            j.rgba[4 * at] = c.x;
            j.rgba[4 * at + 1] = c.y;
            j.rgba[4 * at + 2] = c.z;
            j.rgba[4 * at + 3] = c.w;
        }
        if (DEPTH) j.depth[at] = kiln_expected_depth(p.weight, p.depth);
    }
}

/* Where the slab before left the pixels inside the image, and where this one leaves them. */
template <uint32_t PIXELS> __device__ void resume_row(const job &j, pixel_row<PIXELS> *row)
{
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) {
        pixel *const p = &row->pixels[k];
        const uint32_t x = row->x + k * ACROSS;
        if (x >= j.width || row->y >= j.height) continue;
        const kiln_raster_state s = j.state[uint64_t(row->y - j.row0 * KILN_TILE) * j.width + x];
        if (kiln_state_stopped(s.left)) p->x = NAN;
        p->t = kiln_state_left(s.left);
        p->red = s.red;
        p->green = s.green;
        p->blue = s.blue;
        p->weight = s.weight;
        p->depth = s.depth;
    }
}

template <uint32_t PIXELS> __device__ void leave_row(const job &j, const pixel_row<PIXELS> &row)
{
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) {
        const pixel &p = row.pixels[k];
        const uint32_t x = row.x + k * ACROSS;
        if (x >= j.width || row.y >= j.height) continue;
        j.state[uint64_t(row.y - j.row0 * KILN_TILE) * j.width + x] = {p.red,    p.green, p.blue, kiln_state_of(p.t, isnan(p.x)),
                                                                       p.weight, p.depth};
    }
}

} // namespace

#endif
