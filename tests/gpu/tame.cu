#include "tests/gpu/tame.h"

#include "kernels/cuda.cuh"
#include "kernels/device.h"
#include "kernels/math/real.h"

namespace
{

enum { BLOCK = 256, BLOCKS = 1024, EXPONENTS = 200, FIRST_EXPONENT = 127 - 100, UNITS = 2 };

__device__ void compare(uint64_t *misses, float a, float b)
{
    if (__float_as_uint(a) != __float_as_uint(b))
        atomicAdd(reinterpret_cast<unsigned long long *>(misses), 1ull);
}

__device__ uint64_t mixed(uint64_t i)
{
    uint64_t z = (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    return z ^ (z >> 31);
}

__global__ void compare_each(tame_misses *m)
{
    const uint64_t step = uint64_t(gridDim.x) * BLOCK, first = uint64_t(FIRST_EXPONENT) << 23;
    for (uint64_t i = uint64_t(blockIdx.x) * BLOCK + threadIdx.x; i < uint64_t(EXPONENTS) << 23;
         i += step) {
        const float x = __uint_as_float(static_cast<uint32_t>(first + i));
        compare(&m->inverse, kiln_inverse(x, 1), 1.0f / x);
        compare(&m->root, kiln_root(x, 1), sqrtf(x));
        if (x > 80.0f) continue;
        for (const float y : {x, -x}) {
            compare(&m->exp, kiln_exp(y, 1), kiln_expf(y));
            compare(&m->sigmoid, kiln_sigmoid(y, 1), kiln_sigmoidf(y));
        }
    }
}

/* A float of either sign and 2^-30 to 2^30, of 30 bits. */
__device__ float number(uint64_t bits)
{
    const uint32_t sign = static_cast<uint32_t>(bits >> 29 & 1),
                   exponent = 127 - 30 + static_cast<uint32_t>(bits >> 23 & 63) % 60;
    return __uint_as_float(sign << 31 | exponent << 23 | static_cast<uint32_t>(bits & 0x7fffff));
}

__global__ void compare_pairs(uint64_t n, tame_misses *m)
{
    const uint64_t step = uint64_t(gridDim.x) * BLOCK;
    for (uint64_t i = uint64_t(blockIdx.x) * BLOCK + threadIdx.x; i < n; i += step) {
        const uint64_t bits = mixed(i);
        const float a = number(bits), b = number(bits >> 32), product = a * b;
        compare(&m->quotient, kiln_quotient(a, b, 1), a / b);
        for (int k = -UNITS; k <= UNITS; k++) {
            const float near = __uint_as_float(__float_as_uint(product) + static_cast<uint32_t>(k));
            compare(&m->product, kiln_quotient(near, b, 1), near / b);
        }
    }
}

kiln_status run(const kiln_exec *x, uint64_t n, tame_misses *on_device, tame_misses *out,
                kiln_error *err)
{
    CUDA_RUN(cudaMemsetAsync(on_device, 0, sizeof *on_device, x->stream));
    LAUNCH(compare_each, BLOCKS, BLOCK, 0, on_device);
    LAUNCH(compare_pairs, BLOCKS, BLOCK, 0, n, on_device);
    KILN_TRY(kiln_device_copy_out(x, out, on_device, sizeof *out, err));
    return kiln_device_wait(x, err);
}

} // namespace

extern "C" kiln_status tame_on_device(int device, uint64_t n, tame_misses *out, kiln_error *err)
{
    kiln_exec x = {};
    void *memory = nullptr;
    x.device = device;
    const kiln::device_guard guard(device);
    KILN_TRY(kiln_device_stream_new(device, false, &x.stream, err));
    kiln_status st = kiln_device_alloc(device, sizeof *out, &memory, err);
    if (st == KILN_OK) st = run(&x, n, static_cast<tame_misses *>(memory), out, err);
    if (memory) kiln_device_free(device, memory);
    kiln_device_stream_free(device, x.stream);
    return st;
}
