/* sog_rounds -- the rounds of the SOG writer (sog_write.c), for formats that have a SOG archive
 * inside: they write a .sog from the file's beginning on, and the writer's finish makes of it what
 * it likes. */
#ifndef KILN_STAGES_FORMATS_SOG_SOG_ROUNDS_H
#define KILN_STAGES_FORMATS_SOG_SOG_ROUNDS_H

#include "stages/formats/writer.h"

enum { KILN_SOG_ROUNDS = 8 };
extern const kiln_export_round kiln_sog_rounds[KILN_SOG_ROUNDS];
extern const kiln_export_count kiln_sog_lost[]; /* .counts */

/* .plan and .foresee of a writer with these rounds. */
kiln_status kiln_sog_plan_archive(kiln_export_parent *p, kiln_error *err) KILN_MUST_CHECK;
uint64_t kiln_sog_foresee(const kiln_export *e);
/* Bytes that an archive of these rows has about, and seldom more. */
uint64_t kiln_sog_archive_bytes(const kiln_export *e);

#endif
