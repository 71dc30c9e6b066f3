/* planted_test -- faults planted in an operation (planted.cu) are told: with kernel, file and line
 * under --sync, and without it as an error that says how to find the kernel; by the operation
 * itself, by what waits for it, and by a runner.
 *
 * Each fault may cost the context, so each is a process of its own: --call|--runner write|launch
 * sync|async, --provoke - sync|async.
 */
#include "kernels/device.h"
#include "kernels/runner.h"
#include "tests/gpu/again.h"
#include "tests/gpu/call.h"
#include "tests/gpu/nvidia.h"
#include "tests/gpu/planted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int devices; /* that this process sees */

/* ---- the table that a runner gets here: knn has the fault ------------------------------------ */

#define OP(op) kiln_##op##_fn kiln_##op##_cuda;
KILN_OP_MAP(OP)
#undef OP

static kiln_knn_fn *planted_knn = kiln_knn_cuda;

static kiln_status knn(const kiln_exec *x, const kiln_knn_args *a, void *work, size_t *work_bytes,
                       kiln_error *err)
{
    return planted_knn(x, a, work, work_bytes, err);
}

/* In the place of the library's. */
const kiln_ops *kiln_ops_cuda(void)
{
    static kiln_ops ops = {.name = "planted",
#define OP(op) .op = kiln_##op##_cuda,
                           KILN_OP_MAP(OP)
#undef OP
    };
    ops.knn = knn;
    return &ops;
}

/* ---- in a process of its own ----------------------------------------------------------------- */

/* What the call says, what waiting says, what comes after. */
static int plant_in_call(kiln_knn_fn *fn, bool sync)
{
    kiln_exec x = {.device = devices - 1, .threads = 1, .sync = sync};
    kiln_error call = {0}, wait = {0}, after = {0};
    void *memory = NULL, *more = NULL;
    size_t bytes = 1;
    if (kiln_device_stream_new(x.device, false, &x.stream, &call) != KILN_OK ||
        kiln_device_alloc(x.device, 4096, &memory, &call) != KILN_OK)
        call_off("planted", call.msg);
    const kiln_knn_args a = {.n = 1, .k = 3, .means = memory, .spacing2 = memory};
    const kiln_status called = fn(&x, &a, memory, &bytes, &call),
                      waited = kiln_device_wait(&x, &wait);
    const kiln_status next = kiln_device_alloc(x.device, 4096, &more, &after);
    printf("call %s: %s\nwait %s: %s\nnext %s\n", kiln_status_name(called), call.msg,
           kiln_status_name(waited), wait.msg, kiln_status_name(next));
    kiln_device_free(x.device, more);
    kiln_device_free(x.device, memory);
    kiln_device_stream_free(x.device, x.stream);
    return nv_current() != NULL;
}

/* What a runner says, and how the next one fares. */
static int plant_in_runner(kiln_knn_fn *fn, bool sync)
{
    const kiln_runner_options o = {
        .device = devices - 1, .threads = 1, .cap_bytes = 1 << 20, .sync = sync};
    const float means[3 * 4] = {0, 1, 2, 3};
    float spacing2[4];
    const kiln_knn_args a = {.n = 4, .k = 1, .means = means, .spacing2 = spacing2};
    kiln_error run = {0}, after = {0};
    kiln_runner *r = NULL;
    if (kiln_runner_new(&o, &r, &run) != KILN_OK) call_off("kiln_runner_new", run.msg);
    planted_knn = fn;
    const kiln_status ran = kiln_runner_run(r, KILN_OP_knn, &a, &run);
    planted_knn = kiln_knn_cuda;
    const kiln_status next = kiln_runner_run(r, KILN_OP_knn, &a, &after);
    printf("run %s: %s\nnext %s: %s\n", kiln_status_name(ran), run.msg, kiln_status_name(next),
           after.msg);
    kiln_runner_free(r);
    return nv_current() != NULL;
}

/* The fault that programs can be told to make, and what CUDA says of the device then. */
static int provoke(bool sync)
{
    kiln_exec x = {.device = devices - 1, .threads = 1, .sync = sync};
    kiln_error err = {0};
    if (kiln_device_stream_new(x.device, false, &x.stream, &err) != KILN_OK)
        call_off("kiln_device_stream_new", err.msg);
    printf("lost before: %d\n", kiln_device_is_lost(x.device));
    const kiln_status st = kiln_device_provoke(&x, &err);
    printf("provoke %s: %s\nlost after: %d\n", kiln_status_name(st), err.msg,
           kiln_device_is_lost(x.device));
    return nv_current() != NULL;
}

