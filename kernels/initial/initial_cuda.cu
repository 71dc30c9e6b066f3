/* initial on CUDA: one thread a point; fallbacks are rare, so that counting them by atomics costs
 * nothing. */
#include "kernels/initial/initial.h"

#include "kernels/cuda.cuh"
#include "kernels/initial/initial_math.h"

namespace
{

enum { BLOCK = 256 };

__global__ void __launch_bounds__(BLOCK) make_gaussians(kiln_initial_args a)
{
    const float logit = kiln_logitf(a.opacity);
    uint64_t fallbacks = 0;
    for (uint64_t i = kiln::thread_index(); i < a.n; i += kiln::thread_count()) {
        int known;
        const float log_scale = kiln_initial_log_scale(a.spacing2[i], a.fallback_log_scale, &known);
        fallbacks += !known;
        for (int c = 0; c < 3; c++) {
            a.log_scales[c * a.n + i] = log_scale;
            a.sh0[c * a.n + i] = kiln_initial_sh0(a.rgb[c * a.n + i]);
            a.quats[(c + 1) * a.n + i] = 0.0f;
        }
        a.quats[i] = 1.0f;
        a.opacity_logits[i] = logit;
    }
    if (fallbacks > 0) kiln::add64(a.n_fallback, fallbacks);
}

} // namespace

extern "C" kiln_status kiln_initial_cuda(const kiln_exec *x, const kiln_initial_args *a, void *work,
                                         size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "initial");
    CUDA_ENTER(entry.guard);
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    CUDA_RUN(cudaMemsetAsync(a->n_fallback, 0, sizeof *a->n_fallback, x->stream));
    if (a->n == 0) return KILN_OK;
    LAUNCH(make_gaussians, kiln::blocks_for(a->n, BLOCK), BLOCK, 0, *a);
    return KILN_OK;
}
