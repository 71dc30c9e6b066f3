/* Planning units: levels and rows from the tree, payloads, keys. */
#include "stages/lod/node_units.h"

#include "base/memory.h"
#include "base/minmax.h"
#include "stages/chunk/cells.h"
#include "stages/engine/parent/run_layers.h"
#include "stages/lod/lod_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- levels ---------------------------------------------------------------------------------- */
static const kiln_level_node *node_at(const kiln_lod_plan *p, uint32_t node)
{
    return &p->tree.nodes[node];
}

static uint32_t last_level(const kiln_lod_unit *u) { return u->first_level + u->n_levels - 1; }

static void plan_leaf(const kiln_lod_plan *p, kiln_lod_unit *u)
{
    u->unit = KILN_LOD_LEAF;
    u->first_level = 1;
    u->n_levels = p->rule.levels;
    for (uint32_t i = 0; i < u->n_levels; i++) u->counts[i] = kiln_max_u64(1, u->rows >> (i + 1));
}

/* Nodes above need a level each, too. */
static uint32_t count_above(const kiln_lod_plan *p, uint32_t node)
{
    uint32_t n = 0;
    while ((node = node_at(p, node)->parent) != KILN_NO_NODE) n++;
    return n;
}

static kiln_status plan_inner(const kiln_lod_plan *p, uint32_t node, kiln_lod_unit *u,
                              kiln_error *err)
{
    const kiln_level_node *at = node_at(p, node);
    kiln_lod_child *children = kiln_lod_children(u);
    uint32_t coarsest = 0;
    u->unit = KILN_LOD_INNER;
    for (uint32_t i = 0; i < at->n_children; i++) {
        const kiln_lod_unit *c = kiln_lod_payload(p, p->tree.children[at->first_child + i]);
        children[i] = (kiln_lod_child){.level = last_level(c),
                                       .is_leaf = c->unit == KILN_LOD_LEAF,
                                       .count = c->counts[c->n_levels - 1]};
        u->rows += children[i].count;
        if (children[i].level > coarsest) coarsest = children[i].level;
    }
    const uint32_t above = count_above(p, node);
    if (coarsest + 1 + above >= KILN_LEVELS_MAX)
        return kiln_fail(
            err, KILN_E_INPUT,
            "the cells of '%s' lie too deep for %u levels; bake larger chunks (kiln-chunk --max)",
            at->name, KILN_LEVELS_MAX);
    u->first_level = coarsest + 1;
    uint64_t rows = u->rows;
    do {
        rows = kiln_min_u64(kiln_max_u64(1, rows >> 1), KILN_CHUNK_ROWS_MAX);
        u->counts[u->n_levels++] = rows;
    } while (rows > p->rule.coarsest && last_level(u) + 1 + above < KILN_LEVELS_MAX);
    u->counts[u->n_levels - 1] = kiln_min_u64(rows, p->rule.coarsest);
    return KILN_OK;
}

/* ---- units ----------------------------------------------------------------------------------- */
static kiln_status new_payload(const kiln_lod_plan *p, uint32_t node, kiln_unit *unit,
                               kiln_error *err)
{
    const kiln_level_node *at = node_at(p, node);
    kiln_lod_unit *u;
    const size_t bytes = sizeof *u + at->n_children * sizeof(kiln_lod_child);
    KILN_TRY(kiln_alloc((void **)&u, bytes, 1, "the units of kiln-lod", err));
    unit->payload = u;
    unit->payload_bytes = bytes;
    u->n_children = at->n_children;
    u->sh_degree = p->baked->sh_degree;
    u->weighted = p->rule.weighted;
    u->prior = p->rule.prior;
    u->baked = p->baked->digest;
    if (p->rule.errors) kiln_lod_error_request_init(&u->errors, p->rule.errors, at);
    if (at->n_children) return plan_inner(p, node, u, err);
    u->chunk = (uint32_t)(at->chunk - p->baked->chunks);
    u->rows = at->chunk->count;
    plan_leaf(p, u);
    return KILN_OK;
}

static kiln_status plan_unit(kiln_lod_plan *p, uint32_t node, kiln_error *err)
{
    kiln_unit *unit = &p->units[p->unit_of[node]];
    KILN_TRY(new_payload(p, node, unit, err));
    const kiln_lod_unit *u = unit->payload;
    unit->cost = u->rows;
    unit->ram = kiln_lod_unit_ram(u);
    /* few, and each height waits for the one below: no round for each */
    unit->planning = u->unit == KILN_LOD_INNER;
    (void)snprintf(unit->name, sizeof unit->name, "%s %s",
                   u->unit == KILN_LOD_LEAF ? "chunk" : "cell", node_at(p, node)->name);
    return KILN_OK;
}

