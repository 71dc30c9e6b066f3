/* The unit of a node above leaves: gathers its children's coarsest levels, merges them further,
 * measures what comes out. Ancestry and weights go along: they are those of the rows of `baked`,
 * whatever the level. */
#include "stages/lod/node.h"

#include <stdlib.h>

static kiln_status read_errors(kiln_manifest *m, const kiln_unit_result *result,
                               kiln_lod_errors *out, kiln_error *err)
{
    kiln_array stored;
    KILN_TRY(kiln_unit_result_array(result, "errors", &stored, err));
    const kiln_status st = stored.raw_bytes == sizeof *out
                               ? kiln_manifest_read_array(m, &stored, out, err)
                               : kiln_fail(err, KILN_E_IO, "the errors of a node have %llu bytes",
                                           (unsigned long long)stored.raw_bytes);
    free(stored.segments);
    KILN_TRY(st);
    if (out->n_levels > 0 && kiln_lod_errors_good(out, out->n_levels)) return KILN_OK;
    return kiln_fail(err, KILN_E_IO, "the errors of a node are invalid");
}

static kiln_status read_child(kiln_manifest *m, const kiln_lod_child *c, uint64_t first,
                              kiln_lod_rows *rows, kiln_lod_errors *errors, kiln_error *err)
{
    kiln_unit_result result = {0};
    bool found;
    KILN_TRY(kiln_unit_find(m, c->unit, &found, &result, err));
    kiln_status st =
        found ? kiln_lod_rows_read_level(m, &result, c->level, first, c->count, rows, err)
              : kiln_fail(err, KILN_E_BUG, "the levels of a child node are not stored");
    if (st == KILN_OK && errors) st = read_errors(m, &result, errors, err);
    kiln_unit_result_release(&result);
    return st;
}

static kiln_status gather_children(kiln_manifest *m, const kiln_lod_unit *u,
                                   const kiln_lod_child *children, kiln_lod_node *n,
                                   kiln_error *err)
{
    uint64_t first = 0;
    for (uint32_t i = 0; i < u->n_children; i++) {
        if (children[i].count > u->rows - first)
            return kiln_fail(err, KILN_E_BUG, "the children of a node have too many rows");
        KILN_TRY(read_child(m, &children[i], first, &n->from,
                            u->errors.n_views ? &n->children[i].errors : NULL, err));
        const kiln_coarsen_rows *r = &n->from.rows;
        kiln_level_sites_make(r->means, r->weights, r->visibility, r->n, first, children[i].count,
                              &n->children[i].sites);
        first += children[i].count;
    }
    return first == u->rows
               ? KILN_OK
               : kiln_fail(err, KILN_E_BUG, "the children of a node have too few rows");
}

kiln_status kiln_lod_inner_unit(kiln_worker *w, const kiln_lod_unit *u,
                                const kiln_lod_child *children, kiln_error *err)
{
    kiln_lod_node node;
    kiln_manifest *m;
    kiln_status st;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_GO(kiln_lod_node_open(u, &node, err));
    KILN_GO(gather_children(m, u, children, &node, err));
    KILN_GO(kiln_lod_node_merge(w, &node, err));
done:
    kiln_lod_node_release(&node);
    return st;
}
