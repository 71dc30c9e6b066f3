/* timer -- device memory, checked calls and CUDA events for the kernel bench. A program of its own:
 * what fails here ends it with the sentence. */
#ifndef KILN_TESTS_BENCH_TIMER_CUH
#define KILN_TESTS_BENCH_TIMER_CUH

#include <algorithm>
#include <cuda_runtime.h>
#include <stdint.h>
#include <vector>

namespace bench
{

[[noreturn]] void die(int exit_code, const char *what);
void check_cuda(cudaError_t e, const char *call, const char *file, int line);
#define BENCH_CUDA(call) bench::check_cuda((call), #call, __FILE__, __LINE__)

/* Device memory. Fills and copies are done when they return, for any stream. */
template <typename T> class array
{
  public:
    explicit array(uint64_t n) : n_(n) { BENCH_CUDA(cudaMalloc(&p_, (n > 0 ? n : 1) * sizeof(T))); }
    ~array() { (void)cudaFree(p_); }
    array(const array &) = delete;
    array &operator=(const array &) = delete;
    T *get() const { return p_; }
    uint64_t size() const { return n_; }
    uint64_t bytes() const { return n_ * sizeof(T); }
    void fill(int byte) const
    {
        BENCH_CUDA(cudaMemset(p_, byte, bytes()));
        BENCH_CUDA(cudaDeviceSynchronize());
    }
    void from_host(const T *h) const
    {
        BENCH_CUDA(cudaMemcpy(p_, h, bytes(), cudaMemcpyHostToDevice));
        /* of pageable memory the last part may still be on its way */
        BENCH_CUDA(cudaDeviceSynchronize());
    }
    std::vector<T> to_host() const
    {
        std::vector<T> h(n_);
        BENCH_CUDA(cudaMemcpy(h.data(), p_, bytes(), cudaMemcpyDeviceToHost));
        return h;
    }

  private:
    T *p_ = nullptr;
    uint64_t n_;
};

/* Of the runs that count. */
struct times {
    double median, least; /* ms */
};

inline times times_of(std::vector<double> ms)
{
    std::sort(ms.begin(), ms.end());
    return {0.5 * (ms[(ms.size() - 1) / 2] + ms[ms.size() / 2]), ms[0]};
}

/* Events around work on one stream, which is idle when they begin. */
class timer
{
  public:
    timer(cudaStream_t stream, int warm_up, int runs)
        : stream_(stream), warm_up_(warm_up), runs_(runs)
    {
        BENCH_CUDA(cudaEventCreate(&from_));
        BENCH_CUDA(cudaEventCreate(&to_));
    }
    ~timer()
    {
        (void)cudaEventDestroy(from_);
        (void)cudaEventDestroy(to_);
    }
    timer(const timer &) = delete;
    timer &operator=(const timer &) = delete;

    cudaStream_t stream() const { return stream_; }
    int warm_up() const { return warm_up_; }
    int runs() const { return runs_; }
    /* before() is not timed: it puts back what work() changes of its input. */
    template <typename Work, typename Before> times time(Work work, Before before) const
    {
        std::vector<double> ms;
        for (int i = 0; i < warm_up_ + runs_; i++) {
            float t = 0;
            before();
            BENCH_CUDA(cudaStreamSynchronize(stream_));
            BENCH_CUDA(cudaEventRecord(from_, stream_));
            work();
            BENCH_CUDA(cudaEventRecord(to_, stream_));
            BENCH_CUDA(cudaEventSynchronize(to_));
            BENCH_CUDA(cudaEventElapsedTime(&t, from_, to_));
            if (i >= warm_up_) ms.push_back(static_cast<double>(t));
        }
        return times_of(ms);
    }
    template <typename Work> times time(Work work) const
    {
        return time(work, [] {});
    }

  private:
    cudaStream_t stream_;
    int warm_up_, runs_;
    cudaEvent_t from_ = nullptr, to_ = nullptr;
};

} // namespace bench

#endif
