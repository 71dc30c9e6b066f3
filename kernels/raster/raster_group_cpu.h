/* raster_group_cpu -- the pixels of a tile in groups of eight, and the powers of a Gaussian in
 * them: what raster_cpu.c, raster_backward_cpu.c and blend_weights_cpu.c have in common. For CPU
 * siblings alone; each keeps the rest of its pixels' state in arrays of its own beside the groups.
 *
 * A group is half a pixel row, one vector. The work on a list is cut into passes over many groups:
 * the powers of all groups that a Gaussian may reach (reach_math.h), keeping those in which it is
 * drawn, the hits; the hits' alphas; then the caller blends hit after hit. Which groups become hits
 * cannot be foreseen, so that a branch on it would cost as much as the blend itself. An exponential
 * is a long chain of instructions that wait for each other: alone in a pass, those of many hits
 * overlap.
 *
 * A pixel's power is the same whatever is skipped around it, so neither the vector width nor the
 * compiler's choice shows in the bits.
 */
#ifndef KILN_KERNELS_RASTER_GROUP_CPU_H
#define KILN_KERNELS_RASTER_GROUP_CPU_H

#include "kernels/math/reach_math.h"
#include "kernels/raster/raster.h"
#include "kernels/raster/raster_math.h"
#include "kernels/tile_pairs/tile_ask_math.h"

#include <stdbool.h>

#ifdef __AVX__
#include <immintrin.h>
#endif

/* Our build has OpenMP. Without it the header still compiles alone. */
#ifdef _OPENMP
#define KILN_GROUP_SIMD _Pragma("omp simd")
#else
#define KILN_GROUP_SIMD
#endif

enum {
    KILN_LANES = 8,
    KILN_HALVES = KILN_TILE / KILN_LANES,
    KILN_GROUPS = KILN_HALVES * KILN_TILE,
    /* from so many on a caller takes them: 4 KiB with what comes with them */
    KILN_HITS_ENOUGH = 96,
    KILN_HITS = KILN_HITS_ENOUGH + KILN_GROUPS,
};
#define KILN_POWER_UNDRAWN (-32.0f)
_Static_assert(KILN_GROUPS == 32, "the groups of a tile are the bits of a word");

/* Transmittances of eight pixels side by side. Not above 0: the pixel has stopped, or lies outside
 * of the picture. Powers and alphas of such a pixel are found all the same; no Gaussian draws it,
 * as less than any `stop_below` would be left. */
typedef struct {
    _Alignas(sizeof(float) * KILN_LANES) float t[KILN_LANES];
} kiln_group;

typedef struct {
    kiln_group groups[KILN_GROUPS]; /* the left halves of all rows, then the right ones */
    /* 0 - (p + 0.5): exact, so that x + minus_x and y + minus_y have the bits of
     * kiln_power_offset */
    float minus_x[KILN_HALVES][KILN_LANES], minus_y[KILN_TILE];
    uint32_t px0, py0;
    uint32_t live; /* one bit a group: some pixel of it has not stopped */
} kiln_group_tile;

/* What a tile needs of one Gaussian to find its powers. */
typedef struct {
    float x, y, half_a, b, half_c, power_min, opacity;
    uint32_t groups; /* that it may reach, one bit each */
    uint32_t proven; /* not 0: no power of it is above 0 */
} kiln_group_form;

/* Groups in which Gaussians are drawn. */
typedef struct {
    /* of its pixels; after kiln_group_alphas the alphas */
    _Alignas(sizeof(float) * KILN_LANES) float power[KILN_HITS][KILN_LANES];
    float opacity[KILN_HITS];
    uint32_t group[KILN_HITS]; /* in kiln_group_tile.groups */
    uint32_t of[KILN_HITS];    /* the Gaussian, as the caller numbers them */
    uint32_t n;
} kiln_group_hits;

/* ---- masks ----------------------------------------------------------------------------------- */
/* Selections by masks: gcc makes branches of ?: here at -O2 and then does not vectorise. */
static inline uint32_t kiln_mask_of(int truth) { return 0u - (uint32_t)truth; }

static inline float kiln_where(uint32_t mask, float yes, float no)
{
    return kiln_float_of((kiln_bits_of(yes) & mask) | (kiln_bits_of(no) & ~mask));
}

