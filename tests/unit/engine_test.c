/* The engine, with a tiny stage: this program is the stage itself when it gets arguments (so its workers are too), and
 * the test without. The stage is called knn, so that stages.def knows it; its units give their number times --scale. */
#include "stages/engine/engine_internal.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { NEVER = 1000000 };

/* ---- the stage ------------------------------------------------------------------------------------------------------------ */
static struct {
    uint32_t count, scale, bulk, kill_at, crash_at, fail_at, lose_at, slow, workers, lost;
    bool wrong, once, reject, mute;
} o;

static const kiln_opt options[] = {
    {"count", 0, KILN_OPT_U32, &o.count, "N", "4", "0..10000", "units", KILN_KEYED},
    {"scale", 0, KILN_OPT_U32, &o.scale, "N", "1", NULL, "factor", KILN_KEYED},
    {"bulk", 0, KILN_OPT_U32, &o.bulk, "N", "0", NULL, "bytes of a second output of each unit", KILN_KEYED},
    {"kill-at", 0, KILN_OPT_U32, &o.kill_at, "N", "1000000", NULL, "unit in which the worker is killed", 0},
    {"crash-at", 0, KILN_OPT_U32, &o.crash_at, "N", "1000000", NULL, "unit in which the worker crashes", 0},
    {"fail-at", 0, KILN_OPT_U32, &o.fail_at, "N", "1000000", NULL, "unit that fails", 0},
    {"lose-at", 0, KILN_OPT_U32, &o.lose_at, "N", "1000000", NULL, "unit in which the device fails", 0},
    {"slow", 0, KILN_OPT_U32, &o.slow, "MS", "0", NULL, "time that a unit takes", 0},
    {"workers", 0, KILN_OPT_U32, &o.workers, "N", "0", "0..8", "workers, as on so many devices", 0},
    {"lost", 0, KILN_OPT_U32, &o.lost, "N", "0", NULL, "1: the first of them on a GPU that is not there", 0},
    {"wrong", 0, KILN_OPT_BOOL, &o.wrong, NULL, NULL, NULL, "give other results", 0},
    {"reject", 0, KILN_OPT_BOOL, &o.reject, NULL, NULL, NULL, "find the input bad", 0},
    {"mute", 0, KILN_OPT_BOOL, &o.mute, NULL, NULL, NULL, "have workers that never say hello", 0},
    {"once", 0, KILN_OPT_BOOL, &o.once, NULL, NULL, NULL, "change no state", KILN_ONCE},
    {NULL, 0, KILN_OPT_END, NULL, NULL, NULL, NULL, NULL, 0},
};
static const kiln_cli cli = {.program = "kiln-test",
                             .summary = "tests",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .options = options,
                             .common = kiln_common_options};

static kiln_status put_bulk(kiln_worker *w, uint32_t index, kiln_error *err)
{
    uint32_t *bulk;
    KILN_TRY(KILN_ALLOC(&bulk, o.bulk / 4, "bulk", err));
    for (uint32_t i = 0; i < o.bulk / 4; i++) bulk[i] = i / 1024 + index;
    kiln_status st = kiln_worker_put(w, "bulk", bulk, o.bulk / 4 * sizeof *bulk, sizeof *bulk, err);
    free(bulk);
    return st;
}

/* Which process computed the unit, and what CUDA would see in it. */
static kiln_status say_who(kiln_worker *w, kiln_error *err)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES"), *order = getenv("CUDA_DEVICE_ORDER");
    json_t *who = json_pack("{s:i, s:s, s:s, s:i}", "pid", (int)getpid(), "visible", visible ? visible : "", "order",
                            order ? order : "", "threads", (int)kiln_worker_threads(w));
    kiln_status st = kiln_worker_counters(w, who, err);
    json_decref(who);
    return st;
}

