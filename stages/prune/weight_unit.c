/* weight_unit -- what the rows that rules with an `auto` limit would touch hold of a camera's pairs: all of these pairs, and
 * whether they are more than the others.
 *
 * The rows are few in a sound scene, so their pairs are counted first; those of the others then only until there are as many.
 * That makes the answer of a camera as cheap as a block or two. In a scene that exploded all blocks are counted. Only counts that
 * depend on nothing but the scene are stored: how far the others were counted is not. */
#include "base/carve.h"
#include "stages/prune/pair_counter.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    kiln_prune_input *in;
    const kiln_prune_request *q;
    kiln_pair_counter count;
    float *gathered;
    uint8_t *which; /* [rows of the largest block] */
    char *store;
} weighing;

static size_t lay_out(weighing *c, char *store)
{
    kiln_carve at = {store, 0};
    c->count.splats = kiln_take(&at, c->in->largest, sizeof *c->count.splats);
    c->gathered = kiln_take(&at, c->in->largest, 11 * sizeof *c->gathered);
    c->which = kiln_take(&at, c->in->largest, sizeof *c->which);
    c->count.row_pairs = kiln_take(&at, kiln_view_tiles_y(&c->count.request->view), sizeof *c->count.row_pairs);
    return at.used;
}

static bool is_seen(const weighing *c, uint32_t block)
{
    return kiln_prune_has_block(c->in, block) && kiln_view_request_may_see(c->count.request, &c->in->layer->chunks[block]);
}

static bool has_bit(const uint8_t *bits, uint64_t i) { return bits[i >> 3] >> (i & 7) & 1; }

/* which: the rows that the rules would touch, or those that no rule would. False: no row of the block is marked. */
static bool choose_rows(const weighing *c, uint32_t block, bool touched)
{
    const uint64_t n = c->in->layer->chunks[block].count, bytes = kiln_prune_marks_bytes(c->in->largest);
    const uint32_t at = c->q->kept[block];
    if (at == KILN_PRUNE_NO_BLOCK) return false;
    const uint8_t *bits = (const uint8_t *)c->q->text + at * bytes, *dropped = bits + bytes / 2;
    for (uint64_t i = 0; i < n; i++) c->which[i] = touched ? has_bit(bits, i) : !has_bit(bits, i) && !has_bit(dropped, i);
    return true;
}

/* Adds the pairs of the rows of a block that are chosen, or of all rows. */
static kiln_status add_block(weighing *c, uint32_t block, bool all, uint64_t *pairs, uint64_t *visible, kiln_error *err)
{
    kiln_geometry source, some;
    uint64_t n_pairs, n_visible;
    KILN_TRY(kiln_prune_geometry(c->count.w, c->in, block, &source, err));
    if (!all) kiln_geometry_gather(&source, c->which, c->gathered, &some);
    KILN_TRY(kiln_pair_counter_project(&c->count, all ? &source : &some, &n_visible, err));
    KILN_TRY(kiln_pair_counter_count(&c->count, n_visible, c->count.splats, &n_pairs, err));
    *pairs += n_pairs;
    *visible += n_visible;
    return KILN_OK;
}

static kiln_status weigh(weighing *c, kiln_prune_weight *out, kiln_error *err)
{
    const uint32_t n = c->in->layer->n_chunks;
    uint64_t others = 0, visible = 0;
    for (uint32_t i = 0; i < n; i++)
        if (is_seen(c, i) && choose_rows(c, i, true)) KILN_TRY(add_block(c, i, false, &out->pairs, &out->visible, err));
    for (uint32_t i = 0; i < n && others < out->pairs; i++)
        if (is_seen(c, i)) KILN_TRY(add_block(c, i, !choose_rows(c, i, false), &others, &visible, err));
    out->holds_most = others < out->pairs;
    return KILN_OK;
}

/* Of each block a mark that is there. */
static kiln_status check_marks(const weighing *c, kiln_error *err)
{
    const uint64_t n = c->in->layer->n_chunks, bytes = kiln_prune_marks_bytes(c->in->largest);
    bool sound = c->q->head->n_kept == n;
    for (uint64_t i = 0; i < n && sound; i++)
        sound = c->q->kept[i] == KILN_PRUNE_NO_BLOCK || (c->q->kept[i] + UINT64_C(1)) * bytes <= c->q->head->text_bytes;
    return sound ? KILN_OK : kiln_fail(err, KILN_E_BUG, "a camera was told of other blocks than the layer has");
}

kiln_status kiln_prune_weight_unit(kiln_worker *w, const kiln_prune_request *q, kiln_error *err)
{
    weighing c = {.q = q, .count = {.w = w, .request = &q->head->request}};
    kiln_prune_weight weight = {0};
    kiln_status st;
    uint64_t budget;
    KILN_TRY(kiln_prune_input_get_ahead(w, q->head, &c.in, &budget, err));
    KILN_GO(check_marks(&c, err));
    KILN_GO(KILN_ALLOC(&c.store, lay_out(&c, NULL), "projected Gaussians", err));
    (void)lay_out(&c, c.store);
    KILN_GO(weigh(&c, &weight, err));
    KILN_GO(kiln_worker_put(w, "weight", &weight, sizeof weight, 8, err));
done:
    free(c.store);
    return st;
}
