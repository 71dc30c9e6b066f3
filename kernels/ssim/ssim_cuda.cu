/* ssim and ssim_backward on CUDA: tiles of WIDE columns and three runs of eight rows.
 *
 * First each thread takes a column of a run: it reads the 18 values that the run's windows cover, one after another, and adds each
 * to the up to eight windows that it is in. Then, from shared memory, each takes eight neighbours of a row in the same way, and
 * makes their pixels. Columns in shared memory have a gap after every eight, so that neighbouring threads, eight columns apart,
 * meet no bank twice. A device without 76 KiB of shared memory for a block, and a picture of few tiles, has narrow tiles.
 */
#include "kernels/ssim/ssim.h"

#include "kernels/cuda.cuh"
#include "kernels/ssim/ssim_math.h"

namespace
{

enum {
    LANES = 32,
    RUN = KILN_SSIM_RUN,
    RADIUS = KILN_SSIM_RADIUS,
    TAPS = KILN_SSIM_TAPS,
    SPAN = KILN_SSIM_SPAN,
    RUNS = 3,
    ROWS = RUNS * RUN,
    TILES_MOST = 1024, /* of a block: a thread's sum of 2^10 times 8 values of 48 bits fits 63 */
};

template <int WIDE> struct tile_of {
    static constexpr int COLUMNS = WIDE + 2 * RADIUS, ALONG = WIDE / RUN, PITCH = COLUMNS + COLUMNS / RUN + 1;
    static constexpr int THREADS = (COLUMNS * RUNS + LANES - 1) / LANES * LANES;
    static_assert(ROWS * ALONG <= THREADS, "a thread has one run of columns");
    static constexpr int BLOCKS = THREADS >= 512 ? 2 : 6; /* of a multiprocessor */
    float4 cells[ROWS][PITCH];
    float2 centres[RUNS][PITCH]; /* of ssim_backward */
};
using wide_tile = tile_of<160>;
using narrow_tile = tile_of<32>;

/* All that a kernel needs to know of the batch. */
struct batch {
    uint64_t planes, values, count;
    uint32_t width, height;
    bool valid, aligned; /* whole quads of a row lie at multiples of 16 bytes */
    uint64_t across, down, tiles;
};

struct totals {
    uint64_t low, high, bad; /* the sum is low + 2^32 high */
};

struct place {
    uint64_t plane; /* values before it */
    int64_t x, y;
};

template <int WIDE> __device__ place place_of_tile(const batch &b, uint64_t tile)
{
    return {tile / b.across / b.down * b.height * b.width, static_cast<int64_t>(tile % b.across * WIDE),
            static_cast<int64_t>(tile / b.across % b.down * ROWS)};
}

__device__ int cell(int column) { return column + column / RUN; }

/* A column of a plane, zero outside; row y of it is the first that is read. */
struct column_reader {
    const float *from;
    uint32_t width, height;
    int64_t y;
    bool inside;

