/* round -- one list of units shared out among hosts: --plan, --part, --gather (DESIGN.md,
 * "Rounds").
 *
 *   --plan    writer. Computes what is not shared out, as every run does. At the first list that is
 *             and has two units due, it
 * leaves a claim (schema/claim.h) in their place and ends well. If there is none, it commits. Where
 * a claim of this stage stands already, it opens the manifest frozen, checks that the plan is the
 * same, and stores another number of tasks.
 *   --part    opens the manifest frozen, and so do its workers. Comes to the same list by the same
 *             way, takes the units of its
 * shard and stores them into a part (schema/part.h).
 *   --gather  writer. Brings parts into the manifest at that list, computes what is missing, goes
 *             on like --plan to the next list, whose claim replaces the first, or to the commit,
 *             after which the claim is removed.
 *
 * On a network file system a plan and a gather work on a copy in --scratch-dir
 * (kiln_manifest_open_copy). It takes the manifest's place in front of each claim that is written
 * or removed.
 *
 * What a run finds due of the list can shrink while a round lasts, because a gather may be killed.
 * So shards, and the key of a plan, are of what was due at the plan: the claim says it. Everything
 * here runs in the parent's main thread. */
#ifndef KILN_STAGES_ENGINE_HOSTS_ROUND_H
#define KILN_STAGES_ENGINE_HOSTS_ROUND_H

#include "base/file.h"
#include "schema/claim.h"
#include "stages/engine/hosts/decisions.h"
#include "stages/engine/parent/host_hooks.h"

typedef enum {
    KILN_ROUND_NONE,
    KILN_ROUND_PLAN,
    KILN_ROUND_PART,
    KILN_ROUND_GATHER
} kiln_round_mode;

/* What a run knows of its round. */
struct kiln_round {
    kiln_round_mode mode;
    /* the manifest is on a network file system, and this run works on a copy of it */
    bool copied;
    bool has_claim;            /* `claim` is the one that the run found; --part always has one */
    bool agrees;               /* what kiln_run_agree was asked last is as the plan has it */
    bool met;                  /* the list of that claim has been met */
    bool meets;                /* the list in work is that list */
    bool shares_planning;      /* kiln_run_shares_planning */
    bool shares_nothing;       /* kiln_run_shares_nothing */
    kiln_unit_check_fn *check; /* kiln_run_checks_files */
    uint64_t once;             /* kiln_run_costs_each_task */
    uint32_t shard, n_shards;  /* --part: 1 .. n_shards */
    kiln_claim claim;          /* under --plan and --gather, that of the last plan from then on */
    kiln_decision *decisions;  /* of this run, in the order of asking */
    uint32_t n_decisions;
    uint32_t changes;         /* --part: kiln_manifest_changes at the open */
    char path[KILN_PATH_MAX]; /* of the whole part; "": none yet */
    /* --part: units that it computes; --gather: those that came from parts */
    uint64_t n_taken;
    uint64_t n_elsewhere; /* --part: units of its shard that other parts have */
    uint64_t n_missing;   /* --gather --no-compute: units that are in no part */
    /* plan whose parts are to be removed when what they had is on the disk; zero: none */
    kiln_hash removes;
    /* of them, the shards of the claim's number of tasks, such as "2,5-7", NUL-terminated */
    kiln_buffer missing;
};

/* What the parent calls of a run's round: kiln_run_hosts has this and a kiln_round of zeros when
 * the run begins. */
extern const kiln_host_hooks kiln_round_hooks;

/* Reads the options into the run's round; after kiln_selection_read. KILN_E_USAGE. */
kiln_status kiln_round_read(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
/* Opens the manifest as the round wants it; mode: how the program does without one. KILN_E_STALE:
 * --part, and nothing is planned; or the plan has --shared-dir, and this run has not, or the other
 * way round. KILN_E_BUSY: the claim is another stage's. Others as kiln_manifest_open. */
kiln_status kiln_round_open(kiln_run *r, const char *path, kiln_open_mode mode,
                            kiln_error *err) KILN_MUST_CHECK;
/* Says what came of a run that is cut. KILN_E_PARTIAL: units of its part are quarantined. */
kiln_status kiln_round_conclude(const kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
/* Gives up a part that is not whole, puts a copy in the manifest's place, unless the run failed
 * with nothing done, and removes the claim if the stage has been committed, or has ended well with
 * nothing to commit. st: how the run ended. While the manifest is open. KILN_E_IO. */
kiln_status kiln_round_settle(kiln_run *r, kiln_status st, kiln_error *err) KILN_MUST_CHECK;
void kiln_round_release(kiln_round *round); /* and makes it zero */

#endif
