/* device_test -- every operation and every function of kernels/device.h works on its own device,
 * whatever context is current in the thread that calls, and leaves that one current; a device that
 * is not used is not touched; threads share devices. tests/gpu/planted.cu has an entry without
 * guard, which shows that this test can fail.
 *
 * With one GPU, what needs two says so and looks at the one.
 * Run by hand: --only-device N - (what the test starts as a process of its own). */
#include "kernels/device.h"
#include "kernels/runner.h"
#include "tests/gpu/again.h"
#include "tests/gpu/call.h"
#include "tests/gpu/makers.h"
#include "tests/gpu/nvidia.h"
#include "tests/gpu/planted.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int devices;         /* that this process sees */
enum { CONTEXT_MIB = 400 }; /* a context takes 500 and more */

#define NEED_GPU()                                       \
    do {                                                 \
        if (devices == 0) {                              \
            print_message("skipped: there is no GPU\n"); \
            skip();                                      \
        }                                                \
    } while (0)

/* ---- one call of each operation, and what the CPU makes of it -------------------------------- */

typedef struct {
    scene s;
    made_call call;
    op_image right;
} plain_call;

static plain_call plain[KILN_OP_COUNT];

static void make_plain_calls(void)
{
    const sibling cpu = {.ops = kiln_ops_cpu_baseline(), .exec = {.device = -1, .threads = 2}};
    const uint64_t n = getenv("KILN_GPU_SMALL") ? 100 : 2000;
    kiln_error err = {0};
    for (unsigned op = 0; op < KILN_OP_COUNT; op++) {
        plain_call *p = &plain[op];
        make_plain((kiln_op_id)op, n, n > 100 ? 0 : 1, &p->s, &p->call);
        if (op_image_run(&p->right, &cpu, (kiln_op_id)op, p->call.args, 0, &err) != KILN_OK ||
            p->right.status != KILN_OK)
            call_off(kiln_op_name((kiln_op_id)op), p->right.err.msg);
    }
}

static void free_plain_calls(void)
{
    for (unsigned op = 0; op < KILN_OP_COUNT; op++) {
        op_image_release(&plain[op].right);
        made_release(&plain[op].call);
        scene_free(&plain[op].s);
    }
}

/* ---- the current context --------------------------------------------------------------------- */

/* Which context has to be current after each step; the first step that left another one. */
typedef struct {
    nv_context expected;
    unsigned changes;
    char step[64];
} watch;

static void look(void *context, const char *step)
{
    watch *w = context;
    if (nv_current() == w->expected) return;
    if (w->changes++ == 0) snprintf(w->step, sizeof w->step, "%s", step);
    nv_make_current(w->expected);
}

/* Everything on `device` while `current` is current. Returns how often that changed. */
static unsigned use_device(const kiln_ops *ops, int device, nv_context current,
                           bool every_operation)
{
    watch w = {.expected = current};
    sibling s = {
        .ops = ops, .exec = {.device = device, .threads = 1}, .after_step = look, .context = &w};
    kiln_device_info info;
    kiln_error err = {0};
    char why[OP_WHY_MAX];
    nv_make_current(current);
    if (kiln_device_open(device, &info, &err) != KILN_OK) fail_msg("%s", err.msg);
    look(&w, "kiln_device_open");
    if (kiln_device_stream_new(device, false, &s.exec.stream, &err) != KILN_OK)
        fail_msg("%s", err.msg);
    if (kiln_device_stream_new(device, true, &s.exec.side, &err) != KILN_OK)
        fail_msg("%s", err.msg);
    look(&w, "kiln_device_stream_new");
    void *const page = call_memory(1, 1 << 20);
    const bool pinned = kiln_device_pin(device, page, 1 << 20);
    look(&w, "kiln_device_pin");
    if (!pinned) print_message("device %d: a megabyte could not be page-locked\n", device);
    if (pinned) kiln_device_unpin(device, page);
    look(&w, "kiln_device_unpin");
    free(page);
    for (unsigned op = 0; op < KILN_OP_COUNT; op++) {
        op_image i;
        if (!every_operation && op != KILN_OP_knn) continue;
        if (op_image_run(&i, &s, (kiln_op_id)op, plain[op].call.args, 0, &err) != KILN_OK)
            fail_msg("%s", err.msg);
        if (!op_image_same(&plain[op].right, &i, why))
            fail_msg("%s on device %d: %s", kiln_op_name((kiln_op_id)op), device, why);
        op_image_release(&i);
    }
    kiln_device_stream_free(device, s.exec.side);
    kiln_device_stream_free(device, s.exec.stream);
    look(&w, "kiln_device_stream_free");
    if (w.changes > 0 && every_operation)
        print_message("device %d: after %s another context was current\n", device, w.step);
    nv_make_current(NULL);
    return w.changes;
}

