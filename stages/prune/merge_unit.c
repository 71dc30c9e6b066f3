/* merge_unit -- --merge: the planning unit that finds near-duplicates in the whole layer, and what
 * the survivors of a block become. The members of a group may lie in any block; they are read one
 * by one through the plane cache. */
#include "base/carve.h"
#include "kernels/prune/merge.h"
#include "stages/prune/prune_units.h"

#include <stdlib.h>
#include <string.h>

/* ---- which rows ------------------------------------------------------------------------------ */
/* The planes of the whole layer that decide, block after block within each component. */
typedef struct {
    float *means, *log_scales, *quats, *sh0;
    uint8_t *skip;
    uint32_t *into, *block, *row;
    void *work;
    char *store;
} whole;

static size_t lay_out_whole(whole *a, uint64_t n, char *store)
{
    kiln_carve c = {store, 0};
    a->means = kiln_take(&c, n, 3 * sizeof *a->means);
    a->log_scales = kiln_take(&c, n, 3 * sizeof *a->log_scales);
    a->quats = kiln_take(&c, n, 4 * sizeof *a->quats);
    a->sh0 = kiln_take(&c, n, 3 * sizeof *a->sh0);
    a->skip = kiln_take(&c, n, sizeof *a->skip);
    a->into = kiln_take(&c, n, sizeof *a->into);
    a->block = kiln_take(&c, n, sizeof *a->block);
    a->row = kiln_take(&c, n, sizeof *a->row);
    a->work = kiln_take(&c, kiln_merge_find_bytes(n), 1);
    return c.used;
}

static bool in_rows(const kiln_prune_request *q, uint32_t row)
{
    uint64_t lo = 0, hi = q->head->n_rows;
    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo) / 2;
        if (q->rows[mid] < row)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < q->head->n_rows && q->rows[lo] == row;
}

static kiln_status gather_block(kiln_worker *w, kiln_prune_input *in, const kiln_prune_request *q,
                                uint32_t block, uint64_t first, whole *a, kiln_error *err)
{
    const uint64_t n = in->layer->chunks[block].count, all = in->layer->count;
    const struct {
        const char *name;
        float *to;
        uint64_t components;
    } planes[] = {{"means", a->means, 3},
                  {"log_scales", a->log_scales, 3},
                  {"quats", a->quats, 4},
                  {"sh0", a->sh0, 3}};
    const void *data;
    for (size_t p = 0; p < sizeof planes / sizeof *planes; p++) {
        KILN_TRY(kiln_prune_plane(w, in, block, planes[p].name, &data, err));
        for (uint64_t c = 0; c < planes[p].components; c++)
            memcpy(planes[p].to + c * all + first, (const float *)data + c * n, n * sizeof(float));
    }
    KILN_TRY(kiln_prune_plane(w, in, block, "source_row", &data, err));
    for (uint64_t i = 0; i < n; i++) {
        a->block[first + i] = block;
        a->row[first + i] = (uint32_t)i;
        a->skip[first + i] =
            in_rows(q, ((const uint32_t *)data)[i]) || kiln_prune_stray_of(in, q, block, i);
    }
    return KILN_OK;
}

static int by_survivor(const void *a, const void *b)
{
    const kiln_merged_row *p = a, *q = b;
    const uint32_t x[4] = {p->into_block, p->into_row, p->block, p->row},
                   y[4] = {q->into_block, q->into_row, q->block, q->row};
    for (int i = 0; i < 4; i++)
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}

static kiln_status put_merges(kiln_worker *w, const whole *a, uint64_t n, kiln_error *err)
{
    uint64_t count = 0, k = 0;
    kiln_merged_row *rows;
    for (uint64_t i = 0; i < n; i++) count += a->into[i] != i;
    KILN_TRY(KILN_ALLOC(&rows, count, "merged rows", err));
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t into = a->into[i];
        if (into == i) continue;
        rows[k++] = (kiln_merged_row){.into_block = a->block[into],
                                      .into_row = a->row[into],
                                      .block = a->block[i],
                                      .row = a->row[i]};
    }
    qsort(rows, count, sizeof *rows, by_survivor);
    kiln_status st = kiln_worker_put(w, "merges", rows, count * sizeof *rows, 4, err);
    free(rows);
    return st;
}

