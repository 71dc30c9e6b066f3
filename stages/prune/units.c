/* units -- the worker's side: reads the payload, keeps the layer and its decoded planes between units, and calls the
 * unit's own file. */
#include "stages/prune/units.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

#define PLANE_BUDGET ((uint64_t)512 << 20)

static kiln_status read_request(const void *payload, size_t bytes, kiln_prune_request *q, kiln_error *err)
{
    const char *at = payload;
    *q = (kiln_prune_request){.head = payload};
    if (bytes < sizeof *q->head) return kiln_fail(err, KILN_E_BUG, "a payload of %zu bytes is shorter than its head", bytes);
    at += sizeof *q->head;
    q->merges = (const void *)at;
    at += q->head->n_merges * sizeof *q->merges;
    q->rows = (const void *)at;
    at += q->head->n_rows * sizeof *q->rows;
    q->text = at;
    at += q->head->text_bytes;
    if (at != (const char *)payload + bytes)
        return kiln_fail(err, KILN_E_BUG, "a payload of %zu bytes does not hold what its head says", bytes);
    return KILN_OK;
}

static void input_free(void *state)
{
    kiln_prune_input *in = state;
    if (!in) return;
    kiln_plane_cache_free(in->planes);
    kiln_layer_free(in->spacing);
    kiln_layer_free(in->layer);
    free(in);
}

static kiln_status check_spacing(const kiln_prune_input *in, kiln_error *err)
{
    if (in->spacing && in->spacing->n_chunks != in->layer->n_chunks)
        return kiln_fail(err, KILN_E_IO, "the layer 'spacing' has %u blocks, '%s' has %u; run kiln-knn again",
                         in->spacing->n_chunks, in->layer->kind, in->layer->n_chunks);
    for (uint32_t i = 0; in->spacing && i < in->layer->n_chunks; i++)
        if (in->spacing->chunks[i].count != in->layer->chunks[i].count)
            return kiln_fail(err, KILN_E_IO, "block '%s' of the layer 'spacing' has another number of rows; run kiln-knn again",
                             in->layer->chunks[i].name);
    return KILN_OK;
}

kiln_status kiln_prune_input_get(kiln_worker *w, const kiln_prune_unit *u, kiln_prune_input **out, kiln_error *err)
{
    kiln_manifest *m;
    kiln_prune_input *in = kiln_worker_state(w);
    kiln_status st;
    *out = in;
    if (in && kiln_hash_equal(in->layer->digest, u->layer)) return KILN_OK;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_TRY(KILN_ALLOC(&in, 1, "the input of prune", err));
    KILN_GO(kiln_layer_get_digest(m, u->layer_kind, u->layer, &in->layer, err));
    if (!kiln_hash_is_zero(u->spacing)) KILN_GO(kiln_layer_get_digest(m, "spacing", u->spacing, &in->spacing, err));
    KILN_GO(check_spacing(in, err));
    KILN_GO(kiln_plane_cache_new(PLANE_BUDGET, &in->planes, err));
    for (uint32_t i = 0; i < in->layer->n_chunks; i++)
        if (in->layer->chunks[i].count > in->largest) in->largest = in->layer->chunks[i].count;
    kiln_worker_set_state(w, in, input_free);
    *out = in;
    return KILN_OK;
done:
    input_free(in);
    return st;
}

kiln_status kiln_prune_plane(kiln_worker *w, kiln_prune_input *in, uint32_t block, const char *name, const void **out,
                             kiln_error *err)
{
    kiln_manifest *m;
    const kiln_layer *from = in->spacing && strcmp(name, "spacing2") == 0 ? in->spacing : in->layer;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    return kiln_plane_cache_get(in->planes, m, &from->chunks[block], name, out, err);
}

kiln_status kiln_prune_compute(kiln_worker *w, const char *name, const void *payload, size_t payload_bytes, kiln_error *err)
{
    kiln_prune_request q;
    KILN_TRY(read_request(payload, payload_bytes, &q, err));
    switch (q.head->kind) {
    case KILN_PRUNE_STATS:
        return kiln_prune_stats_unit(w, &q, err);
    case KILN_PRUNE_MERGES:
        return kiln_prune_merges_unit(w, &q, err);
    case KILN_PRUNE_BLOCK:
        return kiln_prune_block_unit(w, &q, err);
    case KILN_PRUNE_PAIRS:
        return kiln_prune_pairs_unit(w, &q, err);
    case KILN_PRUNE_SCALES:
        return kiln_prune_scales_unit(w, &q, err);
    }
    return kiln_fail(err, KILN_E_BUG, "unit '%s' is of no known kind", name);
}
