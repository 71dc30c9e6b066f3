/* coarsen_no_avx2 -- see base/isa.h. */
#include "kernels/coarsen/coarsen_state.h"

static const coarsen_code baseline = {kiln_coarsen_load_cpu, kiln_coarsen_merge_cpu};

const coarsen_code *kiln_coarsen_code(void) { return &baseline; }