/* ---- what they say --------------------------------------------------------------------------- */

#define NEED_PROCESSES()                                               \
    do {                                                               \
        if (devices == 0) print_message("skipped: there is no GPU\n"); \
        if (devices == 0 || !can_run_again()) skip();                  \
    } while (0)

static char said[4096];

static void plant(const char *where, const char *what, bool sync)
{
    if (run_again(where, what, sync ? "sync" : "async", said, sizeof said) != 0)
        fail_msg("%s %s: %s", where, what, said);
}

static void must_say(const char *words)
{
    if (!strstr(said, words)) fail_msg("'%s' is not in:\n%s", words, said);
}

static void a_write_outside_is_told_by_its_kernel_under_sync(void **state)
{
    (void)state;
    NEED_PROCESSES();
    plant("--call", "write", true);
    must_say("call E_DEVICE: 'write_far_outside' failed on CUDA device");
    must_say("cudaErrorIllegalAddress");
    must_say("tests/gpu/planted.cu:");
    plant("--runner", "write", true);
    must_say("run E_DEVICE: knn: 'write_far_outside' failed on CUDA device");
    must_say("cudaErrorIllegalAddress");
    must_say("tests/gpu/planted.cu:");
    must_say("next E_DEVICE"); /* the context is lost, and no result is made up */
}

static void a_write_outside_is_an_error_that_names_sync_without_it(void **state)
{
    (void)state;
    NEED_PROCESSES();
    plant("--call", "write", false);
    must_say("call OK");
    must_say("wait E_DEVICE: ");
    must_say("cudaErrorIllegalAddress");
    must_say("--sync");
    must_say("next E_DEVICE");
    plant("--runner", "write", false);
    must_say("run E_DEVICE: knn: ");
    must_say("cudaErrorIllegalAddress");
    must_say("--sync");
    must_say("next E_DEVICE");
}

static void a_launch_that_cannot_be_is_told_at_once(void **state)
{
    (void)state;
    NEED_PROCESSES();
    for (int sync = 0; sync < 2; sync++) {
        plant("--call", "launch", sync);
        must_say("call E_DEVICE: 'do_nothing' failed on CUDA device");
        must_say("tests/gpu/planted.cu:");
        must_say("wait OK");
        must_say("next OK");
        plant("--runner", "launch", sync);
        must_say("run E_DEVICE: knn: 'do_nothing' failed on CUDA device");
        must_say("tests/gpu/planted.cu:");
        must_say("next OK"); /* nothing was started, so nothing is lost */
    }
}

static void a_provoked_fault_costs_the_context_and_not_the_device(void **state)
{
    (void)state;
    NEED_PROCESSES();
    for (int sync = 0; sync < 2; sync++) {
        plant("--provoke", "-", sync);
        must_say("lost before: 0");
        must_say("provoke E_DEVICE: ");
        must_say(sync ? "'write_astray' failed on CUDA device" : "--sync");
        must_say("cudaErrorIllegalAddress");
        must_say("kernels/device.cu:");
        must_say("lost after: 0");
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_outside_is_told_by_its_kernel_under_sync),
        cmocka_unit_test(a_write_outside_is_an_error_that_names_sync_without_it),
        cmocka_unit_test(a_launch_that_cannot_be_is_told_at_once),
        cmocka_unit_test(a_provoked_fault_costs_the_context_and_not_the_device),
    };
    devices = nv_open();
    if (argc == 4) {
        kiln_knn_fn *fn = strcmp(argv[2], "write") == 0 ? kiln_planted_write : kiln_planted_launch;
        const bool sync = strcmp(argv[3], "sync") == 0;
        if (strcmp(argv[1], "--provoke") == 0) return provoke(sync);
        return strcmp(argv[1], "--runner") == 0 ? plant_in_runner(fn, sync)
                                                : plant_in_call(fn, sync);
    }
    return cmocka_run_group_tests_name("planted", tests, NULL, NULL);
}
