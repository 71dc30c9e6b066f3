/* The few functions of NVML that we need, declared here, because NVML's header comes with the CUDA
 * toolkit, which a build without CUDA does not have. Their types and numbers are a stable ABI,
 * hence the _v2 of some names. The library is neither shut down nor closed: the process that asks
 * ends right afterwards, and shutting down could hang. */
#include "stages/engine/devices/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* nvmlDevice_t */
typedef struct nvml_device *device;
/* nvmlReturn_t */
enum {
    SUCCESS = 0,
    DRIVER_NOT_LOADED = 9,
    LIBRARY_NOT_FOUND = 12,
    GPU_IS_LOST = 15,
    RESET_REQUIRED = 16
};
/* nvmlEnableState_t, and of nvmlDeviceGetMigMode */
enum { ENABLED = 1 };
/* nvmlMemoryErrorType_t, nvmlEccCounterType_t */
enum { UNCORRECTED = 1, VOLATILE = 0 };
enum { MODE_PROHIBITED = 2, MODE_EXCLUSIVE_PROCESS = 3 }; /* nvmlComputeMode_t */

typedef struct {
    unsigned long long total, free, used;
} memory; /* nvmlMemory_t */

typedef struct {
    char old_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} pci_info; /* nvmlPciInfo_t */

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

/* Functions that may be NULL: NVML of CUDA 11.0 lacks remapped rows, and stand-ins of tests lack
 * more. */
#define NVML_OPTIONAL_MAP(X)                                                                    \
    X("nvmlSystemGetDriverVersion", driver_text, int, (char *, unsigned))                       \
    X("nvmlDeviceGetMemoryInfo", memory_info, int, (device, memory *))                          \
    X("nvmlDeviceGetPciInfo_v3", pci_info, int, (device, pci_info *))                           \
    X("nvmlDeviceGetEccMode", ecc_mode, int, (device, int *, int *))                            \
    X("nvmlDeviceGetTotalEccErrors", ecc_errors, int, (device, int, int, unsigned long long *)) \
    X("nvmlDeviceGetRetiredPagesPendingStatus", pages_pending, int, (device, int *))            \
    X("nvmlDeviceGetRemappedRows", rows, int,                                                   \
      (device, unsigned *, unsigned *, unsigned *, unsigned *))                                 \
    X("nvmlDeviceGetComputeMode", compute_mode, int, (device, int *))

typedef struct {
#define X(symbol, field, result, arguments) result(*field) arguments;
    NVML_MAP(X)
    NVML_OPTIONAL_MAP(X)
#undef X
} nvml;

static bool find_symbols(void *library, nvml *n)
{
#define X(symbol, field, result, arguments)         \
    *(void **)(&n->field) = dlsym(library, symbol); \
    if (!n->field) return false;
    NVML_MAP(X)
#undef X
#define X(symbol, field, result, arguments) *(void **)(&n->field) = dlsym(library, symbol);
    NVML_OPTIONAL_MAP(X)
#undef X
    return true;
}

static void ask_memory(const nvml *n, device d, kiln_gpu *g)
{
    memory m = {0};
    if (!n->memory_info || n->memory_info(d, &m) != SUCCESS) return;
    g->total_bytes = m.total;
    g->free_bytes = m.free;
}

static void ask_health(const nvml *n, device d, kiln_gpu *g)
{
    int now = 0, later = 0, waits = 0, mode = 0;
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    unsigned long long errors = 0;
    g->has_ecc = n->ecc_mode && n->ecc_mode(d, &now, &later) == SUCCESS && now == ENABLED;
    if (g->has_ecc && n->ecc_errors && n->ecc_errors(d, UNCORRECTED, VOLATILE, &errors) == SUCCESS)
        g->ecc_errors = errors;
    if (n->pages_pending && n->pages_pending(d, &waits) == SUCCESS)
        g->repair_pending = waits == ENABLED;
    if (n->rows && n->rows(d, &corrected, &uncorrected, &pending, &failed) == SUCCESS) {
        g->repair_pending = g->repair_pending || pending;
        g->repair_failed = failed != 0;
    }
    if (!n->compute_mode || n->compute_mode(d, &mode) != SUCCESS) return;
    g->prohibited = mode == MODE_PROHIBITED;
    g->exclusive = mode == MODE_EXCLUSIVE_PROCESS;
}

/* Writes the address as sysfs does: the domain has four hexadecimal digits, where NVML's own text
 * has eight. A GPU is function 0.
 */
