/* pair_scenes -- counts pairs of many blocks at once, as scenes of kernels/draw, which keeps planes
 * on a GPU from camera to camera.
 *
 * One scene has every block three times: as its source has it and, where the rules change it, as
 * they leave it, and the rows that they touch as the source has them. A pass hides the chunks that
 * it does not count:
 *
 *   SAME     blocks that the rules leave alone; they count before and after
 *   BEFORE   the source of blocks that the rules change
 *   AFTER    what the rules leave of them
 *   TOUCHED  the rows of these blocks that the rules drop or change and that could show
 *
 * The scene is the same in all passes and for all cameras, so planes that are on the device stay
 * there. If the rules change a block, chunks are projected one by one, because a pass hides some
 * that the camera sees. Rules are applied on the CPU whenever the device lacks what they leave:
 * while it is being filled, its runner is in use. */
#include "base/memory.h"
#include "stages/prune/pair_counter.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    kiln_worker *w;
    kiln_prune_input *in;
    const kiln_prune_request *q;
    kiln_prune_pass pass;
    /* planes of the block that was asked for last, of the versions that are no source */
    float *made;
    uint32_t *source_rows; /* zeros: nothing is drawn, so no order is needed */
} looking;

/* Chunks of the scene are all blocks in one version after the other. */
typedef enum { SOURCE, AFTER, TOUCHED, VERSIONS } version;

static kiln_prune_pass pass_of(const looking *x, uint32_t block, version v)
{
    static const kiln_prune_pass passes[VERSIONS] = {KILN_PRUNE_BEFORE, KILN_PRUNE_AFTER,
                                                     KILN_PRUNE_TOUCHED};
    if (x->q->kept[block] == KILN_PRUNE_UNTOUCHED)
        return v == SOURCE ? KILN_PRUNE_SAME : KILN_PRUNE_NO_PASS;
    return x->q->kept[block] == KILN_PRUNE_UNKNOWN ? KILN_PRUNE_NO_PASS : passes[v];
}

static bool is_hidden(const looking *x, uint32_t block, version v)
{
    return pass_of(x, block, v) != x->pass || !kiln_prune_has_block(x->in, block) ||
           !kiln_view_request_may_see(&x->q->head->request, &x->in->layer->chunks[block]);
}

static uint64_t rows_of_version(const looking *x, uint32_t block, version v)
{
    if (v == SOURCE) return x->in->layer->chunks[block].count;
    if (pass_of(x, block, v) == KILN_PRUNE_NO_PASS) return 0;
    return x->q->kept[v == AFTER ? block : x->in->layer->n_chunks + block];
}

static bool rules_change_a_block(const looking *x)
{
    for (uint32_t i = 0; i < x->in->layer->n_chunks; i++)
        if (x->q->kept[i] != KILN_PRUNE_UNTOUCHED && x->q->kept[i] != KILN_PRUNE_UNKNOWN)
            return true;
    return false;
}

static kiln_status give_header(void *context, uint32_t index, kiln_draw_chunk_header *out,
                               kiln_error *err)
{
    const looking *x = context;
    const uint32_t n = x->in->layer->n_chunks, block = index % n;
    const version v = index / n;
    (void)err;
    *out = (kiln_draw_chunk_header){.n = rows_of_version(x, block, v),
                                    .hidden = is_hidden(x, block, v)};
    kiln_hash key = x->in->keys[block];
    /* the rules are the same as long as the worker lives */
    for (int i = 0; i < (int)v; i++) key = kiln_hash_of(&key, sizeof key);
    memcpy(out->key, key.bytes, sizeof out->key);
    return KILN_OK;
}

static bool is_in_view(const void *context, uint32_t block)
{
    const looking *x = context;
    return kiln_view_request_may_see(&x->q->head->request, &x->in->layer->chunks[block]);
}

static void give_geometry(const looking *x, const kiln_geometry *g, kiln_draw_chunk *out)
{
    *out = (kiln_draw_chunk){.n = g->n, KILN_PROJECT_PLANES(g), .source_rows = x->source_rows};
}

static kiln_status give_source(looking *x, uint32_t block, kiln_draw_chunk *out, kiln_error *err)
{
    const kiln_ahead_view view = {
        .cache = x->in->planes, .layer = x->in->layer, .in_view = is_in_view, .context = x};
    kiln_geometry g;
    KILN_TRY(kiln_ahead_read(&x->in->ahead, &view, block, err));
    KILN_TRY(kiln_prune_geometry(x->w, x->in, block, &g, err));
    give_geometry(x, &g, out);
    return KILN_OK;
}

