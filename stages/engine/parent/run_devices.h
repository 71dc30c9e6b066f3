/* run_devices -- on which devices the lists of a run are, and the workers on them. For the parent's
 * main thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_RUN_DEVICES_H
#define KILN_STAGES_ENGINE_PARENT_RUN_DEVICES_H

#include "stages/engine/parent/worker_process.h"

/* Devices of one kind, and the slots of the workers on them. What was retired stays so until the
 * run ends. */
typedef struct {
    kiln_device_list devices; /* n == 0: not looked for yet */
    /* with GPUs, workers[i] is on devices.items[i]; else all are on the CPU */
    kiln_worker_process workers[KILN_SLOTS_MAX];
    unsigned n_workers; /* slots that have been used so far */
    bool greeted;       /* at least one worker could open its device */
    /* opened by kiln_run_open_ahead, for a list that has not come yet */
    bool ahead;
} kiln_home;
enum { KILN_HOMES = 2 };
/* On which devices the lists of a run are. */
typedef struct {
    /* the CPU and the GPUs, whichever came first; one has no devices in most runs */
    kiln_home homes[KILN_HOMES];
    kiln_home *home;        /* of the next list */
    bool on_cpu;            /* kiln_run_on_cpu */
    bool computes;          /* kiln_run_computes */
    bool serial;            /* kiln_run_serial */
    bool found_named;       /* the GPUs that --devices names are there */
    double work_s, later_s; /* kiln_run_expect_work, kiln_run_expect_later; 0: not known */
} kiln_run_devices;

/* Returns the device of a slot: borrowed. */
const kiln_device *kiln_home_device(const kiln_home *h, unsigned slot);
/* Looks for the devices if that is not done yet. KILN_E_DEVICE, KILN_E_USAGE, and what
 * kiln_interrupt_check returns. */
kiln_status kiln_run_find_devices(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;

#endif
