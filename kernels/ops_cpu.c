/* ops_cpu -- the two CPU tables and which of them this machine gets. */
#include "kernels/ops.h"

#include <stdlib.h>
#include <string.h>

/* kiln_knn_cpu, kiln_knn_cpu_avx2 and so on: two names for each row of KILN_OP_MAP. */
#define OP(op) kiln_##op##_fn kiln_##op##_cpu, kiln_##op##_cpu_avx2;
KILN_OP_MAP(OP)
#undef OP

static const kiln_ops baseline = {.name = "cpu",
#define OP(op) .op = kiln_##op##_cpu,
                                  KILN_OP_MAP(OP)
#undef OP
};

static const kiln_ops avx2 = {.name = "cpu-avx2",
#define OP(op) .op = kiln_##op##_cpu_avx2,
                              KILN_OP_MAP(OP)
#undef OP
};

const kiln_ops *kiln_ops_cpu_baseline(void) { return &baseline; }

const kiln_ops *kiln_ops_cpu(void)
{
    const char *want = getenv("KILN_ISA");
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return &baseline;
    return want && strcmp(want, "baseline") == 0 ? &baseline : &avx2;
}
