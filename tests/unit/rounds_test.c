/* Rounds: what goes to which shard, claims and the ways of opening beside them, and the modes with
 * units that fail. What parts do beside a manifest is e2e/rounds.t. */
#include "engine_stage.h"

#include "stages/engine/hosts/shards.h"
#include "schema/claim.h"

#include <sys/stat.h>
#include <sys/wait.h>

/* ---- helpers --------------------------------------------------------------------------------- */
static char parts[TEST_PATH_MAX], claim_file[TEST_PATH_MAX + 8];

static int fresh_round(void **state)
{
    (void)snprintf(parts, sizeof parts, "%s/parts", folder);
    (void)snprintf(claim_file, sizeof claim_file, "%s.claim", db);
    (void)unlink(claim_file);
    (void)test_folder_remove(parts);
    return fresh_manifest(state);
}

static int clean_up(void **state)
{
    (void)fresh_round(state);
    return remove_folder(state);
}

static int run_in(const char *before, const char *after)
{
    char line[4 * TEST_PATH_MAX];
    (void)snprintf(line, sizeof line, "%s%s %s", before, parts, after);
    return run(line);
}

static kiln_claim example(void)
{
    static kiln_claim_range due[] = {{0, 0}, {3, 7}, {9, 9}};
    static kiln_decision decisions[] = {{"ranges", 12}, {"kind", UINT64_MAX}};
    kiln_claim c = {.stage = "knn",
                    .plan = kiln_hash_of("x", 1),
                    .tasks = 4,
                    .n_units = 10,
                    .what = "of two words",
                    .due = due,
                    .n_due = 3};
    c.decisions = decisions;
    c.n_decisions = 2;
    return c;
}

static kiln_status open_with(kiln_open_mode mode, kiln_error *err)
{
    kiln_manifest *m = NULL;
    const kiln_status st = kiln_manifest_open(db, mode, "test", false, &m, err);
    kiln_manifest_close(m);
    return st;
}

/* ---- shards ---------------------------------------------------------------------------------- */
static void shards_are_consecutive_and_of_equal_cost(void **state)
{
    enum { N = 1000, SHARDS = 8 };
    static kiln_share units[N];
    static uint32_t shard_of[N];
    uint64_t cost[SHARDS] = {0}, total = 0;
    (void)state;
    for (uint64_t i = 0; i < N; i++)
        units[i] = (kiln_share){.cost = 1 + i * 7919 % 1000, .number = i};
    for (uint64_t i = 0; i < N; i++) total += units[i].cost;
    kiln_shards_cut(units, N, SHARDS, shard_of);
    for (uint64_t i = 0; i < N; i++) {
        assert_true(shard_of[i] < SHARDS && (i == 0 || shard_of[i] >= shard_of[i - 1]));
        cost[shard_of[i]] += units[i].cost;
    }
    for (int s = 0; s < SHARDS; s++)
        assert_in_range(cost[s], total / SHARDS - 1000, total / SHARDS + 1000);
}

static void a_small_group_stays_together_and_a_large_one_is_cut(void **state)
{
    kiln_share units[40];
    uint32_t shard_of[40];
    bool is_cut = false;
    (void)state;
    for (uint64_t i = 0; i < 40; i++)
        units[i] = (kiln_share){.cost = 10, .group = 1 + i / 4, .number = i};
    kiln_shards_cut(units, 40, 3, shard_of);
    for (int i = 1; i < 40; i++) assert_true(shard_of[i] == shard_of[i - 1] || i % 4 == 0);
    assert_int_equal(shard_of[39], 2);
    for (uint64_t i = 0; i < 40; i++) units[i].group = 1 + i / 20;
    kiln_shards_cut(units, 40, 3, shard_of);
    for (int i = 1; i < 40; i++) is_cut |= shard_of[i] != shard_of[i - 1] && i % 20;
    assert_true(is_cut);
}

/* As of cameras whose names say nothing of where they stand: what lies together is computed
 * together, bands of a camera too. */
