/* raster_test -- pictures against a plain double-precision blend, pixel by pixel over all splats in
 * depth order, and against themselves on other threads, instruction sets and bands. SEED=n changes
 * the draws. */
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

typedef struct {
    kiln_view view;
    kiln_profile_id profile;
    float background[3];
    uint64_t n, capacity;
    int bound; /* pairs that a call says it has, beyond those of its lists */
    kiln_splat2d *splats;
    uint32_t *tile_counts, *ranks;
    float *rgba, *depth;
} scene;

static size_t pixels_of(const scene *s) { return (size_t)s->view.width * s->view.height; }

static scene scene_make(uint32_t width, uint32_t height, uint64_t n)
{
    scene s = {
        .view = {.width = width, .height = height}, .n = n, .background = {0.1f, 0.5f, 2.0f}};
    s.splats = calloc(n + 1, sizeof *s.splats);
    s.tile_counts = calloc((size_t)kiln_view_tiles_x(&s.view) * kiln_view_tiles_y(&s.view),
                           sizeof *s.tile_counts);
    s.rgba = calloc(pixels_of(&s) * 4, sizeof *s.rgba);
    s.depth = calloc(pixels_of(&s), sizeof *s.depth);
    assert_true(s.splats && s.tile_counts && s.rgba && s.depth);
    return s;
}

static void scene_free(scene *s)
{
    free(s->splats);
    free(s->tile_counts);
    free(s->ranks);
    free(s->rgba);
    free(s->depth);
}

static void set_splat(scene *s, uint64_t i, float x, float y, float sigma, float opacity)
{
    float inverse = 1.0f / (sigma * sigma);
    s->splats[i] = (kiln_splat2d){.x = x,
                                  .y = y,
                                  .conic = {inverse, 0, inverse},
                                  .opacity = opacity,
                                  .rgb = {1, 0.5f, 0.25f},
                                  .power_min = kiln_power_min(opacity),
                                  .depth = 1.0f + (float)i,
                                  .tile_x1 = (int32_t)kiln_view_tiles_x(&s->view),
                                  .tile_y1 = (int32_t)kiln_view_tiles_y(&s->view)};
}

static void draw_splats(scene *s, double largest, double opaque)
{
    for (uint64_t i = 0; i < s->n; i++) {
        double size = pow(10, -0.5 + (log10(largest) + 0.5) * uniform()),
               ratio = pow(10, -1.5 * uniform());
        double angle = 6.283185307179586 * uniform(), c = cos(angle), d = sin(angle),
               a = size * size, b = a * ratio * ratio;
        double xx = a * c * c + b * d * d + 0.3, yy = a * d * d + b * c * c + 0.3,
               xy = (a - b) * c * d, det = xx * yy - xy * xy;
        set_splat(
            s, i, (float)(s->view.width * (1.4 * uniform() - 0.2)),
            (float)(s->view.height * (1.4 * uniform() - 0.2)), 1,
            (float)(uniform() < opaque ? 0.9 + 0.1 * uniform() : 0.3 * uniform() * uniform()));
        kiln_splat2d *p = &s->splats[i];
        p->conic[0] = (float)(yy / det);
        p->conic[1] = (float)(-xy / det);
        p->conic[2] = (float)(xx / det);
        for (int k = 0; k < 3; k++) p->rgb[k] = (float)(1.3 * uniform());
    }
}

/* ---- the operations ---- */

