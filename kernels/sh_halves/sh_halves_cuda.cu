/* sh_halves on CUDA: a thread a word; neighbours read and write neighbours. */
#include "kernels/sh_halves/sh_halves.h"

#include "kernels/cuda.cuh"
#include "kernels/math/half_math.h"

namespace
{

enum { BLOCK = 256 };

__global__ void __launch_bounds__(BLOCK) make_halves(const kiln_sh_halves_args a)
{
    const uint64_t words = uint64_t(kiln_sh_words(a.columns)) * a.n;
    for (uint64_t i = kiln::thread_index(); i < words; i += kiln::thread_count()) {
        const uint64_t word = i / a.n, row = a.first + i % a.n;
        const float *const low = a.shN + 2 * word * a.rows + row;
        a.halves[word * a.rows + row] = kiln_halves_of(low[0], 2 * word + 1 < a.columns ? low[a.rows] : 0.0f);
    }
}

} // namespace

extern "C" kiln_status kiln_sh_halves_cuda(const kiln_exec *x, const kiln_sh_halves_args *a, void *work, size_t *work_bytes,
                                           kiln_error *err)
{
    const kiln::entry entry(x, "sh_halves");
    CUDA_ENTER(entry.guard);
    KILN_TRY(kiln_sh_halves_check(a, err));
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    const uint64_t words = uint64_t(kiln_sh_words(a->columns)) * a->n;
    if (words > 0) LAUNCH(make_halves, kiln::blocks_for(words, BLOCK), BLOCK, 0, *a);
    return KILN_OK;
}
