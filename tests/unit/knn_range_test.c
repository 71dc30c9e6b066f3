/* knn_range_test -- the spacing range by range equals that of the whole cloud, bit for bit,
 * whatever the cloud and the sizes of ranges, pages and batches; and it reads little of the rest
 * where little can matter. */
#include "stages/generate/inputs.h"
#include "stages/knn/range.h"
#include "tests/unit/test_runner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A cloud in the order of the curve of a root cube, as the partition leaves it. */
typedef struct {
    uint64_t n;
    float *means;    /* [3][n] */
    float *xyz;      /* [n][3] */
    float *spacing2; /* of the whole */
    uint64_t largest_read;
} cloud;

typedef void shape_fn(uint64_t i, uint64_t n, float p[3]);

/* One thread: thousands of tiny ranges would wait for a second one most of the time. */
static kiln_runner *runner(void)
{
    kiln_runner *r = NULL;
    kiln_error err = {0};
    if (test_runner(1, &r, &err) != KILN_OK) fail_msg("%s", err.msg);
    return r;
}

static void run_op(kiln_op_id op, const void *args)
{
    kiln_error err = {0};
    if (kiln_runner_run(runner(), op, args, &err) != KILN_OK) fail_msg("%s", err.msg);
}

static void *memory(uint64_t count, size_t elem)
{
    void *p = calloc(count + 1, elem);
    assert_non_null(p);
    return p;
}

/* half: of the root cube around the origin; what lies outside of it lies on its border for the
 * curve */
static cloud make(uint64_t n, shape_fn *shape, double half)
{
    cloud c = {.n = n,
               .means = memory(3 * n, sizeof(float)),
               .xyz = memory(3 * n, sizeof(float)),
               .spacing2 = memory(n, sizeof(float))};
    uint32_t *order = memory(n, sizeof *order);
    uint64_t *codes = memory(n, sizeof *codes);
    for (uint64_t i = 0; i < n; i++) {
        float p[3];
        shape(i, n, p);
        for (uint64_t a = 0; a < 3; a++) c.means[a * n + i] = p[a];
    }
    const kiln_spatial_order_args a = {
        .n = n, .means = c.means, .half = half, .order = order, .codes = codes};
    run_op(KILN_OP_spatial_order, &a);
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t axis = 0; axis < 3; axis++)
            c.xyz[3 * i + axis] = c.means[axis * n + order[i]];
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t axis = 0; axis < 3; axis++) c.means[axis * n + i] = c.xyz[3 * i + axis];
    free(codes);
    free(order);
    return c;
}

static void cloud_free(cloud *c)
{
    free(c->spacing2);
    free(c->xyz);
    free(c->means);
}

static kiln_status read_places(void *context, uint64_t first, uint64_t count, float *xyz,
                               kiln_error *err)
{
    cloud *c = context;
    (void)err;
    assert_true(first + count <= c->n && count > 0);
    if (count > c->largest_read) c->largest_read = count;
    memcpy(xyz, c->xyz + 3 * first, 3 * count * sizeof *xyz);
    return KILN_OK;
}

typedef struct {
    uint64_t range_rows, batch_rows;
    uint32_t page_rows, k;
} sizes;

