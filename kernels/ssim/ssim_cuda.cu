/* ssim and ssim_backward on CUDA: tiles of WIDE columns and three runs of eight rows.
 *
 * First each thread takes a column of a run: it reads the 18 values that the run's windows cover,
 * one after another, and adds each to the up to eight windows that it is in. Then, from shared
 * memory, each takes eight neighbours of a row in the same way, and makes their pixels. A block
 * walks down one column of tiles. Columns in shared memory have a gap after every eight, so that
 * neighbouring threads, eight columns apart, meet no bank twice. A picture of few tiles has narrow
 * ones.
 */
#include "kernels/ssim/ssim.h"

#include "kernels/ssim/ssim_sum_cuda.cuh"

namespace
{

enum {
    LANES = kiln::SSIM_LANES,
    RUN = KILN_SSIM_RUN,
    QUAD = 4, /* floats that are read and written at once */
    RADIUS = KILN_SSIM_RADIUS,
    TAPS = KILN_SSIM_TAPS,
    SPAN = KILN_SSIM_SPAN,
    RUNS = 3,
    ROWS = RUNS * RUN,
    BLOCKS_MOST = 1 << 13, /* each has a sum in the work space */
    BANDS_MOST = 1 << 10,  /* whose sums a thread adds up by itself, of eight values each */
};

/* `blocks` of them fit a multiprocessor; at_once: neighbours that a thread has in registers when it
 * goes along a row. */
template <int wide, int blocks, int at_once> struct tile_of {
    static constexpr int WIDE = wide, BLOCKS = blocks, AT_ONCE = at_once;
    static constexpr int COLUMNS = WIDE + 2 * RADIUS, ALONG = WIDE / RUN,
                         PITCH = COLUMNS + COLUMNS / RUN + 1;
    static constexpr int THREADS = (COLUMNS * RUNS + LANES - 1) / LANES * LANES;
    static_assert(ROWS * ALONG <= THREADS, "a thread has one run of columns");
    float4 cells[ROWS][PITCH];
    float2 centres[RUNS][PITCH]; /* of ssim_backward */
};
using wide_tile = tile_of<64, 4, 4>;
using narrow_tile = tile_of<32, 6, 8>;
/* Every device gives a block 48 KiB unasked, for this and the sum of a block. */
static_assert(sizeof(wide_tile) <= 47 << 10, "a larger tile needs cudaFuncSetAttribute");

/* All that a kernel needs to know of the batch. */
struct batch {
    uint64_t planes, values, count;
    int32_t width, height, margin; /* margin: so many pixels at each side do not count */
    bool aligned;                  /* whole quads of a row lie at multiples of 16 bytes */
    uint32_t across, down;         /* tiles of a plane */
    uint64_t bands;                /* rows of tiles, of all planes */
};

struct place {
    uint64_t plane; /* values before it */
    int32_t x, y;
};

/* A block has one column of tiles, in every gridDim.y-th band. */
template <class TILE> __device__ place place_in_band(const batch &b, uint64_t band)
{
    const uint64_t plane = band / b.down;
    return {plane * b.height * b.width, static_cast<int32_t>(blockIdx.x * TILE::WIDE),
            static_cast<int32_t>(band - plane * b.down) * ROWS};
}

__device__ int cell(int column) { return column + column / RUN; }

/* Walks down the 18 rows of a column that the windows of a run cover; what is outside the plane is
 * 0. The same walk serves all arrays of the batch: one comparison and one addition a row. */
struct column_walk {
    int64_t at; /* in an array */
    uint32_t y, rows;
    int32_t width;

