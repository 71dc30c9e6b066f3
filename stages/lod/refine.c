/* The worker's part of refine.h: reads a neighbourhood, fits the chunk's levels one after the
 * other, keeps what is better. */
#include "stages/lod/refine.h"

#include "base/memory.h"
#include "base/minmax.h"
#include "stages/lod/lod_rows.h"
#include "stages/lod/refine_draw.h"
#include "stages/lod/refine_judge.h"
#include "stages/lod/refine_read.h"
#include "stages/lod/refine_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOGIT_FIRST 5.3f /* beyond it a Gaussian would hardly learn */
/* share of the full steps that level 1 makes; sqrt 2 more for each further one */
#define FIRST_REACH 0.3
#define FULL_REACH_ERROR 0.06 /* mean error of a colour from which on steps are full */
#define LEAST_MOVED 0.008     /* mean error of a colour, 42 dB, up to which means stay */
#define LONGEST_AXIS 4        /* of a step of a mean: pixels of the level's size */
#define LEAST_SHARE 0.125f    /* of the way that a level was led: the least that is tried */

enum { PICTURE = 4 * KILN_REFINE_WINDOW * KILN_REFINE_WINDOW /* floats */ };

/* A view of the level that is fitted: at its camera's size or a smaller one. */
typedef struct {
    kiln_refine_window window;
    float *target; /* over black, in `pictures`; NULL: this view is not used */
    bool left_out; /* measures, and is not fitted to */
} sight;

typedef struct {
    kiln_worker *w;
    const kiln_refine_unit *u;
    kiln_refine_reader reader;
    kiln_refine_views views;
    kiln_refine_canvas canvas;
    kiln_lod_rows own, others;        /* level 0 */
    float *pictures;                  /* of all sights */
    sight sights[KILN_REFINE_SIGHTS]; /* those of the camera's size first: they serve all levels */
    /* indices of sights to fit to */
    uint32_t fitted[KILN_REFINE_SIZES][KILN_REFINE_VIEWS], n[KILN_REFINE_SIZES];
    /* as they are kept */
    kiln_lod_rows done[KILN_REFINE_LEVELS];
    /* of the level: as it was, becomes, was led; the neighbours' */
    kiln_lod_rows merged, level, led, around;
    kiln_refine_steps steps;
} work;

/* ---- rows ------------------------------------------------------------------------------------ */
static kiln_status read_merged(work *k, uint32_t level, kiln_error *err)
{
    KILN_TRY(kiln_refine_read_level(&k->reader, level, &k->merged, &k->around, err));
    KILN_TRY(kiln_lod_rows_make(k->merged.rows.n, k->u->sh_degree, k->u->weighted, &k->level, err));
    kiln_refine_append(&k->merged.rows, 0, &k->level.rows);
    return KILN_OK;
}

static kiln_status keep_rows(work *k, const kiln_lod_rows *r, kiln_error *err)
{
    return kiln_runner_keep(kiln_worker_runner(k->w), r->store,
                            kiln_lod_rows_bytes(r->rows.n, r->rows.sh_degree, k->u->weighted),
                            false, err);
}

static void drop_rows(work *k, const kiln_lod_rows *r)
{
    kiln_runner_drop(kiln_worker_runner(k->w), r->store);
}

static void drop_level(work *k)
{
    drop_rows(k, &k->merged);
    drop_rows(k, &k->level);
    drop_rows(k, &k->around);
    kiln_lod_rows_release(&k->merged);
    kiln_lod_rows_release(&k->level);
    kiln_lod_rows_release(&k->led);
    kiln_lod_rows_release(&k->around);
    kiln_refine_steps_release(&k->steps);
    k->steps = (kiln_refine_steps){.n = 0};
}

/* ---- targets --------------------------------------------------------------------------------- */
/* Every third of the views between cameras: cameras may be too few to leave out any. Of cameras
 * that nothing is between, the first.
 */
static bool is_left_out(const kiln_refine_views *v, uint32_t view)
{
    return v->n == v->n_cameras
               ? view == 0
               : view >= v->n_cameras && (view - v->n_cameras) % KILN_REFINE_LEFT_OUT == 0;
}

