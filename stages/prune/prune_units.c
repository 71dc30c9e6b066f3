/* prune_units -- the worker's side: reads the payload, keeps the layer and its decoded planes
 * between units, and calls the unit's own file. */
#include "stages/prune/prune_units.h"
#include "stages/engine/memory/plane_cache.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

static kiln_status read_request(const void *payload, size_t bytes, kiln_prune_request *q,
                                kiln_error *err)
{
    const char *at = payload;
    *q = (kiln_prune_request){.head = payload};
    if (bytes < sizeof *q->head)
        return kiln_fail(err, KILN_E_BUG, "a payload of %zu bytes is shorter than its head", bytes);
    at += sizeof *q->head;
    q->looks = (const void *)at;
    at += q->head->n_looks * sizeof *q->looks;
    q->masks = (const void *)at;
    at += q->head->n_masks * sizeof *q->masks;
    q->merges = (const void *)at;
    at += q->head->n_merges * sizeof *q->merges;
    q->rows = (const void *)at;
    at += q->head->n_rows * sizeof *q->rows;
    q->kept = (const void *)at;
    at += q->head->n_kept * sizeof *q->kept;
    q->marks = (const void *)at;
    at += q->head->mark_bytes;
    q->strays = (const void *)at;
    at += q->head->stray_bytes;
    q->text = at;
    at += q->head->text_bytes;
    if (at != (const char *)payload + bytes)
        return kiln_fail(err, KILN_E_BUG, "a payload of %zu bytes does not hold what its head says",
                         bytes);
    return KILN_OK;
}

static void input_free(void *state)
{
    kiln_prune_input *in = state;
    if (!in) return;
    kiln_draw_store_free(in->store);
    kiln_runner_free(in->host);
    kiln_ahead_release(&in->ahead);
    kiln_plane_cache_free(in->planes);
    free(in->keys);
    free(in->spacing_of);
    kiln_layer_free(in->spacing);
    kiln_layer_free(in->layer);
    free(in);
}

uint32_t kiln_prune_find_block(const kiln_layer *l, const char *name)
{
    uint32_t lo = 0, hi = l->n_chunks;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (strcmp(l->chunks[mid].name, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < l->n_chunks && strcmp(l->chunks[lo].name, name) == 0 ? lo : KILN_PRUNE_NO_BLOCK;
}

static kiln_status find_spacing(kiln_prune_input *in, kiln_error *err)
{
    if (!in->spacing) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&in->spacing_of, in->layer->n_chunks, "the blocks", err));
    for (uint32_t i = 0; i < in->layer->n_chunks; i++) {
        const kiln_chunk *c = &in->layer->chunks[i];
        const uint32_t at = kiln_prune_find_block(in->spacing, c->name);
        in->spacing_of[i] = at;
        if (at != KILN_PRUNE_NO_BLOCK && in->spacing->chunks[at].count != c->count)
            return kiln_fail(
                err, KILN_E_IO,
                "block '%s' of the layer 'spacing' has another number of rows; run kiln-knn again",
                c->name);
    }
    return KILN_OK;
}

bool kiln_prune_keeps(const char *plane)
{
    static const char *const names[] = {"means",          "log_scales", "quats",
                                        "opacity_logits", "spacing2",   "source_row"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], plane) == 0) return true;
    return false;
}

kiln_prune_seen kiln_prune_seen_at(void *bytes, uint64_t rows, bool alphas)
{
    kiln_prune_seen s = {.weights = bytes, .alphas = alphas ? (uint64_t *)bytes + rows : NULL};
    s.peaks = (uint32_t *)(s.weights + (alphas ? 2 : 1) * rows);
    return s;
}

bool kiln_prune_may_see(const kiln_prune_unit *head, const kiln_view_request *request,
                        const kiln_chunk *c)
{
    const bool raised = head->rules.min_scale_policy == KILN_PRUNE_CLAMP &&
                        (double)head->rules.min_scale > c->max_log_scale;
    return c->count > 0 && (head->n_merges > 0 || raised || kiln_view_request_may_see(request, c));
}

