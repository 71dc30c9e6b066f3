/* raster_backward_cpu -- tile by tile on the CPU: the definition.
 *
 * A tile walks its list front to back once more, with the arithmetic of raster_cpu, half a pixel row at a time. What a Gaussian
 * gets from one tile is summed in doubles that hold whole numbers, at most 256 times 2^40, so exactly; then it is added to the sums
 * of all tiles, which are integers. So neither vectors nor threads nor their order show.
 */
#include "kernels/raster_backward/raster_backward.h"

#include "base/carve.h"
#include "kernels/raster_backward/raster_backward_math.h"
#include "kernels/tile_pairs/tile_ask_math.h"
#include "kernels/violation.h"

#include <string.h>

enum { LANES = 8, HALVES = KILN_TILE / LANES, TILES_AT_A_TIME = 2 };

/* Eight pixels side by side. t: transmittance; 0: the pixel has stopped. */
typedef struct {
    float t[LANES], rest[LANES], residual[3][LANES];
} group;

typedef struct {
    group pixels[HALVES][KILN_TILE];
    uint32_t live[HALVES]; /* one bit a row: some pixel of the group has not stopped */
} tile;

typedef struct {
    const kiln_splat2d *s;
    float half_a, half_c, power_min, factors[KILN_BACKWARD_PLANES];
    double sums[KILN_BACKWARD_PLANES][LANES];
} entry;

typedef struct {
    const kiln_raster_backward_args *a;
    const uint64_t *starts; /* of each tile's list */
    int64_t *sums;          /* [KILN_BACKWARD_PLANES][n_rows] */
    kiln_backward_most most;
    kiln_blend_rule rule;
    uint64_t bad; /* lowest pair with a rank at or above n; UINT64_MAX: none */
} job;

static size_t place_of(const kiln_raster_backward_args *a, uint32_t px, uint32_t py)
{
    return 4 * ((size_t)(py - a->row0 * KILN_TILE) * a->view->width + px);
}

static kiln_backward_most find_most(const kiln_exec *x, const kiln_raster_backward_args *a)
{
    const int64_t pixels = (int64_t)kiln_raster_backward_pixels(a), n = (int64_t)a->n;
    uint32_t residual = 0, colour = kiln_bits_of(1.0f);
#pragma omp parallel for num_threads(x->threads) reduction(max : residual)
    for (int64_t i = 0; i < pixels; i++) {
        const kiln_backward_pixel p = kiln_backward_start(a->rgba + 4 * i, a->target + 4 * i, a->background);
        for (int k = 0; k < 3; k++) residual = kiln_most(residual, kiln_magnitude(p.residual[k]));
    }
#pragma omp parallel for num_threads(x->threads) reduction(max : colour)
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) colour = kiln_most(colour, kiln_magnitude(a->splats[i].rgb[k]));
    for (int k = 0; k < 3; k++) colour = kiln_most(colour, kiln_magnitude(a->background[k]));
    return (kiln_backward_most){.residual = residual, .colour = colour};
}

static void start_tile(const kiln_raster_backward_args *a, tile *t, uint32_t px0, uint32_t py0)
{
    memset(t, 0, sizeof *t);
    for (uint32_t half = 0; half < HALVES; half++)
        for (uint32_t row = 0; row < KILN_TILE; row++)
            for (uint32_t i = 0; i < LANES; i++) {
                const uint32_t px = px0 + half * LANES + i, py = py0 + row;
                if (px >= a->view->width || py >= a->view->height) continue;
                group *g = &t->pixels[half][row];
                const size_t at = place_of(a, px, py);
                const kiln_backward_pixel p = kiln_backward_start(a->rgba + at, a->target + at, a->background);
                for (int k = 0; k < 3; k++) g->residual[k][i] = p.residual[k];
                g->rest[i] = p.rest;
                g->t[i] = 1.0f;
                t->live[half] |= 1u << row;
            }
}

/* A whole number, ties to even: exact for less than 2^51. */
static inline double whole(float v)
{
    const double magic = 6755399441055744.0; /* 1.5 2^52 */
    return ((double)v + magic) - magic;
}

/* Powers of eight pixels; those that are not drawn get one that does not show. Returns whether any is drawn. */
static inline bool find_powers(const entry *e, const group *g, float dy, const float *restrict dx, float *restrict power)
{
    const float slope = kiln_power_slope(e->s->conic[1], dy), base = kiln_power_base(e->half_c, dy);
    uint32_t any = 0;
#pragma omp simd reduction(| : any)
    for (int i = 0; i < LANES; i++) {
        const float p = kiln_power_at(e->half_a, slope, base, dx[i]);
        const uint32_t drawn = (uint32_t)(p >= e->power_min) & (uint32_t)(g->t[i] > 0.0f) & (uint32_t)(p <= 0.0f);
        power[i] = drawn ? p : -32.0f;
        any |= drawn;
    }
    return any != 0;
}

