/* Which CPUs are near a GPU: of a sysfs that the test writes, within what this process may use. */
#include "base/file.h"
#include "stages/engine/devices/devices.h"
#include "tests/unit/test_folder.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define GPU "0000:1b:00.0"
static char sysfs[TEST_FOLDER_MAX];

static int make_folder(void **state)
{
    (void)state;
    return test_folder_new(sysfs, "sysfs");
}

static int remove_folder(void **state)
{
    (void)state;
    return test_folder_remove(sysfs);
}

static void tell(const char *name, const char *text)
{
    char path[TEST_PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/bus/pci/devices/" GPU "/%s", sysfs, name);
    assert_int_equal(kiln_file_write(path, text, strlen(text), NULL), KILN_OK);
}

/* The first CPU that this process may use: which ones these are is the machine's business. */
static int first_cpu(void)
{
    cpu_set_t mine;
    assert_int_equal(sched_getaffinity(0, sizeof mine, &mine), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &mine)) return cpu;
    fail_msg("no CPU");
    return -1;
}

static const char *near_gpu(const char *list, char out[KILN_CPUS_TEXT])
{
    tell("local_cpulist", list);
    kiln_cpus_near(sysfs, GPU, out, KILN_CPUS_TEXT);
    return out;
}

static void the_node_is_read(void **state)
{
    (void)state;
    assert_int_equal(kiln_cpus_node(sysfs, GPU), -1); /* nothing there yet */
    tell("numa_node", "3\n");
    assert_int_equal(kiln_cpus_node(sysfs, GPU), 3);
    tell("numa_node", "-1\n");
    assert_int_equal(kiln_cpus_node(sysfs, GPU), -1);
    assert_int_equal(kiln_cpus_node(sysfs, ""), -1);
}

static void near_ones_are_those_that_we_may_use(void **state)
{
    (void)state;
    char got[KILN_CPUS_TEXT], list[64], want[16];
    const int cpu = first_cpu();
    (void)snprintf(want, sizeof want, "%d", cpu);
    (void)snprintf(list, sizeof list, "%d,8000-8191\n", cpu); /* no machine has the others */
    assert_string_equal(near_gpu(list, got), want);
    (void)snprintf(list, sizeof list, "%d-%d\n", cpu, cpu);
    assert_string_equal(near_gpu(list, got), want);
    assert_string_equal(near_gpu("8191\n", got), "");
}

static void what_is_no_list_is_not_known(void **state)
{
    (void)state;
    static const char *const bad[] = {"",     "\n",       "x\n",           "0-\n", "0,\n",
                                      "-3\n", "0-8192\n", "99999999999\n", "0;1\n"};
    char got[KILN_CPUS_TEXT];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_string_equal(near_gpu(bad[i], got), "");
    kiln_cpus_near(sysfs, "0000:ff:00.0", got, sizeof got);
    assert_string_equal(got, "");
    (void)near_gpu("0-8191\n", got);
    kiln_cpus_near(sysfs, GPU, got, 1); /* half a list would be another one */
    assert_string_equal(got, "");
}

/* In a child: it changes where this process runs. */
static void a_list_binds_and_threads_count_what_it_allows(void **state)
{
    (void)state;
    char list[16];
    (void)snprintf(list, sizeof list, "%d", first_cpu());
    const unsigned before = kiln_devices_threads(0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        kiln_cpus_bind("");
        kiln_cpus_bind("not a list");
        kiln_cpus_bind("8191"); /* the kernel refuses */
        if (kiln_devices_threads(0) != before) _exit(1);
        kiln_cpus_bind(list);
        _exit(kiln_devices_threads(0) == 1 && kiln_devices_threads(7) == 7 ? 0 : 2);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void each_gpu_gets_its_own(void **state)
{
    (void)state;
    char want[KILN_CPUS_TEXT];
    kiln_device_list d = {
        .n = 2, .items = {{.kind = KILN_DEVICE_CPU}, {.kind = KILN_DEVICE_CUDA, .pci = GPU}}};
    (void)near_gpu("0-8191\n", want);
    kiln_devices_place(sysfs, &d);
    assert_string_equal(d.items[0].cpus, "");
    assert_string_equal(d.items[1].cpus, want);
    assert_true(*want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_node_is_read),
        cmocka_unit_test(near_ones_are_those_that_we_may_use),
        cmocka_unit_test(what_is_no_list_is_not_known),
        cmocka_unit_test(a_list_binds_and_threads_count_what_it_allows),
        cmocka_unit_test(each_gpu_gets_its_own),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
