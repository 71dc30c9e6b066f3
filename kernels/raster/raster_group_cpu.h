/* raster_group_cpu -- the pixels of a tile in groups of eight, and the powers of a Gaussian in them: what raster_cpu.c,
 * raster_backward_cpu.c and blend_weights_cpu.c have in common. For CPU siblings alone; each keeps the rest of its pixels' state in
 * arrays of its own beside the groups.
 *
 * A group is half a pixel row, one vector. A Gaussian is taken in two passes: first the powers of all groups that it may reach
 * (reach_math.h), keeping those in which it is drawn, the hits; then the caller blends hit after hit. Which groups become hits
 * cannot be foreseen, so that a branch on it would cost as much as the blend itself, and blends that follow each other without one
 * overlap.
 *
 * A pixel's power is the same whatever is skipped around it, so neither the vector width nor the compiler's choice shows in the
 * bits.
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

enum { KILN_LANES = 8, KILN_HALVES = KILN_TILE / KILN_LANES, KILN_GROUPS = KILN_HALVES * KILN_TILE };

/* Transmittances of eight pixels side by side. Not above 0: the pixel has stopped, or lies outside of the picture. */
typedef struct {
    _Alignas(sizeof(float) * KILN_LANES) float t[KILN_LANES];
} kiln_group;

typedef struct {
    kiln_group groups[KILN_GROUPS]; /* the left halves of all rows, then the right ones */
    /* 0 - (p + 0.5): exact, so that x + minus_x and y + minus_y have the bits of kiln_power_offset */
    float minus_x[KILN_HALVES][KILN_LANES], minus_y[KILN_TILE];
    uint32_t px0, py0;
    uint32_t live[KILN_HALVES]; /* one bit a row: some pixel of the group has not stopped */
} kiln_group_tile;

/* What a tile needs of one Gaussian to find its powers. */
typedef struct {
    float x, y, half_a, b, half_c, power_min;
    uint32_t rows;                  /* of the tile that it may reach, one bit each */
    uint32_t half_first, half_last; /* ends included */
} kiln_group_form;

/* A group in which a Gaussian is drawn, with the powers of its pixels. */
typedef struct {
    _Alignas(sizeof(float) * KILN_LANES) float power[KILN_LANES];
    uint32_t group; /* in kiln_group_tile.groups */
} kiln_group_hit;

/* ---- masks ---------------------------------------------------------------------------------------------------------------- */
/* Selections by masks: gcc makes branches of ?: here at -O2 and then does not vectorise. */
static inline uint32_t kiln_mask_of(int truth) { return 0u - (uint32_t)truth; }

static inline float kiln_where(uint32_t mask, float yes, float no)
{
    return kiln_float_of((kiln_bits_of(yes) & mask) | (kiln_bits_of(no) & ~mask));
}

/* Is one of a group's masks set? One instruction, which gcc does not find in a loop. masks: aligned as a group is. */
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

/* ---- a tile --------------------------------------------------------------------------------------------------------------- */
/* The group of the pixel in this column and row of the tile; it is element column % KILN_LANES of it. */
static inline uint32_t kiln_group_at(uint32_t column, uint32_t row) { return column / KILN_LANES * KILN_TILE + row; }

/* Begins a tile with nothing drawn. */
static inline void kiln_group_start(kiln_group_tile *t, const kiln_view *v, uint32_t px0, uint32_t py0)
{
    t->px0 = px0;
    t->py0 = py0;
    for (uint32_t row = 0; row < KILN_TILE; row++) t->minus_y[row] = kiln_power_offset(0.0f, py0 + row);
    for (uint32_t half = 0; half < KILN_HALVES; half++) {
        t->live[half] = 0;
        for (uint32_t i = 0; i < KILN_LANES; i++) t->minus_x[half][i] = kiln_power_offset(0.0f, px0 + half * KILN_LANES + i);
        for (uint32_t row = 0; row < KILN_TILE; row++)
            for (uint32_t i = 0; i < KILN_LANES; i++) {
                const bool inside = px0 + half * KILN_LANES + i < v->width && py0 + row < v->height;
                t->groups[half * KILN_TILE + row].t[i] = inside ? 1.0f : -1.0f;
                if (inside) t->live[half] |= 1u << row;
            }
    }
}