/* What the group's pixels do to the Gaussian, and it to them. `wanted`: it is not frozen; a constant, so that of those that are,
 * most often the most, no terms are made. Returns whether a pixel stopped. */
static inline __attribute__((always_inline)) bool blend(entry *restrict e, kiln_blend_rule rule, group *restrict g, float dy,
                                                        const float *restrict dx, const float *restrict power, bool wanted)
{
    const float opacity = e->s->opacity, red = e->s->rgb[0], green = e->s->rgb[1], blue = e->s->rgb[2];
    float terms[KILN_BACKWARD_PLANES][LANES];
    uint32_t stopped = 0;
#pragma omp simd reduction(| : stopped)
    for (int i = 0; i < LANES; i++) {
        const float raw = opacity * kiln_expf_normal(power[i]), alpha = raw > rule.max_alpha ? rule.max_alpha : raw;
        const float t = g->t[i], left = t * (1.0f - alpha);
        const int shows = kiln_alpha_shows(alpha), ends = left < rule.stop_below, draws = shows & !ends;
        const float residual[3] = {g->residual[0][i], g->residual[1][i], g->residual[2][i]};
        const float w = alpha * t, gd = kiln_backward_dot(residual, red, green, blue);
        const float rest = kiln_fmaf(-w, gd, g->rest[i]);
        if (wanted) {
            const float p = raw > rule.max_alpha ? 0.0f : kiln_backward_power(w, gd, rest, alpha);
            float term[KILN_BACKWARD_PLANES];
            kiln_backward_terms(p, dx[i], dy, w, residual, term);
            for (int k = 0; k < KILN_BACKWARD_PLANES; k++) terms[k][i] = draws ? term[k] : 0.0f;
        }
        g->rest[i] = draws ? rest : g->rest[i];
        g->t[i] = draws ? left : shows ? 0.0f : t;
        stopped |= (uint32_t)(shows & ends);
    }
    if (!wanted) return stopped != 0;
    for (int k = 0; k < KILN_BACKWARD_PLANES; k++) {
        const float factor = e->factors[k];
#pragma omp simd
        for (int i = 0; i < LANES; i++) e->sums[k][i] += whole(kiln_backward_limited(terms[k][i], factor));
    }
    return stopped != 0;
}

static bool all_stopped(const group *g)
{
    for (int i = 0; i < LANES; i++)
        if (g->t[i] > 0.0f) return false;
    return true;
}

/* False when the Gaussian cannot reach the tile. Else the rows and halves that it may reach. */
static bool reach(const kiln_splat2d *s, int32_t px0, int32_t py0, uint32_t *rows, uint32_t *half_first, uint32_t *half_last)
{
    int32_t x0, x1, y0, y1;
    float half_x, half_y;
    kiln_half_reaches(s->conic[0], s->conic[1], s->conic[2], s->power_min, &half_x, &half_y);
    kiln_ask_range(s->y, half_y, py0, py0 + KILN_TILE - 1, &y0, &y1);
    kiln_ask_range(s->x, half_x, px0, px0 + KILN_TILE - 1, &x0, &x1);
    if (y0 > y1 || x0 > x1) return false;
    *rows = (2u << (y1 - py0)) - (1u << (y0 - py0));
    *half_first = (uint32_t)(x0 - px0) / LANES;
    *half_last = (uint32_t)(x1 - px0) / LANES;
    return true;
}

static void add_sums(const job *j, const entry *e)
{
    for (int k = 0; k < KILN_BACKWARD_PLANES; k++) {
        double sum = 0;
        for (int i = 0; i < LANES; i++) sum += e->sums[k][i];
        if (k >= KILN_BACKWARD_RED && !(e->s->rgb[k - KILN_BACKWARD_RED] > 0.0f)) continue; /* cut by project */
        int64_t *const to = &j->sums[(uint64_t)k * j->a->n_rows + e->s->row];
        const int64_t add = (int64_t)sum;
        if (add == 0) continue;
#pragma omp atomic
        *to += add;
    }
}

