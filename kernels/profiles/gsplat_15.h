/* gsplat_15 -- what gsplat v1.5.3 (937e299) has of its own; the steps are in gsplat.h. */
#ifndef KILN_KERNELS_PROFILES_GSPLAT_15_H
#define KILN_KERNELS_PROFILES_GSPLAT_15_H

#include "kernels/profiles/gsplat.h"

/* RasterizeToPixels3DGSFwd.cu: min(0.999f, opac * __expf(-sigma)) */
#define KILN_GSPLAT_15_MAX_ALPHA 0.999f
#define KILN_GSPLAT_15_AA_FLOOR 0.0f /* add_blur: sqrt(max(0, det_orig / det_blur)) */

#endif
