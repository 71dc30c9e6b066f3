/* knn_tree_cuda -- the search tree of knn's CUDA sibling: points are in the order of a curve. Eight
 * in a row are a leaf; 32 boxes in a row are a node, which has a box on the next level, and so on
 * until one node is left. No pointers: box i of a level is over node i of the level below, boxes 32
 * i .. 32 i + 31; of level 0 over leaf i.
 *
 *   bytes per point: 12 in leaves, and 3 + 3/32 + ... in boxes; and 4 for the rows, which the sort leaves behind
 *
 * The places of points and boxes that do not exist are filled: points at infinity, and empty boxes
 * (from +inf to -inf), which have distance infinity from everything. So no code has to check how
 * many there are.
 */
#ifndef KILN_KERNELS_KNN_TREE_CUDA_CUH
#define KILN_KERNELS_KNN_TREE_CUDA_CUH

#include "base/carve.h"
#include "kernels/early_cuda.cuh"
#include "kernels/knn/knn_math.h"

#include <math.h>
#include <stdint.h>

namespace
{

constexpr unsigned WARP = 32, ALL_LANES = 0xffffffffu;
/* 2^32 points have 2^29 leaves, and 16 boxes on level 5 */
enum { LEAF = 8, WIDE = WARP, LEVELS = 6 };
enum { LEAF_BLOCK = LEAF * WIDE, NODE_BLOCK = 128 };

struct alignas(16) leaf {
    float at[3][LEAF];
};

struct node {
    float lo[3][WIDE], hi[3][WIDE];
};

struct span {
    float lo, hi;
};

/* A point's coordinates in one place: a leaf takes one read out of order for them, which costs the
 * device 64 B whatever its size. */
struct point {
    float x, y, z;
};

/* Leaves find points from row `first` on here, and the rest in means. */
struct point_places {
    const float *means;
    uint64_t first;
    point *points; /* of row `first` and those behind it */
};

struct tree {
    uint64_t n;
    leaf *leaves;         /* whole nodes of them */
    const uint32_t *rows; /* of the points, in the order of leaves */
    unsigned levels;
    uint32_t count[LEVELS]; /* boxes, as many as nodes on the level below */
    node *nodes[LEVELS];
};

inline uint64_t nodes_of(uint64_t boxes) { return (boxes + WIDE - 1) / WIDE; }

inline uint64_t leaves_of(uint64_t n) { return (n + LEAF - 1) / LEAF; }

inline void lay_out_leaves(kiln_carve *c, uint64_t n, tree *t)
{
    *t = {};
    t->n = n;
    t->leaves = kiln::take<leaf>(c, nodes_of(leaves_of(n)) * WIDE);
}

/* After the leaves. */
inline void lay_out_nodes(kiln_carve *c, tree *t)
{
    for (uint64_t count = leaves_of(t->n);; count = nodes_of(count)) {
        t->count[t->levels] = static_cast<uint32_t>(count);
        t->nodes[t->levels++] = kiln::take<node>(c, nodes_of(count));
        if (count <= WIDE) return;
    }
}

/* Of `lanes` lanes in a row, for all of them. */
template <unsigned lanes> __device__ inline span join_lanes(span s)
{
#pragma unroll
    for (unsigned step = 1; step < lanes; step *= 2) {
        s.lo = fminf(s.lo, __shfl_xor_sync(ALL_LANES, s.lo, step));
        s.hi = fmaxf(s.hi, __shfl_xor_sync(ALL_LANES, s.hi, step));
    }
    return s;
}

__device__ inline void put_span(node *nodes, uint64_t i, int axis, span s)
{
    nodes[i / WIDE].lo[axis][i % WIDE] = s.lo;
    nodes[i / WIDE].hi[axis][i % WIDE] = s.hi;
}

/* A node's extent on the level above, by one warp; the last node's also fills the places that are
 * left in its row. */
__device__ inline void put_node(const tree &t, unsigned level, uint64_t i, int axis, span s,
                                unsigned lane)
{
    if (level >= t.levels) return;
    if (lane == 0) put_span(t.nodes[level], i, axis, s);
    if (i + 1 == t.count[level] && lane > i % WIDE)
        put_span(t.nodes[level], i - i % WIDE + lane, axis, {INFINITY, -INFINITY});
}

__device__ inline point point_of(const point_places &p, uint64_t n, uint32_t row)
{
    if (row >= p.first) return p.points[row - p.first];
    return {p.means[row], p.means[n + row], p.means[2 * n + row]};
}

/* A block makes a node of leaves, without boxes: these come where points still are. */
__global__ void __launch_bounds__(LEAF_BLOCK)
    make_leaves(const __grid_constant__ tree t, const __grid_constant__ point_places points)
{
    const uint64_t i = uint64_t(blockIdx.x) * LEAF_BLOCK + threadIdx.x;
    point p = {INFINITY, INFINITY, INFINITY};
    kiln::launch_before_is_done();
    if (i < t.n) p = point_of(points, t.n, t.rows[i]);
    leaf &to = t.leaves[i / LEAF];
    to.at[0][i % LEAF] = p.x;
    to.at[1][i % LEAF] = p.y;
    to.at[2][i % LEAF] = p.z;
}

/* The extent of the first `count` of a leaf's points. */
__device__ inline span span_of(const leaf &l, int axis, uint32_t count)
{
    span s = {INFINITY, -INFINITY};
#pragma unroll
    for (unsigned i = 0; i < LEAF; i += 4) {
        const float4 at = *reinterpret_cast<const float4 *>(&l.at[axis][i]);
        const float part[4] = {at.x, at.y, at.z, at.w};
#pragma unroll
        for (unsigned j = 0; j < 4; j++) {
            if (i + j >= count) continue;
            s.lo = fminf(s.lo, part[j]);
            s.hi = fmaxf(s.hi, part[j]);
        }
    }
    return s;
}

/* A warp the boxes of a node of leaves. */
__global__ void __launch_bounds__(NODE_BLOCK) make_boxes(const __grid_constant__ tree t)
{
    const unsigned lane = threadIdx.x % WARP;
    const uint64_t i = kiln::thread_index() / WARP, which = i * WIDE + lane, at = which * LEAF;
    kiln::launch_before_is_done();
    if (at - lane * LEAF >= t.n) return;
    const uint32_t count = at >= t.n ? 0 : t.n - at < LEAF ? uint32_t(t.n - at) : LEAF;
#pragma unroll
    for (int axis = 0; axis < 3; axis++) {
        const span s = span_of(t.leaves[which], axis, count);
        put_span(t.nodes[0], which, axis, s);
        put_node(t, 1, i, axis, join_lanes<WARP>(s), lane);
    }
}

/* A warp a node of `level`. */
__global__ void __launch_bounds__(NODE_BLOCK)
    make_nodes(const __grid_constant__ tree t, unsigned level)
{
    const unsigned lane = threadIdx.x % WARP;
    const uint64_t i = kiln::thread_index() / WARP;
    kiln::launch_before_is_done();
    if (i >= t.count[level + 1]) return;
    const node &from = t.nodes[level][i];
    for (int axis = 0; axis < 3; axis++)
        put_node(t, level + 1, i, axis,
                 join_lanes<WARP>({from.lo[axis][lane], from.hi[axis][lane]}), lane);
}

/* From the points up. */
inline kiln_status build_tree(const kiln_exec *x, const tree &t, const point_places &points,
                              kiln_error *err)
{
    const uint64_t nodes = nodes_of(t.count[0]);
    LAUNCH_EARLY(make_leaves, static_cast<unsigned>(nodes), LEAF_BLOCK, t, points);
    LAUNCH_EARLY(make_boxes, kiln::blocks_for(nodes * WARP, NODE_BLOCK, INT32_MAX), NODE_BLOCK, t);
    for (unsigned level = 1; level + 1 < t.levels; level++)
        LAUNCH_EARLY(make_nodes,
                     kiln::blocks_for(uint64_t(t.count[level + 1]) * WARP, NODE_BLOCK, INT32_MAX),
                     NODE_BLOCK, t, level);
    return KILN_OK;
}

} // namespace

#endif
