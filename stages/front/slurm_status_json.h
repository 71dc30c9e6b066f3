/* slurm_status_json -- what --status says, for programs:
 *
 *   {"version": 1, "folder": OUT/slurm, "chain": CHAIN or null,
 *    "stages": [{"name", "state"}],            state: as kiln-info has it, or "not begun"
 *    "round": null or {"stage", "plan", "what", "units", "due", "tasks", "missing": [task ...]},
 *    "lost": null or a sentence about tasks,
 *    "jobs": [{"id", "state", "kind": "task" or "round", "stage", "reason"}],
 *    "ended": null or {"code", "stage", "why"},
 *    "last_job": null or a sentence: where no job is left, and the bake has not ended} */
#ifndef KILN_STAGES_FRONT_SLURM_STATUS_JSON_H
#define KILN_STAGES_FRONT_SLURM_STATUS_JSON_H

#include "stages/front/slurm_bake.h"

/* Prints it on stdout. Errors as of kiln_slurm_status. */
kiln_status kiln_slurm_status_json(const kiln_slurm_bake *b, kiln_error *err) KILN_MUST_CHECK;

#endif