/* Is one of a group's masks set? One instruction, which gcc does not find in a loop. masks: aligned
 * as a group is. */
static inline bool kiln_any_of(const uint32_t *masks)
{
#ifdef __AVX__
    return _mm256_movemask_ps(_mm256_load_ps((const float *)masks)) != 0;
#else
    uint32_t any = 0;
    for (int i = 0; i < KILN_LANES; i++) any |= masks[i];
    return any != 0;
#endif
}

/* ---- a tile ---------------------------------------------------------------------------------- */
/* The group of the pixel in this column and row of the tile; it is element column % KILN_LANES of
 * it. */
static inline uint32_t kiln_group_at(uint32_t column, uint32_t row)
{
    return column / KILN_LANES * KILN_TILE + row;
}

/* Begins a tile with nothing drawn. */
static inline void kiln_group_start(kiln_group_tile *t, const kiln_view *v, uint32_t px0,
                                    uint32_t py0)
{
    t->px0 = px0;
    t->py0 = py0;
    t->live = 0;
    for (uint32_t row = 0; row < KILN_TILE; row++)
        t->minus_y[row] = kiln_power_offset(0.0f, py0 + row);
    for (uint32_t half = 0; half < KILN_HALVES; half++) {
        for (uint32_t i = 0; i < KILN_LANES; i++)
            t->minus_x[half][i] = kiln_power_offset(0.0f, px0 + half * KILN_LANES + i);
        for (uint32_t row = 0; row < KILN_TILE; row++)
            for (uint32_t i = 0; i < KILN_LANES; i++) {
                const bool inside = px0 + half * KILN_LANES + i < v->width && py0 + row < v->height;
                t->groups[half * KILN_TILE + row].t[i] = inside ? 1.0f : -1.0f;
                if (inside) t->live |= 1u << (half * KILN_TILE + row);
            }
    }
}

static inline bool kiln_group_live(const kiln_group_tile *t) { return t->live != 0; }

/* Takes those whose pixels have all stopped from the live groups. */
static inline void kiln_group_end(kiln_group_tile *t)
{
    for (uint32_t left = t->live; left; left &= left - 1) {
        const uint32_t group = (uint32_t)__builtin_ctz(left);
        const kiln_group *g = &t->groups[group];
        _Alignas(kiln_group) uint32_t masks[KILN_LANES];
        for (int i = 0; i < KILN_LANES; i++) masks[i] = kiln_mask_of(g->t[i] > 0.0f);
        if (!kiln_any_of(masks)) t->live &= ~(1u << group);
    }
}

/* ---- a Gaussian ------------------------------------------------------------------------------ */
/* The groups of the tile that begins at this pixel which a Gaussian may reach. Without a branch,
 * for loops over Gaussians. *proven: then its powers are 0 or less (raster_reach.h), as det is at
 * least 2^-10 AC. */
static inline __attribute__((always_inline)) uint32_t
kiln_group_reach(float x, float y, float a, float b, float c, float power_min, int32_t px0,
                 int32_t py0, uint32_t *proven)
{
    float half_x, half_y;
    int32_t x0, x1, y0, y1;
    *proven = kiln_mask_of(kiln_half_reaches(a, b, c, power_min, &half_x, &half_y));
    kiln_ask_range(y, half_y, py0, py0 + KILN_TILE - 1, &y0, &y1);
    kiln_ask_range(x, half_x, px0, px0 + KILN_TILE - 1, &x0, &x1);
    const uint32_t some = kiln_mask_of(y0 <= y1) & kiln_mask_of(x0 <= x1);
    const uint32_t first = (uint32_t)(y0 - py0) & some, last = (uint32_t)(y1 - py0) & some;
    const uint32_t rows = ((2u << last) - (1u << first)) & some;
    return (rows & kiln_mask_of(x0 - px0 < KILN_LANES)) |
           (rows & kiln_mask_of(x1 - px0 >= KILN_LANES)) << KILN_TILE;
}

