/* outputs -- see outputs.cuh. */
#include "tests/bench/outputs.cuh"

#include "kernels/cuda.cuh"
#include "stages/generate/inputs.h"

#include <string.h>

namespace bench
{

namespace
{

constexpr unsigned BLOCK = 256;

__global__ void add_up(const char *bytes, uint64_t n, uint64_t *sum)
{
    uint64_t mine = 0;
    for (uint64_t i = kiln::thread_index(); i < (n + 3) / 4; i += kiln::thread_count()) {
        uint32_t word = 0;
        if (4 * i + 4 <= n)
            word = reinterpret_cast<const uint32_t *>(bytes)[i];
        else
            for (uint64_t k = 4 * i; k < n; k++) word = word << 8 | static_cast<uint8_t>(bytes[k]);
        mine += kg_at(word, i);
    }
    kiln::add64(sum, mine);
}

} // namespace

uint64_t sum_of(const void *device, uint64_t bytes)
{
    array<uint64_t> sum(1);
    sum.fill(0);
    add_up<<<kiln::blocks_for(bytes / 4, BLOCK), BLOCK>>>(static_cast<const char *>(device), bytes,
                                                          sum.get());
    BENCH_CUDA(cudaGetLastError());
    return sum.to_host()[0];
}

outputs::outputs(kiln_op_id op, const void *args)
    : args_(static_cast<const char *>(args)), n_(kiln_op_arrays(op, args, arrays_))
{
    for (unsigned i = 0; i < n_; i++) {
        if (arrays_[i].direction != KILN_ARRAY_INOUT) continue;
        kept_.emplace_back(new array<char>(arrays_[i].elements * arrays_[i].elem));
        BENCH_CUDA(cudaMemcpy(kept_.back()->get(), at(arrays_[i]), kept_.back()->size(),
                              cudaMemcpyDeviceToDevice));
    }
}

char *outputs::at(const kiln_op_array &a) const
{
    char *p;
    memcpy(&p, args_ + a.field, sizeof p);
    return p;
}

void outputs::poison(int byte) const
{
    for (unsigned i = 0; i < n_; i++)
        if (arrays_[i].direction == KILN_ARRAY_OUT)
            BENCH_CUDA(cudaMemset(at(arrays_[i]), byte, arrays_[i].elements * arrays_[i].elem));
    BENCH_CUDA(cudaDeviceSynchronize());
}

void outputs::restore() const
{
    unsigned k = 0;
    for (unsigned i = 0; i < n_; i++) {
        if (arrays_[i].direction != KILN_ARRAY_INOUT) continue;
        BENCH_CUDA(cudaMemcpy(at(arrays_[i]), kept_[k]->get(), kept_[k]->size(),
                              cudaMemcpyDeviceToDevice));
        k++;
    }
    BENCH_CUDA(cudaDeviceSynchronize());
}

uint64_t outputs::sum() const
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < n_; i++) {
        const kiln_op_array &a = arrays_[i];
        uint64_t elements = a.elements;
        if (a.direction == KILN_ARRAY_IN) continue;
        if (a.used)
            BENCH_CUDA(cudaMemcpy(&elements, a.used, sizeof elements, cudaMemcpyDeviceToHost));
        sum = 31 * sum + sum_of(at(a), std::min(elements, a.elements) * a.elem);
    }
    return sum;
}

} // namespace bench
