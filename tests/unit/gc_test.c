/* What kiln-gc drops and keeps, its steps, and what it does with a manifest that is damaged or
 * written by another program. */
#include "schema/gc.h"
#include "manifest_fixture.h"

#include <sys/mount.h>
#include <sys/stat.h>

static char path[600];

static int make_bake(void **state)
{
    if (make_scratch(state) != 0) return -1;
    in_scratch(state, "m.db", path);
    kiln_manifest *m = open_manifest(path, KILN_OPEN_CREATE);
    fixture_fill(m, false);
    kiln_manifest_close(m);
    return 0;
}

/* A unit whose outputs are `n` blobs of their own, done at finished_ns. Returns its key. */
static kiln_hash add_unit(kiln_manifest *m, const char *stage, const char *name, int number,
                          int64_t finished_ns, uint32_t n)
{
    kiln_error err = {0};
    char text[64], sql[160];
    kiln_blob blobs[8];
    kiln_unit_output outputs[8] = {{.name = ""}};
    for (uint32_t i = 0; i < n; i++) {
        const int bytes = snprintf(text, sizeof text, "%s %s %d %u", stage, name, number, i);
        OK(kiln_blob_pack(text, (size_t)bytes, 1, &blobs[i], &err));
        snprintf(outputs[i].name, sizeof outputs[i].name, "out %u", i);
        outputs[i].hash = blobs[i].hash;
        outputs[i].raw_bytes = (uint64_t)bytes;
        outputs[i].elem = 1;
    }
    snprintf(text, sizeof text, "%s %s %d", stage, name, number);
    const kiln_hash key = kiln_hash_of(text, strlen(text));
    const kiln_unit_result result = {.n = n, .outputs = outputs};
    OK(kiln_unit_store(m, &(kiln_unit_done){key, stage, name, 1}, &result, blobs, &err));
    snprintf(sql, sizeof sql,
             "UPDATE unit SET finished_ns = %lld WHERE id = (SELECT max(id) FROM unit)",
             (long long)finished_ns);
    run_sql(m, sql);
    for (uint32_t i = 0; i < n; i++) free(blobs[i].packed);
    return key;
}

static bool is_there(kiln_manifest *m, kiln_hash key)
{
    kiln_error err = {0};
    kiln_unit_result result;
    bool found;
    OK(kiln_unit_find(m, key, &found, &result, &err));
    kiln_unit_result_release(&result);
    return found;
}

static void finish_stage(kiln_manifest *m, const char *stage, int64_t finished_ns)
{
    kiln_error err = {0};
    kiln_stage_row row = {.version = 1, .state = KILN_STAGE_FRESH, .finished_ns = finished_ns};
    snprintf(row.name, sizeof row.name, "%s", stage);
    OK(kiln_stage_put(m, &row, &err));
}

static kiln_gc *plan(kiln_manifest *m)
{
    kiln_error err = {0};
    kiln_gc *g;
    OK(kiln_gc_plan(m, &g, &err));
    return g;
}

static void drop_all(kiln_manifest *m)
{
    kiln_error err = {0};
    kiln_gc *g = plan(m);
    for (bool more = true; more;) OK(kiln_gc_step(g, &more, &err));
    kiln_gc_free(g);
}

static void verify(kiln_manifest *m)
{
    kiln_error err = {0};
    uint64_t bytes;
    OK(kiln_manifest_verify(m, NULL, NULL, &bytes, &err));
}

static int by_bytes(const void *a, const void *b) { return memcmp(a, b, sizeof(kiln_hash)); }

/* ---- what stays ------------------------------------------------------------------------------ */
static void a_manifest_without_anything_old_loses_nothing(void **state)
{
    (void)state;
    kiln_manifest *m = open_manifest(path, KILN_OPEN_READ); /* a reader may look */
    kiln_gc *g = plan(m);
    assert_int_equal(kiln_gc_layers(g, NULL).dropped, 0);
    assert_int_equal(kiln_gc_layers(g, "baked").kept, 1);
    assert_int_equal(kiln_gc_blobs(g).dropped, 0);
    assert_int_equal(kiln_gc_blobs(g).kept, number_of(m, "SELECT count(*) FROM blob"));
    kiln_gc_free(g);
    kiln_manifest_close(m);
}

