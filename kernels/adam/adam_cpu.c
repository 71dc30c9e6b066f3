/* adam_cpu -- the definition: rows' geometry, then colours plane by plane. */
#include "kernels/adam/adam.h"

#include "kernels/adam/adam_math.h"

kiln_adam_fn KILN_CPU(adam);

/* kiln_adam_cpu, kiln_adam_cpu_avx2 */
kiln_status KILN_CPU(adam)(const kiln_exec *x, const kiln_adam_args *a, void *work,
                           size_t *work_bytes, kiln_error *err)
{
    KILN_TRY(kiln_adam_check(a, err));
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    const int64_t n = (int64_t)a->n,
                  colours = kiln_gradient_planes(a->sh_degree) - KILN_GRADIENT_SH;
#pragma omp parallel for num_threads(x->threads) schedule(static)
    for (int64_t row = 0; row < n; row++) kiln_adam_geometry(a, (uint64_t)row);
#pragma omp parallel for num_threads(x->threads) schedule(static)
    for (int64_t k = 0; k < colours; k++)
        for (int64_t row = 0; row < n; row++) kiln_adam_colour(a, (uint64_t)k, (uint64_t)row);
    return KILN_OK;
}
