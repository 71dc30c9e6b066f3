/* many_pairs_test -- more pairs in one view than 32 bits can count: 2^32 in all of it, and 2^31 in
 * one band. Every Gaussian covers every tile, so the right answer is a product; and more tiles than
 * one launch takes. KILN_TEST_DEVICES=cuda: on a GPU. */
#include "kernels/ops.h"
#include "tests/unit/test_runner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void *memory(uint64_t count, size_t elem)
{
    void *p = calloc(count, elem);
    assert_non_null(p);
    return p;
}

/* Flat enough to be reached everywhere, each with bounds that are the whole view. */
static kiln_splat2d *covering(const kiln_view *v, uint64_t n)
{
    kiln_splat2d *s = memory(n, sizeof *s);
    for (uint64_t i = 0; i < n; i++)
        s[i] = (kiln_splat2d){.x = (float)v->width / 2,
                              .y = (float)v->height / 2,
                              .conic = {1e-13f, 0, 1e-13f},
                              .opacity = 1,
                              .power_min = -5,
                              .depth = (float)(i + 1),
                              .tile_x1 = (int32_t)kiln_view_tiles_x(v),
                              .tile_y1 = (int32_t)kiln_view_tiles_y(v)};
    return s;
}

/* KILN_NO_SKIP comes with SHARED of make gpu-test. */
static bool is_set(const char *name)
{
    const char *v = getenv(name);
    return v && *v;
}

static void must_run(kiln_op_id op, const void *args)
{
    kiln_error err = {0};
    if (test_run(op, args, &err) != KILN_OK) fail_msg("%s", err.msg);
}

/* All n Gaussians in each tile of rows [row0, row1), nearest first. */
static void lists_must_be_full(const kiln_view *v, const kiln_splat2d *splats, uint64_t n,
                               uint32_t row0, uint32_t row1)
{
    const uint64_t tiles = (uint64_t)(row1 - row0) * kiln_view_tiles_x(v);
    uint32_t *counts = memory(tiles, sizeof *counts), *ranks = malloc(tiles * n * sizeof *ranks);
    uint64_t wrong = 0;
    assert_non_null(ranks);
    const kiln_tile_pairs_emit_args emit = {.n = n,
                                            .splats = splats,
                                            .view = v,
                                            .row0 = row0,
                                            .row1 = row1,
                                            .capacity = tiles * n,
                                            .tile_counts = counts,
                                            .ranks = ranks};
    must_run(KILN_OP_tile_pairs_emit, &emit);
#pragma omp parallel for reduction(+ : wrong)
    for (uint64_t t = 0; t < tiles; t++) {
        wrong += counts[t] != n;
        for (uint64_t k = 0; k < n; k++) wrong += ranks[t * n + k] != k;
    }
    assert_int_equal(wrong, 0);
    free(ranks);
    free(counts);
}

static void a_view_of_more_than_2_to_the_32_pairs_is_counted_and_banded(void **state)
{
    enum { SIDE = 2048, N = 1025 };
    const kiln_view v = {.width = SIDE * KILN_TILE, .height = SIDE * KILN_TILE};
    static uint64_t row_pairs[SIDE];
    static uint32_t starts[SIDE + 1];
    kiln_splat2d *splats = covering(&v, N);
    uint64_t pairs = 0;
    (void)state;
    const kiln_tile_pairs_count_args count = {
        .n = N, .splats = splats, .view = &v, .row1 = SIDE, .row_pairs = row_pairs};
    must_run(KILN_OP_tile_pairs_count, &count);
    for (uint32_t r = 0; r < SIDE; r++) {
        assert_int_equal(row_pairs[r], (uint64_t)SIDE * N);
        pairs += row_pairs[r];
    }
    assert_int_equal(pairs, UINT64_C(4299161600));
    assert_true(pairs > UINT32_MAX);
    /* two rows are 4,198,400 pairs: one too many */
    assert_int_equal(kiln_tile_bands(row_pairs, SIDE, starts), SIDE);
    lists_must_be_full(&v, splats, N, SIDE - 1, SIDE);
    free(splats);
}

/* More tiles than 16 bits can tell apart, and than a kernel may take at once. */
static void a_view_of_262656_tiles_is_listed_at_once(void **state)
{
    enum { N = 40 };
    const kiln_view v = {.width = 8200, .height = 8180};
    kiln_splat2d *splats = covering(&v, N);
    (void)state;
    assert_int_equal(kiln_view_tiles_x(&v) * kiln_view_tiles_y(&v), 513 * 512);
    lists_must_be_full(&v, splats, N, 0, kiln_view_tiles_y(&v));
    lists_must_be_full(&v, splats, N, 3, 101);
    free(splats);
}

static void a_band_of_more_than_2_to_the_31_pairs_is_listed(void **state)
{
    const kiln_view v = {.width = 1 << 20, .height = KILN_TILE};
    const uint64_t n = 32769, pairs = n << 16;
    uint64_t counted = 0;
    (void)state;
    if (!is_set("KILN_THOROUGH") && !is_set("KILN_NO_SKIP")) skip(); /* 9 GB of ranks */
    kiln_splat2d *splats = covering(&v, n);
    const kiln_tile_pairs_count_args count = {
        .n = n, .splats = splats, .view = &v, .row1 = 1, .row_pairs = &counted};
    must_run(KILN_OP_tile_pairs_count, &count);
    assert_true(pairs > INT32_MAX);
    assert_int_equal(counted, pairs);
    lists_must_be_full(&v, splats, n, 0, 1);
    free(splats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_of_more_than_2_to_the_32_pairs_is_counted_and_banded),
        cmocka_unit_test(a_view_of_262656_tiles_is_listed_at_once),
        cmocka_unit_test(a_band_of_more_than_2_to_the_31_pairs_is_listed)};
    return cmocka_run_group_tests_name("many_pairs", tests, NULL, NULL);
}