static void units_that_the_output_was_made_from_stay_and_others_go(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
    const kiln_hash old = add_unit(m, "prune", "block 0", 1, 100, 3),
                    plan_unit = add_unit(m, "prune", "statistics", 1, 50, 1),
                    now =
                        /* computed before the other, by a run with the options of now */
                    add_unit(m, "prune", "block 0", 2, 90, 3),
                    later = add_unit(m, "prune", "block 0", 3, 300, 2),
                    other = add_unit(m, "export", "something", 1, 10, 1);
    kiln_hash used[2] = {plan_unit, now};
    qsort(used, 2, sizeof *used, by_bytes);
    OK(kiln_units_used_put(m, "prune", used, 2, &err));
    finish_stage(m, "prune", 200);
    run_sql(m, "UPDATE unit SET finished_ns = 200 WHERE name = 'units of the current output'");

    kiln_gc *g = plan(m);
    assert_int_equal(kiln_gc_units(g, "prune").dropped, 1);
    assert_int_equal(kiln_gc_units(g, "prune").kept, 4);
    assert_int_equal(kiln_gc_units(g, NULL).kept, 5);
    assert_int_equal(kiln_gc_blobs(g).dropped, 3);
    assert_int_equal(kiln_gc_bytes(g),
                     number_of(m,
                               "SELECT sum(length(packed)) FROM blob JOIN unit_output USING (hash)"
                               " JOIN unit ON unit.id = unit WHERE finished_ns = 100"));
    kiln_gc_free(g);
    drop_all(m);
    assert_false(is_there(m, old));
    assert_true(is_there(m, plan_unit)); /* no layer names its output */
    assert_true(is_there(m, now));
    assert_true(is_there(m, later)); /* of an output that is not complete yet */
    assert_true(is_there(m, other)); /* of a stage that never finished */
    assert_int_equal(
        number_of(m, "SELECT count(*) FROM unit_output WHERE unit NOT IN (SELECT id FROM unit)"),
        0);
    verify(m);
    kiln_manifest_close(m);
}

static void the_unit_of_an_image_of_either_kind_stays(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
    const kiln_hash drawn = add_unit(m, "render", "camera view 1", 1, 10, 1),
                    gone = add_unit(m, "render", "camera view 1", 2, 20, 1);
    kiln_image *image = malloc(sizeof *image);
    assert_non_null(image);
    *image = fixture_image("view 1");
    strcpy(image->device_kind, "cuda");
    image->key = drawn;
    OK(kiln_image_put(m, image, &err));
    free(image);
    OK(kiln_units_used_put(m, "render", NULL, 0, &err));
    finish_stage(m, "render", 100);
    drop_all(m);
    assert_true(is_there(m, drawn));
    assert_false(is_there(m, gone));
    verify(m);
    kiln_manifest_close(m);
}

