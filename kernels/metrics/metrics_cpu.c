/* metrics_cpu -- SSIM and PSNR on the CPU: the definition.
 *
 * A picture is cut into pieces of one channel, 64 rows and 128 columns. A piece walks down its rows: each row is read
 * once, with 5 columns more on either side, its five quantities are filtered along the row into a ring of the last
 * 11 rows, and as soon as the ring holds the rows around one, that row is filtered down the columns and the map is
 * summed. So scratch is 64 KiB a thread however large the picture is, and stays in the second-level cache. Sums are
 * integers: neither pieces nor threads show in the result.
 */
#include "kernels/metrics/metrics.h"

#include "base/carve.h"
#include "kernels/metrics/metrics_math.h"

#include <omp.h>

enum {
    PIECE_COLUMNS = KILN_METRICS_PIECE_COLUMNS,
    WIDE = PIECE_COLUMNS + 2 * KILN_SSIM_RADIUS,
    QUANTITIES = 5, /* x, y, x^2, y^2, xy */
};

/* One thread's own. */
typedef struct {
    double wide[QUANTITIES][WIDE];
    double ring[KILN_SSIM_TAPS][QUANTITIES][PIECE_COLUMNS];
    int64_t map[PIECE_COLUMNS];
    kiln_metrics_totals sum;
} scratch;

/* Row y of both pictures with its margins, zero outside; adds the piece's own values to the sums. */
static void read_row(const kiln_metrics_args *a, const kiln_metrics_piece *p, int64_t y, scratch *s)
{
    double *va = s->wide[0], *vb = s->wide[1];
    const float *ra = a->a + (size_t)y * a->a_row * a->a_step + p->channel;
    const float *rb = a->b + (size_t)y * a->b_row * a->b_step + p->channel;
    int64_t left = p->x0 - KILN_SSIM_RADIUS;
    for (int64_t i = 0; i < WIDE; i++) {
        int64_t x = left + i;
        bool inside = x >= 0 && x < a->width;
        va[i] = inside ? kiln_metrics_clamp(ra[x * a->a_step]) : 0.0;
        vb[i] = inside ? kiln_metrics_clamp(rb[x * a->b_step]) : 0.0;
    }
    for (int64_t i = 0; i < WIDE; i++) {
        s->wide[2][i] = va[i] * va[i];
        s->wide[3][i] = vb[i] * vb[i];
        s->wide[4][i] = va[i] * vb[i];
    }
    if (y < p->y0 || y >= p->y1) return;
    int64_t sum_a = 0, sum_b = 0, error = 0;
    for (int64_t i = KILN_SSIM_RADIUS; i < KILN_SSIM_RADIUS + p->x1 - p->x0; i++) {
        double d = va[i] - vb[i];
        sum_a += kiln_fixed(va[i]);
        sum_b += kiln_fixed(vb[i]);
        error += kiln_fixed(d * d);
    }
    s->sum.a[p->channel] += sum_a;
    s->sum.b[p->channel] += sum_b;
    s->sum.mse += error;
}

static void filter_along(const double *restrict v, double *restrict out)
{
    for (int64_t i = 0; i < PIECE_COLUMNS; i++)
        out[i] = kiln_ssim_filter(v[i + 5], v[i + 4] + v[i + 6], v[i + 3] + v[i + 7], v[i + 2] + v[i + 8], v[i + 1] + v[i + 9],
                                  v[i] + v[i + 10]);
}

/* Row y into its place of the ring; rows outside the picture are zero. */
static void fill_ring(const kiln_metrics_args *a, const kiln_metrics_piece *p, int64_t y, scratch *s)
{
    double(*slot)[PIECE_COLUMNS] = s->ring[(y + KILN_SSIM_TAPS) % KILN_SSIM_TAPS];
    if (y < 0 || y >= a->height) {
        memset(slot, 0, sizeof s->ring[0]);
        return;
    }
    read_row(a, p, y, s);
    for (int q = 0; q < QUANTITIES; q++) filter_along(s->wide[q], slot[q]);
}

