/* tile_ask_test -- what kiln_find_box and kiln_ask_tile say, against every pixel centre evaluated
 * with kiln_power: whatever is called missed or empty is, and what is called reached is. Shapes
 * that a camera makes, thresholds that are the power of one pixel or its neighbour, and centres far
 * outside. SEED=n changes the draws. */
#include "kernels/tile_pairs/tile_ask_math.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { DRAWS = 4000, WIDTH = 150, HEIGHT = 83 }; /* the last column and row of tiles are cut */

static const kiln_view view = {.width = WIDTH, .height = HEIGHT};
static uint64_t state;

static double uniform(void) /* [0, 1) */
{
    state = state * 6364136223846793005ull + 1442695040888963407ull; /* Knuth, MMIX */
    return (double)(state >> 11) * 0x1p-53;
}

static uint32_t below(uint32_t n) { return (uint32_t)(uniform() * n); }

/* Standard deviations s1, s2 along angle, in float as a projection has it. */
static void set_shape(kiln_splat2d *s, double s1, double s2, double angle)
{
    const double c = cos(angle), d = sin(angle);
    const float xx = (float)(s1 * s1 * c * c + s2 * s2 * d * d + 0.3),
                yy = (float)(s1 * s1 * d * d + s2 * s2 * c * c + 0.3);
    const float xy = (float)((s1 * s1 - s2 * s2) * c * d), inverse = 1.0f / (xx * yy - xy * xy);
    s->conic[0] = yy * inverse;
    s->conic[1] = -xy * inverse;
    s->conic[2] = xx * inverse;
}

static float power_at(const kiln_splat2d *s, int32_t px, int32_t py)
{
    return kiln_power(s->conic[0], s->conic[1], s->conic[2], kiln_power_offset(s->x, (uint32_t)px),
                      kiln_power_offset(s->y, (uint32_t)py));
}

static kiln_splat2d draw(double largest, bool tie)
{
    const double size = largest * pow(uniform(), 3),
                 ratio = below(2) ? pow(10, -3 * uniform()) : 0.3 + 0.7 * uniform();
    const double far = below(4) ? 1 : 1 + 6 * size / WIDTH;
    kiln_splat2d s = {.tile_x1 = (int32_t)kiln_view_tiles_x(&view),
                      .tile_y1 = (int32_t)kiln_view_tiles_y(&view)};
    set_shape(&s, size, size * ratio, 6.283185307179586 * uniform());
    s.x = (float)(WIDTH * (0.5 + far * (uniform() - 0.5)));
    s.y = (float)(HEIGHT * (0.5 + far * (uniform() - 0.5)));
    s.power_min = kiln_power_min((float)pow(10, -2.4 * uniform()));
    if (tie) s.power_min = power_at(&s, (int32_t)below(WIDTH), (int32_t)below(HEIGHT));
    if (tie && below(2)) s.power_min = nextafterf(s.power_min, below(2) ? INFINITY : -INFINITY);
    return s;
}

static bool tile_reached(const kiln_splat2d *s, int32_t column, int32_t row)
{
    for (int32_t py = row * KILN_TILE; py < (row + 1) * KILN_TILE && py < HEIGHT; py++)
        for (int32_t px = column * KILN_TILE; px < (column + 1) * KILN_TILE && px < WIDTH; px++)
            if (power_at(s, px, py) >= s->power_min) return true;
    return false;
}

static kiln_tile_answer answer_of(const kiln_splat2d *s, int32_t column, int32_t row)
{
    const kiln_asked g = kiln_ask_of(s);
    const int32_t px = column * KILN_TILE, py = row * KILN_TILE;
    const int32_t px1 = px + KILN_TILE < WIDTH ? px + KILN_TILE - 1 : WIDTH - 1;
    const int32_t py1 = py + KILN_TILE < HEIGHT ? py + KILN_TILE - 1 : HEIGHT - 1;
    return kiln_ask_tile(&g, (float)px, (float)px1, (float)py, (float)py1);
}

typedef struct {
    uint64_t proven, asked, unsure;
} tally;

static void check_tile(const kiln_splat2d *s, bool inside, int32_t column, int32_t row, tally *t)
{
    const bool reached = tile_reached(s, column, row);
    const kiln_tile_answer answer = inside ? answer_of(s, column, row) : KILN_TILE_MISSED;
    t->asked += inside;
    t->unsure += answer == KILN_TILE_UNSURE;
    if ((answer == KILN_TILE_MISSED && reached) || (answer == KILN_TILE_REACHED && !reached))
        fail_msg("tile (%d, %d), %s the box: answer %d, but %s; centre (%a, %a), conic %a %a %a, "
                 "threshold %a",
                 column, row, inside ? "in" : "outside of", (int)answer,
                 reached ? "reached" : "not reached", (double)s->x, (double)s->y,
                 (double)s->conic[0], (double)s->conic[1], (double)s->conic[2],
                 (double)s->power_min);
}

