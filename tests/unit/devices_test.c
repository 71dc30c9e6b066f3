/* --devices and CUDA_VISIBLE_DEVICES: the rules, on machines that are only described; and what NVML is asked, of a library
 * that only pretends to be it. No GPU is needed. */
#include "stages/engine/devices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define A "GPU-aaaaaaaa-1111-2222-3333-444444444444"
#define B "GPU-aaaabbbb-1111-2222-3333-444444444444"
#define C "GPU-cccccccc-1111-2222-3333-444444444444"
#define I "MIG-dddddddd-1111-2222-3333-444444444444"
#define J "MIG-dddeeeee-1111-2222-3333-444444444444"
#define OLD "MIG-GPU-aaaaaaaa-1111-2222-3333-444444444444/1/0"

static const kiln_gpu_list three = {.items = {{"X", A, 0}, {"X", B, 1}, {"X", C, 2}}, .n = 3, .n_gpus = 3, .driver = "580.65.06"};
static const kiln_gpu_list unlike = {.items = {{"X", A, 0}, {"Y", B, 1}}, .n = 2, .n_gpus = 2, .driver = "580.65.06"};
static const kiln_gpu_list cut = {.items = {{"X", A, 0}, {"X", I, 1}, {"X", J, 1}}, .n = 3, .n_gpus = 2, .driver = "580.65.06"};
static const kiln_gpu_list old = {.items = {{"X", A, 0}}, .n = 1, .n_gpus = 1, .driver = "570.86.10"};
static const kiln_gpu_list none = {.n = 0};
static const kiln_gpu_list absent = {.why_none = "no NVIDIA driver is found"};

typedef struct {
    const kiln_gpu_list *gpus;
    const char *asked, *visible;
    const char *want; /* what workers get, "," between; "cpu"; or a part of the sentence */
    kiln_status status;
    const char *order;
} example;

static void answer(const kiln_device_list *d, char *out, size_t size)
{
    size_t used = 0;
    *out = '\0';
    for (unsigned i = 0; i < d->n; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? "," : "",
                                 d->items[i].kind == KILN_DEVICE_CPU ? "cpu" : d->items[i].visible);
}

static void check(const example *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const example *e = &all[i];
        const kiln_devices_question q = {
            .asked = e->asked, .visible = e->visible, .order = e->order, .built_version = 13000, .gpus = e->gpus};
        kiln_device_list d;
        kiln_error err = {0};
        char got[1024];
        const kiln_status st = kiln_devices_choose(&q, &d, &err);
        if (st == KILN_OK) answer(&d, got, sizeof got);
        const bool good = st != e->status ? false : st == KILN_OK ? !strcmp(got, e->want) : strstr(err.msg, e->want) != NULL;
        if (!good) fail_msg("row %zu, --devices %s: '%s' instead of '%s'", i, e->asked, st == KILN_OK ? got : err.msg, e->want);
    }
}
#define CHECK(rows) check(rows, sizeof rows / sizeof *rows)

/* ---- the rules ------------------------------------------------------------------------------------------------------------ */
static void without_a_list_all_gpus_are_visible(void **state)
{
    (void)state;
    static const example rows[] = {
        {&three, "cpu", NULL, "cpu", KILN_OK, NULL},
        {&three, "auto", NULL, A, KILN_OK, NULL},
        {&three, "cuda", NULL, A, KILN_OK, NULL},
        {&three, "all", NULL, A "," B "," C, KILN_OK, NULL},
        {&three, "2,0", NULL, C "," A, KILN_OK, NULL},
        {&three, "GPU-c", NULL, C, KILN_OK, NULL},
        {&three, "GPU-aaaab,2", NULL, B "," C, KILN_OK, NULL},
        {&three, "GPU-aaaa", NULL, "beginning of several; 3 GPUs are visible, numbers 0 to 2", KILN_E_DEVICE, NULL},
        {&three, "GPU-f", NULL, "none of them", KILN_E_DEVICE, NULL},
        {&three, "3", NULL, "'3' is not there; 3 GPUs are visible", KILN_E_DEVICE, NULL},
        {&three, "99999999999999999999", NULL, "not there", KILN_E_DEVICE, NULL},
        {&three, "1,1", NULL, "twice", KILN_E_USAGE, NULL},
        {&three, "1,GPU-aaaab", NULL, "twice", KILN_E_USAGE, NULL},
        {&three, OLD, NULL, OLD, KILN_OK, NULL},
        {&cut, "all", NULL, A "," I "," J, KILN_OK, NULL},
        {&cut, "MIG-ddde", NULL, J, KILN_OK, NULL},
    };
    CHECK(rows);
}

