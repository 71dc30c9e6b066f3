/* device -- see device.h. The driver's functions come from cudaGetDriverEntryPointByVersion, so
 * that nothing links against libcuda and a program that uses no device never loads it. */
#include "kernels/device.h"

#include "kernels/cuda.cuh"

#include <nvtx3/nvToolsExt.h>
#include <string.h>

/* The lowest compute capability that this is compiled for, times ten, and all of them as text: the
 * Makefile says it. */
#if !defined(KILN_CUDA_ARCH_LEAST) || !defined(KILN_CUDA_ARCHS)
#error "compile with -DKILN_CUDA_ARCH_LEAST=80 -DKILN_CUDA_ARCHS='\"80 90\"' or the like"
#endif

namespace
{

struct driver {
    CUresult (*get)(CUcontext *);
    CUresult (*set)(CUcontext);
    cudaError_t error;
};

/* Found once: constant afterwards, so any thread may ask. */
driver find_driver()
{
    driver d = {};
    cudaDriverEntryPointQueryResult found;
    d.error = cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", reinterpret_cast<void **>(&d.get),
                                               4000, cudaEnableDefault, &found);
    if (d.error == cudaSuccess && !d.get) d.error = cudaErrorSymbolNotFound;
    if (d.error != cudaSuccess) return d;
    d.error = cudaGetDriverEntryPointByVersion("cuCtxSetCurrent", reinterpret_cast<void **>(&d.set),
                                               4000, cudaEnableDefault, &found);
    if (d.error == cudaSuccess && !d.set) d.error = cudaErrorSymbolNotFound;
    return d;
}

const driver &the_driver()
{
    static const driver d = find_driver();
    return d;
}

__global__ void nothing() {}
__global__ void write_astray(uint64_t *at) { *at = 1; }

/* No process can map the lowest page (vm.mmap_min_addr), so nothing is there even where a GPU reads
 * the host's memory. */
const uintptr_t ASTRAY = 64;

/* Those of CUDA's errors that are of the device, not of the context in which they came up: CUDA
 * Runtime API 13.0, "cudaError_t". A GPU that has fallen off the bus is reported as unavailable or
 * missing when it is opened again. */
bool is_of_device(cudaError_t e)
{
    switch (e) {
    case cudaErrorECCUncorrectable:    /* 214: memory that cannot be corrected */
    case cudaErrorNvlinkUncorrectable: /* 220: the same of NVLink */
    /* 226: "certain classes of hardware errors"; we access no peer's memory, its other cause */
    case cudaErrorContained:
    /* 714: the call stack of a kernel broke, and ours do not recurse */
    case cudaErrorHardwareStackError:
    /* 46: somebody has it alone (compute mode), or it does not answer */
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoDevice:            /* 100: gone from the driver's list, */
    case cudaErrorInvalidDevice:       /* 101: and fewer are left than its number */
    case cudaErrorInitializationError: /* 3: the driver does not start any more, */
    case cudaErrorSystemNotReady:      /* 802: nor a daemon that the GPU needs (fabric manager) */
        return true;
    default:
        return false;
    }
}

kiln_exec only(int device)
{
    kiln_exec x = {};
    x.device = device;
    return x;
}

kiln_status check_versions(kiln_device_info *out, kiln_error *err)
{
    int built = 0, has = 0;
    cudaError_t e = cudaRuntimeGetVersion(&built);
    if (e == cudaSuccess) e = cudaDriverGetVersion(&has);
    if (e != cudaSuccess)
        return kiln_fail(err, KILN_E_DEVICE, "cannot ask for the CUDA version: %s",
                         cudaGetErrorString(e));
    out->built_version = static_cast<uint32_t>(built);
    out->driver_version = static_cast<uint32_t>(has);
    if (has == 0) return kiln_fail(err, KILN_E_DEVICE, "there is no CUDA driver");
    if (has / 1000 < built / 1000)
        return kiln_fail(
            err, KILN_E_DEVICE,
            "this build needs CUDA %d.%d, but the driver has CUDA %d.%d; update the driver",
            built / 1000, built % 1000 / 10, has / 1000, has % 1000 / 10);
    return KILN_OK;
}

