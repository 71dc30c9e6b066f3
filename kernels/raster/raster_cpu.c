/* raster_cpu -- blends tile by tile on the CPU: the definition.
 *
 * A tile keeps the state of its 256 pixels in one struct (6 KiB, first-level cache) and takes its
 * list in batches. A batch copies the values that pixels need of each Gaussian side by side. In
 * vectors it then finds the half rows of the tile that each Gaussian can reach. Half a pixel row is
 * one vector of eight (raster_group_cpu.h). Gaussian by Gaussian the powers of these groups are
 * found; those in which it is drawn, the hits, are kept one behind the other, whichever Gaussian
 * they are of. Whenever there are enough, their exponentials are made and then they are blended, in
 * order: two long loops, whose ends the processor seldom guesses wrong. Groups of which every pixel
 * has stopped are not visited, and a tile ends with its last group. That is asked after each of the
 * long loops; a Gaussian that finds a stopped pixel before leaves it as it is.
 *
 * A pixel's arithmetic is the same whatever is skipped around it. So the picture does not depend on
 * the vector width, the threads or the bands.
 */
#include "kernels/raster/raster.h"

#include "base/carve.h"
#include "kernels/violation.h"
#include "kernels/raster/raster_group_cpu.h"
#include "kernels/raster/raster_math.h"

#include <string.h>

enum {
    BATCH = 32, /* a tile often ends within one, and what was prepared of the rest is lost */
    TILES_AT_A_TIME = 4,
    /* pairs whose Gaussians are fetched before they are asked for: ranks lie anywhere in memory */
    AHEAD = 16,
};

/* What a tile needs of some Gaussians. */
typedef struct {
    _Alignas(kiln_group) float x[BATCH], y[BATCH], a[BATCH], b[BATCH], c[BATCH], power_min[BATCH];
    float opacity[BATCH], depth[BATCH], rgb[BATCH][3];
    uint32_t groups[BATCH], proven[BATCH]; /* as in kiln_group_form */
    uint32_t n;
    bool finite; /* rgb of all are */
} batch;

/* What is drawn, by groups. */
typedef struct {
    _Alignas(kiln_group) float red[KILN_GROUPS][KILN_LANES];
    float green[KILN_GROUPS][KILN_LANES], blue[KILN_GROUPS][KILN_LANES];
    float weight[KILN_GROUPS][KILN_LANES], depth[KILN_GROUPS][KILN_LANES]; /* sum(w), sum(w z) */
} colours;

/* A transmittance is never 0; one that is negative is that of a pixel that has stopped. */
typedef struct {
    kiln_group_tile pixels;
    colours colours;
} tile;

typedef struct {
    const kiln_raster_args *a;
    const uint64_t *starts; /* of each tile's list */
    kiln_blend_rule rule;
    uint64_t bad; /* lowest pair with a rank at or above n; UINT64_MAX: none */
} job;

/* Blends a Gaussian into group `at`. weight is alpha T where it is drawn, else 0 or -0; pixels that
 * stop leave a sign in `stopped`. An infinite colour must not be multiplied by a weight of 0: with
 * `finite` there is none. Sums are never -0, so that adding -0 instead of 0 is the same. */
static inline __attribute__((always_inline)) void
blend_group(const float *restrict rgb, kiln_blend_rule rule, bool finite,
            const float *restrict alphas, float *restrict left_of, colours *restrict c, uint32_t at,
            float *restrict weight, uint32_t *restrict stopped)
{
    const float red_of = rgb[0], green_of = rgb[1], blue_of = rgb[2];
#pragma omp simd
    for (int i = 0; i < KILN_LANES; i++) {
        const float alpha = alphas[i], t = left_of[i], left = t * (1.0f - alpha);
        /* also that of a pixel that has stopped, which is negative */
        const uint32_t ends = kiln_mask_of(left < rule.stop_below);
        const float w = kiln_float_of(kiln_bits_of(alpha * t) & ~ends), red = red_of * w,
                    green = green_of * w, blue = blue_of * w;
        const uint32_t drawn = finite ? UINT32_MAX : kiln_mask_of(w > 0.0f);
        c->red[at][i] += kiln_float_of(kiln_bits_of(red) & drawn);
        c->green[at][i] += kiln_float_of(kiln_bits_of(green) & drawn);
        c->blue[at][i] += kiln_float_of(kiln_bits_of(blue) & drawn);
        left_of[i] = ends ? -fabsf(t) : left;
        weight[i] = w;
        stopped[i] |= ends & ~kiln_bits_of(t);
    }
}

static void blend_depth(float depth, const float *restrict weight, colours *restrict c, uint32_t at)
{
#pragma omp simd
    for (int i = 0; i < KILN_LANES; i++) {
        const float d = depth * weight[i];
        c->weight[at][i] += weight[i];
        c->depth[at][i] += weight[i] > 0.0f ? d : 0.0f;
    }
}

