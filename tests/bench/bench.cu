/* bench -- see bench.cuh. */
#include "tests/bench/bench.cuh"

#include "base/memory.h"
#include "kernels/fault.h"
#include "tests/bench/outputs.cuh"

#include <chrono>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace bench
{

namespace
{

kiln_error err;

void check(kiln_status st)
{
    if (st != KILN_OK) die(kiln_exit_code(st), err.msg);
}

/* Host memory as stages give it to operations. */
typedef std::unique_ptr<char, void (*)(void *)> host_block;
host_block host_bytes(uint64_t bytes)
{
    void *p = nullptr;
    check(kiln_alloc(&p, bytes, 1, "the CPU's arrays", &err));
    return host_block(static_cast<char *>(p), free);
}

double now_ms()
{
    using namespace std::chrono;
    return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

/* Median of 3 by the clock, or the first where that takes over 2 s. */
template <typename F> double time_host(F work)
{
    std::vector<double> ms;
    while (ms.size() < 3 && (ms.empty() || ms[0] < 2000)) {
        const double from = now_ms();
        work();
        ms.push_back(now_ms() - from);
    }
    return times_of(ms).median;
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
    fprintf(stderr, "kernels_bench: '%s' failed: %s, %s:%d\n", call, cudaGetErrorString(e), file, line);
    exit(6);
}

runner::runner(const options &o, const char *commit) : o_(o), threads_(static_cast<unsigned>(omp_get_num_procs()))
{
    const uint64_t none = KILN_FAULT_NONE;
    run_facts facts = {};
    check(kiln_device_open(o.device, &facts.device, &err));
    BENCH_CUDA(cudaSetDevice(o.device));
    check(kiln_device_stream_new(o.device, &x_.stream, &err));
    x_.device = o.device;
    x_.threads = threads_;
    BENCH_CUDA(cudaMalloc(&x_.fault, sizeof none));
    BENCH_CUDA(cudaMemcpy(x_.fault, &none, sizeof none, cudaMemcpyHostToDevice));
    facts.cpu = kiln_ops_cpu()->name;
    facts.threads = threads_;
    facts.warm_up = o.quick ? 2 : 5;
    facts.runs = o.quick ? 5 : 20;
    facts.commit = commit;
    timer_.reset(new timer(x_.stream, facts.warm_up, facts.runs));
    table_.head(facts);
    ceilings_.reset(new class ceilings(timer_.get()));
}

runner::~runner()
{
    (void)cudaFree(x_.fault);
    (void)cudaFree(work_);
    kiln_device_stream_free(x_.device, x_.stream);
}

void runner::wait()
{
    uint64_t fault = 0;
    BENCH_CUDA(cudaMemcpyAsync(&fault, x_.fault, sizeof fault, cudaMemcpyDeviceToHost, x_.stream));
    BENCH_CUDA(cudaStreamSynchronize(x_.stream));
    check(kiln_fault_fail(fault, &err));
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

row runner::row_of(const std::string &what, uint64_t items, const cost &least, const times &t, bool same)
{
    row r;
    r.what = what;
    r.items = items;
    r.gpu = t.median;
    r.gpu_least = t.least;
    r.least_work = least;
    r.limit = ceilings_->limit_ms(least);
    if (!same) table_.add(finding{what, "calls left output unwritten, or wrote something else each time", 1, 1});
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
    row r = row_of(s.what, s.items, s.least_work, t, sums[0] == sums[1] && out.sum() == sums[0]);
    if (o_.cpu && s.on_cpu) on_cpu(s, &r);
    return r;
}

row runner::measure_host(const std::string &what, uint64_t items, const std::function<void()> &work) const
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

void runner::on_cpu(const subject &s, row *r)
{
    kiln_op_array arrays[KILN_OP_ARRAYS_MAX];
    const char *const args = static_cast<const char *>(s.args);
    const unsigned n = kiln_op_arrays(s.op, args, arrays);
    std::vector<char> copy(args, args + kiln_op_args_bytes(s.op));
    std::vector<host_block> host;
    for (unsigned i = 0; i < n; i++) {
        const kiln_op_array &a = arrays[i];
        const void *device;
        host.push_back(host_bytes(a.elements * a.elem));
        void *const at = host.back().get();
        memcpy(&device, copy.data() + a.field, sizeof device);
        if (a.direction & KILN_ARRAY_IN) BENCH_CUDA(cudaMemcpy(at, device, a.elements * a.elem, cudaMemcpyDeviceToHost));
        memcpy(copy.data() + a.field, &at, sizeof at);
    }
    host_block work = host_bytes(0);
    size_t work_bytes = 0;
    const auto run = [&](unsigned threads) {
        kiln_exec x = {};
        size_t bytes = 0;
        x.device = -1;
        x.threads = threads;
        check(kiln_op_call(kiln_ops_cpu(), s.op, &x, copy.data(), nullptr, &bytes, &err));
        if (work_bytes < bytes) work = host_bytes(work_bytes = bytes);
        check(kiln_op_call(kiln_ops_cpu(), s.op, &x, copy.data(), work.get(), &bytes, &err));
    };
    r->cpu_all = time_host([&] { run(threads_); });
    r->cpu_one = threads_ > 1 ? time_host([&] { run(1); }) : r->cpu_all;
}

} // namespace bench