/* Has this build code that the device can run? */
kiln_status check_code(const kiln_exec *x, const cudaDeviceProp &p, kiln_error *err)
{
    cudaFuncAttributes has;
    const cudaError_t e = cudaFuncGetAttributes(&has, nothing);
    if (e != cudaErrorNoKernelImageForDevice && e != cudaErrorInvalidDeviceFunction &&
        e != cudaErrorUnsupportedPtxVersion) {
        if (e != cudaSuccess)
            return kiln_cuda_fail(err, x->device, e, "cudaFuncGetAttributes", __FILE__, __LINE__);
        return KILN_OK;
    }
    (void)cudaGetLastError();
    /* newer than all that we compiled for, so the driver must compile our PTX */
    if (e == cudaErrorUnsupportedPtxVersion)
        return kiln_fail(err, KILN_E_DEVICE,
                         "this build has no code for the %s itself (compute capability %d.%d), and "
                         "its PTX of CUDA %d.%d is newer than "
                         "the driver's CUDA; update the driver, or make CUDA_ARCHS=%d%d",
                         p.name, p.major, p.minor, CUDART_VERSION / 1000,
                         CUDART_VERSION % 1000 / 10, p.major, p.minor);
    const bool turing = p.major > 7 || (p.major == 7 && p.minor >= 5);
    return kiln_fail(
        err, KILN_E_DEVICE, "this build has no code for the %s (compute capability %d.%d)%s",
        p.name, p.major, p.minor,
        turing ? "; `make release` compiles it" : ", which is older than CUDA 13 compiles for");
}

/* As nvidia-smi writes it: GPU-, then 8-4-4-4-12 hexadecimal digits. */
void write_uuid(const cudaUUID_t &id, char *out)
{
    const char digits[] = "0123456789abcdef";
    memcpy(out, "GPU-", 4);
    out += 4;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) *out++ = '-';
        *out++ = digits[(id.bytes[i] >> 4) & 15];
        *out++ = digits[id.bytes[i] & 15];
    }
    *out = '\0';
}

} // namespace

extern "C" cudaError_t kiln_context_get(CUcontext *out)
{
    const driver &d = the_driver();
    if (d.error != cudaSuccess) return d.error;
    const CUresult r = d.get(out);
    if (r == CUDA_SUCCESS) return cudaSuccess;
    if (r != CUDA_ERROR_NOT_INITIALIZED) return cudaErrorUnknown;
    *out = nullptr; /* CUDA was not used yet: no context is current */
    return cudaSuccess;
}

extern "C" cudaError_t kiln_context_set(CUcontext context)
{
    const driver &d = the_driver();
    if (d.error != cudaSuccess) return d.error;
    return d.set(context) == CUDA_SUCCESS ? cudaSuccess : cudaErrorUnknown;
}

extern "C" kiln_status kiln_cuda_fail(kiln_error *err, int device, cudaError_t e, const char *what,
                                      const char *file, int line)
{
    (void)cudaGetLastError();
    return kiln_fail(err, KILN_E_DEVICE, "'%s' failed on CUDA device %d: %s (%s), %s:%d", what,
                     device, cudaGetErrorString(e), cudaGetErrorName(e), file, line);
}

kiln::entry::entry(const kiln_exec *x, const char *name) : guard(x->device)
{
    nvtxRangePushA(name);
}
kiln::entry::~entry() { nvtxRangePop(); }

extern "C" void kiln_range_push(const char *name) { nvtxRangePushA(name); }
extern "C" void kiln_range_pop(void) { nvtxRangePop(); }

extern "C" uint32_t kiln_device_built_version(void) { return CUDART_VERSION; }
extern "C" uint32_t kiln_device_built_arch(void) { return KILN_CUDA_ARCH_LEAST; }
extern "C" const char *kiln_device_built_archs(void) { return KILN_CUDA_ARCHS; }

extern "C" kiln_status kiln_device_open(int device, kiln_device_info *out, kiln_error *err)
{
    const kiln_exec exec = only(device), *x = &exec;
    memset(out, 0, sizeof *out);
    KILN_TRY(check_versions(out, err));
    int devices = 0;
    CUDA_TRY(cudaGetDeviceCount(&devices));
    if (device < 0 || device >= devices)
        return kiln_fail(err, KILN_E_DEVICE, "there is no CUDA device %d; this process sees %d",
                         device, devices);
    const kiln::device_guard guard(device);
    CUDA_ENTER(guard);
    cudaDeviceProp p;
    CUDA_TRY(cudaGetDeviceProperties(&p, device));
    static_assert(sizeof p.name == sizeof out->name, "a device's name is copied whole");
    memcpy(out->name, p.name, sizeof p.name);
    write_uuid(p.uuid, out->uuid);
    out->major = static_cast<uint32_t>(p.major);
    out->minor = static_cast<uint32_t>(p.minor);
    KILN_TRY(check_code(x, p, err));
    size_t left = 0, total = 0;
    CUDA_TRY(cudaMemGetInfo(&left, &total));
    out->free_bytes = left;
    out->total_bytes = total;
    return KILN_OK;
}

