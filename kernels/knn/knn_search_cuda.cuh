/* knn_search_cuda -- a warp looks for the neighbours of 32 points that follow each other on the curve, one a lane; or of 32
 * queries that follow each other and are no points of the tree.
 *
 * The 32 walk the tree together: a lane tests one of a node's 32 boxes against the box of all queries and the worst of their
 * bounds; nodes that are near go on a stack, leaves into a queue. Once 32 leaves wait there, each lane tests one of them
 * against every query. Then the warp falls into four teams, a leaf's queries each: a team reads the leaves that one of its
 * own queries wants, four leaves at a time in a warp, and each value read is for eight queries. So what a few queries want
 * costs the others little, and no lane waits for a tree walk of another.
 *
 * It starts with its own four leaves, so that bounds are tight, and climbs. A box at exactly the bound is left out: it could
 * only give a value equal to one already held. So zero bounds end the search, and equal points cost nothing.
 */
#ifndef KILN_KERNELS_KNN_SEARCH_CUDA_CUH
#define KILN_KERNELS_KNN_SEARCH_CUDA_CUH

#include "kernels/knn/knn_tree_cuda.cuh"

#include <float.h>

namespace
{

constexpr unsigned NO_SLOT = WARP, OWN_LEAVES = WARP / LEAF;
/* Taking one node off a level puts at most 32 of the level below on; leaves are never put on. */
constexpr unsigned STACK = WIDE * (LEVELS - 1), QUEUE = 2 * WIDE;
/* A box on the stack: its level above its index, of which level 1 has the most, 2^24. */
constexpr unsigned INDEX_BITS = 28;

struct box {
    span x, y, z;
};

__device__ inline box box_at(const node &n, unsigned i)
{
    return {{n.lo[0][i], n.hi[0][i]}, {n.lo[1][i], n.hi[1][i]}, {n.lo[2][i], n.hi[2][i]}};
}

/* kiln_knn_gap in three instructions: of a box that is not inside out only one of the differences can be above 0, and as
 * integers floats above 0 have their order and those below 0 are below 0. An empty box is at infinity. */
__device__ inline float gap(span a, span b)
{
    return __int_as_float(__vimax_s32_relu(__float_as_int(a.lo - b.hi), __float_as_int(b.lo - a.hi)));
}

/* At most the distance of any two points in them (knn_math.h). */
__device__ inline float distance2(const box &a, const box &b)
{
    return kiln_knn_distance2(gap(a.x, b.x), gap(a.y, b.y), gap(a.z, b.z));
}

__device__ inline box box_of(float x, float y, float z) { return {{x, x}, {y, y}, {z, z}}; }

/* What one lane asks for. K is room for at least k values: where k is less, the first K - k are -1 and stay. */
template <int K> struct query {
    float x, y, z;
    float best[K]; /* ascending */

    __device__ query(float x_, float y_, float z_, bool wanted, uint32_t k) : x(x_), y(y_), z(z_)
    {
#pragma unroll
        for (int i = 0; i < K; i++) best[i] = !wanted ? 0.0f : i + k < K ? -1.0f : FLT_MAX; /* 0: wants nothing */
    }
    __device__ float bound() const { return best[K - 1]; }
    __device__ float distance2(float px, float py, float pz) const { return kiln_knn_distance2(px - x, py - y, pz - z); }
    __device__ void keep(float d)
    {
        if (K > 4 && !(d < bound())) return;
        d = fminf(d, bound());
#pragma unroll
        for (int i = K - 1; i > 0; i--) best[i] = fmaxf(best[i - 1], fminf(best[i], d));
        best[0] = fminf(best[0], d);
    }
    /* Both; with three-way minima two at a time take fewer steps than one after the other. */
    __device__ void keep(float c, float d)
    {
        if constexpr (K == 3) {
            const int lo = min(__float_as_int(c), __float_as_int(d)), hi = max(__float_as_int(c), __float_as_int(d));
            const int b0 = __float_as_int(best[0]), b1 = __float_as_int(best[1]), b2 = __float_as_int(best[2]);
            best[0] = __int_as_float(min(b0, lo));
            best[1] = __int_as_float(__vimin3_s32(b1, hi, max(b0, lo)));
            best[2] = __int_as_float(__vimin3_s32(b2, max(b1, lo), max(b0, hi)));
        } else {
            keep(c);
            keep(d);
        }
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

/* The largest of what is not negative, where -1 stands for 0. */
__device__ inline float warp_max_bound(float v)
{
#if __CUDA_ARCH__ >= 800
    return __int_as_float(__reduce_max_sync(ALL_LANES, __float_as_int(v)));
#else
    return warp_max(v);
#endif
}

/* self: which of the leaf's points this lane asks for itself, or none of them */
template <int K> __device__ inline void read_leaf(const leaf &l, unsigned self, query<K> *q)
{
    float4 part[3][LEAF / 4];
#pragma unroll
    for (int a = 0; a < 3; a++)
#pragma unroll
        for (int i = 0; i < LEAF / 4; i++) part[a][i] = reinterpret_cast<const float4 *>(l.at[a])[i];
#pragma unroll
    for (unsigned i = 0; i < LEAF / 4; i++) {
        const float4 x = part[0][i], y = part[1][i], z = part[2][i];
        float d[4] = {q->distance2(x.x, y.x, z.x), q->distance2(x.y, y.y, z.y), q->distance2(x.z, y.z, z.z),
                      q->distance2(x.w, y.w, z.w)};
#pragma unroll
        for (unsigned j = 0; j < 4; j++)
            if (self == 4 * i + j) d[j] = FLT_MAX;
        q->keep(d[0], d[1]);
        q->keep(d[2], d[3]);
    }
}

/* What a warp has in shared memory. */
struct warp_scratch {
    float4 queries[WARP]; /* x, y, z, bound */
    float nearest[STACK]; /* distance of a box on the stack */
    uint32_t stack[STACK], queue[QUEUE];
};

/* Boxes that a warp takes off its stack by the box of all its queries alone. Most warps need no more; those whose queries lie
 * far apart (across a gap, or with an outlier among them) would open half the tree, and ask every query from then on. */
constexpr unsigned COARSE_NODES = 16;

/* The search of one warp. Every lane takes every step but the reading of leaves; TEAM lanes read the same leaf. */
template <int K> struct search {
    static constexpr unsigned TEAM = LEAF;
    const tree &t;
    query<K> q;
    box all; /* of the 32 queries */
    unsigned lane;
    warp_scratch &d;
    unsigned top = 0, queued = 0, coarse_left = COARSE_NODES;

    __device__ search(const tree &t_, const query<K> &q_, unsigned lane_, warp_scratch &d_) : t(t_), q(q_), lane(lane_), d(d_)
    {
        all = {join_lanes<WARP>({q.x, q.x}), join_lanes<WARP>({q.y, q.y}), join_lanes<WARP>({q.z, q.z})};
    }

    /* The boxes of a node that are nearer than the worst bound, but those in `without`: leaves go into the queue, others on
     * the stack. */
    __device__ void open(unsigned level, uint32_t index, unsigned without, float worst)
    {
        const float distance = distance2(box_at(t.nodes[level][index], lane), all);
        const bool near = distance < worst && !(without >> lane & 1);
        const unsigned near_lanes = __ballot_sync(ALL_LANES, near), before = __popc(near_lanes & ((1u << lane) - 1));
        if (level == 0) {
            if (near) d.queue[queued + before] = index * WIDE + lane;
            queued += __popc(near_lanes);
            __syncwarp();
            if (queued >= WIDE) read_queue();
            return;
        }
        if (near) {
            d.stack[top + before] = level << INDEX_BITS | (index * WIDE + lane);
            d.nearest[top + before] = distance;
        }
        top += __popc(near_lanes);
        __syncwarp();
    }

    /* Which of the first 32 leaves of the queue somebody in this lane's team wants. */
    __device__ unsigned wanted_leaves() const
    {
        const bool is_leaf = lane < queued;
        const uint32_t l = d.queue[is_leaf ? lane : 0];
        const box b = box_at(t.nodes[0][l / WIDE], l % WIDE);
        unsigned mine = 0;
#pragma unroll
        for (unsigned team = 0; team < WARP / TEAM; team++) {
            bool wanted = false;
#pragma unroll 4
            for (unsigned j = 0; j < TEAM; j++) {
                const float4 p = d.queries[team * TEAM + j];
                wanted |= distance2(b, box_of(p.x, p.y, p.z)) < p.w;
            }
            const unsigned leaves = __ballot_sync(ALL_LANES, wanted && is_leaf);
            if (lane / TEAM == team) mine = leaves;
        }
        return mine;
    }

    /* Up to 32 leaves of it; what is left moves to its front. */
    __device__ void read_queue()
    {
        d.queries[lane] = make_float4(q.x, q.y, q.z, q.bound());
        __syncwarp();
        for (unsigned wanted = wanted_leaves(); wanted; wanted &= wanted - 1)
            read_leaf(t.leaves[d.queue[__ffs(wanted) - 1]], NO_SLOT, &q);
        __syncwarp();
        const uint32_t next = d.queue[WIDE + lane];
        __syncwarp();
        d.queue[lane] = next;
        queued -= queued < WIDE ? queued : WIDE;
        __syncwarp();
    }

    /* By somebody, rather than by the box of all. */
    __device__ bool is_wanted(unsigned level, uint32_t index) const
    {
        const box b = box_at(t.nodes[level][index / WIDE], index % WIDE);
        return __any_sync(ALL_LANES, distance2(b, box_of(q.x, q.y, q.z)) < q.bound());
    }

    __device__ void walk()
    {
        while (top > 0) {
            const uint32_t entry = d.stack[--top];
            const float distance = d.nearest[top];
            __syncwarp(); /* before somebody writes over it */
            const float worst = warp_max_bound(q.bound());
            if (!(distance < worst)) continue;
            const unsigned level = entry >> INDEX_BITS;
            const uint32_t index = entry & ((1u << INDEX_BITS) - 1);
            if (coarse_left > 0)
                coarse_left--;
            else if (!is_wanted(level, index))
                continue;
            open(level - 1, index, 0, worst);
        }
    }

    /* Each team begins with its own leaf. */
    __device__ void read_own(uint32_t first)
    {
        for (unsigned i = 0; i < OWN_LEAVES; i++) {
            const uint32_t l = first + (lane / LEAF ^ i);
            if (l < t.count[0]) read_leaf(t.leaves[l], i == 0 ? lane % LEAF : NO_SLOT, &q);
        }
        __syncwarp();
    }

    __device__ void run(uint64_t warp)
    {
        uint32_t box = static_cast<uint32_t>(warp * OWN_LEAVES);
        unsigned own = ((1u << OWN_LEAVES) - 1) << box % WIDE;
        read_own(box);
        for (unsigned level = 0; level < t.levels; level++) {
            const float worst = warp_max_bound(q.bound());
            if (!(worst > 0.0f)) break;
            box /= WIDE;
            open(level, box, own, worst);
            walk();
            own = 1u << box % WIDE;
        }
        while (queued > 0) read_queue();
    }

    /* For queries that are no points of the tree: from the root down. */
    __device__ void run_from_root()
    {
        open(t.levels - 1, 0, 0, warp_max_bound(q.bound()));
        walk();
        while (queued > 0) read_queue();
    }
};

constexpr unsigned SEARCH_BLOCK = 64, SEARCH_BLOCKS = 8; /* small: a block keeps its place until its slowest warp ends */

template <int K>
__global__ void __launch_bounds__(SEARCH_BLOCK, SEARCH_BLOCKS)
    find_neighbours(const __grid_constant__ tree t, uint32_t k, float *spacing2, float *best)
{
    __shared__ warp_scratch scratch[SEARCH_BLOCK / WARP];
    const unsigned lane = threadIdx.x % WARP;
    const uint64_t warp = kiln::thread_index() / WARP, i = warp * WARP + lane, from = i < t.n ? i : t.n - 1;
    if (warp * WARP >= t.n) return;
    const leaf &own = t.leaves[from / LEAF];
    const unsigned slot = from % LEAF;
    search<K> s(t, query<K>(own.at[0][slot], own.at[1][slot], own.at[2][slot], i < t.n, k), lane, scratch[threadIdx.x / WARP]);
    s.run(warp);
    if (i >= t.n) return;
    const uint32_t row = own.row[slot];
    if (spacing2) spacing2[row] = s.q.mean(k);
    if (best) s.q.store(best + row, t.n, k);
}

/* queries: [3][n_queries] */
template <int K>
__global__ void __launch_bounds__(SEARCH_BLOCK, SEARCH_BLOCKS)
    join_neighbours(const __grid_constant__ tree t, uint64_t n_queries, uint32_t k, const float *queries, float *best)
{
    __shared__ warp_scratch scratch[SEARCH_BLOCK / WARP];
    const unsigned lane = threadIdx.x % WARP;
    const uint64_t warp = kiln::thread_index() / WARP, i = warp * WARP + lane, from = i < n_queries ? i : n_queries - 1;
    if (warp * WARP >= n_queries) return;
    query<K> q(queries[from], queries[n_queries + from], queries[2 * n_queries + from], i < n_queries, k);
    if (i < n_queries) q.load(best + i, n_queries, k);
    search<K> s(t, q, lane, scratch[threadIdx.x / WARP]);
    s.run_from_root();
    if (i < n_queries) s.q.store(best + i, n_queries, k);
}

} // namespace

#endif
