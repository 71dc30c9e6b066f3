/* settle -- how work on a stream ends: what went wrong on the device is read, and nothing is under
 * way after a failure. */
#ifndef KILN_KERNELS_DRAW_SETTLE_H
#define KILN_KERNELS_DRAW_SETTLE_H

#include "base/extern_c.h"
#include "base/status.h"
#include "kernels/exec.h"

#include <stdint.h>

KILN_C_BEGIN

/* Returns st. If it is a failure, waits for the stream first, because work that is under way reads
 * and writes host memory. */
kiln_status kiln_settle(const kiln_exec *x, kiln_status st) KILN_MUST_CHECK;
/* Clear the violation word in device memory before the first operation; read it after the last one.
 * Reading waits for the stream and turns a violation into an error. *host must stay valid until the
 * stream has been waited for, whatever this returns. */
kiln_status kiln_violation_clear(const kiln_exec *x, uint64_t *violation,
                                 kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_violation_read(const kiln_exec *x, const uint64_t *violation, uint64_t *host,
                                kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
