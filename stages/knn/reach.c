#include "stages/knn/reach.h"

#include "base/memory.h"
#include "kernels/knn/knn_math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- boxes ----------------------------------------------------------------------------------- */
static const kiln_knn_box nothing = {{INFINITY, INFINITY, INFINITY},
                                     {-INFINITY, -INFINITY, -INFINITY}};

static void add_box(kiln_knn_box *to, const kiln_knn_box *b)
{
    for (int a = 0; a < 3; a++) {
        to->lo[a] = b->lo[a] < to->lo[a] ? b->lo[a] : to->lo[a];
        to->hi[a] = b->hi[a] > to->hi[a] ? b->hi[a] : to->hi[a];
    }
}

kiln_knn_box kiln_knn_box_of(const float *xyz, uint64_t n)
{
    kiln_knn_box b = nothing;
    for (uint64_t i = 0; i < n; i++) {
        kiln_knn_box point;
        memcpy(point.lo, xyz + 3 * i, sizeof point.lo);
        memcpy(point.hi, xyz + 3 * i, sizeof point.hi);
        add_box(&b, &point);
    }
    return b;
}

/* At most kiln_knn_distance2 of the three gaps, which in turn is at most that of any two points in
 * the boxes. That operation rounds three times and this one five times, by 2^-24 each, or by 2^-150
 * where numbers are tiny; no fused operation, which takes ten times as long where the compiler may
 * not use the instruction. */
static inline float distance2(const kiln_knn_box *a, const kiln_knn_box *b)
{
    const float x = kiln_knn_gap(a->lo[0], a->hi[0], b->lo[0], b->hi[0]);
    const float y = kiln_knn_gap(a->lo[1], a->hi[1], b->lo[1], b->hi[1]);
    const float z = kiln_knn_gap(a->lo[2], a->hi[2], b->lo[2], b->hi[2]);
    const float low = (x * x + y * y + z * z) * (1 - 0x1p-20f) - 0x1p-140f;
    return low > 0.0f ? low : 0.0f;
}

static kiln_knn_box box_of_query(const kiln_reach_queries *q, uint64_t i)
{
    const float x = q->points[i], y = q->points[q->n + i], z = q->points[2 * q->n + i];
    return (kiln_knn_box){{x, y, z}, {x, y, z}};
}

/* ---- trees ----------------------------------------------------------------------------------- */
static uint64_t nodes_above(uint64_t n) { return (n + KILN_REACH_WIDE - 1) / KILN_REACH_WIDE; }

uint64_t kiln_reach_tree_bytes(uint64_t n_leaves)
{
    uint64_t all = n_leaves;
    for (uint64_t n = n_leaves; n > 1; all += n) n = nodes_above(n);
    return all * sizeof(kiln_reach_node);
}

kiln_status kiln_reach_tree_new(uint64_t n_leaves, kiln_reach_tree *t, kiln_error *err)
{
    kiln_reach_node *nodes;
    memset(t, 0, sizeof *t);
    if (n_leaves == 0) return KILN_OK;
    KILN_TRY(kiln_alloc((void **)&nodes, kiln_reach_tree_bytes(n_leaves), 1, "the boxes of a range",
                        err));
    for (uint64_t n = n_leaves;; n = nodes_above(n)) {
        t->n[t->n_levels] = n;
        t->nodes[t->n_levels++] = nodes;
        nodes += n;
        if (n == 1) return KILN_OK;
    }
}

void kiln_reach_tree_release(kiln_reach_tree *t)
{
    free(t->nodes[0]);
    memset(t, 0, sizeof *t);
}

void kiln_reach_tree_build(kiln_reach_tree *t)
{
    for (unsigned level = 1; level < t->n_levels; level++) {
        const kiln_reach_node *below = t->nodes[level - 1];
        for (uint64_t i = 0; i < t->n[level]; i++) {
            kiln_reach_node node = {nothing, 0};
            for (uint64_t c = i * KILN_REACH_WIDE;
                 c < (i + 1) * KILN_REACH_WIDE && c < t->n[level - 1]; c++) {
                add_box(&node.box, &below[c].box);
                node.bound = below[c].bound > node.bound ? below[c].bound : node.bound;
            }
            t->nodes[level][i] = node;
        }
    }
}

