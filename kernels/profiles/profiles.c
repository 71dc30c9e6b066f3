/* profiles -- profiles.def as arrays. */
#include "kernels/profiles/profiles.h"

#include "kernels/profiles/gsplat_15.h"
#include "kernels/profiles/gsplat_16.h"
#include "kernels/profiles/inria.h"

#include <string.h>

/* KILN_PROFILE_INRIA, KILN_PROFILE_GSPLAT_15, KILN_PROFILE_GSPLAT_16 */
const kiln_profile kiln_profiles[KILN_PROFILE_COUNT] = {
#define PROFILE(ID, name, family, near_m, far_m, max_alpha, stop_below, aa_floor, summary) \
    [KILN_PROFILE_##ID] = {name,      KILN_FAMILY_##family, near_m,   far_m,               \
                           max_alpha, stop_below,           aa_floor, summary},
#include "kernels/profiles/profiles.def"
};

/* kiln_inria_projection, kiln_inria_reach, kiln_gsplat_projection, kiln_gsplat_reach */
const kiln_family_steps kiln_families[KILN_FAMILY_COUNT] = {
#define FAMILY(id) [KILN_FAMILY_##id] = {kiln_##id##_projection, kiln_##id##_reach},
#include "kernels/profiles/profiles.def"
};

const char kiln_profile_names[] = ""
#define PROFILE(ID, name, family, near_m, far_m, max_alpha, stop_below, aa_floor, summary) "|" name
#include "kernels/profiles/profiles.def"
    ;

const char kiln_profile_brief[] = "the renderer, one of"
#define PROFILE(ID, name, family, near_m, far_m, max_alpha, stop_below, aa_floor, summary) " " name
#include "kernels/profiles/profiles.def"
    ;

kiln_profile_id kiln_profile_find(const char *name)
{
    for (kiln_profile_id i = 0; i < KILN_PROFILE_COUNT; i++)
        if (strcmp(kiln_profiles[i].name, name) == 0) return i;
    return KILN_PROFILE_COUNT;
}
