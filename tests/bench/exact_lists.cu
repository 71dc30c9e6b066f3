/* exact_lists -- see exact.cuh: a block takes a tile and looks at every Gaussian, and, inside its
 * bounds, at every pixel centre (tile_pairs.h: what a pair is). What belongs to the list is looked
 * for in it; what then is left over does not belong. */
#include "tests/bench/exact.cuh"

#include "kernels/cuda.cuh"
#include "kernels/math/power_math.h"

namespace bench
{

namespace
{

constexpr unsigned BLOCK = 256;

struct lists {
    kiln_tile_lists_args a;
    const uint64_t *begins; /* [tiles + 1] */
    uint64_t tiles;
    uint32_t tiles_x, width, height;
    unsigned long long *counts; /* pairs that belong, of these missing, entries out of order */
};

__device__ bool reaches(const kiln_splat2d &s, uint32_t tile_x, uint32_t tile_y, uint32_t width,
                        uint32_t height)
{
    const int32_t tx = static_cast<int32_t>(tile_x), ty = static_cast<int32_t>(tile_y);
    if (tx < s.tile_x0 || tx >= s.tile_x1 || ty < s.tile_y0 || ty >= s.tile_y1) return false;
    const uint32_t x0 = tile_x * KILN_TILE, y0 = tile_y * KILN_TILE;
    for (uint32_t y = y0; y < y0 + KILN_TILE && y < height; y++)
        for (uint32_t x = x0; x < x0 + KILN_TILE && x < width; x++)
            if (kiln_power(s.conic[0], s.conic[1], s.conic[2], kiln_power_offset(s.x, x),
                           kiln_power_offset(s.y, y)) >= s.power_min)
                return true;
    return false;
}

/* Is the one at position p drawn before the one at q? */
__device__ bool comes_before(const lists &l, uint32_t p, uint32_t q)
{
    if (!l.a.depths) return p < q;
    if (l.a.depths[p] != l.a.depths[q]) return l.a.depths[p] < l.a.depths[q];
    if (l.a.source_rows[p] != l.a.source_rows[q]) return l.a.source_rows[p] < l.a.source_rows[q];
    return p < q;
}

__device__ bool is_listed(const lists &l, uint64_t tile, uint32_t id)
{
    uint64_t low = l.begins[tile], high = l.begins[tile + 1];
    while (low < high) {
        const uint64_t middle = (low + high) / 2;
        if (comes_before(l, l.a.ids[middle], id))
            low = middle + 1;
        else
            high = middle;
    }
    return low < l.begins[tile + 1] && l.a.ids[low] == id;
}

__global__ void compare_lists(const lists l)
{
    for (uint64_t tile = blockIdx.x; tile < l.tiles; tile += gridDim.x) {
        const uint32_t tile_x = static_cast<uint32_t>(tile % l.tiles_x),
                       tile_y = static_cast<uint32_t>(tile / l.tiles_x);
        unsigned long long belong = 0, missing = 0, disorder = 0;
        for (uint64_t i = threadIdx.x; i < l.a.n; i += BLOCK) {
            if (!reaches(l.a.splats[i], tile_x, tile_y, l.width, l.height)) continue;
            belong++;
            missing += !is_listed(l, tile, static_cast<uint32_t>(i));
        }
        for (uint64_t i = l.begins[tile] + 1 + threadIdx.x; i < l.begins[tile + 1]; i += BLOCK)
            disorder += !comes_before(l, l.a.ids[i - 1], l.a.ids[i]);
        if (belong) atomicAdd(&l.counts[0], belong);
        if (missing) atomicAdd(&l.counts[1], missing);
        if (disorder) atomicAdd(&l.counts[2], disorder);
    }
}

} // namespace

std::vector<uint64_t> list_begins(const uint32_t *tile_counts, uint64_t tiles)
{
    std::vector<uint32_t> counts(tiles);
    std::vector<uint64_t> begins(tiles + 1, 0);
    BENCH_CUDA(
        cudaMemcpy(counts.data(), tile_counts, tiles * sizeof counts[0], cudaMemcpyDeviceToHost));
    for (uint64_t i = 0; i < tiles; i++) begins[i + 1] = begins[i] + counts[i];
    return begins;
}

void check_lists(table *t, const std::string &what, const kiln_tile_lists_args &a)
{
    const uint32_t tiles_x = kiln_view_tiles_x(a.view);
    const uint64_t tiles = uint64_t(tiles_x) * kiln_view_tiles_y(a.view);
    const std::vector<uint64_t> host_begins = list_begins(a.tile_counts, tiles);
    array<uint64_t> begins(tiles + 1);
    array<unsigned long long> counts(3);
    begins.from_host(host_begins.data());
    counts.fill(0);
    const lists l = {a, begins.get(), tiles, tiles_x, a.view->width, a.view->height, counts.get()};
    compare_lists<<<kiln::blocks_for(tiles, 1, INT32_MAX), BLOCK>>>(l);
    BENCH_CUDA(cudaGetLastError());
    const std::vector<unsigned long long> found = counts.to_host();
    const uint64_t listed = host_begins[tiles], rightly = found[0] - found[1];
    t->add(finding{what, "pairs by brute force are missing", found[0], found[1]});
    t->add(finding{what, "listed pairs are extra or out of order", listed,
                   (listed > rightly ? listed - rightly : 0) + found[2]});
}

} // namespace bench
