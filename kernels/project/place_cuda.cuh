/* place_cuda -- tells each block where its results begin when the results of all blocks are stored in order, in the same pass that
 * makes them: a scan with decoupled look-back (D. Merrill, M. Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back,
 * 2016).
 *
 * A block publishes its count as soon as it knows it. To find its place it looks back: it adds the counts of the blocks before it,
 * 32 at a time, until it meets one that has published its sum, the count of all blocks up to and including itself. Then it
 * publishes its own sum. Counts and sums are integers, so places do not depend on timing.
 *
 * Blocks take their numbers from a ticket. All blocks with lower numbers have therefore started, and none waits for a block that
 * cannot run.
 *
 *   bits 0 .. 61   value
 *   bits 62, 63    0: nothing published, 1: a count, 2: a sum
 *
 * Both parts are in one word, so a block that sees that something was published also sees the value.
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

/* The same for a count that another thread of the block may have made a sum of already, which then stays. */
__device__ inline void place_say_count(uint64_t *words, uint64_t block, uint64_t count)
{
    place_word(words[block]).fetch_max((block > 0 ? PLACE_COUNT : PLACE_SUM) + count, cuda::memory_order_relaxed);
}

/* Returns the sum of all blocks before `block`; 0 for block 0. Value is uint32_t or uint64_t and must hold the sum. Called by one
 * whole warp. */
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
