/* camera_path -- see camera_path.h. */
#include "stages/frame/camera_path.h"

#include "base/memory.h"
#include "base/vec3.h"
#include "kernels/math/ellipsoid_math.h"
#include "stages/select/up_axis.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- size ------------------------------------------------------------------------------------ */
uint32_t kiln_camera_scaled(uint32_t pixels, double scale)
{
    const double size = floor((double)pixels * scale + 0.5);
    return !(size > 1) ? 1 : size > KILN_CAMERA_SIZE_MAX ? KILN_CAMERA_SIZE_MAX : (uint32_t)size;
}

/* What is left is a pinhole without photo. */
static void make_pinhole(kiln_camera *c)
{
    c->photo = c->mask = "";
    c->photo_width = c->photo_height = c->mask_width = c->mask_height = 0;
    c->distorted = false;
    snprintf(c->model, sizeof c->model, "PINHOLE");
    memset(c->params, 0, sizeof c->params);
    c->n_params = 4;
    c->params[0] = c->fx;
    c->params[1] = c->fy;
    c->params[2] = c->cx;
    c->params[3] = c->cy;
}

void kiln_camera_rescale(kiln_camera *c, uint32_t width, uint32_t height)
{
    const double x = (double)width / c->width, y = (double)height / c->height;
    c->fx *= x;
    c->cx *= x;
    c->fy *= y;
    c->cy *= y;
    c->width = width;
    c->height = height;
}

void kiln_camera_resize(kiln_camera *c, uint32_t width, uint32_t height)
{
    kiln_camera_rescale(c, width, height);
    make_pinhole(c);
}

void kiln_camera_fit(kiln_camera *c, uint32_t width, uint32_t height)
{
    const double x = (double)width / c->width, y = (double)height / c->height,
                 scale = x < y ? x : y;
    c->fx *= scale;
    c->fy *= scale;
    c->cx = (c->cx - c->width / 2.0) * scale + width / 2.0;
    c->cy = (c->cy - c->height / 2.0) * scale + height / 2.0;
    c->width = width;
    c->height = height;
    make_pinhole(c);
}

void kiln_camera_for_level(kiln_camera *c, uint32_t level)
{
    const double scale = ldexp(level % 2 ? sqrt(0.5) : 1.0, -(int)(level / 2));
    kiln_camera_resize(c, kiln_camera_scaled(c->width, scale),
                       kiln_camera_scaled(c->height, scale));
}

/* ---- orbit ----------------------------------------------------------------------------------- */
_Static_assert(offsetof(kiln_camera, t) == offsetof(kiln_camera, r) + 9 * sizeof(double),
               "t stands behind r");

static const double *pose_at(kiln_poses p, uint32_t i)
{
    return (const double *)(const void *)((const char *)p.first + i * p.stride);
}

/* Cameras are held level: their x axes are horizontal, whatever they look at. Up is the direction
 * in which these axes have least extent. False: they do not turn enough to say it, as where all
 * cameras look the same way. mean: of the cameras' own. */
static bool up_of_level(kiln_poses poses, const double mean[3], double up[3])
{
    /* axes that spread by 10 degrees to each side have 0.03 */
    const double turned_enough = 0.03, much_less = 0.25;
    double covar[6] = {0}, values[3], axes[9];
    int least = 0;
    for (uint32_t i = 0; i < poses.n; i++) {
        const double *x = pose_at(poses, i);
        const double products[6] = {x[0] * x[0], x[0] * x[1], x[0] * x[2],
                                    x[1] * x[1], x[1] * x[2], x[2] * x[2]};
        for (int k = 0; k < 6; k++) covar[k] += products[k] / poses.n;
    }
    kiln_covar_axes(covar, values, axes);
    for (int i = 1; i < 3; i++)
        if (values[i] < values[least]) least = i;
    const double a = values[(least + 1) % 3], b = values[(least + 2) % 3], next = a < b ? a : b;
    for (int k = 0; k < 3; k++) up[k] = axes[3 * k + least];
    if (!(next > turned_enough) || !(values[least] < much_less * next) || !kiln_vec3_normalise(up))
        return false;
    const double side = kiln_vec3_dot(up, mean);
    for (int k = 0; k < 3 && side < 0; k++) up[k] = -up[k];
    return true;
}