static void units_of_near_places_go_to_one_shard(void **state)
{
    enum { N = 24, SHARDS = 4, BANDS = 2 };
    kiln_share units[N];
    uint32_t shard_of[N];
    (void)state;
    for (uint64_t i = 0; i < N; i++)
        units[i] = (kiln_share){
            .cost = 1, .group = 1 + i / BANDS, .place = 1 + i / BANDS % SHARDS, .number = i};
    kiln_shares_sort(units, N);
    kiln_shards_cut(units, N, SHARDS, shard_of);
    for (uint64_t i = 0; i < N; i++) assert_int_equal(shard_of[i], i / BANDS % SHARDS);
    for (uint64_t i = 0; i < N; i++) units[i] = (kiln_share){.cost = 1, .number = N - 1 - i};
    kiln_shares_sort(units, N); /* without places, the order of the list */
    for (uint64_t i = 0; i < N; i++) assert_int_equal(units[i].number, i);
    kiln_shares_sort(units, 0);
}

static void there_may_be_more_shards_than_units_and_costs_of_nothing(void **state)
{
    kiln_share units[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
    uint32_t shard_of[3];
    (void)state;
    kiln_shards_cut(units, 3, 100, shard_of);
    assert_true(shard_of[0] < shard_of[1] && shard_of[1] < shard_of[2] && shard_of[2] < 100);
    kiln_shards_cut(units, 0, 2, shard_of);
}

/* ---- claims ---------------------------------------------------------------------------------- */
static void a_claim_comes_back_as_it_was_written(void **state)
{
    static const bool due[] = {1, 0, 0, 1, 1, 1, 1, 1, 0, 1, 0};
    kiln_claim c = example(), back;
    /* what a process that was killed while it wrote one has left */
    char killed[sizeof claim_file + 16];
    bool there;
    (void)state;
    assert_int_equal(kiln_claim_read(db, &there, &back, NULL), KILN_OK);
    assert_false(there);
    (void)snprintf(killed, sizeof killed, "%s.tmp.4711", claim_file);
    assert_int_equal(kiln_file_write(killed, "a", 1, NULL), KILN_OK);
    assert_int_equal(kiln_claim_write(db, &c, NULL), KILN_OK);
    assert_int_equal(kiln_claim_read(db, &there, &back, NULL), KILN_OK);
    assert_true(there && kiln_hash_equal(back.plan, c.plan) && back.pid == getpid() &&
                back.tasks == 4 && back.n_units == 10);
    assert_string_equal(back.stage, "knn");
    assert_string_equal(back.what, "of two words");
    assert_int_not_equal(access(killed, F_OK), 0);
    assert_string_equal(back.host, c.host);
    assert_int_equal(back.n_decisions, 2);
    assert_string_equal(back.decisions[0].name, "ranges");
    assert_true(back.decisions[0].value == 12 && back.decisions[1].value == UINT64_MAX);
    for (uint64_t i = 0; i < 11; i++) assert_int_equal(kiln_claim_has_due(&back, i), due[i]);
    kiln_claim_release(&back);
    assert_int_equal(kiln_claim_remove(db, NULL), KILN_OK);
    assert_int_equal(kiln_claim_remove(db, NULL), KILN_OK);
}

static void what_is_no_claim_is_refused(void **state)
{
    static const char *const changes[][2] = {
        {"end\n", ""},           {"claim 1", "claim 2"},  {"due 3-7", "due 7-3"},
        {"due 3-7", "due 0-7"},  {"due 9-9", "due 9-10"}, {"tasks 4", "tasks 0"},
        {"plan ", "plan x"},     {"stage knn\n", ""},     {"units 10", "units -1"},
        {"ranges 12", "ranges"}, {"tasks 4", "jobs 4"},   {"end\n", "end\nx\n"}};
    kiln_claim c = example(), back;
    unsigned char *text;
    size_t size;
    bool there;
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char changed[1024];
        assert_int_equal(kiln_claim_write(db, &c, NULL), KILN_OK);
        assert_int_equal(kiln_file_read(claim_file, 1000, &text, &size, NULL), KILN_OK);
        char *at = strstr((char *)text, changes[i][0]);
        assert_non_null(at);
        (void)snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - (char *)text), (char *)text,
                       changes[i][1], at + strlen(changes[i][0]));
        assert_int_equal(kiln_file_write(claim_file, changed, strlen(changed), NULL), KILN_OK);
        const kiln_status st = kiln_claim_read(db, &there, &back, NULL);
        if (st != KILN_E_INPUT)
            fail_msg("'%s' in place of '%s' is taken", changes[i][1], changes[i][0]);
        free(text);
    }
    for (size = 1; size < 40; size++) { /* cut short */
        assert_int_equal(
            kiln_file_write(claim_file, "splatkiln-claim 1\nstage knn\nplan 00000000", size, NULL),
            KILN_OK);
        assert_int_equal(kiln_claim_read(db, &there, &back, NULL), KILN_E_INPUT);
    }
    assert_int_equal(unlink(claim_file), 0);
    assert_int_equal(mkfifo(claim_file, 0600), 0); /* would be waited for */
    assert_int_equal(kiln_claim_read(db, &there, &back, NULL), KILN_E_INPUT);
}