void kiln_lod_plan_threads(kiln_lod_plan *p, uint32_t height, unsigned threads)
{
    /* views at footprints, which threads of errors share out */
    enum { MOST = (KILN_LOD_STEPS + 1) / 2 * KILN_LOD_VIEWS };
    const uint32_t first = p->first[height], n = p->first[height + 1] - first;
    const uint32_t each = n < threads ? (uint32_t)kiln_min_u64(threads / n, MOST) : 1;
    for (uint32_t i = first; i < first + n; i++) {
        kiln_lod_unit *u = p->units[i].payload;
        u->threads = each;
        p->units[i].ram_cache = (each - 1) * kiln_lod_unit_ram_thread(u);
    }
}

/* Units by height. Children stand before their parents in the tree. */
static kiln_status order(kiln_lod_plan *p, kiln_error *err)
{
    const uint32_t n = p->tree.n_nodes;
    uint32_t *height, *next;
    KILN_TRY(KILN_ALLOC(&height, n, "the heights of nodes", err));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t up = p->tree.nodes[i].parent;
        if (up != KILN_NO_NODE && height[up] <= height[i]) height[up] = height[i] + 1;
        if (height[i] >= p->n_heights) p->n_heights = height[i] + 1;
    }
    kiln_status st = KILN_ALLOC(&p->first, (uint64_t)p->n_heights + 1, "the heights of nodes", err);
    if (st == KILN_OK)
        st = KILN_ALLOC(&next, (uint64_t)p->n_heights + 1, "the heights of nodes", err);
    if (st == KILN_OK) {
        for (uint32_t i = 0; i < n; i++) p->first[height[i] + 1]++;
        for (uint32_t h = 0; h < p->n_heights; h++) p->first[h + 1] += p->first[h];
        memcpy(next, p->first, p->n_heights * sizeof *next);
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t at = next[height[i]]++;
            p->unit_of[i] = at;
            p->node_of[at] = i;
        }
        free(next);
    }
    free(height);
    return st;
}

kiln_status kiln_lod_plan_make(const kiln_layer *baked, const kiln_lod_rule *rule,
                               kiln_lod_plan *out, kiln_error *err)
{
    *out = (kiln_lod_plan){.baked = baked, .rule = *rule};
    KILN_TRY(kiln_level_tree_plan(baked, &out->tree, err));
    const uint32_t n = out->tree.n_nodes;
    KILN_TRY(KILN_ALLOC(&out->unit_of, n, "the units of kiln-lod", err));
    KILN_TRY(KILN_ALLOC(&out->node_of, n, "the units of kiln-lod", err));
    KILN_TRY(KILN_ALLOC(&out->units, n, "the units of kiln-lod", err));
    KILN_TRY(order(out, err));
    for (uint32_t i = 0; i < n; i++) KILN_TRY(plan_unit(out, i, err));
    return KILN_OK;
}

void kiln_lod_plan_release(kiln_lod_plan *p)
{
    for (uint32_t i = 0; p->units && i < p->tree.n_nodes; i++) {
        kiln_units_release(&p->units[i], 1);
        free(p->units[i].payload);
    }
    for (uint32_t i = 0; p->refined && i < p->n_refined; i++) {
        kiln_units_release(&p->refined[i], 1);
        free(p->refined[i].payload);
    }
    free(p->refined);
    free(p->refined_of);
    free(p->units);
    free(p->unit_of);
    free(p->node_of);
    free(p->first);
    kiln_level_tree_release(&p->tree);
    *p = (kiln_lod_plan){.baked = NULL};
}

void kiln_lod_plan_foresee(kiln_run *r, const kiln_lod_plan *p)
{
    for (uint32_t h = 0; h < p->n_heights; h++) {
        uint64_t most = 0;
        for (uint32_t i = p->first[h]; i < p->first[h + 1]; i++)
            most = kiln_max_u64(most, p->units[i].ram);
        kiln_run_foresee_ram(r, most, p->first[h + 1] - p->first[h]);
    }
}

/* ---- keys ------------------------------------------------------------------------------------ */
/* What both kinds have in their keys. Not the layer's digest, nor the index of a chunk: a change
 * elsewhere leaves a unit alone. */
static void key_levels(kiln_hasher *h, const kiln_lod_unit *u)
{
    KILN_KEY_LISTS(kiln_lod_unit, 1944);
    kiln_key_u64(h, "first level", u->first_level);
    kiln_key_bytes(h, "counts", u->counts, u->n_levels * sizeof *u->counts);
    kiln_key_u64(h, "sh_degree", u->sh_degree);
    kiln_key_u64(h, "weighted", u->weighted);
    kiln_key_text(h, "profile", kiln_profiles[u->errors.profile].name);
    kiln_key_bytes(h, "errors", &u->errors, sizeof u->errors);
}

