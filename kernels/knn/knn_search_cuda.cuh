/* knn_search_cuda -- finds the nearest neighbours of 32 queries with one warp, one query for each
 * lane. The queries are points of the tree that are adjacent on the Hilbert curve, or other points
 * that are adjacent in the caller's array.
 *
 * Problem. If each lane walked the tree for its own query, lanes would wait for each other at every
 * branch and read different memory.
 *
 * Constraint. The result is exact. The order in which candidates are met does not matter, because
 * only distances are kept.
 *
 * Layout. The 32 queries walk the tree together.
 *   1. Nodes. Each lane tests one of a node's 32 child boxes against the box of all queries and
 *      their worst bound (the largest of their k-th distances). Near inner nodes go on a stack,
 *      near leaves into a queue.
 *   2. Leaves. When 32 leaves are queued, each lane tests one of them against every single query
 *      and lists the pairs (leaf, query) in which the query wants the leaf.
 *   3. Points. Each lane takes a pair, whose query it may be, and reads the leaf for it. Few
 *      queries want many leaves and many want few, so that lanes which read for their own queries
 *      alone would wait for the one that wants most. The k best distances are in shared memory
 *      meanwhile, where any lane can add to them (offer).
 *
 * A search by points of the tree starts with the 32 points themselves, so that bounds are tight,
 * and climbs from there. Queries from outside have no leaf of their own and may be far from all
 * points: they walk down from the root, the nearest child first. They read the nearest leaves
 * first, because a query wants every leaf until it holds k distances. A box exactly at the bound is
 * skipped, because it could only give a value equal to one already held. So bounds of zero end the
 * search, and many equal points cost nothing.
 */
#ifndef KILN_KERNELS_KNN_SEARCH_CUDA_CUH
#define KILN_KERNELS_KNN_SEARCH_CUDA_CUH

#include "kernels/knn/knn_query_cuda.cuh"