static void a_bake_of_before_keeps_what_outputs_have_and_of_plans_the_newest(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
    const kiln_hash older = add_unit(m, "chunk", "plan", 1, 10, 1),
                    newest = add_unit(m, "chunk", "plan", 2, 20, 1),
                    named = add_unit(m, "chunk", "chunk /0", 1, 5, 1),
                    after = add_unit(m, "chunk", "chunk /0", 2, 15, 1),
                    empty = add_unit(m, "chunk", "chunk /1", 1, 16, 1),
                    of_run = add_unit(m, "chunk", "pairs", 1, 60, 1),
                    of_run_too = add_unit(m, "chunk", "pairs", 2, 70, 1);
    /* the layer's means are an output of `named` */
    run_sql(m, "UPDATE unit_output SET hash = (SELECT hash FROM plane JOIN plane_segment ON plane "
               "= plane.id WHERE name = 'means' "
               "LIMIT 1),"
               " raw_bytes = 36 WHERE unit = (SELECT id FROM unit WHERE finished_ns = 5)");
    run_sql(m, "UPDATE unit_output SET name = 'means' WHERE unit IN (SELECT id FROM unit WHERE "
               "finished_ns IN (5, 15, 16))");
    (void)put_bytes(m, "", 0, 1);
    run_sql(
        m,
        "UPDATE unit_output SET raw_bytes = 0, hash = (SELECT hash FROM blob WHERE raw_bytes = 0)"
        " WHERE unit = (SELECT id FROM unit WHERE finished_ns = 16)");
    finish_stage(m, "chunk", 100);
    const kiln_run_row ran = {.stage = "chunk",
                              .program = "t",
                              .parameters = "{}",
                              .device = "cpu",
                              .counters = "{}",
                              .start_ns = 50};
    OK(kiln_run_row_put(m, &ran, &err));
    drop_all(m);
    assert_false(is_there(m, older));
    assert_true(is_there(m, newest));
    assert_true(is_there(m, named));
    /* makes means, too, but no layer has them */
    assert_false(is_there(m, after));
    /* has none, so nothing could have them */
    assert_true(is_there(m, empty));
    /* of one name, both done by the run that made the output */
    assert_true(is_there(m, of_run) && is_there(m, of_run_too));
    verify(m);
    kiln_manifest_close(m);
}

static void layers_that_no_stage_names_go_with_their_blobs(void **state)
{
    (void)state;
    kiln_error err = {0};
    char before[33], after[33];
    kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
    kiln_layer *l;
    OK(kiln_layer_get(m, "baked", &l, &err));
    kiln_hash_hex(kiln_layer_digest(l), before);
    kiln_layer_free(l);
    /* the fixture's layer under another kind: the same blobs, which therefore stay; and one blob
     * that nothing names */
    run_sql(m, "INSERT INTO layer (kind, digest, count, sh_degree) SELECT 'pruned', digest, count, "
               "sh_degree FROM layer");
    run_sql(m, "INSERT INTO chunk SELECT id + 100, 2, ordinal, name, parent, count, level, "
               "hilbert_lo, hilbert_hi, box_min_x, box_min_y,"
               " box_min_z, box_max_x, box_max_y, box_max_z, reach_min_x, reach_min_y, "
               "reach_min_z, reach_max_x, reach_max_y,"
               " reach_max_z, max_log_scale, max_opacity_logit FROM chunk");
    run_sql(m, "INSERT INTO plane SELECT id + 100, chunk + 100, name, type, components, raw_bytes "
               "FROM plane");
    run_sql(m, "INSERT INTO plane_segment SELECT plane + 100, segment, hash FROM plane_segment");
    (void)put_bytes(m, "nobody names me", 15, 1);
    verify(m);
    kiln_gc *g = plan(m);
    assert_int_equal(kiln_gc_layers(g, "pruned").dropped, 1);
    assert_int_equal(kiln_gc_layers(g, NULL).kept, 1);
    assert_int_equal(kiln_gc_blobs(g).dropped, 1);
    kiln_gc_free(g);
    drop_all(m);
    assert_int_equal(number_of(m, "SELECT count(*) FROM layer"), 1);
    assert_int_equal(number_of(m, "SELECT count(*) FROM plane_segment WHERE plane > 100"), 0);
    assert_int_equal(number_of(m, "SELECT count(*) FROM plane WHERE id > 100"), 0);
    assert_int_equal(number_of(m, "PRAGMA foreign_keys"), 1);
    OK(kiln_layer_get(m, "baked", &l, &err));
    kiln_hash_hex(kiln_layer_digest(l), after);
    kiln_layer_free(l);
    assert_string_equal(before, after);
    verify(m);
    kiln_manifest_close(m);
}

/* ---- records of runs ------------------------------------------------------------------------- */
#define DONE "{\"status\":\"done\"}"
#define PARTIAL "{\"status\":\"partial\"}"
#define FAILED "{\"status\":\"failed\"}"
#define UNITS_STORED "{\"status\":\"units stored\"}"
#define PART_STORED "{\"status\":\"part stored\"}"

