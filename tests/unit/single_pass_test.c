/* single_pass_test -- pictures drawn in a single pass (kernels/draw/single_pass.c), on a device of
 * host memory: they have the bits of the counted pictures, within any bounds and when a step
 * fails. */
#include "kernels/draw/store.h"
#include "tests/unit/draw_device.h"

static const float background[3] = {0.1f, 0.5f, 2};

enum { AT_ONCE = 3 }; /* launches of a scene in one piece: project, tile_lists, raster */

/* A view's picture, which must be the right one where there is one. */
static kiln_status view_draw(const device *d, scene *s, const picture *right, kiln_error *err)
{
    kiln_draw_stats stats = {.drawn = 77};
    picture p = {.pixels = right->pixels,
                 .rgba = memory(right->pixels, 16),
                 .depth = memory(right->pixels, 4)};
    s->draw.store = d->store;
    fake.launches = fake.waits = s->asked = 0;
    fake.bytes_in = fake.bytes_out = 0;
    const kiln_draw_want want = {.background = background, .rgba = p.rgba, .depth = p.depth};
    const kiln_status st = kiln_draw(d->runner, &s->draw, &want, &stats, err);
    assert_int_equal(fake.in_flight, 0);
    assert_int_equal(fake.n_copies, 0);
    if (st == KILN_OK) {
        assert_memory_equal(right->rgba, p.rgba, 16 * p.pixels);
        assert_memory_equal(right->depth, p.depth, 4 * p.pixels);
        assert_int_equal(stats.visible, right->drawing.n);
        assert_int_equal(stats.pairs, right->pairs);
        assert_int_equal(stats.listed, right->pairs);
        assert_int_equal(stats.slabs + stats.drawn, 0);
    }
    picture_free(&p);
    s->draw.store = NULL;
    return st;
}

static void must_draw(const device *d, scene *s, const picture *right)
{
    kiln_error err = {0};
    if (view_draw(d, s, right, &err) != KILN_OK)
        fail_msg("cap %llu: %s", (unsigned long long)d->cap, err.msg);
}

/* The first picture tells how much room the second needs, of which nothing but the picture and a
 * few numbers leave the device. */
static void a_second_picture_waits_once(void **state)
{
    scene s;
    picture right;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 14);
    draw_on_cpu(&right, &s);
    device d = device_open(LARGE);
    must_draw(&d, &s, &right);
    assert_true(fake.waits > 3 && fake.launches > AT_ONCE);
    assert_int_equal(kiln_store_sizes(d.store)->visible, right.drawing.n);
    assert_int_equal(kiln_store_sizes(d.store)->pairs, right.pairs);
    for (unsigned turn = 0; turn < 2; turn++) {
        kiln_store_sizes(d.store)->visible += 5;
        kiln_store_sizes(d.store)->pairs += 5;
        must_draw(&d, &s, &right);
        assert_int_equal(kiln_store_sizes(d.store)->visible, right.drawing.n);
        assert_int_equal(kiln_store_sizes(d.store)->pairs, right.pairs);
        assert_int_equal(fake.waits, 1);
        assert_int_equal(fake.launches, AT_ONCE);
        assert_int_equal(fake.bytes_in, 0);
        assert_true(fake.bytes_out >= right.pixels * 20 && fake.bytes_out < right.pixels * 20 + 64);
    }
    device_close(&d);
    picture_free(&right);
    scene_free(&s);
}

/* The picture stays where it is; its hashes, the rows of its PNG and its bytes come, with or
 * without its floats. A large picture is drawn and copied in parts. */
