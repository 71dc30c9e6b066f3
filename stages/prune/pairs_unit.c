/* pairs_unit -- the pairs that a camera's lists take before and after pruning, block by block in fixed memory. No pruned
 * layer is needed for that, so that --dry-run predicts too.
 *
 * Blocks that the rules leave alone, of a sound scene all, are projected and counted once for both sides. In a block that they
 * change, rows that they leave alone are projected once and counted for both sides, rows that they drop count before, rows that
 * they change are projected again. On a GPU both versions of such a block are counted as a whole (pair_scenes.c): they are on the
 * device after the first camera. */
#include "base/carve.h"
#include "base/minmax.h"
#include "stages/engine/devices.h"
#include "stages/prune/prune_units.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    kiln_worker *w;
    kiln_prune_input *in;
    const kiln_view_request *request;
    kiln_splat2d *splats, *some;
    float *changed;      /* means, log_scales, quats, opacity_logits of changed rows */
    uint64_t *row_pairs; /* of tile rows */
    kiln_prune_pairs sum;
    char *store;
} counting;

static kiln_status project_rows(counting *c, uint64_t n, const float *means, const float *log_scales, const float *quats,
                                const float *opacity_logits, uint64_t *visible, kiln_error *err)
{
    kiln_project_args a = {.n = n,
                           .means = means,
                           .log_scales = log_scales,
                           .quats = quats,
                           .opacity_logits = opacity_logits,
                           .view = &c->request->view,
                           .profile = c->request->profile,
                           .antialiased = c->request->antialiased,
                           .splats = c->splats,
                           .n_visible = visible};
    *visible = 0;
    return n ? KILN_WORK(c->w, project, &a, err) : KILN_OK;
}

static kiln_status count_splats(counting *c, uint64_t n, const kiln_splat2d *splats, uint64_t *pairs, kiln_error *err)
{
    const uint32_t tiles_y = kiln_view_tiles_y(&c->request->view);
    kiln_tile_pairs_count_args a = {
        .n = n, .splats = splats, .view = &c->request->view, .row0 = 0, .row1 = tiles_y, .row_pairs = c->row_pairs};
    *pairs = 0;
    if (n == 0) return KILN_OK;
    KILN_TRY(KILN_WORK(c->w, tile_pairs_count, &a, err));
    for (uint32_t r = 0; r < tiles_y; r++) *pairs += c->row_pairs[r];
    return KILN_OK;
}

static bool is_changed(const kiln_pruned_rows *r, const float *source_log_scales, uint64_t i)
{
    for (uint64_t a = 0; a < 3; a++)
        if (r->log_scales_after[a * r->n + i] != source_log_scales[a * r->n + i]) return true;
    return false;
}

/* Moves the splats of rows for which want[row] holds to `to`, keeping order on both sides. Returns how many. */
static uint64_t take_out(kiln_splat2d *splats, uint64_t *n, const uint8_t *stays, kiln_splat2d *to)
{
    uint64_t left = 0, taken = 0;
    for (uint64_t i = 0; i < *n; i++) {
        if (stays[splats[i].row])
            splats[left++] = splats[i];
        else
            to[taken++] = splats[i];
    }
    *n = left;
    return taken;
}

/* Gathers the rows that stay with other values; returns how many. */
static uint64_t gather_changed(const kiln_pruned_rows *r, const uint8_t *same, float *to)
{
    const struct {
        const float *from;
        uint64_t components;
    } planes[] = {{r->means, 3}, {r->log_scales_after, 3}, {r->quats, 4}, {r->opacity_logits, 1}};
    uint64_t k = 0;
    for (uint64_t i = 0; i < r->n; i++) k += r->keep[i] && !same[i];
    for (size_t p = 0; p < sizeof planes / sizeof *planes; p++) {
        for (uint64_t c = 0; c < planes[p].components; c++)
            for (uint64_t i = 0; i < r->n; i++)
                if (r->keep[i] && !same[i]) *to++ = planes[p].from[c * r->n + i];
    }
    return k;
}

static kiln_status project_source(counting *c, uint32_t block, uint64_t *visible, kiln_error *err)
{
    const void *means, *log_scales, *quats, *logits;
    KILN_TRY(kiln_prune_plane(c->w, c->in, block, "means", &means, err));
    KILN_TRY(kiln_prune_plane(c->w, c->in, block, "log_scales", &log_scales, err));
    KILN_TRY(kiln_prune_plane(c->w, c->in, block, "quats", &quats, err));
    KILN_TRY(kiln_prune_plane(c->w, c->in, block, "opacity_logits", &logits, err));
    return project_rows(c, c->in->layer->chunks[block].count, means, log_scales, quats, logits, visible, err);
}

/* mark becomes: 1 where the row stays as it is. */
static kiln_status find_same(counting *c, uint32_t block, kiln_pruned_rows *r, kiln_error *err)
{
    const void *log_scales;
    KILN_TRY(kiln_prune_plane(c->w, c->in, block, "log_scales", &log_scales, err));
    for (uint64_t i = 0; i < r->n; i++) r->mark[i] = r->keep[i] && !r->merged[i] && !is_changed(r, log_scales, i);
    return KILN_OK;
}

