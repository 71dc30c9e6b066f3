/* level_sites -- see level_sites.h. */
#include "schema/level_sites.h"

#include "base/memory.h"
#include "base/vec3.h"
#include "schema/layers.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double weight_of(const float *weights, const float *visibility, uint64_t row)
{
    const double w =
        (weights ? (double)weights[row] : 1) * (visibility ? (double)visibility[row] : 1);
    return w > (double)FLT_MIN ? w : (double)FLT_MIN; /* a stranger's weights may all be 0 */
}

/* Of rows [begin, end): the sum of weight times distance from a place. */
static double sum_weighted_distances(const float *means, const float *weights,
                                     const float *visibility, uint64_t n, uint64_t begin,
                                     uint64_t end, const float at[3])
{
    double sum = 0;
    for (uint64_t i = begin; i < end; i++) {
        double square = 0;
        for (uint64_t a = 0; a < 3; a++) {
            const double d = (double)means[a * n + i] - (double)at[a];
            square += d * d;
        }
        sum += weight_of(weights, visibility, i) * sqrt(square);
    }
    return sum;
}

void kiln_level_sites_make(const float *means, const float *weights, const float *visibility,
                           uint64_t n, uint64_t first, uint64_t count, kiln_level_sites *out)
{
    double all = 0;
    out->n = (uint32_t)(count < KILN_LEVEL_SITES ? count : KILN_LEVEL_SITES);
    for (uint64_t i = first; i < first + count; i++) all += weight_of(weights, visibility, i);
    for (uint32_t s = 0; s < out->n; s++) {
        const uint64_t begin = first + count * s / out->n, end = first + count * (s + 1) / out->n;
        double run = 0, before = 0, surface = 0;
        uint64_t middle = begin;
        for (uint64_t i = begin; i < end; i++) {
            run += weight_of(weights, visibility, i);
            surface += weights ? (double)weights[i] : 0;
        }
        for (uint64_t i = begin; i < end && before <= 0.5 * run; i++) {
            before += weight_of(weights, visibility, i);
            middle = i;
        }
        for (uint64_t a = 0; a < 3; a++) out->site[s].at[a] = means[a * n + middle];
        out->site[s].share = (float)(run / all);
        out->site[s].least = (float)sqrt(surface / 12.566370614359172);
        out->site[s].reach = (float)(sum_weighted_distances(means, weights, visibility, n, begin,
                                                            end, out->site[s].at) /
                                     run);
    }
}

double kiln_level_sites_distance(const kiln_level_sites *s, const double eye[3], double near_m)
{
    double sum = 0, shares = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const double least = (double)s->site[i].least > near_m ? (double)s->site[i].least : near_m;
        double away = 0;
        for (int a = 0; a < 3; a++) {
            const double d = (double)s->site[i].at[a] - eye[a];
            away += d * d;
        }
        sum += (double)s->site[i].share / (away > least * least ? away : least * least);
        shares += (double)s->site[i].share;
    }
    const double distance = sqrt(shares / sum);
    return distance > near_m ? distance : near_m; /* sums of rounded shares */
}

/* How much of a ball around a place in the camera's axes is in its picture: as the nearest edge
 * divides its diameter. */
static double part_within(const kiln_level_eye *e, const double at[3], double radius)
{
    const double beyond[4] = {at[0] - e->left * at[2], e->right * at[2] - at[0],
                              at[1] - e->top * at[2], e->bottom * at[2] - at[1]};
    const double slant[4] = {e->left, e->right, e->top, e->bottom};
    double part[4];
    for (int i = 0; i < 4; i++) {
        const double within = 0.5 + 0.5 * beyond[i] / sqrt(1 + slant[i] * slant[i]) / radius;
        part[i] = within < 0 ? 0 : within > 1 ? 1 : within;
    }
    return (part[0] < part[1] ? part[0] : part[1]) * (part[2] < part[3] ? part[2] : part[3]);
}

/* Sums of what a camera sees of places. */
typedef struct {
    /* of 1 / distance^2, where they are in the picture; of shares there; of all */
    double pixels, within, shares;
} sight_sum;