static void check_outputs(uint32_t width, uint32_t height, kiln_pixel_layout layout, unsigned step)
{
    enum { FLOATS = 1, DEPTH = 2, HASHES = 4, ROWS = 8, COLOURS = 16, ALL = 31, NUMBERS = 64 };
    enum { BYTES_OF_A_PART = 4000000 };
    scene s;
    picture right;
    scene_make(&s, width, height, KILN_PROFILE_INRIA, 14);
    draw_on_cpu(&right, &s);
    kiln_png_rows_args png = {.width = width,
                              .height = height,
                              .n = height,
                              .step = 4,
                              .channels = 4,
                              .bits = 8,
                              .straight = true};
    const size_t pixels = right.pixels,
                 hash_bytes = KILN_PIXEL_HASH_BYTES * kiln_pixel_pieces(pixels);
    const size_t row_bytes = png.n * kiln_png_row_bytes(&png);
    kiln_pixel_bytes_args colours = {
        .width = width - 2, .height = height / 2, .stride = width, .layout = layout};
    const size_t colour_bytes =
        kiln_pixel_bytes_size(colours.layout, colours.width, colours.height);
    const size_t all_bytes = hash_bytes + row_bytes + colour_bytes;
    unsigned char *const want = memory(all_bytes, 1), *const got = memory(all_bytes, 1);
    unsigned char *const work = memory(2 * row_bytes, 1);
    const kiln_exec cpu = {.device = -1, .threads = 1};
    const kiln_pixel_hashes_args hashes = {.pixels = pixels, .rgba = right.rgba, .hashes = want};
    kiln_error err = {0};
    size_t work_bytes = 2 * row_bytes;
    memcpy(png.over, background, sizeof png.over);
    png.pixels = right.rgba;
    png.rows = want + hash_bytes;
    assert_int_equal(kiln_ops_cpu()->pixel_hashes(&cpu, &hashes, work, &work_bytes, &err), KILN_OK);
    assert_int_equal(kiln_ops_cpu()->png_rows(&cpu, &png, work, &work_bytes, &err), KILN_OK);
    colours.pixels = right.rgba;
    colours.bytes = want + hash_bytes + row_bytes;
    assert_int_equal(kiln_ops_cpu()->pixel_bytes(&cpu, &colours, work, &work_bytes, &err), KILN_OK);
    png.pixels = NULL;
    png.rows = got + hash_bytes;
    colours.pixels = NULL;
    colours.bytes = got + hash_bytes + row_bytes;
    device d = device_open(LARGE);
    must_draw(&d, &s, &right);
    s.draw.store = d.store;
    for (unsigned which = 0; which <= ALL; which += step) {
        float *const rgba = memory(pixels, 16), *const depth = memory(pixels, 4);
        const kiln_draw_outputs to = {.rgba = which & FLOATS ? rgba : NULL,
                                      .depth = which & DEPTH ? depth : NULL,
                                      .hashes = which & HASHES ? got : NULL,
                                      .png = which & ROWS ? &png : NULL,
                                      .bytes = which & COLOURS ? &colours : NULL};
        const size_t bytes = (which & FLOATS ? 16 * pixels : 0) + (which & DEPTH ? 4 * pixels : 0) +
                             (which & HASHES ? hash_bytes : 0) + (which & ROWS ? row_bytes : 0) +
                             (which & COLOURS ? colour_bytes : 0);
        const kiln_draw_want pass = {
            .ways = KILN_DRAW_SINGLE_PASS, .background = background, .single_pass = &to};
        kiln_draw_stats stats;
        memset(got, 0, all_bytes);
        fake.launches = fake.waits = 0;
        fake.bytes_out = 0;
        assert_int_equal(kiln_draw(d.runner, &s.draw, &pass, &stats, &err), KILN_OK);
        assert_true(stats.way == KILN_DRAW_SINGLE_PASS && fake.waits == 1 &&
                    fake.bytes_out >= bytes && fake.bytes_out < bytes + NUMBERS);
        const bool cut = which & COLOURS && layout != KILN_PIXELS_YUV420;
        const size_t large = (which & FLOATS ? 16 * pixels : 0) + (which & ROWS ? row_bytes : 0) +
                             (cut ? colour_bytes : 0);
        const unsigned parts = 1 + (unsigned)(large / BYTES_OF_A_PART);
        unsigned launches = AT_ONCE - 1 + parts + !!(which & HASHES) + (which & ROWS ? parts : 0);
        /* none of them are in the last part */
        if (which & COLOURS) launches += cut && parts > 1 ? parts - 1 : 1;
        assert_int_equal(fake.launches, launches);
        assert_int_equal(stats.pairs, right.pairs);
        if (which & FLOATS) assert_memory_equal(rgba, right.rgba, 16 * pixels);
        if (which & DEPTH) assert_memory_equal(depth, right.depth, 4 * pixels);
        if (which & HASHES) assert_memory_equal(got, want, hash_bytes);
        if (which & ROWS) assert_memory_equal(got + hash_bytes, want + hash_bytes, row_bytes);
        if (which & COLOURS)
            assert_memory_equal(colours.bytes, want + hash_bytes + row_bytes, colour_bytes);
        free(depth);
        free(rgba);
    }
    s.draw.store = NULL;
    device_close(&d);
    free(work);
    free(got);
    free(want);
    picture_free(&right);
    scene_free(&s);
}

