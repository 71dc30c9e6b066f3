/* metrics on CUDA: a block takes a strip of the picture, with all three channels, and walks down
 * eight rows at a time.
 *
 *   down A thread has one value of each row, for its channel and pixel. It keeps s and d of the
 *           last 18 rows in registers. From them it filters eight rows at once and leaves their
 *           moments in shared memory.
 *   along   A thread filters eight neighbours of a row and channel from 18 moments and sums the
 *           map.
 *
 * Eight at once, 18 values are fetched for 88 products, where one at a time would fetch 88. A
 * picture is read once but for the margins of strips and pieces, whole rows of neighbours by a
 * warp, and eight rows ahead: nothing waits for memory.
 *
 * Sums are integers, so neither pieces nor the order of blocks show. Each block adds its own in 128
 * bits, as two halves that never carry into each other; a second launch adds the blocks' and makes
 * the means (totals_cuda.cuh).
 */
#include "kernels/metrics/metrics.h"

#include "kernels/cuda.cuh"
#include "kernels/metrics/metrics_math.h"
#include "kernels/metrics/totals_cuda.cuh"

#include <cuda/barrier>

namespace
{

enum {
    CHANNELS = KILN_METRICS_CHANNELS,
    TAPS = KILN_SSIM_TAPS,
    RADIUS = KILN_SSIM_RADIUS,
    RUN = KILN_SSIM_RUN,
    REACH = RUN + TAPS - 1, /* values that a run is filtered from */
    KEPT = TAPS - 1,        /* of them from the step before */
    CENTRE = RADIUS + KILN_SSIM_CENTRE,
    BLOCKS_MOST = 2048,
    GROUPS_LEAST = 2,  /* of eight rows in a piece; each stretch of it reads 10 rows more */
    GROUPS_MOST = 512, /* a thread adds up 2^12 values of up to 2^48 */
    /* what a thread adds up: squared error, map in `same` and in `valid`, a, b */
    COLUMN_SUMS = 5,
};

/* A strip of PIXELS, and the block for it: a thread for each value of a row with its margins, and
 * 128 registers for it. */
template <int PIXELS> struct strip {
    enum {
        WIDTH = PIXELS,
        COLUMNS = CHANNELS * (PIXELS + 2 * RADIUS),
        THREADS = (COLUMNS + LANES - 1) / LANES * LANES,
        PITCH = THREADS + 1, /* odd: eight rows in eight different groups of banks */
        RESIDENT = 512 / THREADS,
    };
    static_assert(PIXELS % RUN == 0 && CHANNELS * PIXELS <= THREADS,
                  "a thread for each run of eight rows");
};

/* 510 and 126 columns: no other widths leave so few of 16 warps' lanes idle. */
using wide_strip = strip<160>;  /* 129 KiB of shared memory */
using narrow_strip = strip<32>; /* 33 KiB, for devices that have less */

/* What one thread adds up; a, b and the squared error of its own column, the map of its runs. */
struct sums {
    int64_t mse, a, b, same, border; /* border: what is in `same` and not in `valid` */
};

/* kiln_fixed before its last step: every value has this much more. */
constexpr uint64_t FIXED_ZERO = 0x4338000000000000u; /* the bits of 1.5 * 2^52 */

struct __align__(16) moments { kiln_ssim_moments s, d; };

/* Each thread arrives when it has left its moments and waits before it fetches others': in between
 * it works on what is its own. One arrival a warp is no faster, and compute-sanitizer's racecheck
 * takes it for a race. */
using step_barrier = cuda::barrier<cuda::thread_scope_block>;

/* Rows of two steps, so that one barrier a step is enough: a thread that writes a half knows that
 * all others are done with it. */
template <typename STRIP> struct block_memory {
    union {
        moments rows[2][RUN][STRIP::PITCH];
        int64_t sums[COLUMN_SUMS][STRIP::THREADS];
    };
    step_barrier barrier;
};

/* All strips, one below the other, are cut into pieces, equally high but for a group of eight rows.
 * So a piece may have the end of one strip and the beginning of the next. */
struct plan {
    int groups;               /* of a strip; the last may reach below the picture, where all is 0 */
    int pieces, height, more; /* each of `height` groups, the first `more` of one more */
};

/* What of a piece lies in one strip: whole groups. */
struct stretch {
    int x0, y0, y1;
};

/* What the threads of a block share. */
template <typename STRIP> struct block {
    block_memory<STRIP> *memory;
    int half; /* of the rows, for the next step */
};

/* What a thread reads. */
struct column {
    const float *a, *b;      /* at the row that is read next */
    unsigned a_step, b_step; /* bytes of a pixel */
    const uint8_t *mask;     /* if there is one */
    bool inside, own;        /* in the picture; in the piece too, not in its margins */
};

template <int N> struct samples {
    float a[N], b[N];
};

struct window {
    float s[REACH], d[REACH];
};

/* ---- read ------------------------------------------------------------------------------------ */
template <typename STRIP> __device__ column column_of(const kiln_metrics_args &m, const stretch &p)
{
    const int pixel = static_cast<int>(threadIdx.x) / CHANNELS - RADIUS,
              channel = threadIdx.x % CHANNELS, x = p.x0 + pixel;
    const int64_t y = p.y0 - RADIUS;
    column c;
    c.a = m.a + ((y * m.a_row + x) * m.a_step + channel);
    c.b = m.b + ((y * m.b_row + x) * m.b_step + channel);
    c.mask = m.mask + (m.mask ? y * m.width + x : 0);
    c.inside = threadIdx.x < STRIP::COLUMNS && x >= 0 && x < static_cast<int>(m.width);
    c.a_step = c.inside ? m.a_step * sizeof *c.a : 0;
    c.b_step = c.inside ? m.b_step * sizeof *c.b : 0;
    c.own = c.inside && pixel >= 0 && pixel < STRIP::WIDTH;
    return c;
}

/* The address one row on. Written out because the compiler would find each of 16 rows by a multiple
 * of the pitch, in two or three instructions instead of one. */
__device__ const float *next_row(const float *p, unsigned pixels, unsigned bytes)
{
    asm("mad.wide.u32 %0, %1, %2, %0;" : "+l"(p) : "r"(pixels), "r"(bytes));
    return p;
}

/* The next rows, from y on, 0 outside the picture; ALL: none of them is. MASKED: 0 where the mask
 * is, too. */
template <bool MASKED, bool ALL, int N>
__device__ void read_sample_rows(const kiln_metrics_args &m, column *c, int y, samples<N> *to)
{
    const int height = static_cast<int>(m.height);
#pragma unroll
    for (int r = 0; r < N; r++) {
        bool inside = c->inside && (ALL || (y + r >= 0 && y + r < height));
        if (MASKED) {
            inside = inside && __ldg(c->mask) != 0;
            c->mask += m.width;
        }
        to->a[r] = inside ? __ldg(c->a) : 0.0f;
        to->b[r] = inside ? __ldg(c->b) : 0.0f;
        c->a = next_row(c->a, m.a_row, c->a_step);
        c->b = next_row(c->b, m.b_row, c->b_step);
    }
}

template <bool MASKED, int N>
__device__ void read(const kiln_metrics_args &m, column *c, int y, samples<N> *to)
{
    if (y >= 0 && y + N <= static_cast<int>(m.height))
        read_sample_rows<MASKED, true>(m, c, y, to);
    else
        read_sample_rows<MASKED, false>(m, c, y, to);
}

/* Samples become the values of the window from `at` on. */
template <int N> __device__ void enter(samples<N> *in, window *w, int at)
{
#pragma unroll
    for (int r = 0; r < N; r++) {
        in->a[r] = kiln_metrics_clamp(in->a[r]);
        in->b[r] = kiln_metrics_clamp(in->b[r]);
        w->s[at + r] = in->a[r] + in->b[r];
        w->d[at + r] = in->a[r] - in->b[r];
    }
}

/* Squared error and values of rows FROM to END of the samples. */
template <int FROM, int END, int N> __device__ void add_sample_rows(const samples<N> &in, sums *sum)
{
#pragma unroll
    for (int r = FROM; r < END; r++) {
        const double a = static_cast<double>(in.a[r]), b = static_cast<double>(in.b[r]), d = a - b;
        sum->a += kiln_fixed(a);
        sum->b += kiln_fixed(b);
        sum->mse += kiln_fixed(d * d);
    }
}

/* ---- filter ---------------------------------------------------------------------------------- */
/* Sums of four quantities for eight neighbours from the 18 that fetch(i, v) gives, one after the
 * other: each sum takes its taps in their order. ZERO: bits of the quantities that are 0 at the
 * centre, where nothing need be added. */
template <unsigned ZERO, typename FETCH>
__device__ void filter(const FETCH &fetch, float sum[RUN][4])
{
#pragma unroll
    for (int i = 0; i < REACH; i++) {
        float v[4];
        fetch(i, v);
#pragma unroll
        for (int r = 0; r < RUN; r++) {
            const int tap = i - r;
            if (tap < 0 || tap >= TAPS) continue;
            const float weight = kiln_ssim_weight(tap);
            for (int q = 0; q < 4; q++) {
                if (i == CENTRE && (ZERO >> q & 1)) continue;
                sum[r][q] = tap == 0 ? weight * v[q] : kiln_fmaf(weight, v[q], sum[r][q]);
            }
        }
    }
}

template <int PITCH> __device__ void filter_down(const window &w, moments (*rows)[PITCH])
{
    const float centre_s = w.s[CENTRE], centre_d = w.d[CENTRE];
    float sum[RUN][4];
    filter<0xf>(
        [&](int i, float v[4]) {
            v[0] = w.s[i] - centre_s;
            v[1] = v[0] * v[0];
            v[2] = w.d[i] - centre_d;
            v[3] = v[2] * v[2];
        },
        sum);
#pragma unroll
    for (int r = 0; r < RUN; r++)
        rows[r][threadIdx.x] = {kiln_ssim_down(sum[r][0], sum[r][1], centre_s),
                                kiln_ssim_down(sum[r][2], sum[r][3], centre_d)};
}

/* kiln_fixed of what is not negative, above FIXED_ZERO. The float becomes a double by shifts, as
 * conversions have an eighth of the lanes; what is below the least normal float becomes something
 * else as small, of which nothing is left. */
__device__ uint64_t fixed_above_zero(float v)
{
    const unsigned bits = __float_as_uint(v);
    const double d = __hiloint2double(static_cast<int>((bits >> 3) + ((1023u - 127u) << 20)),
                                      static_cast<int>(bits << 29));
    return static_cast<uint64_t>(kiln_fixed(d)) + FIXED_ZERO;
}

/* (1 - map) / 2 in fixed point above FIXED_ZERO, of the run of eight columns that begins at
 * `from`. */
__device__ void filter_along(const moments *from, uint64_t map[RUN])
{
    const float centre_s = from[CHANNELS * CENTRE].s.mean,
                centre_d = from[CHANNELS * CENTRE].d.mean;
    float sum[RUN][4];
    filter<0x5>(
        [&](int i, float v[4]) {
            const moments m = from[CHANNELS * i];
            v[0] = m.s.mean - centre_s;
            v[1] = i == CENTRE ? m.s.var : kiln_fmaf(v[0], v[0], m.s.var);
            v[2] = m.d.mean - centre_d;
            v[3] = i == CENTRE ? m.d.var : kiln_fmaf(v[2], v[2], m.d.var);
        },
        sum);
#pragma unroll
    for (int r = 0; r < RUN; r++) {
        const kiln_ssim_moments s = kiln_ssim_along(sum[r][0], sum[r][1], centre_s);
        const kiln_ssim_moments d = kiln_ssim_along(sum[r][2], sum[r][3], centre_d);
        map[r] = fixed_above_zero(kiln_ssim_short(s, d));
    }
}

/* Of a run that is not all in `valid` or has a mask; a strip may end outside the picture. */
template <bool MASKED>
__device__ void add_border(const uint64_t map[RUN], const uint8_t *mask, int x, int y, int width,
                           int height, sums *sum)
{
    const uint8_t *const row = MASKED ? mask + static_cast<int64_t>(y) * width : nullptr;
    const bool border_row = y < RADIUS || y >= height - RADIUS;
#pragma unroll
    for (int r = 0; r < RUN; r++) {
        const bool counts = x + r < width && (!MASKED || __ldg(row + x + r) != 0);
        const int64_t v = counts ? static_cast<int64_t>(map[r] - FIXED_ZERO) : 0;
        sum->same += v;
        sum->border += border_row || x + r < RADIUS || x + r >= width - RADIUS ? v : 0;
    }
}

/* The map of eight rows from y on: a row's eight lanes apart, so that a quarter of a warp reads
 * eight rows at once. */
template <typename STRIP, bool MASKED>
__device__ void add_map(const kiln_metrics_args &m, const moments (*rows)[STRIP::PITCH], int x0,
                        int y0, sums *sum)
{
    const int row = threadIdx.x % RUN, run = threadIdx.x / RUN / CHANNELS * RUN,
              channel = threadIdx.x / RUN % CHANNELS;
    const int x = x0 + run, y = y0 + row, width = static_cast<int>(m.width),
              height = static_cast<int>(m.height);
    if (run >= STRIP::WIDTH || y >= height) return;
    uint64_t map[RUN], all = 0;
    filter_along(&rows[row][CHANNELS * run + channel], map);
    for (int r = 0; r < RUN; r++) all += map[r];
    if (!MASKED && x >= RADIUS && x + RUN <= width - RADIUS && y >= RADIUS && y < height - RADIUS)
        sum->same += static_cast<int64_t>(all - RUN * FIXED_ZERO);
    else
        add_border<MASKED>(map, m.mask, x, y, width, height, sum);
}

/* ---- sums ------------------------------------------------------------------------------------ */
/* The threads' sums into the block's, a warp for each; first: there are none of the block yet.
 * Channels lie beside one another. */
template <typename STRIP>
__device__ void add_totals(const sums &s, block_memory<STRIP> *memory, bool first, total *to)
{
    const int lane = threadIdx.x % LANES;
    const int64_t own[COLUMN_SUMS] = {s.mse, s.same, s.same - s.border, s.a, s.b};
    __syncthreads(); /* all are done with the rows */
    for (int i = 0; i < COLUMN_SUMS; i++) memory->sums[i][threadIdx.x] = own[i];
    __syncthreads();
    for (int which = threadIdx.x / LANES; which < TOTALS; which += STRIP::THREADS / LANES) {
        const int of_channel = which - KILN_METRICS_A, step = of_channel < 0 ? 1 : CHANNELS;
        const int i = of_channel < 0 ? which : KILN_METRICS_A + of_channel / CHANNELS;
        total sum = {};
        for (int t = lane * step + (of_channel < 0 ? 0 : of_channel % CHANNELS); t < STRIP::THREADS;
             t += LANES * step)
            add_value(&sum, memory->sums[i][t]);
        sum = warp_sum(sum);
        if (lane == 0 && !first) add_total(&sum, to[which]);
        if (lane == 0) to[which] = sum;
    }
    __syncthreads(); /* before rows are written again */
}
static_assert(KILN_METRICS_MSE == 0 && KILN_METRICS_SAME == 1 && KILN_METRICS_VALID == 2 &&
                  KILN_METRICS_A == 3,
              "in this order");

/* ---- kernels --------------------------------------------------------------------------------- */
template <typename STRIP, bool MASKED>
__device__ void do_stretch(const kiln_metrics_args &m, const stretch &p, block<STRIP> *b, sums *sum)
{
    column c = column_of<STRIP>(m, p);
    window w;
    samples<RUN> next;
    {
        samples<KEPT> above;
        read<MASKED>(m, &c, p.y0 - RADIUS, &above);
        read<MASKED>(m, &c, p.y0 + RADIUS, &next);
        enter(&above, &w, RUN);
        if (c.own) add_sample_rows<RADIUS, KEPT>(above, sum);
    }
    for (int y = p.y0; y < p.y1; y += RUN, b->half ^= 1) {
        const bool more = y + RUN < p.y1;
#pragma unroll
        for (int i = 0; i < KEPT; i++) {
            w.s[i] = w.s[i + RUN];
            w.d[i] = w.d[i + RUN];
        }
        enter(&next, &w, KEPT);
        filter_down(w, b->memory->rows[b->half]);
        step_barrier::arrival_token arrived = b->memory->barrier.arrive();
        if (c.own) add_sample_rows<0, RUN - RADIUS>(next, sum);
        if (c.own && more) add_sample_rows<RUN - RADIUS, RUN>(next, sum);
        if (more) read<MASKED>(m, &c, y + RUN + RADIUS, &next);
        b->memory->barrier.wait(static_cast<step_barrier::arrival_token &&>(arrived));
        add_map<STRIP, MASKED>(m, b->memory->rows[b->half], p.x0, y, sum);
    }
}

template <typename STRIP, bool MASKED>
__global__ void __launch_bounds__(STRIP::THREADS, STRIP::RESIDENT)
    sum_pieces(const kiln_metrics_args m, const plan plan, total *totals)
{
    kiln::let_next_launch_begin(); /* make_means waits on the device */
    extern __shared__ __align__(16) char bytes[];
    block<STRIP> b = {reinterpret_cast<block_memory<STRIP> *>(bytes), 0};
    total *const own = totals + blockIdx.x * TOTALS;
    if (threadIdx.x == 0) init(&b.memory->barrier, STRIP::THREADS);
    __syncthreads();
    for (int i = blockIdx.x; i < plan.pieces; i += gridDim.x) {
        const int64_t begin =
            static_cast<int64_t>(i) * plan.height + (i < plan.more ? i : plan.more);
        int x0 = static_cast<int>(begin / plan.groups) * STRIP::WIDTH,
            from = static_cast<int>(begin % plan.groups);
        sums s = {};
        for (int left = plan.height + (i < plan.more); left > 0; x0 += STRIP::WIDTH, from = 0) {
            const int height = left < plan.groups - from ? left : plan.groups - from;
            do_stretch<STRIP, MASKED>(m, {x0, from * RUN, (from + height) * RUN}, &b, &s);
            left -= height;
        }
        add_totals(s, b.memory, i == static_cast<int>(blockIdx.x), own);
    }
}

/* ---- launchers ------------------------------------------------------------------------------- */
/* Pieces that fill the device once, where that makes them neither flat nor so tall that their sums
 * overflow: at most 2^23 of them, as there are at most 2^32 groups in all. */
template <typename STRIP> plan plan_pieces(const kiln_metrics_args *a, int multiprocessors)
{
    plan p;
    p.groups = (static_cast<int>(a->height) + RUN - 1) / RUN;
    const int64_t all = static_cast<int64_t>(p.groups) *
                        ((static_cast<int>(a->width) + STRIP::WIDTH - 1) / STRIP::WIDTH);
    const int64_t at_once = static_cast<int64_t>(multiprocessors) * STRIP::RESIDENT;
    const int64_t least = (all + GROUPS_MOST - 1) / GROUPS_MOST,
                  most = (all + GROUPS_LEAST - 1) / GROUPS_LEAST;
    p.pieces = static_cast<int>(at_once < least ? least : at_once < most ? at_once : most);
    p.height = static_cast<int>(all / p.pieces);
    p.more = static_cast<int>(all % p.pieces);
    return p;
}

template <typename STRIP, bool MASKED>
kiln_status run_metrics(const kiln_exec *x, const kiln_metrics_args *a, total *totals,
                        kiln_metrics_pixels *counts, kiln_error *err)
{
    int multiprocessors = 0;
    const int bytes = sizeof(block_memory<STRIP>);
    CUDA_TRY(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, x->device));
    CUDA_TRY(cudaFuncSetAttribute((sum_pieces<STRIP, MASKED>),
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    const plan p = plan_pieces<STRIP>(a, multiprocessors);
    const unsigned blocks = static_cast<unsigned>(p.pieces < BLOCKS_MOST ? p.pieces : BLOCKS_MOST);
    /* before the strips: the means, launched early, wait for these alone */
    if (MASKED)
        LAUNCH(count_pixels, COUNTERS, COUNTER_THREADS, 0, a->width, a->height, a->mask, counts);
    LAUNCH((sum_pieces<STRIP, MASKED>), blocks, STRIP::THREADS, bytes, *a, p, totals);
    LAUNCH_EARLY(make_means, 1, TOTALS * LANES, a->width, a->height, blocks, totals, counts,
                 a->out);
    return KILN_OK;
}

template <typename STRIP>
kiln_status run_strips(const kiln_exec *x, const kiln_metrics_args *a, total *totals,
                       kiln_metrics_pixels *counts, kiln_error *err)
{
    return a->mask ? run_metrics<STRIP, true>(x, a, totals, counts, err)
                   : run_metrics<STRIP, false>(x, a, totals, nullptr, err);
}

} // namespace

extern "C" kiln_status kiln_metrics_cuda(const kiln_exec *x, const kiln_metrics_args *a, void *work,
                                         size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "metrics");
    CUDA_ENTER(entry.guard);
    kiln_carve c = {static_cast<char *>(work), 0};
    total *const totals = kiln::take<total>(&c, BLOCKS_MOST * TOTALS);
    kiln_metrics_pixels *const counts = kiln::take<kiln_metrics_pixels>(&c, a->mask ? COUNTERS : 0);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("metrics", c.used, *work_bytes, err));
    KILN_TRY(kiln_metrics_check(a, err));
    int shared_bytes = 0;
    CUDA_TRY(
        cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, x->device));
    const bool wide = shared_bytes >= static_cast<int>(sizeof(block_memory<wide_strip>));
    return wide ? run_strips<wide_strip>(x, a, totals, counts, err)
                : run_strips<narrow_strip>(x, a, totals, counts, err);
}