void kiln_camera_path_up(const char *up_axis, kiln_poses poses, double up[3])
{
    double mean[3] = {0};
    for (uint32_t i = 0; i < poses.n; i++)
        for (int k = 0; k < 3; k++) mean[k] -= pose_at(poses, i)[3 + k] / poses.n;
    if (up_axis[0] || kiln_vec3_dot(mean, mean) < 0.0625 ||
        !kiln_vec3_normalise(mean)) { /* their own agree so little that they say nothing */
        kiln_up_vector(up_axis, up);
        return;
    }
    if (!up_of_level(poses, mean, up)) memcpy(up, mean, sizeof mean);
}

/* Solves the symmetric 3 x 3 system by Cramer's rule. False where it has no solution or hardly one.
 * size: of its entries. */
static bool solve(const double a[9], const double b[3], double size, double x[3])
{
    double across[3][3];
    for (int i = 0; i < 3; i++)
        kiln_vec3_cross(a + 3 * ((i + 1) % 3), a + 3 * ((i + 2) % 3), across[i]);
    const double determinant = kiln_vec3_dot(a, across[0]);
    if (!(fabs(determinant) > 1e-6 * size * size * size)) return false;
    for (int i = 0; i < 3; i++)
        x[i] = (across[0][i] * b[0] + across[1][i] * b[1] + across[2][i] * b[2]) / determinant;
    return true;
}

/* A point x is |(I - d d^T) (x - p)| from the axis through p in the direction d; the sum of squares
 * is least where sum (I - d d^T) x = sum (I - d d^T) p. Places are taken relative to the first
 * camera's, whose coordinates may be large. */
bool kiln_camera_path_focus(kiln_poses poses, double point[3])
{
    double a[9] = {0}, b[3] = {0}, first[3] = {0}, x[3];
    uint32_t in_front = 0;
    const uint32_t n = poses.n;
    if (n > 0) kiln_pose_centre(poses.first, poses.first + 9, first);
    for (uint32_t c = 0; c < n; c++) {
        const double *r = pose_at(poses, c), *d = r + 6;
        double p[3];
        kiln_pose_centre(r, r + 9, p);
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < 3; k++) {
                const double m = (i == k) - d[i] * d[k];
                a[3 * i + k] += m;
                b[i] += m * (p[k] - first[k]);
            }
    }
    if (n < 2 || !solve(a, b, n, x)) return false;
    for (int i = 0; i < 3; i++) point[i] = x[i] + first[i];
    for (uint32_t c = 0; c < n; c++) {
        const double *r = pose_at(poses, c);
        double p[3];
        kiln_pose_centre(r, r + 9, p);
        for (int i = 0; i < 3; i++) p[i] = point[i] - p[i];
        in_front += kiln_vec3_dot(r + 6, p) > 0;
    }
    return 2 * (uint64_t)in_front > n && isfinite(point[0]) && isfinite(point[1]) &&
           isfinite(point[2]);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, uint32_t n)
{
    qsort(values, n, sizeof *values, by_size);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

kiln_status kiln_camera_path_around(const kiln_camera *cameras, uint32_t n, kiln_orbit_shape *shape,
                                    bool *found, kiln_error *err)
{
    double *values, *heights, side[3] = {0};
    *found = false;
    if (n == 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&values, 2 * (uint64_t)n, "places of cameras", err));
    heights = values + n;
    for (uint32_t i = 0; i < n; i++) {
        double p[3];
        kiln_pose_centre(cameras[i].r, cameras[i].t, p);
        for (int k = 0; k < 3; k++) p[k] -= shape->centre[k];
        heights[i] = kiln_vec3_dot(p, shape->up);
        for (int k = 0; k < 3; k++) p[k] -= heights[i] * shape->up[k];
        values[i] = kiln_vec3_length(p);
        if (i == 0) memcpy(side, p, sizeof side);
    }
    const double radius = median(values, n), height = median(heights, n);
    free(values);
    *found = radius > 1e-3 * fabs(height) && radius > 0 && isfinite(radius) && isfinite(height);
    if (!*found) return KILN_OK;
    shape->radius = radius;
    shape->height = height;
    memcpy(shape->start, side, sizeof side);
    return KILN_OK;
}

/* 20 degrees above the middle, as import's cameras of a scene without any */
#define COS_ELEVATION 0.93969262078590838
#define SIN_ELEVATION 0.34202014332566873

void kiln_camera_path_contain(const kiln_camera *lens, double sphere, kiln_orbit_shape *shape)
{
    const double x = lens->width / (2 * lens->fx), y = lens->height / (2 * lens->fy),
                 tangent = x < y ? x : y;
    /* the sphere touches the edge: sphere / sine */
    const double far_away = sphere * sqrt(1 + tangent * tangent) / tangent;
    shape->radius = COS_ELEVATION * far_away;
    shape->height = SIN_ELEVATION * far_away;
}