/* Every range against the whole; what all of them took. */
static kiln_range_use check(cloud *c, sizes s)
{
    const uint64_t n_pages = kiln_range_pages(c->n, s.page_rows);
    kiln_knn_box *pages = memory(n_pages, sizeof *pages);
    float *spacing2 = memory(s.range_rows, sizeof *spacing2);
    kiln_range_use all = {0};
    const kiln_knn_args whole = {.n = c->n, .k = s.k, .means = c->means, .spacing2 = c->spacing2};
    run_op(KILN_OP_knn, &whole);
    for (uint64_t p = 0; p < n_pages; p++) {
        const uint64_t first = p * s.page_rows, rest = c->n - first;
        pages[p] = kiln_knn_box_of(c->xyz + 3 * first, rest < s.page_rows ? rest : s.page_rows);
    }
    kiln_knn_span g = {.n = c->n,
                       .k = s.k,
                       .page_rows = s.page_rows,
                       .batch_rows = s.batch_rows,
                       .pages = pages,
                       .read = read_places,
                       .context = c,
                       .runner = runner(),
                       .threads = s.range_rows < 1024 ? 1 : 3};
    kiln_error err = {0};
    for (; g.begin < c->n; g.begin = g.end) {
        kiln_range_use use;
        g.end = g.begin + s.range_rows < c->n ? g.begin + s.range_rows : c->n;
        if (kiln_range_answer(&g, spacing2, &use, &err) != KILN_OK) fail_msg("%s", err.msg);
        for (uint64_t i = g.begin; i < g.end; i++)
            if (memcmp(&spacing2[i - g.begin], &c->spacing2[i], sizeof(float)) != 0)
                fail_msg(
                    "place %llu of %llu, range of %llu, page of %u, k %u: %.9g instead of %.9g",
                    (unsigned long long)i, (unsigned long long)c->n,
                    (unsigned long long)s.range_rows, s.page_rows, s.k,
                    (double)spacing2[i - g.begin], (double)c->spacing2[i]);
        all.batches += use.batches;
        all.candidates += use.candidates;
        all.queries += use.queries;
    }
    free(spacing2);
    free(pages);
    return all;
}

/* ---- clouds ---------------------------------------------------------------------------------- */
static void uniform(uint64_t i, uint64_t n, float p[3])
{
    (void)n;
    kg_uniform_point(5, i, p);
}

static void clustered(uint64_t i, uint64_t n, float p[3])
{
    kg_clustered_point(5, i % 7 == 0 && i > n / 2 ? i / 2 : i, p); /* some twice */
}

static void one_place(uint64_t i, uint64_t n, float p[3])
{
    (void)i, (void)n;
    p[0] = p[1] = p[2] = 0.3f;
}

static void line(uint64_t i, uint64_t n, float p[3])
{
    p[0] = p[1] = p[2] = (float)(i * 7919 % n) / (float)n;
}

static void grid(uint64_t i, uint64_t n, float p[3]) /* many equal distances */
{
    (void)n;
    for (uint64_t a = 0; a < 3; a++, i /= 16) p[a] = (float)(i % 16) / 16.0f;
}

static void outlier(uint64_t i, uint64_t n, float p[3])
{
    uniform(i, n, p);
    if (i == n / 3) p[0] = 1e7f;
}

/* near enough to tell distances to the others apart */
static void near_outlier(uint64_t i, uint64_t n, float p[3])
{
    uniform(i, n, p);
    if (i == n / 3) p[0] = 30.0f;
}

static void two_clusters(uint64_t i, uint64_t n, float p[3])
{
    uniform(i, n, p);
    if (i >= n / 2) p[0] += 1000.0f;
}

/* a cluster with fewer points than neighbours */
static void one_and_the_rest(uint64_t i, uint64_t n, float p[3])
{
    uniform(i, n, p);
    if (i < 2) p[2] -= 1e5f;
}

static void shell(uint64_t i, uint64_t n, float p[3]) /* most of it outside of the root cube */
{
    uniform(i, n, p);
    for (int a = 0; a < 3; a++) p[a] = 40.0f * (p[a] - 0.5f);
}

static void huge(uint64_t i, uint64_t n, float p[3]) /* squares overflow */
{
    uniform(i, n, p);
    for (int a = 0; a < 3; a++) p[a] *= 1e30f;
}

