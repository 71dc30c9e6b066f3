/* levels -- the tree of levels of detail: which coarser chunks stand for which chunks of the layer
 * `baked`.
 *
 * Words. A *node* is a chunk of `baked` (a leaf), or a cell of the octree above that has levels of
 * its own (an inner node). *Level k* of a node has about 1/2^k of the rows below it. Level 0 is the
 * chunk of `baked` itself; only leaves have it, and nothing ever changes it. A *cut* is a set of
 * nodes, each with one of its levels, that stands for every row of `baked` exactly once: a picture
 * is drawn of a cut. A *footprint* is the width of a pixel in scene units where a Gaussian is:
 * depth / focal length in pixels.
 *
 * The tree follows from the names and parents of the chunks of `baked` alone
 * (kiln_level_tree_plan):
 *   - A chunk with rows is a leaf. It belongs to its parent cell.
 *   - A cell to which two or more nodes belong is an inner node of the cell's name, "/" for the
 *     root cell. Its children are in the order of their first chunks in `baked`. It belongs to the
 *     cell above.
 *   - A cell to which one node belongs is not a node itself: the node belongs to the cell above.
 *   - If more than KILN_NODE_CHILDREN nodes belong to a cell, each run of so many becomes a node
 *     first, named CELL+0, CELL+1, ...; a last run of one node stays that node. This is repeated,
 *     with further numbers, until KILN_NODE_CHILDREN or fewer are left.
 *   - The node that is left at the root cell is the root. A layer without rows has no node.
 *
 * Levels of a leaf begin at 1; those of an inner node follow the coarsest level among its children,
 * K: K + 1, K + 2, ... Each node has at least one. A level has at most as many rows as the one
 * before; the first one of an inner node, as its children's coarsest levels together.
 *
 * Errors. errors[i] of a chunk of levels is that of a footprint f = 2^(error_step + i): the mean
 * over measured views of f^2 times the sum over pixels and red, green, blue of (drawn - full)^2 /
 * 3, in scene units squared. So errors of chunks that are drawn side by side add up. The error of a
 * picture whose pixels have footprint f is their sum / f^2. All levels of a node have the same
 * steps. An error in pixels (divided by f^2) does not grow with the footprint: errors[i] is at most
 * 4 errors[i - 1]. The error itself may grow, because renderers that widen small Gaussians to a
 * pixel widen many more than few. It does not fall from a level to a coarser one.
 *
 * In the layer `levels`, chunks are named NODE@LEVEL; parent is the name of the parent NODE, "" for
 * the root; chunks are in the order of the tree (below), a node's levels ascending. SCHEMA.md,
 * "Levels", describes this for other programs.
 *
 * Threads: pure functions of the layers, except kiln_levels_get (as manifest.h). Memory: some 300
 * bytes a node. */
#ifndef KILN_SCHEMA_LEVELS_H
#define KILN_SCHEMA_LEVELS_H

#include "base/extern_c.h"
#include "schema/manifest.h"

KILN_C_BEGIN

enum { KILN_NODE_CHILDREN = 8 /* most children of an inner node */ };
#define KILN_NO_NODE UINT32_MAX

typedef struct kiln_level_sites kiln_level_sites; /* level_sites.h */

typedef struct {
    char name[96];
    uint32_t parent;                  /* index of a node; KILN_NO_NODE: the root */
    uint32_t first_child, n_children; /* in kiln_level_tree.children; 0: a leaf */
    const kiln_chunk *chunk;          /* of baked; NULL: an inner node */
    /* its levels are first_level .. first_level + n_levels - 1, beside level 0 of a leaf */
    uint32_t first_level, n_levels;
    /* [n_levels] chunks of the layer `levels`; NULL after kiln_level_tree_plan */
    const kiln_chunk *const *levels;
    uint64_t rows;                    /* of baked, below this node */
    float box_min[3], box_max[3];     /* of the means of all chunks of baked below */
    float reach_min[3], reach_max[3]; /* likewise of where a Gaussian can reach alpha 1/255 */
    /* where its rows are; NULL: not read (kiln_level_tree_read_sites) */
    const kiln_level_sites *sites;
    bool among; /* some of `eyes` stand among its rows; likewise */
} kiln_level_node;

typedef struct {
    /* borrowed: they must outlive the tree; levels: NULL after kiln_level_tree_plan */
    const kiln_layer *baked, *levels;
    uint32_t n_nodes;
    /* depth first, children before parents, in the order of baked: the root is the last */
    kiln_level_node *nodes;
    /* indices of nodes; a node's own are consecutive and ascending. n_nodes - 1 in all */
    uint32_t *children;
    const kiln_chunk **chunks; /* what kiln_level_node.levels points into */
    kiln_level_sites *sites;   /* [n_nodes] what kiln_level_node.sites points into */
    uint32_t n_eyes;           /* cameras that errors were measured with; read with the sites */
    /* [n_eyes] where they stand; as the means: the scene's origin subtracted */
    double (*eyes)[3];
    /* of them: root mean square of the distance from their middle; from the nearest other one */
    double spread, gap;
} kiln_level_tree;

/* Makes the tree of the chunks of `baked` before levels exist: n_levels is 0, and first_level is 1
 * for leaves, 0 for others. KILN_E_INPUT: a name is too long, or two nodes would have the same
 * name, which SplatKiln never writes. *out is empty after a failure. */
kiln_status kiln_level_tree_plan(const kiln_layer *baked, kiln_level_tree *out,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Makes the tree with its levels. KILN_E_INPUT names the chunk and what is wrong if `levels` breaks
 * a rule of this file's head. It must belong to this `baked`, with each node's levels in order, the
 * right parent and counts that do not grow. All nodes or none have errors, as above. */
kiln_status kiln_level_tree_make(const kiln_layer *baked, const kiln_layer *levels,
                                 kiln_level_tree *out, kiln_error *err) KILN_MUST_CHECK;
/* Returns the coarsest level of a node; 0: it has none. */
uint32_t kiln_level_tree_coarsest(const kiln_level_tree *t);
void kiln_level_tree_release(kiln_level_tree *t); /* accepts an empty one ({0}) */

/* Writes the name of a chunk of levels, NODE@LEVEL. KILN_E_INPUT: it does not fit. */
kiln_status kiln_level_name(char out[96], const char *node, uint32_t level,
                            kiln_error *err) KILN_MUST_CHECK;

/* Gets the current layer of levels if it belongs to this layer. KILN_E_STALE, with the advice to
 * run kiln-lod: it does not exist or belongs to another bake. Free with kiln_layer_free. */
kiln_status kiln_levels_get(kiln_manifest *m, const kiln_layer *baked, kiln_layer **out,
                            kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
