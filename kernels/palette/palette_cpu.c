/* palette on the CPU: the definition. */
#include "kernels/palette/palette.h"

#include "kernels/palette/palette_search.h"
#include "kernels/sort/sort.h"
#include "kernels/violation.h"

#include <string.h>

kiln_palette_train_fn KILN_CPU(palette_train);
kiln_palette_index_fn KILN_CPU(palette_index);
kiln_palette_assign_fn KILN_CPU(palette_assign);

/* The first of n rows with a value beyond the limit; n: none has. */
static uint64_t find_beyond(const int16_t *rows, uint64_t n, uint32_t d)
{
    enum { PIECE = 4096 };
    for (uint64_t first = 0; first < n * d; first += PIECE) {
        const uint64_t count = n * d - first < PIECE ? n * d - first : PIECE;
        int most = 0, least = 0;
        for (uint64_t i = 0; i < count; i++) {
            const int v = rows[first + i];
            most = v > most ? v : most;
            least = v < least ? v : least;
        }
        if (most <= KILN_PALETTE_LIMIT && least >= -KILN_PALETTE_LIMIT) continue;
        for (uint64_t i = 0; i < count; i++)
            if (rows[first + i] > KILN_PALETTE_LIMIT || rows[first + i] < -KILN_PALETTE_LIMIT)
                return (first + i) / d;
    }
    return n;
}

static kiln_status refuse_rows(const int16_t *rows, uint64_t n, uint32_t d, kiln_error *err)
{
    const uint64_t row = find_beyond(rows, n, d);
    return row == n ? KILN_OK
                    : kiln_violation_fail(KILN_VIOLATION(KILN_VIOLATION_PALETTE_ROW, row), err);
}

static kiln_status refuse_entries(const int16_t *centroids, uint32_t p, uint32_t d, kiln_error *err)
{
    const uint64_t entry = find_beyond(centroids, p, d);
    return entry == p
               ? KILN_OK
               : kiln_violation_fail(KILN_VIOLATION(KILN_VIOLATION_PALETTE_ENTRY, entry), err);
}

static kiln_status check_palette_work(const char *op, size_t need, size_t given, kiln_error *err)
{
    if (given >= need) return KILN_OK;
    return kiln_fail(err, KILN_E_CAP, "%s needs %zu bytes of work space, but was given %zu", op,
                     need, given);
}

/* ---- palette_train --------------------------------------------------------------------------- */

typedef struct {
    const kiln_palette_train_args *a;
    palette_search search;
    unsigned threads;
    uint32_t *index;
    uint16_t *labels;    /* [n] */
    uint32_t *distances; /* [n] */
    uint32_t *order;     /* [n]: rows by hash, then by label */
    uint64_t *hashes;    /* [n] */
    uint32_t *starts;    /* [p + 1], of the rows of each entry in order */
    uint64_t *errors;    /* [p]: keys, then sorted */
    uint64_t *far;       /* [p] */
    uint32_t *worst;     /* [p]: entries by error */
    void *sort_work;
} training;

static training lay_training(const kiln_palette_train_args *a, unsigned threads, kiln_carve *c)
{
    training t = {.a = a, .threads = threads};
    const uint64_t most = a->n > a->p ? a->n : a->p;
    t.search = KILN_CPU(palette_search_take)(c, a->d, a->p, threads);
    t.index = kiln_take(c, t.search.at.words, sizeof *t.index);
    t.labels = kiln_take(c, a->n, sizeof *t.labels);
    t.distances = kiln_take(c, a->n, sizeof *t.distances);
    t.order = kiln_take(c, a->n, sizeof *t.order);
    t.hashes = kiln_take(c, a->n, sizeof *t.hashes);
    t.starts = kiln_take(c, (uint64_t)a->p + 1, sizeof *t.starts);
    t.errors = kiln_take(c, a->p, sizeof *t.errors);
    t.far = kiln_take(c, a->p, sizeof *t.far);
    t.worst = kiln_take(c, a->p, sizeof *t.worst);
    t.sort_work = kiln_take(c, kiln_sort_bytes(most, threads), 1);
    return t;
}