extern "C" kiln_status kiln_device_stream_new(int device, bool urgent, struct CUstream_st **out,
                                              kiln_error *err)
{
    const kiln_exec exec = only(device), *x = &exec;
    const kiln::device_guard guard(device);
    CUDA_ENTER(guard);
    int low = 0, high = 0;
    CUDA_TRY(cudaDeviceGetStreamPriorityRange(&low, &high));
    CUDA_TRY(cudaStreamCreateWithPriority(out, cudaStreamNonBlocking, urgent ? high : low));
    return KILN_OK;
}

extern "C" void kiln_device_stream_free(int device, struct CUstream_st *stream)
{
    if (!stream) return;
    const kiln::device_guard guard(device);
    /* nothing can be done; not the next call's error */
    if (cudaStreamDestroy(stream) != cudaSuccess) (void)cudaGetLastError();
}

extern "C" kiln_status kiln_device_alloc(int device, size_t bytes, void **out, kiln_error *err)
{
    const kiln_exec exec = only(device), *x = &exec;
    const kiln::device_guard guard(device);
    CUDA_ENTER(guard);
    const cudaError_t e = cudaMalloc(out, bytes > 0 ? bytes : 1);
    if (e == cudaSuccess) return KILN_OK;
    if (e != cudaErrorMemoryAllocation)
        return kiln_cuda_fail(err, device, e, "cudaMalloc", __FILE__, __LINE__);
    size_t left = 0, total = 0;
    (void)cudaGetLastError();
    CUDA_TRY(cudaMemGetInfo(&left, &total));
    return kiln_fail(err, KILN_E_CAP, "CUDA device %d has %zu MiB free, but %zu MiB are needed",
                     device, left >> 20, (bytes >> 20) + 1);
}

extern "C" void kiln_device_free(int device, void *p)
{
    if (!p) return;
    const kiln::device_guard guard(device);
    if (cudaFree(p) != cudaSuccess) (void)cudaGetLastError(); /* as above */
}

/* What a copy or a wait reports may be the failure of a kernel before it. */
static kiln_status tell_device_failure(const kiln_exec *x, cudaError_t e, const char *what,
                                       int line, kiln_error *err)
{
    if (e == cudaSuccess) return KILN_OK;
    (void)kiln_cuda_fail(err, x->device, e, what, __FILE__, line);
    if (!x->sync) kiln_note(err, "an operation that was started before (--sync names its kernel)");
    return KILN_E_DEVICE;
}

extern "C" kiln_status kiln_device_copy_in(const kiln_exec *x, void *device_to,
                                           const void *host_from, size_t bytes, kiln_error *err)
{
    if (bytes == 0) return KILN_OK;
    const kiln::device_guard guard(x->device);
    CUDA_ENTER(guard);
    return tell_device_failure(
        x, cudaMemcpyAsync(device_to, host_from, bytes, cudaMemcpyHostToDevice, x->stream),
        "cudaMemcpyAsync", __LINE__, err);
}

extern "C" kiln_status kiln_device_copy_out(const kiln_exec *x, void *host_to,
                                            const void *device_from, size_t bytes, kiln_error *err)
{
    if (bytes == 0) return KILN_OK;
    const kiln::device_guard guard(x->device);
    CUDA_ENTER(guard);
    return tell_device_failure(
        x, cudaMemcpyAsync(host_to, device_from, bytes, cudaMemcpyDeviceToHost, x->stream),
        "cudaMemcpyAsync", __LINE__, err);
}

extern "C" kiln_status kiln_device_copy_out_beside(const kiln_exec *x, struct CUevent_st *mark,
                                                   void *host_to, const void *device_from,
                                                   size_t bytes, kiln_error *err)
{
    if (bytes == 0) return KILN_OK;
    if (!x->side) return kiln_device_copy_out(x, host_to, device_from, bytes, err);
    const kiln::device_guard guard(x->device);
    CUDA_ENTER(guard);
    CUDA_TRY(cudaStreamWaitEvent(x->side, mark, 0));
    return tell_device_failure(
        x, cudaMemcpyAsync(host_to, device_from, bytes, cudaMemcpyDeviceToHost, x->side),
        "cudaMemcpyAsync", __LINE__, err);
}

