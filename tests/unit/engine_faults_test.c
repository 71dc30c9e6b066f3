/* What the engine does when units, workers and devices fail (KILN_FAULT), and when a run computes
 * only some units.
 *
 * starts first */
#include "engine_stage.h"

/* A run of the stage in which units fail as KILN_FAULT says. */
static int run_with(const char *fault, const char *arguments)
{
    assert_int_equal(setenv("KILN_FAULT", fault, 1), 0);
    const int code = run(arguments);
    assert_int_equal(unsetenv("KILN_FAULT"), 0);
    return code;
}

static uint32_t quarantined(const char *name)
{
    kiln_quarantine_row *rows;
    uint32_t n, found = 0;
    kiln_manifest *m = open_manifest(KILN_OPEN_READ);
    assert_int_equal(kiln_quarantine_get(m, "knn", &rows, &n, NULL), KILN_OK);
    for (uint32_t i = 0; i < n; i++) found += !strcmp(rows[i].name, name);
    assert_int_equal(found, n); /* no other */
    free(rows);
    kiln_manifest_close(m);
    return n;
}

/* ---- retry ----------------------------------------------------------------------------------- */
static void a_unit_that_fails_once_is_tried_again(void **state)
{
    (void)state;
    static const char *const faults[] = {"exit", "kill", "illegal", "abort", "nomem", "device"};
    static const char *const reasons[] = {"exit code 9", "signal 9",       "signal 11",
                                          "signal 6",    "no memory left", "the device failed"};
    for (int i = 0; i < 6; i++) {
        char fault[64];
        fresh_manifest(NULL);
        (void)snprintf(fault, sizeof fault, "unit=3:%s,times=1", faults[i]);
        assert_int_equal(run_with(fault, "--count=8 --workers=2"), 0);
        assert_true(said("'unit 3' failed on worker "));
        assert_true(said(reasons[i]));
        assert_int_equal(number("units.retried"), 1);
        assert_int_equal(number("units.done"), 8);
        assert_int_equal(number("sum"), 28);
        assert_int_equal(state_of("knn"), KILN_STAGE_FRESH);
    }
}

static void a_unit_that_hangs_is_killed_at_the_deadline(void **state)
{
    (void)state;
    assert_int_equal(run_with("unit=1:hang,times=1", "--workers=1 --deadline=1"), 0);
    assert_true(said("took longer than --deadline 1 s while it computed 'unit 1'"));
    assert_int_equal(number("sum"), 6);
}

/* Stopped before it has said hello: --deadline counts from its start. Without that this test runs
 * into its time limit. */
static void a_worker_that_stops_before_its_first_word_is_replaced(void **state)
{
    (void)state;
    char mark[TEST_PATH_MAX];
    (void)snprintf(mark, sizeof mark, "%s/stop", folder);
    assert_int_equal(close(open(mark, O_WRONLY | O_CREAT, 0600)), 0);
    assert_int_equal(setenv("KILN_TEST_STOP", mark, 1), 0);
    const int code = run("--workers=1 --devices=cpu --deadline=2");
    assert_int_equal(unsetenv("KILN_TEST_STOP"), 0);
    assert_int_equal(code, 0);
    assert_int_equal(access(mark, F_OK), -1); /* one did stop */
    assert_true(said("was not ready 2 s after its start; another takes its place"));
    assert_int_equal(number("sum"), 6);
    assert_int_equal(number("units.done"), 4);
    assert_int_equal(number("units.retried"), 0); /* no unit is to blame */
}

/* Sleeps for so many tenths of a second. */
static void doze(int tenths)
{
    nanosleep(&(struct timespec){.tv_sec = tenths / 10, .tv_nsec = tenths % 10 * 100000000L}, NULL);
}

