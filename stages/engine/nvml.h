/* nvml -- the GPUs of this machine, as NVIDIA's management library shows them, so that the parent needs no CUDA.
 *
 * The library is loaded for the question and closed again: it makes no context and loads no libcuda. It is libnvidia-ml.so.1,
 * or what KILN_NVML in the environment names. That none answers is no failure here, only a reason.
 *
 * Source: NVML API Reference, "Initialization and Cleanup", "Device Queries", "Multi Instance GPU Management".
 */
#ifndef KILN_STAGES_NVML_H
#define KILN_STAGES_NVML_H

#include <stdint.h>

enum { KILN_GPUS_MAX = 64 };

/* A GPU, or one instance of a GPU that is cut into instances (MIG). */
typedef struct {
    char name[96], uuid[96]; /* "NVIDIA H200", "GPU-..." or "MIG-..." */
    uint32_t gpu;            /* which GPU by PCI address, as nvidia-smi counts; of an instance: which it is cut from */
} kiln_gpu;

typedef struct {
    kiln_gpu items[KILN_GPUS_MAX]; /* those that may be used */
    uint32_t n;
    uint32_t n_gpus;    /* in the machine */
    char driver[80];    /* its version, such as "580.159.04"; "" where it is not known */
    char why_none[256]; /* why NVML did not answer; "" when it did, even with no GPU */
} kiln_gpu_list;

void kiln_gpus_list(kiln_gpu_list *out);

#endif
