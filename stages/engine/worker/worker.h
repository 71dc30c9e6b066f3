/* worker -- the main() of a worker process, and the word of the command line that makes a process
 * one. */
#ifndef KILN_STAGES_ENGINE_WORKER_WORKER_H
#define KILN_STAGES_ENGINE_WORKER_WORKER_H

#include "stages/engine/engine.h"

/* argv[1] of a worker, followed by KIND:FD:UNIT_RAM, such as cuda:3:67108864 */
#define KILN_WORKER_FLAG "--worker="
#define KILN_WORKER_RESTS "rest" /* in the place of UNIT_RAM: it waits for its stage */

/* For a worker that rested: finds the stage of this name in this executable, forgets the options of
 * the last one and gives the option table of the new one. KILN_E_BUG: there is none. */
typedef kiln_status kiln_worker_become_fn(const char *name, const kiln_stage_program **p,
                                          kiln_cli *cli, kiln_error *err);
/* The main() of a worker; flag: argv[1] behind KILN_WORKER_FLAG. Returns the exit code. */
int kiln_worker_main(const kiln_stage_program *p, const kiln_cli *cli,
                     kiln_worker_become_fn *become, const char *flag, int argc, char **argv);

#endif