static void make_lists(scene *s)
{
    uint32_t rows = kiln_view_tiles_y(&s->view);
    uint64_t *row_pairs = calloc(rows, sizeof *row_pairs);
    kiln_exec x = {.device = -1, .threads = 2};
    kiln_error err = {0};
    size_t bytes = 0;
    kiln_tile_pairs_count_args c = {
        .n = s->n, .splats = s->splats, .view = &s->view, .row1 = rows, .row_pairs = row_pairs};
    assert_int_equal(kiln_ops_cpu()->tile_pairs_count(&x, &c, NULL, &bytes, &err), KILN_OK);
    void *work = malloc(bytes);
    assert_int_equal(kiln_ops_cpu()->tile_pairs_count(&x, &c, work, &bytes, &err), KILN_OK);
    free(work);
    s->capacity = 0;
    for (uint32_t r = 0; r < rows; r++) s->capacity += row_pairs[r];
    free(s->ranks);
    s->ranks = malloc((s->capacity + 1) * sizeof *s->ranks);
    kiln_tile_pairs_emit_args e = {.n = s->n,
                                   .splats = s->splats,
                                   .view = &s->view,
                                   .row1 = rows,
                                   .capacity = s->capacity,
                                   .tile_counts = s->tile_counts,
                                   .ranks = s->ranks};
    assert_int_equal(kiln_ops_cpu()->tile_pairs_emit(&x, &e, NULL, &bytes, &err), KILN_OK);
    work = malloc(bytes);
    assert_int_equal(kiln_ops_cpu()->tile_pairs_emit(&x, &e, work, &bytes, &err), KILN_OK);
    free(work);
    free(row_pairs);
}

/* Rows of tiles that are drawn by one call. */
typedef struct {
    uint32_t row0, row1;
    uint64_t first_pair;
    bool with_depth;
} band;

static kiln_status draw_rows(const kiln_ops *ops, unsigned threads, scene *s, band b,
                             kiln_error *err)
{
    uint32_t tiles_x = kiln_view_tiles_x(&s->view);
    size_t pixel = (size_t)b.row0 * KILN_TILE * s->view.width;
    kiln_raster_args a = {.n = s->n,
                          .splats = s->splats,
                          .view = &s->view,
                          .profile = s->profile,
                          .row0 = b.row0,
                          .row1 = b.row1,
                          .tile_counts = s->tile_counts + (size_t)b.row0 * tiles_x,
                          .ranks = s->ranks + b.first_pair,
                          .background = {s->background[0], s->background[1], s->background[2]},
                          .rgba = s->rgba + 4 * pixel,
                          .depth = b.with_depth ? s->depth + pixel : NULL};
    for (uint32_t i = 0; i < (b.row1 - b.row0) * tiles_x; i++) a.n_pairs += a.tile_counts[i];
    a.n_pairs += (uint64_t)(int64_t)s->bound;
    kiln_exec x = {.device = -1, .threads = threads};
    size_t bytes = 0;
    assert_int_equal(ops->raster(&x, &a, NULL, &bytes, err), KILN_OK);
    void *work = malloc(bytes);
    kiln_status st = ops->raster(&x, &a, work, &bytes, err);
    free(work);
    return st;
}

static void draw(const kiln_ops *ops, unsigned threads, scene *s)
{
    kiln_error err = {0};
    assert_int_equal(
        draw_rows(ops, threads, s, (band){0, kiln_view_tiles_y(&s->view), 0, true}, &err), KILN_OK);
}

/* ---- the definition, in double; a pixel with a decision too close to call is left out ---- */

static bool reference_pixel(const scene *s, uint32_t px, uint32_t py, double out[5])
{
    double t = 1, sum[3] = {0}, weight = 0, depth = 0;
    const double max_alpha = s->profile == KILN_PROFILE_GSPLAT_15 ? 0.999 : 0.99;
    for (uint64_t i = 0; i < s->n; i++) {
        const kiln_splat2d *p = &s->splats[i];
        double dx = p->x - (px + 0.5), dy = p->y - (py + 0.5);
        double power = -0.5 * ((double)p->conic[0] * dx * dx + (double)p->conic[2] * dy * dy) -
                       (double)p->conic[1] * dx * dy;
        double alpha = fmin(max_alpha, p->opacity * exp(power));
        if (fabs(alpha * 255 - 1) < 1e-4) return false;
        if (alpha * 255 < 1) continue;
        if (fabs(t * (1 - alpha) - 1e-4) < 1e-7) return false;
        if (t * (1 - alpha) < 1e-4) break;
        for (int k = 0; k < 3; k++) sum[k] += (double)p->rgb[k] * alpha * t;
        weight += alpha * t;
        depth += alpha * t * (double)p->depth;
        t *= 1 - alpha;
    }
    for (int k = 0; k < 3; k++) out[k] = sum[k] + t * (double)s->background[k];
    out[3] = 1 - t;
    out[4] = depth / fmax(weight, 1e-10);
    return true;
}