static void take_splat(const job *j, const kiln_splat2d *s, uint32_t px0, uint32_t py0, tile *t)
{
    const bool wanted = s->row < j->a->n_rows;
    uint32_t rows, half_first, half_last;
    entry e;
    if (!reach(s, (int32_t)px0, (int32_t)py0, &rows, &half_first, &half_last)) return;
    e.s = s;
    e.half_a = kiln_power_half(s->conic[0]);
    e.half_c = kiln_power_half(s->conic[2]);
    e.power_min = kiln_least_power(s->power_min);
    if (wanted) {
        kiln_backward_factors(kiln_backward_units_of(s, j->most), e.factors);
        memset(e.sums, 0, sizeof e.sums);
    }
    bool any = false;
    for (uint32_t half = half_first; half <= half_last; half++) {
        float dx[LANES], power[LANES];
        for (uint32_t i = 0; i < LANES; i++) dx[i] = kiln_power_offset(s->x, px0 + half * LANES + i);
        for (uint32_t left = rows & t->live[half]; left; left &= left - 1) {
            const uint32_t row = (uint32_t)__builtin_ctz(left);
            group *g = &t->pixels[half][row];
            const float dy = kiln_power_offset(s->y, py0 + row);
            if (!find_powers(&e, g, dy, dx, power)) continue;
            any = true;
            const bool stopped = wanted ? blend(&e, j->rule, g, dy, dx, power, true) : blend(&e, j->rule, g, dy, dx, power, false);
            if (stopped && all_stopped(g)) t->live[half] &= ~(1u << row);
        }
    }
    if (wanted && any) add_sums(j, &e);
}

static void note_bad_rank(job *j, uint64_t pair)
{
#pragma omp critical(kiln_raster_backward_bad)
    if (pair < j->bad) j->bad = pair;
}

static void take_tile(job *j, uint64_t index)
{
    const kiln_raster_backward_args *a = j->a;
    const uint32_t tiles_x = kiln_view_tiles_x(a->view);
    const uint32_t px0 = (uint32_t)(index % tiles_x) * KILN_TILE, py0 = (a->row0 + (uint32_t)(index / tiles_x)) * KILN_TILE;
    const uint64_t end = j->starts[index] + a->tile_counts[index];
    tile t;
    for (uint64_t i = j->starts[index]; i < end; i++)
        if (a->ranks[i] >= a->n) {
            note_bad_rank(j, i);
            return;
        }
    if (end == j->starts[index]) return;
    start_tile(a, &t, px0, py0);
    for (uint64_t i = j->starts[index]; i < end && (t.live[0] | t.live[1]); i++)
        take_splat(j, &a->splats[a->ranks[i]], px0, py0, &t);
}

static void write_gradients(const kiln_exec *x, const job *j)
{
    const kiln_raster_backward_args *a = j->a;
    memset(a->gradients, 0, KILN_BACKWARD_PLANES * a->n_rows * sizeof *a->gradients);
#pragma omp parallel for num_threads(x->threads)
    for (int64_t i = 0; i < (int64_t)a->n; i++) {
        const kiln_splat2d *s = &a->splats[i];
        float factors[KILN_BACKWARD_PLANES];
        if (s->row >= a->n_rows) continue;
        kiln_backward_factors(kiln_backward_units_of(s, j->most), factors);
        for (uint64_t k = 0; k < KILN_BACKWARD_PLANES; k++)
            a->gradients[k * a->n_rows + s->row] = kiln_backward_value(j->sums[k * a->n_rows + s->row], factors[k]);
    }
}

kiln_raster_backward_fn KILN_CPU(raster_backward);

/* kiln_raster_backward_cpu, kiln_raster_backward_cpu_avx2 */
kiln_status KILN_CPU(raster_backward)(const kiln_exec *x, const kiln_raster_backward_args *a, void *work, size_t *work_bytes,
                                      kiln_error *err)
{
    KILN_TRY(kiln_raster_backward_check(a, err));
    const uint64_t tiles = (uint64_t)(a->row1 - a->row0) * kiln_view_tiles_x(a->view);
    kiln_carve c = {.base = work};
    uint64_t *starts = kiln_take(&c, tiles, sizeof *starts);
    int64_t *sums = kiln_take(&c, KILN_BACKWARD_PLANES * a->n_rows, sizeof *sums);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    if (*work_bytes < c.used)
        return kiln_fail(err, KILN_E_CAP, "raster_backward needs %zu bytes, was given %zu", c.used, *work_bytes);

    uint64_t pairs = 0;
    for (uint64_t i = 0; i < tiles; i++) {
        starts[i] = pairs;
        pairs += a->tile_counts[i];
    }
    if (pairs > a->n_pairs) return kiln_violation_fail(KILN_VIOLATION(KILN_VIOLATION_RASTER_PAIRS, pairs), err);
    memset(sums, 0, KILN_BACKWARD_PLANES * a->n_rows * sizeof *sums);
    job j = {.a = a, .starts = starts, .sums = sums, .bad = UINT64_MAX};
    j.most = find_most(x, a);
    j.rule = kiln_blend_rule_of(a->profile);
#pragma omp parallel for num_threads(x->threads) schedule(dynamic, TILES_AT_A_TIME)
    for (int64_t i = 0; i < (int64_t)tiles; i++) take_tile(&j, (uint64_t)i);
    write_gradients(x, &j);
    return j.bad == UINT64_MAX ? KILN_OK : kiln_violation_fail(KILN_VIOLATION(KILN_VIOLATION_RASTER_RANK, j.bad), err);
}