static void add_place(const kiln_level_eye *eye, const float place[3], double share, double ball,
                      double reach, sight_sum *sum)
{
    const double least = ball > eye->near_m ? ball : eye->near_m;
    double off[3], at[3], away = 0;
    for (int a = 0; a < 3; a++) {
        off[a] = (double)place[a] - eye->at[a];
        away += off[a] * off[a];
    }
    for (int a = 0; a < 3; a++)
        at[a] = eye->axes[3 * a] * off[0] + eye->axes[3 * a + 1] * off[1] +
                eye->axes[3 * a + 2] * off[2];
    const double part = share * part_within(eye, at, reach > least ? reach : least);
    sum->pixels += part / (away > least * least ? away : least * least);
    sum->within += part;
    sum->shares += share;
}

static kiln_level_sight sight_of(const sight_sum *sum, const kiln_level_eye *eye)
{
    const double distance = sqrt(sum->within / sum->pixels), share = sum->within / sum->shares;
    return (kiln_level_sight){distance > eye->near_m ? distance : eye->near_m,
                              share > KILN_LEVEL_SHARE_LEAST ? share : KILN_LEVEL_SHARE_LEAST};
}

kiln_level_sight kiln_level_sites_seen(const kiln_level_sites *s, const kiln_level_eye *eye)
{
    sight_sum sum = {0};
    for (uint32_t i = 0; i < s->n; i++)
        add_place(eye, s->site[i].at, (double)s->site[i].share, (double)s->site[i].least,
                  (double)s->site[i].reach, &sum);
    if (sum.within > 0 && sum.pixels > 0) return sight_of(&sum, eye);
    return (kiln_level_sight){kiln_level_sites_distance(s, eye->at, eye->near_m),
                              KILN_LEVEL_SHARE_UNKNOWN};
}