/* False when the Gaussian cannot reach the tile that begins at this pixel. */
static inline bool kiln_group_form_of(const kiln_splat2d *s, int32_t px0, int32_t py0,
                                      kiln_group_form *f)
{
    const float a = s->conic[0], b = s->conic[1], c = s->conic[2];
    uint32_t proven;
    const uint32_t groups = kiln_group_reach(s->x, s->y, a, b, c, s->power_min, px0, py0, &proven);
    if (!groups) return false;
    *f = (kiln_group_form){.x = s->x,
                           .y = s->y,
                           .half_a = kiln_power_half(a),
                           .b = b,
                           .half_c = kiln_power_half(c),
                           .power_min = kiln_least_power(s->power_min),
                           .opacity = s->opacity,
                           .groups = groups,
                           .proven = proven};
    return true;
}

/* Powers of eight pixels. One that is not drawn gets KILN_POWER_UNDRAWN: far too little to show, as
 * opacities are at most 1, and not so little that alpha becomes denormal, which processors are slow
 * with. False when none is drawn. */
static inline __attribute__((always_inline)) bool
kiln_group_powers(const kiln_group_form *restrict f, bool proven, const float *restrict dx,
                  float slope, float base, float *restrict power)
{
    const float half_a = f->half_a, power_min = f->power_min;
    _Alignas(sizeof(float) * KILN_LANES) uint32_t masks[KILN_LANES];
    KILN_GROUP_SIMD
    for (int i = 0; i < KILN_LANES; i++) {
        const float p = kiln_power_at(half_a, slope, base, dx[i]);
        const uint32_t drawn =
            kiln_mask_of(p >= power_min) & (proven ? UINT32_MAX : kiln_mask_of(p <= 0.0f));
        /* one instruction with AVX, where kiln_where is three */
        power[i] = drawn ? p : KILN_POWER_UNDRAWN;
        masks[i] = drawn;
    }
    return kiln_any_of(masks);
}

static inline __attribute__((always_inline)) void
kiln_group_find_in(const kiln_group_form *f, bool proven, const kiln_group_tile *t, uint32_t of,
                   kiln_group_hits *hits)
{
    _Alignas(kiln_group) float dx[KILN_HALVES][KILN_LANES], slope[KILN_TILE], base[KILN_TILE];
    const float x = f->x, y = f->y, b = f->b, half_c = f->half_c;
    uint32_t n = hits->n;
    KILN_GROUP_SIMD
    for (int row = 0; row < KILN_TILE; row++) {
        const float dy = y + t->minus_y[row];
        slope[row] = kiln_power_slope(b, dy);
        base[row] = kiln_power_base(half_c, dy);
    }
    for (int half = 0; half < KILN_HALVES; half++) {
        KILN_GROUP_SIMD
        for (int i = 0; i < KILN_LANES; i++) dx[half][i] = x + t->minus_x[half][i];
    }
    for (uint32_t left = f->groups & t->live; left; left &= left - 1) {
        const uint32_t group = (uint32_t)__builtin_ctz(left), row = group % KILN_TILE;
        hits->group[n] = group;
        hits->of[n] = of;
        hits->opacity[n] = f->opacity;
        n += kiln_group_powers(f, proven, dx[group / KILN_TILE], slope[row], base[row],
                               hits->power[n]);
    }
    hits->n = n;
}

/* Adds the hits of Gaussian `of` among the groups that it may reach. There must be room for
 * KILN_GROUPS. */
static inline void kiln_group_find(const kiln_group_form *f, const kiln_group_tile *t, uint32_t of,
                                   kiln_group_hits *hits)
{
    if (f->proven)
        kiln_group_find_in(f, true, t, of, hits);
    else
        kiln_group_find_in(f, false, t, of, hits);
}

/* Turns the hits' powers into alphas; 0 where a pixel is not drawn. */
static inline void kiln_group_alphas(float max_alpha, kiln_group_hits *hits)
{
    for (uint32_t h = 0; h < hits->n; h++) {
        const float opacity = hits->opacity[h];
        float *const power = hits->power[h];
        KILN_GROUP_SIMD
        for (int i = 0; i < KILN_LANES; i++) {
            const float alpha = kiln_alpha(opacity, power[i], max_alpha);
            power[i] = kiln_float_of(kiln_bits_of(alpha) & kiln_mask_of(kiln_alpha_shows(alpha)));
        }
    }
}

#endif
