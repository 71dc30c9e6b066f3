/* export_told -- what is said of a written file: to people, and in the report. */
#ifndef KILN_STAGES_EXPORT_EXPORT_TOLD_H
#define KILN_STAGES_EXPORT_EXPORT_TOLD_H

#include "stages/export/export_rounds.h"
#include "stages/export/export_targets.h"

/* From now on kiln_export_tell speaks to users of kiln convert, who know no layers. place: what it
 * calls the target, a literal; NULL: its path, in quotes. */
void kiln_export_tell_converted(const char *place);
void kiln_export_tell(const kiln_export_target *to, const kiln_export *e,
                      const kiln_export_said *said);
/* The first file's facts are the run's, too. KILN_E_NOMEM. */
kiln_status kiln_export_report(kiln_run *r, const kiln_export_target *to, const kiln_export *e,
                               const kiln_export_said *said, kiln_error *err) KILN_MUST_CHECK;

#endif