static void a_claim_keeps_writers_out_but_the_one_that_gathers(void **state)
{
    kiln_claim c = example();
    kiln_error err = {0};
    (void)state;
    assert_int_equal(open_with(KILN_OPEN_CREATE, NULL), KILN_OK);
    assert_int_equal(kiln_claim_write(db, &c, NULL), KILN_OK);
    assert_int_equal(open_with(KILN_OPEN_WRITE, &err), KILN_E_BUSY);
    assert_non_null(strstr(err.msg, "kiln-knn '"));
    assert_non_null(strstr(err.msg, " --gather DIR"));
    assert_int_equal(open_with(KILN_OPEN_CREATE, NULL), KILN_E_BUSY);
    assert_int_equal(open_with(KILN_OPEN_READ, NULL), KILN_OK);
    assert_int_equal(open_with(KILN_OPEN_CLAIMED, NULL), KILN_OK);
    assert_int_equal(open_with(KILN_OPEN_FROZEN, NULL), KILN_OK);
}

static void a_claim_is_found_through_a_link(void **state)
{
    char link[TEST_PATH_MAX + 8];
    kiln_claim c = example();
    kiln_manifest *m, *second = NULL;
    (void)state;
    (void)snprintf(link, sizeof link, "%s/link.db", folder);
    assert_int_equal(symlink(db, link), 0);
    assert_int_equal(open_with(KILN_OPEN_CREATE, NULL), KILN_OK);
    m = open_manifest(KILN_OPEN_WRITE);
    assert_int_equal(kiln_manifest_open(link, KILN_OPEN_WRITE, "test", false, &second, NULL),
                     KILN_E_BUSY);
    kiln_manifest_close(m);
    assert_int_equal(kiln_claim_write(link, &c, NULL), KILN_OK);
    assert_int_equal(access(claim_file, F_OK), 0);
    assert_true(kiln_claim_stands(link));
    assert_int_equal(open_with(KILN_OPEN_WRITE, NULL), KILN_E_BUSY);
    assert_int_equal(kiln_claim_remove(link, NULL), KILN_OK);
    assert_false(kiln_claim_stands(db));
    assert_int_equal(unlink(link), 0);
}