/* In the order of recording. program: which of its stage it is. */
static const struct {
    const char *stage, *program, *counters;
    int exit_code;
    bool kept;
} recorded[] = {
    {"prune", "1 made an output", DONE, 0, false},
    {"prune", "2 of another host, for 3", PART_STORED, 0, false},
    {"knn", "1 made the output", DONE, 0, true},
    {"prune", "3 made an output", PARTIAL, 7, false},
    {"prune", "4 of another host, for 6", PART_STORED, 7, true},
    {"prune", "5 failed", FAILED, 5, false},
    {"chunk", "1 of a shard, of no output yet", UNITS_STORED, 0, true},
    {"chunk", "2 failed", FAILED, 74, false},
    {"prune", "6 made the output", DONE, 0, true},
    {"tiles", "1 failed", FAILED, 6, false},
    {"prune", "7 of a shard, for the output that comes next", UNITS_STORED, 0, true},
    {"prune", "8 failed", FAILED, 5, false},
    {"prune", "9 failed", FAILED, 5, true},
    {"tiles", "2 failed, the newest", FAILED, 6, true},
    {"chunk", "3 failed, the newest", FAILED, 130, true},
};
enum { N_RECORDED = sizeof recorded / sizeof *recorded };

static void record_all(kiln_manifest *m)
{
    kiln_error err = {0};
    for (int i = 0; i < N_RECORDED; i++) {
        kiln_run_row row = {.program = (char *)(uintptr_t)recorded[i].program,
                            .counters = (char *)(uintptr_t)recorded[i].counters,
                            .start_ns = i,
                            .stop_ns = i + 1,
                            .exit_code = recorded[i].exit_code};
        snprintf(row.stage, sizeof row.stage, "%s", recorded[i].stage);
        OK(kiln_run_row_put(m, &row, &err));
    }
}

static bool is_recorded(kiln_manifest *m, int i)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM run WHERE stage = '%s' AND program = '%s'",
             recorded[i].stage, recorded[i].program);
    return number_of(m, sql) == 1;
}

static void of_runs_the_last_output_its_tasks_and_the_newest_stay(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_run_row last, *tasks;
    bool found;
    uint32_t n;
    kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
    run_sql(m, "DELETE FROM run");
    record_all(m);
    kiln_gc *g = plan(m);
    assert_int_equal(kiln_gc_runs(g, NULL).dropped, 7);
    assert_int_equal(kiln_gc_runs(g, NULL).kept, N_RECORDED - 7);
    assert_int_equal(kiln_gc_runs(g, "prune").dropped, 5);
    assert_int_equal(kiln_gc_runs(g, "knn").dropped, 0);
    assert_true(kiln_gc_run_bytes(g) >= 7 * sizeof DONE);
    kiln_gc_free(g);
    drop_all(m);
    for (int i = 0; i < N_RECORDED; i++)
        if (is_recorded(m, i) != recorded[i].kept)
            fail_msg("%s: '%s' is %s", recorded[i].stage, recorded[i].program,
                     recorded[i].kept ? "dropped" : "kept");
    OK(kiln_run_row_last(m, "prune", &found, &last, &err));
    assert_true(found);
    assert_string_equal(last.program, "6 made the output");
    OK(kiln_run_rows_of_tasks(m, &last, &tasks, &n, &err));
    assert_int_equal(n, 1);
    assert_string_equal(tasks[0].program, "4 of another host, for 6");
    kiln_run_rows_free(tasks, n);
    kiln_run_row_release(&last);
    g = plan(m);
    assert_int_equal(kiln_gc_runs(g, NULL).dropped, 0);
    kiln_gc_free(g);
    verify(m);
    kiln_manifest_close(m);
}

