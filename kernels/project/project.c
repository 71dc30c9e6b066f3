/* What both siblings of project ask of their arguments. */
#include "kernels/project/project.h"

#include "kernels/project/sh_math.h"

kiln_status kiln_project_check(const kiln_project_args *a, kiln_error *err)
{
    if (a->n > UINT32_MAX - 1)
        return kiln_fail(err, KILN_E_INPUT,
                         "project: a chunk has %llu Gaussians; at most 2^32 - 2 can be numbered",
                         (unsigned long long)a->n);
    if (a->sh_degree > KILN_SH_DEGREE_MAX)
        return kiln_fail(
            err, KILN_E_INPUT,
            "project: the spherical harmonics have degree %u; the highest known degree is %d",
            a->sh_degree, KILN_SH_DEGREE_MAX);
    if (a->sh_halves && !a->half_sh)
        return kiln_fail(err, KILN_E_INPUT,
                         "project: exact colours cannot be computed from halves");
    if ((uintptr_t)a->sh_halves % 16 != 0)
        return kiln_fail(err, KILN_E_INPUT, "project: halves are not aligned to 16 bytes");
    return KILN_OK;
}
