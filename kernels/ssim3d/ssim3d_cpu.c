/* ssim3d and ssim3d_backward on the CPU: the definition.
 *
 * Volumes are cut into pieces of 64 columns, 16 rows and 32 slices. A piece is walked through slice
 * by slice: each is filtered along x and y and kept until the eleven around an output are there.
 * Sums are integers: neither pieces nor threads show in the result.
 */
#include "kernels/ssim3d/ssim3d.h"

#include "base/carve.h"
#include "kernels/ssim3d/ssim3d_math.h"

#include <omp.h>

kiln_ssim3d_fn KILN_CPU(ssim3d);
kiln_ssim3d_backward_fn KILN_CPU(ssim3d_backward);

enum {
    COLUMNS = 64,
    ROWS = 16,
    SLICES = KILN_SSIM3D_SLICES,
    RADIUS = KILN_SSIM_RADIUS,
    TAPS = KILN_SSIM_TAPS,
    SPREAD = COLUMNS + 2 * RADIUS,
    SPAN = ROWS + 2 * RADIUS,
    MOST = KILN_SSIM3D_MOMENTS, /* values of a voxel that are filtered */
};

/* Sizes of a volume, and where a piece of it begins and ends. */
typedef struct {
    uint32_t width, height, depth;
    uint64_t plane; /* values before it */
    int64_t x0, x1, y0, y1, z0, z1;
} volume_piece;

/* One thread's own. */
typedef struct {
    double in[MOST][SPAN][SPREAD], along[MOST][SPAN][COLUMNS];
    double slices[TAPS][MOST][ROWS][COLUMNS]; /* slice z of the piece is at z modulo 11 */
    kiln_fixed_total sum;
    bool bad;
} volume_scratch;

/* What is filtered at a voxel, and what becomes of it. */
typedef struct {
    int values; /* MOST at most */
    void (*read)(const void *args, uint64_t at, double out[MOST]);
    void (*finish)(const void *args, const volume_piece *p, const int64_t at[3],
                   const double filtered[MOST], volume_scratch *t);
    const void *args;
} volume_filter;

static int64_t pieces_of(uint32_t side, int64_t piece)
{
    return ((int64_t)side + piece - 1) / piece;
}

static int64_t end_of(int64_t from, int64_t piece, uint32_t side)
{
    return from + piece < side ? from + piece : side;
}

static volume_piece volume_piece_at(uint32_t width, uint32_t height, uint32_t depth, int64_t i)
{
    const int64_t across = pieces_of(width, COLUMNS), down = pieces_of(height, ROWS),
                  through = pieces_of(depth, SLICES);
    volume_piece p = {.width = width, .height = height, .depth = depth};
    p.plane = (uint64_t)(i / across / down / through) * depth * height * width;
    p.x0 = i % across * COLUMNS;
    p.y0 = i / across % down * ROWS;
    p.z0 = i / across / down % through * SLICES;
    p.x1 = end_of(p.x0, COLUMNS, width);
    p.y1 = end_of(p.y0, ROWS, height);
    p.z1 = end_of(p.z0, SLICES, depth);
    return p;
}

static uint64_t voxel_at(const volume_piece *p, int64_t x, int64_t y, int64_t z)
{
    return p->plane + ((uint64_t)z * p->height + (uint64_t)y) * p->width + (uint64_t)x;
}

/* A slice of the volume around the piece, zero outside. */
static void read_slice(const volume_filter *f, const volume_piece *p, int64_t z, volume_scratch *t)
{
    for (int r = 0; r < SPAN; r++) {
        const int64_t y = p->y0 - RADIUS + r;
        for (int i = 0; i < SPREAD; i++) {
            const int64_t x = p->x0 - RADIUS + i;
            double v[MOST] = {0};
            if (x >= 0 && x < p->width && y >= 0 && y < p->height)
                f->read(f->args, voxel_at(p, x, y, z), v);
            for (int q = 0; q < f->values; q++) t->in[q][r][i] = v[q];
        }
    }
}