static void another_number_of_tasks_is_of_the_plan_that_stands(void **state)
{
    kiln_claim_range all = {0, 2};
    kiln_claim c = {.stage = "knn",
                    .what = "ranges",
                    .plan = kiln_hash_of("p", 1),
                    .tasks = 2,
                    .n_units = 3,
                    .due = &all,
                    .n_due = 1};
    kiln_claim found;
    bool there;
    (void)state;
    assert_int_equal(open_with(KILN_OPEN_CREATE, NULL), KILN_OK);
    /* a gather has removed it */
    assert_int_equal(kiln_claim_set_tasks(db, "knn", c.plan, 5, NULL), KILN_E_STALE);
    assert_false(kiln_claim_stands(db));
    assert_int_equal(kiln_claim_write(db, &c, NULL), KILN_OK);
    /* or made the next */
    assert_int_equal(kiln_claim_set_tasks(db, "knn", kiln_hash_of("q", 1), 5, NULL), KILN_E_STALE);
    assert_int_equal(kiln_claim_set_tasks(db, "knn", c.plan, 5, NULL), KILN_OK);
    assert_int_equal(kiln_claim_read(db, &there, &found, NULL), KILN_OK);
    assert_true(there);
    assert_int_equal(found.tasks, 5);
    kiln_claim_release(&found);
    kiln_manifest *gather = open_manifest(KILN_OPEN_CLAIMED);
    assert_int_equal(kiln_claim_set_tasks(db, "knn", c.plan, 7, NULL), KILN_E_BUSY);
    kiln_manifest_close(gather);
}

/* Else tasks would find a log behind the claim, and end with 75 until somebody opens the manifest
 * to write. */
static void a_plan_that_is_killed_behind_its_claim_leaves_no_log(void **state)
{
    kiln_error err = {0};
    (void)state;
    assert_int_equal(open_with(KILN_OPEN_CREATE, NULL), KILN_OK);
    const pid_t plan = fork();
    if (plan == 0) {
        const kiln_quarantine_row row = {.stage = "knn",
                                         .name = "u",
                                         .key = kiln_hash_of("u", 1),
                                         .device = "cpu",
                                         .reason = "no"};
        kiln_manifest *m = open_manifest(KILN_OPEN_WRITE);
        if (kiln_manifest_begin(m, &err) != KILN_OK ||
            kiln_quarantine_put(m, &row, &err) != KILN_OK)
            _exit(2);
        _exit(kiln_manifest_commit(m, &err) == KILN_OK && kiln_manifest_publish(m, &err) == KILN_OK
                  ? 0
                  : 3);
    }
    int status = -1;
    assert_int_equal(waitpid(plan, &status, 0), plan);
    assert_int_equal(status, 0);
    assert_int_equal(open_with(KILN_OPEN_FROZEN, &err), KILN_OK);
}

static void a_plan_that_stands_brings_in_what_a_killed_gather_has_left(void **state)
{
    kiln_error err = {0};
    int status = -1;
    (void)state;
    assert_int_equal(run("--count=6 --plan"), 0);
    const pid_t gather = fork();
    if (gather == 0) {
        const kiln_quarantine_row row = {.stage = "knn",
                                         .name = "u",
                                         .key = kiln_hash_of("u", 1),
                                         .device = "cpu",
                                         .reason = "no"};
        kiln_manifest *m = open_manifest(KILN_OPEN_CLAIMED);
        if (kiln_manifest_begin(m, &err) != KILN_OK ||
            kiln_quarantine_put(m, &row, &err) != KILN_OK)
            _exit(2);
        _exit(kiln_manifest_commit(m, &err) == KILN_OK ? 0 : 3);
    }
    assert_int_equal(waitpid(gather, &status, 0), gather);
    assert_int_equal(status, 0);
    assert_int_equal(run_in("--count=6 --shard=1/1 --part=", ""), 75);
    assert_true(said("--plan"));
    assert_int_equal(run("--count=6 --plan"), 0);
    assert_int_equal(run_in("--count=6 --shard=1/1 --part=", ""), 0);
}

static void a_frozen_manifest_is_the_file_alone(void **state)
{
    char wal[TEST_PATH_MAX + 8], shm[TEST_PATH_MAX + 8];
    kiln_error err = {0};
    (void)state;
    assert_int_equal(open_with(KILN_OPEN_CREATE, NULL), KILN_OK);
    (void)snprintf(wal, sizeof wal, "%s-wal", db);
    (void)snprintf(shm, sizeof shm, "%s-shm", db);
    kiln_manifest *m = open_manifest(KILN_OPEN_FROZEN);
    kiln_stage_row row;
    assert_int_equal(kiln_stage_get(m, "knn", &row, NULL), KILN_OK);
    assert_true(access(wal, F_OK) != 0 && access(shm, F_OK) != 0);
    kiln_manifest_close(m);
    m = open_manifest(KILN_OPEN_WRITE);
    assert_int_equal(open_with(KILN_OPEN_FROZEN, &err), KILN_E_BUSY); /* somebody writes */
    assert_non_null(strstr(err.msg, "is being written"));
    kiln_manifest_close(m);
    /* what nobody has brought into the file */
    assert_int_equal(kiln_file_write(wal, "x", 1, NULL), KILN_OK);
    assert_int_equal(open_with(KILN_OPEN_FROZEN, &err), KILN_E_BUSY);
    assert_non_null(strstr(err.msg, "-wal"));
}