static void assert_picture_is_the_reference(const scene *s)
{
    uint64_t left_out = 0;
    for (uint32_t py = 0; py < s->view.height; py++)
        for (uint32_t px = 0; px < s->view.width; px++) {
            double want[5];
            if (!reference_pixel(s, px, py, want)) {
                left_out++;
                continue;
            }
            size_t at = (size_t)py * s->view.width + px;
            for (int k = 0; k < 5; k++) {
                double got = k < 4 ? s->rgba[4 * at + k] : s->depth[at],
                       unit = k < 4 ? 1 : fmax(1, want[4]);
                if (fabs(got - want[k]) <= 4e-5 * unit) continue;
                fail_msg("pixel %u %u channel %d is %.9g, not %.9g", px, py, k, got, want[k]);
            }
        }
    assert_true(left_out * 20 < pixels_of(s));
}

static void pictures_equal_the_plain_blend(void **unused)
{
    (void)unused;
    static const uint32_t sizes[][2] = {{1, 1}, {16, 16}, {17, 9}, {70, 50}, {40, 131}};
    for (uint32_t i = 0; i < 15; i++) {
        scene s = scene_make(sizes[i % 5][0], sizes[i % 5][1], 300);
        s.profile = (kiln_profile_id)(i / 5);
        draw_splats(&s, i % 2 ? 8 : 60, i % 3 ? 0.05 : 0.5);
        make_lists(&s);
        draw(kiln_ops_cpu(), 2, &s);
        assert_picture_is_the_reference(&s);
        scene_free(&s);
    }
}

static void pictures_do_not_depend_on_threads_instructions_or_bands(void **unused)
{
    (void)unused;
    scene one = scene_make(203, 150, 4000), other = scene_make(203, 150, 4000);
    draw_splats(&one, 40, 0.1);
    memcpy(other.splats, one.splats, one.n * sizeof *one.splats);
    make_lists(&one);
    make_lists(&other);
    draw(kiln_ops_cpu_baseline(), 1, &one);
    size_t bytes = pixels_of(&one) * sizeof *one.rgba;
    for (unsigned threads = 1; threads <= 5; threads++) {
        memset(other.rgba, 0xff, 4 * bytes);
        draw(threads % 2 ? kiln_ops_cpu() : kiln_ops_cpu_baseline(), threads, &other);
        assert_memory_equal(one.rgba, other.rgba, 4 * bytes);
        assert_memory_equal(one.depth, other.depth, bytes);
    }
    memset(other.rgba, 0xff, 4 * bytes);
    uint32_t rows = kiln_view_tiles_y(&one.view), tiles_x = kiln_view_tiles_x(&one.view);
    uint64_t pair = 0;
    for (uint32_t row = 0, step = 1; row < rows; row += step, step = 3 - step) {
        uint32_t end = row + step < rows ? row + step : rows;
        kiln_error err = {0};
        assert_int_equal(
            draw_rows(kiln_ops_cpu(), 2, &other, (band){row, end, pair, row % 2}, &err), KILN_OK);
        for (uint32_t i = row * tiles_x; i < end * tiles_x; i++) pair += other.tile_counts[i];
    }
    assert_memory_equal(one.rgba, other.rgba, 4 * bytes);
    scene_free(&one);
    scene_free(&other);
}

