/* test_runner -- where the operations of a test run: on the CPU, or with KILN_TEST_DEVICES=cuda in
 * the environment on the last CUDA device of this process (tests/gpu/truth.t sets it). */
#ifndef KILN_TESTS_TEST_RUNNER_H
#define KILN_TESTS_TEST_RUNNER_H

#include "kernels/runner.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { TEST_RUNNER_THREADS = 2 };

static inline bool test_runner_is_cuda(void)
{
    const char *devices = getenv("KILN_TEST_DEVICES");
    return devices && strcmp(devices, "cuda") == 0;
}

/* One for the whole program; there is no end to it but the program's. */
static inline kiln_status test_runner(unsigned cpu_threads, kiln_runner **out, kiln_error *err)
{
    static kiln_runner *runner;
    kiln_runner_options o = {.device = KILN_RUNNER_CPU, .threads = cpu_threads};
    kiln_device_info info;
    if (!runner && test_runner_is_cuda())
        while (kiln_device_open(o.device + 1, &info, err) == KILN_OK) o.device++;
    if (!runner && test_runner_is_cuda() && o.device == KILN_RUNNER_CPU) return KILN_E_DEVICE;
    if (!runner) KILN_TRY(kiln_runner_new(&o, &runner, err));
    *out = runner;
    return KILN_OK;
}

static inline kiln_status test_run(kiln_op_id op, const void *args, kiln_error *err)
{
    kiln_runner *runner;
    KILN_TRY(test_runner(TEST_RUNNER_THREADS, &runner, err));
    KILN_TRY(kiln_runner_run(runner, op, args, err));
    if (kiln_runner_get_info(runner).n_host == 0) return KILN_OK;
    return kiln_fail(err, KILN_E_CAP, "%s ran on the CPU, because the GPU's memory is too small",
                     kiln_op_name(op));
}

#endif