static void what_is_not_wanted_stays_on_the_device(void **state)
{
    (void)state;
    check_outputs(333, 217, KILN_PIXELS_YUV420, 1);
    check_outputs(1030, 531, KILN_PIXELS_RGB, 5);
}

/* At every cap the right picture; and planes that are there are not thrown out for the room of
 * one. */
static void no_cap_changes_a_picture(void **state)
{
    /* project and visible_gather of two chunks; bytes of which each counts */
    enum { BY_CHUNKS = 6, FEW = 4 << 20 };
    scene s;
    picture right;
    unsigned at_once = 0, by_chunks = 0, counted = 0;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_GSPLAT_15, 15);
    draw_on_cpu(&right, &s);
    for (uint64_t cap = 300000; cap <= LARGE; cap += cap < FEW ? cap / 128 : cap / 4) {
        device d = device_open(cap);
        for (unsigned turn = 0; turn < 3; turn++) {
            const uint64_t before = kiln_store_planes_bytes(d.store);
            must_draw(&d, &s, &right);
            if (fake.launches <= BY_CHUNKS) assert_true(kiln_store_planes_bytes(d.store) >= before);
        }
        at_once += fake.launches == AT_ONCE;
        by_chunks += fake.launches == BY_CHUNKS;
        counted += fake.launches > BY_CHUNKS;
        if (cap > LARGE / 2) assert_int_equal(fake.launches, AT_ONCE);
        device_close(&d);
    }
    assert_true(at_once > 5 && by_chunks > 0 && counted > 5);
    picture_free(&right);
    scene_free(&s);
}

/* More is to be seen than there is room for: a second pass has room, as has the next one. If both
 * bounds are too low, the second pass lacks room for pairs, which the first could not count. */
static void bounds_that_were_too_low_are_made_up_for(void **state)
{
    scene s;
    picture right;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 17);
    draw_on_cpu(&right, &s);
    /* more than what is added to any bound */
    assert_true(right.drawing.n > 300 && right.pairs > 300);
    device d = device_open(LARGE);
    must_draw(&d, &s, &right);
    for (unsigned which = 1; which <= 3; which++) {
        if (which & 1) kiln_store_sizes(d.store)->visible = 1;
        if (which & 2) kiln_store_sizes(d.store)->pairs = 1;
        must_draw(&d, &s, &right);
        assert_int_equal(fake.launches == 2 * AT_ONCE, which < 3);
        assert_int_equal(fake.waits == 2, which < 3);
        assert_true(fake.launches >= 2 * AT_ONCE);
        assert_int_equal(kiln_store_sizes(d.store)->visible, right.drawing.n);
        assert_int_equal(kiln_store_sizes(d.store)->pairs, right.pairs);
        must_draw(&d, &s, &right);
        assert_int_equal(fake.launches, AT_ONCE);
    }
    device_close(&d);
    picture_free(&right);
    scene_free(&s);
}

