/* nvml -- the GPUs of this machine, as NVIDIA's management library shows them, so that the parent needs no CUDA.
 *
 * NVML maps libcuda into the process that asks it, and keeps it there (driver 580.159); a driver that is ill may crash or hang
 * whoever asks. So a child of its own asks and ends: nothing of NVIDIA's is ever mapped here. The library is
 * libnvidia-ml.so.1, or what KILN_NVML in the environment names. That none answers is no failure, only a reason.
 *
 * Source: NVML API Reference, "Initialization and Cleanup", "System Queries", "Device Queries", "Device Enums",
 * "Device Structs", "Multi Instance GPU Management".
 */
#ifndef KILN_STAGES_NVML_H
#define KILN_STAGES_NVML_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { KILN_GPUS_MAX = 64 };

/* A GPU, or one instance of a GPU that is cut into instances (MIG): then memory is the instance's, the rest is the GPU's. */
typedef struct {
    char name[96], uuid[96];          /* "NVIDIA H200", "GPU-..." or "MIG-..." */
    char pci[16];                     /* "0000:1b:00.0", as /sys/bus/pci/devices has it; "" not known */
    uint32_t gpu;                     /* which GPU by PCI address, as nvidia-smi counts; of an instance: which it is cut from */
    uint32_t arch;                    /* compute capability: 90 is 9.0; 0: not known */
    uint64_t total_bytes, free_bytes; /* of memory; 0 and 0: not known */
    uint64_t ecc_errors;              /* that could not be corrected, since the driver was loaded */
    bool has_ecc;                     /* errors of memory are found, and most are corrected; false: off, none or not known */
    bool repair_pending;              /* bad memory is replaced when the GPU is reset next */
    bool repair_failed;               /* it cannot be replaced any more */
    bool prohibited;                  /* nobody may compute here (compute mode) */
    bool exclusive;                   /* only one process may */
} kiln_gpu;

/* A GPU that is in the machine and does not work. */
typedef struct {
    uint32_t gpu;
    char why[64]; /* NVML's words: "GPU is lost" */
} kiln_gpu_lost;

enum { KILN_GPUS_LOST_MAX = 16 };

typedef struct {
    kiln_gpu items[KILN_GPUS_MAX]; /* those that may be used */
    uint32_t n;
    kiln_gpu_lost lost[KILN_GPUS_LOST_MAX];
    uint32_t n_lost;
    uint32_t n_gpus;         /* in the machine; more than are in either list where some are hidden */
    uint32_t driver_version; /* CUDA that the driver has: 13000 is 13.0; 0: not known */
    char driver[80];         /* the driver's own version, "580.159"; "" not known */
    bool broken;             /* NVML is here, but failed, crashed or hung: something is wrong with the driver */
    char why_none[256]; /* why none can be used, by what NVML says or does not say; "" when that is no reason, even with no GPU */
} kiln_gpu_list;

/* Asks in a child process, for timeout_ms at most; a child that hangs is killed. From a process with one thread.
 * KILN_E_INTERRUPTED, KILN_E_TERMINATED: a signal came meanwhile; KILN_E_NOMEM: no process can be started. */
kiln_status kiln_gpus_list(unsigned timeout_ms, kiln_gpu_list *out, kiln_error *err) KILN_MUST_CHECK;

/* What that child does: asks in this process, which is to end soon. NVML stays loaded. */
void kiln_nvml_ask(kiln_gpu_list *out);

#endif
