/* Several stages in one process: nothing of one reaches the next, and workers that are kept compute
 * for both. What the first run of a process says and what the second says is one text; the report
 * is the second's. Workers that hold much memory are not kept. */
#include "engine_stage.h"

#include "tests/unit/own_memory.h"

/* Runs the stage with these arguments, and again in the same process with those of `again`. */
static int run_twice(const char *arguments, const char *again)
{
    assert_int_equal(setenv("KILN_TEST_AGAIN", again, 1), 0);
    const int code = run(arguments);
    assert_int_equal(unsetenv("KILN_TEST_AGAIN"), 0);
    return code;
}

/* How many processes said hello in all runs together, each counted once. */
static unsigned processes(void)
{
    char path[TEST_PATH_MAX];
    unsigned char *data;
    size_t size;
    int pids[64];
    unsigned n = 0;
    (void)snprintf(path, sizeof path, "%s/err", folder);
    assert_int_equal(kiln_file_read(path, 1 << 20, &data, &size, NULL), KILN_OK);
    for (const char *at = (char *)data; (at = strstr(at, ": worker ")); at++) {
        int pid, known = 0;
        if (sscanf(at, ": worker %d: cpu", &pid) != 1) continue;
        for (unsigned i = 0; i < n; i++) known |= pids[i] == pid;
        if (!known && n < 64) pids[n++] = pid;
    }
    free(data);
    return n;
}

static void a_second_run_in_the_process_does_nothing(void **state)
{
    (void)state;
    assert_int_equal(run_twice("", ""), 0);
    assert_true(status_is("nothing to do"));
    assert_int_equal(number("sum"), 6);
}

static void a_worker_computes_for_the_next_run(void **state)
{
    (void)state;
    needs_own_memory();
    assert_int_equal(
        run_twice("--count=3 --verbose --workers=1", "--count=7 --scale=2 --verbose --workers=1"),
        0);
    assert_int_equal(number("units.done"), 7);
    assert_int_equal(number("sum"), 42);
    assert_int_equal(started(), 1);
    assert_int_equal(processes(), 1);
    assert_int_equal(run("--verbose --scale=3"), 0); /* a run by itself starts one */
    assert_int_equal(processes(), 1);
}

/* A run that changes nothing, with options that the second does not have. */
static void options_of_a_run_are_forgotten(void **state)
{
    (void)state;
    assert_int_equal(run("--count=2"), 0); /* is stored */
    assert_int_equal(
        run_twice("--once --scale=5 --count=3 --quiet --threads=1 --force", "--count=5 --verbose"),
        0);
    assert_true(said("kiln-test: worker "));
    assert_true(status_is("done"));
    assert_int_equal(number("sum"), 10);
    assert_int_equal(number("units.cached"), 2);
    assert_int_equal(state_of("knn"), KILN_STAGE_FRESH);
    kiln_manifest *m = open_manifest(KILN_OPEN_READ);
    kiln_parameter *stored;
    uint32_t n;
    assert_int_equal(kiln_parameters_get(m, "knn", &stored, &n, NULL), KILN_OK);
    assert_int_equal(n, 1); /* --scale was that of the run that stores nothing */
    assert_string_equal(stored[0].name, "count");
    assert_string_equal(stored[0].value, "5");
    kiln_parameters_free(stored, n);
    kiln_manifest_close(m);
}

static void a_kept_worker_that_dies_is_replaced(void **state)
{
    (void)state;
    needs_own_memory();
    /* the first run has no unit 5 */
    assert_int_equal(setenv("KILN_FAULT", "unit=5:kill,times=1", 1), 0);
    assert_int_equal(
        run_twice("--count=3 --verbose --workers=1", "--count=8 --scale=2 --verbose --workers=1"),
        0);
    assert_int_equal(unsetenv("KILN_FAULT"), 0);
    assert_true(said("is tried again: the worker was killed (signal 9)"));
    assert_int_equal(number("sum"), 56);
    assert_int_equal(processes(), 2);
}

