/* sort -- CUB's radix sort of (key, 32-bit value) pairs for the CUDA siblings: stable, so that it has one result, the CPU's.
 *
 * It goes to and fro between two places. Where it ended is known to the host as soon as the call returns, without waiting
 * for the device; the places are then exchanged, so that [0] is the result. A caller that needs it elsewhere copies it.
 */
#ifndef KILN_KERNELS_SORT_CUH
#define KILN_KERNELS_SORT_CUH

#include "kernels/cuda.cuh"

#include <cub/device/device_radix_sort.cuh>

namespace kiln
{

/* Key: uint16_t, uint32_t or uint64_t. [0] is the input, afterwards the result; [1] is room for as much. */
template <typename Key> struct sort_pairs {
    Key *keys[2];
    uint32_t *values[2];
};

/* By the keys' lowest `bits`, ascending. CUB counts in 32 bits where that is enough, which is faster (9 M pairs of 16-bit keys:
 * 0.172 instead of 0.189 ms on an H200). temp == NULL: writes the bytes needed to *temp_bytes and does nothing else. */
template <typename Key>
cudaError_t sort(void *temp, size_t *temp_bytes, sort_pairs<Key> *s, uint64_t n, int bits, cudaStream_t stream)
{
    CUB_NS_QUALIFIER::DoubleBuffer<Key> keys(s->keys[0], s->keys[1]);
    CUB_NS_QUALIFIER::DoubleBuffer<uint32_t> values(s->values[0], s->values[1]);
    using radix = CUB_NS_QUALIFIER::DeviceRadixSort;
    const cudaError_t e = n <= INT32_MAX
                              ? radix::SortPairs(temp, *temp_bytes, keys, values, static_cast<int32_t>(n), 0, bits, stream)
                              : radix::SortPairs(temp, *temp_bytes, keys, values, n, 0, bits, stream);
    *s = {{keys.Current(), keys.Alternate()}, {values.Current(), values.Alternate()}};
    return e;
}

/* Copies what lies elsewhere. */
template <typename T> cudaError_t bring(T *to, const T *from, uint64_t n, cudaStream_t stream)
{
    return to == from ? cudaSuccess : cudaMemcpyAsync(to, from, n * sizeof(T), cudaMemcpyDeviceToDevice, stream);
}

} // namespace kiln

#endif