static void ask_address(const nvml *n, device d, kiln_gpu *g)
{
    pci_info p = {0};
    if (n->pci_info && n->pci_info(d, &p) == SUCCESS)
        (void)snprintf(g->pci, sizeof g->pci, "%04x:%02x:%02x.0", p.domain & 0xfffff, p.bus & 0xff,
                       p.device & 0xff);
}

static void ask_arch(const nvml *n, device d, kiln_gpu *g)
{
    int major = 0, minor = 0;
    if (n->arch(d, &major, &minor) == SUCCESS && major >= 0 && minor >= 0)
        g->arch = 10 * (uint32_t)major + (uint32_t)minor;
}

static void add_lost(const nvml *n, uint32_t gpu, int e, kiln_gpu_list *out)
{
    if (out->n_lost == KILN_GPUS_LOST_MAX) return;
    kiln_gpu_lost *lost = &out->lost[out->n_lost++];
    lost->gpu = gpu;
    (void)snprintf(lost->why, sizeof lost->why, "%s", n->error_string(e));
}

/* Describes a GPU, or an instance of the GPU that of_gpu describes. One that may not be asked,
 * because a container hides it, is left out. Returns SUCCESS, or the answer of the call that
 * failed. */
static int add(const nvml *n, device d, const kiln_gpu *of_gpu, kiln_gpu_list *out)
{
    kiln_gpu g = *of_gpu;
    const int e = n->uuid(d, g.uuid, sizeof g.uuid);
    if (e != SUCCESS || out->n == KILN_GPUS_MAX) return e;
    if (n->name(d, g.name, sizeof g.name) != SUCCESS) (void)snprintf(g.name, sizeof g.name, "GPU");
    g.uuid[sizeof g.uuid - 1] = g.name[sizeof g.name - 1] = '\0';
    ask_memory(n, d, &g);
    out->items[out->n++] = g;
    return SUCCESS;
}

/* Describes the instances of a GPU in MIG mode, because only they can compute. */
static void add_gpu(const nvml *n, uint32_t gpu, kiln_gpu_list *out)
{
    device d, instance;
    unsigned mode = 0, pending = 0, most = 0;
    kiln_gpu whole = {.gpu = gpu};
    int e = n->device_at(gpu, &d);
    if (e == SUCCESS) {
        ask_arch(n, d, &whole);
        ask_address(n, d, &whole);
        ask_health(n, d, &whole);
        if (n->mig_mode(d, &mode, &pending) != SUCCESS || mode != ENABLED)
            e = add(n, d, &whole, out);
    }
    if (e == GPU_IS_LOST || e == RESET_REQUIRED) add_lost(n, gpu, e, out);
    if (e != SUCCESS || mode != ENABLED || n->mig_count(d, &most) != SUCCESS) return;
    for (unsigned i = 0; i < most; i++)
        if (n->mig_device_at(d, i, &instance) == SUCCESS) (void)add(n, instance, &whole, out);
}

/* Asks for the version of the libcuda that a worker would load. It can be newer than the driver
 * (packages for forward compatibility).
 */
static void ask_driver(const nvml *n, kiln_gpu_list *out)
{
    int version = 0;
    const int e = n->driver_version(&version);
    if (!n->driver_text || n->driver_text(out->driver, sizeof out->driver) != SUCCESS)
        out->driver[0] = '\0';
    if (e == SUCCESS && version > 0) out->driver_version = (uint32_t)version;
    if (e == LIBRARY_NOT_FOUND)
        (void)snprintf(out->why_none, sizeof out->why_none,
                       "NVIDIA's driver is here, but not its CUDA library (libcuda.so.1)");
}

static void ask(const nvml *n, const char *name, kiln_gpu_list *out)
{
    unsigned gpus = 0;
    int e = n->init();
    if (e == SUCCESS) e = n->count(&gpus);
    if (e != SUCCESS) {
        (void)snprintf(out->why_none, sizeof out->why_none, "%.120s says: %.100s", name,
                       n->error_string(e));
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
        (void)snprintf(out->why_none, sizeof out->why_none, "no NVIDIA driver is found (%.200s)",
                       dlerror());
    else if (find_symbols(library, &n))
        ask(&n, name, out);
    else
        (void)snprintf(out->why_none, sizeof out->why_none,
                       "%.120s is not NVML, or older than CUDA 11", name);
}
