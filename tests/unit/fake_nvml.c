/* A library that answers as NVML would on a machine that the environment describes; devices_test and devices.t build and load
 * it. FAKE_GPUS: how many; FAKE_CUDA: the driver's CUDA version, 0: there is no libcuda; FAKE_ARCH: compute capability of GPU 0,
 * the others have 90; FAKE_MIG: the GPU that is cut into two instances; FAKE_LOST: one that cannot be asked; FAKE_INIT: what
 * nvmlInit_v2 returns; FAKE_END: a signal that it raises, or 0: it never returns. */
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

const char *nvmlErrorString(int e) { return e == 9 ? "Driver Not Loaded" : "Unknown Error"; }

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
    return (int)i == number("FAKE_LOST", -1) ? 15 : 0; /* NVML_ERROR_GPU_IS_LOST */
}

int nvmlDeviceGetUUID(void *d, char *text, unsigned size)
{
    if (instance_of(d) >= 0)
        (void)snprintf(text, size, "MIG-%d%d111111-0000-0000-0000-000000000000", gpu_of(d), instance_of(d));
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