namespace
{

constexpr unsigned OWN_LEAVES = WARP / LEAF;
/* Taking a node from the stack puts at most 32 nodes of the level below on it. Leaves are never put
 * on the stack. */
constexpr unsigned STACK = WIDE * (LEVELS - 1), QUEUE = 2 * WIDE;
/* A stack entry: the level in the bits above INDEX_BITS, the index below. Level 1 has the most
 * boxes, 2^24. */
constexpr unsigned INDEX_BITS = 28;

/* Shared memory of a warp. */
template <int K> struct warp_scratch {
    float4 queries[WARP]; /* x, y, z, bound */
    /* the best distances of all queries, as bits, while any lane may add to them */
    int best[K][WARP];
    float nearest[STACK]; /* distance of each box on the stack */
    uint32_t stack[STACK], queue[QUEUE];
    uint16_t pairs[WARP * WARP]; /* place in the queue * WARP + query */
};

/* Number of nodes that a warp opens by the coarse test alone, against the box of all its queries.
 * Most warps need no more. If the queries are far apart (across a gap, or because one is an
 * outlier), that box meets much of the tree; from then on a node is opened only if a single query
 * wants it. */
constexpr unsigned COARSE_NODES = 16;

/* unrolled; a lane tests at least so many queries, a quarter of them */
constexpr unsigned TESTS_AT_ONCE = WARP / 4;

/* leaves that are read at once, from the one on with which each query holds k distances */
constexpr unsigned SEED_LEAVES = 4;

/* The search of one warp; OUTSIDE: for queries that are not points of the tree. All lanes call all
 * functions together. */
template <int K, bool OUTSIDE> struct search {
    const tree &t;
    query<K> q;
    box all; /* the box of the 32 queries */
    unsigned lane;
    warp_scratch<K> &d;
    unsigned top = 0, queued = 0, coarse_left = COARSE_NODES;

    __device__ search(const tree &t_, const query<K> &q_, unsigned lane_, warp_scratch<K> &d_)
        : t(t_), q(q_), lane(lane_), d(d_)
    {
        all = {join_lanes<WARP>({q.x, q.x}), join_lanes<WARP>({q.y, q.y}),
               join_lanes<WARP>({q.z, q.z})};
    }

    /* Returns this lane's place among the near lanes: the farthest has place 0, so that the nearest
     * is taken from the stack first.
     */
    __device__ unsigned place_by_distance(unsigned near_lanes, float distance) const
    {
        unsigned place = 0;
        for (unsigned left = near_lanes; left; left &= left - 1) {
            const unsigned other = __ffs(left) - 1;
            const float theirs = __shfl_sync(ALL_LANES, distance, other);
            place += theirs > distance || (theirs == distance && other < lane);
        }
        return place;
    }

    /* Reads leaves of a node, the nearest first, until all queries hold k distances, and a few
     * more. Returns true if this lane's leaf was near, was not read, and is still near. */
    __device__ bool read_nearest(uint32_t index, float distance, bool near)
    {
        float worst = FLT_MAX;
        for (unsigned left = SEED_LEAVES; left > 0 && __any_sync(ALL_LANES, near);
             left -= worst < FLT_MAX) {
            const float nearest = -warp_max(near ? -distance : -INFINITY);
            const unsigned which = __ffs(__ballot_sync(ALL_LANES, near && distance == nearest)) - 1;
            const leaf_distances from(t.leaves[index * WIDE + which], q.x, q.y, q.z);
#pragma unroll
            for (unsigned i = 0; i < LEAF; i += 2) q.keep(from.d[i], from.d[i + 1]);
            worst = warp_max_bound(q.bound());
            near = near && lane != which && distance < worst;
        }
        return near;
    }

    /* Opens a node: its children that are nearer than the worst bound go into the queue (leaves) or
     * on the stack (inner nodes). Children in the mask `without` are skipped. */
    __device__ void open(unsigned level, uint32_t index, unsigned without, float worst)
    {
        const float distance = distance2(box_at(t.nodes[level][index], lane), all);
        bool near = distance < worst && !(without >> lane & 1);
        if (OUTSIDE && level == 0 && !(worst < FLT_MAX)) near = read_nearest(index, distance, near);
        const unsigned near_lanes = __ballot_sync(ALL_LANES, near),
                       before = __popc(near_lanes & ((1u << lane) - 1));
        if (level == 0) {
            if (near) d.queue[queued + before] = index * WIDE + lane;
            queued += __popc(near_lanes);
            __syncwarp();
            if (queued >= WIDE) read_queue();
            return;
        }
        const unsigned place = OUTSIDE ? place_by_distance(near_lanes, distance) : before;
        if (near) {
            d.stack[top + place] = level << INDEX_BITS | (index * WIDE + lane);
            d.nearest[top + place] = distance;
        }
        top += __popc(near_lanes);
        __syncwarp();
    }

    /* Returns a mask of the queries that want this lane's queued leaf, the one at `place`. `share`
     * queries are this lane's, others with the same leaf have the rest. */
    __device__ unsigned wanting_queries(unsigned place, unsigned share) const
    {
        const bool is_leaf = place < queued;
        const uint32_t l = d.queue[is_leaf ? place : 0];
        const box b = box_at(t.nodes[0][l / WIDE], l % WIDE);
        const unsigned first = lane - place; /* a multiple of share */
        const float4 *from = &d.queries[first];
        unsigned wanting = 0;
#pragma unroll 1
        for (unsigned left = share; left > 0; left -= TESTS_AT_ONCE, from += TESTS_AT_ONCE) {
            wanting >>= TESTS_AT_ONCE;
#pragma unroll
            for (unsigned j = 0; j < TESTS_AT_ONCE; j++) {
                const float4 p = from[j];
                if (distance2(b, box_of(p.x, p.y, p.z)) < p.w)
                    wanting |= 1u << (WARP - TESTS_AT_ONCE + j);
            }
        }
        wanting = wanting >> (WARP - share) << first;
        return is_leaf ? wanting : 0;
    }

    /* Lists the pairs of all lanes, leaf by leaf, so that neighbours read the same leaves. Returns
     * how many there are. */
    __device__ unsigned list_pairs(unsigned place, unsigned wanting)
    {
        unsigned end = __popc(wanting);
#pragma unroll
        for (unsigned step = 1; step < WARP; step *= 2) {
            const unsigned before = __shfl_up_sync(ALL_LANES, end, step);
            if (lane >= step) end += before;
        }
        for (unsigned at = end - __popc(wanting); wanting; wanting &= wanting - 1)
            d.pairs[at++] = static_cast<uint16_t>(place * WARP + __ffs(wanting) - 1);
        __syncwarp();
        return __shfl_sync(ALL_LANES, end, WARP - 1);
    }

    /* Adds a distance to those of query `who`, whatever other lanes add meanwhile: each place keeps
     * the smaller of two values and hands the larger on. In the end the first place has the least
     * of all, the second the least of what the first handed on, and so on. The order of arrival
     * does not matter. */
    __device__ void offer(unsigned who, float distance)
    {
        int v = __float_as_int(distance);
#pragma unroll
        for (int i = 0; i < K; i++) v = max(v, atomicMin(&d.best[i][who], v));
    }

    /* Offers a leaf's points to a query, whichever lane's it is. */
    __device__ void read_pair(unsigned pair)
    {
        const unsigned who = pair % WARP;
        const float4 p = d.queries[who];
        const leaf_distances from(t.leaves[d.queue[pair / WARP]], p.x, p.y, p.z);
        /* sorting first takes fewer steps than eight offers, of which each waits for the slowest
         * lane */
        if constexpr (K == 3) {
            query<3> least(p.x, p.y, p.z, true, 3);
#pragma unroll
            for (unsigned i = 0; i < LEAF; i += 2) least.keep(from.d[i], from.d[i + 1]);
            for (int i = 0; i < 3 && least.best[i] < p.w; i++) offer(who, least.best[i]);
        } else {
            for (const float distance : from.d)
                if (distance < p.w) offer(who, distance);
        }
    }

    /* Reads the first 32 queued leaves, or all if there are fewer, and moves the rest to the front.
     * If there are at most 16 or 8, two or four lanes share the queries that a leaf is tested
     * against. */
    __device__ void read_queue()
    {
        d.queries[lane] = make_float4(q.x, q.y, q.z, q.bound());
#pragma unroll
        for (int i = 0; i < K; i++) d.best[i][lane] = __float_as_int(q.best[i]);
        __syncwarp();
        const unsigned share = queued > WARP / 2   ? WARP
                               : queued > WARP / 4 ? WARP / 2
                                                   : WARP / 4,
                       place = lane % share;
        const unsigned pairs = list_pairs(place, wanting_queries(place, share));
        for (unsigned i = lane; i < pairs; i += WARP) read_pair(d.pairs[i]);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < K; i++) q.best[i] = __int_as_float(d.best[i][lane]);
        const uint32_t next = d.queue[WIDE + lane];
        __syncwarp();
        d.queue[lane] = next;
        queued -= queued < WIDE ? queued : WIDE;
        __syncwarp();
    }

