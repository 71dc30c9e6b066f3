/* run_workers -- what the workers of a run are called, took and did. For the parent's main
 * thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_RUN_WORKERS_H
#define KILN_STAGES_ENGINE_PARENT_RUN_WORKERS_H

#include "stages/engine/parent/run_devices.h"

/* Writes the name of a slot for people into buf and returns buf: its GPU, or "worker N of the
 * CPU". */
const char *kiln_worker_name(const kiln_run_devices *d, const kiln_worker_process *w, char *buf,
                             size_t size);
/* Slot i of all that a run has used, of both homes. NULL behind the last. */
const kiln_worker_process *kiln_run_slot(const kiln_run_devices *d, unsigned i);
/* Asks the idle workers of both homes to end, or to rest (kiln_workers_dismiss). */
void kiln_run_dismiss_workers(kiln_run_devices *d);
/* Of all slots of a run, on both kinds of devices. The first adds up what their processes took, in
 * the same way; the second returns the longest time until one had opened its device. */
kiln_worker_use kiln_workers_use(const kiln_run_devices *d);
uint64_t kiln_workers_open_ns(const kiln_run_devices *d);
/* Writes their devices, each once and with its UUID, "; " between them; "" if none was started. */
enum {
    KILN_DEVICES_TEXT = (KILN_DEVICES_MAX + 1) * sizeof(((kiln_worker_process *)0)->device_text)
};
void kiln_workers_devices(const kiln_run_devices *d, char *out, size_t size);
/* Returns a new array of {device, units, busy_s, start_s, retired}; NULL if there is no memory. */
json_t *kiln_workers_json(const kiln_run_devices *d);

#endif