/* ---- modes ----------------------------------------------------------------------------------- */
static void a_stage_in_parts_is_the_stage(void **state)
{
    (void)state;
    assert_int_equal(run("--count=9 --planner --plan --tasks=2"), 0);
    assert_true(status_is("planned"));
    assert_int_equal(number("units.done"), 1); /* what all need */
    assert_int_equal(number("round.due"), 9);
    assert_int_equal(state_of("knn"), KILN_STAGE_MISSING);
    assert_int_equal(run("--count=9 --planner"), 75);
    assert_int_equal(run_in("--count=9 --planner --gather=", ""), 3);
    assert_true(said("' of the parts does not exist"));
    assert_int_equal(run_in("--count=9 --planner --reads --shard=1/2 --part=", ""), 0);
    assert_true(status_is("part stored"));
    const json_int_t first = number("units.done");
    assert_int_equal(run_in("--count=9 --planner --reads --shard=2/2 --part=", ""), 0);
    assert_int_equal(first + number("units.done"), 9);
    assert_int_equal(run_in("--count=9 --planner --gather=", ""), 0);
    assert_true(status_is("done"));
    assert_int_equal(number("units.done"), 0);
    assert_int_equal(number("sum"), 36);
    assert_int_equal(state_of("knn"), KILN_STAGE_FRESH);
    assert_int_equal(access(claim_file, F_OK), -1);
}

static void a_list_with_one_unit_due_is_not_worth_a_round(void **state)
{
    (void)state;
    assert_int_equal(run("--count=1 --plan"), 0);
    assert_true(status_is("done"));
    assert_int_equal(access(claim_file, F_OK), -1);
    assert_int_equal(run("--count=2 --plan"), 0); /* the other one is stored */
    assert_true(status_is("done"));
}

static void what_the_plan_decides_holds_on_every_host(void **state)
{
    (void)state;
    assert_int_equal(run("--count=4 --choice=5 --plan --tasks=2"), 0);
    assert_int_equal(run_in("--count=4 --choice=6 --shard=1/2 --part=", ""), 0);
    assert_int_equal(run_in("--count=4 --choice=7 --shard=2/2 --part=", ""), 0);
    assert_int_equal(run("--count=4 --choice=8 --plan"), 0); /* it stands */
    assert_int_equal(run_in("--count=4 --choice=9 --gather=", "--no-compute"), 0);
    assert_int_equal(number("units.done"), 0);
    assert_int_equal(run("--count=4 --scale=2 --plan"), 0);
    assert_int_equal(run_in("--count=4 --choice=6 --scale=2 --shard=1/2 --part=", ""), 4);
    assert_true(said("has not decided 'choice'"));
}

static void a_unit_that_fails_in_a_part_is_tried_again_by_the_gather(void **state)
{
    (void)state;
    assert_int_equal(run("--count=6 --plan"), 0);
    assert_int_equal(run_in("--count=6 --kill-at=2 --shard=1/1 --part=", ""), 7);
    assert_true(said("--gather tries it again"));
    assert_int_equal(run_in("--count=6 --gather=", "--no-compute"), 7);
    assert_int_equal(number("round.missing"), 1);
    assert_true(is_text("round.missing_shards", "1"));
    assert_true(said("'unit 2'"));
    assert_int_equal(access(claim_file, F_OK), 0);
    assert_int_equal(run_in("--count=6 --gather=", ""), 0);
    assert_int_equal(number("units.done"), 1);
    assert_int_equal(number("sum"), 15);
}

