/* knn on CUDA: sort the points along a curve, build boxes over what lies together there, search.
 *
 * Any order gives the right result; a good one makes it fast, and must not be spoilt by one outlier, an offset, clusters
 * far apart or many equal points. The cell of a point, 21 bits an axis, is therefore put together of two parts:
 *   upper  9 bits  where it is in a cube around the middle of the points, whose side is the largest of the three spreads
 *                  (from rank n / 16 to rank 15 n / 16), nearest cell for those outside: keeps leaves of floors and walls
 *                  as flat as these are
 *   lower 12 bits  its rank on the axis: divides whatever falls into one cell of the cube, however small it is
 * The Hilbert code of the cell is the sort key.
 *
 * The workspace is used three times; the ranks of an axis are sorted where one of the two arrays of codes will be:
 *   keys keys' ranks | rows rows'      an axis after the other
 *   codes      codes'| rows rows'      the curve
 *   points           | boxes           the tree
 */
#include "kernels/knn/knn.h"

#include "kernels/cuda.cuh"
#include "kernels/knn/knn_search_cuda.cuh"
#include "kernels/ranks/ranks.h"
#include "kernels/sort/sort.cuh"
#include "kernels/spatial_order/spatial_order_math.h"

#include <cub/device/device_scan.cuh>

namespace
{

enum { BLOCK = 256, CUBE_BITS = 9, RANK_BITS = KILN_HILBERT_BITS - CUBE_BITS, SPREAD = 16 };
constexpr float CUBE_MARGIN = 1.25f; /* side of the cube over the spread: 1.14 for points spread evenly */

/* Where the middle of the points is, axis by axis. */
struct middle {
    float lo[3], hi[3];
};

struct workspace {
    kiln::sort_pairs<uint32_t> axis;
    kiln::sort_pairs<uint64_t> curve;
    uint64_t *ranks; /* of x in the lowest RANK_BITS, of y above it, of z */
    middle *mid;
    void *temp;
    size_t sort_axis_bytes, sort_curve_bytes, scan_bytes;
    tree points;
    size_t bytes;
};

/* ---- ranks ----------------------------------------------------------------------------------------------------------- */
__global__ void __launch_bounds__(BLOCK) make_keys(uint64_t n, const float *values, uint32_t *keys, uint32_t *rows)
{
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count()) {
        const float v = values[i];
        keys[i] = kiln_rank_key(v == 0.0f ? 0.0f : v); /* -0 and +0 are one place */
        rows[i] = static_cast<uint32_t>(i);
    }
}

/* first[i]: i where a run of equal keys begins, else 0; their running maximum is the rank that all of the run have. */
__global__ void __launch_bounds__(BLOCK) find_runs(uint64_t n, const uint32_t *keys, uint32_t *first, int axis, middle *mid)
{
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count()) {
        first[i] = i > 0 && keys[i] != keys[i - 1] ? static_cast<uint32_t>(i) : 0;
        if (i == n / SPREAD) mid->lo[axis] = kiln_rank_value(keys[i]);
        if (i == n - 1 - n / SPREAD) mid->hi[axis] = kiln_rank_value(keys[i]);
    }
}

struct larger {
    __host__ __device__ uint32_t operator()(uint32_t a, uint32_t b) const { return a > b ? a : b; }
};

/* temp == NULL: only the bytes that it needs. */
cudaError_t spread_ranks(void *temp, size_t *temp_bytes, uint32_t *first, uint64_t n, cudaStream_t stream)
{
    return CUB_NS_QUALIFIER::DeviceScan::InclusiveScan(temp, *temp_bytes, first, first, larger(), n, stream);
}

__global__ void __launch_bounds__(BLOCK)
    put_ranks(uint64_t n, const uint32_t *rank, const uint32_t *rows, int axis, uint64_t *ranks)
{
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count()) {
        const uint64_t part = (uint64_t(rank[i]) << RANK_BITS) / n << (RANK_BITS * axis);
        const uint32_t row = rows[i];
        ranks[row] = axis == 0 ? part : ranks[row] | part;
    }
}

