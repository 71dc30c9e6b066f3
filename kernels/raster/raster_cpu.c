/* raster_cpu -- blends tile by tile on the CPU: the definition.
 *
 * A tile keeps the state of its 256 pixels in one struct (6 KiB, first-level cache) and takes its list in batches: a
 * batch gathers what the pixels need of each Gaussian into a compact array, with the rows and the half rows of the
 * tile that it can reach at all (reach_math.h). Then, Gaussian by Gaussian, half a pixel row is one vector of eight, in
 * two passes: the powers of all of them, keeping those that reach the threshold somewhere, then their exponentials and
 * blends. Which ones reach it cannot be foreseen, so that a branch on it would cost as much as the blend itself, and
 * blends that follow each other without one overlap. Rows of which every pixel has stopped are not visited, and a tile
 * ends with its last row.
 *
 * A pixel's arithmetic is the same whatever is skipped around it, so neither the vector width, nor the threads, nor the
 * bands show in the picture.
 */
#include "kernels/raster/raster.h"

#include "base/carve.h"
#include "kernels/violation.h"
#include "kernels/math/reach_math.h"
#include "kernels/raster/raster_math.h"
#include "kernels/tile_pairs/tile_ask_math.h"

#ifdef __AVX__
#include <immintrin.h>
#endif

enum {
    BATCH = 128,
    LANES = 8,
    HALVES = KILN_TILE / LANES,
    TILES_AT_A_TIME = 4,
    AHEAD = 16, /* pairs whose Gaussians are fetched before they are asked for: ranks lie anywhere in memory */
};

/* The power of a pixel that is not drawn, in place of its own: far too little to show, as opacities are at most 1, and not so
 * little that alpha becomes denormal, which processors are slow with. */
static const float not_drawn = -32.0f;

/* What a tile needs of one Gaussian. */
typedef struct {
    float x, y, half_a, b, half_c, power_min, opacity, depth, rgb[3];
    uint32_t row_first, row_last, half_first, half_last; /* of the tile, ends included */
    bool finite;                                         /* rgb is */
} entry;

/* Eight pixels side by side. */
typedef struct {
    _Alignas(sizeof(float) * LANES) float t[LANES]; /* transmittance, which is never 0; negative: the pixel has stopped */
    float red[LANES], green[LANES], blue[LANES];
    float weight[LANES], depth[LANES]; /* sum(w), sum(w z) */
} group;

typedef struct {
    group pixels[HALVES][KILN_TILE];
    /* 0 - (p + 0.5): exact, so that x + minus_x and y + minus_y have the bits of kiln_power_offset */
    float minus_x[HALVES][LANES], minus_y[KILN_TILE];
    uint32_t py0;
    uint32_t live[HALVES]; /* one bit a row: some pixel of the group has not stopped */
} tile;

typedef struct {
    const kiln_raster_args *a;
    const uint64_t *starts; /* of each tile's list */
    kiln_blend_rule rule;
    uint64_t bad; /* lowest pair with a rank at or above n; UINT64_MAX: none */
} job;

/* Selections by masks: gcc makes branches of ?: here at -O2 and then does not vectorise. */
static inline uint32_t mask_of(int truth) { return 0u - (uint32_t)truth; }

static inline float where(uint32_t mask, float yes, float no)
{
    return kiln_float_of((kiln_bits_of(yes) & mask) | (kiln_bits_of(no) & ~mask));
}

/* Is a mask set? One instruction, which gcc does not find in a loop. */
static inline bool any_of(const uint32_t *masks)
{
#ifdef __AVX__
    return _mm256_movemask_ps(_mm256_load_ps((const float *)masks)) != 0;
#else
    uint32_t any = 0;
    for (int i = 0; i < LANES; i++) any |= masks[i];
    return any != 0;
#endif
}