static kiln_status draw_target(work *k, sight *s, uint32_t view, uint32_t half, kiln_error *err)
{
    const kiln_refine_rows full = {.own = &k->own.rows, .others = &k->others.rows};
    bool fits = true;
    s->left_out = is_left_out(&k->views, view);
    if (!kiln_refine_window_make(&k->views, view, half, &s->window)) return KILN_OK;
    s->target = k->pictures + (uint64_t)PICTURE * (uint64_t)(s - k->sights);
    KILN_TRY(kiln_refine_draw(&k->canvas, &s->window, &full, s->target, &fits, err));
    if (!fits)
        s->target = NULL;
    else if (s->left_out)
        return kiln_runner_fetch(k->canvas.runner, s->target,
                                 4 * sizeof(float) * s->window.view.width * s->window.view.height,
                                 err);
    return KILN_OK;
}

/* The pictures of one size. */
static kiln_status draw_targets(work *k, uint32_t size, uint32_t half, kiln_error *err)
{
    k->n[size] = 0;
    for (uint32_t i = 0; i < k->views.n; i++) {
        sight *s = &k->sights[size * KILN_REFINE_VIEWS + i];
        s->target = NULL;
        KILN_TRY(draw_target(k, s, i, half, err));
        if (s->target && !s->left_out) k->fitted[size][k->n[size]++] = size * KILN_REFINE_VIEWS + i;
    }
    return KILN_OK;
}

/* ---- a level --------------------------------------------------------------------------------- */
/* The squares by which pixels are off over grey, summed. */
static double difference_of_row(const float *got, const float *want, uint32_t width)
{
    double sum = 0;
    for (uint32_t p = 0; p < 4 * width; p += 4)
        for (uint32_t c = 0; c < 3; c++) {
            const double off = ((double)got[p + c] - (double)want[p + c]) -
                               0.5 * ((double)got[p + 3] - (double)want[p + 3]);
            sum += off * off;
        }
    return sum;
}

/* Their mean over a picture; rows are added in their order, so that no bit depends on threads. */
static double difference(const float *got, const float *want, const kiln_view *v, unsigned threads)
{
    double rows[KILN_REFINE_WINDOW], sum = 0;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (uint32_t y = 0; y < v->height; y++) {
        const size_t at = (size_t)4 * v->width * y;
        rows[y] = difference_of_row(got + at, want + at, v->width);
    }
    for (uint32_t y = 0; y < v->height; y++) sum += rows[y];
    return sum / ((double)v->width * v->height);
}

/* A picture that does not fit is off by all. */
static kiln_status find_difference(work *k, const sight *s, const kiln_refine_rows *rows,
                                   double *off, kiln_error *err)
{
    const uint64_t pixels = (uint64_t)s->window.view.width * s->window.view.height;
    bool fits;
    *off = 1;
    KILN_TRY(kiln_refine_draw(&k->canvas, &s->window, rows, k->steps.rgba, &fits, err));
    if (!fits) return KILN_OK;
    KILN_TRY(kiln_runner_fetch(k->canvas.runner, k->steps.rgba, 4 * pixels * sizeof(float), err));
    *off = difference(k->steps.rgba, s->target, &s->window.view, kiln_worker_threads(k->w));
    return KILN_OK;
}

/* What a level is off by. before: of the merged level; as soon as the level cannot be better than
 * that it is *lost, and the rest is not measured. NULL: all of it is. */
static kiln_status measure_level(work *k, const kiln_coarsen_rows *level,
                                 const kiln_refine_off_by *before, kiln_refine_off_by *off,
                                 bool *lost, kiln_error *err)
{
    const kiln_coarsen_rows *const others[2] = {&k->around.rows, &k->others.rows};
    *off = (kiln_refine_off_by){.sum = {0}};
    *lost = false;
    for (uint32_t i = 0; i < KILN_REFINE_SIGHTS; i++) {
        const sight *s = &k->sights[i];
        if (!s->target || !s->left_out) continue;
        off->n++;
        for (int around = 0; around < 2; around++) {
            const kiln_refine_rows rows = {.own = level, .others = others[around]};
            double *of = off->of[around];
            of[i] = off->of[0][i]; /* nothing stands around a chunk that is alone */
            if (around == 0 || k->others.rows.n > 0)
                KILN_TRY(find_difference(k, s, &rows, &of[i], err));
            off->sum[around] += of[i];
            *lost = before && kiln_refine_is_lost(off, before, around, i);
            if (*lost) return KILN_OK;
        }
    }
    return KILN_OK;
}

/* The sight of step t: sizes alternate, each goes through its views by sevens. NULL: there is
 * none. */