static void current_contexts_stay_as_they_are(void **state)
{
    (void)state;
    NEED_GPU();
    nv_context primary = nv_primary(0), foreign = nv_foreign(0);
    if (devices == 1)
        print_message("one GPU: calls on another device than the current one's did not run\n");
    for (int device = devices - 1; device >= 0; device--) {
        assert_int_equal(use_device(kiln_ops_cuda(), device, NULL, true), 0);
        assert_int_equal(use_device(kiln_ops_cuda(), device, primary, true), 0);
        assert_int_equal(use_device(kiln_ops_cuda(), device, foreign, true), 0);
    }
    nv_foreign_free(foreign);
    nv_primary_release(0);
}

static void an_entry_without_guard_is_found(void **state)
{
    (void)state;
    NEED_GPU();
    kiln_ops ops = *kiln_ops_cuda();
    ops.knn = kiln_planted_unguarded;
    assert_true(use_device(&ops, devices - 1, NULL, false) > 0);
    nv_context foreign = nv_foreign(0);
    assert_true(use_device(&ops, devices - 1, foreign, false) > 0);
    nv_foreign_free(foreign);
}

/* ---- runners --------------------------------------------------------------------------------- */

static kiln_runner *new_runner(int device, uint64_t cap_bytes)
{
    const kiln_runner_options o = {.device = device, .threads = 1, .cap_bytes = cap_bytes};
    kiln_runner *r = NULL;
    kiln_error err = {0};
    if (kiln_runner_new(&o, &r, &err) != KILN_OK) call_off("kiln_runner_new", err.msg);
    return r;
}

/* True when the runner gives what the CPU gave. Any thread. */
static bool runs_right(kiln_runner *r, kiln_op_id op)
{
    op_image i;
    kiln_error err = {0};
    char why[OP_WHY_MAX] = "";
    if (op_image_prepare(&i, op, plain[op].call.args, 1, &err) != KILN_OK)
        call_off("op_image_prepare", err.msg);
    i.status = kiln_runner_run(r, op, i.args, &i.err);
    const bool good =
        op_image_same(&plain[op].right, &i, why) && op_image_kept(&i, plain[op].call.args, why);
    if (!good)
        fprintf(stderr, "%s by a runner (%s): %s\n", kiln_op_name(op), kiln_runner_name(r), why);
    op_image_release(&i);
    return good;
}

static void runners_leave_the_current_context(void **state)
{
    (void)state;
    NEED_GPU();
    nv_context foreign = nv_foreign(0);
    for (int k = 0; k < 2; k++) {
        nv_context current = k == 0 ? NULL : foreign;
        nv_make_current(current);
        kiln_runner *r = new_runner(devices - 1, 0);
        assert_ptr_equal(nv_current(), current);
        for (unsigned op = 0; op < KILN_OP_COUNT; op++) {
            uint64_t need = 0;
            kiln_error err = {0};
            assert_int_equal(kiln_runner_need(r, (kiln_op_id)op, plain[op].call.args, &need, &err),
                             KILN_OK);
            assert_true(need > 0 && runs_right(r, (kiln_op_id)op));
            assert_ptr_equal(nv_current(), current);
        }
        assert_int_equal(kiln_runner_get_info(r).n_device, KILN_OP_COUNT);
        kiln_runner_free(r);
        assert_ptr_equal(nv_current(), current);
    }
    nv_make_current(NULL);
    nv_foreign_free(foreign);
}

