/* blend_weights_cpu -- walks the tiles on the CPU: the definition.
 *
 * As raster_cpu.c, without colours, with the same groups of pixels and the same powers
 * (raster_group_cpu.h). A tile adds up a Gaussian's share in 32 bits, as 256 pixels of less than
 * 2^24 each stay below 2^32, and then adds it to the Gaussian's 64 bits, which other tiles add to
 * at the same time. The loops are compiled once for each of three forms, so that a call which wants
 * shares alone pays for nothing else.
 */
#include "kernels/blend_weights/blend_weights.h"

#include "base/carve.h"
#include "kernels/blend_weights/blend_weights_math.h"
#include "kernels/raster/raster_group_cpu.h"
#include "kernels/raster/raster_math.h"
#include "kernels/violation.h"

#include <string.h>

enum {
    TILES_AT_A_TIME = 4,
    AHEAD = 16, /* pairs whose Gaussians are fetched before they are asked for */
};

/* What a call asks for besides shares: nothing; peaks; alphas, and peaks if there are any. */
typedef enum { SHARES, PEAKS, REACHES } form;

/* A tile with what only some forms need. */
typedef struct {
    kiln_group_tile t;
    /* REACHES: all bits, where the pixel counts */
    _Alignas(kiln_group) uint32_t counts[KILN_GROUPS][KILN_LANES];
} weighed_tile;

/* Of a Gaussian in a tile, by lanes: a lane has at most 32 pixels, so sums are less than 2^29. */
typedef struct {
    int32_t units[KILN_LANES], peaks[KILN_LANES], alphas[KILN_LANES];
    uint32_t stopped[KILN_LANES];
} lane_sums;

typedef struct {
    const kiln_blend_weights_args *a;
    const uint64_t *starts; /* of each tile's list */
    kiln_blend_rule rule;
    uint64_t bad; /* lowest pair with a rank at or above n; UINT64_MAX: none */
} job;

/* Blends eight pixels and adds their shares; pixels that stop leave a sign in `stopped`. As in
 * raster_cpu.c. */
static inline __attribute__((always_inline)) void blend_shares(form f, kiln_blend_rule rule,
                                                               const float *restrict alphas,
                                                               float *restrict left_of,
                                                               lane_sums *restrict s)
{
#pragma omp simd
    for (int i = 0; i < KILN_LANES; i++) {
        const float alpha = alphas[i], t = left_of[i], left = t * (1.0f - alpha);
        const uint32_t ends = kiln_mask_of(left < rule.stop_below);
        const int32_t units = kiln_blend_units(kiln_float_of(kiln_bits_of(alpha * t) & ~ends));
        s->units[i] += units;
        if (f != SHARES) s->peaks[i] = units > s->peaks[i] ? units : s->peaks[i];
        left_of[i] = ends ? -fabsf(t) : left;
        s->stopped[i] |= ends & ~kiln_bits_of(t);
    }
}

static inline void add_alphas(const float *restrict alphas, const uint32_t *restrict counts,
                              lane_sums *restrict s)
{
#pragma omp simd
    for (int i = 0; i < KILN_LANES; i++)
        s->alphas[i] += kiln_blend_units(kiln_float_of(kiln_bits_of(alphas[i]) & counts[i]));
}

/* What a tile adds to a Gaussian. */
typedef struct {
    uint32_t units, peak, alphas;
} tile_sums;

/* Blends a Gaussian into its tile. Groups whose pixels have all stopped are looked at no more, but
 * where alphas are wanted. */
