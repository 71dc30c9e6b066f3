/* depth_order on CUDA: a stable radix sort by depth alone, half the bytes of the whole key, then the source rows decide within
 * runs of equal depths. Most runs are of two or three: each Gaussian counts how many of its run come before it. A block takes
 * the long ones.
 */
#include "kernels/depth_order/depth_order.h"

#include "kernels/cuda.cuh"
#include "kernels/depth_order/depth_order_math.h"
#include "kernels/sort/sort.cuh"
#include "kernels/sort/sort.h"

namespace
{

enum { BLOCK = 256, KEY_BITS = 32, SHORT = 16 };

__global__ void __launch_bounds__(BLOCK) make_keys(kiln_depth_order_args a, uint32_t *keys, uint32_t *order)
{
    for (uint64_t i = kiln::thread_index(); i < a.n; i += kiln::thread_count()) {
        keys[i] = __float_as_uint(a.depths[i]); /* above 0: the bits order as depths do */
        order[i] = static_cast<uint32_t>(i);
    }
}

/* Does the Gaussian at position p come before the one at q, of the same depth? */
__device__ bool comes_before(const uint32_t *source_rows, uint32_t p, uint32_t q)
{
    const uint32_t row_p = source_rows[p], row_q = source_rows[q];
    return row_p < row_q || (row_p == row_q && p < q);
}

__device__ void put_in_order(const uint32_t *source_rows, uint32_t *run, uint64_t i, uint64_t k)
{
    const uint32_t p = run[i], q = run[k];
    if (comes_before(source_rows, p, q)) return;
    run[i] = q;
    run[k] = p;
}

/* By a whole block: a bitonic network whose comparisons all point the same way, so that what is missing to a power of two
 * counts as highest and needs no place. */
__device__ void sort_long(const uint32_t *source_rows, uint32_t *run, uint64_t n)
{
    bool sorted = true;
    for (uint64_t i = threadIdx.x; i + 1 < n; i += BLOCK) sorted = sorted && comes_before(source_rows, run[i], run[i + 1]);
    if (__syncthreads_and(sorted)) return;
    for (uint64_t size = 2; size < 2 * n; size *= 2)
        for (uint64_t half = size / 2; half > 0; half /= 2) {
            for (uint64_t t = threadIdx.x; 2 * half * (t / half) < n; t += BLOCK) {
                const uint64_t first = 2 * half * (t / half), within = t % half, i = first + within;
                const uint64_t k = 2 * half == size ? first + 2 * half - 1 - within : i + half; /* mirrored, then straight */
                if (k < n) put_in_order(source_rows, run, i, k);
            }
            __syncthreads();
        }
}

/* Where the run of equal keys that begins at `first` ends. */
__device__ uint64_t end_of_run(const uint32_t *keys, uint64_t n, uint64_t first)
{
    uint64_t low = first, high = n;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (keys[middle] <= keys[first])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What a block knows of its Gaussians and of SHORT on either side. */
struct neighbours {
    uint32_t keys[SHORT + BLOCK + SHORT];
    uint64_t ranks[SHORT + BLOCK + SHORT]; /* of those in runs: source row, then position */
};

/* The run that a Gaussian lies in: how many of it are before and behind, looked at up to SHORT. */
struct place_in_run {
    uint32_t before = 0, behind = 0;
    /* near: its key among its neighbours'; `low` and `high` of these exist. */
    __device__ place_in_run(const uint32_t *near, uint64_t low, uint64_t high)
    {
        while (before < SHORT && before < low && *(near - before - 1) == *near) before++;
        while (behind < SHORT && behind < high && *(near + behind + 1) == *near) behind++;
    }
    __device__ bool is_long() const { return before + behind >= SHORT; }
    __device__ uint32_t rank(const uint64_t *near) const
    {
        uint32_t rank = 0;
        for (const uint64_t *at = near - before; at <= near + behind; at++) rank += *at < *near;
        return rank;
    }
};

/* The block's keys from `base` on, and the ranks of those that have an equal beside them. */
__device__ void load_neighbours(neighbours &room, const kiln_depth_order_args &a, uint64_t base, const uint32_t *keys,
                                const uint32_t *order)
{
    constexpr uint32_t ALL = SHORT + BLOCK + SHORT;
    for (uint32_t k = threadIdx.x; k < ALL; k += BLOCK) {
        const uint64_t i = base + k - SHORT; /* wraps before the first */
        room.keys[k] = i < a.n ? keys[i] : 0;
    }
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < ALL; k += BLOCK) {
        const uint64_t i = base + k - SHORT;
        const bool left = k == 0 || room.keys[k - 1] == room.keys[k], right = k + 1 == ALL || room.keys[k + 1] == room.keys[k];
        if (i >= a.n || !(left || right)) continue;
        const uint32_t p = order[i];
        room.ranks[k] = static_cast<uint64_t>(a.source_rows[p]) << 32 | p;
    }
    __syncthreads();
}

/* keys: sorted, and `order` with them. The block of a long run's first sorts it: nobody else reads its order. */
__global__ void __launch_bounds__(BLOCK) settle_ties(const kiln_depth_order_args a, const uint32_t *keys, uint32_t *order)
{
    __shared__ neighbours room;
    __shared__ uint64_t longs[BLOCK];
    __shared__ unsigned n_longs;
    for (uint64_t base = static_cast<uint64_t>(blockIdx.x) * BLOCK; base < a.n; base += kiln::thread_count()) {
        const uint64_t i = base + threadIdx.x;
        const uint32_t k = SHORT + threadIdx.x;
        if (threadIdx.x == 0) n_longs = 0;
        load_neighbours(room, a, base, keys, order);
        if (i < a.n) {
            const place_in_run p(&room.keys[k], i, a.n - 1 - i);
            if (p.before + p.behind == 0)
                a.order[i] = order[i];
            else if (!p.is_long())
                a.order[i - p.before + p.rank(&room.ranks[k])] = static_cast<uint32_t>(room.ranks[k]);
            else if (p.before == 0)
                longs[atomicAdd(&n_longs, 1)] = i;
        }
        __syncthreads();
        for (unsigned l = 0; l < n_longs; l++) {
            const uint64_t first = longs[l], n = end_of_run(keys, a.n, first) - first;
            for (uint64_t t = threadIdx.x; t < n; t += BLOCK) a.order[first + t] = order[first + t];
            __syncthreads();
            sort_long(a.source_rows, &a.order[first], n);
        }
        __syncthreads();
    }
}

} // namespace

