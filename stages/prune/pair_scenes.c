/* pair_scenes -- counts pairs of many blocks at once, as scenes of kernels/draw, which keeps planes on a GPU from camera to camera.
 *
 * One scene has every block twice: as its source has it and, where the rules change it, as they leave it. A pass hides the chunks
 * that it does not count:
 *
 *   SAME     blocks that the rules leave alone; they count before and after
 *   BEFORE   the source of blocks that the rules change
 *   AFTER    what the rules leave of them
 *
 * The scene is the same in all passes and for all cameras, so planes that are on the device stay there. If the rules change a
 * block, chunks are projected one by one, because a pass hides some that the camera sees. Rules are applied on the CPU whenever the
 * device lacks what they leave: while it is being filled, its runner is in use. */
#include "base/memory.h"
#include "stages/prune/prune_units.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    kiln_worker *w;
    kiln_prune_input *in;
    const kiln_prune_request *q;
    kiln_prune_pass pass;
    float *after;          /* planes of the block that was asked for last */
    uint32_t *source_rows; /* zeros: nothing is drawn, so no order is needed */
} looking;

static kiln_prune_pass pass_of(const looking *x, uint32_t block, bool after)
{
    if (x->q->kept[block] == KILN_PRUNE_UNTOUCHED) return after ? KILN_PRUNE_NO_PASS : KILN_PRUNE_SAME;
    if (x->q->kept[block] == KILN_PRUNE_UNKNOWN) return KILN_PRUNE_NO_PASS;
    return after ? KILN_PRUNE_AFTER : KILN_PRUNE_BEFORE;
}

static bool is_hidden(const looking *x, uint32_t block, bool after)
{
    return pass_of(x, block, after) != x->pass || !kiln_prune_has_block(x->in, block) ||
           !kiln_view_request_may_see(&x->q->head->request, &x->in->layer->chunks[block]);
}

static bool rules_change_a_block(const looking *x)
{
    for (uint32_t i = 0; i < x->in->layer->n_chunks; i++)
        if (x->q->kept[i] != KILN_PRUNE_UNTOUCHED && x->q->kept[i] != KILN_PRUNE_UNKNOWN) return true;
    return false;
}

static kiln_status give_header(void *context, uint32_t index, kiln_draw_chunk_header *out, kiln_error *err)
{
    const looking *x = context;
    const uint32_t n = x->in->layer->n_chunks, block = index % n;
    const bool after = index >= n;
    (void)err;
    *out = (kiln_draw_chunk_header){.n = x->in->layer->chunks[block].count, .hidden = is_hidden(x, block, after)};
    if (after) out->n = pass_of(x, block, true) == KILN_PRUNE_AFTER ? x->q->kept[block] : 0;
    kiln_hash key = x->in->keys[block];
    if (after) key = kiln_hash_of(&key, sizeof key); /* the rules are the same as long as the worker lives */
    memcpy(out->key, key.bytes, sizeof out->key);
    return KILN_OK;
}

static bool is_in_view(const void *context, uint32_t block)
{
    const looking *x = context;
    return kiln_view_request_may_see(&x->q->head->request, &x->in->layer->chunks[block]);
}

static kiln_status give_source(looking *x, uint32_t block, kiln_draw_chunk *out, kiln_error *err)
{
    const kiln_chunk *c = &x->in->layer->chunks[block];
    const struct {
        const char *name;
        const float **to;
    } planes[] = {
        {"means", &out->means}, {"log_scales", &out->log_scales}, {"quats", &out->quats}, {"opacity_logits", &out->opacity_logits}};
    KILN_TRY(kiln_ahead_read(&x->in->ahead, x->in->planes, x->in->layer, is_in_view, x, block, false, err));
    for (size_t i = 0; i < sizeof planes / sizeof *planes; i++) {
        const void *data;
        KILN_TRY(kiln_prune_plane(x->w, x->in, block, planes[i].name, &data, err));
        *planes[i].to = data;
    }
    out->source_rows = x->source_rows;
    out->n = c->count;
    return KILN_OK;
}

static const float *kept_rows(const kiln_pruned_rows *r, const float *from, uint64_t components, float **at)
{
    const float *first = *at;
    for (uint64_t c = 0; c < components; c++)
        for (uint64_t i = 0; i < r->n; i++)
            if (r->keep[i]) *(*at)++ = from[c * r->n + i];
    return first;
}

static kiln_status give_pruned(looking *x, uint32_t block, kiln_draw_chunk *out, kiln_error *err)
{
    kiln_pruned_rows r;
    float *at = x->after;
    KILN_TRY(kiln_pruned_rows_make(x->w, x->in, x->q, block, &r, err));
    kiln_status st = KILN_OK;
    if (r.kept != x->q->kept[block])
        KILN_GO(kiln_fail(err, KILN_E_IO, "block '%s' keeps %llu rows, its stored result says %u; run kiln-prune with --force",
                          x->in->layer->chunks[block].name, (unsigned long long)r.kept, x->q->kept[block]));
    out->means = kept_rows(&r, r.means, 3, &at);
    out->log_scales = kept_rows(&r, r.log_scales_after, 3, &at);
    out->quats = kept_rows(&r, r.quats, 4, &at);
    out->opacity_logits = kept_rows(&r, r.opacity_logits, 1, &at);
    out->source_rows = x->source_rows;
    out->n = r.kept;
done:
    kiln_pruned_rows_release(&r);
    return st;
}

static kiln_status give_chunk(void *context, uint32_t index, kiln_draw_chunk *out, kiln_error *err)
{
    looking *x = context;
    const uint32_t n = x->in->layer->n_chunks, block = index % n;
    const bool after = index >= n;
    memset(out, 0, sizeof *out);
    if (is_hidden(x, block, after)) return KILN_OK;
    return after ? give_pruned(x, block, out, err) : give_source(x, block, out, err);
}

kiln_status kiln_prune_count_pass(kiln_worker *w, kiln_prune_input *in, const kiln_prune_request *q, kiln_prune_pass pass,
                                  uint64_t *visible, uint64_t *pairs, kiln_error *err)
{
    looking x = {.w = w, .in = in, .q = q, .pass = pass};
    kiln_draw_tally t = {0};
    kiln_status st;
    const kiln_draw_scene scene = {.view = &q->head->request.view,
                                   .profile = q->head->request.profile,
                                   .antialiased = q->head->request.antialiased,
                                   .n_chunks = 2 * in->layer->n_chunks,
                                   .apart = rules_change_a_block(&x),
                                   .chunk = give_chunk,
                                   .header = give_header,
                                   .store = in->store,
                                   .context = &x};
    KILN_GO(KILN_ALLOC(&t.row_pairs, kiln_view_tiles_y(scene.view), "pairs of tile rows", err));
    KILN_GO(KILN_ALLOC(&x.source_rows, in->largest, "a block's rows", err));
    if (pass == KILN_PRUNE_AFTER) KILN_GO(KILN_ALLOC(&x.after, 11 * in->largest, "a pruned block", err));
    KILN_GO(kiln_draw_count_all(kiln_worker_runner(w), &scene, &t, err));
    *visible = t.visible;
    *pairs = t.pairs;
done:
    free(x.after);
    free(x.source_rows);
    free(t.row_pairs);
    return st;
}