    __device__ column_walk(const batch &b, const place &p, int32_t x, int32_t first)
        : at(static_cast<int64_t>(p.plane) + static_cast<int64_t>(first) * b.width + x),
          y(static_cast<uint32_t>(first)),
          rows(x >= 0 && x < b.width ? static_cast<uint32_t>(b.height) : 0), width(b.width)
    {
    }
    /* above the plane y is huge */
    __device__ float read(const float *from) const { return y < rows ? __ldg(from + at) : 0.0f; }
    __device__ void step(int by)
    {
        y += by;
        at += static_cast<int64_t>(by) * width;
    }
};

/* Up to four neighbours of a row, from column x on; zero beyond the end. */
__device__ void read_quad(const batch &b, const float *row, int32_t x, float out[QUAD])
{
    if (b.aligned && x + QUAD <= b.width) {
        const float4 v = __ldg(reinterpret_cast<const float4 *>(row + x));
        out[0] = v.x, out[1] = v.y, out[2] = v.z, out[3] = v.w;
    } else
        for (int i = 0; i < QUAD; i++) out[i] = x + i < b.width ? __ldg(row + x + i) : 0.0f;
}

__device__ void write_quad(const batch &b, float *row, int32_t x, const float v[QUAD])
{
    if (b.aligned && x + QUAD <= b.width)
        *reinterpret_cast<float4 *>(row + x) = make_float4(v[0], v[1], v[2], v[3]);
    else
        for (int i = 0; i < QUAD; i++)
            if (x + i < b.width) row[x + i] = v[i];
}

/* Adds the value at place `at` of a span to the windows that it is in; the taps of each come in
 * their order. */
template <int N> __device__ __forceinline__ void add_to_windows(float (&sums)[N], int at, float v)
{
#pragma unroll
    for (int o = 0; o < N; o++)
        if (at - o >= 0 && at - o < TAPS) sums[o] = fmaf(kiln_ssim_weight(at - o), v, sums[o]);
}

/* ---- forward --------------------------------------------------------------------------------- */

template <int N> struct window_sums {
    float s[N] = {}, s2[N] = {}, d[N] = {}, d2[N] = {};
};

template <class TILE>
__device__ void moments_down(const batch &b, const float *pa, const float *pb, const place &p,
                             TILE *t)
{
    const int column = threadIdx.x % TILE::COLUMNS, run = threadIdx.x / TILE::COLUMNS;
    if (run >= RUNS || p.y + run * RUN >= b.height) return;
    column_walk walk(b, p, p.x - RADIUS + column, p.y + run * RUN - RADIUS), centre = walk;
    centre.step(KILN_SSIM_FIFTH);
    const float centre_a = centre.read(pa), centre_b = centre.read(pb),
                centre_s = centre_a + centre_b, centre_d = centre_a - centre_b;
    window_sums<RUN> w;
#pragma unroll
    for (int r = 0; r < SPAN; r++, walk.step(1)) {
        const float va = walk.read(pa), vb = walk.read(pb), s = va + vb - centre_s,
                    d = va - vb - centre_d;
        add_to_windows(w.s, r, s);
        add_to_windows(w.s2, r, s * s);
        add_to_windows(w.d, r, d);
        add_to_windows(w.d2, r, d * d);
    }
#pragma unroll
    for (int o = 0; o < RUN; o++) {
        const kiln_ssim_moments s = kiln_ssim_down(w.s[o], w.s2[o], centre_s),
                                d = kiln_ssim_down(w.d[o], w.d2[o], centre_d);
        t->cells[run * RUN + o][cell(column)] = make_float4(s.mean, s.var, d.mean, d.var);
    }
}

/* Four pixels of a row, whose windows are w's from `first` on: what they fall short goes into *sum,
 * their slopes into a.partials. */
template <class TILE>
__device__ __forceinline__ void finish_quad(const batch &b, const kiln_ssim_args &a,
                                            const place &at, const window_sums<TILE::AT_ONCE> &w,
                                            int first, float4 centre, int64_t *sum, bool *bad)
{
    const uint64_t row = at.plane + static_cast<uint64_t>(at.y) * b.width;
    const bool row_counts = at.y >= b.margin && at.y < b.height - b.margin;
    const int32_t x = at.x;
    float va[QUAD] = {}, vb[QUAD] = {}, out[KILN_SSIM_PARTIALS][QUAD];
    if (a.partials) {
        read_quad(b, a.a + row, x, va);
        read_quad(b, a.b + row, x, vb);
    }
#pragma unroll
    for (int i = 0; i < QUAD; i++) {
        const int o = first + i;
        const kiln_ssim_moments s = kiln_ssim_along(w.s[o], w.s2[o], centre.x),
                                d = kiln_ssim_along(w.d[o], w.d2[o], centre.z);
        const kiln_ssim_pixel pixel = kiln_ssim_pixel_of(s, d);
        const bool counts = row_counts && x + i >= b.margin && x + i < b.width - b.margin;
        const bool number = kiln_ssim_is_number(pixel.falls_short);
        *bad |= counts && !number;
        *sum += counts && number ? kiln_fixed(static_cast<double>(pixel.falls_short)) : 0;
        const kiln_ssim_slope f =
            kiln_ssim_slope_of(pixel, va[i] + vb[i] - s.mean, va[i] - vb[i] - d.mean);
        out[0][i] = counts ? f.at : 0.0f;
        out[1][i] = counts ? f.by_s : 0.0f;
        out[2][i] = counts ? f.by_d : 0.0f;
    }
    if (!a.partials) return;
#pragma unroll
    for (int part = 0; part < KILN_SSIM_PARTIALS; part++)
        write_quad(b, a.partials + part * b.values + row, x, out[part]);
}

template <class TILE>
__device__ void moments_along(const batch &b, const kiln_ssim_args &a, const place &p,
                              const TILE *t, int64_t *sum, bool *bad)
{
    const int run = threadIdx.x % TILE::ALONG, row = threadIdx.x / TILE::ALONG;
    const int32_t x = p.x + run * RUN, y = p.y + row;
    if (row >= ROWS || y >= b.height || x >= b.width) return;
    const float4 centre = t->cells[row][cell(run * RUN + KILN_SSIM_FIFTH)];
#pragma unroll 1
    for (int first = 0; first < RUN; first += TILE::AT_ONCE) {
        window_sums<TILE::AT_ONCE> w;
#pragma unroll
        for (int k = 0; k < TILE::AT_ONCE + 2 * RADIUS; k++) {
            const float4 m = t->cells[row][cell(run * RUN + first + k)];
            const float s = m.x - centre.x, d = m.z - centre.z;
            add_to_windows(w.s, k, s);
            add_to_windows(w.s2, k, fmaf(s, s, m.y));
            add_to_windows(w.d, k, d);
            add_to_windows(w.d2, k, fmaf(d, d, m.w));
        }
#pragma unroll
        for (int quad = 0; quad < TILE::AT_ONCE; quad += QUAD)
            finish_quad<TILE>(b, a, {p.plane, x + first + quad, y}, w, quad, centre, sum, bad);
    }
}

template <class TILE>
__global__ void __launch_bounds__(TILE::THREADS, TILE::BLOCKS)
    measure_tiles(batch b, kiln_ssim_args a, kiln::ssim_sum *sums)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    TILE *const t = reinterpret_cast<TILE *>(shared_memory);
    __shared__ kiln::ssim_sum of_block;
    int64_t sum = 0;
    bool bad = false;
    unsigned bands = 0;
    kiln::let_next_launch_begin();
    kiln::ssim_begin_sum(&of_block);
    for (uint64_t band = blockIdx.y; band < b.bands; band += gridDim.y) {
        const place p = place_in_band<TILE>(b, band);
        moments_down<TILE>(b, a.a, a.b, p, t);
        __syncthreads();
        moments_along<TILE>(b, a, p, t, &sum, &bad);
        __syncthreads();
        if (++bands % BANDS_MOST != 0) continue;
        kiln::ssim_add(&of_block, sum, bad);
        sum = 0;
    }
    kiln::ssim_add(&of_block, sum, bad);
    kiln::ssim_leave_sum(of_block, sums + blockIdx.y * gridDim.x + blockIdx.x);
}

