/* violation -- how an operation reports input data that break its contract, such as a rank without
 * a Gaussian.
 *
 * The CPU sibling returns the status and the message. A CUDA kernel cannot: it writes a number to
 * exec->violation, and the function that waits for the stream turns it into status and message
 * (kiln_violation_fail). If there are several violations, the smallest number stays, so the result
 * does not depend on which thread came first.
 *
 * Failures that tests inject on purpose are called faults (KILN_FAULT) and have nothing to do with
 * this.
 */
#ifndef KILN_KERNELS_VIOLATION_H
#define KILN_KERNELS_VIOLATION_H

#include "base/extern_c.h"
#include "base/status.h"

#include <stdint.h>

KILN_C_BEGIN

/* name, status, message with one number in it */
#define KILN_VIOLATION_MAP(X)                                                           \
    X(RASTER_RANK, E_INPUT, "raster: pair %llu names a Gaussian that does not exist")   \
    X(RASTER_PAIRS, E_INPUT, "raster: the tiles list %llu pairs, but fewer were given") \
    X(EMIT_PAIRS, E_BUG,                                                                \
      "tile_pairs_emit: the tile rows hold %llu pairs, but another number was counted") \
    X(PALETTE_ROW, E_INPUT, "palette: a value of row %llu is beyond 2047")              \
    X(PALETTE_ENTRY, E_INPUT, "palette: a value of entry %llu is beyond 2047")          \
    X(PALETTE_INDEX, E_INPUT, "palette: word %llu of the index is invalid")

typedef enum {
#define X(name, status, text) KILN_VIOLATION_##name,
    KILN_VIOLATION_MAP(X)
#undef X
        KILN_VIOLATION_COUNT
} kiln_violation_id;

/* The value of *exec->violation while there is none. */
#define KILN_VIOLATION_NONE UINT64_MAX
/* Encodes a violation; id is for instance KILN_VIOLATION_RASTER_RANK. A value above
 * KILN_VIOLATION_VALUE_MAX becomes that. */
#define KILN_VIOLATION_VALUE_MAX (((uint64_t)1 << 56) - 1)
#define KILN_VIOLATION(id, value)                                      \
    ((uint64_t)(id) << 56 |                                            \
     ((uint64_t)(value) < KILN_VIOLATION_VALUE_MAX ? (uint64_t)(value) \
                                                   : KILN_VIOLATION_VALUE_MAX))

/* Returns KILN_OK for KILN_VIOLATION_NONE, else the status of the violation, with its message in
 * *err. */
kiln_status kiln_violation_fail(uint64_t violation, kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
