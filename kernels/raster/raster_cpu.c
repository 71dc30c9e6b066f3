/* raster_cpu -- blends tile by tile on the CPU: the definition.
 *
 * A tile keeps the state of its 256 pixels in one struct (6 KiB, first-level cache) and takes its list in batches: a
 * batch gathers what the pixels need of each Gaussian into a compact array, with the rows and the half rows of the
 * tile that it can reach at all. Then, Gaussian by Gaussian, half a pixel row is one vector of eight, in two passes
 * (raster_group_cpu.h): the powers of all of them, keeping those that reach the threshold somewhere, then their
 * exponentials and blends. Rows of which every pixel has stopped are not visited, and a tile ends with its last row.
 *
 * A pixel's arithmetic is the same whatever is skipped around it, so neither the vector width, nor the threads, nor the
 * bands show in the picture.
 */
#include "kernels/raster/raster.h"

#include "base/carve.h"
#include "kernels/violation.h"
#include "kernels/raster/raster_group_cpu.h"
#include "kernels/raster/raster_math.h"

#include <string.h>

enum {
    BATCH = 128,
    TILES_AT_A_TIME = 4,
    AHEAD = 16, /* pairs whose Gaussians are fetched before they are asked for: ranks lie anywhere in memory */
};

/* What a tile needs of one Gaussian. */
typedef struct {
    kiln_group_form form;
    float opacity, depth, rgb[3];
    bool finite; /* rgb is */
} entry;

/* What is drawn of eight pixels side by side. */
typedef struct {
    _Alignas(kiln_group) float red[KILN_LANES];
    float green[KILN_LANES], blue[KILN_LANES];
    float weight[KILN_LANES], depth[KILN_LANES]; /* sum(w), sum(w z) */
} colours;

/* A transmittance is never 0; one that is negative is that of a pixel that has stopped. */
typedef struct {
    kiln_group_tile pixels;
    colours colours[KILN_GROUPS];
} tile;

typedef struct {
    const kiln_raster_args *a;
    const uint64_t *starts; /* of each tile's list */
    kiln_blend_rule rule;
    uint64_t bad; /* lowest pair with a rank at or above n; UINT64_MAX: none */
} job;

/* weight is alpha T where the Gaussian is drawn, else 0; pixels that stop leave their sign in `stopped`. An infinite colour must
 * not be multiplied by a weight of 0: with `finite` there is none. Sums are never -0, so that adding -0 instead of 0 is the same.
 */
static inline __attribute__((always_inline)) void blend(const entry *restrict e, kiln_blend_rule rule, bool finite,
                                                        const float *restrict power, kiln_group *restrict g, colours *restrict c,
                                                        float *restrict weight, uint32_t *restrict stopped)
{
    const float opacity = e->opacity, red_of = e->rgb[0], green_of = e->rgb[1], blue_of = e->rgb[2];
#pragma omp simd
    for (int i = 0; i < KILN_LANES; i++) {
        const float alpha = kiln_alpha(opacity, power[i], rule.max_alpha);
        const uint32_t shows = kiln_mask_of(kiln_alpha_shows(alpha));
        const float t = g->t[i], left = t * (1.0f - alpha);
        const uint32_t ends = kiln_mask_of(left < rule.stop_below), draws = shows & ~ends, sign = shows & ends & 0x80000000u;
        const float w = kiln_where(draws, alpha * t, 0.0f), red = red_of * w, green = green_of * w, blue = blue_of * w;
        c->red[i] += finite ? red : kiln_where(draws, red, 0.0f);
        c->green[i] += finite ? green : kiln_where(draws, green, 0.0f);
        c->blue[i] += finite ? blue : kiln_where(draws, blue, 0.0f);
        g->t[i] = kiln_float_of(kiln_bits_of(kiln_where(draws, left, t)) | sign);
        weight[i] = w;
        stopped[i] |= sign;
    }
}

static void blend_depth(float depth, const float *restrict weight, colours *restrict c)
{
#pragma omp simd
    for (int i = 0; i < KILN_LANES; i++) {
        const float d = depth * weight[i];
        c->weight[i] += weight[i];
        c->depth[i] += weight[i] > 0.0f ? d : 0.0f;
    }
}

