/* raster_reach_test -- what raster_reach.h leaves out of a quarter of a tile, none of its pixels
 * draws, and where it knows that no power is above 0, none is: every pixel is asked. And it leaves
 * out most of what can be left out. SEED=n changes the draws. */
#include "kernels/math/power_math.h"
#include "kernels/raster/raster_reach.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { DRAWS = 200000 };

static uint64_t state;

static double uniform(double lo, double hi)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull; /* Knuth, MMIX */
    return lo + (hi - lo) * (double)(state >> 11) * 0x1p-53;
}

typedef struct {
    float x, y, conic[3], power_min;
    uint32_t px0, py0;
} listed;

enum { QUARTERS = 4 };

/* What the pixels of the tile do, each by its own power. */
typedef struct {
    uint32_t drawn; /* one bit a quarter */
    bool above_0;   /* some power is */
} answer;

static answer ask_pixels(const listed *g)
{
    answer of = {0, false};
    for (uint32_t py = 0; py < KILN_TILE; py++)
        for (uint32_t px = 0; px < KILN_TILE; px++) {
            const float dx = kiln_power_offset(g->x, g->px0 + px),
                        dy = kiln_power_offset(g->y, g->py0 + py);
            const float power = kiln_power(g->conic[0], g->conic[1], g->conic[2], dx, dy);
            if (power >= g->power_min && power <= 0.0f)
                of.drawn |= 1u << (py / KILN_QUARTER * 2 + px / KILN_QUARTER);
            if (power > 0.0f) of.above_0 = true;
        }
    return of;
}

typedef struct {
    uint64_t drawn, reached, unknown;
} tally;

static void look(const listed *g, tally *t)
{
    const answer of = ask_pixels(g);
    for (uint32_t q = 0; q < QUARTERS; q++) {
        const float corner_x = (float)(g->px0 + q % 2 * KILN_QUARTER) + 0.5f,
                    corner_y = (float)(g->py0 + q / 2 * KILN_QUARTER) + 0.5f;
        const kiln_raster_reach reach =
            kiln_quarter_reach(g->x, g->y, g->conic, g->power_min, corner_x, corner_y);
        const bool drawn = of.drawn >> q & 1;
        if ((drawn && reach == KILN_REACH_NONE) || (of.above_0 && reach == KILN_REACH_SOME))
            fail_msg("mean %a %a, conic %a %a %a, least power %a, tile at %u %u: quarter %u drawn "
                     "%d, powers above 0 %d, reach %d",
                     g->x, g->y, g->conic[0], g->conic[1], g->conic[2], g->power_min, g->px0,
                     g->py0, q, drawn, of.above_0, (int)reach);
        t->drawn += drawn;
        t->reached += reach != KILN_REACH_NONE;
        t->unknown += reach == KILN_REACH_UNKNOWN;
    }
}

/* Semi-axes of one sigma: the longer one, at an angle to the rows, and the other's share of it. */
static void set_conic(listed *g, double size, double share, double angle)
{
    const double c = cos(angle), s = sin(angle), a = size * size, b = a * share * share;
    const double xx = a * c * c + b * s * s, yy = a * s * s + b * c * c, xy = (a - b) * c * s,
                 det = a * b;
    g->conic[0] = (float)(yy / det);
    g->conic[1] = (float)(-xy / det);
    g->conic[2] = (float)(xx / det);
}

static double between_logs(double lo, double hi) { return exp(uniform(log(lo), log(hi))); }

static listed draw_tile(void)
{
    return (listed){.px0 = (uint32_t)uniform(0, 600) * KILN_TILE,
                    .py0 = (uint32_t)uniform(0, 400) * KILN_TILE,
                    .power_min = kiln_power_min((float)uniform(0.003, 1))};
}

/* The mean at most `away` long semi-axes from the tile. */
static listed draw_ellipse(double smallest, double largest, double thinnest, double away)
{
    const double size = between_logs(smallest, largest);
    listed g = draw_tile();
    set_conic(&g, size, between_logs(thinnest, 1), uniform(0, 3.141592653589793));
    g.x = (float)(g.px0 + uniform(-away * size, KILN_TILE + away * size));
    g.y = (float)(g.py0 + uniform(-away * size, KILN_TILE + away * size));
    return g;
}

