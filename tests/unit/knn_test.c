/* knn_test -- the kernel against a brute-force search, bit for bit, and against the outputs of
 * distCUDA2 (truth.json of the reference material: knn, knn_odd). KILN_TEST_DEVICES=cuda: by a GPU
 * (test_runner.h). */
#include "kernels/knn/knn_math.h"
#include "kernels/ops.h"
#include "stages/generate/inputs.h"
#include "tests/unit/test_runner.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

typedef struct {
    uint64_t n;
    float *means, *spacing2;
} cloud;

static cloud cloud_make(uint64_t n)
{
    cloud c = {.n = n,
               .means = calloc(3 * n + 1, sizeof(float)),
               .spacing2 = calloc(n + 1, sizeof(float))};
    assert_true(c.means && c.spacing2);
    return c;
}

static void cloud_free(cloud *c)
{
    free(c->means);
    free(c->spacing2);
}

static void put(cloud *c, uint64_t i, const float p[3])
{
    for (uint64_t a = 0; a < 3; a++) c->means[a * c->n + i] = p[a];
}

static cloud uniform(uint64_t n, uint64_t seed)
{
    cloud c = cloud_make(n);
    for (uint64_t i = 0; i < n; i++) {
        float p[3];
        kg_uniform_point(seed, i, p);
        put(&c, i, p);
    }
    return c;
}

static cloud clustered(uint64_t n, uint64_t seed)
{
    cloud c = cloud_make(n);
    for (uint64_t i = 0; i < n; i++) {
        float p[3];
        kg_clustered_point(seed, i, p);
        put(&c, i, p);
    }
    return c;
}

static void repeat_rows(cloud *c, uint64_t every)
{
    for (uint64_t i = every; i < c->n; i += every)
        for (uint64_t a = 0; a < 3; a++) c->means[a * c->n + i] = c->means[a * c->n + i / 2];
}

static void run(const kiln_ops *ops, cloud *c, uint32_t k, unsigned threads)
{
    kiln_error err;
    size_t bytes = 0;
    const kiln_exec x = {.device = -1, .threads = threads};
    const kiln_knn_args a = {.n = c->n, .k = k, .means = c->means, .spacing2 = c->spacing2};
    assert_int_equal(ops->knn(&x, &a, NULL, &bytes, &err), KILN_OK);
    void *work = malloc(bytes + 1);
    assert_non_null(work);
    assert_int_equal(ops->knn(&x, &a, work, &bytes, &err), KILN_OK);
    free(work);
}

/* By the sibling that the test is run for. */
static void answer(cloud *c, uint32_t k)
{
    kiln_error err = {0};
    const kiln_knn_args a = {.n = c->n, .k = k, .means = c->means, .spacing2 = c->spacing2};
    if (test_run(KILN_OP_knn, &a, &err) != KILN_OK) fail_msg("%s", err.msg);
}

static float brute(const cloud *c, uint64_t i, uint32_t k)
{
    const uint64_t n = c->n;
    const float *x = c->means, *y = x + n, *z = y + n;
    float best[KILN_KNN_MAX], sum = 0.0f;
    for (uint32_t j = 0; j < k; j++) best[j] = FLT_MAX;
    for (uint64_t p = 0; p < n; p++) {
        if (p == i) continue;
        float d = kiln_knn_distance2(x[p] - x[i], y[p] - y[i], z[p] - z[i]);
        for (uint32_t j = k; d < best[k - 1] && j-- > 0;) {
            if (j + 1 < k) best[j + 1] = best[j];
            if (j == 0 || best[j - 1] <= d) {
                best[j] = d;
                break;
            }
        }
    }
    for (uint32_t j = 0; j < k; j++) sum += best[j];
    return sum / (float)k;
}

static uint64_t differences(const cloud *c, uint32_t k)
{
    int64_t n = (int64_t)c->n, wrong = 0;
#pragma omp parallel for reduction(+ : wrong) schedule(dynamic, 64)
    for (int64_t i = 0; i < n; i++) {
        const float b = brute(c, (uint64_t)i, k);
        wrong += memcmp(&b, &c->spacing2[i], sizeof b) != 0;
    }
    return (uint64_t)wrong;
}

static void check(cloud *c, uint32_t k)
{
    answer(c, k);
    assert_int_equal(differences(c, k), 0);
}

static uint64_t hash_of(const cloud *c)
{
    return kg_fnv1a(KG_FNV, c->spacing2, c->n * sizeof(float));
}

static void uniform_points_equal_brute_force(void **state)
{
    (void)state;
    cloud c = uniform(20000, 5);
    check(&c, 3);
    cloud_free(&c);
}

static void clustered_points_with_duplicates_equal_brute_force(void **state)
{
    (void)state;
    cloud c = clustered(20000, 5);
    repeat_rows(&c, 7);
    check(&c, 3);
    cloud_free(&c);
}

