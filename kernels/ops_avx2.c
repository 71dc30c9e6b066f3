/* ops_avx2 -- the CPU table with AVX2 and FMA, and whether this machine gets it. */
#include "base/isa.h"
#include "kernels/ops.h"

#include <stdlib.h>
#include <string.h>

/* kiln_knn_cpu_avx2 and so on: a name for each row of KILN_OP_MAP. */
#define OP(op) kiln_##op##_fn kiln_##op##_cpu_avx2;
KILN_OP_MAP(OP)
#undef OP

static const kiln_ops avx2 = {.name = "cpu-avx2",
#define OP(op) .op = kiln_##op##_cpu_avx2,
                              KILN_OP_MAP(OP)
#undef OP
};

const kiln_ops *kiln_ops_cpu(void)
{
    const char *want = getenv("KILN_ISA");
    if (!kiln_isa_avx2()) return kiln_ops_cpu_baseline();
    return want && strcmp(want, "baseline") == 0 ? kiln_ops_cpu_baseline() : &avx2;
}