bool kiln_prune_has_block(const kiln_prune_input *in, uint32_t block)
{
    return !in->spacing || in->spacing_of[block] != KILN_PRUNE_NO_BLOCK;
}

static kiln_status open_unit_input(kiln_worker *w, const kiln_prune_unit *u, kiln_prune_input **out,
                                   kiln_error *err)
{
    kiln_manifest *m;
    kiln_prune_input *in;
    kiln_status st;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_TRY(KILN_ALLOC(&in, 1, "the input of prune", err));
    KILN_GO(
        kiln_layer_get_digest(m, kiln_layer_kinds[u->layer_kind].name, u->layer, &in->layer, err));
    if (!kiln_hash_is_zero(u->spacing))
        KILN_GO(kiln_layer_get_digest(m, kiln_layer_kinds[KILN_LAYER_spacing].name, u->spacing,
                                      &in->spacing, err));
    KILN_GO(find_spacing(in, err));
    KILN_GO(kiln_plane_cache_new(0, &in->planes, err));
    for (uint32_t i = 0; i < in->layer->n_chunks; i++)
        if (in->layer->chunks[i].count > in->largest) in->largest = in->layer->chunks[i].count;
    kiln_worker_set_state(w, in, input_free);
    *out = in;
    return KILN_OK;
done:
    input_free(in);
    return st;
}

static kiln_status get_input(kiln_worker *w, const kiln_prune_unit *u, kiln_prune_input **out,
                             kiln_error *err)
{
    *out = kiln_worker_state(w);
    return *out && kiln_hash_equal((*out)->layer->digest, u->layer)
               ? KILN_OK
               : open_unit_input(w, u, out, err);
}

/* A worker alone may have more threads than the plan counted memory for. */
unsigned kiln_prune_threads(const kiln_worker *w, const kiln_prune_unit *u)
{
    const uint64_t share = kiln_worker_ram(w), spare = share > u->ram ? share - u->ram : 0;
    const uint64_t more = u->ram_thread ? spare / u->ram_thread : UINT32_MAX;
    return kiln_worker_threads(w) <= more ? kiln_worker_threads(w) : (unsigned)more + 1;
}

static uint64_t spare_of(const kiln_worker *w, const kiln_prune_unit *u)
{
    const uint64_t share = kiln_worker_ram(w),
                   ram = u->ram + u->ram_thread * (kiln_prune_threads(w, u) - 1);
    return share > ram ? share - ram : 0;
}

kiln_status kiln_prune_input_get(kiln_worker *w, const kiln_prune_unit *u, kiln_prune_input **out,
                                 kiln_error *err)
{
    KILN_TRY(get_input(w, u, out, err));
    kiln_ahead_release(&(*out)->ahead);
    kiln_plane_cache_set_budget((*out)->planes, spare_of(w, u));
    return KILN_OK;
}

kiln_status kiln_prune_input_get_ahead(kiln_worker *w, const kiln_prune_unit *u,
                                       kiln_prune_input **out, uint64_t *budget, kiln_error *err)
{
    const uint64_t spare = spare_of(w, u);
    KILN_TRY(get_input(w, u, out, err));
    *budget = spare - kiln_ahead_set(&(*out)->ahead, w, (*out)->layer, false, spare);
    kiln_plane_cache_set_budget((*out)->planes, *budget);
    return KILN_OK;
}

/* Of the planes that a camera reads; kernels/draw knows blocks by it. */
static kiln_hash key_prune_block(const kiln_chunk *c)
{
    static const char *const names[] = {"means", "log_scales", "quats", "opacity_logits"};
    kiln_hash planes[sizeof names / sizeof *names] = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const kiln_plane *p = kiln_chunk_plane(c, names[i]);
        if (p)
            planes[i] =
                kiln_hash_of(p->data.segments, p->data.n_segments * sizeof *p->data.segments);
    }
    return kiln_hash_of(planes, sizeof planes);
}

