/* ops -- the table of all operations.
 *
 * To add one: its folder (contract header with KILN_ARRAYS_op, arithmetic header, CPU file, CUDA
 * file, DESIGN.md), its #include and a row of KILN_OP_MAP here, and a function that makes its
 * arguments in tests/gpu/makers_*.c, without which the tests do not compile. A missing sibling is a
 * link error, that of CUDA only in a build with CUDA. The test of same bits then includes it by
 * itself. In profilers it has the name that its CUDA entry gives to kiln::entry.
 *
 * Stages call operations through kernels/runner.h, never a sibling by name. KILN_OP_MAP(OP) with
 * OP(knn) makes the names kiln_knn_fn, kiln_knn_args, kiln_knn_cpu, kiln_knn_cpu_avx2,
 * kiln_knn_cuda, KILN_OP_knn and KILN_ARRAYS_knn.
 */
#ifndef KILN_KERNELS_OPS_H
#define KILN_KERNELS_OPS_H

#include "base/extern_c.h"
#include "kernels/adam/adam.h"
#include "kernels/blend_weights/blend_weights.h"
#include "kernels/depth_order/depth_order.h"
#include "kernels/initial/initial.h"
#include "kernels/knn/knn.h"
#include "kernels/lens/lens.h"
#include "kernels/metrics/metrics.h"
#include "kernels/palette/palette.h"
#include "kernels/pixel_bytes/pixel_bytes.h"
#include "kernels/pixel_hashes/pixel_hashes.h"
#include "kernels/png_rows/png_rows.h"
#include "kernels/project/project.h"
#include "kernels/project_backward/project_backward.h"
#include "kernels/prune/prune.h"
#include "kernels/ranks/ranks.h"
#include "kernels/raster/raster.h"
#include "kernels/raster_backward/raster_backward.h"
#include "kernels/visible/visible.h"
#include "kernels/sh_halves/sh_halves.h"
#include "kernels/spatial_order/spatial_order.h"
#include "kernels/ssim/ssim.h"
#include "kernels/ssim3d/ssim3d.h"
#include "kernels/tile_lists/tile_lists.h"
#include "kernels/tile_pairs/tile_pairs.h"
#include "kernels/undistort/undistort.h"

KILN_C_BEGIN

#define KILN_OP_MAP(OP)  \
    OP(adam)             \
    OP(blend_weights)    \
    OP(depth_order)      \
    OP(initial)          \
    OP(knn)              \
    OP(knn_join)         \
    OP(metrics)          \
    OP(palette_assign)   \
    OP(palette_index)    \
    OP(palette_train)    \
    OP(pixel_bytes)      \
    OP(pixel_hashes)     \
    OP(png_rows)         \
    OP(project)          \
    OP(project_backward) \
    OP(prune)            \
    OP(ranks)            \
    OP(raster)           \
    OP(raster_backward)  \
    OP(visible_gather)   \
    OP(visible_order)    \
    OP(visible_window)   \
    OP(sh_halves)        \
    OP(spatial_order)    \
    OP(ssim)             \
    OP(ssim_backward)    \
    OP(ssim3d)           \
    OP(ssim3d_backward)  \
    OP(tile_lists)       \
    OP(tile_pairs_count) \
    OP(tile_pairs_emit)  \
    OP(undistort)

typedef struct {
    const char *name; /* "cpu", "cpu-avx2", "cuda" */
#define OP(op) kiln_##op##_fn *op;
    KILN_OP_MAP(OP)
#undef OP
} kiln_ops;

/* Returns the CPU table: AVX2 and FMA code if the machine has them, unless KILN_ISA=baseline|avx2
 * in the environment says otherwise. */
const kiln_ops *kiln_ops_cpu(void);
const kiln_ops *kiln_ops_cpu_baseline(void);
const kiln_ops *kiln_ops_cuda(void); /* NULL in a build without CUDA */

KILN_C_END

#endif
