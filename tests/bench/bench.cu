/* bench -- see bench.cuh. */
#include "tests/bench/bench.cuh"

#include "base/memory.h"
#include "kernels/fault.h"
#include "tests/bench/figures.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

std::string today()
{
    char text[16];
    const time_t now = ::time(nullptr);
    struct tm parts;
    strftime(text, sizeof text, "%Y-%m-%d", gmtime_r(&now, &parts));
    return text;
}

/* "a 1.5, b 2.0 (x 3.1)": how many times our time the others take. */
void print_others(const row &r)
{
    const char *gap = "";
    for (const bench_figure &f : bench_figures) {
        if (r.what != f.what) continue;
        printf("%s%s %.3g", gap, f.program, f.ms);
        const double ours = f.on_cpu ? r.cpu_all : r.gpu;
        if (ours > 0) printf(" (x %.2g)", f.ms / ours);
        gap = ", ";
    }
}

void print_ms(double ms)
{
    if (ms < 0)
        printf(" %10s", "-");
    else
        printf(" %10.*f", ms < 100 ? 3 : 1, ms);
}

void json_ms(FILE *f, const char *name, double ms)
{
    if (ms >= 0) fprintf(f, ", \"%s\": %.6g", name, ms);
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

runner::runner(int device, bool with_cpu) : with_cpu_(with_cpu), threads_(static_cast<unsigned>(omp_get_num_procs()))
{
    const uint64_t none = KILN_FAULT_NONE;
    check(kiln_device_open(device, &info_, &err));
    BENCH_CUDA(cudaSetDevice(device));
    check(kiln_device_stream_new(device, &x_.stream, &err));
    x_.device = device;
    x_.threads = threads_;
    BENCH_CUDA(cudaMalloc(&x_.fault, sizeof none));
    BENCH_CUDA(cudaMemcpy(x_.fault, &none, sizeof none, cudaMemcpyHostToDevice));
    BENCH_CUDA(cudaEventCreate(&from_));
    BENCH_CUDA(cudaEventCreate(&to_));
}

runner::~runner()
{
    (void)cudaEventDestroy(from_);
    (void)cudaEventDestroy(to_);
    (void)cudaFree(x_.fault);
    (void)cudaFree(work_);
    kiln_device_stream_free(x_.device, x_.stream);
}

void runner::begin()
{
    BENCH_CUDA(cudaStreamSynchronize(x_.stream));
    BENCH_CUDA(cudaEventRecord(from_, x_.stream));
}

double runner::end()
{
    float ms = 0;
    BENCH_CUDA(cudaEventRecord(to_, x_.stream));
    BENCH_CUDA(cudaEventSynchronize(to_));
    BENCH_CUDA(cudaEventElapsedTime(&ms, from_, to_));
    return static_cast<double>(ms);
}

double runner::now_ms()
{
    using namespace std::chrono;
    return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

row runner::median(const std::string &what, uint64_t items, std::vector<double> ms)
{
    row r;
    std::sort(ms.begin(), ms.end());
    r.what = what;
    r.items = items;
    r.gpu = 0.5 * (ms[(ms.size() - 1) / 2] + ms[ms.size() / 2]);
    r.gpu_least = ms[0];
    return r;
}

void runner::wait()
{
    uint64_t fault = 0;
    BENCH_CUDA(cudaMemcpyAsync(&fault, x_.fault, sizeof fault, cudaMemcpyDeviceToHost, x_.stream));
    BENCH_CUDA(cudaStreamSynchronize(x_.stream));
    check(kiln_fault_fail(fault, &err));
}

void runner::prepare(kiln_op_id op, const void *args)
{
    size_t need = 0;
    check(kiln_op_call(kiln_ops_cuda(), op, &x_, args, nullptr, &need, &err));
    if (need <= work_bytes_ && work_) return;
    BENCH_CUDA(cudaStreamSynchronize(x_.stream));
    BENCH_CUDA(cudaFree(work_));
    BENCH_CUDA(cudaMalloc(&work_, need > 0 ? need : 1));
    work_bytes_ = need;
}

void runner::start(kiln_op_id op, const void *args)
{
    size_t have = work_bytes_;
    check(kiln_op_call(kiln_ops_cuda(), op, &x_, args, work_, &have, &err));
}

void runner::on_cpu(kiln_op_id op, const void *args, row *r)
{
    kiln_op_array arrays[KILN_OP_ARRAYS_MAX];
    const unsigned n = kiln_op_arrays(op, args, arrays);
    std::vector<char> copy(static_cast<const char *>(args), static_cast<const char *>(args) + kiln_op_args_bytes(op));
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
        check(kiln_op_call(kiln_ops_cpu(), op, &x, copy.data(), nullptr, &bytes, &err));
        if (work_bytes < bytes) work = host_bytes(work_bytes = bytes);
        check(kiln_op_call(kiln_ops_cpu(), op, &x, copy.data(), work.get(), &bytes, &err));
    };
    r->cpu_all = time_host([&] { run(threads_); });
    r->cpu_one = threads_ > 1 ? time_host([&] { run(1); }) : r->cpu_all;
}

void runner::operation(const std::string &what, uint64_t items, kiln_op_id op, const void *args, bool quick_on_cpu)
{
    prepare(op, args);
    row r = time(what, items, [&] { start(op, args); });
    wait();
    if (with_cpu_ && quick_on_cpu) on_cpu(op, args, &r);
    add(r);
}

void runner::add(const row &r)
{
    printf("%-20s %10llu", r.what.c_str(), static_cast<unsigned long long>(r.items));
    print_ms(r.gpu);
    print_ms(r.gpu_least);
    print_ms(r.cpu_one);
    print_ms(r.cpu_all);
    printf("  ");
    print_others(r);
    printf("\n");
    fflush(stdout);
    rows_.push_back(r);
}

void runner::add_sum(const std::string &what, const std::vector<std::string> &parts)
{
    row sum;
    sum.what = what;
    sum.items = 0;
    sum.gpu = sum.gpu_least = 0;
    for (const row &r : rows_) {
        if (std::find(parts.begin(), parts.end(), r.what) == parts.end()) continue;
        sum.items = std::max(sum.items, r.items);
        sum.gpu += r.gpu;
        sum.gpu_least += r.gpu_least;
        if (r.cpu_one >= 0) sum.cpu_one = std::max(sum.cpu_one, 0.0) + r.cpu_one;
        if (r.cpu_all >= 0) sum.cpu_all = std::max(sum.cpu_all, 0.0) + r.cpu_all;
    }
    add(sum);
}

void runner::print_head(const char *commit) const
{
    printf("%s, CUDA %u.%u, driver CUDA %u.%u; CPU siblings: %s; %s, commit %s\n", info_.name, info_.built_version / 1000,
           info_.built_version % 1000 / 10, info_.driver_version / 1000, info_.driver_version % 1000 / 10, kiln_ops_cpu()->name,
           today().c_str(), commit);
    printf("Medians of %d after %d, ms. Others: one NVIDIA H200, driver 580.159.04, CUDA 13.0 (tests/bench/figures.h); x: how\n"
           "many times ours they take.\n\n",
           runs_, warm_up_);
    printf("%-20s %10s %10s %10s %10s %7s %2u  %s\n", "", "items", "ours", "least", "CPU 1", "CPU", threads_, "others");
}

void runner::write_json(const char *path, const char *commit) const
{
    FILE *f = fopen(path, "w");
    if (!f) die(74, "cannot write the JSON file");
    fprintf(f, "{\"version\": 1, \"device\": \"%s\", \"uuid\": \"%s\", \"built_cuda\": %u, \"driver_cuda\": %u, ", info_.name,
            info_.uuid, info_.built_version, info_.driver_version);
    fprintf(f, "\"cpu\": \"%s\", \"threads\": %u, \"date\": \"%s\", \"commit\": \"%s\", \"unit\": \"ms\",\n \"rows\": [",
            kiln_ops_cpu()->name, threads_, today().c_str(), commit);
    const char *gap = "\n";
    for (const row &r : rows_) {
        fprintf(f, "%s  {\"what\": \"%s\", \"items\": %llu", gap, r.what.c_str(), static_cast<unsigned long long>(r.items));
        json_ms(f, "gpu", r.gpu);
        json_ms(f, "gpu_least", r.gpu_least);
        json_ms(f, "cpu_one", r.cpu_one);
        json_ms(f, "cpu_all", r.cpu_all);
        for (const bench_figure &other : bench_figures)
            if (r.what == other.what) json_ms(f, other.program, other.ms);
        fprintf(f, "}");
        gap = ",\n";
    }
    fprintf(f, "\n ]}\n");
    if (fclose(f) != 0) die(74, "cannot write the JSON file");
}

} // namespace bench
