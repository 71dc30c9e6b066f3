/* metrics_cpu -- SSIM and PSNR on the CPU: the definition.
 *
 * A picture is cut into pieces of one channel, 64 rows and 128 columns. A piece walks down its
 * rows: each row is read once, with 5 columns more on either side, into a ring of the last 11; as
 * soon as the ring holds the rows around one, these are filtered down the columns, then along the
 * row, and the map is summed. So scratch is 14 KiB a thread however large the picture is, and stays
 * in the first-level cache. Sums are integers: neither pieces nor threads show in the result.
 */
#include "kernels/metrics/metrics.h"

#include "base/carve.h"
#include "kernels/metrics/metrics_math.h"

#include <omp.h>

enum {
    PIECE_COLUMNS = KILN_METRICS_PIECE_COLUMNS,
    WIDE = PIECE_COLUMNS + 2 * KILN_SSIM_RADIUS,
};

/* One thread's own. */
typedef struct {
    float sum[KILN_SSIM_TAPS][WIDE], difference[KILN_SSIM_TAPS][WIDE];
    int64_t map[PIECE_COLUMNS];
    kiln_fixed_total totals[KILN_METRICS_TOTALS];
} scratch;

/* The piece's own values of a row, into the sums. */
static void add_row(const kiln_metrics_piece *p, const float *a, const float *b, scratch *s)
{
    int64_t sum_a = 0, sum_b = 0, error = 0;
    for (int64_t i = KILN_SSIM_RADIUS; i < KILN_SSIM_RADIUS + p->x1 - p->x0; i++) {
        const double va = (double)a[i], vb = (double)b[i], d = va - vb;
        sum_a += kiln_fixed(va);
        sum_b += kiln_fixed(vb);
        error += kiln_fixed(d * d);
    }
    s->totals[KILN_METRICS_A + p->channel] += sum_a;
    s->totals[KILN_METRICS_B + p->channel] += sum_b;
    s->totals[KILN_METRICS_MSE] += error;
}

static int64_t ring_slot(int64_t y) { return (y + KILN_SSIM_TAPS) % KILN_SSIM_TAPS; }

/* Of row y of the mask from x0 - 5 on, 0 where it leaves the pixel out. */
static void leave_out(const kiln_metrics_args *a, const kiln_metrics_piece *p, int64_t y,
                      float va[WIDE], float vb[WIDE])
{
    const uint8_t *mask = a->mask + (size_t)y * a->width;
    for (int64_t i = 0; i < WIDE; i++) {
        const int64_t x = p->x0 - KILN_SSIM_RADIUS + i;
        if (x >= 0 && x < a->width && mask[x] == 0) va[i] = vb[i] = 0.0f;
    }
}

/* Row y of both pictures with its margins, zero outside, into the ring. */
static void read_row(const kiln_metrics_args *a, const kiln_metrics_piece *p, int64_t y, scratch *s)
{
    float va[WIDE], vb[WIDE];
    const bool row_inside = y >= 0 && y < a->height;
    const float *ra = a->a + (row_inside ? (size_t)y * a->a_row * a->a_step : 0) + p->channel;
    const float *rb = a->b + (row_inside ? (size_t)y * a->b_row * a->b_step : 0) + p->channel;
    for (int64_t i = 0; i < WIDE; i++) {
        const int64_t x = p->x0 - KILN_SSIM_RADIUS + i;
        const bool inside = row_inside && x >= 0 && x < a->width;
        va[i] = inside ? kiln_metrics_clamp(ra[x * a->a_step]) : 0.0f;
        vb[i] = inside ? kiln_metrics_clamp(rb[x * a->b_step]) : 0.0f;
    }
    if (row_inside && a->mask) leave_out(a, p, y, va, vb);
    for (int64_t i = 0; i < WIDE; i++) {
        s->sum[ring_slot(y)][i] = va[i] + vb[i];
        s->difference[ring_slot(y)][i] = va[i] - vb[i];
    }
    if (y >= p->y0 && y < p->y1) add_row(p, va, vb, s);
}

/* A row with its margins, filtered down, and one filtered along too. */
typedef struct {
    float mean[WIDE], var[WIDE];
} filtered_row;

/* Row y of a ring that holds the rows around it. */
static void filter_down(float ring[KILN_SSIM_TAPS][WIDE], int64_t y, filtered_row *restrict out)
{
    const float *rows[KILN_SSIM_TAPS];
    const float *const centre =
        ring[ring_slot(y / KILN_SSIM_RUN * KILN_SSIM_RUN + KILN_SSIM_CENTRE)];
    for (int k = 0; k < KILN_SSIM_TAPS; k++) rows[k] = ring[ring_slot(y - KILN_SSIM_RADIUS + k)];
#pragma omp simd /* in the baseline build too, which is not vectorised of itself */
    for (int64_t i = 0; i < WIDE; i++) {
        float sum = 0.0f, sum2 = 0.0f;
#pragma GCC unroll 11 /* taps: a loop in here would keep the one around it from being vectorised */
        for (int k = 0; k < KILN_SSIM_TAPS; k++) {
            const float t = rows[k][i] - centre[i];
            sum = kiln_fmaf(kiln_ssim_weight(k), t, sum);
            sum2 = kiln_fmaf(kiln_ssim_weight(k), t * t, sum2);
        }
        const kiln_ssim_moments m = kiln_ssim_down(sum, sum2, centre[i]);
        out->mean[i] = m.mean;
        out->var[i] = m.var;
    }
}