static void every_size_and_k_equals_brute_force(void **state)
{
    (void)state;
    /* around a leaf (8), a node of 8 leaves (64) and of 64 (512), and a prime */
    static const uint64_t sizes[] = {0,  1,  2,  3,  4,  5,  7,  8,   9,   15,  16,
                                     17, 31, 32, 33, 63, 64, 65, 511, 512, 513, 1009};
    static const uint32_t ks[] = {1, 2, 3, 4, 5, 8, 16, 31, 32};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (size_t j = 0; j < sizeof ks / sizeof *ks; j++) {
            cloud c = clustered(sizes[s], 11 + s);
            check(&c, ks[j]);
            cloud_free(&c);
        }
    }
}

static void degenerate_shapes_equal_brute_force(void **state)
{
    (void)state;
    enum { N = 3000 };
    for (int shape = 0; shape < 7; shape++) {
        cloud c = uniform(N, 21);
        for (uint64_t i = 0; i < N; i++) {
            float *x = &c.means[i], *y = x + N, *z = y + N;
            if (shape == 0) *y = 0.25f;           /* one axis flat */
            if (shape == 1) *y = *z = *x;         /* a line */
            if (shape == 2 && i == 77) *x = 1e7f; /* an outlier */
            if (shape == 3) {
                *x += 1000.0f;
                *y += 1000.0f;
                *z += 1000.0f;
            } /* away from the origin */
            if (shape == 4) {
                *x = (float)(i % 10);
                *y = (float)(i / 10 % 10);
                *z = 0.0f;
            } /* a hundred places */
            if (shape == 5) {
                *x *= 1e30f;
                *y *= 1e30f;
                *z *= -1e30f;
            } /* squares overflow */
            if (shape == 6) {
                *x *= 1e-42f;
                *y *= 1e-22f;
                *z = -0.0f;
            } /* denormal numbers and squares */
        }
        check(&c, 3);
        check(&c, 9);
        cloud_free(&c);
    }
}

static void outputs_have_the_hashes_of_distcuda2(void **state)
{
    (void)state;
    static const struct {
        int is_clustered;
        uint64_t n, hash;
    } rows[] = {{0, 10000, 0x0fef6390f60af6c6ull},   {1, 10000, 0x7a06fc6b530a7ec9ull},
                {0, 100000, 0x51f2528c092ffa2eull},  {1, 100000, 0xaeb0b036a135b38full},
                {0, 1000000, 0xc4bc1aa247611531ull}, {1, 1000000, 0xe55ebdebb84597ffull}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        cloud c = rows[r].is_clustered ? clustered(rows[r].n, 1) : uniform(rows[r].n, 1);
        answer(&c, 3);
        assert_int_equal(hash_of(&c), rows[r].hash);
        cloud_free(&c);
    }
}

/* truth.json prints nine significant digits, which name one float32 */
static void few_points_give_what_distcuda2_gives(void **state)
{
    (void)state;
    static const float want[6][5] = {{0},
                                     {INFINITY},
                                     {INFINITY, INFINITY},
                                     {1.13427449e+38f, 1.13427449e+38f, 1.13427449e+38f},
                                     {0.253747851f, 0.296916515f, 0.23661308f, 0.167088732f},
                                     {0.209189072f, 0.296916515f, 0.158058897f, 0.101042964f}};
    for (uint64_t n = 1; n <= 5; n++) {
        cloud c = uniform(n, 3);
        answer(&c, 3);
        const uint64_t shown = n < 4 ? n : 4;
        assert_memory_equal(c.spacing2, want[n], shown * sizeof(float));
        cloud_free(&c);
    }
}

static void duplicates_give_what_distcuda2_gives(void **state)
{
    (void)state;
    cloud c = cloud_make(1000);
    double sum = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        float p[3];
        kg_uniform_point(3, i % 500, p);
        put(&c, i, p);
    }
    answer(&c, 3);
    for (uint64_t i = 0; i < 1000; i++) sum += c.spacing2[i];
    assert_true(fabs(sum / 1000 - 0.00412561267) < 1e-11);
    cloud_free(&c);
}

/* Nothing of what follows may depend on where the points are: at most twice the time of uniform
 * points, where a grid or a curve takes a hundred times as long. */