static kiln_status prepare_drawing(kiln_worker *w, kiln_prune_input *in, kiln_error *err)
{
    const bool gpu = kiln_runner_exec(kiln_worker_runner(w)).device >= 0;
    const kiln_runner_options host = {.device = KILN_RUNNER_CPU, .threads = kiln_worker_threads(w)};
    if (!in->store) KILN_TRY(kiln_draw_store_new(kiln_worker_runner(w), &in->store, err));
    if (gpu && !in->host) KILN_TRY(kiln_runner_new(&host, &in->host, err));
    if (in->keys) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&in->keys, in->layer->n_chunks, "keys of blocks", err));
    for (uint32_t i = 0; i < in->layer->n_chunks; i++)
        in->keys[i] = key_prune_block(&in->layer->chunks[i]);
    return KILN_OK;
}

kiln_status kiln_prune_input_get_drawn(kiln_worker *w, const kiln_prune_unit *u,
                                       kiln_prune_input **out, kiln_error *err)
{
    uint64_t budget;
    KILN_TRY(kiln_prune_input_get_ahead(w, u, out, &budget, err));
    return prepare_drawing(w, *out, err);
}

const kiln_chunk *kiln_prune_plane_chunk(const kiln_prune_input *in, uint32_t block,
                                         const char *plane)
{
    const bool aside = in->spacing && strcmp(plane, "spacing2") == 0;
    return aside ? &in->spacing->chunks[in->spacing_of[block]] : &in->layer->chunks[block];
}

kiln_status kiln_prune_plane(kiln_worker *w, kiln_prune_input *in, uint32_t block, const char *name,
                             const void **out, kiln_error *err)
{
    kiln_manifest *m;
    if (strcmp(name, "spacing2") == 0 && !kiln_prune_has_block(in, block))
        return kiln_fail(err, KILN_E_BUG, "block '%s' has no spacing",
                         in->layer->chunks[block].name);
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    return kiln_plane_cache_get(in->planes, m, kiln_prune_plane_chunk(in, block, name), name, out,
                                err);
}

kiln_status kiln_prune_geometry(kiln_worker *w, kiln_prune_input *in, uint32_t block,
                                kiln_geometry *out, kiln_error *err)
{
    const struct {
        const char *name;
        const float **to;
    } planes[] = {{"means", &out->means},
                  {"log_scales", &out->log_scales},
                  {"quats", &out->quats},
                  {"opacity_logits", &out->opacity_logits}};
    for (size_t i = 0; i < sizeof planes / sizeof *planes; i++) {
        const void *data;
        KILN_TRY(kiln_prune_plane(w, in, block, planes[i].name, &data, err));
        *planes[i].to = data;
    }
    out->n = in->layer->chunks[block].count;
    return KILN_OK;
}

kiln_status kiln_prune_compute(kiln_worker *w, const char *name, const void *payload,
                               size_t payload_bytes, kiln_error *err)
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
    case KILN_PRUNE_MARKS:
        return kiln_prune_marks_unit(w, &q, err);
    case KILN_PRUNE_WEIGHT:
        return kiln_prune_weight_unit(w, &q, err);
    case KILN_PRUNE_LEFT:
        return kiln_prune_left_unit(w, &q, err);
    case KILN_PRUNE_SCORES:
        return kiln_prune_scores_unit(w, &q, err);
    case KILN_PRUNE_CURVE:
        return kiln_prune_curve_unit(w, &q, err);
    case KILN_PRUNE_STRAYS:
        return kiln_prune_strays_unit(w, &q, err);
    case KILN_PRUNE_VOXELS:
        return kiln_prune_voxels_unit(w, &q, err);
    }
    return kiln_fail(err, KILN_E_BUG, "unit '%s' is of an unknown kind", name);
}