static void a_runner_keeps_its_cap(void **state)
{
    (void)state;
    NEED_GPU();
    for (unsigned op = 0; op < KILN_OP_COUNT; op++) {
        uint64_t need = 0;
        kiln_error err = {0};
        kiln_runner *r = new_runner(devices - 1, 0);
        assert_int_equal(kiln_runner_need(r, (kiln_op_id)op, plain[op].call.args, &need, &err),
                         KILN_OK);
        kiln_runner_free(r);
        for (unsigned missing = 0; missing < 2; missing++) {
            r = new_runner(devices - 1, need - missing);
            assert_true(runs_right(r, (kiln_op_id)op));
            const kiln_runner_info info = kiln_runner_get_info(r);
            assert_true(info.peak_bytes <= need - missing);
            assert_int_equal(info.n_device, 1 - missing);
            assert_int_equal(info.n_host, missing);
            kiln_runner_free(r);
        }
    }
}

/* ---- many threads ---------------------------------------------------------------------------- */

enum { THREADS = 4, LEAK_ROUNDS = 3 };

typedef struct {
    unsigned number, calls, wrong;
} thread_work;

/* Calls that alternate between devices and operations, each device with a runner of the thread's
 * own. */
static void *call_many(void *context)
{
    thread_work *w = context;
    kiln_runner **runners = call_memory((uint64_t)devices, sizeof *runners);
    for (int d = 0; d < devices; d++) runners[d] = new_runner(d, (uint64_t)256 << 20);
    for (unsigned k = 0; k < w->calls; k++)
        w->wrong += !runs_right(runners[(k + w->number) % (unsigned)devices],
                                (kiln_op_id)((k * 7 + w->number) % KILN_OP_COUNT));
    if (nv_current() != NULL) w->wrong++;
    for (int d = 0; d < devices; d++) kiln_runner_free(runners[d]);
    free(runners);
    return NULL;
}

static unsigned run_threads(unsigned calls)
{
    pthread_t threads[THREADS];
    thread_work work[THREADS];
    unsigned wrong = 0;
    for (unsigned t = 0; t < THREADS; t++) {
        work[t] = (thread_work){.number = t, .calls = calls / THREADS};
        assert_int_equal(pthread_create(&threads[t], NULL, call_many, &work[t]), 0);
    }
    for (unsigned t = 0; t < THREADS; t++) {
        assert_int_equal(pthread_join(threads[t], NULL), 0);
        wrong += work[t].wrong;
    }
    return wrong;
}

static uint64_t free_bytes(int device)
{
    kiln_device_info info;
    kiln_error err = {0};
    if (kiln_device_open(device, &info, &err) != KILN_OK) fail_msg("%s", err.msg);
    return info.free_bytes;
}

/* The least by which the memory in use of a device grew, in bytes, over rounds of calls, each of
 * twice as many as the one before. A leak grows in each round; other processes on the device take
 * and give back memory in some. Ends with the first round in which no device has less memory
 * free. */
static int64_t least_growth(unsigned calls, int rounds)
{
    uint64_t *before = call_memory((uint64_t)devices, sizeof *before);
    int64_t least = INT64_MAX;
    for (int round = 0; round < rounds && least > 0; round++, calls *= 2) {
        int64_t most = 0;
        for (int d = 0; d < devices; d++) before[d] = free_bytes(d);
        assert_int_equal(run_threads(calls), 0);
        for (int d = 0; d < devices; d++) {
            const int64_t grown = (int64_t)(before[d] - free_bytes(d));
            print_message("device %d: %u calls by %d threads on %d devices, %lld bytes less free\n",
                          d, calls, THREADS, devices, (long long)grown);
            if (grown > most) most = grown;
        }
        if (most < least) least = most;
    }
    free(before);
    return least;
}

