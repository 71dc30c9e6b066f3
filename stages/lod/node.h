/* node -- what the units of leaves and of inner nodes have in common: merging rows into levels,
 * measuring and putting them. */
#ifndef KILN_STAGES_LOD_NODE_H
#define KILN_STAGES_LOD_NODE_H

#include "stages/lod/lod_units.h"
#include "stages/lod/lod_rows.h"

typedef struct {
    const kiln_lod_unit *unit;
    /* what is merged: level 0, or the children's coarsest levels */
    kiln_lod_rows from;
    kiln_lod_rows levels[KILN_LEVELS_MAX]; /* [unit->n_levels] */
    /* [unit->n_children] of an inner node that is measured */
    kiln_lod_child_errors *children;
} kiln_lod_node;

/* Makes the arrays of all rows. Release it after a failure, too. KILN_E_NOMEM. */
kiln_status kiln_lod_node_open(const kiln_lod_unit *u, kiln_lod_node *out,
                               kiln_error *err) KILN_MUST_CHECK;
void kiln_lod_node_release(kiln_lod_node *n);
/* Merges `from`, measures the levels and puts them as outputs of the unit. */
kiln_status kiln_lod_node_merge(kiln_worker *w, kiln_lod_node *n, kiln_error *err) KILN_MUST_CHECK;

#endif
