/* blend_weights_cpu -- walks the tiles on the CPU: the definition.
 *
 * As raster_cpu.c, without colours: half a pixel row is a vector of eight; first the powers of all that a Gaussian may reach, then
 * the exponentials of those groups that reach the threshold somewhere. A tile adds up a Gaussian's share in 32 bits, as 256 pixels
 * of less than 2^24 each stay below 2^32, and then adds it to the Gaussian's 64 bits, which other tiles add to at the same time.
 */
#include "kernels/blend_weights/blend_weights.h"

#include "base/carve.h"
#include "kernels/blend_weights/blend_weights_math.h"
#include "kernels/math/reach_math.h"
#include "kernels/raster/raster_math.h"
#include "kernels/tile_pairs/tile_ask_math.h"
#include "kernels/violation.h"

#ifdef __AVX__
#include <immintrin.h>
#endif

enum {
    LANES = 8,
    HALVES = KILN_TILE / LANES,
    TILES_AT_A_TIME = 4,
    AHEAD = 16, /* pairs whose Gaussians are fetched before they are asked for */
};

/* The power of a pixel that is not drawn, as in raster_cpu.c: alpha does not show, and is not denormal. */
static const float not_drawn = -32.0f;

/* Eight pixels side by side: transmittance, which is never 0; negative: the pixel has stopped. */
typedef struct {
    _Alignas(sizeof(float) * LANES) float t[LANES];
} group;

typedef struct {
    group pixels[HALVES][KILN_TILE];
    float minus_x[HALVES][LANES], minus_y[KILN_TILE]; /* 0 - (p + 0.5): exact */
    uint32_t py0;
    uint32_t live[HALVES]; /* one bit a row: some pixel of the group has not stopped */
} tile;

/* What a tile needs of one Gaussian. */
typedef struct {
    float x, y, half_a, b, half_c, power_min, opacity;
    uint32_t row_first, row_last, half_first, half_last; /* of the tile, ends included */
} entry;

/* A group that the Gaussian may be drawn into, with the powers of its pixels. */
typedef struct {
    _Alignas(sizeof(float) * LANES) float power[LANES];
    group *g;
} hit;