static void time_in_which_everything_was_stopped_is_not_counted(void **state)
{
    (void)state;
    const pid_t pid = start("--count=1 --workers=1 --devices=cpu --deadline=2 --slow=1500");
    const pid_t worker = child_of(pid);
    assert_true(worker > 0);
    doze(5);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(kill(worker, SIGSTOP), 0);
    doze(30);
    assert_int_equal(kill(pid, SIGCONT), 0);
    doze(5); /* it looks before the worker can answer */
    (void)kill(worker, SIGCONT);
    assert_int_equal(finish(pid), 0);
    assert_int_equal(number("units.retried"), 0);
}

static void what_a_dead_worker_had_not_begun_counts_no_attempt(void **state)
{
    (void)state;
    /* each is prefetched behind the one before it: were that an attempt, the last would have none
     * left */
    assert_int_equal(
        run_with("unit=0:kill,times=2; unit=1:kill,times=2 unit=2:kill,times=2", "--workers=1"), 0);
    assert_int_equal(number("units.retried"), 6);
    assert_int_equal(number("sum"), 6);
}

static void the_disk_the_input_and_the_cap_end_the_run_at_once(void **state)
{
    (void)state;
    assert_int_equal(run_with("unit=2:enospc", "--optional --workers=1"), 74);
    assert_true(said("unit 2: cannot write: No space left on device"));
    assert_int_equal(run("--optional --workers=1"), 0);
    assert_int_equal(number("units.cached"), 2); /* what was finished before was kept */
}

static void a_unit_goes_to_another_device_after_two_failures(void **state)
{
    (void)state;
    /* device 0 spoils whatever it gets, but is struck out only by three different units: there are
     * two */
    assert_int_equal(run_with("unit=*:device,device=0", "--count=2 --pretend=2 --slow=400"), 0);
    assert_int_equal(number("sum"), 1);
    assert_true(number("units.retried") >= 2);
}

/* ---- a unit beside the deferred work of the one before --------------------------------------- */
static void deferred_work_runs_beside_the_next_unit(void **state)
{
    (void)state;
    assert_int_equal(run("--count=20 --workers=1 --slow=20 --later=20 --bulk=100000"), 0);
    assert_false(said(" threads for "));
    const json_int_t sum = number("sum");
    fresh_manifest(NULL);
    assert_int_equal(run("--count=20 --workers=1 --bulk=100000"), 0);
    assert_int_equal(number("sum"), sum);
    fresh_manifest(NULL);
    assert_int_equal(run("--count=1 --workers=1 --later=20"), 0); /* nothing comes behind it */
    assert_int_equal(number("units.done"), 1);
}

/* An answer comes when the next unit is computed; the deadline is of one of them. */
static void a_deadline_is_of_one_unit_beside_deferred_work_too(void **state)
{
    (void)state;
    assert_int_equal(run("--count=3 --workers=1 --slow=700 --later=100 --deadline=1"), 0);
    assert_false(said("is computed again by itself"));
    assert_int_equal(number("units.done"), 3);
}

/* Whichever of them it was, the others count no attempt. */
static void of_several_in_work_the_guilty_one_alone_is_blamed(void **state)
{
    (void)state;
    assert_int_equal(run_with("unit=3:kill", "--count=8 --workers=1 --optional --later=30"), 7);
    assert_true(said("' and 'unit 3'; each unit is computed again by itself"));
    assert_true(said("signal 9"));
    assert_int_equal(quarantined("unit 3"), 1);
    assert_int_equal(number("sum"), 28 - 3);
    assert_int_equal(number("units.retried"), 2);
    fresh_manifest(NULL);
    assert_int_equal(run("--count=8 --workers=1 --optional --slow=10 --later=30 --later-kill-at=4"),
                     7);
    assert_true(said(" ended between 'unit "));
    assert_int_equal(quarantined("unit 4"), 1);
    assert_int_equal(number("sum"), 28 - 4);
}