    __device__ column_reader(const batch &b, const float *values, const place &p, int64_t x)
        : from(values + p.plane + x), width(b.width), height(b.height), y(p.y), inside(x >= 0 && x < b.width)
    {
    }
    __device__ float at(int row) const
    {
        const int64_t r = y + row;
        return inside && r >= 0 && r < height ? __ldg(from + r * width) : 0.0f;
    }
};

/* Up to eight neighbours of a row, from column x on; zero beyond the end. */
__device__ void read_run(const batch &b, const float *row, int64_t x, float out[RUN])
{
    for (int half = 0; half < RUN; half += 4) {
        if (b.aligned && x + half + 4 <= b.width) {
            const float4 v = __ldg(reinterpret_cast<const float4 *>(row + x + half));
            out[half] = v.x, out[half + 1] = v.y, out[half + 2] = v.z, out[half + 3] = v.w;
        } else
            for (int i = half; i < half + 4; i++) out[i] = x + i < b.width ? __ldg(row + x + i) : 0.0f;
    }
}

__device__ void write_run(const batch &b, float *row, int64_t x, const float v[RUN])
{
    for (int half = 0; half < RUN; half += 4) {
        if (b.aligned && x + half + 4 <= b.width)
            *reinterpret_cast<float4 *>(row + x + half) = make_float4(v[half], v[half + 1], v[half + 2], v[half + 3]);
        else
            for (int i = half; i < half + 4; i++)
                if (x + i < b.width) row[x + i] = v[i];
    }
}

/* Adds the value at place `at` of a span to the windows that it is in; the taps of each come in their order. */
__device__ __forceinline__ void add_to_windows(float sums[RUN], int at, float v)
{
#pragma unroll
    for (int o = 0; o < RUN; o++)
        if (at - o >= 0 && at - o < TAPS) sums[o] = fmaf(kiln_ssim_weight(at - o), v, sums[o]);
}

/* ---- forward ----------------------------------------------------------------------------------------------------------- */

struct window_sums {
    float s[RUN] = {}, s2[RUN] = {}, d[RUN] = {}, d2[RUN] = {};
};

template <int WIDE> __device__ void moments_down(const batch &b, const float *pa, const float *pb, const place &p, tile_of<WIDE> *t)
{
    const int column = threadIdx.x % t->COLUMNS, run = threadIdx.x / t->COLUMNS;
    if (run >= RUNS || p.y + run * RUN >= b.height) return;
    const place from = {p.plane, p.x, p.y + run * RUN - RADIUS};
    const column_reader a(b, pa, from, p.x - RADIUS + column), c(b, pb, from, p.x - RADIUS + column);
    const float centre_s = a.at(KILN_SSIM_FIFTH) + c.at(KILN_SSIM_FIFTH), centre_d = a.at(KILN_SSIM_FIFTH) - c.at(KILN_SSIM_FIFTH);
    window_sums w;
#pragma unroll
    for (int r = 0; r < SPAN; r++) {
        const float va = a.at(r), vc = c.at(r), s = va + vc - centre_s, d = va - vc - centre_d;
        add_to_windows(w.s, r, s);
        add_to_windows(w.s2, r, s * s);
        add_to_windows(w.d, r, d);
        add_to_windows(w.d2, r, d * d);
    }
#pragma unroll
    for (int o = 0; o < RUN; o++) {
        const kiln_ssim_moments s = kiln_ssim_down(w.s[o], w.s2[o], centre_s), d = kiln_ssim_down(w.d[o], w.d2[o], centre_d);
        t->cells[run * RUN + o][cell(column)] = make_float4(s.mean, s.var, d.mean, d.var);
    }
}

/* Eight pixels of a row: what they fall short goes into *sum, their slopes into f. */
__device__ void finish_run(const batch &b, int64_t x, int64_t y, const window_sums &w, float centre_s, float centre_d,
                           const float va[RUN], const float vb[RUN], kiln_ssim_slope f[RUN], int64_t *sum, bool *bad)
{
#pragma unroll
    for (int o = 0; o < RUN; o++) {
        const kiln_ssim_moments s = kiln_ssim_along(w.s[o], w.s2[o], centre_s), d = kiln_ssim_along(w.d[o], w.d2[o], centre_d);
        const kiln_ssim_pixel pixel = kiln_ssim_pixel_of(s, d);
        const bool counts = x + o < b.width && (!b.valid || kiln_metrics_in_valid(b.width, b.height, x + o, y));
        const bool number = kiln_ssim_is_number(pixel.falls_short);
        *bad |= counts && !number;
        *sum += counts && number ? kiln_fixed(static_cast<double>(pixel.falls_short)) : 0;
        const kiln_ssim_slope none = {0.0f, 0.0f, 0.0f};
        f[o] = counts ? kiln_ssim_slope_of(pixel, va[o] + vb[o] - s.mean, va[o] - vb[o] - d.mean) : none;
    }
}

__device__ void write_slopes(const batch &b, float *partials, uint64_t row, int64_t x, const kiln_ssim_slope f[RUN])
{
    float v[RUN];
#pragma unroll
    for (int part = 0; part < KILN_SSIM_PARTIALS; part++) {
#pragma unroll
        for (int o = 0; o < RUN; o++) v[o] = part == 0 ? f[o].at : part == 1 ? f[o].by_s : f[o].by_d;
        write_run(b, partials + part * b.values + row, x, v);
    }
}

template <int WIDE>
__device__ void moments_along(const batch &b, const kiln_ssim_args &a, const place &p, const tile_of<WIDE> *t, int64_t *sum,
                              bool *bad)
{
    const int run = threadIdx.x % t->ALONG, row = threadIdx.x / t->ALONG;
    const int64_t x = p.x + run * RUN, y = p.y + row;
    if (row >= ROWS || y >= b.height || x >= b.width) return;
    const float4 centre = t->cells[row][cell(run * RUN + KILN_SSIM_FIFTH)];
    window_sums w;
#pragma unroll
    for (int k = 0; k < SPAN; k++) {
        const float4 m = t->cells[row][cell(run * RUN + k)];
        const float s = m.x - centre.x, d = m.z - centre.z;
        add_to_windows(w.s, k, s);
        add_to_windows(w.s2, k, fmaf(s, s, m.y));
        add_to_windows(w.d, k, d);
        add_to_windows(w.d2, k, fmaf(d, d, m.w));
    }
    const uint64_t at = p.plane + static_cast<uint64_t>(y) * b.width;
    float va[RUN] = {}, vb[RUN] = {};
    kiln_ssim_slope f[RUN];
    if (a.partials) {
        read_run(b, a.a + at, x, va);
        read_run(b, a.b + at, x, vb);
    }
    finish_run(b, x, y, w, centre.x, centre.z, va, vb, f, sum, bad);
    if (a.partials) write_slopes(b, a.partials, at, x, f);
}

/* The block's sum, in two halves that never carry into each other, onto that of all blocks. */
__device__ void add_block(totals *to, int64_t sum, bool bad)
{
    __shared__ uint64_t low, high;
    if (threadIdx.x == 0) low = high = 0;
    const bool any = __syncthreads_or(bad);
    uint64_t l = static_cast<uint64_t>(sum) & 0xffffffffu, h = static_cast<uint64_t>(sum >> 32);
    for (int step = LANES / 2; step > 0; step /= 2) {
        l += __shfl_down_sync(0xffffffffu, l, step);
        h += __shfl_down_sync(0xffffffffu, h, step);
    }
    if (threadIdx.x % LANES == 0) {
        kiln::add64(&low, l);
        kiln::add64(&high, h);
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    kiln::add64(&to->low, low);
    kiln::add64(&to->high, high);
    if (any) kiln::add64(&to->bad, 1);
}

template <int WIDE>
__global__ void __launch_bounds__(tile_of<WIDE>::THREADS, tile_of<WIDE>::BLOCKS)
    measure_tiles(batch b, kiln_ssim_args a, totals *to)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    tile_of<WIDE> *const t = reinterpret_cast<tile_of<WIDE> *>(shared_memory);
    int64_t sum = 0;
    bool bad = false;
    for (uint64_t tile = blockIdx.x; tile < b.tiles; tile += gridDim.x) {
        const place p = place_of_tile<WIDE>(b, tile);
        moments_down<WIDE>(b, a.a, a.b, p, t);
        __syncthreads();
        moments_along<WIDE>(b, a, p, t, &sum, &bad);
        __syncthreads();
    }
    add_block(to, sum, bad);
}

__global__ void make_mean(uint64_t count, const totals *of, float *mean)
{
    const kiln_fixed_total sum = static_cast<kiln_fixed_total>(static_cast<int64_t>(of->high)) * ((int64_t)1 << 32) + of->low;
    *mean = kiln_ssim_mean(sum, count, of->bad != 0);
}

/* ---- backward ---------------------------------------------------------------------------------------------------------- */

struct slope_sums {
    float at[RUN] = {}, by_s[RUN] = {}, by_d[RUN] = {};
};

__device__ __forceinline__ void add_slope(slope_sums *w, int at, kiln_ssim_slope f, float s, float d)
{
    add_to_windows(w->at, at, kiln_ssim_moved(f, s, d));
    add_to_windows(w->by_s, at, f.by_s);
    add_to_windows(w->by_d, at, f.by_d);
}

template <int WIDE> __device__ void slopes_down(const batch &b, const kiln_ssim_backward_args &g, const place &p, tile_of<WIDE> *t)
{
    const int column = threadIdx.x % t->COLUMNS, run = threadIdx.x / t->COLUMNS;
    const int64_t x = p.x - RADIUS + column;
    if (run >= RUNS || p.y + run * RUN >= b.height) return;
    const place from = {p.plane, p.x, p.y + run * RUN - RADIUS};
    const column_reader a(b, g.a, from, x), c(b, g.b, from, x), at(b, g.partials, from, x), by_s(b, g.partials + b.values, from, x),
        by_d(b, g.partials + 2 * b.values, from, x);
    const float centre_s = a.at(KILN_SSIM_FIFTH) + c.at(KILN_SSIM_FIFTH), centre_d = a.at(KILN_SSIM_FIFTH) - c.at(KILN_SSIM_FIFTH);
    slope_sums w;
#pragma unroll
    for (int r = 0; r < SPAN; r++) {
        const float va = a.at(r), vc = c.at(r);
        add_slope(&w, r, {at.at(r), by_s.at(r), by_d.at(r)}, centre_s - (va + vc), centre_d - (va - vc));
    }
#pragma unroll
    for (int o = 0; o < RUN; o++) t->cells[run * RUN + o][cell(column)] = make_float4(w.at[o], w.by_s[o], w.by_d[o], 0.0f);
    t->centres[run][cell(column)] = make_float2(centre_s, centre_d);
}

template <int WIDE>
__device__ void slopes_along(const batch &b, const kiln_ssim_backward_args &g, const place &p, float scale, const tile_of<WIDE> *t)
{
    const int run = threadIdx.x % t->ALONG, row = threadIdx.x / t->ALONG;
    const int64_t x = p.x + run * RUN, y = p.y + row;
    if (row >= ROWS || y >= b.height || x >= b.width) return;
    const float2 *const centres = t->centres[row / RUN], centre = centres[cell(run * RUN + KILN_SSIM_FIFTH)];
    slope_sums w;
#pragma unroll
    for (int k = 0; k < SPAN; k++) {
        const float4 f = t->cells[row][cell(run * RUN + k)];
        const float2 from = centres[cell(run * RUN + k)];
        add_slope(&w, k, {f.x, f.y, f.z}, centre.x - from.x, centre.y - from.y);
    }
    const uint64_t at = p.plane + static_cast<uint64_t>(y) * b.width;
    float va[RUN], vb[RUN];
    read_run(b, g.a + at, x, va);
    read_run(b, g.b + at, x, vb);
#pragma unroll
    for (int o = 0; o < RUN; o++)
        va[o] = scale * kiln_ssim_moved({w.at[o], w.by_s[o], w.by_d[o]}, va[o] + vb[o] - centre.x, va[o] - vb[o] - centre.y);
    write_run(b, g.gradient + at, x, va);
}

template <int WIDE>
__global__ void __launch_bounds__(tile_of<WIDE>::THREADS, tile_of<WIDE>::BLOCKS) gradient_tiles(batch b, kiln_ssim_backward_args g)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    tile_of<WIDE> *const t = reinterpret_cast<tile_of<WIDE> *>(shared_memory);
    const float scale = kiln_ssim_scale(*g.upstream, b.count);
    for (uint64_t tile = blockIdx.x; tile < b.tiles; tile += gridDim.x) {
        const place p = place_of_tile<WIDE>(b, tile);
        slopes_down<WIDE>(b, g, p, t);
        __syncthreads();
        slopes_along<WIDE>(b, g, p, scale, t);
        __syncthreads();
    }
}