typedef struct {
    const kiln_blend_weights_args *a;
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

/* Blends eight pixels and adds their shares; pixels that stop leave their sign in `stopped`. */
static inline void blend(float opacity, kiln_blend_rule rule, const float *restrict power, group *restrict g,
                         int32_t *restrict units, uint32_t *restrict stopped)
{
#pragma omp simd
    for (int i = 0; i < LANES; i++) {
        const float alpha = kiln_alpha(opacity, power[i], rule.max_alpha);
        const uint32_t shows = mask_of(kiln_alpha_shows(alpha));
        const float t = g->t[i], left = t * (1.0f - alpha);
        const uint32_t ends = mask_of(left < rule.stop_below), draws = shows & ~ends, sign = shows & ends & 0x80000000u;
        units[i] += kiln_blend_units(where(draws, alpha * t, 0.0f));
        g->t[i] = kiln_float_of(kiln_bits_of(where(draws, left, t)) | sign);
        stopped[i] |= sign;
    }
}

static bool all_stopped(const group *g)
{
    int live = 0;
    for (int i = 0; i < LANES; i++) live |= g->t[i] > 0.0f;
    return !live;
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

/* Blends a Gaussian into its tile. Returns its share: a lane has at most 32 pixels, less than 2^29. */
static uint32_t draw_entry(const entry *e, kiln_blend_rule rule, tile *t)
{
    hit hits[HALVES * KILN_TILE];
    int32_t units[LANES] = {0};
    uint32_t stopped[LANES] = {0}, any = 0, sum = 0;
    const uint32_t rows = (2u << e->row_last) - (1u << e->row_first);
    const uint32_t n = find_hits(e, t, rows, hits);
    for (uint32_t i = 0; i < n; i++) blend(e->opacity, rule, hits[i].power, hits[i].g, units, stopped);
    for (int i = 0; i < LANES; i++) any |= stopped[i], sum += (uint32_t)units[i];
    if (any) end_rows(t, rows);
    return sum;
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
                 .row_first = (uint32_t)(y0 - py0),
                 .row_last = (uint32_t)(y1 - py0),
                 .half_first = (uint32_t)(x0 - px0) / LANES,
                 .half_last = (uint32_t)(x1 - px0) / LANES};
    return true;
}

/* The pixel's state of the view, counted from the first one of these tile rows; NULL: it is outside. */
static kiln_raster_state *state_of(const kiln_blend_weights_args *a, uint32_t px, uint32_t py)
{
    const bool inside = px < a->view->width && py < a->view->height;
    return inside ? &a->state[(size_t)(py - a->row0 * KILN_TILE) * a->view->width + px] : NULL;
}

static float first_left(const kiln_blend_weights_args *a, uint32_t px, uint32_t py)
{
    if (px >= a->view->width || py >= a->view->height) return -1.0f;
    const float left = a->state ? state_of(a, px, py)->left : 1.0f;
    return kiln_state_stopped(left) ? left : kiln_state_left(left);
}

static void start_tile(const kiln_blend_weights_args *a, tile *t, uint32_t px0, uint32_t py0)
{
    *t = (tile){.py0 = py0};
    for (uint32_t row = 0; row < KILN_TILE; row++) t->minus_y[row] = kiln_power_offset(0.0f, py0 + row);
    for (uint32_t half = 0; half < HALVES; half++) {
        for (uint32_t i = 0; i < LANES; i++) t->minus_x[half][i] = kiln_power_offset(0.0f, px0 + half * LANES + i);
        for (uint32_t row = 0; row < KILN_TILE; row++) {
            group *g = &t->pixels[half][row];
            for (uint32_t i = 0; i < LANES; i++) g->t[i] = first_left(a, px0 + half * LANES + i, py0 + row);
            if (!all_stopped(g)) t->live[half] |= 1u << row;
        }
    }
}

static void leave_tile(const kiln_blend_weights_args *a, const tile *t, uint32_t px0)
{
    for (uint32_t half = 0; half < HALVES; half++)
        for (uint32_t row = 0; row < KILN_TILE; row++)
            for (uint32_t i = 0; i < LANES; i++) {
                kiln_raster_state *s = state_of(a, px0 + half * LANES + i, t->py0 + row);
                if (s) s->left = t->pixels[half][row].t[i]; /* as kiln_state_of */
            }
}

static void note_bad_rank(job *j, uint64_t pair)
{
#pragma omp critical(kiln_blend_weights_bad)
    if (pair < j->bad) j->bad = pair;
}

static void add(uint64_t *to, uint32_t units)
{
#pragma omp atomic
    *to += units;
}

static void draw_tile(job *j, uint64_t index)
{
    const kiln_blend_weights_args *a = j->a;
    const uint32_t tiles_x = kiln_view_tiles_x(a->view);
    const uint32_t px0 = (uint32_t)(index % tiles_x) * KILN_TILE, py0 = (a->row0 + (uint32_t)(index / tiles_x)) * KILN_TILE;
    const uint64_t end = j->starts[index] + a->tile_counts[index];
    uint64_t i = j->starts[index];
    tile t;
    start_tile(a, &t, px0, py0);
    for (; i < end && a->ranks[i] < a->n && (t.live[0] | t.live[1]); i++) {
        entry e;
        if (i + AHEAD < end && a->ranks[i + AHEAD] < a->n) __builtin_prefetch(&a->splats[a->ranks[i + AHEAD]]);
        if (!fill_entry(&a->splats[a->ranks[i]], (int32_t)px0, (int32_t)py0, &e)) continue;
        const uint32_t units = draw_entry(&e, j->rule, &t);
        if (units) add(&a->weights[a->ranks[i]], units);
    }
    if (a->state) leave_tile(a, &t, px0);
    while (i < end && a->ranks[i] < a->n) i++; /* what no pixel asked for */
    if (i < end) note_bad_rank(j, i);
}

/* kiln_blend_weights_cpu, kiln_blend_weights_cpu_avx2 */
kiln_status KILN_CPU(blend_weights)(const kiln_exec *x, const kiln_blend_weights_args *a, void *work, size_t *work_bytes,
                                    kiln_error *err)
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
        return kiln_fail(err, KILN_E_CAP, "blend_weights needs %zu bytes, was given %zu", c.used, *work_bytes);

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
