/* errors -- the worker's part of errors.h: draws a node's levels and sums how they differ. */
#include "stages/lod/errors.h"

#include "base/memory.h"
#include "base/minmax.h"
#include "base/vec3.h"
#include "kernels/draw/draw.h"
#include "kernels/math/real.h"
#include "kernels/project/sh_math.h"
#include "stages/frame/level_cost.h"
#include "stages/lod/error_windows.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIGMAS 2.5f    /* how far the window holds a Gaussian */
#define FARTHEST 1e30f /* scene units: where a window ends at the latest */
/* radii of a node, nearer than which a camera is taken as it is */
#define NEAR 2.0
/* visibility below which a row counts less to a camera among the rows */
#define HIDDEN 0.1f
#define MOST_DIFFERENCE 1e4       /* of a colour */
#define MOST_ERROR 3.40282347e38f /* the largest float32 */

enum {
    LEFT_OUT = 200, /* one row in so many may reach out of the window in a direction */
    SIDE = KILN_LOD_WINDOW + 2 * KILN_LOD_BORDER,
    PICTURE = 4 * SIDE * SIDE,                    /* floats */
    WIDEST = KILN_LOD_CELLS * KILN_LOD_CELL_MOST, /* pixels of a picture that is drawn in parts */
    /* of a first step, either way: what the manifest takes */
    STEP_MOST = 1000
};

/* What is measured. */
typedef struct {
    const kiln_lod_error_request *q;
    kiln_coarsen_rows reference, levels[KILN_LEVELS_MAX];
    kiln_coarsen_rows dim_reference, dim_levels[KILN_LEVELS_MAX]; /* for cameras among the rows */
    uint32_t n_levels, n_views;
    double middle[3], half[3]; /* of the window's box */
    kiln_level_sites sites;    /* of the coarsest level */
    double usual;              /* footprint of cameras */
} gauge;

/* A thread's pictures and the runner that draws them. */
typedef struct {
    kiln_runner *runner;
    float *reference, *level; /* [SIDE * SIDE][4] */
} easel;

/* ---- window ---------------------------------------------------------------------------------- */
/* The k-th smallest of n values, which are put into another order (Wirth's form of Hoare's
 * selection). */
static float select_kth(float *v, int64_t n, int64_t k)
{
    int64_t lo = 0, hi = n - 1;
    while (lo < hi) {
        const float pivot = v[k];
        int64_t i = lo, j = hi;
        do {
            while (v[i] < pivot) i++;
            while (pivot < v[j]) j--;
            if (i > j) break;
            const float t = v[i];
            v[i++] = v[j];
            v[j--] = t;
        } while (i <= j);
        if (j < k) lo = i;
        if (k < i) hi = j;
    }
    return v[k];
}

/* How far each row reaches from its mean. */
static void find_reach(const kiln_coarsen_rows *rows, float *reach)
{
    const uint64_t n = rows->n;
    for (uint64_t i = 0; i < n; i++) {
        const float *s = rows->log_scales + i;
        reach[i] = SIGMAS * kiln_expf(kiln_max_f32(s[0], kiln_max_f32(s[n], s[2 * n])));
    }
}

/* Farthest that the rows reach along an axis: how = -1 down, 1 up. */
static float end_of(const kiln_coarsen_rows *rows, const float *reach, uint32_t axis, float how,
                    float *edge)
{
    const uint64_t n = rows->n, beyond = n / LEFT_OUT;
    for (uint64_t i = 0; i < n; i++)
        edge[i] = kiln_clamp_f32(rows->means[axis * n + i] + how * reach[i], -FARTHEST, FARTHEST);
    return select_kth(edge, (int64_t)n, (int64_t)(how > 0 ? n - 1 - beyond : beyond));
}

static kiln_status find_window(gauge *g, const kiln_coarsen_rows *rows, kiln_error *err)
{
    float *reach, *edge;
    KILN_TRY(
        kiln_alloc_unset((void **)&reach, rows->n, 2 * sizeof *reach, "the window of a node", err));
    edge = reach + rows->n;
    find_reach(rows, reach);
    for (uint32_t axis = 0; axis < 3; axis++) {
        const double lo = end_of(rows, reach, axis, -1.0f, edge),
                     hi = end_of(rows, reach, axis, 1.0f, edge);
        g->middle[axis] = 0.5 * (lo + hi);
        g->half[axis] = 0.5 * (hi - lo);
    }
    free(reach);
    return KILN_OK;
}