/* It says so itself, so there is nothing to guess; the result of the one before came first. */
static void a_failure_that_is_said_is_of_its_unit(void **state)
{
    (void)state;
    assert_int_equal(run_with("unit=3:device,times=1", "--count=8 --workers=1 --later=30"), 0);
    assert_true(said("'unit 3' failed on worker "));
    assert_int_equal(number("units.retried"), 1);
    assert_int_equal(number("sum"), 28);
    fresh_manifest(NULL);
    assert_int_equal(run("--count=8 --workers=1 --optional --later=10 --later-fail-at=2"), 7);
    assert_true(said("the deferred work fails"));
    assert_false(said("works held")); /* those of units behind it, which have not run */
    assert_int_equal(quarantined("unit 2"), 1);
    assert_int_equal(number("sum"), 28 - 2);
    fresh_manifest(NULL);
    assert_int_equal(run_with("unit=3:enospc", "--count=8 --workers=1 --later=30"), 74);
    assert_int_equal(run("--count=8 --workers=1"), 0);
    assert_int_equal(number("units.cached"), 3);
}

/* ---- quarantine ------------------------------------------------------------------------------ */
static void an_optional_unit_that_fails_everywhere_makes_the_stage_partial(void **state)
{
    (void)state;
    assert_int_equal(run_with("unit=3:kill", "--count=8 --optional --planner --workers=2"), 7);
    assert_true(said("knn: 'unit 3' is quarantined after 3 attempts, the last on worker "));
    assert_true(said("kiln-test: 1 of 9 units are quarantined; run the same command to try them "
                     "again, or later stages with "
                     "--allow-partial\n"));
    assert_true(status_is("partial"));
    assert_int_equal(number("units.quarantined"), 1);
    assert_int_equal(number("sum"), 28 - 3);
    assert_int_equal(state_of("knn"), KILN_STAGE_PARTIAL);
    assert_int_equal(quarantined("unit 3"), 1);

    /* never taken for fresh */
    assert_int_equal(run_with("unit=3:kill", "--count=8 --optional --planner --workers=2"), 7);
    assert_int_equal(number("units.done"), 0);
    assert_int_equal(number("units.cached"), 8);

    assert_int_equal(run("--count=8 --optional --planner"), 0);
    assert_int_equal(number("units.done"), 1); /* just those */
    assert_int_equal(number("sum"), 28);
    assert_int_equal(state_of("knn"), KILN_STAGE_FRESH);
    assert_int_equal(quarantined("unit 3"), 0);
}

static void a_unit_that_must_be_ends_the_run_with_its_name(void **state)
{
    (void)state;
    assert_int_equal(run_with("unit=plan:abort", "--optional --planner"), 7);
    assert_true(said(
        "'plan' failed 3 times, the last on worker 0 of the CPU: the worker died of signal 6"));
    assert_true(status_is("failed"));
    assert_int_equal(access(db, F_OK), -1); /* nothing was finished */
    assert_int_equal(run("--count=3"), 0);
    assert_int_equal(run_with("unit=3:exit", "--count=4"), 7);
    /* of the run before: nothing was changed */
    assert_int_equal(state_of("knn"), KILN_STAGE_FRESH);
    assert_int_equal(quarantined("unit 3"), 1);
    assert_int_equal(run("--count=4"), 0);
    assert_int_equal(quarantined("unit 3"), 0);
}

static void a_partial_stage_that_turned_stale_is_not_taken_for_fresh(void **state)
{
    (void)state;
    assert_int_equal(run_with("unit=1:exit", "--optional"), 7);
    set_state("knn", KILN_STAGE_STALE);
    assert_int_equal(run("--optional"), 0);
    assert_int_equal(number("units.done"), 1);
}

static void a_stage_that_is_fresh_again_has_nothing_in_quarantine(void **state)
{
    (void)state;
    assert_int_equal(run("--count=3 --planner"), 0);
    assert_int_equal(run_with("unit=3:exit", "--count=4"), 7);
    assert_int_equal(quarantined("unit 3"), 1);
    /* other options: nothing to do, and nothing is missing */
    assert_int_equal(run("--count=3"), 0);
    assert_true(status_is("nothing to do"));
    assert_int_equal(quarantined("unit 3"), 0);
}

