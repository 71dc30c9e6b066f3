/* tile_pairs_test -- the lists against the definition: every pixel centre of every tile evaluated
 * with kiln_power. 0 missing, 0 extra, for shapes that a camera makes and for numbers that none
 * should. SEED=n changes the draws. */
#include "kernels/math/power_math.h"
#include "kernels/ops.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static uint64_t state;

static double uniform(void) /* [0, 1) */
{
    state = state * 6364136223846793005ull + 1442695040888963407ull; /* Knuth, MMIX */
    return (double)(state >> 11) * 0x1p-53;
}

static uint32_t below(uint32_t n) { return (uint32_t)(uniform() * n); }

typedef struct {
    kiln_view view;
    uint64_t n, capacity;
    kiln_splat2d *splats;
    uint64_t *row_pairs;
    uint32_t *tile_counts, *ranks;
} lists;

static uint64_t tiles_of(const kiln_view *v)
{
    return (uint64_t)kiln_view_tiles_x(v) * kiln_view_tiles_y(v);
}

static lists lists_make(uint32_t width, uint32_t height, uint64_t n)
{
    lists l = {.view = {.width = width, .height = height}, .n = n};
    l.splats = calloc(n + 1, sizeof *l.splats);
    l.row_pairs = calloc(kiln_view_tiles_y(&l.view), sizeof *l.row_pairs);
    l.tile_counts = calloc(tiles_of(&l.view), sizeof *l.tile_counts);
    assert_true(l.splats && l.row_pairs && l.tile_counts);
    return l;
}

static void lists_free(lists *l)
{
    free(l->splats);
    free(l->row_pairs);
    free(l->tile_counts);
    free(l->ranks);
}

/* ---- splats ---- */

/* Standard deviations s1, s2 along angle, as a projection makes a conic: in float, where it may
 * lose its definiteness. */
static void set_shape(kiln_splat2d *s, double s1, double s2, double angle, double dilation)
{
    double c = cos(angle), d = sin(angle);
    float xx = (float)(s1 * s1 * c * c + s2 * s2 * d * d + dilation),
          yy = (float)(s1 * s1 * d * d + s2 * s2 * c * c + dilation);
    float xy = (float)((s1 * s1 - s2 * s2) * c * d), det = xx * yy - xy * xy, inverse = 1.0f / det;
    s->conic[0] = yy * inverse;
    s->conic[1] = -xy * inverse;
    s->conic[2] = xx * inverse;
}

static void set_bounds(kiln_splat2d *s, const kiln_view *v, bool whole)
{
    int32_t tx = (int32_t)kiln_view_tiles_x(v), ty = (int32_t)kiln_view_tiles_y(v);
    *s = (kiln_splat2d){.x = s->x,
                        .y = s->y,
                        .conic = {s->conic[0], s->conic[1], s->conic[2]},
                        .opacity = s->opacity,
                        .power_min = s->power_min,
                        .depth = 1,
                        .tile_x1 = tx,
                        .tile_y1 = ty};
    if (whole) return;
    s->tile_x0 = (int32_t)below((uint32_t)tx);
    s->tile_y0 = (int32_t)below((uint32_t)ty);
    s->tile_x1 = s->tile_x0 + (int32_t)below((uint32_t)(tx - s->tile_x0 + 1));
    s->tile_y1 = s->tile_y0 + (int32_t)below((uint32_t)(ty - s->tile_y0 + 1));
}

static float power_at(const kiln_splat2d *s, uint32_t px, uint32_t py)
{
    return kiln_power(s->conic[0], s->conic[1], s->conic[2], kiln_power_offset(s->x, px),
                      kiln_power_offset(s->y, py));
}