static double seconds(cloud *c)
{
    struct timespec a, b;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    run(kiln_ops_cpu(), c, 3, 1);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    return (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
}

static void hard_clouds_are_not_slow(void **state)
{
    (void)state;
    enum { N = 200000 };
    cloud c = uniform(N, 1);
    const double plain = seconds(&c);
    for (uint64_t i = 0; i < 3 * N; i++) c.means[i] += 1000.0f;
    const double moved = seconds(&c);
    c.means[5] = 1e7f;
    const double outlier = seconds(&c);
    for (uint64_t i = 0; i < 3 * N; i++) c.means[i] = (float)(i % N % 10);
    const double few_places = seconds(&c);
    for (uint64_t i = 0; i < 3 * N; i++) c.means[i] = 0.1f;
    const double equal = seconds(&c);
    for (uint64_t i = 0; i < N; i++) assert_true(c.spacing2[i] == 0.0f);
    print_message("%d points: uniform %.3f s, moved by 1000 %.3f, with an outlier %.3f, ten places "
                  "%.3f, one place %.3f\n",
                  N, plain, moved, outlier, few_places, equal);
    assert_true(moved < 2 * plain && outlier < 2 * plain && few_places < 2 * plain &&
                equal < 2 * plain);
    cloud_free(&c);
}

static void threads_and_instruction_sets_give_the_same_bits(void **state)
{
    (void)state;
    static const uint32_t ks[] = {3, 10};
    for (int j = 0; j < 2; j++) {
        cloud c = clustered(50000, 2);
        run(kiln_ops_cpu_baseline(), &c, ks[j], 1);
        const uint64_t want = hash_of(&c);
        run(kiln_ops_cpu_baseline(), &c, ks[j], 7);
        assert_int_equal(hash_of(&c), want);
        run(kiln_ops_cpu(), &c, ks[j], 1);
        assert_int_equal(hash_of(&c), want);
        run(kiln_ops_cpu(), &c, ks[j], 7);
        assert_int_equal(hash_of(&c), want);
        cloud_free(&c);
    }
}

/* ---- knn_join -------------------------------------------------------------------------------- */
/* Rows [first, first + n) of a cloud as a planar array of their own. */
static float *part_of(const cloud *c, uint64_t first, uint64_t n)
{
    float *out = calloc(3 * n + 1, sizeof *out);
    assert_non_null(out);
    for (uint64_t a = 0; a < 3 && n; a++)
        memcpy(out + a * n, c->means + a * c->n + first, n * sizeof *out);
    return out;
}

static void join(uint64_t n, const float *means, uint64_t n_queries, const float *queries,
                 uint32_t k, float *best)
{
    kiln_error err = {0};
    const kiln_knn_join_args a = {
        .n = n, .n_queries = n_queries, .k = k, .means = means, .queries = queries, .best = best};
    if (test_run(KILN_OP_knn_join, &a, &err) != KILN_OK) fail_msg("%s", err.msg);
}

/* The first n_queries rows ask each other, then the rest in two parts of different sizes, the
 * smaller one first or last. */
static void check_parts(cloud *c, uint64_t n_queries, uint32_t k, bool small_first)
{
    kiln_error err = {0};
    const uint64_t rest = c->n - n_queries,
                   cut = n_queries + (small_first ? rest / 8 : rest - rest / 8);
    float *own = part_of(c, 0, n_queries), *one = part_of(c, n_queries, cut - n_queries),
          *two = part_of(c, cut, c->n - cut);
    float *best = calloc(n_queries * k + 1, sizeof *best),
          *mean = calloc(n_queries + 1, sizeof *mean);
    assert_true(best && mean);
    const kiln_knn_args a = {.n = n_queries, .k = k, .means = own, .best = best};
    if (test_run(KILN_OP_knn, &a, &err) != KILN_OK) fail_msg("%s", err.msg);
    join(cut - n_queries, one, n_queries, own, k, best);
    join(c->n - cut, two, n_queries, own, k, best);
    kiln_knn_mean(best, n_queries, k, mean);
    answer(c, k);
    assert_memory_equal(mean, c->spacing2, n_queries * sizeof *mean);
    free(mean);
    free(best);
    free(two);
    free(one);
    free(own);
}

static void a_search_in_parts_equals_that_of_the_whole(void **state)
{
    (void)state;
    /* queries: fewer than k, around a leaf and a warp, most of them; candidates: none, fewer than
     * k, many */
    static const struct {
        uint64_t n, n_queries;
    } sizes[] = {{1, 1},    {2, 1},    {5, 5},    {40, 7},      {41, 8},      {42, 9},
                 {300, 31}, {301, 32}, {302, 33}, {5000, 4999}, {20000, 7000}};
    static const uint32_t ks[] = {1, 2, 3, 4, 8, 9, 31, 32};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (size_t j = 0; j < sizeof ks / sizeof *ks; j++) {
            cloud c = s % 2 ? clustered(sizes[s].n, 31 + s) : uniform(sizes[s].n, 31 + s);
            repeat_rows(&c, 11);
            check_parts(&c, sizes[s].n_queries, ks[j], j % 2);
            cloud_free(&c);
        }
    }
}