/* Parts of the rows that have lists, with the lists of all of them. */
static void parts_are_those_of_the_picture(void **unused)
{
    (void)unused;
    scene s = scene_make(203, 150, 4000);
    const uint32_t rows = kiln_view_tiles_y(&s.view);
    draw_splats(&s, 40, 0.1);
    make_lists(&s);
    draw(kiln_ops_cpu_baseline(), 1, &s);
    float *const rgba = malloc(4 * pixels_of(&s) * sizeof *rgba), *const depth =
                                                                      malloc(pixels_of(&s) *
                                                                             sizeof *depth);
    assert_true(rgba && depth);
    for (uint32_t row = 0, step = 1; row < rows; row += step, step = 3 - step) {
        const uint32_t end = row + step < rows ? row + step : rows;
        const size_t pixel = (size_t)row * KILN_TILE * s.view.width;
        const kiln_raster_args a = {
            .n = s.n,
            .splats = s.splats,
            .view = &s.view,
            .profile = s.profile,
            .row1 = rows,
            .part0 = row,
            .part1 = end,
            .tile_counts = s.tile_counts,
            .ranks = s.ranks,
            .n_pairs = s.capacity,
            .background = {s.background[0], s.background[1], s.background[2]},
            .rgba = rgba + 4 * pixel,
            .depth = depth + pixel};
        const kiln_exec x = {.device = -1, .threads = 2};
        kiln_error err = {0};
        size_t bytes = 0;
        assert_int_equal(kiln_ops_cpu()->raster(&x, &a, NULL, &bytes, &err), KILN_OK);
        void *work = malloc(bytes);
        assert_int_equal(kiln_ops_cpu()->raster(&x, &a, work, &bytes, &err), KILN_OK);
        free(work);
        assert_int_equal(
            kiln_raster_pixels(&a),
            ((uint64_t)(end * KILN_TILE < 150 ? end * KILN_TILE : 150) - row * KILN_TILE) * 203);
    }
    assert_memory_equal(rgba, s.rgba, 4 * pixels_of(&s) * sizeof *rgba);
    assert_memory_equal(depth, s.depth, pixels_of(&s) * sizeof *depth);
    free(depth);
    free(rgba);
    scene_free(&s);
}

static void a_part_outside_of_the_lists_is_a_bug(void **unused)
{
    static const uint32_t parts[][2] = {{0, 3}, {4, 11}, {7, 6}};
    const kiln_view view = {.width = 160, .height = 160};
    (void)unused;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const kiln_raster_args a = {
            .view = &view, .row0 = 2, .row1 = 10, .part0 = parts[i][0], .part1 = parts[i][1]};
        kiln_error err = {0};
        assert_int_equal(kiln_raster_check(&a, &err), KILN_E_BUG);
    }
}

/* The Gaussians [first, end) of s, on top of what `between` holds. */
static void draw_slab(const kiln_ops *ops, const scene *s, uint64_t first, uint64_t end,
                      kiln_raster_state *between)
{
    const kiln_exec x = {.device = -1, .threads = 2};
    const uint32_t rows = kiln_view_tiles_y(&s->view);
    kiln_error err = {0};
    size_t bytes = 0;
    scene part = *s;
    part.splats += first;
    part.n = end - first;
    part.ranks = NULL;
    make_lists(&part);
    const kiln_raster_args a = {.n = part.n,
                                .splats = part.splats,
                                .view = &part.view,
                                .profile = part.profile,
                                .row1 = rows,
                                .tile_counts = part.tile_counts,
                                .ranks = part.ranks,
                                .n_pairs = part.capacity,
                                .state = between};
    assert_int_equal(ops->raster(&x, &a, NULL, &bytes, &err), KILN_OK);
    void *work = malloc(bytes + 1);
    assert_int_equal(ops->raster(&x, &a, work, &bytes, &err), KILN_OK);
    free(work);
    free(part.ranks);
}

static void slabs_leave_what_one_pass_draws(void **unused)
{
    (void)unused;
    for (uint32_t k = 0; k < 6; k++) {
        scene s = scene_make(73 + k, 50, 600);
        s.profile = (kiln_profile_id)(k % 3);
        draw_splats(&s, 30, k < 3 ? 0.5 : 0.02);
        make_lists(&s);
        draw(kiln_ops_cpu(), 2, &s);
        const size_t pixels = pixels_of(&s);
        kiln_raster_state *between = calloc(pixels, sizeof *between);
        float *rgba = malloc(pixels * 4 * sizeof *rgba), *depth = malloc(pixels * sizeof *depth);
        assert_true(between && rgba && depth);
        uint64_t stopped = 0;
        for (uint64_t first = 0, step = 1; first < s.n; first += step, step = step % 97 * 3 + 1) {
            draw_slab(step % 2 ? kiln_ops_cpu() : kiln_ops_cpu_baseline(), &s, first,
                      first + step < s.n ? first + step : s.n, between);
            stopped = 0;
            for (size_t i = 0; i < pixels; i++) stopped += between[i].left < 0;
        }
        assert_true(k < 3 ? stopped > 0 : stopped < pixels);
        kiln_raster_finish(between, pixels, s.background, 2, rgba, depth);
        assert_memory_equal(s.rgba, rgba, pixels * 4 * sizeof *rgba);
        assert_memory_equal(s.depth, depth, pixels * sizeof *depth);
        free(between);
        free(rgba);
        free(depth);
        scene_free(&s);
    }
}

