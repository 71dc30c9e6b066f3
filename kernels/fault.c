/* fault -- from the number to the sentence. */
#include "kernels/fault.h"

kiln_status kiln_fault_fail(uint64_t fault, kiln_error *err)
{
    const unsigned long long value = fault & KILN_FAULT_VALUE_MAX;
    if (fault == KILN_FAULT_NONE) return KILN_OK;
    switch (fault >> 56) {
#define X(name, status, text) \
    case KILN_FAULT_##name:   \
        return kiln_fail(err, KILN_##status, text, value);
        KILN_FAULT_MAP(X)
#undef X
    }
    return kiln_fail(err, KILN_E_BUG, "an operation left the unknown fault %#llx", (unsigned long long)fault);
}
