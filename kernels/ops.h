/* ops -- the one place that knows all operations. A new one: its folder (contract header, arithmetic header, CPU file,
 * CUDA file, DESIGN.md) and one row of KILN_OP_MAP; a missing sibling is a link error, the same-bits test comes by itself.
 * Stages call through a table, never a sibling by name. */
#ifndef KILN_KERNELS_OPS_H
#define KILN_KERNELS_OPS_H

#include "base/extern_c.h"
#include "kernels/depth_order/depth_order.h"
#include "kernels/initial/initial.h"
#include "kernels/knn/knn.h"
#include "kernels/metrics/metrics.h"
#include "kernels/project/project.h"
#include "kernels/prune/prune.h"
#include "kernels/ranks/ranks.h"
#include "kernels/raster/raster.h"
#include "kernels/spatial_order/spatial_order.h"
#include "kernels/tile_pairs/tile_pairs.h"

KILN_C_BEGIN

#define KILN_OP_MAP(OP)  \
    OP(depth_order)      \
    OP(initial)          \
    OP(knn)              \
    OP(metrics)          \
    OP(project)          \
    OP(prune)            \
    OP(ranks)            \
    OP(raster)           \
    OP(spatial_order)    \
    OP(tile_pairs_count) \
    OP(tile_pairs_emit)

typedef struct {
    const char *name; /* "cpu", "cpu-avx2", "cuda" */
#define OP(op) kiln_##op##_fn *op;
    KILN_OP_MAP(OP)
#undef OP
} kiln_ops;

/* The CPU table: AVX2 and FMA code where the machine has them; KILN_ISA=baseline|avx2 in the environment decides otherwise. */
const kiln_ops *kiln_ops_cpu(void);
const kiln_ops *kiln_ops_cpu_baseline(void);
const kiln_ops *kiln_ops_cuda(void); /* NULL in a build without CUDA */

KILN_C_END

#endif
