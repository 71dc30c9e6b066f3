/* level_chunks -- see level_chunks.h. */
#include "stages/export/level_chunks.h"

#include "schema/layers.h"

#include <stdlib.h>
#include <string.h>

/* Chunks without rows are not written, nor do they have levels. */
static uint32_t chunks_with_rows(const kiln_layer *l)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n_chunks; i++) n += l->chunks[i].count > 0;
    return n;
}

kiln_status kiln_export_check_levels(const kiln_export *e, const char *format, kiln_error *err)
{
    const char *const kind = e->bakes[0].layer->kind;
    if (strcmp(kind, kiln_layer_kinds[KILN_LAYER_baked].name) != 0)
        return kiln_fail(
            err, KILN_E_USAGE,
            "the format %s needs levels of the layer 'baked', but '%s' has none; leave out --layer",
            format, kind);
    if (e->n_bakes > 1 || e->filters.n || e->n_chunks != chunks_with_rows(e->bakes[0].layer))
        return kiln_fail(err, KILN_E_USAGE,
                         "the format %s needs levels, which represent all Gaussians of one bake; "
                         "leave out --chunks, filters "
                         "and --add",
                         format);
    return KILN_OK;
}

kiln_status kiln_export_load_levels(kiln_manifest *m, kiln_export_bake *bake, kiln_error *err)
{
    return bake->levels ? KILN_OK : kiln_levels_get(m, bake->layer, &bake->levels, err);
}

static void name_chunk(kiln_export *e, const uint32_t *place, const kiln_chunk *chunk,
                       uint32_t node, uint32_t level)
{
    const kiln_export_bake *bake = &e->bakes[0];
    const uint64_t at = level ? bake->layer->n_chunks + (uint64_t)(chunk - bake->levels->chunks)
                              : (uint64_t)(chunk - bake->layer->chunks);
    if (place[at] == UINT32_MAX) return; /* it has no rows */
    e->chunks[place[at]].node = node;
    e->chunks[place[at]].level = level;
}

/* place: by number of the chunk in the layer, or behind that in the levels, where it is in
 * e->chunks. */
static void name_chunks(kiln_export *e, const uint32_t *place)
{
    for (uint32_t i = 0; i < e->tree->n_nodes; i++) {
        const kiln_level_node *n = &e->tree->nodes[i];
        if (n->chunk) name_chunk(e, place, n->chunk, i, 0);
        for (uint32_t k = 0; k < n->n_levels; k++)
            name_chunk(e, place, n->levels[k], i, n->first_level + k);
    }
}

static bool is_of(const kiln_layer *l, const kiln_chunk *c)
{
    return c >= l->chunks && c < l->chunks + l->n_chunks;
}

kiln_status kiln_export_bind_levels(kiln_export *e, kiln_level_tree *tree, kiln_error *err)
{
    const kiln_export_bake *bake = &e->bakes[0];
    const uint32_t n = bake->layer->n_chunks, all = n + bake->levels->n_chunks;
    uint32_t *place;
    KILN_TRY(kiln_level_tree_make(bake->layer, bake->levels, tree, err));
    KILN_TRY(KILN_ALLOC_UNSET(&place, all, "the chunks of levels", err));
    for (uint32_t i = 0; i < all; i++) place[i] = UINT32_MAX;
    for (uint32_t i = 0; i < e->n_chunks; i++) {
        const kiln_chunk *c = e->chunks[i].chunk;
        place[is_of(bake->layer, c) ? (uint64_t)(c - bake->layer->chunks)
                                    : n + (uint64_t)(c - bake->levels->chunks)] = i;
    }
    e->tree = tree;
    name_chunks(e, place);
    free(place);
    return KILN_OK;
}

kiln_status kiln_export_add_levels(kiln_export *e, kiln_level_tree *tree, kiln_error *err)
{
    const kiln_layer *levels = e->bakes[0].levels;
    kiln_export_chunk *more;
    KILN_TRY(KILN_ALLOC(&more, e->n_chunks + levels->n_chunks, "the chunks of levels", err));
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n_chunks; i++)
        if (e->chunks[i].n) more[n++] = e->chunks[i]; /* a chunk without rows is no node */
    free(e->chunks);
    e->chunks = more;
    e->n_chunks = n;
    for (uint32_t i = 0; i < levels->n_chunks; i++) {
        const kiln_chunk *c = &levels->chunks[i];
        e->chunks[e->n_chunks++] =
            (kiln_export_chunk){.chunk = c, .first = e->n_rows, .n = c->count};
        e->n_rows += c->count;
    }
    return kiln_export_bind_levels(e, tree, err);
}
