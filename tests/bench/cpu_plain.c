/* cpu_plain -- see cpu_plain.h. */
#include "tests/bench/cpu_plain.h"

#include "kernels/raster/raster_math.h"

typedef struct {
    const kiln_raster_args *a;
    kiln_blend_rule rule;
} plain;

static void draw_pixel(const plain *p, uint32_t px, uint32_t py, const uint32_t *ranks, uint32_t n, cpu_plain_counts *counts)
{
    const kiln_raster_args *a = p->a;
    float t = 1.0f, rgb[3] = {0, 0, 0};
    for (uint32_t i = 0; i < n; i++) {
        const kiln_splat2d *s = &a->splats[ranks[i]];
        const float dx = kiln_power_offset(s->x, px), dy = kiln_power_offset(s->y, py);
        const float power = kiln_power(s->conic[0], s->conic[1], s->conic[2], dx, dy);
        counts->evaluated++;
        if (!(power >= kiln_least_power(s->power_min) && power <= 0.0f)) continue;
        const float alpha = kiln_alpha(s->opacity, power, p->rule.max_alpha);
        if (!kiln_alpha_shows(alpha)) continue;
        const float left = t * (1.0f - alpha), weight = alpha * t;
        if (left < p->rule.stop_below) break;
        for (int c = 0; c < 3; c++) rgb[c] += s->rgb[c] * weight;
        t = left;
        counts->drawn++;
    }
    float *out = &a->rgba[4 * ((size_t)(py - a->row0 * KILN_TILE) * a->view->width + px)];
    for (int c = 0; c < 3; c++) out[c] = rgb[c] + t * a->background[c];
    out[3] = 1.0f - t;
}

static cpu_plain_counts draw_tile(const plain *p, uint64_t tile, const uint32_t *ranks)
{
    const kiln_raster_args *a = p->a;
    const uint32_t tiles_x = kiln_view_tiles_x(a->view);
    const uint32_t px0 = (uint32_t)(tile % tiles_x) * KILN_TILE, py0 = (a->row0 + (uint32_t)(tile / tiles_x)) * KILN_TILE;
    cpu_plain_counts counts = {0, 0};
    for (uint32_t py = py0; py < py0 + KILN_TILE && py < a->view->height; py++)
        for (uint32_t px = px0; px < px0 + KILN_TILE && px < a->view->width; px++)
            draw_pixel(p, px, py, ranks, a->tile_counts[tile], &counts);
    return counts;
}

cpu_plain_counts cpu_plain_raster(const kiln_raster_args *a, const uint64_t *starts, unsigned threads)
{
    const plain p = {.a = a, .rule = kiln_blend_rule_of(a->profile)};
    const int64_t tiles = (int64_t)(a->row1 - a->row0) * kiln_view_tiles_x(a->view);
    uint64_t evaluated = 0, drawn = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 4) reduction(+ : evaluated, drawn)
    for (int64_t i = 0; i < tiles; i++) {
        const cpu_plain_counts c = draw_tile(&p, (uint64_t)i, a->ranks + starts[i]);
        evaluated += c.evaluated;
        drawn += c.drawn;
    }
    return (cpu_plain_counts){evaluated, drawn};
}
