/* cpu_plain -- see cpu_plain.h. */
#include "tests/bench/cpu_plain.h"

#include "kernels/depth_order/depth_order_math.h"
#include "kernels/project/project_math.h"
#include "kernels/project/sh_math.h"
#include "kernels/raster/raster_math.h"

#include <stdlib.h>
#include <string.h>

/* ---- project --------------------------------------------------------------------------------- */
static int find_outline(const kiln_projection *l, kiln_family family, const kiln_splat3d *g,
                        kiln_outline *o)
{
    switch (family) {
#define FAMILY(id)         \
    case KILN_FAMILY_##id: \
        return kiln_##id##_outline(l, g, o); /* kiln_inria_outline, kiln_gsplat_outline */
#include "kernels/profiles/profiles.def"
    default:
        return 0;
    }
}

static void find_colour(const kiln_project_args *a, const kiln_projection *l, uint64_t row,
                        const float mean[3], float rgb[3])
{
    const uint32_t degree = a->shN ? a->sh_degree : 0, coefficients = (degree + 1) * (degree + 1);
    const float x = mean[0] - l->centre[0], y = mean[1] - l->centre[1], z = mean[2] - l->centre[2];
    const float scale = 1.0f / sqrtf(kiln_dot3(x, y, z, x, y, z)), dx = x * scale, dy = y * scale,
                dz = z * scale;
    float basis[KILN_SH_COEFFICIENTS_MAX];
    if (degree >= 1) kiln_sh_basis1(dx, dy, dz, basis + 1);
    if (degree >= 2) kiln_sh_basis2(dx, dy, dz, basis + 4);
    if (degree >= 3) kiln_sh_basis3(dx, dy, dz, basis + 9);
    if (degree >= 4) kiln_sh_basis4(dx, dy, dz, basis + 16);
    for (uint32_t c = 0; c < 3; c++) {
        float sum = a->sh0[c * a->n + row] * KILN_SH_C0;
        for (uint32_t j = 1; j < coefficients; j++)
            sum = kiln_fmaf(basis[j], a->shN[(3 * (j - 1) + c) * a->n + row], sum);
        rgb[c] = kiln_sh_colour(sum);
    }
}

/* False when the row is not visible. */
static bool project_row(const kiln_project_args *a, const kiln_projection *l, uint64_t row,
                        kiln_splat2d *out)
{
    kiln_raw raw;
    kiln_splat3d g;
    kiln_outline o;
    for (uint64_t c = 0; c < 3; c++) raw.mean[c] = a->means[c * a->n + row];
    const float depth = kiln_project_depth(l, raw.mean[0], raw.mean[1], raw.mean[2]);
    if (!kiln_project_in_depth(l, depth)) return false;
    for (uint64_t c = 0; c < 3; c++) raw.log_scale[c] = a->log_scales[c * a->n + row];
    for (uint64_t c = 0; c < 4; c++) raw.quat[c] = a->quats[c * a->n + row];
    raw.opacity_logit = a->opacity_logits[row];
    kiln_project_splat3d(l, &raw, &g);
    if (!find_outline(l, kiln_profiles[a->profile].family, &g, &o)) return false;
    *out = (kiln_splat2d){.x = o.x,
                          .y = o.y,
                          .conic = {o.a, o.b, o.c},
                          .opacity = o.opacity,
                          .power_min = o.power_min,
                          .depth = depth,
                          .row = (uint32_t)row,
                          .tile_x0 = o.tile_x0,
                          .tile_y0 = o.tile_y0,
                          .tile_x1 = o.tile_x1,
                          .tile_y1 = o.tile_y1};
    find_colour(a, l, row, raw.mean, out->rgb);
    return true;
}

void cpu_plain_project(const kiln_project_args *a, unsigned threads, uint8_t *seen)
{
    kiln_projection l;
    uint64_t kept = 0;
    kiln_project_projection(&l, a->view, &a->cut, a->profile, a->antialiased);
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < (int64_t)a->n; i++)
        seen[i] = project_row(a, &l, (uint64_t)i, &a->splats[i]);
    for (uint64_t i = 0; i < a->n; i++)
        if (seen[i]) a->splats[kept++] = a->splats[i];
    *a->n_visible = kept;
}

