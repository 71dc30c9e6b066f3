/* scores_unit -- what some cameras see of each row that the other rules leave: sums and maxima of
 * integers, so that neither devices, threads, memory nor the order of cameras shows. Masked pixels
 * of their photos do not count. */
#include "base/memory.h"
#include "kernels/blend_weights/blend_weights.h"
#include "stages/prune/pruned_scene.h"

#include <stdlib.h>
#include <string.h>

/* [n_chunks] of each: NULL of blocks that no camera may see. */
typedef struct {
    uint64_t **weights, **alphas;
    uint32_t **peaks;
    uint32_t n;
} seen_sums;

static void seen_sums_release(seen_sums *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->weights) free(s->weights[i]);
        if (s->alphas) free(s->alphas[i]);
        if (s->peaks) free(s->peaks[i]);
    }
    free(s->weights);
    free(s->alphas);
    free(s->peaks);
}

static bool a_look_may_see(const kiln_prune_request *q, const kiln_chunk *c)
{
    for (uint64_t v = 0; v < q->head->n_looks; v++)
        if (kiln_prune_may_see(q->head, &q->looks[v].request, c)) return true;
    return false;
}

static kiln_status seen_sums_make(const kiln_prune_input *in, const kiln_prune_request *q,
                                  seen_sums *s, kiln_error *err)
{
    static const char what[] = "what cameras see of rows";
    KILN_TRY(KILN_ALLOC(&s->weights, in->layer->n_chunks, what, err));
    KILN_TRY(KILN_ALLOC(&s->peaks, in->layer->n_chunks, what, err));
    if (q->head->alphas) KILN_TRY(KILN_ALLOC(&s->alphas, in->layer->n_chunks, what, err));
    s->n = in->layer->n_chunks;
    for (uint32_t i = 0; i < s->n; i++) {
        const kiln_chunk *c = &in->layer->chunks[i];
        if (!kiln_prune_has_block(in, i) || !a_look_may_see(q, c)) continue;
        KILN_TRY(KILN_ALLOC(&s->weights[i], c->count, what, err));
        KILN_TRY(KILN_ALLOC(&s->peaks[i], c->count, what, err));
        if (s->alphas) KILN_TRY(KILN_ALLOC(&s->alphas[i], c->count, what, err));
    }
    return KILN_OK;
}

static kiln_status look(kiln_worker *w, kiln_prune_input *in, const kiln_prune_request *q,
                        const kiln_prune_look *l, const seen_sums *s, kiln_error *err)
{
    kiln_pruned_scene left = {.w = w, .in = in, .q = q, .view = &l->request};
    kiln_draw_scene scene;
    uint8_t *mask;
    KILN_TRY(kiln_prune_mask_read(w, q, l, &mask, err));
    kiln_pruned_scene_of(&left, &scene);
    const uint64_t capacity = q->head->capacity;
    const kiln_draw_want want = {.ways = capacity > 0
                                             ? KILN_DRAW_SLABS
                                             : KILN_DRAW_DEVICE | KILN_DRAW_SLABS | KILN_DRAW_HOST,
                                 .capacity = capacity,
                                 .sums = s->weights,
                                 .peaks = s->peaks,
                                 .alphas = s->alphas,
                                 .mask = mask};
    const kiln_status st = kiln_draw(kiln_worker_runner(w), &scene, &want, NULL, err);
    kiln_pruned_scene_release(&left);
    free(mask);
    return st;
}

static kiln_status put_seen(kiln_worker *w, const kiln_prune_input *in, const seen_sums *s,
                            kiln_error *err)
{
    const uint64_t most = kiln_prune_seen_bytes(in->largest, s->alphas != NULL);
    char *all;
    kiln_status st = KILN_OK;
    KILN_TRY(KILN_ALLOC_UNSET(&all, most, "what cameras see of a block", err));
    for (uint32_t i = 0; i < s->n && st == KILN_OK; i++) {
        const uint64_t n = in->layer->chunks[i].count;
        if (!s->peaks[i]) continue;
        const kiln_prune_seen to = kiln_prune_seen_at(all, n, s->alphas != NULL);
        memcpy(to.weights, s->weights[i], n * sizeof *to.weights);
        if (s->alphas) memcpy(to.alphas, s->alphas[i], n * sizeof *to.alphas);
        memcpy(to.peaks, s->peaks[i], n * sizeof *to.peaks);
        st = kiln_worker_put(w, in->layer->chunks[i].name, all,
                             kiln_prune_seen_bytes(n, s->alphas != NULL), sizeof *to.peaks, err);
    }
    free(all);
    return st;
}

kiln_status kiln_prune_scores_unit(kiln_worker *w, const kiln_prune_request *q, kiln_error *err)
{
    kiln_prune_input *in;
    seen_sums s = {0};
    kiln_status st;
    KILN_TRY(kiln_prune_input_get_drawn(w, q->head, &in, err));
    KILN_GO(seen_sums_make(in, q, &s, err));
    for (uint64_t v = 0; v < q->head->n_looks; v++) KILN_GO(look(w, in, q, &q->looks[v], &s, err));
    KILN_GO(put_seen(w, in, &s, err));
done:
    seen_sums_release(&s);
    return st;
}
