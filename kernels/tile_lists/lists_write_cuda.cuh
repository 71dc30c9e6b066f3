/* lists_write_cuda -- writes the pairs that tile_find_cuda.cuh has found, in drawing order and in
 * one pass.
 *
 * A block takes 256 places of the order and fetches their records. Where its pairs begin depends on
 * all blocks before; it publishes its own number of pairs and looks back for the sum of the others,
 * in one level; its words are like place_cuda.cuh's. Looking back takes as long as the slowest of
 * them. So a block counts and publishes its next group before it looks back for its present one.
 * Pairs beyond the capacity are not written: only at the end is it known whether there are too
 * many.
 */
#ifndef KILN_KERNELS_TILE_LISTS_LISTS_WRITE_CUDA_CUH
#define KILN_KERNELS_TILE_LISTS_LISTS_WRITE_CUDA_CUH

#include "kernels/project/place_cuda.cuh"
#include "kernels/tile_pairs/tile_write_cuda.cuh"

namespace
{

constexpr int WRITE_AT_ONCE = 6; /* blocks of a multiprocessor: 40 registers a thread */
constexpr unsigned WRITE_BLOCKS = 132 * WRITE_AT_ONCE;

/* Tells each block where its pairs begin. All 0 before the launch. */
struct group_places {
    uint64_t *words; /* [groups of GROUP Gaussians] as a block's word in place_cuda.cuh */
    uint32_t *ticket;
};

/* Returns the sum of all groups before. It reads the words of four windows of 32 groups at once,
 * because more than a thousand groups are in flight together. It continues until it meets a group's
 * sum. Called by a whole warp. */
__device__ inline uint64_t look_far_back(const group_places &p, uint32_t group)
{
    constexpr unsigned WINDOWS = 4;
    uint64_t mine = 0;
    for (uint64_t nearest = group;;) {
        uint64_t words[WINDOWS];
#pragma unroll
        for (unsigned w = 0; w < WINDOWS; w++) {
            const uint64_t back = w * WARP + lane_index();
            words[w] =
                nearest > back
                    ? kiln::place_word(p.words[nearest - 1 - back]).load(cuda::memory_order_relaxed)
                    : uint64_t(kiln::PLACE_SUM);
        }
#pragma unroll
        for (unsigned w = 0; w < WINDOWS; w++) {
            const unsigned sums = __ballot_sync(ALL, words[w] >= kiln::PLACE_SUM),
                           needed = sums ? sums ^ (sums - 1) : ALL;
            /* not all are known: ask again from here */
            if (__ballot_sync(ALL, words[w] < kiln::PLACE_COUNT) & needed) break;
            if (needed >> lane_index() & 1) mine += words[w] & kiln::PLACE_VALUE;
            if (sums) {
                for (int step = WARP / 2; step > 0; step /= 2)
                    mine += __shfl_xor_sync(ALL, mine, step);
                return mine;
            }
            nearest -= WARP;
        }
    }
}

/* Writes tile_lists' stats; called by one thread of the last group. */
__device__ inline void write_list_stats(uint64_t *stats, uint64_t found, uint64_t capacity,
                                        uint64_t visible)
{
    stats[0] = found <= capacity ? found : 0;
    stats[1] = found;
    stats[2] = visible;
}

/* A thread's Gaussian of a group whose pairs are counted. */
template <typename Sum> struct counted {
    record r;
    Sum before; /* pairs of the group's Gaussians before this one */
    uint32_t group, id;
};

/* Shared memory of a block that writes. */
template <typename Sum> struct write_shared {
    writing warps[GROUP / WARP];
    /* pairs of each warp: of the group that is written and of the next */
    Sum sums[2][GROUP / WARP];
    uint64_t first;
    uint32_t ticket;
};

template <typename Sum> __device__ uint64_t total_of(const Sum (&sums)[GROUP / WARP])
{
    uint64_t total = 0;
    for (unsigned w = 0; w < GROUP / WARP; w++) total += sums[w];
    return total;
}

/* Called by a whole block: counts a group's pairs and publishes their number. */
template <typename Sum>
__device__ counted<Sum> count_group(const found &f, const group_places &p, const uint32_t *order,
                                    uint64_t n, uint32_t group, Sum (&sums)[GROUP / WARP])
{
    const uint64_t i = static_cast<uint64_t>(group) * GROUP + threadIdx.x;
    const uint32_t id = i < n ? order[i] : 0;
    const record r = i < n ? f.records[id] : record{};
    const Sum before = sum_in_group(static_cast<Sum>(r.pairs()), sums);
    if (threadIdx.x == 0 && group > 0)
        kiln::place_say(p.words, group, kiln::PLACE_COUNT, total_of(sums));
    return {r, before, group, id};
}

/* Writes the pairs of all masks. order holds positions in splats, which become the ids of the
 * pairs. The record of a listed Gaussian gets the place of its pairs, which finish_pairs writes.
 */
template <typename Tile>
__global__ void __launch_bounds__(GROUP, WRITE_AT_ONCE)
    write_in_order(const job j, const found f, const group_places p, const uint32_t *order,
                   const pairs_out<Tile> out, uint64_t *stats)
{
    using sum = place_in_group<Tile>;
    __shared__ write_shared<sum> shared;
    const uint64_t n = j.count.get(), groups = n > 0 ? groups_of(n) : 1;
    uint32_t ahead = 0; /* the first thread's: the group after the next */
    if (threadIdx.x == 0) {
        shared.ticket = atomicAdd(p.ticket, 1);
        ahead = atomicAdd(p.ticket, 1);
    }
    __syncthreads();
    if (shared.ticket >= groups) return;
    counted<sum> now = count_group(f, p, order, n, shared.ticket, shared.sums[0]);
    for (unsigned which = 0;; which ^= 1) {
        if (threadIdx.x == 0) {
            shared.ticket = ahead;
            ahead = atomicAdd(p.ticket, 1);
        }
        __syncthreads();
        const bool goes_on = shared.ticket < groups;
        counted<sum> next = {};
        if (goes_on) next = count_group(f, p, order, n, shared.ticket, shared.sums[which ^ 1]);
        const auto first_of_group = [&] {
            if (threadIdx.x < WARP) {
                const uint64_t first = look_far_back(p, now.group),
                               end = first + total_of(shared.sums[which]);
                if (threadIdx.x == 0) {
                    kiln::place_say(p.words, now.group, kiln::PLACE_SUM, end);
                    shared.first = first;
                    if (now.group == groups - 1)
                        write_list_stats(stats, end, out.rule.capacity, *j.count.known);
                }
            }
            __syncthreads();
            return shared.first;
        };
        write_masks_of_warp(shared.warps[threadIdx.x / WARP], now.r, now.id, now.before,
                            first_of_group, out);
        if (now.r.is_listed()) f.records[now.id] = record::of_listed(shared.first + now.before);
        if (!goes_on) return;
        now = next;
    }
}

/* Writes the pairs of listed Gaussians. */
template <typename Tile>
__global__ void __launch_bounds__(GROUP, REST_AT_ONCE)
    finish_pairs(const job j, const found f, const pairs_out<Tile> out)
{
    kiln::launch_before_is_done();
    if (out.rule.holds()) write_listed(j, f, out);
}

} // namespace

#endif