/* ---- backward -------------------------------------------------------------------------------- */

struct slope_sums {
    float at[RUN] = {}, by_s[RUN] = {}, by_d[RUN] = {};
};

__device__ __forceinline__ void add_slope(slope_sums *w, int at, kiln_ssim_slope f, float s,
                                          float d)
{
    add_to_windows(w->at, at, kiln_ssim_moved(f, s, d));
    add_to_windows(w->by_s, at, f.by_s);
    add_to_windows(w->by_d, at, f.by_d);
}

template <class TILE>
__device__ void slopes_down(const batch &b, const kiln_ssim_backward_args &g, const place &p,
                            TILE *t)
{
    const int column = threadIdx.x % TILE::COLUMNS, run = threadIdx.x / TILE::COLUMNS;
    if (run >= RUNS || p.y + run * RUN >= b.height) return;
    const float *const by_s = g.partials + b.values, *const by_d = by_s + b.values;
    column_walk walk(b, p, p.x - RADIUS + column, p.y + run * RUN - RADIUS), centre = walk;
    centre.step(KILN_SSIM_FIFTH);
    const float centre_a = centre.read(g.a), centre_b = centre.read(g.b),
                centre_s = centre_a + centre_b, centre_d = centre_a - centre_b;
    slope_sums w;
#pragma unroll
    for (int r = 0; r < SPAN; r++, walk.step(1)) {
        const float va = walk.read(g.a), vb = walk.read(g.b);
        add_slope(&w, r, {walk.read(g.partials), walk.read(by_s), walk.read(by_d)},
                  centre_s - (va + vb), centre_d - (va - vb));
    }
#pragma unroll
    for (int o = 0; o < RUN; o++)
        t->cells[run * RUN + o][cell(column)] = make_float4(w.at[o], w.by_s[o], w.by_d[o], 0.0f);
    t->centres[run][cell(column)] = make_float2(centre_s, centre_d);
}