    /* Returns true if at least one query wants this node, as opposed to the box of all queries. */
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
            __syncwarp(); /* before another lane overwrites the entry */
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

    /* Offers the queries to each other. is_point: this lane has one. A point is no neighbour of its
     * own. */
    __device__ void read_own(bool is_point)
    {
        d.queries[lane] = is_point ? make_float4(q.x, q.y, q.z, 0.0f)
                                   : make_float4(INFINITY, INFINITY, INFINITY, 0.0f);
        __syncwarp();
#pragma unroll 4
        for (unsigned i = 0; i < WARP; i += 2) {
            const float first = q.distance2(d.queries[i]), second = q.distance2(d.queries[i + 1]);
            q.keep(i == lane ? FLT_MAX : first, i + 1 == lane ? FLT_MAX : second);
        }
        __syncwarp();
    }

    /* The search for 32 points of the tree: from their leaves up, level by level. */
    __device__ void run(uint64_t warp)
    {
        uint32_t box = static_cast<uint32_t>(warp * OWN_LEAVES);
        unsigned own = ((1u << OWN_LEAVES) - 1) << box % WIDE;
        read_own(warp * WARP + lane < t.n);
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

    /* The search for queries that are not points of the tree: from the root down. */
    __device__ void run_from_root()
    {
        open(t.levels - 1, 0, 0, warp_max_bound(q.bound()));
        walk();
        while (queued > 0) read_queue();
    }
};

/* small, because a block occupies its place until its slowest warp ends */
constexpr unsigned SEARCH_BLOCK = 64;
/* Of a thread. The compiler would take a few more, and fewer warps would fit a multiprocessor. */
template <int K> constexpr unsigned SEARCH_REGISTERS = K == 3 ? 48 : K == 8 ? 64 : 96;

/* One warp for 32 points of the tree. spacing2 [n] and best [k][n] are in the order of rows; each
 * may be NULL. */
template <int K>
__global__ void __maxnreg__(SEARCH_REGISTERS<K>)
    find_neighbours(const __grid_constant__ tree t, uint32_t k, float *spacing2, float *best)
{
    __shared__ warp_scratch<K> scratch[SEARCH_BLOCK / WARP];
    const unsigned lane = threadIdx.x % WARP;
    const uint64_t warp = kiln::thread_index() / WARP, i = warp * WARP + lane,
                   from = i < t.n ? i : t.n - 1;
    kiln::launch_before_is_done();
    if (warp * WARP >= t.n) return;
    const leaf &own = t.leaves[from / LEAF];
    const unsigned slot = from % LEAF;
    search<K, false> s(t, query<K>(own.at[0][slot], own.at[1][slot], own.at[2][slot], i < t.n, k),
                       lane, scratch[threadIdx.x / WARP]);
    s.run(warp);
    if (i >= t.n) return;
    const uint32_t row = t.rows[i];
    if (spacing2) spacing2[row] = s.q.mean(k);
    if (best) s.q.store(best + row, t.n, k);
}

/* One warp for 32 queries. queries: [3][n_queries]; best: [k][n_queries], in and out. */
template <int K>
__global__ void __maxnreg__(SEARCH_REGISTERS<K>)
    join_neighbours(const __grid_constant__ tree t, uint64_t n_queries, uint32_t k,
                    const float *queries, float *best)
{
    __shared__ warp_scratch<K> scratch[SEARCH_BLOCK / WARP];
    const unsigned lane = threadIdx.x % WARP;
    const uint64_t warp = kiln::thread_index() / WARP, i = warp * WARP + lane,
                   from = i < n_queries ? i : n_queries - 1;
    kiln::launch_before_is_done();
    if (warp * WARP >= n_queries) return;
    query<K> q(queries[from], queries[n_queries + from], queries[2 * n_queries + from],
               i < n_queries, k);
    if (i < n_queries) q.load(best + i, n_queries, k);
    search<K, true> s(t, q, lane, scratch[threadIdx.x / WARP]);
    s.run_from_root();
    if (i < n_queries) s.q.store(best + i, n_queries, k);
}

} // namespace

#endif
