/* voxels_test -- the arithmetic of voxels against its definition, the sparse grid from many
 * threads, and the flood against one over single voxels. */
#include "stages/prune/voxel_cluster.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double no_origin[3] = {0, 0, 0};
static const float at_zero[3] = {0, 0, 0};

static void assert_near(double a, double b, double most) { assert_true(fabs(a - b) <= most); }

static kiln_voxel_row row_at(const kiln_voxel_grid *g, float x, float scale, float opacity)
{
    const float mean[3] = {x, 0.5f, 0.5f}, log_scale[3] = {logf(scale), logf(scale), logf(scale)},
                quat[4] = {2, 0, 0, 0};
    kiln_voxel_row row;
    kiln_voxel_row_make(g, mean, log_scale, quat, logf(opacity / (1 - opacity)), &row);
    return row;
}

/* Voxels of side 1, a Gaussian of 1 in the middle of one: its own has all of its opacity, its
 * neighbour what is left half a unit away, nothing is beyond three sigmas. */
static void densities_are_at_the_nearest_point(void **state)
{
    (void)state;
    const kiln_voxel_grid g = kiln_voxel_grid_of(1, no_origin, at_zero);
    const kiln_voxel_row row = row_at(&g, 0.5f, 1, 0.5f);
    uint32_t add[KILN_VOXELS];
    assert_int_equal(row.lo[0], -3);
    assert_int_equal(row.hi[0], 3);
    const int32_t block[3] = {0, 0, 0};
    const uint64_t some = kiln_voxel_densities(&g, &row, block, UINT64_MAX, add);
    assert_true(some == UINT64_MAX);
    assert_int_equal(add[0], KILN_VOXEL_UNIT / 2);
    const double at[4] = {0, 0.5, 1.5, 2.5};
    for (int x = 0; x < 4; x++)
        assert_near((double)add[x] / KILN_VOXEL_UNIT, 0.5 * exp(-0.5 * at[x] * at[x]), 3e-7);
    assert_true(kiln_voxel_densities(&g, &row, block, 1, add) == 1);
    assert_true(kiln_voxel_densities(&g, &row, (const int32_t[3]){1, 0, 0}, UINT64_MAX, add) == 0);
    assert_int_equal(kiln_voxel_need(1 - exp(-0.5)), KILN_VOXEL_UNIT / 2);
}

static void its_exp_is_exp(void **state)
{
    (void)state;
    for (double x = -20; x <= 0; x += 0.0009765625)
        assert_near(kiln_voxel_exp(x) / exp(x), 1, 1e-13);
    assert_true(kiln_voxel_exp(0) == 1);
}

static void hits_are_at_centres(void **state)
{
    (void)state;
    const kiln_voxel_grid g = kiln_voxel_grid_of(1, no_origin, at_zero);
    const kiln_voxel_row row = row_at(&g, 0.5f, 1, 0.5f);
    const int32_t block[3] = {0, 0, 0};
    const double two = kiln_voxel_limit2(row.alpha, 0.5 * exp(-0.5 * 2.001 * 2.001));
    uint64_t near = 0;
    for (int z = 0; z < 4; z++)
        for (int y = 0; y < 4; y++)
            for (int x = 0; x < 4; x++)
                near |= (uint64_t)(x * x + y * y + z * z <= 4) << (16 * z + 4 * y + x);
    assert_true(kiln_voxel_hits(&g, &row, block, UINT64_MAX, two) == near);
    assert_true(kiln_voxel_hits(&g, &row, block, 4, two) == 4);
    assert_true(kiln_voxel_limit2(row.alpha, 0.6) < 0);
    int32_t own[3];
    assert_int_equal(kiln_voxel_centre(&g, &row, own), 0);
    const kiln_voxel_row other = row_at(&g, -0.5f, 1, 0.5f);
    assert_int_equal(kiln_voxel_centre(&g, &other, own), 3);
    assert_int_equal(own[0], -1);
    /* 6 x 6 x 6 voxels: a tenth */
    assert_int_equal(kiln_voxel_hits_needed(1, &row), 22);
    const kiln_voxel_row small = row_at(&g, 0.5f, 0.3f, 0.5f);
    assert_int_equal(kiln_voxel_hits_needed(1, &small), 1);
}

/* Borders of blocks stay at multiples of four sides, wherever the layer's origin is. */
static void the_grid_is_the_scenes(void **state)
{
    (void)state;
    const double origin[3] = {1000.3, -7.9, 0};
    const kiln_voxel_grid g = kiln_voxel_grid_of(0.1, origin, at_zero);
    for (int a = 0; a < 3; a++) {
        const double whole = (origin[a] - g.shift[a]) / 0.4;
        assert_near(whole, round(whole), 1e-9);
        assert_true(g.shift[a] >= 0 && g.shift[a] < 0.4 + 1e-9);
    }
    const kiln_voxel_row huge = row_at(&g, 0, 1e12f, 0.5f), far = row_at(&g, 1e30f, 1, 0.5f);
    assert_true(huge.inside && !far.inside);
    for (int a = 0; a < 3; a++) {
        assert_near(huge.near_reach[a], 1.6, 1e-9);
        assert_true(huge.meets.hi[a] - huge.meets.lo[a] <= 9);
        assert_true(huge.lo[a] == -4 * KILN_VOXEL_BLOCKS);
    }
}

