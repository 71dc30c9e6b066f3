/* ops_cuda -- the CUDA table: linked, with the .cu files, where there is nvcc; ops_no_cuda.c stands
 * in elsewhere. */
#include "kernels/ops.h"

/* kiln_knn_cuda and so on: a name for each row of KILN_OP_MAP. */
#define OP(op) kiln_##op##_fn kiln_##op##_cuda;
KILN_OP_MAP(OP)
#undef OP

static const kiln_ops cuda = {.name = "cuda",
#define OP(op) .op = kiln_##op##_cuda,
                              KILN_OP_MAP(OP)
#undef OP
};

const kiln_ops *kiln_ops_cuda(void) { return &cuda; }
