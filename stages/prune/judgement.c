/* judgement -- see the header. */
#include "stages/prune/judgement.h"

#include "base/memory.h"
#include "kernels/prune/prune_math.h"
#include "stages/engine/devices/work.h"
#include "stages/engine/hosts/decisions.h"
#include "stages/prune/pruned_blocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- cameras --------------------------------------------------------------------------------- */
/* Never antialiased: what a header says of that decides nothing about scales. */
static kiln_status view_of(const kiln_pruning *p, uint32_t camera, kiln_view_request *out,
                           kiln_error *err)
{
    /* inria; 2: off */
    const kiln_view_options options = {.near_text = "profile", .antialiased = 2};
    return kiln_view_request_init(out, &options, &p->scene, &p->cameras[camera], err);
}

kiln_status kiln_pruning_key_judges(kiln_run *r, kiln_pruning *p, kiln_hasher *h, kiln_error *err)
{
    if (!kiln_prune_auto_rules(&p->o->rules)) return KILN_OK;
    KILN_TRY(kiln_pruning_read_cameras(r, p, err));
    for (uint32_t i = 0; i < p->n_cameras; i++) {
        kiln_view_request view;
        KILN_TRY(view_of(p, i, &view, err));
        kiln_key_bytes(h, "judge", &view, sizeof view);
    }
    return KILN_OK;
}

/* ---- marks ----------------------------------------------------------------------------------- */
/* The marks of blocks that have some, one after the other. */
typedef struct {
    kiln_buffer bits;
    kiln_hash *hashes; /* [n] of each block's */
    /* [input->n_chunks] which of the marks are a block's, or KILN_PRUNE_NO_BLOCK */
    uint32_t *at;
    uint32_t n;
} marks;

static void marks_release(marks *m)
{
    kiln_buffer_release(&m->bits);
    free(m->hashes);
    free(m->at);
}

/* Logarithm of an axis that no limit which is auto is below. */
static float least_limit(const kiln_pruning *p)
{
    const float slack = 1e-3f; /* our logarithm need not rise from float to float */
    float least = INFINITY;
    if (p->judgement.rules >> KILN_PRUNE_max_spacing & 1) {
        const float spacing = kiln_prune_spacing_limit(&p->rules, 0);
        /* NAN: without a floor the local spacing alone decides */
        least = isnan(spacing) ? -INFINITY : spacing;
    }
    if (p->judgement.rules >> KILN_PRUNE_max_extent & 1 && p->rules.max_extent < least)
        least = p->rules.max_extent;
    return least - slack;
}

/* Could a row of the block be above a limit? Bounds are those of the input, so a block of a sound
 * scene is not read for it. Survivors of merges may be larger than any row of the input. */
static bool may_be_touched(const kiln_pruning *p, uint32_t block)
{
    if (!kiln_pruning_has_block(p, block) || p->input->chunks[block].count == 0) return false;
    return p->n_merges > 0 || p->input->chunks[block].max_log_scale > least_limit(p);
}

/* Of a block that may have some: adds what its unit found. */
static kiln_status take_marks(kiln_run *r, kiln_pruning *p, const kiln_unit *u, uint32_t block,
                              marks *m, kiln_error *err)
{
    kiln_prune_marked marked;
    const uint64_t bytes = kiln_prune_marks_bytes(p->size.blocks.rows);
    uint8_t *bits;
    KILN_TRY(kiln_unit_struct(r, u, "marked", &marked, sizeof marked, err));
    if (marked.rows > p->input->chunks[block].count)
        return kiln_unit_refuse(
            r, u, kiln_fail(err, KILN_E_IO, "it marks more rows than the block has"), err);
    if (marked.rows == 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&bits, bytes, "marks of rows", err));
    kiln_status st = kiln_unit_struct(r, u, "marks", bits, bytes, err);
    if (st == KILN_OK) st = kiln_buffer_put(&m->bits, bits, bytes, err);
    if (st == KILN_OK) {
        m->hashes[m->n] = kiln_hash_of(bits, bytes);
        m->at[block] = m->n++;
        p->judgement.touched += marked.rows;
        for (int rule = 0; rule < KILN_PRUNE_RULES; rule++)
            for (int i = 0; i < 2; i++) p->judgement.counts[rule][i] += marked.counts[rule][i];
    }
    free(bits);
    return st;
}

