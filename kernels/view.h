/* view -- one camera as the operations see it: float32, scene origin already subtracted.
 *
 * x right, y down, z forward; the centre of pixel (i, j) is at (i + 0.5, j + 0.5); tiles are 16 x
 * 16 pixels, row-major.
 */
#ifndef KILN_KERNELS_VIEW_H
#define KILN_KERNELS_VIEW_H

#include "base/extern_c.h"
#include "base/hd.h"

#include <stdint.h>

KILN_C_BEGIN

enum { KILN_TILE = 16 };

typedef struct {
    float r[9], t[3]; /* cam_from_world, row-major; world = scene coordinates minus origin */
    float centre[3];  /* camera centre, -R^T t, rounded once from double */
    /* the INRIA full projection matrix (clip from world), row-major, multiplied in double, rounded
     * once */
    float proj[16];
    float fx, fy, cx, cy;   /* pixels */
    float near_m, far_m;    /* scene units; what a profile does with them is in its header */
    uint32_t width, height; /* 1 .. 2^20 */
} kiln_view;

/* From the double pose of the manifest: x_cam = R x_world + t; origin is the scene's. */
void kiln_view_init(kiln_view *v, const double r[9], const double t[3], const double origin[3],
                    const double intrinsics[4], uint32_t width, uint32_t height, float near_m,
                    float far_m);

static inline KILN_HD uint32_t kiln_view_tiles_x(const kiln_view *v)
{
    return (v->width + KILN_TILE - 1) / KILN_TILE;
}
static inline KILN_HD uint32_t kiln_view_tiles_y(const kiln_view *v)
{
    return (v->height + KILN_TILE - 1) / KILN_TILE;
}

KILN_C_END

#endif
