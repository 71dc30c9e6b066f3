/* nvml -- the GPUs of this machine, as NVIDIA's management library (NVML) shows them.
 *
 * Problem. The parent must know which GPUs there are, and must never touch CUDA. But NVML maps libcuda into the process that asks,
 * and keeps it there (driver 580.159); and a broken driver can crash or hang that process.
 * Layout. A child process asks, writes the list into a pipe and ends. The library is libnvidia-ml.so.1, or the one that KILN_NVML
 * in the environment names. A machine without NVML is no failure: the list is empty and says why.
 *
 * Source: NVML API Reference, "Initialization and Cleanup", "System Queries", "Device Queries", "Device Enums",
 * "Device Structs", "Multi Instance GPU Management".
 */
#ifndef KILN_STAGES_ENGINE_DEVICES_NVML_H
#define KILN_STAGES_ENGINE_DEVICES_NVML_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { KILN_GPUS_MAX = 64 };

/* A GPU, or one instance of a GPU in MIG mode. Of an instance, name, uuid and memory are its own; the rest is the GPU's. */
typedef struct {
    char name[96], uuid[96];          /* "NVIDIA H200", "GPU-..." or "MIG-..." */
    char pci[16];                     /* "0000:1b:00.0", as /sys/bus/pci/devices has it; "" not known */
    uint32_t gpu;                     /* number of the GPU in the order of PCI addresses, as nvidia-smi counts */
    uint32_t arch;                    /* compute capability: 90 is 9.0; 0: not known */
    uint64_t total_bytes, free_bytes; /* of device memory; 0 and 0: not known */
    uint64_t ecc_errors;              /* uncorrected memory errors since the driver was loaded */
    bool has_ecc;                     /* error correction is on; false: off, not there or not known */
    bool repair_pending;              /* bad memory will be replaced by the next reset */
    bool repair_failed;               /* bad memory cannot be replaced any more */
    bool prohibited;                  /* compute mode: no process may compute */
    bool exclusive;                   /* compute mode: only one process may */
} kiln_gpu;

/* A GPU that is in the machine but does not work. */
typedef struct {
    uint32_t gpu;
    char why[64]; /* NVML's words: "GPU is lost" */
} kiln_gpu_lost;

enum { KILN_GPUS_LOST_MAX = 16 };

typedef struct {
    kiln_gpu items[KILN_GPUS_MAX]; /* GPUs that work */
    uint32_t n;
    kiln_gpu_lost lost[KILN_GPUS_LOST_MAX];
    uint32_t n_lost;
    uint32_t n_gpus;         /* in the machine, including those that a container hides and that are in neither list */
    uint32_t driver_version; /* version of CUDA in the driver: 13000 is 13.0; 0: not known */
    char driver[80];         /* the driver's own version, "580.159"; "" not known */
    bool broken;             /* NVML exists but failed, crashed or hung: something is wrong with the driver */
    char why_none[256];      /* for people: why no GPU can be used; "" if NVML gives no reason, even if there is no GPU */
} kiln_gpu_list;

/* Asks NVML in a child process, which is killed after timeout_ms. While workers are kept (kiln_program_keep_workers) the answer is
 * kept, too. For the main thread, as all calls here. KILN_E_INTERRUPTED, KILN_E_TERMINATED: a signal came meanwhile. KILN_E_NOMEM:
 * no process can be started. */
kiln_status kiln_gpus_list(unsigned timeout_ms, kiln_gpu_list *out, kiln_error *err) KILN_MUST_CHECK;
/* Starts the child and does not wait; the next kiln_gpus_list takes its answer. Does nothing if there is an answer already, or if
 * one is awaited. False: no process can be started. */
bool kiln_gpus_ask_ahead(void) KILN_MUST_CHECK;
int kiln_gpus_ahead_descriptor(void); /* readable when the answer is there; -1: none is awaited */
void kiln_gpus_forget(void);          /* the answer that is kept or awaited */

/* Asks NVML in this process, which is the child. NVML stays loaded, so the process should end soon. */
void kiln_nvml_ask(kiln_gpu_list *out);

#endif
