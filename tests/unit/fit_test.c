/* fit_test -- lists and pictures in parts (kernels/draw/fit.h, kernels/draw/draw.h) on a device of
 * host memory (fake_device.h): no cap and no full device changes a bit, the cap holds, what fails
 * leaves nothing behind. */
#include "kernels/draw/draw.h"
#include "kernels/draw/fit.h"
#include "tests/unit/draw_scene.h"

#include <stdio.h>
#include <string.h>

/* From nothing fits to all fits; between them are those at which one operation or a part of one
 * does. */
static const uint64_t caps[] = {1,      3000,   20000,  60000,   100000,
                                150000, 250000, 500000, 2000000, (uint64_t)1 << 30};
enum { CAPS = sizeof caps / sizeof *caps };

/* ---- caps ------------------------------------------------------------------------------------ */

/* The same picture within the cap; says where it was computed. */
static kiln_runner_info draw_within(const scene *s, const picture *right, uint64_t cap)
{
    picture p;
    kiln_error err = {0};
    fake_reset();
    kiln_runner *r = fake_runner(FAKE_DEVICE, cap);
    if (picture_draw(&p, r, s, &err) != KILN_OK)
        fail_msg("cap %llu: %s", (unsigned long long)cap, err.msg);
    must_be_equal(right, &p);
    const kiln_runner_info info = kiln_runner_get_info(r);
    assert_true(fake.peak <= cap);
    assert_int_equal(info.peak_bytes, fake.peak);
    assert_int_equal(info.n_device, fake.launches);
    kiln_runner_free(r);
    assert_int_equal(fake.held, 0);
    picture_free(&p);
    return info;
}

static void no_cap_changes_a_picture(void **state)
{
    static const struct {
        uint32_t width, height;
        kiln_profile_id profile;
    } requests[] = {{333, 217, KILN_PROFILE_INRIA},
                    {320, 240, KILN_PROFILE_GSPLAT_15},
                    {301, 16, KILN_PROFILE_GSPLAT_16},
                    {200, 201, KILN_PROFILE_INRIA}};
    (void)state;
    for (unsigned k = 0; k < sizeof requests / sizeof *requests; k++) {
        kiln_runner_info info[CAPS];
        scene s;
        picture right;
        bool in_parts = false;
        scene_make(&s, requests[k].width, requests[k].height, requests[k].profile, 10 * k + k % 2);
        draw_on_cpu(&right, &s);
        for (unsigned c = 0; c < CAPS; c++) info[c] = draw_within(&s, &right, caps[c]);
        assert_int_equal(info[0].n_device, 0);
        assert_int_equal(info[CAPS - 1].n_host, 0);
        for (unsigned c = 0; c < CAPS; c++) in_parts |= info[c].n_device > info[CAPS - 1].n_device;
        assert_true(in_parts || requests[k].height <= KILN_TILE); /* one tile row is not cut */
        picture_free(&right);
        scene_free(&s);
    }
}

/* Some times as many Gaussians as kiln_fit_count leaves together: those of a scene, over and
 * over. */
static void no_cap_changes_counts(void **state)
{
    const uint64_t times = 400, some[] = {1, 7 << 20, (uint64_t)1 << 30};
    scene s;
    picture p;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 3);
    draw_on_cpu(&p, &s);
    const uint64_t one = p.drawing.n, n = one * times;
    const uint32_t rows = kiln_view_tiles_y(&s.view);
    kiln_splat2d *splats = memory(n, sizeof *splats);
    uint64_t *counts = memory(rows, sizeof *counts);
    for (uint64_t i = 0; i < n; i++) splats[i] = p.drawing.splats[i % one];
    const kiln_tile_pairs_count_args a = {
        .n = n, .splats = splats, .view = &s.view, .row0 = 0, .row1 = rows, .row_pairs = counts};
    for (unsigned c = 0; c < 3; c++) {
        kiln_error err = {0};
        uint64_t sum = 0;
        fake_reset();
        kiln_runner *r = fake_runner(FAKE_DEVICE, some[c]);
        memset(counts, FAKE_POISON, rows * sizeof *counts);
        assert_int_equal(kiln_fit_count(r, &a, &err), KILN_OK);
        for (uint32_t i = 0; i < rows; i++) sum += counts[i];
        assert_int_equal(sum, times * p.pairs);
        assert_true(fake.peak <= some[c]);
        const kiln_runner_info info = kiln_runner_get_info(r);
        if (c == 0) assert_true(info.n_device == 0 && info.n_host > 1);
        if (c == 1) assert_true(info.n_device > 1 && info.n_host == 0);
        if (c == 2) assert_true(info.n_device == 1 && info.n_host == 0);
        kiln_runner_free(r);
    }
    free(splats);
    free(counts);
    picture_free(&p);
    scene_free(&s);
}

