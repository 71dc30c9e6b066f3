/* gpus -- which GPUs this machine has, as a child process that asks NVML (nvml.h) says. No handle:
 * a process has one answer. */
#ifndef KILN_STAGES_ENGINE_DEVICES_GPUS_H
#define KILN_STAGES_ENGINE_DEVICES_GPUS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { KILN_GPUS_MAX = 64 };

/* A GPU, or one instance of a GPU in MIG mode. Of an instance, name, uuid and memory are its own;
 * the rest is the GPU's. */
typedef struct {
    char name[96], uuid[96]; /* "NVIDIA H200", "GPU-..." or "MIG-..." */
    /* "0000:1b:00.0", as /sys/bus/pci/devices has it; "" not known */
    char pci[16];
    /* number of the GPU in the order of PCI addresses, as nvidia-smi counts */
    uint32_t gpu;
    uint32_t arch;                    /* compute capability: 90 is 9.0; 0: not known */
    uint64_t total_bytes, free_bytes; /* of device memory; 0 and 0: not known */
    uint64_t ecc_errors;              /* uncorrected memory errors since the driver was loaded */
    /* error correction is on; false: off, not there or not known */
    bool has_ecc;
    bool repair_pending; /* bad memory will be replaced by the next reset */
    bool repair_failed;  /* bad memory cannot be replaced any more */
    bool prohibited;     /* compute mode: no process may compute */
    bool exclusive;      /* compute mode: only one process may */
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
    /* in the machine, including those that a container hides and that are in neither list */
    uint32_t n_gpus;
    uint32_t driver_version; /* version of CUDA in the driver: 13000 is 13.0; 0: not known */
    char driver[80];         /* the driver's own version, "580.159"; "" not known */
    /* NVML exists but failed, crashed or hung: something is wrong with the driver */
    bool broken;
    /* for people: why no GPU can be used; "" if NVML gives no reason, even if there is no GPU */
    char why_none[256];
} kiln_gpu_list;

/* Asks NVML in a child process, which is killed after timeout_ms. While answers are kept
 * (kiln_gpus_keep) nothing is asked twice. For the main thread, as all calls here.
 * KILN_E_INTERRUPTED, KILN_E_TERMINATED, KILN_E_HANGUP: a signal came meanwhile. KILN_E_NOMEM: no
 * process can be started. */
kiln_status kiln_gpus_list(unsigned timeout_ms, kiln_gpu_list *out,
                           kiln_error *err) KILN_MUST_CHECK;
/* Starts the child and does not wait; the next kiln_gpus_list takes its answer. Does nothing if
 * there is an answer already, or if one is awaited. False: no process can be started. */
bool kiln_gpus_ask_ahead(void) KILN_MUST_CHECK;
int kiln_gpus_ahead_descriptor(void); /* readable when the answer is there; -1: none is awaited */
void kiln_gpus_forget(void);          /* the answer that is kept or awaited */
/* on: answers are kept from now on, for a process with several stages. Not on: the next answer is
 * not; one that is there stays. */
void kiln_gpus_keep(bool on);

#endif