static void filter_along(double from[SPAN][SPREAD], double to[SPAN][COLUMNS])
{
    for (int r = 0; r < SPAN; r++)
        for (int i = 0; i < COLUMNS; i++) {
            double sum = 0;
            for (int k = 0; k < TAPS; k++) sum = kiln_ssim3d_tap(sum, k, from[r][i + k]);
            to[r][i] = sum;
        }
}

static void filter_down(double from[SPAN][COLUMNS], double to[ROWS][COLUMNS])
{
    for (int o = 0; o < ROWS; o++)
        for (int i = 0; i < COLUMNS; i++) {
            double sum = 0;
            for (int k = 0; k < TAPS; k++) sum = kiln_ssim3d_tap(sum, k, from[o + k][i]);
            to[o][i] = sum;
        }
}

static void keep_slice(const volume_filter *f, const volume_piece *p, int64_t z, volume_scratch *t)
{
    const int64_t place = (z - p->z0 + RADIUS) % TAPS;
    if (z < 0 || z >= p->depth) {
        memset(t->slices[place], 0, sizeof t->slices[place]);
        return;
    }
    read_slice(f, p, z, t);
    for (int q = 0; q < f->values; q++) {
        filter_along(t->in[q], t->along[q]);
        filter_down(t->along[q], t->slices[place][q]);
    }
}

static void finish_slice(const volume_filter *f, const volume_piece *p, int64_t z,
                         volume_scratch *t)
{
    for (int64_t y = p->y0; y < p->y1; y++)
        for (int64_t x = p->x0; x < p->x1; x++) {
            const int64_t at[3] = {x, y, z};
            double sums[MOST] = {0};
            for (int q = 0; q < f->values; q++)
                for (int k = 0; k < TAPS; k++)
                    sums[q] = kiln_ssim3d_tap(
                        sums[q], k, t->slices[(z - p->z0 + k) % TAPS][q][y - p->y0][x - p->x0]);
            f->finish(f->args, p, at, sums, t);
        }
}

static void filter_piece(const volume_filter *f, const volume_piece *p, volume_scratch *t)
{
    for (int64_t z = p->z0 - RADIUS; z < p->z1 + RADIUS; z++) {
        keep_slice(f, p, z, t);
        if (z - RADIUS >= p->z0) finish_slice(f, p, z - RADIUS, t);
    }
}

/* ---- ssim3d ---------------------------------------------------------------------------------- */

static void read_moments(const void *args, uint64_t at, double out[MOST])
{
    const kiln_ssim3d_args *a = args;
    kiln_ssim3d_moments(a->a[at], a->b[at], out);
}

static void finish_voxel(const void *args, const volume_piece *p, const int64_t at[3],
                         const double filtered[MOST], volume_scratch *t)
{
    const kiln_ssim3d_args *a = args;
    const kiln_ssim_pixel pixel = kiln_ssim3d_pixel_of(filtered);
    const int64_t margin = a->valid ? RADIUS : 0;
    const bool counts = kiln_ssim3d_counts(at[0], p->width, margin) &&
                        kiln_ssim3d_counts(at[1], p->height, margin) &&
                        kiln_ssim3d_counts(at[2], p->depth, margin);
    const bool number = kiln_ssim_is_number(pixel.falls_short);
    t->bad |= counts && !number;
    t->sum += counts && number ? kiln_fixed((double)pixel.falls_short) : 0;
    if (!a->partials) return;
    const uint64_t values = a->planes * a->depth * a->height * a->width,
                   here = voxel_at(p, at[0], at[1], at[2]);
    const kiln_ssim_slope f = kiln_ssim3d_slope_of(pixel, filtered, a->a[here], a->b[here]);
    a->partials[here] = counts ? f.at : 0.0f;
    a->partials[values + here] = counts ? f.by_s : 0.0f;
    a->partials[2 * values + here] = counts ? f.by_d : 0.0f;
}

/* ---- ssim3d_backward ------------------------------------------------------------------------- */

typedef struct {
    const kiln_ssim3d_backward_args *args;
    uint64_t values;
    float scale;
} gradient_of_volume;