static const sight *sight_of_step(const work *k, uint32_t t)
{
    uint32_t size = t % KILN_REFINE_SIZES;
    if (k->n[size] == 0) size = 1 - size;
    const uint32_t n = k->n[size];
    if (n == 0) return NULL;
    const uint32_t turn = t / KILN_REFINE_SIZES, step = n % 7 ? 7 : 5;
    return &k->sights[k->fitted[size][(uint32_t)((uint64_t)turn * step % n)]];
}

/* Mean error of a colour in the sights left out. */
static double mean_error(const kiln_refine_off_by *off)
{
    return off->n > 0 ? sqrt(off->sum[0] / (3.0 * off->n)) : 0;
}

/* Levels that are nearly right make smaller steps: what a row is led by where it is seen once is
 * noise, and as large as the step.
 */
static float step_reach(uint32_t level, double error)
{
    const double by_level = FIRST_REACH / kiln_refine_size(level - 1),
                 by_error = error / FULL_REACH_ERROR;
    return (float)kiln_clamp_f64(by_level > by_error ? by_level : by_error, 0, 1);
}

static kiln_status fit(work *k, uint32_t level, const kiln_refine_off_by *before, kiln_error *err)
{
    const kiln_refine_rows rows = {.own = &k->level.rows, .others = &k->around.rows};
    const double error = mean_error(before);
    const float reach = step_reach(level, error);
    float *logits = k->level.rows.opacity_logits;
    for (uint64_t i = 0; i < k->level.rows.n; i++)
        logits[i] = kiln_clamp_f32(logits[i], -LOGIT_FIRST, LOGIT_FIRST);
    KILN_TRY(keep_rows(k, &k->level, err));
    for (uint32_t t = 0; t < k->u->steps; t++) {
        const sight *s = sight_of_step(k, t);
        if (!s) return KILN_OK;
        /* A pixel of the smaller size is 2^level of the larger: both errors as they are for the
         * smaller. */
        const double size = kiln_refine_size(level) / s->window.size;
        kiln_refine_turn turn = {
            .t = t,
            .steps = k->u->steps,
            .target = s->target,
            .weight = (float)(size * size),
            .reach = reach,
            /* the least move may change an order */
            .mean_reach = error > LEAST_MOVED ? reach : 0,
            .longest = (float)(k->views.footprint * LONGEST_AXIS / kiln_refine_size(level))};
        for (uint32_t c = 0; c < 3; c++)
            turn.background[c] = (float)kiln_refine_noise(1000 + level, t, c);
        KILN_TRY(kiln_refine_step(&k->canvas, &k->steps, &s->window, &rows, &turn, err));
    }
    return KILN_OK;
}

/* All that draws is finite: a level that lost its way is not kept. */
static bool is_finite(const kiln_coarsen_rows *r)
{
    for (int p = 0; p < KILN_LOD_DRAWN; p++) {
        const float *plane = kiln_lod_rows_plane(r, &kiln_lod_planes[p]);
        const uint64_t n = r->n * kiln_lod_components(&kiln_lod_planes[p], r->sh_degree, false);
        for (uint64_t i = 0; i < n; i++)
            if (!(plane[i] > -1e30f && plane[i] < 1e30f)) return false;
    }
    return true;
}

/* Sets a level between where it began (share 0) and where it was led (1). */
static void set_between(const kiln_coarsen_rows *from, const kiln_coarsen_rows *to, float share,
                        kiln_coarsen_rows *level)
{
    const uint64_t n = from->n;
    for (int p = 0; p < KILN_LOD_DRAWN; p++) {
        const float *a = kiln_lod_rows_plane(from, &kiln_lod_planes[p]),
                    *b = kiln_lod_rows_plane(to, &kiln_lod_planes[p]);
        float *out = kiln_lod_rows_plane(level, &kiln_lod_planes[p]);
        const uint64_t values =
            n * kiln_lod_components(&kiln_lod_planes[p], from->sh_degree, false);
        for (uint64_t i = 0; i < values; i++)
            out[i] = share < 1 ? a[i] + share * (b[i] - a[i]) : b[i];
    }
}

/* Goes back from where a level was led until it is better than merged, and on while that takes more
 * of the error away. The level is on the device when it is drawn and on the host when it is set. */
