/* decisions -- what a stage says and asks where its lists can be shared out among hosts
 * (KILN_PROGRAM_ROUNDS): each host must come to the same list. In a run on one host all of it
 * changes nothing. For the parent's main thread. */
#ifndef KILN_STAGES_ENGINE_HOSTS_DECISIONS_H
#define KILN_STAGES_ENGINE_HOSTS_DECISIONS_H

#include "stages/engine/engine.h"

/* For what depends on the host (its memory, its devices) and decides what units there are or what
 * they give: on all hosts of a plan it must be one thing. *value: in, what this host would choose;
 * out, what is chosen: by the plan that stands, else *value, which a plan stores. name: lower-case
 * letters, digits, '-' and '_', 31 at most, once in a run. Call it in front of the lists that it
 * decides, on every host in the same order. KILN_E_STALE: the plan that stands has not decided
 * it. */
kiln_status kiln_run_decide(kiln_run *r, const char *name, uint64_t *value,
                            kiln_error *err) KILN_MUST_CHECK;
/* Ends a run with KILN_E_STALE if a plan stands that was made for something else: `of` is a hash of
 * what decides which units there are and what becomes of them, and must be as it was at the plan.
 * name: as above. kiln_run_is_fresh does so under the name "options" with the key of its caller,
 * which has all stored options and the input, unless the stage has done it before with another one;
 * a stage adds what else its options ask for. */
kiln_status kiln_run_agree(kiln_run *r, const char *name, kiln_hash of,
                           kiln_error *err) KILN_MUST_CHECK;
/* The same for the kind of devices whose results have keys of their own: the plan's host chooses as
 * --devices says, and from this call on every host computes on that kind, as if --devices named it.
 * *kind: "cpu" or "cuda"; NULL, and nothing is decided, if this run does not want it, having
 * nothing to compute, and no plan stands. In a run that shares nothing out it is the run's own
 * kind. KILN_E_STALE: --devices names another kind than the plan. KILN_E_DEVICE: as
 * kiln_run_device_kind. */
kiln_status kiln_run_decide_kind(kiln_run *r, bool wanted, const char **kind,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Says whether this run is a step of a round: --plan, --part or --gather. A stage then stores what
 * else it would compute anew in each run in front of the list that is shared out. */
bool kiln_run_is_round(const kiln_run *r);
/* Says whether this run makes the first plan of the stage: it may store such things, where the
 * others find them. */
bool kiln_run_begins_rounds(const kiln_run *r);
/* on: the next lists are not shared out: their units read what only this host has. Call it between
 * lists. */
void kiln_run_shares_nothing(kiln_run *r, bool on);
/* For units that leave files beside the manifest: --gather calls `check` for each that a part has
 * brought. KILN_E_INPUT, with a sentence, if the files are not those that the unit has written: the
 * unit is dropped, its part put aside, and the unit is missing. It may wait for a slow file system.
 * Any other failure ends the run. For the next lists; NULL: for none. */
typedef kiln_status kiln_unit_check_fn(kiln_run *r, const kiln_unit *u,
                                       const kiln_unit_result *result, kiln_error *err);
void kiln_run_checks_files(kiln_run *r, kiln_unit_check_fn *check);
/* Returns how many tasks a plan is meant for: for a stage that cuts its work by that. 0: nothing is
 * shared out. */
uint32_t kiln_run_tasks(const kiln_run *r);
/* What each task does once for the next lists, such as decoding what its units read, in the measure
 * of their costs: a plan of more tasks than are worth that says so. 0: nothing is said. */
void kiln_run_costs_each_task(kiln_run *r, uint64_t cost);
/* on: the next lists are shared out although their units are planning, because there are many and
 * each takes long; not on: --plan and --gather compute them. Call it between lists. */
void kiln_run_shares_planning(kiln_run *r, bool on);
/* Says whether this list, not yet given to kiln_run_units, is the one that the plan which stands
 * has shared out. For --gather: what the plan has left in the scratch folder is mended for this
 * list alone, since every other that is due is refused. Keys, costs and groups of the units are
 * set. */
bool kiln_run_is_planned(kiln_run *r, const char *what, kiln_unit *units, uint64_t n);

/* For round.c. The first is the hook of that name: kiln_run_agree under the name "options", unless
 * the stage has done it. */
kiln_status kiln_round_agree(kiln_run *r, kiln_hash input_key, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_round_check_agreed(const kiln_run *r, kiln_error *err) KILN_MUST_CHECK;

#endif
