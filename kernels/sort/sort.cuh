/* sort -- the radix sort of (key, 32-bit value) pairs in two arrays for the CUDA siblings
 * (radix_cuda.cuh): stable, so that it has one result, the CPU's.
 *
 * It goes to and fro between two places. Where it ended is known to the host as soon as the call
 * returns, without waiting for the device; the places are then exchanged, so that [0] is the
 * result. A caller that needs it elsewhere copies it.
 */
#ifndef KILN_KERNELS_SORT_CUH
#define KILN_KERNELS_SORT_CUH

#include "kernels/sort/radix_run_cuda.cuh"

namespace kiln
{

/* Key: uint16_t, uint32_t or uint64_t. [0] is the input, afterwards the result; [1] is room for as
 * much. */
template <typename Key> struct sort_pairs {
    Key *keys[2];
    uint32_t *values[2];
};

/* Pairs as they lie in two arrays. */
template <typename Key> struct pairs_in_arrays {
    uint64_t n;
    const Key *keys;
    const uint32_t *values;

    __device__ uint64_t count() const { return n; }
    __device__ Key key(uint64_t i) const { return keys[i]; }
    __device__ uint32_t value(uint64_t i) const { return values[i]; }
};

/* By the keys' lowest `bits`, ascending. temp == NULL: writes the bytes needed to *temp_bytes and
 * does nothing else. */
template <typename Key>
cudaError_t sort(void *temp, size_t *temp_bytes, sort_pairs<Key> *s, uint64_t n, int bits,
                 cudaStream_t stream)
{
    radix_sort<Key> r = {};
    kiln_carve c = {static_cast<char *>(temp), 0};
    radix_state *const state = take<radix_state>(&c, 1);
    lay_out_radix(&r, &c, n, static_cast<unsigned>(bits), state);
    *temp_bytes = c.used;
    if (!temp) return cudaSuccess;
    for (int i = 0; i < 2; i++) {
        r.keys[i] = s->keys[1 - i]; /* the first pass writes to [0] */
        r.values[i] = s->values[1 - i];
    }
    unsigned at = 0;
    cudaError_t e = cudaMemsetAsync(state, 0, sizeof *state, stream);
    if (e == cudaSuccess)
        e = run_radix(r, pairs_in_arrays<Key>{n, s->keys[0], s->values[0]}, stream, &at);
    *s = {{r.keys[at], r.keys[1 - at]}, {r.values[at], r.values[1 - at]}};
    return e;
}

/* Copies what lies elsewhere. */
template <typename T> cudaError_t bring(T *to, const T *from, uint64_t n, cudaStream_t stream)
{
    return to == from ? cudaSuccess
                      : cudaMemcpyAsync(to, from, n * sizeof(T), cudaMemcpyDeviceToDevice, stream);
}

} // namespace kiln

#endif
