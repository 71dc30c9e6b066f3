/* What both siblings of sh_halves ask of their arguments. */
#include "kernels/sh_halves/sh_halves.h"

kiln_status kiln_sh_halves_check(const kiln_sh_halves_args *a, kiln_error *err)
{
    if ((uintptr_t)a->halves % 16 != 0)
        return kiln_fail(err, KILN_E_INPUT, "sh_halves: halves are not aligned to 16 bytes");
    if (a->first <= a->rows && a->n <= a->rows - a->first) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "sh_halves: %llu rows from row %llu on are not within %llu",
                     (unsigned long long)a->n, (unsigned long long)a->first,
                     (unsigned long long)a->rows);
}
