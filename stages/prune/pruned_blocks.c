/* pruned_blocks -- see the header. */
#include "stages/prune/pruned_blocks.h"

#include "base/memory.h"
#include "schema/row_check.h"
#include "stages/engine/parent/run_layers.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- units ----------------------------------------------------------------------------------- */
/* All planes of a block: names, types, content. */
static void key_block(kiln_hasher *h, const kiln_pruning *p, uint32_t block)
{
    const kiln_chunk *c = &p->input->chunks[block];
    for (uint32_t i = 0; i < c->n_planes; i++) {
        kiln_key_text(h, "type", kiln_type_name(c->planes[i].type));
        kiln_key_plane(h, c, c->planes[i].name);
    }
    if (kiln_pruning_spacing_block(p, block))
        kiln_key_plane(h, kiln_pruning_spacing_block(p, block), "spacing2");
}

/* Merges that concern a block: its own survivors with all that goes into them, and its own rows
 * that go elsewhere. */
static bool concerns(const kiln_merged_row *m, uint32_t block)
{
    return m->block == block || m->into_block == block;
}

kiln_status kiln_pruning_plan_block(kiln_run *r, const kiln_pruning *p, kiln_prune_unit_kind kind,
                                    uint32_t block, kiln_merged_row *merges, kiln_unit *u,
                                    kiln_error *err)
{
    kiln_prune_unit head = kiln_pruning_head(p, kind);
    const bool marks = kind == KILN_PRUNE_MARKS, left = kind == KILN_PRUNE_LEFT;
    const uint64_t mark_bytes = kiln_prune_pairs_of_bits_bytes(p->size.blocks.rows);
    const uint8_t *asked =
        kind == KILN_PRUNE_BLOCK && p->marks ? p->marks + block * mark_bytes : NULL;
    const uint8_t *strays = p->strays ? p->strays + block * mark_bytes : NULL;
    const uint32_t *rows = p->rows;
    uint64_t end = 0;
    /* not block, where some are missing */
    const uint64_t number = strtoull(p->input->chunks[block].name, NULL, 10);
    head.block = block;
    head.planes = kind == KILN_PRUNE_BLOCK && !kiln_run_is_once(r);
    head.mark_bytes = asked ? mark_bytes : 0;
    head.stray_bytes = strays ? mark_bytes : 0;
    if (marks) head.auto_rules = p->judgement.rules;
    while (end < p->n_rows && p->rows[end] / KILN_BLOCK_ROWS < number) end++;
    rows += end;
    for (; end < p->n_rows && p->rows[end] / KILN_BLOCK_ROWS == number; end++) head.n_rows++;

    /* also those of near-duplicates and of pairs; kiln_prune_rules_key comes from rules.def */
    _Static_assert(offsetof(kiln_prune_unit, rules) == 68 &&
                       sizeof head - offsetof(kiln_prune_unit, stats) == 304,
                   "kiln_prune_unit has another size: add to the keys what results depend on, that "
                   "of pairs too "
                   "(pairs_forecast.c), then write the new size");
    kiln_hasher *h = kiln_run_key_bare(r, marks ? "marks" : left ? "left" : "block");
    if (marks) kiln_key_u64(h, "auto", head.auto_rules);
    kiln_prune_rules_key(h, &p->rules);
    kiln_pruning_key_filters(h, p);
    key_block(h, p, block);
    kiln_key_bytes(h, "rows", rows, head.n_rows * sizeof *rows);
    if (asked) kiln_key_bytes(h, "asked", asked, mark_bytes);
    if (strays) kiln_key_bytes(h, "strays", strays, mark_bytes);
    for (uint64_t i = 0; i < p->n_merges; i++) {
        const kiln_merged_row *m = &p->merges[i];
        if (!concerns(m, block)) continue;
        merges[head.n_merges++] = *m;
        kiln_key_bytes(h, "merge", m, sizeof *m);
        if (m->into_block == block && m->block != block) key_block(h, p, m->block);
    }
    static const char *const names[] = {"block %s", "large axes of block %s",
                                        "rows left of block %s"};
    (void)snprintf(u->name, sizeof u->name,
                   names[marks  ? 1
                         : left ? 2
                                : 0],
                   p->input->chunks[block].name);
    u->key = kiln_key_end(h);
    u->cost = p->input->chunks[block].count;
    u->ram = head.ram =
        kiln_prune_block_ram(&p->size, head.n_merges > 0) + kiln_pruning_filters_ram(p);
    u->ram_cache = p->cache;
    u->optional = true;
    u->planning = marks || left;
    if (p->filters.filters.n) head.text_bytes = sizeof p->filters;
    const kiln_prune_request q = {.head = &head,
                                  .merges = merges,
                                  .rows = rows,
                                  .marks = asked,
                                  .strays = strays,
                                  .text = (const char *)&p->filters};
    return kiln_pruning_set_payload(u, &q, true, err);
}

