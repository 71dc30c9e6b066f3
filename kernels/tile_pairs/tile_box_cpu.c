/* tile_box_cpu -- see tile_box.h. Tiles are asked eight at a time, without a branch, so that gcc makes vectors of it. The one or
 * two tiles of a hundred that stay open are settled by their pixels. No answer is a guess, so it does not matter which tiles are
 * asked together. */
#include "kernels/tile_pairs/tile_box.h"

#include "kernels/math/reach_math.h"

enum { TOGETHER = 8 };

/* Is a pixel of this tile reached? By definition: by looking at all of them. */
static bool is_reached(const kiln_splat2d *s, const kiln_view *v, uint32_t px0, uint32_t py0)
{
    const float half_a = kiln_power_half(s->conic[0]), half_c = kiln_power_half(s->conic[2]), x = s->x, t = s->power_min;
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

/* Tile i begins at pixel (px0[i], py0[i]). Returns bit i: it is reached; of the first n alone. */
static inline uint32_t ask_together(const kiln_splat2d *s, const kiln_asked *g, const kiln_view *v, const float *px0,
                                    const float *py0, uint32_t n)
{
    const kiln_asked q = *g;
    const float right = (float)(v->width - 1), bottom = (float)(v->height - 1);
    uint32_t reached = 0, open = 0;
#pragma omp simd reduction(| : reached, open)
    for (uint32_t i = 0; i < TOGETHER; i++) {
        const float px1 = kiln_min_f32(px0[i] + (KILN_TILE - 1), right), py1 = kiln_min_f32(py0[i] + (KILN_TILE - 1), bottom);
        const kiln_tile_answer answer = kiln_ask_tile(&q, px0[i], px1, py0[i], py1);
        reached |= (uint32_t)(answer == KILN_TILE_REACHED) << i;
        open |= (uint32_t)(answer == KILN_TILE_UNSURE) << i;
    }
    const uint32_t asked = (1u << n) - 1;
    for (uint32_t left = open & asked; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        if (is_reached(s, v, (uint32_t)px0[i], (uint32_t)py0[i])) reached |= 1u << i;
    }
    return reached & asked;
}

/* ---- boxes ---------------------------------------------------------------------------------------------------------------- */
static void load(const kiln_splat2d *splats, kiln_tile_batch *k)
{
    for (uint32_t i = 0; i < k->n; i++) {
        const kiln_splat2d *s = &splats[k->id[i]];
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
static void find_boxes(const kiln_view *v, uint32_t row0, uint32_t row1, kiln_tile_batch *restrict k)
{
    const int32_t tiles_x = (int32_t)kiln_view_tiles_x(v), y_first = (int32_t)row0, y_end = (int32_t)row1;
    const uint32_t n = k->n;
#pragma omp simd
    for (uint32_t i = 0; i < n; i++) {
        const int32_t x0 = clamp_tile(k->column[i], 0, tiles_x), x1 = clamp_tile(k->w[i], 0, tiles_x);
        const int32_t y0 = clamp_tile(k->row[i], y_first, y_end), y1 = clamp_tile(k->h[i], y_first, y_end);
        float half_x, half_y;
        int32_t px0, px1, py0, py1;
        const int proven = kiln_half_reaches(k->a[i], k->b[i], k->c[i], k->t[i], &half_x, &half_y) & (fabsf(k->x[i]) <= 1e9f) &
                           (fabsf(k->y[i]) <= 1e9f);
        kiln_ask_range(k->x[i], half_x, x0 * KILN_TILE, x1 * KILN_TILE - 1, &px0, &px1);
        kiln_ask_range(k->y[i], half_y, y0 * KILN_TILE, y1 * KILN_TILE - 1, &py0, &py1);
        const int32_t column = px0 / KILN_TILE, row = py0 / KILN_TILE;
        const int32_t w = px1 / KILN_TILE - column + 1, h = py1 / KILN_TILE - row + 1;
        const int outside = (x0 >= x1) | (y0 >= y1), nothing = proven & ((px0 > px1) | (py0 > py1));
        const int few = (w <= KILN_TILE_BOX_FEW) & (h <= KILN_TILE_BOX_FEW) & (w * h <= KILN_TILE_BOX_FEW);
        int32_t way = few ? (h - 1) * KILN_TILE_BOX_FEW + w - 1 : w <= KILN_TILE_BOX_WIDE ? KILN_TILES_ROWS : KILN_TILES_ODD;
        way = proven ? way : KILN_TILES_ODD;
        k->column[i] = column;
        k->row[i] = row;
        k->w[i] = w;
        k->h[i] = h;
        k->way[i] = (uint16_t)((outside | nothing) ? KILN_TILES_NONE : way);
    }
}

/* ---- tiles of small boxes ------------------------------------------------------------------------------------------------------
 */
enum { GROUP = 64, WAYS = KILN_TILES_ODD + 1 };

/* Gaussians with boxes of the same shape; those behind the last one up to a whole vector are the last one again. */
typedef struct {
    uint32_t n;
    uint16_t which[GROUP]; /* in the batch */
    float x[GROUP], y[GROUP], a[GROUP], b[GROUP], c[GROUP], t[GROUP], b_a[GROUP], b_c[GROUP];
    float px[GROUP], py[GROUP]; /* first pixel of the box */
    uint32_t reached[GROUP], open[GROUP];
} group;

static void gather(const kiln_tile_batch *k, const uint16_t *which, uint32_t n, group *g)
{
    g->n = (n + TOGETHER - 1) / TOGETHER * TOGETHER;
    for (uint32_t i = 0; i < g->n; i++) {
        const uint32_t at = which[i < n ? i : n - 1];
        g->which[i] = (uint16_t)at;
        g->x[i] = k->x[at];
        g->y[i] = k->y[at];
        g->a[i] = k->a[at];
        g->b[i] = k->b[at];
        g->c[i] = k->c[at];
        g->t[i] = k->t[at];
        g->px[i] = (float)(k->column[at] * KILN_TILE);
        g->py[i] = (float)(k->row[at] * KILN_TILE);
    }
    for (uint32_t i = 0; i < g->n; i++) {
        g->b_a[i] = g->b[i] / g->a[i];
        g->b_c[i] = g->b[i] / g->c[i];
        g->reached[i] = g->open[i] = 0;
    }
}

/* A function of its own: gcc makes no vectors of a loop with a structure declared in its body. */
static inline kiln_tile_answer ask_lane(const group *g, uint32_t i, float px0, float py0, float right, float bottom)
{
    const kiln_asked q = {g->x[i], g->y[i], g->a[i], g->b[i], g->c[i], g->t[i], g->b_a[i], g->b_c[i]};
    const float px1 = kiln_min_f32(px0 + (KILN_TILE - 1), right), py1 = kiln_min_f32(py0 + (KILN_TILE - 1), bottom);
    return kiln_ask_tile(&q, px0, px1, py0, py1);
}

/* Asks the tile in this column and row of all boxes. */
static void ask_all(group *restrict g, uint32_t column, uint32_t row, const kiln_view *v, uint32_t bit)
{
    const float right = (float)(v->width - 1), bottom = (float)(v->height - 1);
    const float x = (float)(column * KILN_TILE), y = (float)(row * KILN_TILE);
#pragma omp simd
    for (uint32_t i = 0; i < g->n; i++) {
        const kiln_tile_answer answer = ask_lane(g, i, g->px[i] + x, g->py[i] + y, right, bottom);
        g->reached[i] |= (uint32_t)(answer == KILN_TILE_REACHED) << bit;
        g->open[i] |= (uint32_t)(answer == KILN_TILE_UNSURE) << bit;
    }
}

/* Settles what has stayed open of the Gaussian in this lane. */
static void settle(const kiln_splat2d *s, const kiln_view *v, group *g, uint32_t lane, uint32_t w)
{
    for (uint32_t left = g->open[lane]; left; left &= left - 1) {
        const uint32_t bit = (uint32_t)__builtin_ctz(left);
        const uint32_t px0 = (uint32_t)g->px[lane] + bit % w * KILN_TILE, py0 = (uint32_t)g->py[lane] + bit / w * KILN_TILE;
        if (is_reached(s, v, px0, py0)) g->reached[lane] |= 1u << bit;
    }
}

static void ask_group(const kiln_splat2d *splats, const kiln_view *v, const uint16_t *which, uint32_t n, kiln_tile_batch *k)
{
    group g;
    const uint32_t w = (uint32_t)k->w[which[0]], h = (uint32_t)k->h[which[0]];
    gather(k, which, n, &g);
    for (uint32_t row = 0; row < h; row++)
        for (uint32_t column = 0; column < w; column++) ask_all(&g, column, row, v, row * w + column);
    for (uint32_t i = 0; i < n; i++) {
        if (g.open[i]) settle(&splats[k->id[g.which[i]]], v, &g, i, w);
        k->tiles[g.which[i]] = g.reached[i];
    }
}

void KILN_CPU(tile_box_find)(const kiln_splat2d *splats, const kiln_view *v, uint32_t row0, uint32_t row1, kiln_tile_batch *k)
{
    uint32_t end[WAYS] = {0}; /* of each way in `sorted` */
    load(splats, k);
    find_boxes(v, row0, row1, k);
    for (uint32_t i = 0; i < k->n; i++) end[k->way[i]]++;
    for (uint32_t way = 0, at = 0; way < WAYS; way++) {
        const uint32_t n = end[way];
        end[way] = at;
        at += n;
    }
    for (uint32_t i = 0; i < k->n; i++) k->sorted[end[k->way[i]]++] = (uint16_t)i;
    for (uint32_t way = 0, first = 0; way < KILN_TILES_NONE; first = end[way++])
        for (; first < end[way]; first += GROUP) {
            const uint32_t left = end[way] - first;
            ask_group(splats, v, k->sorted + first, left < GROUP ? left : GROUP, k);
        }
}

uint64_t KILN_CPU(tile_box_row)(const kiln_splat2d *s, const kiln_asked *g, const kiln_view *v, const kiln_tile_box *b, int32_t row)
{
    uint64_t reached = 0;
    for (int32_t first = 0; first < b->w; first += TOGETHER) {
        float px0[TOGETHER], py0[TOGETHER];
        for (int32_t i = 0; i < TOGETHER; i++) {
            px0[i] = (float)((b->column + first + i) * KILN_TILE);
            py0[i] = (float)(row * KILN_TILE);
        }
        const int32_t left = b->w - first;
        const uint32_t together = left < TOGETHER ? (uint32_t)left : TOGETHER;
        reached |= (uint64_t)ask_together(s, g, v, px0, py0, together) << first;
    }
    return reached;
}
