/* runner_test -- one operation by a runner (kernels/runner.h) on a device of host memory
 * (fake_device.h): the cap, a device that is full, every step that can fail. Its results on real
 * devices: tests/gpu. */
#include "kernels/runner.h"
#include "tests/unit/fake_device.h"
#include "tests/unit/project_planes.h"

#include <stdio.h>
#include <string.h>

/* A project call, because that has every kind of array: in, out, and one whose used part follows
 * the count. */
typedef struct {
    kiln_view view;
    planes planes;
    kiln_splat2d splats[900];
    uint64_t visible;
    kiln_project_args args;
} call;

static void call_make(call *c)
{
    enum { N = sizeof c->splats / sizeof *c->splats };
    static gaussian g[N];
    random_gaussians(g, N, 7);
    c->planes = planes_of(g, N);
    view_of(&c->view);
    memset(c->splats, 0, sizeof c->splats);
    c->visible = 0;
    c->args = (kiln_project_args){.n = N,
                                  .means = c->planes.means,
                                  .log_scales = c->planes.log_scales,
                                  .quats = c->planes.quats,
                                  .opacity_logits = c->planes.opacity_logits,
                                  .sh0 = c->planes.sh0,
                                  .shN = c->planes.shN,
                                  .sh_degree = 4,
                                  .view = &c->view,
                                  .profile = KILN_PROFILE_INRIA,
                                  .splats = c->splats,
                                  .n_visible = &c->visible};
}

static void what_does_not_fit_runs_on_the_cpu_and_is_counted(void **state)
{
    static call c;
    uint64_t need = 0;
    kiln_error err = {0};
    (void)state;
    call_make(&c);
    fake_reset();
    kiln_runner *r = fake_runner(FAKE_DEVICE, 0);
    assert_int_equal(kiln_runner_need(r, KILN_OP_project, &c.args, &need, &err), KILN_OK);
    assert_int_equal(fake.peak, 0); /* asking allocates nothing */
    kiln_runner_free(r);
    for (unsigned missing = 0; missing < 2; missing++) {
        fake_reset();
        r = fake_runner(FAKE_DEVICE, need - missing);
        c.visible = 0;
        assert_int_equal(kiln_runner_run(r, KILN_OP_project, &c.args, &err), KILN_OK);
        assert_true(c.visible > 100);
        const kiln_runner_info info = kiln_runner_get_info(r);
        assert_int_equal(info.n_device, 1 - missing);
        assert_int_equal(info.n_host, missing);
        assert_int_equal(info.peak_bytes, missing ? 0 : need);
        kiln_runner_free(r);
    }
    free(c.planes.data);
}

/* Others may take memory after the start: the runner stays below what there was not, and the CPU
 * computes. */
static void a_device_that_is_full_by_now_leaves_it_to_the_cpu(void **state)
{
    static call c;
    uint64_t need = 0;
    kiln_error err = {0};
    (void)state;
    call_make(&c);
    fake_reset();
    kiln_runner *r = fake_runner(FAKE_DEVICE, (uint64_t)1 << 30);
    assert_int_equal(kiln_runner_need(r, KILN_OP_project, &c.args, &need, &err), KILN_OK);
    fake.capacity = need - 1;
    assert_int_equal(kiln_runner_run(r, KILN_OP_project, &c.args, &err), KILN_OK);
    assert_true(c.visible > 100);
    assert_int_equal(kiln_runner_get_info(r).n_host, 1);
    assert_int_equal(kiln_runner_get_info(r).n_device, 0);
    assert_true(kiln_runner_get_info(r).cap_bytes < need);
    c.args.n = 100; /* planes of another length: any Gaussians, but fewer bytes, which there are */
    assert_int_equal(kiln_runner_run(r, KILN_OP_project, &c.args, &err), KILN_OK);
    assert_int_equal(kiln_runner_get_info(r).n_device, 1);
    kiln_runner_free(r);
    free(c.planes.data);
}

/* The step fails at its first time, its second and so on, until there is none: every one is told,
 * none leaves anything. */
static unsigned fail_each(call *c, fake_step step, const char *name)
{
    for (unsigned time = 1;; time++) {
        kiln_error err = {0};
        fake_reset();
        kiln_runner *r = fake_runner(FAKE_DEVICE, 0);
        fake.fail = step;
        fake.fail_in = time;
        const kiln_status st = kiln_runner_run(r, KILN_OP_project, &c->args, &err);
        assert_int_equal(fake.in_flight, 0);
        assert_int_equal(fake.n_copies, 0);
        assert_int_equal(kiln_runner_get_info(r).n_device, st == KILN_OK);
        kiln_runner_free(r);
        if (st == KILN_OK) return time - 1;
        assert_int_equal(st, KILN_E_DEVICE);
        assert_int_equal(err.status, KILN_E_DEVICE);
        if (!strstr(err.msg, "project: ") || !strstr(err.msg, name))
            fail_msg("no 'project' or '%s' in '%s'", name, err.msg);
    }
}