/* ---- views ----------------------------------------------------------------------------------- */
/* Makes the length 1; false if it is 0 or not finite. Divides by the largest component first, which
 * kiln_vec3_normalise does not: any finite vector has a direction here, and the last bits of stored
 * errors depend on it. */
static bool normalise_any(double v[3])
{
    const double largest = fmax(fabs(v[0]), fmax(fabs(v[1]), fabs(v[2])));
    if (!(largest > 0) || !isfinite(largest)) return false;
    for (int i = 0; i < 3; i++) v[i] /= largest;
    const double length = kiln_vec3_length(v);
    for (int i = 0; i < 3; i++) v[i] /= length;
    return true;
}

/* A view that looks at the middle of the window. */
typedef struct {
    double r[9], t[3];   /* cam_from_world */
    double distance;     /* of the middle */
    double tan_x, tan_y; /* half the window's size at distance 1 */
    double finest;       /* footprint of the camera's own picture */
    uint32_t border;     /* pixels around the window */
    bool kept;           /* the camera and its picture are as they are */
    bool among;          /* the camera stands among the rows */
    double share;        /* of the node's rows that the picture has */
    kiln_level_eye eye;  /* the camera */
} aim;

static double axis_reach(const gauge *g, const double axis[3])
{
    return fabs(axis[0]) * g->half[0] + fabs(axis[1]) * g->half[1] + fabs(axis[2]) * g->half[2];
}

static kiln_level_eye eye_of(const kiln_lod_error_view *v, double near_m)
{
    kiln_level_eye e = {.left = -v->tan_x,
                        .right = v->tan_x,
                        .top = -v->tan_y,
                        .bottom = v->tan_y,
                        .near_m = near_m};
    memcpy(e.at, v->centre, sizeof e.at);
    memcpy(e.axes, v->right, sizeof v->right);
    memcpy(e.axes + 6, v->forward, sizeof v->forward);
    kiln_vec3_cross(e.axes + 6, e.axes, e.axes + 3);
    return e;
}

/* A camera as it is. */
static void keep_view(const gauge *g, const kiln_lod_error_view *v, aim *a)
{
    const kiln_coarsen_rows *coarsest = &g->levels[g->n_levels - 1];
    kiln_level_sight seen;
    if (!kiln_level_rows_seen(coarsest->means, coarsest->weights, coarsest->visibility, coarsest->n,
                              &a->eye, &seen))
        seen.share = 0;
    memcpy(a->r, a->eye.axes, sizeof a->r);
    for (int i = 0; i < 3; i++) a->t[i] = -kiln_vec3_dot(a->r + 3 * i, v->centre);
    a->kept = true;
    /* as it is when levels are chosen */
    a->distance = kiln_level_sites_seen(&g->sites, &a->eye).distance;
    a->finest = a->distance / v->focal;
    a->share = seen.share;
    a->tan_x = v->tan_x;
    a->tan_y = v->tan_y;
    a->border = 0;
}

