/* knn on CUDA: sort the points along a curve (knn_order_cuda.cuh), build boxes over what lies
 * together there (knn_tree_cuda.cuh), search (knn_search_cuda.cuh).
 *
 * The workspace is used twice: the tree comes where the sort's pairs were, and the sorted rows
 * where neither the tree nor what the last pass reads is (lay_out_rows).
 */
#include "kernels/knn/knn.h"

#include "base/minmax.h"
#include "kernels/cuda.cuh"
#include "kernels/knn/knn_order_cuda.cuh"
#include "kernels/knn/knn_search_cuda.cuh"

namespace
{

struct workspace {
    row_sort sort;
    tree index;
    samples *sorted;
    point *points;
    size_t bytes;
};

void lay_out_knn(void *work, uint64_t n, workspace *w)
{
    kiln_carve c = {static_cast<char *>(work), 0}, places = c;
    *w = {};
    lay_out_tree(&c, n, &w->index);
    lay_out_places(&w->sort, &places, n);
    lay_out_rows(&w->sort, &c, n, places.used);
    c.used = kiln_max_u64(c.used, places.used);
    lay_out_sort(&w->sort, &c, n);
    w->index.rows = w->sort.rows;
    w->sorted = kiln::take<samples>(&c, 1);
    w->points = kiln::take<point>(&c, n);
    w->bytes = c.used;
}

kiln_status index_points(const kiln_exec *x, uint64_t n, const float *means, const workspace &w,
                         kiln_error *err)
{
    LAUNCH_EARLY(sort_samples, 3, SAMPLE_BLOCK, n, means, w.sorted, w.sort.counts);
    if (w.sort.low.plan.passes > 1)
        LAUNCH_EARLY(choose_codes, 1, SAMPLE_BLOCK, means, w.sorted, w.sort);
    LAUNCH_EARLY(make_codes, kiln::blocks_for(n, CODE_BLOCK, CODE_BLOCKS), CODE_BLOCK, means,
                 w.sorted, w.sort, w.points);
    CUDA_RUN(sort_rows(w.sort, x->stream));
    return build_tree(x, w.index, w.points, err);
}

template <int K>
kiln_status search_all(const kiln_exec *x, const kiln_knn_args *a, const tree &t, kiln_error *err)
{
    LAUNCH_EARLY(find_neighbours<K>, kiln::blocks_for(a->n, SEARCH_BLOCK, INT32_MAX), SEARCH_BLOCK,
                 t, a->k, a->spacing2, a->best);
    return KILN_OK;
}

template <int K>
kiln_status join_all(const kiln_exec *x, const kiln_knn_join_args *a, const tree &t,
                     kiln_error *err)
{
    LAUNCH_EARLY(join_neighbours<K>, kiln::blocks_for(a->n_queries, SEARCH_BLOCK, INT32_MAX),
                 SEARCH_BLOCK, t, a->n_queries, a->k, a->queries, a->best);
    return KILN_OK;
}

} // namespace

extern "C" kiln_status kiln_knn_cuda(const kiln_exec *x, const kiln_knn_args *a, void *work,
                                     size_t *work_bytes, kiln_error *err)
{
    KILN_TRY(kiln_knn_check("knn", a->n, a->k, err));
    const kiln::entry entry(x, "knn");
    CUDA_ENTER(entry.guard);
    workspace w = {};
    lay_out_knn(work, a->n, &w);
    if (!work) {
        *work_bytes = w.bytes;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("knn", w.bytes, *work_bytes, err));
    if (a->n == 0) return KILN_OK;

    KILN_TRY(index_points(x, a->n, a->means, w, err));
    if (a->k == 3) return search_all<3>(x, a, w.index, err); /* the usual case */
    if (a->k <= 8) return search_all<8>(x, a, w.index, err);
    return search_all<KILN_KNN_MAX>(x, a, w.index, err);
}

extern "C" kiln_status kiln_knn_join_cuda(const kiln_exec *x, const kiln_knn_join_args *a,
                                          void *work, size_t *work_bytes, kiln_error *err)
{
    KILN_TRY(kiln_knn_check("knn_join", a->n, a->k, err));
    const kiln::entry entry(x, "knn_join");
    CUDA_ENTER(entry.guard);
    workspace w = {};
    lay_out_knn(work, a->n, &w);
    if (!work) {
        *work_bytes = w.bytes;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("knn_join", w.bytes, *work_bytes, err));
    if (a->n == 0 || a->n_queries == 0) return KILN_OK;

    KILN_TRY(index_points(x, a->n, a->means, w, err));
    if (a->k == 3) return join_all<3>(x, a, w.index, err); /* the usual case */
    if (a->k <= 8) return join_all<8>(x, a, w.index, err);
    return join_all<KILN_KNN_MAX>(x, a, w.index, err);
}
