/* blend_weights_test -- each Gaussian's share of a picture, its peak and the sum of its alpha
 * against a plain blend in double, against the picture that raster draws, and against itself on
 * other threads, instruction sets, bands and in slabs. */
#include "kernels/math/power_math.h"
#include "kernels/arrays.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 400 };

typedef struct {
    kiln_view view;
    kiln_profile_id profile;
    uint64_t n, capacity;
    kiln_splat2d splats[N];
    uint32_t *tile_counts, *ranks;
} scene;

static uint64_t seed;

static double uniform(void) /* [0, 1) */
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull; /* Knuth, MMIX */
    return (double)(seed >> 11) * 0x1p-53;
}

static void call(const kiln_ops *ops, kiln_op_id op, unsigned threads, const void *args)
{
    const kiln_exec x = {.device = -1, .threads = threads};
    kiln_error err = {0};
    size_t bytes = 0;
    assert_int_equal(kiln_op_call(ops, op, &x, args, NULL, &bytes, &err), KILN_OK);
    void *work = malloc(bytes + 1);
    assert_non_null(work);
    assert_int_equal(kiln_op_call(ops, op, &x, args, work, &bytes, &err), KILN_OK);
    free(work);
}

static void set_splat(scene *s, uint64_t i, double size, double ratio, float opacity)
{
    const double angle = 6.283185307179586 * uniform(), c = cos(angle), d = sin(angle),
                 a = size * size, b = a * ratio * ratio;
    const double xx = a * c * c + b * d * d + 0.3, yy = a * d * d + b * c * c + 0.3,
                 xy = (a - b) * c * d, det = xx * yy - xy * xy;
    s->splats[i] =
        (kiln_splat2d){.x = (float)(s->view.width * (1.2 * uniform() - 0.1)),
                       .y = (float)(s->view.height * (1.2 * uniform() - 0.1)),
                       .conic = {(float)(yy / det), (float)(-xy / det), (float)(xx / det)},
                       .opacity = opacity,
                       .power_min = kiln_power_min(opacity),
                       .rgb = {1, 1, 1},
                       .depth = 1.0f + (float)i,
                       .tile_x1 = (int32_t)kiln_view_tiles_x(&s->view),
                       .tile_y1 = (int32_t)kiln_view_tiles_y(&s->view)};
}

/* Lists of [first, end); ranks count from `first`. */
static void make_lists(scene *s, uint64_t first, uint64_t end)
{
    const uint32_t rows = kiln_view_tiles_y(&s->view);
    uint64_t row_pairs[64] = {0};
    const kiln_tile_pairs_count_args c = {.n = end - first,
                                          .splats = s->splats + first,
                                          .view = &s->view,
                                          .row1 = rows,
                                          .row_pairs = row_pairs};
    assert_true(rows <= 64);
    call(kiln_ops_cpu(), KILN_OP_tile_pairs_count, 1, &c);
    s->capacity = 0;
    for (uint32_t r = 0; r < rows; r++) s->capacity += row_pairs[r];
    free(s->ranks);
    free(s->tile_counts);
    s->ranks = malloc((s->capacity + 1) * sizeof *s->ranks);
    s->tile_counts = calloc((size_t)kiln_view_tiles_x(&s->view) * rows, sizeof *s->tile_counts);
    assert_true(s->ranks && s->tile_counts);
    const kiln_tile_pairs_emit_args e = {.n = end - first,
                                         .splats = s->splats + first,
                                         .view = &s->view,
                                         .row1 = rows,
                                         .capacity = s->capacity,
                                         .tile_counts = s->tile_counts,
                                         .ranks = s->ranks};
    call(kiln_ops_cpu(), KILN_OP_tile_pairs_emit, 1, &e);
}

