/* knn_tree_cuda -- the search tree of knn's CUDA sibling: points in the order of a curve, eight in a row are a leaf, eight
 * boxes in a row have a box on the next level, and so on until eight or fewer are left. No pointers: box i of a level is
 * over the boxes 8 i .. 8 i + 7 of the level below.
 *
 *   bytes per point: 16, and 3 + 3/8 + ... in boxes
 */
#ifndef KILN_KERNELS_KNN_TREE_CUDA_CUH
#define KILN_KERNELS_KNN_TREE_CUDA_CUH

#include "base/carve.h"
#include "kernels/cuda.cuh"
#include "kernels/knn/knn_math.h"

#include <stdint.h>

namespace
{

enum { LEAF = 8, WIDE = 8, LEVELS = 10 }; /* 2^32 points have 2^29 leaves, and 4 boxes on level 9 */

struct alignas(16) point {
    float x, y, z;
    uint32_t row;
};

struct alignas(8) span {
    float lo, hi;
};

struct box {
    span x, y, z;
};

struct tree {
    uint64_t n;
    point *points;
    unsigned levels;
    uint32_t count[LEVELS];
    box *boxes[LEVELS];
};

inline tree lay_out_tree(kiln_carve *c, uint64_t n)
{
    tree t = {};
    t.n = n;
    t.points = kiln::take<point>(c, n);
    for (uint64_t count = (n + LEAF - 1) / LEAF;; count = (count + WIDE - 1) / WIDE) {
        t.count[t.levels] = static_cast<uint32_t>(count);
        t.boxes[t.levels++] = kiln::take<box>(c, count);
        if (count <= WIDE) return t;
    }
}

__device__ inline span join(span a, span b) { return {fminf(a.lo, b.lo), fmaxf(a.hi, b.hi)}; }
__device__ inline box join(const box &a, const box &b) { return {join(a.x, b.x), join(a.y, b.y), join(a.z, b.z)}; }
__device__ inline box box_of(const point &p) { return {{p.x, p.x}, {p.y, p.y}, {p.z, p.z}}; }
__device__ inline box box_of(const box &b) { return b; }

/* At most the distance of any two points in them (knn_math.h). */
__device__ inline float distance2(const box &a, const box &b)
{
    return kiln_knn_distance2(kiln_knn_gap(a.x.lo, a.x.hi, b.x.lo, b.x.hi), kiln_knn_gap(a.y.lo, a.y.hi, b.y.lo, b.y.hi),
                              kiln_knn_gap(a.z.lo, a.z.hi, b.z.lo, b.z.hi));
}

enum { TREE_BLOCK = 256 };

/* A box for every eight of what lies below: points or boxes. */
template <typename T>
__global__ void __launch_bounds__(TREE_BLOCK) make_boxes(uint64_t n_below, const T *below, uint64_t n, box *out)
{
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count()) {
        const uint64_t end = WIDE * i + WIDE < n_below ? WIDE * i + WIDE : n_below;
        box b = box_of(below[WIDE * i]);
        for (uint64_t j = WIDE * i + 1; j < end; j++) b = join(b, box_of(below[j]));
        out[i] = b;
    }
}
static_assert(int(LEAF) == int(WIDE), "leaves and nodes are made by one kernel");

/* From the points up. */
inline kiln_status build_tree(const kiln_exec *x, const tree &t, kiln_error *err)
{
    LAUNCH(make_boxes<point>, kiln::blocks_for(t.count[0], TREE_BLOCK), TREE_BLOCK, 0, t.n, t.points, t.count[0], t.boxes[0]);
    for (unsigned l = 1; l < t.levels; l++)
        LAUNCH(make_boxes<box>, kiln::blocks_for(t.count[l], TREE_BLOCK), TREE_BLOCK, 0, t.count[l - 1], t.boxes[l - 1], t.count[l],
               t.boxes[l]);
    return KILN_OK;
}

} // namespace

#endif