static void every_failing_step_is_told(void **state)
{
    static call c;
    (void)state;
    call_make(&c);
    /* six planes and the fault word */
    assert_int_equal(fail_each(&c, FAKE_COPY_IN, "the fake device fails in a copy in"), 7);
    assert_int_equal(fail_each(&c, FAKE_LAUNCH, "the fake device fails in a launch"), 1);
    /* fault, count, splats */
    assert_int_equal(fail_each(&c, FAKE_COPY_OUT, "the fake device fails in a copy out"), 3);
    assert_int_equal(fail_each(&c, FAKE_WAIT, "the fake device fails in waiting"), 2);
    free(c.planes.data);
}

static void a_violation_in_the_data_gives_its_sentence(void **state)
{
    static call c;
    kiln_error err = {0};
    (void)state;
    call_make(&c);
    fake_reset();
    kiln_runner *r = fake_runner(FAKE_DEVICE, 0);
    fake.violation = KILN_VIOLATION(KILN_VIOLATION_RASTER_RANK, 7);
    assert_int_equal(kiln_runner_run(r, KILN_OP_project, &c.args, &err), KILN_E_INPUT);
    assert_non_null(strstr(err.msg, "pair 7 names a Gaussian that does not exist"));
    assert_int_equal(fake.in_flight, 0);
    /* the word does not stay */
    assert_int_equal(kiln_runner_run(r, KILN_OP_project, &c.args, &err), KILN_OK);
    kiln_runner_free(r);
    free(c.planes.data);
}

/* The sum of the arrays' sizes is none that 64 bits hold: not a small one, which would fit. */
static void arrays_beyond_all_memory_do_not_fit(void **state)
{
    const kiln_view view = {.width = 16, .height = 16};
    uint32_t nothing = 0;
    const kiln_tile_pairs_emit_args a = {.view = &view,
                                         .row1 = 1,
                                         .capacity = UINT64_MAX / 2,
                                         .tile_counts = &nothing,
                                         .ranks = &nothing};
    kiln_error err = {0};
    (void)state;
    fake_reset();
    kiln_runner *r = fake_runner(FAKE_DEVICE, 0);
    assert_int_equal(kiln_runner_run(r, KILN_OP_tile_pairs_emit, &a, &err), KILN_E_CAP);
    assert_non_null(strstr(err.msg, "tile_pairs_emit: its arrays do not fit into memory"));
    kiln_runner_free(r);
}

static void a_device_that_is_not_there_is_refused(void **state)
{
    const kiln_runner_options o = {.device = FAKE_DEVICE + 1};
    kiln_runner *r = NULL;
    kiln_error err = {0};
    (void)state;
    fake_reset();
    assert_int_equal(kiln_runner_new(&o, &r, &err), KILN_E_DEVICE);
    assert_null(r);
    assert_int_equal(fake.streams, 0);
}

/* Kept arrays are on the device alone until they are fetched; too many for the cap, and the CPU has
 * them. */
static void kept_arrays_are_fetched(void **state)
{
    static call c;
    static kiln_splat2d want[900];
    kiln_error err = {0};
    (void)state;
    call_make(&c);
    fake_reset();
    kiln_runner *r = fake_runner(FAKE_DEVICE, 0);
    assert_int_equal(kiln_runner_run(r, KILN_OP_project, &c.args, &err), KILN_OK);
    const uint64_t visible = c.visible;
    memcpy(want, c.splats, sizeof want);
    memset(c.splats, 0, sizeof c.splats);
    assert_int_equal(kiln_runner_keep(r, c.splats, sizeof c.splats, false, &err), KILN_OK);
    assert_int_equal(kiln_runner_run(r, KILN_OP_project, &c.args, &err), KILN_OK);
    assert_int_equal(c.visible, visible);
    assert_memory_not_equal(c.splats, want, visible * sizeof *want);
    assert_int_equal(
        kiln_runner_fill(r, &c.splats[1].row, sizeof *c.splats, 0xff, 4, visible - 1, &err),
        KILN_OK);
    assert_int_equal(kiln_runner_fetch(r, c.splats, sizeof c.splats, &err), KILN_OK);
    for (uint64_t i = 1; i < visible; i++) want[i].row = UINT32_MAX;
    assert_memory_equal(c.splats, want, visible * sizeof *want);
    kiln_runner_drop(r, c.splats);
    kiln_runner_free(r);
    free(c.planes.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_runs_on_the_cpu_and_is_counted),
        cmocka_unit_test(a_device_that_is_full_by_now_leaves_it_to_the_cpu),
        cmocka_unit_test(every_failing_step_is_told),
        cmocka_unit_test(a_violation_in_the_data_gives_its_sentence),
        cmocka_unit_test(arrays_beyond_all_memory_do_not_fit),
        cmocka_unit_test(a_device_that_is_not_there_is_refused),
        cmocka_unit_test(kept_arrays_are_fetched),
    };
    return cmocka_run_group_tests_name("runner", tests, fake_nothing_is_left, fake_nothing_is_left);
}
