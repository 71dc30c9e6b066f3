/* side_cuda -- a part of an operation on x->side, beside what the operation meanwhile puts on
 * x->stream:
 *
 *   kiln::side_work side(x);
 *   KILN_TRY(side.begin(err));              what x->stream has so far comes first
 *   ... launches with side.exec(), launches with x ...
 *   KILN_TRY(side.join(err));               x->stream goes on when both are done
 *
 * Where there is no side, where it does not pay, and under --sync, side.exec() is x itself.
 */
#ifndef KILN_KERNELS_SIDE_CUDA_CUH
#define KILN_KERNELS_SIDE_CUDA_CUH

#include "kernels/cuda.cuh"

namespace kiln
{

class side_work
{
  public:
    /* pays: false where both parts are so short that parting and joining would take longer. */
    explicit side_work(const kiln_exec *x, bool pays = true)
        : x_(*x), side_(*x), apart_(x->side && !x->sync && pays)
    {
        if (apart_) side_.stream = x->side;
    }
    /* An operation that failed half way leaves nothing running in the caller's memory. */
    ~side_work()
    {
        if (begun_) (void)cudaStreamSynchronize(side_.stream);
        if (event_) (void)cudaEventDestroy(event_); /* what waits for it goes on waiting */
    }
    side_work(const side_work &) = delete;
    side_work &operator=(const side_work &) = delete;

    const kiln_exec *exec() const { return &side_; }
    kiln_status begin(kiln_error *err)
    {
        const kiln_exec *const x = &x_;
        if (!apart_) return KILN_OK;
        CUDA_TRY(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
        KILN_TRY(wait_for(x_.stream, side_.stream, err));
        begun_ = true;
        return KILN_OK;
    }
    kiln_status join(kiln_error *err)
    {
        if (!apart_) return KILN_OK;
        KILN_TRY(wait_for(side_.stream, x_.stream, err));
        begun_ = false;
        return KILN_OK;
    }

  private:
    /* `waits` goes on when `done` has done what it has been given so far. */
    kiln_status wait_for(cudaStream_t done, cudaStream_t waits, kiln_error *err)
    {
        const kiln_exec *const x = &x_;
        CUDA_TRY(cudaEventRecord(event_, done));
        CUDA_TRY(cudaStreamWaitEvent(waits, event_, 0));
        return KILN_OK;
    }

    const kiln_exec x_;
    kiln_exec side_;
    const bool apart_;
    bool begun_ = false;
    cudaEvent_t event_ = nullptr;
};

} // namespace kiln

#endif
