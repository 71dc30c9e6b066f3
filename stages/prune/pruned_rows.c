/* pruned_rows -- the geometry of one block with the rules applied: what the block's unit writes and
 * what a camera's unit counts. Merged rows are looked up first, because their planes lie in any
 * block and the cache holds one block at a time. */
#include "base/carve.h"
#include "kernels/math/real.h"
#include "stages/prune/prune_units.h"

#include <stdlib.h>
#include <string.h>

static size_t lay_out_pruned_rows(kiln_pruned_rows *r, char *store)
{
    kiln_carve c = {store, 0};
    const uint64_t n = r->n;
    r->means = kiln_take(&c, n, 3 * sizeof *r->means);
    r->log_scales = kiln_take(&c, n, 3 * sizeof *r->log_scales);
    r->quats = kiln_take(&c, n, 4 * sizeof *r->quats);
    r->opacity_logits = kiln_take(&c, n, sizeof *r->opacity_logits);
    r->spacing2 = kiln_take(&c, n, sizeof *r->spacing2);
    r->log_scales_after = kiln_take(&c, n, 3 * sizeof *r->log_scales_after);
    r->mark = kiln_take(&c, n, sizeof *r->mark);
    r->keep = kiln_take(&c, n, sizeof *r->keep);
    r->merged = kiln_take(&c, n, sizeof *r->merged);
    return c.used;
}

static kiln_status copy_planes(kiln_worker *w, kiln_prune_input *in, uint32_t block,
                               kiln_pruned_rows *r, kiln_error *err)
{
    const struct {
        const char *name;
        float *to;
        uint64_t components;
    } planes[] = {{"spacing2", r->spacing2, 1},
                  {"means", r->means, 3},
                  {"log_scales", r->log_scales, 3},
                  {"quats", r->quats, 4},
                  {"opacity_logits", r->opacity_logits, 1}};
    for (size_t i = 0; i < sizeof planes / sizeof *planes; i++) {
        const void *data;
        KILN_TRY(kiln_prune_plane(w, in, block, planes[i].name, &data, err));
        memcpy(planes[i].to, data, r->n * planes[i].components * sizeof(float));
    }
    return KILN_OK;
}

/* ---- marks: what a pass over the scene has found of a block's rows --------------------------- */
/* Both lists ascend: source rows do in a block. */
static kiln_status mark_drop_row(kiln_worker *w, kiln_prune_input *in, const kiln_prune_request *q,
                                 uint32_t block, kiln_pruned_rows *r, kiln_error *err)
{
    const void *data;
    if (q->head->n_rows == 0) return KILN_OK;
    KILN_TRY(kiln_prune_plane(w, in, block, "source_row", &data, err));
    const uint32_t *source_row = data;
    for (uint64_t i = 0, j = 0; i < r->n && j < q->head->n_rows;) {
        if (source_row[i] == q->rows[j]) r->mark[i] = KILN_PRUNE_NAMED;
        if (source_row[i] <= q->rows[j])
            i++;
        else
            j++;
    }
    return KILN_OK;
}

static kiln_status mark_merge(kiln_worker *w, kiln_prune_input *in, const kiln_prune_request *q,
                              uint32_t block, kiln_pruned_rows *r, kiln_error *err)
{
    (void)w, (void)in, (void)err;
    for (uint64_t i = 0; i < q->head->n_merges; i++)
        if (q->merges[i].block == block && q->merges[i].row < r->n)
            r->mark[q->merges[i].row] = KILN_PRUNE_MERGED;
    return KILN_OK;
}

/* The two bits of the rows that a rule drops which asks cameras; all rows are left by the rules
 * before. */
static void mark_asked(const kiln_prune_input *in, const kiln_prune_request *q, uint32_t block,
                       unsigned bits, kiln_prune_mark mark, kiln_pruned_rows *r)
{
    const uint64_t bytes = kiln_prune_pairs_of_bits_bytes(in->largest);
    if (q->head->mark_bytes < bytes) return;
    const uint8_t *marks = q->marks + (q->head->mark_bytes > bytes ? block * bytes : 0);
    for (uint64_t i = 0; i < r->n; i++)
        if (kiln_prune_two_bits(marks, i) == bits) r->mark[i] = (uint8_t)mark;
}

static kiln_status mark_min_contribution(kiln_worker *w, kiln_prune_input *in,
                                         const kiln_prune_request *q, uint32_t block,
                                         kiln_pruned_rows *r, kiln_error *err)
{
    (void)w, (void)err;
    mark_asked(in, q, block, 1, KILN_PRUNE_FAINT, r);
    return KILN_OK;
}

static kiln_status mark_min_visibility(kiln_worker *w, kiln_prune_input *in,
                                       const kiln_prune_request *q, uint32_t block,
                                       kiln_pruned_rows *r, kiln_error *err)
{
    (void)w, (void)err;
    mark_asked(in, q, block, 2, KILN_PRUNE_HIDDEN, r);
    return KILN_OK;
}

static kiln_status mark_keep(kiln_worker *w, kiln_prune_input *in, const kiln_prune_request *q,
                             uint32_t block, kiln_pruned_rows *r, kiln_error *err)
{
    (void)w, (void)err;
    mark_asked(in, q, block, 3, KILN_PRUNE_UNCHOSEN, r);
    return KILN_OK;
}

