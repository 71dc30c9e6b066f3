/* place_cuda -- tells each block where its results begin when the results of all blocks are stored
 * in order, in the same pass that makes them: a scan with decoupled look-back (D. Merrill, M.
 * Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016), in two levels.
 *
 * A block publishes its count as soon as it knows it: in a word of its own, and added to the word
 * of its group of 32 blocks. To find its place it reads all that it needs at once: the counts of
 * the blocks before it in its group, the counts of the 32 groups before that and, where they are
 * known, their sums. A group's sum is the count of all blocks up to and including its last one,
 * which publishes it. So a look-back takes one wait for memory where 1,024 blocks or fewer are on
 * their way. Counts and sums are integers, so places do not depend on timing.
 *
 * Blocks take their numbers from a ticket. All blocks with lower numbers have therefore started,
 * and none waits for a block that cannot run. A count is published without waiting for other
 * blocks.
 *
 *   a block's word, a group's sum: bits 0 .. 61 value; bits 62, 63: 0: nothing published, 1: a count, 2: a sum
 *   a group's count:               bits 0 .. 47 value; bits 48 .. 63: how many of its blocks have
 *                                  added theirs
 *
 * Both parts are in one word, so a block that sees that something was published also sees the
 * value. Nothing else is read because of it; so the order of other memory accesses does not matter.
 */
#ifndef KILN_KERNELS_PROJECT_PLACE_CUDA_CUH
#define KILN_KERNELS_PROJECT_PLACE_CUDA_CUH

#include "kernels/cuda.cuh"

#include <cuda/atomic>
#include <stdint.h>

namespace kiln
{

enum : uint64_t { PLACE_COUNT = 1ull << 62, PLACE_SUM = 2ull << 62, PLACE_VALUE = PLACE_COUNT - 1 };
enum : uint64_t { PLACE_TOLD = 1ull << 48 };
enum : uint32_t { PLACE_GROUP = 32 };

/* All 0 before the launch. groups, sums: one for each PLACE_GROUP blocks, the last group may have
 * fewer. */
struct places {
    uint64_t *words, *groups, *sums;
};

/* On the host. The three arrays lie one behind the other, words first. */
inline places take_places(kiln_carve *c, uint64_t blocks)
{
    const uint64_t groups = (blocks + PLACE_GROUP - 1) / PLACE_GROUP;
    places p;
    p.words = take<uint64_t>(c, blocks);
    p.groups = take<uint64_t>(c, groups);
    p.sums = take<uint64_t>(c, groups);
    return p;
}

using place_word = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>;

__device__ inline uint64_t place_read(uint64_t *word)
{
    return place_word(*word).load(cuda::memory_order_relaxed);
}

__device__ inline void place_say(uint64_t *words, uint64_t block, uint64_t what, uint64_t value)
{
    place_word(words[block]).store(what + value, cuda::memory_order_relaxed);
}

/* Called once for each block, by one thread. The counts of a group add up to less than
 * PLACE_TOLD. */
__device__ inline void place_say_count(const places &p, uint64_t block, uint64_t count)
{
    place_say(p.words, block, PLACE_COUNT, count);
    place_word(p.groups[block / PLACE_GROUP])
        .fetch_add(PLACE_TOLD + count, cuda::memory_order_relaxed);
}

/* sum: of all blocks up to and including this one. Called for each block, by one thread, after the
 * look-back. */
__device__ inline void place_say_sum(const places &p, uint64_t block, uint64_t sum)
{
    if (block % PLACE_GROUP == PLACE_GROUP - 1)
        place_say(p.sums, block / PLACE_GROUP, PLACE_SUM, sum);
}

/* Returns the sum of all blocks before `block`, which is below 2^32; 0 for block 0. Called by one
 * whole warp. */
__device__ inline uint32_t place_look_back(const places &p, uint32_t block)
{
    const uint32_t all = 0xffffffffu, lane = threadIdx.x % 32, inside = block % PLACE_GROUP;
    uint32_t before = 0;
    bool in_group = lane < inside; /* in the first round */
    for (uint32_t nearest = block / PLACE_GROUP;; nearest -= 32, in_group = false) {
        const bool exists = nearest > lane;
        uint64_t word, count, sum;
        uint32_t sums, needed;
        do {
            word = in_group ? place_read(p.words + (block - inside + lane)) : uint64_t(PLACE_COUNT);
            count = exists ? place_read(p.groups + (nearest - 1 - lane)) : 0;
            sum = exists ? place_read(p.sums + (nearest - 1 - lane)) : uint64_t(PLACE_SUM);
            sums = __ballot_sync(all, sum >= PLACE_SUM);
            needed = sums ? sums ^ (sums - 1) : all; /* up to the nearest sum */
        } while (
            __ballot_sync(all, word < PLACE_COUNT) |
            (__ballot_sync(all, sum < PLACE_SUM && count < PLACE_GROUP * PLACE_TOLD) & needed));
        uint32_t value = static_cast<uint32_t>(word);
        if (needed >> lane & 1) value += static_cast<uint32_t>(sum >= PLACE_SUM ? sum : count);
        for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(all, value, step);
        before += value;
        if (sums) return before;
    }
}

} // namespace kiln

#endif
