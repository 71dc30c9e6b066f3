/* coarsen_near_cpu -- the nearest candidates of every slot, by knn's tree. A query walks up from
 * its own leaf, so that its bound is tight before anything far is looked at. Equally distant points
 * are told apart by where they stand in the tree, which is the same everywhere; a box at exactly
 * the bound is left out, so that a million equal points cost no more than others. */
#include "kernels/coarsen/coarsen_state.h"

#include "kernels/knn/knn_math.h"

#include <float.h>
#include <string.h>

size_t KILN_CPU(knn_tree_layout)(knn_tree *t, uint64_t n, void *work);

typedef struct {
    const knn_tree *tree;
    float at[3];
    uint32_t self, n;
    float d[COARSEN_NEAR]; /* ascending; FLT_MAX behind the n-th */
    uint32_t row[COARSEN_NEAR];
} query;

static void offer(query *q, float d, uint32_t row)
{
    uint32_t i = q->n < COARSEN_NEAR ? q->n++ : COARSEN_NEAR - 1;
    for (; i > 0 && d < q->d[i - 1]; i--) {
        q->d[i] = q->d[i - 1];
        q->row[i] = q->row[i - 1];
    }
    q->d[i] = d;
    q->row[i] = row;
}

static void scan_leaf(query *q, uint64_t leaf)
{
    const knn_leaf *c = &q->tree->leaves[leaf];
    const uint64_t rest = q->tree->n - leaf * KNN_LEAF, count = rest < KNN_LEAF ? rest : KNN_LEAF;
    float d[KNN_LEAF];
#pragma omp simd
    for (int i = 0; i < KNN_LEAF; i++)
        d[i] = kiln_knn_distance2(c->at[0][i] - q->at[0], c->at[1][i] - q->at[1],
                                  c->at[2][i] - q->at[2]);
    for (uint64_t i = 0; i < count; i++)
        if (d[i] < q->d[COARSEN_NEAR - 1] && c->row[i] != q->self) offer(q, d[i], c->row[i]);
}

static inline float gap(float lo, float hi, float x)
{
    const float below = lo - x, above = x - hi, most = below > above ? below : above;
    return most > 0.0f ? most : 0.0f;
}

/* Looks into the children of a node, all but one. */
static void visit_near_node(query *q, unsigned level, uint64_t node, unsigned without)
{
    const knn_node *b = &q->tree->nodes[level][node];
    const uint64_t n_below = level ? q->tree->n_nodes[level - 1] : q->tree->n_leaves;
    float d[KNN_WIDE];
#pragma omp simd
    for (int i = 0; i < KNN_WIDE; i++)
        d[i] = kiln_knn_distance2(gap(b->lo[0][i], b->hi[0][i], q->at[0]),
                                  gap(b->lo[1][i], b->hi[1][i], q->at[1]),
                                  gap(b->lo[2][i], b->hi[2][i], q->at[2]));
    for (unsigned i = 0; i < KNN_WIDE; i++) {
        const uint64_t child = node * KNN_WIDE + i;
        if (i == without || child >= n_below || !(d[i] < q->d[COARSEN_NEAR - 1])) continue;
        if (level)
            visit_near_node(q, level - 1, child, KNN_WIDE);
        else
            scan_leaf(q, child);
    }
}

static void search(query *q, uint64_t leaf)
{
    q->n = 0;
    for (int i = 0; i < COARSEN_NEAR; i++) q->d[i] = FLT_MAX;
    scan_leaf(q, leaf);
    uint64_t child = leaf;
    for (unsigned level = 0; level < q->tree->n_levels; level++) {
        visit_near_node(q, level, child / KNN_WIDE, (unsigned)(child % KNN_WIDE));
        child /= KNN_WIDE;
    }
}

static uint32_t collect_live(coarsen_state *s)
{
    uint32_t m = 0;
    for (uint32_t slot = 0; slot < s->n; slot++)
        if (s->into[slot] == slot) s->live[m++] = slot;
    for (uint32_t a = 0; a < 3; a++)
        for (uint32_t i = 0; i < m; i++) s->points[a * m + i] = (float)s->nodes[s->live[i]].mean[a];
    return m;
}

/* kiln_coarsen_near_cpu, kiln_coarsen_near_cpu_avx2 */
void KILN_CPU(coarsen_near)(coarsen_state *s)
{
    const uint32_t m = collect_live(s);
    if (m == 0) return;
    knn_tree tree;
    KILN_CPU(knn_tree_layout)(&tree, m, s->tree);
    KILN_CPU(knn_tree_build)(&tree, s->points, s->threads);
#pragma omp parallel for num_threads(s->threads) schedule(dynamic, 16) if (s->threads > 1)
    for (uint64_t leaf = 0; leaf < tree.n_leaves; leaf++) {
        for (uint64_t i = 0; i < KNN_LEAF && leaf * KNN_LEAF + i < m; i++) {
            const knn_leaf *l = &tree.leaves[leaf];
            query q = {
                .tree = &tree, .at = {l->at[0][i], l->at[1][i], l->at[2][i]}, .self = l->row[i]};
            search(&q, leaf);
            const uint32_t slot = s->live[q.self];
            for (uint32_t j = 0; j < q.n; j++) s->near[slot][j] = s->live[q.row[j]];
            if (q.n == 0 && m > 1) s->near[slot][q.n++] = s->live[(q.self + 1) % m];
            s->n_near[slot] = (uint8_t)q.n;
        }
    }
}
