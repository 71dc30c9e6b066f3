/* ops_no_avx2 -- see base/isa.h. */
#include "kernels/ops.h"

const kiln_ops *kiln_ops_cpu(void) { return kiln_ops_cpu_baseline(); }