static inline __attribute__((always_inline)) tile_sums
draw_form(form f, const kiln_group_form *g, kiln_blend_rule rule, weighed_tile *w)
{
    kiln_group_hits hits;
    lane_sums s = {{0}, {0}, {0}, {0}};
    tile_sums sum = {0, 0, 0};
    uint32_t any = 0;
    hits.n = 0;
    kiln_group_find(g, &w->t, 0, &hits);
    kiln_group_alphas(rule.max_alpha, &hits);
    for (uint32_t h = 0; h < hits.n; h++) {
        if (f == REACHES) add_alphas(hits.power[h], w->counts[hits.group[h]], &s);
        blend_shares(f, rule, hits.power[h], w->t.groups[hits.group[h]].t, &s);
    }
    for (int i = 0; i < KILN_LANES; i++) {
        any |= s.stopped[i];
        sum.units += (uint32_t)s.units[i];
        sum.alphas += (uint32_t)s.alphas[i];
        if ((uint32_t)s.peaks[i] > sum.peak) sum.peak = (uint32_t)s.peaks[i];
    }
    if (f != REACHES && any & 0x80000000u) kiln_group_end(&w->t);
    return sum;
}

/* The transmittance of a pixel, which is never 0, in its group. It is negative when the pixel has
 * stopped. */
static float *left_of(kiln_group_tile *t, uint32_t px, uint32_t py)
{
    return &t->groups[kiln_group_at(px - t->px0, py - t->py0)].t[(px - t->px0) % KILN_LANES];
}

/* The state of the first pixel of this row of the picture. */
static kiln_raster_state *state_row(const kiln_blend_weights_args *a, uint32_t py)
{
    return &a->state[(size_t)(py - a->row0 * KILN_TILE) * a->view->width];
}

static void resume_tile(const kiln_blend_weights_args *a, kiln_group_tile *t)
{
    for (uint32_t py = t->py0; py < t->py0 + KILN_TILE && py < a->view->height; py++)
        for (uint32_t px = t->px0; px < t->px0 + KILN_TILE && px < a->view->width; px++) {
            const float left = state_row(a, py)[px].left;
            *left_of(t, px, py) = kiln_state_stopped(left) ? left : kiln_state_left(left);
        }
}

/* Pixels that the mask leaves out have stopped. */
static void mask_tile(const kiln_blend_weights_args *a, kiln_group_tile *t)
{
    for (uint32_t py = t->py0; py < t->py0 + KILN_TILE && py < a->view->height; py++)
        for (uint32_t px = t->px0; px < t->px0 + KILN_TILE && px < a->view->width; px++) {
            float *const left = left_of(t, px, py);
            if (a->mask[(size_t)(py - a->row0 * KILN_TILE) * a->view->width + px] == 0)
                *left = -fabsf(*left);
        }
}

static void find_counting(const kiln_blend_weights_args *a, weighed_tile *w)
{
    memset(w->counts, 0, sizeof w->counts);
    for (uint32_t py = w->t.py0; py < w->t.py0 + KILN_TILE && py < a->view->height; py++)
        for (uint32_t px = w->t.px0; px < w->t.px0 + KILN_TILE && px < a->view->width; px++) {
            const bool counts =
                !a->mask || a->mask[(size_t)(py - a->row0 * KILN_TILE) * a->view->width + px] != 0;
            w->counts[kiln_group_at(px - w->t.px0, py - w->t.py0)][(px - w->t.px0) % KILN_LANES] =
                kiln_mask_of(counts);
        }
}

static inline __attribute__((always_inline)) void
start_tile(form f, const kiln_blend_weights_args *a, weighed_tile *w)
{
    if (a->state) resume_tile(a, &w->t);
    if (a->mask) mask_tile(a, &w->t);
    if (f == REACHES)
        find_counting(a, w);
    else if (a->state || a->mask)
        kiln_group_end(&w->t);
}

static void leave_tile(const kiln_blend_weights_args *a, kiln_group_tile *t)
{
    for (uint32_t py = t->py0; py < t->py0 + KILN_TILE && py < a->view->height; py++)
        for (uint32_t px = t->px0; px < t->px0 + KILN_TILE && px < a->view->width; px++)
            state_row(a, py)[px].left = *left_of(t, px, py); /* as kiln_state_of */
}

static void note_bad_rank(job *j, uint64_t pair)
{
#pragma omp critical(kiln_blend_weights_bad)
    if (pair < j->bad) j->bad = pair;
}

static void add_weight_units(uint64_t *to, uint32_t units)
{
#pragma omp atomic
    *to += units;
}

