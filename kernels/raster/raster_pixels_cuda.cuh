/* raster_pixels_cuda -- what the exact kernel, the fast one and blend_weights share: the arguments
 * of a call, how a Gaussian's record is loaded, and which of 32 pairs may reach a quarter of a
 * tile. It also has the pixels of a thread, from the state that an earlier slab left to the
 * picture. A warp draws a quarter, 8 x 8 pixels: its lanes are 4 x 8, and a lane has two pixels of
 * one row, four columns apart.
 */
#ifndef KILN_KERNELS_RASTER_PIXELS_CUDA_CUH
#define KILN_KERNELS_RASTER_PIXELS_CUDA_CUH

#include "kernels/early_cuda.cuh"
#include "kernels/raster/raster.h"
#include "kernels/raster/raster_math.h"
#include "kernels/raster/raster_reach.h"

namespace
{

enum : uint32_t {
    LANES = 32,
    ACROSS = 4,                     /* lanes side by side; the lanes of a warp are 4 x 8 pixels */
    PIXELS = KILN_QUARTER / ACROSS, /* of a lane */
    WARPS = 4,                      /* quarters of a tile */
    BLOCK = LANES * WARPS,
    VECTOR = 16, /* bytes */
    ALL_LANES = 0xffffffffu,
};

struct job {
    const kiln_splat2d *splats;
    const uint32_t *tile_counts, *ranks;
    const uint64_t *ends;  /* of each tile's list */
    const uint32_t *order; /* of what is drawn */
    uint64_t *violation;
    float *rgba, *depth;
    kiln_raster_state *state;          /* of a slab, instead of a picture */
    uint64_t n, n_pairs, tiles, drawn; /* tiles: that have lists */
    uint32_t width, height, tiles_x, row0;
    uint32_t y0; /* pixel row that rgba, depth and state begin with */
    float background[3];
    kiln_blend_rule rule;
    bool rgba_as_vectors, splats_as_vectors; /* they are aligned so */
};

/* The first 48 bytes of a kiln_splat2d, three vectors, as they are loaded. */
struct alignas(VECTOR) record {
    float x, y, conic[3], opacity, power_min, depth, rgb[3];
    uint32_t row;
};
static_assert(sizeof(record) == 3 * VECTOR && offsetof(kiln_splat2d, row) == offsetof(record, row),
              "three vectors");
static_assert(sizeof(kiln_splat2d) % VECTOR == 0, "one aligned, all aligned");

struct pixel {
    /* its place, as its kernel counts it; NaN when it has stopped, for the exact one at once: then
     * no power compares */
    float x;
    float t; /* transmittance */
    float red, green, blue;
    float weight, depth; /* sum(w), sum(w z) */
};

/* The pixels of a thread: (x, y) and (x + ACROSS, y). */
struct pixel_row {
    uint32_t x, y;
    float centre_y;
    pixel pixels[PIXELS];
};

/* What a warp has not yet looked at of its tile's list. */
struct rest {
    const uint32_t *ranks;
    uint32_t count;
};

/* What a warp found among 32 pairs. */
struct found {
    uint32_t count;
    bool proven; /* of all of them (raster_reach.h); for fast pictures: all are sure */
};

/* A quarter of a tile, with the tile's list. */
struct quarter {
    uint32_t x0, y0;
    float corner_x, corner_y; /* the centre of its first pixel */
    const uint32_t *list;
    uint32_t length;
};

/* ---- a list ---------------------------------------------------------------------------------- */
__device__ bool names_gaussian(const job &j, const uint32_t *at, uint32_t rank)
{
    if (rank < j.n) return true;
    kiln::leave_violation(j.violation, KILN_VIOLATION(KILN_VIOLATION_RASTER_RANK,
                                                      static_cast<uint64_t>(at - j.ranks)));
    return false;
}

/* Without vectors the row is not loaded. */
template <bool VECTORS> __device__ record load_record(const job &j, uint32_t rank)
{
    const kiln_splat2d *const from = &j.splats[rank];
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

/* Which of the next 32 pairs may reach a quarter. Each lane looks at its own, whose rank it has
 * read; of each that may, it calls write(record, place), where the places count them in order. All
 * lanes must call. */
template <record (*LOAD)(const job &, uint32_t), class WRITE>
__device__ found find_records(const job &j, const rest &todo, uint32_t rank, const quarter &q,
                              WRITE write)
{
    const uint32_t lane = threadIdx.x % LANES;
    kiln_raster_reach reach = KILN_REACH_NONE;
    record r;
    if (lane < todo.count && names_gaussian(j, todo.ranks + lane, rank)) {
        r = LOAD(j, rank);
        reach = kiln_quarter_reach(r.x, r.y, r.conic, r.power_min, q.corner_x, q.corner_y);
    }
    const uint32_t hits = __ballot_sync(ALL_LANES, reach != KILN_REACH_NONE),
                   before = hits & ((1u << lane) - 1);
    if (reach != KILN_REACH_NONE) write(r, static_cast<uint32_t>(__popc(static_cast<int>(before))));
    return {static_cast<uint32_t>(__popc(static_cast<int>(hits))),
            !__any_sync(ALL_LANES, reach == KILN_REACH_UNKNOWN)};
}

/* false: the lists may lie outside of ranks, so nothing is read. */
__device__ bool lists_are_given(const job &j)
{
    if (j.ends[j.tiles - 1] <= j.n_pairs) return true;
    if (kiln::thread_index() == 0)
        kiln::leave_violation(j.violation,
                              KILN_VIOLATION(KILN_VIOLATION_RASTER_PAIRS, j.ends[j.tiles - 1]));
    return false;
}

/* A rank that no Gaussian has is bad wherever it stands, also behind the last pair that a pixel
 * asked for. The warps of a tile share what is left: pairs of the tile by 32, counted from its
 * list's beginning, each warp its share of these in turn. */
__device__ void check_rest(const job &j, const uint32_t *list, uint32_t length, uint32_t looked_at)
{
    const uint32_t warp = threadIdx.x / LANES, lane = threadIdx.x % LANES,
                   group = looked_at / LANES;
    const uint64_t first = (group + (warp - group) % WARPS) * uint64_t(LANES) + lane;
    uint32_t largest = 0;
#pragma unroll 8
    for (uint64_t at = first; at < length; at += WARPS * LANES) largest = max(largest, list[at]);
    if (first >= length || largest < j.n) return;
    for (uint64_t at = first; at < length; at += WARPS * LANES)
        (void)names_gaussian(j, list + at, list[at]);
}

/* ---- pixels ---------------------------------------------------------------------------------- */
/* The calling warp's quarter of a tile. */
__device__ quarter quarter_of(const job &j, uint64_t tile)
{
    const uint32_t warp = threadIdx.x / LANES;
    quarter q;
    q.x0 = static_cast<uint32_t>(tile % j.tiles_x) * KILN_TILE + warp % 2 * KILN_QUARTER;
    q.y0 = (j.row0 + static_cast<uint32_t>(tile / j.tiles_x)) * KILN_TILE + warp / 2 * KILN_QUARTER;
    q.corner_x = -kiln_power_offset(0.0f, q.x0);
    q.corner_y = -kiln_power_offset(0.0f, q.y0);
    q.length = j.tile_counts[tile];
    q.list = j.ranks + (j.ends[tile] - q.length);
    return q;
}

/* How kernels that draw exactly count a pixel's place: by its centre, NaN from where it has
 * stopped. */
namespace exact
{

__device__ pixel_row start_row(const job &j, const quarter &q)
{
    const uint32_t lane = threadIdx.x % LANES;
    pixel_row row = {};
    row.x = q.x0 + lane % ACROSS;
    row.y = q.y0 + lane / ACROSS;
    row.centre_y = -kiln_power_offset(0.0f, row.y);
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) {
        const uint32_t x = row.x + k * ACROSS;
        row.pixels[k].x = x < j.width && row.y < j.height ? -kiln_power_offset(0.0f, x) : NAN;
        row.pixels[k].t = 1.0f;
    }
    return row;
}

__device__ bool is_live(const pixel_row &row)
{
    bool live = false;
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) live = live || !isnan(row.pixels[k].x);
    return live;
}

} // namespace exact