/* A large view leaves room for a while, which gets less with each picture. */
static void what_the_most_had_fades(void **state)
{
    enum { MANY = 1 << 20 };
    scene s;
    picture right;
    (void)state;
    scene_make(&s, 120, 90, KILN_PROFILE_INRIA, 17);
    draw_on_cpu(&right, &s);
    device d = device_open(LARGE);
    must_draw(&d, &s, &right);
    kiln_store_sizes(d.store)->pairs = MANY;
    for (uint64_t before = MANY; kiln_store_sizes(d.store)->pairs > right.pairs;
         before = kiln_store_sizes(d.store)->pairs) {
        must_draw(&d, &s, &right);
        assert_int_equal(fake.launches, AT_ONCE);
        assert_true(kiln_store_sizes(d.store)->pairs < before &&
                    kiln_store_sizes(d.store)->pairs > before - before / 32);
    }
    assert_int_equal(kiln_store_sizes(d.store)->pairs, right.pairs);
    assert_int_equal(kiln_store_sizes(d.store)->visible, right.drawing.n);
    device_close(&d);
    picture_free(&right);
    scene_free(&s);
}

/* Bounds are of one scene; a drawing or a count of it in between spoils nothing. */
static void another_scene_begins_anew(void **state)
{
    scene s[2];
    picture right[2];
    kiln_drawing drawing;
    kiln_error err = {0};
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        scene_make(&s[k], 200 + 60 * k, 170, KILN_PROFILE_INRIA, 20 + k);
        draw_on_cpu(&right[k], &s[k]);
    }
    device d = device_open(LARGE);
    for (unsigned turn = 0; turn < 8; turn++) {
        const unsigned k = turn / 2 % 2;
        must_draw(&d, &s[k], &right[k]);
        assert_int_equal(fake.launches == AT_ONCE, turn % 2 == 1);
    }
    s[1].draw.store = d.store;
    assert_int_equal(kiln_draw_collect(d.runner, &s[1].draw, &drawing, &err), KILN_OK);
    must_draw(&d, &s[1], &right[1]); /* beside it there is no place */
    kiln_drawing_release(&drawing);
    must_draw(&d, &s[1], &right[1]);
    assert_true(fake.launches > AT_ONCE);
    must_draw(&d, &s[1], &right[1]);
    assert_int_equal(fake.launches, AT_ONCE);
    device_close(&d);
    for (unsigned k = 0; k < 2; k++) {
        picture_free(&right[k]);
        scene_free(&s[k]);
    }
}

/* A chunk that is seen for the first time brings its planes. */
static void a_chunk_comes_when_it_is_seen_first(void **state)
{
    scene s;
    picture right[2];
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 15);
    for (unsigned k = 0; k < 2; k++) {
        s.last_hidden = k == 0;
        draw_on_cpu(&right[k], &s);
    }
    device d = device_open(LARGE);
    for (unsigned k = 0; k < 2; k++) {
        s.last_hidden = k == 0;
        must_draw(&d, &s, &right[k]);
        assert_int_equal(s.asked, 1);
        must_draw(&d, &s, &right[k]);
        assert_int_equal(s.asked, 0);
        assert_int_equal(fake.launches, AT_ONCE);
    }
    device_close(&d);
    for (unsigned k = 0; k < 2; k++) picture_free(&right[k]);
    scene_free(&s);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* The step fails at its 1st, 2nd, ... time of a second picture, whose bounds hold or do not.
 * Returns how many times there are. */
static unsigned break_second(scene *s, const picture *right, uint64_t cap, bool too_low,
                             fake_step step, kiln_status want)
{
    for (unsigned time = 1;; time++) {
        kiln_error err = {0};
        device d = device_open(cap);
        must_draw(&d, s, right);
        if (too_low) /* two passes, then the counted picture */
            kiln_store_sizes(d.store)->visible = kiln_store_sizes(d.store)->pairs = 1;
        fake.fail = step;
        fake.fail_in = time;
        const kiln_status st = view_draw(&d, s, right, &err);
        const bool failed = fake.fail_in == 0;
        assert_int_equal(st, failed ? want : KILN_OK);
        fake.fail = FAKE_NOTHING;
        /* nothing half done is taken for done */
        for (unsigned turn = 0; turn < 2; turn++) must_draw(&d, s, right);
        device_close(&d);
        if (!failed) return time - 1;
    }
}

