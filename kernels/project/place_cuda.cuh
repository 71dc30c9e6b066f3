/* place_cuda -- where each block's results begin when all are put behind one another in order: a scan in the pass that
 * makes them (D. Merrill, M. Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016).
 *
 * A block says its count as soon as it knows it. When it needs its place it looks back: it adds up the counts of those
 * before it, 32 at a time, until it meets one that has said its sum, the count of all up to and including itself. Then it
 * says its own. Counts and sums are integers, so the places do not depend on when anything was said.
 *
 * Blocks take their numbers from a ticket, so those before a block have started: none waits for one that cannot run.
 *
 *   0 .. 61   value
 *   62, 63    0: nothing said, 1: a count, 2: a sum
 *
 * Both halves are one word, so who sees that something was said sees what.
 */
#ifndef KILN_KERNELS_PROJECT_PLACE_CUDA_CUH
#define KILN_KERNELS_PROJECT_PLACE_CUDA_CUH

#include <cuda/atomic>
#include <stdint.h>

namespace kiln
{

enum : uint64_t { PLACE_COUNT = 1ull << 62, PLACE_SUM = 2ull << 62, PLACE_VALUE = PLACE_COUNT - 1 };

using place_word = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>;

__device__ inline void place_say(uint64_t *words, uint64_t block, uint64_t what, uint64_t value)
{
    place_word(words[block]).store(what + value, cuda::memory_order_relaxed);
}

/* The sum of all before `block`, which Value holds: uint32_t or uint64_t. By one whole warp; `block` is above 0 or the answer is
 * 0. */
template <typename Value> __device__ Value place_look_back(uint64_t *words, uint64_t block)
{
    const uint32_t all = 0xffffffffu, lane = threadIdx.x % 32;
    Value before = 0;
    for (uint64_t nearest = block;; nearest -= 32) {
        const bool exists = nearest > lane;
        uint64_t word;
        uint32_t sums, needed;
        do {
            word = exists ? place_word(words[nearest - 1 - lane]).load(cuda::memory_order_relaxed) : uint64_t(PLACE_SUM);
            sums = __ballot_sync(all, word >= PLACE_SUM);
            needed = sums ? sums ^ (sums - 1) : all; /* up to the nearest sum */
        } while (__ballot_sync(all, word < PLACE_COUNT) & needed);
        Value value = needed >> lane & 1 ? static_cast<Value>(word & PLACE_VALUE) : 0;
        for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(all, value, step);
        before += value;
        if (sums) return before;
    }
}

} // namespace kiln

#endif
