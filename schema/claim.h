/* claim -- the file BAKE.claim beside a manifest: units of it are being computed on other hosts,
 * from the manifest as it is now.
 *
 * A stage that is planned (kiln-STAGE --plan) leaves one. While it stands, kiln_manifest_open
 * refuses every writer but the one that gathers (KILN_OPEN_CLAIMED), so what parts are made from
 * does not change. It is text, a word and its value a line, so that scripts and people can read it:
 *
 *   splatkiln-claim 1
 *   stage prune                             lower-case letters, digits, '-' and '_'
 *   plan 0123456789abcdef0123456789abcdef   key of the plan: of the list of units, of what is due
 *                                           of it, and of the decisions
 *   host node7
 *   pid 4711
 *   start 2026-11-23T06:55:00Z
 *   tasks 8                                 how many shards the plan is meant for
 *   units 763                               of the list
 *   due 0-99                                those that were not stored, from 0; a line for each
 *                                           range, in order
 *   due 105-762
 *   decision ranges 12                      what the plan has decided for all hosts; a line each,
 *                                           in the order of asking
 *   what pruning                            the list
 *   end
 *
 * One without its last line was cut short and is refused like any other file that is no claim.
 * Paths are the manifest's; through a link to it the claim is the same one, beside what the link
 * leads to. Functions may be called from any thread; those that change the file want the manifest's
 * lock to be held. KILN_E_INPUT: it is no claim. KILN_E_IO. KILN_E_NOMEM. */
#ifndef KILN_SCHEMA_CLAIM_H
#define KILN_SCHEMA_CLAIM_H

#include "base/extern_c.h"
#include "base/status.h"
#include "schema/hash.h"

#include <stdbool.h>
#include <stdint.h>

KILN_C_BEGIN

enum { KILN_TASKS_MAX = 1000000, KILN_DECISIONS_MAX = 1024 };

typedef struct {
    uint64_t first, last; /* positions in the list */
} kiln_claim_range;

typedef struct {
    char name[32]; /* lower-case letters, digits, '-' and '_' */
    uint64_t value;
} kiln_decision;

typedef struct {
    char stage[32];
    kiln_hash plan;
    char host[256];
    int64_t pid;
    char start[32];
    uint32_t tasks;   /* 1 .. KILN_TASKS_MAX */
    uint64_t n_units; /* of the list */
    char what[96];    /* name of the list */
    kiln_claim_range *due;
    uint64_t n_due; /* ranges: in order, each behind the one before */
    kiln_decision *decisions;
    uint32_t n_decisions;
} kiln_claim;

/* *there false: none stands, and *out is empty. */
kiln_status kiln_claim_read(const char *manifest, bool *there, kiln_claim *out,
                            kiln_error *err) KILN_MUST_CHECK;
/* Is there a file of a claim's name, sound or not? */
bool kiln_claim_stands(const char *manifest);
/* Replaces the one that stands, in one step; it is on the disk when the call returns. Host, pid and
 * start are filled in. */
kiln_status kiln_claim_write(const char *manifest, kiln_claim *c, kiln_error *err) KILN_MUST_CHECK;
/* Stores another number of tasks in the claim of this plan. Takes the manifest's lock, so that no
 * gather removes or replaces the claim meanwhile; the caller has it not. stage: who does it.
 * KILN_E_STALE: another claim stands, or none. KILN_E_BUSY. */
kiln_status kiln_claim_set_tasks(const char *manifest, const char *stage, kiln_hash plan,
                                 uint32_t tasks, kiln_error *err) KILN_MUST_CHECK;
/* Removes it, whatever the file holds. That there is none is no failure. */
kiln_status kiln_claim_remove(const char *manifest, kiln_error *err) KILN_MUST_CHECK;
/* Gives up the plan: takes the manifest's lock, so that no gather is at work, and removes its
 * claim. The manifest is not opened. stage: who does it. also: called with the claim that was
 * removed, if it was a sound one, while the lock is held. KILN_E_BUSY. */
typedef void kiln_claim_broken_fn(const char *manifest, const kiln_claim *claim);
kiln_status kiln_claim_break(const char *manifest, const char *stage, kiln_claim_broken_fn *also,
                             kiln_error *err) KILN_MUST_CHECK;
/* KILN_E_BUSY, with whose it is and what to do, if a claim stands. */
kiln_status kiln_claim_refuse(const char *manifest, kiln_error *err) KILN_MUST_CHECK;
/* Says whether the unit at this position of the list was due at the plan. */
bool kiln_claim_has_due(const kiln_claim *c, uint64_t position);
void kiln_claim_release(kiln_claim *c); /* leaves it empty */

KILN_C_END

#endif
