/* tile_box_cpu -- see tile_box.h. Tiles are asked eight at a time, without a branch, so that gcc
 * makes vectors of it: of small boxes one tile of eight Gaussians, of larger ones eight tiles of a
 * row. The few tiles that stay open are settled by their pixels. No answer is a guess, so it does
 * not matter which tiles are asked together. */
#include "kernels/tile_pairs/tile_box.h"

#include "base/minmax.h"
#include "kernels/math/reach_math.h"

enum {
    LANES = 8,
    AHEAD =
        32 /* splats are asked for so long before they are read: in an order they lie anywhere */
};

/* Is a pixel of this tile reached? By definition: by looking at all of them. */
static bool is_reached(const kiln_splat2d *s, const kiln_view *v, uint32_t px0, uint32_t py0)
{
    const float half_a = kiln_power_half(s->conic[0]), half_c = kiln_power_half(s->conic[2]),
                x = s->x, t = s->power_min;
    const uint32_t columns = v->width - px0 < KILN_TILE ? v->width - px0 : KILN_TILE;
    for (uint32_t py = py0; py < py0 + KILN_TILE && py < v->height; py++) {
        const float dy = kiln_power_offset(s->y, py);
        const float slope = kiln_power_slope(s->conic[1], dy), base = kiln_power_base(half_c, dy);
        uint32_t any = 0;
#pragma omp simd reduction(| : any)
        for (uint32_t i = 0; i < KILN_TILE; i++) {
            const float power = kiln_power_at(half_a, slope, base, kiln_power_offset(x, px0 + i));
            any |= (uint32_t)(power >= t) & (uint32_t)(i < columns);
        }
        if (any) return true;
    }
    return false;
}

/* As masks: gcc makes branches of ?: here at -O2 and then does not vectorise. */
static inline uint32_t mask_of(int truth) { return 0u - (uint32_t)truth; }

/* ---- eight tiles ----------------------------------------------------------------------------- */
/* kiln_ask_tile (tile_ask_math.h) cut into what a Gaussian, a column and a row of tiles have for
 * themselves, and what is left for each tile. Each lane has numbers of its own. */
typedef float lanes[LANES];

typedef struct {
    const float *x, *y, *half_a, *b, *half_c, *t;
    const float *minus_b_a, *minus_b_c, *limit; /* -B / A, -B / C; a form above it is missed */
} gaussians;

/* Of columns of tiles along x, of rows of tiles along y. */
typedef struct {
    _Alignas(sizeof(lanes)) lanes first, last; /* centre of the first pixel; pixels behind it */
    /* both, and the point between them that is nearest to the mean, from the mean */
    lanes from, to, near;
    /* where the form is least, along the other axis, at `near` */
    lanes least;
    /* what the form at `near` begins with: columns A/2 e; rows B e, C/2 e^2 */
    lanes linear, square;
} sides;

typedef struct {
    _Alignas(sizeof(lanes)) uint32_t reached[LANES], open[LANES];
} answers;

/* What columns and rows have in common: tiles begin at p0, the last pixel of all is `end`. */
static inline __attribute__((always_inline)) void find_sides(const lanes p0, float end,
                                                             const float *restrict mean,
                                                             const float *restrict minus_ratio,
                                                             sides *restrict s)
{
#pragma omp simd
    for (uint32_t i = 0; i < LANES; i++) {
        s->first[i] = p0[i] + 0.5f;
        s->last[i] = kiln_min_f32(p0[i] + (KILN_TILE - 1), end) - p0[i];
        s->from[i] = s->first[i] - mean[i];
        s->to[i] = (s->first[i] + s->last[i]) - mean[i];
        s->near[i] = kiln_clamp_f32(0.0f, s->from[i], s->to[i]);
        s->least[i] = minus_ratio[i] * s->near[i];
    }
}

static inline __attribute__((always_inline)) void
find_columns(const gaussians *restrict g, const lanes px0, float right, sides *restrict s)
{
    find_sides(px0, right, g->x, g->minus_b_c, s);
#pragma omp simd
    for (uint32_t i = 0; i < LANES; i++) s->linear[i] = g->half_a[i] * s->near[i];
}

