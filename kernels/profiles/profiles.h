/* profiles -- the exact arithmetic of a renderer family, by name; which programs these are:
 * DESIGN.md here.
 *
 * A profile is a row of profiles.def, whose head says how to add one. The antialiased variant is a
 * flag beside it, not another row: six profiles are three rows times two.
 */
#ifndef KILN_KERNELS_PROFILES_H
#define KILN_KERNELS_PROFILES_H

#include "base/extern_c.h"

#include <stdbool.h>
#include <stdint.h>

KILN_C_BEGIN

/* A name for each PROFILE row: KILN_PROFILE_INRIA, KILN_PROFILE_GSPLAT_15,
 * KILN_PROFILE_GSPLAT_16. */
typedef enum {
#define PROFILE(ID, name, family, near_m, far_m, max_alpha, stop_below, aa_floor, summary) \
    KILN_PROFILE_##ID,
#include "kernels/profiles/profiles.def"
    KILN_PROFILE_COUNT
} kiln_profile_id;

/* Which projection steps a profile takes. A name for each FAMILY row: KILN_FAMILY_inria,
 * KILN_FAMILY_gsplat. */
typedef enum {
#define FAMILY(id) KILN_FAMILY_##id,
#include "kernels/profiles/profiles.def"
    KILN_FAMILY_COUNT
} kiln_family;

typedef struct {
    const char *name; /* "inria", "gsplat-1.5", "gsplat-1.6" */
    kiln_family family;
    float near_m, far_m; /* defaults of that renderer, scene units: 0.2, none; 0.01, 1e10 */
    float max_alpha;     /* of one Gaussian in one pixel: 0.99, 0.999, 0.99 */
    /* a Gaussian that would leave a pixel less transmittance than this is not drawn, and ends the
     * pixel */
    float stop_below;
    /* least det0 / det in the factor that an antialiased variant multiplies the opacity with */
    float aa_floor;
    const char *summary; /* one line for --help and docs/render.md */
} kiln_profile;

extern const kiln_profile kiln_profiles[KILN_PROFILE_COUNT];
/* The names with a bar before each, "|inria|gsplat-1.5|...": behind the first bar they are the
 * choices of an option. */
extern const char kiln_profile_names[];
/* All names in a line of --help. */
extern const char kiln_profile_brief[];
/* KILN_PROFILE_COUNT when there is none of that name. */
kiln_profile_id kiln_profile_find(const char *name);

KILN_C_END

#endif
