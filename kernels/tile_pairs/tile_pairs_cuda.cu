/* tile_pairs on CUDA: every Gaussian's tiles are found once (tile_find_cuda.cuh) and kept as a mask or, for wide boxes, as a
 * number. Groups of 256 sum up their pairs; a scan over the groups turns the sums into places. Then the pairs are written
 * (tile_write_cuda.cuh) with ranks that increase, and CUB's stable sort by tile alone makes the lists.
 */
#include "kernels/tile_pairs/tile_pairs.h"

#include "kernels/cuda.cuh"
#include "kernels/sort/sort.cuh"
#include "kernels/tile_pairs/tile_write_cuda.cuh"

namespace
{

enum { BLOCK = 256, BLOCKS = 132 * 8, NARROW_TILES = 65536 };

/* ---- lists of tiles -------------------------------------------------------------------------------------------------- */
/* How many of the sorted numbers are less than v. */
template <typename Tile> __device__ uint64_t count_less(const Tile *sorted, uint64_t n, uint64_t v)
{
    uint64_t low = 0, high = n;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (sorted[middle] < v)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A block finds where its tiles begin, and where the next one does. What lies behind the listed pairs is no tile's. */
template <typename Tile>
__global__ void __launch_bounds__(BLOCK)
    count_by_tile(const Tile *sorted, const room_rule room, uint32_t *tile_counts, uint64_t n_tiles)
{
    __shared__ uint64_t begins[BLOCK + 1];
    const uint64_t n = room.listed();
    for (uint64_t first = static_cast<uint64_t>(blockIdx.x) * BLOCK; first < n_tiles; first += kiln::thread_count()) {
        begins[threadIdx.x] = count_less(sorted, n, first + threadIdx.x);
        if (threadIdx.x == BLOCK - 1) begins[BLOCK] = count_less(sorted, n, first + BLOCK);
        __syncthreads();
        if (first + threadIdx.x < n_tiles)
            tile_counts[first + threadIdx.x] = static_cast<uint32_t>(begins[threadIdx.x + 1] - begins[threadIdx.x]);
        __syncthreads();
    }
}

/* ---- launchers ------------------------------------------------------------------------------------------------------- */
job job_of(uint64_t n, const kiln_splat2d *splats, const kiln_view *view, uint32_t row0, uint32_t row1)
{
    return {n, (n + GROUP - 1) / GROUP, splats, *view, row0, row1};
}

/* Counters and sums lie together, so that one call clears them. */
struct find_work {
    found f;
    uint64_t *counters;
    size_t counters_bytes;
};

find_work take_find(kiln_carve *c, const job &j)
{
    find_work w;
    w.f.records = kiln::take<record>(c, j.n);
    w.f.listed = kiln::take<uint32_t>(c, j.n);
    w.counters = kiln::take<uint64_t>(c, j.n_groups + 3);
    w.counters_bytes = (j.n_groups + 3) * sizeof *w.counters;
    w.f.n_wide = w.counters;
    w.f.n_odd = w.counters ? w.counters + 1 : nullptr;
    w.f.group_pairs = w.counters ? w.counters + 2 : nullptr;
    return w;
}

template <bool BY_ROW> kiln_status find(const kiln_exec *x, const job &j, const find_work &w, uint64_t *row_pairs, kiln_error *err)
{
    CUDA_RUN(cudaMemsetAsync(w.counters, 0, w.counters_bytes, x->stream));
    LAUNCH(find_masks<BY_ROW>, kiln::blocks_for(j.n_groups, 1, BLOCKS), GROUP, 0, j, w.f, row_pairs);
    LAUNCH(find_rest<BY_ROW>, BLOCKS, GROUP, 0, j, w.f, row_pairs);
    return KILN_OK;
}

uint64_t tiles_of(const kiln_tile_pairs_emit_args *a)
{
    return static_cast<uint64_t>(a->row1 - a->row0) * kiln_view_tiles_x(a->view);
}

template <typename Tile> struct emit_work {
    job j;
    find_work find;
    uint64_t n_tiles;
    Tile *tiles[2];  /* [room] */
    uint32_t *ranks; /* [room] */
    int tile_bits;
    void *tmp;
    size_t tmp_bytes, bytes;
};

template <typename Tile>
cudaError_t lay_out_emit(emit_work<Tile> *w, const kiln_tile_pairs_emit_args *a, void *work, cudaStream_t stream)
{
    kiln_carve c = {static_cast<char *>(work), 0};
    *w = {};
    w->j = job_of(a->n, a->splats, a->view, a->row0, a->row1);
    w->n_tiles = tiles_of(a);
    for (w->tile_bits = 1; w->n_tiles > 1ull << w->tile_bits;) w->tile_bits++;
    w->find = take_find(&c, w->j);
    w->tiles[0] = kiln::take<Tile>(&c, a->room);
    w->tiles[1] = kiln::take<Tile>(&c, a->room);
    w->ranks = kiln::take<uint32_t>(&c, a->room);
    kiln::sort_pairs<Tile> by_tile = {{w->tiles[0], w->tiles[1]}, {a->ranks, w->ranks}};
    const cudaError_t e = kiln::sort(nullptr, &w->tmp_bytes, &by_tile, a->room, w->tile_bits, stream);
    w->tmp = kiln_take(&c, w->tmp_bytes, 1);
    w->bytes = c.used;
    return e;
}

template <typename Tile> room_rule room_of(const kiln_tile_pairs_emit_args *a, const emit_work<Tile> &w)
{
    return {w.find.f.group_pairs + w.j.n_groups, a->room, a->n_pairs != nullptr};
}

/* Writes the pairs, Gaussian by Gaussian. */
template <typename Tile>
kiln_status write_pairs(const kiln_exec *x, const kiln_tile_pairs_emit_args *a, const emit_work<Tile> &w, kiln_error *err)
{
    const found &f = w.find.f;
    const room_rule room = room_of(a, w);
    const pairs_out<Tile> out = {w.tiles[0], a->ranks, kiln_view_tiles_x(a->view), room};
    KILN_TRY(find<false>(x, w.j, w.find, nullptr, err));
    LAUNCH(scan_groups, 1, WIDE_BLOCK, 0, f.group_pairs, w.j.n_groups + 1, room, a->n_pairs, x->fault);
    LAUNCH(write_masks<Tile>, kiln::blocks_for(w.j.n_groups, 1, BLOCKS), GROUP, 0, w.j, f, out);
    LAUNCH(write_rest<Tile>, BLOCKS, GROUP, 0, w.j, f, out);
    return KILN_OK;
}

template <typename Tile>
kiln_status sort_lists(const kiln_exec *x, const kiln_tile_pairs_emit_args *a, const emit_work<Tile> &w, kiln_error *err)
{
    kiln::sort_pairs<Tile> by_tile = {{w.tiles[0], w.tiles[1]}, {a->ranks, w.ranks}};
    size_t tmp_bytes = w.tmp_bytes;
    CUDA_RUN(kiln::sort(w.tmp, &tmp_bytes, &by_tile, a->room, w.tile_bits, x->stream));
    CUDA_RUN(kiln::bring(a->ranks, by_tile.values[0], a->room, x->stream));
    LAUNCH(count_by_tile<Tile>, kiln::blocks_for(w.n_tiles, BLOCK), BLOCK, 0, by_tile.keys[0], room_of(a, w), a->tile_counts,
           w.n_tiles);
    return KILN_OK;
}

template <typename Tile>
kiln_status emit(const kiln_exec *x, const kiln_tile_pairs_emit_args *a, void *work, size_t *work_bytes, kiln_error *err)
{
    emit_work<Tile> w;
    CUDA_TRY(lay_out_emit(&w, a, work, x->stream));
    if (!work) {
        *work_bytes = w.bytes;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("tile_pairs_emit", w.bytes, *work_bytes, err));
    KILN_TRY(write_pairs(x, a, w, err));
    return sort_lists(x, a, w, err);
}

} // namespace

extern "C" kiln_status kiln_tile_pairs_count_cuda(const kiln_exec *x, const kiln_tile_pairs_count_args *a, void *work,
                                                  size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "tile_pairs_count");
    CUDA_ENTER(entry.guard);
    KILN_TRY(kiln_tile_pairs_check(a->n, a->view, a->row0, a->row1, err));
    kiln_carve c = {static_cast<char *>(work), 0};
    const job j = job_of(a->n, a->splats, a->view, a->row0, a->row1);
    const find_work w = take_find(&c, j);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("tile_pairs_count", c.used, *work_bytes, err));
    CUDA_RUN(cudaMemsetAsync(a->row_pairs, 0, (a->row1 - a->row0) * sizeof *a->row_pairs, x->stream));
    return find<true>(x, j, w, a->row_pairs, err);
}

extern "C" kiln_status kiln_tile_pairs_emit_cuda(const kiln_exec *x, const kiln_tile_pairs_emit_args *a, void *work,
                                                 size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "tile_pairs_emit");
    CUDA_ENTER(entry.guard);
    KILN_TRY(kiln_tile_pairs_emit_check(a, err));
    return tiles_of(a) <= NARROW_TILES ? emit<uint16_t>(x, a, work, work_bytes, err) : emit<uint32_t>(x, a, work, work_bytes, err);
}