/* Two directions that span the plane of the circle: e0 to the start, e1 a quarter turn behind
 * it. */
static void plane_of(const kiln_orbit_shape *s, double e0[3], double e1[3])
{
    const double along = kiln_vec3_dot(s->start, s->up);
    int least = 0;
    for (int i = 0; i < 3; i++) e0[i] = s->start[i] - along * s->up[i];
    if (!(kiln_vec3_length(e0) > 1e-9 * kiln_vec3_length(s->start)) || !kiln_vec3_normalise(e0)) {
        for (int i = 1; i < 3; i++)
            if (fabs(s->up[i]) < fabs(s->up[least])) least = i;
        const double axis[3] = {least == 0, least == 1, least == 2};
        kiln_vec3_cross(s->up, axis, e0);
        (void)kiln_vec3_normalise(e0); /* up is at least 54 degrees from that axis */
    }
    kiln_vec3_cross(s->up, e0, e1);
}

void kiln_camera_path_orbit(const kiln_orbit_shape *shape, const kiln_camera *lens, uint32_t i,
                            uint32_t n, kiln_camera *out)
{
    double e0[3], e1[3], eye[3], sine, cosine, *right = out->r, *down = out->r + 3,
                                               *forward = out->r + 6;
    plane_of(shape, e0, e1);
    kiln_sincos_degrees(360.0 * i / n, &sine, &cosine);
    *out = (kiln_camera){.width = lens->width,
                         .height = lens->height,
                         .fx = lens->fx,
                         .fy = lens->fy,
                         .cx = lens->width / 2.0,
                         .cy = lens->height / 2.0};
    make_pinhole(out);
    for (int k = 0; k < 3; k++) {
        const double out_there = cosine * e0[k] + sine * e1[k];
        eye[k] = shape->centre[k] + shape->radius * out_there + shape->height * shape->up[k];
        forward[k] = -(shape->radius * out_there + shape->height * shape->up[k]);
        /* looking inwards, the way of the circle is to the right */
        right[k] = cosine * e1[k] - sine * e0[k];
    }
    (void)kiln_vec3_normalise(forward); /* at least as long as the radius */
    (void)kiln_vec3_normalise(right);
    kiln_vec3_cross(forward, right, down);
    kiln_pose_translation(out->r, eye, out->t);
}

void kiln_camera_path_look_at(const double point[3], const double up[3], kiln_camera *c)
{
    const double least_sine = 1e-6; /* of the angle between `up` and what it looks along */
    double eye[3], right[3], down[3], forward[3], own[3];
    kiln_pose_centre(c->r, c->t, eye);
    for (int k = 0; k < 3; k++) {
        forward[k] = point[k] - eye[k];
        own[k] = -c->r[3 + k];
    }
    if (!kiln_vec3_normalise(forward)) return;
    kiln_vec3_cross(forward, up, right);
    if (!(kiln_vec3_length(right) > least_sine)) kiln_vec3_cross(forward, own, right);
    if (!kiln_vec3_normalise(right)) return;
    kiln_vec3_cross(forward, right, down);
    memcpy(c->r, right, sizeof right);
    memcpy(c->r + 3, down, sizeof down);
    memcpy(c->r + 6, forward, sizeof forward);
    kiln_pose_translation(c->r, eye, c->t);
}

void kiln_camera_path_lens(kiln_camera *out)
{
    const uint32_t width = 1280, height = 720;
    const double focal = height / 2.0 / 0.46630765815499859; /* tan 25 degrees */
    *out = (kiln_camera){.width = width,
                         .height = height,
                         .fx = focal,
                         .fy = focal,
                         .cx = width / 2.0,
                         .cy = height / 2.0};
    make_pinhole(out);
}

/* ---- between cameras ------------------------------------------------------------------------- */
static void middle(const double a[4], const double b[4], double out[4])
{
    double sum[4], norm = 0;
    for (int i = 0; i < 4; i++) {
        sum[i] = a[i] + b[i];
        norm += sum[i] * sum[i];
    }
    /* at least the root of 2: a and b are at most a quarter turn of the sphere apart */
    norm = sqrt(norm);
    for (int i = 0; i < 4; i++) out[i] = sum[i] / norm;
}