extern "C" kiln_status kiln_depth_order_cuda(const kiln_exec *x, const kiln_depth_order_args *a, void *work, size_t *work_bytes,
                                             kiln_error *err)
{
    KILN_TRY(kiln_sort_check("depth_order", a->n, err));
    const kiln::entry entry(x, "depth_order");
    CUDA_ENTER(entry.guard);
    kiln_carve c = {static_cast<char *>(work), 0};
    uint32_t *const sorted = kiln::take<uint32_t>(&c, a->n);
    kiln::sort_pairs<uint32_t> s = {{kiln::take<uint32_t>(&c, a->n), kiln::take<uint32_t>(&c, a->n)}, {sorted, a->order}};
    size_t temp_bytes = 0;
    CUDA_TRY(kiln::sort(nullptr, &temp_bytes, &s, a->n, KEY_BITS, x->stream));
    void *const temp = kiln_take(&c, temp_bytes, 1);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("depth_order", c.used, *work_bytes, err));
    if (a->n == 0) return KILN_OK;

    LAUNCH(make_keys, kiln::blocks_for(a->n, BLOCK), BLOCK, 0, *a, s.keys[0], s.values[0]);
    CUDA_RUN(kiln::sort(temp, &temp_bytes, &s, a->n, KEY_BITS, x->stream));
    CUDA_RUN(kiln::bring(sorted, s.values[0], a->n, x->stream)); /* four passes: it lies there */
    LAUNCH(settle_ties, kiln::blocks_for(a->n, BLOCK), BLOCK, 0, *a, s.keys[0], sorted);
    return KILN_OK;
}
