/* run_memory -- what a run asks of memory/ for itself: its account of --ram, its scratch folder.
 * What stages call is in engine.h.
 */
#ifndef KILN_STAGES_ENGINE_PARENT_RUN_MEMORY_H
#define KILN_STAGES_ENGINE_PARENT_RUN_MEMORY_H

#include "stages/engine/memory/ram.h"
#include "stages/engine/memory/scratch.h"

/* Returns the run's account of its memory, with what the manifest's cache may take as it is now:
 * for one call of memory/ram.h. */
kiln_ram_use *kiln_run_ram(kiln_run *r);
/* Measures all processes of the run and those that rest (kiln_ram_look): now; or only if that is
 * due, because results have arrived or the parent waits. */
void kiln_run_look_at_ram(kiln_run *r);
void kiln_run_watch_ram(kiln_run *r);
/* Returns the run's scratch folder, as its manifest and its options have it now: for one call of
 * memory/scratch.h. */
kiln_scratch_folder *kiln_run_scratch_folder(kiln_run *r);

#endif
