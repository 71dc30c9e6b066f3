/* sh_halves on the CPU: row by row. */
#include "kernels/math/half_math.h"
#include "kernels/sh_halves/sh_halves.h"

kiln_sh_halves_fn KILN_CPU(sh_halves);

static float coefficient_of(const kiln_sh_halves_args *a, uint64_t row, uint32_t column)
{
    return column < a->columns ? a->shN[column * a->rows + row] : 0.0f;
}

/* kiln_sh_halves_cpu, kiln_sh_halves_cpu_avx2 */
kiln_status KILN_CPU(sh_halves)(const kiln_exec *x, const kiln_sh_halves_args *a, void *work,
                                size_t *work_bytes, kiln_error *err)
{
    KILN_TRY(kiln_sh_halves_check(a, err));
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    const uint32_t words = kiln_sh_words(a->columns);
#pragma omp parallel for num_threads(x->threads)
    for (uint64_t i = a->first; i < a->first + a->n; i++)
        for (uint32_t word = 0; word < words; word++)
            a->halves[i * words + word] =
                kiln_halves_of(coefficient_of(a, i, 2 * word), coefficient_of(a, i, 2 * word + 1));
    return KILN_OK;
}
