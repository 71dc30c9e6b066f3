/* bench -- timing and tables of the kernel bench. A program of its own: what fails here ends it with the sentence. */
#ifndef KILN_TESTS_BENCH_BENCH_CUH
#define KILN_TESTS_BENCH_BENCH_CUH

#include "kernels/arrays.h"
#include "kernels/device.h"

#include <cuda_runtime.h>
#include <stdio.h>
#include <string>
#include <vector>

namespace bench
{

[[noreturn]] void die(int exit_code, const char *what);
void check_cuda(cudaError_t e, const char *call, const char *file, int line);
#define BENCH_CUDA(call) bench::check_cuda((call), #call, __FILE__, __LINE__)

/* Device memory. */
template <typename T> class array
{
  public:
    explicit array(uint64_t n) : n_(n) { BENCH_CUDA(cudaMalloc(&p_, (n > 0 ? n : 1) * sizeof(T))); }
    ~array() { (void)cudaFree(p_); }
    array(const array &) = delete;
    array &operator=(const array &) = delete;
    T *get() const { return p_; }
    uint64_t size() const { return n_; }
    std::vector<T> to_host() const
    {
        std::vector<T> h(n_);
        BENCH_CUDA(cudaMemcpy(h.data(), p_, n_ * sizeof(T), cudaMemcpyDeviceToHost));
        return h;
    }

  private:
    T *p_ = nullptr;
    uint64_t n_;
};

/* A line of the table. Times in ms, below 0 where there is none. */
struct row {
    std::string what;
    uint64_t items;
    double gpu = -1, gpu_least = -1, cpu_one = -1, cpu_all = -1;
};

class runner
{
  public:
    runner(int device, bool with_cpu);
    ~runner();

    /* One operation on arrays of the device: the CUDA sibling by events; with on_cpu the CPU sibling on copies too. */
    void operation(const std::string &what, uint64_t items, kiln_op_id op, const void *args, bool on_cpu);
    /* Workspace for it; before the clock starts. */
    void prepare(kiln_op_id op, const void *args);
    /* The CUDA sibling, put on the stream and not waited for. Prepared before. */
    void start(kiln_op_id op, const void *args);
    /* Until the stream is idle, with what the operations have found wrong in their input. */
    void wait();
    /* Any work put on the stream: median and least of 20 runs after 5. */
    template <typename F> row time(const std::string &what, uint64_t items, F work)
    {
        std::vector<double> ms;
        for (int i = 0; i < warm_up_ + runs_; i++) {
            begin();
            work();
            const double t = end();
            if (i >= warm_up_) ms.push_back(t);
        }
        return median(what, items, ms);
    }
    /* Host work by the clock: median of 3, or the first where that takes over 2 s. */
    template <typename F> double time_host(F work)
    {
        std::vector<double> ms;
        while (ms.size() < 3 && (ms.empty() || ms[0] < 2000)) {
            const double from = now_ms();
            work();
            ms.push_back(now_ms() - from);
        }
        return median("", 0, ms).gpu;
    }
    void add(const row &r);
    /* Sum of rows that are there, as a row of its own. */
    void add_sum(const std::string &what, const std::vector<std::string> &parts);

    const kiln_exec *exec() const { return &x_; }
    bool with_cpu() const { return with_cpu_; }
    unsigned threads() const { return threads_; }
    void write_json(const char *path, const char *commit) const;
    void print_head(const char *commit) const;

  private:
    void begin();
    double end();
    static double now_ms();
    static row median(const std::string &what, uint64_t items, std::vector<double> ms);
    void on_cpu(kiln_op_id op, const void *args, row *r);

    static constexpr int warm_up_ = 5, runs_ = 20;
    kiln_exec x_ = {};
    kiln_device_info info_ = {};
    cudaEvent_t from_ = nullptr, to_ = nullptr;
    void *work_ = nullptr;
    size_t work_bytes_ = 0;
    bool with_cpu_;
    unsigned threads_;
    std::vector<row> rows_;
};

} // namespace bench

#endif
