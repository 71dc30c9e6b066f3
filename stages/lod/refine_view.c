/* Windows of refinement. Doubles and + - * / sqrt alone: the same views on every machine. */
#include "stages/lod/refine_view.h"

#include "base/memory.h"
#include "base/vec3.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BORDER = 4, LEAST = 3 /* pixels that the chunk is wide or high */, OUTERMOST = 50, TRIES = 64 };

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

/* Rows right, down, forward of a camera at `centre` that looks at `point`, upright as `right` says. */
static bool look_at(const double centre[3], const double right[3], const double point[3], double r[9])
{
    double *across = r, *down = r + 3, *forward = r + 6;
    for (int i = 0; i < 3; i++) forward[i] = point[i] - centre[i];
    if (!kiln_vec3_normalise(forward)) return false;
    kiln_vec3_cross(forward, right, down);
    if (!kiln_vec3_normalise(down)) return false;
    kiln_vec3_cross(down, forward, across);
    return true;
}

static double reach_along(const double axis[3], const double half[3])
{
    return fabs(axis[0]) * half[0] + fabs(axis[1]) * half[1] + fabs(axis[2]) * half[2];
}

/* Pixels of a window on what is `reach` wide either way, at most `most`, and how far its middle may lie from that of the chunk. */
static uint32_t side_of(double reach, double footprint, double most, double *slack)
{
    const double pixels = 2 * reach / footprint + 2 * BORDER;
    const double room = most < KILN_REFINE_WINDOW ? ceil(most) : KILN_REFINE_WINDOW;
    *slack = pixels < room ? 0 : reach - (0.5 * room - BORDER) * footprint;
    if (*slack < 0) *slack = 0;
    return (uint32_t)(pixels < room ? ceil(pixels) : room);
}

/* What of the chunk lies within the window's reach of the middle, and by how much that may move. */
typedef struct {
    double footprint, focal, slack[2];
    uint32_t width, height;
} extent;

static bool find_extent(const kiln_refine_views *v, const kiln_refine_view *at, uint32_t half, const double r[9], extent *e)
{
    double box[3], to[3];
    const double size = kiln_refine_size(half);
    for (int i = 0; i < 3; i++) {
        box[i] = 0.5 * (v->box_max[i] - v->box_min[i]);
        to[i] = at->point[i] - at->centre[i];
    }
    e->focal = at->focal * size;
    e->footprint = kiln_vec3_length(to) / e->focal;
    const double across = reach_along(r, box), down = reach_along(r + 3, box);
    if (2 * across < LEAST * e->footprint && 2 * down < LEAST * e->footprint) return false;
    e->width = side_of(across, e->footprint, at->width * size, &e->slack[0]);
    e->height = side_of(down, e->footprint, at->height * size, &e->slack[1]);
    return e->width > 0 && e->height > 0;
}

bool kiln_refine_window(const kiln_refine_views *v, uint32_t which, uint32_t half, kiln_view *out)
{
    static const double origin[3] = {0};
    const kiln_refine_view *at = &v->views[which];
    double point[3], r[9], t[3];
    extent e;
    memcpy(point, at->point, sizeof point);
    if (!look_at(at->centre, at->right, point, r) || !find_extent(v, at, half, r, &e)) return false;
    for (uint32_t k = 0; at->of_all && k < 2; k++) {
        const double move = e.slack[k] * (2 * kiln_refine_noise(which, half, k) - 1);
        for (int i = 0; i < 3; i++) point[i] += move * r[3 * k + (uint32_t)i];
    }
    if (!look_at(at->centre, at->right, point, r)) return false;
    kiln_pose_translation(r, at->centre, t);
    const double intrinsics[4] = {e.focal, e.focal, 0.5 * e.width, 0.5 * e.height};
    kiln_view_init(out, r, t, origin, intrinsics, e.width, e.height, v->near_m, v->far_m);
    return true;
}

/* ---- choosing -------------------------------------------------------------------------------------------------------------- */
static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Without one row in OUTERMOST at each end of an axis: a few strays would leave no pixels for the rest. */
static kiln_status find_box(const kiln_coarsen_rows *rows, kiln_refine_views *v, kiln_error *err)
{
    float *sorted;
    const uint64_t beyond = rows->n / OUTERMOST;
    KILN_TRY(KILN_ALLOC_UNSET(&sorted, rows->n, "the box of a chunk", err));
    for (uint32_t axis = 0; axis < 3; axis++) {
        memcpy(sorted, rows->means + axis * rows->n, rows->n * sizeof *sorted);
        qsort(sorted, rows->n, sizeof *sorted, by_value);
        v->box_min[axis] = (double)sorted[beyond];
        v->box_max[axis] = (double)sorted[rows->n - 1 - beyond];
    }
    free(sorted);
    return KILN_OK;
}

