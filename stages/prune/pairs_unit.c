/* pairs_unit -- the pairs that a camera's lists take before and after pruning, block by block in
 * fixed memory. No pruned layer is needed for that, so that --dry-run predicts too.
 *
 * Blocks that the rules leave alone, of a sound scene all, are projected and counted once for both
 * sides. In a block that they change, rows that they leave alone are projected once and counted for
 * both sides, rows that they drop count before, rows that they change are projected again. On a GPU
 * both versions of such a block are counted as a whole, and once more the rows that the rules touch
 * (pair_scenes.c): they are on the device after the first camera. */
#include "base/carve.h"
#include "base/minmax.h"
#include "stages/engine/devices/devices.h"
#include "stages/prune/pair_counter.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    kiln_prune_input *in;
    kiln_pair_counter count;
    kiln_splat2d *some;
    float *changed; /* geometry of changed rows */
    kiln_prune_pairs sum;
    char *store;
} counting;

/* Moves the splats of rows whose mark is not 1 to `to`, keeping order on both sides. Returns how
 * many. */
static uint64_t take_out(kiln_splat2d *splats, uint64_t *n, const uint8_t *mark, kiln_splat2d *to)
{
    uint64_t left = 0, taken = 0;
    for (uint64_t i = 0; i < *n; i++) {
        if (mark[splats[i].row] == 1)
            splats[left++] = splats[i];
        else
            to[taken++] = splats[i];
    }
    *n = left;
    return taken;
}

/* Moves the splats of rows whose mark is 2 to the front. Returns how many. */
static uint64_t touched_first(kiln_splat2d *splats, uint64_t n, const uint8_t *mark)
{
    uint64_t first = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (mark[splats[i].row] != 2) continue;
        const kiln_splat2d s = splats[first];
        splats[first++] = splats[i];
        splats[i] = s;
    }
    return first;
}

/* mark becomes: 1 where the row stays as it is; 2 where the rules touch it and it could show; else
 * 0. */
static kiln_status find_same(counting *c, uint32_t block, kiln_pruned_rows *r, kiln_error *err)
{
    const void *log_scales;
    KILN_TRY(kiln_prune_plane(c->count.w, c->in, block, "log_scales", &log_scales, err));
    for (uint64_t i = 0; i < r->n; i++)
        r->mark[i] = kiln_pruned_rows_is_same(r, log_scales, i)      ? 1
                     : kiln_pruned_rows_is_touched(r, log_scales, i) ? 2
                                                                     : 0;
    return KILN_OK;
}

/* The rows that stay with other values; keep says of each row afterwards whether it is one of
 * these. */
static void gather_changed(kiln_pruned_rows *r, float *to, kiln_geometry *out)
{
    const kiln_geometry all = {r->n, r->means, r->log_scales_after, r->quats, r->opacity_logits};
    for (uint64_t i = 0; i < r->n; i++) r->keep[i] = r->keep[i] && r->mark[i] != 1;
    kiln_geometry_gather(&all, r->keep, to, out);
}

static kiln_status count_block(counting *c, const kiln_prune_request *q, uint32_t block,
                               kiln_error *err)
{
    kiln_pruned_rows r;
    kiln_geometry source, changed;
    kiln_status st;
    uint64_t visible, pairs, gone, touched, again;
    KILN_TRY(kiln_pruned_rows_make(c->count.w, c->in, q, block, &r, err));
    KILN_GO(find_same(c, block, &r, err));
    KILN_GO(kiln_prune_geometry(c->count.w, c->in, block, &source, err));
    KILN_GO(kiln_pair_counter_project(&c->count, &source, &visible, err));
    gone = take_out(c->count.splats, &visible, r.mark, c->some);
    KILN_GO(kiln_pair_counter_count(&c->count, visible, c->count.splats, &pairs, err));
    for (int side = 0; side < 2; side++) {
        c->sum.pairs[side] += pairs;
        c->sum.visible[side] += visible;
    }
    touched = touched_first(c->some, gone, r.mark);
    KILN_GO(kiln_pair_counter_count(&c->count, touched, c->some, &pairs, err));
    c->sum.touched[0] += pairs;
    c->sum.touched[1] += touched;
    c->sum.pairs[0] += pairs;
    KILN_GO(kiln_pair_counter_count(&c->count, gone - touched, c->some + touched, &pairs, err));
    c->sum.pairs[0] += pairs;
    c->sum.visible[0] += gone;
    gather_changed(&r, c->changed, &changed);
    KILN_GO(kiln_pair_counter_project(&c->count, &changed, &again, err));
    KILN_GO(kiln_pair_counter_count(&c->count, again, c->count.splats, &pairs, err));
    c->sum.pairs[1] += pairs;
    c->sum.visible[1] += again;
done:
    kiln_pruned_rows_release(&r);
    return st;
}

