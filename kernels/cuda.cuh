/* cuda -- what every CUDA file starts with: the device guard, checked calls and launches, ranges
 * for profilers.
 *
 * CUDA_TRY, CUDA_RUN and LAUNCH expect `x` (kiln_exec) and `err` in scope and return on failure. An
 * entry point looks like this:
 *
 *   extern "C" kiln_status kiln_NAME_cuda(const kiln_exec *x, const kiln_NAME_args *a, void *work, size_t *work_bytes,
 *                                         kiln_error *err)
 *   {
 *       kiln::entry entry(x, "NAME");                  guard and NVTX range
 *       CUDA_ENTER(entry.guard);
 *       kiln_carve c = {(char *)work, 0};
 *       ... kiln::take<T>(&c, count) ...               measures when work is NULL, else carves
 *       if (!work) { *work_bytes = c.used; return KILN_OK; }
 *       KILN_TRY(kiln::check_work("NAME", c.used, *work_bytes, err));
 *       if (a->n == 0) return KILN_OK;                 an empty grid is an error in CUDA
 *       LAUNCH(kernel, kiln::blocks_for(a->n, BLOCK), BLOCK, 0, ...);
 *       return KILN_OK;
 *   }
 *
 * All but the entry sits in an anonymous namespace. Nothing here waits for the
 * device but LAUNCH and CUDA_RUN under --sync.
 */
#ifndef KILN_KERNELS_CUDA_CUH
#define KILN_KERNELS_CUDA_CUH

#include "base/carve.h"
#include "base/status.h"
#include "kernels/exec.h"
#include "kernels/violation.h"

#include <cuda.h>
#include <cuda_runtime.h>

/* Never KILN_OK. what: the call or kernel as written. Takes the error from the runtime, so that the
 * next check is of its own call; an error that stays (illegal address) is said again by every later
 * call. */
extern "C" kiln_status kiln_cuda_fail(kiln_error *err, int device, cudaError_t e, const char *what,
                                      const char *file, int line);
/* The driver's current context of this thread, null included; and back. */
extern "C" cudaError_t kiln_context_get(CUcontext *out);
extern "C" cudaError_t kiln_context_set(CUcontext context);

#define CUDA_TRY(call)                                                                   \
    do {                                                                                 \
        const cudaError_t cuda_try_ = (call);                                            \
        if (cuda_try_ != cudaSuccess)                                                    \
            return kiln_cuda_fail(err, x->device, cuda_try_, #call, __FILE__, __LINE__); \
    } while (0)

/* For what puts work on x->stream without LAUNCH: CUB, memset, copies. Under --sync it is waited
 * for, too. */
#define CUDA_RUN(call)                                                               \
    do {                                                                             \
        cudaError_t run_ = (call);                                                   \
        if (run_ == cudaSuccess && x->sync) run_ = cudaStreamSynchronize(x->stream); \
        if (run_ != cudaSuccess)                                                     \
            return kiln_cuda_fail(err, x->device, run_, #call, __FILE__, __LINE__);  \
    } while (0)

#define LAUNCH(kernel, grid, block, shared_bytes, ...)                                     \
    do {                                                                                   \
        kernel<<<(grid), (block), (shared_bytes), x->stream>>>(__VA_ARGS__);               \
        cudaError_t launch_ = cudaGetLastError();                                          \
        if (launch_ == cudaSuccess && x->sync) launch_ = cudaStreamSynchronize(x->stream); \
        if (launch_ != cudaSuccess)                                                        \
            return kiln_cuda_fail(err, x->device, launch_, #kernel, __FILE__, __LINE__);   \
    } while (0)

/* Is the guard's device current? */
#define CUDA_ENTER(guard)                                                                \
    do {                                                                                 \
        if ((guard).error != cudaSuccess)                                                \
            return kiln_cuda_fail(err, x->device, (guard).error, (guard).what, __FILE__, \
                                  __LINE__);                                             \
    } while (0)

namespace kiln
{

/* Sets a device and restores what was current. Restoring with cudaSetDevice would make a context on
 * device 0 for a thread that had none (measured: 518 MiB); the driver's own context, null included,
 * leaves nothing behind. */
struct device_guard {
    CUcontext was = nullptr;
    cudaError_t error;
    const char *what = "cuCtxGetCurrent"; /* the call that error is of */
    explicit device_guard(int device)
    {
        error = kiln_context_get(&was);
        if (error != cudaSuccess) return;
        known = true;
        what = "cudaSetDevice";
        error = cudaSetDevice(device);
        /* an error from before is not of the launch that comes */
        if (error == cudaSuccess) (void)cudaGetLastError();
    }
    ~device_guard()
    {
        if (known) (void)kiln_context_set(was);
    }
    device_guard(const device_guard &) = delete;
    device_guard &operator=(const device_guard &) = delete;

  private:
    bool known = false; /* `was` was read */
};

/* What an entry point holds while it runs. */
struct entry {
    device_guard guard;
    entry(const kiln_exec *x, const char *name);
    ~entry();
};

template <typename T> inline T *take(kiln_carve *c, uint64_t count)
{
    return static_cast<T *>(kiln_take(c, count, sizeof(T)));
}

inline kiln_status check_work(const char *name, size_t need, size_t given, kiln_error *err)
{
    if (given >= need) return KILN_OK;
    return kiln_fail(err, KILN_E_CAP, "%s needs %zu bytes of work space, but was given %zu", name,
                     need, given);
}

/* Enough blocks to keep the largest GPUs busy: 32 for each of 132 multiprocessors (Hopper). */
constexpr unsigned BLOCKS_MOST = 132 * 32;

/* Blocks for one thread an item, at most what a grid-stride loop wants. */
inline unsigned blocks_for(uint64_t items, unsigned block, unsigned most = BLOCKS_MOST)
{
    const uint64_t blocks = (items + block - 1) / block;
    return blocks < most ? (blocks > 0 ? static_cast<unsigned>(blocks) : 1) : most;
}

/* How many there are, of at most n: all, or what the device alone knows; none where that is more
 * than n. */
struct count_within {
    uint64_t n;
    const uint64_t *known; /* NULL: n */

    __device__ uint64_t get() const { return !known ? n : *known <= n ? *known : 0; }
};

/* Index of this thread and the step of a grid-stride loop, in 64 bits. */
__device__ inline uint64_t thread_index()
{
    return uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline uint64_t thread_count() { return uint64_t(gridDim.x) * blockDim.x; }

__device__ inline void add64(uint64_t *to, uint64_t v)
{
    atomicAdd(reinterpret_cast<unsigned long long *>(to), v);
}
__device__ inline void leave_violation(uint64_t *violation, uint64_t v)
{
    if (violation) atomicMin(reinterpret_cast<unsigned long long *>(violation), v);
}

} // namespace kiln

#endif