static void a_slab_that_should_make_a_picture_is_a_bug(void **unused)
{
    (void)unused;
    scene s = scene_make(16, 16, 0);
    kiln_raster_state between[256] = {{0}};
    kiln_error err = {0};
    const kiln_exec x = {.device = -1, .threads = 1};
    size_t bytes = 0;
    const kiln_raster_args a = {
        .view = &s.view, .row1 = 1, .tile_counts = s.tile_counts, .rgba = s.rgba, .state = between};
    assert_int_equal(kiln_ops_cpu()->raster(&x, &a, NULL, &bytes, &err), KILN_E_BUG);
    scene_free(&s);
}

static void a_cpu_refuses_to_draw_fast(void **unused)
{
    (void)unused;
    scene s = scene_make(16, 16, 0);
    kiln_error err = {0};
    const kiln_exec x = {.device = -1, .threads = 1};
    size_t bytes = 0;
    kiln_raster_args a = {.view = &s.view, .row1 = 1, .tile_counts = s.tile_counts, .rgba = s.rgba};
    assert_int_equal(kiln_ops_cpu()->raster(&x, &a, NULL, &bytes, &err), KILN_OK);
    a.fast = true;
    assert_int_equal(kiln_ops_cpu()->raster(&x, &a, NULL, &bytes, &err), KILN_E_INPUT);
    assert_non_null(strstr(err.msg, "GPU"));
    scene_free(&s);
}

/* A list that also holds what does not reach the tile gives the same bits: a pixel decides for
 * itself. */
static void longer_lists_give_the_same_picture(void **unused)
{
    (void)unused;
    scene s = scene_make(90, 60, 500);
    draw_splats(&s, 20, 0.1);
    make_lists(&s);
    draw(kiln_ops_cpu(), 2, &s);
    size_t bytes = pixels_of(&s) * 4 * sizeof *s.rgba;
    float *exact = malloc(bytes);
    assert_non_null(exact);
    memcpy(exact, s.rgba, bytes);
    uint32_t tiles = kiln_view_tiles_x(&s.view) * kiln_view_tiles_y(&s.view);
    free(s.ranks);
    s.ranks = malloc(tiles * s.n * sizeof *s.ranks);
    assert_non_null(s.ranks);
    for (uint32_t t = 0; t < tiles; t++) {
        s.tile_counts[t] = (uint32_t)s.n;
        for (uint32_t i = 0; i < s.n; i++) s.ranks[t * s.n + i] = i;
    }
    draw(kiln_ops_cpu_baseline(), 2, &s);
    assert_memory_equal(exact, s.rgba, bytes);
    free(exact);
    scene_free(&s);
}

/* What lies behind the lists is not looked at, and a bound that is too low is refused. */
static void the_number_of_pairs_is_a_bound(void **unused)
{
    enum { BEHIND = 7 };
    (void)unused;
    scene s = scene_make(90, 60, 300);
    draw_splats(&s, 20, 0.1);
    make_lists(&s);
    draw(kiln_ops_cpu(), 2, &s);
    const size_t bytes = pixels_of(&s) * 4 * sizeof *s.rgba;
    float *exact = malloc(bytes);
    assert_non_null(exact);
    memcpy(exact, s.rgba, bytes);
    s.ranks = realloc(s.ranks, (s.capacity + BEHIND) * sizeof *s.ranks);
    assert_non_null(s.ranks);
    for (unsigned i = 0; i < BEHIND; i++) s.ranks[s.capacity + i] = UINT32_MAX;
    for (int more = -1; more <= BEHIND; more += BEHIND + 1) {
        kiln_error err = {0};
        s.bound = more;
        memset(s.rgba, 0, bytes);
        assert_int_equal(
            draw_rows(kiln_ops_cpu(), 2, &s, (band){0, kiln_view_tiles_y(&s.view), 0, true}, &err),
            more < 0 ? KILN_E_INPUT : KILN_OK);
        if (more > 0) assert_memory_equal(exact, s.rgba, bytes);
        if (more < 0) assert_non_null(strstr(err.msg, "fewer were given"));
    }
    free(exact);
    scene_free(&s);
}