/* Powers of eight pixels. False when none is drawn. */
static inline bool find_powers(const entry *restrict e, const group *restrict g, const float *restrict minus_x, float slope,
                               float base, float *restrict power)
{
    const float x = e->x, half_a = e->half_a, power_min = e->power_min;
    _Alignas(sizeof(float) * LANES) uint32_t masks[LANES];
#pragma omp simd
    for (int i = 0; i < LANES; i++) {
        const float p = kiln_power_at(half_a, slope, base, x + minus_x[i]);
        const uint32_t drawn = mask_of(p >= power_min) & mask_of(g->t[i] > 0.0f) & mask_of(p <= 0.0f);
        power[i] = where(drawn, p, not_drawn);
        masks[i] = drawn;
    }
    return any_of(masks);
}

/* weight is alpha T where the Gaussian is drawn, else 0; pixels that stop leave their sign in `stopped`. An infinite colour must
 * not be multiplied by a weight of 0: with `finite` there is none. Sums are never -0, so that adding -0 instead of 0 is the same.
 */
static inline __attribute__((always_inline)) void blend(const entry *restrict e, kiln_blend_rule rule, bool finite,
                                                        const float *restrict power, group *restrict g, float *restrict weight,
                                                        uint32_t *restrict stopped)
{
    const float opacity = e->opacity, red_of = e->rgb[0], green_of = e->rgb[1], blue_of = e->rgb[2];
#pragma omp simd
    for (int i = 0; i < LANES; i++) {
        const float alpha = kiln_alpha(opacity, power[i], rule.max_alpha);
        const uint32_t shows = mask_of(kiln_alpha_shows(alpha));
        const float t = g->t[i], left = t * (1.0f - alpha);
        const uint32_t ends = mask_of(left < rule.stop_below), draws = shows & ~ends, sign = shows & ends & 0x80000000u;
        const float w = where(draws, alpha * t, 0.0f), red = red_of * w, green = green_of * w, blue = blue_of * w;
        g->red[i] += finite ? red : where(draws, red, 0.0f);
        g->green[i] += finite ? green : where(draws, green, 0.0f);
        g->blue[i] += finite ? blue : where(draws, blue, 0.0f);
        g->t[i] = kiln_float_of(kiln_bits_of(where(draws, left, t)) | sign);
        weight[i] = w;
        stopped[i] |= sign;
    }
}

static void blend_depth(float depth, const float *restrict weight, group *restrict g)
{
#pragma omp simd
    for (int i = 0; i < LANES; i++) {
        const float d = depth * weight[i];
        g->weight[i] += weight[i];
        g->depth[i] += weight[i] > 0.0f ? d : 0.0f;
    }
}

static bool all_stopped(const group *g)
{
    int live = 0;
    for (int i = 0; i < LANES; i++) live |= g->t[i] > 0.0f;
    return !live;
}

/* A group in which the Gaussian shows, with the powers of its pixels. */
typedef struct {
    _Alignas(sizeof(float) * LANES) float power[LANES];
    group *g;
} hit;

/* The hits among the entry's rows and halves. */
static inline uint32_t find_hits(const entry *e, tile *t, uint32_t rows, hit *hits)
{
    float slope[KILN_TILE], base[KILN_TILE];
    const float y = e->y, b = e->b, half_c = e->half_c;
    uint32_t n = 0;
#pragma omp simd
    for (int row = 0; row < KILN_TILE; row++) {
        const float dy = y + t->minus_y[row];
        slope[row] = kiln_power_slope(b, dy);
        base[row] = kiln_power_base(half_c, dy);
    }
    for (uint32_t half = e->half_first; half <= e->half_last; half++)
        for (uint32_t left = rows & t->live[half]; left; left &= left - 1) {
            const uint32_t row = (uint32_t)__builtin_ctz(left);
            hits[n].g = &t->pixels[half][row];
            n += find_powers(e, hits[n].g, t->minus_x[half], slope[row], base[row], hits[n].power);
        }
    return n;
}

/* Takes rows whose pixels have all stopped from those that are live. */
static void end_rows(tile *t, uint32_t rows)
{
    for (uint32_t half = 0; half < HALVES; half++)
        for (uint32_t left = rows & t->live[half]; left; left &= left - 1) {
            const uint32_t row = (uint32_t)__builtin_ctz(left);
            if (all_stopped(&t->pixels[half][row])) t->live[half] &= ~(1u << row);
        }
}

