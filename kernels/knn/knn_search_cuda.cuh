/* knn_search_cuda -- a warp looks for the neighbours of 32 points that follow each other on the curve, one a lane; or of 32
 * queries that follow each other and are no points of the tree.
 *
 * It reads its own four leaves first, so that bounds are tight, and climbs: on each level the eight that its own ancestor is
 * one of are tried, the nearest relations first, and what may help is walked depth-first from a stack that the lanes share.
 * A box is tried twice: when it is put on the stack, against the box of all 32 and the worst of their bounds, eight boxes at
 * once; when it is taken off, by every lane for itself with the bound that it has by then. A box at exactly the bound is left
 * out: it could only give a value equal to one already held. So zero bounds end the search, and equal points cost nothing.
 */
#ifndef KILN_KERNELS_KNN_SEARCH_CUDA_CUH
#define KILN_KERNELS_KNN_SEARCH_CUDA_CUH

#include "kernels/knn/knn_tree_cuda.cuh"

#include <float.h>

namespace
{

constexpr unsigned WARP = 32, ALL_LANES = 0xffffffffu, NOBODY = WARP;
constexpr unsigned OWN_LEAVES = WARP / LEAF;
/* Taking one box off a level puts at most eight of the level below on; leaves are never put on. */
constexpr unsigned STACK = WIDE * (LEVELS - 1);
/* A box on the stack: its level above its index, of which level 1 has the most, 2^26. */
constexpr unsigned INDEX_BITS = 28;

/* What one lane asks for. K is room for at least k values: where k is less, the first K - k are -1 and stay. */
template <int K> struct query {
    point at;
    float best[K]; /* ascending */

    __device__ query(const point &p, bool wanted, uint32_t k) : at(p)
    {
#pragma unroll
        for (int i = 0; i < K; i++) best[i] = !wanted ? 0.0f : i + k < K ? -1.0f : FLT_MAX; /* 0: wants nothing */
    }
    __device__ float bound() const { return best[K - 1]; }
    __device__ bool wants(const box &b) const { return distance2(b, box_of(at)) < bound(); }
    __device__ void keep(float d)
    {
        if (K > 4 && !(d < bound())) return;
        d = fminf(d, bound());
#pragma unroll
        for (int i = K - 1; i > 0; i--) best[i] = fmaxf(best[i - 1], fminf(best[i], d));
        best[0] = fminf(best[0], d);
    }
    /* Value i of k lies `stride` floats behind the one before. */
    __device__ void load(const float *from, uint64_t stride, uint32_t k)
    {
#pragma unroll
        for (int i = 0; i < K; i++)
            if (i + k >= K) best[i] = from[(i + k - K) * stride];
    }
    __device__ void store(float *to, uint64_t stride, uint32_t k) const
    {
#pragma unroll
        for (int i = 0; i < K; i++)
            if (i + k >= K) to[(i + k - K) * stride] = best[i];
    }
    __device__ float mean(uint32_t k) const
    {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < K; i++)
            if (i + k >= K) sum += best[i];
        return sum / static_cast<float>(k);
    }
};

__device__ inline float warp_max(float v)
{
    for (unsigned step = WARP / 2; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(ALL_LANES, v, step));
    return v;
}

__device__ inline span warp_span(float v) { return {-warp_max(-v), warp_max(v)}; }

/* self: which of the leaf's points this lane asks for itself, or none of them */
template <int K> __device__ inline void read_leaf(const tree &t, uint32_t leaf, unsigned self, query<K> *q)
{
    const point *const points = t.points + uint64_t(leaf) * LEAF;
    const uint64_t rest = t.n - uint64_t(leaf) * LEAF;
    const unsigned count = rest < LEAF ? static_cast<unsigned>(rest) : LEAF;
    for (unsigned i = 0; i < count; i++) {
        const point p = points[i]; /* one load for all lanes */
        const float d = kiln_knn_distance2(p.x - q->at.x, p.y - q->at.y, p.z - q->at.z);
        q->keep(i == self ? FLT_MAX : d);
    }
}

