/* prune on the CPU: rows are independent; the counts are integers, so that threads change
 * nothing. */
#include "kernels/prune/prune.h"

#include "kernels/prune/prune_math.h"

kiln_prune_fn KILN_CPU(prune);

static kiln_prune_one load(const kiln_prune_args *a, int64_t i)
{
    const int64_t n = (int64_t)a->n;
    kiln_prune_one one = {.opacity_logit = a->opacity_logits[i],
                          .spacing2 = a->spacing2 ? a->spacing2[i] : NAN,
                          .mark = a->drop ? a->drop[i] : (uint8_t)KILN_PRUNE_STAY};
    for (int c = 0; c < 3; c++) {
        one.mean[c] = a->means[c * n + i];
        one.log_scale[c] = a->log_scales[c * n + i];
    }
    return one;
}

/* kiln_prune_cpu, kiln_prune_cpu_avx2 */
kiln_status KILN_CPU(prune)(const kiln_exec *x, const kiln_prune_args *a, void *work,
                            size_t *work_bytes, kiln_error *err)
{
    enum { N_COUNTS = 2 * KILN_PRUNE_RULES };
    uint64_t counts[N_COUNTS] = {0};
    const int64_t n = (int64_t)a->n;
    const int threads = (int)x->threads;
    (void)err;
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : counts[:N_COUNTS]) if (n > 16384)
    for (int64_t i = 0; i < n; i++) {
        kiln_prune_one one = load(a, i);
        const int by = kiln_prune_row(a->rules, &one);
        a->keep[i] = by < 0;
        for (int c = 0; c < 3; c++) a->log_scales_out[c * n + i] = one.log_scale[c];
        if (by >= 0) counts[2 * by]++;
        for (int r = 0; one.clamped && r < KILN_PRUNE_RULES; r++)
            counts[2 * r + 1] += one.clamped >> r & 1u;
    }
    for (int r = 0; r < KILN_PRUNE_RULES; r++) {
        a->counts[r][0] += counts[2 * r];
        a->counts[r][1] += counts[2 * r + 1];
    }
    return KILN_OK;
}
