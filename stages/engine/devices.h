/* devices -- which devices --devices names, by the rules of CUDA_VISIBLE_DEVICES (CUDA Programming Guide, "CUDA Environment
 * Variables"): not set, all GPUs are visible; empty, none; else a list of indices and UUIDs, of which the first that is
 * invalid (-1 is) ends the list. A UUID may be shortened while it stays unique. That a GPU listed twice leaves none is not in
 * the guide but what CUDA does.
 */
#ifndef KILN_STAGES_DEVICES_H
#define KILN_STAGES_DEVICES_H

#include "base/status.h"
#include "stages/engine/cpus.h"
#include "stages/engine/nvml.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KILN_DEVICES_MAX = KILN_GPUS_MAX };

typedef enum { KILN_DEVICE_CPU, KILN_DEVICE_CUDA } kiln_device_kind;

typedef struct {
    kiln_device_kind kind;
    char visible[96]; /* CUDA_VISIBLE_DEVICES of its worker: an entry of ours as it stands, else a UUID; "" for the CPU */
    char uuid[96];    /* "" where an index does not say it */
    char pci[16];     /* address of the GPU; "" where an index does not say it */
    uint32_t arch;    /* compute capability, 90 is 9.0; the highest that it may have where an index does not say it; 0: not known */
    bool chosen;      /* by us, because CUDA_VISIBLE_DEVICES was not set */
    char cpus[KILN_CPUS_TEXT]; /* those that its worker may use, near the GPU: "0-15"; "": any */
} kiln_device;

typedef struct {
    kiln_device items[KILN_DEVICES_MAX];
    unsigned n;
    char note[384];   /* why no GPU, or no more of them, was taken; "" when there is nothing to say */
    bool passed_over; /* auto took the CPU though there are GPUs and nobody hid them: people should know why */
} kiln_device_list;

/* All that the answer depends on. */
typedef struct {
    const char *asked;      /* --devices */
    const char *visible;    /* CUDA_VISIBLE_DEVICES; NULL: not set */
    const char *order;      /* CUDA_DEVICE_ORDER; NULL: not set */
    uint32_t built_version; /* of CUDA; 0: a build without */
    uint32_t built_arch;    /* lowest compute capability that the build has code for; auto passes over older GPUs */
    const kiln_gpu_list *gpus;
} kiln_devices_question;

/* Is the text of --devices well-formed? Looks at no device. */
kiln_status kiln_devices_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
/* "cpu" or "cuda"; NULL for auto, which names neither. Looks at no device. */
const char *kiln_devices_named_kind(const char *text);

/* What CUDA_VISIBLE_DEVICES lets through, which numbers count; note: why none, or no more. */
void kiln_devices_visible(const kiln_devices_question *q, kiln_device_list *out);
/* KILN_E_DEVICE when one is asked for that is not there; KILN_E_USAGE when one is asked for twice. */
kiln_status kiln_devices_choose(const kiln_devices_question *q, kiln_device_list *out, kiln_error *err) KILN_MUST_CHECK;
/* Fills `cpus` of each GPU from what the kernel shows below sysfs, which is "/sys". */
void kiln_devices_place(const char *sysfs, kiln_device_list *d);
/* The question of this process: its environment, its build, and what NVML says. Errors as kiln_gpus_list. */
kiln_status kiln_devices_ask(const char *text, kiln_gpu_list *gpus, kiln_devices_question *q, kiln_error *err) KILN_MUST_CHECK;
/* All of it for this process; NVML is not asked when text is "cpu" or the build has no CUDA. KILN_E_INTERRUPTED,
 * KILN_E_TERMINATED when a signal comes while NVML is asked. */
kiln_status kiln_devices_resolve(const char *text, kiln_device_list *out, kiln_error *err) KILN_MUST_CHECK;

/* What a worker calls its GPU: the UUID that CUDA says, which begins with GPU- for an instance (MIG) too; then the name is taken
 * from `visible`, the worker's CUDA_VISIBLE_DEVICES. Written into buf, which is returned. */
const char *kiln_devices_uuid(const char *visible, const char *uuid, char *buf, size_t size);
/* Ends the sentence of a KILN_E_DEVICE with what to do, unless it says that already; leaves others alone. */
void kiln_devices_advise(kiln_error *err);

unsigned kiln_devices_threads(uint32_t asked); /* 0: the cores that this process may use */

#endif