static inline __attribute__((always_inline)) void
find_rows(const gaussians *restrict g, const lanes py0, float bottom, sides *restrict s)
{
    find_sides(py0, bottom, g->y, g->minus_b_a, s);
#pragma omp simd
    for (uint32_t i = 0; i < LANES; i++) {
        s->linear[i] = g->b[i] * s->near[i];
        s->square[i] = g->half_c[i] * s->near[i] * s->near[i];
    }
}

/* Adds bit[i] to the answers of lane i. */
static inline __attribute__((always_inline)) void
ask_lanes(const gaussians *restrict g, const sides *restrict column, const sides *restrict row,
          const uint32_t *restrict bit, answers *restrict out)
{
#pragma omp simd
    for (uint32_t i = 0; i < LANES; i++) {
        const float a = g->half_a[i], b = g->b[i], c = g->half_c[i];
        const float ex = column->near[i], ey = row->near[i];
        const float beside_y = kiln_clamp_f32(column->least[i], row->from[i], row->to[i]);
        const float across_x = kiln_clamp_f32(row->least[i], column->from[i], column->to[i]);
        const float beside = ex * (column->linear[i] + b * beside_y) + c * beside_y * beside_y;
        const float across = across_x * (a * across_x + row->linear[i]) + row->square[i];
        const uint32_t is_beside = mask_of(beside < across),
                       missed = mask_of(kiln_min_f32(beside, across) > g->limit[i]);
        const float x = is_beside ? ex : across_x, y = is_beside ? beside_y : ey;
        const float px =
            column->first[i] + kiln_min_f32(kiln_ask_round(x - column->from[i]), column->last[i]);
        const float py =
            row->first[i] + kiln_min_f32(kiln_ask_round(y - row->from[i]), row->last[i]);
        const float dx = g->x[i] - px, dy = g->y[i] - py; /* kiln_power_offset */
        const float power = kiln_power_at(-a, kiln_power_slope(b, dy), kiln_power_base(-c, dy), dx);
        const uint32_t reached = mask_of(power >= g->t[i]);
        out->reached[i] |= bit[i] & reached;
        out->open[i] |= bit[i] & ~(reached | missed);
    }
}

/* ---- boxes ----------------------------------------------------------------------------------- */
static void load(const kiln_splat2d *splats, kiln_tile_batch *k)
{
    for (uint32_t i = 0; i < k->n; i++) {
        const kiln_splat2d *s = &splats[k->id[i]];
        __builtin_prefetch(&splats[k->id[i + AHEAD < k->n ? i + AHEAD : i]]);
        k->x[i] = s->x;
        k->y[i] = s->y;
        k->a[i] = s->conic[0];
        k->b[i] = s->conic[1];
        k->c[i] = s->conic[2];
        k->t[i] = s->power_min;
        k->column[i] = s->tile_x0;
        k->row[i] = s->tile_y0;
        k->w[i] = s->tile_x1;
        k->h[i] = s->tile_y1;
    }
}

static inline int32_t clamp_tile(int32_t v, int32_t lo, int32_t hi)
{
    v = v > lo ? v : lo;
    return v < hi ? v : hi;
}

