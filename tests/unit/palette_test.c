/* palette_test -- vector quantisation against searches and passes over all entries, written here as
 * simply as they can be. */
#include "kernels/arrays.h"
#include "kernels/palette/palette_math.h"
#include "tests/unit/test_runner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    uint64_t n, n_entries;
    uint32_t d, p;
    int16_t *rows, *centroids;
    uint32_t *index, *distances;
    uint16_t *labels;
} set;

static set set_make(uint64_t n, uint32_t d, uint32_t p)
{
    set s = {.n = n, .d = d, .p = p};
    s.rows = calloc(n * d + 1, sizeof *s.rows);
    s.centroids = calloc((uint64_t)p * d, sizeof *s.centroids);
    s.index = calloc(kiln_palette_index_words(p, d), sizeof *s.index);
    s.labels = calloc(n + 1, sizeof *s.labels);
    s.distances = calloc(n + 1, sizeof *s.distances);
    assert_true(s.rows && s.centroids && s.index && s.labels && s.distances);
    return s;
}

static void set_free(set *s)
{
    free(s->rows);
    free(s->centroids);
    free(s->index);
    free(s->labels);
    free(s->distances);
}

static uint64_t next(uint64_t *state) { return kiln_palette_mix(*state += 0x9e3779b97f4a7c15u); }

/* About a bell, by sums of four. */
static int bell(uint64_t *state, int size)
{
    int sum = 0;
    for (int i = 0; i < 4; i++) sum += (int)(next(state) % (uint64_t)(2 * size + 1)) - size;
    return sum / 2;
}

/* Rows as trained scenes have them: groups of very different width, and values that lessen from the
 * first to the last. */
static void fill_like_harmonics(set *s, uint64_t seed)
{
    enum { GROUPS = 50 };
    int16_t middles[GROUPS][KILN_PALETTE_VALUES_MAX];
    uint64_t state = seed;
    for (unsigned g = 0; g < GROUPS; g++)
        for (uint32_t k = 0; k < s->d; k++)
            middles[g][k] = (int16_t)bell(&state, 600 / (int)(1 + k / 9));
    for (uint64_t i = 0; i < s->n; i++) {
        const unsigned g = (unsigned)(next(&state) % GROUPS);
        for (uint32_t k = 0; k < s->d; k++) {
            const int v = middles[g][k] + bell(&state, (int)(20 + 6 * g) / (int)(1 + k / 9));
            s->rows[i * s->d + k] = (int16_t)(v > 2047 ? 2047 : v < -2047 ? -2047 : v);
        }
    }
}

static void run(const kiln_ops *ops, unsigned threads, kiln_op_id op, const void *args)
{
    const kiln_exec x = {.device = -1, .threads = threads};
    kiln_error err;
    size_t bytes = 0;
    assert_int_equal(kiln_op_call(ops, op, &x, args, NULL, &bytes, &err), KILN_OK);
    void *work = aligned_alloc(256, (bytes + 511) & ~(size_t)255);
    assert_non_null(work);
    memset(work, 0xa5, bytes);
    if (kiln_op_call(ops, op, &x, args, work, &bytes, &err) != KILN_OK) fail_msg("%s", err.msg);
    free(work);
}

static void train(const kiln_ops *ops, unsigned threads, set *s)
{
    const kiln_palette_train_args a = {.n = s->n,
                                       .seed = 1,
                                       .d = s->d,
                                       .p = s->p,
                                       .rows = s->rows,
                                       .centroids = s->centroids,
                                       .n_entries = &s->n_entries};
    run(ops, threads, KILN_OP_palette_train, &a);
}

static void make_index(const kiln_ops *ops, unsigned threads, set *s)
{
    const kiln_palette_index_args a = {
        .d = s->d, .p = (uint32_t)s->n_entries, .centroids = s->centroids, .index = s->index};
    run(ops, threads, KILN_OP_palette_index, &a);
}