static void what_is_given_up_in_a_run_that_stores_nothing_stays_out_of_the_manifest(void **state)
{
    (void)state;
    assert_int_equal(run("--optional"), 0);
    assert_int_equal(run_with("unit=4:exit", "--optional --once --count=5"), 7);
    assert_int_equal(quarantined("unit 4"), 0);
    assert_int_equal(state_of("knn"), KILN_STAGE_FRESH);
}

static void force_keeps_what_is_stored_when_a_unit_fails(void **state)
{
    (void)state;
    assert_int_equal(run("--optional"), 0);
    assert_int_equal(run_with("unit=2:exit", "--optional --force"), 7);
    assert_int_equal(quarantined("unit 2"), 0);
    assert_int_equal(state_of("knn"), KILN_STAGE_FRESH);
    assert_int_equal(run("--optional --force"), 0);
}

/* ---- devices --------------------------------------------------------------------------------- */
static void a_device_on_which_three_units_failed_is_retired(void **state)
{
    (void)state;
    assert_int_equal(run_with("unit=*:exit,device=0", "--count=30 --pretend=2 --slow=60"), 0);
    assert_true(said("is not used any more: 3 different units failed on it, the last '"));
    assert_int_equal(number("sum"), 30 * 29 / 2);
    assert_int_equal(number("units.done"), 30);
}

static void a_lost_device_is_retired_at_once_and_no_unit_is_blamed(void **state)
{
    (void)state;
    assert_int_equal(run_with("unit=*:lost,device=0", "--count=8 --pretend=2 --slow=100"), 0);
    assert_true(said("is not used any more: the device is lost"));
    assert_int_equal(number("units.retried"), 0);
    assert_int_equal(number("sum"), 28);
}

static void no_device_left_ends_the_run_and_keeps_what_is_finished(void **state)
{
    (void)state;
    assert_int_equal(run_with("unit=5:lost", "--count=8 --pretend=2 --optional"), 6);
    assert_true(said("no device is left to compute on; "));
    assert_int_equal(run("--count=8 --optional"), 0);
    assert_true(number("units.cached") >= 4);
}

static void the_cpu_alone_is_never_retired(void **state)
{
    (void)state;
    assert_int_equal(run_with("unit=unit*1?:exit", "--count=20 --optional --workers=2"), 7);
    assert_int_equal(number("units.quarantined"), 10);
    assert_int_equal(number("units.done"), 10);
}

static void workers_that_never_come_to_life_end_the_run(void **state)
{
    (void)state;
    assert_int_equal(run("--stillborn --workers=1"), 70);
    assert_true(said("the worker ended with exit code 3 before it was ready, 3 times"));
}

static void a_signal_ends_a_run_whose_worker_hangs(void **state)
{
    (void)state;
    assert_int_equal(setenv("KILN_FAULT", "unit=2:hang", 1), 0);
    const pid_t pid = start("--workers=1 --devices=cpu");
    const pid_t worker = child_of(pid);
    assert_int_equal(unsetenv("KILN_FAULT"), 0);
    assert_true(worker > 0);
    nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(finish(pid), 143);
    assert_true(ends(worker));
    assert_int_equal(run(""), 0);
    assert_int_equal(number("units.cached"), 2);
}

/* ---- CPU workers ----------------------------------------------------------------------------- */
static void workers_share_the_threads_and_one_alone_has_them_all(void **state)
{
    (void)state;
    assert_int_equal(run("--count=4 --workers=4 --threads=8"), 0);
    assert_int_equal(started(), 4);
    assert_int_equal(number("first.threads"), 2);
    fresh_manifest(NULL);
    assert_int_equal(run("--count=1 --workers=4 --threads=8"), 0);
    assert_int_equal(started(), 1);
    assert_int_equal(number("first.threads"), 8);
    fresh_manifest(NULL);
    assert_int_equal(run("--count=40 --threads=3"), 0); /* by itself, few threads make one worker */
    assert_int_equal(started(), 1);
    fresh_manifest(NULL);
    assert_int_equal(run("--count=16 --threads=9"), 0);
    assert_int_equal(started(), 2);
}