static void all_runs_stay_when_that_is_wanted(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
    run_sql(m, "DELETE FROM run");
    record_all(m);
    (void)put_bytes(m, "nobody names me", 15, 1); /* so that there is something to drop */
    kiln_gc *g = plan(m);
    kiln_gc_keep_runs(g);
    assert_int_equal(kiln_gc_runs(g, NULL).dropped, 0);
    assert_int_equal(kiln_gc_runs(g, NULL).kept, N_RECORDED);
    assert_int_equal(kiln_gc_run_bytes(g), 0);
    assert_int_equal(kiln_gc_blobs(g).dropped, 1);
    for (bool more = true; more;) OK(kiln_gc_step(g, &more, &err));
    kiln_gc_free(g);
    assert_int_equal(number_of(m, "SELECT count(*) FROM run"), N_RECORDED);
    kiln_manifest_close(m);
}

static void large_records_go_in_several_steps(void **state)
{
    (void)state;
    enum { RUNS = 40, BYTES = 4 << 20 };
    kiln_error err = {0};
    char sql[200];
    int steps = 0;
    kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
    run_sql(m, "DELETE FROM run");
    for (int i = 0; i < RUNS; i++) {
        snprintf(sql, sizeof sql,
                 "INSERT INTO run (stage, program, parameters, device, counters, start_ns, "
                 "stop_ns, exit_code) SELECT 'tiles', 't',"
                 " '{}', 'cpu', json_object('cameras', hex(zeroblob(%d))), 1, 2, 0",
                 BYTES / 2);
        run_sql(m, sql);
    }
    kiln_gc *g = plan(m);
    assert_int_equal(kiln_gc_runs(g, "tiles").dropped, RUNS - 1);
    assert_true(kiln_gc_run_bytes(g) >= (uint64_t)(RUNS - 1) * BYTES);
    for (bool more = true; more; steps++) OK(kiln_gc_step(g, &more, &err));
    kiln_gc_free(g);
    assert_true(steps >= 3);
    assert_int_equal(number_of(m, "SELECT count(*) FROM run"), 1);
    verify(m);
    kiln_manifest_close(m);
}

/* ---- what the output was made from ----------------------------------------------------------- */
static void the_units_of_an_output_are_remembered_and_replaced(void **state)
{
    (void)state;
    enum { N = 5000 };
    static kiln_hash keys[N];
    kiln_error err = {0};
    kiln_hash *got;
    uint64_t n;
    bool known;
    kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
    OK(kiln_units_used_get(m, "knn", &known, &got, &n, &err));
    assert_false(known);
    assert_null(got);
    for (int i = 0; i < N; i++) keys[i] = kiln_hash_of(&i, sizeof i);
    OK(kiln_units_used_put(m, "knn", keys, N, &err));
    OK(kiln_units_used_put(m, "prune", keys, 1, &err));
    OK(kiln_units_used_get(m, "knn", &known, &got, &n, &err));
    assert_true(known);
    assert_int_equal(n, N);
    assert_memory_equal(got, keys, sizeof keys);
    free(got);
    OK(kiln_units_used_put(m, "knn", NULL, 0, &err));
    OK(kiln_units_used_get(m, "knn", &known, &got, &n, &err));
    assert_true(known);
    assert_int_equal(n, 0);
    verify(m);
    kiln_manifest_close(m);
}

