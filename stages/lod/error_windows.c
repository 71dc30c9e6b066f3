/* error_windows -- see error_windows.h. */
#include "stages/lod/error_windows.h"

#include <string.h>

/* pixels of a side, that a part has at most if the picture has no more than 32 of them */
#define CELL 64
#define PIXELS 16384 /* of all parts together, about */
#define EVENLY 0.125 /* of the likelihood */

enum { SIDE = KILN_LOD_CELLS, CELLS = SIDE * SIDE };

/* The least power of two of parts that are small enough, as a number of cells for each part. */
static uint32_t cells_of_part(uint32_t pixels)
{
    uint32_t parts = 1;
    while (parts < SIDE && pixels > parts * CELL) parts *= 2;
    return SIDE / parts;
}

typedef struct {
    uint32_t across, down; /* cells of a part */
    uint32_t columns, rows;
} part_grid;

static double sum_part(const double *cell, const part_grid *g, uint32_t part)
{
    const uint32_t x0 = part % g->columns * g->across, y0 = part / g->columns * g->down;
    double sum = 0;
    for (uint32_t y = y0; y < y0 + g->down; y++)
        for (uint32_t x = x0; x < x0 + g->across; x++) sum += cell[y * SIDE + x];
    return sum;
}

/* How likely each part is: they sum to 1, or to 0 if there is no difference. */
static double weigh_parts(const kiln_lod_error_map *map, uint32_t n_levels, const part_grid *g,
                          double weight[CELLS])
{
    const uint32_t n = g->columns * g->rows;
    double all = 0;
    memset(weight, 0, n * sizeof *weight);
    for (uint32_t k = 0; k < n_levels; k++) {
        double whole = 0;
        for (uint32_t i = 0; i < CELLS; i++) whole += map->cell[k][i];
        for (uint32_t i = 0; i < n && whole > 0; i++)
            weight[i] += sum_part(map->cell[k], g, i) / whole;
        all += whole > 0;
    }
    for (uint32_t i = 0; i < n && all > 0; i++)
        weight[i] = (1 - EVENLY) * weight[i] / all + EVENLY / n;
    return all > 0;
}

static uint32_t number_of_parts(const part_grid *g, uint32_t width, uint32_t height)
{
    const double area = (double)(width / g->columns + 1) * (height / g->rows + 1);
    const double n = PIXELS / area;
    return n < 2 ? 2 : n > KILN_LOD_PARTS ? KILN_LOD_PARTS : (uint32_t)n;
}

static void set_part(const kiln_lod_error_map *map, uint32_t n_levels, const part_grid *g,
                     uint32_t part, uint32_t width, uint32_t height, kiln_lod_error_part *out)
{
    const uint32_t x = part % g->columns, y = part / g->columns;
    out->left = width * x / g->columns;
    out->top = height * y / g->rows;
    out->width = width * (x + 1) / g->columns - out->left;
    out->height = height * (y + 1) / g->rows - out->top;
    for (uint32_t k = 0; k < n_levels; k++) out->coarse[k] = sum_part(map->cell[k], g, part);
}

uint32_t kiln_lod_error_parts(const kiln_lod_error_map *map, uint32_t n_levels, uint32_t width,
                              uint32_t height, kiln_lod_error_part out[KILN_LOD_PARTS])
{
    double weight[CELLS], upto = 0;
    const part_grid g = {.across = cells_of_part(width),
                         .down = cells_of_part(height),
                         .columns = SIDE / cells_of_part(width),
                         .rows = SIDE / cells_of_part(height)};
    const uint32_t wanted = number_of_parts(&g, width, height);
    uint32_t n = 0, met = 0;
    if (!(weigh_parts(map, n_levels, &g, weight) > 0)) return 0;
    for (uint32_t i = 0; i < g.columns * g.rows && met < wanted; i++) {
        uint32_t hits = 0;
        upto += weight[i];
        while (met < wanted && (met + 0.5) / wanted < upto) met++, hits++;
        if (hits == 0) continue;
        set_part(map, n_levels, &g, i, width, height, &out[n]);
        out[n++].stands = hits / (wanted * weight[i]);
    }
    return n;
}
