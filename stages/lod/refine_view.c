/* Windows of refinement. Doubles and + - * / sqrt alone: the same views on every machine. */
#include "stages/lod/refine_view.h"

#include "base/minmax.h"
#include "base/vec3.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BORDER = 4, LEAST = 3 /* pixels that the chunk is wide or high */ };

double kiln_refine_noise(uint32_t a, uint32_t b, uint32_t c)
{
    uint64_t x = ((uint64_t)a << 40) ^ ((uint64_t)b << 20) ^ c; /* splitmix64, Steele et al. 2014 */
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return (double)(x >> 11) / 9007199254740992.0; /* 2^53 */
}

double kiln_refine_size(uint32_t half)
{
    double size = half % 2 ? 0.70710678118654752 : 1.0;
    for (uint32_t i = 0; i < half / 2; i++) size *= 0.5;
    return size;
}

/* ---- windows --------------------------------------------------------------------------------- */
/* A stretch of an axis of a picture, in pixels. */
typedef struct {
    double lo, hi;
} stretch;

static void stretch_to(stretch *s, double at)
{
    if (at < s->lo) s->lo = at;
    if (at > s->hi) s->hi = at;
}

/* Where a camera has a point in its picture; false: nowhere. */
static bool find_pixel(const kiln_refine_camera *c, float near_m, const double point[3],
                       double pixel[2])
{
    double to[3], p[3];
    for (int i = 0; i < 3; i++) to[i] = point[i] - c->centre[i];
    for (int i = 0; i < 3; i++) p[i] = kiln_vec3_dot(c->r + 3 * i, to);
    if (!(p[2] > (double)near_m)) return false;
    pixel[0] = c->fx * (p[0] / p[2]) + c->cx;
    pixel[1] = c->fy * (p[1] / p[2]) + c->cy;
    return pixel[0] >= 0 && pixel[0] <= c->width && pixel[1] >= 0 && pixel[1] <= c->height;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Where the chunk is in the whole picture of a camera; false: it is not in it. */
static bool find_chunk(const kiln_refine_views *v, const kiln_refine_camera *c, stretch *across,
                       stretch *down)
{
    *across = *down = (stretch){.lo = 1e300, .hi = -1e300};
    for (uint64_t i = 0; i < v->n_points; i++) {
        double pixel[2];
        if (!find_pixel(c, v->near_m, v->points[i], pixel)) continue;
        stretch_to(across, pixel[0]);
        stretch_to(down, pixel[1]);
    }
    return across->hi >= across->lo;
}

/* In the middle of all that cameras see of the chunk. */
static double find_footprint(const kiln_refine_views *v)
{
    double nearest[KILN_REFINE_POINTS];
    uint64_t n = 0;
    for (uint64_t i = 0; i < v->n_points; i++) {
        double least = 1e300;
        for (uint32_t c = 0; c < v->n_cameras; c++) {
            double pixel[2];
            const double footprint =
                kiln_vec3_distance(v->points[i], v->views[c].centre) / v->views[c].fx;
            if (footprint < least && find_pixel(&v->views[c], v->near_m, v->points[i], pixel))
                least = footprint;
        }
        if (least < 1e300) nearest[n++] = least;
    }
    qsort(nearest, n, sizeof *nearest, by_value);
    return n > 0 ? nearest[n / 2] : 0;
}

/* Pixels of an axis of a window, from `from` on: the chunk with a border about it, or a part that
 * `noise` picks. */
static uint32_t cut_window(const stretch *chunk, double scale, uint32_t whole, double noise,
                           uint32_t *from)
{
    const double border = BORDER + (chunk->hi - chunk->lo) * scale / 8;
    const double lo = kiln_clamp_f64(floor(chunk->lo * scale - border), 0, whole - 1);
    const double hi = kiln_clamp_f64(ceil(chunk->hi * scale + border), lo + 1, whole);
    const double spare = hi - lo - KILN_REFINE_WINDOW;
    *from = (uint32_t)(lo + (spare > 0 ? floor(noise * (spare + 1)) : 0));
    return spare > 0 ? KILN_REFINE_WINDOW : (uint32_t)(hi - lo);
}

/* Pixels of an axis of a window that has all of the chunk. */
static double reach_of_chunk(const stretch *chunk, double whole, double size)
{
    const double with_border = ((chunk->hi - chunk->lo) * 1.25 + 2 * BORDER / size);
    return size * (with_border < whole ? with_border : whole);
}

/* Whether a picture of a size is too large: at the camera's, windows show a quarter of the chunk or
 * more, else all of it. */
static bool is_too_large(const kiln_refine_camera *c, const stretch *across, const stretch *down,
                         uint32_t half, double size)
{
    const double wide = reach_of_chunk(across, c->width, size),
                 high = reach_of_chunk(down, c->height, size);
    return (wide > high ? wide : high) > (half == 0 ? 2 : 1) * KILN_REFINE_WINDOW;
}

static uint32_t whole_pixels(double of_camera, double size)
{
    return (uint32_t)kiln_clamp_f64(floor(of_camera * size + 0.5), 1, 1 << 20);
}

bool kiln_refine_window_make(const kiln_refine_views *v, uint32_t which, uint32_t half,
                             kiln_refine_window *out)
{
    static const double origin[3] = {0};
    const kiln_refine_camera *c = &v->views[which];
    stretch across, down;
    double t[3];
    uint32_t left, top, halves = half;
    if (!find_chunk(v, c, &across, &down)) return false;
    while (is_too_large(c, &across, &down, half, kiln_refine_size(halves))) halves++;
    const double size = kiln_refine_size(halves);
    const uint32_t width = whole_pixels(c->width, size), height = whole_pixels(c->height, size);
    const double sx = width / c->width, sy = height / c->height;
    const double intrinsics[4] = {c->fx * sx, c->fy * sy, c->cx * sx, c->cy * sy};
    if ((across.hi - across.lo) * sx < LEAST && (down.hi - down.lo) * sy < LEAST) return false;
    const uint32_t wide = cut_window(&across, sx, width, kiln_refine_noise(which, half, 0), &left);
    const uint32_t high = cut_window(&down, sy, height, kiln_refine_noise(which, half, 1), &top);
    kiln_pose_translation(c->r, c->centre, t);
    kiln_view_init(&out->view, c->r, t, origin, intrinsics, width, height, v->near_m, v->far_m);
    out->size = size;
    out->cut = kiln_view_cut_to(&out->view, left, top, wide, high);
    return true;
}

/* ---- choosing -------------------------------------------------------------------------------- */
/* The camera's neighbour number `rank` (0: the nearest) of those that look less than 60 degrees
 * elsewhere, or the last there is. NULL: there is none. */
static const kiln_refine_camera *neighbour_of(const kiln_refine_views *v, uint32_t camera,
                                              uint32_t rank)
{
    const kiln_refine_camera *const c = &v->views[camera], *found = NULL;
    double above = -1;
    for (uint32_t turn = 0; turn <= rank; turn++) {
        const kiln_refine_camera *next = NULL;
        double least = 1e300;
        for (uint32_t i = 0; i < v->n_cameras; i++) {
            const kiln_refine_camera *o = &v->views[i];
            const double d = kiln_vec3_distance(c->centre, o->centre);
            if (i == camera || !(kiln_vec3_dot(c->r + 6, o->r + 6) > 0.5) || d <= above ||
                d >= least)
                continue;
            least = d;
            next = o;
        }
        if (!next) return found;
        above = least;
        found = next;
    }
    return found;
}

/* Rows right, down, forward between two cameras' ; false: they are opposite. */
static bool turn_between(const double a[9], const double b[9], double share, double r[9])
{
    for (int i = 0; i < 9; i++) r[i] = a[i] + share * (b[i] - a[i]);
    if (!kiln_vec3_normalise(r + 6)) return false;
    kiln_vec3_cross(r + 6, r, r + 3);
    if (!kiln_vec3_normalise(r + 3)) return false;
    kiln_vec3_cross(r + 3, r + 6, r);
    return true;
}

/* Places beside cameras from the first to the last, evenly: neighbours in the list are often
 * neighbours in the scene. */
static void add_between(kiln_refine_views *v)
{
    const uint32_t between = KILN_REFINE_VIEWS - v->n_cameras;
    for (uint32_t turn = 0; v->n_cameras > 0 && v->n < KILN_REFINE_VIEWS; turn++) {
        const uint32_t camera =
            between < v->n_cameras ? turn * v->n_cameras / between : turn % v->n_cameras;
        kiln_refine_camera *out = &v->views[v->n++];
        const kiln_refine_camera *a = &v->views[camera],
                                 *b = neighbour_of(v, camera,
                                                   (uint32_t)(4 * kiln_refine_noise(turn, 0, 7)));
        const double share = 0.25 + 0.5 * kiln_refine_noise(turn, 1, 7);
        double r[9];
        *out = *a;
        if (!b || !turn_between(a->r, b->r, share, r)) continue;
        memcpy(out->r, r, sizeof r);
        for (int i = 0; i < 3; i++)
            out->centre[i] = a->centre[i] + share * (b->centre[i] - a->centre[i]);
    }
}

void kiln_refine_views_make(const kiln_refine_unit *u, const kiln_coarsen_rows *level0,
                            kiln_refine_views *out)
{
    const uint64_t n = level0->n, every = n / KILN_REFINE_POINTS + 1;
    *out =
        (kiln_refine_views){.near_m = (float)u->near_m, .far_m = kiln_profiles[u->profile].far_m};
    for (uint64_t row = 0; row < n; row += every) {
        for (uint64_t k = 0; k < 3; k++)
            out->points[out->n_points][k] = (double)level0->means[k * n + row];
        out->n_points++;
    }
    for (uint32_t i = 0; i < u->n_cameras && out->n < KILN_REFINE_CAMERAS; i++) {
        stretch across, down;
        if (find_chunk(out, &u->cameras[i], &across, &down)) out->views[out->n++] = u->cameras[i];
    }
    out->n_cameras = out->n;
    out->footprint = find_footprint(out);
    add_between(out);
}