/* The search of one warp. Every lane takes every step. */
template <int K> struct search {
    const tree &t;
    query<K> q;
    box all; /* of the 32 points */
    unsigned lane;
    uint32_t *stack; /* [STACK], the warp's own */
    unsigned top = 0;

    __device__ search(const tree &t_, const query<K> &q_, unsigned lane_, uint32_t *stack_)
        : t(t_), q(q_), all{warp_span(q_.at.x), warp_span(q_.at.y), warp_span(q_.at.z)}, lane(lane_), stack(stack_)
    {
    }

    /* Bit i: child i of a node may have something for somebody. */
    __device__ unsigned near_children(unsigned level, uint32_t node) const
    {
        const float worst = warp_max(q.bound());
        const uint32_t child = node * WIDE + lane;
        const bool near = lane < WIDE && child < t.count[level] && distance2(t.boxes[level][child], all) < worst;
        return __ballot_sync(ALL_LANES, near);
    }

    /* The children of a node, but those in `without`: leaves are read, others put on the stack. level: the children's */
    __device__ void open(unsigned level, uint32_t node, unsigned without)
    {
        unsigned near = near_children(level, node) & ~without;
        if (level == 0) {
            for (; near; near &= near - 1) {
                const uint32_t leaf = node * WIDE + __ffs(near) - 1;
                if (__any_sync(ALL_LANES, q.wants(t.boxes[0][leaf]))) read_leaf(t, leaf, NOBODY, &q);
            }
            return;
        }
        const unsigned before = __popc(near & ((1u << lane) - 1));
        if (near >> lane & 1) stack[top + before] = level << INDEX_BITS | (node * WIDE + lane);
        top += __popc(near);
        __syncwarp();
    }

    __device__ void walk()
    {
        while (top > 0) {
            const uint32_t entry = stack[--top];
            __syncwarp(); /* before somebody writes over it */
            const unsigned level = entry >> INDEX_BITS;
            const uint32_t node = entry & ((1u << INDEX_BITS) - 1);
            if (__any_sync(ALL_LANES, q.wants(t.boxes[level][node]))) open(level - 1, node, 0);
        }
    }

    __device__ void run(uint64_t warp)
    {
        uint32_t child = static_cast<uint32_t>(warp * OWN_LEAVES);
        unsigned own = ((1u << OWN_LEAVES) - 1) << child % WIDE;
        for (unsigned i = 0; i < OWN_LEAVES && child + i < t.count[0]; i++)
            read_leaf(t, child + i, lane / LEAF == i ? lane % LEAF : NOBODY, &q);
        for (unsigned level = 0; level < t.levels && __any_sync(ALL_LANES, q.bound() > 0.0f); level++) {
            child /= WIDE;
            open(level, child, own);
            walk();
            own = 1u << child % WIDE;
        }
    }

    /* For queries that are no points of the tree: from the root down. */
    __device__ void run_from_root()
    {
        open(t.levels - 1, 0, 0);
        walk();
    }
};

constexpr unsigned SEARCH_BLOCK = 128;

template <int K>
__global__ void __launch_bounds__(SEARCH_BLOCK)
    find_neighbours(const __grid_constant__ tree t, uint32_t k, float *spacing2, float *best)
{
    __shared__ uint32_t stacks[SEARCH_BLOCK / WARP][STACK];
    const unsigned lane = threadIdx.x % WARP;
    for (uint64_t warp = kiln::thread_index() / WARP; warp * WARP < t.n; warp += kiln::thread_count() / WARP) {
        const uint64_t i = warp * WARP + lane;
        const query<K> q(t.points[i < t.n ? i : t.n - 1], i < t.n, k);
        search<K> s(t, q, lane, stacks[threadIdx.x / WARP]);
        s.run(warp);
        if (i >= t.n) continue; /* the last warp's last step */
        if (spacing2) spacing2[s.q.at.row] = s.q.mean(k);
        if (best) s.q.store(best + s.q.at.row, t.n, k);
    }
}

/* queries: [3][n_queries] */
template <int K>
__global__ void __launch_bounds__(SEARCH_BLOCK)
    join_neighbours(const __grid_constant__ tree t, uint64_t n_queries, uint32_t k, const float *queries, float *best)
{
    __shared__ uint32_t stacks[SEARCH_BLOCK / WARP][STACK];
    const unsigned lane = threadIdx.x % WARP;
    for (uint64_t warp = kiln::thread_index() / WARP; warp * WARP < n_queries; warp += kiln::thread_count() / WARP) {
        const uint64_t i = warp * WARP + lane, from = i < n_queries ? i : n_queries - 1;
        const point at = {queries[from], queries[n_queries + from], queries[2 * n_queries + from], 0};
        query<K> q(at, i < n_queries, k);
        if (i < n_queries) q.load(best + i, n_queries, k);
        search<K> s(t, q, lane, stacks[threadIdx.x / WARP]);
        s.run_from_root();
        if (i < n_queries) s.q.store(best + i, n_queries, k);
    }
}

} // namespace

#endif
