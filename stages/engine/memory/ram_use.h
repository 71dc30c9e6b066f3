/* ram_use -- what processes have really taken of host memory, and what came of the plan (ram.h).
 * Bytes. For the parent's main thread, but for kiln_ram_mapped and kiln_ram_mapped_most, which a
 * worker asks of itself. */
#ifndef KILN_STAGES_ENGINE_MEMORY_RAM_USE_H
#define KILN_STAGES_ENGINE_MEMORY_RAM_USE_H

#include "stages/engine/memory/ram.h"

#include <jansson.h>
#include <sys/types.h>

/* A process that is measured beside this one. */
typedef struct {
    pid_t pid;
    uint64_t cuda; /* the CUDA runtime's share, which does not count */
} kiln_ram_process;
/* Measures this process and these, and raises the peak. */
void kiln_ram_look(kiln_ram_use *u, const kiln_ram_process *processes, unsigned n);
/* Says whether the last measurement is 50 ms old, and took less than a 20th of the time since. */
bool kiln_ram_look_is_due(const kiln_ram_use *u);
/* Returns the anonymous and shared memory of this process; 0 without /proc. */
uint64_t kiln_ram_mapped(void);
/* Returns the most that it has had since the stage began, about. */
uint64_t kiln_ram_mapped_most(void);
/* Adds ram_cap_bytes, ram_predicted_bytes, ram_peak_bytes and, with GPU workers, ram_cuda_bytes.
 * Returns 0, or -1 if there is no memory. */
int kiln_ram_report(const kiln_ram_use *u, json_t *summary);
/* Warns if the peak exceeds the cap, which is a bug of the prediction. */
void kiln_ram_judge(const kiln_ram_use *u);

#endif
