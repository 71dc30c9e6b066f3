/* lens -- see lens.h: parameters sorted by what they do, the inverse, the pinhole. */
#include "kernels/lens/lens.h"

#include "kernels/lens/lens_math.h"

#include <string.h>

enum { N_MODELS = 18 };

/* ---- parameters ------------------------------------------------------------------------------ */
/* Where each parameter of a model goes. */
typedef enum {
    F = 1, /* both focal lengths */
    FX,
    FY,
    CX,
    CY,
    A, /* shape[0] */
    B,
    R1, /* radial[0] */
    R2,
    R3,
    R4,
    R5,
    R6,
    U1, /* under[0] */
    U2,
    U3,
    T1, /* tangential[0] */
    T2,
    S1, /* prism[0] */
    S2,
    S3,
    S4
} place;

static const struct {
    kiln_lens_projection projection;
    unsigned char places[17]; /* of params[0], params[1] ..., ended by 0 */
} models[N_MODELS] = {
    {KILN_LENS_PLANE, {F, CX, CY}},
    {KILN_LENS_PLANE, {FX, FY, CX, CY}},
    {KILN_LENS_PLANE, {F, CX, CY, R1}},
    {KILN_LENS_PLANE, {F, CX, CY, R1, R2}},
    {KILN_LENS_PLANE, {FX, FY, CX, CY, R1, R2, T1, T2}},
    {KILN_LENS_FISHEYE, {FX, FY, CX, CY, R1, R2, R3, R4}},
    {KILN_LENS_PLANE, {FX, FY, CX, CY, R1, R2, T1, T2, R3, U1, U2, U3}},
    {KILN_LENS_FOV, {FX, FY, CX, CY, B}},
    {KILN_LENS_FISHEYE, {F, CX, CY, R1}},
    {KILN_LENS_FISHEYE, {F, CX, CY, R1, R2}},
    {KILN_LENS_FISHEYE, {FX, FY, CX, CY, R1, R2, T1, T2, R3, R4, S1, S3}},
    /* p0 and p1 are the other way round than the tangential terms of the other models */
    {KILN_LENS_FISHEYE, {FX, FY, CX, CY, R1, R2, R3, R4, R5, R6, T2, T1, S1, S2, S3, S4}},
    {KILN_LENS_DIVISION, {F, CX, CY, A}},
    {KILN_LENS_DIVISION, {FX, FY, CX, CY, A}},
    {KILN_LENS_FISHEYE, {F, CX, CY}},
    {KILN_LENS_FISHEYE, {FX, FY, CX, CY}},
    {KILN_LENS_EUCM, {FX, FY, CX, CY, A, B}},
    {KILN_LENS_PANORAMA, {0}},
};
enum { RAD_TAN = 11 };

static void put_lens_value(kiln_lens *l, place where, double v)
{
    if (where == F)
        l->fx = l->fy = v;
    else if (where <= CY)
        *(where == FX ? &l->fx : where == FY ? &l->fy : where == CX ? &l->cx : &l->cy) = v;
    else if (where <= B)
        l->shape[where - A] = v;
    else if (where <= R6)
        l->radial[where - R1] = v;
    else if (where <= U3)
        l->under[where - U1] = v;
    else if (where <= T2)
        l->tangential[where - T1] = v;
    else
        l->prism[where - S1] = v;
}

/* 2 tan(omega/2) and omega, of which only the quotient and the first one's square count: no angle
 * is none. */
static void set_fov(kiln_lens *l)
{
    const double omega = l->shape[1];
    if (fabs(omega) < 1e-9) {
        l->projection = KILN_LENS_PLANE;
        return;
    }
    l->shape[0] = 2.0 * kiln_tan(omega / 2.0);
}

/* ---- limit ----------------------------------------------------------------------------------- */
/* Does a ray at this tangent, moved outwards, move outwards in the photo? By the radial terms
 * alone. */
static bool grows(const kiln_lens *l, double tangent)
{
    double pixel[2], j[4];
    return kiln_lens_bend(l, tangent, 0.0, pixel, j) && j[0] > 0.0;
}

/* The least tangent from which on rays come back, found in steps of an angle and then by
 * halving. */