/* Draws into each hit. Returns whether a pixel has stopped. */
static inline __attribute__((always_inline)) bool draw_hits(const entry *e, kiln_blend_rule rule, bool finite, bool with_depth,
                                                            const hit *hits, uint32_t n)
{
    uint32_t stopped[LANES] = {0}, any = 0;
    float weight[LANES];
    for (uint32_t i = 0; i < n; i++) {
        blend(e, rule, finite, hits[i].power, hits[i].g, weight, stopped);
        if (with_depth) blend_depth(e->depth, weight, hits[i].g);
    }
    for (int i = 0; i < LANES; i++) any |= stopped[i];
    return any != 0;
}

static inline void draw_entry(const entry *e, kiln_blend_rule rule, tile *t, bool with_depth)
{
    hit hits[HALVES * KILN_TILE];
    bool stopped;
    const uint32_t rows = (2u << e->row_last) - (1u << e->row_first);
    const uint32_t n = find_hits(e, t, rows, hits);
    if (e->finite && !with_depth)
        stopped = draw_hits(e, rule, true, false, hits, n);
    else
        stopped = draw_hits(e, rule, false, with_depth, hits, n);
    if (stopped) end_rows(t, rows);
}

/* False when the Gaussian cannot reach the tile. */
static bool fill_entry(const kiln_splat2d *s, int32_t px0, int32_t py0, entry *e)
{
    const float a = s->conic[0], b = s->conic[1], c = s->conic[2];
    int32_t x0, x1, y0, y1;
    float half_x, half_y;
    kiln_half_reaches(a, b, c, s->power_min, &half_x, &half_y);
    kiln_ask_range(s->y, half_y, py0, py0 + KILN_TILE - 1, &y0, &y1);
    kiln_ask_range(s->x, half_x, px0, px0 + KILN_TILE - 1, &x0, &x1);
    if (y0 > y1 || x0 > x1) return false;
    *e = (entry){.x = s->x,
                 .y = s->y,
                 .half_a = kiln_power_half(a),
                 .b = b,
                 .half_c = kiln_power_half(c),
                 .power_min = kiln_least_power(s->power_min),
                 .opacity = s->opacity,
                 .depth = s->depth,
                 .rgb = {s->rgb[0], s->rgb[1], s->rgb[2]}};
    e->row_first = (uint32_t)(y0 - py0);
    e->row_last = (uint32_t)(y1 - py0);
    e->half_first = (uint32_t)(x0 - px0) / LANES;
    e->half_last = (uint32_t)(x1 - px0) / LANES;
    e->finite = fabsf(s->rgb[0]) < INFINITY && fabsf(s->rgb[1]) < INFINITY && fabsf(s->rgb[2]) < INFINITY;
    return true;
}

static void start_tile(tile *t, const kiln_view *v, uint32_t px0, uint32_t py0)
{
    *t = (tile){.py0 = py0};
    for (uint32_t row = 0; row < KILN_TILE; row++) t->minus_y[row] = kiln_power_offset(0.0f, py0 + row);
    for (uint32_t half = 0; half < HALVES; half++)
        for (uint32_t i = 0; i < LANES; i++) t->minus_x[half][i] = kiln_power_offset(0.0f, px0 + half * LANES + i);
    for (uint32_t half = 0; half < HALVES; half++)
        for (uint32_t row = 0; row < KILN_TILE; row++)
            for (uint32_t i = 0; i < LANES; i++) {
                const bool inside = px0 + half * LANES + i < v->width && py0 + row < v->height;
                t->pixels[half][row].t[i] = inside ? 1.0f : -1.0f;
                if (inside) t->live[half] |= 1u << row;
            }
}

/* The pixel of the picture, counted from the first one of these tile rows. */
static size_t place_of(const kiln_raster_args *a, uint32_t px, uint32_t py)
{
    return (size_t)(py - a->row0 * KILN_TILE) * a->view->width + px;
}