/* ---- steps ----------------------------------------------------------------------------------- */
static void many_units_go_in_several_steps_each_of_which_leaves_a_whole_manifest(void **state)
{
    (void)state;
    enum { UNITS = 9000 };
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
    OK(kiln_manifest_begin(m, &err));
    for (int i = 0; i < UNITS; i++) (void)add_unit(m, "knn", "u", i, 10, 1);
    OK(kiln_units_used_put(m, "knn", NULL, 0, &err));
    finish_stage(m, "knn", 100);
    OK(kiln_manifest_commit(m, &err));
    int steps = 0;
    kiln_gc *g = plan(m);
    assert_int_equal(kiln_gc_units(g, "knn").dropped, UNITS);
    assert_int_equal(kiln_gc_blobs(g).dropped, UNITS);
    for (bool more = true; more; steps++) {
        OK(kiln_gc_step(g, &more, &err));
        verify(m);
    }
    assert_int_equal(kiln_gc_bytes_done(g), kiln_gc_bytes(g));
    kiln_gc_free(g);
    assert_int_equal(steps, 3 + 1);
    assert_int_equal(number_of(m, "SELECT count(*) FROM unit WHERE stage = 'knn'"), 1);

    kiln_space space, small;
    OK(kiln_manifest_space(m, &space, &err));
    assert_true(space.free_bytes > 0 && space.free_bytes < space.file_bytes);
    OK(kiln_manifest_vacuum(m, (char *)*state, NULL, NULL, &err));
    OK(kiln_manifest_space(m, &small, &err));
    assert_int_equal(small.free_bytes, 0);
    assert_true(small.file_bytes < space.file_bytes);
    verify(m);
    kiln_manifest_close(m);
}

static kiln_status stop_at_once(void *context, kiln_error *err)
{
    ++*(int *)context;
    return kiln_fail(err, KILN_E_INTERRUPTED, "that will do");
}

static void a_vacuum_that_is_stopped_changes_nothing(void **state)
{
    kiln_error err = {0};
    int looks = 0;
    kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
    OK(kiln_manifest_begin(m, &err));
    /* so that there is something to look at */
    for (int i = 0; i < 4000; i++) (void)add_unit(m, "knn", "u", i, 10, 1);
    OK(kiln_manifest_commit(m, &err));
    assert_int_equal(kiln_manifest_vacuum(m, (char *)*state, stop_at_once, &looks, &err),
                     KILN_E_INTERRUPTED);
    assert_int_equal(looks, 1);
    assert_says(&err, "that will do");
    verify(m);
    kiln_manifest_close(m);
}

/* Needs root, for a file system that is full. */
static void a_vacuum_without_room_names_both_places(void **state)
{
    kiln_error err = {0};
    char full[700];
    snprintf(full, sizeof full, "%s/full", (char *)*state);
    assert_int_equal(mkdir(full, 0777), 0);
    if (mount("none", full, "tmpfs", 0, "size=64k") != 0) skip();
    kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
    OK(kiln_manifest_begin(m, &err));
    for (int i = 0; i < 4000; i++) (void)add_unit(m, "knn", "u", i, 10, 1);
    OK(kiln_manifest_commit(m, &err));
    const kiln_status st = kiln_manifest_vacuum(m, full, NULL, NULL, &err);
    assert_int_equal(umount2(full, MNT_DETACH), 0);
    assert_int_equal(st, KILN_E_IO);
    assert_says(&err, "one copy of what is kept goes to '");
    assert_says(&err, "/full' (64 KiB are free)"); /* the file of the copy is gone */
    assert_says(&err, "another beside '");
    verify(m);
    kiln_manifest_close(m);
}

static void a_write_of_another_program_ends_it(void **state)
{
    (void)state;
    kiln_error err = {0};
    bool more;
    sqlite3 *other = NULL;
    kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
    const kiln_hash old = add_unit(m, "chunk", "plan", 1, 10, 1);
    OK(kiln_units_used_put(m, "chunk", NULL, 0, &err));
    finish_stage(m, "chunk", 100);
    kiln_gc *g = plan(m);
    assert_int_equal(kiln_gc_units(g, "chunk").dropped, 1);
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "UPDATE scene SET name = 'x'", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_int_equal(kiln_gc_step(g, &more, &err), KILN_E_BUSY);
    assert_false(more);
    assert_true(is_there(m, old));
    kiln_gc_free(g);
    drop_all(m); /* a new plan knows the new state */
    assert_false(is_there(m, old));
    kiln_manifest_close(m);
}