static void a_part_that_lacks_units_is_completed(void **state)
{
    char gone[TEST_PATH_MAX + 64], hex[33];
    kiln_claim c;
    bool there;
    (void)state;
    assert_int_equal(run("--count=6 --plan --tasks=2"), 0);
    assert_int_equal(run_in("--count=6 --shard=3/3 --part=", ""), 0);
    /* its 4 and 5 are elsewhere, 2 is given up */
    assert_int_equal(run_in("--count=6 --kill-at=2 --shard=1/1 --part=", ""), 7);
    assert_int_equal(kiln_claim_read(db, &there, &c, NULL), KILN_OK);
    (void)snprintf(gone, sizeof gone, "%s/%s-%s-3-of-3.part", parts, c.stage,
                   kiln_hash_hex(c.plan, hex));
    kiln_claim_release(&c);
    assert_int_equal(unlink(gone), 0);
    assert_int_equal(run_in("--count=6 --shard=1/1 --part=", ""), 0);
    assert_int_equal(number("units.done"), 3);
    assert_int_equal(run_in("--count=6 --shard=1/1 --part=", ""), 0);
    assert_int_equal(number("units.done"), 0);
    assert_int_equal(run_in("--count=6 --gather=", "--no-compute"), 0);
    assert_int_equal(number("sum"), 15);
}

static void a_part_of_a_manifest_that_was_changed_is_not_kept(void **state)
{
    char line[3 * TEST_PATH_MAX];
    (void)state;
    assert_int_equal(run("--count=6 --plan"), 0);
    (void)snprintf(line, sizeof line, "--count=6 --shard=1/1 --change=%s --part=", db);
    assert_int_equal(run_in(line, ""), 75);
    assert_true(said("was changed by a gather"));
    (void)snprintf(line, sizeof line, "--count=6 --shard=1/1 --unlink=%s --part=", claim_file);
    assert_int_equal(run_in(line, ""), 4);
    assert_true(said("is closed, so its part is not needed any more"));
    assert_int_equal(rmdir(parts), 0);
}

static void a_part_that_fails_leaves_nothing(void **state)
{
    (void)state;
    assert_int_equal(run("--count=6 --plan"), 0);
    assert_int_equal(run_in("--count=6 --fail-at=2 --shard=1/1 --part=", ""), 3);
    assert_int_equal(rmdir(parts), 0);
}

int main(int argc, char **argv)
{
    if (argc > 1) return stage_main(argc, argv);
#define CLAIM(f) cmocka_unit_test_setup(f, fresh_round)
    const struct CMUnitTest tests[] = {
        CLAIM(shards_are_consecutive_and_of_equal_cost),
        CLAIM(a_small_group_stays_together_and_a_large_one_is_cut),
        CLAIM(units_of_near_places_go_to_one_shard),
        CLAIM(there_may_be_more_shards_than_units_and_costs_of_nothing),
        CLAIM(a_claim_comes_back_as_it_was_written),
        CLAIM(what_is_no_claim_is_refused),
        CLAIM(a_claim_keeps_writers_out_but_the_one_that_gathers),
        CLAIM(a_frozen_manifest_is_the_file_alone),
        CLAIM(a_claim_is_found_through_a_link),
        CLAIM(another_number_of_tasks_is_of_the_plan_that_stands),
        CLAIM(a_plan_that_is_killed_behind_its_claim_leaves_no_log),
        CLAIM(a_plan_that_stands_brings_in_what_a_killed_gather_has_left),
        CLAIM(a_stage_in_parts_is_the_stage),
        CLAIM(a_list_with_one_unit_due_is_not_worth_a_round),
        CLAIM(what_the_plan_decides_holds_on_every_host),
        CLAIM(a_unit_that_fails_in_a_part_is_tried_again_by_the_gather),
        CLAIM(a_part_that_lacks_units_is_completed),
        CLAIM(a_part_of_a_manifest_that_was_changed_is_not_kept),
        CLAIM(a_part_that_fails_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, clean_up);
}