static kiln_status stage_unit(kiln_worker *w, const char *name, const void *payload, size_t payload_bytes, kiln_error *err)
{
    uint32_t index, value;
    (void)name;
    if (payload_bytes != sizeof index) return kiln_fail(err, KILN_E_BUG, "payload of %zu bytes", payload_bytes);
    memcpy(&index, payload, sizeof index);
    if (index == o.kill_at) (void)raise(SIGKILL);
    if (index == o.crash_at) (void)signal(SIGSEGV, SIG_DFL), (void)raise(SIGSEGV);
    if (index == o.fail_at) return kiln_fail(err, KILN_E_INPUT, "row 7 is bad");
    if (index == o.lose_at) return kiln_fail(err, KILN_E_DEVICE, "the kernel failed");
    if (o.slow) nanosleep(&(struct timespec){.tv_sec = o.slow / 1000, .tv_nsec = o.slow % 1000 * 1000000L}, NULL);
    KILN_TRY(say_who(w, err));
    value = index * o.scale + o.wrong;
    KILN_TRY(kiln_worker_put(w, "value", &value, sizeof value, sizeof value, err));
    return o.bulk ? put_bulk(w, index, err) : KILN_OK;
}

static kiln_status put_output(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err)
{
    (void)r;
    return kiln_stage_output_put(m, "knn", "spacing", kiln_hash_of(context, sizeof(uint64_t)), err);
}

static kiln_status sum_units(kiln_run *r, kiln_unit *units, uint64_t *sum, kiln_error *err)
{
    for (uint32_t i = 0; i < o.count; i++) {
        uint32_t *value, *bulk;
        uint64_t bytes;
        KILN_TRY(kiln_unit_data(r, &units[i], "value", (void **)&value, &bytes, err));
        *sum += *value;
        free(value);
        if (!o.bulk) continue;
        KILN_TRY(kiln_unit_data(r, &units[i], "bulk", (void **)&bulk, &bytes, err));
        *sum += bulk[bytes / 4 - 1];
        free(bulk);
    }
    return KILN_OK;
}

/* "workers": by how many processes; "first": what the first unit's said of itself. */
static kiln_status report_workers(kiln_run *r, const kiln_unit *units, kiln_error *err)
{
    json_int_t seen[8];
    int n = 0, k;
    for (uint32_t i = 0; i < o.count; i++) {
        json_t *who;
        KILN_TRY(kiln_unit_counters(&units[i], &who, err));
        const json_int_t pid = json_integer_value(json_object_get(who, "pid"));
        for (k = 0; k < n && seen[k] != pid; k++) continue;
        if (k == n && n < 8) seen[n++] = pid;
        if (i == 0) json_object_set(kiln_run_report(r), "first", who);
        json_decref(who);
    }
    json_object_set_new(kiln_run_report(r), "workers", json_integer(n));
    return KILN_OK;
}

/* Devices as they would be found on a machine with some. */
static void pretend_devices(kiln_run *r)
{
    for (unsigned i = 0; i < o.workers; i++) {
        kiln_device *d = &r->devices.items[i];
        *d = (kiln_device){.kind = o.lost && i == 0 ? KILN_DEVICE_CUDA : KILN_DEVICE_CPU, .chosen = i % 2};
        (void)snprintf(d->visible, sizeof d->visible, "%s", o.lost && i == 0 ? "-1" : i ? "GPU-1" : "GPU-0");
    }
    r->devices.n = o.workers;
}