static void a_list_hides_orders_and_is_passed_on_as_it_stands(void **state)
{
    (void)state;
    static const example rows[] = {
        {&three, "all", "2,1", "2,1", KILN_OK, NULL},
        {&three, "cuda", "2,1", "2", KILN_OK, NULL},
        {&three, "1", "2,1", "1", KILN_OK, NULL},
        {&three, "2", "2,1", "2 GPUs are visible, numbers 0 to 1 (CUDA_VISIBLE_DEVICES is '2,1')", KILN_E_DEVICE, NULL},
        {&three, "all", "GPU-c,GPU-aaaab", "GPU-c,GPU-aaaab", KILN_OK, NULL},
        {&three, C, "GPU-aaaab,GPU-c", "GPU-c", KILN_OK, NULL},
        {&three, "GPU-c", "2,1", "2", KILN_OK, NULL}, /* alike, so both sides count alike */
        {&three, "GPU-aaaaa", "2,1", "none of them", KILN_E_DEVICE, NULL},
        {&unlike, "GPU-aaaab", "1,0", "none of them", KILN_E_DEVICE, NULL}, /* CUDA may count the faster one first */
        {&unlike, "GPU-aaaab", "1,0", "1", KILN_OK, "PCI_BUS_ID"},
        {&three, "all", " 1 , 2 ", "1,2", KILN_OK, NULL},
        {&cut, "all", "MIG-dddd,MIG-ddde", "MIG-dddd,MIG-ddde", KILN_OK, NULL},
        {&cut, "all", OLD ",0", OLD ",0", KILN_OK, NULL},
        {&three, OLD, "0", "none of them", KILN_E_DEVICE, NULL},
    };
    CHECK(rows);
}

static void the_first_invalid_entry_ends_a_list(void **state)
{
    (void)state;
    static const example rows[] = {
        {&three, "all", "0,2,-1,1", "0,2", KILN_OK, NULL}, /* the guide's own example */
        {&three, "all", "1,3,0", "1", KILN_OK, NULL},
        {&three, "all", "GPU-c,GPU-aaaa,GPU-aaaab", "GPU-c", KILN_OK, NULL},
        {&three, "all", "0,,1", "0", KILN_OK, NULL},
        {&three, "all", "0,1x,2", "0", KILN_OK, NULL},
        {&three, "1", "0,-1,1", "1 GPU is visible, number 0", KILN_E_DEVICE, NULL},
    };
    CHECK(rows);
    static const example nothing[] = {
        {&three, "auto", "-1", "cpu", KILN_OK, NULL},
        {&three, "cuda", "-1", "'-1' is none of the GPUs here (3)", KILN_E_DEVICE, NULL},
        {&three, "auto", "", "cpu", KILN_OK, NULL},
        {&three, "cuda", "", "is empty, which hides every GPU", KILN_E_DEVICE, NULL},
        {&three, "all", "7", "'7' is none of the GPUs here (3)", KILN_E_DEVICE, NULL},
        {&three, "0", "", "hides every GPU", KILN_E_DEVICE, NULL},
        {&three, "cuda", "none", "'none' is none of the GPUs", KILN_E_DEVICE, NULL},
        {&cut, "cuda", "MIG-f", "'MIG-f' is none of the GPUs", KILN_E_DEVICE, NULL},
    };
    CHECK(nothing);
}

