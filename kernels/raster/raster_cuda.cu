/* raster on CUDA: a block of 128 threads draws a tile, a warp of it a quarter of 8 x 8 pixels, a thread two pixels of one
 * row, four columns apart, whose state stays in registers: what depends on the row alone, and the Gaussian itself, is
 * taken once for both. Tiles with long lists come first (raster_plan_cuda.cuh).
 *
 * The tile's list is taken in batches. Each thread prepares one Gaussian in shared memory, with one bit for every quarter
 * that it may reach (raster_reach.h). Then each warp looks at 32 of these at once, and its lanes walk together through
 * those that have its bit. A half of which no pixel reaches the threshold skips the exponential, a warp of which every
 * pixel has stopped looks at no more, and a tile ends with its last warp.
 *
 * A pixel does the steps of the CPU sibling in its order. What is skipped around it does not show in its bits.
 */
#include "kernels/raster/raster.h"

#include "kernels/cuda.cuh"
#include "kernels/raster/raster_math.h"
#include "kernels/raster/raster_plan_cuda.cuh"
#include "kernels/raster/raster_reach.h"

namespace
{

enum : uint32_t {
    LANES = 32,
    WARPS = KILN_QUARTERS,
    BLOCK = LANES * WARPS, /* also Gaussians of a batch */
    ACROSS = 4,            /* lanes side by side; the lanes of a warp are 4 x 8 pixels, its quarter two of these */
    PIXELS = KILN_QUARTER / ACROSS,
    BLOCKS_AT_A_TIME = 10, /* on one multiprocessor: 48 registers a thread */
    VECTOR = 16,           /* bytes */
    ALL_LANES = 0xffffffffu,
};

struct job {
    const kiln_splat2d *splats;
    const uint32_t *tile_counts, *ranks;
    const uint64_t *ends;  /* of each tile's list */
    const uint32_t *order; /* of drawing */
    uint64_t *fault;
    float *rgba, *depth;
    uint64_t n, n_pairs, tiles;
    uint32_t width, height, tiles_x, row0;
    float background[3];
    kiln_blend_rule rule;
    bool splats_as_vectors, rgba_as_vectors; /* they are aligned so */
};

/* What a tile needs of one Gaussian, three vectors: read by all lanes of a warp at once. */
struct alignas(VECTOR) entry {
    float x, y, half_a, b, half_c, opacity, power_min, depth, rgb[3], unused;
};

/* The first 48 bytes of a kiln_splat2d, as they are loaded. */
struct alignas(VECTOR) record {
    float x, y, conic[3], opacity, power_min, depth, rgb[3];
    uint32_t row;
};
static_assert(sizeof(entry) == 3 * VECTOR && sizeof(record) == sizeof(entry) &&
                  offsetof(kiln_splat2d, row) == offsetof(record, row),
              "three vectors");
static_assert(sizeof(kiln_splat2d) % VECTOR == 0, "one aligned, all aligned");

struct pixel {
    float x; /* its centre; NaN outside the image and when it has stopped: then no power compares */
    float t; /* transmittance */
    float red, green, blue;
    float weight, depth; /* sum(w), sum(w z) */
};

/* The two pixels of a thread: (x, y) and (x + ACROSS, y). */
struct pixel_row {
    uint32_t x, y;
    float centre_y;
    pixel pixels[PIXELS];
};

struct batch {
    entry entries[BLOCK];
    uint8_t quarters[BLOCK]; /* that each entry may reach */
};

/* ---- one Gaussian ---------------------------------------------------------------------------------------------------- */
__device__ bool names_gaussian(const job &j, uint64_t pair, uint32_t rank)
{
    if (rank < j.n) return true;
    kiln::leave_fault(j.fault, KILN_FAULT(KILN_FAULT_RASTER_RANK, pair));
    return false;
}

__device__ record load_record(const job &j, uint32_t rank)
{
    record r;
    const kiln_splat2d *const from = &j.splats[rank];
    if (j.splats_as_vectors) {
        const float4 *const vectors = reinterpret_cast<const float4 *>(from);
        float4 *const to = reinterpret_cast<float4 *>(&r);
        for (int k = 0; k < 3; k++) to[k] = vectors[k];
    } else {
        const float *const floats = reinterpret_cast<const float *>(from);
        float *const to = reinterpret_cast<float *>(&r);
        for (int k = 0; k < 11; k++) to[k] = floats[k];
    }
    return r;
}

/* Fills e and returns the quarters that it may reach; a pair without a Gaussian reaches none. */
__device__ uint32_t prepare(const job &j, uint64_t pair, uint32_t px0, uint32_t py0, entry *e)
{
    const uint32_t rank = j.ranks[pair];
    if (!names_gaussian(j, pair, rank)) return 0;
    const record r = load_record(j, rank);
    if (isnan(r.opacity)) return 0; /* its alpha never shows; below, the smaller of two numbers may be taken */
    entry filled;
    filled.x = r.x;
    filled.y = r.y;
    filled.half_a = kiln_power_half(r.conic[0]);
    filled.b = r.conic[1];
    filled.half_c = kiln_power_half(r.conic[2]);
    filled.opacity = r.opacity;
    filled.power_min = kiln_least_power(r.power_min);
    filled.depth = r.depth;
    for (int k = 0; k < 3; k++) filled.rgb[k] = r.rgb[k];
    filled.unused = 0.0f;
    *e = filled;
    return kiln_quarters_reached(r.x, r.y, r.conic, r.power_min, px0, py0);
}

/* kiln_alpha of an opacity that is a number. */
__device__ float alpha_of(const entry &e, float power, float max_alpha)
{
    return fminf(e.opacity * kiln_expf_normal(power), max_alpha);
}

template <bool DEPTH> __device__ void blend(const entry &e, const kiln_blend_rule &rule, bool drawn, float power, pixel *p)
{
    const float alpha = alpha_of(e, power, rule.max_alpha);
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

template <bool DEPTH> __device__ void blend_row(const entry &e, const kiln_blend_rule &rule, pixel_row *row)
{
    const float dy = e.y - row->centre_y, slope = kiln_power_slope(e.b, dy), base = kiln_power_base(e.half_c, dy);
#pragma unroll
    for (uint32_t k = 0; k < PIXELS; k++) {
        pixel *const p = &row->pixels[k];
        const float power = kiln_power_at(e.half_a, slope, base, e.x - p->x);
        const bool drawn = power >= e.power_min && power <= 0.0f;
        if (__any_sync(ALL_LANES, drawn)) blend<DEPTH>(e, rule, drawn, power, p);
    }
}

/* ---- a tile ---------------------------------------------------------------------------------------------------------- */
__device__ pixel_row start_row(const job &j, uint32_t px0, uint32_t py0)
{
    const uint32_t warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    pixel_row row = {};
    row.x = px0 + warp % 2 * KILN_QUARTER + lane % ACROSS;
    row.y = py0 + warp / 2 * KILN_QUARTER + lane / ACROSS;
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

/* As vectors: the compiler does not know that it may. */
__device__ entry read_entry(const entry *from)
{
    entry e;
    float4 *const to = reinterpret_cast<float4 *>(&e);
#pragma unroll
    for (int k = 0; k < 3; k++) to[k] = reinterpret_cast<const float4 *>(from)[k];
    return e;
}

/* The first n entries of a batch, in their order; quarters holds 0 beyond them. */
template <bool DEPTH> __device__ void draw_batch(const batch &b, uint64_t n, const kiln_blend_rule &rule, pixel_row *row)
{
    const uint32_t warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    for (uint32_t first = 0; first < BLOCK && first < n && __any_sync(ALL_LANES, is_live(*row)); first += LANES) {
        uint32_t hits = __ballot_sync(ALL_LANES, b.quarters[first + lane] >> warp & 1);
        for (; hits; hits &= hits - 1)
            blend_row<DEPTH>(read_entry(&b.entries[first + static_cast<uint32_t>(__ffs(static_cast<int>(hits))) - 1]), rule, row);
    }
}

template <bool DEPTH> __device__ void write_row(const job &j, const pixel_row &row)
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
        if (DEPTH) j.depth[at] = p.depth / (p.weight > 1e-10f ? p.weight : 1e-10f);
    }
}

template <bool DEPTH> __device__ void draw_tile(const job &j, uint64_t index, batch *b)
{
    const uint32_t px0 = static_cast<uint32_t>(index % j.tiles_x) * KILN_TILE;
    const uint32_t py0 = (j.row0 + static_cast<uint32_t>(index / j.tiles_x)) * KILN_TILE;
    const uint64_t end = j.ends[index];
    pixel_row row = start_row(j, px0, py0);
    uint64_t at = end - j.tile_counts[index];
    /* The vote is also the barrier after which the last batch may be overwritten. */
    for (; at < end && __syncthreads_or(is_live(row)); at += BLOCK) {
        const uint64_t pair = at + threadIdx.x;
        const uint32_t quarters = pair < end ? prepare(j, pair, px0, py0, &b->entries[threadIdx.x]) : 0;
        b->quarters[threadIdx.x] = static_cast<uint8_t>(quarters);
        __syncthreads();
        draw_batch<DEPTH>(*b, end - at, j.rule, &row);
    }
    write_row<DEPTH>(j, row);
    for (at += threadIdx.x; at < end; at += BLOCK) (void)names_gaussian(j, at, j.ranks[at]); /* what no pixel asked for */
}

template <bool DEPTH> __global__ void __launch_bounds__(BLOCK, BLOCKS_AT_A_TIME) draw_tiles(const job j)
{
    __shared__ batch b;
    if (j.ends[j.tiles - 1] != j.n_pairs) { /* the lists may lie outside of ranks: nothing is read */
        if (kiln::thread_index() == 0) kiln::leave_fault(j.fault, KILN_FAULT(KILN_FAULT_RASTER_PAIRS, j.ends[j.tiles - 1]));
        return;
    }
    for (uint64_t turn = blockIdx.x; turn < j.tiles; turn += gridDim.x) draw_tile<DEPTH>(j, j.order[turn], &b);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------- */
bool is_aligned(const void *p) { return reinterpret_cast<uintptr_t>(p) % VECTOR == 0; }

job job_of(const kiln_exec *x, const kiln_raster_args *a, uint64_t tiles, const uint64_t *ends, const uint32_t *order)
{
    job j = {};
    j.splats = a->splats;
    j.tile_counts = a->tile_counts;
    j.ranks = a->ranks;
    j.ends = ends;
    j.order = order;
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
    j.splats_as_vectors = is_aligned(a->splats);
    j.rgba_as_vectors = is_aligned(a->rgba);
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
    uint64_t *const ends = kiln::take<uint64_t>(&c, tiles);
    uint32_t *const order = kiln::take<uint32_t>(&c, tiles);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("raster", c.used, *work_bytes, err));
    if (tiles == 0) return a->n_pairs == 0 ? KILN_OK : kiln_fault_fail(KILN_FAULT(KILN_FAULT_RASTER_PAIRS, 0), err);
    LAUNCH(plan_tiles, 1, PLAN_BLOCK, 0, tiles, a->tile_counts, ends, order);
    const job j = job_of(x, a, tiles, ends, order);
    const unsigned blocks = kiln::blocks_for(tiles, 1, INT32_MAX);
    if (a->depth)
        LAUNCH(draw_tiles<true>, blocks, BLOCK, 0, j);
    else
        LAUNCH(draw_tiles<false>, blocks, BLOCK, 0, j);
    return KILN_OK;
}
