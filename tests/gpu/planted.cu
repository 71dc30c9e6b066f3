#include "tests/gpu/planted.h"

#include "kernels/cuda.cuh"

extern "C" kiln_knn_fn kiln_knn_cuda;

namespace
{

__global__ void write_far_outside(float *out)
{
    if (kiln::thread_index() == 0) out[uint64_t(1) << 40] = 1.0f;
}

__global__ void do_nothing() {}

} // namespace

extern "C" kiln_status kiln_planted_unguarded(const kiln_exec *x, const kiln_knn_args *a,
                                              void *work, size_t *work_bytes, kiln_error *err)
{
    CUDA_TRY(cudaSetDevice(x->device));
    return kiln_knn_cuda(x, a, work, work_bytes, err);
}

extern "C" kiln_status kiln_planted_write(const kiln_exec *x, const kiln_knn_args *a, void *work,
                                          size_t *work_bytes, kiln_error *err)
{
    kiln::entry entry(x, "planted_write");
    CUDA_ENTER(entry.guard);
    if (!work) {
        *work_bytes = 1;
        return KILN_OK;
    }
    LAUNCH(write_far_outside, 1, 32, 0, a->spacing2);
    return KILN_OK;
}

extern "C" kiln_status kiln_planted_launch(const kiln_exec *x, const kiln_knn_args *, void *work,
                                           size_t *work_bytes, kiln_error *err)
{
    enum { TOO_MANY = 4096 }; /* threads; a block has 1024 at most */
    kiln::entry entry(x, "planted_launch");
    CUDA_ENTER(entry.guard);
    if (!work) {
        *work_bytes = 1;
        return KILN_OK;
    }
    LAUNCH(do_nothing, 1, TOO_MANY, 0);
    return KILN_OK;
}