static kiln_status stage_run(kiln_run *r, kiln_error *err)
{
    static uint32_t indices[10000];
    static kiln_unit units[10000];
    uint64_t sum = 0;
    bool fresh;
    if (o.reject) return kiln_fail(err, KILN_E_INPUT, "the scene is bad");
    kiln_hash key = kiln_key_end(kiln_run_key(r));
    KILN_TRY(kiln_run_is_fresh(r, key, &fresh, err));
    if (fresh) return kiln_run_nothing_to_do(r, err);
    for (uint32_t i = 0; i < o.count; i++) {
        indices[i] = i;
        kiln_hasher *h = kiln_run_key_bare(r, "unit");
        kiln_key_u64(h, "index", i);
        kiln_key_u64(h, "scale", o.scale);
        kiln_key_u64(h, "bulk", o.bulk);
        units[i] = (kiln_unit){.key = kiln_key_end(h), .payload = &indices[i], .payload_bytes = sizeof indices[i]};
        (void)snprintf(units[i].name, sizeof units[i].name, "unit %u", i);
    }
    pretend_devices(r);
    kiln_status st = kiln_run_units(r, "testing", units, o.count, err);
    if (st == KILN_OK) st = sum_units(r, units, &sum, err);
    if (st == KILN_OK) st = report_workers(r, units, err);
    kiln_units_release(units, o.count);
    KILN_TRY(st);
    if (json_object_set_new(kiln_run_report(r), "sum", json_integer((json_int_t)sum)))
        return kiln_fail(err, KILN_E_NOMEM, "report");
    return kiln_run_is_once(r) ? KILN_OK : kiln_run_commit(r, key, put_output, &sum, err);
}

static const kiln_stage_program program = {
    .name = "knn", .cli = &cli, .open = KILN_OPEN_CREATE, .run = stage_run, .unit = stage_unit};

/* ---- running it ----------------------------------------------------------------------------------------------------------- */
static char folder[] = "/tmp/kiln-engine-XXXXXX";
static char db[64];

static pid_t start(const char *arguments)
{
    char line[512], *argv[32] = {"kiln-test", db, "--json"};
    int n = 3;
    (void)snprintf(line, sizeof line, "%s", arguments);
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) argv[n++] = word;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    char path[80];
    (void)snprintf(path, sizeof path, "%s/out", folder);
    int out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    (void)snprintf(path, sizeof path, "%s/err", folder);
    int err = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (out < 0 || err < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(99);
    execv("/proc/self/exe", argv);
    _exit(98);
}

