/* ops_cpu -- the CPU table that any machine can use; ops_avx2.c has the other one of x86-64. */
#include "kernels/ops.h"

/* kiln_knn_cpu and so on: a name for each row of KILN_OP_MAP. */
#define OP(op) kiln_##op##_fn kiln_##op##_cpu;
KILN_OP_MAP(OP)
#undef OP

static const kiln_ops baseline = {.name = "cpu",
#define OP(op) .op = kiln_##op##_cpu,
                                  KILN_OP_MAP(OP)
#undef OP
};

const kiln_ops *kiln_ops_cpu_baseline(void) { return &baseline; }
