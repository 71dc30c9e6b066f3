/* bench -- see bench.cuh. */
#include "tests/bench/bench.cuh"

#include "kernels/violation.h"
#include "tests/bench/outputs.cuh"

#include <chrono>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

namespace bench
{

namespace
{

kiln_error err;

void check(kiln_status st)
{
    if (st != KILN_OK) die(kiln_exit_code(st), err.msg);
}

double now_ms()
{
    using namespace std::chrono;
    return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

} // namespace

void die(int exit_code, const char *what)
{
    fprintf(stderr, "kernels_bench: %s\n", what);
    exit(exit_code);
}

void check_cuda(cudaError_t e, const char *call, const char *file, int line)
{
    if (e == cudaSuccess) return;
    fprintf(stderr, "kernels_bench: '%s' failed: %s, %s:%d\n", call, cudaGetErrorString(e), file,
            line);
    exit(6);
}

runner::runner(const options &o, const char *commit) : o_(o)
{
    const uint64_t none = KILN_VIOLATION_NONE;
    run_facts facts = {};
    check(kiln_device_open(o.device, &facts.device, &err));
    BENCH_CUDA(cudaSetDevice(o.device));
    check(kiln_device_stream_new(o.device, false, &x_.stream, &err));
    check(kiln_device_stream_new(o.device, true, &x_.side, &err));
    x_.device = o.device;
    x_.threads = static_cast<unsigned>(omp_get_num_procs());
    BENCH_CUDA(cudaMalloc(&x_.violation, sizeof none));
    BENCH_CUDA(cudaMemcpy(x_.violation, &none, sizeof none, cudaMemcpyHostToDevice));
    facts.warm_up = o.quick ? 2 : 5;
    facts.runs = o.quick ? 5 : 20;
    facts.commit = commit;
    timer_.reset(new timer(x_.stream, facts.warm_up, facts.runs));
    table_.head(facts);
    ceilings_.reset(new class ceilings(timer_.get()));
}

runner::~runner()
{
    (void)cudaFree(x_.violation);
    (void)cudaFree(work_);
    kiln_device_stream_free(x_.device, x_.side);
    kiln_device_stream_free(x_.device, x_.stream);
}

void runner::wait()
{
    uint64_t violation = 0;
    BENCH_CUDA(cudaMemcpyAsync(&violation, x_.violation, sizeof violation, cudaMemcpyDeviceToHost,
                               x_.stream));
    BENCH_CUDA(cudaStreamSynchronize(x_.stream));
    check(kiln_violation_fail(violation, &err));
}

uint64_t runner::prepare(kiln_op_id op, const void *args)
{
    size_t need = 0;
    check(kiln_op_call(kiln_ops_cuda(), op, &x_, args, nullptr, &need, &err));
    if (need <= work_bytes_ && work_) return need;
    BENCH_CUDA(cudaStreamSynchronize(x_.stream));
    BENCH_CUDA(cudaFree(work_));
    work_ = nullptr;
    BENCH_CUDA(cudaMalloc(&work_, need > 0 ? need : 1));
    work_bytes_ = need;
    return need;
}

void runner::start(kiln_op_id op, const void *args)
{
    size_t have = work_bytes_;
    check(kiln_op_call(kiln_ops_cuda(), op, &x_, args, work_, &have, &err));
}

row runner::row_of(const std::string &what, uint64_t items, const cost &least, const times &t,
                   bool same)
{
    row r;
    r.what = what;
    r.items = items;
    r.gpu = t.median;
    r.gpu_least = t.least;
    r.least_work = least;
    r.limit = ceilings_->limit_ms(least);
    if (!same)
        table_.add(
            finding{what, "calls left output unwritten, or wrote something else each time", 1, 1});
    return r;
}

row runner::measure(const subject &s)
{
    prepare(s.op, s.args);
    const outputs out(s.op, s.args);
    uint64_t sums[2];
    for (int i = 0; i < 2; i++) {
        out.poison(i == 0 ? 0xA5 : 0x5A);
        out.restore();
        start(s.op, s.args);
        wait();
        sums[i] = out.sum();
    }
    const times t = timer_->time([&] { start(s.op, s.args); }, [&] { out.restore(); });
    wait();
    return row_of(s.what, s.items, s.least_work, t, sums[0] == sums[1] && out.sum() == sums[0]);
}

row runner::measure_host(const std::string &what, uint64_t items,
                         const std::function<void()> &work) const
{
    std::vector<double> ms;
    row r;
    for (int i = 0; i < timer_->warm_up() + timer_->runs(); i++) {
        const double from = now_ms();
        work();
        if (i >= timer_->warm_up()) ms.push_back(now_ms() - from);
    }
    r.what = what;
    r.items = items;
    r.gpu = times_of(ms).median;
    r.gpu_least = times_of(ms).least;
    return r;
}

} // namespace bench