/* Sizes from 0.1 px to 1e6 px, needles at all angles, centres far outside. */
static void draw_ordinary(kiln_splat2d *s, const kiln_view *v)
{
    double size = pow(10, -1 + 7 * uniform()),
           ratio = below(2) ? pow(10, -4 * uniform()) : 0.3 + 0.7 * uniform();
    double angle = below(4) ? 6.283185307179586 * uniform()
                            : 0.7853981633974483 * below(8) + 1e-4 * (uniform() - 0.5);
    set_shape(s, size, size * ratio, angle, below(4) ? 0.3 : 1e-6);
    double out = below(2) ? 1 : 1 + 3 * size / v->width;
    s->x = (float)(v->width * (0.5 + out * (uniform() - 0.5)));
    s->y = (float)(v->height * (0.5 + out * (uniform() - 0.5)));
    if (below(8) == 0) s->x = floorf(s->x) + 0.5f * (float)below(2);
    s->opacity = below(3) ? (float)uniform() : (float)pow(10, -5 * uniform());
    s->power_min = kiln_power_min(s->opacity);
    set_bounds(s, v, below(4));
}

/* The threshold is the power of one pixel, or its neighbour: exactly the tie that a bound may get
 * wrong. */
static void draw_tie(kiln_splat2d *s, const kiln_view *v)
{
    draw_ordinary(s, v);
    s->power_min = power_at(s, below(v->width), below(v->height));
    if (below(2)) s->power_min = nextafterf(s->power_min, below(2) ? INFINITY : -INFINITY);
    set_bounds(s, v, true);
}

/* Numbers that no camera should give: anything may be NaN, infinite, zero, denormal, huge or
 * negative. */
static void draw_odd(kiln_splat2d *s, const kiln_view *v)
{
    static const float menu[] = {0,       -0.0f,  1,        -1,        1e-3f, -1e-3f, 1e-21f,
                                 -1e-25f, 1e-40f, 1e-6f,    1e9f,      3e9f,  1e14f,  1e20f,
                                 -1e20f,  3e38f,  INFINITY, -INFINITY, NAN};
    const uint32_t n = sizeof menu / sizeof *menu;
    draw_ordinary(s, v);
    float *field[] = {&s->x, &s->y, &s->conic[0], &s->conic[1], &s->conic[2], &s->power_min};
    for (uint32_t k = 0; k < 6; k++)
        if (below(3) == 0) *field[k] = menu[below(n)];
    /* indefinite and negative conics: what float cancellation leaves of huge ones */
    if (below(3) == 0)
        for (int k = 0; k < 3; k++) s->conic[k] *= below(2) ? -1.0f : 1.0f;
    if (below(4) == 0) s->power_min = power_at(s, below(v->width), below(v->height));
    set_bounds(s, v, below(3));
}

/* ---- the definition ---- */

static bool tile_reached(const kiln_splat2d *s, const kiln_view *v, uint32_t tx, uint32_t ty)
{
    if ((int32_t)tx < s->tile_x0 || (int32_t)tx >= s->tile_x1 || (int32_t)ty < s->tile_y0 ||
        (int32_t)ty >= s->tile_y1)
        return false;
    for (uint32_t py = ty * 16; py < ty * 16 + 16 && py < v->height; py++)
        for (uint32_t px = tx * 16; px < tx * 16 + 16 && px < v->width; px++)
            if (power_at(s, px, py) >= s->power_min) return true;
    return false;
}

static void assert_lists_are_the_definition(const lists *l)
{
    const uint32_t *rank = l->ranks;
    uint64_t pairs = 0;
    for (uint32_t ty = 0; ty < kiln_view_tiles_y(&l->view); ty++)
        for (uint32_t tx = 0; tx < kiln_view_tiles_x(&l->view); tx++) {
            uint32_t left = l->tile_counts[ty * kiln_view_tiles_x(&l->view) + tx];
            pairs += left;
            for (uint64_t i = 0; i < l->n; i++) {
                bool listed = left > 0 && *rank == i;
                if (listed) rank++, left--;
                if (listed == tile_reached(&l->splats[i], &l->view, tx, ty)) continue;
                const kiln_splat2d *s = &l->splats[i];
                fail_msg(
                    "splat %llu (%a %a, conic %a %a %a, power_min %a), tile %u %u of %u x %u: %s",
                    (unsigned long long)i, s->x, s->y, s->conic[0], s->conic[1], s->conic[2],
                    s->power_min, tx, ty, l->view.width, l->view.height,
                    listed ? "extra" : "missing");
            }
            assert_int_equal(left, 0); /* a rank is out of order */
        }
    assert_int_equal(pairs, l->capacity);
}

/* ---- the operation ---- */