/* Draws into each hit. Returns whether a pixel has stopped. */
static inline __attribute__((always_inline)) bool draw_hits(const entry *e, kiln_blend_rule rule, bool finite, bool with_depth,
                                                            const kiln_group_hit *hits, uint32_t n, tile *t)
{
    uint32_t stopped[KILN_LANES] = {0}, any = 0;
    float weight[KILN_LANES];
    for (uint32_t i = 0; i < n; i++) {
        colours *c = &t->colours[hits[i].group];
        blend(e, rule, finite, hits[i].power, &t->pixels.groups[hits[i].group], c, weight, stopped);
        if (with_depth) blend_depth(e->depth, weight, c);
    }
    for (int i = 0; i < KILN_LANES; i++) any |= stopped[i];
    return any != 0;
}

static inline void draw_entry(const entry *e, kiln_blend_rule rule, tile *t, bool with_depth)
{
    kiln_group_hit hits[KILN_GROUPS];
    bool stopped;
    const uint32_t n = kiln_group_hits(&e->form, &t->pixels, hits);
    if (e->finite && !with_depth)
        stopped = draw_hits(e, rule, true, false, hits, n, t);
    else
        stopped = draw_hits(e, rule, false, with_depth, hits, n, t);
    if (stopped) kiln_group_end_rows(&t->pixels, e->form.rows);
}

/* False when the Gaussian cannot reach the tile. */
static bool fill_entry(const kiln_splat2d *s, int32_t px0, int32_t py0, entry *e)
{
    if (!kiln_group_form_of(s, px0, py0, &e->form)) return false;
    e->opacity = s->opacity;
    e->depth = s->depth;
    for (int k = 0; k < 3; k++) e->rgb[k] = s->rgb[k];
    e->finite = fabsf(s->rgb[0]) < INFINITY && fabsf(s->rgb[1]) < INFINITY && fabsf(s->rgb[2]) < INFINITY;
    return true;
}

/* The pixel of the picture, counted from the first one of the tile rows that are drawn. */
static size_t place_of(const kiln_raster_args *a, uint32_t px, uint32_t py)
{
    return (size_t)(py - kiln_raster_from(a) * KILN_TILE) * a->view->width + px;
}

/* A pixel of a tile that has started goes on where the slab before left it. */
static void resume_tile(const kiln_raster_args *a, tile *t)
{
    const uint32_t px0 = t->pixels.px0, py0 = t->pixels.py0;
    for (uint32_t py = py0; py < py0 + KILN_TILE && py < a->view->height; py++)
        for (uint32_t px = px0; px < px0 + KILN_TILE && px < a->view->width; px++) {
            const kiln_raster_state *s = &a->state[place_of(a, px, py)];
            const uint32_t group = kiln_group_at(px - px0, py - py0), i = (px - px0) % KILN_LANES;
            colours *c = &t->colours[group];
            t->pixels.groups[group].t[i] = kiln_state_stopped(s->left) ? s->left : kiln_state_left(s->left);
            c->red[i] = s->red;
            c->green[i] = s->green;
            c->blue[i] = s->blue;
            c->weight[i] = s->weight;
            c->depth[i] = s->depth;
        }
    kiln_group_end_rows(&t->pixels, UINT32_MAX);
}

static void leave_tile(const kiln_raster_args *a, const tile *t)
{
    const uint32_t px0 = t->pixels.px0, py0 = t->pixels.py0;
    for (uint32_t py = py0; py < py0 + KILN_TILE && py < a->view->height; py++)
        for (uint32_t px = px0; px < px0 + KILN_TILE && px < a->view->width; px++) {
            const uint32_t group = kiln_group_at(px - px0, py - py0), i = (px - px0) % KILN_LANES;
            const colours *c = &t->colours[group];
            a->state[place_of(a, px, py)] = (kiln_raster_state){.red = c->red[i],
                                                                .green = c->green[i],
                                                                .blue = c->blue[i],
                                                                .left = t->pixels.groups[group].t[i], /* as kiln_state_of */
                                                                .weight = c->weight[i],
                                                                .depth = c->depth[i]};
        }
}

