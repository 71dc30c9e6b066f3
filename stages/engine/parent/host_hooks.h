/* host_hooks -- where a run whose lists are shared out among hosts differs from any other. The
 * parent knows these five functions and what they leave in kiln_run_hosts; plans, parts and claims
 * are hosts/. */
#ifndef KILN_STAGES_ENGINE_PARENT_HOST_HOOKS_H
#define KILN_STAGES_ENGINE_PARENT_HOST_HOOKS_H

#include "stages/engine/parent/run_units.h"

typedef struct kiln_round kiln_round; /* hosts/round.h */

/* All are called on the parent's main thread. */
typedef struct {
    /* The stage knows the key of its input, of which it has said nothing yet (kiln_run_agree).
     * KILN_E_STALE: a plan stands that is of another one. */
    kiln_status (*agree)(kiln_run *r, kiln_hash input_key, kiln_error *err);
    /* The stage is about to end well. KILN_E_STALE: a plan stands, and nothing has shown that it is
     * of these options and this input. */
    kiln_status (*check_agreed)(const kiln_run *r, kiln_error *err);
    /* What is due of a list of n units is known, and nothing of it is computed yet: may take units
     * out of what is due, or cut the run. KILN_E_STALE, KILN_E_PARTIAL, KILN_E_IO, KILN_E_INPUT. */
    kiln_status (*begin_list)(kiln_job *j, uint64_t n, kiln_error *err);
    /* The list is worked off and its results are stored: may cut the run. KILN_E_STALE,
     * KILN_E_BUSY, KILN_E_IO. */
    kiln_status (*end_list)(kiln_job *j, kiln_error *err);
    /* Adds what hosts share to a report. Returns 0, or -1 if there is no memory. */
    int (*add_report)(const kiln_run *r, json_t *report);
} kiln_host_hooks;

/* What of a run depends on its being shared out. On one host all but the hooks is zero. */
typedef struct {
    const kiln_host_hooks *hooks; /* borrowed */
    kiln_round *round;            /* hosts/' own */
    /* where results go instead of into the manifest; NULL: into the manifest */
    kiln_manifest *part;
    bool frozen; /* the manifest is open for reading alone */
    /* set: the run ends well before its stage, with this status in its report, such as "planned" */
    const char *cut;
} kiln_run_hosts;

#endif