static void count_rows(const kiln_ops *ops, unsigned threads, lists *l, uint32_t row0,
                       uint32_t row1, uint64_t *row_pairs)
{
    kiln_exec x = {.device = -1, .threads = threads};
    kiln_tile_pairs_count_args a = {.n = l->n,
                                    .splats = l->splats,
                                    .view = &l->view,
                                    .row0 = row0,
                                    .row1 = row1,
                                    .row_pairs = row_pairs};
    kiln_error err = {0};
    size_t bytes = 0;
    assert_int_equal(ops->tile_pairs_count(&x, &a, NULL, &bytes, &err), KILN_OK);
    void *work = malloc(bytes + 1);
    assert_int_equal(ops->tile_pairs_count(&x, &a, work, &bytes, &err), KILN_OK);
    free(work);
}

static kiln_status emit(const kiln_ops *ops, unsigned threads, const kiln_tile_pairs_emit_args *a)
{
    kiln_exec x = {.device = -1, .threads = threads};
    kiln_error err = {0};
    size_t bytes = 0;
    assert_int_equal(ops->tile_pairs_emit(&x, a, NULL, &bytes, &err), KILN_OK);
    void *work = malloc(bytes + 1);
    kiln_status st = ops->tile_pairs_emit(&x, a, work, &bytes, &err);
    free(work);
    return st;
}

static kiln_status emit_rows(const kiln_ops *ops, unsigned threads, lists *l, uint32_t row0,
                             uint32_t row1, uint64_t capacity)
{
    kiln_tile_pairs_emit_args a = {.n = l->n,
                                   .splats = l->splats,
                                   .view = &l->view,
                                   .row0 = row0,
                                   .row1 = row1,
                                   .capacity = capacity,
                                   .tile_counts = l->tile_counts,
                                   .ranks = l->ranks};
    return emit(ops, threads, &a);
}

static void make_lists(const kiln_ops *ops, unsigned threads, lists *l)
{
    uint32_t rows = kiln_view_tiles_y(&l->view);
    count_rows(ops, threads, l, 0, rows, l->row_pairs);
    l->capacity = 0;
    for (uint32_t r = 0; r < rows; r++) l->capacity += l->row_pairs[r];
    free(l->ranks);
    l->ranks = malloc((l->capacity + 1) * sizeof *l->ranks);
    assert_non_null(l->ranks);
    assert_int_equal(emit_rows(ops, threads, l, 0, rows, l->capacity), KILN_OK);
}

typedef void draw_fn(kiln_splat2d *, const kiln_view *);

static void check_draws(draw_fn *draw, uint32_t width, uint32_t height)
{
    const uint64_t affordable = 16000000 / ((uint64_t)width * height),
                   n = affordable < 1500 ? affordable : 1500;
    lists l = lists_make(width, height, n);
    for (uint64_t i = 0; i < n; i++) draw(&l.splats[i], &l.view);
    make_lists(kiln_ops_cpu(), 2, &l);
    assert_lists_are_the_definition(&l);
    lists_free(&l);
}

/* 1 x 1, one tile, one pixel into the next tile, not a multiple of 16, many tiles either way, wider
 * than a word of tiles, as wide as 8K */
static const uint32_t sizes[][2] = {{1, 1},     {16, 16},   {17, 33},   {100, 75}, {250, 131},
                                    {700, 200}, {1100, 40}, {7680, 20}, {20, 4320}};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void lists_of_cameras_gaussians_are_exact(void **s)
{
    (void)s;
    for (int i = 0; i < SIZES; i++) check_draws(draw_ordinary, sizes[i][0], sizes[i][1]);
}

static void lists_at_ties_are_exact(void **s)
{
    (void)s;
    for (int i = 0; i < SIZES; i++) check_draws(draw_tie, sizes[i][0], sizes[i][1]);
}

static void lists_of_odd_numbers_are_exact(void **s)
{
    (void)s;
    for (int i = 0; i < SIZES; i++) check_draws(draw_odd, sizes[i][0], sizes[i][1]);
}

/* Thinner than a pixel up to a few tiles: rows of one or two pixels, ends between two pixels, and
 * lists that are longer than what the CPU writes at a time. */