/* ---- order ----------------------------------------------------------------------------------- */
static int compare_items(const void *a, const void *b)
{
    const cpu_plain_item *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

void cpu_plain_order(const kiln_depth_order_args *a, cpu_plain_item *items)
{
    for (uint64_t i = 0; i < a->n; i++)
        items[i] = (cpu_plain_item){kiln_depth_key(a->depths[i], a->source_rows[i]), (uint32_t)i};
    qsort(items, a->n, sizeof *items, compare_items);
    for (uint64_t i = 0; i < a->n; i++) a->order[i] = items[i].at;
}

/* ---- lists ----------------------------------------------------------------------------------- */
/* Does a pixel of the tile reach the threshold? A row of it is one vector or two; the first row
 * that has one ends the search. */
static bool tile_reached(const kiln_splat2d *s, const kiln_view *v, uint32_t px0, uint32_t py0)
{
    const uint32_t columns = v->width - px0 < KILN_TILE ? v->width - px0 : KILN_TILE;
    for (uint32_t py = py0; py < py0 + KILN_TILE && py < v->height; py++) {
        const float dy = kiln_power_offset(s->y, py);
        uint32_t any = 0;
#pragma omp simd reduction(| : any)
        for (uint32_t i = 0; i < KILN_TILE; i++) {
            const float power = kiln_power(s->conic[0], s->conic[1], s->conic[2],
                                           kiln_power_offset(s->x, px0 + i), dy);
            any |= (uint32_t)(power >= s->power_min) & (uint32_t)(i < columns);
        }
        if (any) return true;
    }
    return false;
}

/* The pairs of one row of tiles, Gaussian after Gaussian; both arrays NULL: counts them alone. */
static uint64_t list_row(const kiln_splat2d *splats, uint64_t n, const kiln_view *v, uint32_t row,
                         uint32_t *columns, uint32_t *mine)
{
    uint64_t found = 0;
    for (uint64_t i = 0; i < n; i++) {
        const kiln_splat2d *s = &splats[i];
        if ((int64_t)row < s->tile_y0 || (int64_t)row >= s->tile_y1) continue;
        for (int32_t column = s->tile_x0; column < s->tile_x1; column++) {
            if (!tile_reached(s, v, (uint32_t)column * KILN_TILE, row * KILN_TILE)) continue;
            if (columns) {
                columns[found] = (uint32_t)column;
                mine[found] = (uint32_t)i;
            }
            found++;
        }
    }
    return found;
}

void cpu_plain_count(const kiln_tile_pairs_count_args *a, unsigned threads)
{
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (uint32_t row = a->row0; row < a->row1; row++)
        a->row_pairs[row - a->row0] = list_row(a->splats, a->n, a->view, row, NULL, NULL);
}

void cpu_plain_emit(const kiln_tile_pairs_emit_args *a, const uint64_t *row_pairs, unsigned threads,
                    uint32_t *columns, uint32_t *mine)
{
    const uint32_t tiles_x = kiln_view_tiles_x(a->view);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (uint32_t row = a->row0; row < a->row1; row++) {
        uint64_t first = 0;
        uint32_t *const counts = a->tile_counts + (size_t)(row - a->row0) * tiles_x;
        for (uint32_t above = a->row0; above < row; above++) first += row_pairs[above - a->row0];
        const uint64_t n = list_row(a->splats, a->n, a->view, row, columns + first, mine + first);
        memset(counts, 0, tiles_x * sizeof *counts);
        for (uint64_t i = 0; i < n; i++) counts[columns[first + i]]++;
        uint64_t next[(1 << 20) / KILN_TILE], at = first; /* of the widest view */
        for (uint32_t column = 0; column < tiles_x; column++) {
            next[column] = at;
            at += counts[column];
        }
        for (uint64_t i = 0; i < n; i++) a->ranks[next[columns[first + i]]++] = mine[first + i];
    }
}

/* ---- raster ---------------------------------------------------------------------------------- */
typedef struct {
    const kiln_raster_args *a;
    kiln_blend_rule rule;
} plain;

static void draw_pixel(const plain *p, uint32_t px, uint32_t py, const uint32_t *ranks, uint32_t n,
                       cpu_plain_counts *counts)
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
    const uint32_t px0 = (uint32_t)(tile % tiles_x) * KILN_TILE,
                   py0 = (a->row0 + (uint32_t)(tile / tiles_x)) * KILN_TILE;
    cpu_plain_counts counts = {0, 0};
    for (uint32_t py = py0; py < py0 + KILN_TILE && py < a->view->height; py++)
        for (uint32_t px = px0; px < px0 + KILN_TILE && px < a->view->width; px++)
            draw_pixel(p, px, py, ranks, a->tile_counts[tile], &counts);
    return counts;
}

cpu_plain_counts cpu_plain_raster(const kiln_raster_args *a, const uint64_t *starts,
                                  unsigned threads)
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