static kiln_status mark_blocks(kiln_run *r, kiln_pruning *p, marks *m, kiln_error *err)
{
    const uint32_t n = p->input->n_chunks;
    kiln_merged_row *merges = NULL;
    kiln_unit *units = NULL;
    uint32_t *blocks = NULL, n_units = 0;
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC(&units, n, "the blocks", err));
    KILN_GO(KILN_ALLOC(&blocks, n, "the blocks", err));
    KILN_GO(KILN_ALLOC(&m->hashes, n, "the blocks", err));
    KILN_GO(KILN_ALLOC(&m->at, n, "the blocks", err));
    KILN_GO(KILN_ALLOC(&merges, p->n_merges, "merged rows", err));
    for (uint32_t i = 0; i < n; i++) {
        m->at[i] = KILN_PRUNE_NO_BLOCK;
        if (!may_be_touched(p, i)) continue;
        KILN_GO(kiln_pruning_plan_block(r, p, KILN_PRUNE_MARKS, i, merges, &units[n_units], err));
        blocks[n_units++] = i;
    }
    if (n_units == 0) goto done;
    kiln_run_shares_planning(r, kiln_work_is_round(kiln_work_prune((double)p->input->count, 0)));
    kiln_run_serial(r, true);
    st = kiln_run_units(r, "looking for large axes", units, n_units, err);
    kiln_run_serial(r, false);
    KILN_GO(st);
    for (uint32_t i = 0; i < n_units; i++)
        if (!units[i].quarantined) KILN_GO(take_marks(r, p, &units[i], blocks[i], m, err));
done:
    kiln_pruning_units_free(units, n_units);
    free(blocks);
    free(merges);
    return st;
}

/* ---- weights --------------------------------------------------------------------------------- */
static kiln_status plan_weight(kiln_run *r, const kiln_pruning *p, uint32_t camera, const marks *m,
                               const kiln_buffer *shared, kiln_unit *u, kiln_error *err)
{
    kiln_prune_unit head = kiln_pruning_head(p, KILN_PRUNE_WEIGHT);
    kiln_view_chunks blocks;
    KILN_TRY(view_of(p, camera, &head.request, err));
    KILN_TRY(kiln_view_chunks_of_layer(p->input, &head.request, &blocks, err));
    head.n_kept = p->input->n_chunks;
    head.text_bytes = m->bits.size;
    kiln_hasher *h = kiln_run_key_bare(r, "weight");
    kiln_key_hash(h, "view", kiln_view_request_table_key(&head.request, &p->keys, &blocks));
    for (uint32_t b = 0; b < blocks.n; b++) {
        const uint32_t at = m->at[blocks.numbers[b]];
        kiln_key_u64(h, "spacing", kiln_pruning_has_block(p, blocks.numbers[b]));
        if (at != KILN_PRUNE_NO_BLOCK) kiln_key_hash(h, "marks", m->hashes[at]);
        if (at != KILN_PRUNE_NO_BLOCK) kiln_key_u64(h, "of", b);
    }
    kiln_view_chunks_release(&blocks);
    (void)snprintf(u->name, sizeof u->name, "large axes in %.120s", p->cameras[camera].name);
    u->key = kiln_key_end(h);
    u->cost = 1;
    u->n_outputs = 1;
    u->optional = u->planning = true; /* without it the rules rest, and the run ends partially */
    u->shared_payload = shared->data;
    u->shared_payload_bytes = shared->size;
    u->ram = head.ram = kiln_prune_pairs_ram(&p->size, kiln_view_tiles_y(&head.request.view)) +
                        kiln_shared_payload_ram(shared->size);
    u->ram_cache = p->cache + kiln_prune_ahead_ram(p->input);
    kiln_buffer payload = {0}; /* what its lists say is in the shared payload */
    KILN_TRY(kiln_buffer_put(&payload, &head, sizeof head, err));
    u->payload = payload.data;
    u->payload_bytes = payload.size;
    return KILN_OK;
}

enum { FIRST_CAMERAS = 4 };

