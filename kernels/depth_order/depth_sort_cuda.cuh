/* depth_sort_cuda -- the drawing order, on one stream: a stable radix sort by depth alone, half the
 * bytes of the whole key, then the source rows decide within runs of equal depths. Most runs are of
 * two or three, one thread's work; a block takes those of hundreds and the whole grid longer ones
 * (long_ties_cuda.cuh). Where source rows ascend already, as in a scene that is one chunk, nothing
 * is out of place and runs are only looked at.
 */
#ifndef KILN_KERNELS_DEPTH_ORDER_DEPTH_SORT_CUDA_CUH
#define KILN_KERNELS_DEPTH_ORDER_DEPTH_SORT_CUDA_CUH

#include "kernels/early_cuda.cuh"
#include "kernels/depth_order/long_ties_cuda.cuh"
#include "kernels/sort/sort.cuh"

namespace
{

enum { DEPTH_BLOCK = 256, DEPTH_KEYS = 8, DEPTH_BITS = 32, SHORT_RUN = 16 };

/* What is sorted. */
struct depths_of {
    kiln::count_within count;
    const float *depths;
    const uint32_t *source_rows;
};

/* What the radix sort reads. A depth is above 0 and finite: its bits order as it does. */
struct depth_input {
    depths_of d;

    __device__ uint64_t count() const { return d.count.get(); }
    __device__ uint32_t key(uint64_t i) const { return __float_as_uint(d.depths[i]); }
    __device__ uint32_t value(uint64_t i) const { return static_cast<uint32_t>(i); }
};

/* Does the Gaussian at position p come before the one at q, of the same depth? */
__device__ bool comes_before(const uint32_t *source_rows, uint32_t p, uint32_t q)
{
    const uint32_t row_p = source_rows[p], row_q = source_rows[q];
    return row_p < row_q || (row_p == row_q && p < q);
}

__device__ void sort_short(const uint32_t *source_rows, uint32_t *run, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const uint32_t p = run[i];
        uint32_t at = i;
        for (; at > 0 && comes_before(source_rows, p, run[at - 1]); at--) run[at] = run[at - 1];
        if (at < i) run[at] = p;
    }
}

__device__ void put_in_order(const uint32_t *source_rows, uint32_t *run, uint64_t i, uint64_t k)
{
    const uint32_t p = run[i], q = run[k];
    if (comes_before(source_rows, p, q)) return;
    run[i] = q;
    run[k] = p;
}

/* By a whole block: a bitonic network whose comparisons all point the same way. So elements missing
 * to a power of two count as highest and need no place. */