/* Lists of the whole picture, whose need and every smaller cap by halves. */
static void no_cap_changes_lists(void **state)
{
    scene s;
    picture p;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_GSPLAT_15, 5);
    draw_on_cpu(&p, &s);
    const uint32_t rows = kiln_view_tiles_y(&s.view), tiles = rows * kiln_view_tiles_x(&s.view);
    uint32_t *counts[2], *ranks[2];
    for (int i = 0; i < 2; i++) {
        counts[i] = memory(tiles, sizeof **counts);
        ranks[i] = memory(p.pairs, sizeof **ranks);
    }
    kiln_tile_pairs_emit_args a = {.n = p.drawing.n,
                                   .splats = p.drawing.splats,
                                   .view = &s.view,
                                   .row0 = 0,
                                   .row1 = rows,
                                   .capacity = p.pairs,
                                   .tile_counts = counts[0],
                                   .ranks = ranks[0]};
    kiln_error err = {0};
    kiln_runner *r = fake_runner(KILN_RUNNER_CPU, 0);
    assert_int_equal(kiln_fit_emit(r, &a, &err), KILN_OK);
    kiln_runner_free(r);
    a.tile_counts = counts[1];
    a.ranks = ranks[1];
    for (uint64_t cap = (uint64_t)1 << 24; cap > 0; cap /= 2) {
        fake_reset();
        r = fake_runner(FAKE_DEVICE, cap);
        memset(counts[1], FAKE_POISON, tiles * sizeof **counts);
        memset(ranks[1], FAKE_POISON, p.pairs * sizeof **ranks);
        assert_int_equal(kiln_fit_emit(r, &a, &err), KILN_OK);
        assert_memory_equal(counts[0], counts[1], tiles * sizeof **counts);
        assert_memory_equal(ranks[0], ranks[1], p.pairs * sizeof **ranks);
        assert_true(fake.peak <= cap);
        kiln_runner_free(r);
    }
    for (int i = 0; i < 2; i++) {
        free(counts[i]);
        free(ranks[i]);
    }
    picture_free(&p);
    scene_free(&s);
}

/* Tile rows [row0, row1) listed and drawn by themselves on a device are that part of the picture.
 * Returns what was drawn there. */
static kiln_runner_info draw_rows(const scene *s, const picture *right, uint32_t row0,
                                  uint32_t row1, uint64_t cap)
{
    kiln_error err = {0};
    const uint32_t rows = row1 - row0, tiles = rows * kiln_view_tiles_x(&s->view);
    uint64_t *row_pairs = memory(rows, sizeof *row_pairs), pairs = 0;
    const uint64_t first = (uint64_t)row0 * KILN_TILE * s->view.width;
    kiln_raster_args a = {.n = right->drawing.n,
                          .splats = right->drawing.splats,
                          .view = &s->view,
                          .profile = s->draw.profile,
                          .row0 = row0,
                          .row1 = row1,
                          .background = {0.1f, 0.5f, 2}};
    const uint64_t pixels = kiln_raster_pixels(&a);
    fake_reset();
    kiln_runner *r = fake_runner(FAKE_DEVICE, cap);
    const kiln_tile_pairs_count_args count = {.n = a.n,
                                              .splats = a.splats,
                                              .view = a.view,
                                              .row0 = row0,
                                              .row1 = row1,
                                              .row_pairs = row_pairs};
    assert_int_equal(kiln_fit_count(r, &count, &err), KILN_OK);
    for (uint32_t i = 0; i < rows; i++) pairs += row_pairs[i];
    uint32_t *counts = memory(tiles, sizeof *counts), *ranks = memory(pairs, sizeof *ranks);
    a.n_pairs = pairs;
    a.rgba = memory(4 * pixels, sizeof *a.rgba);
    a.depth = memory(pixels, sizeof *a.depth);
    if (kiln_fit_band(r, &a, counts, ranks, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_memory_equal(a.rgba, right->rgba + 4 * first, 4 * pixels * sizeof *a.rgba);
    assert_memory_equal(a.depth, right->depth + first, pixels * sizeof *a.depth);
    assert_true(fake.peak <= cap);
    const kiln_runner_info info = kiln_runner_get_info(r);
    kiln_runner_free(r);
    free(a.rgba);
    free(a.depth);
    free(counts);
    free(ranks);
    free(row_pairs);
    return info;
}

static void bands_by_themselves_are_parts_of_the_picture(void **state)
{
    static const uint32_t bands[][2] = {{0, 1},   {0, 3},  {3, 7}, {6, 13},
                                        {13, 14}, {0, 14}, {2, 12}};
    scene s;
    picture right;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 8);
    draw_on_cpu(&right, &s);
    assert_int_equal(kiln_view_tiles_y(&s.view), 14);
    uint64_t all = 0;
    for (unsigned k = 0; k < sizeof bands / sizeof *bands; k++)
        for (unsigned c = 0; c < CAPS; c++) {
            const kiln_runner_info info = draw_rows(&s, &right, bands[k][0], bands[k][1], caps[c]);
            if (c + 1 == CAPS) {
                assert_int_equal(info.n_host, 0);
                if (bands[k][1] - bands[k][0] == 14) all = info.peak_bytes;
            }
        }
    fake_reset();
    const kiln_runner_info part = draw_rows(&s, &right, 13, 14, (uint64_t)1 << 30);
    assert_true(all > 0 && part.peak_bytes < all); /* of a band less goes to the device */
    picture_free(&right);
    scene_free(&s);
}

/* ---- failures in the middle of a picture ----------------------------------------------------- */

/* Under a cap that makes parts: the given step fails at its 1st, 2nd, ... time. Returns how many
 * times there are. */
static unsigned break_picture(const scene *s, const picture *right, fake_step step,
                              kiln_status want)
{
    const uint64_t cap = 150000;
    for (unsigned time = 1;; time++) {
        picture p;
        kiln_error err = {0};
        fake_reset();
        kiln_runner *r = fake_runner(FAKE_DEVICE, cap);
        fake.fail = step;
        fake.fail_in = time;
        const kiln_status st = picture_draw(&p, r, s, &err);
        const bool failed = fake.fail_in == 0;
        assert_int_equal(fake.in_flight, 0);
        assert_int_equal(st, failed ? want : KILN_OK);
        if (st == KILN_OK) must_be_equal(right, &p);
        assert_true(fake.peak <= cap);
        kiln_runner_free(r);
        picture_free(&p);
        if (!failed) return time - 1;
    }
}

static void a_picture_that_breaks_off_leaves_nothing(void **state)
{
    scene s;
    picture right;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 11);
    draw_on_cpu(&right, &s);
    const unsigned launches = break_picture(&s, &right, FAKE_LAUNCH, KILN_E_DEVICE);
    assert_true(launches > 2 + 3); /* two chunks, count, emit, raster would be all without parts */
    assert_true(break_picture(&s, &right, FAKE_WAIT, KILN_E_DEVICE) >= launches);
    /* memory that is gone is no failure */
    assert_true(break_picture(&s, &right, FAKE_FULL, KILN_OK) > 1);
    picture_free(&right);
    scene_free(&s);
}