static void write_tile(const kiln_raster_args *a, const tile *t)
{
    const uint32_t px0 = t->pixels.px0, py0 = t->pixels.py0;
    for (uint32_t py = py0; py < py0 + KILN_TILE && py < a->view->height; py++)
        for (uint32_t px = px0; px < px0 + KILN_TILE && px < a->view->width; px++) {
            const uint32_t group = kiln_group_at(px - px0, py - py0), i = (px - px0) % KILN_LANES;
            const colours *c = &t->colours[group];
            const size_t at = place_of(a, px, py);
            const float left = fabsf(t->pixels.groups[group].t[i]);
            a->rgba[4 * at] = c->red[i] + left * a->background[0];
            a->rgba[4 * at + 1] = c->green[i] + left * a->background[1];
            a->rgba[4 * at + 2] = c->blue[i] + left * a->background[2];
            a->rgba[4 * at + 3] = 1.0f - left;
            if (a->depth) a->depth[at] = kiln_expected_depth(c->weight[i], c->depth[i]);
        }
}

static void note_bad_rank(job *j, uint64_t pair)
{
#pragma omp critical(kiln_raster_bad)
    if (pair < j->bad) j->bad = pair;
}

static void draw_tile(job *j, uint64_t index)
{
    const kiln_raster_args *a = j->a;
    const uint32_t tiles_x = kiln_view_tiles_x(a->view);
    const uint32_t px0 = (uint32_t)(index % tiles_x) * KILN_TILE, py0 = (a->row0 + (uint32_t)(index / tiles_x)) * KILN_TILE;
    const uint64_t end = j->starts[index] + a->tile_counts[index];
    uint64_t i = j->starts[index];
    tile t;
    entry batch[BATCH];
    const bool with_depth = a->depth || a->state;
    kiln_group_start(&t.pixels, a->view, px0, py0);
    memset(t.colours, 0, sizeof t.colours);
    if (a->state) resume_tile(a, &t);
    while (i < end && kiln_group_live(&t.pixels)) {
        uint32_t n = 0;
        for (; i < end && n < BATCH; i++) {
            if (a->ranks[i] >= a->n) {
                note_bad_rank(j, i);
                return;
            }
            if (i + AHEAD < end && a->ranks[i + AHEAD] < a->n) __builtin_prefetch(&a->splats[a->ranks[i + AHEAD]]);
            n += fill_entry(&a->splats[a->ranks[i]], (int32_t)px0, (int32_t)py0, &batch[n]);
        }
        for (uint32_t k = 0; k < n && kiln_group_live(&t.pixels); k++) draw_entry(&batch[k], j->rule, &t, with_depth);
    }
    if (a->state)
        leave_tile(a, &t);
    else
        write_tile(a, &t);
    while (i < end && a->ranks[i] < a->n) i++; /* what no pixel asked for */
    if (i < end) note_bad_rank(j, i);
}

/* kiln_raster_cpu, kiln_raster_cpu_avx2 */
kiln_status KILN_CPU(raster)(const kiln_exec *x, const kiln_raster_args *a, void *work, size_t *work_bytes, kiln_error *err)
{
    KILN_TRY(kiln_raster_check(a, err));
    if (a->fast) return kiln_fail(err, KILN_E_INPUT, "raster: a fast picture is drawn by a GPU alone, one with room for it");
    const uint64_t tiles = (uint64_t)(a->row1 - a->row0) * kiln_view_tiles_x(a->view);
    kiln_carve c = {.base = work};
    uint64_t *starts = kiln_take(&c, tiles, sizeof *starts);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    if (*work_bytes < c.used) return kiln_fail(err, KILN_E_CAP, "raster needs %zu bytes, was given %zu", c.used, *work_bytes);

    uint64_t pairs = 0;
    for (uint64_t i = 0; i < tiles; i++) {
        starts[i] = pairs;
        pairs += a->tile_counts[i];
    }
    if (pairs > a->n_pairs) return kiln_violation_fail(KILN_VIOLATION(KILN_VIOLATION_RASTER_PAIRS, pairs), err);
    job j = {.a = a, .starts = starts, .bad = UINT64_MAX};
    j.rule = kiln_blend_rule_of(a->profile);
    const int64_t tiles_x = kiln_view_tiles_x(a->view), first = (kiln_raster_from(a) - a->row0) * tiles_x,
                  end = (kiln_raster_to(a) - a->row0) * tiles_x;
#pragma omp parallel for num_threads(x->threads) schedule(dynamic, TILES_AT_A_TIME)
    for (int64_t i = first; i < end; i++) draw_tile(&j, (uint64_t)i);
    return j.bad == UINT64_MAX ? KILN_OK : kiln_violation_fail(KILN_VIOLATION(KILN_VIOLATION_RASTER_RANK, j.bad), err);
}