__device__ void sort_long(const uint32_t *source_rows, uint32_t *run, uint64_t n)
{
    bool sorted = true;
    for (uint64_t i = threadIdx.x; i + 1 < n; i += DEPTH_BLOCK)
        sorted = sorted && comes_before(source_rows, run[i], run[i + 1]);
    if (__syncthreads_and(sorted)) return;
    for (uint64_t size = 2; size < 2 * n; size *= 2)
        for (uint64_t half = size / 2; half > 0; half /= 2) {
            for (uint64_t t = threadIdx.x; 2 * half * (t / half) < n; t += DEPTH_BLOCK) {
                const uint64_t first = 2 * half * (t / half), within = t % half, i = first + within;
                /* mirrored, then straight */
                const uint64_t k = 2 * half == size ? first + 2 * half - 1 - within : i + half;
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

/* A run of equal keys begins at i: puts it in order when it is short, else leaves it. */
__device__ inline bool settle_short(const depths_of &d, const uint32_t *keys, uint32_t *order,
                                    uint64_t i, uint64_t n)
{
    uint32_t run = 2;
    while (run <= SHORT_RUN && i + run < n && keys[i + run] == keys[i]) run++;
    if (run <= SHORT_RUN) sort_short(d.source_rows, &order[i], run);
    return run <= SHORT_RUN;
}

/* Some neighbouring keys of a lane, and those on both sides. What is not there is like none that
 * is. */
struct key_window {
    uint32_t at[DEPTH_KEYS + 2];
};

__device__ inline key_window load_keys(const uint32_t *keys, uint64_t i, uint64_t n)
{
    key_window w;
    if (i + DEPTH_KEYS <= n) {
        for (uint32_t k = 0; k < DEPTH_KEYS; k += 4) {
            const uint4 v = *reinterpret_cast<const uint4 *>(&keys[i + k]);
            w.at[k + 1] = v.x;
            w.at[k + 2] = v.y;
            w.at[k + 3] = v.z;
            w.at[k + 4] = v.w;
        }
    } else {
        for (uint32_t k = 0; k < DEPTH_KEYS; k++)
            w.at[k + 1] = i + k < n ? keys[i + k] : UINT32_MAX;
    }
    w.at[0] = __shfl_up_sync(~0u, w.at[DEPTH_KEYS], 1);
    w.at[DEPTH_KEYS + 1] = __shfl_down_sync(~0u, w.at[1], 1);
    if (threadIdx.x % 32 == 0) w.at[0] = i > 0 && i < n ? keys[i - 1] : UINT32_MAX;
    if (threadIdx.x % 32 == 31)
        w.at[DEPTH_KEYS + 1] = i + DEPTH_KEYS < n ? keys[i + DEPTH_KEYS] : UINT32_MAX;
    return w;
}

/* keys: sorted, and order with them; 16-byte aligned. A block lists the runs that begin among so
 * many keys, so that its threads then fetch the rows of different runs at once. */
__global__ void __launch_bounds__(DEPTH_BLOCK)
    settle_ties(const depths_of d, const uint32_t *keys, uint32_t *order, const long_ties t)
{
    constexpr uint32_t STEP = DEPTH_BLOCK * DEPTH_KEYS;
    __shared__ uint16_t begins[STEP / 2], longs[STEP / SHORT_RUN];
    __shared__ unsigned n_begins, n_longs;
    kiln::launch_before_is_done();
    const uint64_t n = d.count.get();
    for (uint64_t base = static_cast<uint64_t>(blockIdx.x) * STEP; base < n;
         base += static_cast<uint64_t>(gridDim.x) * STEP) {
        const key_window w = load_keys(keys, base + threadIdx.x * DEPTH_KEYS, n);
        if (threadIdx.x == 0) n_begins = n_longs = 0;
        __syncthreads();
        for (uint32_t k = 1; k <= DEPTH_KEYS; k++)
            if (w.at[k] == w.at[k + 1] && w.at[k] != w.at[k - 1] && w.at[k] != UINT32_MAX)
                begins[atomicAdd(&n_begins, 1)] =
                    static_cast<uint16_t>(threadIdx.x * DEPTH_KEYS + k - 1);
        __syncthreads();
        for (unsigned k = threadIdx.x; k < n_begins; k += DEPTH_BLOCK)
            if (!settle_short(d, keys, order, base + begins[k], n))
                longs[atomicAdd(&n_longs, 1)] = begins[k];
        __syncthreads();
        for (unsigned k = 0; k < n_longs; k++) {
            const uint64_t first = base + longs[k], end = end_of_run(keys, n, first);
            if (end - first <= BLOCK_RUN)
                sort_long(d.source_rows, &order[first], end - first);
            else
                list_long(t, static_cast<uint32_t>(first), static_cast<uint32_t>(end));
        }
        __syncthreads();
    }
}

/* ---- launchers ------------------------------------------------------------------------------- */
struct depth_sort {
    depths_of d;
    kiln::radix_sort<uint32_t> radix;
    uint32_t *order, *spare; /* [n] */
};

/* order [n]: where the order is to be. Its contents behind the last Gaussian are undefined. state:
 * cleared by the caller before the sort. loose: where 8 bytes a Gaussian are taken that need not be
 * aligned to more than their elements; may be c itself. */
inline void lay_out_depth_sort(depth_sort *s, kiln_carve *c, kiln_carve *loose, const depths_of &d,
                               uint32_t *order, kiln::radix_state *state)
{
    *s = {d, {}, order, kiln::take<uint32_t>(loose, d.count.n)};
    kiln::lay_out_radix(&s->radix, c, d.count.n, DEPTH_BITS, state);
    s->radix.keys[0] = kiln::take<uint32_t>(loose, d.count.n);
    s->radix.keys[1] = kiln::take<uint32_t>(c, d.count.n);
    s->radix.values[0] = s->spare;
    s->radix.values[1] = order;
}
static_assert(DEPTH_BITS / kiln::RADIX_BITS % 2 == 0, "the last pass writes to [1]");
static_assert(static_cast<int>(TIES_WORDS) <= static_cast<int>(kiln::RADIX_CALLERS),
              "cleared with the radix sort's state");

/* On x->stream; the order is complete. n is above 0. */
inline kiln_status run_depth_sort(const kiln_exec *x, const depth_sort &s, kiln_error *err)
{
    const uint64_t n = s.d.count.n;
    unsigned at;
    CUDA_RUN(kiln::run_radix(s.radix, depth_input{s.d}, x->stream, &at));
    const long_ties t = lay_out_long_ties(s.radix.state->callers, s.radix.keys[0], n);
    LAUNCH_EARLY(settle_ties, kiln::blocks_for(n, DEPTH_BLOCK * DEPTH_KEYS), DEPTH_BLOCK, s.d,
                 s.radix.keys[1], s.order, t);
    return run_long_ties(x, t, n, s.d.source_rows, s.order, s.spare, err);
}

} // namespace

#endif