/* All rows at once: the search is greedy in row order. The list may hold every row. */
uint64_t kiln_prune_merges_ram(const kiln_prune_size *s)
{
    whole a;
    const uint64_t list = s->rows * sizeof(kiln_merged_row),
                   plane = 4 * s->blocks.rows * sizeof(float);
    return lay_out_whole(&a, s->rows, NULL) + list + kiln_outputs_ram(list) + s->blocks.planes +
           kiln_read_ram(plane);
}

kiln_status kiln_prune_merges_unit(kiln_worker *w, const kiln_prune_request *q, kiln_error *err)
{
    kiln_prune_input *in;
    whole a = {0};
    kiln_status st = KILN_OK;
    uint64_t first = 0;
    KILN_TRY(kiln_prune_input_get(w, q->head, &in, err));
    const uint64_t n = in->layer->count;
    KILN_TRY(KILN_ALLOC(&a.store, lay_out_whole(&a, n, NULL), "the layer's geometry", err));
    (void)lay_out_whole(&a, n, a.store);
    for (uint32_t i = 0; i < in->layer->n_chunks; i++) {
        if (in->layer->chunks[i].count == 0) continue;
        KILN_GO(gather_block(w, in, q, i, first, &a, err));
        first += in->layer->chunks[i].count;
    }
    kiln_merge_find_args f = {.n = n,
                              .means = a.means,
                              .log_scales = a.log_scales,
                              .quats = a.quats,
                              .sh0 = a.sh0,
                              .skip = a.skip,
                              .distance = q->head->merge_distance,
                              .into = a.into};
    memcpy(f.lo, q->head->stats.lo, sizeof f.lo);
    memcpy(f.hi, q->head->stats.hi, sizeof f.hi);
    kiln_merge_find(&f, a.work);
    KILN_GO(put_merges(w, &a, n, err));
done:
    free(a.store);
    return st;
}

/* ---- what the survivors become --------------------------------------------------------------- */
/* Rows that become one: where the survivor is, and the others, merges[0] to merges[n - 1]. */
typedef struct {
    const kiln_merged_row *merges;
    uint64_t n;
    uint64_t end; /* of the group in the request's merges */
} merge_group;

/* The next group with its survivor in this block; g starts as zeros. False when there is none. */
static bool next_group(const kiln_prune_request *q, uint32_t block, merge_group *g)
{
    const kiln_merged_row *m = q->merges;
    const uint64_t n = q->head->n_merges;
    uint64_t first = g->end;
    while (first < n && m[first].into_block != block) first++;
    g->merges = m + first;
    for (g->end = first;
         g->end < n && m[g->end].into_block == block && m[g->end].into_row == m[first].into_row;)
        g->end++;
    g->n = g->end - first;
    return first < n;
}

static kiln_status read_gaussian(kiln_worker *w, kiln_prune_input *in, uint32_t block, uint32_t row,
                                 kiln_merge_gaussian *g, kiln_error *err)
{
    const struct {
        const char *name;
        float *to;
        uint64_t components;
    } planes[] = {{"means", g->mean, 3},
                  {"log_scales", g->log_scale, 3},
                  {"quats", g->quat, 4},
                  {"opacity_logits", &g->opacity_logit, 1}};
    if (block >= in->layer->n_chunks || row >= in->layer->chunks[block].count)
        return kiln_fail(err, KILN_E_BUG, "row %u of block %u is to be merged, but does not exist",
                         row, block);
    for (size_t p = 0; p < sizeof planes / sizeof *planes; p++) {
        const void *data;
        KILN_TRY(kiln_prune_plane(w, in, block, planes[p].name, &data, err));
        for (uint64_t c = 0; c < planes[p].components; c++)
            planes[p].to[c] = ((const float *)data)[c * in->layer->chunks[block].count + row];
    }
    return KILN_OK;
}

/* The survivor first, then the others; weights as for colours. Both arrays are the caller's to
 * free. */