static const int16_t *training_row(const training *t, uint32_t row)
{
    return t->a->rows + (uint64_t)row * t->a->d;
}

/* The first p different rows by hash become the entries: rows as if drawn at random, each value
 * once. Returns how many there are of those and of all that come behind, p + 1 at most. */
static uint64_t choose_entries(training *t)
{
    const kiln_palette_train_args *a = t->a;
    const int threads = (int)t->threads;
    uint64_t n = 0;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (uint64_t i = 0; i < a->n; i++) {
        t->hashes[i] = kiln_palette_hash(a->rows + i * a->d, a->d, a->seed);
        t->order[i] = (uint32_t)i;
    }
    kiln_sort_pairs(a->n, t->hashes, t->order, t->threads, t->sort_work);
    for (uint64_t i = 0; i < a->n && n <= a->p; i++) {
        const int16_t *row = training_row(t, t->order[i]);
        if (i > 0 && t->hashes[i] == t->hashes[i - 1] &&
            kiln_palette_rows_equal(row, training_row(t, t->order[i - 1]), a->d))
            continue;
        if (n < a->p) memcpy(a->centroids + n * a->d, row, a->d * sizeof *row);
        n++;
    }
    return n;
}

/* Rows by label: starts and order. */
static void sort_by_label(training *t)
{
    const kiln_palette_train_args *a = t->a;
    uint32_t sum = 0;
    memset(t->starts, 0, ((uint64_t)a->p + 1) * sizeof *t->starts);
    for (uint64_t i = 0; i < a->n; i++) t->starts[t->labels[i]]++;
    /* the end of each */
    for (uint32_t e = 0; e <= a->p; e++) t->starts[e] = sum += e < a->p ? t->starts[e] : 0;
    for (uint64_t i = a->n; i-- > 0;) t->order[--t->starts[t->labels[i]]] = (uint32_t)i;
}

/* The mean of an entry's rows, their error and the farthest of them. */
static void move_entry(training *t, uint32_t entry)
{
    const kiln_palette_train_args *a = t->a;
    const uint32_t begin = t->starts[entry], end = t->starts[entry + 1];
    int32_t sums[KILN_PALETTE_VALUES_MAX] = {0};
    uint64_t error = 0, far = 0;
    for (uint32_t i = begin; i < end; i++) {
        const uint32_t row = t->order[i];
        const int16_t *v = training_row(t, row);
        const uint64_t f = kiln_palette_far(t->distances[row], row);
        for (uint32_t k = 0; k < a->d; k++) sums[k] += v[k];
        error += t->distances[row];
        far = f > far ? f : far;
    }
    for (uint32_t k = 0; k < a->d && end > begin; k++)
        a->centroids[(uint64_t)entry * a->d + k] = kiln_palette_mean(sums[k], end - begin);
    t->errors[entry] = kiln_palette_error_key(error);
    t->far[entry] = far;
    t->worst[entry] = entry;
}

/* The first entry without rows becomes the farthest row of the entry with the largest error, the
 * second that of the second. */
static void fill_empty(training *t)
{
    const kiln_palette_train_args *a = t->a;
    uint32_t n_empty = 0;
    for (uint32_t e = 0; e < a->p; e++) n_empty += t->starts[e] == t->starts[e + 1];
    if (n_empty == 0) return;
    kiln_sort_pairs(a->p, t->errors, t->worst, t->threads, t->sort_work);
    n_empty = 0;
    for (uint32_t e = 0; e < a->p; e++) {
        if (t->starts[e] != t->starts[e + 1]) continue;
        const uint32_t from = t->worst[n_empty++];
        if (t->starts[from] == t->starts[from + 1]) continue; /* no others are left */
        memcpy(a->centroids + (uint64_t)e * a->d,
               training_row(t, kiln_palette_far_row(t->far[from])), a->d * sizeof *a->centroids);
    }
}

