/* worker_rest -- workers that rest between two stages of this process. There are none unless
 * kiln_program_keep_workers was called. For the parent's main thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_WORKER_REST_H
#define KILN_STAGES_ENGINE_PARENT_WORKER_REST_H

#include "stages/engine/parent/run_devices.h"

/* on: from now on idle workers may rest. The second says whether they may. */
void kiln_rest_keep(bool on);
bool kiln_rest_keeps(void);
/* Tells an idle worker to rest and empties its slot. Returns false if it may not rest: workers are
 * not kept, or it is busy or gone.
 */
bool kiln_rest_begin(kiln_worker_process *w);
/* Waits until every worker that was told to rest has freed what it had of the stage, above all its
 * connection to the manifest. Kills workers that do not answer in time, or that have not answered
 * when a signal comes. */
void kiln_rest_wait(void);
/* Gives a resting worker on this device the command line of a stage; *pid and *fd are its process
 * and socket. False: none rests. */
bool kiln_rest_take(const kiln_device *device, const char *program, char *const *arguments,
                    pid_t *pid, int *fd);
/* Call it before a list of units that wants n_slots workers of this home. Asks those resting
 * workers to end that the list cannot take and that are not worth keeping under this cap. Returns
 * the host memory in bytes of those that stay although the list does not take them.
 */
uint64_t kiln_rest_fit(const kiln_home *home, unsigned n_slots, uint64_t cap);
/* Starts a worker that rests from its start: it opens its device while the parent does something
 * else, and has no stage yet. program: the name of the executable in argv[0]. */
void kiln_rest_start(const char *program, const kiln_device *device);
/* Says whether --ram has room for n workers that open a GPU before a plan counts them; each takes
 * about kiln_rest_start_bytes. */
bool kiln_rest_fits(kiln_ram_use *ram, unsigned n);
uint64_t kiln_rest_start_bytes(void);
/* Says whether a worker on a GPU rests, or has been started to. */
bool kiln_rest_has_gpu(void);
/* kiln_rest_expect notes the devices of a later stage (kiln_program_expect).
 * kiln_rest_begin_expected asks which GPUs these are, and does not wait; call it when the first
 * worker on the CPU has been started, because then there is work. */
void kiln_rest_expect(const char *devices);
void kiln_rest_begin_expected(kiln_run *r);
/* Returns a descriptor that becomes readable when the answer is there; then call
 * kiln_rest_start_expected, which starts a worker on each of these GPUs. -1: there is nothing to
 * wait for. */
int kiln_rest_descriptor(void);
void kiln_rest_start_expected(const kiln_run *r);
void kiln_rest_dismiss(void); /* asks all to end and does not wait */
void kiln_rest_stop(void);    /* and waits for all */
/* Gives the processes that rest or are about to end, borrowed until the next call that changes
 * them. Returns how many. */
unsigned kiln_rest_processes(const kiln_worker_process *out[KILN_SLOTS_MAX]);

#endif
