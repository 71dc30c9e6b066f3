/* devices -- which devices --devices names.
 *
 * Numbers in --devices count the GPUs that CUDA_VISIBLE_DEVICES lets through. Its rules (CUDA
 * Programming Guide, "CUDA Environment Variables"): if it is not set, all GPUs are visible; if it
 * is empty, none is. Else it is a list of indices and UUIDs, which ends before its first invalid
 * entry (-1 is invalid). A UUID may be shortened as long as it is unique. If a GPU is listed twice,
 * none is visible: the guide does not say this, but CUDA does it.
 */
#ifndef KILN_STAGES_ENGINE_DEVICES_DEVICES_H
#define KILN_STAGES_ENGINE_DEVICES_DEVICES_H

#include "base/status.h"
#include "stages/engine/devices/cpus.h"
#include "stages/engine/devices/gpus.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KILN_DEVICES_MAX = KILN_GPUS_MAX };

typedef enum { KILN_DEVICE_CPU, KILN_DEVICE_CUDA } kiln_device_kind;

typedef struct {
    kiln_device_kind kind;
    /* CUDA_VISIBLE_DEVICES of its worker: an entry of ours, unchanged, or a UUID; "" for the CPU */
    char visible[96];
    char uuid[96]; /* "" if it is not known which GPU an index names */
    char pci[16];  /* address of the GPU; "" likewise */
    /* compute capability, 90 is 9.0; of an index that may name several GPUs, the highest of them;
     * 0: not known */
    uint32_t arch;
    bool chosen; /* true if CUDA_VISIBLE_DEVICES was not set, so that the order is ours */
    char cpus[KILN_CPUS_TEXT]; /* CPUs for its worker, near the GPU: "0-15"; "": any */
} kiln_device;

typedef struct {
    kiln_device items[KILN_DEVICES_MAX];
    unsigned n;
    /* for people: why no GPU, or no more of them, was taken; "": nothing to say */
    char note[384];
    /* auto took the CPU although there are GPUs and none is hidden: `note` is worth a warning */
    bool passed_over;
} kiln_device_list;

/* Everything that decides which devices are chosen. */
typedef struct {
    const char *asked;      /* --devices */
    const char *visible;    /* CUDA_VISIBLE_DEVICES; NULL: not set */
    const char *order;      /* CUDA_DEVICE_ORDER; NULL: not set */
    uint32_t built_version; /* of CUDA; 0: a build without CUDA */
    /* lowest compute capability that the build has code for; auto ignores older GPUs */
    uint32_t built_arch;
    const kiln_gpu_list *gpus;
} kiln_devices_question;

/* Checks the syntax of --devices. Looks for no device. KILN_E_USAGE. */
kiln_status kiln_devices_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
/* Returns "cpu" or "cuda"; NULL for auto. Looks for no device. */
const char *kiln_devices_named_kind(const char *text);

/* Gives the GPUs that CUDA_VISIBLE_DEVICES lets through, in the order that numbers count. `note`
 * says why there is none, or no more. */
void kiln_devices_visible(const kiln_devices_question *q, kiln_device_list *out);
/* Chooses the devices. KILN_E_DEVICE: one that is named does not exist. KILN_E_USAGE: one is named
 * twice. */
kiln_status kiln_devices_choose(const kiln_devices_question *q, kiln_device_list *out,
                                kiln_error *err) KILN_MUST_CHECK;
/* Fills `cpus` of each GPU from sysfs, the path of which is "/sys" outside of tests. */
void kiln_devices_place(const char *sysfs, kiln_device_list *d);
/* Fills the question for this process from its environment, its build and NVML. gpus receives
 * NVML's answer, to which q points. Fails as kiln_gpus_list. */
kiln_status kiln_devices_ask(const char *text, kiln_gpu_list *gpus, kiln_devices_question *q,
                             kiln_error *err) KILN_MUST_CHECK;
/* Asks, chooses and fills `cpus` for this process. Does not ask NVML if text is "cpu" or the build
 * has no CUDA. Fails as kiln_devices_choose and kiln_gpus_list. */
kiln_status kiln_devices_resolve(const char *text, kiln_device_list *out,
                                 kiln_error *err) KILN_MUST_CHECK;

/* Writes the UUID by which a worker calls its GPU into buf and returns buf. uuid: what CUDA says,
 * which begins with GPU- even for an instance (MIG); of an instance the name is taken from
 * `visible`, the worker's CUDA_VISIBLE_DEVICES. */
const char *kiln_devices_uuid(const char *visible, const char *uuid, char *buf, size_t size);
/* Adds to the sentence of a KILN_E_DEVICE what the user can do (--devices cpu), unless it says so
 * already. Leaves other errors unchanged. */
void kiln_devices_advise(kiln_error *err);

/* Returns `asked`, or for 0 the number of CPUs that this process may use. */
unsigned kiln_devices_threads(uint32_t asked);

#endif
