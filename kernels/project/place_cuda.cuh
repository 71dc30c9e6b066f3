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

/* Returns the sum of all blocks before `block`; 0 for block 0. Value is uint32_t or uint64_t and must hold the sum. WINDOWS: of 32
 * blocks, asked at once, where hundreds of blocks are on their way together. Called by one whole warp. */
template <typename Value, unsigned WINDOWS = 1> __device__ Value place_look_back(uint64_t *words, uint64_t block)
{
    const uint32_t all = 0xffffffffu, lane = threadIdx.x % 32;
    Value before = 0; /* of this lane */
    for (uint64_t nearest = block;;) {
        uint64_t asked[WINDOWS];
#pragma unroll
        for (unsigned w = 0; w < WINDOWS; w++) {
            const uint64_t back = w * 32 + lane;
            asked[w] =
                nearest > back ? place_word(words[nearest - 1 - back]).load(cuda::memory_order_relaxed) : uint64_t(PLACE_SUM);
        }
#pragma unroll
        for (unsigned w = 0; w < WINDOWS; w++) {
            const uint32_t sums = __ballot_sync(all, asked[w] >= PLACE_SUM);
            const uint32_t needed = sums ? sums ^ (sums - 1) : all;         /* up to the nearest sum */
            if (__ballot_sync(all, asked[w] < PLACE_COUNT) & needed) break; /* not all are known: ask again from here */
            if (needed >> lane & 1) before += static_cast<Value>(asked[w] & PLACE_VALUE);
            if (sums) {
                for (int step = 16; step > 0; step /= 2) before += __shfl_xor_sync(all, before, step);
                return before;
            }
            nearest -= 32;
        }
    }
}

} // namespace kiln

#endif
