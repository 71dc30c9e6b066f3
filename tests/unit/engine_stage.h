/* A tiny stage, for tests of the engine: the test program is the stage itself when it gets
 * arguments (so its workers are too), and the test without. The stage is called knn, so that
 * stages.def knows it; its units give their number times --scale. They are optional with
 * --optional; with --planner a unit comes before them that is not. */
#ifndef KILN_TESTS_ENGINE_STAGE_H
#define KILN_TESTS_ENGINE_STAGE_H

#include "stages/engine/engine.h"
#include "stages/engine/hosts/decisions.h"
#include "stages/engine/program.h"
#include "stages/engine/engine_options.h"
#include "stages/engine/parent/options.h"
#include "stages/engine/parent/run.h"
#include "stages/engine/parent/worker_rest.h"
#include "stages/engine/worker/worker.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/file.h"
#include "tests/unit/test_folder.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { NEVER = 1000000 };

/* ---- the stage ------------------------------------------------------------------------------- */
static struct {
    uint32_t count, scale, bulk, kill_at, crash_at, fail_at, lose_at, slow, pretend, lost, groups,
        later, later_kill_at, later_fail_at, choice, unit_mib;
    bool wrong, once, serial, reject, mute, stillborn, optional, plan, clings, reads;
    const char *change, *unlink;
} o;