static double find_limit(const kiln_lens *lens)
{
    enum { STEPS = 4096, HALVINGS = 50 };
    const double widest = 1e4; /* a pinhole shows nothing beyond 89.99 degrees */
    kiln_lens l = *lens;
    double low = 0.0, high = 0.0;
    memset(l.tangential, 0, sizeof l.tangential);
    memset(l.prism, 0, sizeof l.prism);
    for (int i = 1; i < STEPS; i++) {
        high = kiln_tan(KILN_PI / 2 * i / STEPS);
        if (!grows(&l, high)) break;
        low = high;
        high = 0.0;
    }
    if (high == 0.0) return widest;
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = low + (high - low) / 2;
        *(grows(&l, middle) ? &low : &high) = middle;
    }
    return low;
}

kiln_status kiln_lens_init(kiln_lens *out, int64_t model, const double *params, uint32_t width,
                           uint32_t height, kiln_error *err)
{
    memset(out, 0, sizeof *out);
    if (model < 0 || model >= N_MODELS)
        return kiln_fail(err, KILN_E_INPUT, "there is no camera model %lld; they are 0 to %d",
                         (long long)model, N_MODELS - 1);
    out->width = width;
    out->height = height;
    out->projection = models[model].projection;
    out->after = model == RAD_TAN;
    for (int i = 0; models[model].places[i]; i++)
        put_lens_value(out, (place)models[model].places[i], params[i]);
    if (out->projection == KILN_LENS_FOV) set_fov(out);
    out->limit = find_limit(out);
    return KILN_OK;
}

/* ---- inverse --------------------------------------------------------------------------------- */
/* *left: how many rays may still be bent; none left is none found. */
static bool residual(const kiln_lens *l, const double at[2], const double pixel[2], double r[2],
                     double j[4], double *size, uint64_t *left)
{
    double p[2];
    if (*left == 0) return false;
    --*left;
    if (!kiln_lens_bend(l, at[0], at[1], p, j)) return false;
    r[0] = pixel[0] - p[0];
    r[1] = pixel[1] - p[1];
    *size = sqrt(r[0] * r[0] + r[1] * r[1]);
    return *size < 1e300; /* false for NaN */
}

/* One step; false: no part of it leads nearer. */
static bool step(const kiln_lens *l, const double pixel[2], double at[2], double r[2], double j[4],
                 double *size, uint64_t *left)
{
    enum { HALVINGS = 40 };
    const double det = j[0] * j[3] - j[1] * j[2];
    if (!(fabs(det) > 1e-300)) return false;
    double dx = (j[3] * r[0] - j[1] * r[1]) / det, dy = (j[0] * r[1] - j[2] * r[0]) / det;
    for (int i = 0; i < HALVINGS; i++, dx /= 2, dy /= 2) {
        const double next[2] = {at[0] + dx, at[1] + dy};
        double next_r[2], next_j[4], next_size;
        if (!residual(l, next, pixel, next_r, next_j, &next_size, left) || next_size >= *size)
            continue;
        memcpy(at, next, sizeof next);
        memcpy(r, next_r, sizeof next_r);
        memcpy(j, next_j, sizeof next_j);
        *size = next_size;
        return true;
    }
    return false;
}

/* Newton from ray[] as it is; false: it does not end at the position. */
static bool refine(const kiln_lens *l, const double pixel[2], double ray[2], uint64_t *left)
{
    enum { STEPS = 100 };
    const double near = 1e-9, enough = 1e-11; /* pixels */
    double r[2], j[4], size;
    if (!residual(l, ray, pixel, r, j, &size, left)) return false;
    for (int i = 0; i < STEPS && size > enough && step(l, pixel, ray, r, j, &size, left); i++)
        continue;
    return size <= near && ray[0] * ray[0] + ray[1] * ray[1] <= l->limit * l->limit;
}

static bool find_ray(const kiln_lens *l, const double pixel[2], double ray[2], uint64_t *left)
{
    ray[0] = ray[1] = 0;
    if (l->projection == KILN_LENS_PANORAMA) return refine(l, pixel, ray, left);
    ray[0] = (pixel[0] - l->cx) / l->fx;
    ray[1] = (pixel[1] - l->cy) / l->fy;
    if (refine(l, pixel, ray, left)) return true;
    ray[0] = ray[1] = 0;
    return refine(l, pixel, ray, left);
}