static void parts_of_hard_clouds_equal_the_whole(void **state)
{
    (void)state;
    enum { N = 3000 };
    for (int shape = 0; shape < 5; shape++) {
        cloud c = uniform(N, 41);
        for (uint64_t i = 0; i < N; i++) {
            float *x = &c.means[i], *y = x + N, *z = y + N;
            if (shape == 0) *x = *y = *z = 0.5f;                 /* one place */
            if (shape == 1) *y = *z = *x = (float)(i * 7 % 100); /* places on a line */
            if (shape == 2 && i == 7) *x = 1e7f;                 /* an outlier asks */
            if (shape == 3 && i == N - 7) *x = 1e7f;             /* an outlier is asked */
            if (shape == 4) {
                *x *= 1e30f;
                *y *= 1e30f;
                *z *= -1e30f;
            } /* squares overflow */
        }
        check_parts(&c, 1000, 3, true);
        check_parts(&c, 1000, 10, false);
        cloud_free(&c);
    }
}

/* points3D.bin: u64 count; each u64 id, 3 doubles, 3 bytes, double error, u64 track length, so many
 * pairs of u32. */
static cloud colmap_points(FILE *f)
{
    uint64_t n = 0;
    assert_int_equal(fread(&n, sizeof n, 1, f), 1);
    cloud c = cloud_make(n);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t id, track;
        double xyz[3];
        unsigned char rest[11];
        assert_int_equal(fread(&id, sizeof id, 1, f), 1);
        assert_int_equal(fread(xyz, sizeof xyz, 1, f), 1);
        assert_int_equal(fread(rest, sizeof rest, 1, f), 1);
        assert_int_equal(fread(&track, sizeof track, 1, f), 1);
        assert_int_equal(fseek(f, (long)(8 * track), SEEK_CUR), 0);
        const float p[3] = {(float)xyz[0], (float)xyz[1], (float)xyz[2]};
        put(&c, i, p);
    }
    return c;
}

static void sculpture_has_the_hash_of_distcuda2(void **state)
{
    (void)state;
    const char *shared = getenv("KILN_SHARED");
    char path[4096];
    snprintf(path, sizeof path, "%s/scenes/colmap_sculpture/sparse/0/points3D.bin",
             shared ? shared : "../shared");
    FILE *f = fopen(path, "rb");
    if (!f) {
        print_message("skipped: no '%s'; set KILN_SHARED\n", path);
        skip();
    }
    cloud c = colmap_points(f);
    fclose(f);
    assert_int_equal(c.n, 1443);
    answer(&c, 3);
    assert_int_equal(hash_of(&c), 0x610a256e15021074ull);
    cloud_free(&c);
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    kiln_error err;
    size_t bytes = 0;
    const kiln_exec x = {.device = -1, .threads = 1};
    kiln_knn_args a = {.n = 10, .k = 0};
    assert_int_equal(kiln_ops_cpu()->knn(&x, &a, NULL, &bytes, &err), KILN_E_INPUT);
    a.k = KILN_KNN_MAX + 1;
    assert_int_equal(kiln_ops_cpu()->knn(&x, &a, NULL, &bytes, &err), KILN_E_INPUT);
    a = (kiln_knn_args){.n = UINT32_MAX, .k = 3};
    assert_int_equal(kiln_ops_cpu()->knn(&x, &a, NULL, &bytes, &err), KILN_E_INPUT);
    a.n = 10;
    bytes = 1;
    assert_int_equal(kiln_ops_cpu()->knn(&x, &a, &a, &bytes, &err), KILN_E_CAP);
    kiln_knn_join_args j = {.n = 10, .n_queries = 10, .k = 0};
    assert_int_equal(kiln_ops_cpu()->knn_join(&x, &j, NULL, &bytes, &err), KILN_E_INPUT);
    j.k = 3;
    assert_int_equal(kiln_ops_cpu()->knn_join(&x, &j, &j, &bytes, &err), KILN_E_CAP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_points_equal_brute_force),
        cmocka_unit_test(clustered_points_with_duplicates_equal_brute_force),
        cmocka_unit_test(every_size_and_k_equals_brute_force),
        cmocka_unit_test(degenerate_shapes_equal_brute_force),
        cmocka_unit_test(outputs_have_the_hashes_of_distcuda2),
        cmocka_unit_test(few_points_give_what_distcuda2_gives),
        cmocka_unit_test(duplicates_give_what_distcuda2_gives),
        cmocka_unit_test(hard_clouds_are_not_slow),
        cmocka_unit_test(threads_and_instruction_sets_give_the_same_bits),
        cmocka_unit_test(sculpture_has_the_hash_of_distcuda2),
        cmocka_unit_test(a_search_in_parts_equals_that_of_the_whole),
        cmocka_unit_test(parts_of_hard_clouds_equal_the_whole),
        cmocka_unit_test(bad_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