static void empty_lists_give_the_background(void **unused)
{
    (void)unused;
    scene s = scene_make(33, 18, 0);
    make_lists(&s);
    draw(kiln_ops_cpu(), 1, &s);
    for (size_t i = 0; i < pixels_of(&s); i++) {
        assert_memory_equal(s.rgba + 4 * i, s.background, sizeof s.background);
        assert_true(s.rgba[4 * i + 3] == 0 && s.depth[i] == 0);
    }
    scene_free(&s);
}

static void one_gaussian_has_its_alpha_at_its_centre(void **unused)
{
    (void)unused;
    scene s = scene_make(32, 32, 1);
    set_splat(&s, 0, 20.5f, 12.5f, 2, 0.75f);
    make_lists(&s);
    draw(kiln_ops_cpu(), 1, &s);
    size_t centre = 12 * 32 + 20;
    assert_true(s.rgba[4 * centre + 3] == 0.75f && s.depth[centre] == 1.0f);
    assert_true(s.rgba[4 * centre] == 0.75f + 0.25f * s.background[0]);
    s.splats[0].opacity = 1; /* the cap of the profile */
    draw(kiln_ops_cpu(), 1, &s);
    assert_true(s.rgba[4 * centre + 3] == 1.0f - (1.0f - 0.99f));
    s.profile = KILN_PROFILE_GSPLAT_15;
    draw(kiln_ops_cpu(), 1, &s);
    assert_true(s.rgba[4 * centre + 3] == 1.0f - (1.0f - 0.999f));
    scene_free(&s);
}

/* Transmittance 0.1, 0.01, 0.001, then exactly where the next Gaussian would go below 1e-4: it is
 * not drawn, and nothing after it is, however faint. */
static void a_pixel_stops_before_the_gaussian_that_ends_it(void **unused)
{
    (void)unused;
    scene s = scene_make(16, 16, 5);
    for (uint64_t i = 0; i < 5; i++)
        set_splat(&s, i, 8.5f, 8.5f, 3, i < 3 ? 0.9f : i == 3 ? 0.95f : 0.01f);
    make_lists(&s);
    draw(kiln_ops_cpu(), 1, &s);
    float t = 1.0f;
    for (int i = 0; i < 3; i++) t = t * (1.0f - 0.9f);
    assert_true(s.rgba[4 * (8 * 16 + 8) + 3] == 1.0f - t);
    assert_picture_is_the_reference(&s);
    scene_free(&s);
}

/* Opacities 15/16, *second and the returned one leave a transmittance of exactly 1e-4 (as
 * float). */
static float find_exact_limit(float *second)
{
    for (*second = 0.95f;; *second = nextafterf(*second, 1)) {
        const float left = 0.0625f * (1.0f - *second), third = 1.0f - 1e-4f / left;
        if (left * (1.0f - third) == 1e-4f) return third;
    }
}

/* There inria goes on (it stops below) and gsplat stops (at or below). */
static void a_transmittance_of_exactly_the_limit_divides_the_profiles(void **unused)
{
    (void)unused;
    scene s = scene_make(16, 16, 3);
    float second, third = find_exact_limit(&second);
    set_splat(&s, 0, 8.5f, 8.5f, 3, 0.9375f);
    set_splat(&s, 1, 8.5f, 8.5f, 3, second);
    set_splat(&s, 2, 8.5f, 8.5f, 3, third);
    make_lists(&s);
    const size_t alpha = 4 * (8 * 16 + 8) + 3;
    for (s.profile = 0; s.profile < KILN_PROFILE_COUNT; s.profile++) {
        draw(kiln_ops_cpu(), 1, &s);
        float left = s.profile == KILN_PROFILE_INRIA ? 1e-4f : 0.0625f * (1.0f - second);
        assert_true(s.rgba[alpha] == 1.0f - left);
    }
    scene_free(&s);
}

