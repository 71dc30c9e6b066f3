/* The few functions of NVML that we need, declared here: its header comes with the CUDA toolkit, which a build without CUDA
 * does not have. Their types and numbers are a stable ABI, hence the _v2 of some names. It is neither shut down nor closed:
 * the process that asks ends at once, and an ending has one thing less that can hang. */
#include "stages/engine/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct nvml_device *device; /* nvmlDevice_t */
enum { SUCCESS = 0, DRIVER_NOT_LOADED = 9, LIBRARY_NOT_FOUND = 12, MIG_ENABLED = 1 };

/* name in the library, our name, result, arguments */
#define NVML_MAP(X)                                                            \
    X("nvmlInit_v2", init, int, (void))                                        \
    X("nvmlErrorString", error_string, const char *, (int))                    \
    X("nvmlSystemGetCudaDriverVersion_v2", driver_version, int, (int *))       \
    X("nvmlDeviceGetCount_v2", count, int, (unsigned *))                       \
    X("nvmlDeviceGetHandleByIndex_v2", device_at, int, (unsigned, device *))   \
    X("nvmlDeviceGetUUID", uuid, int, (device, char *, unsigned))              \
    X("nvmlDeviceGetName", name, int, (device, char *, unsigned))              \
    X("nvmlDeviceGetCudaComputeCapability", arch, int, (device, int *, int *)) \
    X("nvmlDeviceGetMigMode", mig_mode, int, (device, unsigned *, unsigned *)) \
    X("nvmlDeviceGetMaxMigDeviceCount", mig_count, int, (device, unsigned *))  \
    X("nvmlDeviceGetMigDeviceHandleByIndex", mig_device_at, int, (device, unsigned, device *))

typedef struct {
#define X(symbol, field, result, arguments) result(*field) arguments;
    NVML_MAP(X)
#undef X
} nvml;

static bool find_symbols(void *library, nvml *n)
{
#define X(symbol, field, result, arguments)         \
    *(void **)(&n->field) = dlsym(library, symbol); \
    if (!n->field) return false;
    NVML_MAP(X)
#undef X
    return true;
}

/* One that cannot be asked (no permission, fallen off the bus) is left out. */
static void add(const nvml *n, device d, uint32_t gpu, uint32_t arch, kiln_gpu_list *out)
{
    if (out->n == KILN_GPUS_MAX) return;
    kiln_gpu *g = &out->items[out->n];
    *g = (kiln_gpu){.gpu = gpu, .arch = arch};
    if (n->uuid(d, g->uuid, sizeof g->uuid) != SUCCESS) return;
    if (n->name(d, g->name, sizeof g->name) != SUCCESS) (void)snprintf(g->name, sizeof g->name, "GPU");
    g->uuid[sizeof g->uuid - 1] = g->name[sizeof g->name - 1] = '\0';
    out->n++;
}

static uint32_t arch_of(const nvml *n, device d)
{
    int major = 0, minor = 0;
    if (n->arch(d, &major, &minor) != SUCCESS || major < 0 || minor < 0) return 0;
    return 10 * (uint32_t)major + (uint32_t)minor;
}

/* A GPU in MIG mode computes through its instances only; their compute capability is the GPU's. */
static void add_gpu(const nvml *n, uint32_t gpu, kiln_gpu_list *out)
{
    device d, instance;
    unsigned mode = 0, pending = 0, most = 0;
    if (n->device_at(gpu, &d) != SUCCESS) return;
    const uint32_t arch = arch_of(n, d);
    if (n->mig_mode(d, &mode, &pending) != SUCCESS || mode != MIG_ENABLED) {
        add(n, d, gpu, arch, out);
        return;
    }
    if (n->mig_count(d, &most) != SUCCESS) return;
    for (unsigned i = 0; i < most; i++)
        if (n->mig_device_at(d, i, &instance) == SUCCESS) add(n, instance, gpu, arch, out);
}

/* Of the libcuda that a worker would load, which may be newer than the driver (packages for forward compatibility). */
static void ask_driver(const nvml *n, kiln_gpu_list *out)
{
    int version = 0;
    const int e = n->driver_version(&version);
    if (e == SUCCESS && version > 0) out->driver_version = (uint32_t)version;
    if (e == LIBRARY_NOT_FOUND)
        (void)snprintf(out->why_none, sizeof out->why_none, "NVIDIA's driver is here, but not its CUDA library (libcuda.so.1)");
}

static void ask(const nvml *n, const char *name, kiln_gpu_list *out)
{
    unsigned gpus = 0;
    int e = n->init();
    if (e == SUCCESS) e = n->count(&gpus);
    if (e != SUCCESS) {
        (void)snprintf(out->why_none, sizeof out->why_none, "%.120s says: %.100s", name, n->error_string(e));
        out->broken = e != DRIVER_NOT_LOADED; /* a machine that has the library and no GPU */
        return;
    }
    ask_driver(n, out);
    for (uint32_t gpu = 0; gpu < gpus; gpu++) add_gpu(n, gpu, out);
    out->n_gpus = gpus;
}

void kiln_nvml_ask(kiln_gpu_list *out)
{
    const char *named = getenv("KILN_NVML"), *name = named && *named ? named : "libnvidia-ml.so.1";
    nvml n;
    memset(out, 0, sizeof *out);
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        (void)snprintf(out->why_none, sizeof out->why_none, "no NVIDIA driver is found (%.200s)", dlerror());
    else if (find_symbols(library, &n))
        ask(&n, name, out);
    else
        (void)snprintf(out->why_none, sizeof out->why_none, "%.120s is not NVML, or older than CUDA 11", name);
}