void kiln_slerp(const double a[4], const double b[4], double share, double out[4])
{
    enum { BITS = 53 };
    double low[4], high[4], mid[4];
    /* q and -q are one rotation */
    const double sign = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] < 0 ? -1 : 1;
    for (int i = 0; i < 4; i++) {
        low[i] = a[i];
        high[i] = sign * b[i];
    }
    for (int bit = 0; bit < BITS && share > 0 && share < 1; bit++) {
        middle(low, high, mid);
        share *= 2;
        if (share < 1) {
            memcpy(high, mid, sizeof mid);
        } else {
            memcpy(low, mid, sizeof mid);
            share -= 1;
        }
    }
    memcpy(out, share < 1 ? low : high, sizeof low);
}

static void blend_vectors(const double a[3], double t_a, const double b[3], double t_b, double t,
                          double out[3])
{
    for (int i = 0; i < 3; i++)
        out[i] = t_b > t_a ? ((t_b - t) * a[i] + (t - t_a) * b[i]) / (t_b - t_a) : b[i];
}

/* The pyramid: three straight lines, two parabolas, one cubic. */
void kiln_catmull_rom(const double p[4][3], double share, double out[3])
{
    double knots[4] = {0}, a[3][3], b[2][3];
    for (int i = 1; i < 4; i++) /* centripetal: the root of the length */
        knots[i] = knots[i - 1] + sqrt(kiln_vec3_distance(p[i - 1], p[i]));
    if (!(knots[2] > knots[1]) || share <= 0 || share >= 1) {
        memcpy(out, share >= 1 ? p[2] : p[1], 3 * sizeof *out);
        return;
    }
    const double t = knots[1] + share * (knots[2] - knots[1]);
    for (int i = 0; i < 3; i++) blend_vectors(p[i], knots[i], p[i + 1], knots[i + 1], t, a[i]);
    for (int i = 0; i < 2; i++) blend_vectors(a[i], knots[i], a[i + 1], knots[i + 2], t, b[i]);
    blend_vectors(b[0], knots[1], b[1], knots[2], t, out);
}

/* What the path is made of: one of these for each camera that it goes through. */
typedef struct {
    double centre[3], quat[4], lens[4]; /* fx, fy, cx, cy in a picture of the first camera's size */
} stop;

/* straight pieces of a segment by which it is measured: of a quarter circle 1e-5 of its length are
 * lost */
enum { STEPS = 128 };

typedef struct {
    const kiln_camera *cameras;
    stop *stops;
    double *lengths; /* [(n - 1) * STEPS + 1] of the path up to there, as steps count it */
    uint32_t n;
    bool closed;
} track;

static void set_stops(track *t)
{
    const kiln_camera *first = &t->cameras[0];
    for (uint32_t i = 0; i < t->n; i++) {
        stop *s = &t->stops[i];
        kiln_camera c = t->cameras[i];
        if (c.width != first->width || c.height != first->height)
            kiln_camera_fit(&c, first->width, first->height);
        kiln_pose_centre(c.r, c.t, s->centre);
        kiln_quat_of_rotation(c.r, s->quat);
        memcpy(s->lens, (const double[4]){c.fx, c.fy, c.cx, c.cy}, sizeof s->lens);
    }
    t->closed = t->n > 2 && kiln_vec3_distance(t->stops[0].centre, t->stops[t->n - 1].centre) == 0;
}

/* Beyond an end the curve goes on as it came: by the place that mirrors the one before. */
static void neighbour(const track *t, uint32_t end, uint32_t inner, uint32_t around, double out[3])
{
    const double *e = t->stops[end].centre, *i = t->stops[inner].centre;
    for (int k = 0; k < 3; k++) out[k] = t->closed ? t->stops[around].centre[k] : 2 * e[k] - i[k];
}

static void place_at(const track *t, uint32_t segment, double share, double out[3])
{
    double p[4][3];
    for (uint32_t i = 0; i < 4; i++)
        if (segment + i > 0 && segment + i <= t->n)
            memcpy(p[i], t->stops[segment + i - 1].centre, sizeof p[i]);
    if (segment == 0) neighbour(t, 0, 1, t->n - 2, p[0]);
    if (segment + 2 == t->n) neighbour(t, t->n - 1, t->n - 2, 1, p[3]);
    kiln_catmull_rom(p, share, out);
}

static double length_of(const track *t, uint32_t segment, double *lengths)
{
    double before[3], here[3], sum = 0;
    memcpy(before, t->stops[segment].centre, sizeof before);
    for (uint32_t k = 1; k <= STEPS; k++) {
        place_at(t, segment, (double)k / STEPS, here);
        sum += kiln_vec3_distance(before, here);
        lengths[k] = sum;
        memcpy(before, here, sizeof before);
    }
    return sum;
}

