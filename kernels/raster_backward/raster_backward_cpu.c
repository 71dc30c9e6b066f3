/* raster_backward_cpu -- tile by tile on the CPU: the definition.
 *
 * A tile walks its list front to back once more, with the arithmetic of raster_cpu, half a pixel
 * row at a time (raster_group_cpu.h). What a Gaussian gets from one tile is summed in doubles that
 * hold whole numbers, at most 256 times 2^40, so exactly; then it is added to the sums of all
 * tiles, which are integers. So neither vectors nor threads nor their order show.
 */
#include "kernels/raster_backward/raster_backward.h"

#include "base/carve.h"
#include "kernels/raster/raster_group_cpu.h"
#include "kernels/raster_backward/raster_backward_math.h"
#include "kernels/violation.h"

#include <string.h>

enum { TILES_AT_A_TIME = 2 };

/* What is known of eight pixels side by side. */
typedef struct {
    float rest[KILN_LANES], residual[3][KILN_LANES];
} errors;

typedef struct {
    kiln_group_tile pixels;
    errors errors[KILN_GROUPS];
} tile;

typedef struct {
    const kiln_splat2d *s;
    kiln_group_form form;
    float factors[KILN_BACKWARD_PLANES];
    double sums[KILN_BACKWARD_PLANES][KILN_LANES];
} entry;

typedef struct {
    const kiln_raster_backward_args *a;
    const uint64_t *starts; /* of each tile's list */
    int64_t *sums;          /* [KILN_BACKWARD_PLANES][n_rows] */
    kiln_backward_most most;
    kiln_blend_rule rule;
    uint64_t bad; /* lowest pair with a rank at or above n; UINT64_MAX: none */
} job;

static size_t place_of_rgba(const kiln_raster_backward_args *a, uint32_t px, uint32_t py)
{
    return 4 * ((size_t)(py - a->row0 * KILN_TILE) * a->view->width + px);
}

