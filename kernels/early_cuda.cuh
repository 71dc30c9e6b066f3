/* early_cuda -- launches that are put on the device while the launch before them ends. A small
 * launch takes some microseconds to get there, which is as long as many of them work; from Hopper
 * on that time passes while the one before still runs.
 *
 *   LAUNCH_EARLY(kernel, grid, block, arguments...);     on x->stream, as LAUNCH
 *
 *   __global__ void kernel(...)
 *   {
 *       kiln::launch_before_is_done();                   before anything else that concerns device
 *                                                        memory
 *       kiln::let_next_launch_begin();                   where the next is early, too, and may take
 *                                                        the places of ended blocks
 *
 * Behind anything but a kernel, on older devices, and in code compiled for older devices, it is an
 * ordinary launch.
 */
#ifndef KILN_KERNELS_EARLY_CUDA_CUH
#define KILN_KERNELS_EARLY_CUDA_CUH

#include "kernels/cuda.cuh"

#include <atomic>

#define LAUNCH_EARLY(kernel, grid, block, ...)                                             \
    do {                                                                                   \
        cudaError_t launch_ =                                                              \
            kiln::launch_early((kernel), (grid), (block), 0, x->stream, __VA_ARGS__);      \
        if (launch_ == cudaSuccess && x->sync) launch_ = cudaStreamSynchronize(x->stream); \
        if (launch_ != cudaSuccess)                                                        \
            return kiln_cuda_fail(err, x->device, launch_, #kernel, __FILE__, __LINE__);   \
    } while (0)

namespace kiln
{

/* Until what was launched before is done and all that it wrote is there to see. Every thread of a
 * kernel that is launched early calls it before it reads or writes anything in device memory, or
 * ends. */
__device__ inline void launch_before_is_done()
{
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

/* Lets the next early launch take places on the device as soon as all blocks of this one have
 * called it or ended. */
__device__ inline void let_next_launch_begin()
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/* Does the code of this kernel wait (launch_before_is_done)? That depends on what it was compiled
 * for and not on the device: a Hopper runs what was compiled for Ampere alone. All kernels are
 * compiled for the same, so a device is asked once: asking takes as long as a part of a launch. */
inline cudaError_t code_waits(const void *kernel, bool *waits)
{
    enum : int { UNKNOWN, NO, YES, DEVICES = 64 };
    static std::atomic<int> known[DEVICES]; /* UNKNOWN at first */
    int device = 0;
    cudaError_t e = cudaGetDevice(&device);
    if (e != cudaSuccess) return e;
    int answer = device < DEVICES ? known[device].load(std::memory_order_relaxed) : UNKNOWN;
    if (answer == UNKNOWN) {
        cudaFuncAttributes code;
        e = cudaFuncGetAttributes(&code, kernel);
        if (e != cudaSuccess) return e;
        /* a device may also run code that was compiled for an older one */
        answer = code.ptxVersion >= 90 ? YES : NO;
        if (device < DEVICES) known[device].store(answer, std::memory_order_relaxed);
    }
    *waits = answer == YES;
    return cudaSuccess;
}

/* Early only if the kernel's code waits. */
template <typename... Parameters, typename... Arguments>
cudaError_t launch_early(void (*kernel)(Parameters...), dim3 blocks, unsigned threads,
                         size_t shared_bytes, cudaStream_t stream, const Arguments &...arguments)
{
    bool waits;
    const cudaError_t e = code_waits(reinterpret_cast<const void *>(kernel), &waits);
    if (e != cudaSuccess) return e;
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t launch = {};
    launch.gridDim = blocks;
    launch.blockDim = dim3(threads);
    launch.dynamicSmemBytes = shared_bytes;
    launch.stream = stream;
    launch.attrs = &early;
    launch.numAttrs = waits ? 1 : 0;
    return cudaLaunchKernelEx(&launch, kernel, static_cast<Parameters>(arguments)...);
}

} // namespace kiln

#endif