/* Blends all hits and forgets them. */
static inline __attribute__((always_inline)) void blend_hits(const batch *b, kiln_blend_rule rule,
                                                             bool finite, bool with_depth,
                                                             kiln_group_hits *hits, tile *t)
{
    uint32_t stopped[KILN_LANES] = {0}, any = 0;
    float weight[KILN_LANES];
    for (uint32_t h = 0; h < hits->n; h++) {
        const uint32_t at = hits->group[h], of = hits->of[h];
        blend_group(b->rgb[of], rule, finite, hits->power[h], t->pixels.groups[at].t, &t->colours,
                    at, weight, stopped);
        if (with_depth) blend_depth(b->depth[of], weight, &t->colours, at);
    }
    hits->n = 0;
    for (int i = 0; i < KILN_LANES; i++) any |= stopped[i];
    if (any & 0x80000000u) kiln_group_end(&t->pixels);
}

static void draw_hits(const batch *b, kiln_blend_rule rule, bool with_depth, kiln_group_hits *hits,
                      tile *t)
{
    kiln_group_alphas(rule.max_alpha, hits);
    if (b->finite && !with_depth)
        blend_hits(b, rule, true, false, hits, t);
    else
        blend_hits(b, rule, false, with_depth, hits, t);
}

static void draw_batch(const batch *b, kiln_blend_rule rule, bool with_depth, kiln_group_hits *hits,
                       tile *t)
{
    for (uint32_t k = 0; k < b->n; k++) {
        if (!(b->groups[k] & t->pixels.live)) continue;
        const kiln_group_form f = {.x = b->x[k],
                                   .y = b->y[k],
                                   .half_a = kiln_power_half(b->a[k]),
                                   .b = b->b[k],
                                   .half_c = kiln_power_half(b->c[k]),
                                   .power_min = kiln_least_power(b->power_min[k]),
                                   .opacity = b->opacity[k],
                                   .groups = b->groups[k],
                                   .proven = b->proven[k]};
        kiln_group_find(&f, &t->pixels, k, hits);
        if (hits->n >= KILN_HITS_ENOUGH) draw_hits(b, rule, with_depth, hits, t);
    }
    draw_hits(b, rule, with_depth, hits, t);
}

static void add_to_batch(const kiln_splat2d *s, batch *b)
{
    const uint32_t k = b->n++;
    b->x[k] = s->x;
    b->y[k] = s->y;
    b->a[k] = s->conic[0];
    b->b[k] = s->conic[1];
    b->c[k] = s->conic[2];
    b->power_min[k] = s->power_min;
    b->opacity[k] = s->opacity;
    b->depth[k] = s->depth;
    for (int c = 0; c < 3; c++) b->rgb[k][c] = s->rgb[c];
}

/* Finds what follows from the batch's Gaussians. What is behind the last one is computed, too, and
 * not looked at. */
static void prepare_batch(batch *b, int32_t px0, int32_t py0)
{
    const float *const rgb = b->rgb[0];
    uint32_t finite = UINT32_MAX;
#pragma omp simd
    for (uint32_t k = 0; k < BATCH; k++)
        b->groups[k] = kiln_group_reach(b->x[k], b->y[k], b->a[k], b->b[k], b->c[k],
                                        b->power_min[k], px0, py0, &b->proven[k]);
#pragma omp simd reduction(& : finite)
    for (uint32_t k = 0; k < 3 * b->n; k++) finite &= kiln_mask_of(fabsf(rgb[k]) < INFINITY);
    b->finite = finite != 0;
}

/* The pixel of the picture, counted from the first one of the tile rows that are drawn. */
static size_t place_of_pixel(const kiln_raster_args *a, uint32_t px, uint32_t py)
{
    return (size_t)(py - kiln_raster_from(a) * KILN_TILE) * a->view->width + px;
}

/* A pixel of a tile that has started goes on where the slab before left it. */
static void resume_tile(const kiln_raster_args *a, tile *t)
{
    const uint32_t px0 = t->pixels.px0, py0 = t->pixels.py0;
    for (uint32_t py = py0; py < py0 + KILN_TILE && py < a->view->height; py++)
        for (uint32_t px = px0; px < px0 + KILN_TILE && px < a->view->width; px++) {
            const kiln_raster_state *s = &a->state[place_of_pixel(a, px, py)];
            const uint32_t group = kiln_group_at(px - px0, py - py0), i = (px - px0) % KILN_LANES;
            colours *c = &t->colours;
            t->pixels.groups[group].t[i] =
                kiln_state_stopped(s->left) ? s->left : kiln_state_left(s->left);
            c->red[group][i] = s->red;
            c->green[group][i] = s->green;
            c->blue[group][i] = s->blue;
            c->weight[group][i] = s->weight;
            c->depth[group][i] = s->depth;
        }
    kiln_group_end(&t->pixels);
}

