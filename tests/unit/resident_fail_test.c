/* resident_fail_test -- drawings on a device of host memory (resident_test.c) when a step fails,
 * when the data are bad, and where there is no device. */
#include "kernels/draw/draw.h"
#include "tests/unit/draw_device.h"

/* The step fails at its 1st, 2nd, ... time of a count and two pictures. Returns how many times
 * there are. */
static unsigned break_pictures(scene *s, const picture *right, uint64_t cap, fake_step step,
                               kiln_status want)
{
    for (unsigned time = 1;; time++) {
        uint64_t row_pairs[14];
        kiln_draw_tally t = {.row_pairs = row_pairs};
        kiln_error why = {0};
        device d = device_open(cap);
        s->draw.store = d.store;
        fake.fail = step;
        fake.fail_in = time;
        kiln_status st = kiln_draw_count_all(d.runner, &s->draw, &t, &why);
        if (st == KILN_OK) assert_int_equal(t.pairs, right->pairs);
        for (unsigned turn = 0; st == KILN_OK && turn < 2; turn++) {
            picture p;
            kiln_error err = {0};
            st = picture_draw(&p, d.runner, s, &err);
            assert_int_equal(fake.in_flight, 0);
            assert_int_equal(fake.n_copies, 0);
            if (st == KILN_OK) must_be_equal(right, &p);
            picture_free(&p);
        }
        const bool failed = fake.fail_in == 0;
        assert_int_equal(st, failed ? want : KILN_OK);
        fake.fail = FAKE_NOTHING;
        draw_on(&d, s, right); /* nothing half done is taken for done */
        device_close(&d);
        if (!failed) return time - 1;
    }
}

static void what_breaks_off_leaves_nothing(void **state)
{
    static const uint64_t caps[] = {(uint64_t)1 << 30, 2500000, 700000};
    scene s;
    picture right;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 11);
    draw_on_cpu(&right, &s);
    for (unsigned c = 0; c < sizeof caps / sizeof *caps; c++) {
        /* planes of two chunks */
        assert_true(break_pictures(&s, &right, caps[c], FAKE_COPY_IN, KILN_E_DEVICE) >= 14);
        assert_true(break_pictures(&s, &right, caps[c], FAKE_LAUNCH, KILN_E_DEVICE) > 8);
        assert_true(break_pictures(&s, &right, caps[c], FAKE_COPY_OUT, KILN_E_DEVICE) > 8);
        assert_true(break_pictures(&s, &right, caps[c], FAKE_WAIT, KILN_E_DEVICE) > 6);
        /* memory that is gone is no failure */
        assert_true(break_pictures(&s, &right, caps[c], FAKE_FULL, KILN_OK) > 2);
    }
    picture_free(&right);
    scene_free(&s);
}

static void a_violation_in_the_data_gives_its_sentence(void **state)
{
    scene s;
    picture right, p;
    kiln_error err = {0};
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 13);
    draw_on_cpu(&right, &s);
    device d = device_open(LARGE);
    s.draw.store = d.store;
    fake.violation = KILN_VIOLATION(KILN_VIOLATION_EMIT_PAIRS, 5);
    assert_int_equal(picture_draw(&p, d.runner, &s, &err), KILN_E_BUG);
    assert_non_null(strstr(err.msg, "the tile rows hold 5 pairs"));
    picture_free(&p);
    draw_on(&d, &s, &right); /* it does not stay */
    device_close(&d);
    picture_free(&right);
    scene_free(&s);
}

static kiln_status give_wrong_label(void *context, uint32_t index, kiln_draw_chunk_header *out,
                                    kiln_error *err)
{
    KILN_TRY(give_label(context, index, out, err));
    out->n += index == 2;
    return KILN_OK;
}

static void a_label_that_is_wrong_is_a_bug(void **state)
{
    scene s;
    kiln_drawing drawing;
    kiln_error err = {0};
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 14);
    device d = device_open(LARGE);
    s.draw.store = d.store;
    s.draw.header = give_wrong_label;
    assert_int_equal(kiln_draw_collect(d.runner, &s.draw, &drawing, &err), KILN_E_BUG);
    assert_non_null(strstr(err.msg, "chunk 2 has 400 rows with colour, but its header claims 401"));
    device_close(&d);
    scene_free(&s);
}

/* On the CPU a store does nothing. */
static void a_store_on_the_cpu_is_idle(void **state)
{
    scene s;
    picture right, p;
    kiln_error err = {0};
    (void)state;
    fake_reset();
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 15);
    draw_on_cpu(&right, &s);
    kiln_runner *r = fake_runner(KILN_RUNNER_CPU, 0);
    assert_int_equal(kiln_draw_store_new(r, &s.draw.store, &err), KILN_OK);
    assert_int_equal(picture_draw(&p, r, &s, &err), KILN_OK);
    must_be_equal(&right, &p);
    assert_int_equal(fake.peak, 0);
    kiln_draw_store_free(s.draw.store);
    kiln_runner_free(r);
    picture_free(&p);
    picture_free(&right);
    scene_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_breaks_off_leaves_nothing),
        cmocka_unit_test(a_violation_in_the_data_gives_its_sentence),
        cmocka_unit_test(a_label_that_is_wrong_is_a_bug),
        cmocka_unit_test(a_store_on_the_cpu_is_idle),
    };
    return cmocka_run_group_tests_name("resident_fail", tests, fake_nothing_is_left,
                                       fake_nothing_is_left);
}