/* How many the last list was planned for. */
static json_int_t planned(void)
{
    json_t *lists = reported("lists");
    const json_int_t n = json_integer_value(json_object_get(json_array_get(lists, 0), "workers"));
    json_decref(lists);
    return n;
}

static void workers_are_as_many_as_suit_the_threads(void **state)
{
    (void)state;
    assert_int_equal(run("--count=100 --slow=100 --threads=100"), 0);
    assert_int_equal(planned(), 25);
    assert_int_equal(number("first.threads"), 4);
    fresh_manifest(NULL);
    assert_int_equal(run("--count=100 --slow=100 --threads=90 --serial --unit-mib=1"), 0);
    assert_int_equal(planned(), 90);
    assert_in_range(started(), 8, 90);
    assert_int_equal(number("first.threads"), 1);
    fresh_manifest(NULL);
    assert_int_equal(run("--count=100 --slow=100 --threads=90 --serial --ram=1G"), 0);
    assert_in_range(planned(), 8, 16);
    assert_in_range(started(), 8, planned());
    assert_true(number("ram_predicted_bytes") <= (json_int_t)1 << 30);
}

/* Others start while the first ones work: a list that these end needs no more. */
static void a_short_list_starts_few_workers(void **state)
{
    (void)state;
    /* small units, as 200 workers have to fit into what is free */
    assert_int_equal(run("--count=200 --threads=200 --serial --unit-mib=1 --ram=64G"), 0);
    if (planned() != 200)
        fail_msg("%lld workers, not 200: is less than 4 GiB of memory free?", (long long)planned());
    assert_in_range(started(), 16, 100);
    assert_int_equal(number("units.done"), 200);
}

/* ---- parts of a stage ------------------------------------------------------------------------ */
static void shards_compute_their_units_and_the_whole_run_only_commits(void **state)
{
    (void)state;
    assert_int_equal(run("--count=6 --optional --planner --shard=1/2"), 0);
    assert_int_equal(number("units.done"), 1 + 3);
    assert_int_equal(number("left"), 3);
    assert_true(said("3 of 7 units are left; when all are stored, run the same command without "
                     "--shard to finish the stage"));
    assert_int_equal(state_of("knn"), KILN_STAGE_MISSING);
    assert_int_equal(run("--count=6 --optional --planner --shard=1/2"), 0); /* twice is no harm */
    assert_int_equal(number("units.done"), 0);
    assert_int_equal(run("--count=6 --optional --planner --shard=2/2"), 0);
    assert_int_equal(number("units.done"), 3);
    assert_int_equal(number("left"), 0);
    assert_true(
        said("all 7 units are stored; run the same command without --shard to finish the stage"));
    assert_int_equal(state_of("knn"), KILN_STAGE_MISSING);
    assert_int_equal(run("--count=6 --optional --planner"), 0);
    assert_int_equal(number("units.done"), 0);
    assert_int_equal(number("sum"), 15);
    assert_int_equal(state_of("knn"), KILN_STAGE_FRESH);
    assert_int_equal(run("--count=6 --optional --planner --shard=1/2"), 0);
    assert_true(status_is("nothing to do"));
}

static void a_group_goes_to_one_shard(void **state)
{
    (void)state;
    assert_int_equal(run("--count=8 --optional --groups=2 --shard=2/2"), 0);
    assert_int_equal(number("units.done"), 4);
    assert_int_equal(run("--count=8 --optional --groups=2 --units=2-3,6-7"), 0);
    assert_int_equal(number("units.done"), 0);
    assert_int_equal(number("left"), 4);
}

static void units_are_chosen_by_position_and_name(void **state)
{
    (void)state;
    assert_int_equal(run("--count=12 --optional --units=0,2-3,unit?1*"), 0);
    assert_int_equal(number("units.done"), 3 + 3); /* 0, 2, 3; 1, 10, 11 */
    assert_int_equal(number("left"), 6);
    assert_int_equal(run("--count=12 --units=0 --optional --scale=5"), 0);
    assert_int_equal(number("units.done"), 1);
}