/* ---- what they give -------------------------------------------------------------------------- */
static kiln_status add_filtered(kiln_run *r, kiln_pruning *p, const kiln_unit *u, kiln_error *err)
{
    uint64_t filtered[KILN_FILTER_KINDS];
    KILN_TRY(kiln_unit_struct(r, u, "filtered", filtered, sizeof filtered, err));
    for (int k = 0; k < KILN_FILTER_KINDS; k++) p->filtered[k] += filtered[k];
    return KILN_OK;
}

/* What cameras are told of a block. Survivors of merges change although no rule counts them. */
static uint32_t kept_of(const kiln_pruning *p, uint32_t block, const kiln_tally *t)
{
    bool touched = t->kept != t->rows;
    for (int k = 0; k < KILN_PRUNE_RULES; k++) touched = touched || t->counts[k][1] > 0;
    for (uint64_t i = 0; i < p->n_merges && !touched; i++) touched = concerns(&p->merges[i], block);
    const uint64_t n = p->input->chunks[block].count;
    return !touched                          ? KILN_PRUNE_UNTOUCHED
           : t->kept <= n && t->touched <= n ? (uint32_t)t->kept
                                             : KILN_PRUNE_UNKNOWN;
}

static kiln_status add_tally(kiln_run *r, kiln_pruning *p, uint32_t i, kiln_error *err)
{
    kiln_tally *t;
    const kiln_unit *u = &p->blocks[i];
    KILN_TRY(KILN_ALLOC(&t, 1, "a tally", err));
    const kiln_status st = kiln_unit_struct(r, u, "tally", t, sizeof *t, err);
    if (st == KILN_OK) kiln_tally_add(&p->tally, t);
    if (st == KILN_OK) p->kept[p->block_of[i]] = kept_of(p, p->block_of[i], t);
    if (st == KILN_OK) p->kept[p->input->n_chunks + p->block_of[i]] = (uint32_t)t->touched;
    free(t);
    return st == KILN_OK && p->filters.filters.n ? add_filtered(r, p, u, err) : st;
}

/* The largest axes of a block, before and after; exp(-infinity) of a block without rows is 0. */
static kiln_status take_largest(kiln_run *r, kiln_pruning *p, uint32_t i, kiln_error *err)
{
    kiln_chunk after = {.count = 0};
    KILN_TRY(kiln_chunk_read_bounds(r, &p->blocks[i], &after, err));
    p->largest[0] =
        kiln_pruning_larger(p->largest[0], p->input->chunks[p->block_of[i]].max_log_scale);
    p->largest[1] = kiln_pruning_larger(p->largest[1], after.max_log_scale);
    return KILN_OK;
}

