/* The engine: units, parameters, freshness, signals, devices. What fails is
 * engine_faults_test.c. */
#include "engine_stage.h"

#include <sqlite3.h>

/* ---- claims ---------------------------------------------------------------------------------- */
static void units_are_computed_and_stored(void **state)
{
    (void)state;
    assert_int_equal(run("--count=600"), 0); /* above one batch */
    assert_int_equal(number("sum"), 600 * 599 / 2);
    assert_int_equal(number("units.done"), 600);
    assert_true(number("peak_rss_bytes.worker") > 0);
    assert_int_equal(state_of("knn"), KILN_STAGE_FRESH);
}

static void no_units_are_a_result_too(void **state)
{
    (void)state;
    assert_int_equal(run("--count 0"), 0);
    assert_int_equal(number("sum"), 0);
}

static void a_second_run_has_nothing_to_do(void **state)
{
    (void)state;
    assert_int_equal(run(""), 0);
    assert_int_equal(run("--kill-at=0"), 0);
    assert_true(status_is("nothing to do"));
    assert_true(said("nothing to do"));
    assert_int_equal(number("sum"), 6);
}

static void done_units_start_no_worker(void **state)
{
    (void)state;
    assert_int_equal(run(""), 0);
    assert_int_equal(run("--count=3 --kill-at=0"), 0);
    assert_int_equal(number("units.cached"), 3);
    assert_int_equal(number("peak_rss_bytes.worker"), 0);
}

static void a_killed_worker_keeps_what_is_finished(void **state)
{
    (void)state;
    assert_int_equal(run("--count=8 --kill-at=5"), 7);
    assert_true(said("while it computed 'unit 5'"));
    assert_true(said("run the same command to try it again"));
    assert_int_equal(run("--count=8"), 0);
    assert_true(number("units.cached") >= 5); /* the worker that came after it may have done more */
    assert_int_equal(number("units.done"), 8 - number("units.cached"));
    assert_int_equal(number("sum"), 28);
}

static void a_failing_unit_says_why_with_its_name(void **state)
{
    (void)state;
    assert_int_equal(run("--fail-at=2"), 3);
    assert_true(said("unit 2: row 7 is bad"));
    assert_true(status_is("failed"));
}

static void force_compares_with_what_is_stored(void **state)
{
    (void)state;
    assert_int_equal(run(""), 0);
    assert_int_equal(run("--force"), 0);
    assert_int_equal(number("units.done"), 4);
    assert_int_equal(run("--force --wrong"), 70);
    assert_true(said("' again gave another result"));
    /* both were dropped, what came a third time is stored */
    assert_int_equal(run("--force --wrong"), 0);
    assert_int_equal(run("--force --wrong"), 0);
    assert_int_equal(run("--force"), 70);
    assert_int_equal(run("--force --once"), 0);
    assert_int_equal(run("--force"), 0);
    assert_int_equal(run("--force --once --wrong"), 70); /* it keeps what is stored */
    assert_int_equal(run("--force --once --wrong"), 70);
    assert_int_equal(run("--force"), 0);
}

static void given_parameters_are_kept_until_reset(void **state)
{
    (void)state;
    assert_int_equal(run("--scale=3"), 0);
    assert_int_equal(run("--count=5"), 0);
    assert_int_equal(number("sum"), 30); /* 3 * (0 + .. + 4) */
    assert_int_equal(run("--reset"), 0);
    assert_int_equal(number("sum"), 6);
    assert_int_equal(run(""), 0);
    assert_true(status_is("nothing to do"));
}

static void a_once_run_uses_parameters_and_changes_nothing(void **state)
{
    (void)state;
    assert_int_equal(run("--scale=3"), 0);
    assert_int_equal(run("--once --count=5"), 0);
    assert_int_equal(number("sum"), 30);
    assert_int_equal(number("units.cached"), 4);
    assert_int_equal(run("--once --count=5"), 0);
    assert_int_equal(number("units.cached"), 4); /* the fifth was not stored */
    assert_int_equal(run(""), 0);
    assert_true(status_is("nothing to do"));
}

static void later_stages_become_stale_only_when_the_output_changed(void **state)
{
    (void)state;
    assert_int_equal(run(""), 0); /* sum 6 */
    set_state("prune", KILN_STAGE_FRESH);
    set_state("tiles", KILN_STAGE_FRESH);
    set_state("chunk", KILN_STAGE_FRESH);
    set_state("export", KILN_STAGE_PARTIAL);
    assert_int_equal(run("--count=3 --scale=2"), 0); /* 0 + 2 + 4: the same output */
    assert_int_equal(state_of("prune"), KILN_STAGE_FRESH);
    assert_int_equal(run("--scale=5"), 0);
    assert_int_equal(state_of("prune"), KILN_STAGE_STALE);
    assert_int_equal(state_of("chunk"), KILN_STAGE_STALE);
    assert_int_equal(state_of("tiles"), KILN_STAGE_STALE); /* by way of chunk */
    /* what it lacked is not its only fault now */
    assert_int_equal(state_of("export"), KILN_STAGE_STALE);
    assert_int_equal(state_of("render"), KILN_STAGE_MISSING);
}