/* Column i of `out` is column i + 5 of `in`. */
static void filter_along(const filtered_row *in, filtered_row *restrict out)
{
    float centre[PIECE_COLUMNS];
    for (int64_t i = 0; i < PIECE_COLUMNS; i++)
        centre[i] =
            in->mean[KILN_SSIM_RADIUS + i / KILN_SSIM_RUN * KILN_SSIM_RUN + KILN_SSIM_CENTRE];
#pragma omp simd
    for (int64_t i = 0; i < PIECE_COLUMNS; i++) {
        float sum = 0.0f, sum2 = 0.0f;
#pragma GCC unroll 11 /* as above */
        for (int k = 0; k < KILN_SSIM_TAPS; k++) {
            const float u = in->mean[i + k] - centre[i];
            sum = kiln_fmaf(kiln_ssim_weight(k), u, sum);
            sum2 = kiln_fmaf(kiln_ssim_weight(k), kiln_fmaf(u, u, in->var[i + k]), sum2);
        }
        const kiln_ssim_moments m = kiln_ssim_along(sum, sum2, centre[i]);
        out->mean[i] = m.mean;
        out->var[i] = m.var;
    }
}

/* The map of row y, whose 11 rows are in the rings. */
static void map_row(int64_t y, scratch *s)
{
    filtered_row down, sum, difference;
    filter_down(s->sum, y, &down);
    filter_along(&down, &sum);
    filter_down(s->difference, y, &down);
    filter_along(&down, &difference);
    for (int64_t i = 0; i < PIECE_COLUMNS; i++) {
        const kiln_ssim_moments ms = {sum.mean[i], sum.var[i]},
                                md = {difference.mean[i], difference.var[i]};
        s->map[i] = kiln_fixed((double)kiln_ssim_short(ms, md));
    }
}

static void sum_map(const kiln_metrics_args *a, const kiln_metrics_piece *p, int64_t y, scratch *s)
{
    int64_t same = 0, valid = 0;
    const uint8_t *mask = a->mask ? a->mask + (size_t)y * a->width : NULL;
    for (int64_t x = p->x0; mask && x < p->x1; x++)
        if (mask[x] == 0) s->map[x - p->x0] = 0;
    for (int64_t x = p->x0; x < p->x1; x++) {
        int64_t v = s->map[x - p->x0];
        same += v;
        valid += x >= KILN_SSIM_RADIUS && x < (int64_t)a->width - KILN_SSIM_RADIUS ? v : 0;
    }
    s->totals[KILN_METRICS_SAME] += same;
    if (y >= KILN_SSIM_RADIUS && y < (int64_t)a->height - KILN_SSIM_RADIUS)
        s->totals[KILN_METRICS_VALID] += valid;
}

static void do_piece(const kiln_metrics_args *a, const kiln_metrics_piece *p, scratch *s)
{
    for (int64_t y = p->y0 - KILN_SSIM_RADIUS; y < p->y1 + KILN_SSIM_RADIUS; y++) {
        read_row(a, p, y, s);
        int64_t ready = y - KILN_SSIM_RADIUS;
        if (ready < p->y0) continue;
        map_row(ready, s);
        sum_map(a, p, ready, s);
    }
}

static kiln_metrics_pixels count_pixels(const kiln_exec *x, const kiln_metrics_args *a)
{
    uint64_t same = 0, valid = 0;
    if (!a->mask) return kiln_metrics_all_pixels(a->width, a->height);
#pragma omp parallel for num_threads(x->threads) reduction(+ : same, valid)
    for (int64_t y = 0; y < a->height; y++) {
        const uint8_t *mask = a->mask + (size_t)y * a->width;
        for (int64_t i = 0; i < a->width; i++) {
            same += mask[i] != 0;
            valid += mask[i] != 0 && kiln_metrics_in_valid(a->width, a->height, i, y);
        }
    }
    return (kiln_metrics_pixels){same, valid};
}

/* kiln_metrics_cpu, kiln_metrics_cpu_avx2 */
kiln_status KILN_CPU(metrics)(const kiln_exec *x, const kiln_metrics_args *a, void *work,
                              size_t *work_bytes, kiln_error *err)
{
    kiln_carve c = {.base = work};
    scratch *all = kiln_take(&c, x->threads, sizeof *all);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    if (*work_bytes < c.used)
        return kiln_fail(err, KILN_E_CAP,
                         "metrics needs %zu bytes of work space, but was given %zu", c.used,
                         *work_bytes);
    KILN_TRY(kiln_metrics_check(a, err));

    for (unsigned t = 0; t < x->threads; t++) memset(all[t].totals, 0, sizeof all[t].totals);
    const int64_t n = kiln_metrics_pieces(a->width, a->height);
#pragma omp parallel for num_threads(x->threads) schedule(dynamic)
    for (int64_t i = 0; i < n; i++) {
        const kiln_metrics_piece p = kiln_metrics_piece_at(a->width, a->height, i);
        do_piece(a, &p, &all[omp_get_thread_num()]);
    }
    const kiln_metrics_pixels pixels = count_pixels(x, a);
    double means[KILN_METRICS_TOTALS];
    for (unsigned k = 0; k < KILN_METRICS_TOTALS; k++) {
        kiln_fixed_total sum = 0;
        for (unsigned t = 0; t < x->threads; t++) sum += all[t].totals[k];
        means[k] = kiln_fixed_mean(sum, kiln_metrics_values(pixels, k));
    }
    *a->out = kiln_metrics_of_means(means);
    return KILN_OK;
}
