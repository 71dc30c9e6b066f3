/* marks_unit -- the rows of a block that rules whose limit is `auto` would touch, and those that
 * other rules drop; and the rows that all rules but those that ask cameras leave.
 *
 * Whether such rules act is decided by what their rows hold of each camera's pairs (weight_unit.c),
 * so the rows are looked for before any block is pruned, once. The rules run as they would if they
 * acted: a row that another rule drops first is not theirs. */
#include "kernels/prune/prune_math.h"
#include "stages/prune/prune_units.h"

#include <stdlib.h>
#include <string.h>

static kiln_prune_one judged_row(const kiln_pruned_rows *r, uint64_t i)
{
    kiln_prune_one one = {
        .opacity_logit = r->opacity_logits[i], .spacing2 = r->spacing2[i], .mark = r->mark[i]};
    for (uint64_t a = 0; a < 3; a++) {
        one.mean[a] = r->means[a * r->n + i];
        one.log_scale[a] = r->log_scales[a * r->n + i];
    }
    return one;
}

/* bits: two lists, as KILN_PRUNE_MARKS says. */
static void mark_rows(const kiln_prune_unit *u, const kiln_pruned_rows *r, uint8_t *bits,
                      uint64_t list_bytes, uint64_t *touched)
{
    for (uint64_t i = 0; i < r->n; i++) {
        kiln_prune_one one = judged_row(r, i);
        const int drops = kiln_prune_row(&u->rules, &one);
        const bool is_touched =
            (drops >= 0 && u->auto_rules >> drops & 1) || (one.clamped & u->auto_rules) != 0;
        const uint8_t bit = (uint8_t)(1u << (i & 7));
        if (is_touched)
            bits[i >> 3] |= bit;
        else if (drops >= 0)
            bits[list_bytes + (i >> 3)] |= bit;
        *touched += is_touched;
    }
}

kiln_status kiln_prune_marks_unit(kiln_worker *w, const kiln_prune_request *q, kiln_error *err)
{
    kiln_prune_input *in;
    kiln_pruned_rows r = {0};
    kiln_prune_marked marked = {0};
    uint8_t *bits = NULL;
    kiln_status st;
    KILN_TRY(kiln_prune_input_get(w, q->head, &in, err));
    if (q->head->block >= in->layer->n_chunks)
        return kiln_fail(err, KILN_E_BUG, "block %u does not exist; the layer has %u",
                         q->head->block, in->layer->n_chunks);
    const uint64_t bytes = kiln_prune_marks_bytes(in->largest);
    KILN_GO(KILN_ALLOC(&bits, bytes, "marks of rows", err));
    KILN_GO(kiln_pruned_rows_make(w, in, q, q->head->block, &r, err));
    mark_rows(q->head, &r, bits, bytes / 2, &marked.rows);
    memcpy(marked.counts, r.counts, sizeof marked.counts);
    KILN_GO(kiln_worker_put(w, "marked", &marked, sizeof marked, 8, err));
    KILN_GO(kiln_worker_put(w, "marks", bits, marked.rows ? bytes : 0, 1, err));
done:
    kiln_pruned_rows_release(&r);
    free(bits);
    return st;
}

kiln_status kiln_prune_left_unit(kiln_worker *w, const kiln_prune_request *q, kiln_error *err)
{
    kiln_prune_input *in;
    kiln_pruned_rows r = {0};
    uint8_t *bits = NULL;
    kiln_status st;
    KILN_TRY(kiln_prune_input_get(w, q->head, &in, err));
    if (q->head->block >= in->layer->n_chunks)
        return kiln_fail(err, KILN_E_BUG, "block %u does not exist; the layer has %u",
                         q->head->block, in->layer->n_chunks);
    const uint64_t bytes = (in->layer->chunks[q->head->block].count + 7) / 8;
    KILN_GO(KILN_ALLOC(&bits, bytes, "marks of rows", err));
    KILN_GO(kiln_pruned_rows_make(w, in, q, q->head->block, &r, err));
    for (uint64_t i = 0; i < r.n; i++) bits[i >> 3] |= (uint8_t)(r.keep[i] << (i & 7));
    KILN_GO(kiln_worker_put(w, "left", bits, bytes, 1, err));
done:
    kiln_pruned_rows_release(&r);
    free(bits);
    return st;
}
