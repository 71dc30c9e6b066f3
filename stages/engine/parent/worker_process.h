/* worker_process -- starts worker processes, and takes their greeting. For the parent's main
 * thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_WORKER_PROCESS_H
#define KILN_STAGES_ENGINE_PARENT_WORKER_PROCESS_H

#include "stages/engine/devices/containment.h"
#include "stages/engine/devices/devices.h"
#include "stages/engine/engine.h"
#include "stages/engine/memory/ram.h"
#include "stages/engine/worker/protocol.h"

#include <sys/types.h>

/* A worker has one unit in work, one that waits, and those whose deferred work runs. */
enum { KILN_IN_FLIGHT_MAX = KILN_IN_FLIGHT + KILN_DEFERRED_MAX };

/* A slot (containment.h) and the process that is in it now. Times are of kiln_now_ns. */
typedef struct {
    pid_t pid;    /* 0: the slot is empty */
    int fd;       /* the parent's end of its socket; -1: closed, the process is ending */
    bool greeted; /* it has said HELLO */
    bool ready;   /* it may be handed units: greeted and not ending */
    bool died;    /* it ended by itself, or was killed because it hung */
    bool hung;    /* it exceeded --deadline with its unit, or took too long to say HELLO */
    /* it rested before: if it cannot begin, the process may be at fault and not the device */
    bool handed_over;
    /* it died with several units in work, which went back; the reason is still to be printed */
    bool had_several;
    unsigned n_flight; /* units that it has */
    /* of them, those that have begun although the oldest is not answered (BEGUN) */
    unsigned n_beside;
    uint64_t flight[KILN_IN_FLIGHT_MAX]; /* items of the schedule that it has, oldest first */
    uint64_t start_ns;                   /* when it was started */
    uint64_t unit_ns;                    /* when the unit in work began */
    uint64_t end_ns;                     /* when it was asked to end; 0: it was not */
    uint32_t deadline_s;                 /* --deadline */
    const kiln_device *device;
    char device_text[160]; /* "cuda, NVIDIA H200, GPU-...", "cpu-avx2, 2 threads" */
    kiln_worker_use use;
    /* of all processes that were in this slot */
    kiln_worker_use past; /* of earlier processes, together */
    bool retired;         /* the slot is used no more in this run */
    /* processes in a row that ended by themselves before they had done anything */
    unsigned n_early;
    kiln_strikes strikes;
    uint64_t n_units, busy_ns; /* units done here; time that units took, including failed ones */
    uint64_t open_ns;          /* from the first start to the first HELLO */
} kiln_worker_process;
/* Starts a worker in an empty slot and does not wait for it: it is ready once its HELLO has come,
 * so several workers open their devices at the same time. unit_ram: bytes that its units may take.
 * KILN_E_IO, KILN_E_NOMEM. */
kiln_status kiln_worker_start(const kiln_run *r, const kiln_device *device, uint64_t unit_ram,
                              kiln_worker_process *w, kiln_error *err) KILN_MUST_CHECK;
/* Starts a worker that rests (kiln_rest_start), likewise. */
kiln_status kiln_worker_start_resting(const char *program, const kiln_device *device,
                                      kiln_worker_process *w, kiln_error *err) KILN_MUST_CHECK;
/* Takes the first message of a worker. Fails with the worker's own status if it cannot compute on
 * its device. KILN_E_BUG: neither HELLO nor FAILED. */
kiln_status kiln_worker_greet(kiln_worker_process *w, const kiln_message *m,
                              kiln_error *err) KILN_MUST_CHECK;
enum { KILN_EXEC_FAILED = 127 }; /* exit code of a process that could not become a worker */

#endif
