/* ceilings -- see ceilings.cuh. */
#include "tests/bench/ceilings.cuh"

#include "stages/generate/inputs.h"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

namespace bench
{

namespace
{

/* full for Hopper's 132 multiprocessors */
constexpr unsigned BLOCK = 256, GRID = 1024, FUSE_GRID = 132 * 16;
/* bytes: many times what the L2 cache holds */
constexpr uint64_t COPIED = uint64_t(1) << 30;
constexpr int CHAINS = 8, STEPS = 2048;

/* Independent chains of fused steps, as many as hide the latency of one. What comes out is written
 * where the compiler cannot know that it never is. */
__global__ void fuse(float *out)
{
    float v[CHAINS];
    const float shift = static_cast<float>(threadIdx.x);
    for (int c = 0; c < CHAINS; c++) v[c] = static_cast<float>(c);
    for (int i = 0; i < STEPS; i++)
#pragma unroll
        for (int c = 0; c < CHAINS; c++) v[c] = fmaf(v[c], 0.999f, shift);
    float sum = 0.0f;
    for (int c = 0; c < CHAINS; c++) sum += v[c];
    if (sum == -1.0f) *out = sum;
}

__global__ void nothing() {}

template <typename Key> __global__ void random_keys(uint64_t n, Key *keys, uint32_t *values)
{
    for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += uint64_t(gridDim.x) * blockDim.x) {
        keys[i] = static_cast<Key>(kg_at(1, i));
        values[i] = static_cast<uint32_t>(i);
    }
}

template <typename Key> double time_sort(const timer &t, uint64_t n, int bits)
{
    array<Key> keys(n), sorted(n);
    array<uint32_t> values(n), moved(n);
    size_t bytes = 0;
    random_keys<<<GRID, BLOCK, 0, t.stream()>>>(n, keys.get(), values.get());
    BENCH_CUDA(cudaGetLastError());
    const auto sort = [&](void *temp) {
        BENCH_CUDA(CUB_NS_QUALIFIER::DeviceRadixSort::SortPairs(
            temp, bytes, keys.get(), sorted.get(), values.get(), moved.get(), n, 0, bits,
            t.stream()));
    };
    sort(nullptr);
    array<char> temp(bytes);
    return t.time([&] { sort(temp.get()); }).median;
}

} // namespace

ceilings::ceilings(const timer *t) : timer_(t)
{
    array<char> from(COPIED), to(COPIED);
    from.fill(1);
    const auto copy = [&] {
        BENCH_CUDA(
            cudaMemcpyAsync(to.get(), from.get(), COPIED, cudaMemcpyDeviceToDevice, t->stream()));
    };
    copy_bytes_ = 2e3 * COPIED / t->time(copy).median;
    fp32_ = fused();
}

double ceilings::fused() const
{
    array<float> out(1);
    const auto work = [&] {
        fuse<<<FUSE_GRID, BLOCK, 0, timer_->stream()>>>(out.get());
        BENCH_CUDA(cudaGetLastError());
    };
    return 1e3 * CHAINS * STEPS * FUSE_GRID * BLOCK / timer_->time(work).median;
}

double ceilings::sort_ms(uint64_t n, int key_bits)
{
    const std::pair<uint64_t, int> which(n, key_bits);
    const auto known = sorts_.find(which);
    if (known != sorts_.end()) return known->second;
    const double ms = n == 0           ? 0
                      : key_bits <= 16 ? time_sort<uint16_t>(*timer_, n, key_bits)
                                       : time_sort<uint32_t>(*timer_, n, key_bits);
    sorts_[which] = ms;
    return ms;
}

double ceilings::scan_ms(uint64_t n) const
{
    array<uint32_t> from(n), to(n);
    size_t bytes = 0;
    from.fill(0);
    const auto scan = [&](void *temp) {
        BENCH_CUDA(CUB_NS_QUALIFIER::DeviceScan::ExclusiveSum(temp, bytes, from.get(), to.get(), n,
                                                              timer_->stream()));
    };
    scan(nullptr);
    array<char> temp(bytes);
    return timer_->time([&] { scan(temp.get()); }).median;
}

double ceilings::launches_ms(int n) const
{
    const auto launch = [&] {
        for (int i = 0; i < n; i++) nothing<<<1, 1, 0, timer_->stream()>>>();
        BENCH_CUDA(cudaGetLastError());
    };
    return timer_->time(launch).median;
}

double ceilings::limit_ms(const cost &c)
{
    return sort_ms(c.sorted, 32) + 1e3 * std::max(c.bytes / copy_bytes_, c.fp32 / fp32_);
}

} // namespace bench