/* As kiln_find_box, without a branch. The bounds become the box in place. */
static void find_boxes(const kiln_view *v, uint32_t row0, uint32_t row1,
                       kiln_tile_batch *restrict k)
{
    const int32_t tiles_x = (int32_t)kiln_view_tiles_x(v), y_first = (int32_t)row0,
                  y_end = (int32_t)row1;
    const uint32_t n = k->n;
#pragma omp simd
    for (uint32_t i = 0; i < n; i++) {
        const int32_t x0 = clamp_tile(k->column[i], 0, tiles_x),
                      x1 = clamp_tile(k->w[i], 0, tiles_x);
        const int32_t y0 = clamp_tile(k->row[i], y_first, y_end),
                      y1 = clamp_tile(k->h[i], y_first, y_end);
        float half_x, half_y;
        int32_t px0, px1, py0, py1;
        const int proven = kiln_half_reaches(k->a[i], k->b[i], k->c[i], k->t[i], &half_x, &half_y) &
                           (fabsf(k->x[i]) <= 1e9f) & (fabsf(k->y[i]) <= 1e9f);
        kiln_ask_range(k->x[i], half_x, x0 * KILN_TILE, x1 * KILN_TILE - 1, &px0, &px1);
        kiln_ask_range(k->y[i], half_y, y0 * KILN_TILE, y1 * KILN_TILE - 1, &py0, &py1);
        const int32_t column = px0 / KILN_TILE, row = py0 / KILN_TILE;
        const int32_t w = px1 / KILN_TILE - column + 1, h = py1 / KILN_TILE - row + 1;
        const int outside = (x0 >= x1) | (y0 >= y1), nothing = proven & ((px0 > px1) | (py0 > py1));
        const int few = (w <= KILN_TILE_BOX_FEW) & (h <= KILN_TILE_BOX_FEW) &
                        ((uint32_t)w * (uint32_t)h <= KILN_TILE_BOX_FEW);
        int32_t way = few                       ? (h - 1) * KILN_TILE_BOX_FEW + w - 1
                      : w <= KILN_TILE_BOX_WIDE ? KILN_TILES_ROWS
                                                : KILN_TILES_ODD;
        way = proven ? way : KILN_TILES_ODD;
        k->column[i] = column;
        k->row[i] = row;
        k->w[i] = w;
        k->h[i] = h;
        k->way[i] = (uint16_t)((outside | nothing) ? KILN_TILES_NONE : way);
    }
}

/* ---- small boxes ----------------------------------------------------------------------------- */
enum { WAYS = KILN_TILES_ODD + 1 };

/* Puts side by side what has boxes of the same shape: the first `few` that are sorted, and one of
 * them again as often as the last vector may reach beyond. */
static void gather_few(kiln_tile_batch *restrict k, uint32_t few)
{
    const uint32_t n = few > 0 ? few + LANES : 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t at = k->sorted[i < few ? i : 0];
        k->few.x[i] = k->x[at];
        k->few.y[i] = k->y[at];
        k->few.half_a[i] = k->a[at];
        k->few.b[i] = k->b[at];
        k->few.half_c[i] = k->c[at];
        k->few.t[i] = k->t[at];
        k->few.px0[i] = (float)(k->column[at] * KILN_TILE);
        k->few.py0[i] = (float)(k->row[at] * KILN_TILE);
    }
#pragma omp simd
    for (uint32_t i = 0; i < n; i++) {
        k->few.minus_b_a[i] = -(k->few.b[i] / k->few.half_a[i]);
        k->few.minus_b_c[i] = -(k->few.b[i] / k->few.half_c[i]);
        k->few.half_a[i] *= 0.5f;
        k->few.half_c[i] *= 0.5f;
        k->few.limit[i] = kiln_ask_limit(k->few.t[i], k->few.minus_b_a[i], k->few.minus_b_c[i]);
    }
}

/* Settles what has stayed open of Gaussian i of few: tiles of its box, which is w wide. Returns
 * those that are reached. */
static uint32_t settle_open_tiles(const kiln_splat2d *splats, const kiln_view *v,
                                  const kiln_tile_batch *k, uint32_t at, uint32_t open)
{
    const uint32_t w = (uint32_t)k->w[at], column = (uint32_t)k->column[at],
                   row = (uint32_t)k->row[at];
    uint32_t reached = 0;
    for (; open; open &= open - 1) {
        const uint32_t bit = (uint32_t)__builtin_ctz(open);
        if (is_reached(&splats[k->id[at]], v, (column + bit % w) * KILN_TILE,
                       (row + bit / w) * KILN_TILE))
            reached |= 1u << bit;
    }
    return reached;
}

/* Asks the tiles of the first n of eight Gaussians, of which the first is sorted[first], that have
 * boxes of the same shape. */