/* A pixel of a tile that has started goes on where the slab before left it. */
static void resume_tile(const kiln_raster_args *a, tile *t, uint32_t px0)
{
    for (uint32_t half = 0; half < HALVES; half++)
        for (uint32_t row = 0; row < KILN_TILE; row++) {
            group *g = &t->pixels[half][row];
            for (uint32_t i = 0; i < LANES; i++) {
                if (px0 + half * LANES + i >= a->view->width || t->py0 + row >= a->view->height) continue;
                const kiln_raster_state *s = &a->state[place_of(a, px0 + half * LANES + i, t->py0 + row)];
                g->red[i] = s->red;
                g->green[i] = s->green;
                g->blue[i] = s->blue;
                g->t[i] = kiln_state_stopped(s->left) ? s->left : kiln_state_left(s->left);
                g->weight[i] = s->weight;
                g->depth[i] = s->depth;
            }
            if (all_stopped(g)) t->live[half] &= ~(1u << row);
        }
}

static void leave_tile(const kiln_raster_args *a, const tile *t, uint32_t px0)
{
    for (uint32_t py = t->py0; py < t->py0 + KILN_TILE && py < a->view->height; py++)
        for (uint32_t px = px0; px < px0 + KILN_TILE && px < a->view->width; px++) {
            const group *g = &t->pixels[(px - px0) / LANES][py - t->py0];
            const uint32_t i = (px - px0) % LANES;
            a->state[place_of(a, px, py)] = (kiln_raster_state){.red = g->red[i],
                                                                .green = g->green[i],
                                                                .blue = g->blue[i],
                                                                .left = g->t[i], /* as kiln_state_of */
                                                                .weight = g->weight[i],
                                                                .depth = g->depth[i]};
        }
}

static void write_tile(const kiln_raster_args *a, const tile *t, uint32_t px0)
{
    for (uint32_t py = t->py0; py < t->py0 + KILN_TILE && py < a->view->height; py++)
        for (uint32_t px = px0; px < px0 + KILN_TILE && px < a->view->width; px++) {
            const group *g = &t->pixels[(px - px0) / LANES][py - t->py0];
            const uint32_t i = (px - px0) % LANES;
            const size_t at = place_of(a, px, py);
            const float left = fabsf(g->t[i]);
            a->rgba[4 * at] = g->red[i] + left * a->background[0];
            a->rgba[4 * at + 1] = g->green[i] + left * a->background[1];
            a->rgba[4 * at + 2] = g->blue[i] + left * a->background[2];
            a->rgba[4 * at + 3] = 1.0f - left;
            if (a->depth) a->depth[at] = kiln_expected_depth(g->weight[i], g->depth[i]);
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
    start_tile(&t, a->view, px0, py0);
    if (a->state) resume_tile(a, &t, px0);
    while (i < end && (t.live[0] | t.live[1])) {
        uint32_t n = 0;
        for (; i < end && n < BATCH; i++) {
            if (a->ranks[i] >= a->n) {
                note_bad_rank(j, i);
                return;
            }
            if (i + AHEAD < end && a->ranks[i + AHEAD] < a->n) __builtin_prefetch(&a->splats[a->ranks[i + AHEAD]]);
            n += fill_entry(&a->splats[a->ranks[i]], (int32_t)px0, (int32_t)py0, &batch[n]);
        }
        for (uint32_t k = 0; k < n && (t.live[0] | t.live[1]); k++) draw_entry(&batch[k], j->rule, &t, with_depth);
    }
    if (a->state)
        leave_tile(a, &t, px0);
    else
        write_tile(a, &t, px0);
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
#pragma omp parallel for num_threads(x->threads) schedule(dynamic, TILES_AT_A_TIME)
    for (int64_t i = 0; i < (int64_t)tiles; i++) draw_tile(&j, (uint64_t)i);
    return j.bad == UINT64_MAX ? KILN_OK : kiln_violation_fail(KILN_VIOLATION(KILN_VIOLATION_RASTER_RANK, j.bad), err);
}
