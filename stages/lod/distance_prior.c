/* distance_prior -- see distance_prior.h. Only + - * / and square roots of doubles: the same on
 * every machine. */
#include "stages/lod/distance_prior.h"

#include "base/memory.h"
#include "base/minmax.h"
#include "base/vec3.h"
#include "schema/layers.h"
#include "stages/cameras/orbit.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_ROWS = 64,
    SAMPLED = 1 << 16,
    FAR = 16 /* an object's orbit is 4 to 8 central radii away, that of a capture 50 and more */
};

/* The longest axes of the farthest tenth of the rows by those of the nearest quarter, medians:
 * objects have 0.6 to 1.3, captures and parts of them 2.8 to 10. */
static const double coarser = 0.69314718; /* ln 2 */

typedef struct {
    double away, size; /* from the middle; the largest log scale */
} placed;

typedef struct {
    uint64_t n;
    double *at[3]; /* [n] */
    double *size;  /* [n] the largest log scale; 0 where rows have none, as points */
    double *away;  /* [n] scratch, then distances */
} sample;

static void sample_release(sample *s)
{
    for (int a = 0; a < 3; a++) free(s->at[a]);
    free(s->size);
    free(s->away);
}

/* Every stride-th row of the layer, counted through all chunks. */
static kiln_status take_chunk(kiln_manifest *m, const kiln_chunk *c, uint64_t before,
                              uint64_t stride, sample *s, kiln_error *err)
{
    float *means = NULL, *log_scales = NULL;
    kiln_status st;
    const uint64_t first = (stride - before % stride) % stride;
    if (first >= c->count) return KILN_OK;
    KILN_GO(KILN_ALLOC_UNSET(&means, 3 * c->count, "the means of a chunk", err));
    KILN_GO(KILN_ALLOC(&log_scales, 3 * c->count, "the scales of a chunk", err));
    KILN_GO(kiln_plane_read(m, c, "means", means, 3 * c->count * sizeof *means, err));
    if (kiln_chunk_plane(c, "log_scales"))
        KILN_GO(kiln_plane_read(m, c, "log_scales", log_scales, 3 * c->count * sizeof *log_scales,
                                err));
    for (uint64_t i = first; i < c->count; i += stride, s->n++) {
        for (uint64_t a = 0; a < 3; a++) s->at[a][s->n] = (double)means[a * c->count + i];
        s->size[s->n] = (double)fmaxf(
            log_scales[i], fmaxf(log_scales[c->count + i], log_scales[2 * c->count + i]));
    }
done:
    free(means);
    free(log_scales);
    return st;
}

uint64_t kiln_scene_core_stride(uint64_t count) { return count / SAMPLED + 1; }

static kiln_status make_room(sample *s, uint64_t n, kiln_error *err)
{
    for (int a = 0; a < 3; a++)
        KILN_TRY(KILN_ALLOC_UNSET(&s->at[a], n, "a sample of the scene", err));
    KILN_TRY(KILN_ALLOC_UNSET(&s->size, n, "a sample of the scene", err));
    return KILN_ALLOC_UNSET(&s->away, n, "a sample of the scene", err);
}

static kiln_status take_sample(kiln_manifest *m, const kiln_layer *baked, sample *s,
                               kiln_error *err)
{
    const uint64_t stride = kiln_scene_core_stride(baked->count);
    uint64_t before = 0;
    KILN_TRY(make_room(s, baked->count / stride + 1, err));
    for (uint32_t i = 0; i < baked->n_chunks; i++) {
        KILN_TRY(take_chunk(m, &baked->chunks[i], before, stride, s, err));
        before += baked->chunks[i].count;
    }
    return KILN_OK;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *v, uint64_t n)
{
    qsort(v, n, sizeof *v, ascending);
    return v[n / 2];
}

static void measure_away(sample *s, const double middle[3])
{
    for (uint64_t i = 0; i < s->n; i++) {
        const double d[3] = {s->at[0][i] - middle[0], s->at[1][i] - middle[1],
                             s->at[2][i] - middle[2]};
        s->away[i] = kiln_vec3_length(d);
    }
}

/* Rounded to one of two steps for each power of two, and the middle to an eighth of that. */
static void measure_middle(sample *s, kiln_scene_core *out)
{
    double middle[3];
    int power;
    const uint64_t skip = s->n / 1000;
    for (int a = 0; a < 3; a++) {
        for (uint64_t i = 0; i < s->n; i++) s->away[i] = s->at[a][i];
        middle[a] = median_of(s->away, s->n);
        out->lo[a] = s->away[skip];
        out->hi[a] = s->away[s->n - 1 - skip];
    }
    measure_away(s, middle);
    const double part = frexp(median_of(s->away, s->n), &power);
    out->radius = part > 0 ? ldexp(part < 0.75 ? 0.625 : 0.875, power) : 0;
    for (int a = 0; a < 3; a++)
        out->middle[a] =
            part > 0 ? floor(8 * middle[a] / out->radius + 0.5) * out->radius / 8 : middle[a];
}

