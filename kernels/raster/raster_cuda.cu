/* raster on CUDA: a block of 256 threads draws a tile, a warp of it 8 x 4 pixels, a thread one pixel, whose state stays in
 * registers.
 *
 * The tile's list is taken in batches. Each thread prepares one Gaussian in shared memory, with one bit for every warp
 * whose pixels it may reach (reach_math.h). Then each warp looks at 32 of these at once, and its lanes walk together
 * through those that have its bit. A warp of which every pixel has stopped looks at no more, and a tile ends with its
 * last warp.
 *
 * A pixel does the steps of the CPU sibling in its order. What is skipped around it does not show in its bits.
 */
#include "kernels/raster/raster.h"

#include "kernels/cuda.cuh"
#include "kernels/math/reach_math.h"
#include "kernels/raster/raster_math.h"

#include <cub/device/device_scan.cuh>
#include <thrust/iterator/transform_iterator.h>

namespace
{

enum : uint32_t {
    BLOCK = KILN_TILE * KILN_TILE, /* pixels of a tile; also Gaussians of a batch */
    LANES = 32,
    ACROSS = 8, /* pixels of a warp, from left to right */
    DOWN = LANES / ACROSS,
    STRIPS = KILN_TILE / ACROSS, /* warps side by side */
    WARPS = BLOCK / LANES,
    ALL_LANES = 0xffffffffu,
};

struct job {
    const kiln_splat2d *splats;
    const uint32_t *tile_counts, *ranks;
    const uint64_t *ends; /* of each tile's list */
    uint64_t *fault;
    float *rgba, *depth;
    uint64_t n, n_pairs, tiles;
    uint32_t width, height, tiles_x, row0;
    float background[3];
    kiln_blend_rule rule;
};

/* What a tile needs of one Gaussian: 44 bytes, read by all lanes of a warp at once. */
struct alignas(16) entry {
    float x, y, half_a, b, half_c, power_min, opacity, depth, rgb[3];
};

struct pixel {
    uint32_t x, y;
    float t; /* transmittance */
    float red, green, blue;
    float weight, depth; /* sum(w), sum(w z) */
    bool live;           /* inside the image, and has not stopped */
};

/* ---- one Gaussian ---------------------------------------------------------------------------------------------------- */
/* One bit a warp: rows [y0, y1] and columns [x0, x1] of the image touch its pixels. */
__device__ uint32_t warps_of(int32_t px0, int32_t py0, int32_t x0, int32_t x1, int32_t y0, int32_t y1)
{
    uint32_t warps = 0;
    if (x0 > x1 || y0 > y1) return 0;
#pragma unroll
    for (uint32_t w = 0; w < WARPS; w++) {
        const int32_t left = px0 + static_cast<int32_t>(w % STRIPS * ACROSS), top = py0 + static_cast<int32_t>(w / STRIPS * DOWN);
        const bool meets =
            x0 < left + static_cast<int32_t>(ACROSS) && x1 >= left && y0 < top + static_cast<int32_t>(DOWN) && y1 >= top;
        warps |= static_cast<uint32_t>(meets) << w;
    }
    return warps;
}

__device__ bool names_gaussian(const job &j, uint64_t pair)
{
    if (j.ranks[pair] < j.n) return true;
    kiln::leave_fault(j.fault, KILN_FAULT(KILN_FAULT_RASTER_RANK, pair));
    return false;
}

/* Fills e and returns the warps that it may reach; a pair without a Gaussian reaches none. */
__device__ uint32_t prepare(const job &j, uint64_t pair, uint32_t px0, uint32_t py0, entry *e)
{
    if (!names_gaussian(j, pair)) return 0;
    const kiln_splat2d *s = &j.splats[j.ranks[pair]];
    const float a = s->conic[0], b = s->conic[1], c = s->conic[2];
    const int32_t first_x = static_cast<int32_t>(px0), first_y = static_cast<int32_t>(py0);
    int32_t x0, x1, y0, y1;
    e->x = s->x;
    e->y = s->y;
    e->half_a = kiln_power_half(a);
    e->b = b;
    e->half_c = kiln_power_half(c);
    e->power_min = kiln_least_power(s->power_min);
    e->opacity = s->opacity;
    e->depth = s->depth;
    for (int k = 0; k < 3; k++) e->rgb[k] = s->rgb[k];
    kiln_reach_range(s->y, kiln_half_reach(a, b, c, s->power_min), first_y, first_y + KILN_TILE - 1, &y0, &y1);
    kiln_reach_range(s->x, kiln_half_reach(c, b, a, s->power_min), first_x, first_x + KILN_TILE - 1, &x0, &x1);
    return warps_of(first_x, first_y, x0, x1, y0, y1);
}

__device__ void blend(const entry &e, const kiln_blend_rule &rule, pixel *p)
{
    const float dy = kiln_power_offset(e.y, p->y);
    const float power =
        kiln_power_at(e.half_a, kiln_power_slope(e.b, dy), kiln_power_base(e.half_c, dy), kiln_power_offset(e.x, p->x));
    if (!(p->live && power >= e.power_min && power <= 0.0f)) return;
    const float alpha = kiln_alpha(e.opacity, power, rule.max_alpha);
    if (!kiln_alpha_shows(alpha)) return;
    const float left = p->t * (1.0f - alpha), w = alpha * p->t;
    if (left < rule.stop_below) {
        p->live = false;
        return;
    }
    p->red += e.rgb[0] * w;
    p->green += e.rgb[1] * w;
    p->blue += e.rgb[2] * w;
    p->weight += w;
    p->depth += e.depth * w;
    p->t = left;
}

/* ---- a tile ---------------------------------------------------------------------------------------------------------- */
__device__ pixel start_pixel(const job &j, uint32_t px0, uint32_t py0)
{
    const uint32_t warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    pixel p = {};
    p.x = px0 + warp % STRIPS * ACROSS + lane % ACROSS;
    p.y = py0 + warp / STRIPS * DOWN + lane / ACROSS;
    p.t = 1.0f;
    p.live = p.x < j.width && p.y < j.height;
    return p;
}

/* The first n of a batch, in their order; reaches holds 0 beyond them. */
__device__ void draw_batch(const entry *batch, const uint8_t *reaches, uint64_t n, const kiln_blend_rule &rule, pixel *p)
{
    const uint32_t warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    for (uint32_t first = 0; first < BLOCK && first < n && __any_sync(ALL_LANES, p->live); first += LANES) {
        uint32_t hits = __ballot_sync(ALL_LANES, reaches[first + lane] >> warp & 1);
        for (; hits; hits &= hits - 1) blend(batch[first + static_cast<uint32_t>(__ffs(static_cast<int>(hits))) - 1], rule, p);
    }
}

__device__ void write_pixel(const job &j, const pixel &p)
{
    if (p.x >= j.width || p.y >= j.height) return;
    const uint64_t at = uint64_t(p.y - j.row0 * KILN_TILE) * j.width + p.x;
    j.rgba[4 * at] = p.red + p.t * j.background[0];
    j.rgba[4 * at + 1] = p.green + p.t * j.background[1];
    j.rgba[4 * at + 2] = p.blue + p.t * j.background[2];
    j.rgba[4 * at + 3] = 1.0f - p.t;
    if (j.depth) j.depth[at] = p.depth / (p.weight > 1e-10f ? p.weight : 1e-10f);
}

__global__ void __launch_bounds__(BLOCK) draw_tiles(const job j)
{
    __shared__ entry batch[BLOCK];
    __shared__ uint8_t reaches[BLOCK];
    if (j.ends[j.tiles - 1] != j.n_pairs) { /* the lists may lie outside of ranks: nothing is read */
        if (kiln::thread_index() == 0) kiln::leave_fault(j.fault, KILN_FAULT(KILN_FAULT_RASTER_PAIRS, j.ends[j.tiles - 1]));
        return;
    }
    for (uint64_t index = blockIdx.x; index < j.tiles; index += gridDim.x) {
        const uint32_t px0 = static_cast<uint32_t>(index % j.tiles_x) * KILN_TILE;
        const uint32_t py0 = (j.row0 + static_cast<uint32_t>(index / j.tiles_x)) * KILN_TILE;
        const uint64_t end = j.ends[index];
        pixel p = start_pixel(j, px0, py0);
        uint64_t at = end - j.tile_counts[index];
        /* The vote is also the barrier after which the last batch may be overwritten. */
        for (; at < end && __syncthreads_or(p.live); at += BLOCK) {
            const uint64_t pair = at + threadIdx.x;
            const uint32_t warps = pair < end ? prepare(j, pair, px0, py0, &batch[threadIdx.x]) : 0;
            reaches[threadIdx.x] = static_cast<uint8_t>(warps);
            __syncthreads();
            draw_batch(batch, reaches, end - at, j.rule, &p);
        }
        write_pixel(j, p);
        for (at += threadIdx.x; at < end; at += BLOCK) (void)names_gaussian(j, at); /* what no pixel asked for */
    }
}

/* ---- launchers ------------------------------------------------------------------------------------------------------- */
struct widen {
    __host__ __device__ uint64_t operator()(uint32_t v) const { return v; }
};

/* Where each tile's list ends. Called with cub NULL for its size, then for the work itself. */
cudaError_t find_ends(const kiln_raster_args *a, uint64_t tiles, void *cub, size_t *cub_bytes, uint64_t *ends, cudaStream_t stream)
{
    return kiln_cub::cub::DeviceScan::InclusiveSum(cub, *cub_bytes,
                                                   kiln_cub::thrust::make_transform_iterator(a->tile_counts, widen()), ends,
                                                   static_cast<int64_t>(tiles), stream);
}

job job_of(const kiln_exec *x, const kiln_raster_args *a, uint64_t tiles, const uint64_t *ends)
{
    job j = {};
    j.splats = a->splats;
    j.tile_counts = a->tile_counts;
    j.ranks = a->ranks;
    j.ends = ends;
    j.fault = x->fault;
    j.rgba = a->rgba;
    j.depth = a->depth;
    j.n = a->n;
    j.n_pairs = a->n_pairs;
    j.tiles = tiles;
    j.width = a->view->width;
    j.height = a->view->height;
    j.tiles_x = kiln_view_tiles_x(a->view);
    j.row0 = a->row0;
    for (int k = 0; k < 3; k++) j.background[k] = a->background[k];
    j.rule = kiln_blend_rule_of(a->profile, kiln_profiles[a->profile].max_alpha);
    return j;
}

} // namespace

