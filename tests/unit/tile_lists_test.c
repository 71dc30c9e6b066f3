/* tile_lists_test -- the lists against the definition, pixel by pixel and pair by pair; and what
 * tile_lists says where a bound is too small. */
#include "kernels/math/power_math.h"
#include "kernels/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 200, SPARE = 9, WIDTH = 200, HEIGHT = 150, TILES = 13 * 10, CAPACITY = N * TILES };

typedef struct {
    kiln_view view;
    uint64_t n_visible, stats[3];
    kiln_splat2d splats[N + SPARE];
    float depths[N + SPARE];
    uint32_t source_rows[N + SPARE], tile_counts[TILES], ids[CAPACITY];
} scene;

static const kiln_exec one_thread = {.device = -1, .threads = 1};

/* N that are visible, of all sizes, at few depths; behind them some that nobody may look at. */
static scene *make(void)
{
    scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->view = (kiln_view){.width = WIDTH, .height = HEIGHT};
    s->n_visible = N;
    for (uint32_t i = 0; i < N + SPARE; i++) {
        const float shape = i >= N ? 1e-9f : 1.0f / (float)(1 + i * i % 977);
        s->splats[i] = (kiln_splat2d){.x = (float)(i * 37 % WIDTH),
                                      .y = (float)(i * 91 % HEIGHT),
                                      .conic = {shape, 0.3f * shape, shape},
                                      .power_min = -4,
                                      .tile_x1 = 13,
                                      .tile_y1 = 10};
        s->depths[i] = i >= N ? 0.5f : (float)(1 + i * 7 % 23);
        s->source_rows[i] = i * 53 % 101;
    }
    memset(s->tile_counts, 0xA5, sizeof s->tile_counts);
    memset(s->stats, 0xA5, sizeof s->stats);
    return s;
}

static kiln_tile_lists_args args_of(scene *s)
{
    return (kiln_tile_lists_args){.n = N + SPARE,
                                  .n_visible = &s->n_visible,
                                  .splats = s->splats,
                                  .depths = s->depths,
                                  .source_rows = s->source_rows,
                                  .view = &s->view,
                                  .row1 = 10,
                                  .capacity = CAPACITY,
                                  .tile_counts = s->tile_counts,
                                  .ids = s->ids,
                                  .stats = s->stats};
}

static void list(const kiln_tile_lists_args *a)
{
    kiln_error err = {0};
    size_t bytes = 0;
    assert_int_equal(kiln_ops_cpu()->tile_lists(&one_thread, a, NULL, &bytes, &err), KILN_OK);
    void *work = malloc(bytes);
    assert_non_null(work);
    assert_int_equal(kiln_ops_cpu()->tile_lists(&one_thread, a, work, &bytes, &err), KILN_OK);
    free(work);
}

static bool reaches(const kiln_splat2d *s, uint32_t tile)
{
    const uint32_t x0 = tile % 13 * KILN_TILE, y0 = tile / 13 * KILN_TILE;
    for (uint32_t y = y0; y < y0 + KILN_TILE && y < HEIGHT; y++)
        for (uint32_t x = x0; x < x0 + KILN_TILE && x < WIDTH; x++)
            if (kiln_power(s->conic[0], s->conic[1], s->conic[2], kiln_power_offset(s->x, x),
                           kiln_power_offset(s->y, y)) >= s->power_min)
                return true;
    return false;
}

static bool comes_before(const scene *s, uint32_t p, uint32_t q)
{
    if (s->depths[p] != s->depths[q]) return s->depths[p] < s->depths[q];
    if (s->source_rows[p] != s->source_rows[q]) return s->source_rows[p] < s->source_rows[q];
    return p < q;
}

/* In order, each once, and all that reach the tile are as many: so they are those. Returns the
 * pairs. */
static uint64_t check_tile(const scene *s, uint32_t tile, const uint32_t *ids)
{
    uint64_t belong = 0;
    for (uint32_t i = 0; i < N; i++) belong += reaches(&s->splats[i], tile);
    assert_int_equal(s->tile_counts[tile], belong);
    for (uint64_t k = 0; k < belong; k++) {
        assert_true(ids[k] < N && reaches(&s->splats[ids[k]], tile));
        if (k > 0) assert_true(comes_before(s, ids[k - 1], ids[k]));
    }
    return belong;
}

static void lists_are_in_drawing_order_and_complete(void **state)
{
    scene *s = make();
    const kiln_tile_lists_args a = args_of(s);
    uint64_t pairs = 0;
    (void)state;
    list(&a);
    for (uint32_t tile = 0; tile < TILES; tile++) pairs += check_tile(s, tile, s->ids + pairs);
    assert_true(pairs > N);
    assert_int_equal(s->stats[0], pairs);
    assert_int_equal(s->stats[1], pairs);
    assert_int_equal(s->stats[2], N);
    free(s);
}

static void check_nothing_is_listed(const scene *s)
{
    assert_int_equal(s->stats[0], 0);
    for (uint32_t tile = 0; tile < TILES; tile++) assert_int_equal(s->tile_counts[tile], 0);
}

static void room_for_pairs_that_is_too_small_is_told(void **state)
{
    scene *s = make();
    kiln_tile_lists_args a = args_of(s);
    (void)state;
    list(&a);
    const uint64_t pairs = s->stats[1];
    a.capacity = pairs - 1;
    list(&a);
    check_nothing_is_listed(s);
    assert_int_equal(s->stats[1], pairs);
    assert_int_equal(s->stats[2], N);
    a.capacity = pairs;
    list(&a);
    assert_int_equal(s->stats[0], pairs);
    free(s);
}

static void more_gaussians_than_there_is_room_for_are_told(void **state)
{
    scene *s = make();
    kiln_tile_lists_args a = args_of(s);
    (void)state;
    a.n = N - 1;
    list(&a);
    check_nothing_is_listed(s);
    assert_int_equal(s->stats[1], 0);
    assert_int_equal(s->stats[2], N);
    free(s);
}

static void nothing_visible_is_no_list(void **state)
{
    scene *s = make();
    const kiln_tile_lists_args a = args_of(s);
    (void)state;
    s->n_visible = 0;
    list(&a);
    check_nothing_is_listed(s);
    assert_int_equal(s->stats[1], 0);
    assert_int_equal(s->stats[2], 0);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_in_drawing_order_and_complete),
        cmocka_unit_test(room_for_pairs_that_is_too_small_is_told),
        cmocka_unit_test(more_gaussians_than_there_is_room_for_are_told),
        cmocka_unit_test(nothing_visible_is_no_list),
    };
    return cmocka_run_group_tests_name("tile_lists", tests, NULL, NULL);
}
