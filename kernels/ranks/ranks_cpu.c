/* ranks on the CPU: one counting loop. Threads would need a table of 512 KiB each and the counting
 * is bound by memory; a stage runs pieces side by side instead. */
#include "kernels/ranks/ranks.h"

kiln_ranks_fn KILN_CPU(ranks);

/* kiln_ranks_cpu, kiln_ranks_cpu_avx2 */
kiln_status KILN_CPU(ranks)(const kiln_exec *x, const kiln_ranks_args *a, void *work,
                            size_t *work_bytes, kiln_error *err)
{
    (void)x;
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    KILN_TRY(kiln_ranks_check(a, err));
    for (uint64_t i = 0; i < a->n; i++) {
        const uint32_t key = kiln_rank_key(a->values[i]);
        if (a->pass == 0)
            a->counts[key >> 16]++;
        else if (key >> 16 == a->high)
            a->counts[key & 0xffffu]++;
    }
    return KILN_OK;
}