/* Every tile of the view; odd ones say nothing. */
static void check(const kiln_splat2d *s, tally *t)
{
    kiln_tile_box b = {0};
    const kiln_box_kind kind = kiln_find_box(s, &view, 0, kiln_view_tiles_y(&view), &b);
    if (kind == KILN_BOX_ODD) return;
    t->proven++;
    for (int32_t row = 0; row < s->tile_y1; row++)
        for (int32_t column = 0; column < s->tile_x1; column++) {
            const bool inside = kind == KILN_BOX_PROVEN && column >= b.column &&
                                column < b.column + b.w && row >= b.row && row < b.row + b.h;
            check_tile(s, inside, column, row, t);
        }
}

static tally check_draws(double largest, bool tie)
{
    tally t = {0};
    for (int i = 0; i < DRAWS; i++) {
        const kiln_splat2d s = draw(largest, tie);
        check(&s, &t);
    }
    return t;
}

static void answers_hold_for_ordinary_shapes(void **unused)
{
    (void)unused;
    for (double largest = 1; largest < 2000; largest *= 8) {
        const tally t = check_draws(largest, false);
        assert_true(t.proven > DRAWS / 2);
        /* else they are no help: a large one's rim has few tiles */
        assert_true(t.unsure * (largest < 64 ? 20 : 300) < t.asked);
    }
}

static void answers_hold_for_ties(void **unused)
{
    (void)unused;
    for (double largest = 1; largest < 2000; largest *= 8)
        assert_true(check_draws(largest, true).proven > DRAWS / 4);
}

static void what_is_not_proven_is_odd(void **unused)
{
    (void)unused;
    const float odd[] = {0, -1, NAN, INFINITY, -INFINITY, 1e20f, 1e-30f};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        for (int field = 0; field < 5; field++) {
            kiln_splat2d s = {.x = 20,
                              .y = 20,
                              .conic = {0.1f, 0, 0.1f},
                              .power_min = -5,
                              .tile_x1 = 9,
                              .tile_y1 = 5};
            kiln_tile_box b;
            float *const at[] = {&s.conic[0], &s.conic[2], &s.conic[1], &s.x, &s.power_min};
            if (field >= 2 && fabsf(odd[i]) <= 1e-30f) continue; /* good numbers there */
            if (field >= 3 && fabsf(odd[i]) == 1) continue;
            if (field == 4 && fabsf(odd[i]) == 1e20f) continue;
            *at[field] = odd[i];
            assert_int_equal(kiln_find_box(&s, &view, 0, 6, &b), KILN_BOX_ODD);
            assert_true(b.column == 0 && b.row == 0 && b.w == 9 && b.h == 5);
        }
}

static void boxes_end_with_rows_picture_and_bounds(void **unused)
{
    (void)unused;
    kiln_splat2d s = {.x = 75,
                      .y = 40,
                      .conic = {1e-6f, 0, 1e-6f},
                      .power_min = -5,
                      .tile_x1 = 1000,
                      .tile_y1 = 1000};
    kiln_tile_box b;
    assert_int_equal(kiln_find_box(&s, &view, 1, 4, &b), KILN_BOX_PROVEN);
    assert_true(b.column == 0 && b.row == 1 && b.w == 10 && b.h == 3);
    s.tile_x0 = 3;
    s.tile_x1 = 5;
    assert_int_equal(kiln_find_box(&s, &view, 0, 6, &b), KILN_BOX_PROVEN);
    assert_true(b.column == 3 && b.row == 0 && b.w == 2 && b.h == 6);
    s.tile_x1 = 3;
    assert_int_equal(kiln_find_box(&s, &view, 0, 6, &b), KILN_BOX_EMPTY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_hold_for_ordinary_shapes),
        cmocka_unit_test(answers_hold_for_ties),
        cmocka_unit_test(what_is_not_proven_is_odd),
        cmocka_unit_test(boxes_end_with_rows_picture_and_bounds),
    };
    const char *seed = getenv("SEED");
    state = seed ? strtoull(seed, NULL, 10) : 1;
    printf("SEED=%llu\n", (unsigned long long)state);
    return cmocka_run_group_tests_name("tile_ask", tests, NULL, NULL);
}
