/* selection -- --shard and --units: which of its optional units a run computes. For the parent's
 * main thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_SELECTION_H
#define KILN_STAGES_ENGINE_PARENT_SELECTION_H

#include "stages/engine/engine.h"

typedef struct {
    bool given;
    uint32_t shard, n_shards; /* from 0; n_shards 0: --units */
    const char *units;        /* of --units, borrowed */
    uint64_t position;        /* number of optional units so far */
    uint64_t chosen;          /* of them, those that --shard or --units select */
    uint64_t bundle;          /* number of groups and single units so far */
    uint64_t group;           /* of the last unit */
    uint64_t left;            /* optional units that are neither stored nor chosen */
    bool cut;                 /* they made kiln_run_units end the run */
} kiln_selection;
/* Reads the two options into r->selection. KILN_E_USAGE. */
kiln_status kiln_selection_read(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
/* Check the texts of --shard and --units. KILN_E_USAGE. */
kiln_status kiln_shard_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_units_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
/* Says whether this run computes the unit. Call it once for each unit of the stage, in their
 * order. */
bool kiln_selection_has(kiln_selection *s, const kiln_unit *u, bool first_of_list);

#endif
