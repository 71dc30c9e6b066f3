/* tile_box_cpu -- see tile_box.h. Tiles are asked eight at a time, without a branch, so that gcc makes vectors of it. The one or
 * two tiles of a hundred that stay open are settled by their pixels. No answer is a guess, so it does not matter which tiles are
 * asked together. */
#include "kernels/tile_pairs/tile_box.h"

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

uint32_t KILN_CPU(tile_box_few)(const kiln_splat2d *s, const kiln_view *v, const kiln_tile_box *b)
{
    const kiln_asked g = kiln_ask_of(s);
    const uint32_t w = (uint32_t)b->w, n = w * (uint32_t)b->h;
    const uint32_t part = (256 + w - 1) / w; /* i * part / 256 is i / w, for i and w up to 16 */
    uint32_t reached = 0;
    for (uint32_t first = 0; first < n; first += TOGETHER) {
        float px0[TOGETHER], py0[TOGETHER];
        for (uint32_t i = 0; i < TOGETHER; i++) {
            const uint32_t row = (first + i) * part >> 8, column = first + i - row * w;
            px0[i] = (float)((b->column + (int32_t)column) * KILN_TILE);
            py0[i] = (float)((b->row + (int32_t)row) * KILN_TILE);
        }
        const uint32_t left = n - first, together = left < TOGETHER ? left : TOGETHER;
        reached |= ask_together(s, &g, v, px0, py0, together) << first;
    }
    return reached;
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
