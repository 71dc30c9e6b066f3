/* slabs_test -- pictures in slabs (kernels/draw/slabs.h): the bits of one pass, wherever the cuts
 * are, on the CPU and on a device of host memory (fake_device.h); what is finished is left out;
 * what fails leaves nothing behind.
 *
 * starts first */
#include "kernels/draw/draw.h"
#include "kernels/draw/resident_collect.h"
#include "tests/unit/draw_scene.h"

#include <stdio.h>

static const float background[3] = {0.1f, 0.5f, 2}; /* as picture_draw has it */

/* In slabs; the same bits as `right`. */
static kiln_draw_stats draw_in_slabs(kiln_runner *r, const scene *s, uint64_t capacity,
                                     const picture *right)
{
    kiln_draw_stats stats;
    kiln_error err = {0};
    float *rgba = memory(right->pixels, 4 * sizeof *rgba),
          *depth = memory(right->pixels, sizeof *depth);
    const kiln_draw_want want = {.ways = KILN_DRAW_SLABS,
                                 .background = background,
                                 .rgba = rgba,
                                 .depth = depth,
                                 .capacity = capacity};
    if (kiln_draw(r, &s->draw, &want, &stats, &err) != KILN_OK)
        fail_msg("slabs of %llu: %s", (unsigned long long)capacity, err.msg);
    assert_memory_equal(right->rgba, rgba, right->pixels * 4 * sizeof *rgba);
    assert_memory_equal(right->depth, depth, right->pixels * sizeof *depth);
    assert_int_equal(stats.visible, right->drawing.n);
    assert_int_equal(stats.pairs, right->pairs);
    assert_true(stats.listed <= stats.pairs && stats.drawn <= stats.slabs);
    assert_true((uint64_t)stats.slabs * capacity >= stats.visible);
    assert_true(stats.drawn == stats.slabs || stats.listed < stats.pairs);
    free(rgba);
    free(depth);
    return stats;
}

static void no_cut_changes_a_picture(void **state)
{
    static const struct {
        uint32_t width, height;
        kiln_profile_id profile;
    } requests[] = {{333, 217, KILN_PROFILE_INRIA},
                    {320, 240, KILN_PROFILE_GSPLAT_15},
                    {301, 16, KILN_PROFILE_GSPLAT_16},
                    {1, 1, KILN_PROFILE_INRIA}};
    (void)state;
    fake_reset();
    kiln_runner *r = fake_runner(KILN_RUNNER_CPU, 0);
    for (unsigned k = 0; k < sizeof requests / sizeof *requests; k++) {
        scene s;
        picture right;
        kiln_error err = {0};
        scene_make(&s, requests[k].width, requests[k].height, requests[k].profile, 30 + k);
        assert_int_equal(picture_draw(&right, r, &s, &err), KILN_OK);
        const uint64_t n = right.drawing.n;
        assert_true(n > 10);
        assert_int_equal(draw_in_slabs(r, &s, n, &right).slabs, 1);
        assert_in_range(draw_in_slabs(r, &s, n / 2 + 1, &right).slabs, 2, 3);
        assert_in_range(draw_in_slabs(r, &s, n / 3 + 1, &right).slabs, 3, 5);
        assert_true(draw_in_slabs(r, &s, 7, &right).slabs >= n / 7);
        if (k > 1) assert_int_equal(draw_in_slabs(r, &s, 1, &right).slabs, n); /* between any two */
        picture_free(&right);
        scene_free(&s);
    }
    kiln_runner_free(r);
}

/* Fifty at a time have one depth and one colour each: their order, and so the picture, is that of
 * their source rows. */
static void equal_depths_are_cut_between_source_rows(void **state)
{
    enum { EQUAL = 50 };
    scene s;
    picture right;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 40);
    for (uint32_t k = 0; k < CHUNKS; k++)
        for (uint64_t i = 0; i < s.chunks[k].n; i++)
            for (uint64_t axis = 0; axis < 3; axis++)
                s.chunks[k].means[axis * s.chunks[k].n + i] =
                    s.chunks[k].means[axis * s.chunks[k].n + i / EQUAL * EQUAL];
    /* not the order of the rows */
    for (uint32_t i = 0; i < s.chunks[0].n; i++) s.rows[i] = (uint32_t)s.chunks[0].n - i;
    draw_on_cpu(&right, &s);
    kiln_runner *r = fake_runner(KILN_RUNNER_CPU, 0);
    for (uint64_t capacity = 5; capacity < 2 * EQUAL; capacity += 9)
        (void)draw_in_slabs(r, &s, capacity, &right);
    kiln_runner_free(r);
    picture_free(&right);
    scene_free(&s);
}