/* At 5e6 in voxels of 0.05, the grid's middle there: borders stay, and a row is as it is at 0. */
static void the_grid_is_around_the_middle(void **state)
{
    (void)state;
    const float middle[3] = {5e6f, 0, -5e6f};
    const kiln_voxel_grid at_origin = kiln_voxel_grid_of(0.05, no_origin, at_zero),
                          g = kiln_voxel_grid_of(0.05, no_origin, middle);
    int32_t own[3];
    const kiln_voxel_row out = row_at(&at_origin, 5e6f, 0.1f, 0.5f);
    assert_true(!out.inside);
    const float mean[3] = {5e6f + 0.5f, 0.5f, -5e6f}, scale[3] = {-2, -2, -2}, quat[4] = {1};
    kiln_voxel_row row;
    kiln_voxel_row_make(&g, mean, scale, quat, 0, &row);
    assert_true(row.inside);
    const int at = kiln_voxel_centre(&g, &row, own);
    for (int a = 0; a < 3; a++) {
        const double voxel = g.first[a] + 4 * own[a] + (at >> 2 * a & 3);
        assert_true(fmod(g.first[a], 4) == 0);
        assert_true(voxel == floor((double)mean[a] / 0.05));
        assert_true(abs(own[a]) <= 3 && row.meets.lo[a] < own[a] && row.meets.hi[a] > own[a]);
    }
}

static void boxes_are_of_whole_blocks(void **state)
{
    (void)state;
    const kiln_voxel_box none = kiln_voxel_box_empty(), p = {{0, 0, 0}, {3, 1, 0}},
                         q = {{3, -2, 0}, {5, 1, 7}}, r = {{4, 0, 0}, {4, 0, 0}};
    kiln_voxel_box box = none;
    assert_int_equal(kiln_voxel_box_count(&none), 0);
    assert_true(kiln_voxel_box_is_apart(&none, &p) && kiln_voxel_box_is_apart(&p, &none));
    assert_false(kiln_voxel_box_is_apart(&p, &q) || kiln_voxel_box_is_apart(&q, &p));
    assert_true(kiln_voxel_box_is_apart(&p, &r));
    const kiln_voxel_box both = kiln_voxel_box_common(&p, &q);
    assert_int_equal(kiln_voxel_box_count(&both), 2);
    assert_true(kiln_voxel_box_has(&both, (const int32_t[3]){3, 1, 0}));
    assert_false(kiln_voxel_box_has(&both, (const int32_t[3]){3, -1, 0}));
    const kiln_voxel_box apart = kiln_voxel_box_common(&p, &r);
    assert_int_equal(kiln_voxel_box_count(&apart), 0);
    kiln_voxel_box_widen(&box, &none);
    assert_int_equal(kiln_voxel_box_count(&box), 0);
    kiln_voxel_box_add(&box, (const int32_t[3]){-1, 2, 5});
    assert_int_equal(kiln_voxel_box_count(&box), 1);
    kiln_voxel_box_widen(&box, &p);
    assert_memory_equal(&box, (&(const kiln_voxel_box){{-1, 0, 0}, {3, 2, 5}}), sizeof box);
}

static void sums_do_not_depend_on_threads(void **state)
{
    (void)state;
    enum { BLOCKS = 700, ROUNDS = 40, NEED = 1000 };
    kiln_error err;
    for (int threads = 1; threads <= 8; threads += 7) {
        kiln_voxel_table t;
        assert_int_equal(kiln_voxel_table_make(BLOCKS, true, &t, &err), KILN_OK);
#pragma omp parallel for num_threads(threads)
        for (int i = 0; i < BLOCKS * ROUNDS; i++) {
            const int32_t block[3] = {i % BLOCKS - 350, -(i % BLOCKS), 5};
            uint32_t add[KILN_VOXELS];
            for (uint32_t v = 0; v < KILN_VOXELS; v++) add[v] = v;
            const uint32_t place = kiln_voxel_table_take(&t, kiln_voxel_key(block));
            kiln_voxel_table_want(&t, place, UINT64_MAX);
            kiln_voxel_table_add(&t, place, UINT64_MAX, add, NEED);
        }
        kiln_voxel_table_settle(&t, NEED);
        assert_int_equal(t.n, BLOCKS);
        for (int i = 0; i < BLOCKS; i++) {
            const int32_t block[3] = {i - 350, -i, 5};
            int32_t back[3];
            const uint32_t place = kiln_voxel_table_find(&t, kiln_voxel_key(block));
            assert_true(place < BLOCKS);
            kiln_voxel_unkey(t.blocks[place], back);
            assert_memory_equal(back, block, sizeof back);
            /* voxels 25 and above have 40 times 25 */
            assert_true(t.solid[place] == UINT64_MAX << 25);
        }
        assert_int_equal(kiln_voxel_table_take(&t, kiln_voxel_key((const int32_t[3]){0, 1, 2})),
                         KILN_VOXEL_NONE);
        assert_true(kiln_voxel_table_is_full(&t));
        kiln_voxel_table_release(&t);
    }
}

