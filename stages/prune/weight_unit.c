/* weight_unit -- what the rows that rules with an `auto` limit would touch hold of a camera's
 * pairs: all of these pairs, and whether they are more than the others.
 *
 * The rows are few in a sound scene, so their pairs are counted first; those of the others then
 * only until there are as many. That makes the answer of a camera as cheap as a block or two. In a
 * scene that exploded all blocks are counted. Only counts that depend on nothing but the scene are
 * stored: how far the others were counted is not. */
#include "base/carve.h"
#include "stages/prune/pair_counter.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    kiln_prune_input *in;
    const kiln_prune_request *q;
    kiln_pair_counter count;
    uint32_t *rows;  /* [rows of the largest block] */
    float *gathered; /* geometry of these */
    char *store;
} weighing;

static size_t lay_out_weighing(weighing *c, char *store)
{
    kiln_carve at = {store, 0};
    c->count.splats = kiln_take(&at, c->in->largest, sizeof *c->count.splats);
    c->rows = kiln_take(&at, c->in->largest, sizeof *c->rows);
    c->gathered = kiln_take(&at, c->in->largest, 11 * sizeof *c->gathered);
    c->count.row_pairs =
        kiln_take(&at, kiln_view_tiles_y(&c->count.request->view), sizeof *c->count.row_pairs);
    return at.used;
}

static bool is_seen(const weighing *c, uint32_t block)
{
    return kiln_prune_has_block(c->in, block) &&
           kiln_view_request_may_see(c->count.request, &c->in->layer->chunks[block]);
}

/* The bits of the rows that the rules would touch, half of a block's marks; NULL: no row of the
 * block is marked. */
static const uint8_t *marks_of(const weighing *c, uint32_t block)
{
    const uint32_t at = c->q->kept[block];
    return at == KILN_PRUNE_NO_BLOCK
               ? NULL
               : (const uint8_t *)c->q->text + at * kiln_prune_marks_bytes(c->in->largest);
}

static bool has_bit(const uint8_t *bits, uint64_t i) { return bits[i >> 3] >> (i & 7) & 1; }

/* c->rows: the rows that have a bit. Most bytes are 0. */
static uint64_t list_rows(const weighing *c, const uint8_t *bits, uint64_t n)
{
    uint64_t k = 0;
    for (uint64_t byte = 0; byte < (n + 7) / 8; byte++) {
        if (!bits[byte]) continue;
        for (uint64_t i = 8 * byte; i < 8 * byte + 8 && i < n; i++)
            if (has_bit(bits, i)) c->rows[k++] = (uint32_t)i;
    }
    return k;
}

static const float *gather_plane(const weighing *c, uint64_t n_rows, const float *from, uint64_t n,
                                 uint64_t components, float **at)
{
    const float *first = *at;
    for (uint64_t k = 0; k < components; k++)
        for (uint64_t i = 0; i < n_rows; i++) *(*at)++ = from[k * n + c->rows[i]];
    return first;
}

static kiln_status add_touched(weighing *c, uint32_t block, kiln_prune_weight *out, kiln_error *err)
{
    const uint8_t *bits = marks_of(c, block);
    kiln_geometry from, rows;
    uint64_t pairs, visible;
    float *at = c->gathered;
    if (!bits) return KILN_OK;
    KILN_TRY(kiln_prune_geometry(c->count.w, c->in, block, &from, err));
    rows.n = list_rows(c, bits, from.n);
    rows.means = gather_plane(c, rows.n, from.means, from.n, 3, &at);
    rows.log_scales = gather_plane(c, rows.n, from.log_scales, from.n, 3, &at);
    rows.quats = gather_plane(c, rows.n, from.quats, from.n, 4, &at);
    rows.opacity_logits = gather_plane(c, rows.n, from.opacity_logits, from.n, 1, &at);
    KILN_TRY(kiln_pair_counter_project(&c->count, &rows, &visible, err));
    KILN_TRY(kiln_pair_counter_count(&c->count, visible, c->count.splats, &pairs, err));
    out->pairs += pairs;
    out->visible += visible;
    return KILN_OK;
}

/* Without the rows that are marked: those that the rules would touch, and those that another
 * drops. */
static kiln_status add_others(weighing *c, uint32_t block, uint64_t *others, kiln_error *err)
{
    const uint8_t *bits = marks_of(c, block),
                  *dropped = bits ? bits + kiln_prune_marks_bytes(c->in->largest) / 2 : NULL;
    kiln_splat2d *splats = c->count.splats;
    kiln_geometry g;
    uint64_t pairs, visible, left = 0;
    KILN_TRY(kiln_prune_geometry(c->count.w, c->in, block, &g, err));
    KILN_TRY(kiln_pair_counter_project(&c->count, &g, &visible, err));
    for (uint64_t i = 0; i < visible && bits; i++)
        if (!has_bit(bits, splats[i].row) && !has_bit(dropped, splats[i].row))
            splats[left++] = splats[i];
    KILN_TRY(kiln_pair_counter_count(&c->count, bits ? left : visible, splats, &pairs, err));
    *others += pairs;
    return KILN_OK;
}

static kiln_status weigh(weighing *c, kiln_prune_weight *out, kiln_error *err)
{
    const uint32_t n = c->in->layer->n_chunks;
    uint64_t others = 0;
    for (uint32_t i = 0; i < n; i++)
        if (is_seen(c, i)) KILN_TRY(add_touched(c, i, out, err));
    for (uint32_t i = 0; i < n && others < out->pairs; i++)
        if (is_seen(c, i)) KILN_TRY(add_others(c, i, &others, err));
    out->holds_most = others < out->pairs;
    return KILN_OK;
}

/* Of each block a mark that is there. */
static kiln_status check_marks(const weighing *c, kiln_error *err)
{
    const uint64_t n = c->in->layer->n_chunks, bytes = kiln_prune_marks_bytes(c->in->largest);
    bool sound = c->q->head->n_kept == n;
    for (uint64_t i = 0; i < n && sound; i++)
        sound = c->q->kept[i] == KILN_PRUNE_NO_BLOCK ||
                (c->q->kept[i] + UINT64_C(1)) * bytes <= c->q->head->text_bytes;
    return sound ? KILN_OK
                 : kiln_fail(err, KILN_E_BUG,
                             "a camera has weights of other blocks than the layer has");
}

kiln_status kiln_prune_weight_unit(kiln_worker *w, const kiln_prune_request *q, kiln_error *err)
{
    weighing c = {.q = q, .count = {.w = w, .request = &q->head->request}};
    kiln_prune_weight weight = {0};
    kiln_status st;
    uint64_t budget;
    KILN_TRY(kiln_prune_input_get_ahead(w, q->head, &c.in, &budget, err));
    KILN_GO(check_marks(&c, err));
    KILN_GO(KILN_ALLOC(&c.store, lay_out_weighing(&c, NULL), "projected Gaussians", err));
    (void)lay_out_weighing(&c, c.store);
    KILN_GO(weigh(&c, &weight, err));
    KILN_GO(kiln_worker_put(w, "weight", &weight, sizeof weight, 8, err));
done:
    free(c.store);
    return st;
}
