/* depth_order on CUDA: a stable radix sort by depth alone, half the bytes of the whole key, then the source rows decide within
 * runs of equal depths. Most runs are of two or three, one thread's work; a block takes the long ones. Where source
 * rows ascend already, as in a scene that is one chunk, nothing is out of place and runs are only looked at.
 */
#include "kernels/depth_order/depth_order.h"

#include "kernels/cuda.cuh"
#include "kernels/depth_order/depth_order_math.h"
#include "kernels/sort/sort.cuh"
#include "kernels/sort/sort.h"

namespace
{

enum { BLOCK = 256, KEY_BITS = 32, SHORT = 16 };

__global__ void __launch_bounds__(BLOCK) make_keys(kiln_depth_order_args a, uint32_t *keys)
{
    for (uint64_t i = kiln::thread_index(); i < a.n; i += kiln::thread_count()) {
        keys[i] = __float_as_uint(a.depths[i]); /* above 0: the bits order as depths do */
        a.order[i] = static_cast<uint32_t>(i);
    }
}

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

/* keys: sorted, and a.order with them. */
__global__ void __launch_bounds__(BLOCK) settle_ties(kiln_depth_order_args a, const uint32_t *keys)
{
    __shared__ uint64_t longs[BLOCK];
    __shared__ unsigned n_longs;
    for (uint64_t base = static_cast<uint64_t>(blockIdx.x) * BLOCK; base < a.n; base += kiln::thread_count()) {
        const uint64_t i = base + threadIdx.x;
        if (threadIdx.x == 0) n_longs = 0;
        __syncthreads();
        if (i + 1 < a.n && keys[i] == keys[i + 1] && (i == 0 || keys[i - 1] != keys[i])) {
            uint32_t n = 2;
            while (n <= SHORT && i + n < a.n && keys[i + n] == keys[i]) n++;
            if (n <= SHORT)
                sort_short(a.source_rows, &a.order[i], n);
            else
                longs[atomicAdd(&n_longs, 1)] = i;
        }
        __syncthreads();
        for (unsigned k = 0; k < n_longs; k++)
            sort_long(a.source_rows, &a.order[longs[k]], end_of_run(keys, a.n, longs[k]) - longs[k]);
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
    kiln::sort_pairs<uint32_t> s = {{kiln::take<uint32_t>(&c, a->n), kiln::take<uint32_t>(&c, a->n)},
                                    {a->order, kiln::take<uint32_t>(&c, a->n)}};
    size_t temp_bytes = 0;
    CUDA_TRY(kiln::sort(nullptr, &temp_bytes, &s, a->n, KEY_BITS, x->stream));
    void *const temp = kiln_take(&c, temp_bytes, 1);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("depth_order", c.used, *work_bytes, err));
    if (a->n == 0) return KILN_OK;

    LAUNCH(make_keys, kiln::blocks_for(a->n, BLOCK), BLOCK, 0, *a, s.keys[0]);
    CUDA_RUN(kiln::sort(temp, &temp_bytes, &s, a->n, KEY_BITS, x->stream));
    CUDA_RUN(kiln::bring(a->order, s.values[0], a->n, x->stream));
    LAUNCH(settle_ties, kiln::blocks_for(a->n, BLOCK), BLOCK, 0, *a, s.keys[0]);
    return KILN_OK;
}