static void a_run_that_fails_keeps_no_worker(void **state)
{
    (void)state;
    needs_own_memory();
    assert_int_equal(run_twice("--fail-at=2 --verbose --workers=1", ""), 3);
    assert_int_equal(processes(), 1);
    assert_true(status_is("failed"));
}

/* Started before anything is known of a stage, it becomes the first worker. */
static void a_worker_that_rests_from_its_start_is_taken(void **state)
{
    (void)state;
    needs_own_memory();
    assert_int_equal(setenv("KILN_TEST_EARLY", "1", 1), 0);
    assert_int_equal(
        run_twice("--count=3 --verbose --workers=1", "--count=8 --scale=2 --verbose --workers=1"),
        0);
    assert_int_equal(number("sum"), 56);
    assert_true(said("early: worker "));
    assert_int_equal(processes(), 1);
    assert_int_equal(fresh_manifest(NULL), 0);
    assert_int_equal(run_twice("--count=0", "--count=0 --scale=2"), 0); /* nobody takes it */
    assert_int_equal(unsetenv("KILN_TEST_EARLY"), 0);
}

/* The process may be at fault, not the device: a new one tries, and what that says counts. */
static void a_worker_that_cannot_go_on_is_replaced(void **state)
{
    (void)state;
    needs_own_memory();
    assert_int_equal(setenv("KILN_TEST_EARLY", "1", 1), 0);
    assert_int_equal(setenv("KILN_TEST_SPOILED", "1", 1), 0);
    assert_int_equal(run_twice("--pretend=1 --lost=1 --verbose", ""), 6);
    assert_int_equal(unsetenv("KILN_TEST_SPOILED"), 0);
    assert_int_equal(unsetenv("KILN_TEST_EARLY"), 0);
    assert_true(said(" cannot continue with its device, so a new process starts: "));
    assert_true(said("kiln-test: the worker on GPU '-1': "));
}

/* More workers are kept than the second run has units. */
static void workers_that_are_not_needed_end(void **state)
{
    (void)state;
    needs_own_memory();
    assert_int_equal(
        run_twice("--count=40 --slow=5 --workers=4 --verbose", "--count=1 --scale=2 --verbose"), 0);
    assert_int_equal(number("sum"), 0);
    assert_int_equal(number("units.done"), 1);
    assert_int_equal(started(), 1);
    assert_true(processes() <= 4);
}

/* One that does not lay down what it has is killed, and the run before is none the worse for it. */
static void a_worker_that_does_not_rest_is_killed(void **state)
{
    (void)state;
    needs_own_memory();
    assert_int_equal(run_twice("--count=3 --clings --verbose --workers=1",
                               "--count=3 --scale=2 --verbose --workers=1"),
                     0);
    assert_int_equal(number("sum"), 6);
    assert_int_equal(processes(), 2);
}

/* Between two runs nobody has the manifest open: its log is gone. */
static void a_resting_worker_has_the_manifest_closed(void **state)
{
    (void)state;
    needs_own_memory();
    assert_int_equal(run_twice("--count=3 --reads --verbose --workers=1",
                               "--count=4 --scale=2 --reads --verbose --workers=1"),
                     0);
    assert_true(said("between the runs: no log"));
    assert_int_equal(processes(), 1);
}

int main(int argc, char **argv)
{
    if (argc > 1) return stage_main(argc, argv);
#define CLAIM(f) cmocka_unit_test_setup(f, fresh_manifest)
    const struct CMUnitTest tests[] = {
        CLAIM(a_second_run_in_the_process_does_nothing),
        CLAIM(a_worker_computes_for_the_next_run),
        CLAIM(options_of_a_run_are_forgotten),
        CLAIM(a_kept_worker_that_dies_is_replaced),
        CLAIM(a_run_that_fails_keeps_no_worker),
        CLAIM(a_worker_that_rests_from_its_start_is_taken),
        CLAIM(a_worker_that_cannot_go_on_is_replaced),
        CLAIM(workers_that_are_not_needed_end),
        CLAIM(a_worker_that_does_not_rest_is_killed),
        CLAIM(a_resting_worker_has_the_manifest_closed),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
