/* knn_tree_cpu -- builds the tree: split at the middle rank along the longest axis of the points'
 * own box, down to leaves.
 *
 * Borders come from ranks and boxes from the points. So neither the distance from the origin, nor
 * an outlier, nor a million equal points change the shape or the cost: a grid or a curve over the
 * data's box fails in all three. Which of equal coordinates goes left depends on the selection;
 * knn's values do not.
 */
#include "kernels/knn/knn_tree.h"

#include "base/carve.h"
#include "kernels/knn/knn_select.h"

#include <math.h>
#include <string.h>

/* What a leaf's bytes hold while the tree is being built: the same 128 bytes as 8 records. */
_Static_assert(sizeof(knn_leaf) == KNN_LEAF * sizeof(knn_record),
               "records and leaves share their memory");

typedef struct {
    float lo[3], hi[3];
} box;

enum { TASK_LEAVES = 512 };

/* kiln_knn_tree_layout_cpu, kiln_knn_tree_layout_cpu_avx2 */
size_t KILN_CPU(knn_tree_layout)(knn_tree *t, uint64_t n, void *work)
{
    kiln_carve c = {work, 0};
    memset(t, 0, sizeof *t);
    t->n = n;
    t->n_leaves = (n + KNN_LEAF - 1) / KNN_LEAF;
    t->leaves = kiln_take(&c, t->n_leaves, sizeof *t->leaves);
    uint64_t below = t->n_leaves;
    do {
        const uint64_t count = (below + KNN_WIDE - 1) / KNN_WIDE;
        t->n_nodes[t->n_levels] = count;
        t->nodes[t->n_levels++] = kiln_take(&c, count, sizeof(knn_node));
        below = count;
    } while (below > 1);
    return c.used;
}

/* n > 0. Two records at a time are eight floats side by side; of rows, which are no numbers,
 * nothing is asked. */
static box box_of(const knn_record *r, uint64_t n)
{
    float lo[8], hi[8];
    for (int i = 0; i < 8; i++) {
        lo[i] = INFINITY;
        hi[i] = -INFINITY;
    }
    for (uint64_t i = 0; i + 1 < n; i += 2) {
        const float *v = (const float *)(const void *)&r[i];
#pragma omp simd
        for (int c = 0; c < 8; c++) {
            lo[c] = v[c] < lo[c] ? v[c] : lo[c];
            hi[c] = v[c] > hi[c] ? v[c] : hi[c];
        }
    }
    box b;
    for (int a = 0; a < 3; a++) {
        const float last = r[n - 1].at[a], least = lo[a] < lo[a + 4] ? lo[a] : lo[a + 4];
        const float largest = hi[a] > hi[a + 4] ? hi[a] : hi[a + 4];
        b.lo[a] = last < least ? last : least;
        b.hi[a] = last > largest ? last : largest;
    }
    return b;
}

static int longest_axis(const box *b)
{
    int axis = 0;
    for (int a = 1; a < 3; a++)
        if (b->hi[a] - b->lo[a] > b->hi[axis] - b->lo[axis]) axis = a;
    return axis;
}

static void put_box(knn_node *node, unsigned slot, const box *b)
{
    for (int a = 0; a < 3; a++) {
        node->lo[a][slot] = b->lo[a];
        node->hi[a][slot] = b->hi[a];
    }
}

/* From records to the leaf's own layout. Missing places repeat the first point; the search knows
 * how many there are. */
static void finish_leaf(knn_tree *t, uint64_t leaf)
{
    knn_record r[KNN_LEAF];
    knn_leaf *l = &t->leaves[leaf];
    const uint64_t first = leaf * KNN_LEAF;
    const uint64_t count = t->n - first < KNN_LEAF ? t->n - first : KNN_LEAF;
    memcpy(r, l, sizeof r);
    const box b = box_of(r, count);
    for (uint64_t i = 0; i < KNN_LEAF; i++) {
        const knn_record *from = &r[i < count ? i : 0];
        for (int a = 0; a < 3; a++) l->at[a][i] = from->at[a];
        memcpy(&l->row[i], &from->at[3], sizeof l->row[i]);
    }
    put_box(&t->nodes[0][leaf / KNN_WIDE], leaf % KNN_WIDE, &b);
}

/* The subtree of `size` leaves (a power of two) from leaf `first`; what lies beyond the last leaf
 * does not exist. */
static void build(knn_tree *t, uint64_t first, uint64_t size)
{
    while (size > 1 && first + size / 2 >= t->n_leaves) size /= 2;
    if (size == 1) {
        finish_leaf(t, first);
        return;
    }
    const uint64_t half = size / 2;
    const uint64_t end = first + size < t->n_leaves ? first + size : t->n_leaves;
    knn_record *r = (knn_record *)(void *)&t->leaves[first];
    const uint64_t n = (end * KNN_LEAF < t->n ? end * KNN_LEAF : t->n) - first * KNN_LEAF;
    const box b = box_of(r, n);
    const int axis = longest_axis(&b);
    if (b.hi[axis] > b.lo[axis]) KILN_CPU(knn_select)(r, n, half * KNN_LEAF, axis);
#pragma omp task if (half >= TASK_LEAVES)
    build(t, first, half);
    build(t, first + half, half);
#pragma omp taskwait
}

/* Boxes of a level from those of the level below; empty ones at the end. */
static void build_level(knn_tree *t, unsigned level)
{
    const knn_node *below = t->nodes[level - 1];
    for (uint64_t i = 0; i < t->n_nodes[level - 1]; i++) {
        box b = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
        for (int a = 0; a < 3; a++) {
            for (int c = 0; c < KNN_WIDE; c++) {
                b.lo[a] = below[i].lo[a][c] < b.lo[a] ? below[i].lo[a][c] : b.lo[a];
                b.hi[a] = below[i].hi[a][c] > b.hi[a] ? below[i].hi[a][c] : b.hi[a];
            }
        }
        put_box(&t->nodes[level][i / KNN_WIDE], (unsigned)(i % KNN_WIDE), &b);
    }
}

static void empty_slots(knn_node *node, uint64_t used)
{
    const box none = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
    for (uint64_t slot = used; slot < KNN_WIDE; slot++) put_box(node, (unsigned)slot, &none);
}

/* kiln_knn_tree_build_cpu, kiln_knn_tree_build_cpu_avx2 */
void KILN_CPU(knn_tree_build)(knn_tree *t, const float *means, unsigned threads)
{
    const int64_t n = (int64_t)t->n;
    knn_record *r = (knn_record *)(void *)t->leaves;
    uint64_t size = 1, below = t->n_leaves;
    if (n == 0) return;
#pragma omp parallel for num_threads(threads) schedule(static) if (n > 65536)
    for (int64_t i = 0; i < n; i++) {
        for (int a = 0; a < 3; a++) r[i].at[a] = means[(size_t)a * (size_t)n + (size_t)i];
        const uint32_t row = (uint32_t)i;
        memcpy(&r[i].at[3], &row, sizeof row);
    }
    while (size < t->n_leaves) size *= 2;
#pragma omp parallel num_threads(threads) if (threads > 1)
#pragma omp single
    build(t, 0, size);
    for (unsigned level = 0; level < t->n_levels; level++) {
        if (level > 0) build_level(t, level);
        empty_slots(&t->nodes[level][t->n_nodes[level] - 1],
                    below - (t->n_nodes[level] - 1) * KNN_WIDE);
        below = t->n_nodes[level];
    }
}