static void what_breaks_off_leaves_nothing(void **state)
{
    static const uint64_t caps[] = {(uint64_t)1 << 30, 2500000};
    scene s;
    picture right;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 17);
    draw_on_cpu(&right, &s);
    for (unsigned c = 0; c < sizeof caps / sizeof *caps; c++) {
        assert_true(break_second(&s, &right, caps[c], false, FAKE_LAUNCH, KILN_E_DEVICE) >=
                    AT_ONCE);
        assert_true(break_second(&s, &right, caps[c], false, FAKE_COPY_OUT, KILN_E_DEVICE) >= 3);
        assert_true(break_second(&s, &right, caps[c], false, FAKE_WAIT, KILN_E_DEVICE) >= 1);
        assert_true(break_second(&s, &right, caps[c], true, FAKE_LAUNCH, KILN_E_DEVICE) >
                    AT_ONCE + 5);
        assert_true(break_second(&s, &right, caps[c], true, FAKE_WAIT, KILN_E_DEVICE) > 3);
        /* memory that is gone is no failure */
        (void)break_second(&s, &right, caps[c], false, FAKE_FULL, KILN_OK);
    }
    picture_free(&right);
    scene_free(&s);
}

static void a_violation_in_the_data_gives_its_sentence(void **state)
{
    scene s;
    picture right;
    kiln_error err = {0};
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 13);
    draw_on_cpu(&right, &s);
    device d = device_open(LARGE);
    must_draw(&d, &s, &right);
    fake.violation = KILN_VIOLATION(KILN_VIOLATION_RASTER_RANK, 5);
    assert_int_equal(view_draw(&d, &s, &right, &err), KILN_E_INPUT);
    assert_non_null(strstr(err.msg, "pair 5 names a Gaussian that does not exist"));
    must_draw(&d, &s, &right); /* it does not stay */
    device_close(&d);
    picture_free(&right);
    scene_free(&s);
}

/* Without a store, with one on the CPU, and without a word of what was drawn. */
static void a_view_needs_no_device(void **state)
{
    scene s;
    picture right;
    kiln_error err = {0};
    (void)state;
    fake_reset();
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 15);
    draw_on_cpu(&right, &s);
    device d = {.runner = fake_runner(KILN_RUNNER_CPU, 0)};
    must_draw(&d, &s, &right);
    assert_int_equal(kiln_draw_store_new(d.runner, &d.store, &err), KILN_OK);
    for (unsigned turn = 0; turn < 2; turn++) must_draw(&d, &s, &right);
    const kiln_draw_want want = {.rgba = right.rgba};
    assert_int_equal(kiln_draw(d.runner, &s.draw, &want, NULL, &err), KILN_OK);
    assert_int_equal(fake.peak, 0);
    kiln_draw_store_free(d.store);
    kiln_runner_free(d.runner);
    picture_free(&right);
    scene_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_picture_waits_once),
        cmocka_unit_test(what_is_not_wanted_stays_on_the_device),
        cmocka_unit_test(no_cap_changes_a_picture),
        cmocka_unit_test(bounds_that_were_too_low_are_made_up_for),
        cmocka_unit_test(what_the_most_had_fades),
        cmocka_unit_test(another_scene_begins_anew),
        cmocka_unit_test(a_chunk_comes_when_it_is_seen_first),
        cmocka_unit_test(what_breaks_off_leaves_nothing),
        cmocka_unit_test(a_violation_in_the_data_gives_its_sentence),
        cmocka_unit_test(a_view_needs_no_device),
    };
    return cmocka_run_group_tests_name("at_once", tests, fake_nothing_is_left,
                                       fake_nothing_is_left);
}