static int finish(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int run(const char *arguments) { return finish(start(arguments)); }

static bool said(const char *text)
{
    char path[80];
    unsigned char *data;
    size_t size;
    (void)snprintf(path, sizeof path, "%s/err", folder);
    assert_int_equal(kiln_file_read(path, 1 << 20, &data, &size, NULL), KILN_OK);
    bool found = strstr((char *)data, text);
    if (!found) print_message("stderr: %s\n", (char *)data);
    free(data);
    return found;
}

/* Something in the JSON report by path: "units.cached"; NULL: not there. */
static json_t *reported(const char *path)
{
    char file[80], word[64];
    (void)snprintf(file, sizeof file, "%s/out", folder);
    json_t *root = json_load_file(file, 0, NULL), *at = root;
    for (const char *p = path; *p; p += *p == '.') {
        size_t n = strcspn(p, ".");
        (void)snprintf(word, sizeof word, "%.*s", (int)n, p);
        at = json_object_get(at, word);
        p += n;
    }
    json_incref(at);
    json_decref(root);
    return at;
}

static json_int_t number(const char *path)
{
    json_t *at = reported(path);
    json_int_t v = json_is_integer(at) ? json_integer_value(at) : -1;
    json_decref(at);
    return v;
}

static bool is_text(const char *path, const char *text)
{
    json_t *at = reported(path);
    const char *s = json_string_value(at);
    bool same = s && !strcmp(s, text);
    if (!same) print_message("%s: %s\n", path, s ? s : "(no text)");
    json_decref(at);
    return same;
}

static bool status_is(const char *text) { return is_text("status", text); }

static int fresh_manifest(void **state)
{
    (void)state;
    char path[80];
    static const char *const suffixes[] = {"", "-wal", "-shm", ".lock"};
    for (int i = 0; i < 4; i++) {
        (void)snprintf(path, sizeof path, "%s%s", db, suffixes[i]);
        (void)unlink(path);
    }
    return 0;
}

static kiln_manifest *open_manifest(kiln_open_mode mode)
{
    kiln_manifest *m;
    kiln_error err = {0};
    kiln_status st = kiln_manifest_open(db, mode, "test", false, &m, &err);
    if (st != KILN_OK) print_message("%s\n", err.msg);
    assert_int_equal(st, KILN_OK);
    return m;
}

static kiln_stage_state state_of(const char *stage)
{
    kiln_stage_row row;
    kiln_manifest *m = open_manifest(KILN_OPEN_READ);
    assert_int_equal(kiln_stage_get(m, stage, &row, NULL), KILN_OK);
    kiln_manifest_close(m);
    return row.state;
}

static void set_state(const char *stage, kiln_stage_state state)
{
    kiln_stage_row row;
    kiln_manifest *m = open_manifest(KILN_OPEN_WRITE);
    assert_int_equal(kiln_stage_get(m, stage, &row, NULL), KILN_OK);
    row.state = state;
    row.version = 1;
    assert_int_equal(kiln_manifest_begin(m, NULL), KILN_OK);
    assert_int_equal(kiln_stage_put(m, &row, NULL), KILN_OK);
    assert_int_equal(kiln_manifest_commit(m, NULL), KILN_OK);
    kiln_manifest_close(m);
}

/* Its worker, when it was told its device: to look for GPUs takes a child too. */
static pid_t child_of(pid_t pid)
{
    char path[64];
    int child = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    for (int i = 0; i < 2000 && !child; i++) {
        FILE *f = fopen(path, "r");
        if (f) {
            if (fscanf(f, "%d", &child) != 1) child = 0;
            (void)fclose(f);
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return child;
}

static bool ends(pid_t pid)
{
    for (int i = 0; i < 3000; i++) {
        char path[64], state = 'Z';
        (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
        FILE *f = fopen(path, "r");
        if (!f) return true;
        if (fscanf(f, "%*d %*s %c", &state) != 1) state = 'Z';
        (void)fclose(f);
        if (state == 'Z') return true; /* dead; nobody reaps it here */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

/* ---- claims --------------------------------------------------------------------------------------------------------------- */
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
    assert_int_equal(run("--count=8 --kill-at=5"), 5);
    assert_true(said("while it computed 'unit 5'"));
    assert_true(said("run the same command to go on"));
    assert_int_equal(run("--count=8"), 0);
    assert_int_equal(number("units.cached"), 5);
    assert_int_equal(number("units.done"), 3);
    assert_int_equal(number("sum"), 28);
}

static void a_crash_is_named_and_is_our_bug(void **state)
{
    (void)state;
    assert_int_equal(run("--crash-at=1"), 70);
    assert_true(said("signal 11 (Segmentation fault) while it computed 'unit 1'"));
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
    assert_true(said("'unit 0' computed again differs"));
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
    assert_int_equal(run("--count=3 --scale=2"), 0); /* 0 + 2 + 4: the same output */
    assert_int_equal(state_of("prune"), KILN_STAGE_FRESH);
    assert_int_equal(run("--scale=5"), 0);
    assert_int_equal(state_of("prune"), KILN_STAGE_STALE);
    assert_int_equal(state_of("chunk"), KILN_STAGE_STALE);
    assert_int_equal(state_of("tiles"), KILN_STAGE_STALE); /* by way of chunk */
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

static void signals_end_the_run_with_their_codes(void **state)
{
    (void)state;
    static const struct {
        int signal, code;
    } cases[] = {{SIGINT, 130}, {SIGTERM, 143}};
    for (int i = 0; i < 2; i++) {
        fresh_manifest(NULL);
        pid_t pid = start("--count=1000 --slow=100 --devices=cpu");
        pid_t worker = child_of(pid);
        nanosleep(&(struct timespec){.tv_nsec = 350000000}, NULL);
        assert_int_equal(kill(worker, cases[i].signal), 0); /* a signal to the group may reach the worker first */
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        assert_int_equal(kill(pid, cases[i].signal), 0);
        assert_int_equal(finish(pid), cases[i].code);
        assert_true(ends(worker));
        assert_int_equal(run("--count=3"), 0);
        assert_true(number("units.cached") > 0);
    }
}

static void a_signal_ends_the_wait_for_a_worker_that_opens_its_device(void **state)
{
    (void)state;
    pid_t pid = start("--mute --devices=cpu");
    pid_t worker = child_of(pid);
    assert_true(worker > 0);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(finish(pid), 130);
    assert_true(ends(worker));
}

static void a_unit_whose_device_fails_says_what_to_do(void **state)
{
    (void)state;
    assert_int_equal(run("--lose-at=2"), 6);
    assert_true(said("unit 2: the kernel failed; --devices cpu does without a GPU\n"));
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
    assert_int_equal(run("--count=3 --workers=3"), 0);
    assert_int_equal(number("workers"), 3);
    assert_true(is_text("first.visible", "GPU-0"));
    assert_true(is_text("first.order", "")); /* as found */
    fresh_manifest(NULL);
    assert_int_equal(run("--count=2 --workers=8"), 0); /* no more workers than units */
    assert_int_equal(number("workers"), 2);
    fresh_manifest(NULL);
    assert_int_equal(run("--count=200 --workers=4 --threads=8"), 0);
    assert_int_equal(number("workers"), 4);
    assert_int_equal(number("first.threads"), 2); /* of --threads, each its share */
    assert_int_equal(number("sum"), 200 * 199 / 2);
    assert_true(number("peak_rss_bytes.worker") > 0);
    assert_int_equal(number("vram_peak_bytes"), 0);
}

static void one_of_several_workers_that_dies_ends_the_run(void **state)
{
    (void)state;
    assert_int_equal(run("--count=20 --workers=3 --kill-at=11"), 5);
    assert_true(said("while it computed 'unit 11'"));
    assert_int_equal(run("--count=20 --workers=3"), 0);
    assert_true(number("units.cached") > 0);
    assert_int_equal(number("sum"), 190);
}

static void a_worker_says_why_its_device_cannot_be_used(void **state)
{
    (void)state;
    assert_int_equal(run("--workers=1 --lost=1"), 6);
    assert_true(said("the worker on GPU '-1': "));
    assert_true(said("; --devices cpu does without a GPU\n"));
    assert_true(status_is("failed"));
    assert_int_equal(run("--workers=2 --lost=1"), 6); /* the other one was well */
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

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    (void)snprintf(db, sizeof db, "%s/m.db", folder);
    return 0;
}

static int remove_folder(void **state)
{
    char path[80];
    fresh_manifest(state);
    (void)snprintf(path, sizeof path, "%s/out", folder);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/err", folder);
    (void)unlink(path);
    return rmdir(folder);
}

/* A worker as one whose driver hangs. */
static bool is_mute(int argc, char **argv)
{
    bool mute = false;
    for (int i = 1; i < argc; i++) mute = mute || !strcmp(argv[i], "--mute");
    return mute && !strncmp(argv[1], KILN_WORKER_FLAG, strlen(KILN_WORKER_FLAG));
}

int main(int argc, char **argv)
{
    while (is_mute(argc, argv)) (void)pause();
    if (argc > 1) return kiln_program_main(&program, argc, argv);
#define CLAIM(f) cmocka_unit_test_setup(f, fresh_manifest)
    const struct CMUnitTest tests[] = {
        CLAIM(units_are_computed_and_stored),
        CLAIM(no_units_are_a_result_too),
        CLAIM(a_second_run_has_nothing_to_do),
        CLAIM(done_units_start_no_worker),
        CLAIM(a_killed_worker_keeps_what_is_finished),
        CLAIM(a_crash_is_named_and_is_our_bug),
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
        CLAIM(a_signal_ends_the_wait_for_a_worker_that_opens_its_device),
        CLAIM(a_unit_whose_device_fails_says_what_to_do),
        CLAIM(a_worker_dies_with_its_parent),
        CLAIM(units_are_shared_out_to_all_devices),
        CLAIM(one_of_several_workers_that_dies_ends_the_run),
        CLAIM(a_worker_says_why_its_device_cannot_be_used),
        CLAIM(devices_that_are_not_there_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
