/* voxel_grid -- where the grid of a search lies, and which blocks rows reach in it.
 *
 * The grid lies around the middle of the scene: the exact median of the means, an axis at a time.
 * So no outlier moves it, and no order of rows matters. A float's bits are made an integer of the
 * same order, and two passes count these: first the upper 16 bits, then, of those means that have
 * the median's upper bits, the lower. */
#include "stages/prune/voxel_search.h"

#include "base/memory.h"
#include "base/minmax.h"

#include <stdlib.h>
#include <string.h>

/* ---- the middle ------------------------------------------------------------------------------ */
/* How many means have which 16 bits, an axis each. */
typedef struct {
    uint64_t n[3][1 << 16];
} mean_counts;

uint64_t kiln_voxel_middle_bytes(void) { return sizeof(mean_counts); }

/* Of a float that is no NaN: ordered as the floats are. */
static uint32_t ordered_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 31 ? ~bits : bits | 1u << 31;
}

static float float_of_ordered(uint32_t ordered)
{
    const uint32_t bits = ordered >> 31 ? ordered ^ 1u << 31 : ~ordered;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* prefix: NULL counts upper halves, else the lower halves of those that have this upper half. */
static kiln_status count_means(const kiln_voxel_search *s, const uint32_t *prefix, mean_counts *out,
                               kiln_error *err)
{
    memset(out, 0, sizeof *out);
    for (uint32_t b = 0; b < s->in->layer->n_chunks; b++) {
        const uint64_t n = s->in->layer->chunks[b].count;
        const void *data;
        if (n == 0) continue;
        KILN_TRY(kiln_prune_plane(s->w, s->in, b, "means", &data, err));
        const float *means = data;
        for (uint64_t i = 0; i < 3 * n; i++) {
            const uint32_t bits = ordered_bits(means[i]);
            const uint64_t a = i / n;
            if (!prefix) out->n[a][bits >> 16]++;
            if (prefix && bits >> 16 == prefix[a]) out->n[a][bits & 0xffff]++;
        }
    }
    return KILN_OK;
}

/* Which entry has number `rank` of what is counted; rank becomes its number in that entry. */
static uint32_t entry_of_rank(const uint64_t counts[1 << 16], uint64_t *rank)
{
    uint32_t i = 0;
    for (; i < 0xffff && *rank >= counts[i]; i++) *rank -= counts[i];
    return i;
}

kiln_status kiln_voxel_search_find_grid(kiln_voxel_search *s, kiln_error *err)
{
    uint64_t rank[3];
    uint32_t upper[3];
    mean_counts *counts;
    kiln_status st;
    KILN_TRY(KILN_ALLOC_UNSET(&counts, 1, "the middle of the scene", err));
    KILN_GO(count_means(s, NULL, counts, err));
    for (int a = 0; a < 3; a++) {
        rank[a] = s->in->layer->count / 2;
        upper[a] = entry_of_rank(counts->n[a], &rank[a]);
    }
    KILN_GO(count_means(s, upper, counts, err));
    for (int a = 0; a < 3; a++)
        s->middle[a] = float_of_ordered(upper[a] << 16 | entry_of_rank(counts->n[a], &rank[a]));
    s->grid = kiln_voxel_grid_of(s->o.size, s->o.origin, s->middle);
done:
    free(counts);
    return st;
}

/* ---- rows in the grid ------------------------------------------------------------------------ */
void kiln_voxel_row_get(const kiln_voxel_grid *g, const kiln_geometry *rows, uint64_t i,
                        kiln_voxel_row *out)
{
    const kiln_geometry *r = rows;
    const uint64_t n = r->n;
    const float mean[3] = {r->means[i], r->means[n + i], r->means[2 * n + i]},
                scale[3] = {r->log_scales[i], r->log_scales[n + i], r->log_scales[2 * n + i]},
                quat[4] = {r->quats[i], r->quats[n + i], r->quats[2 * n + i], r->quats[3 * n + i]};
    kiln_voxel_row_make(g, mean, scale, quat, r->opacity_logits[i], out);
}

/* A row whose own opacity makes a voxel solid is no floater, whatever else lies there. Of a row
 * outside of the grid nothing else is asked. */
static bool is_solid_alone(const kiln_voxel_search *s, const kiln_voxel_row *row)
{
    return !s->o.cluster && kiln_voxel_units(row->alpha) >= s->need;
}

static void place_block(kiln_voxel_search *s, const kiln_geometry *rows, uint32_t block)
{
    uint8_t *strays = s->strays + block * kiln_prune_stray_bytes(s->in->largest);
#pragma omp parallel for num_threads(s->threads) schedule(dynamic, 1)
    for (uint64_t first = 0; first < rows->n; first += KILN_VOXEL_ROWS_AT_A_TIME) {
        const uint64_t end = kiln_min_u64(first + KILN_VOXEL_ROWS_AT_A_TIME, rows->n);
        kiln_voxel_box meets = kiln_voxel_box_empty(), touches = kiln_voxel_box_empty();
        for (uint64_t i = first; i < end; i++) {
            kiln_voxel_row row;
            kiln_voxel_row_get(&s->grid, rows, i, &row);
            if (is_solid_alone(s, &row)) strays[i >> 3] &= (uint8_t) ~(1u << (i & 7));
            if (!row.inside) continue;
            kiln_voxel_box_widen(&meets, &row.meets);
            kiln_voxel_box_widen(&touches, &row.touches);
        }
#pragma omp critical(kiln_voxel_place)
        {
            kiln_voxel_box_widen(&s->meets[block], &meets);
            kiln_voxel_box_widen(&s->touches[block], &touches);
        }
    }
}

kiln_status kiln_voxel_search_place_rows(kiln_voxel_search *s, kiln_error *err)
{
    s->all_meet = s->all_touch = kiln_voxel_box_empty();
    for (uint32_t b = 0; b < s->in->layer->n_chunks; b++) {
        kiln_geometry rows;
        s->meets[b] = s->touches[b] = kiln_voxel_box_empty();
        if (s->in->layer->chunks[b].count == 0) continue;
        KILN_TRY(kiln_prune_geometry(s->w, s->in, b, &rows, err));
        place_block(s, &rows, b);
        kiln_voxel_box_widen(&s->all_meet, &s->meets[b]);
        kiln_voxel_box_widen(&s->all_touch, &s->touches[b]);
    }
    return KILN_OK;
}