kiln_status rank_axis(const kiln_exec *x, uint64_t n, const float *values, int axis, workspace *w, kiln_error *err)
{
    const unsigned grid = kiln::blocks_for(n, BLOCK);
    LAUNCH(make_keys, grid, BLOCK, 0, n, values, w->axis.keys[0], w->axis.values[0]);
    CUDA_RUN(kiln::sort(w->temp, &w->sort_axis_bytes, &w->axis, n, 32, x->stream));
    uint32_t *const rank = w->axis.keys[1];
    LAUNCH(find_runs, grid, BLOCK, 0, n, w->axis.keys[0], rank, axis, w->mid);
    CUDA_RUN(spread_ranks(w->temp, &w->scan_bytes, rank, n, x->stream));
    LAUNCH(put_ranks, grid, BLOCK, 0, n, rank, w->axis.values[0], axis, w->ranks);
    return KILN_OK;
}

/* ---- the curve ------------------------------------------------------------------------------------------------------- */
/* Overflow and a side of 0 end in the first or last cell. */
__device__ uint32_t cube_cell(float v, float from, float scale)
{
    const float cell = (v - from) * scale;
    const uint32_t last = (1u << CUBE_BITS) - 1;
    if (!(cell > 0.0f)) return 0;
    return cell >= static_cast<float>(last) ? last : static_cast<uint32_t>(cell);
}

/* codes: the ranks before */
__global__ void __launch_bounds__(BLOCK)
    make_codes(uint64_t n, const float *means, const middle *mid, uint64_t *codes, uint32_t *rows)
{
    const middle m = *mid;
    const float side = CUBE_MARGIN * fmaxf(fmaxf(m.hi[0] - m.lo[0], m.hi[1] - m.lo[1]), m.hi[2] - m.lo[2]);
    const float scale = static_cast<float>(1u << CUBE_BITS) / side;
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count()) {
        const uint64_t ranks = codes[i];
        uint32_t cell[3];
        for (int a = 0; a < 3; a++) {
            const float from = 0.5f * m.lo[a] + 0.5f * m.hi[a] - 0.5f * side;
            const uint32_t rank = static_cast<uint32_t>(ranks >> (RANK_BITS * a)) & ((1u << RANK_BITS) - 1);
            cell[a] = cube_cell(means[a * n + i], from, scale) << RANK_BITS | rank;
        }
        codes[i] = kiln_hilbert_code(cell);
        rows[i] = static_cast<uint32_t>(i);
    }
}

__global__ void __launch_bounds__(BLOCK) gather(uint64_t n, const float *means, const uint32_t *rows, point *points)
{
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count()) {
        const uint32_t row = rows[i];
        points[i] = {means[row], means[n + row], means[2 * n + row], row};
    }
}

/* ---- all of it ------------------------------------------------------------------------------------------------------- */
cudaError_t lay_out(void *work, uint64_t n, workspace *w, cudaStream_t stream)
{
    kiln_carve c = {static_cast<char *>(work), 0}, later = c;
    uint64_t *const codes = kiln::take<uint64_t>(&c, n);
    w->ranks = kiln::take<uint64_t>(&c, n);
    uint32_t *const rows = kiln::take<uint32_t>(&c, n), *const spare_rows = kiln::take<uint32_t>(&c, n);
    uint32_t *const keys = reinterpret_cast<uint32_t *>(codes);
    w->axis = {{keys, work ? keys + n : nullptr}, {rows, spare_rows}};
    w->curve = {{w->ranks, codes}, {rows, spare_rows}};
    w->mid = kiln::take<middle>(&c, 1);
    cudaError_t e = kiln::sort(nullptr, &w->sort_axis_bytes, &w->axis, n, 32, stream);
    if (e == cudaSuccess) e = kiln::sort(nullptr, &w->sort_curve_bytes, &w->curve, n, 3 * KILN_HILBERT_BITS, stream);
    if (e == cudaSuccess) e = spread_ranks(nullptr, &w->scan_bytes, w->axis.keys[1], n, stream);
    const size_t sort_bytes = w->sort_axis_bytes > w->sort_curve_bytes ? w->sort_axis_bytes : w->sort_curve_bytes;
    w->temp = kiln_take(&c, sort_bytes > w->scan_bytes ? sort_bytes : w->scan_bytes, 1);
    w->points = lay_out_tree(&later, n); /* its points end before the rows begin, which say where they come from */
    w->bytes = c.used > later.used ? c.used : later.used;
    return e;
}

