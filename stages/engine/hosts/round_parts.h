/* round_parts -- what --part and --gather do at the list of the plan (round.h). */
#ifndef KILN_STAGES_ENGINE_HOSTS_ROUND_PARTS_H
#define KILN_STAGES_ENGINE_HOSTS_ROUND_PARTS_H

#include "stages/engine/parent/job.h"

/* --part: leaves in j->due the units of this shard that neither the manifest nor parts of another
 * number of shards have, and makes the part that their results go to. If a sound part of this shard
 * is there, what it has is taken over; if nothing is missing then, the run is cut instead. A part
 * may lack units: they were in parts that are gone, or were given up. KILN_E_INPUT, KILN_E_IO. */
kiln_status kiln_job_part_begin(kiln_job *j, uint64_t n, kiln_error *err) KILN_MUST_CHECK;
/* --part: when the list is worked off, records the run in the part and puts it into its folder; the
 * run is cut. Does nothing if no part was begun. KILN_E_STALE: its plan stands no more.
 * KILN_E_BUSY: the manifest was changed meanwhile. KILN_E_IO. */
kiln_status kiln_job_part_end(kiln_job *j, kiln_error *err) KILN_MUST_CHECK;
/* --gather: stores what parts of the plan have and the manifest lacks, and leaves in j->due what is
 * still missing. A part that cannot be used is renamed NAME.bad. KILN_E_PARTIAL under --no-compute:
 * something is missing. KILN_E_INPUT: no such folder. KILN_E_IO: the manifest cannot be written, or
 * this host cannot read a part, which stays as it is. */
kiln_status kiln_job_gather(kiln_job *j, uint64_t n, kiln_error *err) KILN_MUST_CHECK;
/* --remove-parts: removes the parts of the plan, and what killed tasks left of them in their folder
 * or, on this host, in --scratch-dir, when all of its units are stored; with a copy of the
 * manifest, when that is. */
void kiln_job_parts_remove(const kiln_job *j);
/* Removes those that waited for it. */
void kiln_round_remove_parts(kiln_run *r);

#endif
