/* knn_tree -- the search tree of knn's CPU sibling: a k-d tree without pointers; private to this
 * folder.
 *
 * Points lie in leaves of 8, each leaf as x[8], y[8], z[8], row[8]; all are full but the last.
 * Subtrees hold a power of two of leaves, so that a node is known by its first leaf and its height
 * alone; a node whose upper half would be empty is its lower half. Nodes are 8 wide (three binary
 * splits at once): the boxes of 8 children lie side by side, level 0 over leaves, the last level
 * has one node. Children that do not exist have an empty box (+inf, -inf), at distance inf.
 *
 *   bytes per point: 16 in leaves, 3 + 3/8 + ... in boxes
 */
#ifndef KILN_KERNELS_KNN_TREE_H
#define KILN_KERNELS_KNN_TREE_H

#include "kernels/exec.h"

#include <stddef.h>
#include <stdint.h>

/* 8^10 leaves are more than 2^32 points need */
enum { KNN_LEAF = 8, KNN_WIDE = 8, KNN_LEVELS = 10 };

typedef struct {
    float at[3][KNN_LEAF];
    uint32_t row[KNN_LEAF];
} knn_leaf;

typedef struct {
    float lo[3][KNN_WIDE], hi[3][KNN_WIDE];
} knn_node;

typedef struct {
    uint64_t n, n_leaves;
    unsigned n_levels;
    uint64_t n_nodes[KNN_LEVELS];
    knn_leaf *leaves;
    knn_node *nodes[KNN_LEVELS];
} knn_tree;

/* Lays the tree of n points out in `work`; NULL only measures. Returns the bytes. */
/* kiln_knn_tree_layout_cpu, kiln_knn_tree_layout_cpu_avx2 */
size_t KILN_CPU(knn_tree_layout)(knn_tree *t, uint64_t n, void *work);
/* Fills it from planar means [3][n]. */
/* kiln_knn_tree_build_cpu, kiln_knn_tree_build_cpu_avx2 */
void KILN_CPU(knn_tree_build)(knn_tree *t, const float *means, unsigned threads);

#endif
