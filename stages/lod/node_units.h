/* node_units -- which units kiln-lod has: one for each node of the tree (schema/levels.h), with the
 * levels that it makes.
 *
 * All numbers of rows are known from the chunks alone: a leaf of n rows has max(1, n >> k) at level
 * k. A node above starts at the level behind the coarsest of its children and halves what they have
 * together, until at most `coarsest` rows are left. No level has more rows than a chunk may have:
 * with few levels of leaves, the first one of a node above has less than half.
 *
 * Units are ordered by height (leaves 0, a node above one more than its highest child), so that the
 * units of a height are one list: all that it reads is stored by then. Functions are for the
 * parent's main thread. */
#ifndef KILN_STAGES_NODE_UNITS_H
#define KILN_STAGES_NODE_UNITS_H

#include "stages/lod/lod_units.h"

typedef struct {
    uint32_t levels;           /* of a leaf */
    uint64_t coarsest;         /* most rows of a node's coarsest level, above leaves */
    bool weighted;             /* rows have visibility and prominence */
    kiln_distance_prior prior; /* radius 0: both are those that cameras give */
    /* borrowed while the plan is made; NULL: errors are not measured */
    const kiln_lod_error_source *errors;
} kiln_lod_rule;

typedef struct {
    const kiln_layer *baked;
    kiln_level_tree tree; /* planned: without levels */
    kiln_lod_rule rule;
    /* [n_nodes] by height, then as in the tree; `payload` is a kiln_lod_unit and its children */
    kiln_unit *units;
    uint32_t *node_of, *unit_of; /* [n_nodes] node of a unit, unit of a node */
    uint32_t n_heights;
    /* [n_heights + 1] units of a height are [first[h], first[h + 1]) */
    uint32_t *first;
    /* [n_refined] of leaves, those that no camera sees until it is known (refine.h); NULL: none */
    kiln_unit *refined;
    uint32_t n_refined, *refined_of; /* [n_nodes] unit in `refined`, UINT32_MAX: none */
    /* levels of refined leaves, and those that refining made better */
    uint64_t tried, better;
} kiln_lod_plan;

/* Plans the units of a layer, without keys. Borrows the layer. Release also after a failure.
 * KILN_E_INPUT: cells lie so deep that there are more levels than KILN_LEVELS_MAX. */
kiln_status kiln_lod_plan_make(const kiln_layer *baked, const kiln_lod_rule *rule,
                               kiln_lod_plan *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_lod_plan_release(kiln_lod_plan *p);
static inline kiln_lod_unit *kiln_lod_payload(const kiln_lod_plan *p, uint32_t node)
{
    return p->units[p->unit_of[node]].payload;
}
static inline kiln_lod_child *kiln_lod_children(kiln_lod_unit *u)
{
    return (kiln_lod_child *)(u + 1);
}

/* Reads the errors that a stored unit, or one that refines its levels, measured; n_levels is 0 if
 * it had no views. What cannot be is refused: KILN_E_IO. */
kiln_status kiln_lod_unit_errors(kiln_run *r, const kiln_lod_unit *u, const kiln_unit *unit,
                                 kiln_lod_errors *out, kiln_error *err) KILN_MUST_CHECK;
/* The unit whose outputs are a node's levels: the refined one of a leaf that has one. */
static inline kiln_unit *kiln_lod_unit_of(const kiln_lod_plan *p, uint32_t node)
{
    return p->refined && p->refined_of[node] != UINT32_MAX ? &p->refined[p->refined_of[node]]
                                                           : &p->units[p->unit_of[node]];
}

/* Says what memory all lists take, before the first runs. */
void kiln_lod_plan_foresee(kiln_run *r, const kiln_lod_plan *p);
/* Shares `threads` out among the units of a height where they are fewer; else each has one. */
void kiln_lod_plan_threads(kiln_lod_plan *p, uint32_t height, unsigned threads);
/* Keys the leaves. seen: the layer `visibility`, NULL without one. */
kiln_status kiln_lod_plan_leaves(kiln_run *r, kiln_lod_plan *p, const kiln_layer *seen,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Keys the nodes of a height above 0: those below have results. */
kiln_status kiln_lod_plan_height(kiln_run *r, kiln_lod_plan *p, uint32_t height,
                                 kiln_error *err) KILN_MUST_CHECK;

#endif