/* ---- entries ----------------------------------------------------------------------------------------------------------- */

bool quads(const void *p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

template <class ARGS> batch batch_of(const ARGS *a, int wide)
{
    batch b = {};
    b.planes = a->planes;
    b.width = a->width;
    b.height = a->height;
    b.valid = a->valid;
    b.values = a->planes * a->height * a->width;
    b.count = kiln_ssim_count(a->planes, a->width, a->height, a->valid);
    b.across = (static_cast<uint64_t>(a->width) + wide - 1) / wide;
    b.down = (static_cast<uint64_t>(a->height) + ROWS - 1) / ROWS;
    b.tiles = a->planes * b.across * b.down;
    b.aligned = a->width % 4 == 0 && quads(a->a) && quads(a->b) && quads(a->partials);
    return b;
}

unsigned blocks_of(uint64_t tiles)
{
    const uint64_t least = (tiles + TILES_MOST - 1) / TILES_MOST, most = least > kiln::BLOCKS_MOST ? least : kiln::BLOCKS_MOST;
    return static_cast<unsigned>(tiles < most ? tiles : most);
}

template <int WIDE> kiln_status measure(const kiln_exec *x, const kiln_ssim_args *a, totals *to, kiln_error *err)
{
    const batch b = batch_of(a, WIDE);
    constexpr int bytes = sizeof(tile_of<WIDE>);
    CUDA_TRY(cudaFuncSetAttribute(measure_tiles<WIDE>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    LAUNCH(measure_tiles<WIDE>, blocks_of(b.tiles), tile_of<WIDE>::THREADS, bytes, b, *a, to);
    LAUNCH(make_mean, 1, 1, 0, b.count, to, a->mean);
    return KILN_OK;
}

template <int WIDE> kiln_status differentiate(const kiln_exec *x, const kiln_ssim_backward_args *a, kiln_error *err)
{
    batch b = batch_of(a, WIDE);
    b.aligned = b.aligned && quads(a->gradient);
    constexpr int bytes = sizeof(tile_of<WIDE>);
    CUDA_TRY(cudaFuncSetAttribute(gradient_tiles<WIDE>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    LAUNCH(gradient_tiles<WIDE>, blocks_of(b.tiles), tile_of<WIDE>::THREADS, bytes, b, *a);
    return KILN_OK;
}

/* Wide tiles need the shared memory, and enough of them that every multiprocessor has one. */
template <class ARGS> kiln_status choose_tiles(const kiln_exec *x, const ARGS *a, bool *wide, kiln_error *err)
{
    int shared_bytes = 0, processors = 0;
    CUDA_TRY(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, x->device));
    CUDA_TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, x->device));
    *wide =
        shared_bytes >= static_cast<int>(sizeof(wide_tile)) + 1024 && batch_of(a, 160).tiles >= static_cast<uint64_t>(processors);
    return KILN_OK;
}

} // namespace

extern "C" kiln_status kiln_ssim_cuda(const kiln_exec *x, const kiln_ssim_args *a, void *work, size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "ssim");
    bool wide = false;
    CUDA_ENTER(entry.guard);
    kiln_carve c = {static_cast<char *>(work), 0};
    totals *const to = kiln::take<totals>(&c, 1);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("ssim", c.used, *work_bytes, err));
    KILN_TRY(kiln_ssim_check(a->planes, a->width, a->height, err));
    KILN_TRY(choose_tiles(x, a, &wide, err));
    CUDA_RUN(cudaMemsetAsync(to, 0, sizeof *to, x->stream));
    return wide ? measure<160>(x, a, to, err) : measure<32>(x, a, to, err);
}

extern "C" kiln_status kiln_ssim_backward_cuda(const kiln_exec *x, const kiln_ssim_backward_args *a, void *work, size_t *work_bytes,
                                               kiln_error *err)
{
    const kiln::entry entry(x, "ssim_backward");
    bool wide = false;
    CUDA_ENTER(entry.guard);
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    KILN_TRY(kiln_ssim_check(a->planes, a->width, a->height, err));
    KILN_TRY(choose_tiles(x, a, &wide, err));
    return wide ? differentiate<160>(x, a, err) : differentiate<32>(x, a, err);
}