/* Where a Gaussian is not drawn its numbers do not matter. */
static void infinite_colours_stay_where_they_are_drawn(void **unused)
{
    (void)unused;
    scene s = scene_make(32, 16, 1);
    set_splat(&s, 0, 4.5f, 8.5f, 1, 0.9f);
    s.splats[0].rgb[1] = INFINITY;
    make_lists(&s);
    draw(kiln_ops_cpu(), 1, &s);
    assert_true(isinf(s.rgba[4 * (8 * 32 + 4) + 1]));
    for (int px = 12; px < 32; px++) assert_true(s.rgba[4 * (8 * 32 + px) + 1] == s.background[1]);
    assert_true(s.rgba[4 * 4 + 1] == s.background[1]); /* in the same tile, above */
    scene_free(&s);
}

static void a_rank_beyond_the_splats_is_bad_input(void **unused)
{
    (void)unused;
    scene s = scene_make(32, 32, 3);
    for (uint64_t i = 0; i < 3; i++) set_splat(&s, i, 16, 16, 9, 0.1f);
    make_lists(&s);
    assert_int_equal(s.capacity, 12);
    s.ranks[7] = 3;
    kiln_error err = {0};
    for (unsigned threads = 1; threads <= 3; threads++) {
        assert_int_equal(draw_rows(kiln_ops_cpu(), threads, &s, (band){.row1 = 2}, &err),
                         KILN_E_INPUT);
        assert_string_equal(err.msg, "raster: pair 7 names a Gaussian that does not exist");
    }
    scene_free(&s);
}

/* Three of these leave nothing to draw: the other pairs are checked all the same. */
static void a_bad_rank_behind_an_opaque_tile_is_found(void **unused)
{
    (void)unused;
    scene s = scene_make(16, 16, 600);
    for (uint64_t i = 0; i < s.n; i++) set_splat(&s, i, 8, 8, 1000, 1);
    make_lists(&s);
    assert_int_equal(s.capacity, 600);
    s.ranks[599] = s.ranks[598] = 0xffffffff;
    kiln_error err = {0};
    assert_int_equal(draw_rows(kiln_ops_cpu(), 1, &s, (band){.row1 = 1}, &err), KILN_E_INPUT);
    assert_string_equal(err.msg, "raster: pair 598 names a Gaussian that does not exist");
    scene_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_equal_the_plain_blend),
        cmocka_unit_test(pictures_do_not_depend_on_threads_instructions_or_bands),
        cmocka_unit_test(parts_are_those_of_the_picture),
        cmocka_unit_test(a_part_outside_of_the_lists_is_a_bug),
        cmocka_unit_test(slabs_leave_what_one_pass_draws),
        cmocka_unit_test(a_slab_that_should_make_a_picture_is_a_bug),
        cmocka_unit_test(a_cpu_refuses_to_draw_fast),
        cmocka_unit_test(longer_lists_give_the_same_picture),
        cmocka_unit_test(the_number_of_pairs_is_a_bound),
        cmocka_unit_test(empty_lists_give_the_background),
        cmocka_unit_test(one_gaussian_has_its_alpha_at_its_centre),
        cmocka_unit_test(a_pixel_stops_before_the_gaussian_that_ends_it),
        cmocka_unit_test(a_transmittance_of_exactly_the_limit_divides_the_profiles),
        cmocka_unit_test(infinite_colours_stay_where_they_are_drawn),
        cmocka_unit_test(a_rank_beyond_the_splats_is_bad_input),
        cmocka_unit_test(a_bad_rank_behind_an_opaque_tile_is_found),
    };
    const char *seed = getenv("SEED");
    state = seed ? strtoull(seed, NULL, 10) : 1;
    print_message("SEED=%llu\n", (unsigned long long)state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
