#include "tests/gpu/radix.h"

#include "kernels/device.h"
#include "kernels/sort/radix_run_cuda.cuh"

#include <string.h>
#include <vector>

namespace
{

template <typename Key> struct counted_arrays {
    kiln::count_within of;
    const Key *keys;
    const uint32_t *values;

    __device__ uint64_t count() const { return of.get(); }
    __device__ Key key(uint64_t i) const { return keys[i]; }
    __device__ uint32_t value(uint64_t i) const { return values[i]; }
};

/* What a call has on the device, in one block that is filled with what must not show. */
template <typename Key> struct layout {
    uint64_t *count;
    kiln::radix_state *state;
    kiln::radix_sort<Key> radix;
    size_t bytes;

    layout(const radix_call *c, char *at)
    {
        kiln_carve carve = {at, 0};
        radix = {};
        radix.wide = c->wide;
        count = kiln::take<uint64_t>(&carve, 1);
        state = kiln::take<kiln::radix_state>(&carve, 1);
        kiln::lay_out_radix(&radix, &carve, c->capacity, c->bits, state);
        for (int i = 0; i < 2; i++) {
            radix.keys[i] = kiln::take<Key>(&carve, c->capacity);
            radix.values[i] = kiln::take<uint32_t>(&carve, c->capacity);
        }
        bytes = carve.used;
    }
};

template <typename Key>
kiln_status run(const kiln_exec *x, const radix_call *c, char *at, kiln_error *err)
{
    const layout<Key> l(c, at);
    std::vector<Key> keys(c->keys, c->keys + c->capacity);
    unsigned to = 0;
    CUDA_TRY(cudaMemset(at, 0xA5, l.bytes));
    CUDA_TRY(cudaMemset(l.state, 0, sizeof *l.state));
    CUDA_TRY(cudaMemcpy(l.count, &c->n, sizeof c->n, cudaMemcpyHostToDevice));
    CUDA_TRY(cudaMemcpy(l.radix.keys[1], keys.data(), c->capacity * sizeof(Key),
                        cudaMemcpyHostToDevice));
    CUDA_TRY(cudaMemcpy(l.radix.values[1], c->values, c->capacity * sizeof *c->values,
                        cudaMemcpyHostToDevice));
    CUDA_TRY(cudaDeviceSynchronize());
    const counted_arrays<Key> in = {{c->capacity, l.count}, l.radix.keys[1], l.radix.values[1]};
    CUDA_TRY(c->masks ? kiln::run_radix<kiln::radix_rank::MASKS>(l.radix, in, x->stream, &to)
                      : kiln::run_radix(l.radix, in, x->stream, &to));
    CUDA_TRY(cudaStreamSynchronize(x->stream));
    CUDA_TRY(cudaMemcpy(keys.data(), l.radix.keys[to], c->n * sizeof(Key), cudaMemcpyDeviceToHost));
    CUDA_TRY(cudaMemcpy(c->values, l.radix.values[to], c->n * sizeof *c->values,
                        cudaMemcpyDeviceToHost));
    for (uint64_t i = 0; i < c->n; i++) c->keys[i] = keys[i];
    return KILN_OK;
}

template <typename Key> kiln_status call(const kiln_exec *x, const radix_call *c, kiln_error *err)
{
    const kiln::device_guard guard(x->device);
    void *memory = nullptr;
    KILN_TRY(kiln_device_alloc(x->device, layout<Key>(c, nullptr).bytes, &memory, err));
    const kiln_status st = run<Key>(x, c, static_cast<char *>(memory), err);
    kiln_device_free(x->device, memory);
    return st;
}

} // namespace

extern "C" kiln_status radix_on_device(int device, const radix_call *c, kiln_error *err)
{
    kiln_exec x = {};
    x.device = device;
    KILN_TRY(kiln_device_stream_new(device, false, &x.stream, err));
    const kiln_status st = c->key_bytes == 2   ? call<uint16_t>(&x, c, err)
                           : c->key_bytes == 4 ? call<uint32_t>(&x, c, err)
                                               : call<uint64_t>(&x, c, err);
    kiln_device_stream_free(device, x.stream);
    return st;
}