static const kiln_opt options[] = {
    KILN_OPTION_NUMBER("count", &o.count, "N", "units", .def = "4", .range = "0..10000",
                       .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("scale", &o.scale, "N", "factor", .def = "1", .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("bulk", &o.bulk, "N", "bytes of a second output of each unit", .def = "0",
                       .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("kill-at", &o.kill_at, "N", "unit in which the worker is killed",
                       .def = "1000000"),
    KILN_OPTION_NUMBER("crash-at", &o.crash_at, "N", "unit in which the worker crashes",
                       .def = "1000000"),
    KILN_OPTION_NUMBER("fail-at", &o.fail_at, "N", "unit that fails", .def = "1000000"),
    KILN_OPTION_NUMBER("lose-at", &o.lose_at, "N", "unit in which the device fails",
                       .def = "1000000"),
    KILN_OPTION_NUMBER("unit-mib", &o.unit_mib, "N", "MiB that a unit counts", .def = "64"),
    KILN_OPTION_NUMBER("slow", &o.slow, "MS", "time that a unit takes", .def = "0"),
    KILN_OPTION_NUMBER("pretend", &o.pretend, "N", "so many devices", .def = "0", .range = "0..8"),
    KILN_OPTION_NUMBER("later", &o.later, "MS",
                       "time that a unit's deferred work takes; 0: it has none", .def = "0"),
    KILN_OPTION_NUMBER("later-kill-at", &o.later_kill_at, "N",
                       "unit in whose deferred work the worker is killed", .def = "1000000"),
    KILN_OPTION_NUMBER("later-fail-at", &o.later_fail_at, "N", "unit whose deferred work fails",
                       .def = "1000000"),
    KILN_OPTION_NUMBER("groups", &o.groups, "N", "units of one group", .def = "0"),
    KILN_OPTION_BOOL("optional", &o.optional, "the output can do without units"),
    KILN_OPTION_NUMBER("choice", &o.choice, "N", "what this host would decide for all; 0: nothing",
                       .def = "0"),
    KILN_OPTION_BOOL("planner", &o.plan, "a unit before the others"),
    KILN_OPTION_NUMBER("lost", &o.lost, "N", "1: the first of them on a GPU that is not there",
                       .def = "0"),
    KILN_OPTION_BOOL("wrong", &o.wrong, "give other results"),
    KILN_OPTION_BOOL("reject", &o.reject, "find the input bad"),
    KILN_OPTION_BOOL("mute", &o.mute, "have workers that never say hello"),
    KILN_OPTION_BOOL("stillborn", &o.stillborn, "have workers that end at once"),
    KILN_OPTION_BOOL("clings", &o.clings, "have workers that never lay down what they have"),
    KILN_OPTION_BOOL("reads", &o.reads, "have workers that open the manifest"),
    KILN_OPTION_PATH("change", &o.change, "FILE",
                     "file whose byte 27 each unit changes: a manifest's count"),
    KILN_OPTION_PATH("unlink", &o.unlink, "FILE", "file that each unit removes"),
    KILN_OPTION_BOOL("serial", &o.serial, "have a worker for each thread"),
    KILN_OPTION_BOOL("once", &o.once, "change no state", .flags = KILN_ONCE),
    KILN_OPTION_END,
};
static const kiln_cli cli = {.program = "kiln-test",
                             .summary = "tests",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .options = options,
                             .common = kiln_common_options};

static inline kiln_status put_bulk(kiln_worker *w, uint32_t index, kiln_error *err)
{
    uint32_t *bulk;
    KILN_TRY(KILN_ALLOC(&bulk, o.bulk / 4, "bulk", err));
    for (uint32_t i = 0; i < o.bulk / 4; i++) bulk[i] = i / 1024 + index;
    kiln_status st = kiln_worker_put(w, "bulk", bulk, o.bulk / 4 * sizeof *bulk, sizeof *bulk, err);
    free(bulk);
    return st;
}

/* Which process computed the unit, and what CUDA would see in it. */
static inline kiln_status say_who(kiln_worker *w, kiln_error *err)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES"), *order = getenv("CUDA_DEVICE_ORDER");
    json_t *who =
        json_pack("{s:i, s:s, s:s, s:i}", "pid", (int)getpid(), "visible", visible ? visible : "",
                  "order", order ? order : "", "threads", (int)kiln_worker_threads(w));
    kiln_status st = kiln_worker_counters(w, who, err);
    json_decref(who);
    return st;
}

static inline void doze_ms(uint32_t ms)
{
    if (ms)
        nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

/* What every unit gives, in the unit itself or in its deferred work. */
static inline kiln_status put_all(kiln_worker *w, uint32_t index, kiln_error *err)
{
    const uint32_t value = index * o.scale + o.wrong;
    KILN_TRY(say_who(w, err));
    KILN_TRY(kiln_worker_put(w, "value", &value, sizeof value, sizeof value, err));
    return o.bulk ? put_bulk(w, index, err) : KILN_OK;
}

enum { DEFERRED = 2 }; /* pending at a time */

/* What deferred work holds is given back, whether it ran or not; by a worker that ends in order. */
static atomic_int deferred_held;

static inline void stage_drop(void *context)
{
    free(context);
    atomic_fetch_sub(&deferred_held, 1);
}

/* How many threads have run one. */
static atomic_int deferred_threads;

static inline void count_thread(void)
{
    static _Thread_local bool counted;
    if (!counted) atomic_fetch_add(&deferred_threads, 1);
    counted = true;
}

static inline void tell_deferred(void)
{
    if (atomic_load(&deferred_held) != 0)
        fprintf(stderr, "a worker ends with %d deferred works held\n", atomic_load(&deferred_held));
    if (atomic_load(&deferred_threads) > DEFERRED)
        fprintf(stderr, "%d threads for %d deferred works\n", atomic_load(&deferred_threads),
                DEFERRED);
}

static inline kiln_status stage_deferred(kiln_worker *w, void *context, kiln_error *err)
{
    uint32_t index;
    memcpy(&index, context, sizeof index);
    count_thread();
    doze_ms(o.later);
    if (index == o.later_kill_at) (void)raise(SIGKILL);
    if (index == o.later_fail_at) return kiln_fail(err, KILN_E_NOMEM, "the deferred work fails");
    return put_all(w, index, err);
}

static inline kiln_status leave_deferred(kiln_worker *w, uint32_t index, kiln_error *err)
{
    uint32_t *context;
    KILN_TRY(KILN_ALLOC(&context, 1, "deferred work", err));
    *context = index;
    atomic_fetch_add(&deferred_held, 1);
    kiln_worker_defer(w, DEFERRED, 1, stage_deferred, stage_drop, context);
    return KILN_OK;
}

/* What other programs do beside a task. */
static inline void disturb(uint32_t index)
{
    FILE *f = o.change ? fopen(o.change, "r+b") : NULL;
    if (f && (fseek(f, 27, SEEK_SET) != 0 || fputc((int)(100 + index), f) == EOF || fclose(f) != 0))
        perror("change");
    if (o.unlink) (void)unlink(o.unlink);
}

static inline void cling(void *state)
{
    (void)state;
    for (;;) (void)pause();
}

static inline kiln_status stage_unit(kiln_worker *w, const char *name, const void *payload,
                                     size_t payload_bytes, kiln_error *err)
{
    uint32_t index;
    (void)name;
    if (payload_bytes != sizeof index)
        return kiln_fail(err, KILN_E_BUG, "payload of %zu bytes", payload_bytes);
    memcpy(&index, payload, sizeof index);
    if (index == o.kill_at) (void)raise(SIGKILL);
    if (index == o.crash_at) (void)signal(SIGSEGV, SIG_DFL), (void)raise(SIGSEGV);
    if (index == o.fail_at) return kiln_fail(err, KILN_E_INPUT, "row 7 is bad");
    if (index == o.lose_at) return kiln_fail(err, KILN_E_DEVICE, "the kernel failed");
    kiln_manifest *m;
    if (o.reads) KILN_TRY(kiln_worker_manifest(w, &m, err));
    if (o.clings) kiln_worker_set_state(w, &o, cling);
    disturb(index);
    doze_ms(o.slow);
    return o.later ? leave_deferred(w, index, err) : put_all(w, index, err);
}

static inline kiln_status put_output(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err)
{
    (void)r;
    return kiln_stage_output_put(m, "knn", "spacing", kiln_hash_of(context, sizeof(uint64_t)), err);
}

static inline kiln_status sum_units(kiln_run *r, kiln_unit *units, uint64_t *sum, kiln_error *err)
{
    for (uint32_t i = 0; i < o.count; i++) {
        uint32_t *value, *bulk;
        uint64_t bytes;
        if (units[i].quarantined) continue;
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

/* "processes": by how many of them; "first": what the first unit's said of itself. */
static inline kiln_status report_workers(kiln_run *r, const kiln_unit *units, kiln_error *err)
{
    json_int_t pids[8];
    int n = 0, k;
    for (uint32_t i = 0; i < o.count; i++) {
        json_t *who;
        if (units[i].quarantined) continue;
        KILN_TRY(kiln_unit_counters(r, &units[i], &who, err));
        const json_int_t pid = json_integer_value(json_object_get(who, "pid"));
        for (k = 0; k < n && pids[k] != pid; k++) continue;
        if (k == n && n < 8) pids[n++] = pid;
        if (i == 0) json_object_set(kiln_run_report(r), "first", who);
        json_decref(who);
    }
    json_object_set_new(kiln_run_report(r), "processes", json_integer(n));
    return KILN_OK;
}

/* Devices as they would be found on a machine with some. */
static inline void pretend_devices(kiln_run *r)
{
    for (unsigned i = 0; i < o.pretend; i++) {
        kiln_device *d = &r->devices.home->devices.items[i];
        *d = (kiln_device){.kind = o.lost && i == 0 ? KILN_DEVICE_CUDA : KILN_DEVICE_CPU,
                           .chosen = i % 2};
        (void)snprintf(d->visible, sizeof d->visible, "%s",
                       o.lost && i == 0 ? "-1"
                       : i              ? "GPU-1"
                                        : "GPU-0");
    }
    r->devices.home->devices.n = o.pretend;
}

static inline kiln_status run_plan(kiln_run *r, kiln_error *err)
{
    static uint32_t index = 7777;
    kiln_unit plan = {.name = "plan",
                      .key = kiln_key_end(kiln_run_key_bare(r, "plan")),
                      .payload = &index,
                      .payload_bytes = 4};
    kiln_status st = kiln_run_units(r, "planning", &plan, 1, err);
    kiln_units_release(&plan, 1);
    return st;
}

static inline kiln_status stage_run(kiln_run *r, kiln_error *err)
{
    static uint32_t indices[10000];
    static kiln_unit units[10000];
    uint64_t sum = 0;
    bool fresh;
    if (o.reject) return kiln_fail(err, KILN_E_INPUT, "the scene is bad");
    uint64_t choice = o.choice;
    kiln_hash key = kiln_key_end(kiln_run_key(r));
    KILN_TRY(kiln_run_is_fresh(r, key, &fresh, err));
    if (fresh) return kiln_run_nothing_to_do(r, err);
    if (o.choice) KILN_TRY(kiln_run_decide(r, "choice", &choice, err));
    for (uint32_t i = 0; i < o.count; i++) {
        indices[i] = i;
        kiln_hasher *h = kiln_run_key_bare(r, "unit");
        kiln_key_u64(h, "index", i);
        kiln_key_u64(h, "scale", o.scale);
        kiln_key_u64(h, "bulk", o.bulk);
        kiln_key_u64(h, "choice", choice);
        units[i] = (kiln_unit){
            .key = kiln_key_end(h), .payload = &indices[i], .payload_bytes = sizeof indices[i]};
        units[i].ram = (uint64_t)o.unit_mib << 20;
        units[i].optional = o.optional;
        units[i].group = o.groups ? 1 + i / o.groups : 0;
        (void)snprintf(units[i].name, sizeof units[i].name, "unit %u", i);
    }
    pretend_devices(r);
    if (o.plan) KILN_TRY(run_plan(r, err));
    kiln_run_serial(r, o.serial);
    kiln_status st = kiln_run_units(r, "testing", units, o.count, err);
    if (st == KILN_OK) st = sum_units(r, units, &sum, err);
    if (st == KILN_OK) st = report_workers(r, units, err);
    kiln_units_release(units, o.count);
    KILN_TRY(st);
    if (json_object_set_new(kiln_run_report(r), "sum", json_integer((json_int_t)sum)))
        return kiln_fail(err, KILN_E_NOMEM, "report");
    return kiln_run_is_once(r) ? KILN_OK : kiln_run_commit(r, key, put_output, &sum, err);
}

static const kiln_stage_program program = {.name = "knn",
                                           .cli = &cli,
                                           .open = KILN_OPEN_CREATE,
                                           .flags = KILN_PROGRAM_ROUNDS,
                                           .run = stage_run,
                                           .unit = stage_unit};

/* ---- running it ------------------------------------------------------------------------------ */
static char folder[TEST_FOLDER_MAX], db[TEST_PATH_MAX];

static inline pid_t start(const char *arguments)
{
    char line[512], *argv[32] = {"kiln-test", db, "--json"};
    int n = 3;
    (void)snprintf(line, sizeof line, "%s", arguments);
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) argv[n++] = word;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    char path[TEST_PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/out", folder);
    int out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    (void)snprintf(path, sizeof path, "%s/err", folder);
    int err = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (out < 0 || err < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(99);
    execv("/proc/self/exe", argv);
    _exit(98);
}

static inline int finish(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline int run(const char *arguments) { return finish(start(arguments)); }

static inline bool said(const char *text)
{
    char path[TEST_PATH_MAX];
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
static inline json_t *reported(const char *path)
{
    char file[TEST_PATH_MAX], word[64];
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

static inline json_int_t number(const char *path)
{
    json_t *at = reported(path);
    json_int_t v = json_is_integer(at) ? json_integer_value(at) : -1;
    json_decref(at);
    return v;
}

/* How many workers were started. */
static inline int started(void)
{
    json_t *at = reported("workers");
    const int n = (int)json_array_size(at);
    json_decref(at);
    return n;
}

static inline bool is_text(const char *path, const char *text)
{
    json_t *at = reported(path);
    const char *s = json_string_value(at);
    bool same = s && !strcmp(s, text);
    if (!same) print_message("%s: %s\n", path, s ? s : "(no text)");
    json_decref(at);
    return same;
}

static inline bool status_is(const char *text) { return is_text("status", text); }

static inline int fresh_manifest(void **state)
{
    (void)state;
    char path[TEST_PATH_MAX];
    static const char *const suffixes[] = {"", "-wal", "-shm", ".lock"};
    for (int i = 0; i < 4; i++) {
        (void)snprintf(path, sizeof path, "%s%s", db, suffixes[i]);
        (void)unlink(path);
    }
    return 0;
}

static inline kiln_manifest *open_manifest(kiln_open_mode mode)
{
    kiln_manifest *m;
    kiln_error err = {0};
    kiln_status st = kiln_manifest_open(db, mode, "test", false, &m, &err);
    if (st != KILN_OK) print_message("%s\n", err.msg);
    assert_int_equal(st, KILN_OK);
    return m;
}

static inline kiln_stage_state state_of(const char *stage)
{
    kiln_stage_row row;
    kiln_manifest *m = open_manifest(KILN_OPEN_READ);
    assert_int_equal(kiln_stage_get(m, stage, &row, NULL), KILN_OK);
    kiln_manifest_close(m);
    return row.state;
}

static inline void set_state(const char *stage, kiln_stage_state state)
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
static inline pid_t child_of(pid_t pid)
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

static inline bool ends(pid_t pid)
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

static inline int make_folder(void **state)
{
    (void)state;
    if (test_folder_new(folder, "engine") != 0) return -1;
    (void)snprintf(db, sizeof db, "%s/m.db", folder);
    return 0;
}

static inline int remove_folder(void **state)
{
    char path[TEST_PATH_MAX];
    fresh_manifest(state);
    (void)snprintf(path, sizeof path, "%s/out", folder);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/err", folder);
    (void)unlink(path);
    return rmdir(folder);
}

static inline bool has_argument(int argc, char **argv, const char *argument)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], argument)) return true;
    return false;
}

/* Stops this process, as SIGSTOP from outside would, when the file that KILN_TEST_STOP names can be
 * removed: so one process alone.
 */
static inline void stop_once(void)
{
    const char *mark = getenv("KILN_TEST_STOP");
    if (mark && unlink(mark) == 0) (void)raise(SIGSTOP);
}

static inline const kiln_stage_program *find_program(const char *name)
{
    return strcmp(name, program.name) ? NULL : &program;
}

/* Tells the process as a worker tells itself, so that one that is not taken is counted by
 * itself. */
static inline void start_early(const char *name)
{
    const kiln_worker_process *w[KILN_SLOTS_MAX];
    if (getenv("KILN_TEST_SPOILED"))
        kiln_rest_start(name, &(kiln_device){.kind = KILN_DEVICE_CUDA, .visible = "-1"});
    else
        kiln_rest_start(name, &(kiln_device){.kind = KILN_DEVICE_CPU});
    if (kiln_rest_processes(w) == 1)
        (void)fprintf(stderr, "early: worker %d: cpu\n", (int)w[0]->pid);
}

/* Runs the stage, and a second time with the arguments of KILN_TEST_AGAIN; the first report
 * goes. */
static inline int run_both(char *again, int argc, char **argv)
{
    char log[TEST_PATH_MAX], *more[32] = {argv[0], argv[1], argv[2]};
    int n = 3;
    kiln_program_keep_workers(true);
    if (getenv("KILN_TEST_EARLY")) start_early(argv[0]);
    const int code = kiln_program_main(&program, argc, argv);
    if (code) return code;
    (void)snprintf(log, sizeof log, "%s-wal", argv[1]);
    (void)fprintf(stderr, "between the runs: %s\n", access(log, F_OK) ? "no log" : "a log");
    if (ftruncate(STDOUT_FILENO, 0) || lseek(STDOUT_FILENO, 0, SEEK_SET)) return 97;
    for (char *word = strtok(again, " "); word; word = strtok(NULL, " ")) more[n++] = word;
    kiln_program_keep_workers(false);
    return kiln_program_main(&program, n, more);
}

/* main of a test program that is given arguments: the stage, or its worker. A mute one is as one
 * whose driver hangs, a stillborn one ends before it says hello. */
static inline int stage_main(int argc, char **argv)
{
    const bool is_worker = !strncmp(argv[1], KILN_WORKER_FLAG, strlen(KILN_WORKER_FLAG));
    while (is_worker && has_argument(argc, argv, "--mute")) (void)pause();
    if (is_worker) stop_once();
    if (is_worker && has_argument(argc, argv, "--stillborn")) _exit(3);
    /* it opens what is there, and is handed what is not */
    char spoiled[] = KILN_WORKER_FLAG "cpu:3:" KILN_WORKER_RESTS;
    if (is_worker && argc == 2 && getenv("KILN_TEST_SPOILED")) argv[1] = spoiled;
    if (is_worker) (void)atexit(tell_deferred);
    kiln_program_family(find_program);
    if (!is_worker && getenv("KILN_TEST_AGAIN"))
        return run_both(strdup(getenv("KILN_TEST_AGAIN")), argc, argv);
    return kiln_program_main(&program, argc, argv);
}

#endif