static void long_lists_of_small_gaussians_are_exact(void **state_)
{
    (void)state_;
    for (unsigned threads = 1; threads <= 2; threads++) {
        lists l = lists_make(150, 40, 9000);
        for (uint64_t i = 0; i < l.n; i++) {
            kiln_splat2d *s = &l.splats[i];
            const double size = pow(10, -0.7 + 2 * uniform());
            set_shape(s, size, size * (0.1 + 0.9 * uniform()), 6.283185307179586 * uniform(),
                      below(2) ? 0.3 : 0.01);
            s->x = (float)(150 * uniform());
            s->y = (float)(40 * uniform());
            s->power_min = below(2) ? -5.5f : (float)-pow(10, -2 * uniform());
            set_bounds(s, &l.view, below(4));
        }
        make_lists(kiln_ops_cpu(), threads, &l);
        assert_lists_are_the_definition(&l);
        lists_free(&l);
    }
}

/* Thinner than a pixel and nearly level, so that they pass between pixel centres: rows whose tiles
 * are no interval, above and below rows that are not proven either. Each tile is still counted and
 * listed once. */
static void rows_with_gaps_are_listed_once(void **state_)
{
    (void)state_;
    const uint32_t slopes = 8, steps = 40;
    lists l = lists_make(300, 80, slopes * steps);
    for (uint32_t i = 0; i < l.n; i++) {
        kiln_splat2d *s = &l.splats[i];
        const double step = i / slopes;
        set_shape(s, 50, 0.1, 0.01 * (1 + i % slopes), 0);
        s->x = (float)(150 + step);
        s->y = (float)(30 + 0.37 * step);
        s->power_min = -2;
        set_bounds(s, &l.view, true);
    }
    for (unsigned threads = 1; threads <= 2; threads++) {
        make_lists(threads == 1 ? kiln_ops_cpu_baseline() : kiln_ops_cpu(), threads, &l);
        assert_lists_are_the_definition(&l);
    }
    lists_free(&l);
}

/* The widest view, all of it reached by so many Gaussians that the pairs of a tile row need more
 * than 32 bits. */
static void pairs_of_the_widest_rows_are_counted(void **state_)
{
    (void)state_;
    lists l = lists_make(1 << 20, 64, 70001);
    for (uint64_t i = 0; i < l.n; i++)
        l.splats[i] = (kiln_splat2d){.x = 524288,
                                     .y = 32,
                                     .conic = {1e-12f, 0, 1e-9f},
                                     .power_min = -0.4f,
                                     .tile_x1 = 1 << 16,
                                     .tile_y1 = 4};
    for (int isa = 0; isa < 2; isa++) {
        count_rows(isa ? kiln_ops_cpu() : kiln_ops_cpu_baseline(), 1, &l, 0, 4, l.row_pairs);
        for (int row = 0; row < 4; row++) assert_int_equal(l.row_pairs[row], l.n << 16);
    }
    lists_free(&l);
}

/* Nothing bounds a needle's tiles but its own bounds, here the picture: many rows of more than 64
 * tiles, of which it reaches few. The CPU has no room to keep what such a row could have. */
static void needles_across_a_wide_picture_are_exact(void **state_)
{
    (void)state_;
    for (unsigned threads = 1; threads <= 2; threads++) {
        lists l = lists_make(1100, 640, 12);
        for (uint64_t i = 0; i < l.n; i++) {
            kiln_splat2d *s = &l.splats[i];
            draw_ordinary(s, &l.view);
            s->x = (float)(550 + 20 * uniform());
            s->y = (float)(320 + 20 * uniform());
            if (i % 3 == 0) set_shape(s, 150, 0.02, (double)i, 0);
            s->power_min = -3;
            set_bounds(s, &l.view, true);
        }
        make_lists(kiln_ops_cpu(), threads, &l);
        assert_lists_are_the_definition(&l);
        lists_free(&l);
    }
}

