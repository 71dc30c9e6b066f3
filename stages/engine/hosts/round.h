/* round -- one list of units shared out among hosts: --plan, --part, --gather (DESIGN.md, "Rounds").
 *
 *   --plan    writer. Computes what is not shared out, as every run does. At the first list that is and has two units due, it
 * leaves a claim (schema/claim.h) in their place and ends well. If there is none, it commits. Where a claim of this stage stands
 * already, it opens the manifest frozen, checks that the plan is the same, and stores another number of tasks.
 *   --part    opens the manifest frozen, and so do its workers. Comes to the same list by the same way, takes the units of its
 * shard and stores them into a part (schema/part.h).
 *   --gather  writer. Brings parts into the manifest at that list, computes what is missing, goes on like --plan to the next list,
 *             whose claim replaces the first, or to the commit, after which the claim is removed.
 *
 * On a network file system a plan and a gather work on a copy in --scratch-dir (kiln_manifest_open_copy). It takes the manifest's
 * place in front of each claim that is written or removed.
 *
 * What a run finds due of the list can shrink while a round lasts, because a gather may be killed. So shards, and the key of a
 * plan, are of what was due at the plan: the claim says it. Everything here runs in the parent's main thread. */
#ifndef KILN_STAGES_ENGINE_HOSTS_ROUND_H
#define KILN_STAGES_ENGINE_HOSTS_ROUND_H

#include "base/file.h"
#include "schema/claim.h"
#include "stages/engine/engine.h"

typedef enum { KILN_ROUND_NONE, KILN_ROUND_PLAN, KILN_ROUND_PART, KILN_ROUND_GATHER } kiln_round_mode;

typedef struct {
    kiln_round_mode mode;
    bool frozen;               /* the manifest is open for reading alone */
    bool copied;               /* the manifest is on a network file system, and this run works on a copy of it */
    bool has_claim;            /* `claim` is the one that the run found; --part always has one */
    bool agrees;               /* what kiln_run_agree was asked last is as the plan has it */
    bool met;                  /* the list of that claim has been met */
    bool cut;                  /* the run has ended well before its stage: planned, the part stored, or a plan given up */
    bool shares_planning;      /* kiln_run_shares_planning */
    bool shares_nothing;       /* kiln_run_shares_nothing */
    bool was_whole;            /* --part: the part was there */
    kiln_unit_check_fn *check; /* kiln_run_checks_files */
    uint32_t shard, n_shards;  /* --part: 1 .. n_shards */
    kiln_claim claim;          /* under --plan and --gather, that of the last plan from then on */
    kiln_decision *decisions;  /* of this run, in the order of asking */
    uint32_t n_decisions;
    uint32_t changes;         /* --part: kiln_manifest_changes at the open */
    kiln_manifest *part;      /* --part: where results go; NULL: not begun, or finished */
    char path[KILN_PATH_MAX]; /* of the whole part; "": none yet */
    uint64_t n_taken;         /* --part: units that it computes; --gather: those that came from parts */
    uint64_t n_elsewhere;     /* --part: units of its shard that other parts have */
    uint64_t n_missing;       /* --gather --no-compute: units that are in no part */
    kiln_hash removes;        /* plan whose parts are to be removed when what they had is on the disk; zero: none */
    kiln_buffer missing;      /* of them, the shards of the claim's number of tasks, such as "2,5-7", NUL-terminated */
} kiln_round;

/* Reads the options into r->round; after kiln_selection_read. KILN_E_USAGE. */
kiln_status kiln_round_read(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
/* Opens the manifest as the round wants it; mode: how the program does without one. KILN_E_STALE: --part, and nothing is planned;
 * or the plan has --shared-dir, and this run has not, or the other way round. KILN_E_BUSY: the claim is another stage's. Others as
 * kiln_manifest_open. */
kiln_status kiln_round_open(kiln_run *r, const char *path, kiln_open_mode mode, kiln_error *err) KILN_MUST_CHECK;
/* Where units of this run are stored: the part, or the manifest. */
kiln_manifest *kiln_round_target(const kiln_run *r);
/* Puts a copy in the manifest's place, unless the run failed with nothing done, and removes the claim if the stage has been
 * committed, or has ended well with nothing to commit. st: how the run ended. While the manifest is open. KILN_E_IO. */
kiln_status kiln_round_settle(kiln_run *r, kiln_status st, kiln_error *err) KILN_MUST_CHECK;
/* KILN_E_STALE: a plan stands, and nothing has shown that it is of these options and this input: no stage ends well then. */
kiln_status kiln_round_check_agreed(const kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
/* Gives up a part that is not whole. While the manifest is open. */
void kiln_round_drop_part(kiln_run *r);
void kiln_round_release(kiln_run *r);
/* For --json: a new object, or JSON's null for a plan or gather after which nothing is left to share out. NULL: no memory. */
json_t *kiln_round_json(const kiln_run *r);

/* ---- shards -------------------------------------------------------------------------------------------------------- */
/* What decides where a unit goes. */
typedef struct {
    uint64_t cost, group;
} kiln_share;
/* Cuts n units into n_shards consecutive ranges of about equal cost: shard_of[n], from 0, never falls. A unit goes where its middle
 * lies. Units of one group, one behind the other, stay together if they cost less than half of a shard. The same on every host. */
void kiln_shards_cut(const kiln_share *units, uint64_t n, uint32_t n_shards, uint32_t *shard_of);

#endif
