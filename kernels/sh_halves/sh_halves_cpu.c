/* sh_halves on the CPU: word by word, as memory has them. */
#include "kernels/math/half_math.h"
#include "kernels/sh_halves/sh_halves.h"

kiln_sh_halves_fn KILN_CPU(sh_halves);

kiln_status KILN_CPU(sh_halves)(const kiln_exec *x, const kiln_sh_halves_args *a, void *work, size_t *work_bytes, kiln_error *err)
{
    KILN_TRY(kiln_sh_halves_check(a, err));
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
#pragma omp parallel for num_threads(x->threads)
    for (uint32_t word = 0; word < kiln_sh_words(a->columns); word++) {
        const float *const low = a->shN + 2 * (uint64_t)word * a->rows, *const high = low + a->rows;
        const bool two = 2 * word + 1 < a->columns;
        uint32_t *const to = a->halves + word * a->rows;
        for (uint64_t i = a->first; i < a->first + a->n; i++) to[i] = kiln_halves_of(low[i], two ? high[i] : 0.0f);
    }
    return KILN_OK;
}