static void a_gpu_listed_twice_leaves_none(void **state)
{
    (void)state;
    static const example rows[] = {
        {&three, "auto", "1,1", "cpu", KILN_OK, NULL},
        {&three, "cuda", "1,1", "names a GPU twice", KILN_E_DEVICE, NULL},
        {&three, "cuda", "0,GPU-c,2", "names a GPU twice", KILN_E_DEVICE, NULL},
        {&three, "cuda", "GPU-c,GPU-cccc", "names a GPU twice", KILN_E_DEVICE, NULL},
    };
    CHECK(rows);
}

static void where_no_gpu_can_be_used_auto_takes_the_cpu(void **state)
{
    (void)state;
    static const example rows[] = {
        {&old, "auto", NULL, "cpu", KILN_OK, NULL},
        {&old, "cuda", NULL, A, KILN_OK, NULL}, /* forward compatibility may be installed: the worker asks CUDA */
        {&none, "auto", NULL, "cpu", KILN_OK, NULL},
        {&none, "all", NULL, "of 0 GPUs here none may be used", KILN_E_DEVICE, NULL},
        {&absent, "auto", "0", "cpu", KILN_OK, NULL},
        {&absent, "0", "0", "no NVIDIA driver is found; --devices cpu does without", KILN_E_DEVICE, NULL},
    };
    CHECK(rows);
}

static void the_build_decides_before_anything_is_seen(void **state)
{
    (void)state;
    kiln_device_list d;
    kiln_error err = {0};
    kiln_devices_question q = {.asked = "auto", .gpus = &three};
    assert_int_equal(kiln_devices_choose(&q, &d, &err), KILN_OK);
    assert_int_equal(d.items[0].kind, KILN_DEVICE_CPU);
    assert_string_equal(d.note, "this build has no CUDA");
    q.asked = "all";
    assert_int_equal(kiln_devices_choose(&q, &d, &err), KILN_E_DEVICE);
    q.built_version = 12080; /* an older build runs with a newer driver */
    assert_int_equal(kiln_devices_choose(&q, &d, &err), KILN_OK);
}

static void we_say_whose_choice_it_was(void **state)
{
    (void)state;
    kiln_device_list d;
    kiln_devices_question q = {.asked = "cuda", .built_version = 13000, .gpus = &three};
    assert_int_equal(kiln_devices_choose(&q, &d, NULL), KILN_OK);
    assert_true(d.items[0].chosen);
    assert_string_equal(d.items[0].uuid, A);
    q.visible = "1,7";
    assert_int_equal(kiln_devices_choose(&q, &d, NULL), KILN_OK);
    assert_false(d.items[0].chosen);
    assert_string_equal(d.items[0].uuid, B);
    assert_non_null(strstr(d.note, "'7' is none of the GPUs here (3)"));
}

