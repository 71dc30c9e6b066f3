/* undistort_math -- one pixel of the warp, and one of a scaling along an axis; shared by both
 * siblings.
 *
 * A picture between the steps is a kiln_undistort_plane: values and a mask. Sums are double, taken
 * in one order.
 */
#ifndef KILN_KERNELS_UNDISTORT_MATH_H
#define KILN_KERNELS_UNDISTORT_MATH_H

#include "base/carve.h"
#include "kernels/lens/lens_math.h"
#include "kernels/undistort/undistort.h"

enum { KILN_LANCZOS_TAPS = 6, KILN_UNDISTORT_CHANNELS = 4 };

typedef struct {
    uint32_t width, height;
    float *values; /* [height][width][channels] */
    uint8_t *mask; /* [height][width] */
} kiln_undistort_plane;

/* The steps: the warp into planes[0], then scalings, each into the next; the last plane is the
 * output. */
typedef struct {
    kiln_pinhole pinhole; /* of the warp */
    unsigned n;           /* planes, 1 to 3 */
    int vertical_first;   /* of two scalings */
    kiln_undistort_plane planes[3];
} kiln_undistort_plan;

/* Lays out planes between the photo and the output in *c, the work space. */
static inline kiln_undistort_plan kiln_undistort_plan_of(const kiln_undistort_args *a,
                                                         kiln_carve *c)
{
    const uint32_t width = a->lens.width, height = a->lens.height;
    const int wider = a->target.width != width, higher = a->target.height != height;
    kiln_undistort_plan p;
    p.pinhole = a->target;
    p.n = 1;
    p.vertical_first = 0;
    if (a->filter == KILN_UNDISTORT_BILINEAR && (wider || higher)) {
        const double sx = (double)width / (double)a->target.width,
                     sy = (double)height / (double)a->target.height;
        p.pinhole.fx = sx * a->target.fx;
        p.pinhole.fy = sy * a->target.fy;
        p.pinhole.cx = sx * a->target.cx;
        p.pinhole.cy = sy * a->target.cy;
        p.pinhole.width = width;
        p.pinhole.height = height;
        p.n = 1u + (unsigned)wider + (unsigned)higher;
        /* the order in which FreeImage takes them: the one with fewer products */
        p.vertical_first = wider && higher &&
                           (uint64_t)a->target.width * height > (uint64_t)a->target.height * width;
        p.planes[0].width = width;
        p.planes[0].height = height;
        p.planes[1].width = p.vertical_first ? width : a->target.width;
        p.planes[1].height = p.vertical_first ? a->target.height : height;
    }
    for (unsigned i = 0; i + 1 < p.n; i++) {
        const uint64_t pixels = (uint64_t)p.planes[i].width * p.planes[i].height;
        p.planes[i].values = (float *)kiln_take(c, pixels * a->channels, sizeof(float));
        p.planes[i].mask = (uint8_t *)kiln_take(c, pixels, 1);
    }
    p.planes[p.n - 1].width = a->target.width;
    p.planes[p.n - 1].height = a->target.height;
    p.planes[p.n - 1].values = a->out;
    p.planes[p.n - 1].mask = a->mask;
    return p;
}

/* Is scaling i (into planes[i + 1]) along y? */
static inline int kiln_undistort_along_y(const kiln_undistort_plan *p, unsigned i)
{
    return p->planes[i].height != p->planes[i + 1].height;
}

static inline KILN_HD float kiln_undistort_level(double v, uint32_t levels)
{
    if (levels == 0) return (float)v;
    const double low = v > 0.0 ? v : 0.0, clamped = low < 1.0 ? low : 1.0;
    return (float)(floor(clamped * (double)levels + 0.5) / (double)levels);
}

/* Weight of the sample at distance d, |d| < 3. */
static inline KILN_HD double kiln_lanczos(double d)
{
    const double x = KILN_PI * d;
    if (d > -1e-8 && d < 1e-8) return 1.0;
    return 3.0 * (kiln_sin(x) * kiln_sin(x / 3.0)) / (x * x);
}

/* Samples along one axis: indices from `first` on, and their weights. */
typedef struct {
    int64_t first;
    int n;
    double weight[KILN_LANCZOS_TAPS];
} kiln_undistort_taps;

/* at: position along the axis with samples at whole numbers. */
static inline KILN_HD kiln_undistort_taps kiln_undistort_taps_at(uint32_t filter, double at)
{
    kiln_undistort_taps t;
    const double whole = floor(at), rest = at - whole;
    if (filter == KILN_UNDISTORT_BILINEAR) {
        t.first = (int64_t)whole;
        t.n = 2;
        t.weight[0] = 1.0 - rest;
        t.weight[1] = rest;
        return t;
    }
    double sum = 0.0;
    t.first = (int64_t)whole - 2;
    t.n = KILN_LANCZOS_TAPS;
    for (int i = 0; i < KILN_LANCZOS_TAPS; i++) {
        t.weight[i] = kiln_lanczos(rest - (double)(i - 2));
        sum += t.weight[i];
    }
    for (int i = 0; i < KILN_LANCZOS_TAPS; i++) t.weight[i] = t.weight[i] / sum;
    return t;
}

