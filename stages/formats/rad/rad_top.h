/* rad_top -- the rows above the root's coarsest level: each stands for eight, up to one. */
#ifndef KILN_STAGES_FORMATS_RAD_RAD_TOP_H
#define KILN_STAGES_FORMATS_RAD_RAD_TOP_H

#include "stages/formats/rad/rad_rows.h"

/* Writes the records of all of them, in the file's order, into records. rows: of the root's
 * coarsest level. KILN_E_NOMEM. */
kiln_status kiln_rad_top(const kiln_export *e, const kiln_rad_head *h, const kiln_export_rows *rows,
                         unsigned char *records, kiln_error *err) KILN_MUST_CHECK;
/* Memory that it takes, with the records. */
uint64_t kiln_rad_top_ram(const kiln_rad_head *h);

#endif