/* The first rows of the first chunk become a wall of the given size, in front of all else. */
static void build_wall(scene *s, float log_scale)
{
    enum { LAYERS = 4 };
    static const float middle[3] = {0.44f, -0.27f, -3.32f};
    const planes *p = &s->chunks[0];
    for (uint64_t i = 0; i < LAYERS; i++) {
        for (uint64_t axis = 0; axis < 3; axis++) {
            p->means[axis * p->n + i] = middle[axis] + (axis == 2 ? 0.01f * (float)i : 0.0f);
            p->log_scales[axis * p->n + i] = axis == 2 ? -5.0f : log_scale;
        }
        for (uint64_t c = 0; c < 4; c++) p->quats[c * p->n + i] = c == 0;
        p->opacity_logits[i] = 8;
    }
}

static void finished_tiles_ask_for_no_more(void **state)
{
    static const float sizes[] = {3, -2}; /* all of the picture, a part of it */
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        scene s;
        picture right;
        scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 50);
        build_wall(&s, sizes[k]);
        draw_on_cpu(&right, &s);
        kiln_runner *r = fake_runner(KILN_RUNNER_CPU, 0);
        s.asked = 0;
        const kiln_draw_stats stats = draw_in_slabs(r, &s, right.drawing.n / 6, &right);
        if (k == 0) {
            assert_in_range(stats.slabs, 6, 8);
            assert_true(stats.drawn < stats.slabs);
            assert_true(s.asked <= CHUNKS + stats.drawn * 2);
        } else {
            assert_int_equal(stats.drawn, stats.slabs);
            assert_true(stats.listed < stats.pairs);
        }
        kiln_runner_free(r);
        picture_free(&right);
        scene_free(&s);
    }
}

/* A slab asks for the chunks that have Gaussians in it: here the first lies before the last. */
static void chunks_of_other_depths_are_not_asked_for(void **state)
{
    scene s;
    picture right;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 60);
    for (uint32_t k = 0; k < CHUNKS; k++)
        for (uint64_t i = 0; i < s.chunks[k].n; i++)
            s.chunks[k].means[2 * s.chunks[k].n + i] = (k == 0 ? 0 : 6) + 0.001f * (float)i;
    s.view.far_m = 100;
    draw_on_cpu(&right, &s);
    kiln_runner *r = fake_runner(KILN_RUNNER_CPU, 0);
    s.asked = 0;
    const kiln_draw_stats stats = draw_in_slabs(r, &s, right.drawing.n / 8, &right);
    assert_true(stats.slabs >= 8);
    assert_in_range(s.asked, CHUNKS + stats.slabs, CHUNKS + stats.slabs + 1);
    kiln_runner_free(r);
    picture_free(&right);
    scene_free(&s);
}

static void no_cap_of_a_device_changes_a_picture(void **state)
{
    scene s;
    picture right;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_GSPLAT_15, 70);
    draw_on_cpu(&right, &s);
    for (uint64_t cap = 5000; cap < (uint64_t)1 << 28; cap *= 3) {
        for (unsigned with_store = 0; with_store < 2; with_store++) {
            kiln_error err = {0};
            fake_reset();
            kiln_runner *r = fake_runner(FAKE_DEVICE, cap);
            if (with_store) assert_int_equal(kiln_draw_store_new(r, &s.draw.store, &err), KILN_OK);
            for (uint64_t capacity = right.drawing.n; capacity > 30; capacity /= 4)
                (void)draw_in_slabs(r, &s, capacity, &right);
            picture p; /* all at once, behind slabs of the same store */
            if (picture_draw(&p, r, &s, &err) != KILN_OK) fail_msg("%s", err.msg);
            must_be_equal(&right, &p);
            picture_free(&p);
            assert_true(fake.peak <= cap);
            kiln_draw_store_free(s.draw.store);
            s.draw.store = NULL;
            kiln_runner_free(r);
            assert_int_equal(fake.held, 0);
        }
    }
    picture_free(&right);
    scene_free(&s);
}

