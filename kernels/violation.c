/* violation -- see violation.h: turns the number into status and message. */
#include "kernels/violation.h"

kiln_status kiln_violation_fail(uint64_t violation, kiln_error *err)
{
    const unsigned long long value = violation & KILN_VIOLATION_VALUE_MAX;
    if (violation == KILN_VIOLATION_NONE) return KILN_OK;
    switch (violation >> 56) {
#define X(name, status, text)   \
    case KILN_VIOLATION_##name: \
        return kiln_fail(err, KILN_##status, text, value);
        KILN_VIOLATION_MAP(X)
#undef X
    }
    return kiln_fail(err, KILN_E_BUG, "an operation left the unknown violation %#llx",
                     (unsigned long long)violation);
}
