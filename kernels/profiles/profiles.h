/* profiles -- the exact arithmetic of a renderer family, by name; which programs these are: DESIGN.md here.
 *
 * A profile is a row here and a header kernels/profiles/NAME.h with its constants and its projection steps. The
 * antialiased variant is a flag beside it, not another row: six profiles are three rows times two.
 */
#ifndef KILN_KERNELS_PROFILES_H
#define KILN_KERNELS_PROFILES_H

#include "base/extern_c.h"

#include <stdbool.h>
#include <stdint.h>

KILN_C_BEGIN

typedef enum { KILN_PROFILE_INRIA, KILN_PROFILE_GSPLAT_15, KILN_PROFILE_GSPLAT_16, KILN_PROFILE_COUNT } kiln_profile_id;

typedef struct {
    const char *name;          /* "inria", "gsplat-1.5", "gsplat-1.6" */
    float near_m, far_m;       /* defaults of that renderer: 0.2, none; 0.01, 1e10 */
    float max_alpha;           /* 0.99, 0.999, 0.99 */
    bool uses_principal_point; /* inria draws with the principal point in the middle of the image */
    bool opacity_extent;       /* the cull looks at opacity: the chunk bound may use it */
    const char *summary;       /* one line for --help and README */
} kiln_profile;

extern const kiln_profile kiln_profiles[KILN_PROFILE_COUNT];
/* KILN_PROFILE_COUNT when there is none of that name. */
kiln_profile_id kiln_profile_find(const char *name);

KILN_C_END

#endif
