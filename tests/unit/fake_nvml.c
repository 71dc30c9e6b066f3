/* A library that answers as NVML would on a machine that the environment describes; devices_test
 * and devices.t build and load it. FAKE_GPUS: how many; FAKE_CUDA: the driver's CUDA version, 0:
 * there is no libcuda; FAKE_ARCH: compute capability of GPU 0, the others have 90; FAKE_MIG: the
 * GPU that is cut into two instances; FAKE_LOST: one that is lost; FAKE_HIDDEN: one that may not be
 * asked; FAKE_FREE: MiB of memory that are free of 1000; FAKE_ECC: errors of GPU 0 that could not
 * be corrected; FAKE_REPAIR: 1: GPU 0 waits for a reset, 2: it cannot be repaired; FAKE_MODE: its
 * compute mode; FAKE_INIT: what nvmlInit_v2 returns; FAKE_END: a signal that it raises, or 0: it
 * never returns. Compiled with -DFAKE_OLD it lacks all that we can do without. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

int nvmlInit_v2(void);
const char *nvmlErrorString(int e);
int nvmlSystemGetCudaDriverVersion_v2(int *version);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d);
int nvmlDeviceGetUUID(void *d, char *text, unsigned size);
int nvmlDeviceGetName(void *d, char *text, unsigned size);
int nvmlDeviceGetCudaComputeCapability(void *d, int *major, int *minor);
int nvmlDeviceGetMigMode(void *d, unsigned *current, unsigned *pending);
int nvmlDeviceGetMaxMigDeviceCount(void *d, unsigned *n);
int nvmlDeviceGetMigDeviceHandleByIndex(void *d, unsigned i, void **instance);

/* A handle: 1 + GPU, and 100 times 1 + instance. */
static int gpu_of(const void *d) { return (int)((size_t)d % 100) - 1; }
static int instance_of(const void *d) { return (int)((size_t)d / 100) - 1; }

int nvmlInit_v2(void)
{
    const int end = number("FAKE_END", -1);
    if (end > 0) {
        (void)signal(end, SIG_DFL); /* a sanitizer's handler would make an exit code of it */
        (void)raise(end);
    }
    while (end == 0) (void)pause();
    return number("FAKE_INIT", 0);
}

const char *nvmlErrorString(int e)
{
    return e == 9 ? "Driver Not Loaded" : e == 15 ? "GPU is lost" : "Unknown Error";
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = number("FAKE_CUDA", 13000);
    return *version ? 0 : 12; /* NVML_ERROR_LIBRARY_NOT_FOUND */
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
    *n = (unsigned)number("FAKE_GPUS", 0);
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d)
{
    *d = (void *)(size_t)(i + 1);
    if ((int)i == number("FAKE_LOST", -1)) return 15;   /* NVML_ERROR_GPU_IS_LOST */
    return (int)i == number("FAKE_HIDDEN", -1) ? 4 : 0; /* NVML_ERROR_NO_PERMISSION */
}

int nvmlDeviceGetUUID(void *d, char *text, unsigned size)
{
    if (instance_of(d) >= 0)
        (void)snprintf(text, size, "MIG-%d%d111111-0000-0000-0000-000000000000", gpu_of(d),
                       instance_of(d));
    else
        (void)snprintf(text, size, "GPU-%02d000000-0000-0000-0000-000000000000", gpu_of(d));
    return 0;
}

int nvmlDeviceGetName(void *d, char *text, unsigned size)
{
    (void)d;
    (void)snprintf(text, size, "NVIDIA Fake");
    return 0;
}

int nvmlDeviceGetCudaComputeCapability(void *d, int *major, int *minor)
{
    const int arch = gpu_of(d) == 0 ? number("FAKE_ARCH", 90) : 90;
    *major = arch / 10;
    *minor = arch % 10;
    return 0;
}

int nvmlDeviceGetMigMode(void *d, unsigned *current, unsigned *pending)
{
    *current = *pending = gpu_of(d) == number("FAKE_MIG", -1);
    return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(void *d, unsigned *n)
{
    (void)d;
    *n = 7;
    return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *d, unsigned i, void **instance)
{
    *instance = (void *)((size_t)d + 100 * (size_t)(i + 1));
    return i < 2 ? 0 : 6; /* NVML_ERROR_NOT_FOUND */
}

#ifndef FAKE_OLD
typedef struct {
    unsigned long long total, free, used;
} fake_memory;
typedef struct {
    char old_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} fake_pci;

int nvmlSystemGetDriverVersion(char *text, unsigned size);
int nvmlDeviceGetMemoryInfo(void *d, fake_memory *m);
int nvmlDeviceGetPciInfo_v3(void *d, fake_pci *p);
int nvmlDeviceGetEccMode(void *d, int *current, int *pending);
int nvmlDeviceGetTotalEccErrors(void *d, int type, int counter, unsigned long long *n);
int nvmlDeviceGetRetiredPagesPendingStatus(void *d, int *pending);
int nvmlDeviceGetRemappedRows(void *d, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failed);
int nvmlDeviceGetComputeMode(void *d, int *mode);

int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    (void)snprintf(text, size, "999.1");
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *d, fake_memory *m)
{
    const unsigned long long mib = 1 << 20, total = (instance_of(d) >= 0 ? 100 : 1000) * mib;
    const unsigned long long free_bytes = (unsigned long long)number("FAKE_FREE", 900) * mib;
    *m = (fake_memory){total, free_bytes < total ? free_bytes : total, 0};
    m->used = m->total - m->free;
    return 0;
}

/* As NVML, it knows the address of the whole GPU only. */
int nvmlDeviceGetPciInfo_v3(void *d, fake_pci *p)
{
    if (instance_of(d) >= 0) return 2; /* NVML_ERROR_INVALID_ARGUMENT */
    *p = (fake_pci){.domain = 0, .bus = 0x1a + (unsigned)gpu_of(d)};
    (void)snprintf(p->bus_id, sizeof p->bus_id, "%08X:%02X:%02X.0", p->domain, p->bus, p->device);
    return 0;
}

int nvmlDeviceGetEccMode(void *d, int *current, int *pending)
{
    (void)d;
    *current = *pending = 1;
    return 0;
}

int nvmlDeviceGetTotalEccErrors(void *d, int type, int counter, unsigned long long *n)
{
    *n =
        type == 1 && counter == 0 && gpu_of(d) == 0 ? (unsigned long long)number("FAKE_ECC", 0) : 0;
    return 0;
}

int nvmlDeviceGetRetiredPagesPendingStatus(void *d, int *pending)
{
    (void)d, (void)pending;
    return 3; /* NVML_ERROR_NOT_SUPPORTED, as where rows are remapped */
}

int nvmlDeviceGetRemappedRows(void *d, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failed)
{
    const int repair = gpu_of(d) == 0 ? number("FAKE_REPAIR", 0) : 0;
    *corrected = 0;
    *uncorrected = repair != 0;
    *pending = repair == 1;
    *failed = repair == 2;
    return 0;
}

int nvmlDeviceGetComputeMode(void *d, int *mode)
{
    *mode = gpu_of(d) == 0 ? number("FAKE_MODE", 0) : 0;
    return 0;
}
#endif