static void ask_boxes(const kiln_splat2d *splats, const kiln_view *v, uint32_t first, uint32_t n,
                      kiln_tile_batch *k)
{
    const uint32_t w = (uint32_t)k->w[k->sorted[first]], h = (uint32_t)k->h[k->sorted[first]];
    const float right = (float)(v->width - 1), bottom = (float)(v->height - 1);
    const gaussians g = {k->few.x + first,         k->few.y + first,         k->few.half_a + first,
                         k->few.b + first,         k->few.half_c + first,    k->few.t + first,
                         k->few.minus_b_a + first, k->few.minus_b_c + first, k->few.limit + first};
    sides column[KILN_TILE_BOX_FEW], row;
    answers found = {{0}, {0}};
    uint32_t bit = 1;
    for (uint32_t i = 0; i < w; i++) {
        lanes at;
#pragma omp simd
        for (uint32_t j = 0; j < LANES; j++) at[j] = k->few.px0[first + j] + (float)(i * KILN_TILE);
        find_columns(&g, at, right, &column[i]);
    }
    for (uint32_t r = 0; r < h; r++) {
        lanes at;
#pragma omp simd
        for (uint32_t j = 0; j < LANES; j++) at[j] = k->few.py0[first + j] + (float)(r * KILN_TILE);
        find_rows(&g, at, bottom, &row);
        for (uint32_t i = 0; i < w; i++, bit <<= 1) {
            uint32_t bits[LANES];
#pragma omp simd
            for (uint32_t j = 0; j < LANES; j++) bits[j] = bit;
            ask_lanes(&g, &column[i], &row, bits, &found);
        }
    }
    uint32_t open = 0;
#pragma omp simd reduction(| : open)
    for (uint32_t i = 0; i < LANES; i++) open |= found.open[i];
    for (uint32_t i = 0; open && i < n; i++)
        if (found.open[i])
            found.reached[i] |=
                settle_open_tiles(splats, v, k, k->sorted[first + i], found.open[i]);
    for (uint32_t i = 0; i < n; i++) k->tiles[k->sorted[first + i]] = found.reached[i];
}

/* Sets k->sorted. Fills end: where each way ends in it. Neighbours often have the same way, and
 * counts of the same one wait for each other; so the batch is cut into parts with counts of their
 * own. */
static void sort_by_way(kiln_tile_batch *k, uint32_t *end)
{
    enum { PARTS = 4, PART = KILN_TILE_BATCH / PARTS };
    _Static_assert(KILN_TILE_BATCH % PARTS == 0, "whole parts");
    uint32_t next[PARTS][WAYS] = {{0}};
    for (uint32_t i = k->n; i < KILN_TILE_BATCH; i++) k->way[i] = KILN_TILES_NONE;
    for (uint32_t i = 0; i < PART; i++)
        for (uint32_t part = 0; part < PARTS; part++) next[part][k->way[part * PART + i]]++;
    for (uint32_t way = 0, at = 0; way < WAYS; way++) {
        for (uint32_t part = 0; part < PARTS; part++) {
            const uint32_t n = next[part][way];
            next[part][way] = at;
            at += n;
        }
        end[way] = at;
    }
    for (uint32_t i = 0; i < PART; i++)
        for (uint32_t part = 0; part < PARTS; part++) {
            const uint32_t at = part * PART + i;
            k->sorted[next[part][k->way[at]]++] = (uint16_t)at;
        }
}

/* kiln_tile_box_find_cpu, kiln_tile_box_find_cpu_avx2 */
void KILN_CPU(tile_box_find)(const kiln_splat2d *splats, const kiln_view *v, uint32_t row0,
                             uint32_t row1, kiln_tile_batch *k)
{
    uint32_t end[WAYS];
    load(splats, k);
    find_boxes(v, row0, row1, k);
    sort_by_way(k, end);
    gather_few(k, end[KILN_TILES_NONE - 1]);
    for (uint32_t way = 0, first = 0; way < KILN_TILES_NONE; first = end[way++])
        for (; first < end[way]; first += LANES) {
            const uint32_t left = end[way] - first;
            ask_boxes(splats, v, first, left < LANES ? left : LANES, k);
        }
}