/* Sets the view from a camera at a point; false: the camera does not have it in its picture. */
static bool set_view(const kiln_refine_unit *u, const kiln_refine_camera *c, const double point[3], kiln_refine_view *v)
{
    double to[3], p[3];
    for (int i = 0; i < 3; i++) to[i] = point[i] - c->centre[i];
    for (int i = 0; i < 3; i++) p[i] = kiln_vec3_dot(c->r + 3 * i, to);
    if (!(p[2] > u->near_m)) return false;
    const double x = c->fx * (p[0] / p[2]) + c->cx, y = c->fy * (p[1] / p[2]) + c->cy;
    if (!(x >= 0 && x <= c->width && y >= 0 && y <= c->height)) return false;
    memcpy(v->centre, c->centre, sizeof v->centre);
    memcpy(v->right, c->r, sizeof v->right);
    memcpy(v->point, point, sizeof v->point);
    v->focal = (c->fx > c->fy ? c->fx : c->fy) * (kiln_vec3_length(to) / p[2]); /* as much longer as it is farther than deep */
    v->width = c->width;
    v->height = c->height;
    v->of_all = false;
    return true;
}

/* The same at some row of the chunk that the camera has in its picture: one of TRIES that noise picks. */
static bool set_view_of_row(const kiln_refine_unit *u, const kiln_refine_camera *c, const kiln_coarsen_rows *rows, uint32_t seed,
                            kiln_refine_view *v)
{
    for (uint32_t turn = 0; turn < TRIES; turn++) {
        const uint64_t row = (uint64_t)(kiln_refine_noise(seed, turn, 7) * (double)rows->n);
        const double point[3] = {(double)rows->means[row], (double)rows->means[rows->n + row],
                                 (double)rows->means[2 * rows->n + row]};
        if (set_view(u, c, point, v)) return true;
    }
    return false;
}

/* Stands between two views that see the middle from less than a right angle apart, as far from it and as fine as both. */
static bool set_between(const kiln_refine_view *a, const kiln_refine_view *b, double share, kiln_refine_view *v)
{
    const double *const middle = a->point;
    double to_a[3], to_b[3];
    if (!a->of_all || !b->of_all) return false;
    *v = *a;
    for (int i = 0; i < 3; i++) {
        to_a[i] = a->centre[i] - middle[i];
        to_b[i] = b->centre[i] - middle[i];
    }
    if (!(kiln_vec3_dot(to_a, to_b) > 0)) return false;
    const double away_a = kiln_vec3_length(to_a), away_b = kiln_vec3_length(to_b), away = share * away_a + (1 - share) * away_b;
    for (int i = 0; i < 3; i++) {
        v->centre[i] = share * to_a[i] / away_a + (1 - share) * to_b[i] / away_b;
        v->right[i] = share * a->right[i] + (1 - share) * b->right[i];
    }
    if (!kiln_vec3_normalise(v->centre)) return false;
    for (int i = 0; i < 3; i++) v->centre[i] = middle[i] + v->centre[i] * away;
    v->focal = away / (share * (away_a / a->focal) + (1 - share) * (away_b / b->focal));
    return true;
}

static void add_between(kiln_refine_views *v)
{
    const uint32_t n = v->n_cameras;
    for (uint32_t turn = 0; n > 1 && turn < 8 * KILN_REFINE_VIEWS && v->n < KILN_REFINE_VIEWS; turn++) {
        const uint32_t a = (uint32_t)(kiln_refine_noise(turn, n, 0) * n), b = (uint32_t)(kiln_refine_noise(turn, n, 1) * n);
        v->n += a != b && set_between(&v->views[a], &v->views[b], kiln_refine_noise(turn, n, 2), &v->views[v->n]);
    }
}

/* Other parts of the chunk, where cameras are too few or stand within it. */
static void add_rows(const kiln_refine_unit *u, const kiln_coarsen_rows *level0, kiln_refine_views *v)
{
    for (uint32_t turn = 0; u->n_cameras > 0 && turn < 2 * KILN_REFINE_VIEWS && v->n < KILN_REFINE_VIEWS; turn++)
        v->n += set_view_of_row(u, &u->cameras[turn % u->n_cameras], level0, 1000 + turn, &v->views[v->n]);
}

kiln_status kiln_refine_views_make(const kiln_refine_unit *u, const kiln_coarsen_rows *level0, kiln_refine_views *out,
                                   kiln_error *err)
{
    double middle[3];
    *out = (kiln_refine_views){.near_m = (float)u->near_m, .far_m = kiln_profiles[u->profile].far_m};
    if (level0->n == 0) return KILN_OK;
    KILN_TRY(find_box(level0, out, err));
    for (int i = 0; i < 3; i++) middle[i] = 0.5 * (out->box_min[i] + out->box_max[i]);
    for (uint32_t i = 0; i < u->n_cameras && out->n < KILN_REFINE_CAMERAS; i++) {
        kiln_refine_view *v = &out->views[out->n];
        const bool all = set_view(u, &u->cameras[i], middle, v);
        if (!all && !set_view_of_row(u, &u->cameras[i], level0, i, v)) continue;
        v->of_all = all;
        out->n++;
    }
    out->n_cameras = out->n;
    add_between(out);
    add_rows(u, level0, out);
    return KILN_OK;
}