static kiln_status read_group(kiln_worker *w, kiln_prune_input *in, const merge_group *group,
                              double **weights, kiln_merge_gaussian *out, kiln_error *err)
{
    kiln_merge_gaussian *g = NULL;
    kiln_status st;
    const uint32_t n = (uint32_t)(group->n + 1);
    *weights = NULL;
    KILN_GO(KILN_ALLOC(&g, n, "merged rows", err));
    KILN_GO(KILN_ALLOC(weights, n, "merged rows", err));
    KILN_GO(
        read_gaussian(w, in, group->merges[0].into_block, group->merges[0].into_row, &g[0], err));
    for (uint32_t k = 1; k < n; k++)
        KILN_GO(
            read_gaussian(w, in, group->merges[k - 1].block, group->merges[k - 1].row, &g[k], err));
    kiln_merge_moments(g, n, *weights, out);
done:
    free(g);
    return st;
}

kiln_status kiln_prune_merge_geometry(kiln_worker *w, kiln_prune_input *in,
                                      const kiln_prune_request *q, uint32_t block,
                                      kiln_pruned_rows *r, kiln_error *err)
{
    for (merge_group group = {0}; next_group(q, block, &group);) {
        const uint64_t row = group.merges[0].into_row;
        kiln_merge_gaussian g;
        double *weights;
        kiln_status st = read_group(w, in, &group, &weights, &g, err);
        free(weights);
        KILN_TRY(st);
        for (uint64_t c = 0; c < 3; c++) {
            r->means[c * r->n + row] = g.mean[c];
            r->log_scales[c * r->n + row] = g.log_scale[c];
        }
        for (uint64_t c = 0; c < 4; c++) r->quats[c * r->n + row] = g.quat[c];
        r->opacity_logits[row] = g.opacity_logit;
        r->merged[row] = 1;
    }
    return KILN_OK;
}

/* One row of a plane, of `components` numbers. */
typedef struct {
    uint32_t block, row;
    const kiln_plane *plane;
} plane_row;

static kiln_status add_row(kiln_worker *w, kiln_prune_input *in, plane_row from, double weight,
                           double *sum, kiln_error *err)
{
    const void *data;
    KILN_TRY(kiln_prune_plane(w, in, from.block, from.plane->name, &data, err));
    const uint64_t n = in->layer->chunks[from.block].count;
    for (uint64_t c = 0; c < from.plane->components; c++)
        sum[c] += weight * (double)((const float *)data)[c * n + from.row];
    return KILN_OK;
}

static kiln_status merge_row(kiln_worker *w, kiln_prune_input *in, const merge_group *group,
                             const kiln_plane *plane, double *sum, kiln_error *err)
{
    kiln_merge_gaussian g;
    double *weights;
    kiln_status st;
    const kiln_merged_row *m = group->merges;
    KILN_GO(read_group(w, in, group, &weights, &g, err));
    memset(sum, 0, plane->components * sizeof *sum);
    KILN_GO(add_row(w, in, (plane_row){m->into_block, m->into_row, plane}, weights[0], sum, err));
    for (uint64_t k = 0; k < group->n; k++)
        KILN_GO(add_row(w, in, (plane_row){m[k].block, m[k].row, plane}, weights[k + 1], sum, err));
done:
    free(weights);
    return st;
}

kiln_status kiln_prune_merge_plane(kiln_worker *w, kiln_prune_input *in,
                                   const kiln_prune_request *q, uint32_t block,
                                   const kiln_plane *plane, float *data, kiln_error *err)
{
    const uint64_t n = in->layer->chunks[block].count;
    kiln_status st = KILN_OK;
    double *sum;
    KILN_TRY(KILN_ALLOC(&sum, plane->components, "colours", err));
    for (merge_group group = {0}; next_group(q, block, &group);) {
        KILN_GO(merge_row(w, in, &group, plane, sum, err));
        for (uint64_t c = 0; c < plane->components; c++)
            data[c * n + group.merges[0].into_row] = (float)sum[c];
    }
done:
    free(sum);
    return st;
}