static void a_stale_stage_with_the_same_input_is_fresh_at_once(void **state)
{
    (void)state;
    assert_int_equal(run(""), 0);
    set_state("knn", KILN_STAGE_STALE);
    assert_int_equal(run("--kill-at=0"), 0);
    assert_true(status_is("nothing to do"));
    assert_int_equal(state_of("knn"), KILN_STAGE_FRESH);
}

static void a_second_parent_is_told_who_holds_the_manifest(void **state)
{
    (void)state;
    assert_int_equal(run(""), 0);
    kiln_manifest *m = open_manifest(KILN_OPEN_WRITE);
    assert_int_equal(run("--scale=2"), 75);
    assert_int_equal(run("--once"), 0); /* readers are not blocked */
    kiln_manifest_close(m);
}

static void bad_input_leaves_no_manifest(void **state)
{
    (void)state;
    assert_int_equal(run("--reject"), 3);
    assert_int_equal(access(db, F_OK), -1);
    assert_int_equal(run("--fail-at=3"), 3);
    assert_int_equal(access(db, F_OK), -1);
    assert_int_equal(run(""), 0);
    assert_int_equal(run("--reject"), 3);
    assert_int_equal(access(db, F_OK), 0);
}

static void long_outputs_are_cut_and_read_back_whole(void **state)
{
    (void)state;
    assert_int_equal(run("--count=1 --bulk=67108868"), 0); /* one element above a blob */
    assert_int_equal(number("sum"), 67108868 / 4 / 1024);
    kiln_manifest *m = open_manifest(KILN_OPEN_READ);
    kiln_manifest_close(m);
    assert_int_equal(run("--once --count=1 --bulk=67108868 --kill-at=0"), 0);
    assert_int_equal(number("sum"), 67108868 / 4 / 1024);
}