static void a_blob_that_is_missing_is_damage(void **state)
{
    (void)state;
    static const char *const lose[] = {
        "DELETE FROM blob WHERE hash = (SELECT min(hash) FROM plane_segment)",
        "DELETE FROM blob WHERE hash = (SELECT max(hash) FROM tile_segment)", "DELETE FROM blob"};
    for (int i = 0; i < 3; i++) {
        kiln_error err = {0};
        kiln_gc *g;
        kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
        run_sql(m, "PRAGMA foreign_keys = OFF");
        run_sql(m, lose[i]);
        assert_int_equal(kiln_gc_plan(m, &g, &err), KILN_E_IO);
        assert_null(g);
        assert_says(&err, "is damaged: blob ");
        kiln_manifest_close(m);
    }
}

static void refuses(kiln_manifest *m, const char *first, const char *second)
{
    kiln_error err = {0};
    kiln_gc *g;
    assert_int_equal(kiln_gc_plan(m, &g, &err), KILN_E_IO);
    assert_null(g);
    assert_says(&err, path);
    assert_says(&err, first);
    assert_says(&err, second);
}

static void an_output_whose_layer_is_not_named_right_stops_it(void **state)
{
    (void)state;
    static const char *const lose[] = {
        "UPDATE stage_output SET layer = NULL", "UPDATE stage_output SET layer = 77",
        "UPDATE stage_output SET digest = zeroblob(16)", "UPDATE layer SET kind = 'pruned'"};
    for (int i = 0; i < 4; i++) {
        kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
        run_sql(m, "PRAGMA foreign_keys = OFF");
        run_sql(m, "BEGIN");
        run_sql(m, lose[i]);
        refuses(m, "stage chunk names layer 'baked', which does not exist",
                "run kiln-chunk --force");
        run_sql(m, "ROLLBACK");
        kiln_gc_free(plan(m));
        kiln_manifest_close(m);
    }
}

/* Of every kind of layers that its stage always makes. */
static void a_stage_that_lost_its_output_stops_it(void **state)
{
    (void)state;
    static const struct {
        const char *stage, *kind, *made;
    } layers[] = {
#define LAYER(kind, stage, made, ...) {#stage, #kind, #made},
#include "schema/layers.def"
    };
    int n = 0;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        char sql[200], names[80], run[80];
        kiln_error err = {0};
        uint64_t bytes;
        if (strcmp(layers[i].made, "ALWAYS") != 0) continue;
        kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
        run_sql(m, "UPDATE scene SET root_x = 0, root_y = 0, root_z = 0, root_half = 1");
        finish_stage(m, layers[i].stage, 100);
        run_sql(m, "DELETE FROM stage_output");
        snprintf(sql, sizeof sql, "UPDATE layer SET kind = '%s'", layers[i].kind);
        run_sql(m, sql);
        snprintf(names, sizeof names, "stage %s says that it finished, but names no layer '%s'",
                 layers[i].stage, layers[i].kind);
        snprintf(run, sizeof run, "run kiln-%s --force", layers[i].stage);
        refuses(m, names, run);
        assert_int_equal(kiln_manifest_verify(m, NULL, NULL, &bytes, &err), KILN_E_IO);
        assert_says(&err, names);
        kiln_manifest_close(m);
        n++;
    }
    assert_true(n >= 4);
}

/* Only points have a layer `initial`, and only while knn is of the scene that is there. */
static void a_knn_of_points_that_lost_its_second_output_stops_it(void **state)
{
    (void)state;
    kiln_error err = {0};
    uint64_t bytes;
    kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
    finish_stage(m, "knn", 100);
    run_sql(m, "DELETE FROM stage_output");
    run_sql(m, "UPDATE layer SET kind = 'initial'");
    kiln_gc_free(plan(m)); /* a scene of Gaussians */
    run_sql(m, "UPDATE scene SET kind = 'points'");
    refuses(m, "stage knn says that it finished, but names no layer 'initial'",
            "run kiln-knn --force");
    assert_int_equal(kiln_manifest_verify(m, NULL, NULL, &bytes, &err), KILN_E_IO);
    assert_says(&err, "names no layer 'initial'");
    run_sql(m, "UPDATE stage SET state = 'stale'");
    kiln_gc_free(plan(m));
    kiln_manifest_close(m);
}