static kiln_status go_back(work *k, const kiln_refine_off_by *before, bool *better, kiln_error *err)
{
    const uint64_t n = k->level.rows.n,
                   bytes = kiln_lod_rows_bytes(n, k->u->sh_degree, k->u->weighted);
    double least = before->sum[0];
    float best = 0;
    KILN_TRY(kiln_runner_fetch(kiln_worker_runner(k->w), k->level.store, bytes, err));
    drop_rows(k, &k->level);
    KILN_TRY(kiln_lod_rows_make(n, k->u->sh_degree, k->u->weighted, &k->led, err));
    kiln_refine_append(&k->level.rows, 0, &k->led.rows);
    for (float share = is_finite(&k->led.rows) ? 1 : 0; share >= LEAST_SHARE; share *= 0.5f) {
        kiln_refine_off_by after;
        bool lost;
        set_between(&k->merged.rows, &k->led.rows, share, &k->level.rows);
        KILN_TRY(keep_rows(k, &k->level, err));
        KILN_TRY(measure_level(k, &k->level.rows, before, &after, &lost, err));
        drop_rows(k, &k->level);
        if (!lost && kiln_refine_is_better(&after, before) && after.sum[0] < least) {
            best = share;
            least = after.sum[0];
        } else if (best > 0)
            break;
    }
    *better = best > 0;
    set_between(&k->merged.rows, &k->led.rows, best, &k->level.rows);
    return KILN_OK;
}

static kiln_status refine_level(work *k, uint32_t level, bool *kept, kiln_error *err)
{
    kiln_refine_off_by before;
    bool all;
    KILN_TRY(read_merged(k, level, err));
    KILN_TRY(kiln_refine_steps_open(&k->steps, kiln_worker_runner(k->w), k->level.rows.n,
                                    k->u->sh_degree, err));
    KILN_TRY(keep_rows(k, &k->merged, err));
    KILN_TRY(keep_rows(k, &k->around, err));
    KILN_TRY(draw_targets(k, 1, level, err));
    KILN_TRY(measure_level(k, &k->merged.rows, NULL, &before, &all, err));
    KILN_TRY(fit(k, level, &before, err));
    KILN_TRY(go_back(k, &before, kept, err));
    drop_rows(k, &k->merged);
    kiln_lod_rows *from = *kept ? &k->level : &k->merged;
    k->done[level - 1] = *from;
    *from = (kiln_lod_rows){.store = NULL};
    return kiln_lod_rows_put(k->w, level, &k->done[level - 1].rows, err);
}

/* As those of merged levels (node.c). */
static kiln_status put_errors(work *k, kiln_error *err)
{
    const kiln_refine_unit *u = k->u;
    kiln_coarsen_rows levels[KILN_REFINE_LEVELS];
    kiln_lod_errors errors;
    if (u->errors.n_views == 0) return KILN_OK;
    for (uint32_t i = 0; i < u->n_levels; i++) levels[i] = k->done[i].rows;
    const kiln_lod_measured_node n = {.request = &u->errors,
                                      .reference = &k->own.rows,
                                      .levels = levels,
                                      .n_levels = u->n_levels};
    KILN_TRY(kiln_lod_errors_measure(&n, kiln_worker_threads(k->w), &errors, err));
    return kiln_worker_put(k->w, "errors", &errors, sizeof errors, sizeof(float), err);
}

/* ---- the unit -------------------------------------------------------------------------------- */
static kiln_status put_refine_counters(work *k, uint32_t kept, kiln_error *err)
{
    json_t *c = json_pack("{s:i, s:i}", "levels", (int)k->u->n_levels, "kept", (int)kept);
    const kiln_status st = c ? kiln_worker_counters(k->w, c, err)
                             : kiln_fail(err, KILN_E_NOMEM, "cannot write counters");
    json_decref(c);
    return st;
}