/* The map of row y, whose 11 rows are in the ring. */
static void map_row(int64_t y, scratch *s)
{
    const double(*r[KILN_SSIM_TAPS])[PIECE_COLUMNS];
    for (int k = 0; k < KILN_SSIM_TAPS; k++) {
        int64_t row = y - KILN_SSIM_RADIUS + k;
        r[k] = (const double(*)[PIECE_COLUMNS])s->ring[(row + KILN_SSIM_TAPS) % KILN_SSIM_TAPS];
    }
    double e[QUANTITIES][PIECE_COLUMNS];
    for (int q = 0; q < QUANTITIES; q++)
        for (int64_t i = 0; i < PIECE_COLUMNS; i++)
            e[q][i] = kiln_ssim_filter(r[5][q][i], r[4][q][i] + r[6][q][i], r[3][q][i] + r[7][q][i], r[2][q][i] + r[8][q][i],
                                       r[1][q][i] + r[9][q][i], r[0][q][i] + r[10][q][i]);
    for (int64_t i = 0; i < PIECE_COLUMNS; i++)
        s->map[i] = kiln_fixed(kiln_ssim_value(e[0][i], e[1][i], e[2][i], e[3][i], e[4][i]));
}

static void sum_map(const kiln_metrics_args *a, const kiln_metrics_piece *p, int64_t y, scratch *s)
{
    int64_t same = 0, valid = 0;
    for (int64_t x = p->x0; x < p->x1; x++) {
        int64_t v = s->map[x - p->x0];
        same += v;
        valid += x >= KILN_SSIM_RADIUS && x < (int64_t)a->width - KILN_SSIM_RADIUS ? v : 0;
    }
    s->sum.same += same;
    if (y >= KILN_SSIM_RADIUS && y < (int64_t)a->height - KILN_SSIM_RADIUS) s->sum.valid += valid;
}

static void do_piece(const kiln_metrics_args *a, const kiln_metrics_piece *p, scratch *s)
{
    for (int64_t y = p->y0 - KILN_SSIM_RADIUS; y < p->y1 + KILN_SSIM_RADIUS; y++) {
        fill_ring(a, p, y, s);
        int64_t ready = y - KILN_SSIM_RADIUS;
        if (ready < p->y0) continue;
        map_row(ready, s);
        sum_map(a, p, ready, s);
    }
}

kiln_status KILN_CPU(metrics)(const kiln_exec *x, const kiln_metrics_args *a, void *work, size_t *work_bytes, kiln_error *err)
{
    kiln_carve c = {.base = work};
    scratch *all = kiln_take(&c, x->threads, sizeof *all);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    if (*work_bytes < c.used) return kiln_fail(err, KILN_E_CAP, "metrics needs %zu bytes, was given %zu", c.used, *work_bytes);
    KILN_TRY(kiln_metrics_check(a, err));

    for (unsigned t = 0; t < x->threads; t++) memset(&all[t].sum, 0, sizeof all[t].sum);
    const int64_t n = kiln_metrics_pieces(a->width, a->height);
#pragma omp parallel for num_threads(x->threads) schedule(dynamic)
    for (int64_t i = 0; i < n; i++) {
        const kiln_metrics_piece p = kiln_metrics_piece_at(a->width, a->height, i);
        do_piece(a, &p, &all[omp_get_thread_num()]);
    }
    kiln_metrics_totals t = {0};
    for (unsigned k = 0; k < x->threads; k++) {
        const kiln_metrics_totals *s = &all[k].sum;
        t.mse += s->mse;
        t.same += s->same;
        t.valid += s->valid;
        for (int i = 0; i < 3; i++) {
            t.a[i] += s->a[i];
            t.b[i] += s->b[i];
        }
    }
    *a->out = kiln_metrics_finish(a->width, a->height, &t);
    return KILN_OK;
}
