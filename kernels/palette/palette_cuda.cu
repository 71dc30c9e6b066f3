/* palette on CUDA. Whether there is anything to train is known on the device alone, by the number
 * of different rows: where they fit into the palette, the kernels of training do nothing. Sums are
 * integers, added by atomics. */
#include "kernels/palette/palette.h"

#include "kernels/palette/palette_search_cuda.cuh"

#include <cub/device/device_scan.cuh>

namespace
{

/* Leaves the first row with a value beyond the limit. */
__global__ void __launch_bounds__(BLOCK)
    check_values(const int16_t *rows, uint64_t n, uint32_t d, unsigned id, uint64_t *violation)
{
    for (uint64_t i = kiln::thread_index(); i < n * d; i += kiln::thread_count())
        if (rows[i] > KILN_PALETTE_LIMIT || rows[i] < -KILN_PALETTE_LIMIT)
            kiln::leave_violation(violation, KILN_VIOLATION(id, i / d));
}

__global__ void __launch_bounds__(BLOCK)
    check_index(const uint32_t *index, kiln_palette_places at, uint32_t p, uint64_t *violation)
{
    for (uint64_t i = kiln::thread_index(); i < at.words; i += kiln::thread_count())
        if (!kiln_palette_index_word_is_good(index, &at, p, i))
            kiln::leave_violation(violation, KILN_VIOLATION(KILN_VIOLATION_PALETTE_INDEX, i));
}

kiln_status refuse_values(const kiln_exec *x, const int16_t *rows, uint64_t n, uint32_t d,
                          kiln_violation_id id, kiln_error *err)
{
    if (n > 0)
        LAUNCH(check_values, kiln::blocks_for(n * d, BLOCK), BLOCK, 0, rows, n, d,
               static_cast<unsigned>(id), x->violation);
    return KILN_OK;
}

/* ---- palette_train --------------------------------------------------------------------------- */

struct training {
    kiln_palette_train_args a;
    search s;
    indexing making;
    uint32_t *index;
    uint16_t *labels;    /* [n] */
    uint32_t *distances; /* [n] */
    uint64_t *different; /* how many rows differ; no training where it is at most p */
    kiln::sort_pairs<uint64_t> by_hash;
    uint32_t *is_new, *rank; /* [max(n, p)] */
    int32_t *sums;           /* [p][d] */
    uint32_t *counts;        /* [p] */
    uint64_t *errors, *far;  /* [p] */
    kiln::sort_pairs<uint64_t> by_error;
    void *temp;
    size_t temp_bytes;
};

cudaError_t scan(void *temp, size_t *temp_bytes, const uint32_t *in, uint32_t *out, uint64_t n,
                 cudaStream_t stream)
{
    return CUB_NS_QUALIFIER::DeviceScan::ExclusiveSum(temp, *temp_bytes, in, out, n, stream);
}

cudaError_t take_training(training *t, kiln_carve *c, const kiln_palette_train_args *a,
                          cudaStream_t stream)
{
    const uint64_t n = a->n, p = a->p, most = n > p ? n : p;
    *t = {};
    t->a = *a;
    t->s = take_search(c, a->d, a->p);
    const cudaError_t e = take_indexing(&t->making, c, t->s, stream);
    if (e != cudaSuccess) return e;
    t->index = kiln::take<uint32_t>(c, t->s.at.words);
    t->labels = kiln::take<uint16_t>(c, n);
    t->distances = kiln::take<uint32_t>(c, n);
    t->different = kiln::take<uint64_t>(c, 1);
    for (int i = 0; i < 2; i++) {
        t->by_hash.keys[i] = kiln::take<uint64_t>(c, n);
        t->by_hash.values[i] = kiln::take<uint32_t>(c, n);
        t->by_error.keys[i] = kiln::take<uint64_t>(c, p);
        t->by_error.values[i] = kiln::take<uint32_t>(c, p);
    }
    t->is_new = kiln::take<uint32_t>(c, most);
    t->rank = kiln::take<uint32_t>(c, most);
    t->sums = kiln::take<int32_t>(c, p * a->d);
    t->counts = kiln::take<uint32_t>(c, p);
    t->errors = kiln::take<uint64_t>(c, p);
    t->far = kiln::take<uint64_t>(c, p);
    size_t bytes[3] = {0, 0, 0};
    kiln::sort_pairs<uint64_t> hashes = t->by_hash, errors = t->by_error;
    cudaError_t failed = kiln::sort(nullptr, &bytes[0], &hashes, n, 64, stream);
    if (failed == cudaSuccess) failed = kiln::sort(nullptr, &bytes[1], &errors, p, 51, stream);
    if (failed == cudaSuccess) failed = scan(nullptr, &bytes[2], t->is_new, t->rank, most, stream);
    for (const size_t b : bytes) t->temp_bytes = b > t->temp_bytes ? b : t->temp_bytes;
    t->temp = kiln::take<char>(c, t->temp_bytes);
    return failed;
}

__global__ void __launch_bounds__(BLOCK)
    hash_rows(kiln_palette_train_args a, uint64_t *hashes, uint32_t *order)
{
    for (uint64_t i = kiln::thread_index(); i < a.n; i += kiln::thread_count()) {
        hashes[i] = kiln_palette_hash(a.rows + i * a.d, a.d, a.seed);
        order[i] = static_cast<uint32_t>(i);
    }
}

__global__ void __launch_bounds__(BLOCK) find_new(kiln_palette_train_args a, const uint64_t *hashes,
                                                  const uint32_t *order, uint32_t *is_new)
{
    for (uint64_t i = kiln::thread_index(); i < a.n; i += kiln::thread_count())
        is_new[i] = i == 0 || hashes[i] != hashes[i - 1] ||
                    !kiln_palette_rows_equal(a.rows + uint64_t(order[i]) * a.d,
                                             a.rows + uint64_t(order[i - 1]) * a.d, a.d);
}

__global__ void __launch_bounds__(BLOCK)
    take_new(kiln_palette_train_args a, const uint32_t *order, const uint32_t *is_new,
             const uint32_t *rank, uint64_t *different)
{
    for (uint64_t i = kiln::thread_index(); i < a.n; i += kiln::thread_count()) {
        if (is_new[i] && rank[i] < a.p)
            for (uint32_t k = 0; k < a.d; k++)
                a.centroids[uint64_t(rank[i]) * a.d + k] = a.rows[uint64_t(order[i]) * a.d + k];
        if (i + 1 < a.n) continue;
        *different = uint64_t(rank[i]) + is_new[i];
        *a.n_entries = min(*different, uint64_t(a.p));
    }
}

__global__ void __launch_bounds__(BLOCK) add_rows(training t)
{
    if (*t.different <= t.a.p) return;
    for (uint64_t i = kiln::thread_index(); i < t.a.n * t.a.d; i += kiln::thread_count()) {
        const uint64_t row = i / t.a.d, k = i % t.a.d, entry = t.labels[row];
        atomicAdd(&t.sums[entry * t.a.d + k], t.a.rows[i]);
        if (k > 0) continue;
        atomicAdd(&t.counts[entry], 1u);
        kiln::add64(&t.errors[entry], t.distances[row]);
        atomicMax(reinterpret_cast<unsigned long long *>(&t.far[entry]),
                  static_cast<unsigned long long>(
                      kiln_palette_far(t.distances[row], static_cast<uint32_t>(row))));
    }
}

__global__ void __launch_bounds__(BLOCK) move_entries(training t)
{
    const bool trains = *t.different > t.a.p;
    for (uint64_t i = kiln::thread_index(); i < uint64_t(t.a.p) * t.a.d;
         i += kiln::thread_count()) {
        const uint64_t entry = i / t.a.d;
        if (trains && t.counts[entry] > 0)
            t.a.centroids[i] = kiln_palette_mean(t.sums[i], t.counts[entry]);
        if (i % t.a.d > 0) continue;
        t.by_error.keys[0][entry] = kiln_palette_error_key(t.errors[entry]);
        t.by_error.values[0][entry] = static_cast<uint32_t>(entry);
        t.is_new[entry] = t.counts[entry] == 0; /* without rows */
    }
}

__global__ void __launch_bounds__(BLOCK) fill_empty(training t, const uint32_t *worst)
{
    if (*t.different <= t.a.p) return;
    for (uint64_t entry = kiln::thread_index(); entry < t.a.p; entry += kiln::thread_count()) {
        if (t.counts[entry] > 0) continue;
        const uint32_t from = worst[t.rank[entry]];
        if (t.counts[from] == 0) continue; /* no others are left */
        const int16_t *row = t.a.rows + uint64_t(kiln_palette_far_row(t.far[from])) * t.a.d;
        for (uint32_t k = 0; k < t.a.d; k++) t.a.centroids[entry * t.a.d + k] = row[k];
    }
}

kiln_status choose_entries(const kiln_exec *x, training *t, kiln_error *err)
{
    const uint64_t n = t->a.n;
    kiln::sort_pairs<uint64_t> pairs = t->by_hash;
    const unsigned blocks = kiln::blocks_for(n, BLOCK);
    LAUNCH(hash_rows, blocks, BLOCK, 0, t->a, pairs.keys[0], pairs.values[0]);
    CUDA_RUN(kiln::sort(t->temp, &t->temp_bytes, &pairs, n, 64, x->stream));
    LAUNCH(find_new, blocks, BLOCK, 0, t->a, pairs.keys[0], pairs.values[0], t->is_new);
    CUDA_RUN(scan(t->temp, &t->temp_bytes, t->is_new, t->rank, n, x->stream));
    LAUNCH(take_new, blocks, BLOCK, 0, t->a, pairs.values[0], t->is_new, t->rank, t->different);
    return KILN_OK;
}

kiln_status run_pass(const kiln_exec *x, training *t, kiln_error *err)
{
    const kiln_palette_train_args &a = t->a;
    KILN_TRY(make_index(x, t->s, &t->making, a.centroids, t->index, err));
    KILN_TRY(load_index(x, t->s, a.centroids, t->index, err));
    LAUNCH(search_rows, kiln::blocks_for(a.n, ROWS), BLOCK, 0, t->s, a.rows, a.n,
           KILN_PALETTE_TRAIN_PROBES, t->different, t->labels, t->distances);
    CUDA_RUN(cudaMemsetAsync(t->sums, 0, uint64_t(a.p) * a.d * sizeof *t->sums, x->stream));
    CUDA_RUN(cudaMemsetAsync(t->counts, 0, a.p * sizeof *t->counts, x->stream));
    CUDA_RUN(cudaMemsetAsync(t->errors, 0, a.p * sizeof *t->errors, x->stream));
    CUDA_RUN(cudaMemsetAsync(t->far, 0, a.p * sizeof *t->far, x->stream));
    LAUNCH(add_rows, kiln::blocks_for(a.n * a.d, BLOCK), BLOCK, 0, *t);
    LAUNCH(move_entries, kiln::blocks_for(uint64_t(a.p) * a.d, BLOCK), BLOCK, 0, *t);
    CUDA_RUN(scan(t->temp, &t->temp_bytes, t->is_new, t->rank, a.p, x->stream));
    kiln::sort_pairs<uint64_t> pairs = t->by_error;
    CUDA_RUN(kiln::sort(t->temp, &t->temp_bytes, &pairs, a.p, 51, x->stream));
    LAUNCH(fill_empty, kiln::blocks_for(a.p, BLOCK), BLOCK, 0, *t, pairs.values[0]);
    return KILN_OK;
}

} // namespace

