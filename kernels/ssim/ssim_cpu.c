/* ssim and ssim_backward on the CPU: the definition.
 *
 * Planes are cut into pieces of 8 rows, one run, and 128 columns. Of a piece the 18 rows that its
 * windows cover are read once; each of its rows is filtered down, then along. Sums are integers:
 * neither pieces nor threads show in the result.
 */
#include "kernels/ssim/ssim.h"

#include "base/carve.h"
#include "kernels/ssim/ssim_math.h"

#include <omp.h>

kiln_ssim_fn KILN_CPU(ssim);
kiln_ssim_backward_fn KILN_CPU(ssim_backward);

enum { COLUMNS = 128, SPREAD = COLUMNS + 2 * KILN_SSIM_RADIUS, SPAN = KILN_SSIM_SPAN };

typedef struct {
    uint32_t width, height;
    uint64_t plane; /* values before it */
    int64_t x0, x1, y0, y1;
} ssim_piece;

typedef float span_rows[SPAN][SPREAD];

/* One thread's own. */
typedef struct {
    span_rows s, d, at, by_s, by_d;
    kiln_fixed_total sum;
    bool bad;
} ssim_scratch;

typedef struct {
    float mean[SPREAD], var[SPREAD];
} moment_row;

typedef struct {
    float at[SPREAD], by_s[SPREAD], by_d[SPREAD];
} slope_row;

static int64_t pieces_across(uint32_t width) { return (width + COLUMNS - 1) / COLUMNS; }
static int64_t pieces_down(uint32_t height) { return (height + KILN_SSIM_RUN - 1) / KILN_SSIM_RUN; }

static ssim_piece piece_at(uint32_t width, uint32_t height, int64_t i)
{
    const int64_t across = pieces_across(width), down = pieces_down(height);
    ssim_piece p = {
        .width = width, .height = height, .plane = (uint64_t)(i / across / down) * height * width};
    p.x0 = i % across * COLUMNS;
    p.y0 = i / across % down * KILN_SSIM_RUN;
    p.x1 = p.x0 + COLUMNS < width ? p.x0 + COLUMNS : width;
    p.y1 = p.y0 + KILN_SSIM_RUN < height ? p.y0 + KILN_SSIM_RUN : height;
    return p;
}

/* The rows around a piece, zero outside of the plane. */
static void read_span(const ssim_piece *p, const float *from, span_rows to)
{
    for (int64_t r = 0; r < SPAN; r++) {
        const int64_t y = p->y0 - KILN_SSIM_RADIUS + r, first = p->x0 - KILN_SSIM_RADIUS;
        const bool inside = y >= 0 && y < p->height;
        const float *row = from + p->plane + (inside ? (uint64_t)y * p->width : 0);
        for (int64_t i = 0; i < SPREAD; i++)
            to[r][i] = inside && first + i >= 0 && first + i < p->width ? row[first + i] : 0.0f;
    }
}

static void read_pictures(const ssim_piece *p, const float *a, const float *b, ssim_scratch *t)
{
    read_span(p, a, t->s);
    read_span(p, b, t->d);
    for (int r = 0; r < SPAN; r++)
        for (int i = 0; i < SPREAD; i++) {
            const float va = t->s[r][i], vb = t->d[r][i];
            t->s[r][i] = va + vb;
            t->d[r][i] = va - vb;
        }
}

/* Row o of the run, of all columns of the span. */
static void moments_down(span_rows v, int o, moment_row *restrict out)
{
    const float *const centre = v[KILN_SSIM_FIFTH];
#pragma omp simd
    for (int i = 0; i < SPREAD; i++) {
        float sum = 0.0f, sum2 = 0.0f;
#pragma GCC unroll 11 /* taps: a loop in here would keep the one around it from being vectorised */
        for (int k = 0; k < KILN_SSIM_TAPS; k++) {
            const float t = v[o + k][i] - centre[i];
            sum = kiln_fmaf(kiln_ssim_weight(k), t, sum);
            sum2 = kiln_fmaf(kiln_ssim_weight(k), t * t, sum2);
        }
        const kiln_ssim_moments m = kiln_ssim_down(sum, sum2, centre[i]);
        out->mean[i] = m.mean;
        out->var[i] = m.var;
    }
}

/* The column of the span at which the run of column i has its centre. */
static int centre_column(int i) { return i / KILN_SSIM_RUN * KILN_SSIM_RUN + KILN_SSIM_FIFTH; }

