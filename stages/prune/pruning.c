/* pruning -- see the header. */
#include "stages/prune/pruning.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void kiln_pruning_units_free(kiln_unit *units, uint64_t n)
{
    if (!units) return;
    kiln_units_release(units, n);
    for (uint64_t i = 0; i < n; i++) free(units[i].payload);
    free(units);
}

void kiln_pruning_release(kiln_pruning *p)
{
    kiln_pruning_units_free(p->blocks, p->n_blocks);
    free(p->block_of);
    free(p->kept);
    free(p->requests);
    kiln_chunk_keys_release(&p->keys);
    free(p->views);
    free(p->judgement.weights);
    free(p->judgement.weighed);
    free(p->cameras);
    free(p->merges);
    free(p->rows);
    free(p->spacing_of);
    kiln_layer_free(p->spacing);
    kiln_layer_free(p->input);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------------ */
bool kiln_pruning_has_block(const kiln_pruning *p, uint32_t block)
{
    return !p->spacing || p->spacing_of[block] != KILN_PRUNE_NO_BLOCK;
}

const kiln_chunk *kiln_pruning_spacing_block(const kiln_pruning *p, uint32_t block)
{
    return p->spacing && kiln_pruning_has_block(p, block) ? &p->spacing->chunks[p->spacing_of[block]] : NULL;
}

uint64_t kiln_pruning_filters_ram(const kiln_pruning *p)
{
    uint64_t planes = 0;
    for (uint32_t k = 0; k < p->filters.filters.n_planes; k++) planes += !kiln_prune_keeps(p->filters.filters.planes[k].name);
    return p->filters.filters.n ? planes * (p->size.blocks.plane + kiln_read_ram(p->size.blocks.plane)) + sizeof p->filters : 0;
}

void kiln_pruning_key_planes(kiln_hasher *h, const kiln_pruning *p, uint32_t block, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) kiln_key_plane(h, &p->input->chunks[block], names[i]);
    if (kiln_pruning_spacing_block(p, block)) kiln_key_plane(h, kiln_pruning_spacing_block(p, block), "spacing2");
}

void kiln_pruning_key_filters(kiln_hasher *h, const kiln_pruning *p)
{
    if (p->filters.filters.n == 0) return;
    kiln_key_text(h, "boxes", p->o->filter_boxes ? p->o->filter_boxes : "");
    kiln_key_text(h, "spheres", p->o->filter_spheres ? p->o->filter_spheres : "");
    kiln_key_text(h, "values", p->o->filter_values ? p->o->filter_values : "");
    kiln_key_bytes(h, "origin", p->filters.origin, sizeof p->filters.origin);
}

/* ---- payloads ---------------------------------------------------------------------------------------------------------- */
kiln_prune_unit kiln_pruning_head(const kiln_pruning *p, kiln_prune_unit_kind kind)
{
    kiln_prune_unit u;
    memset(&u, 0, sizeof u);
    u.kind = kind;
    u.layer = p->input->digest;
    u.layer_kind = kiln_layer_kind_find(p->input->kind);
    if (p->spacing) u.spacing = p->spacing->digest;
    u.rules = p->rules;
    return u;
}

kiln_status kiln_pruning_set_payload(kiln_unit *unit, const kiln_prune_unit *head, const kiln_merged_row *merges,
                                     const uint32_t *rows, const void *text, kiln_error *err)
{
    kiln_buffer b = {0};
    kiln_status st;
    KILN_GO(kiln_buffer_put(&b, head, sizeof *head, err));
    if (head->n_merges) KILN_GO(kiln_buffer_put(&b, merges, head->n_merges * sizeof *merges, err));
    if (head->n_rows) KILN_GO(kiln_buffer_put(&b, rows, head->n_rows * sizeof *rows, err));
    if (head->text_bytes) KILN_GO(kiln_buffer_put(&b, text, head->text_bytes, err));
    unit->payload = b.data;
    unit->payload_bytes = b.size;
    return KILN_OK;
done:
    kiln_buffer_release(&b);
    return st;
}