static void assign(const kiln_ops *ops, unsigned threads, set *s, uint64_t first, uint64_t n)
{
    const kiln_palette_assign_args a = {.n = n,
                                        .d = s->d,
                                        .p = (uint32_t)s->n_entries,
                                        .rows = s->rows + first * s->d,
                                        .centroids = s->centroids,
                                        .index = s->index,
                                        .labels = s->labels + first,
                                        .distances = s->distances + first};
    run(ops, threads, KILN_OP_palette_assign, &a);
}

static void all_three(set *s)
{
    train(kiln_ops_cpu(), 2, s);
    make_index(kiln_ops_cpu(), 2, s);
    assign(kiln_ops_cpu(), 2, s, 0, s->n);
}

static uint64_t distance2(const int16_t *a, const int16_t *b, uint32_t d)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < d; k++) sum += (uint64_t)((a[k] - b[k]) * (a[k] - b[k]));
    return sum;
}

static uint64_t error_of(const set *s)
{
    uint64_t error = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        assert_true(s->labels[i] < s->n_entries);
        const uint64_t d2 =
            distance2(s->rows + i * s->d, s->centroids + (uint64_t)s->labels[i] * s->d, s->d);
        assert_int_equal(d2, s->distances[i]);
        error += d2;
    }
    return error;
}

/* The error of the nearest of all entries; to labels unless NULL. */
static uint64_t exact_error(const set *s, uint16_t *labels)
{
    uint64_t error = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        uint64_t least = UINT64_MAX;
        for (uint32_t e = 0; e < s->n_entries; e++) {
            const uint64_t d2 =
                distance2(s->rows + i * s->d, s->centroids + (uint64_t)e * s->d, s->d);
            if (d2 >= least) continue;
            least = d2;
            if (labels) labels[i] = (uint16_t)e;
        }
        error += least;
    }
    return error;
}

/* ---- exactness ------------------------------------------------------------------------------- */

static void few_different_rows_are_kept(void **state)
{
    (void)state;
    static const struct {
        uint64_t n, different;
        uint32_t d, p;
    } cases[] = {{5000, 500, 45, 600},  {5000, 500, 45, 500}, {3000, 3000, 24, 3000},
                 {3000, 2000, 9, 4000}, {1, 1, 45, 1},        {7, 1, 45, 3}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        set s = set_make(cases[c].n, cases[c].d, cases[c].p);
        fill_like_harmonics(&s, c);
        for (uint64_t i = cases[c].different; i < s.n; i++)
            memcpy(s.rows + i * s.d, s.rows + i % cases[c].different * s.d, s.d * sizeof *s.rows);
        train(kiln_ops_cpu(), 2, &s);
        assert_int_equal(s.n_entries, cases[c].different);
        for (uint64_t i = s.n_entries * s.d; i < (uint64_t)s.p * s.d; i++)
            assert_int_equal(s.centroids[i], 0);
        make_index(kiln_ops_cpu(), 2, &s);
        assign(kiln_ops_cpu(), 2, &s, 0, s.n);
        assert_int_equal(error_of(&s), 0);
        set_free(&s);
    }
}

static void rows_that_are_entries_find_them(void **state)
{
    (void)state;
    set s = set_make(6000, 9, 6000);
    fill_like_harmonics(&s, 3);
    /* entries that are equal: the lowest is found */
    memcpy(s.rows + 4000 * s.d, s.rows, 2000 * s.d * sizeof *s.rows);
    memcpy(s.centroids, s.rows, s.n * s.d * sizeof *s.rows);
    s.n_entries = s.p;
    make_index(kiln_ops_cpu(), 2, &s);
    assign(kiln_ops_cpu(), 2, &s, 0, s.n);
    for (uint64_t i = 0; i < s.n; i++) {
        assert_int_equal(s.distances[i], 0);
        assert_true(s.labels[i] <= i % 4000);
    }
    set_free(&s);
}