static scene *scene_make(uint32_t width, uint32_t height, kiln_profile_id profile, double largest,
                         double opaque)
{
    scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->view = (kiln_view){.width = width, .height = height};
    s->profile = profile;
    s->n = N;
    for (uint64_t i = 0; i < N; i++)
        set_splat(s, i, pow(10, -0.5 + (log10(largest) + 0.5) * uniform()),
                  pow(10, -1.2 * uniform()),
                  (float)(uniform() < opaque ? 0.9 + 0.1 * uniform() : 0.4 * uniform()));
    make_lists(s, 0, N);
    return s;
}

static void scene_free(scene *s)
{
    free(s->ranks);
    free(s->tile_counts);
    free(s);
}

/* All that a call gives. */
typedef struct {
    uint64_t weights[N], alphas[N];
    uint32_t peaks[N];
} totals;

/* Of Gaussians from `first_one` on. */
static kiln_blend_weights_args args_of(const scene *s, uint32_t row0, uint32_t row1, totals *to,
                                       uint64_t first_one)
{
    const uint32_t tiles_x = kiln_view_tiles_x(&s->view);
    uint64_t first = 0, pairs = 0;
    for (uint32_t i = 0; i < row0 * tiles_x; i++) first += s->tile_counts[i];
    for (uint32_t i = row0 * tiles_x; i < row1 * tiles_x; i++) pairs += s->tile_counts[i];
    return (kiln_blend_weights_args){.n = s->n,
                                     .splats = s->splats,
                                     .view = &s->view,
                                     .profile = s->profile,
                                     .row0 = row0,
                                     .row1 = row1,
                                     .tile_counts = s->tile_counts + (size_t)row0 * tiles_x,
                                     .ranks = s->ranks + first,
                                     .n_pairs = pairs,
                                     .weights = to->weights + first_one,
                                     .peaks = to->peaks + first_one,
                                     .alphas = to->alphas + first_one};
}

static void weigh_all(const kiln_ops *ops, unsigned threads, const scene *s, const uint8_t *mask,
                      totals *to)
{
    kiln_blend_weights_args a = args_of(s, 0, kiln_view_tiles_y(&s->view), to, 0);
    memset(to, 0, sizeof *to);
    a.mask = mask;
    call(ops, KILN_OP_blend_weights, threads, &a);
}

/* Some pixels in runs that end anywhere, whole tiles among them. */
static uint8_t *make_mask(const scene *s)
{
    uint8_t *mask = calloc((size_t)s->view.width * s->view.height, 1);
    assert_non_null(mask);
    for (uint32_t y = 0; y < s->view.height; y++)
        for (uint32_t x = 0; x < s->view.width; x++)
            mask[(size_t)y * s->view.width + x] = (uint8_t)(x >= 18 && (7 * y + x) / 19 % 3 != 0);
    return mask;
}

typedef struct {
    double shares[N], peaks[N], alphas[N];
} plain_totals;

/* The definition, in double. */
static void plain(const scene *s, const uint8_t *mask, plain_totals *to)
{
    const double max_alpha = s->profile == KILN_PROFILE_GSPLAT_15 ? 0.999 : 0.99;
    memset(to, 0, sizeof *to);
    for (uint32_t at = 0; at < s->view.width * s->view.height; at++) {
        double t = 1;
        for (uint64_t i = 0; i < s->n && (!mask || mask[at]); i++) {
            const kiln_splat2d *p = &s->splats[i];
            const double dx = p->x - (at % s->view.width + 0.5),
                         dy = p->y - (at / s->view.width + 0.5);
            const double power =
                -0.5 * ((double)p->conic[0] * dx * dx + (double)p->conic[2] * dy * dy) -
                (double)p->conic[1] * dx * dy;
            const double alpha = fmin(max_alpha, p->opacity * exp(power));
            if (alpha * 255 < 1) continue;
            to->alphas[i] += alpha;
            if (t == 0 || t * (1 - alpha) < 1e-4) {
                t = 0;
                continue;
            }
            to->shares[i] += alpha * t;
            to->peaks[i] = fmax(to->peaks[i], alpha * t);
            t *= 1 - alpha;
        }
    }
}