static void an_import_without_rows_may_leave_the_layer_of_one_before(void **state)
{
    (void)state;
    kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE); /* its scene has no root */
    run_sql(m, "DELETE FROM stage WHERE name = 'chunk'");
    run_sql(m, "DELETE FROM stage_output");
    run_sql(m, "UPDATE layer SET kind = 'source'");
    finish_stage(m, "import", 100);
    kiln_gc *g = plan(m);
    assert_int_equal(kiln_gc_layers(g, "source").dropped, 1);
    kiln_gc_free(g);
    kiln_manifest_close(m);
}

static void a_list_of_units_that_cannot_be_read_counts_as_not_known(void **state)
{
    (void)state;
    static const char *const harm[] = {"raw_bytes = raw_bytes + 3", "raw_bytes = raw_bytes - 3",
                                       "name = 'other'", "segment = 1",
                                       "hash = (SELECT max(hash) FROM plane_segment)"};
    for (int i = 0; i < 5; i++) {
        kiln_error err = {0};
        char sql[200];
        kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
        const kiln_hash older = add_unit(m, "prune", "statistics", 1, 50, 1),
                        newest = add_unit(m, "prune", "statistics", 2, 60, 1);
        OK(kiln_units_used_put(m, "prune", &older, 1, &err));
        finish_stage(m, "prune", 200);
        snprintf(sql, sizeof sql,
                 "UPDATE unit_output SET %s WHERE unit = (SELECT id FROM unit WHERE name LIKE "
                 "'units of%%')",
                 harm[i]);
        run_sql(m, sql);
        drop_all(m);
        assert_false(is_there(m, older));
        assert_true(is_there(m, newest));
        /* the stage stores a good list over it */
        OK(kiln_units_used_put(m, "prune", &newest, 1, &err));
        drop_all(m);
        verify(m);
        kiln_manifest_close(m);
    }
}

static void a_row_at_fault_is_named_with_the_manifest(void **state)
{
    (void)state;
    kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
    (void)add_unit(m, "prune", "statistics", 1, 50, 1);
    run_sql(m, "PRAGMA ignore_check_constraints = ON");
    run_sql(m, "UPDATE unit SET key = x'00'");
    refuses(m, "is damaged", "a hash does not have 16 bytes");
    kiln_manifest_close(m);
}

int main(void)
{
#define CLAIM(f) cmocka_unit_test_setup_teardown(f, make_bake, remove_scratch)
    const struct CMUnitTest tests[] = {
        CLAIM(a_manifest_without_anything_old_loses_nothing),
        CLAIM(units_that_the_output_was_made_from_stay_and_others_go),
        CLAIM(the_unit_of_an_image_of_either_kind_stays),
        CLAIM(a_bake_of_before_keeps_what_outputs_have_and_of_plans_the_newest),
        CLAIM(layers_that_no_stage_names_go_with_their_blobs),
        CLAIM(of_runs_the_last_output_its_tasks_and_the_newest_stay),
        CLAIM(all_runs_stay_when_that_is_wanted),
        CLAIM(large_records_go_in_several_steps),
        CLAIM(the_units_of_an_output_are_remembered_and_replaced),
        CLAIM(many_units_go_in_several_steps_each_of_which_leaves_a_whole_manifest),
        CLAIM(a_vacuum_that_is_stopped_changes_nothing),
        CLAIM(a_vacuum_without_room_names_both_places),
        CLAIM(a_write_of_another_program_ends_it),
        CLAIM(a_blob_that_is_missing_is_damage),
        CLAIM(an_output_whose_layer_is_not_named_right_stops_it),
        CLAIM(a_stage_that_lost_its_output_stops_it),
        CLAIM(a_knn_of_points_that_lost_its_second_output_stops_it),
        CLAIM(an_import_without_rows_may_leave_the_layer_of_one_before),
        CLAIM(a_list_of_units_that_cannot_be_read_counts_as_not_known),
        CLAIM(a_row_at_fault_is_named_with_the_manifest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
