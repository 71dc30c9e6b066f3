/* lists_write_cuda -- writes the pairs that tile_find_cuda.cuh has found, in drawing order and in one pass.
 *
 * A block takes 256 places of the order and fetches their records. Where its pairs begin depends on all blocks before; it publishes
 * its own number of pairs and looks back for the sum of the others (place_cuda.cuh). Pairs beyond the capacity are not written:
 * only at the end is it known whether there are too many.
 */
#ifndef KILN_KERNELS_TILE_LISTS_LISTS_WRITE_CUDA_CUH
#define KILN_KERNELS_TILE_LISTS_LISTS_WRITE_CUDA_CUH

#include "kernels/project/place_cuda.cuh"
#include "kernels/tile_pairs/tile_write_cuda.cuh"

namespace
{

/* Tells each block where its pairs begin. All 0 before the launch. */
struct places {
    uint64_t *words; /* [groups] of place_cuda.cuh */
    uint32_t *ticket;
};

/* Called by the first warp after the group's pairs were published: returns the sum of all groups before. */
__device__ inline uint64_t find_place(const places &p, uint64_t group, uint64_t pairs)
{
    const uint64_t before = group > 0 ? kiln::place_look_back<uint64_t>(p.words, group) : 0;
    if (threadIdx.x == 0) kiln::place_say(p.words, group, kiln::PLACE_SUM, before + pairs);
    return before;
}

/* Writes tile_lists' stats; called by one thread of the last group. */
__device__ inline void tell(uint64_t *stats, uint64_t found, uint64_t capacity, uint64_t visible)
{
    stats[0] = found <= capacity ? found : 0;
    stats[1] = found;
    stats[2] = visible;
}

/* Writes the pairs of all masks. order holds positions in splats, which become the ids of the pairs. The record of a listed
 * Gaussian gets the place of its pairs, which finish_pairs writes. One block for each group; groups beyond *n_visible end at once.
 */
template <typename Tile>
__global__ void __launch_bounds__(GROUP)
    write_in_order(const job j, const found f, const places p, const uint32_t *order, const pairs_out<Tile> out, uint64_t *stats)
{
    __shared__ writing warp_scratch[GROUP / WARP];
    __shared__ uint64_t sums[GROUP / WARP], first;
    __shared__ uint32_t ticket;
    if (threadIdx.x == 0) ticket = atomicAdd(p.ticket, 1);
    __syncthreads();
    const uint64_t n = j.count.get(), group = ticket, i = group * GROUP + threadIdx.x;
    if (group * GROUP >= n && group > 0) return;
    const uint32_t id = i < n ? order[i] : 0;
    const record r = i < n ? f.r.words[id] : record{};
    const uint64_t mask = f.r.mask(id, r), before = sum_in_group(f.r.pairs(r, mask), sums);
    uint64_t total = 0; /* the first warp's to know */
    if (threadIdx.x < WARP)
        for (unsigned w = 0; w < GROUP / WARP; w++) total += sums[w];
    if (group > 0 && threadIdx.x == 0) kiln::place_say(p.words, group, kiln::PLACE_COUNT, total);
    const auto first_of_group = [&] {
        if (threadIdx.x < WARP) {
            const uint64_t place = find_place(p, group, total);
            if (threadIdx.x == 0) {
                first = place;
                if ((group + 1) * GROUP >= n) tell(stats, place + total, out.rule.capacity, *j.count.known);
            }
        }
        __syncthreads();
        return first;
    };
    write_masks_of_warp(warp_scratch[threadIdx.x / WARP], r, mask, id, before, first_of_group, out);
    if (r.is_listed()) f.r.words[id] = record::of_listed(first + before);
}

/* Writes the pairs of listed Gaussians. */
template <typename Tile>
__global__ void __launch_bounds__(GROUP) finish_pairs(const job j, const found f, const pairs_out<Tile> out)
{
    kiln::launch_before_is_done();
    if (out.rule.holds()) write_listed(j, f, out);
}

} // namespace

#endif
