/* export_rounds -- runs a writer: the survey, its rounds, and the name of the file when it is
 * whole. What the parent knows travels to the workers as one shared payload a round. */
#ifndef KILN_STAGES_EXPORT_ROUNDS_H
#define KILN_STAGES_EXPORT_ROUNDS_H

#include "stages/export/loss.h"
#include "stages/formats/writer.h"

/* What became of the values, and sentences. */
typedef struct {
    uint64_t counts[KILN_EXPORT_COUNTS];
    kiln_buffer notes, remarks;
    kiln_loss loss; /* `most` and `min_psnr` say what is asked for: most 0, nothing */
} kiln_export_said;

/* Writes e with w. e->chunks, rows, survey and plan are this function's to change. KILN_E_INPUT:
 * the format refuses the rows, before anything is written. As kiln_run_units. After a failure
 * nothing is left of the target, and what was there before still is.
 */
kiln_status kiln_export_run(kiln_run *r, const kiln_writer *w, kiln_export *e,
                            kiln_export_said *said, kiln_error *err) KILN_MUST_CHECK;
/* Announces what kiln_export_run and the loss will take, before the first list of units, so that a
 * refusal of --ram names a cap that is enough for all of them. As kiln_cameras_each. */
kiln_status kiln_export_foresee(kiln_run *r, const kiln_writer *w, const kiln_export *e,
                                const kiln_loss *loss, kiln_error *err) KILN_MUST_CHECK;
/* Runs a round in front of the survey, number KILN_ROUND_COUNT or KILN_ROUND_MAKE: units are of the
 * chunks of e, or as many as round->units says. plan: what units see; gather finds it as p->plan.
 * As kiln_run_units. */
kiln_status kiln_export_prepare(kiln_run *r, const kiln_writer *w, kiln_export *e, uint32_t number,
                                const kiln_export_round *round, kiln_buffer *plan,
                                kiln_error *err) KILN_MUST_CHECK;
/* Looks whether w refuses e, as kiln_export_run would before it writes anything. */
kiln_status kiln_export_check(kiln_run *r, const kiln_writer *w, kiln_export *e,
                              const kiln_loss *loss, kiln_error *err) KILN_MUST_CHECK;
/* A unit, in a worker whose state is an earlier one's or NULL. planes: where rows of
 * kiln_export.from are. */
kiln_status kiln_export_unit_of(kiln_worker *w, const kiln_export_planes *planes,
                                const void *payload, size_t bytes, kiln_error *err) KILN_MUST_CHECK;
/* The unit function of kiln-export. */
kiln_status kiln_export_unit(kiln_worker *w, const char *name, const void *payload, size_t bytes,
                             kiln_error *err) KILN_MUST_CHECK;

#endif