/* A pixel may be decided the other way: 1/255 of it. */
static void must_be_near(const char *what, uint64_t i, double units, double want)
{
    const double got = units / KILN_BLEND_UNIT;
    if (fabs(got - want) > 5e-3 + 1e-5 * want)
        fail_msg("the %s of Gaussian %d is %.9g, not %.9g", what, (int)i, got, want);
}

static void all_are_those_of_the_plain_blend(void **unused)
{
    (void)unused;
    for (uint32_t k = 0; k < 12; k++) {
        scene *s = scene_make(70 + k, 50, (kiln_profile_id)(k % 3), k % 6 < 3 ? 8 : 40,
                              k % 2 ? 0.05 : 0.5);
        uint8_t *mask = k < 6 ? NULL : make_mask(s);
        totals got;
        plain_totals want;
        weigh_all(kiln_ops_cpu(), 2, s, mask, &got);
        plain(s, mask, &want);
        for (uint64_t i = 0; i < N; i++) {
            must_be_near("share", i, (double)got.weights[i], want.shares[i]);
            must_be_near("peak", i, (double)got.peaks[i], want.peaks[i]);
            must_be_near("alpha", i, (double)got.alphas[i], want.alphas[i]);
        }
        free(mask);
        scene_free(s);
    }
}

/* Nothing that is asked for besides changes what is asked for. */
static void each_form_gives_the_same(void **unused)
{
    (void)unused;
    scene *s = scene_make(90, 61, KILN_PROFILE_INRIA, 30, 0.5);
    uint8_t *mask = make_mask(s);
    for (unsigned k = 0; k < 8; k++) {
        totals all, some = {{0}, {0}, {0}};
        weigh_all(kiln_ops_cpu(), 2, s, k & 4 ? mask : NULL, &all);
        kiln_blend_weights_args a = args_of(s, 0, kiln_view_tiles_y(&s->view), &some, 0);
        a.mask = k & 4 ? mask : NULL;
        if (!(k & 1)) a.peaks = NULL;
        if (!(k & 2)) a.alphas = NULL;
        call(k % 3 ? kiln_ops_cpu() : kiln_ops_cpu_baseline(), KILN_OP_blend_weights, 2, &a);
        assert_memory_equal(all.weights, some.weights, sizeof all.weights);
        if (a.peaks) assert_memory_equal(all.peaks, some.peaks, sizeof all.peaks);
        if (a.alphas) assert_memory_equal(all.alphas, some.alphas, sizeof all.alphas);
    }
    free(mask);
    scene_free(s);
}

/* What all Gaussians have of the picture together is what raster says that they cover: 2^-24 a
 * pixel and Gaussian is cut off. */
static void shares_sum_up_to_what_raster_covers(void **unused)
{
    (void)unused;
    scene *s = scene_make(90, 61, KILN_PROFILE_GSPLAT_16, 25, 0.2);
    totals got;
    uint64_t all = 0;
    float *rgba = malloc((size_t)90 * 61 * 4 * sizeof *rgba);
    double covered = 0;
    weigh_all(kiln_ops_cpu(), 1, s, NULL, &got);
    for (uint64_t i = 0; i < N; i++) all += got.weights[i];
    const kiln_raster_args a = {.n = s->n,
                                .splats = s->splats,
                                .view = &s->view,
                                .profile = s->profile,
                                .row1 = kiln_view_tiles_y(&s->view),
                                .tile_counts = s->tile_counts,
                                .ranks = s->ranks,
                                .n_pairs = s->capacity,
                                .rgba = rgba};
    call(kiln_ops_cpu(), KILN_OP_raster, 1, &a);
    for (uint32_t i = 0; i < 90 * 61; i++) covered += (double)rgba[4 * i + 3];
    assert_true(covered > 1000);
    assert_true(fabs((double)all / KILN_BLEND_UNIT - covered) < 1e-5 * covered);
    free(rgba);
    scene_free(s);
}

