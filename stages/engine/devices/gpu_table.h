/* gpu_table -- the GPUs of this machine as a table for people and as JSON: --list-gpus,
 * kiln-doctor.
 *
 * An array of objects, in the order in which nvidia-smi counts:
 *   number     by which --devices names it; null: --devices cannot name it
 *   name, uuid, gpu, instance (of a GPU in MIG mode), pci, node, cpus (near it, that we may use), compute_capability
 *   total_bytes, free_bytes, ecc (on or off), ecc_errors, repair ("none", "pending", "failed"), mode ("default", "exclusive",
 *              "prohibited")
 *   state      "visible", "hidden" (by CUDA_VISIBLE_DEVICES), "lost", "unknown"
 *              (CUDA_VISIBLE_DEVICES names it, and CUDA alone knows which it is)
 *   chosen     true if --devices names it
 * A value that is not known is null. */
#ifndef KILN_STAGES_ENGINE_DEVICES_GPU_TABLE_H
#define KILN_STAGES_ENGINE_DEVICES_GPU_TABLE_H

#include "stages/engine/devices/devices.h"

#include <jansson.h>

/* Returns the table as a new array, released with json_decref; NULL if there is no memory. chosen:
 * the devices of --devices. sysfs: the path "/sys". */
json_t *kiln_gpu_table(const kiln_devices_question *q, const kiln_device_list *chosen,
                       const char *sysfs);
/* Prints the table to stdout, with a heading; prints nothing for an empty table. */
void kiln_gpu_table_print(const json_t *table);
/* Does --list-gpus: asks NVML, and prints the table and the reason if GPUs are missing, to stdout.
 * It succeeds if there is no GPU. Fails as kiln_gpus_list. */
kiln_status kiln_list_gpus(const char *devices, bool json, kiln_error *err) KILN_MUST_CHECK;

#endif