static void the_text_of_devices_is_checked_without_looking(void **state)
{
    (void)state;
    static const char *const good[] = {"auto", "cpu", "cuda", "all", "0", "3,1", A, "GPU-aa,MIG-bb", OLD};
    static const char *const bad[] = {"toaster", "", "0,", ",0", "-1", "cpu,0", "GPU-", "MIG-GPU-", "GPU-xyz", "0;1", "Auto"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_int_equal(kiln_devices_check(good[i], NULL), KILN_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (kiln_devices_check(bad[i], NULL) != KILN_E_USAGE) fail_msg("'%s' was taken", bad[i]);
    }
    assert_null(kiln_devices_named_kind("auto"));
    assert_string_equal(kiln_devices_named_kind("cpu"), "cpu");
    assert_string_equal(kiln_devices_named_kind("0,1"), "cuda");
}

/* ---- NVML ----------------------------------------------------------------------------------------------------------------- */
static char folder[] = "/tmp/kiln-nvml-XXXXXX";
static char library[64];

static int build_library(void **state)
{
    char line[256];
    (void)state;
    if (!mkdtemp(folder)) return -1;
    (void)snprintf(library, sizeof library, "%s/libfake.so", folder);
    (void)snprintf(line, sizeof line, "${CC:-cc} -shared -fPIC -o '%s' tests/unit/fake_nvml.c", library);
    return system(line);
}

static int remove_library(void **state)
{
    (void)state;
    (void)unlink(library);
    return rmdir(folder);
}

static kiln_gpu_list seen_with(const char *nvml, const char *variable, const char *value)
{
    kiln_gpu_list gpus;
    static const char *const all[] = {"FAKE_MIG", "FAKE_LOST", "FAKE_INIT", "FAKE_DRIVER"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) (void)unsetenv(all[i]);
    (void)setenv("KILN_NVML", nvml, 1);
    (void)setenv("FAKE_GPUS", "3", 1);
    (void)setenv(variable, value, 1);
    kiln_gpus_list(&gpus);
    return gpus;
}

static void nvml_tells_gpus_and_instances(void **state)
{
    (void)state;
    kiln_gpu_list g = seen_with(library, "FAKE_DRIVER", "550.54.14");
    assert_string_equal(g.why_none, "");
    assert_int_equal(g.n, 3);
    assert_string_equal(g.driver, "550.54.14");
    assert_string_equal(g.items[2].name, "NVIDIA Fake");
    assert_string_equal(g.items[2].uuid, "GPU-02000000-0000-0000-0000-000000000000");
    g = seen_with(library, "FAKE_MIG", "1");
    assert_int_equal(g.n, 4);
    assert_int_equal(g.n_gpus, 3);
    assert_string_equal(g.items[2].uuid, "MIG-11111111-0000-0000-0000-000000000000");
    assert_int_equal(g.items[2].gpu, 1);
    assert_int_equal(g.items[3].gpu, 2);
    g = seen_with(library, "FAKE_LOST", "0");
    assert_int_equal(g.n, 2);
    assert_int_equal(g.items[0].gpu, 1);
    g = seen_with(library, "FAKE_GPUS", "200"); /* more than we keep */
    assert_int_equal(g.n, KILN_GPUS_MAX);
}

static void nvml_that_does_not_answer_is_a_reason(void **state)
{
    (void)state;
    kiln_gpu_list g = seen_with("/nowhere/libnone.so", "FAKE_GPUS", "3");
    assert_int_equal(g.n, 0);
    assert_non_null(strstr(g.why_none, "no NVIDIA driver is found (/nowhere/libnone.so"));
    g = seen_with(library, "FAKE_INIT", "9");
    assert_int_equal(g.n, 0);
    assert_non_null(strstr(g.why_none, "says: Driver Not Loaded"));
    g = seen_with("libm.so.6", "FAKE_GPUS", "3");
    assert_non_null(strstr(g.why_none, "is not NVML"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_list_all_gpus_are_visible),
        cmocka_unit_test(a_list_hides_orders_and_is_passed_on_as_it_stands),
        cmocka_unit_test(the_first_invalid_entry_ends_a_list),
        cmocka_unit_test(a_gpu_listed_twice_leaves_none),
        cmocka_unit_test(where_no_gpu_can_be_used_auto_takes_the_cpu),
        cmocka_unit_test(the_build_decides_before_anything_is_seen),
        cmocka_unit_test(we_say_whose_choice_it_was),
        cmocka_unit_test(the_text_of_devices_is_checked_without_looking),
        cmocka_unit_test(nvml_tells_gpus_and_instances),
        cmocka_unit_test(nvml_that_does_not_answer_is_a_reason),
    };
    return cmocka_run_group_tests(tests, build_library, remove_library);
}
