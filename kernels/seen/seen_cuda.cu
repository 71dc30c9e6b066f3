/* seen on CUDA: four neighbouring threads move a splat, 16 bytes each, so that wherever it lies its 64 bytes are two sectors
 * that are read or written whole. */
#include "kernels/seen/seen.h"

#include "kernels/cuda.cuh"

namespace
{

enum { BLOCK = 256, PIECES = 4 };
static_assert(sizeof(kiln_splat2d) == PIECES * sizeof(uint4), "a splat is four pieces");

/* One piece of splat `from` of `all`, to where splat `to` of `out` has it. */
__device__ void move_piece(kiln_splat2d *out, uint64_t to, const kiln_splat2d *all, uint64_t from, uint32_t piece)
{
    reinterpret_cast<uint4 *>(out)[PIECES * to + piece] = reinterpret_cast<const uint4 *>(all)[PIECES * from + piece];
}

__device__ uint64_t visible_of(const kiln_seen_gather_args &a) { return *a.n_visible < a.n ? *a.n_visible : a.n; }

__global__ void __launch_bounds__(BLOCK) append(kiln_seen_gather_args a)
{
    const uint64_t first = *a.total, n = visible_of(a), left = first < a.room ? a.room - first : 0;
    const uint64_t end = PIECES * (n < left ? n : left);
    for (uint64_t t = kiln::thread_index(); t < end; t += kiln::thread_count()) {
        const uint64_t i = t / PIECES;
        const uint32_t piece = static_cast<uint32_t>(t % PIECES);
        if (a.all != a.splats) move_piece(a.all, first + i, a.splats, i, piece);
        if (piece == 0) a.depths[first + i] = a.splats[i].depth;
        if (piece == 1) a.rows[first + i] = a.source_rows[a.splats[i].row];
        if (piece == 2) a.chunks[first + i] = a.chunk;
    }
}

/* By a launch of its own: every block of append has read the old total. */
__global__ void add_total(kiln_seen_gather_args a) { *a.total += visible_of(a); }

__global__ void __launch_bounds__(BLOCK) put_in_order(kiln_seen_order_args a)
{
    for (uint64_t t = kiln::thread_index(); t < PIECES * a.n; t += kiln::thread_count()) {
        const uint64_t i = t / PIECES, from = a.order[i];
        const uint32_t piece = static_cast<uint32_t>(t % PIECES);
        move_piece(a.ordered, i, a.splats, from, piece);
        if (piece == 0) a.ordered_chunks[i] = a.chunks[from];
        if (piece == 1) a.ordered_rows[i] = a.splats[from].row;
    }
}

} // namespace

extern "C" kiln_status kiln_seen_gather_cuda(const kiln_exec *x, const kiln_seen_gather_args *a, void *work, size_t *work_bytes,
                                             kiln_error *err)
{
    const kiln::entry entry(x, "seen_gather");
    CUDA_ENTER(entry.guard);
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    LAUNCH(append, kiln::blocks_for(PIECES * a->n, BLOCK), BLOCK, 0, *a);
    LAUNCH(add_total, 1, 1, 0, *a);
    return KILN_OK;
}

extern "C" kiln_status kiln_seen_order_cuda(const kiln_exec *x, const kiln_seen_order_args *a, void *work, size_t *work_bytes,
                                            kiln_error *err)
{
    const kiln::entry entry(x, "seen_order");
    CUDA_ENTER(entry.guard);
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    if (a->n == 0) return KILN_OK;
    LAUNCH(put_in_order, kiln::blocks_for(PIECES * a->n, BLOCK), BLOCK, 0, *a);
    return KILN_OK;
}
