/* nvml -- the GPUs of this machine, as NVIDIA's management library (NVML) shows them.
 *
 * Problem. The parent must know which GPUs there are, and must never touch CUDA. But NVML maps
 * libcuda into the process that asks, and keeps it there (driver 580.159); and a broken driver can
 * crash or hang that process. Layout. A child process asks, writes the list into a pipe and ends.
 * The library is libnvidia-ml.so.1, or the one that KILN_NVML in the environment names. A machine
 * without NVML is no failure: the list is empty and says why.
 *
 * Source: NVML API Reference, "Initialization and Cleanup", "System Queries", "Device Queries",
 * "Device Enums", "Device Structs", "Multi Instance GPU Management".
 */
#ifndef KILN_STAGES_ENGINE_DEVICES_NVML_H
#define KILN_STAGES_ENGINE_DEVICES_NVML_H

#include "stages/engine/devices/gpus.h"

/* Asks NVML in this process, which is the child. NVML stays loaded, so the process should end
 * soon. */
void kiln_nvml_ask(kiln_gpu_list *out);

#endif