static kiln_status set_visibility(const kiln_layer *seen, kiln_lod_unit *u, kiln_error *err)
{
    const kiln_plane *v = seen && u->chunk < seen->n_chunks
                              ? kiln_chunk_plane(&seen->chunks[u->chunk], "visibility")
                              : NULL;
    if (!u->weighted || u->prior.radius > 0) return KILN_OK;
    if (!v || v->data.n_segments != 1)
        return kiln_fail(err, KILN_E_BUG, "chunk %u has no visibility", u->chunk);
    u->visibility = v->data.segments[0];
    const kiln_plane *p = kiln_chunk_plane(&seen->chunks[u->chunk], "prominence");
    if (!p || p->data.n_segments != 1)
        return kiln_fail(err, KILN_E_BUG, "chunk %u has no prominence", u->chunk);
    u->prominence = p->data.segments[0];
    return KILN_OK;
}

kiln_status kiln_lod_plan_leaves(kiln_run *r, kiln_lod_plan *p, const kiln_layer *seen,
                                 kiln_error *err)
{
    for (uint32_t i = 0; p->n_heights && i < p->first[1]; i++) {
        kiln_lod_unit *u = p->units[i].payload;
        const kiln_chunk *c = &p->baked->chunks[u->chunk];
        KILN_TRY(set_visibility(seen, u, err));
        kiln_hasher *h = kiln_run_key_bare(r, "leaf");
        key_levels(h, u);
        kiln_key_hash(h, "visibility", u->visibility);
        kiln_key_hash(h, "prominence", u->prominence);
        kiln_key_bytes(h, "prior", &u->prior, sizeof u->prior);
        /* those that it has */
        for (int k = 0; k < KILN_LOD_PLANES; k++) kiln_key_plane(h, c, kiln_lod_planes[k].name);
        p->units[i].key = kiln_key_end(h);
    }
    return KILN_OK;
}

/* Everything that a node takes from a child: the rows of its coarsest level, and errors. */
static void key_child(kiln_hasher *h, const kiln_unit_result *result, const kiln_lod_child *c)
{
    char prefix[KILN_LOD_OUTPUT_NAME];
    kiln_lod_output_name(c->level, "", prefix);
    kiln_key_u64(h, "count", c->count);
    kiln_key_u64(h, "leaf", c->is_leaf);
    for (uint32_t i = 0; i < result->n; i++) {
        const kiln_unit_output *o = &result->outputs[i];
        if (strncmp(o->name, prefix, strlen(prefix)) != 0 && strcmp(o->name, "errors") != 0)
            continue;
        kiln_key_text(h, "output", o->name);
        kiln_key_hash(h, "blob", o->hash);
    }
}

static const kiln_unit *child_of(const kiln_lod_plan *p, uint32_t node, uint32_t child)
{
    return &p->units[p->unit_of[p->tree.children[node_at(p, node)->first_child + child]]];
}

kiln_status kiln_lod_unit_errors(kiln_run *r, const kiln_lod_unit *u, const kiln_unit *unit,
                                 kiln_lod_errors *out, kiln_error *err)
{
    memset(out, 0, sizeof *out);
    if (u->errors.n_views == 0) return KILN_OK;
    KILN_TRY(kiln_unit_struct(r, unit, "errors", out, sizeof *out, err));
    if (kiln_lod_errors_good(out, u->n_levels)) return KILN_OK;
    return kiln_unit_refuse(r, unit, kiln_fail(err, KILN_E_IO, "its errors are impossible"), err);
}

/* What is stored of a child may be a stranger's: the worker that reads it could only fail. */
static kiln_status take_children(kiln_run *r, const kiln_lod_plan *p, uint32_t node,
                                 kiln_lod_unit *u, kiln_error *err)
{
    kiln_lod_child *children = kiln_lod_children(u);
    for (uint32_t i = 0; i < u->n_children; i++) {
        const kiln_unit *below = child_of(p, node, i);
        const kiln_lod_child *c = &children[i];
        children[i].unit = below->key;
        KILN_TRY(kiln_unit_refuse(r, below,
                                  kiln_lod_level_check(&below->result, c->level, c->count,
                                                       u->sh_degree, u->weighted, err),
                                  err));
        kiln_lod_errors errors;
        KILN_TRY(kiln_lod_unit_errors(r, below->payload, below, &errors, err));
    }
    return KILN_OK;
}

kiln_status kiln_lod_plan_height(kiln_run *r, kiln_lod_plan *p, uint32_t height, kiln_error *err)
{
    for (uint32_t i = p->first[height]; i < p->first[height + 1]; i++) {
        kiln_lod_unit *u = p->units[i].payload;
        KILN_TRY(kiln_run_interrupted(r, err));
        KILN_TRY(take_children(r, p, p->node_of[i], u, err));
        kiln_hasher *h = kiln_run_key_bare(r, "inner");
        key_levels(h, u);
        for (uint32_t c = 0; c < u->n_children; c++)
            key_child(h, &child_of(p, p->node_of[i], c)->result, &kiln_lod_children(u)[c]);
        p->units[i].key = kiln_key_end(h);
    }
    return KILN_OK;
}