/* The photo at a position. Returns whether all samples lie in it and count; value is 0 where they
 * do not all lie in it. */
static inline KILN_HD uint8_t kiln_undistort_sample(const kiln_undistort_args *a,
                                                    const double pixel[2],
                                                    double value[KILN_UNDISTORT_CHANNELS])
{
    const int64_t width = a->lens.width, height = a->lens.height;
    /* from the last row, as COLMAP counts */
    const double x = pixel[0] - 0.5, up = (double)(height - 1) - (pixel[1] - 0.5);
    uint8_t counts = 1;
    if (!(x >= 0.0 && up >= 0.0 && x < (double)width && up < (double)height)) return 0;
    const kiln_undistort_taps across = kiln_undistort_taps_at(a->filter, x),
                              along = kiln_undistort_taps_at(a->filter, up);
    if (across.first < 0 || along.first < 0 || across.first + across.n > width ||
        along.first + along.n > height)
        return 0;
    for (int j = 0; j < along.n; j++) {
        const uint64_t row = (uint64_t)(height - 1 - along.first - j) * (uint64_t)width;
        double sum[KILN_UNDISTORT_CHANNELS] = {0.0, 0.0, 0.0, 0.0};
        for (int i = 0; i < across.n; i++) {
            const uint64_t at = row + (uint64_t)(across.first + i);
            if (a->photo_mask && a->photo_mask[at] == 0) counts = 0;
            for (uint32_t c = 0; c < a->channels; c++)
                sum[c] += across.weight[i] * (double)a->photo[at * a->channels + c];
        }
        for (uint32_t c = 0; c < a->channels; c++) value[c] += along.weight[j] * sum[c];
    }
    return counts;
}

/* Pixel (x, y) of the warp. */
static inline KILN_HD void kiln_undistort_warp(const kiln_undistort_args *a,
                                               const kiln_pinhole *pinhole,
                                               const kiln_undistort_plane *to, uint32_t x,
                                               uint32_t y)
{
    const uint64_t at = (uint64_t)y * to->width + x;
    const double ray_x = ((double)x + 0.5 - pinhole->cx) / pinhole->fx,
                 ray_y = ((double)y + 0.5 - pinhole->cy) / pinhole->fy;
    double pixel[2], j[4], value[KILN_UNDISTORT_CHANNELS] = {0.0, 0.0, 0.0, 0.0};
    uint8_t known = 0;
    if (kiln_lens_bend(&a->lens, ray_x, ray_y, pixel, j))
        known = kiln_undistort_sample(a, pixel, value);
    if (ray_x * ray_x + ray_y * ray_y > a->lens.limit * a->lens.limit) known = 0;
    for (uint32_t c = 0; c < a->channels; c++)
        to->values[at * a->channels + c] = kiln_undistort_level(value[c], a->levels);
    to->mask[at] = known;
}

/* Pixel (x, y) of a scaling along one axis, as FreeImage_Rescale does with its bilinear filter: a
 * triangle whose half width is a pixel of the smaller picture. */
static inline KILN_HD void kiln_undistort_scale(const kiln_undistort_args *a,
                                                const kiln_undistort_plane *from,
                                                const kiln_undistort_plane *to, int along_y,
                                                uint32_t x, uint32_t y)
{
    const uint32_t n_from = along_y ? from->height : from->width,
                   n_to = along_y ? to->height : to->width, i = along_y ? y : x;
    const double scale = (double)n_to / (double)n_from, narrow = scale < 1.0 ? scale : 1.0,
                 reach = 1.0 / narrow;
    const double centre = (double)i / scale + 0.5 / scale;
    const double low = centre - reach + 0.5, high = centre + reach + 0.5;
    const int64_t first = low > 0.0 ? (int64_t)low : 0,
                  end = high < (double)n_from ? (int64_t)high : (int64_t)n_from;
    double total = 0.0, value[KILN_UNDISTORT_CHANNELS] = {0.0, 0.0, 0.0, 0.0};
    uint8_t known = 1;
    for (int64_t k = first; k < end; k++) {
        const double off = narrow * ((double)k + 0.5 - centre), size = off < 0.0 ? -off : off;
        const double weight = size < 1.0 ? 1.0 - size : 0.0;
        const uint64_t at =
            along_y ? (uint64_t)k * from->width + x : (uint64_t)y * from->width + (uint64_t)k;
        if (!(weight > 0.0)) continue;
        total += weight;
        if (from->mask[at] == 0) known = 0;
        for (uint32_t c = 0; c < a->channels; c++)
            value[c] += weight * (double)from->values[at * a->channels + c];
    }
    const uint64_t at = (uint64_t)y * to->width + x;
    for (uint32_t c = 0; c < a->channels; c++)
        to->values[at * a->channels + c] =
            kiln_undistort_level(total > 0.0 ? value[c] / total : 0.0, a->levels);
    to->mask[at] = known;
}

#endif
