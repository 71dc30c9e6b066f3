/* tile_rows_cpu -- see tile_rows.h. Marks the tiles that are reached in a bit map. First come the
 * proven intervals of all 16 pixel rows, in one loop that vectorises. Then the few pixels that the
 * proof leaves open are evaluated, only in tiles that are not marked yet. */
#include "kernels/tile_pairs/tile_rows.h"

#include "kernels/tile_pairs/tile_miss_math.h"

#include <string.h>

typedef struct {
    kiln_tile_row at;
    float half_a, half_c;
    kiln_row_span span[KILN_TILE]; /* of the pixel rows at.begin to at.end */
} row_job;

static bool is_marked(const kiln_tile_set *t, int32_t column)
{
    int32_t i = column - t->first;
    return t->bits[i >> 6] >> (i & 63) & 1;
}

static void mark_tiles(kiln_tile_set *t, int32_t first, int32_t last)
{
    int32_t i = first - t->first, j = last - t->first;
    uint64_t from = ~0ull << (i & 63), to = ~0ull >> (63 - (j & 63));
    if (i >> 6 == j >> 6) {
        t->bits[i >> 6] |= from & to;
        return;
    }
    t->bits[i >> 6] |= from;
    for (int32_t w = (i >> 6) + 1; w < j >> 6; w++) t->bits[w] = ~0ull;
    t->bits[j >> 6] |= to;
}

static bool pixel_reached(const kiln_splat2d *s, uint32_t px, uint32_t py)
{
    float dx = kiln_power_offset(s->x, px), dy = kiln_power_offset(s->y, py);
    return kiln_power(s->conic[0], s->conic[1], s->conic[2], dx, dy) >= s->power_min;
}

/* Evaluates the pixels [first, last] of a row, except those of marked tiles.
 */
static void mark_by_pixels(const kiln_splat2d *s, kiln_tile_set *t, int32_t first, int32_t last,
                           uint32_t py)
{
    int32_t px = first;
    while (px <= last) {
        int32_t column = px / KILN_TILE;
        if (!is_marked(t, column)) {
            if (!pixel_reached(s, (uint32_t)px, py)) {
                px++;
                continue;
            }
            mark_tiles(t, column, column);
        }
        px = (column + 1) * KILN_TILE;
    }
}

/* Fills j->span, eight rows at a time: two vectors of doubles. */
static void find_spans(const kiln_splat2d *s, row_job *j)
{
    const float x = s->x, y = s->y, b = s->conic[1], t = s->power_min, half_a = j->half_a,
                half_c = j->half_c;
    const int32_t px0 = j->at.column * KILN_TILE, px1 = j->at.px1;
    for (uint32_t row = j->at.begin & ~7u; row < j->at.end; row += 8) {
        const uint32_t py0 = j->at.py0 + row;
        int32_t spans[4][8];
#pragma omp simd
        for (uint32_t i = 0; i < 8; i++) {
            float dy = kiln_power_offset(y, py0 + i);
            kiln_row_span r = kiln_row_reach(x, half_a, kiln_power_slope(b, dy),
                                             kiln_power_base(half_c, dy), t, px0, px1);
            spans[0][i] = r.sure_first;
            spans[1][i] = r.sure_last;
            spans[2][i] = r.may_first;
            spans[3][i] = r.may_last;
        }
        for (uint32_t i = 0; i < 8; i++)
            j->span[row + i] = (kiln_row_span){spans[0][i], spans[1][i], spans[2][i], spans[3][i]};
    }
}

/* Marks tiles whose nearest pixel is reached. Returns true if every other tile
 * is proven to be missed, so that nothing is left open. */
static bool settle_tiles(const kiln_splat2d *s, const kiln_tile_row *at, kiln_tile_set *t)
{
    bool all = true;
    const kiln_miss_test miss =
        kiln_miss_test_of(s->conic[0], s->conic[1], s->conic[2], s->power_min);
    const double x = (double)s->x - 0.5, y = (double)s->y - 0.5 - (double)at->py0;
    const double dy0 = y - (double)(at->end - 1), dy1 = y - (double)at->begin;
    for (int32_t column = t->first; column < t->first + t->n; column++) {
        const int32_t first = column * KILN_TILE;
        const int32_t last = first + KILN_TILE - 1 < at->px1 ? first + KILN_TILE - 1 : at->px1;
        if (kiln_nearest_reached(s, at, column))
            mark_tiles(t, column, column);
        else
            all = all && kiln_tile_missed(&miss, x - (double)last, x - (double)first, dy0, dy1);
    }
    return all;
}

static void mark_intervals(const kiln_splat2d *s, row_job *j, kiln_tile_set *t)
{
    const uint32_t begin = j->at.begin, end = j->at.end, py0 = j->at.py0;
    if (t->n <= KILN_FEW_TILES && settle_tiles(s, &j->at, t)) return;
    find_spans(s, j);
    for (uint32_t i = begin; i < end; i++) {
        const kiln_row_span *r = &j->span[i];
        if (r->sure_first <= r->sure_last)
            mark_tiles(t, r->sure_first / KILN_TILE, r->sure_last / KILN_TILE);
    }
    for (uint32_t i = begin; i < end; i++) {
        const kiln_row_span *r = &j->span[i];
        if (r->sure_first > r->sure_last) {
            mark_by_pixels(s, t, r->may_first, r->may_last, py0 + i);
            continue;
        }
        mark_by_pixels(s, t, r->may_first, r->sure_first - 1, py0 + i);
        mark_by_pixels(s, t, r->sure_last + 1, r->may_last, py0 + i);
    }
}

/* For Gaussians without proven intervals: goes tile by tile and row by row. Rows
 * that their ends prove to be missed are skipped. */
static void mark_tile_by_tile(const kiln_splat2d *s, const row_job *j, kiln_tile_set *t)
{
    for (int32_t column = t->first; column < t->first + t->n; column++) {
        int32_t first = column * KILN_TILE, last = first + KILN_TILE - 1;
        if (last > j->at.px1) last = j->at.px1;
        for (uint32_t i = j->at.begin; i < j->at.end && !is_marked(t, column); i++) {
            float dy = kiln_power_offset(s->y, j->at.py0 + i);
            if (j->at.reach == KILN_REACH_ENDS &&
                kiln_ends_miss(j->half_a, kiln_power_slope(s->conic[1], dy),
                               kiln_power_base(j->half_c, dy), s->power_min,
                               kiln_power_offset(s->x, (uint32_t)first),
                               kiln_power_offset(s->x, (uint32_t)last)))
                continue;
            mark_by_pixels(s, t, last, last, j->at.py0 + i);
            mark_by_pixels(s, t, first, last, j->at.py0 + i);
        }
    }
}

/* kiln_tile_rows_find_cpu, kiln_tile_rows_find_cpu_avx2 */
void KILN_CPU(tile_rows_find)(const kiln_splat2d *s, const kiln_splat_extent *e, const kiln_view *v,
                              uint32_t tile_row, kiln_tile_set *t)
{
    row_job j; /* most of it is filled only where it is needed */
    j.at = kiln_find_tile_row(s, e, v, tile_row);
    t->first = j.at.column;
    t->n = j.at.n;
    if (t->n == 0) return;
    memset(t->bits, 0, (size_t)((t->n + 63) / 64) * sizeof *t->bits);
    j.half_a = kiln_power_half(s->conic[0]);
    j.half_c = kiln_power_half(s->conic[2]);
    if (j.at.reach == KILN_REACH_INTERVAL)
        mark_intervals(s, &j, t);
    else
        mark_tile_by_tile(s, &j, t);
}