static void train(training *t)
{
    const kiln_palette_train_args *a = t->a;
    const int threads = (int)t->threads;
    for (unsigned pass = 0; pass < KILN_PALETTE_PASSES; pass++) {
        KILN_CPU(palette_make_index)(&t->search, a->centroids, t->index);
        KILN_CPU(palette_load_index)(&t->search, a->centroids, t->index);
        KILN_CPU(palette_search_rows)
        (&t->search, a->rows, a->n, KILN_PALETTE_TRAIN_PROBES, t->labels, t->distances);
        sort_by_label(t);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 64)
        for (uint32_t e = 0; e < a->p; e++) move_entry(t, e);
        fill_empty(t);
    }
}

/* kiln_palette_train_cpu, kiln_palette_train_cpu_avx2 */
kiln_status KILN_CPU(palette_train)(const kiln_exec *x, const kiln_palette_train_args *a,
                                    void *work, size_t *work_bytes, kiln_error *err)
{
    kiln_carve c = {work, 0};
    KILN_TRY(kiln_palette_check("palette_train", a->n, KILN_PALETTE_ROWS_MAX, a->d, a->p, err));
    training t = lay_training(a, x->threads, &c);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(check_palette_work("palette_train", c.used, *work_bytes, err));
    KILN_TRY(refuse_rows(a->rows, a->n, a->d, err));
    memset(a->centroids, 0, (uint64_t)a->p * a->d * sizeof *a->centroids);
    const uint64_t different = choose_entries(&t);
    *a->n_entries = different < a->p ? different : a->p;
    if (different > a->p) train(&t);
    return KILN_OK;
}

/* ---- palette_index --------------------------------------------------------------------------- */

/* kiln_palette_index_cpu, kiln_palette_index_cpu_avx2 */
kiln_status KILN_CPU(palette_index)(const kiln_exec *x, const kiln_palette_index_args *a,
                                    void *work, size_t *work_bytes, kiln_error *err)
{
    kiln_carve c = {work, 0};
    KILN_TRY(kiln_palette_check("palette_index", 0, 0, a->d, a->p, err));
    palette_search s = KILN_CPU(palette_search_take)(&c, a->d, a->p, x->threads);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(check_palette_work("palette_index", c.used, *work_bytes, err));
    KILN_TRY(refuse_entries(a->centroids, a->p, a->d, err));
    KILN_CPU(palette_make_index)(&s, a->centroids, a->index);
    return KILN_OK;
}

/* ---- palette_assign -------------------------------------------------------------------------- */

/* The index comes from elsewhere: its starts ascend to p, its order names entries; else the place
 * of the first that does not. */
static kiln_status refuse_index(const kiln_palette_assign_args *a, kiln_error *err)
{
    const kiln_palette_places at = kiln_palette_places_of(a->p, a->d);
    for (uint64_t i = 0; i < at.words; i++)
        if (!kiln_palette_index_word_is_good(a->index, &at, a->p, i))
            return kiln_violation_fail(KILN_VIOLATION(KILN_VIOLATION_PALETTE_INDEX, i), err);
    return KILN_OK;
}

/* kiln_palette_assign_cpu, kiln_palette_assign_cpu_avx2 */
kiln_status KILN_CPU(palette_assign)(const kiln_exec *x, const kiln_palette_assign_args *a,
                                     void *work, size_t *work_bytes, kiln_error *err)
{
    kiln_carve c = {work, 0};
    KILN_TRY(kiln_palette_check("palette_assign", a->n, UINT32_MAX - 1, a->d, a->p, err));
    palette_search s = KILN_CPU(palette_search_take)(&c, a->d, a->p, x->threads);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(check_palette_work("palette_assign", c.used, *work_bytes, err));
    KILN_TRY(refuse_rows(a->rows, a->n, a->d, err));
    KILN_TRY(refuse_entries(a->centroids, a->p, a->d, err));
    KILN_TRY(refuse_index(a, err));
    KILN_CPU(palette_load_index)(&s, a->centroids, a->index);
    KILN_CPU(palette_search_rows)(&s, a->rows, a->n, KILN_PALETTE_PROBES, a->labels, a->distances);
    return KILN_OK;
}