enum { SIDE = 16 }; /* voxels: four blocks */
typedef struct {
    uint8_t solid[SIDE][SIDE][SIDE], reached[SIDE][SIDE][SIDE]; /* z y x */
} dense;

static void flood_dense(dense *d, int z, int y, int x)
{
    static const int steps[6][3] = {{1, 0, 0},  {-1, 0, 0}, {0, 1, 0},
                                    {0, -1, 0}, {0, 0, 1},  {0, 0, -1}};
    if (z < 0 || y < 0 || x < 0 || z >= SIDE || y >= SIDE || x >= SIDE) return;
    if (!d->solid[z][y][x] || d->reached[z][y][x]) return;
    d->reached[z][y][x] = 1;
    for (int i = 0; i < 6; i++) flood_dense(d, z + steps[i][0], y + steps[i][1], x + steps[i][2]);
}

static uint32_t next_random(uint32_t *r) { return *r = *r * 1664525u + 1013904223u; }

static void clusters_go_through_faces(void **state)
{
    (void)state;
    kiln_error err;
    uint32_t r = 5;
    for (int round = 0; round < 60; round++) {
        dense *d = calloc(1, sizeof *d);
        kiln_voxel_table t;
        int32_t start[3], seed[3] = {1, 2, 3}, block[3];
        bool whole;
        assert_non_null(d);
        assert_int_equal(kiln_voxel_table_make(64, false, &t, &err), KILN_OK);
        for (int v = 0; v < SIDE * SIDE * SIDE; v++) {
            const int at[3] = {v % SIDE, v / SIDE % SIDE, v / SIDE / SIDE};
            if (next_random(&r) >> 24 > 60u + (uint32_t)round) continue;
            d->solid[at[2]][at[1]][at[0]] = 1;
            for (int a = 0; a < 3; a++) block[a] = at[a] / 4 - 2;
            const uint32_t place = kiln_voxel_table_take(&t, kiln_voxel_key(block));
            t.solid[place] |= 1ull << ((at[0] & 3) + 4 * (at[1] & 3) + 16 * (at[2] & 3));
        }
        for (int a = 0; a < 3; a++) seed[a] -= 8;
        assert_true(kiln_voxel_nearest(&t, seed, start));
        assert_int_equal(kiln_voxel_cluster(&t, start, &whole, &err), KILN_OK);
        flood_dense(d, start[2] + 8, start[1] + 8, start[0] + 8);
        for (uint32_t i = 0; i < t.n; i++) {
            kiln_voxel_unkey(t.blocks[i], block);
            for (int v = 0; v < KILN_VOXELS; v++)
                assert_int_equal(
                    t.solid[i] >> v & 1,
                    d->reached[4 * block[2] + 8 + (v >> 4)][4 * block[1] + 8 + (v >> 2 & 3)]
                              [4 * block[0] + 8 + (v & 3)]);
        }
        kiln_voxel_table_release(&t);
        free(d);
    }
}

/* The least largest offset; then the least z, the largest y, the largest x. */
static void the_nearest_is_splat_transforms(void **state)
{
    (void)state;
    kiln_error err;
    kiln_voxel_table t;
    int32_t out[3];
    const int32_t seed[3] = {1, 1, 1};
    assert_int_equal(kiln_voxel_table_make(8, false, &t, &err), KILN_OK);
    assert_false(kiln_voxel_nearest(&t, seed, out));
    const uint32_t place = kiln_voxel_table_take(&t, kiln_voxel_key((const int32_t[3]){0, 0, 0}));
    static const struct {
        int add[3], nearest[3];
    } steps[] = {{{3, 3, 3}, {3, 3, 3}}, {{0, 0, 2}, {0, 0, 2}}, {{0, 0, 0}, {0, 0, 0}},
                 {{0, 2, 0}, {0, 2, 0}}, {{2, 2, 0}, {2, 2, 0}}, {{2, 0, 1}, {2, 2, 0}},
                 {{1, 1, 1}, {1, 1, 1}}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        t.solid[place] |= 1ull << (steps[i].add[0] + 4 * steps[i].add[1] + 16 * steps[i].add[2]);
        assert_true(kiln_voxel_nearest(&t, seed, out));
        for (int a = 0; a < 3; a++) assert_int_equal(out[a], steps[i].nearest[a]);
    }
    kiln_voxel_table_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(densities_are_at_the_nearest_point),
        cmocka_unit_test(its_exp_is_exp),
        cmocka_unit_test(hits_are_at_centres),
        cmocka_unit_test(the_grid_is_the_scenes),
        cmocka_unit_test(the_grid_is_around_the_middle),
        cmocka_unit_test(boxes_are_of_whole_blocks),
        cmocka_unit_test(sums_do_not_depend_on_threads),
        cmocka_unit_test(clusters_go_through_faces),
        cmocka_unit_test(the_nearest_is_splat_transforms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