static void what_is_not_a_number_is_never_listed(void **s)
{
    (void)s;
    lists l = lists_make(64, 64, 6);
    for (int i = 0; i < 6; i++) {
        kiln_splat2d *p = &l.splats[i];
        *p = (kiln_splat2d){.x = 30,
                            .y = 30,
                            .conic = {0.01f, 0, 0.01f},
                            .power_min = -5,
                            .tile_x1 = 4,
                            .tile_y1 = 4};
        float *field[] = {&p->x, &p->y, &p->conic[0], &p->conic[1], &p->conic[2], &p->power_min};
        *field[i] = NAN;
    }
    make_lists(kiln_ops_cpu(), 1, &l);
    assert_int_equal(l.capacity, 0);
    for (int i = 0; i < 6; i++)
        l.splats[i] = (kiln_splat2d){.x = 30,
                                     .y = 30,
                                     .conic = {0.01f, 0, 0.01f},
                                     .power_min = INFINITY,
                                     .tile_x1 = 4,
                                     .tile_y1 = 4};
    make_lists(kiln_ops_cpu(), 1, &l);
    assert_int_equal(l.capacity, 0);
    lists_free(&l);
}

static void lists_do_not_depend_on_threads_instructions_or_bands(void **s)
{
    (void)s;
    lists one = lists_make(500, 333, 5000), other = lists_make(500, 333, 5000);
    for (uint64_t i = 0; i < one.n; i++)
        (i % 7 ? draw_ordinary : draw_odd)(&one.splats[i], &one.view);
    memcpy(other.splats, one.splats, one.n * sizeof *one.splats);
    make_lists(kiln_ops_cpu_baseline(), 1, &one);
    for (unsigned threads = 1; threads <= 5; threads++) {
        make_lists(threads % 2 ? kiln_ops_cpu() : kiln_ops_cpu_baseline(), threads, &other);
        assert_int_equal(one.capacity, other.capacity);
        assert_memory_equal(one.tile_counts, other.tile_counts,
                            tiles_of(&one.view) * sizeof *one.tile_counts);
        assert_memory_equal(one.ranks, other.ranks, one.capacity * sizeof *one.ranks);
    }
    uint32_t rows = kiln_view_tiles_y(&one.view), step = 1;
    uint64_t at = 0;
    for (uint32_t row = 0; row < rows; row += step, step++) {
        uint32_t end = row + step < rows ? row + step : rows;
        uint64_t pairs[32], capacity = 0;
        count_rows(kiln_ops_cpu(), 2, &other, row, end, pairs);
        for (uint32_t r = row; r < end; r++) capacity += pairs[r - row];
        assert_memory_equal(pairs, one.row_pairs + row, (end - row) * sizeof *pairs);
        uint32_t tiles_x = kiln_view_tiles_x(&one.view);
        assert_int_equal(emit_rows(kiln_ops_cpu(), 2, &other, row, end, capacity), KILN_OK);
        assert_memory_equal(one.tile_counts + row * tiles_x, other.tile_counts,
                            (end - row) * tiles_x * sizeof *one.tile_counts);
        assert_memory_equal(one.ranks + at, other.ranks, capacity * sizeof *one.ranks);
        at += capacity;
    }
    lists_free(&one);
    lists_free(&other);
}

/* Fills the stack that a call after this one uses. */
static __attribute__((noinline)) void fill_stack(int32_t value)
{
    volatile int32_t filled[1 << 14];
    for (uint32_t i = 0; i < sizeof filled / sizeof *filled; i++) filled[i] = value;
}

/* Lanes without tiles are computed with, too. Where that overflows, `make asan` says so. */
static void lists_do_not_depend_on_what_the_stack_held(void **state_)
{
    (void)state_;
    lists l = lists_make(250, 131, 300);
    for (uint64_t i = 0; i < l.n; i++) draw_ordinary(&l.splats[i], &l.view);
    for (int isa = 0; isa < 2; isa++) {
        const kiln_ops *const ops = isa ? kiln_ops_cpu() : kiln_ops_cpu_baseline();
        make_lists(ops, 1, &l);
        fill_stack(INT32_MIN);
        assert_int_equal(emit_rows(ops, 1, &l, 0, kiln_view_tiles_y(&l.view), l.capacity), KILN_OK);
        assert_lists_are_the_definition(&l);
    }
    lists_free(&l);
}