extern "C" kiln_status kiln_palette_train_cuda(const kiln_exec *x, const kiln_palette_train_args *a,
                                               void *work, size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "palette_train");
    CUDA_ENTER(entry.guard);
    KILN_TRY(kiln_palette_check("palette_train", a->n, KILN_PALETTE_ROWS_MAX, a->d, a->p, err));
    kiln_carve c = {static_cast<char *>(work), 0};
    training t;
    CUDA_TRY(take_training(&t, &c, a, x->stream));
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("palette_train", c.used, *work_bytes, err));
    CUDA_RUN(
        cudaMemsetAsync(a->centroids, 0, uint64_t(a->p) * a->d * sizeof *a->centroids, x->stream));
    CUDA_RUN(cudaMemsetAsync(a->n_entries, 0, sizeof *a->n_entries, x->stream));
    if (a->n == 0) return KILN_OK;
    KILN_TRY(refuse_values(x, a->rows, a->n, a->d, KILN_VIOLATION_PALETTE_ROW, err));
    KILN_TRY(choose_entries(x, &t, err));
    for (unsigned pass = 0; pass < KILN_PALETTE_PASSES && a->n > a->p; pass++)
        KILN_TRY(run_pass(x, &t, err));
    return KILN_OK;
}

/* ---- palette_index --------------------------------------------------------------------------- */