kiln_status kiln_pruning_blocks(kiln_run *r, kiln_pruning *p, kiln_error *err)
{
    const uint32_t n = p->input->n_chunks;
    kiln_merged_row *merges = NULL;
    kiln_status st;
    KILN_GO(KILN_ALLOC(&p->blocks, n, "the blocks", err));
    KILN_GO(KILN_ALLOC(&p->block_of, n, "the blocks", err));
    KILN_GO(KILN_ALLOC(&p->kept, 2 * (uint64_t)n, "the blocks", err));
    KILN_GO(KILN_ALLOC(&merges, p->n_merges, "merged rows", err));
    for (uint32_t i = 0; i < n; i++) p->kept[i] = KILN_PRUNE_UNKNOWN;
    for (uint32_t i = 0; i < n; i++) {
        if (!kiln_pruning_has_block(p, i)) continue;
        KILN_GO(kiln_pruning_plan_block(r, p, KILN_PRUNE_BLOCK, i, merges, &p->blocks[p->n_blocks],
                                        err));
        p->block_of[p->n_blocks++] = i;
    }
    kiln_run_serial(r, true);
    st = kiln_run_units(r, "pruning", p->blocks, p->n_blocks, err);
    kiln_run_serial(r, false);
    KILN_GO(st);
    for (uint32_t i = 0; i < p->n_blocks; i++)
        if (!p->blocks[i].quarantined) {
            KILN_GO(add_tally(r, p, i, err));
            KILN_GO(kiln_unit_pass(r, &p->blocks[i], take_largest(r, p, i, err)));
        }
    /* else when the layer is made, with what else is wrong */
    if (kiln_run_is_once(r)) KILN_GO(kiln_run_refused(r, err));
done:
    free(merges);
    return st;
}

/* ---- the layer ------------------------------------------------------------------------------- */
/* Rows that the rules left, counted by the plane that every block has. */
static kiln_status count_kept(const kiln_unit *u, uint64_t most, uint64_t *out, kiln_error *err)
{
    kiln_array rows;
    KILN_TRY(kiln_unit_result_array(&u->result, "source_row", &rows, err));
    free(rows.segments);
    *out = rows.raw_bytes / sizeof(uint32_t);
    if (rows.raw_bytes % sizeof(uint32_t) == 0 && *out <= most) return KILN_OK;
    return kiln_fail(err, KILN_E_IO, "its source rows have %llu bytes",
                     (unsigned long long)rows.raw_bytes);
}

static kiln_status fill_block(kiln_run *r, const kiln_pruning *p, uint32_t i, kiln_chunk *c,
                              kiln_error *err)
{
    const kiln_chunk *from = &p->input->chunks[p->block_of[i]];
    const kiln_unit *u = &p->blocks[i];
    memcpy(c->name, from->name, sizeof c->name);
    if (!kiln_chunk_plane(from, "source_row"))
        return kiln_fail(err, KILN_E_IO,
                         "block '%s' has no plane 'source_row'; import the scene again",
                         from->name);
    KILN_TRY(count_kept(u, from->count, &c->count, err));
    for (uint32_t k = 0; k < from->n_planes; k++) {
        const kiln_plane *plane = &from->planes[k];
        KILN_TRY(kiln_chunk_add_output(c, &u->result, plane->name, plane->name, plane->type,
                                       plane->components, err));
    }
    if (p->spacing)
        KILN_TRY(
            kiln_chunk_add_output(c, &u->result, "spacing2", "spacing2", KILN_TYPE_F32, 1, err));
    return kiln_chunk_read_bounds(r, u, c, err);
}

kiln_status kiln_pruning_put_layer(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err)
{
    const kiln_pruning *p = context;
    kiln_layer *l = NULL;
    kiln_status st;
    KILN_GO(kiln_layer_new(KILN_LAYER_pruned, p->input->sh_degree, p->n_blocks, &l, err));
    l->n_chunks = 0; /* as far as they are filled: quarantined blocks leave a gap in the names */
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        if (p->blocks[i].quarantined) continue;
        kiln_chunk *c = &l->chunks[l->n_chunks++];
        st = kiln_unit_refuse(r, &p->blocks[i], fill_block(r, p, i, c, err), err);
        KILN_GO(kiln_unit_pass(r, &p->blocks[i], st));
        l->count += c->count;
    }
    KILN_GO(kiln_run_refused(r, err));
    KILN_GO(kiln_stage_outputs_clear(m, "prune", err));
    KILN_GO(kiln_run_put_layer(r, l, err));
done:
    kiln_layer_free(l);
    return st;
}