static void shares_do_not_depend_on_threads_instructions_or_bands(void **unused)
{
    (void)unused;
    scene *s = scene_make(203, 150, KILN_PROFILE_INRIA, 60, 0.1);
    const uint32_t rows = kiln_view_tiles_y(&s->view);
    uint8_t *mask = make_mask(s);
    totals first, got;
    weigh_all(kiln_ops_cpu_baseline(), 1, s, mask, &first);
    for (unsigned threads = 1; threads <= 4; threads++) {
        weigh_all(threads % 2 ? kiln_ops_cpu() : kiln_ops_cpu_baseline(), threads, s, mask, &got);
        assert_memory_equal(&first, &got, sizeof first);
    }
    memset(&got, 0, sizeof got);
    for (uint32_t row = 0, step = 1; row < rows; row += step, step = 3 - step) {
        kiln_blend_weights_args a = args_of(s, row, row + step < rows ? row + step : rows, &got, 0);
        a.mask = mask + (size_t)row * KILN_TILE * s->view.width;
        call(kiln_ops_cpu(), KILN_OP_blend_weights, 2, &a);
    }
    assert_memory_equal(&first, &got, sizeof first);
    free(mask);
    scene_free(s);
}

static void slabs_give_the_same_shares(void **unused)
{
    (void)unused;
    for (uint32_t k = 0; k < 4; k++) {
        scene *s = scene_make(73, 50 + k, (kiln_profile_id)(k % 3), 30, k < 2 ? 0.5 : 0.02);
        const size_t pixels = (size_t)s->view.width * s->view.height;
        uint8_t *mask = k % 2 ? make_mask(s) : NULL;
        totals whole, got = {{0}, {0}, {0}};
        uint64_t stopped = 0;
        weigh_all(kiln_ops_cpu(), 2, s, mask, &whole);
        kiln_raster_state *between = calloc(pixels, sizeof *between);
        assert_non_null(between);
        for (uint64_t first = 0, step = 1; first < N; first += step, step = step % 97 * 3 + 1) {
            const uint64_t end = first + step < N ? first + step : N;
            make_lists(s, first, end);
            kiln_blend_weights_args a = args_of(s, 0, kiln_view_tiles_y(&s->view), &got, first);
            a.splats += first;
            a.n = end - first;
            a.state = between;
            a.mask = mask;
            call(step % 2 ? kiln_ops_cpu() : kiln_ops_cpu_baseline(), KILN_OP_blend_weights, 2, &a);
        }
        for (size_t i = 0; i < pixels; i++) stopped += between[i].left < 0;
        assert_true(k < 2 ? stopped > 0 : stopped < pixels);
        assert_memory_equal(&whole, &got, sizeof whole);
        free(between);
        free(mask);
        scene_free(s);
    }
}

static void a_rank_that_names_nothing_is_refused(void **unused)
{
    (void)unused;
    scene *s = scene_make(40, 40, KILN_PROFILE_INRIA, 20, 0.5);
    totals got = {{0}, {0}, {0}};
    uint64_t work[64];
    size_t bytes = sizeof work;
    const kiln_exec x = {.device = -1, .threads = 2};
    kiln_error err = {0};
    const kiln_blend_weights_args a = args_of(s, 0, kiln_view_tiles_y(&s->view), &got, 0);
    s->ranks[s->capacity - 1] = N;
    assert_int_equal(kiln_ops_cpu()->blend_weights(&x, &a, work, &bytes, &err), KILN_E_INPUT);
    assert_non_null(strstr(err.msg, "does not exist"));
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_those_of_the_plain_blend),
        cmocka_unit_test(each_form_gives_the_same),
        cmocka_unit_test(shares_sum_up_to_what_raster_covers),
        cmocka_unit_test(shares_do_not_depend_on_threads_instructions_or_bands),
        cmocka_unit_test(slabs_give_the_same_shares),
        cmocka_unit_test(a_rank_that_names_nothing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
