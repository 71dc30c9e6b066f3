/* The unit of a node above leaves: gathers its children's coarsest levels, merges them further, measures what comes out. Ancestry
 * and weights go along: they are those of the rows of `baked`, whatever the level. */
#include "stages/lod/node.h"

static kiln_status read_child(kiln_manifest *m, const kiln_lod_child *c, uint64_t first, kiln_lod_rows *rows, kiln_error *err)
{
    kiln_unit_result result = {0};
    bool found;
    KILN_TRY(kiln_unit_find(m, c->unit, &found, &result, err));
    kiln_status st = found ? kiln_lod_rows_read_level(m, &result, c->level, first, c->count, rows, err)
                           : kiln_fail(err, KILN_E_BUG, "the levels of a node below are not stored");
    kiln_unit_result_release(&result);
    return st;
}

static kiln_status gather(kiln_manifest *m, const kiln_lod_unit *u, const kiln_lod_child *children, kiln_lod_rows *rows,
                          kiln_error *err)
{
    uint64_t first = 0;
    for (uint32_t i = 0; i < u->n_children; i++) {
        if (children[i].count > u->rows - first) return kiln_fail(err, KILN_E_BUG, "the children of a node have too many rows");
        KILN_TRY(read_child(m, &children[i], first, rows, err));
        first += children[i].count;
    }
    return first == u->rows ? KILN_OK : kiln_fail(err, KILN_E_BUG, "the children of a node have too few rows");
}

kiln_status kiln_lod_inner_unit(kiln_worker *w, const kiln_lod_unit *u, const kiln_lod_child *children, kiln_error *err)
{
    kiln_lod_node node;
    kiln_manifest *m;
    kiln_status st;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_GO(kiln_lod_node_open(u, &node, err));
    KILN_GO(gather(m, u, children, &node.from, err));
    KILN_GO(kiln_lod_node_merge(w, &node, err));
done:
    kiln_lod_node_release(&node);
    return st;
}