static void no_pixel_is_lost(void **unused)
{
    (void)unused;
    tally plain = {0}, any = {0};
    for (unsigned i = 0; i < DRAWS; i++) {
        const listed g = draw_ellipse(0.55, 60, 0.05, 3.4);
        look(&g, &plain);
    }
    for (unsigned i = 0; i < DRAWS; i++) {
        /* points, needles, larger than pictures */
        const listed g = draw_ellipse(1e-4, 1e5, 1e-4, 3.4);
        look(&g, &any);
    }
    print_message("quarters drawn, reached, unknown: %llu %llu %llu, of odd ones %llu %llu %llu\n",
                  (unsigned long long)plain.drawn, (unsigned long long)plain.reached,
                  (unsigned long long)plain.unknown, (unsigned long long)any.drawn,
                  (unsigned long long)any.reached, (unsigned long long)any.unknown);
    assert_true(plain.drawn > DRAWS / 2 && any.drawn > DRAWS / 8);
    assert_true(plain.unknown == 0 && any.unknown > 0);
    assert_true((double)plain.reached < 1.05 * (double)plain.drawn);
}

/* A pixel that just reaches the threshold, where rounding matters most: the threshold is set to its
 * own power. */
static void pixels_on_the_threshold_are_kept(void **unused)
{
    (void)unused;
    tally t = {0};
    for (unsigned i = 0; i < DRAWS; i++) {
        listed g = draw_ellipse(0.3, 1e4, 0.015, 3);
        const uint32_t px = g.px0 + (uint32_t)uniform(0, KILN_TILE),
                       py = g.py0 + (uint32_t)uniform(0, KILN_TILE);
        g.power_min = kiln_power(g.conic[0], g.conic[1], g.conic[2], kiln_power_offset(g.x, px),
                                 kiln_power_offset(g.y, py));
        if (g.power_min > 0.0f) continue;
        look(&g, &t);
    }
    assert_true(t.drawn > DRAWS);
}

/* Pixel centres on the long axis, where terms much larger than the power cancel and it may round to
 * above 0. */
static void no_known_power_is_above_0(void **unused)
{
    (void)unused;
    tally t = {0};
    for (unsigned i = 0; i < DRAWS; i++) {
        listed g = draw_tile();
        const double angle = uniform(0, 3.141592653589793), along = between_logs(1e-3, 1e3);
        set_conic(&g, between_logs(0.3, 1e4), between_logs(1e-4, 1), angle);
        g.x = (float)(g.px0 + (uint32_t)uniform(0, KILN_TILE) + 0.5 + along * cos(angle));
        g.y = (float)(g.py0 + (uint32_t)uniform(0, KILN_TILE) + 0.5 + along * sin(angle));
        look(&g, &t);
    }
    assert_true(t.unknown > 0 && t.reached > t.unknown);
}

/* Any bits at all: infinities, NaN, negative definite ones. */
static void odd_numbers_lose_nothing(void **unused)
{
    (void)unused;
    static const float odd[] = {0.0f,  -0.0f,  1.0f,     -1.0f,     1e-15f, 1e15f, 1e-38f, 1e-45f,
                                3e38f, -3e38f, INFINITY, -INFINITY, NAN,    0.5f,  8.5f,   -3e-8f};
    enum { ODD = sizeof odd / sizeof *odd };
    tally t = {0};
    for (unsigned i = 0; i < DRAWS; i++) {
        listed g = {.px0 = i % 2 * KILN_TILE, .py0 = 0};
        float *const fields[] = {&g.x, &g.y, &g.conic[0], &g.conic[1], &g.conic[2], &g.power_min};
        for (unsigned k = 0; k < sizeof fields / sizeof *fields; k++)
            *fields[k] = uniform(0, 1) < 0.5 ? odd[(unsigned)uniform(0, ODD)]
                                             : (float)uniform(k < 5 ? 0 : -6, k < 2   ? 32
                                                                              : k < 5 ? 2
                                                                                      : 0);
        look(&g, &t);
    }
    assert_true(t.drawn > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_pixel_is_lost),
        cmocka_unit_test(pixels_on_the_threshold_are_kept),
        cmocka_unit_test(no_known_power_is_above_0),
        cmocka_unit_test(odd_numbers_lose_nothing),
    };
    const char *seed = getenv("SEED");
    state = seed ? strtoull(seed, NULL, 10) : 1;
    print_message("SEED=%llu\n", (unsigned long long)state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
