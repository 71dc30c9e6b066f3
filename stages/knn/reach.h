/* reach -- which pages of a cloud a range of it must still be asked about, when the cloud is larger
 * than memory.
 *
 * The places of the cloud along a curve are cut into pages, each known by its box. A query, a point
 * of the range, knows its bound: the k-th smallest squared distance that it has found. A page can
 * improve it only when the distance from the query to the page's box is below that. Distances of
 * boxes are computed so that rounding never lifts them above the distance of any two points in them
 * (kiln_knn_distance2): what is left out here could not have changed a bit.
 *
 * Both sides are trees without pointers: eight things in a row have a node above them.
 */
#ifndef KILN_STAGES_KNN_REACH_H
#define KILN_STAGES_KNN_REACH_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { KILN_REACH_WIDE = 8, KILN_REACH_LEVELS = 11 }; /* 8^11 leaves are more than 2^32 */

typedef struct {
    float lo[3], hi[3];
} kiln_knn_box;

typedef struct {
    kiln_knn_box box;
    float bound; /* the largest below it; pages have none */
} kiln_reach_node;

typedef struct {
    unsigned n_levels; /* 0: empty */
    uint64_t n[KILN_REACH_LEVELS];
    kiln_reach_node *nodes[KILN_REACH_LEVELS]; /* level 0: leaves */
} kiln_reach_tree;

/* Queries in the order of the curve; a leaf of the tree has eight. */
typedef struct {
    uint64_t n;
    const float *points; /* [3][n] */
    const float *bounds; /* [n] */
    kiln_reach_tree tree;
} kiln_reach_queries;

/* The box of n points [n][3], n > 0. */
kiln_knn_box kiln_knn_box_of(const float *xyz, uint64_t n);

kiln_status kiln_reach_tree_new(uint64_t n_leaves, kiln_reach_tree *t,
                                kiln_error *err) KILN_MUST_CHECK;
void kiln_reach_tree_release(kiln_reach_tree *t);
uint64_t kiln_reach_tree_bytes(uint64_t n_leaves);
/* Everything above level 0. */
void kiln_reach_tree_build(kiln_reach_tree *t);

/* tree has (n + 7) / 8 leaves; to be called again when bounds have shrunk. */
void kiln_reach_queries_build(kiln_reach_queries *q);
/* The least squared distance from which a page can improve a query; INFINITY where it improves
 * none. */
float kiln_reach_nearest(const kiln_reach_queries *q, const kiln_knn_box *page);
/* marks[i] = 1 for queries that one of the pages, the leaves of a tree, can improve; others are
 * left alone. */
void kiln_reach_mark(const kiln_reach_queries *q, const kiln_reach_tree *pages, unsigned threads,
                     uint8_t *marks);

#endif
