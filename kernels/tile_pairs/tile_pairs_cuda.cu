/* tile_pairs on CUDA. The work is cut into items, one Gaussian on one tile row: a scan over the Gaussians' tile rows numbers
 * them, and a fixed grid strides over the numbers, so that the host need not know how many there are and one Gaussian
 * that covers the picture is spread over as many half warps as it has rows.
 *
 * A half warp takes 16 items at a time. First a lane an item: items of few tiles are often settled by the pixel of each
 * tile that is nearest to the centre. Then all 16 lanes together, one pixel row each, for every item that is left
 * (tile_row_cuda.cuh).
 *
 * emit finds the pairs twice: first to count those of each Gaussian, which a scan turns into places, then to write them
 * there as (tile, rank). Ranks then increase, and a stable sort by tile alone makes the lists. In which order the pairs
 * of one Gaussian are written is left to chance; no two of them are of the same tile.
 */
#include "kernels/tile_pairs/tile_pairs.h"

#include "kernels/cuda.cuh"
#include "kernels/sort/sort.cuh"
#include "kernels/tile_pairs/tile_row_cuda.cuh"

#include <cub/device/device_scan.cuh>

namespace
{

enum {
    BLOCK = 128,
    COPIES = 64, /* of the sums of rows, as long as all have at most SUMS_MAX words */
    SUMS_MAX = 1 << 18,
};

/* What a call is about, as kernels see it. */
struct job {
    uint64_t n;
    const kiln_splat2d *splats;
    kiln_view view;
    uint32_t row0, row1;
    const uint64_t *starts; /* [n + 1] number of each Gaussian's first item; the last is how many there are */
};

/* One Gaussian on one tile row. */
struct item {
    uint32_t splat;
    kiln_tile_row row;
};
static_assert(sizeof(item) <= 32, "cooperative groups hand on 32 bytes at most");

/* ---- items ----------------------------------------------------------------------------------------------------------- */
/* By bisection: Gaussians without an item share their start with the next one and are never found. */
__device__ item find_item(const job &j, uint64_t number)
{
    uint64_t low = 0, high = j.n;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (j.starts[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    const kiln_splat2d &s = j.splats[low];
    kiln_splat_extent e;
    (void)kiln_find_extent(&s, j.row0, j.row1, &e); /* true: it has an item */
    item i;
    i.splat = static_cast<uint32_t>(low);
    i.row = kiln_find_tile_row(&s, &e, &j.view, e.row_first + static_cast<uint32_t>(number - j.starts[low]));
    return i;
}

/* Hands all pairs to `sink(group, item, at, bits)`, where the group is half a warp or a single thread. */
template <typename Sink> __device__ void for_pairs(const job &j, const Sink &sink)
{
    const row_group g = cg::tiled_partition<KILN_TILE>(cg::this_thread_block());
    const auto alone = cg::tiled_partition<1>(g);
    const uint64_t items = j.starts[j.n];
    for (uint64_t first = kiln::thread_index() - g.thread_rank(); first < items; first += kiln::thread_count()) {
        item mine = {};
        uint64_t known = 0;
        if (first + g.thread_rank() < items) {
            mine = find_item(j, first + g.thread_rank());
            known = nearest_tiles(j.splats[mine.splat], mine.row);
        }
        const bool settled = __popcll(known) == mine.row.n;
        if (settled && known) sink(alone, mine, mine.row.column, known);
        for (unsigned left = g.ballot(!settled); left; left &= left - 1) {
            const int lane = __ffs(left) - 1;
            const item i = g.shfl(mine, lane);
            put_row(g, j.splats[i.splat], i.row, g.shfl(known, lane), [&](int32_t at, uint64_t bits) { sink(g, i, at, bits); });
        }
    }
}

/* ---- kernels --------------------------------------------------------------------------------------------------------- */
__global__ void __launch_bounds__(BLOCK) number_rows(job j, uint64_t *rows)
{
    for (uint64_t i = kiln::thread_index(); i <= j.n; i += kiln::thread_count()) {
        kiln_splat_extent e;
        rows[i] = i < j.n && kiln_find_extent(&j.splats[i], j.row0, j.row1, &e) ? e.row_end - e.row_first : 0;
    }
}

/* Blocks take turns with `copies` sums of each row: all would queue for the few words of one. sums [copies][rows]. */
__global__ void __launch_bounds__(BLOCK) count_by_row(job j, uint64_t *sums, uint32_t copies)
{
    uint64_t *mine = sums + static_cast<uint64_t>(blockIdx.x % copies) * (j.row1 - j.row0);
    for_pairs(j, [=](const auto &g, const item &i, int32_t, uint64_t bits) {
        if (g.thread_rank() == 0) kiln::add64(&mine[i.row.py0 / KILN_TILE - j.row0], __popcll(bits));
    });
}

__global__ void __launch_bounds__(BLOCK) add_copies(const uint64_t *sums, uint32_t copies, uint64_t rows, uint64_t *row_pairs)
{
    for (uint64_t r = kiln::thread_index(); r < rows; r += kiln::thread_count()) {
        uint64_t sum = 0;
        for (uint32_t k = 0; k < copies; k++) sum += sums[k * rows + r];
        row_pairs[r] = sum;
    }
}

__global__ void __launch_bounds__(BLOCK) count_by_splat(job j, uint64_t *pairs)
{
    for_pairs(j, [=](const auto &g, const item &i, int32_t, uint64_t bits) {
        if (g.thread_rank() == 0) kiln::add64(&pairs[i.splat], __popcll(bits));
    });
}

/* With another number of pairs than was counted nothing is listed. */
__global__ void __launch_bounds__(BLOCK)
    check_room(const uint64_t *pairs, uint64_t room, uint32_t *tiles, uint32_t *ranks, uint64_t *fault)
{
    if (*pairs == room) return;
    if (kiln::thread_index() == 0) kiln::leave_fault(fault, KILN_FAULT(KILN_FAULT_EMIT_PAIRS, *pairs));
    for (uint64_t i = kiln::thread_index(); i < room; i += kiln::thread_count()) tiles[i] = ranks[i] = UINT32_MAX;
}

/* places [n + 1]: where each Gaussian's pairs go; moves on as they are written, but for the last, which is their number. */
__global__ void __launch_bounds__(BLOCK) write_pairs(job j, uint64_t *places, uint64_t room, uint32_t *tiles, uint32_t *ranks)
{
    if (places[j.n] != room) return;
    const uint32_t tiles_x = kiln_view_tiles_x(&j.view);
    for_pairs(j, [=](const auto &g, const item &i, int32_t at, uint64_t bits) {
        unsigned long long place = 0;
        if (g.thread_rank() == 0) place = atomicAdd(reinterpret_cast<unsigned long long *>(&places[i.splat]), __popcll(bits));
        place = g.shfl(place, 0);
        const uint32_t tile = (i.row.py0 / KILN_TILE - j.row0) * tiles_x + static_cast<uint32_t>(at);
        const unsigned end = WINDOW - __clzll(static_cast<long long>(bits));
        for (unsigned k = g.thread_rank(); k < end; k += g.size()) {
            if (!(bits >> k & 1)) continue;
            const uint64_t to = place + __popcll(bits & ((1ull << k) - 1));
            tiles[to] = tile + k;
            ranks[to] = i.splat;
        }
    });
}

/* How many of the sorted numbers are less than v. */
__device__ uint64_t count_less(const uint32_t *sorted, uint64_t n, uint64_t v)
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

__global__ void __launch_bounds__(BLOCK) count_by_tile(const uint32_t *sorted, uint64_t n, uint32_t *tile_counts, uint64_t n_tiles)
{
    for (uint64_t t = kiln::thread_index(); t < n_tiles; t += kiln::thread_count())
        tile_counts[t] = static_cast<uint32_t>(count_less(sorted, n, t + 1) - count_less(sorted, n, t));
}

/* ---- launchers ------------------------------------------------------------------------------------------------------- */
/* In place; called with tmp NULL for its size, then for the work itself. */
cudaError_t scan(void *tmp, size_t *bytes, uint64_t *values, uint64_t n, cudaStream_t stream)
{
    return CUB_NS_QUALIFIER::DeviceScan::ExclusiveSum(tmp, *bytes, values, n, stream);
}

unsigned blocks_for_items(const job &j) { return kiln::blocks_for(j.n * (j.row1 - j.row0), BLOCK); }

kiln_status number_items(const kiln_exec *x, const job &j, uint64_t *starts, void *tmp, size_t tmp_bytes, kiln_error *err)
{
    LAUNCH(number_rows, kiln::blocks_for(j.n + 1, BLOCK), BLOCK, 0, j, starts);
    CUDA_RUN(scan(tmp, &tmp_bytes, starts, j.n + 1, x->stream));
    return KILN_OK;
}

struct count_work {
    uint64_t *starts; /* [n + 1] */
    uint64_t *sums;   /* [copies][rows] */
    uint64_t rows;
    uint32_t copies;
    void *tmp;
    size_t tmp_bytes, bytes;
};

cudaError_t lay_out_count(count_work *w, const kiln_tile_pairs_count_args *a, void *work, cudaStream_t stream)
{
    kiln_carve c = {static_cast<char *>(work), 0};
    w->rows = a->row1 - a->row0;
    w->copies = w->rows * COPIES <= SUMS_MAX ? COPIES : 1;
    w->starts = kiln::take<uint64_t>(&c, a->n + 1);
    w->sums = kiln::take<uint64_t>(&c, w->copies * w->rows);
    w->tmp_bytes = 0;
    const cudaError_t e = scan(nullptr, &w->tmp_bytes, w->starts, a->n + 1, stream);
    w->tmp = kiln_take(&c, w->tmp_bytes, 1);
    w->bytes = c.used;
    return e;
}

struct emit_work {
    uint64_t *starts, *places; /* [n + 1] */
    uint32_t *tiles[2];        /* [room] */
    uint32_t *ranks;           /* [room] */
    uint64_t n_tiles;
    int tile_bits;
    void *tmp;
    size_t tmp_bytes, bytes;
};

cudaError_t lay_out_emit(emit_work *w, const kiln_tile_pairs_emit_args *a, void *work, cudaStream_t stream)
{
    kiln_carve c = {static_cast<char *>(work), 0};
    w->n_tiles = static_cast<uint64_t>(a->row1 - a->row0) * kiln_view_tiles_x(a->view);
    for (w->tile_bits = 0; w->n_tiles > 1ull << w->tile_bits;) w->tile_bits++;
    w->starts = kiln::take<uint64_t>(&c, a->n + 1);
    w->places = kiln::take<uint64_t>(&c, a->n + 1);
    for (uint32_t *&tiles : w->tiles) tiles = kiln::take<uint32_t>(&c, a->room);
    w->ranks = kiln::take<uint32_t>(&c, a->room);
    size_t scan_bytes = 0, sort_bytes = 0;
    kiln::sort_pairs<uint32_t> by_tile = {{w->tiles[0], w->tiles[1]}, {a->ranks, w->ranks}};
    cudaError_t e = scan(nullptr, &scan_bytes, w->starts, a->n + 1, stream);
    if (e == cudaSuccess) e = kiln::sort(nullptr, &sort_bytes, &by_tile, a->room, w->tile_bits, stream);
    w->tmp_bytes = scan_bytes > sort_bytes ? scan_bytes : sort_bytes;
    w->tmp = kiln_take(&c, w->tmp_bytes, 1);
    w->bytes = c.used;
    return e;
}

/* Writes the pairs, Gaussian by Gaussian, to tiles[0] and a->ranks. */
kiln_status list_pairs(const kiln_exec *x, const kiln_tile_pairs_emit_args *a, const emit_work &w, kiln_error *err)
{
    const job j = {a->n, a->splats, *a->view, a->row0, a->row1, w.starts};
    size_t tmp_bytes = w.tmp_bytes;
    KILN_TRY(number_items(x, j, w.starts, w.tmp, w.tmp_bytes, err));
    CUDA_RUN(cudaMemsetAsync(w.places, 0, (a->n + 1) * sizeof *w.places, x->stream));
    LAUNCH(count_by_splat, blocks_for_items(j), BLOCK, 0, j, w.places);
    CUDA_RUN(scan(w.tmp, &tmp_bytes, w.places, a->n + 1, x->stream));
    LAUNCH(check_room, kiln::blocks_for(a->room, BLOCK), BLOCK, 0, w.places + a->n, a->room, w.tiles[0], a->ranks, x->fault);
    LAUNCH(write_pairs, blocks_for_items(j), BLOCK, 0, j, w.places, a->room, w.tiles[0], a->ranks);
    return KILN_OK;
}

kiln_status sort_pairs(const kiln_exec *x, const kiln_tile_pairs_emit_args *a, const emit_work &w, kiln_error *err)
{
    kiln::sort_pairs<uint32_t> by_tile = {{w.tiles[0], w.tiles[1]}, {a->ranks, w.ranks}};
    size_t tmp_bytes = w.tmp_bytes;
    CUDA_RUN(kiln::sort(w.tmp, &tmp_bytes, &by_tile, a->room, w.tile_bits, x->stream));
    CUDA_RUN(kiln::bring(a->ranks, by_tile.values[0], a->room, x->stream));
    LAUNCH(count_by_tile, kiln::blocks_for(w.n_tiles, BLOCK), BLOCK, 0, by_tile.keys[0], a->room, a->tile_counts, w.n_tiles);
    return KILN_OK;
}

} // namespace

extern "C" kiln_status kiln_tile_pairs_count_cuda(const kiln_exec *x, const kiln_tile_pairs_count_args *a, void *work,
                                                  size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "tile_pairs_count");
    CUDA_ENTER(entry.guard);
    KILN_TRY(kiln_tile_pairs_check(a->n, a->view, a->row0, a->row1, err));
    count_work w;
    CUDA_TRY(lay_out_count(&w, a, work, x->stream));
    if (!work) {
        *work_bytes = w.bytes;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("tile_pairs_count", w.bytes, *work_bytes, err));
    const job j = {a->n, a->splats, *a->view, a->row0, a->row1, w.starts};
    KILN_TRY(number_items(x, j, w.starts, w.tmp, w.tmp_bytes, err));
    CUDA_RUN(cudaMemsetAsync(w.sums, 0, w.copies * w.rows * sizeof *w.sums, x->stream));
    LAUNCH(count_by_row, blocks_for_items(j), BLOCK, 0, j, w.sums, w.copies);
    LAUNCH(add_copies, kiln::blocks_for(w.rows, BLOCK), BLOCK, 0, w.sums, w.copies, w.rows, a->row_pairs);
    return KILN_OK;
}

extern "C" kiln_status kiln_tile_pairs_emit_cuda(const kiln_exec *x, const kiln_tile_pairs_emit_args *a, void *work,
                                                 size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "tile_pairs_emit");
    CUDA_ENTER(entry.guard);
    KILN_TRY(kiln_tile_pairs_emit_check(a, err));
    emit_work w;
    CUDA_TRY(lay_out_emit(&w, a, work, x->stream));
    if (!work) {
        *work_bytes = w.bytes;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("tile_pairs_emit", w.bytes, *work_bytes, err));
    KILN_TRY(list_pairs(x, a, w, err));
    return sort_pairs(x, a, w, err);
}