static inline bool kiln_group_live(const kiln_group_tile *t) { return (t->live[0] | t->live[1]) != 0; }

/* Takes those of `rows` whose pixels have all stopped from the live ones. */
static inline void kiln_group_end_rows(kiln_group_tile *t, uint32_t rows)
{
    for (uint32_t half = 0; half < KILN_HALVES; half++)
        for (uint32_t left = rows & t->live[half]; left; left &= left - 1) {
            const uint32_t row = (uint32_t)__builtin_ctz(left);
            const kiln_group *g = &t->groups[half * KILN_TILE + row];
            int live = 0;
            for (int i = 0; i < KILN_LANES; i++) live |= g->t[i] > 0.0f;
            if (!live) t->live[half] &= ~(1u << row);
        }
}

/* ---- a Gaussian ----------------------------------------------------------------------------------------------------------- */
/* False when the Gaussian cannot reach the tile that begins at this pixel. */
static inline bool kiln_group_form_of(const kiln_splat2d *s, int32_t px0, int32_t py0, kiln_group_form *f)
{
    const float a = s->conic[0], b = s->conic[1], c = s->conic[2];
    int32_t x0, x1, y0, y1;
    float half_x, half_y;
    kiln_half_reaches(a, b, c, s->power_min, &half_x, &half_y);
    kiln_ask_range(s->y, half_y, py0, py0 + KILN_TILE - 1, &y0, &y1);
    kiln_ask_range(s->x, half_x, px0, px0 + KILN_TILE - 1, &x0, &x1);
    if (y0 > y1 || x0 > x1) return false;
    *f = (kiln_group_form){.x = s->x,
                           .y = s->y,
                           .half_a = kiln_power_half(a),
                           .b = b,
                           .half_c = kiln_power_half(c),
                           .power_min = kiln_least_power(s->power_min),
                           .rows = (2u << (y1 - py0)) - (1u << (y0 - py0)),
                           .half_first = (uint32_t)(x0 - px0) / KILN_LANES,
                           .half_last = (uint32_t)(x1 - px0) / KILN_LANES};
    return true;
}

/* Powers of eight pixels. One that is not drawn gets -32: far too little to show, as opacities are at most 1, and not so little
 * that alpha becomes denormal, which processors are slow with. False when none is drawn. */
static inline bool kiln_group_powers(const kiln_group_form *restrict f, const kiln_group *restrict g, const float *restrict minus_x,
                                     float slope, float base, float *restrict power)
{
    const float x = f->x, half_a = f->half_a, power_min = f->power_min;
    _Alignas(sizeof(float) * KILN_LANES) uint32_t masks[KILN_LANES];
    KILN_GROUP_SIMD
    for (int i = 0; i < KILN_LANES; i++) {
        const float p = kiln_power_at(half_a, slope, base, x + minus_x[i]);
        const uint32_t drawn = kiln_mask_of(p >= power_min) & kiln_mask_of(g->t[i] > 0.0f) & kiln_mask_of(p <= 0.0f);
        power[i] = kiln_where(drawn, p, -32.0f);
        masks[i] = drawn;
    }
    return kiln_any_of(masks);
}

/* Finds the hits among the groups that the Gaussian may reach. hits: room for KILN_GROUPS. Returns how many. */
static inline uint32_t kiln_group_hits(const kiln_group_form *f, const kiln_group_tile *t, kiln_group_hit *hits)
{
    float slope[KILN_TILE], base[KILN_TILE];
    const float y = f->y, b = f->b, half_c = f->half_c;
    uint32_t n = 0;
    KILN_GROUP_SIMD
    for (int row = 0; row < KILN_TILE; row++) {
        const float dy = y + t->minus_y[row];
        slope[row] = kiln_power_slope(b, dy);
        base[row] = kiln_power_base(half_c, dy);
    }
    for (uint32_t half = f->half_first; half <= f->half_last; half++)
        for (uint32_t left = f->rows & t->live[half]; left; left &= left - 1) {
            const uint32_t row = (uint32_t)__builtin_ctz(left);
            hits[n].group = half * KILN_TILE + row;
            n += kiln_group_powers(f, &t->groups[hits[n].group], t->minus_x[half], slope[row], base[row], hits[n].power);
        }
    return n;
}

#endif
