/* gsplat_16 -- what gsplat 1.6.0 (main, 90d7b4b) has of its own; the steps are in gsplat.h. */
#ifndef KILN_KERNELS_PROFILES_GSPLAT_16_H
#define KILN_KERNELS_PROFILES_GSPLAT_16_H

#include "kernels/profiles/gsplat.h"

#define KILN_GSPLAT_16_MAX_ALPHA 0.99f /* since February 2026 */
/* since commit 421f769, March 2026; INRIA's floor */
#define KILN_GSPLAT_16_AA_FLOOR (0.005f * 0.005f)

#endif