static void a_unit_of_a_shard_that_fails_is_said(void **state)
{
    (void)state;
    assert_int_equal(run_with("unit=2:exit", "--count=4 --optional --shard=1/2"), 7);
    assert_int_equal(quarantined("unit 2"), 1);
    assert_int_equal(state_of("knn"), KILN_STAGE_MISSING);
    assert_int_equal(run("--count=4 --optional --shard=1/2"), 0);
    assert_int_equal(quarantined("unit 2"), 0);
}

static void slips_of_the_pen_are_told(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "--shard=0/2",           "--shard=3/2",        "--shard=1",     "--shard=a/b",
        "--shard=1/2x",          "--units=5-3",        "--units=1,,2",  "--units=",
        "--shard=1/2 --units=0", "--once --shard=1/2", "--workers=257", "--deadline=-1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(run(wrong[i]), 2);
        assert_int_equal(access(db, F_OK), -1);
    }
    static const char *const faults[] = {"5:kill",
                                         "unit=5",
                                         "unit=5:burn",
                                         "unit=:kill",
                                         "unit=5:kill,times=x",
                                         "unit=5:kill,often=1"};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        assert_int_equal(run_with(faults[i], ""), 2);
        assert_true(said("KILN_FAULT takes unit="));
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) return stage_main(argc, argv);
#define CLAIM(f) cmocka_unit_test_setup(f, fresh_manifest)
    const struct CMUnitTest tests[] = {
        CLAIM(a_unit_that_fails_once_is_tried_again),
        CLAIM(a_unit_that_hangs_is_killed_at_the_deadline),
        CLAIM(a_worker_that_stops_before_its_first_word_is_replaced),
        CLAIM(time_in_which_everything_was_stopped_is_not_counted),
        CLAIM(what_a_dead_worker_had_not_begun_counts_no_attempt),
        CLAIM(the_disk_the_input_and_the_cap_end_the_run_at_once),
        CLAIM(a_unit_goes_to_another_device_after_two_failures),
        CLAIM(deferred_work_runs_beside_the_next_unit),
        CLAIM(a_deadline_is_of_one_unit_beside_deferred_work_too),
        CLAIM(of_several_in_work_the_guilty_one_alone_is_blamed),
        CLAIM(a_failure_that_is_said_is_of_its_unit),
        CLAIM(an_optional_unit_that_fails_everywhere_makes_the_stage_partial),
        CLAIM(a_unit_that_must_be_ends_the_run_with_its_name),
        CLAIM(a_partial_stage_that_turned_stale_is_not_taken_for_fresh),
        CLAIM(a_stage_that_is_fresh_again_has_nothing_in_quarantine),
        CLAIM(what_is_given_up_in_a_run_that_stores_nothing_stays_out_of_the_manifest),
        CLAIM(force_keeps_what_is_stored_when_a_unit_fails),
        CLAIM(a_device_on_which_three_units_failed_is_retired),
        CLAIM(a_lost_device_is_retired_at_once_and_no_unit_is_blamed),
        CLAIM(no_device_left_ends_the_run_and_keeps_what_is_finished),
        CLAIM(the_cpu_alone_is_never_retired),
        CLAIM(workers_that_never_come_to_life_end_the_run),
        CLAIM(a_signal_ends_a_run_whose_worker_hangs),
        CLAIM(workers_share_the_threads_and_one_alone_has_them_all),
        CLAIM(workers_are_as_many_as_suit_the_threads),
        CLAIM(a_short_list_starts_few_workers),
        CLAIM(shards_compute_their_units_and_the_whole_run_only_commits),
        CLAIM(a_group_goes_to_one_shard),
        CLAIM(units_are_chosen_by_position_and_name),
        CLAIM(a_unit_of_a_shard_that_fails_is_said),
        CLAIM(slips_of_the_pen_are_told),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