static void read_partials(const void *args, uint64_t at, double out[MOST])
{
    const gradient_of_volume *g = args;
    const float *partials = g->args->partials;
    const kiln_ssim_slope f = {partials[at], partials[g->values + at],
                               partials[2 * g->values + at]};
    kiln_ssim3d_to_origin(f, g->args->a[at], g->args->b[at], out);
}

static void finish_gradient(const void *args, const volume_piece *p, const int64_t at[3],
                            const double filtered[MOST], volume_scratch *t)
{
    const gradient_of_volume *g = args;
    const uint64_t here = voxel_at(p, at[0], at[1], at[2]);
    (void)t;
    g->args->gradient[here] =
        kiln_ssim3d_gradient(filtered, g->args->a[here], g->args->b[here], g->scale);
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Where work is NULL it measures and *all is NULL. */
static kiln_status take_volume_scratch(const char *op, const kiln_exec *x, void *work,
                                       size_t *work_bytes, volume_scratch **all, kiln_error *err)
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

static void filter_volumes(const volume_filter *f, uint64_t planes, const uint32_t sides[3],
                           unsigned threads, volume_scratch *all)
{
    const int64_t n = (int64_t)planes * pieces_of(sides[0], COLUMNS) * pieces_of(sides[1], ROWS) *
                      pieces_of(sides[2], SLICES);
    for (unsigned t = 0; t < threads; t++) {
        all[t].sum = 0;
        all[t].bad = false;
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t i = 0; i < n; i++) {
        const volume_piece p = volume_piece_at(sides[0], sides[1], sides[2], i);
        filter_piece(f, &p, &all[omp_get_thread_num()]);
    }
}

/* kiln_ssim3d_cpu, kiln_ssim3d_cpu_avx2 */
kiln_status KILN_CPU(ssim3d)(const kiln_exec *x, const kiln_ssim3d_args *a, void *work,
                             size_t *work_bytes, kiln_error *err)
{
    volume_scratch *all;
    const uint32_t sides[3] = {a->width, a->height, a->depth};
    const volume_filter f = {
        .values = KILN_SSIM3D_MOMENTS, .read = read_moments, .finish = finish_voxel, .args = a};
    KILN_TRY(take_volume_scratch("ssim3d", x, work, work_bytes, &all, err));
    if (!work) return KILN_OK;
    KILN_TRY(kiln_ssim3d_check(a->planes, a->width, a->height, a->depth, err));
    filter_volumes(&f, a->planes, sides, x->threads, all);
    kiln_fixed_total sum = 0;
    bool bad = false;
    for (unsigned t = 0; t < x->threads; t++) {
        sum += all[t].sum;
        bad |= all[t].bad;
    }
    *a->mean = kiln_ssim_mean(
        sum, kiln_ssim3d_count(a->planes, a->width, a->height, a->depth, a->valid), bad);
    return KILN_OK;
}

/* kiln_ssim3d_backward_cpu, kiln_ssim3d_backward_cpu_avx2 */
kiln_status KILN_CPU(ssim3d_backward)(const kiln_exec *x, const kiln_ssim3d_backward_args *a,
                                      void *work, size_t *work_bytes, kiln_error *err)
{
    volume_scratch *all;
    const uint32_t sides[3] = {a->width, a->height, a->depth};
    gradient_of_volume g = {.args = a, .values = a->planes * a->depth * a->height * a->width};
    const volume_filter f = {
        .values = KILN_SSIM_PARTIALS, .read = read_partials, .finish = finish_gradient, .args = &g};
    KILN_TRY(take_volume_scratch("ssim3d_backward", x, work, work_bytes, &all, err));
    if (!work) return KILN_OK;
    KILN_TRY(kiln_ssim3d_check(a->planes, a->width, a->height, a->depth, err));
    g.scale = kiln_ssim_scale(
        *a->upstream, kiln_ssim3d_count(a->planes, a->width, a->height, a->depth, a->valid));
    filter_volumes(&f, a->planes, sides, x->threads, all);
    return KILN_OK;
}
