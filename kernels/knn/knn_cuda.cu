/* knn on CUDA: sort the points along a curve (knn_order_cuda.cuh), build boxes over what lies together there
 * (knn_tree_cuda.cuh), search (knn_search_cuda.cuh).
 *
 * The workspace is used twice. Where the sort ends is known when it has been launched; the boxes come where its other rows
 * were, the points where both arrays of codes were:
 *   codes   codes' | rows  rows'
 *   points         | rows  boxes    or boxes rows'
 */
#include "kernels/knn/knn.h"

#include "base/minmax.h"
#include "kernels/cuda.cuh"
#include "kernels/knn/knn_order_cuda.cuh"
#include "kernels/knn/knn_search_cuda.cuh"
#include "kernels/sort/sort.cuh"

namespace
{

struct workspace {
    kiln::sort_pairs<uint64_t> curve;
    samples *sorted;
    void *temp;
    size_t temp_bytes;
    size_t bytes;
};

cudaError_t lay_out(void *work, uint64_t n, workspace *w, cudaStream_t stream)
{
    kiln_carve c = {static_cast<char *>(work), 0}, points = {nullptr, 0}, boxes = {nullptr, 0};
    tree t;
    lay_out_tree(&points, &boxes, n, &t); /* measures */
    uint64_t *const codes = kiln::take<uint64_t>(&c, n), *const spare_codes = kiln::take<uint64_t>(&c, n);
    c.used = kiln_max_u64(c.used, points.used);
    const size_t rows_bytes = kiln_max_u64(n * sizeof(uint32_t), boxes.used);
    void *const rows = kiln_take(&c, rows_bytes, 1), *const spare_rows = kiln_take(&c, rows_bytes, 1);
    w->curve = {{codes, spare_codes}, {static_cast<uint32_t *>(rows), static_cast<uint32_t *>(spare_rows)}};
    w->sorted = kiln::take<samples>(&c, 1);
    const cudaError_t e = kiln::sort(nullptr, &w->temp_bytes, &w->curve, n, code_bits(n), stream);
    w->temp = kiln_take(&c, w->temp_bytes, 1);
    w->bytes = c.used;
    return e;
}

kiln_status index_points(const kiln_exec *x, uint64_t n, const float *means, void *work, workspace *w, tree *t, kiln_error *err)
{
    LAUNCH(sort_samples, 3, SAMPLE_BLOCK, 0, n, means, w->sorted);
    LAUNCH(make_codes, kiln::blocks_for(n, CODE_BLOCK, CODE_BLOCKS), CODE_BLOCK, 0, n, means, w->sorted, code_bits(n),
           w->curve.keys[0], w->curve.values[0]);
    CUDA_RUN(kiln::sort(w->temp, &w->temp_bytes, &w->curve, n, code_bits(n), x->stream));
    kiln_carve points = {static_cast<char *>(work), 0}, boxes = {reinterpret_cast<char *>(w->curve.values[1]), 0};
    lay_out_tree(&points, &boxes, n, t);
    return build_tree(x, *t, means, w->curve.values[0], err);
}

template <int K> kiln_status search_all(const kiln_exec *x, const kiln_knn_args *a, const tree &t, kiln_error *err)
{
    LAUNCH(find_neighbours<K>, kiln::blocks_for(a->n, SEARCH_BLOCK, INT32_MAX), SEARCH_BLOCK, 0, t, a->k, a->spacing2, a->best);
    return KILN_OK;
}

template <int K> kiln_status join_all(const kiln_exec *x, const kiln_knn_join_args *a, const tree &t, kiln_error *err)
{
    LAUNCH(join_neighbours<K>, kiln::blocks_for(a->n_queries, SEARCH_BLOCK, INT32_MAX), SEARCH_BLOCK, 0, t, a->n_queries, a->k,
           a->queries, a->best);
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

    tree t;
    KILN_TRY(index_points(x, a->n, a->means, work, &w, &t, err));
    if (a->k == 3) return search_all<3>(x, a, t, err); /* the usual case */
    if (a->k <= 8) return search_all<8>(x, a, t, err);
    return search_all<KILN_KNN_MAX>(x, a, t, err);
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

    tree t;
    KILN_TRY(index_points(x, a->n, a->means, work, &w, &t, err));
    if (a->k == 3) return join_all<3>(x, a, t, err); /* the usual case */
    if (a->k <= 8) return join_all<8>(x, a, t, err);
    return join_all<KILN_KNN_MAX>(x, a, t, err);
}