/* Column i of `out` is column i + 5 of `in`. */
static void moments_along(const moment_row *in, moment_row *restrict out)
{
    float centre[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) centre[i] = in->mean[centre_column(i)];
#pragma omp simd
    for (int i = 0; i < COLUMNS; i++) {
        float sum = 0.0f, sum2 = 0.0f;
#pragma GCC unroll 11 /* as above */
        for (int k = 0; k < KILN_SSIM_TAPS; k++) {
            const float t = in->mean[i + k] - centre[i];
            sum = kiln_fmaf(kiln_ssim_weight(k), t, sum);
            sum2 = kiln_fmaf(kiln_ssim_weight(k), kiln_fmaf(t, t, in->var[i + k]), sum2);
        }
        const kiln_ssim_moments m = kiln_ssim_along(sum, sum2, centre[i]);
        out->mean[i] = m.mean;
        out->var[i] = m.var;
    }
}

static void put_slope(const kiln_ssim_args *a, uint64_t where, kiln_ssim_slope f)
{
    const uint64_t values = a->planes * a->height * a->width;
    a->partials[where] = f.at;
    a->partials[values + where] = f.by_s;
    a->partials[2 * values + where] = f.by_d;
}

static void finish_row(const kiln_ssim_args *a, const ssim_piece *p, int o, const moment_row *s,
                       const moment_row *d, ssim_scratch *t)
{
    const int64_t y = p->y0 + o;
    int64_t sum = 0;
    for (int i = 0; i < p->x1 - p->x0; i++) {
        const kiln_ssim_moments ms = {s->mean[i], s->var[i]}, md = {d->mean[i], d->var[i]};
        const kiln_ssim_pixel pixel = kiln_ssim_pixel_of(ms, md);
        const bool counts = !a->valid || kiln_metrics_in_valid(p->width, p->height, p->x0 + i, y);
        const bool number = kiln_ssim_is_number(pixel.falls_short);
        t->bad |= counts && !number;
        sum += counts && number ? kiln_fixed((double)pixel.falls_short) : 0;
        if (!a->partials) continue;
        const int row = o + KILN_SSIM_RADIUS, column = i + KILN_SSIM_RADIUS;
        const kiln_ssim_slope none = {0.0f, 0.0f, 0.0f};
        const kiln_ssim_slope f =
            kiln_ssim_slope_of(pixel, t->s[row][column] - ms.mean, t->d[row][column] - md.mean);
        put_slope(a, p->plane + (uint64_t)y * p->width + (uint64_t)(p->x0 + i), counts ? f : none);
    }
    t->sum += sum;
}

static void measure_piece(const kiln_ssim_args *a, const ssim_piece *p, ssim_scratch *t)
{
    moment_row down, s, d;
    read_pictures(p, a->a, a->b, t);
    for (int o = 0; o < p->y1 - p->y0; o++) {
        moments_down(t->s, o, &down);
        moments_along(&down, &s);
        moments_down(t->d, o, &down);
        moments_along(&down, &d);
        finish_row(a, p, o, &s, &d, t);
    }
}

/* ---- backward -------------------------------------------------------------------------------- */

/* Each slope of the span from its own pixel to the centre of its column. */
static void move_to_centres(ssim_scratch *t)
{
    for (int r = 0; r < SPAN; r++)
        for (int i = 0; i < SPREAD; i++) {
            const kiln_ssim_slope f = {t->at[r][i], t->by_s[r][i], t->by_d[r][i]};
            t->at[r][i] = kiln_ssim_moved(f, t->s[KILN_SSIM_FIFTH][i] - t->s[r][i],
                                          t->d[KILN_SSIM_FIFTH][i] - t->d[r][i]);
        }
}

static void sum_down(span_rows v, int o, float *restrict out)
{
#pragma omp simd
    for (int i = 0; i < SPREAD; i++) {
        float sum = 0.0f;
#pragma GCC unroll 11 /* as above */
        for (int k = 0; k < KILN_SSIM_TAPS; k++)
            sum = kiln_fmaf(kiln_ssim_weight(k), v[o + k][i], sum);
        out[i] = sum;
    }
}

/* Column i of the run at column `run` of the piece, all moved to the run's centre. */
static kiln_ssim_slope slope_along(const ssim_scratch *t, const slope_row *in, int i)
{
    const int centre = centre_column(i);
    const float s = t->s[KILN_SSIM_FIFTH][centre], d = t->d[KILN_SSIM_FIFTH][centre];
    kiln_ssim_slope sum = {0.0f, 0.0f, 0.0f};
    for (int k = i; k < i + KILN_SSIM_TAPS; k++) {
        const kiln_ssim_slope f = {in->at[k], in->by_s[k], in->by_d[k]};
        const float w = kiln_ssim_weight(k - i);
        sum.at = kiln_fmaf(
            w, kiln_ssim_moved(f, s - t->s[KILN_SSIM_FIFTH][k], d - t->d[KILN_SSIM_FIFTH][k]),
            sum.at);
        sum.by_s = kiln_fmaf(w, f.by_s, sum.by_s);
        sum.by_d = kiln_fmaf(w, f.by_d, sum.by_d);
    }
    return sum;
}