static void lists_that_are_not_the_pictures_are_refused_in_parts_too(void **state)
{
    const kiln_view view = {.width = 16, .height = 48};
    const kiln_splat2d splats[3] = {{0}};
    uint32_t counts[3] = {1, 1, 1}, ranks[3] = {0, 3, 0};
    float *rgba = memory((uint64_t)view.width * view.height, 4 * sizeof *rgba);
    kiln_raster_args a = {.n = 3,
                          .splats = splats,
                          .view = &view,
                          .row1 = 3,
                          .tile_counts = counts,
                          .ranks = ranks,
                          .n_pairs = 3,
                          .rgba = rgba};
    kiln_error err = {0};
    (void)state;
    fake_reset();
    kiln_runner *r = fake_runner(FAKE_DEVICE, 1);
    assert_int_equal(kiln_fit_raster(r, &a, &err), KILN_E_INPUT);
    assert_non_null(strstr(err.msg, "Gaussian 3 of 3"));
    ranks[1] = 0;
    counts[0] = 4;
    assert_int_equal(kiln_fit_raster(r, &a, &err), KILN_E_INPUT);
    assert_non_null(strstr(err.msg, "more than the 3 pairs"));
    kiln_runner_free(r);
    free(rgba);
}

static void a_fast_picture_that_finds_no_room_is_told_so(void **state)
{
    const kiln_view view = {.width = 16, .height = 48};
    const kiln_splat2d splats[1] = {{0}};
    const uint32_t counts[3] = {1, 1, 1}, ranks[3] = {0, 0, 0};
    float *rgba = memory((uint64_t)view.width * view.height, 4 * sizeof *rgba);
    kiln_raster_args a = {.n = 1,
                          .splats = splats,
                          .view = &view,
                          .fast = true,
                          .row1 = 3,
                          .tile_counts = counts,
                          .ranks = ranks,
                          .n_pairs = 3,
                          .rgba = rgba};
    kiln_error err = {0};
    (void)state;
    fake_reset();
    kiln_runner *r = fake_runner(FAKE_DEVICE, 1);
    assert_int_equal(kiln_fit_raster(r, &a, &err), KILN_E_CAP);
    assert_non_null(strstr(err.msg, "row of tiles, but only 1 may be taken"));
    assert_non_null(strstr(err.msg, "an exact picture needs less"));
    kiln_runner_free(r);
    free(rgba);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_cap_changes_a_picture),
        cmocka_unit_test(no_cap_changes_counts),
        cmocka_unit_test(no_cap_changes_lists),
        cmocka_unit_test(bands_by_themselves_are_parts_of_the_picture),
        cmocka_unit_test(a_picture_that_breaks_off_leaves_nothing),
        cmocka_unit_test(lists_that_are_not_the_pictures_are_refused_in_parts_too),
        cmocka_unit_test(a_fast_picture_that_finds_no_room_is_told_so),
    };
    return cmocka_run_group_tests_name("fit", tests, fake_nothing_is_left, fake_nothing_is_left);
}