static int by_away(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    const int order = (x->away > y->away) - (x->away < y->away);
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

/* Whether rows are coarser the farther out they stand, as training makes them of what cameras in
 * the middle see. */
static kiln_status is_coarser_outside(sample *s, const double middle[3], bool *yes, kiln_error *err)
{
    placed *rows;
    KILN_TRY(KILN_ALLOC_UNSET(&rows, s->n, "a sample of the scene", err));
    measure_away(s, middle);
    for (uint64_t i = 0; i < s->n; i++) rows[i] = (placed){s->away[i], s->size[i]};
    qsort(rows, s->n, sizeof *rows, by_away);
    for (uint64_t i = 0; i < s->n; i++) s->away[i] = rows[i].size;
    const uint64_t inner = s->n / 4 + 1 < s->n ? s->n / 4 + 1 : s->n, outer = s->n / 10 + 1;
    const double near = median_of(s->away, inner), far = median_of(s->away + s->n - outer, outer);
    *yes = s->n >= LEAST_ROWS && far - near >= coarser;
    free(rows);
    return KILN_OK;
}

/* How far the nearest camera is from the middle. */
static double orbit_away(const double origin[3], const kiln_camera *cameras, uint32_t n,
                         const double middle[3])
{
    double least = DBL_MAX, at[3];
    for (uint32_t i = 0; i < n; i++) {
        kiln_pose_centre(cameras[i].r, cameras[i].t, at);
        for (int a = 0; a < 3; a++) at[a] -= origin[a] + middle[a];
        least = fmin(least, kiln_vec3_length(at));
    }
    return least;
}

static kiln_status measure_core(sample *s, kiln_scene_core *out, kiln_error *err)
{
    if (s->n == 0) return KILN_OK;
    measure_middle(s, out);
    return is_coarser_outside(s, out->middle, &out->coarser_outside, err);
}

kiln_status kiln_scene_core_find(kiln_manifest *m, const kiln_layer *layer, kiln_scene_core *out,
                                 kiln_error *err)
{
    sample s = {.n = 0};
    *out = (kiln_scene_core){.radius = 0};
    if (layer->count == 0) return KILN_OK;
    kiln_status st = take_sample(m, layer, &s, err);
    if (st == KILN_OK) st = measure_core(&s, out, err);
    sample_release(&s);
    return st;
}

kiln_status kiln_scene_core_of(const float *rows, uint64_t n, kiln_scene_core *out, kiln_error *err)
{
    sample s = {.n = 0};
    *out = (kiln_scene_core){.radius = 0};
    if (n == 0) return KILN_OK;
    kiln_status st = make_room(&s, n, err);
    for (; st == KILN_OK && s.n < n; s.n++) {
        for (uint64_t a = 0; a < 3; a++) s.at[a][s.n] = (double)rows[4 * s.n + a];
        s.size[s.n] = (double)rows[4 * s.n + 3];
    }
    if (st == KILN_OK) st = measure_core(&s, out, err);
    sample_release(&s);
    return st;
}

bool kiln_scene_core_is_hidden(const kiln_scene_core *c, const double origin[3],
                               const kiln_camera *cameras, uint32_t n)
{
    return c->radius > 0 &&
           (c->coarser_outside || orbit_away(origin, cameras, n, c->middle) >= FAR * c->radius);
}

kiln_status kiln_distance_prior_find(kiln_manifest *m, const kiln_scene *scene,
                                     const kiln_layer *baked, const kiln_camera *cameras,
                                     uint32_t n_cameras, kiln_distance_prior *out, kiln_error *err)
{
    kiln_scene_core core;
    *out = (kiln_distance_prior){.radius = 0};
    if (n_cameras == 0 || baked->count == 0) return KILN_OK;
    for (uint32_t i = 0; i < n_cameras; i++)
        if (!cameras[i].synthetic) return KILN_OK;
    KILN_TRY(kiln_scene_core_find(m, baked, &core, err));
    if (!kiln_orbit_is_inner(&cameras[0]) &&
        !kiln_scene_core_is_hidden(&core, scene->origin, cameras, n_cameras))
        return KILN_OK;
    memcpy(out->middle, core.middle, sizeof out->middle);
    out->radius = core.radius;
    return KILN_OK;
}

float kiln_distance_prior_of(const kiln_distance_prior *p, const double mean[3], double weight)
{
    double away = 0;
    for (int a = 0; a < 3; a++) away += (mean[a] - p->middle[a]) * (mean[a] - p->middle[a]);
    const double within = p->radius * p->radius,
                 root = sqrt(weight / (away > within ? away : within));
    return (float)kiln_clamp_f64(root * sqrt(root), 1e-30, 1e30);
}

void kiln_distance_prior_fill(const kiln_distance_prior *p, const kiln_coarsen_rows *rows)
{
    for (uint64_t i = 0; i < rows->n; i++) {
        const double mean[3] = {(double)rows->means[i], (double)rows->means[rows->n + i],
                                (double)rows->means[2 * rows->n + i]};
        rows->prominence[i] = kiln_distance_prior_of(p, mean, (double)rows->weights[i]);
    }
}