static kiln_backward_most find_most(const kiln_exec *x, const kiln_raster_backward_args *a)
{
    const int64_t pixels = (int64_t)kiln_raster_backward_pixels(a), n = (int64_t)a->n;
    uint32_t residual = 0, colour = kiln_bits_of(1.0f);
#pragma omp parallel for num_threads(x->threads) reduction(max : residual)
    for (int64_t i = 0; i < pixels; i++) {
        const kiln_backward_pixel p =
            kiln_backward_start(a->rgba + 4 * i, a->target + 4 * i, a->background);
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
    kiln_group_start(&t->pixels, a->view, px0, py0);
    memset(t->errors, 0, sizeof t->errors);
    for (uint32_t py = py0; py < py0 + KILN_TILE && py < a->view->height; py++)
        for (uint32_t px = px0; px < px0 + KILN_TILE && px < a->view->width; px++) {
            errors *e = &t->errors[kiln_group_at(px - px0, py - py0)];
            const uint32_t i = (px - px0) % KILN_LANES;
            const size_t at = place_of_rgba(a, px, py);
            const kiln_backward_pixel p =
                kiln_backward_start(a->rgba + at, a->target + at, a->background);
            for (int k = 0; k < 3; k++) e->residual[k][i] = p.residual[k];
            e->rest[i] = p.rest;
        }
}

/* A whole number, ties to even: exact for less than 2^51. */
static inline double whole(float v)
{
    const double magic = 6755399441055744.0; /* 1.5 2^52 */
    return ((double)v + magic) - magic;
}

/* What the group's pixels do to the Gaussian, and it to them. `wanted`: it is not frozen; a
 * constant, so that of those that are, most often the most, no terms are made. Returns whether a
 * pixel stopped. */
static inline __attribute__((always_inline)) bool
blend_group_backward(entry *restrict e, kiln_blend_rule rule, kiln_group *restrict g,
                     errors *restrict of, float dy, const float *restrict minus_x,
                     const float *restrict power, bool wanted)
{
    const float opacity = e->s->opacity, red = e->s->rgb[0], green = e->s->rgb[1],
                blue = e->s->rgb[2];
    float terms[KILN_BACKWARD_PLANES][KILN_LANES];
    uint32_t stopped = 0;
#pragma omp simd reduction(| : stopped)
    for (int i = 0; i < KILN_LANES; i++) {
        const float raw = opacity * kiln_expf_normal(power[i]),
                    alpha = raw > rule.max_alpha ? rule.max_alpha : raw;
        const float t = g->t[i], left = t * (1.0f - alpha);
        const int shows = kiln_alpha_shows(alpha), ends = left < rule.stop_below,
                  draws = shows & !ends;
        const float residual[3] = {of->residual[0][i], of->residual[1][i], of->residual[2][i]};
        const float w = alpha * t, gd = kiln_backward_dot(residual, red, green, blue);
        const float rest = kiln_fmaf(-w, gd, of->rest[i]);
        if (wanted) {
            const float p = raw > rule.max_alpha ? 0.0f : kiln_backward_power(w, gd, rest, alpha);
            float term[KILN_BACKWARD_PLANES];
            kiln_backward_terms(p, e->form.x + minus_x[i], dy, w, residual, term);
            for (int k = 0; k < KILN_BACKWARD_PLANES; k++) terms[k][i] = draws ? term[k] : 0.0f;
        }
        of->rest[i] = draws ? rest : of->rest[i];
        g->t[i] = draws ? left : shows ? 0.0f : t;
        stopped |= (uint32_t)(shows & ends & (t > 0.0f));
    }
    if (!wanted) return stopped != 0;
    for (int k = 0; k < KILN_BACKWARD_PLANES; k++) {
        const float factor = e->factors[k];
#pragma omp simd
        for (int i = 0; i < KILN_LANES; i++)
            e->sums[k][i] += whole(kiln_backward_limited(terms[k][i], factor));
    }
    return stopped != 0;
}

static void add_sums(const job *j, const entry *e)
{
    for (int k = 0; k < KILN_BACKWARD_PLANES; k++) {
        double sum = 0;
        for (int i = 0; i < KILN_LANES; i++) sum += e->sums[k][i];
        /* cut by project */
        if (k >= KILN_BACKWARD_RED && !(e->s->rgb[k - KILN_BACKWARD_RED] > 0.0f)) continue;
        int64_t *const to = &j->sums[(uint64_t)k * j->a->n_rows + e->s->row];
        const int64_t add = (int64_t)sum;
        if (add == 0) continue;
#pragma omp atomic
        *to += add;
    }
}

/* Does a live pixel of the group have a power? Where none has, the Gaussian changes nothing, and a
 * blend here costs a hundred times this question. */
static bool is_drawn(const kiln_group *restrict g, const float *restrict power)
{
    _Alignas(kiln_group) uint32_t masks[KILN_LANES];
#pragma omp simd
    for (int i = 0; i < KILN_LANES; i++)
        masks[i] = kiln_mask_of(g->t[i] > 0.0f) & kiln_mask_of(power[i] > KILN_POWER_UNDRAWN);
    return kiln_any_of(masks);
}

static void take_splat(const job *j, const kiln_splat2d *s, uint32_t px0, uint32_t py0, tile *t)
{
    const bool wanted = s->row < j->a->n_rows;
    kiln_group_hits hits;
    bool stopped = false;
    entry e;
    if (!kiln_group_form_of(s, (int32_t)px0, (int32_t)py0, &e.form)) return;
    hits.n = 0;
    kiln_group_find(&e.form, &t->pixels, 0, &hits);
    if (hits.n == 0) return;
    e.s = s;
    if (wanted) {
        kiln_backward_factors(kiln_backward_units_of(s->conic, s->power_min, j->most), e.factors);
        memset(e.sums, 0, sizeof e.sums);
    }
    for (uint32_t i = 0; i < hits.n; i++) {
        const uint32_t at = hits.group[i];
        kiln_group *g = &t->pixels.groups[at];
        if (!is_drawn(g, hits.power[i])) continue;
        const float dy = s->y + t->pixels.minus_y[at % KILN_TILE],
                    *minus_x = t->pixels.minus_x[at / KILN_TILE];
        stopped |= wanted ? blend_group_backward(&e, j->rule, g, &t->errors[at], dy, minus_x,
                                                 hits.power[i], true)
                          : blend_group_backward(&e, j->rule, g, &t->errors[at], dy, minus_x,
                                                 hits.power[i], false);
    }
    if (stopped) kiln_group_end(&t->pixels);
    if (wanted) add_sums(j, &e);
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
    const uint32_t px0 = (uint32_t)(index % tiles_x) * KILN_TILE,
                   py0 = (a->row0 + (uint32_t)(index / tiles_x)) * KILN_TILE;
    const uint64_t end = j->starts[index] + a->tile_counts[index];
    tile t;
    for (uint64_t i = j->starts[index]; i < end; i++)
        if (a->ranks[i] >= a->n) {
            note_bad_rank(j, i);
            return;
        }
    if (end == j->starts[index]) return;
    start_tile(a, &t, px0, py0);
    for (uint64_t i = j->starts[index]; i < end && kiln_group_live(&t.pixels); i++)
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
        kiln_backward_factors(kiln_backward_units_of(s->conic, s->power_min, j->most), factors);
        for (uint64_t k = 0; k < KILN_BACKWARD_PLANES; k++)
            a->gradients[k * a->n_rows + s->row] =
                kiln_backward_value(j->sums[k * a->n_rows + s->row], factors[k]);
    }
}

kiln_raster_backward_fn KILN_CPU(raster_backward);

/* kiln_raster_backward_cpu, kiln_raster_backward_cpu_avx2 */
kiln_status KILN_CPU(raster_backward)(const kiln_exec *x, const kiln_raster_backward_args *a,
                                      void *work, size_t *work_bytes, kiln_error *err)
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
        return kiln_fail(err, KILN_E_CAP,
                         "raster_backward needs %zu bytes of work space, but was given %zu", c.used,
                         *work_bytes);

    uint64_t pairs = 0;
    for (uint64_t i = 0; i < tiles; i++) {
        starts[i] = pairs;
        pairs += a->tile_counts[i];
    }
    if (pairs > a->n_pairs)
        return kiln_violation_fail(KILN_VIOLATION(KILN_VIOLATION_RASTER_PAIRS, pairs), err);
    memset(sums, 0, KILN_BACKWARD_PLANES * a->n_rows * sizeof *sums);
    job j = {.a = a, .starts = starts, .sums = sums, .bad = UINT64_MAX};
    j.most = find_most(x, a);
    j.rule = kiln_blend_rule_of(a->profile);
#pragma omp parallel for num_threads(x->threads) schedule(dynamic, TILES_AT_A_TIME)
    for (int64_t i = 0; i < (int64_t)tiles; i++) take_tile(&j, (uint64_t)i);
    write_gradients(x, &j);
    return j.bad == UINT64_MAX
               ? KILN_OK
               : kiln_violation_fail(KILN_VIOLATION(KILN_VIOLATION_RASTER_RANK, j.bad), err);
}