static void leave_tile(const kiln_raster_args *a, const tile *t)
{
    const uint32_t px0 = t->pixels.px0, py0 = t->pixels.py0;
    for (uint32_t py = py0; py < py0 + KILN_TILE && py < a->view->height; py++)
        for (uint32_t px = px0; px < px0 + KILN_TILE && px < a->view->width; px++) {
            const uint32_t group = kiln_group_at(px - px0, py - py0), i = (px - px0) % KILN_LANES;
            const colours *c = &t->colours;
            a->state[place_of_pixel(a, px, py)] =
                (kiln_raster_state){.red = c->red[group][i],
                                    .green = c->green[group][i],
                                    .blue = c->blue[group][i],
                                    /* as kiln_state_of */
                                    .left = t->pixels.groups[group].t[i],
                                    .weight = c->weight[group][i],
                                    .depth = c->depth[group][i]};
        }
}

static void write_tile(const kiln_raster_args *a, const tile *t)
{
    const uint32_t px0 = t->pixels.px0, py0 = t->pixels.py0;
    for (uint32_t py = py0; py < py0 + KILN_TILE && py < a->view->height; py++)
        for (uint32_t px = px0; px < px0 + KILN_TILE && px < a->view->width; px++) {
            const uint32_t group = kiln_group_at(px - px0, py - py0), i = (px - px0) % KILN_LANES;
            const colours *c = &t->colours;
            const size_t at = place_of_pixel(a, px, py);
            const float left = fabsf(t->pixels.groups[group].t[i]);
            a->rgba[4 * at] = c->red[group][i] + left * a->background[0];
            a->rgba[4 * at + 1] = c->green[group][i] + left * a->background[1];
            a->rgba[4 * at + 2] = c->blue[group][i] + left * a->background[2];
            a->rgba[4 * at + 3] = 1.0f - left;
            if (a->depth)
                a->depth[at] = kiln_expected_depth(c->weight[group][i], c->depth[group][i]);
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
    const uint32_t px0 = (uint32_t)(index % tiles_x) * KILN_TILE,
                   py0 = (a->row0 + (uint32_t)(index / tiles_x)) * KILN_TILE;
    const uint64_t end = j->starts[index] + a->tile_counts[index];
    uint64_t i = j->starts[index];
    tile t;
    batch b;
    kiln_group_hits hits;
    const bool with_depth = a->depth || a->state;
    kiln_group_start(&t.pixels, a->view, px0, py0);
    memset(&t.colours, 0, sizeof t.colours);
    memset(&b, 0, sizeof b);
    hits.n = 0;
    if (a->state) resume_tile(a, &t);
    while (i < end && kiln_group_live(&t.pixels)) {
        for (b.n = 0; i < end && b.n < BATCH; i++) {
            if (a->ranks[i] >= a->n) {
                note_bad_rank(j, i);
                return;
            }
            if (i + AHEAD < end && a->ranks[i + AHEAD] < a->n)
                __builtin_prefetch(&a->splats[a->ranks[i + AHEAD]]);
            add_to_batch(&a->splats[a->ranks[i]], &b);
        }
        prepare_batch(&b, (int32_t)px0, (int32_t)py0);
        draw_batch(&b, j->rule, with_depth, &hits, &t);
    }
    if (a->state)
        leave_tile(a, &t);
    else
        write_tile(a, &t);
    while (i < end && a->ranks[i] < a->n) i++; /* what no pixel asked for */
    if (i < end) note_bad_rank(j, i);
}

/* kiln_raster_cpu, kiln_raster_cpu_avx2 */
kiln_status KILN_CPU(raster)(const kiln_exec *x, const kiln_raster_args *a, void *work,
                             size_t *work_bytes, kiln_error *err)
{
    KILN_TRY(kiln_raster_check(a, err));
    if (a->fast)
        return kiln_fail(err, KILN_E_INPUT,
                         "raster: only a GPU with enough memory draws fast pictures");
    const uint64_t tiles = (uint64_t)(a->row1 - a->row0) * kiln_view_tiles_x(a->view);
    kiln_carve c = {.base = work};
    uint64_t *starts = kiln_take(&c, tiles, sizeof *starts);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    if (*work_bytes < c.used)
        return kiln_fail(err, KILN_E_CAP, "raster needs %zu bytes of work space, but was given %zu",
                         c.used, *work_bytes);

    uint64_t pairs = 0;
    for (uint64_t i = 0; i < tiles; i++) {
        starts[i] = pairs;
        pairs += a->tile_counts[i];
    }
    if (pairs > a->n_pairs)
        return kiln_violation_fail(KILN_VIOLATION(KILN_VIOLATION_RASTER_PAIRS, pairs), err);
    job j = {.a = a, .starts = starts, .bad = UINT64_MAX};
    j.rule = kiln_blend_rule_of(a->profile);
    const int64_t tiles_x = kiln_view_tiles_x(a->view),
                  first = (kiln_raster_from(a) - a->row0) * tiles_x,
                  end = (kiln_raster_to(a) - a->row0) * tiles_x;
#pragma omp parallel for num_threads(x->threads) schedule(dynamic, TILES_AT_A_TIME)
    for (int64_t i = first; i < end; i++) draw_tile(&j, (uint64_t)i);
    return j.bad == UINT64_MAX
               ? KILN_OK
               : kiln_violation_fail(KILN_VIOLATION(KILN_VIOLATION_RASTER_RANK, j.bad), err);
}
