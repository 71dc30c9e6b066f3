/* backward_test -- gradients against finite differences of the picture's error in double, and Adam
 * against its formulas.
 *
 * The scene is small and smooth on purpose: no Gaussian stops a pixel, is cut at the largest alpha
 * or has a colour of 0 in the tests of differences; those cases are asserted by themselves.
 */
#include "kernels/adam/adam.h"
#include "kernels/project_backward/project_backward_math.h"
#include "kernels/raster_backward/raster_backward_math.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    N = 12,
    FROZEN = 3,
    DEGREE = 1,
    WIDTH = 40,
    HEIGHT = 24,
    PIXELS = WIDTH * HEIGHT,
    PLANES = KILN_GRADIENT_SH + 12
};

/* All parameters of N Gaussians; the first N - FROZEN are asked for. */
typedef struct {
    float means[3 * N], log_scales[3 * N], quats[4 * N], opacity_logits[N], sh0[3 * N], shN[9 * N];
} cloud;

typedef struct {
    kiln_view view;
    cloud c;
    float target[4 * PIXELS], background[3];
} world;

static double noise(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (double)(*seed >> 8) / (1 << 24);
}

static void make_world(world *w)
{
    const double r[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, t[3] = {0.1, -0.05, 0}, origin[3] = {0},
                 k[4] = {30, 33, 20, 12};
    unsigned seed = 7;
    kiln_view_init(&w->view, r, t, origin, k, WIDTH, HEIGHT, 0.2f, 100.0f);
    for (int i = 0; i < N; i++) {
        for (int a = 0; a < 3; a++) {
            w->c.means[a * N + i] =
                (float)(a < 2 ? 1.6 * noise(&seed) - 0.8 : 3 + 2 * noise(&seed));
            w->c.log_scales[a * N + i] = (float)(-2.5 + 1.5 * noise(&seed));
            w->c.sh0[a * N + i] = (float)noise(&seed);
        }
        for (int a = 0; a < 4; a++) w->c.quats[a * N + i] = (float)(noise(&seed) - 0.3);
        for (int a = 0; a < 9; a++) w->c.shN[a * N + i] = (float)(0.2 * noise(&seed) - 0.1);
        w->c.opacity_logits[i] = (float)(-2 + 2.5 * noise(&seed));
    }
    for (int i = 0; i < 4 * PIXELS; i++)
        w->target[i] = (float)noise(&seed) * (i % 4 == 3 ? 1.0f : 0.7f);
    for (int a = 0; a < 3; a++) w->background[a] = (float)noise(&seed);
}

/* The CPU's, by name: ops.h has another kiln_projection than the projection's headers. */
kiln_project_fn kiln_project_cpu;
kiln_raster_fn kiln_raster_cpu;
kiln_raster_backward_fn kiln_raster_backward_cpu;
kiln_project_backward_fn kiln_project_backward_cpu;
kiln_adam_fn kiln_adam_cpu;

/* Runs kiln_OP_cpu on the args `a`. */
#define RUN(op, a)                                                             \
    do {                                                                       \
        const kiln_exec x = {.device = -1, .threads = 2};                      \
        kiln_error err;                                                        \
        size_t bytes = 0;                                                      \
        assert_int_equal(kiln_##op##_cpu(&x, a, NULL, &bytes, &err), KILN_OK); \
        void *work = malloc(bytes + 1);                                        \
        assert_non_null(work);                                                 \
        assert_int_equal(kiln_##op##_cpu(&x, a, work, &bytes, &err), KILN_OK); \
        free(work);                                                            \
    } while (0)

/* What the world's camera draws over black. */
typedef struct {
    uint64_t n, pairs;
    kiln_splat2d splats[N];
    uint32_t counts[PIXELS], *ranks;
    float rgba[4 * PIXELS];
} drawn;

static int by_depth(const void *a, const void *b)
{
    const float x = ((const kiln_splat2d *)a)->depth, y = ((const kiln_splat2d *)b)->depth;
    return (x > y) - (x < y);
}

/* The lists do not depend on small changes: every tile lists all. */
static void draw(const world *w, const kiln_splat2d *splats, uint64_t n, drawn *d)
{
    const uint32_t tiles = kiln_view_tiles_x(&w->view) * kiln_view_tiles_y(&w->view);
    memcpy(d->splats, splats, n * sizeof *splats);
    d->n = n;
    d->pairs = n * tiles;
    d->ranks = malloc(d->pairs * sizeof *d->ranks);
    assert_non_null(d->ranks);
    for (uint32_t t = 0; t < tiles; t++) {
        d->counts[t] = (uint32_t)n;
        for (uint32_t i = 0; i < n; i++) d->ranks[t * n + i] = i;
    }
    const kiln_raster_args a = {.n = n,
                                .splats = d->splats,
                                .view = &w->view,
                                .profile = KILN_PROFILE_INRIA,
                                .row1 = kiln_view_tiles_y(&w->view),
                                .tile_counts = d->counts,
                                .ranks = d->ranks,
                                .n_pairs = d->pairs,
                                .rgba = d->rgba};
    RUN(raster, &a);
}

static uint64_t project(const world *w, const cloud *c, kiln_splat2d *splats)
{
    uint64_t visible = 0;
    const kiln_project_args a = {.n = N,
                                 .means = c->means,
                                 .log_scales = c->log_scales,
                                 .quats = c->quats,
                                 .opacity_logits = c->opacity_logits,
                                 .sh0 = c->sh0,
                                 .shN = c->shN,
                                 .sh_degree = DEGREE,
                                 .view = &w->view,
                                 .profile = KILN_PROFILE_INRIA,
                                 .splats = splats,
                                 .n_visible = &visible};
    RUN(project, &a);
    qsort(splats, visible, sizeof *splats, by_depth);
    return visible;
}

static void backward(const world *w, const drawn *d,
                     float gradients[KILN_BACKWARD_PLANES * (N - FROZEN)])
{
    kiln_raster_backward_args a = {.n = d->n,
                                   .splats = d->splats,
                                   .view = &w->view,
                                   .profile = KILN_PROFILE_INRIA,
                                   .row1 = kiln_view_tiles_y(&w->view),
                                   .tile_counts = d->counts,
                                   .ranks = d->ranks,
                                   .n_pairs = d->pairs,
                                   .rgba = d->rgba,
                                   .target = w->target,
                                   .n_rows = N - FROZEN,
                                   .gradients = gradients};
    memcpy(a.background, w->background, sizeof a.background);
    RUN(raster_backward, &a);
}

/* The error of a picture of these splats, in double and without thresholds: what is below 1/255 is
 * left out where the float raster leaves it out, by `shown`, so that the error is smooth. */
typedef struct {
    double x, y, conic[3], opacity, rgb[3];
} splat64;

static double error_of(const world *w, const drawn *d, const splat64 *s)
{
    double sum = 0;
    for (uint32_t p = 0; p < PIXELS; p++) {
        double t = 1, c[3] = {0};
        for (uint64_t i = 0; i < d->n; i++) {
            const kiln_splat2d *f = &d->splats[i];
            const float power32 =
                kiln_power(f->conic[0], f->conic[1], f->conic[2],
                           kiln_power_offset(f->x, p % WIDTH), kiln_power_offset(f->y, p / WIDTH));
            if (!(power32 >= kiln_least_power(f->power_min)) ||
                !kiln_alpha_shows(kiln_alpha(f->opacity, power32, 0.99f)))
                continue;
            const double dx = s[i].x - (p % WIDTH + 0.5), dy = s[i].y - (p / WIDTH + 0.5);
            const double power = -0.5 * (s[i].conic[0] * dx * dx + s[i].conic[2] * dy * dy) -
                                 s[i].conic[1] * dx * dy;
            const double alpha = s[i].opacity * exp(power);
            for (int k = 0; k < 3; k++) c[k] += s[i].rgb[k] * alpha * t;
            t *= 1 - alpha;
        }
        for (int k = 0; k < 3; k++) {
            const double want = (double)w->target[4 * p + k] +
                                (1 - (double)w->target[4 * p + 3]) * (double)w->background[k];
            const double off = c[k] + t * (double)w->background[k] - want;
            sum += 0.5 * off * off;
        }
    }
    return sum;
}

static void widen(const drawn *d, splat64 *s)
{
    for (uint64_t i = 0; i < d->n; i++) {
        const kiln_splat2d *f = &d->splats[i];
        s[i] = (splat64){.x = f->x, .y = f->y, .opacity = f->opacity};
        for (int k = 0; k < 3; k++) {
            s[i].conic[k] = f->conic[k];
            s[i].rgb[k] = f->rgb[k];
        }
    }
}

/* (E(v + h) - E(v - h)) / 2h */
static double slope(const world *w, const drawn *d, splat64 *s, double *v, double h)
{
    const double was = *v;
    *v = was + h;
    const double up = error_of(w, d, s);
    *v = was - h;
    const double down = error_of(w, d, s);
    *v = was;
    return (up - down) / (2 * h);
}

static void close_to(double got, double want, double size)
{
    if (!(fabs(got - want) <= 2e-3 * fabs(want) + 1e-4 * size))
        fail_msg("%.9g instead of %.9g", got, want);
}

static void splats_follow_differences(void **state)
{
    (void)state;
    world w;
    kiln_splat2d splats[N];
    drawn *d = calloc(1, sizeof *d);
    float g[KILN_BACKWARD_PLANES * (N - FROZEN)];
    splat64 s[N];
    make_world(&w);
    const uint64_t n = project(&w, &w.c, splats);
    assert_true(n > N - FROZEN);
    draw(&w, splats, n, d);
    backward(&w, d, g);
    widen(d, s);
    unsigned looked = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t row = d->splats[i].row;
        if (row >= N - FROZEN) continue;
        double m[KILN_BACKWARD_PLANES];
        for (int k = 0; k < KILN_BACKWARD_PLANES; k++)
            m[k] = (double)g[k * (N - FROZEN) + (int)row];
        looked++;
        close_to(m[KILN_BACKWARD_POWER] / s[i].opacity, slope(&w, d, s, &s[i].opacity, 1e-5), 1);
        close_to(-(s[i].conic[0] * m[1] + s[i].conic[1] * m[2]), slope(&w, d, s, &s[i].x, 1e-5), 1);
        close_to(-(s[i].conic[1] * m[1] + s[i].conic[2] * m[2]), slope(&w, d, s, &s[i].y, 1e-5), 1);
        close_to(-0.5 * m[KILN_BACKWARD_XX], slope(&w, d, s, &s[i].conic[0], 1e-5), 1);
        close_to(-m[KILN_BACKWARD_XY], slope(&w, d, s, &s[i].conic[1], 1e-5), 1);
        close_to(-0.5 * m[KILN_BACKWARD_YY], slope(&w, d, s, &s[i].conic[2], 1e-5), 1);
        for (int k = 0; k < 3; k++)
            close_to(m[KILN_BACKWARD_RED + k], slope(&w, d, s, &s[i].rgb[k], 1e-5), 1);
    }
    assert_true(looked >= 7);
    free(d->ranks);
    free(d);
}

/* ---- parameters ------------------------------------------------------------------------------ */
/* The splats of a cloud in double, with what project_backward leaves out held as it is in `fixed`:
 * Jacobian and direction. */
static void project64(const world *w, const drawn *d, const double *p, splat64 *s)
{
    kiln_projection lens;
    kiln_project_projection(&lens, &w->view, &(kiln_view_cut){0}, KILN_PROFILE_INRIA, 0);
    for (uint64_t i = 0; i < d->n; i++) {
        const uint32_t row = d->splats[i].row;
        /* mean 3, log scale 3, quaternion 4, logit, colours 12 */
        const double *g = p + row * (PLANES + 1);
        const float mean[3] = {w->c.means[row], w->c.means[N + row], w->c.means[2 * N + row]};
        const kiln_screen_axes axes = kiln_screen_axes_of(&lens, mean); /* of the cloud as it is */
        const double length = sqrt(g[6] * g[6] + g[7] * g[7] + g[8] * g[8] + g[9] * g[9]);
        const double qw = g[6] / length, x = g[7] / length, y = g[8] / length, z = g[9] / length;
        const double r[9] = {
            1 - 2 * (y * y + z * z), 2 * (x * y - qw * z),    2 * (x * z + qw * y),
            2 * (x * y + qw * z),    1 - 2 * (x * x + z * z), 2 * (y * z - qw * x),
            2 * (x * z - qw * y),    2 * (y * z + qw * x),    1 - 2 * (x * x + y * y)};
        double xx = 0.3, xy = 0, yy = 0.3; /* dilated */
        for (int j = 0; j < 3; j++) {
            double ux = 0, uy = 0;
            for (int k = 0; k < 3; k++) {
                ux += (double)axes.a[k] * r[3 * k + j] * exp(g[3 + j]);
                uy += (double)axes.b[k] * r[3 * k + j] * exp(g[3 + j]);
            }
            xx += ux * ux;
            xy += ux * uy;
            yy += uy * uy;
        }
        const double det = xx * yy - xy * xy, cam[3] = {g[0] + 0.1, g[1] - 0.05, g[2]};
        float basis[KILN_SH_COEFFICIENTS_MAX];
        kiln_basis_at(&lens, mean, DEGREE, basis);
        s[i] = (splat64){.x = 30 * cam[0] / cam[2] + 20,
                         .y = 33 * cam[1] / cam[2] + 12,
                         .conic = {yy / det, -xy / det, xx / det},
                         .opacity = 1 / (1 + exp(-g[10]))};
        for (int c = 0; c < 3; c++) {
            s[i].rgb[c] = 0.5;
            for (int j = 0; j < 4; j++) s[i].rgb[c] += (double)basis[j] * g[11 + 3 * j + c];
        }
    }
}

static double error_at(const world *w, const drawn *d, const double *p)
{
    splat64 s[N];
    project64(w, d, p, s);
    return error_of(w, d, s);
}

static void flatten(const cloud *c, double *p)
{
    for (int i = 0; i < N; i++, p += PLANES + 1) {
        for (int a = 0; a < 3; a++) {
            p[a] = (double)c->means[a * N + i];
            p[3 + a] = (double)c->log_scales[a * N + i];
            p[11 + a] = (double)c->sh0[a * N + i];
        }
        for (int a = 0; a < 4; a++) p[6 + a] = (double)c->quats[a * N + i];
        p[10] = (double)c->opacity_logits[i];
        for (int a = 0; a < 9; a++) p[14 + a] = (double)c->shN[a * N + i];
    }
}

/* Moves plane k of a row by h: a mean, log scale, half angle, logit or colour. */
static void move(double *p, int k, double h)
{
    if (k < KILN_GRADIENT_HALF_ANGLE) {
        p[k] += h;
    } else if (k < KILN_GRADIENT_OPACITY_LOGIT) {
        const double w = p[6], x = p[7], y = p[8], z = p[9];
        double v[3] = {0};
        v[k - KILN_GRADIENT_HALF_ANGLE] = h;
        p[6] = w - x * v[0] - y * v[1] - z * v[2];
        p[7] = x + w * v[0] + y * v[2] - z * v[1];
        p[8] = y + w * v[1] + z * v[0] - x * v[2];
        p[9] = z + w * v[2] + x * v[1] - y * v[0];
    } else {
        p[k + 1] += h;
    }
}

static void parameters_follow_differences(void **state)
{
    (void)state;
    enum { ROWS = N - FROZEN };
    world w;
    kiln_splat2d splats[N];
    drawn *d = calloc(1, sizeof *d);
    float g[KILN_BACKWARD_PLANES * ROWS], gradients[PLANES * ROWS];
    cloud c;
    double p[N * (PLANES + 1)];
    make_world(&w);
    const uint64_t n = project(&w, &w.c, splats);
    draw(&w, splats, n, d);
    backward(&w, d, g);
    for (int i = 0; i < ROWS; i++) { /* the rows that are asked for, as a chunk of their own */
        for (int a = 0; a < 3; a++) c.means[a * ROWS + i] = w.c.means[a * N + i];
        for (int a = 0; a < 3; a++) c.log_scales[a * ROWS + i] = w.c.log_scales[a * N + i];
        for (int a = 0; a < 4; a++) c.quats[a * ROWS + i] = w.c.quats[a * N + i];
        c.opacity_logits[i] = w.c.opacity_logits[i];
    }
    const kiln_project_backward_args a = {.n = ROWS,
                                          .n_splats = d->n,
                                          .means = c.means,
                                          .log_scales = c.log_scales,
                                          .quats = c.quats,
                                          .opacity_logits = c.opacity_logits,
                                          .sh_degree = DEGREE,
                                          .view = &w.view,
                                          .profile = KILN_PROFILE_INRIA,
                                          .splats = d->splats,
                                          .drawn = g,
                                          .gradients = gradients};
    RUN(project_backward, &a);
    flatten(&w.c, p);
    for (int row = 0; row < ROWS; row++)
        for (int k = 0; k < PLANES; k++) {
            double *const at = p + row * (PLANES + 1), was[PLANES + 1], up, down;
            memcpy(was, at, sizeof was);
            move(at, k, 1e-5);
            up = error_at(&w, d, p);
            memcpy(at, was, sizeof was);
            move(at, k, -1e-5);
            down = error_at(&w, d, p);
            memcpy(at, was, sizeof was);
            close_to((double)gradients[k * ROWS + row], (up - down) / 2e-5, 5);
        }
    free(d->ranks);
    free(d);
}

/* ---- what has no gradient, and sums ---------------------------------------------------------- */
static kiln_splat2d splat_at(float x, float y, float opacity, float red, uint32_t row)
{
    return (kiln_splat2d){.x = x,
                          .y = y,
                          .conic = {0.2f, 0.0f, 0.2f},
                          .opacity = opacity,
                          .power_min = kiln_power_min(opacity),
                          .depth = 1.0f + (float)row,
                          .rgb = {red, 0.5f, 0.25f},
                          .row = row};
}

static void cut_and_hidden_have_none(void **state)
{
    (void)state;
    world w;
    drawn *d = calloc(1, sizeof *d);
    float g[KILN_BACKWARD_PLANES * (N - FROZEN)];
    make_world(&w);
    /* 0: red is cut; 1: its centre's alpha is; 2 to 5 end the pixels before 6; 7 is nowhere */
    const kiln_splat2d splats[] = {
        splat_at(8.5f, 8.5f, 0.5f, 0.0f, 0), splat_at(30.5f, 8.5f, 1.0f, 0.3f, 1),
        splat_at(8.5f, 20.5f, 0.98f, 1, 2),  splat_at(8.5f, 20.5f, 0.98f, 1, 3),
        splat_at(8.5f, 20.5f, 0.98f, 1, 4),  splat_at(8.5f, 20.5f, 0.98f, 1, 5),
        splat_at(8.5f, 20.5f, 0.004f, 1, 6), splat_at(-90, -90, 0.5f, 1, 7)};
    draw(&w, splats, 8, d);
    backward(&w, d, g);
    const int rows = N - FROZEN;
    assert_true(g[KILN_BACKWARD_RED * rows] == 0 && g[KILN_BACKWARD_GREEN * rows] != 0);
    assert_true(g[KILN_BACKWARD_POWER * rows + 1] != 0);
    for (int k = 0; k < KILN_BACKWARD_PLANES; k++) {
        assert_true(g[k * rows + 2] != 0);
        assert_true(g[k * rows + 6] == 0 && g[k * rows + 7] == 0 && g[k * rows + 8] == 0);
    }
    free(d->ranks);
    free(d);
}

static void units_hold_the_largest_sum(void **state)
{
    (void)state;
    const kiln_splat2d s = splat_at(0, 0, 1, 1, 0);
    const float residuals[] = {0, 1e-30f, 1e-3f, 1, 255, 1e20f, INFINITY, NAN};
    for (size_t i = 0; i < sizeof residuals / sizeof *residuals; i++) {
        float f[KILN_BACKWARD_PLANES];
        const kiln_backward_most most = {kiln_magnitude(residuals[i]), kiln_magnitude(1.0f)};
        kiln_backward_factors(kiln_backward_units_of(s.conic, s.power_min, most), f);
        for (int k = 0; k < KILN_BACKWARD_PLANES; k++) {
            int exponent;
            assert_true(frexpf(f[k], &exponent) == 0.5f);
            assert_true(fabsf(kiln_backward_limited(residuals[i], f[k])) <= 0x1p40f);
            assert_true(fabsf(kiln_backward_limited(-INFINITY, f[k])) <= 0x1p40f);
        }
        /* a residual of its size is not cut, and has its 24 digits */
        if (residuals[i] > 1e-10f && residuals[i] < 1e10f) {
            const float units = kiln_backward_limited(residuals[i], f[KILN_BACKWARD_RED]);
            assert_true(units < 0x1p40f && units > 0x1p38f);
        }
    }
    assert_true((int64_t)KILN_BACKWARD_LIMIT * KILN_BACKWARD_PIXELS_MAX <= INT64_MAX);
}

/* ---- Adam ------------------------------------------------------------------------------------ */
static void adam_does_as_published(void **state)
{
    (void)state;
    enum { STEPS = 20 };
    const kiln_adam_steps full = {.03f, .02f, .01f, .05f, .02f, .004f};
    float mean[3] = {1, 2, 3}, log_scale[3] = {-3, -2, -4}, quat[4] = {1, 0, 0, 0}, logit = 5.9f,
          sh0[3] = {0}, shN[9] = {0};
    float g[PLANES], m[PLANES] = {0}, v[PLANES] = {0};
    double m64 = 0, v64 = 0, where = 1, b1 = 1, b2 = 1;
    kiln_adam_args a = {.n = 1,
                        .sh_degree = 1,
                        .means = mean,
                        .log_scales = log_scale,
                        .quats = quat,
                        .opacity_logits = &logit,
                        .sh0 = sh0,
                        .shN = shN,
                        .gradients = g,
                        .m = m,
                        .v = v,
                        .weight = 0.5f,
                        .least = 0.5e-3f};
    for (uint32_t t = 0; t < STEPS; t++) {
        const double now = sin(t * 0.7) - 0.3, longest = exp((double)log_scale[1]);
        for (int k = 0; k < PLANES; k++)
            g[k] = k == KILN_GRADIENT_OPACITY_LOGIT ? -1.0f : (float)now;
        g[KILN_GRADIENT_LOG_SCALE + 1] = 0; /* the longest axis stays */
        kiln_adam_at(&a, &full, t, STEPS);
        RUN(adam, &a);
        const double part = 0.1 + 0.45 * (1 + cos(3.14159265358979 * t / (STEPS - 1)));
        m64 = 0.9 * m64 + 0.1 * (double)(float)now;
        v64 = 0.99 * v64 + 0.01 * (double)(float)now * (double)(float)now;
        b1 *= 0.9;
        b2 *= 0.99;
        where -= 0.03 * part * longest * (m64 / (1 - b1)) / (sqrt(v64 / (1 - b2)) + 1e-3 / longest);
        assert_true(fabs((double)mean[0] - where) < 1e-5);
    }
    /* what no picture shows goes no further, and what the next one that does shows counts as if
     * none was between */
    memset(g, 0, sizeof g);
    const float mean_before = mean[0], m_before = m[0], v_before = v[0];
    RUN(adam, &a);
    assert_true(mean[0] == mean_before && m[0] == m_before && v[0] == v_before && m[0] != 0);
    assert_true(logit == KILN_ADAM_LOGIT_MAX);
    assert_true(log_scale[1] == -2 && log_scale[0] != -3);
    /* same gradient, same step */
    assert_true(fabs((double)log_scale[0] + 3 - (double)sh0[0]) < 1e-5);
    assert_true(fabs(5 * (double)shN[4] - (double)sh0[0]) < 1e-5);
    const double length = (double)quat[0] * quat[0] + (double)quat[1] * quat[1] +
                          (double)quat[2] * quat[2] + (double)quat[3] * quat[3];
    assert_true(fabs(length - 1) < 1e-6 && quat[1] == quat[2] && quat[1] != 0);
}

/* A Gaussian with a long axis moves less, the longer it is: by the square of what is allowed,
 * beside its axis. */
static void means_of_large_rows_hardly_move(void **state)
{
    (void)state;
    const kiln_adam_steps full = {.mean = .03f};
    const float axes[5] = {0.25f, 0.5f, 1, 2, 16},
                unit[5] = {0.25f, 0.5f, 0.25f, 0.125f, 0.015625f};
    for (int i = 0; i < 5; i++) {
        float mean[3] = {0}, log_scale[3] = {-9, logf(axes[i]), -9}, quat[4] = {1, 0, 0, 0},
              logit = 0, sh0[3] = {0};
        float g[PLANES] = {0}, m[PLANES] = {0}, v[PLANES] = {0};
        g[KILN_GRADIENT_MEAN] = 1;
        kiln_adam_args a = {.n = 1,
                            .means = mean,
                            .log_scales = log_scale,
                            .quats = quat,
                            .opacity_logits = &logit,
                            .sh0 = sh0,
                            .gradients = g,
                            .m = m,
                            .v = v,
                            .weight = 1,
                            .least = 1e-9f,
                            .longest = 0.5f};
        kiln_adam_at(&a, &full, 0, 2);
        RUN(adam, &a);
        assert_true(fabs((double)mean[0] / (-0.03 * (double)unit[i]) - 1) < 1e-4);
        mean[0] = m[KILN_GRADIENT_MEAN] = v[KILN_GRADIENT_MEAN] = 0;
        a.longest = 0;
        RUN(adam, &a);
        assert_true(fabs((double)mean[0] / (-0.03 * (double)axes[i]) - 1) < 1e-4);
    }
}

static void arguments_are_checked(void **state)
{
    (void)state;
    kiln_error err;
    world w;
    make_world(&w);
    const kiln_adam_args adam = {.n = 1, .sh_degree = 5}, many = {.n = UINT32_MAX};
    const kiln_project_backward_args degree = {.n = 1, .sh_degree = 5}, rows = {.n = UINT32_MAX};
    kiln_raster_backward_args r = {.view = &w.view, .row1 = 2};
    assert_int_equal(kiln_adam_check(&adam, &err), KILN_E_INPUT);
    assert_int_equal(kiln_adam_check(&many, &err), KILN_E_INPUT);
    assert_int_equal(kiln_project_backward_check(&degree, &err), KILN_E_INPUT);
    assert_int_equal(kiln_project_backward_check(&rows, &err), KILN_E_INPUT);
    assert_int_equal(kiln_raster_backward_check(&r, &err), KILN_OK);
    w.view.width = w.view.height = 2064;
    r.row1 = 129;
    assert_int_equal(kiln_raster_backward_check(&r, &err), KILN_E_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splats_follow_differences),
        cmocka_unit_test(parameters_follow_differences),
        cmocka_unit_test(cut_and_hidden_have_none),
        cmocka_unit_test(units_hold_the_largest_sum),
        cmocka_unit_test(adam_does_as_published),
        cmocka_unit_test(means_of_large_rows_hardly_move),
        cmocka_unit_test(arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
