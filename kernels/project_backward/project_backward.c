/* What both siblings ask of their arguments. */
#include "kernels/project_backward/project_backward.h"

#include "kernels/project/sh_math.h"

kiln_status kiln_project_backward_check(const kiln_project_backward_args *a, kiln_error *err)
{
    if (a->n > UINT32_MAX - 1 || a->n_splats > UINT32_MAX - 1)
        return kiln_fail(
            err, KILN_E_INPUT,
            "project_backward: %llu rows with %llu splats; at most 2^32 - 2 are possible",
            (unsigned long long)a->n, (unsigned long long)a->n_splats);
    if (a->sh_degree > KILN_SH_DEGREE_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "project_backward: the spherical harmonics have degree %u; the highest "
                         "known degree is %d",
                         a->sh_degree, KILN_SH_DEGREE_MAX);
    if (a->profile >= KILN_PROFILE_COUNT)
        return kiln_fail(err, KILN_E_BUG, "project_backward: profile %d does not exist",
                         (int)a->profile);
    return KILN_OK;
}
