/* settle -- see settle.h. */
#include "kernels/draw/settle.h"

#include "kernels/device.h"
#include "kernels/violation.h"

kiln_status kiln_settle(const kiln_exec *x, kiln_status st)
{
    const kiln_status waited = st == KILN_OK ? KILN_OK : kiln_device_wait(x, NULL);
    return st == KILN_OK ? waited : st; /* the first failure is the cause */
}

kiln_status kiln_violation_clear(const kiln_exec *x, uint64_t *violation, kiln_error *err)
{
    _Static_assert(KILN_VIOLATION_NONE == UINT64_MAX, "every byte of no violation is 0xff");
    return kiln_device_fill(x, violation, 0xff, sizeof *violation, err);
}

kiln_status kiln_violation_read(const kiln_exec *x, const uint64_t *violation, uint64_t *host,
                                kiln_error *err)
{
    KILN_TRY(kiln_device_copy_out(x, host, violation, sizeof *host, err));
    KILN_TRY(kiln_device_wait(x, err));
    return kiln_violation_fail(*host, err);
}