kiln_status index_points(const kiln_exec *x, uint64_t n, const float *means, workspace *w, kiln_error *err)
{
    const unsigned grid = kiln::blocks_for(n, BLOCK);
    for (int axis = 0; axis < 3; axis++) KILN_TRY(rank_axis(x, n, means + axis * n, axis, w, err));
    LAUNCH(make_codes, grid, BLOCK, 0, n, means, w->mid, w->curve.keys[0], w->curve.values[0]);
    CUDA_RUN(kiln::sort(w->temp, &w->sort_curve_bytes, &w->curve, n, 3 * KILN_HILBERT_BITS, x->stream));
    LAUNCH(gather, grid, BLOCK, 0, n, means, w->curve.values[0], w->points.points);
    return build_tree(x, w->points, err);
}

template <int K> kiln_status search_all(const kiln_exec *x, const kiln_knn_args *a, const tree &t, kiln_error *err)
{
    /* A block for every four warps of points: searches differ in length, and the device spreads blocks better than a loop. */
    const unsigned grid = kiln::blocks_for(a->n, SEARCH_BLOCK, INT32_MAX);
    LAUNCH(find_neighbours<K>, grid, SEARCH_BLOCK, 0, t, a->k, a->spacing2, a->best);
    return KILN_OK;
}

template <int K> kiln_status join_all(const kiln_exec *x, const kiln_knn_join_args *a, const tree &t, kiln_error *err)
{
    const unsigned grid = kiln::blocks_for(a->n_queries, SEARCH_BLOCK, INT32_MAX);
    LAUNCH(join_neighbours<K>, grid, SEARCH_BLOCK, 0, t, a->n_queries, a->k, a->queries, a->best);
    return KILN_OK;
}

} // namespace

extern "C" kiln_status kiln_knn_cuda(const kiln_exec *x, const kiln_knn_args *a, void *work, size_t *work_bytes, kiln_error *err)
{
    KILN_TRY(kiln_knn_check("knn", a->n, a->k, err));
    const kiln::entry entry(x, "knn");
    CUDA_ENTER(entry.guard);
    workspace w = {};
    CUDA_TRY(lay_out(work, a->n, &w, x->stream));
    if (!work) {
        *work_bytes = w.bytes;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("knn", w.bytes, *work_bytes, err));
    if (a->n == 0) return KILN_OK;

    KILN_TRY(index_points(x, a->n, a->means, &w, err));
    if (a->k == 3) return search_all<3>(x, a, w.points, err); /* the usual case */
    if (a->k <= 8) return search_all<8>(x, a, w.points, err);
    return search_all<KILN_KNN_MAX>(x, a, w.points, err);
}

extern "C" kiln_status kiln_knn_join_cuda(const kiln_exec *x, const kiln_knn_join_args *a, void *work, size_t *work_bytes,
                                          kiln_error *err)
{
    KILN_TRY(kiln_knn_check("knn_join", a->n, a->k, err));
    const kiln::entry entry(x, "knn_join");
    CUDA_ENTER(entry.guard);
    workspace w = {};
    CUDA_TRY(lay_out(work, a->n, &w, x->stream));
    if (!work) {
        *work_bytes = w.bytes;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("knn_join", w.bytes, *work_bytes, err));
    if (a->n == 0 || a->n_queries == 0) return KILN_OK;

    KILN_TRY(index_points(x, a->n, a->means, &w, err));
    if (a->k == 3) return join_all<3>(x, a, w.points, err); /* the usual case */
    if (a->k <= 8) return join_all<8>(x, a, w.points, err);
    return join_all<KILN_KNN_MAX>(x, a, w.points, err);
}