static kiln_status refine_chunk(work *k, kiln_error *err)
{
    uint32_t n_kept = 0;
    KILN_TRY(kiln_refine_reader_open(&k->reader, k->w, k->u, err));
    KILN_TRY(kiln_refine_read_full(&k->reader, &k->own, &k->others, err));
    KILN_TRY(kiln_refine_canvas_open(&k->canvas, kiln_worker_runner(k->w), k->u,
                                     k->own.rows.n + k->others.rows.n, err));
    KILN_TRY(KILN_ALLOC_UNSET(&k->pictures, (uint64_t)KILN_REFINE_SIGHTS * PICTURE,
                              "pictures of a chunk", err));
    KILN_TRY(kiln_runner_keep(k->canvas.runner, k->pictures,
                              (uint64_t)KILN_REFINE_SIGHTS * PICTURE * sizeof(float), true, err));
    KILN_TRY(keep_rows(k, &k->own, err));
    KILN_TRY(keep_rows(k, &k->others, err));
    kiln_refine_views_make(k->u, &k->own.rows, &k->views);
    KILN_TRY(draw_targets(k, 0, 0, err));
    for (uint32_t level = 1; level <= k->u->n_levels; level++) {
        bool kept = false;
        const kiln_status st = refine_level(k, level, &kept, err);
        drop_level(k);
        KILN_TRY(st);
        n_kept += kept;
    }
    KILN_TRY(put_errors(k, err));
    return put_refine_counters(k, n_kept, err);
}

kiln_status kiln_lod_refine_compute(kiln_worker *w, const void *payload, size_t payload_bytes,
                                    kiln_error *err)
{
    const kiln_refine_unit *u = payload;
    work *k;
    if (payload_bytes != sizeof *u || u->n_cameras > KILN_REFINE_CANDIDATES ||
        u->n_chunks > 1 + KILN_REFINE_NEIGHBOURS || u->n_levels > KILN_REFINE_LEVELS ||
        u->profile >= KILN_PROFILE_COUNT)
        return kiln_fail(err, KILN_E_BUG, "a unit of refinement came with a payload of %zu bytes",
                         payload_bytes);
    KILN_TRY(KILN_ALLOC(&k, 1, "refinement", err));
    k->w = w;
    k->u = u;
    const kiln_status st = refine_chunk(k, err);
    kiln_runner_drop(kiln_worker_runner(w), k->pictures);
    drop_rows(k, &k->own);
    drop_rows(k, &k->others);
    free(k->pictures);
    for (uint32_t i = 0; i < KILN_REFINE_LEVELS; i++) kiln_lod_rows_release(&k->done[i]);
    kiln_refine_canvas_release(&k->canvas);
    kiln_lod_rows_release(&k->own);
    kiln_lod_rows_release(&k->others);
    kiln_refine_reader_close(&k->reader);
    free(k);
    return st;
}

uint64_t kiln_lod_refine_ram(const kiln_refine_unit *u)
{
    const uint64_t own = u->chunks[0].rows, around = kiln_refine_row_count_around(u, 0),
                   first = kiln_max_u64(1, own >> 1);
    const uint64_t full = kiln_lod_rows_bytes(own, u->sh_degree, u->weighted) +
                          kiln_lod_rows_bytes(around, u->sh_degree, u->weighted);
    const uint64_t level =
        3 * kiln_lod_rows_bytes(first, u->sh_degree, u->weighted) +
        kiln_lod_rows_bytes(kiln_refine_row_count_around(u, 1), u->sh_degree, u->weighted);
    const uint64_t pictures = (KILN_REFINE_SIGHTS + 1) * (uint64_t)PICTURE * sizeof(float);
    const uint64_t steps =
        first * (3 * (uint64_t)kiln_gradient_planes(u->sh_degree) + 3 * KILN_BACKWARD_PLANES) *
        sizeof(float);
    const uint64_t canvas = (own + around) * (sizeof(kiln_splat2d) + 12);
    /* and the work of operations */
    const uint64_t lists = (own + around) * 96 + (uint64_t)KILN_REFINE_PAIRS * 6;
    const uint64_t measuring = u->errors.n_views ? kiln_lod_errors_bytes(own) : 0;
    uint64_t outputs = 0; /* and what is kept of them */
    for (uint32_t i = 0; i < u->n_levels; i++)
        outputs += kiln_lod_rows_bytes(u->counts[i], u->sh_degree, u->weighted);
    return full + level + pictures + steps + canvas + lists + kiln_read_ram(full) +
           kiln_outputs_ram(outputs) + outputs + measuring + ((uint64_t)1 << 20);
}

uint64_t kiln_lod_refine_ram_thread(const kiln_refine_unit *u)
{
    const uint64_t measuring =
        u->errors.n_views ? kiln_lod_errors_bytes_thread(u->chunks[0].rows) : 0;
    /* readers stay open meanwhile */
    return kiln_max_u64(kiln_refine_reader_ram_thread(u), KILN_CONNECTION_RAM + measuring);
}