extern "C" kiln_status kiln_raster_cuda(const kiln_exec *x, const kiln_raster_args *a, void *work, size_t *work_bytes,
                                        kiln_error *err)
{
    KILN_TRY(kiln_raster_check(a, err));
    const kiln::entry entry(x, "raster");
    CUDA_ENTER(entry.guard);
    const uint64_t tiles = uint64_t(a->row1 - a->row0) * kiln_view_tiles_x(a->view);
    kiln_carve c = {static_cast<char *>(work), 0};
    size_t cub_bytes = 0;
    uint64_t *const ends = kiln::take<uint64_t>(&c, tiles);
    CUDA_TRY(find_ends(a, tiles, nullptr, &cub_bytes, ends, x->stream));
    void *const cub = kiln_take(&c, cub_bytes, 1);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("raster", c.used, *work_bytes, err));
    if (tiles == 0) return a->n_pairs == 0 ? KILN_OK : kiln_fault_fail(KILN_FAULT(KILN_FAULT_RASTER_PAIRS, 0), err);
    CUDA_RUN(find_ends(a, tiles, cub, &cub_bytes, ends, x->stream));
    LAUNCH(draw_tiles, kiln::blocks_for(tiles, 1, INT32_MAX), BLOCK, 0, job_of(x, a, tiles, ends));
    return KILN_OK;
}