/* Units in the manifest, which another process writes; 0 while there is none. */
static int stored_units(void)
{
    sqlite3 *read = NULL;
    sqlite3_stmt *count = NULL;
    int n = 0;
    if (sqlite3_open_v2(db, &read, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(read, "SELECT count(*) FROM unit", -1, &count, NULL) == SQLITE_OK &&
        sqlite3_step(count) == SQLITE_ROW)
        n = sqlite3_column_int(count, 0);
    (void)sqlite3_finalize(count);
    (void)sqlite3_close(read);
    return n;
}

/* Waits, a minute at most, until more than n units are stored; returns how many. */
static int more_units_than(int n)
{
    int now = stored_units();
    for (int i = 0; i < 12000 && now <= n; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        now = stored_units();
    }
    assert_true(now > n);
    return now;
}

static void signals_end_the_run_with_their_codes(void **state)
{
    (void)state;
    static const struct {
        int signal, code;
    } cases[] = {{SIGINT, 130}, {SIGTERM, 143}, {SIGHUP, 129}};
    (void)signal(SIGHUP, SIG_DFL); /* under nohup it would be ignored */
    for (int i = 0; i < 3; i++) {
        fresh_manifest(NULL);
        pid_t pid = start("--count=10000 --slow=5 --devices=cpu --workers=1");
        int n = more_units_than(0);
        pid_t worker = child_of(pid);
        /* a signal to the group may reach the worker first */
        assert_int_equal(kill(worker, cases[i].signal), 0);
        n = more_units_than(n);
        (void)more_units_than(n); /* these were not there when it came, so the worker goes on */
        assert_int_equal(kill(worker, 0), 0);
        assert_int_equal(kill(pid, cases[i].signal), 0);
        assert_int_equal(finish(pid), cases[i].code);
        assert_true(ends(worker));
        assert_int_equal(run("--count=3"), 0);
        assert_true(number("units.cached") > 0);
    }
}

static void a_worker_has_its_programs_name(void **state)
{
    (void)state;
    static const char want[] = "kiln-test:w\n";
    char path[64], comm[32] = "";
    pid_t pid = start("--count=1000 --slow=100 --devices=cpu");
    pid_t worker = child_of(pid);
    assert_true(worker > 0);
    (void)snprintf(path, sizeof path, "/proc/%d/comm", worker);
    /* it is not there yet, or has not begun */
    for (int i = 0; i < 5000 && strcmp(comm, want) != 0; i++) {
        FILE *f = fopen(path, "r");
        if (!f || !fgets(comm, sizeof comm, f)) comm[0] = '\0';
        if (f) (void)fclose(f);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(finish(pid), 130);
    assert_string_equal(comm, want);
}

static void a_signal_ends_the_wait_for_a_worker_that_opens_its_device(void **state)
{
    (void)state;
    pid_t pid = start("--mute --devices=cpu");
    pid_t worker = child_of(pid);
    assert_true(worker > 0);
    /* mostly it waits by then; the end is the same if it does not */
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(finish(pid), 130);
    assert_true(ends(worker));
}

static void a_unit_whose_device_fails_everywhere_is_named(void **state)
{
    (void)state;
    assert_int_equal(run("--lose-at=2"), 7);
    assert_true(
        said("'unit 2' failed 3 times, the last on worker 0 of the CPU: the kernel failed; "));
}

static void a_worker_dies_with_its_parent(void **state)
{
    (void)state;
    pid_t pid = start("--count=10 --slow=5000 --devices=cpu");
    pid_t worker = child_of(pid);
    assert_true(worker > 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(finish(pid), -SIGKILL);
    assert_true(ends(worker));
}

static void units_are_shared_out_to_all_devices(void **state)
{
    (void)state;
    assert_int_equal(run("--count=3 --pretend=3 --slow=20"), 0);
    assert_int_equal(started(), 3);
    fresh_manifest(NULL);
    assert_int_equal(run("--count=1 --pretend=1"), 0);
    assert_true(is_text("first.visible", "GPU-0"));
    assert_true(is_text("first.order", "")); /* as found */
    fresh_manifest(NULL);
    assert_int_equal(run("--count=2 --pretend=8 --slow=20"), 0); /* no more workers than units */
    assert_int_equal(started(), 2);
    fresh_manifest(NULL);
    assert_int_equal(run("--count=40 --pretend=4 --threads=8 --slow=20"), 0);
    assert_int_equal(started(), 4);
    assert_true(number("processes") > 1);
    assert_int_equal(number("first.threads"), 2); /* of --threads, each its share */
    assert_int_equal(number("sum"), 40 * 39 / 2);
    assert_true(number("peak_rss_bytes.worker") > 0);
    assert_int_equal(number("vram_peak_bytes"), 0);
}

static void a_worker_says_why_its_device_cannot_be_used(void **state)
{
    (void)state;
    assert_int_equal(run("--pretend=1 --lost=1"), 6);
    assert_true(said("the worker on GPU '-1': "));
    assert_true(said("; --devices cpu needs no GPU\n"));
    assert_true(status_is("failed"));
    /* the other one is well, and busy until this one has said so */
    assert_int_equal(run("--pretend=2 --lost=1 --slow=300"), 0);
    assert_true(said("warning: GPU '-1' is not used any more: the worker on GPU '-1': "));
}

static void devices_that_are_not_there_are_refused(void **state)
{
    (void)state;
    if (kiln_device_built_version() == 0) {
        assert_int_equal(run("--devices=cuda"), 6);
        assert_true(said("this build has no CUDA"));
    }
    assert_int_equal(setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
    assert_int_equal(run("--devices=all"), 6);
    assert_int_equal(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
    assert_int_equal(setenv("KILN_NVML", "/nowhere/libnone.so", 1), 0);
    assert_int_equal(run("--devices=0"), 6);
    assert_true(said("--devices cpu"));
    assert_int_equal(unsetenv("KILN_NVML"), 0);
    assert_int_equal(run("--devices=toaster"), 2);
    assert_int_equal(run("--devices=cpu"), 0);
    assert_int_equal(run("--devices=cuda"), 0); /* nothing is due: no device is looked for */
}

int main(int argc, char **argv)
{
    if (argc > 1) return stage_main(argc, argv);
#define CLAIM(f) cmocka_unit_test_setup(f, fresh_manifest)
    const struct CMUnitTest tests[] = {
        CLAIM(units_are_computed_and_stored),
        CLAIM(no_units_are_a_result_too),
        CLAIM(a_second_run_has_nothing_to_do),
        CLAIM(done_units_start_no_worker),
        CLAIM(a_killed_worker_keeps_what_is_finished),
        CLAIM(a_failing_unit_says_why_with_its_name),
        CLAIM(force_compares_with_what_is_stored),
        CLAIM(given_parameters_are_kept_until_reset),
        CLAIM(a_once_run_uses_parameters_and_changes_nothing),
        CLAIM(later_stages_become_stale_only_when_the_output_changed),
        CLAIM(a_stale_stage_with_the_same_input_is_fresh_at_once),
        CLAIM(a_second_parent_is_told_who_holds_the_manifest),
        CLAIM(bad_input_leaves_no_manifest),
        CLAIM(long_outputs_are_cut_and_read_back_whole),
        CLAIM(signals_end_the_run_with_their_codes),
        CLAIM(a_worker_has_its_programs_name),
        CLAIM(a_signal_ends_the_wait_for_a_worker_that_opens_its_device),
        CLAIM(a_unit_whose_device_fails_everywhere_is_named),
        CLAIM(a_worker_dies_with_its_parent),
        CLAIM(units_are_shared_out_to_all_devices),
        CLAIM(a_worker_says_why_its_device_cannot_be_used),
        CLAIM(devices_that_are_not_there_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
