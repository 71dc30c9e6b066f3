/* violation -- what an operation says of input that is bad in a way that only its data show. The CPU sibling returns the
 * sentence; a CUDA kernel cannot, so it leaves a number in exec->violation, and whoever waits for the stream makes the
 * sentence of it. Of several violations the lowest number stays, so the answer does not depend on which thread came first. */
#ifndef KILN_KERNELS_VIOLATION_H
#define KILN_KERNELS_VIOLATION_H

#include "base/extern_c.h"
#include "base/status.h"

#include <stdint.h>

KILN_C_BEGIN

/* name, status, sentence with one number in it */
#define KILN_VIOLATION_MAP(X)                                                       \
    X(RASTER_RANK, E_INPUT, "raster: pair %llu names a Gaussian that is not there") \
    X(RASTER_PAIRS, E_INPUT, "raster: the tiles list %llu pairs, fewer were given") \
    X(EMIT_PAIRS, E_BUG, "tile_pairs_emit: the tile rows hold %llu pairs, another number was counted")

typedef enum {
#define X(name, status, text) KILN_VIOLATION_##name,
    KILN_VIOLATION_MAP(X)
#undef X
        KILN_VIOLATION_COUNT
} kiln_violation_id;

/* What lies in *exec->violation while there is none. */
#define KILN_VIOLATION_NONE UINT64_MAX
/* The number that stands for a violation; id as KILN_VIOLATION_RASTER_RANK. A value beyond the most it can hold becomes that. */
#define KILN_VIOLATION_VALUE_MAX (((uint64_t)1 << 56) - 1)
#define KILN_VIOLATION(id, value) \
    ((uint64_t)(id) << 56 | ((uint64_t)(value) < KILN_VIOLATION_VALUE_MAX ? (uint64_t)(value) : KILN_VIOLATION_VALUE_MAX))

/* KILN_OK for KILN_VIOLATION_NONE; else the status and the sentence of the violation. */
kiln_status kiln_violation_fail(uint64_t violation, kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