static void a_wrong_room_is_a_bug_and_writes_no_rank(void **s)
{
    (void)s;
    lists l = lists_make(64, 64, 1);
    l.splats[0] = (kiln_splat2d){
        .x = 30, .y = 30, .conic = {0.01f, 0, 0.01f}, .power_min = -5, .tile_x1 = 4, .tile_y1 = 4};
    make_lists(kiln_ops_cpu(), 1, &l);
    assert_int_equal(l.capacity, 16);
    l.ranks[0] = 77;
    assert_int_equal(emit_rows(kiln_ops_cpu(), 1, &l, 0, 4, l.capacity - 1), KILN_E_BUG);
    assert_int_equal(l.ranks[0], 77);
    lists_free(&l);
}

static void a_bound_is_kept_and_what_it_holds_is_said(void **s)
{
    (void)s;
    lists l = lists_make(64, 64, 1);
    l.splats[0] = (kiln_splat2d){
        .x = 30, .y = 30, .conic = {0.01f, 0, 0.01f}, .power_min = -5, .tile_x1 = 4, .tile_y1 = 4};
    make_lists(kiln_ops_cpu(), 1, &l);
    uint32_t counts[16], ranks[20];
    uint64_t pairs[2];
    kiln_tile_pairs_emit_args a = {.n = 1,
                                   .splats = l.splats,
                                   .view = &l.view,
                                   .row1 = 4,
                                   .capacity = 20,
                                   .tile_counts = counts,
                                   .ranks = ranks,
                                   .n_pairs = pairs};
    assert_int_equal(emit(kiln_ops_cpu(), 2, &a), KILN_OK);
    assert_int_equal(pairs[0], 16);
    assert_int_equal(pairs[1], 16);
    assert_memory_equal(counts, l.tile_counts, sizeof counts);
    assert_memory_equal(ranks, l.ranks, 16 * sizeof *ranks);
    ranks[0] = 77;
    a.capacity = 15;
    assert_int_equal(emit(kiln_ops_cpu(), 2, &a), KILN_OK);
    assert_int_equal(pairs[0], 0);
    assert_int_equal(pairs[1], 16);
    for (int t = 0; t < 16; t++) assert_int_equal(counts[t], 0);
    assert_int_equal(ranks[0], 77);
    lists_free(&l);
}

static void no_splat_gives_empty_lists(void **s)
{
    (void)s;
    lists l = lists_make(33, 17, 0);
    l.tile_counts[0] = 5;
    make_lists(kiln_ops_cpu(), 3, &l);
    assert_int_equal(l.capacity, 0);
    assert_lists_are_the_definition(&l);
    lists_free(&l);
}

static void bands_are_the_longest_runs_of_at_most_4_million_pairs(void **s)
{
    (void)s;
    const uint64_t full = KILN_BAND_PAIRS, pairs[] = {1, full - 1, 0, 1, full, full + 9, 0, 0, 3};
    const uint32_t want[] = {0, 3, 4, 5, 6, 9};
    uint32_t starts[10];
    assert_int_equal(kiln_tile_bands(pairs, 9, starts), 5);
    assert_memory_equal(starts, want, sizeof want);
    assert_int_equal(kiln_tile_bands(pairs, 1, starts), 1);
    assert_int_equal(starts[1], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_cameras_gaussians_are_exact),
        cmocka_unit_test(lists_at_ties_are_exact),
        cmocka_unit_test(lists_of_odd_numbers_are_exact),
        cmocka_unit_test(long_lists_of_small_gaussians_are_exact),
        cmocka_unit_test(rows_with_gaps_are_listed_once),
        cmocka_unit_test(pairs_of_the_widest_rows_are_counted),
        cmocka_unit_test(needles_across_a_wide_picture_are_exact),
        cmocka_unit_test(what_is_not_a_number_is_never_listed),
        cmocka_unit_test(lists_do_not_depend_on_threads_instructions_or_bands),
        cmocka_unit_test(lists_do_not_depend_on_what_the_stack_held),
        cmocka_unit_test(a_wrong_room_is_a_bug_and_writes_no_rank),
        cmocka_unit_test(a_bound_is_kept_and_what_it_holds_is_said),
        cmocka_unit_test(no_splat_gives_empty_lists),
        cmocka_unit_test(bands_are_the_longest_runs_of_at_most_4_million_pairs),
    };
    const char *seed = getenv("SEED");
    state = seed ? strtoull(seed, NULL, 10) : 1;
    print_message("SEED=%llu\n", (unsigned long long)state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