static void threads_share_devices_and_leak_nothing(void **state)
{
    (void)state;
    NEED_GPU();
    /* under a tool that keeps memory of its own on the device */
    const bool small = getenv("KILN_GPU_SMALL") != NULL;
    /* what the driver keeps, it has then */
    assert_int_equal(run_threads(2 * THREADS * KILN_OP_COUNT), 0);
    const int64_t leaked =
        small ? least_growth(THREADS * KILN_OP_COUNT, 1) : least_growth(2000, LEAK_ROUNDS);
    if (leaked > 0 && !small)
        print_message(
            "each round took memory; if other programs use the GPU, run this test without them\n");
    assert_true(small || leaked == 0);
}

/* ---- processes of their own ------------------------------------------------------------------ */

/* --only-device N: all operations there. Fails when NVML lists this process on device 0. */
static int only_device(int device)
{
    const uint64_t before = nv_used_bytes(0);
    make_plain_calls();
    kiln_runner *r = new_runner(device, 0);
    for (unsigned op = 0; op < KILN_OP_COUNT; op++)
        if (!runs_right(r, (kiln_op_id)op)) return 1;
    const bool on_first = nv_has_this_process(0), on_own = nv_has_this_process(device);
    const int64_t during = (int64_t)(nv_used_bytes(0) - before) >> 20;
    kiln_runner_free(r);
    free_plain_calls();
    printf(
        "%lld MiB more on device 0 meanwhile; NVML lists the process %s device %d, %s device 0\n",
        (long long)during, on_own ? "on" : "not on", device, on_first ? "on" : "not on");
    if (on_first) return 1;
    /* In a container NVML may list no process at all. Then memory decides, which others may be
     * using too: only a context's 500 MiB counts. */
    return !on_own && during >= CONTEXT_MIB;
}

static void a_device_that_is_not_used_is_not_touched(void **state)
{
    char said[1024], number[16];
    (void)state;
    NEED_GPU();
    if (devices == 1) {
        print_message(
            "one GPU: that a process on device 1 leaves nothing on device 0 did not run\n");
        return;
    }
    if (!can_run_again()) skip();
    snprintf(number, sizeof number, "%d", devices - 1);
    const int code = run_again("--only-device", number, "-", said, sizeof said);
    print_message("%s", said);
    assert_int_equal(code, 0);
}

static void devices_that_are_not_there_are_refused(void **state)
{
    kiln_device_info info;
    kiln_error err = {0};
    (void)state;
    NEED_GPU();
    nv_make_current(NULL);
    assert_int_equal(kiln_device_open(devices, &info, &err), KILN_E_DEVICE);
    assert_non_null(strstr(err.msg, "there is no CUDA device"));
    assert_int_equal(kiln_device_open(-1, &info, &err), KILN_E_DEVICE);
    if (!getenv("KILN_GPU_SMALL")) { /* tools count calls that fail */
        void *memory = NULL;
        assert_int_equal(kiln_device_alloc(devices - 1, (size_t)1 << 50, &memory, &err),
                         KILN_E_CAP);
        assert_non_null(strstr(err.msg, "MiB free"));
    }
    assert_null(nv_current());
}

static int setup(void **state)
{
    (void)state;
    if (devices > 0) make_plain_calls();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (devices > 0) free_plain_calls();
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(current_contexts_stay_as_they_are),
        cmocka_unit_test(an_entry_without_guard_is_found),
        cmocka_unit_test(runners_leave_the_current_context),
        cmocka_unit_test(a_runner_keeps_its_cap),
        cmocka_unit_test(threads_share_devices_and_leak_nothing),
        cmocka_unit_test(a_device_that_is_not_used_is_not_touched),
        cmocka_unit_test(devices_that_are_not_there_are_refused),
    };
    devices = nv_open();
    if (argc == 4 && strcmp(argv[1], "--only-device") == 0) return only_device(atoi(argv[2]));
    return cmocka_run_group_tests_name("device", tests, setup, teardown);
}
