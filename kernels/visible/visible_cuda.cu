/* visible on CUDA: four neighbouring threads move a splat, 16 bytes each, so that its 64 bytes are
 * read and written as two whole sectors. */
#include "kernels/visible/visible.h"

#include "kernels/cuda.cuh"
#include "kernels/visible/visible_math.h"

#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

namespace
{

enum { BLOCK = 256, PIECES = 4 };
static_assert(sizeof(kiln_splat2d) == PIECES * sizeof(uint4), "a splat is four pieces");

/* Copies one piece of splat `from` of `all` to splat `to` of `out`. */
__device__ void move_piece(kiln_splat2d *out, uint64_t to, const kiln_splat2d *all, uint64_t from,
                           uint32_t piece)
{
    reinterpret_cast<uint4 *>(out)[PIECES * to + piece] =
        reinterpret_cast<const uint4 *>(all)[PIECES * from + piece];
}

__device__ uint64_t visible_of(const kiln_visible_gather_args &a)
{
    return *a.n_visible < a.n ? *a.n_visible : a.n;
}

__global__ void __launch_bounds__(BLOCK) append(kiln_visible_gather_args a)
{
    const uint64_t first = *a.total, n = visible_of(a),
                   left = first < a.capacity ? a.capacity - first : 0;
    const uint64_t end = PIECES * (n < left ? n : left);
    for (uint64_t t = kiln::thread_index(); t < end; t += kiln::thread_count()) {
        const uint64_t i = t / PIECES;
        const uint32_t piece = static_cast<uint32_t>(t % PIECES);
        move_piece(a.all, first + i, a.splats, i, piece);
        if (piece == 0) a.depths[first + i] = a.splats[i].depth;
        if (piece == 1) a.rows[first + i] = a.source_rows[a.splats[i].row];
        if (piece == 2) a.chunks[first + i] = a.chunk;
    }
}

/* A launch of its own, so that every block of `append` has read the old total. */
__global__ void add_total(kiln_visible_gather_args a) { *a.total += visible_of(a); }

/* ---- the Gaussians of a slab ----------------------------------------------------------------- */
struct is_wanted {
    kiln_visible_window_args a;
    __device__ bool operator()(uint32_t i) const
    {
        if (i >= *a.n_visible) return false;
        const kiln_splat2d &s = a.splats[i];
        return kiln_visible_wanted(&a.window, &s, a.source_rows[s.row]) != 0;
    }
};

/* Writes the rows of the wanted splats, in order. With cub NULL it only sets *cub_bytes. */
cudaError_t pick(const kiln_visible_window_args *a, void *cub, size_t *cub_bytes, uint32_t *picked,
                 cudaStream_t stream)
{
    return kiln_cub::cub::DeviceSelect::If(
        cub, *cub_bytes, kiln_cub::thrust::counting_iterator<uint32_t>(0), picked, a->n_kept,
        static_cast<int64_t>(a->n), is_wanted{*a}, stream);
}

__global__ void __launch_bounds__(BLOCK)
    move_picked(kiln_visible_window_args a, const uint32_t *picked)
{
    const uint64_t end = PIECES * *a.n_kept;
    for (uint64_t t = kiln::thread_index(); t < end; t += kiln::thread_count())
        move_piece(a.kept, t / PIECES, a.splats, picked[t / PIECES],
                   static_cast<uint32_t>(t % PIECES));
}

__global__ void __launch_bounds__(BLOCK) put_in_order(kiln_visible_order_args a)
{
    for (uint64_t t = kiln::thread_index(); t < PIECES * a.n; t += kiln::thread_count()) {
        const uint64_t i = t / PIECES, from = a.order[i];
        const uint32_t piece = static_cast<uint32_t>(t % PIECES);
        move_piece(a.ordered, i, a.splats, from, piece);
        if (piece == 0 && a.chunks) a.ordered_chunks[i] = a.chunks[from];
        if (piece == 1) a.ordered_rows[i] = a.splats[from].row;
    }
}

} // namespace

extern "C" kiln_status kiln_visible_gather_cuda(const kiln_exec *x,
                                                const kiln_visible_gather_args *a, void *work,
                                                size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "visible_gather");
    CUDA_ENTER(entry.guard);
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    LAUNCH(append, kiln::blocks_for(PIECES * a->n, BLOCK), BLOCK, 0, *a);
    LAUNCH(add_total, 1, 1, 0, *a);
    return KILN_OK;
}

extern "C" kiln_status kiln_visible_window_cuda(const kiln_exec *x,
                                                const kiln_visible_window_args *a, void *work,
                                                size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "visible_window");
    CUDA_ENTER(entry.guard);
    kiln_carve c = {static_cast<char *>(work), 0};
    size_t cub_bytes = 0;
    uint32_t *const picked = kiln::take<uint32_t>(&c, a->n);
    CUDA_TRY(pick(a, nullptr, &cub_bytes, picked, x->stream));
    void *const cub = kiln_take(&c, cub_bytes, 1);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("visible_window", c.used, *work_bytes, err));
    CUDA_RUN(pick(a, cub, &cub_bytes, picked, x->stream));
    if (a->n > 0) LAUNCH(move_picked, kiln::blocks_for(PIECES * a->n, BLOCK), BLOCK, 0, *a, picked);
    return KILN_OK;
}

extern "C" kiln_status kiln_visible_order_cuda(const kiln_exec *x, const kiln_visible_order_args *a,
                                               void *work, size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "visible_order");
    CUDA_ENTER(entry.guard);
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    if (a->n == 0) return KILN_OK;
    LAUNCH(put_in_order, kiln::blocks_for(PIECES * a->n, BLOCK), BLOCK, 0, *a);
    return KILN_OK;
}