static void raise_peak(uint32_t *to, uint32_t peak)
{
    uint32_t was = __atomic_load_n(to, __ATOMIC_RELAXED);
    while (was < peak &&
           !__atomic_compare_exchange_n(to, &was, peak, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static inline __attribute__((always_inline)) void draw_tile(form f, job *j, uint64_t index)
{
    const kiln_blend_weights_args *a = j->a;
    const uint32_t tiles_x = kiln_view_tiles_x(a->view);
    const uint32_t px0 = (uint32_t)(index % tiles_x) * KILN_TILE,
                   py0 = (a->row0 + (uint32_t)(index / tiles_x)) * KILN_TILE;
    const uint64_t end = j->starts[index] + a->tile_counts[index];
    uint64_t i = j->starts[index];
    weighed_tile w;
    kiln_group_start(&w.t, a->view, px0, py0);
    start_tile(f, a, &w);
    for (; i < end && a->ranks[i] < a->n && kiln_group_live(&w.t); i++) {
        kiln_group_form g;
        const uint32_t rank = a->ranks[i];
        if (i + AHEAD < end && a->ranks[i + AHEAD] < a->n)
            __builtin_prefetch(&a->splats[a->ranks[i + AHEAD]]);
        if (!kiln_group_form_of(&a->splats[rank], (int32_t)px0, (int32_t)py0, &g)) continue;
        const tile_sums sums = draw_form(f, &g, j->rule, &w);
        if (sums.units) add_weight_units(&a->weights[rank], sums.units);
        if (f != SHARES && a->peaks) raise_peak(&a->peaks[rank], sums.peak);
        if (f == REACHES && sums.alphas) add_weight_units(&a->alphas[rank], sums.alphas);
    }
    if (a->state) leave_tile(a, &w.t);
    while (i < end && a->ranks[i] < a->n) i++; /* what no pixel asked for */
    if (i < end) note_bad_rank(j, i);
}

static void draw_tile_shares(job *j, uint64_t index) { draw_tile(SHARES, j, index); }
static void draw_tile_peaks(job *j, uint64_t index) { draw_tile(PEAKS, j, index); }
static void draw_tile_reaches(job *j, uint64_t index) { draw_tile(REACHES, j, index); }

/* kiln_blend_weights_cpu, kiln_blend_weights_cpu_avx2 */
kiln_status KILN_CPU(blend_weights)(const kiln_exec *x, const kiln_blend_weights_args *a,
                                    void *work, size_t *work_bytes, kiln_error *err)
{
    const kiln_raster_args as_raster = kiln_blend_weights_raster(a);
    KILN_TRY(kiln_raster_check(&as_raster, err));
    const uint64_t tiles = (uint64_t)(a->row1 - a->row0) * kiln_view_tiles_x(a->view);
    kiln_carve c = {.base = work};
    uint64_t *starts = kiln_take(&c, tiles, sizeof *starts);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    if (*work_bytes < c.used)
        return kiln_fail(err, KILN_E_CAP, "blend_weights needs %zu bytes, was given %zu", c.used,
                         *work_bytes);

    uint64_t pairs = 0;
    for (uint64_t i = 0; i < tiles; i++) {
        starts[i] = pairs;
        pairs += a->tile_counts[i];
    }
    if (pairs > a->n_pairs)
        return kiln_violation_fail(KILN_VIOLATION(KILN_VIOLATION_RASTER_PAIRS, pairs), err);
    job j = {.a = a, .starts = starts, .bad = UINT64_MAX};
    j.rule = kiln_blend_rule_of(a->profile);
    void (*const draw)(job *, uint64_t) = a->alphas  ? draw_tile_reaches
                                          : a->peaks ? draw_tile_peaks
                                                     : draw_tile_shares;
#pragma omp parallel for num_threads(x->threads) schedule(dynamic, TILES_AT_A_TIME)
    for (int64_t i = 0; i < (int64_t)tiles; i++) draw(&j, (uint64_t)i);
    return j.bad == UINT64_MAX
               ? KILN_OK
               : kiln_violation_fail(KILN_VIOLATION(KILN_VIOLATION_RASTER_RANK, j.bad), err);
}
