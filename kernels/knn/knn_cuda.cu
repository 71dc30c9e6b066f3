/* knn on CUDA: sort the points along a curve (knn_order_cuda.cuh), build boxes over what lies
 * together there (knn_tree_cuda.cuh), search (knn_search_cuda.cuh).
 *
 * The workspace is used twice, from its beginning on (lay_out_knn):
 *   sort     pairs that the last pass reads | other pairs           | counts | scratch | points
 *   leaves   leaves                                 | sorted rows   | counts | points
 *   search   leaves                                 | sorted rows   | counts | boxes
 * Points whose places are the sort's scratch come late (make_late_points), or leaves read their
 * means: three reads out of order instead of one.
 */
#include "kernels/knn/knn.h"

#include "base/minmax.h"
#include "kernels/cuda.cuh"
#include "kernels/knn/knn_order_cuda.cuh"
#include "kernels/knn/knn_search_cuda.cuh"

namespace
{

/* Of work space for each point. 12 are a point's, 12 a leaf's, 4 a sorted row's. */
constexpr uint64_t BYTES_EACH = 28;

/* Rows between two long passes take a third of the points' places. The rest of the scratch takes
 * 7 % of a million points' places, which is not worth a launch. */
bool has_late_points(uint64_t n) { return !one_long_pass(n); }

struct workspace {
    row_sort sort;
    tree index;
    samples *sorted;
    point_places points;
    codes_first early;
    size_t bytes;
};

/* As many of the last rows as have points between `from` and `to`; returns the first of them. */
uint64_t first_in(uint64_t n, size_t from, size_t to)
{
    return n - kiln_min_u64(n, to > from ? (to - from) / sizeof(point) : 0);
}

void lay_out_knn(void *work, uint64_t n, workspace *w)
{
    kiln_carve c = {static_cast<char *>(work), 0}, places = c;
    *w = {};
    lay_out_leaves(&c, n, &w->index);
    lay_out_places(&w->sort, &places, n);
    w->index.rows = w->sort.rows = kiln::take<uint32_t>(&c, n);
    c.used = kiln_max_u64(c.used, places.used);
    lay_out_counts(&w->sort, &c);

    const size_t begin = c.used, end = n * BYTES_EACH;
    kiln_carve boxes = c;
    lay_out_nodes(&boxes, &w->index);
    w->sorted = kiln::take<samples>(&c, 1);
    lay_out_sort(&w->sort, &c, n);
    w->early.with_short = first_in(n, c.used, end);
    if (!one_long_pass(n)) w->sort.long_rows = kiln::take<uint32_t>(&c, n);
    w->early.with_long = first_in(n, c.used, end);
    w->points.first = has_late_points(n) ? first_in(n, begin, end) : w->early.with_long;
    if (work && w->points.first < n)
        w->points.points = reinterpret_cast<point *>(static_cast<char *>(work) + end -
                                                     (n - w->points.first) * sizeof(point));
    w->bytes = kiln_max_u64(kiln_max_u64(c.used, boxes.used), end);
}

kiln_status index_points(const kiln_exec *x, uint64_t n, const float *means, workspace w,
                         kiln_error *err)
{
    w.points.means = means;
    LAUNCH_EARLY(sort_samples, 3, SAMPLE_BLOCK, n, means, w.sorted, w.sort.counts);
    if (w.sort.low.plan.passes > 1)
        LAUNCH_EARLY(choose_codes, 1, SAMPLE_BLOCK, means, w.sorted, w.sort);
    LAUNCH_EARLY(make_codes, kiln::blocks_for(n, CODE_BLOCK, CODE_BLOCKS), CODE_BLOCK, w.sorted,
                 w.sort, w.points, w.early);
    CUDA_RUN(sort_rows(w.sort, x->stream));
    if (has_late_points(n))
        LAUNCH_EARLY(make_late_points,
                     kiln::blocks_for(w.early.with_long - w.points.first, CODE_BLOCK, CODE_BLOCKS),
                     CODE_BLOCK, w.sort, w.points, w.early);
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