template <class TILE>
__device__ void slopes_along(const batch &b, const kiln_ssim_backward_args &g, const place &p,
                             float scale, const TILE *t)
{
    const int run = threadIdx.x % TILE::ALONG, row = threadIdx.x / TILE::ALONG;
    const int32_t x = p.x + run * RUN, y = p.y + row;
    if (row >= ROWS || y >= b.height || x >= b.width) return;
    const float2 *const centres = t->centres[row / RUN],
                        centre = centres[cell(run * RUN + KILN_SSIM_FIFTH)];
    slope_sums w;
#pragma unroll
    for (int k = 0; k < SPAN; k++) {
        const float4 f = t->cells[row][cell(run * RUN + k)];
        const float2 from = centres[cell(run * RUN + k)];
        add_slope(&w, k, {f.x, f.y, f.z}, centre.x - from.x, centre.y - from.y);
    }
    const uint64_t at = p.plane + static_cast<uint64_t>(y) * b.width;
#pragma unroll
    for (int first = 0; first < RUN; first += QUAD) {
        float va[QUAD], vb[QUAD];
        read_quad(b, g.a + at, x + first, va);
        read_quad(b, g.b + at, x + first, vb);
#pragma unroll
        for (int i = 0; i < QUAD; i++) {
            const kiln_ssim_slope f = {w.at[first + i], w.by_s[first + i], w.by_d[first + i]};
            va[i] = scale * kiln_ssim_moved(f, va[i] + vb[i] - centre.x, va[i] - vb[i] - centre.y);
        }
        write_quad(b, g.gradient + at, x + first, va);
    }
}

template <class TILE>
__global__ void __launch_bounds__(TILE::THREADS, TILE::BLOCKS)
    gradient_tiles(batch b, kiln_ssim_backward_args g)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    TILE *const t = reinterpret_cast<TILE *>(shared_memory);
    const float scale = kiln_ssim_scale(*g.upstream, b.count);
    for (uint64_t band = blockIdx.y; band < b.bands; band += gridDim.y) {
        const place p = place_in_band<TILE>(b, band);
        slopes_down<TILE>(b, g, p, t);
        __syncthreads();
        slopes_along<TILE>(b, g, p, scale, t);
        __syncthreads();
    }
}

