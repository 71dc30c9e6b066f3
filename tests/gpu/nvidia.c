#include "tests/gpu/nvidia.h"

#include "tests/gpu/call.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Signatures as in cuda.h and nvml.h of CUDA 13.0; handles as the integers and pointers that they
 * are. */
typedef struct {
    unsigned char bytes[16];
} driver_uuid;
typedef struct {
    unsigned long long total, free, used;
} nvml_memory;
typedef struct {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
} nvml_process;

#define DRIVER_MAP(X)                                       \
    X(cuInit, int (*)(unsigned))                            \
    X(cuDeviceGetCount, int (*)(int *))                     \
    X(cuDeviceGet, int (*)(int *, int))                     \
    X(cuDeviceGetUuid_v2, int (*)(driver_uuid *, int))      \
    X(cuCtxGetCurrent, int (*)(nv_context *))               \
    X(cuCtxSetCurrent, int (*)(nv_context))                 \
    X(cuDevicePrimaryCtxRetain, int (*)(nv_context *, int)) \
    X(cuDevicePrimaryCtxRelease_v2, int (*)(int))           \
    X(cuCtxCreate_v2, int (*)(nv_context *, unsigned, int)) \
    X(cuCtxDestroy_v2, int (*)(nv_context))
#define NVML_MAP(X)                                              \
    X(nvmlInit_v2, int (*)(void))                                \
    X(nvmlDeviceGetHandleByUUID, int (*)(const char *, void **)) \
    X(nvmlDeviceGetMemoryInfo, int (*)(void *, nvml_memory *))   \
    X(nvmlDeviceGetComputeRunningProcesses_v3, int (*)(void *, unsigned *, nvml_process *))

static struct {
#define X(name, type) __typeof__(type) name;
    DRIVER_MAP(X) NVML_MAP(X)
#undef X
} nv;

#define NV_MUST(call)                                            \
    do {                                                         \
        const int result_ = nv.call;                             \
        if (result_ != 0) {                                      \
            char text_[64];                                      \
            snprintf(text_, sizeof text_, "result %d", result_); \
            call_off(#call, text_);                              \
        }                                                        \
    } while (0)

/* dlsym gives void *, which C does not turn into a function's address by itself. */
#define FIND(library, name)                                 \
    do {                                                    \
        void *at_ = dlsym(library, #name);                  \
        if (!at_) call_off(#name, "is not in the library"); \
        memcpy(&nv.name, &at_, sizeof at_);                 \
    } while (0)

int nv_open(void)
{
    int devices = 0;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!driver || !nvml) return 0; /* both stay for the life of the process */
#define X(name, type) FIND(driver, name);
    DRIVER_MAP(X)
#undef X
#define X(name, type) FIND(nvml, name);
    NVML_MAP(X)
#undef X
    if (nv.cuInit(0) != 0 || nv.cuDeviceGetCount(&devices) != 0 || devices == 0) return 0;
    NV_MUST(nvmlInit_v2());
    return devices;
}

nv_context nv_current(void)
{
    nv_context c = NULL;
    NV_MUST(cuCtxGetCurrent(&c));
    return c;
}

void nv_make_current(nv_context c) { NV_MUST(cuCtxSetCurrent(c)); }

static int handle_of(int device)
{
    int handle = 0;
    NV_MUST(cuDeviceGet(&handle, device));
    return handle;
}

nv_context nv_primary(int device)
{
    nv_context c = NULL;
    NV_MUST(cuDevicePrimaryCtxRetain(&c, handle_of(device)));
    return c;
}

void nv_primary_release(int device) { NV_MUST(cuDevicePrimaryCtxRelease_v2(handle_of(device))); }

nv_context nv_foreign(int device)
{
    nv_context c = NULL, was = nv_current();
    NV_MUST(cuCtxCreate_v2(&c, 0, handle_of(device)));
    nv_make_current(was); /* creating makes it current */
    return c;
}

void nv_foreign_free(nv_context c) { NV_MUST(cuCtxDestroy_v2(c)); }

/* NVML's handle of a device; its own numbers know nothing of CUDA_VISIBLE_DEVICES. */
static void *monitor_of(int device)
{
    driver_uuid id;
    char text[48] = "GPU-";
    void *monitor = NULL;
    size_t at = 4;
    NV_MUST(cuDeviceGetUuid_v2(&id, handle_of(device)));
    for (unsigned i = 0; i < 16; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%02x",
                               i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id.bytes[i]);
    NV_MUST(nvmlDeviceGetHandleByUUID(text, &monitor));
    return monitor;
}

uint64_t nv_used_bytes(int device)
{
    nvml_memory m;
    NV_MUST(nvmlDeviceGetMemoryInfo(monitor_of(device), &m));
    return m.used;
}

bool nv_has_this_process(int device)
{
    nvml_process found[64];
    unsigned n = sizeof found / sizeof *found;
    NV_MUST(nvmlDeviceGetComputeRunningProcesses_v3(monitor_of(device), &n, found));
    for (unsigned i = 0; i < n; i++)
        if (found[i].pid == (unsigned)getpid()) return true;
    return false;
}
