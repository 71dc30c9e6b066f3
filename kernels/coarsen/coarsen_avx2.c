/* coarsen_avx2 -- which of the two builds of coarsen_cpu.c this machine gets: that of the
 * operations. */
#include "kernels/coarsen/coarsen_state.h"
#include "kernels/ops.h"

void kiln_coarsen_load_cpu_avx2(coarsen_state *s, const kiln_coarsen_rows *in);
void kiln_coarsen_merge_cpu_avx2(coarsen_state *s, uint64_t target, uint32_t max_members);

static const coarsen_code baseline = {kiln_coarsen_load_cpu, kiln_coarsen_merge_cpu},
                          avx2 = {kiln_coarsen_load_cpu_avx2, kiln_coarsen_merge_cpu_avx2};

const coarsen_code *kiln_coarsen_code(void)
{
    return kiln_ops_cpu() == kiln_ops_cpu_baseline() ? &baseline : &avx2;
}