extern "C" kiln_status kiln_device_mark_new(int device, struct CUevent_st **out, kiln_error *err)
{
    const kiln_exec exec = only(device), *x = &exec;
    const kiln::device_guard guard(device);
    CUDA_ENTER(guard);
    CUDA_TRY(cudaEventCreateWithFlags(out, cudaEventDisableTiming));
    return KILN_OK;
}

extern "C" void kiln_device_mark_free(int device, struct CUevent_st *mark)
{
    if (!mark) return;
    const kiln::device_guard guard(device);
    /* as of a stream that cannot be freed */
    if (cudaEventDestroy(mark) != cudaSuccess) (void)cudaGetLastError();
}

extern "C" kiln_status kiln_device_mark(const kiln_exec *x, struct CUevent_st *mark,
                                        kiln_error *err)
{
    const kiln::device_guard guard(x->device);
    CUDA_ENTER(guard);
    CUDA_TRY(cudaEventRecord(mark, x->stream));
    return KILN_OK;
}

extern "C" kiln_status kiln_device_fill(const kiln_exec *x, void *device_to, unsigned char byte,
                                        size_t bytes, kiln_error *err)
{
    if (bytes == 0) return KILN_OK;
    const kiln::device_guard guard(x->device);
    CUDA_ENTER(guard);
    return tell_device_failure(x, cudaMemsetAsync(device_to, byte, bytes, x->stream),
                               "cudaMemsetAsync", __LINE__, err);
}

extern "C" kiln_status kiln_device_fill_rows(const kiln_exec *x, void *device_to, size_t pitch,
                                             unsigned char byte, size_t width, size_t height,
                                             kiln_error *err)
{
    if (width == 0 || height == 0) return KILN_OK;
    const kiln::device_guard guard(x->device);
    CUDA_ENTER(guard);
    return tell_device_failure(x,
                               cudaMemset2DAsync(device_to, pitch, byte, width, height, x->stream),
                               "cudaMemset2DAsync", __LINE__, err);
}

extern "C" bool kiln_device_pin(int device, void *p, size_t bytes)
{
    const kiln::device_guard guard(device);
    if (guard.error == cudaSuccess &&
        cudaHostRegister(p, bytes, cudaHostRegisterDefault) == cudaSuccess)
        return true;
    (void)cudaGetLastError(); /* not the next call's error */
    return false;
}

extern "C" void kiln_device_unpin(int device, void *p)
{
    const kiln::device_guard guard(device);
    /* as of a stream that cannot be freed */
    if (cudaHostUnregister(p) != cudaSuccess) (void)cudaGetLastError();
}

extern "C" kiln_status kiln_device_wait(const kiln_exec *x, kiln_error *err)
{
    const kiln::device_guard guard(x->device);
    CUDA_ENTER(guard);
    KILN_TRY(tell_device_failure(x, cudaStreamSynchronize(x->stream), "cudaStreamSynchronize",
                                 __LINE__, err));
    return x->side ? tell_device_failure(x, cudaStreamSynchronize(x->side), "cudaStreamSynchronize",
                                         __LINE__, err)
                   : KILN_OK;
}

/* An error that stays is said again by every later call; one that does not stay, by what opens the
 * device anew. */
extern "C" bool kiln_device_is_lost(int device)
{
    const kiln::device_guard guard(device);
    size_t left = 0, total = 0;
    cudaError_t e = guard.error;
    if (e == cudaSuccess) e = cudaMemGetInfo(&left, &total);
    if (e != cudaSuccess) (void)cudaGetLastError();
    return is_of_device(e);
}

extern "C" kiln_status kiln_device_provoke(const kiln_exec *x, kiln_error *err)
{
    const kiln::device_guard guard(x->device);
    CUDA_ENTER(guard);
    LAUNCH(write_astray, 1, 1, 0, reinterpret_cast<uint64_t *>(ASTRAY));
    KILN_TRY(tell_device_failure(x, cudaStreamSynchronize(x->stream), "cudaStreamSynchronize",
                                 __LINE__, err));
    return kiln_fail(err, KILN_E_DEVICE, "CUDA device %d let a write to address %zu pass",
                     x->device, size_t(ASTRAY));
}