bool kiln_lens_ray(const kiln_lens *l, const double pixel[2], double ray[2])
{
    uint64_t left = UINT64_MAX; /* both starts end by themselves */
    return find_ray(l, pixel, ray, &left);
}

/* ---- the pinhole ----------------------------------------------------------------------------- */
/* The least and the most of a coordinate along a border. */
typedef struct {
    double least, most;
} range;

/* axis 0: of the x along a left or right border at `at`; 1: of the y along a top or bottom border.
 * A position that no ray reaches is infinitely far outside: `far` is that. */
static range border(const kiln_lens *l, const kiln_pinhole *p, int axis, double at, double far,
                    uint64_t *left)
{
    /* of a longer border so many pixels or more, or a hostile file could take minutes */
    enum { LOOKED = 8192 };
    range out = {INFINITY, -INFINITY};
    const uint32_t n = axis == 0 ? l->height : l->width, stride = n / LOOKED > 1 ? n / LOOKED : 1;
    double ray[2];
    bool known = false; /* the ray of the position before, a good start */
    for (uint32_t i = 0; i < n; i += stride) {
        const double along = i + 0.5, pixel[2] = {axis == 0 ? at : along, axis == 0 ? along : at};
        double v = far;
        known = (known && refine(l, pixel, ray, left)) || find_ray(l, pixel, ray, left);
        if (known) v = axis == 0 ? p->fx * ray[0] + p->cx : p->fy * ray[1] + p->cy;
        if (v < out.least) out.least = v;
        if (v > out.most) out.most = v;
    }
    return out;
}

/* How much larger one side becomes. first, last: of the borders before and behind; centre, size: of
 * the pinhole as it is. */
static double enlarge(range first, range last, double centre, double size, double blank)
{
    const double to_end = size - 0.5 - centre;
    const double least_before = centre / (centre - first.least),
                 least_behind = to_end / (last.most - centre);
    const double most_before = centre / (centre - first.most),
                 most_behind = to_end / (last.least - centre);
    /* the photo is in it */
    const double all = least_before < least_behind ? least_before : least_behind;
    /* it is in the photo */
    const double full = most_before > most_behind ? most_before : most_behind;
    const double scale = 1.0 / (all * blank + full * (1.0 - blank));
    /* 1: it is no number */
    return scale >= 0.2 ? (scale < 2.0 ? scale : 2.0) : scale < 0.2 ? 0.2 : 1.0;
}

static uint32_t scaled(double scale, uint32_t size)
{
    const double v = scale * size;
    return v > 1.0 ? (uint32_t)v : 1;
}

static kiln_pinhole ahead(const kiln_lens *l)
{
    const double side = floor(l->width / KILN_PI);
    const double size = side >= 1 ? side : 1;
    return (kiln_pinhole){.fx = size / 2,
                          .fy = size / 2,
                          .cx = size / 2,
                          .cy = size / 2,
                          .width = (uint32_t)size,
                          .height = (uint32_t)size};
}

/* Of all four borders together: 512 for each position that is looked at. Lenses of cameras need 3
 * to 6, wide ones up to 100 where no ray is; one that somebody made up would take 8,000, ten
 * seconds instead of two. */
enum { BENDS_MOST = 1 << 24 };

kiln_pinhole kiln_lens_target(const kiln_lens *l, double blank)
{
    if (l->projection == KILN_LENS_PANORAMA) return ahead(l);
    kiln_pinhole p = {
        .fx = l->fx, .fy = l->fy, .cx = l->cx, .cy = l->cy, .width = l->width, .height = l->height};
    const double right = l->width - 0.5, bottom = l->height - 0.5;
    uint64_t bends = BENDS_MOST;
    const range left = border(l, &p, 0, 0.5, -INFINITY, &bends),
                behind = border(l, &p, 0, right, INFINITY, &bends);
    const range top = border(l, &p, 1, 0.5, -INFINITY, &bends),
                below = border(l, &p, 1, bottom, INFINITY, &bends);
    p.width = scaled(enlarge(left, behind, l->cx, l->width, blank), l->width);
    p.height = scaled(enlarge(top, below, l->cy, l->height, blank), l->height);
    p.cx = l->cx * p.width / l->width;
    p.cy = l->cy * p.height / l->height;
    return p;
}