/* The leaf or query after the last below a node. */
static uint64_t end_below(uint64_t node, uint64_t n_below)
{
    const uint64_t end = (node + 1) * KILN_REACH_WIDE;
    return end < n_below ? end : n_below;
}

/* ---- queries --------------------------------------------------------------------------------- */
void kiln_reach_queries_build(kiln_reach_queries *q)
{
    for (uint64_t leaf = 0; q->n && leaf < q->tree.n[0]; leaf++) {
        kiln_reach_node node = {nothing, 0};
        for (uint64_t i = leaf * KILN_REACH_WIDE; i < end_below(leaf, q->n); i++) {
            const kiln_knn_box at = box_of_query(q, i);
            add_box(&node.box, &at);
            node.bound = q->bounds[i] > node.bound ? q->bounds[i] : node.bound;
        }
        q->tree.nodes[0][leaf] = node;
    }
    kiln_reach_tree_build(&q->tree);
}

static float nearest_below(const kiln_reach_queries *q, unsigned level, uint64_t i,
                           const kiln_knn_box *page, float nearest)
{
    const kiln_reach_node *node = &q->tree.nodes[level][i];
    const float d = distance2(&node->box, page);
    if (!(d < node->bound) || !(d < nearest)) return nearest;
    if (level > 0) {
        for (uint64_t c = i * KILN_REACH_WIDE;
             c < end_below(i, q->tree.n[level - 1]) && nearest > 0.0f; c++)
            nearest = nearest_below(q, level - 1, c, page, nearest);
        return nearest;
    }
    for (uint64_t c = i * KILN_REACH_WIDE; c < end_below(i, q->n); c++) {
        const kiln_knn_box at = box_of_query(q, c);
        const float own = distance2(&at, page);
        if (own < q->bounds[c] && own < nearest) nearest = own;
    }
    return nearest;
}

float kiln_reach_nearest(const kiln_reach_queries *q, const kiln_knn_box *page)
{
    return q->n ? nearest_below(q, q->tree.n_levels - 1, 0, page, INFINITY) : INFINITY;
}

/* Is one of the leaves below a node nearer to the box than the bound? */
static bool is_reached(const kiln_reach_tree *pages, unsigned level, uint64_t i,
                       const kiln_knn_box *box, float bound)
{
    if (!(distance2(&pages->nodes[level][i].box, box) < bound)) return false;
    if (level == 0) return true;
    for (uint64_t c = i * KILN_REACH_WIDE; c < end_below(i, pages->n[level - 1]); c++)
        if (is_reached(pages, level - 1, c, box, bound)) return true;
    return false;
}

static void mark_below(const kiln_reach_queries *q, unsigned level, uint64_t i,
                       const kiln_reach_tree *pages, uint8_t *marks)
{
    const kiln_reach_node *node = &q->tree.nodes[level][i];
    if (!is_reached(pages, pages->n_levels - 1, 0, &node->box, node->bound)) return;
    if (level > 0) {
        for (uint64_t c = i * KILN_REACH_WIDE; c < end_below(i, q->tree.n[level - 1]); c++)
            mark_below(q, level - 1, c, pages, marks);
        return;
    }
    for (uint64_t c = i * KILN_REACH_WIDE; c < end_below(i, q->n); c++) {
        const kiln_knn_box at = box_of_query(q, c);
        if (is_reached(pages, pages->n_levels - 1, 0, &at, q->bounds[c])) marks[c] = 1;
    }
}

void kiln_reach_mark(const kiln_reach_queries *q, const kiln_reach_tree *pages, unsigned threads,
                     uint8_t *marks)
{
    if (q->n == 0 || pages->n_levels == 0) return;
    unsigned level = q->tree.n_levels - 1;
    /* enough parts for all threads */
    while (level > 0 && q->tree.n[level] < 64 * (uint64_t)threads) level--;
    const int64_t n = (int64_t)q->tree.n[level];
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1) if (threads > 1)
    for (int64_t i = 0; i < n; i++) mark_below(q, level, (uint64_t)i, pages, marks);
}