bool kiln_level_rows_seen(const float *means, const float *weights, const float *visibility,
                          uint64_t n, const kiln_level_eye *eye, kiln_level_sight *out)
{
    sight_sum sum = {0};
    for (uint64_t i = 0; i < n; i++) {
        const float at[3] = {means[i], means[n + i], means[2 * n + i]};
        const double ball = weights ? sqrt((double)weights[i] / 12.566370614359172) : 0;
        add_place(eye, at, weight_of(weights, visibility, i), ball, 0, &sum);
    }
    if (!(sum.within > 0 && sum.pixels > 0)) return false;
    *out = sight_of(&sum, eye);
    return true;
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

kiln_status kiln_level_sites_core(const float *means, uint64_t n, kiln_level_sites *out,
                                  kiln_error *err)
{
    float *at;
    const uint64_t left_out = n / 16;
    if (n == 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC_UNSET(&at, n, "the places of a node", err));
    for (uint64_t a = 0; a < 3; a++) {
        memcpy(at, means + a * n, n * sizeof *at);
        qsort(at, n, sizeof *at, ascending);
        out->core_min[a] = at[left_out];
        out->core_max[a] = at[n - 1 - left_out];
    }
    free(at);
    return KILN_OK;
}

static kiln_status read_node(kiln_manifest *m, const kiln_chunk *c, kiln_level_sites *out,
                             kiln_error *err)
{
    float *rows;
    const bool seen = kiln_chunk_plane(c, "visibility") != NULL;
    KILN_TRY(
        kiln_alloc_unset((void **)&rows, c->count, 5 * sizeof *rows, "the places of a node", err));
    float *const weights = rows + 3 * c->count, *const visibility = rows + 4 * c->count;
    kiln_status st = kiln_plane_read(m, c, "means", rows, 3 * c->count * sizeof *rows, err);
    if (st == KILN_OK) st = kiln_plane_read(m, c, "weights", weights, c->count * sizeof *rows, err);
    if (st == KILN_OK && seen)
        st = kiln_plane_read(m, c, "visibility", visibility, c->count * sizeof *rows, err);
    if (st == KILN_OK)
        kiln_level_sites_make(rows, weights, seen ? visibility : NULL, c->count, 0, c->count, out);
    if (st == KILN_OK) st = kiln_level_sites_core(rows, c->count, out, err);
    free(rows);
    return st;
}

bool kiln_level_sites_around(const kiln_level_sites *s, const double (*eyes)[3], uint32_t n_eyes)
{
    double middle[3], radius2 = 0;
    for (int a = 0; a < 3; a++) {
        double lo = (double)s->site[0].at[a], hi = lo;
        for (uint32_t i = 1; i < s->n; i++) {
            const double at = (double)s->site[i].at[a];
            lo = at < lo ? at : lo;
            hi = at > hi ? at : hi;
        }
        middle[a] = 0.5 * (lo + hi);
        radius2 += 0.25 * (hi - lo) * (hi - lo);
    }
    for (uint32_t i = 0; i < n_eyes; i++)
        if (kiln_vec3_distance_squared(eyes[i], middle) < radius2) return true;
    return false;
}

static double square_gap(const kiln_level_tree *t, uint32_t of)
{
    double least = -1;
    for (uint32_t i = 0; i < t->n_eyes; i++) {
        const double square = i == of ? 0 : kiln_vec3_distance_squared(t->eyes[i], t->eyes[of]);
        if (i != of && (least < 0 || square < least)) least = square;
    }
    return least < 0 ? 0 : least;
}

void kiln_level_tree_measure_eyes(kiln_level_tree *t)
{
    const uint32_t gaps = t->n_eyes < KILN_LEVEL_GAPS ? t->n_eyes : KILN_LEVEL_GAPS;
    double middle[3] = {0}, spread = 0, gap = 0;
    for (uint32_t i = 0; i < t->n_eyes; i++)
        for (int a = 0; a < 3; a++) middle[a] += t->eyes[i][a] / t->n_eyes;
    for (uint32_t i = 0; i < t->n_eyes; i++)
        spread += kiln_vec3_distance_squared(t->eyes[i], middle) / t->n_eyes;
    for (uint32_t i = 0; i < gaps; i++)
        gap += square_gap(t, (uint32_t)((uint64_t)i * t->n_eyes / gaps)) / gaps;
    t->spread = sqrt(spread);
    t->gap = sqrt(gap);
}

/* Cameras are counted first, then those that measure are placed. */
typedef struct {
    uint32_t n, train, most;
    double origin[3], (*eyes)[3]; /* NULL: they are counted */
} eye_list;

static kiln_status take_eye(void *context, const kiln_camera *c, kiln_error *err)
{
    eye_list *l = context;
    const bool train = strcmp(c->split, "train") == 0;
    (void)err;
    if (!l->eyes) {
        l->n++;
        l->train += train;
    } else if ((train || l->train == 0) && l->n < l->most) {
        double *const eye = l->eyes[l->n++];
        kiln_pose_centre(c->r, c->t, eye);
        for (int a = 0; a < 3; a++) eye[a] -= l->origin[a];
    }
    return KILN_OK;
}

static kiln_status read_eyes(kiln_manifest *m, kiln_level_tree *t, kiln_error *err)
{
    kiln_scene scene;
    eye_list list = {0};
    KILN_TRY(kiln_scene_get(m, &scene, err));
    memcpy(list.origin, scene.origin, sizeof list.origin);
    KILN_TRY(kiln_cameras_each(m, take_eye, &list, err));
    list.most = list.train > 0 ? list.train : list.n;
    if (list.most == 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&t->eyes, list.most, "the places of cameras", err));
    list.eyes = t->eyes;
    list.n = 0;
    KILN_TRY(kiln_cameras_each(m, take_eye, &list, err));
    t->n_eyes = list.n;
    kiln_level_tree_measure_eyes(t);
    return KILN_OK;
}

static void forget_sites(kiln_level_tree *t)
{
    for (uint32_t i = 0; i < t->n_nodes; i++) t->nodes[i].sites = NULL;
    free(t->sites);
    free(t->eyes);
    t->sites = NULL;
    t->eyes = NULL;
    t->n_eyes = 0;
}

static kiln_status read_sites(kiln_manifest *m, kiln_level_tree *t, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&t->sites, t->n_nodes, "the places of nodes", err));
    KILN_TRY(read_eyes(m, t, err));
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        kiln_level_node *n = &t->nodes[i];
        if (n->n_levels == 0) continue;
        KILN_TRY(read_node(m, n->levels[n->n_levels - 1], &t->sites[i], err));
        if (t->sites[i].n == 0) continue;
        n->sites = &t->sites[i];
        n->among = kiln_level_sites_around(n->sites, (const double(*)[3])t->eyes, t->n_eyes);
    }
    return KILN_OK;
}

kiln_status kiln_level_tree_read_sites(kiln_manifest *m, kiln_level_tree *t, kiln_error *err)
{
    const kiln_status st = read_sites(m, t, err);
    if (st != KILN_OK) forget_sites(t);
    return st;
}