static void gradient_piece(const kiln_ssim_backward_args *a, const ssim_piece *p, float scale,
                           ssim_scratch *t)
{
    const uint64_t values = a->planes * a->height * a->width;
    slope_row down;
    read_pictures(p, a->a, a->b, t);
    read_span(p, a->partials, t->at);
    read_span(p, a->partials + values, t->by_s);
    read_span(p, a->partials + 2 * values, t->by_d);
    move_to_centres(t);
    for (int o = 0; o < p->y1 - p->y0; o++) {
        float *out = a->gradient + p->plane + (uint64_t)(p->y0 + o) * p->width + (uint64_t)p->x0;
        sum_down(t->at, o, down.at);
        sum_down(t->by_s, o, down.by_s);
        sum_down(t->by_d, o, down.by_d);
        for (int i = 0; i < p->x1 - p->x0; i++) {
            const int row = o + KILN_SSIM_RADIUS, column = i + KILN_SSIM_RADIUS,
                      centre = centre_column(i);
            const float by_s = t->s[row][column] - t->s[KILN_SSIM_FIFTH][centre];
            const float by_d = t->d[row][column] - t->d[KILN_SSIM_FIFTH][centre];
            out[i] = scale * kiln_ssim_moved(slope_along(t, &down, i), by_s, by_d);
        }
    }
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Where work is NULL it measures and *all is NULL. */
static kiln_status take_scratch(const char *op, const kiln_exec *x, void *work, size_t *work_bytes,
                                ssim_scratch **all, kiln_error *err)
{
    kiln_carve c = {.base = work};
    *all = kiln_take(&c, x->threads, sizeof **all);
    if (!work)
        *work_bytes = c.used;
    else if (*work_bytes < c.used)
        return kiln_fail(err, KILN_E_CAP, "%s needs %zu bytes, was given %zu", op, c.used,
                         *work_bytes);
    return KILN_OK;
}

/* kiln_ssim_cpu, kiln_ssim_cpu_avx2 */
kiln_status KILN_CPU(ssim)(const kiln_exec *x, const kiln_ssim_args *a, void *work,
                           size_t *work_bytes, kiln_error *err)
{
    ssim_scratch *all;
    KILN_TRY(take_scratch("ssim", x, work, work_bytes, &all, err));
    if (!work) return KILN_OK;
    KILN_TRY(kiln_ssim_check(a->planes, a->width, a->height, err));
    for (unsigned t = 0; t < x->threads; t++) {
        all[t].sum = 0;
        all[t].bad = false;
    }
    const int64_t n = (int64_t)a->planes * pieces_across(a->width) * pieces_down(a->height);
#pragma omp parallel for num_threads(x->threads) schedule(dynamic)
    for (int64_t i = 0; i < n; i++) {
        const ssim_piece p = piece_at(a->width, a->height, i);
        measure_piece(a, &p, &all[omp_get_thread_num()]);
    }
    kiln_fixed_total sum = 0;
    bool bad = false;
    for (unsigned t = 0; t < x->threads; t++) {
        sum += all[t].sum;
        bad |= all[t].bad;
    }
    *a->mean = kiln_ssim_mean(sum, kiln_ssim_count(a->planes, a->width, a->height, a->valid), bad);
    return KILN_OK;
}

/* kiln_ssim_backward_cpu, kiln_ssim_backward_cpu_avx2 */
kiln_status KILN_CPU(ssim_backward)(const kiln_exec *x, const kiln_ssim_backward_args *a,
                                    void *work, size_t *work_bytes, kiln_error *err)
{
    ssim_scratch *all;
    KILN_TRY(take_scratch("ssim_backward", x, work, work_bytes, &all, err));
    if (!work) return KILN_OK;
    KILN_TRY(kiln_ssim_check(a->planes, a->width, a->height, err));
    const float scale =
        kiln_ssim_scale(*a->upstream, kiln_ssim_count(a->planes, a->width, a->height, a->valid));
    const int64_t n = (int64_t)a->planes * pieces_across(a->width) * pieces_down(a->height);
#pragma omp parallel for num_threads(x->threads) schedule(dynamic)
    for (int64_t i = 0; i < n; i++) {
        const ssim_piece p = piece_at(a->width, a->height, i);
        gradient_piece(a, &p, scale, &all[omp_get_thread_num()]);
    }
    return KILN_OK;
}