static size_t lay_out_counting(counting *c, char *store)
{
    kiln_carve at = {store, 0};
    c->count.splats = kiln_take(&at, c->in->largest, sizeof *c->count.splats);
    c->some = kiln_take(&at, c->in->largest, sizeof *c->some);
    c->changed = kiln_take(&at, c->in->largest, 11 * sizeof *c->changed);
    c->count.row_pairs =
        kiln_take(&at, kiln_view_tiles_y(&c->count.request->view), sizeof *c->count.row_pairs);
    return at.used;
}

/* The geometry of a block as stored and with the rules applied, both sides' splats, rows to project
 * again, counts of tile rows (once more for each thread). */
uint64_t kiln_prune_pairs_ram(const kiln_prune_size *s, uint32_t tiles_y)
{
    const uint64_t geometry = 13 * sizeof(float), changed = 11 * sizeof(float),
                   plane = 4 * s->blocks.rows * sizeof(float);
    const uint64_t threads = kiln_devices_threads(kiln_common_values.threads);
    return s->blocks.rows *
               (geometry + KILN_PRUNED_ROW_BYTES + 2 * sizeof(kiln_splat2d) + changed) +
           kiln_read_ram(plane) + (threads + 1) * tiles_y * sizeof(uint64_t);
}

uint64_t kiln_prune_ahead_ram(const kiln_layer *input)
{
    const uint64_t threads = kiln_devices_threads(kiln_common_values.threads),
                   n = kiln_min_u64(threads, KILN_AHEAD_THREADS);
    return n < 2 ? 0 : n * (KILN_CONNECTION_RAM + kiln_frame_chunk_bytes(input, true));
}

static kiln_status count_whole(counting *c, const kiln_prune_request *q, kiln_prune_pass pass,
                               bool before, bool after, kiln_error *err)
{
    uint64_t visible, pairs;
    KILN_TRY(kiln_prune_count_pass(c->count.w, c->in, q, pass, &visible, &pairs, err));
    for (int side = 0; side < 2; side++) {
        if (!(side ? after : before)) continue;
        c->sum.visible[side] += visible;
        c->sum.pairs[side] += pairs;
    }
    if (pass != KILN_PRUNE_TOUCHED) return KILN_OK;
    c->sum.touched[0] += pairs;
    c->sum.touched[1] += visible;
    return KILN_OK;
}

/* Is this one of the blocks that are counted with the rules applied row by row? */
static bool is_row_by_row(const counting *c, const kiln_prune_request *q, uint32_t block, bool gpu)
{
    return (gpu ? q->kept[block] == KILN_PRUNE_UNKNOWN : q->kept[block] != KILN_PRUNE_UNTOUCHED) &&
           kiln_prune_has_block(c->in, block) &&
           kiln_view_request_may_see(c->count.request, &c->in->layer->chunks[block]);
}

static kiln_status count_row_by_row(counting *c, const kiln_prune_request *q, bool gpu,
                                    kiln_error *err)
{
    for (uint32_t i = 0; i < c->in->layer->n_chunks; i++) {
        if (!is_row_by_row(c, q, i, gpu)) continue;
        if (!c->store)
            KILN_TRY(KILN_ALLOC(&c->store, lay_out_counting(c, NULL), "projected Gaussians", err));
        (void)lay_out_counting(c, c->store);
        KILN_TRY(count_block(c, q, i, err));
    }
    return KILN_OK;
}

kiln_status kiln_prune_pairs_unit(kiln_worker *w, const kiln_prune_request *q, kiln_error *err)
{
    counting c = {.count = {.w = w, .request = &q->head->request}};
    const bool gpu = kiln_runner_exec(kiln_worker_runner(w)).device >= 0;
    bool changes = false;
    kiln_status st;
    KILN_TRY(kiln_prune_input_get_drawn(w, q->head, &c.in, err));
    if (q->head->n_kept != 2 * (uint64_t)c.in->layer->n_chunks)
        return kiln_fail(err, KILN_E_BUG,
                         "a camera has weights of %llu blocks, but the layer has %u",
                         (unsigned long long)q->head->n_kept / 2, c.in->layer->n_chunks);
    for (uint32_t i = 0; i < c.in->layer->n_chunks; i++)
        changes = changes || q->kept[i] < KILN_PRUNE_UNKNOWN;
    KILN_GO(count_whole(&c, q, KILN_PRUNE_SAME, true, true, err));
    if (gpu && changes) KILN_GO(count_whole(&c, q, KILN_PRUNE_BEFORE, true, false, err));
    if (gpu && changes) KILN_GO(count_whole(&c, q, KILN_PRUNE_AFTER, false, true, err));
    if (gpu && changes) KILN_GO(count_whole(&c, q, KILN_PRUNE_TOUCHED, false, false, err));
    KILN_GO(count_row_by_row(&c, q, gpu, err));
    KILN_GO(kiln_worker_put(w, "pairs", &c.sum, sizeof c.sum, 8, err));
done:
    free(c.store);
    return st;
}