static void aim_view(const gauge *g, const kiln_lod_error_view *v, bool keeps, aim *a)
{
    static const double axes[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    double *right = a->r, *down = a->r + 3, *forward = a->r + 6;
    *a = (aim){.share = 1, .border = KILN_LOD_BORDER, .eye = eye_of(v, g->q->near_m)};
    for (int i = 0; i < 3; i++) forward[i] = g->middle[i] - v->centre[i];
    const double radius = kiln_vec3_length(g->half), away = kiln_vec3_length(forward);
    a->among =
        g->sites.n > 0 && (away < radius || kiln_level_sites_around(&g->sites, &v->centre, 1));
    if (keeps && g->sites.n > 0 && (a->among || away < NEAR * fmax(radius, g->q->near_m))) {
        keep_view(g, v, a);
        return;
    }
    a->among = false;
    if (!normalise_any(forward)) { /* the camera is in the middle: it steps back */
        memcpy(forward, v->forward, sizeof v->forward);
        if (!normalise_any(forward)) memcpy(forward, axes[2], sizeof axes[2]);
    }
    kiln_vec3_cross(forward, v->right, down);
    for (int i = 0; i < 3 && !normalise_any(down); i++) kiln_vec3_cross(forward, axes[i], down);
    kiln_vec3_cross(down, forward, right);
    a->distance = fmax(fmin(away, FARTHEST), 2 * fmax(radius, g->q->near_m));
    for (int i = 0; i < 3; i++)
        a->t[i] = -kiln_vec3_dot(a->r + 3 * i, g->middle) + (i == 2 ? a->distance : 0);
    const double nearest =
        /* at least a quarter of the distance, half sides are at most the radius */
        a->distance - axis_reach(g, forward);
    a->finest = fmax(away - radius, g->q->near_m) / v->focal;
    a->tan_x = axis_reach(g, right) / nearest;
    a->tan_y = axis_reach(g, down) / nearest;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of the footprints that those candidates have which see something. */
static double usual_footprint(const aim *aims, uint32_t n)
{
    double of[KILN_LOD_CANDIDATES];
    uint32_t seeing = 0;
    for (uint32_t v = 0; v < n; v++)
        if (aims[v].share > 0) of[seeing++] = aims[v].finest;
    qsort(of, seeing, sizeof *of, by_value);
    return seeing > 0 ? of[seeing / 2] : aims[0].finest;
}

/* Of each part of the candidates the one whose picture has most of the node, unless another part
 * has one that has much more. One that stands right before a few rows says nothing of the others.
 * Where none has enough, all are turned towards the node. */
static void aim_views(gauge *g, aim aims[KILN_LOD_CANDIDATES])
{
    const uint32_t all = g->q->n_views, parts = all < KILN_LOD_VIEWS ? all : KILN_LOD_VIEWS;
    uint32_t best[KILN_LOD_VIEWS];
    double most = 0;
    for (uint32_t v = 0; v < all; v++) aim_view(g, &g->q->views[v], true, &aims[v]);
    g->usual = usual_footprint(aims, all);
    for (uint32_t v = 0; v < all; v++)
        if (aims[v].kept && aims[v].finest < g->usual / 2) aims[v].share = 0;
    for (uint32_t p = 0; p < parts; p++) {
        best[p] = p * all / parts;
        for (uint32_t v = best[p] + 1; v < (p + 1) * all / parts; v++)
            if (aims[v].share > aims[best[p]].share) best[p] = v;
        most = fmax(most, aims[best[p]].share);
    }
    g->n_views = 0;
    for (uint32_t p = 0; p < parts; p++)
        if (!(most > 0) || aims[best[p]].share >= most / 4) aims[g->n_views++] = aims[best[p]];
    for (uint32_t v = 0; !(most > 0) && v < g->n_views; v++)
        aim_view(g, &g->q->views[best[v]], false, &aims[v]);
}

/* ---- pictures -------------------------------------------------------------------------------- */
static kiln_status give_rows(void *context, uint32_t chunk, kiln_draw_chunk *out, kiln_error *err)
{
    const kiln_coarsen_rows *r = context;
    (void)chunk;
    (void)err;
    *out = (kiln_draw_chunk){.n = r->n,
                             .means = r->means,
                             .log_scales = r->log_scales,
                             .quats = r->quats,
                             .opacity_logits = r->opacity_logits,
                             .sh0 = r->sh0,
                             .shN = r->sh_degree > 0 ? r->shN : NULL,
                             .source_rows = r->source_first};
    return KILN_OK;
}

static kiln_status easel_open(easel *e, kiln_error *err)
{
    const kiln_runner_options cpu = {.device = KILN_RUNNER_CPU, .threads = 1};
    *e = (easel){.runner = NULL};
    KILN_TRY(kiln_runner_new(&cpu, &e->runner, err));
    KILN_TRY(KILN_ALLOC_UNSET(&e->reference, PICTURE, "a picture of a node", err));
    return KILN_ALLOC_UNSET(&e->level, PICTURE, "a picture of a node", err);
}

static void easel_close(easel *e)
{
    kiln_runner_free(e->runner);
    free(e->reference);
    free(e->level);
}

static kiln_status draw_sight(const gauge *g, const easel *e, const kiln_view *view,
                              const kiln_view_cut *cut, const kiln_coarsen_rows *rows, float *rgba,
                              kiln_error *err)
{
    kiln_coarsen_rows given = *rows;
    const kiln_draw_scene scene = {.view = view,
                                   .cut = *cut,
                                   .profile = (kiln_profile_id)g->q->profile,
                                   .antialiased = g->q->antialiased != 0,
                                   .sh_degree = rows->sh_degree,
                                   .n_chunks = 1,
                                   .chunk = give_rows,
                                   .context = &given};
    return kiln_draw(e->runner, &scene, &(kiln_draw_want){.rgba = rgba}, NULL, err);
}

/* What a stranger's coefficients may make infinite, or not a number, counts as MOST_DIFFERENCE. */
static double squared(float a, float b)
{
    const double d = fabs((double)a - b);
    return d < MOST_DIFFERENCE ? d * d : MOST_DIFFERENCE * MOST_DIFFERENCE;
}

/* Mean over colours. */
static double difference_at(const easel *e, uint64_t pixel)
{
    const float *a = e->reference + 4 * pixel, *b = e->level + 4 * pixel;
    return (squared(a[0], b[0]) + squared(a[1], b[1]) + squared(a[2], b[2])) / 3;
}

/* Sum over pixels. */
static double difference(const easel *e, uint64_t pixels)
{
    double sum = 0;
    for (uint64_t i = 0; i < pixels; i++) sum += difference_at(e, i);
    return sum;
}

static uint32_t cell_of(uint32_t pixel, uint32_t border, uint32_t pixels)
{
    const uint32_t within = pixels - 2 * border, at = pixel < border ? 0 : pixel - border;
    return (at < within ? at : within - 1) * KILN_LOD_CELLS / within;
}

/* The same by cells; the border counts to the cells beside it. */
static void difference_by_cells(const easel *e, const aim *a, uint32_t width, uint32_t height,
                                double pixel, double *cell)
{
    memset(cell, 0, KILN_LOD_CELLS * KILN_LOD_CELLS * sizeof *cell);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            cell[cell_of(y, a->border, height) * KILN_LOD_CELLS + cell_of(x, a->border, width)] +=
                pixel * difference_at(e, (uint64_t)y * width + x);
}

/* Pixels of the window, without its border. */
static uint32_t side_of(double tan, double focal, uint32_t most)
{
    return (uint32_t)kiln_clamp_f64(ceil(2 * tan * focal), 1, most);
}

static bool fits_whole(const aim *a, double footprint)
{
    return side_of(fmax(a->tan_x, a->tan_y), a->distance / footprint, WIDEST) <= KILN_LOD_WINDOW;
}

/* The picture of a view at a footprint. */
static void view_at(const gauge *g, const aim *a, double footprint, uint32_t border, uint32_t most,
                    kiln_view *view)
{
    static const double origin[3] = {0};
    const kiln_profile *p = &kiln_profiles[g->q->profile];
    const double focal = a->distance / footprint;
    const uint32_t width = 2 * border + side_of(a->tan_x, focal, most),
                   height = 2 * border + side_of(a->tan_y, focal, most);
    const double intrinsics[4] = {focal, focal, 0.5 * width, 0.5 * height};
    kiln_view_init(view, a->r, a->t, origin, intrinsics, width, height, (float)g->q->near_m,
                   p->far_m);
}

/* What one view has at a footprint at which its picture fits: by[level]. map: of the view, or
 * NULL. */
static kiln_status measure_whole(const gauge *g, const easel *e, const aim *a, double footprint,
                                 kiln_lod_error_map *map, double *by, kiln_error *err)
{
    static const kiln_view_cut uncut = {0};
    kiln_view view;
    view_at(g, a, footprint, a->border, KILN_LOD_WINDOW, &view);
    KILN_TRY(draw_sight(g, e, &view, &uncut, a->among ? &g->dim_reference : &g->reference,
                        e->reference, err));
    for (uint32_t k = 0; k < g->n_levels; k++) {
        KILN_TRY(draw_sight(g, e, &view, &uncut, a->among ? &g->dim_levels[k] : &g->levels[k],
                            e->level, err));
        by[k] = difference(e, (uint64_t)view.width * view.height) * footprint * footprint;
        if (map)
            difference_by_cells(e, a, view.width, view.height, footprint * footprint, map->cell[k]);
    }
    return KILN_OK;
}

/* What a view has where its picture is the largest that fits. */
typedef struct {
    const kiln_lod_error_map *map;
    const double *by; /* [level] */
} coarse_sight;

/* The same as measure_whole at a footprint at which it does not fit. */
static kiln_status measure_parts(const gauge *g, const easel *e, const aim *a, double footprint,
                                 const coarse_sight *coarse, double *by, kiln_error *err)
{
    kiln_lod_error_part parts[KILN_LOD_PARTS];
    double fine[KILN_LEVELS_MAX] = {0}, same[KILN_LEVELS_MAX] = {0};
    kiln_view whole;
    view_at(g, a, footprint, 0, WIDEST, &whole);
    const uint32_t n =
        kiln_lod_error_parts(coarse->map, g->n_levels, whole.width, whole.height, parts);
    for (uint32_t i = 0; i < n; i++) {
        kiln_view view = whole;
        const kiln_view_cut cut =
            kiln_view_cut_to(&view, parts[i].left, parts[i].top, parts[i].width, parts[i].height);
        KILN_TRY(draw_sight(g, e, &view, &cut, a->among ? &g->dim_reference : &g->reference,
                            e->reference, err));
        for (uint32_t k = 0; k < g->n_levels; k++) {
            KILN_TRY(draw_sight(g, e, &view, &cut, a->among ? &g->dim_levels[k] : &g->levels[k],
                                e->level, err));
            fine[k] += parts[i].stands * difference(e, (uint64_t)view.width * view.height) *
                       footprint * footprint;
            same[k] += parts[i].stands * parts[i].coarse[k];
        }
    }
    for (uint32_t k = 0; k < g->n_levels; k++)
        by[k] = same[k] > 0 ? coarse->by[k] * (fine[k] / same[k]) : fine[k];
    return KILN_OK;
}

enum { MEASURED = (KILN_LOD_STEPS + 1) / 2, SIGHTS = MEASURED * KILN_LOD_VIEWS };

/* What views have at every other footprint. */
typedef struct {
    const gauge *g;
    const aim *aims;
    int32_t first_step;
    kiln_lod_error_map *maps;      /* [views] */
    double (*by)[KILN_LEVELS_MAX]; /* [view of them][level] */
} sights;

static double footprint_of(const sights *s, uint32_t i)
{
    return ldexp(1.0, s->first_step + 2 * (int)i);
}

/* The finest of the measured footprints at which the whole picture fits; the last one at the
 * latest. */
static uint32_t first_whole(const sights *s, uint32_t view)
{
    uint32_t i = 0;
    while (i + 1 < MEASURED && !fits_whole(&s->aims[view], footprint_of(s, i))) i++;
    return i;
}

static kiln_status measure_sight(const sights *s, const easel *e, uint32_t sight, bool whole,
                                 kiln_error *err)
{
    const uint32_t views = s->g->n_views, i = sight / views, v = sight % views,
                   first = first_whole(s, v);
    const aim *a = &s->aims[v];
    if (whole != (i >= first)) return KILN_OK;
    if (whole)
        return measure_whole(s->g, e, a, footprint_of(s, i), i == first ? &s->maps[v] : NULL,
                             s->by[sight], err);
    const coarse_sight coarse = {.map = &s->maps[v], .by = s->by[first * views + v]};
    return measure_parts(s->g, e, a, footprint_of(s, i), &coarse, s->by[sight], err);
}

/* All views at every other footprint. Whole pictures come first, because the others need them. */
static kiln_status measure_views(const sights *s, unsigned threads, kiln_error *err)
{
    const int n = MEASURED * (int)s->g->n_views;
    kiln_status st = KILN_OK;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        kiln_error why;
        easel e;
        kiln_status one = easel_open(&e, &why);
        for (int whole = 1; whole >= 0; whole--) {
#pragma omp for schedule(dynamic, 1)
            for (int i = 0; i < n; i++)
                if (one == KILN_OK) one = measure_sight(s, &e, (uint32_t)i, whole, &why);
        }
        easel_close(&e);
        if (one != KILN_OK) {
#pragma omp critical(kiln_lod_errors)
            {
                st = one;
                *err = why;
            }
        }
    }
    return st;
}

/* ---- what cameras see ------------------------------------------------------------------------ */
/* Rows whose colours are dimmed. The arrays of coefficients are of `store`, the others borrowed. */
typedef struct {
    kiln_coarsen_rows rows;
    float *store;
} dimmed_rows;

static uint64_t coefficients_of(uint32_t sh_degree)
{
    return 3 * ((uint64_t)sh_degree + 1) * (sh_degree + 1);
}

/* A colour is 1/2 + the sum over coefficients. To have it times k, the first coefficient takes over
 * what the half must lose. */
static void dim(const kiln_coarsen_rows *from, uint64_t n_sh, kiln_coarsen_rows *to)
{
    const uint64_t n = from->n;
    for (uint64_t i = 0; i < n; i++) {
        const float v = from->visibility[i], k = v < HIDDEN ? sqrtf(v / HIDDEN) : 1.0f;
        for (uint64_t c = 0; c < 3; c++)
            to->sh0[c * n + i] = k * from->sh0[c * n + i] + (k - 1.0f) * (0.5f / KILN_SH_C0);
        for (uint64_t c = 0; c < n_sh; c++) to->shN[c * n + i] = k * from->shN[c * n + i];
    }
}

static kiln_status dimmed_make(const kiln_coarsen_rows *rows, dimmed_rows *out, kiln_error *err)
{
    const uint64_t n_all = coefficients_of(rows->sh_degree);
    *out = (dimmed_rows){.rows = *rows};
    if (!rows->visibility) return KILN_OK;
    KILN_TRY(KILN_ALLOC_UNSET(&out->store, rows->n * n_all, "colours of a node", err));
    out->rows.sh0 = out->store;
    out->rows.shN = out->store + 3 * rows->n;
    dim(rows, n_all - 3, &out->rows);
    return KILN_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */
/* The largest power of two that is not above the footprint of interest: the smallest that cameras
 * have on the box, or where some stand among the rows, that which is usual. Doubled until the parts
 * of no picture are too large. */
static int32_t first_step_of(const gauge *g, const aim *aims)
{
    int step;
    bool kept = false;
    for (uint32_t v = 0; v < g->n_views; v++) kept = kept || aims[v].kept;
    frexp(kiln_clamp_f64(kept ? g->usual : fmax(g->q->finest, g->usual), 1 / (double)FARTHEST,
                         FARTHEST),
          &step); /* lenses may be anything */
    step--;
    for (uint32_t v = 0; v < g->n_views; v++) {
        const double widest = 2 * aims[v].distance * fmax(aims[v].tan_x, aims[v].tan_y);
        while (step < STEP_MOST && widest > WIDEST * ldexp(1.0, step)) step++;
    }
    return step < -STEP_MOST ? -STEP_MOST : step;
}

void kiln_lod_errors_add(const kiln_lod_errors *child, int32_t first_step, double *sum)
{
    const float *at = child->at[child->n_levels - 1];
    for (int32_t i = 0; i < KILN_LOD_STEPS; i++) {
        const int64_t k = (int64_t)first_step + i - child->first_step;
        if (k < 0)
            sum[i] += at[0] > at[1] ? 2.0 * at[0] - at[1] : at[0];
        else
            sum[i] += at[k < KILN_LOD_STEPS ? k : KILN_LOD_STEPS - 1];
    }
}

bool kiln_lod_errors_good(const kiln_lod_errors *e, uint32_t n_levels)
{
    if (e->n_levels != n_levels || n_levels > KILN_LEVELS_MAX || e->first_step < -STEP_MOST ||
        e->first_step > STEP_MOST)
        return false;
    for (uint32_t k = 0; k < n_levels; k++)
        for (uint32_t i = 0; i < KILN_LOD_STEPS; i++)
            if (!(e->at[k][i] >= 0 && e->at[k][i] <= MOST_ERROR) ||
                (i > 0 && e->at[k][i] > 4 * e->at[k][i - 1]))
                return false;
    return true;
}

/* The least error of which four times are at least `next`: a quarter, but that numbers below the
 * least normal one are rounded. */
static float quarter_of(float next)
{
    const float quarter = 0.25f * next;
    return 4 * quarter < next ? nextafterf(quarter, FLT_MAX) : quarter;
}

/* No error below that of a finer level, nor, in pixels, below that at a larger footprint. */
static void make_monotone(kiln_lod_errors *e)
{
    for (uint32_t k = 0; k < e->n_levels; k++)
        for (uint32_t i = KILN_LOD_STEPS; i-- > 0;) {
            float *at = &e->at[k][i];
            if (i + 1 < KILN_LOD_STEPS) *at = kiln_max_f32(*at, quarter_of(e->at[k][i + 1]));
            if (k > 0) *at = kiln_max_f32(*at, e->at[k - 1][i]);
        }
}

/* How many pictures of the whole node the views are together. */
static double shares_of(const aim *aims, uint32_t n)
{
    double sum = 0;
    for (uint32_t v = 0; v < n; v++) sum += aims[v].share;
    return sum;
}

/* Sums of doubles in the order of views, whichever thread drew them. */
static void add_up(const gauge *g, const aim *aims, double (*by)[KILN_LEVELS_MAX],
                   const double *below, kiln_lod_errors *out)
{
    const uint32_t views = g->n_views;
    const double shares = shares_of(aims, views);
    double sums[KILN_LOD_STEPS][KILN_LEVELS_MAX] = {{0}};
    for (uint32_t i = 0; i < KILN_LOD_STEPS; i += 2)
        for (uint32_t v = 0; v < views; v++)
            for (uint32_t k = 0; k < g->n_levels; k++) sums[i][k] += by[i / 2 * views + v][k];
    for (uint32_t i = 1; i < KILN_LOD_STEPS; i += 2)
        for (uint32_t k = 0; k < g->n_levels; k++)
            sums[i][k] = 0.5 * (sums[i - 1][k] + sums[i + 1][k]);
    for (uint32_t i = 0; i < KILN_LOD_STEPS; i++)
        for (uint32_t k = 0; k < g->n_levels; k++)
            out->at[k][i] = (float)fmin(below[i] + sums[i][k] / shares, (double)MOST_ERROR);
}

/* What a child has lost at a footprint of the node, in its scene units squared, as a camera among
 * the rows sees it. */
static double lost_below(const kiln_lod_child_errors *child, const aim *a, double footprint)
{
    const kiln_lod_errors *e = &child->errors;
    kiln_chunk c = {.n_errors = KILN_LOD_STEPS, .error_step = e->first_step};
    memcpy(c.errors, e->at[e->n_levels - 1], KILN_LOD_STEPS * sizeof *c.errors);
    if (child->sites.n == 0 || !a->kept) return kiln_level_error_at(&c, footprint);
    const kiln_level_sight seen = kiln_level_sites_seen(&child->sites, &a->eye);
    const double nearer = seen.distance / a->distance;
    return seen.share * kiln_level_error_at(&c, nearer * footprint) / (nearer * nearer);
}

/* Of all children: below[step]. */
static void add_children(const gauge *g, const kiln_lod_child_errors *children, uint32_t n,
                         const aim *aims, int32_t first_step, double below[KILN_LOD_STEPS])
{
    const uint32_t views = g->n_views;
    const double shares = shares_of(aims, views);
    bool kept = false;
    for (uint32_t v = 0; v < views; v++) kept = kept || aims[v].kept;
    for (uint32_t c = 0; c < n; c++) {
        if (children[c].errors.n_levels == 0) continue;
        if (!kept) kiln_lod_errors_add(&children[c].errors, first_step, below);
        for (int i = 0; kept && i < KILN_LOD_STEPS; i++)
            for (uint32_t v = 0; v < views; v++)
                below[i] += lost_below(&children[c], &aims[v], ldexp(1.0, first_step + i)) / shares;
    }
}

static kiln_status measure_errors(gauge *g, const kiln_lod_child_errors *children,
                                  uint32_t n_children, unsigned threads, kiln_lod_errors *out,
                                  kiln_error *err)
{
    aim aims[KILN_LOD_CANDIDATES];
    double below[KILN_LOD_STEPS] = {0}, by[SIGHTS][KILN_LEVELS_MAX];
    sights s = {.g = g, .aims = aims, .by = by};
    const kiln_coarsen_rows *coarsest = &g->levels[g->n_levels - 1];
    KILN_TRY(find_window(g, &g->reference, err));
    kiln_level_sites_make(coarsest->means, coarsest->weights, coarsest->visibility, coarsest->n, 0,
                          coarsest->n, &g->sites);
    aim_views(g, aims);
    out->n_levels = g->n_levels;
    out->first_step = first_step_of(g, aims);
    add_children(g, children, n_children, aims, out->first_step, below);
    s.first_step = out->first_step;
    KILN_TRY(KILN_ALLOC_UNSET(&s.maps, g->n_views, "the pictures of a node", err));
    const kiln_status st = measure_views(&s, threads, err);
    free(s.maps);
    KILN_TRY(st);
    add_up(g, aims, by, below, out);
    make_monotone(out);
    return KILN_OK;
}

kiln_status kiln_lod_errors_measure(const kiln_lod_measured_node *n, unsigned threads,
                                    kiln_lod_errors *out, kiln_error *err)
{
    gauge g = {.q = n->request, .n_levels = n->n_levels, .reference = *n->reference};
    /* the last one is of the reference */
    dimmed_rows dimmed[KILN_LEVELS_MAX + 1] = {{.store = NULL}};
    memset(out, 0, sizeof *out); /* it is stored as it is */
    if (g.q->n_views == 0 || g.reference.n == 0 || g.n_levels == 0) return KILN_OK;
    kiln_status st = dimmed_make(n->reference, &dimmed[KILN_LEVELS_MAX], err);
    g.dim_reference = dimmed[KILN_LEVELS_MAX].rows;
    for (uint32_t k = 0; k < g.n_levels && st == KILN_OK; k++) {
        st = dimmed_make(&n->levels[k], &dimmed[k], err);
        g.levels[k] = n->levels[k];
        g.dim_levels[k] = dimmed[k].rows;
    }
    if (st == KILN_OK) st = measure_errors(&g, n->children, n->n_children, threads, out, err);
    for (uint32_t k = 0; k <= KILN_LEVELS_MAX; k++) free(dimmed[k].store);
    return st;
}

uint64_t kiln_lod_errors_bytes_thread(uint64_t rows)
{
    const uint64_t tiles = (SIDE + KILN_TILE - 1) / KILN_TILE;
    const kiln_view view = {.width = SIDE, .height = SIDE};
    const kiln_draw_size size = {
        .visible = rows,
        .largest_chunk = rows,
        .band_pairs =
            kiln_min_u64(rows * tiles * tiles, kiln_max_u64(KILN_BAND_PAIRS, rows * tiles)),
        .band_tiles = tiles * tiles};
    return 2 * PICTURE * sizeof(float) +
           kiln_max_u64(kiln_draw_collect_bytes(&size),
                        kiln_draw_kept_bytes(&size) + kiln_draw_picture_bytes(&size, &view));
}

uint64_t kiln_lod_errors_bytes(uint64_t rows)
{
    /* levels together have no more rows */
    const uint64_t dimmed = 2 * rows * coefficients_of(KILN_SH_DEGREE_MAX) * sizeof(float);
    return kiln_lod_errors_bytes_thread(rows) + KILN_LOD_VIEWS * sizeof(kiln_lod_error_map) +
           2 * sizeof(float) * rows + dimmed;
}
