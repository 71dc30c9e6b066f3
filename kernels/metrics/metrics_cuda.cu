/* metrics on CUDA: a block takes a piece of the picture, a thread one column of it, and walks down.
 *
 * Each row of both pictures is read once into shared memory, with 5 columns more on either side; every thread filters its
 * five quantities along the row into a ring of the last 11 rows in its registers, and as soon as the ring holds the rows
 * around one, filters that row down the column. While a row is filtered the next one is on its way. Pictures, not maps,
 * are all that memory sees.
 *
 * Sums are integers, so neither pieces nor the order of blocks show. A block's fit 64 bits; they go into 128 bits in two
 * halves that never carry into each other, and one thread makes the means of them.
 */
#include "kernels/metrics/metrics.h"

#include "kernels/cuda.cuh"
#include "kernels/metrics/metrics_math.h"

namespace
{

enum {
    COLUMNS = KILN_METRICS_PIECE_COLUMNS, /* threads of a block */
    MARGIN = 2 * KILN_SSIM_RADIUS,
    BLOCKS = 3, /* at a time on a multiprocessor: leaves 168 registers a thread, of which the ring takes 110 */
    WIDE = COLUMNS + MARGIN,
    QUANTITIES = 5, /* x, y, x^2, y^2, xy */
    LANES = 32,
};

/* Of 128 bits: the value is low + 2^32 high. A piece adds less than 2^32 to low and 2^29 to high, and there are
 * less than 2^29 pieces. */
struct total {
    uint64_t low, high;
};

enum { MSE, SAME, VALID, MEAN_A, MEAN_B = MEAN_A + 3, TOTALS = MEAN_B + 3 };

/* What one thread adds up, all of one channel. */
struct sums {
    int64_t mse, same, valid, a, b;
};

/* One row of a piece with its margins. */
struct wide_row {
    double a[WIDE], b[WIDE];
};

/* What a thread reads of a row: its column, and the first ones another at the end of the margin. */
struct samples {
    float a[2], b[2];
};

/* ---- rows ------------------------------------------------------------------------------------------------------------ */
__device__ samples read_row(const kiln_metrics_args &m, const kiln_metrics_piece &p, int64_t y)
{
    samples s = {};
    if (y < 0 || y >= m.height) return s;
    for (int k = 0; k < 2; k++) {
        const int64_t i = threadIdx.x + k * COLUMNS, x = p.x0 - KILN_SSIM_RADIUS + i;
        if (i >= WIDE || x < 0 || x >= m.width) continue;
        s.a[k] = m.a[(y * m.a_row + x) * m.a_step + p.channel];
        s.b[k] = m.b[(y * m.b_row + x) * m.b_step + p.channel];
    }
    return s;
}

__device__ void put_row(const samples &s, wide_row *row)
{
    for (int k = 0; k < 2; k++) {
        const unsigned i = threadIdx.x + k * COLUMNS;
        if (i >= WIDE) continue;
        row->a[i] = kiln_metrics_clamp(s.a[k]);
        row->b[i] = kiln_metrics_clamp(s.b[k]);
    }
}

/* u[i] v[i] around the thread's column. */
__device__ double filter_product(const double *u, const double *v)
{
    return kiln_ssim_filter(u[5] * v[5], u[4] * v[4] + u[6] * v[6], u[3] * v[3] + u[7] * v[7], u[2] * v[2] + u[8] * v[8],
                            u[1] * v[1] + u[9] * v[9], u[0] * v[0] + u[10] * v[10]);
}

__device__ double filter_plain(const double *v)
{
    return kiln_ssim_filter(v[5], v[4] + v[6], v[3] + v[7], v[2] + v[8], v[1] + v[9], v[0] + v[10]);
}

/* The ring moves on by one row; all indices are constants, so that it stays in registers. */
__device__ void filter_along(const wide_row &row, double ring[QUANTITIES][KILN_SSIM_TAPS])
{
    const double *a = row.a + threadIdx.x, *b = row.b + threadIdx.x;
#pragma unroll
    for (int q = 0; q < QUANTITIES; q++)
#pragma unroll
        for (int k = 0; k < KILN_SSIM_TAPS - 1; k++) ring[q][k] = ring[q][k + 1];
    ring[0][KILN_SSIM_TAPS - 1] = filter_plain(a);
    ring[1][KILN_SSIM_TAPS - 1] = filter_plain(b);
    ring[2][KILN_SSIM_TAPS - 1] = filter_product(a, a);
    ring[3][KILN_SSIM_TAPS - 1] = filter_product(b, b);
    ring[4][KILN_SSIM_TAPS - 1] = filter_product(a, b);
}

__device__ int64_t map_value(const double ring[QUANTITIES][KILN_SSIM_TAPS])
{
    return kiln_fixed(kiln_ssim_value(filter_plain(ring[0]), filter_plain(ring[1]), filter_plain(ring[2]), filter_plain(ring[3]),
                                      filter_plain(ring[4])));
}

__device__ void add_samples(const wide_row &row, sums *s)
{
    const double a = row.a[threadIdx.x + KILN_SSIM_RADIUS], b = row.b[threadIdx.x + KILN_SSIM_RADIUS], d = a - b;
    s->a += kiln_fixed(a);
    s->b += kiln_fixed(b);
    s->mse += kiln_fixed(d * d);
}

__device__ void add_map(const kiln_metrics_args &m, int64_t x, int64_t y, int64_t value, sums *s)
{
    s->same += value;
    if (x >= KILN_SSIM_RADIUS && x < (int64_t)m.width - KILN_SSIM_RADIUS && y >= KILN_SSIM_RADIUS &&
        y < (int64_t)m.height - KILN_SSIM_RADIUS)
        s->valid += value;
}

/* ---- sums ------------------------------------------------------------------------------------------------------------ */
/* The sum over the block, in thread 0. */
__device__ int64_t block_sum(int64_t v, int64_t *of_warps)
{
    for (int step = LANES / 2; step > 0; step /= 2) v += __shfl_down_sync(0xffffffffu, v, step);
    __syncthreads(); /* the last sum has been read */
    if (threadIdx.x % LANES == 0) of_warps[threadIdx.x / LANES] = v;
    __syncthreads();
    if (threadIdx.x > 0) return 0;
    v = 0;
    for (int w = 0; w < COLUMNS / LANES; w++) v += of_warps[w];
    return v;
}

__device__ void add_total(total *to, int64_t v)
{
    if (threadIdx.x > 0) return;
    kiln::add64(&to->low, static_cast<uint64_t>(v) & 0xffffffffu);
    kiln::add64(&to->high, static_cast<uint64_t>(v >> 32));
}

__device__ kiln_fixed_total value_of(const total &t)
{
    return static_cast<kiln_fixed_total>(static_cast<int64_t>(t.high)) * ((int64_t)1 << 32) + t.low;
}

/* ---- kernels --------------------------------------------------------------------------------------------------------- */
__global__ void __launch_bounds__(COLUMNS, BLOCKS) sum_pieces(const kiln_metrics_args m, total *totals)
{
    __shared__ wide_row rows[2]; /* one is filled while slower threads still read the other */
    __shared__ int64_t of_warps[COLUMNS / LANES];
    const kiln_metrics_piece p = kiln_metrics_piece_at(m.width, m.height, blockIdx.x);
    const int64_t x = p.x0 + threadIdx.x;
    double ring[QUANTITIES][KILN_SSIM_TAPS] = {};
    sums s = {};
    samples next = read_row(m, p, p.y0 - KILN_SSIM_RADIUS);
    for (int64_t y = p.y0 - KILN_SSIM_RADIUS; y < p.y1 + KILN_SSIM_RADIUS; y++) {
        wide_row *const row = &rows[y & 1];
        put_row(next, row);
        __syncthreads();
        next = read_row(m, p, y + 1);
        filter_along(*row, ring);
        if (x >= p.x1) continue;
        if (y >= p.y0 && y < p.y1) add_samples(*row, &s);
        if (y >= p.y0 + KILN_SSIM_RADIUS) add_map(m, x, y - KILN_SSIM_RADIUS, map_value(ring), &s);
    }
    add_total(&totals[MSE], block_sum(s.mse, of_warps));
    add_total(&totals[SAME], block_sum(s.same, of_warps));
    add_total(&totals[VALID], block_sum(s.valid, of_warps));
    add_total(&totals[MEAN_A + p.channel], block_sum(s.a, of_warps));
    add_total(&totals[MEAN_B + p.channel], block_sum(s.b, of_warps));
}

__global__ void finish(uint32_t width, uint32_t height, const total *totals, kiln_metrics *out)
{
    kiln_metrics_totals t;
    t.mse = value_of(totals[MSE]);
    t.same = value_of(totals[SAME]);
    t.valid = value_of(totals[VALID]);
    for (int c = 0; c < 3; c++) {
        t.a[c] = value_of(totals[MEAN_A + c]);
        t.b[c] = value_of(totals[MEAN_B + c]);
    }
    *out = kiln_metrics_finish(width, height, &t);
}

} // namespace

extern "C" kiln_status kiln_metrics_cuda(const kiln_exec *x, const kiln_metrics_args *a, void *work, size_t *work_bytes,
                                         kiln_error *err)
{
    const kiln::entry entry(x, "metrics");
    CUDA_ENTER(entry.guard);
    kiln_carve c = {static_cast<char *>(work), 0};
    total *const totals = kiln::take<total>(&c, TOTALS);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("metrics", c.used, *work_bytes, err));
    KILN_TRY(kiln_metrics_check(a, err));
    const unsigned pieces = static_cast<unsigned>(kiln_metrics_pieces(a->width, a->height)); /* less than 2^29 */
    CUDA_RUN(cudaMemsetAsync(totals, 0, TOTALS * sizeof *totals, x->stream));
    LAUNCH(sum_pieces, pieces, COLUMNS, 0, *a, totals);
    LAUNCH(finish, 1, 1, 0, a->width, a->height, totals, a->out);
    return KILN_OK;
}
