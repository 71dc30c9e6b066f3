/* knn_truth_test -- what distCUDA2 returns for up to ten million points, by the hash of its output
 * (knn of truth.json), and for fewer than four and for duplicates (knn_odd).
 * KILN_TEST_DEVICES=cuda|cpu; a GPU where there is one. */
#include "stages/generate/inputs.h"
#include "tests/gpu/call.h"
#include "tests/unit/test_runner.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static double number(const json_t *v)
{
    return json_is_string(v) ? strtod(json_string_value(v), NULL) : json_number_value(v);
}

/* Point i as the truth had it: three floats in a row. */
static void point_of(bool clustered, uint64_t seed, uint64_t i, float p[3])
{
    if (clustered)
        kg_clustered_point(seed, i, p);
    else
        kg_uniform_point(seed, i, p);
}

/* Free both. */
typedef struct {
    uint64_t n;
    float *means, *spacing2;
} cloud;

/* Point i is the i % repeat'th of the seed. */
static cloud make_cloud(bool clustered, uint64_t seed, uint64_t n, uint64_t repeat)
{
    cloud c = {.n = n,
               .means = call_memory(3 * n, sizeof(float)),
               .spacing2 = call_memory(n, sizeof(float))};
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < (int64_t)n; i++) {
        float p[3];
        point_of(clustered, seed, (uint64_t)i % repeat, p);
        for (uint64_t a = 0; a < 3; a++) c.means[a * n + (uint64_t)i] = p[a];
    }
    return c;
}

static void answer(cloud *c)
{
    kiln_error err = {0};
    const kiln_knn_args a = {.n = c->n, .k = 3, .means = c->means, .spacing2 = c->spacing2};
    if (test_run(KILN_OP_knn, &a, &err) != KILN_OK) fail_msg("%s", err.msg);
}

static void free_cloud(cloud *c)
{
    free(c->means);
    free(c->spacing2);
}

static uint64_t input_hash(const cloud *c)
{
    uint64_t h = KG_FNV;
    for (uint64_t i = 0; i < c->n; i++) {
        const float p[3] = {c->means[i], c->means[c->n + i], c->means[2 * c->n + i]};
        h = kg_fnv1a(h, p, sizeof p);
    }
    return h;
}

static uint64_t hash_field(const json_t *row, const char *key)
{
    return strtoull(json_string_value(json_object_get(row, key)), NULL, 16);
}

static json_t *load_truth(void)
{
    const char *shared = getenv("KILN_SHARED");
    char path[4096];
    json_error_t why;
    snprintf(path, sizeof path, "%s/truth/truth.json", shared && *shared ? shared : "../shared");
    json_t *truth = json_load_file(path, 0, &why);
    if (!truth) {
        print_message("skipped: no '%s'; set KILN_SHARED\n", path);
        skip();
    }
    return truth;
}

static void clouds_have_the_hashes_of_distcuda2(void **state)
{
    json_t *truth = load_truth(), *row;
    const uint64_t most = getenv("KILN_GPU_SMALL") ? 100000 : UINT64_MAX;
    unsigned compared = 0, wrong = 0;
    size_t i;
    (void)state;
    json_array_foreach(json_object_get(truth, "knn"), i, row)
    {
        const uint64_t n = (uint64_t)number(json_object_get(row, "n"));
        const char *points = json_string_value(json_object_get(row, "points"));
        /* a hundred million: means only; a file: knn_test */
        if (n > most || !json_object_get(row, "fnv1a_of_input")) continue;
        cloud c = make_cloud(strcmp(points, "clustered") == 0,
                             (uint64_t)number(json_object_get(row, "seed")), n, n);
        assert_true(input_hash(&c) == hash_field(row, "fnv1a_of_input"));
        answer(&c);
        const uint64_t hash = kg_fnv1a(KG_FNV, c.spacing2, n * sizeof(float));
        const bool right = hash == hash_field(row, "fnv1a_of_float32_output");
        print_message("%llu %s points: %016llx, %s\n", (unsigned long long)n, points,
                      (unsigned long long)hash, right ? "as distCUDA2" : "NOT as distCUDA2");
        wrong += !right;
        compared++;
        free_cloud(&c);
    }
    json_decref(truth);
    assert_true(compared >= 4 && (compared == 8 || most != UINT64_MAX));
    assert_int_equal(wrong, 0);
}

/* truth.json prints nine significant digits, which name one float32. */
static void few_points_give_what_distcuda2_gives(void **state)
{
    json_t *truth = load_truth();
    const json_t *odd = json_object_get(truth, "knn_odd");
    (void)state;
    for (uint64_t n = 1; n <= 5; n++) {
        char key[8];
        snprintf(key, sizeof key, "n%u", (unsigned)n);
        const json_t *want = json_object_get(odd, key);
        assert_true(json_array_size(want) > 0);
        cloud c = make_cloud(false, 3, n, n);
        answer(&c);
        for (size_t k = 0; k < json_array_size(want); k++) {
            const float right = (float)number(json_array_get(want, k));
            assert_memory_equal(&c.spacing2[k], &right, sizeof right);
        }
        free_cloud(&c);
    }
    json_decref(truth);
}

static void check_mean(const json_t *odd, const char *key, uint64_t repeat)
{
    const json_t *row = json_object_get(odd, key);
    const double want = number(json_object_get(row, "mean"));
    double sum = 0.0;
    cloud c = make_cloud(false, 3, (uint64_t)number(json_object_get(row, "n")), repeat);
    answer(&c);
    for (uint64_t i = 0; i < c.n; i++) sum += (double)c.spacing2[i];
    assert_true(fabs(sum / (double)c.n - want) <= 1e-11);
    free_cloud(&c);
}

static void duplicates_give_what_distcuda2_gives(void **state)
{
    json_t *truth = load_truth();
    const json_t *odd = json_object_get(truth, "knn_odd");
    (void)state;
    check_mean(odd, "first_500_repeated", 500);
    check_mean(odd, "all_equal", 1);
    json_decref(truth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clouds_have_the_hashes_of_distcuda2),
        cmocka_unit_test(few_points_give_what_distcuda2_gives),
        cmocka_unit_test(duplicates_give_what_distcuda2_gives),
    };
    kiln_device_info info;
    kiln_error err;
    if (kiln_device_open(0, &info, &err) == KILN_OK) (void)setenv("KILN_TEST_DEVICES", "cuda", 0);
    return cmocka_run_group_tests_name("knn_truth", tests, NULL, NULL);
}