static const struct {
    shape_fn *shape;
    double half;
} shapes[] = {{uniform, 1}, {clustered, 16}, {one_place, 1},       {line, 1},
              {grid, 1},    {outlier, 1},    {two_clusters, 1024}, {one_and_the_rest, 1},
              {shell, 1},   {huge, 0x1p100}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* ---- tests ----------------------------------------------------------------------------------- */
static void ranges_equal_the_whole(void **state)
{
    (void)state;
    /* one page a range, ranges smaller than k, batches of one page, ranges that hold everything */
    static const sizes all[] = {{256, 512, 32, 3}, {64, 64, 64, 3},    {8, 100, 4, 10},
                                {2, 2, 1, 3},      {4, 64, 2, 32},     {512, 32, 32, 1},
                                {4096, 64, 64, 3}, {128, 1024, 16, 32}};
    for (int i = 0; i < SHAPES; i++) {
        for (size_t s = 0; s < sizeof all / sizeof *all; s++) {
            cloud c = make(all[s].range_rows < 16 ? 301 : 3001, shapes[i].shape, shapes[i].half);
            (void)check(&c, all[s]);
            cloud_free(&c);
        }
    }
}

static void every_number_of_neighbours_is_exact(void **state)
{
    (void)state;
    for (uint32_t k = 1; k <= KILN_KNN_MAX; k++) {
        cloud c = make(1000, clustered, 16);
        (void)check(&c, (sizes){64, 128, 16, k});
        cloud_free(&c);
    }
}

static void few_points_are_exact(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 12; n++) {
        cloud c = make(n, uniform, 1);
        (void)check(&c, (sizes){4, 4, 2, 3});
        cloud_free(&c);
    }
}

static void equal_points_read_nothing(void **state)
{
    (void)state;
    cloud c = make(20000, one_place, 1);
    assert_int_equal(check(&c, (sizes){1024, 1024, 64, 3}).batches, 0);
    cloud_free(&c);
}

static void only_neighbouring_pages_are_read(void **state)
{
    (void)state;
    enum { N = 1 << 17, RANGE = 1 << 14 };
    cloud c = make(N, uniform, 0.5);
    const kiln_range_use use = check(&c, (sizes){RANGE, RANGE * 4, 64, 3});
    assert_int_equal(use.batches, N / RANGE);
    assert_true(use.candidates < N); /* of N times 7 that lie outside of the ranges */
    assert_true(use.queries < N / 2);
    cloud_free(&c);
}

/* Far points must not pull the whole cloud into memory, nor make everybody else ask again. */
static void an_outlier_reads_little(void **state)
{
    (void)state;
    enum { N = 1 << 17, RANGE = 1 << 14 };
    cloud even = make(N, uniform, 1), odd = make(N, near_outlier, 1);
    const sizes s = {RANGE, RANGE, 64, 3};
    const kiln_range_use plain = check(&even, s), far = check(&odd, s);
    assert_true(far.batches <= plain.batches + 3);
    assert_true(far.candidates <= plain.candidates + 3 * RANGE);
    assert_true(far.queries < plain.queries + RANGE / 8);
    assert_true(odd.largest_read <= 65536);
    cloud_free(&odd);
    cloud_free(&even);
}

static void clusters_apart_read_nothing_of_each_other(void **state)
{
    (void)state;
    enum { N = 4096 };
    cloud c = make(N, two_clusters, 1024);
    assert_int_equal(check(&c, (sizes){N / 2, N, 64, 3}).batches, 0);
    cloud_free(&c);
}

static void what_is_no_range_is_refused(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_range_use use;
    float out[8];
    const kiln_knn_span ranges[] = {
        {.n = 8, .begin = 1, .end = 8, .page_rows = 2, .batch_rows = 8},
        {.n = 8, .begin = 0, .end = 3, .page_rows = 2, .batch_rows = 8},
        {.n = 8, .begin = 0, .end = 9, .page_rows = 2, .batch_rows = 8},
        {.n = 8, .begin = 0, .end = 8, .page_rows = 2, .batch_rows = 1}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        assert_int_equal(kiln_range_answer(&ranges[i], out, &use, &err), KILN_E_BUG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_equal_the_whole),
        cmocka_unit_test(every_number_of_neighbours_is_exact),
        cmocka_unit_test(few_points_are_exact),
        cmocka_unit_test(equal_points_read_nothing),
        cmocka_unit_test(only_neighbouring_pages_are_read),
        cmocka_unit_test(an_outlier_reads_little),
        cmocka_unit_test(clusters_apart_read_nothing_of_each_other),
        cmocka_unit_test(what_is_no_range_is_refused),
    };
    return cmocka_run_group_tests_name("knn_range", tests, NULL, NULL);
}