kiln_stray kiln_prune_stray_of(const kiln_prune_input *in, const kiln_prune_request *q,
                               uint32_t block, uint64_t row)
{
    const uint64_t bytes = kiln_prune_pairs_of_bits_bytes(in->largest);
    if (q->head->stray_bytes < bytes) return KILN_STRAY_NOT;
    const uint8_t *strays = q->strays + (q->head->stray_bytes > bytes ? block * bytes : 0);
    return (kiln_stray)kiln_prune_two_bits(strays, row);
}

/* A row that another pass names counts for that one. */
static void mark_strays_of(const kiln_prune_input *in, const kiln_prune_request *q, uint32_t block,
                           kiln_stray pass, kiln_prune_mark mark, kiln_pruned_rows *r)
{
    for (uint64_t i = 0; i < r->n; i++)
        if (r->mark[i] == KILN_PRUNE_STAY && kiln_prune_stray_of(in, q, block, i) == pass)
            r->mark[i] = (uint8_t)mark;
}

static kiln_status mark_outlier_sor(kiln_worker *w, kiln_prune_input *in,
                                    const kiln_prune_request *q, uint32_t block,
                                    kiln_pruned_rows *r, kiln_error *err)
{
    (void)w, (void)err;
    mark_strays_of(in, q, block, KILN_STRAY_OUTLIER_SOR, KILN_PRUNE_STRAY, r);
    return KILN_OK;
}

static kiln_status mark_filter_floaters(kiln_worker *w, kiln_prune_input *in,
                                        const kiln_prune_request *q, uint32_t block,
                                        kiln_pruned_rows *r, kiln_error *err)
{
    (void)w, (void)err;
    mark_strays_of(in, q, block, KILN_STRAY_FILTER_FLOATERS, KILN_PRUNE_FLOATER, r);
    return KILN_OK;
}

static kiln_status mark_filter_cluster(kiln_worker *w, kiln_prune_input *in,
                                       const kiln_prune_request *q, uint32_t block,
                                       kiln_pruned_rows *r, kiln_error *err)
{
    (void)w, (void)err;
    mark_strays_of(in, q, block, KILN_STRAY_FILTER_CLUSTER, KILN_PRUNE_APART, r);
    return KILN_OK;
}

kiln_status kiln_pruned_rows_make(kiln_worker *w, kiln_prune_input *in, const kiln_prune_request *q,
                                  uint32_t block, kiln_pruned_rows *out, kiln_error *err)
{
    kiln_status st;
    memset(out, 0, sizeof *out);
    out->n = in->layer->chunks[block].count;
    KILN_TRY(KILN_ALLOC(&out->store, lay_out_pruned_rows(out, NULL), "the planes of a block", err));
    (void)lay_out_pruned_rows(out, out->store);
    if (out->n == 0) return KILN_OK;
    KILN_GO(copy_planes(w, in, block, out, err));
    KILN_GO(kiln_prune_merge_geometry(w, in, q, block, out, err));
#define PASS(id, ...) KILN_GO(mark_##id(w, in, q, block, out, err));
#include "stages/prune/rules.def"
    KILN_GO(kiln_prune_mark_filtered(w, in, q, block, out, err));
    kiln_prune_args a = {.n = out->n,
                         .means = out->means,
                         .log_scales = out->log_scales,
                         .opacity_logits = out->opacity_logits,
                         .spacing2 = out->spacing2,
                         .drop = out->mark,
                         .rules = &q->head->rules,
                         .keep = out->keep,
                         .log_scales_out = out->log_scales_after,
                         .counts = out->counts};
    KILN_GO(kiln_runner_run(in->host ? in->host : kiln_worker_runner(w), KILN_OP_prune, &a, err));
    for (int k = 0; k < KILN_FILTER_KINDS; k++)
        out->counts[KILN_PRUNE_drop_row][0] -= out->filtered[k];
    for (uint64_t i = 0; i < out->n; i++) out->kept += out->keep[i];
done:
    if (st != KILN_OK) kiln_pruned_rows_release(out);
    return st;
}

bool kiln_pruned_rows_is_same(const kiln_pruned_rows *r, const float *source_scales, uint64_t row)
{
    if (!r->keep[row] || r->merged[row]) return false;
    for (uint64_t a = 0; a < 3; a++)
        if (r->log_scales_after[a * r->n + row] != source_scales[a * r->n + row]) return false;
    return true;
}

bool kiln_pruned_rows_is_touched(const kiln_pruned_rows *r, const float *source_scales,
                                 uint64_t row)
{
    /* that renderers draw; pairs are counted from a little less on */
    const float least_alpha = 1.0f / 255.0f;
    return !kiln_pruned_rows_is_same(r, source_scales, row) &&
           kiln_sigmoidf(r->opacity_logits[row]) >= least_alpha;
}

bool kiln_pruned_rows_keep_scales(const kiln_pruned_rows *r)
{
    return r->n == 0 ||
           memcmp(r->log_scales, r->log_scales_after, 3 * r->n * sizeof *r->log_scales) == 0;
}

void kiln_pruned_rows_release(kiln_pruned_rows *r)
{
    free(r->store);
    r->store = NULL;
}