/* ---- rows of larger boxes -------------------------------------------------------------------- */
/* The same Gaussian in all lanes. */
typedef struct {
    _Alignas(sizeof(lanes)) lanes x, y, half_a, b, half_c, t, minus_b_a, minus_b_c, limit;
} everywhere;

static void spread(const kiln_splat2d *s, everywhere *restrict e)
{
    const float a = s->conic[0], b = s->conic[1], c = s->conic[2], minus_b_a = -(b / a),
                minus_b_c = -(b / c);
    const float limit =
        /* of the product of both, so their signs do not count */
        kiln_ask_limit(s->power_min, minus_b_a, minus_b_c);
#pragma omp simd
    for (uint32_t i = 0; i < LANES; i++) {
        e->x[i] = s->x;
        e->y[i] = s->y;
        e->half_a[i] = 0.5f * a;
        e->b[i] = b;
        e->half_c[i] = 0.5f * c;
        e->t[i] = s->power_min;
        e->minus_b_a[i] = minus_b_a;
        e->minus_b_c[i] = minus_b_c;
        e->limit[i] = limit;
    }
}

/* Tile columns [column, column + LANES) of a row. Returns bit i: tile i is reached; bit LANES + i:
 * it is open. */
static inline __attribute__((always_inline)) uint32_t ask_row(const gaussians *g,
                                                              const sides *column, const sides *row)
{
    answers found = {{0}, {0}};
    uint32_t bits[LANES], all = 0;
    for (uint32_t i = 0; i < LANES; i++) bits[i] = 1u << i;
    ask_lanes(g, column, row, bits, &found);
#pragma omp simd reduction(| : all)
    for (uint32_t i = 0; i < LANES; i++) all |= found.reached[i] | found.open[i] << LANES;
    return all;
}

/* kiln_tile_box_rows_cpu, kiln_tile_box_rows_cpu_avx2 */
void KILN_CPU(tile_box_rows)(const kiln_splat2d *s, const kiln_view *v, const kiln_tile_box *b,
                             uint64_t *tiles)
{
    const float right = (float)(v->width - 1), bottom = (float)(v->height - 1);
    const uint32_t groups = ((uint32_t)b->w + LANES - 1) / LANES;
    const uint64_t inside = ~0ull >> (64 - b->w);
    everywhere e;
    sides column[KILN_TILE_BOX_WIDE / LANES], row;
    lanes at;
    spread(s, &e);
    const gaussians g = {e.x, e.y, e.half_a, e.b, e.half_c, e.t, e.minus_b_a, e.minus_b_c, e.limit};
    for (uint32_t k = 0; k < groups; k++) {
#pragma omp simd
        for (uint32_t i = 0; i < LANES; i++)
            at[i] = (float)((uint32_t)b->column * KILN_TILE + (k * LANES + i) * KILN_TILE);
        find_columns(&g, at, right, &column[k]);
    }
    for (uint32_t r = 0; r < (uint32_t)b->h; r++) {
        uint64_t open = 0;
        const uint32_t py0 = ((uint32_t)b->row + r) * KILN_TILE;
#pragma omp simd
        for (uint32_t i = 0; i < LANES; i++) at[i] = (float)py0;
        find_rows(&g, at, bottom, &row);
        tiles[r] = 0;
        for (uint32_t k = 0; k < groups; k++) {
            const uint32_t bits = ask_row(&g, &column[k], &row);
            tiles[r] |= (uint64_t)(bits & ((1u << LANES) - 1)) << k * LANES;
            open |= (uint64_t)(bits >> LANES) << k * LANES;
        }
        for (open &= inside; open; open &= open - 1) {
            const uint32_t i = (uint32_t)__builtin_ctzll(open);
            if (is_reached(s, v, ((uint32_t)b->column + i) * KILN_TILE, py0)) tiles[r] |= 1ull << i;
        }
        tiles[r] &= inside;
    }
}
