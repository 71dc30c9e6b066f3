/* gpu_table -- the GPUs of this machine as people and programs are shown them: --list-gpus, kiln-doctor.
 *
 * An array of objects, in the order in which nvidia-smi counts:
 *   number     as --devices counts; null: --devices cannot name it
 *   name, uuid, gpu, instance (of a GPU in MIG mode), pci, node, cpus (of those that we may use), compute_capability
 *   total_bytes, free_bytes, ecc (on or off), ecc_errors, repair ("none", "pending", "failed"), mode ("default", "exclusive",
 *              "prohibited")
 *   state      "visible", "hidden" (by CUDA_VISIBLE_DEVICES), "lost", "unknown" (CUDA_VISIBLE_DEVICES names it, and CUDA alone
 *              knows which it is)
 *   chosen     by --devices
 * What is not known is null. */
#ifndef KILN_STAGES_GPU_TABLE_H
#define KILN_STAGES_GPU_TABLE_H

#include "stages/engine/devices.h"

#include <jansson.h>

/* sysfs: "/sys". chosen: what --devices chose. NULL when memory is gone; json_decref. */
json_t *kiln_gpu_table(const kiln_devices_question *q, const kiln_device_list *chosen, const char *sysfs);
/* To stdout, as lines with a head; nothing for an empty table. */
void kiln_gpu_table_print(const json_t *table);
/* --list-gpus: asks NVML, prints the table and why there is no more of it, on stdout. No GPU is no failure. */
kiln_status kiln_list_gpus(const char *devices, bool json, kiln_error *err) KILN_MUST_CHECK;

#endif
