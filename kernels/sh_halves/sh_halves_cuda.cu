/* sh_halves on CUDA: a thread for 16 bytes, eight columns of a row; its neighbours are of the next
 * rows. */
#include "kernels/sh_halves/sh_halves.h"

#include "kernels/cuda.cuh"
#include "kernels/math/half_math.h"

namespace
{

enum { BLOCK = 256 };

__device__ uint32_t word_of(const kiln_sh_halves_args &a, uint64_t row, uint32_t column)
{
    const float *const at = a.shN + column * a.rows + row;
    return kiln_halves_of(column < a.columns ? at[0] : 0.0f,
                          column + 1 < a.columns ? at[a.rows] : 0.0f);
}

__global__ void __launch_bounds__(BLOCK) make_halves(const kiln_sh_halves_args a)
{
    const uint64_t pieces = kiln_sh_words(a.columns) / 4;
    for (uint64_t i = kiln::thread_index(); i < pieces * a.n; i += kiln::thread_count()) {
        const uint64_t piece = i / a.n, row = a.first + i % a.n;
        const uint32_t column = static_cast<uint32_t>(8 * piece);
        reinterpret_cast<uint4 *>(a.halves)[row * pieces + piece] = {
            word_of(a, row, column), word_of(a, row, column + 2), word_of(a, row, column + 4),
            word_of(a, row, column + 6)};
    }
}

} // namespace

extern "C" kiln_status kiln_sh_halves_cuda(const kiln_exec *x, const kiln_sh_halves_args *a,
                                           void *work, size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "sh_halves");
    CUDA_ENTER(entry.guard);
    KILN_TRY(kiln_sh_halves_check(a, err));
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    const uint64_t pieces = uint64_t(kiln_sh_words(a->columns)) / 4 * a->n;
    if (pieces > 0) LAUNCH(make_halves, kiln::blocks_for(pieces, BLOCK), BLOCK, 0, *a);
    return KILN_OK;
}