extern "C" kiln_status kiln_palette_index_cuda(const kiln_exec *x, const kiln_palette_index_args *a,
                                               void *work, size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "palette_index");
    CUDA_ENTER(entry.guard);
    KILN_TRY(kiln_palette_check("palette_index", 0, 0, a->d, a->p, err));
    kiln_carve c = {static_cast<char *>(work), 0};
    const search s = take_search(&c, a->d, a->p);
    indexing making = {};
    CUDA_TRY(take_indexing(&making, &c, s, x->stream));
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("palette_index", c.used, *work_bytes, err));
    KILN_TRY(refuse_values(x, a->centroids, a->p, a->d, KILN_VIOLATION_PALETTE_ENTRY, err));
    return make_index(x, s, &making, a->centroids, a->index, err);
}

/* ---- palette_assign -------------------------------------------------------------------------- */

extern "C" kiln_status kiln_palette_assign_cuda(const kiln_exec *x,
                                                const kiln_palette_assign_args *a, void *work,
                                                size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "palette_assign");
    CUDA_ENTER(entry.guard);
    KILN_TRY(kiln_palette_check("palette_assign", a->n, UINT32_MAX - 1, a->d, a->p, err));
    kiln_carve c = {static_cast<char *>(work), 0};
    const search s = take_search(&c, a->d, a->p);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("palette_assign", c.used, *work_bytes, err));
    if (a->n == 0) return KILN_OK;
    KILN_TRY(refuse_values(x, a->rows, a->n, a->d, KILN_VIOLATION_PALETTE_ROW, err));
    KILN_TRY(refuse_values(x, a->centroids, a->p, a->d, KILN_VIOLATION_PALETTE_ENTRY, err));
    LAUNCH(check_index, kiln::blocks_for(s.at.words, BLOCK), BLOCK, 0, a->index, s.at, a->p,
           x->violation);
    KILN_TRY(load_index(x, s, a->centroids, a->index, err));
    LAUNCH(search_rows, kiln::blocks_for(a->n, ROWS), BLOCK, 0, s, a->rows, a->n,
           KILN_PALETTE_PROBES, nullptr, a->labels, a->distances);
    return KILN_OK;
}