/* The length of a segment, of constant steps, or else that of its parameter, of which the length is
 * the square. */
static double measure_segment(const track *t, uint32_t segment, bool constant_speed,
                              double *lengths)
{
    if (constant_speed) return length_of(t, segment, lengths);
    const double length =
        sqrt(kiln_vec3_distance(t->stops[segment].centre, t->stops[segment + 1].centre));
    for (uint32_t k = 1; k <= STEPS; k++) lengths[k] = length * k / STEPS;
    return length;
}

/* Segments without length get that of the mean of the others; if there is no other, all take the
 * same time. */
static void measure_track(track *t, bool constant_speed)
{
    double sum = 0, before = 0;
    uint32_t moving = 0;
    for (uint32_t s = 0; s + 1 < t->n; s++) {
        const double length = measure_segment(t, s, constant_speed, t->lengths + (size_t)s * STEPS);
        sum += length;
        moving += length > 0;
    }
    const double still = moving > 0 ? sum / moving : 1;
    t->lengths[0] = 0;
    for (uint32_t s = 0; s + 1 < t->n; s++) {
        double *l = t->lengths + (size_t)s * STEPS;
        const bool moves = l[STEPS] > 0;
        for (uint32_t k = 1; k <= STEPS; k++) l[k] = before + (moves ? l[k] : still * k / STEPS);
        before = l[STEPS];
    }
}

/* Where step i of n is. The first and the last are cameras: they have the shares 0 and 1. */
static void find_step(const track *t, uint32_t i, uint32_t n, uint32_t *segment, double *share)
{
    size_t low = 0, high = (size_t)(t->n - 1) * STEPS;
    *segment = i == 0 ? 0 : t->n - 2;
    *share = i == 0 ? 0 : 1;
    if (i == 0 || i + 1 == n) return;
    const double wanted = t->lengths[high] * i / (n - 1);
    while (high > low + 1) {
        const size_t mid = low + (high - low) / 2;
        *(t->lengths[mid] <= wanted ? &low : &high) = mid;
    }
    const double l = t->lengths[low], h = t->lengths[high];
    *segment = (uint32_t)(low / STEPS);
    *share = ((double)(low % STEPS) + (h > l ? (wanted - l) / (h - l) : 0)) / STEPS;
}

static void set_rotation(kiln_camera *c, const double q[4])
{
    const double w = q[0], x = q[1], y = q[2], z = q[3];
    const double r[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
                         2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                         2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
    memcpy(c->r, r, sizeof r);
}

static void make_step(const track *t, uint32_t i, uint32_t n, kiln_camera *out)
{
    uint32_t segment;
    double share, place[3], quat[4], lens[4];
    find_step(t, i, n, &segment, &share);
    const stop *a = &t->stops[segment], *b = a + 1;
    for (int k = 0; k < 4; k++)
        lens[k] = share >= 1 ? b->lens[k] : a->lens[k] + share * (b->lens[k] - a->lens[k]);
    *out = (kiln_camera){.width = t->cameras[0].width,
                         .height = t->cameras[0].height,
                         .fx = lens[0],
                         .fy = lens[1],
                         .cx = lens[2],
                         .cy = lens[3]};
    make_pinhole(out);
    if (share <= 0 || share >= 1) {
        const kiln_camera *c = &t->cameras[share >= 1 ? segment + 1 : segment];
        memcpy(out->r, c->r, sizeof out->r);
        memcpy(out->t, c->t, sizeof out->t);
        return;
    }
    place_at(t, segment, share, place);
    kiln_slerp(a->quat, b->quat, share, quat);
    set_rotation(out, quat);
    kiln_pose_translation(out->r, place, out->t);
}

kiln_status kiln_camera_path_between(const kiln_camera *through, uint32_t n_through,
                                     bool constant_speed, uint32_t n, kiln_camera *out,
                                     kiln_error *err)
{
    kiln_status st = KILN_OK;
    track t = {.cameras = through, .n = n_through};
    KILN_GO(KILN_ALLOC(&t.stops, n_through, "cameras of a path", err));
    KILN_GO(
        KILN_ALLOC(&t.lengths, (uint64_t)(n_through - 1) * STEPS + 1, "the length of a path", err));
    set_stops(&t);
    measure_track(&t, constant_speed);
    for (uint32_t i = 0; i < n; i++) make_step(&t, i, n, &out[i]);
done:
    free(t.lengths);
    free(t.stops);
    return st;
}
