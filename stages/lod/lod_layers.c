/* A chunk of the layer for each level of each node, in the order of SCHEMA.md: nodes as in the
 * tree, levels ascending. */
#include "stages/lod/lod_layers.h"

#include "base/checked.h"
#include "base/memory.h"
#include "base/minmax.h"

#include "stages/engine/parent/run_layers.h"
#include "stages/lod/lod_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kiln_status add_planes(const kiln_lod_unit *u, const kiln_unit_result *result,
                              uint32_t level, kiln_chunk *c, kiln_error *err)
{
    char name[KILN_LOD_OUTPUT_NAME];
    for (int i = 0; i < KILN_LOD_PLANES; i++) {
        const kiln_lod_plane *p = &kiln_lod_planes[i];
        const uint32_t components = kiln_lod_components(p, u->sh_degree, u->weighted);
        if (components == 0) continue;
        kiln_lod_output_name(level, p->name, name);
        KILN_TRY(kiln_chunk_add_output(c, result, name, p->name, p->type, components, err));
    }
    return KILN_OK;
}

static void set_errors(const kiln_lod_errors *e, uint32_t i, kiln_chunk *c)
{
    if (e->n_levels == 0) return;
    c->n_errors = KILN_LOD_STEPS;
    c->error_step = e->first_step;
    memcpy(c->errors, e->at[i], sizeof e->at[i]);
}

static kiln_status fill_chunk(kiln_run *r, const kiln_lod_plan *p, uint32_t node, uint32_t i,
                              kiln_chunk *c, kiln_error *err)
{
    const kiln_level_node *at = &p->tree.nodes[node];
    const kiln_unit *unit = kiln_lod_unit_of(p, node);
    const kiln_lod_unit *u = kiln_lod_payload(p, node);
    char bounds[KILN_LOD_OUTPUT_NAME];
    c->level = u->first_level + i;
    c->count = u->counts[i];
    KILN_TRY(kiln_level_name(c->name, at->name, c->level, err));
    if (at->parent != KILN_NO_NODE)
        memcpy(c->parent, p->tree.nodes[at->parent].name, sizeof c->parent);
    KILN_TRY(kiln_unit_refuse(r, unit, add_planes(u, &unit->result, c->level, c, err), err));
    kiln_lod_output_name(c->level, "bounds", bounds);
    return kiln_chunk_read_bounds_of(r, unit, bounds, c, err);
}

/* Codes of all rows below: children stand before their parents, and chunks have theirs. */
typedef struct {
    uint64_t lo, hi;
} code_range;

static kiln_status find_codes(const kiln_lod_plan *p, code_range **out, kiln_error *err)
{
    const uint32_t n = p->tree.n_nodes;
    code_range *codes;
    KILN_TRY(KILN_ALLOC(&codes, n, "the ranges of nodes", err));
    for (uint32_t i = 0; i < n; i++) codes[i] = (code_range){UINT64_MAX, 0};
    for (uint32_t i = 0; i < n; i++) {
        const kiln_level_node *at = &p->tree.nodes[i];
        if (at->chunk) codes[i] = (code_range){at->chunk->hilbert_lo, at->chunk->hilbert_hi};
        if (at->parent == KILN_NO_NODE) continue;
        code_range *up = &codes[at->parent];
        up->lo = kiln_min_u64(up->lo, codes[i].lo);
        up->hi = kiln_max_u64(up->hi, codes[i].hi);
    }
    *out = codes;
    return KILN_OK;
}

static kiln_status fill_layer(kiln_run *r, const kiln_lod_plan *p, const code_range *codes,
                              kiln_layer *l, kiln_error *err)
{
    kiln_chunk *next = l->chunks;
    for (uint32_t node = 0; node < p->tree.n_nodes; node++) {
        kiln_unit *unit = kiln_lod_unit_of(p, node);
        const kiln_lod_unit *u = kiln_lod_payload(p, node);
        kiln_lod_errors errors;
        KILN_TRY(kiln_unit_pass(r, unit, kiln_lod_unit_errors(r, u, unit, &errors, err)));
        for (uint32_t i = 0; i < u->n_levels; i++) {
            kiln_chunk *c = next++;
            const kiln_status st = fill_chunk(r, p, node, i, c, err);
            KILN_TRY(kiln_unit_pass(r, unit, st));
            set_errors(&errors, i, c);
            c->hilbert_lo = codes[node].lo;
            c->hilbert_hi = codes[node].hi;
            l->count += c->count;
        }
        kiln_unit_result_release(&unit->result); /* its rows of the layer take as much */
    }
    return kiln_run_refused(r, err);
}

kiln_status kiln_lod_layer_make(kiln_run *r, const kiln_lod_plan *p,
                                const kiln_view_request *request, kiln_layer **out, kiln_error *err)
{
    code_range *codes = NULL;
    uint64_t n = 0;
    uint32_t n_chunks;
    *out = NULL;
    for (uint32_t node = 0; node < p->tree.n_nodes; node++)
        n += kiln_lod_payload(p, node)->n_levels;
    if (!kiln_to_u32(n, &n_chunks))
        return kiln_fail(err, KILN_E_INPUT, "the bake has too many chunks for levels");
    KILN_TRY(kiln_layer_new(KILN_LAYER_levels, p->baked->sh_degree, n_chunks, out, err));
    (*out)->origin = p->baked->digest;
    (void)snprintf((*out)->origin_profile, sizeof(*out)->origin_profile, "%s",
                   kiln_profiles[request->profile].name);
    (*out)->origin_antialiased = request->antialiased;
    (*out)->origin_near = request->near_m;
    KILN_TRY(find_codes(p, &codes, err));
    const kiln_status st = fill_layer(r, p, codes, *out, err);
    free(codes);
    return st;
}