/* The rules are applied again, here; what a block's unit has stored may be a stranger's. */
static kiln_status check_version_rows(const looking *x, uint32_t block, version v, uint64_t n,
                                      kiln_error *err)
{
    if (n == rows_of_version(x, block, v)) return KILN_OK;
    return kiln_fail(
        err, KILN_E_IO,
        "block '%s' %s %llu rows, but its stored result claims %llu; run kiln-prune with --force",
        x->in->layer->chunks[block].name, v == AFTER ? "keeps" : "changes", (unsigned long long)n,
        (unsigned long long)rows_of_version(x, block, v));
}

static kiln_status give_pruned(looking *x, uint32_t block, kiln_draw_chunk *out, kiln_error *err)
{
    kiln_pruned_rows r;
    kiln_geometry kept;
    KILN_TRY(kiln_pruned_rows_make(x->w, x->in, x->q, block, &r, err));
    kiln_status st = KILN_OK;
    KILN_GO(check_version_rows(x, block, AFTER, r.kept, err));
    const kiln_geometry all = {r.n, r.means, r.log_scales_after, r.quats, r.opacity_logits};
    kiln_geometry_gather(&all, r.keep, x->made, &kept);
    give_geometry(x, &kept, out);
done:
    kiln_pruned_rows_release(&r);
    return st;
}

static kiln_status give_touched(looking *x, uint32_t block, kiln_draw_chunk *out, kiln_error *err)
{
    kiln_pruned_rows r;
    kiln_geometry source, touched;
    uint64_t n = 0;
    KILN_TRY(kiln_pruned_rows_make(x->w, x->in, x->q, block, &r, err));
    kiln_status st = KILN_OK;
    KILN_GO(kiln_prune_geometry(x->w, x->in, block, &source, err));
    for (uint64_t i = 0; i < r.n; i++)
        n += r.mark[i] = kiln_pruned_rows_is_touched(&r, source.log_scales, i);
    KILN_GO(check_version_rows(x, block, TOUCHED, n, err));
    kiln_geometry_gather(&source, r.mark, x->made, &touched);
    give_geometry(x, &touched, out);
done:
    kiln_pruned_rows_release(&r);
    return st;
}

static kiln_status give_version_chunk(void *context, uint32_t index, kiln_draw_chunk *out,
                                      kiln_error *err)
{
    looking *x = context;
    const uint32_t n = x->in->layer->n_chunks, block = index % n;
    const version v = index / n;
    memset(out, 0, sizeof *out);
    if (is_hidden(x, block, v)) return KILN_OK;
    if (v == SOURCE) return give_source(x, block, out, err);
    return v == AFTER ? give_pruned(x, block, out, err) : give_touched(x, block, out, err);
}

kiln_status kiln_prune_count_pass(kiln_worker *w, kiln_prune_input *in, const kiln_prune_request *q,
                                  kiln_prune_pass pass, uint64_t *visible, uint64_t *pairs,
                                  kiln_error *err)
{
    looking x = {.w = w, .in = in, .q = q, .pass = pass};
    kiln_draw_tally t = {0};
    kiln_status st;
    const kiln_draw_scene scene = {.view = &q->head->request.view,
                                   .profile = q->head->request.profile,
                                   .antialiased = q->head->request.antialiased,
                                   .n_chunks = VERSIONS * in->layer->n_chunks,
                                   .apart = rules_change_a_block(&x),
                                   .chunk = give_version_chunk,
                                   .header = give_header,
                                   .store = in->store,
                                   .context = &x};
    KILN_GO(KILN_ALLOC(&t.row_pairs, kiln_view_tiles_y(scene.view), "pairs of tile rows", err));
    KILN_GO(KILN_ALLOC(&x.source_rows, in->largest, "a block's rows", err));
    if (pass == KILN_PRUNE_AFTER || pass == KILN_PRUNE_TOUCHED)
        KILN_GO(KILN_ALLOC(&x.made, 11 * in->largest, "a pruned block", err));
    KILN_GO(kiln_draw_count_all(kiln_worker_runner(w), &scene, &t, err));
    *visible = t.visible;
    *pairs = t.pairs;
done:
    free(x.made);
    free(x.source_rows);
    free(t.row_pairs);
    return st;
}
