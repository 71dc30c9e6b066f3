/* host_collect -- makes a drawing in host memory; the runner's device, if it has one, computes. */
#ifndef KILN_KERNELS_HOST_COLLECT_H
#define KILN_KERNELS_HOST_COLLECT_H

#include "kernels/draw/draw_types.h"

KILN_C_BEGIN

/* As kiln_draw_collect. *out is empty before, and after a failure. */
kiln_status kiln_host_collect(kiln_runner *r, const kiln_draw_scene *s, kiln_drawing *out,
                              kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