/* ---- entries --------------------------------------------------------------------------------- */

bool quads(const void *p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

template <class ARGS> batch batch_of(const ARGS *a, int wide)
{
    batch b = {};
    b.planes = a->planes;
    b.width = static_cast<int32_t>(a->width);
    b.height = static_cast<int32_t>(a->height);
    b.margin = a->valid ? RADIUS : 0;
    b.values = a->planes * a->height * a->width;
    b.count = kiln_ssim_count(a->planes, a->width, a->height, a->valid);
    b.across = (a->width + wide - 1) / wide;
    b.down = (a->height + ROWS - 1) / ROWS;
    b.bands = a->planes * b.down;
    b.aligned = a->width % 4 == 0 && quads(a->a) && quads(a->b) && quads(a->partials);
    return b;
}

dim3 blocks_of(const batch &b)
{
    const uint64_t most = BLOCKS_MOST > b.across ? BLOCKS_MOST / b.across : 1;
    return dim3(b.across, static_cast<unsigned>(b.bands < most ? b.bands : most));
}

/* Whichever tiles are chosen. */
unsigned sums_most(const kiln_ssim_args *a)
{
    const dim3 narrow = blocks_of(batch_of(a, narrow_tile::WIDE)),
               wide = blocks_of(batch_of(a, wide_tile::WIDE));
    return max(narrow.x * narrow.y, wide.x * wide.y);
}

template <class TILE>
kiln_status measure(const kiln_exec *x, const kiln_ssim_args *a, kiln::ssim_sum *sums,
                    kiln_error *err)
{
    const batch b = batch_of(a, TILE::WIDE);
    const dim3 blocks = blocks_of(b);
    LAUNCH(measure_tiles<TILE>, blocks, TILE::THREADS, sizeof(TILE), b, *a, sums);
    LAUNCH_EARLY(kiln::ssim_make_mean, 1, kiln::SSIM_MEAN_THREADS, b.count, blocks.x * blocks.y,
                 sums, a->mean);
    return KILN_OK;
}

template <class TILE>
kiln_status differentiate(const kiln_exec *x, const kiln_ssim_backward_args *a, kiln_error *err)
{
    batch b = batch_of(a, TILE::WIDE);
    b.aligned = b.aligned && quads(a->gradient);
    LAUNCH(gradient_tiles<TILE>, blocks_of(b), TILE::THREADS, sizeof(TILE), b, *a);
    return KILN_OK;
}

/* Wide tiles where there are so many that every multiprocessor has one. */
template <class ARGS>
kiln_status choose_tiles(const kiln_exec *x, const ARGS *a, bool *wide, kiln_error *err)
{
    int processors = 0;
    const batch b = batch_of(a, wide_tile::WIDE);
    CUDA_TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, x->device));
    *wide = b.across * b.bands >= static_cast<uint64_t>(processors);
    return KILN_OK;
}

} // namespace

extern "C" kiln_status kiln_ssim_cuda(const kiln_exec *x, const kiln_ssim_args *a, void *work,
                                      size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "ssim");
    bool wide = false;
    CUDA_ENTER(entry.guard);
    KILN_TRY(kiln_ssim_check(a->planes, a->width, a->height, err));
    kiln_carve c = {static_cast<char *>(work), 0};
    kiln::ssim_sum *const sums = kiln::take<kiln::ssim_sum>(&c, sums_most(a));
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("ssim", c.used, *work_bytes, err));
    KILN_TRY(choose_tiles(x, a, &wide, err));
    return wide ? measure<wide_tile>(x, a, sums, err) : measure<narrow_tile>(x, a, sums, err);
}

extern "C" kiln_status kiln_ssim_backward_cuda(const kiln_exec *x, const kiln_ssim_backward_args *a,
                                               void *work, size_t *work_bytes, kiln_error *err)
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
    return wide ? differentiate<wide_tile>(x, a, err) : differentiate<narrow_tile>(x, a, err);
}