template <bool DEPTH> __device__ void write_row(const job &j, const pixel_row &row)
{
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) {
        const pixel &p = row.pixels[k];
        const uint32_t x = row.x + k * ACROSS;
        if (x >= j.width || row.y >= j.height) continue;
        const uint64_t at = uint64_t(row.y - j.y0) * j.width + x;
        const float4 c = {p.red + p.t * j.background[0], p.green + p.t * j.background[1],
                          p.blue + p.t * j.background[2], 1.0f - p.t};
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
__device__ void resume_row(const job &j, pixel_row *row)
{
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) {
        pixel *const p = &row->pixels[k];
        const uint32_t x = row->x + k * ACROSS;
        if (x >= j.width || row->y >= j.height) continue;
        const kiln_raster_state s = j.state[uint64_t(row->y - j.y0) * j.width + x];
        if (kiln_state_stopped(s.left)) p->x = NAN;
        p->t = kiln_state_left(s.left);
        p->red = s.red;
        p->green = s.green;
        p->blue = s.blue;
        p->weight = s.weight;
        p->depth = s.depth;
    }
}

__device__ void leave_row(const job &j, const pixel_row &row)
{
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) {
        const pixel &p = row.pixels[k];
        const uint32_t x = row.x + k * ACROSS;
        if (x >= j.width || row.y >= j.height) continue;
        j.state[uint64_t(row.y - j.y0) * j.width + x] = {
            p.red, p.green, p.blue, kiln_state_of(p.t, isnan(p.x)), p.weight, p.depth};
    }
}

/* ---- launchers ------------------------------------------------------------------------------- */
inline bool is_aligned(const void *p) { return reinterpret_cast<uintptr_t>(p) % VECTOR == 0; }

/* ends, order: of a plan with what is drawn as a part. */
inline job job_of(const kiln_exec *x, const kiln_raster_args *a, uint64_t tiles,
                  const uint64_t *ends, const uint32_t *order)
{
    job j = {};
    j.splats = a->splats;
    j.tile_counts = a->tile_counts;
    j.ranks = a->ranks;
    j.ends = ends;
    j.order = order + uint64_t(kiln_raster_from(a) - a->row0) * kiln_view_tiles_x(a->view);
    j.violation = x->violation;
    j.rgba = a->rgba;
    j.depth = a->depth;
    j.state = a->state;
    j.n = a->n;
    j.n_pairs = a->n_pairs;
    j.tiles = tiles;
    j.width = a->view->width;
    j.height = a->view->height;
    j.tiles_x = kiln_view_tiles_x(a->view);
    j.drawn = uint64_t(kiln_raster_to(a) - kiln_raster_from(a)) * j.tiles_x;
    j.row0 = a->row0;
    j.y0 = kiln_raster_from(a) * KILN_TILE;
    for (int k = 0; k < 3; k++) j.background[k] = a->background[k];
    j.rgba_as_vectors = is_aligned(a->rgba);
    j.splats_as_vectors = is_aligned(a->splats);
    j.rule = kiln_blend_rule_of(a->profile);
    return j;
}

} // namespace

#endif