/* Of one thread, where a scene has not exploded: a block or two of a camera (weight_unit.c). The
 * same on all hosts. */
static double weights_s(const kiln_pruning *p, uint32_t n_cameras)
{
    const double rows = fmin((double)p->input->count, 2.0 * (double)p->size.blocks.rows);
    return kiln_work_prune(rows, n_cameras) - kiln_work_prune(rows, 0);
}

/* Weighs n cameras, evenly chosen, but for those that are weighed already. */
static kiln_status weigh_some(kiln_run *r, kiln_pruning *p, const marks *m,
                              const kiln_buffer *shared, uint32_t n, const char *what,
                              kiln_error *err)
{
    kiln_unit *units = NULL;
    uint32_t *cameras = NULL, n_units = 0;
    kiln_status st;
    KILN_GO(KILN_ALLOC(&units, n, "cameras", err));
    KILN_GO(KILN_ALLOC(&cameras, n, "cameras", err));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t camera = (uint32_t)((uint64_t)i * p->n_cameras / n);
        if (p->judgement.weighed[camera]) continue;
        KILN_GO(plan_weight(r, p, camera, m, shared, &units[n_units], err));
        p->judgement.weighed[camera] = true;
        cameras[n_units++] = camera;
    }
    kiln_run_shares_planning(r, n > FIRST_CAMERAS && kiln_work_is_round(weights_s(p, n)));
    KILN_GO(kiln_run_units(r, what, units, n_units, err));
    for (uint32_t i = 0; i < n_units; i++) {
        kiln_prune_weight *w = &p->judgement.weights[cameras[i]];
        p->judgement.weighed[cameras[i]] = !units[i].quarantined;
        if (units[i].quarantined) continue;
        KILN_GO(kiln_unit_struct(r, &units[i], "weight", w, sizeof *w, err));
        p->judgement.act |= w->holds_most != 0;
    }
done:
    kiln_pruning_units_free(units, n_units);
    free(cameras);
    return st;
}

static kiln_status weigh_cameras(kiln_run *r, kiln_pruning *p, const marks *m, kiln_error *err)
{
    const uint32_t n = p->n_cameras < FIRST_CAMERAS ? p->n_cameras : FIRST_CAMERAS;
    kiln_buffer shared = {0};
    kiln_status st;
    KILN_GO(KILN_ALLOC(&p->judgement.weights, p->n_cameras, "cameras", err));
    KILN_GO(KILN_ALLOC(&p->judgement.weighed, p->n_cameras, "cameras", err));
    if (!p->keys.layer) KILN_GO(kiln_chunk_keys_make(p->input, &p->keys, err));
    KILN_GO(kiln_buffer_put(&shared, m->at, p->input->n_chunks * sizeof *m->at, err));
    KILN_GO(kiln_buffer_put(&shared, m->bits.data, m->bits.size, err));
    KILN_GO(weigh_some(r, p, m, &shared, n, "weighing large axes in a few views", err));
    if (n < p->n_cameras && !p->judgement.act)
        KILN_GO(
            weigh_some(r, p, m, &shared, p->n_cameras, "weighing large axes in all views", err));
done:
    kiln_buffer_release(&shared);
    return st;
}

kiln_status kiln_pruning_judge(kiln_run *r, kiln_pruning *p, kiln_error *err)
{
    marks m = {0};
    kiln_status st = KILN_OK;
    p->judgement.rules = kiln_prune_auto_rules(&p->o->rules);
    p->chosen = kiln_prune_options_resolved(&p->o->rules, true);
    KILN_GO(kiln_prune_rules_make(&p->chosen, &p->stats, p->scene.origin, &p->rules, err));
    if (!p->judgement.rules) goto done;
    KILN_GO(kiln_pruning_read_cameras(r, p, err));
    KILN_GO(mark_blocks(r, p, &m, err));
    if (p->judgement.touched) KILN_GO(weigh_cameras(r, p, &m, err));
    if (p->judgement.act) goto done;
    p->chosen = kiln_prune_options_resolved(&p->o->rules, false);
    KILN_GO(kiln_prune_rules_make(&p->chosen, &p->stats, p->scene.origin, &p->rules, err));
done:
    marks_release(&m);
    return st;
}