static void one_entry_is_the_mean(void **state)
{
    (void)state;
    set s = set_make(999, 9, 1);
    fill_like_harmonics(&s, 4);
    all_three(&s);
    for (uint32_t k = 0; k < s.d; k++) {
        int64_t sum = 0;
        for (uint64_t i = 0; i < s.n; i++) sum += s.rows[i * s.d + k];
        const int64_t twice = 2 * sum - 2 * 999 * (int64_t)s.centroids[k]; /* half a step at most */
        assert_true(twice <= 999 && twice >= -999);
    }
    set_free(&s);
}

/* ---- quality --------------------------------------------------------------------------------- */

static void nearly_the_nearest_is_found(void **state)
{
    (void)state;
    set s = set_make(8000, 45, 2000);
    fill_like_harmonics(&s, 5);
    all_three(&s);
    const uint64_t found = error_of(&s), exact = exact_error(&s, NULL);
    assert_true(found >= exact);
    if (found > exact + exact / 100)
        fail_msg("%llu, not %llu", (unsigned long long)found, (unsigned long long)exact);
    set_free(&s);
}

/* Ten of Lloyd's passes over all entries, from every so manieth row. */
static uint64_t plain_error(const set *of)
{
    set s = set_make(of->n, of->d, of->p);
    s.n_entries = s.p;
    memcpy(s.rows, of->rows, s.n * s.d * sizeof *s.rows);
    for (uint32_t e = 0; e < s.p; e++)
        memcpy(s.centroids + (uint64_t)e * s.d, s.rows + (uint64_t)e * s.n / s.p * s.d,
               s.d * sizeof *s.rows);
    int64_t *sums = calloc((uint64_t)s.p * s.d, sizeof *sums);
    int64_t *counts = calloc(s.p, sizeof *counts);
    assert_true(sums && counts);
    for (int pass = 0; pass < 10; pass++) {
        memset(sums, 0, (uint64_t)s.p * s.d * sizeof *sums);
        memset(counts, 0, s.p * sizeof *counts);
        exact_error(&s, s.labels);
        for (uint64_t i = 0; i < s.n; i++) {
            counts[s.labels[i]]++;
            for (uint32_t k = 0; k < s.d; k++)
                sums[(uint64_t)s.labels[i] * s.d + k] += s.rows[i * s.d + k];
        }
        for (uint64_t i = 0; i < (uint64_t)s.p * s.d; i++)
            if (counts[i / s.d] > 0) s.centroids[i] = (int16_t)(sums[i] / counts[i / s.d]);
    }
    const uint64_t error = exact_error(&s, NULL);
    free(sums);
    free(counts);
    set_free(&s);
    return error;
}

static void the_palette_is_as_good_as_plain_k_means(void **state)
{
    (void)state;
    static const uint32_t d[] = {45, 9};
    for (unsigned c = 0; c < 2; c++) {
        set s = set_make(5000, d[c], 400);
        fill_like_harmonics(&s, 6 + c);
        all_three(&s);
        const double ratio = (double)error_of(&s) / (double)plain_error(&s);
        if (ratio > 1.047)
            fail_msg("%u values: the error is %.3f of that of plain passes; 0.2 dB are 1.047", d[c],
                     ratio);
        set_free(&s);
    }
}

/* One value a row: rounded means meet, and what they leave is filled with the rows that are
 * farthest. */
static void entries_that_meet_are_put_elsewhere(void **state)
{
    (void)state;
    set s = set_make(4000, 1, 1000);
    uint64_t seed = 8;
    for (uint64_t i = 0; i < s.n; i++) s.rows[i] = (int16_t)((int)(next(&seed) % 2401) - 1200);
    all_three(&s);
    assert_int_equal(s.n_entries, 1000);
    uint64_t error = error_of(&s);
    unsigned used = 0;
    for (uint32_t e = 0; e < s.p; e++) {
        bool found = false;
        for (uint64_t i = 0; i < s.n && !found; i++) found = s.labels[i] == e;
        used += found;
    }
    if (used < 900 || error > s.n)
        fail_msg("%u entries are used; the error is %llu", used, (unsigned long long)error);
    set_free(&s);
}

/* ---- sameness -------------------------------------------------------------------------------- */