static kiln_status count_block(counting *c, const kiln_prune_request *q, uint32_t block, kiln_error *err)
{
    kiln_pruned_rows r;
    kiln_status st;
    uint64_t visible, pairs, gone, again, changed;
    KILN_TRY(kiln_pruned_rows_make(c->w, c->in, q, block, &r, err));
    KILN_GO(find_same(c, block, &r, err));
    KILN_GO(project_source(c, block, &visible, err));
    gone = take_out(c->splats, &visible, r.mark, c->some);
    KILN_GO(count_splats(c, visible, c->splats, &pairs, err));
    for (int side = 0; side < 2; side++) {
        c->sum.pairs[side] += pairs;
        c->sum.visible[side] += visible;
    }
    KILN_GO(count_splats(c, gone, c->some, &pairs, err));
    c->sum.pairs[0] += pairs;
    c->sum.visible[0] += gone;
    changed = gather_changed(&r, r.mark, c->changed);
    KILN_GO(project_rows(c, changed, c->changed, c->changed + 3 * changed, c->changed + 6 * changed, c->changed + 10 * changed,
                         &again, err));
    KILN_GO(count_splats(c, again, c->splats, &pairs, err));
    c->sum.pairs[1] += pairs;
    c->sum.visible[1] += again;
done:
    kiln_pruned_rows_release(&r);
    return st;
}

static size_t lay_out(counting *c, char *store)
{
    kiln_carve at = {store, 0};
    c->splats = kiln_take(&at, c->in->largest, sizeof *c->splats);
    c->some = kiln_take(&at, c->in->largest, sizeof *c->some);
    c->changed = kiln_take(&at, c->in->largest, 11 * sizeof *c->changed);
    c->row_pairs = kiln_take(&at, kiln_view_tiles_y(&c->request->view), sizeof *c->row_pairs);
    return at.used;
}

/* The geometry of a block as stored and with the rules applied, both sides' splats, rows to project again, counts of tile rows
 * (once more for each thread). */
uint64_t kiln_prune_pairs_ram(const kiln_prune_size *s, uint32_t tiles_y)
{
    const uint64_t geometry = 13 * sizeof(float), changed = 11 * sizeof(float), plane = 4 * s->blocks.rows * sizeof(float);
    const uint64_t threads = kiln_devices_threads(kiln_common_values.threads);
    return s->blocks.rows * (geometry + KILN_PRUNED_ROW_BYTES + 2 * sizeof(kiln_splat2d) + changed) + kiln_read_ram(plane) +
           (threads + 1) * tiles_y * sizeof(uint64_t);
}

uint64_t kiln_prune_ahead_ram(const kiln_layer *input)
{
    const uint64_t threads = kiln_devices_threads(kiln_common_values.threads), n = kiln_min_u64(threads, KILN_AHEAD_THREADS);
    return n < 2 ? 0 : n * (KILN_CONNECTION_RAM + kiln_frame_chunk_bytes(input, true));
}

static kiln_status count_whole(counting *c, const kiln_prune_request *q, kiln_prune_pass pass, bool before, bool after,
                               kiln_error *err)
{
    uint64_t visible, pairs;
    KILN_TRY(kiln_prune_count_pass(c->w, c->in, q, pass, &visible, &pairs, err));
    for (int side = 0; side < 2; side++) {
        if (!(side ? after : before)) continue;
        c->sum.visible[side] += visible;
        c->sum.pairs[side] += pairs;
    }
    return KILN_OK;
}

/* Is this one of the blocks that are counted with the rules applied row by row? */
static bool is_row_by_row(const counting *c, const kiln_prune_request *q, uint32_t block, bool gpu)
{
    return (gpu ? q->kept[block] == KILN_PRUNE_UNKNOWN : q->kept[block] != KILN_PRUNE_UNTOUCHED) &&
           kiln_prune_has_block(c->in, block) && kiln_view_request_may_see(c->request, &c->in->layer->chunks[block]);
}

static kiln_status count_row_by_row(counting *c, const kiln_prune_request *q, bool gpu, kiln_error *err)
{
    for (uint32_t i = 0; i < c->in->layer->n_chunks; i++) {
        if (!is_row_by_row(c, q, i, gpu)) continue;
        if (!c->store) KILN_TRY(KILN_ALLOC(&c->store, lay_out(c, NULL), "projected Gaussians", err));
        (void)lay_out(c, c->store);
        KILN_TRY(count_block(c, q, i, err));
    }
    return KILN_OK;
}

kiln_status kiln_prune_pairs_unit(kiln_worker *w, const kiln_prune_request *q, kiln_error *err)
{
    counting c = {.w = w, .request = &q->head->request};
    const bool gpu = kiln_runner_exec(kiln_worker_runner(w)).device >= 0;
    bool changes = false;
    kiln_status st;
    KILN_TRY(kiln_prune_input_get_drawn(w, q->head, &c.in, err));
    if (q->head->n_kept != c.in->layer->n_chunks)
        return kiln_fail(err, KILN_E_BUG, "a camera was told of %llu blocks, the layer has %u", (unsigned long long)q->head->n_kept,
                         c.in->layer->n_chunks);
    for (uint32_t i = 0; i < c.in->layer->n_chunks; i++) changes = changes || q->kept[i] < KILN_PRUNE_UNKNOWN;
    KILN_GO(count_whole(&c, q, KILN_PRUNE_SAME, true, true, err));
    if (gpu && changes) KILN_GO(count_whole(&c, q, KILN_PRUNE_BEFORE, true, false, err));
    if (gpu && changes) KILN_GO(count_whole(&c, q, KILN_PRUNE_AFTER, false, true, err));
    KILN_GO(count_row_by_row(&c, q, gpu, err));
    KILN_GO(kiln_worker_put(w, "pairs", &c.sum, sizeof c.sum, 8, err));
done:
    free(c.store);
    return st;
}
