/* levels -- a layer of levels put to the tree of its baked layer, which decides all names and
 * parents: so a wrong parent, a cycle, a second root, and a missing or repeated node all show as a
 * chunk that is not the next one. */
#include "schema/levels.h"

#include "base/memory.h"
#include "schema/layers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

kiln_status kiln_level_name(char out[96], const char *node, uint32_t level, kiln_error *err)
{
    const int n = snprintf(out, 96, "%.95s@%" PRIu32, node, level);
    if (n > 0 && n < 96) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "the node '%s' has a name that is too long for a level",
                     node);
}

uint32_t kiln_level_tree_coarsest(const kiln_level_tree *t)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const uint32_t last = t->nodes[i].first_level + t->nodes[i].n_levels - 1;
        if (t->nodes[i].n_levels > 0 && last > most) most = last;
    }
    return most;
}

void kiln_level_tree_release(kiln_level_tree *t)
{
    free(t->nodes);
    free(t->children);
    free(t->chunks);
    free(t->sites);
    free(t->eyes);
    *t = (kiln_level_tree){0};
}

/* ---- one chunk of a node --------------------------------------------------------------------- */
static const char *parent_name(const kiln_level_tree *t, const kiln_level_node *n)
{
    return n->parent == KILN_NO_NODE ? "" : t->nodes[n->parent].name;
}

/* before: the finer level of the same node. */
static kiln_status check_errors(const kiln_level_tree *t, const kiln_chunk *before,
                                const kiln_chunk *c, kiln_error *err)
{
    if (c->n_errors != before->n_errors || (c->n_errors && c->error_step != before->error_step))
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s', chunk '%s' has errors of other footprints than '%s'",
                         t->levels->kind, c->name, before->name);
    for (uint32_t i = 0; i < c->n_errors; i++)
        if (!(c->errors[i] >= before->errors[i]))
            return kiln_fail(
                err, KILN_E_INPUT,
                "layer '%s', chunk '%s' has an error of %g, less than the finer '%s' with %g",
                t->levels->kind, c->name, (double)c->errors[i], before->name,
                (double)before->errors[i]);
    return KILN_OK;
}

/* ---- nodes ----------------------------------------------------------------------------------- */
/* What the first level of a node is made of: its rows, and the level before. */
static void find_source(const kiln_level_tree *t, kiln_level_node *n, uint64_t *rows)
{
    uint32_t coarsest = 0;
    *rows = n->chunk ? n->chunk->count : 0;
    for (uint32_t i = 0; i < n->n_children; i++) {
        const kiln_level_node *child = &t->nodes[t->children[n->first_child + i]];
        const uint32_t last = child->first_level + child->n_levels - 1;
        if (last > coarsest) coarsest = last;
        *rows += child->levels[child->n_levels - 1]->count;
    }
    n->first_level = coarsest + 1;
}

static bool is_of_node(const kiln_chunk *c, const kiln_level_node *n)
{
    const size_t length = strlen(n->name);
    return strncmp(c->name, n->name, length) == 0 && c->name[length] == '@';
}

/* most: rows of the level before. */
static kiln_status check_level(const kiln_level_tree *t, const kiln_level_node *n,
                               const kiln_chunk *c, uint32_t level, uint64_t most, kiln_error *err)
{
    if (c->level != level)
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s', chunk '%s': level %" PRIu32 " of '%s' must follow",
                         t->levels->kind, c->name, level, n->name);
    if (strcmp(c->parent, parent_name(t, n)) != 0)
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s', chunk '%s' has the parent '%s', but it must be '%s'",
                         t->levels->kind, c->name, c->parent, parent_name(t, n));
    if (c->count >= 1 && c->count <= most) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "layer '%s', chunk '%s' has %" PRIu64 " rows, but it is made of %" PRIu64,
                     t->levels->kind, c->name, c->count, most);
}

/* Takes the node's chunks, which begin at *at. */
static kiln_status take_node(kiln_level_tree *t, kiln_level_node *n, uint32_t *at, kiln_error *err)
{
    const kiln_layer *const l = t->levels;
    uint64_t most;
    find_source(t, n, &most);
    n->levels = t->chunks + *at;
    while (*at < l->n_chunks && is_of_node(&l->chunks[*at], n)) {
        const kiln_chunk *const c = &l->chunks[*at];
        KILN_TRY(check_level(t, n, c, n->first_level + n->n_levels, most, err));
        if (n->n_levels) KILN_TRY(check_errors(t, t->chunks[*at - 1], c, err));
        t->chunks[(*at)++] = c;
        n->n_levels++;
        most = c->count;
    }
    if (n->n_levels) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "layer '%s' has no levels of '%s', which come before '%s'",
                     l->kind, n->name, *at < l->n_chunks ? l->chunks[*at].name : "its end");
}

/* What is drawn is chosen by errors or without them, not by both. */
static kiln_status check_all_or_none(const kiln_level_tree *t, kiln_error *err)
{
    const kiln_layer *const l = t->levels;
    for (uint32_t i = 1; i < l->n_chunks; i++)
        if (!l->chunks[i].n_errors != !l->chunks[0].n_errors)
            return kiln_fail(err, KILN_E_INPUT,
                             "layer '%s': of the chunks '%s' and '%s' only one has errors", l->kind,
                             l->chunks[0].name, l->chunks[i].name);
    return KILN_OK;
}

static kiln_status take_levels(kiln_level_tree *t, kiln_error *err)
{
    const kiln_layer *const l = t->levels;
    uint32_t at = 0;
    KILN_TRY(KILN_ALLOC(&t->chunks, l->n_chunks, "chunks of levels", err));
    for (uint32_t i = 0; i < t->n_nodes; i++) KILN_TRY(take_node(t, &t->nodes[i], &at, err));
    if (at < l->n_chunks)
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s', chunk '%s' belongs to no node of '%s', or occurs twice",
                         l->kind, l->chunks[at].name, t->baked->kind);
    return check_all_or_none(t, err);
}

kiln_status kiln_level_tree_make(const kiln_layer *baked, const kiln_layer *levels,
                                 kiln_level_tree *out, kiln_error *err)
{
    *out = (kiln_level_tree){0};
    if (!kiln_hash_equal(levels->origin, baked->digest))
        return kiln_fail(err, KILN_E_INPUT, "layer '%s' belongs to another layer '%s'",
                         levels->kind, baked->kind);
    KILN_TRY(kiln_level_tree_plan(baked, out, err));
    out->levels = levels;
    const kiln_status st = take_levels(out, err);
    if (st != KILN_OK) kiln_level_tree_release(out);
    return st;
}

/* ---- the current ones ------------------------------------------------------------------------ */
kiln_status kiln_levels_get(kiln_manifest *m, const kiln_layer *baked, kiln_layer **out,
                            kiln_error *err)
{
    kiln_layer *l;
    *out = NULL;
    const kiln_status st = kiln_layer_current(m, KILN_LAYER_levels, &l, err);
    if (st == KILN_E_STALE)
        return kiln_fail(err, st, "'%s' has no levels of detail; run kiln-lod first",
                         kiln_manifest_path(m));
    KILN_TRY(st);
    if (kiln_hash_equal(l->origin, baked->digest)) {
        *out = l;
        return KILN_OK;
    }
    kiln_layer_free(l);
    return kiln_fail(err, KILN_E_STALE,
                     "the levels of detail in '%s' belong to another bake; run kiln-lod first",
                     kiln_manifest_path(m));
}
