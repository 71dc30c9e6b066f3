/* row_groups -- an order of rows in which each run of so many has a narrow box: for formats that
 * give every group of neighbours in the file bounds of its own. Nothing here but the workspace is
 * allocated; any thread. */
#ifndef KILN_STAGES_FORMATS_ROW_GROUPS_H
#define KILN_STAGES_FORMATS_ROW_GROUPS_H

#include "base/status.h"

#include <stdint.h>

enum { KILN_ROW_GROUP = 256 };

/* order[0..n): the numbers 0 .. n - 1, so that the rows of order[256 g .. 256 g + 255] are a group,
 * of which the last may be smaller. means [3]: planes of n finite coordinates; weights [3]: what a
 * coordinate's error counts, as a factor of a length. The same rows give the same order everywhere;
 * n < 2^31. KILN_E_NOMEM. */
kiln_status kiln_row_groups(const float *const means[3], uint64_t n, const double weights[3],
                            uint32_t *order, kiln_error *err) KILN_MUST_CHECK;
/* Memory that it takes besides, at most. */
uint64_t kiln_row_groups_ram(uint64_t n);

#endif
