/* initial on the CPU: one loop over points, planes written where they belong. */
#include "kernels/initial/initial.h"

#include "kernels/initial/initial_math.h"

#include <string.h>

kiln_initial_fn KILN_CPU(initial);

/* kiln_initial_cpu, kiln_initial_cpu_avx2 */
kiln_status KILN_CPU(initial)(const kiln_exec *x, const kiln_initial_args *a, void *work,
                              size_t *work_bytes, kiln_error *err)
{
    const int64_t n = (int64_t)a->n;
    const int threads = (int)x->threads;
    int64_t fallbacks = 0;
    (void)err;
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    const float logit = kiln_logitf(a->opacity);
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : fallbacks) if (n > 16384)
    for (int64_t i = 0; i < n; i++) {
        int known;
        const float log_scale =
            kiln_initial_log_scale(a->spacing2[i], a->fallback_log_scale, &known);
        fallbacks += !known;
        for (int c = 0; c < 3; c++) {
            a->log_scales[c * n + i] = log_scale;
            a->sh0[c * n + i] = kiln_initial_sh0(a->rgb[c * n + i]);
            a->quats[(c + 1) * n + i] = 0.0f;
        }
        a->quats[i] = 1.0f;
        a->opacity_logits[i] = logit;
    }
    *a->n_fallback = (uint64_t)fallbacks;
    return KILN_OK;
}
