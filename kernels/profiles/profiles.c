/* profiles -- the table. A new profile: a row here, an id in profiles.h, a header with its constants and steps, and a
 * branch in kernels/project/project_math.h (kiln_project_lens). tests/unit/truth_test.c draws every row. */
#include "kernels/profiles/profiles.h"

#include "kernels/profiles/gsplat_15.h"
#include "kernels/profiles/gsplat_16.h"
#include "kernels/profiles/inria.h"

#include <string.h>

const kiln_profile kiln_profiles[KILN_PROFILE_COUNT] = {
    [KILN_PROFILE_INRIA] = {.name = "inria",
                            .near_m = KILN_INRIA_NEAR,
                            .far_m = INFINITY,
                            .max_alpha = KILN_INRIA_MAX_ALPHA,
                            .uses_principal_point = false,
                            .opacity_extent = false,
                            .summary = "the paper's rasteriser (graphdeco-inria/diff-gaussian-rasterization)"},
    [KILN_PROFILE_GSPLAT_15] = {.name = "gsplat-1.5",
                                .near_m = KILN_GSPLAT_NEAR,
                                .far_m = KILN_GSPLAT_FAR,
                                .max_alpha = KILN_GSPLAT_15_MAX_ALPHA,
                                .uses_principal_point = true,
                                .opacity_extent = true,
                                .summary = "nerfstudio-project/gsplat 1.5"},
    [KILN_PROFILE_GSPLAT_16] = {.name = "gsplat-1.6",
                                .near_m = KILN_GSPLAT_NEAR,
                                .far_m = KILN_GSPLAT_FAR,
                                .max_alpha = KILN_GSPLAT_16_MAX_ALPHA,
                                .uses_principal_point = true,
                                .opacity_extent = true,
                                .summary = "nerfstudio-project/gsplat 1.6"},
};

kiln_profile_id kiln_profile_find(const char *name)
{
    for (kiln_profile_id i = 0; i < KILN_PROFILE_COUNT; i++)
        if (strcmp(kiln_profiles[i].name, name) == 0) return i;
    return KILN_PROFILE_COUNT;
}