/* Of a device with room for two slabs of four, records stay there but for those of the first look,
 * and nothing runs on the CPU. */
static void slabs_stay_on_a_device(void **state)
{
    scene s;
    picture right;
    kiln_error err = {0};
    uint64_t capacity, cap = 300000;
    (void)state;
    scene_make(&s, 64, 48, KILN_PROFILE_INRIA, 71);
    draw_on_cpu(&right, &s);
    /* the least cap at which slabs fit */
    for (capacity = 0; capacity == 0 || capacity >= right.drawing.n; cap += 20000) {
        assert_true(cap < 2000000);
        fake_reset();
        kiln_runner *r = fake_runner(FAKE_DEVICE, cap);
        assert_int_equal(kiln_draw_store_new(r, &s.draw.store, &err), KILN_OK);
        bool done;
        kiln_drawing none = {0};
        assert_int_equal(kiln_resident_collect(&s.draw, &none, &done, &err), KILN_OK);
        kiln_drawing_release(&none);
        capacity = 0;
        if (!done) assert_int_equal(kiln_resident_slab_capacity(&s.draw, &capacity, &err), KILN_OK);
        if (capacity > 0 && capacity < right.drawing.n) {
            fake.bytes_out = 0;
            const kiln_draw_stats stats = draw_in_slabs(r, &s, capacity, &right);
            const uint64_t between = sizeof(kiln_raster_state) * right.pixels * stats.drawn;
            assert_true(stats.slabs > 1);
            assert_int_equal(kiln_runner_get_info(r).n_host, 0);
            assert_true(fake.bytes_out < between + sizeof(kiln_splat2d) * right.drawing.n + 4096);
        }
        kiln_draw_store_free(s.draw.store);
        s.draw.store = NULL;
        kiln_runner_free(r);
    }
    picture_free(&right);
    scene_free(&s);
}

static void what_breaks_off_leaves_nothing(void **state)
{
    static const fake_step steps[] = {FAKE_COPY_IN, FAKE_LAUNCH, FAKE_COPY_OUT, FAKE_WAIT};
    scene s;
    picture right;
    (void)state;
    scene_make(&s, 200, 100, KILN_PROFILE_INRIA, 80);
    draw_on_cpu(&right, &s);
    for (unsigned k = 0; k < sizeof steps / sizeof *steps; k++) {
        bool failed = true;
        for (unsigned time = 1; failed; time += 3) {
            kiln_draw_stats stats;
            kiln_error err = {0};
            fake_reset();
            kiln_runner *r = fake_runner(FAKE_DEVICE, 10000000);
            assert_int_equal(kiln_draw_store_new(r, &s.draw.store, &err), KILN_OK);
            fake.fail = steps[k];
            fake.fail_in = time;
            const kiln_draw_want want = {.ways = KILN_DRAW_SLABS,
                                         .rgba = right.rgba,
                                         .depth = right.depth,
                                         .capacity = right.drawing.n / 3};
            const kiln_status st = kiln_draw(r, &s.draw, &want, &stats, &err);
            failed = fake.fail_in == 0;
            assert_int_equal(st, failed ? KILN_E_DEVICE : KILN_OK);
            assert_int_equal(fake.in_flight, 0);
            kiln_draw_store_free(s.draw.store);
            s.draw.store = NULL;
            kiln_runner_free(r);
        }
    }
    picture_free(&right);
    scene_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_cut_changes_a_picture),
        cmocka_unit_test(equal_depths_are_cut_between_source_rows),
        cmocka_unit_test(finished_tiles_ask_for_no_more),
        cmocka_unit_test(chunks_of_other_depths_are_not_asked_for),
        cmocka_unit_test(no_cap_of_a_device_changes_a_picture),
        cmocka_unit_test(slabs_stay_on_a_device),
        cmocka_unit_test(what_breaks_off_leaves_nothing),
    };
    return cmocka_run_group_tests_name("slabs", tests, fake_nothing_is_left, fake_nothing_is_left);
}