static void threads_instructions_and_pieces_give_the_same(void **state)
{
    (void)state;
    static const unsigned threads[] = {1, 2, 3, 7};
    set first = set_make(9000, 45, 1500);
    fill_like_harmonics(&first, 9);
    all_three(&first);
    for (unsigned c = 0; c < 8; c++) {
        const kiln_ops *ops = c % 2 ? kiln_ops_cpu() : kiln_ops_cpu_baseline();
        set s = set_make(first.n, first.d, first.p);
        memcpy(s.rows, first.rows, s.n * s.d * sizeof *s.rows);
        train(ops, threads[c / 2], &s);
        make_index(ops, threads[c / 2], &s);
        for (uint64_t at = 0; at < s.n; at += 1001)
            assign(ops, threads[c / 2], &s, at, s.n - at < 1001 ? s.n - at : 1001);
        assert_int_equal(s.n_entries, first.n_entries);
        assert_memory_equal(s.centroids, first.centroids,
                            (uint64_t)s.p * s.d * sizeof *s.centroids);
        assert_memory_equal(s.index, first.index,
                            kiln_palette_index_words(s.p, s.d) * sizeof *s.index);
        assert_memory_equal(s.labels, first.labels, s.n * sizeof *s.labels);
        assert_memory_equal(s.distances, first.distances, s.n * sizeof *s.distances);
        set_free(&s);
    }
    set_free(&first);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static kiln_status try_assign(const set *s, uint16_t *labels, char why[1024])
{
    kiln_error err = {0};
    const kiln_palette_assign_args a = {.n = s->n,
                                        .d = s->d,
                                        .p = (uint32_t)s->n_entries,
                                        .rows = s->rows,
                                        .centroids = s->centroids,
                                        .index = s->index,
                                        .labels = labels};
    const kiln_status st = test_run(KILN_OP_palette_assign, &a, &err);
    memcpy(why, err.msg, sizeof err.msg < 1024 ? sizeof err.msg : 1024);
    return st;
}

static void damage_is_refused(void **state)
{
    (void)state;
    set s = set_make(2000, 9, 500);
    char why[1024];
    fill_like_harmonics(&s, 10);
    all_three(&s);
    const kiln_palette_places at = kiln_palette_places_of(500, 9);
    const struct {
        uint64_t word;
        uint32_t value;
    } damages[] = {{0, 0x7fff},        {at.starts, 1},      {at.starts + 1, 501},
                   {at.starts + 3, 0}, {at.order - 1, 499}, {at.words - 1, 500}};
    assert_int_equal(try_assign(&s, s.labels, why), KILN_OK);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        const uint32_t was = s.index[damages[i].word];
        char want[64];
        s.index[damages[i].word] = damages[i].value;
        snprintf(want, sizeof want, "word %llu of the index", (unsigned long long)damages[i].word);
        assert_int_equal(try_assign(&s, s.labels, why), KILN_E_INPUT);
        if (!strstr(why, want)) fail_msg("%s, not '%s'", why, want);
        s.index[damages[i].word] = was;
    }
    s.rows[9 * 77 + 3] = 2048;
    assert_int_equal(try_assign(&s, s.labels, why), KILN_E_INPUT);
    assert_non_null(strstr(why, "row 77"));
    s.rows[9 * 77 + 3] = 0;
    s.centroids[9 * 499 + 8] = INT16_MIN;
    assert_int_equal(try_assign(&s, s.labels, why), KILN_E_INPUT);
    assert_non_null(strstr(why, "entry 499"));
    set_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_different_rows_are_kept),
        cmocka_unit_test(rows_that_are_entries_find_them),
        cmocka_unit_test(one_entry_is_the_mean),
        cmocka_unit_test(nearly_the_nearest_is_found),
        cmocka_unit_test(the_palette_is_as_good_as_plain_k_means),
        cmocka_unit_test(entries_that_meet_are_put_elsewhere),
        cmocka_unit_test(threads_instructions_and_pieces_give_the_same),
        cmocka_unit_test(damage_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
