/* --devices and CUDA_VISIBLE_DEVICES: the rules, on machines that are only described; and what NVML
 * is asked, of a library that only pretends to be it. No GPU is needed. */
#include "stages/engine/devices/devices.h"
#include "stages/engine/interrupt.h"
#include "tests/unit/test_folder.h"

#include <dlfcn.h>
#include <errno.h>
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

#define A "GPU-aaaaaaaa-1111-2222-3333-444444444444"
#define B "GPU-aaaabbbb-1111-2222-3333-444444444444"
#define C "GPU-cccccccc-1111-2222-3333-444444444444"
#define I "MIG-dddddddd-1111-2222-3333-444444444444"
#define J "MIG-dddeeeee-1111-2222-3333-444444444444"
#define OLD "MIG-GPU-aaaaaaaa-1111-2222-3333-444444444444/1/0"

#define GPU(model, id, at, capability)                           \
    {                                                            \
        .name = model, .uuid = id, .gpu = at, .arch = capability \
    }
static const kiln_gpu_list three = {
    .items = {GPU("X", A, 0, 90), GPU("X", B, 1, 90), GPU("X", C, 2, 90)},
    .n = 3,
    .n_gpus = 3,
    .driver_version = 13000};
static const kiln_gpu_list unlike = {.items = {GPU("X", A, 0, 75), GPU("Y", B, 1, 90)},
                                     .n = 2,
                                     .n_gpus = 2,
                                     .driver_version = 13000};
static const kiln_gpu_list cut = {
    .items = {GPU("X", A, 0, 90), GPU("X", I, 1, 90), GPU("X", J, 1, 90)},
    .n = 3,
    .n_gpus = 2,
    .driver_version = 13000};
static const kiln_gpu_list aged = {
    .items = {GPU("X", A, 0, 61), GPU("Y", B, 1, 0)}, .n = 2, .n_gpus = 2, .driver_version = 13000};
static const kiln_gpu_list ancient = {.items = {GPU("X", A, 0, 61), GPU("Y", B, 1, 86)},
                                      .n = 2,
                                      .n_gpus = 2,
                                      .driver_version = 13000};
static const kiln_gpu_list old = {
    .items = {GPU("X", A, 0, 90)}, .n = 1, .n_gpus = 1, .driver_version = 12080};
static const kiln_gpu_list half = {.items = {GPU("X", A, 0, 90)},
                                   .n = 1,
                                   .n_gpus = 1,
                                   .why_none = "NVIDIA's driver is here, but not its CUDA library"};
static const kiln_gpu_list lost = {.n_gpus = 1}, several_lost = {.n_gpus = 2}, none = {.n = 0};
static const kiln_gpu_list first_lost = {.items = {GPU("X", B, 1, 90)},
                                         .n = 1,
                                         .n_gpus = 2,
                                         .lost = {{0, "GPU is lost"}},
                                         .n_lost = 1,
                                         .driver_version = 13000};
static const kiln_gpu_list all_lost = {.n_gpus = 1, .lost = {{0, "GPU is lost"}}, .n_lost = 1};
static const kiln_gpu_list absent = {.why_none = "no NVIDIA driver is found"};
static const kiln_gpu_list hung = {.broken = true, .why_none = "did not answer"};

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
        const kiln_devices_question q = {.asked = e->asked,
                                         .visible = e->visible,
                                         .order = e->order,
                                         .built_version = 13000,
                                         .built_arch = 90,
                                         .gpus = e->gpus};
        kiln_device_list d;
        kiln_error err = {0};
        char got[1024];
        const kiln_status st = kiln_devices_choose(&q, &d, &err);
        if (st == KILN_OK) answer(&d, got, sizeof got);
        const bool good = st != e->status ? false
                          : st == KILN_OK ? !strcmp(got, e->want)
                                          : strstr(err.msg, e->want) != NULL;
        if (!good)
            fail_msg("row %zu, --devices %s: '%s' instead of '%s'", i, e->asked,
                     st == KILN_OK ? got : err.msg, e->want);
    }
}
#define CHECK(rows) check(rows, sizeof rows / sizeof *rows)

/* ---- the rules ------------------------------------------------------------------------------- */
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
        {&three, "GPU-aaaa", NULL, "beginning of several names; 3 GPUs are visible, numbers 0 to 2",
         KILN_E_DEVICE, NULL},
        {&three, "GPU-f", NULL, "not one of them", KILN_E_DEVICE, NULL},
        {&three, "3", NULL, "'3' does not exist; 3 GPUs are visible", KILN_E_DEVICE, NULL},
        {&three, "99999999999999999999", NULL, "does not exist", KILN_E_DEVICE, NULL},
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
        {&three, "2", "2,1", "2 GPUs are visible, numbers 0 to 1 (CUDA_VISIBLE_DEVICES is '2,1')",
         KILN_E_DEVICE, NULL},
        {&three, "all", "GPU-c,GPU-aaaab", "GPU-c,GPU-aaaab", KILN_OK, NULL},
        {&three, C, "GPU-aaaab,GPU-c", "GPU-c", KILN_OK, NULL},
        {&three, "GPU-c", "2,1", "2", KILN_OK, NULL}, /* alike, so both sides count alike */
        {&three, "GPU-aaaaa", "2,1", "not one of them", KILN_E_DEVICE, NULL},
        /* CUDA may count the faster one first */
        {&unlike, "GPU-aaaab", "1,0", "not one of them", KILN_E_DEVICE, NULL},
        {&unlike, "GPU-aaaab", "1,0", "1", KILN_OK, "PCI_BUS_ID"},
        {&three, "all", " 1 , 2 ", "1,2", KILN_OK, NULL},
        {&cut, "all", "MIG-dddd,MIG-ddde", "MIG-dddd,MIG-ddde", KILN_OK, NULL},
        {&cut, "all", OLD ",0", OLD ",0", KILN_OK, NULL},
        {&three, OLD, "0", "not one of them", KILN_E_DEVICE, NULL},
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
        {&old, "cuda", NULL,
         "this build needs CUDA 13.0, but the driver has CUDA 12.8; update the driver; --devices "
         "cpu needs",
         KILN_E_DEVICE, NULL},
        {&none, "auto", NULL, "cpu", KILN_OK, NULL},
        {&none, "all", NULL, "--devices all: there is no GPU; --devices cpu needs no GPU",
         KILN_E_DEVICE, NULL},
        {&lost, "all", NULL, "the GPU of this machine is hidden", KILN_E_DEVICE, NULL},
        {&all_lost, "all", NULL, "GPU 0 does not work, the driver says: GPU is lost", KILN_E_DEVICE,
         NULL},
        {&first_lost, "auto", NULL, B, KILN_OK, NULL},
        {&first_lost, "all", "1", "1", KILN_OK, NULL},
        {&first_lost, "cuda", "0", "'0' is a GPU here that does not work", KILN_E_DEVICE, NULL},
        {&several_lost, "all", NULL, "all 2 GPUs of this machine are hidden", KILN_E_DEVICE, NULL},
        {&absent, "auto", "0", "cpu", KILN_OK, NULL},
        {&absent, "0", "0", "no NVIDIA driver is found; --devices cpu needs no GPU", KILN_E_DEVICE,
         NULL},
        {&half, "auto", NULL, "cpu", KILN_OK, NULL},
        {&half, "cuda", NULL, "but not its CUDA library", KILN_E_DEVICE, NULL},
    };
    CHECK(rows);
}

static void auto_passes_over_gpus_that_the_build_has_no_code_for(void **state)
{
    (void)state;
    static const example rows[] = {
        /* named: its worker tells */
        {&unlike, "auto", NULL, B, KILN_OK, NULL},
        {&unlike, "cuda", NULL, A, KILN_OK, NULL},
        {&unlike, "all", NULL, A "," B, KILN_OK, NULL},
        {&unlike, "auto", A "," B, B, KILN_OK, NULL},
        {&unlike, "auto", A, "cpu", KILN_OK, NULL},
        {&unlike, "auto", "0,1", "1", KILN_OK, "PCI_BUS_ID"},
        {&unlike, "auto", "0,1", "0", KILN_OK, NULL},  /* CUDA may count the newer one first */
        {&ancient, "auto", "1", "cpu", KILN_OK, NULL}, /* whichever it is */
        /* not known: tried */
        {&ancient, "auto", NULL, "cpu", KILN_OK, NULL},
        {&aged, "auto", NULL, B, KILN_OK, NULL},
    };
    CHECK(rows);
}

/* A machine, what is visible of it, and whether people are told that auto computes on the CPU. */
static void auto_that_leaves_gpus_alone_is_worth_a_warning(void **state)
{
    (void)state;
    static const struct {
        const kiln_gpu_list *gpus;
        const char *visible;
        bool warns;
        const char *note;
    } rows[] = {
        {&ancient, NULL, true,
         "GPU '" A
         "' is not used: its compute capability is 6.1, but this build needs at least 9.0"},
        {&old, NULL, true, "the driver has CUDA 12.8"},
        {&half, NULL, true, "not its CUDA library"},
        {&lost, NULL, true, "the GPU of this machine is hidden"},
        {&hung, NULL, true, "did not answer"},
        {&unlike, NULL, false, "GPU '" A "' is not used"}, /* for another one */
        {&three, NULL, false, ""},
        {&three, "", false, "hides every GPU"},
        {&three, "-1", false, "'-1' is none of the GPUs"},
        {&none, NULL, false, "there is no GPU"},
        {&absent, NULL, false, "no NVIDIA driver"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const kiln_devices_question q = {.asked = "auto",
                                         .visible = rows[i].visible,
                                         .built_version = 13000,
                                         .built_arch = 90,
                                         .gpus = rows[i].gpus};
        kiln_device_list d;
        assert_int_equal(kiln_devices_choose(&q, &d, NULL), KILN_OK);
        if (d.passed_over != rows[i].warns || !strstr(d.note, rows[i].note) ||
            !*rows[i].note != !*d.note)
            fail_msg("row %zu: %s, '%s'", i, d.passed_over ? "warns" : "does not warn", d.note);
    }
}

static void the_build_decides_before_anything_is_seen(void **state)
{
    (void)state;
    kiln_device_list d;
    kiln_error err = {0};
    kiln_devices_question q = {.asked = "auto", .gpus = &three};
    assert_int_equal(kiln_devices_choose(&q, &d, &err), KILN_OK);
    assert_int_equal(d.items[0].kind, KILN_DEVICE_CPU);
    assert_string_equal(d.note, "this build has no CUDA; install a package with CUDA, or build "
                                "with nvcc (CUDA 13) in the PATH");
    assert_false(d.passed_over); /* nobody asked NVML */
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
    static const char *const good[] = {"auto", "cpu", "cuda",          "all", "0",
                                       "3,1",  A,     "GPU-aa,MIG-bb", OLD};
    static const char *const bad[] = {"toaster", "",         "0,",      ",0",  "-1",  "cpu,0",
                                      "GPU-",    "MIG-GPU-", "GPU-xyz", "0;1", "Auto"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(kiln_devices_check(good[i], NULL), KILN_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (kiln_devices_check(bad[i], NULL) != KILN_E_USAGE) fail_msg("'%s' was taken", bad[i]);
    }
    assert_null(kiln_devices_named_kind("auto"));
    assert_string_equal(kiln_devices_named_kind("cpu"), "cpu");
    assert_string_equal(kiln_devices_named_kind("0,1"), "cuda");
}

static void an_instance_is_recorded_by_its_own_name(void **state)
{
    (void)state;
    static const struct {
        const char *visible, *uuid, *want;
    } rows[] = {
        {NULL, A, A},
        {"0", A, A},
        {"GPU-aaaa", A, A},
        {I, "GPU-dddddddd-1111-2222-3333-444444444444", I},
        {"MIG-dddd", "GPU-dddddddd-1111-2222-3333-444444444444", I},
        {I, I, I},
        {I, A, I}, /* the whole GPU's */
        {OLD, A, OLD},
    };
    char got[96];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(kiln_devices_uuid(rows[i].visible, rows[i].uuid, got, sizeof got),
                            rows[i].want);
}

static void what_to_do_is_said_once_and_about_devices_only(void **state)
{
    (void)state;
    char much[1024];
    kiln_error err = {0};
    (void)kiln_fail(&err, KILN_E_DEVICE, "there is no CUDA driver");
    kiln_devices_advise(&err);
    kiln_devices_advise(&err);
    assert_string_equal(err.msg, "there is no CUDA driver; --devices cpu needs no GPU");
    (void)kiln_fail(&err, KILN_E_INPUT, "row 7 is bad");
    kiln_devices_advise(&err);
    assert_string_equal(err.msg, "row 7 is bad");
    memset(much, 'x', sizeof much - 1);
    much[sizeof much - 1] = '\0';
    (void)kiln_fail(&err, KILN_E_DEVICE, "%s", much);
    kiln_devices_advise(&err);
    assert_non_null(strstr(err.msg, "xx; --devices cpu needs no GPU"));
    kiln_devices_advise(NULL);
}

/* ---- NVML ------------------------------------------------------------------------------------ */
static char folder[TEST_FOLDER_MAX], library[TEST_PATH_MAX], old_library[TEST_PATH_MAX];

static int build(const char *path, const char *flags)
{
    char line[2 * TEST_PATH_MAX];
    (void)snprintf(line, sizeof line,
                   "${CC:-cc} %s -shared -fPIC -Wl,-z,nodelete -o '%s' tests/unit/fake_nvml.c",
                   flags, path);
    return system(line);
}

static int build_library(void **state)
{
    (void)state;
    if (test_folder_new(folder, "nvml") != 0) return -1;
    (void)snprintf(library, sizeof library, "%s/libfake.so", folder);
    (void)snprintf(old_library, sizeof old_library, "%s/libold.so", folder);
    return build(library, "") || build(old_library, "-DFAKE_OLD");
}

static int remove_library(void **state)
{
    (void)state;
    (void)unlink(library);
    (void)unlink(old_library);
    return rmdir(folder);
}

enum { TIMEOUT_MS = 10000 };

static void pretend(const char *nvml, const char *variable, const char *value)
{
    static const char *const all[] = {"FAKE_MIG",  "FAKE_LOST",   "FAKE_INIT",  "FAKE_CUDA",
                                      "FAKE_ARCH", "FAKE_END",    "FAKE_FREE",  "FAKE_ECC",
                                      "FAKE_MODE", "FAKE_HIDDEN", "FAKE_REPAIR"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) (void)unsetenv(all[i]);
    (void)setenv("KILN_NVML", nvml, 1);
    (void)setenv("FAKE_GPUS", "3", 1);
    (void)setenv(variable, value, 1);
}

static kiln_gpu_list gpus_with(const char *nvml, const char *variable, const char *value)
{
    kiln_gpu_list gpus;
    pretend(nvml, variable, value);
    assert_int_equal(kiln_gpus_list(TIMEOUT_MS, &gpus, NULL), KILN_OK);
    return gpus;
}

static void no_child_is_left(void)
{
    assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static void nvml_tells_gpus_and_instances(void **state)
{
    (void)state;
    kiln_gpu_list g = gpus_with(library, "FAKE_CUDA", "12040");
    assert_string_equal(g.why_none, "");
    assert_int_equal(g.n, 3);
    assert_int_equal(g.driver_version, 12040);
    assert_string_equal(g.items[2].name, "NVIDIA Fake");
    assert_string_equal(g.items[2].uuid, "GPU-02000000-0000-0000-0000-000000000000");
    g = gpus_with(library, "FAKE_ARCH", "61");
    assert_int_equal(g.items[0].arch, 61);
    assert_int_equal(g.items[1].arch, 90);
    g = gpus_with(library, "FAKE_MIG", "1");
    assert_int_equal(g.n, 4);
    assert_int_equal(g.n_gpus, 3);
    assert_string_equal(g.items[2].uuid, "MIG-11111111-0000-0000-0000-000000000000");
    assert_int_equal(g.items[2].gpu, 1);
    assert_int_equal(g.items[2].arch, 90);
    assert_int_equal(g.items[3].gpu, 2);
    g = gpus_with(library, "FAKE_LOST", "0");
    assert_int_equal(g.n, 2);
    assert_int_equal(g.items[0].gpu, 1);
    assert_int_equal(g.n_lost, 1);
    assert_int_equal(g.lost[0].gpu, 0);
    assert_string_equal(g.lost[0].why, "GPU is lost");
    g = gpus_with(library, "FAKE_HIDDEN", "1");
    assert_int_equal(g.n, 2);
    assert_int_equal(g.n_lost, 0);
    assert_int_equal(g.items[1].gpu, 2);
    g = gpus_with(library, "FAKE_GPUS", "200"); /* more than we keep */
    assert_int_equal(g.n, KILN_GPUS_MAX);
}

static void nvml_tells_memory_address_and_health(void **state)
{
    (void)state;
    kiln_gpu_list g = gpus_with(library, "FAKE_FREE", "700");
    assert_string_equal(g.driver, "999.1");
    assert_int_equal(g.items[1].total_bytes, 1000 << 20);
    assert_int_equal(g.items[1].free_bytes, 700 << 20);
    assert_string_equal(g.items[1].pci, "0000:1b:00.0");
    assert_true(g.items[1].has_ecc);
    assert_int_equal(g.items[0].ecc_errors, 0);
    g = gpus_with(library, "FAKE_ECC", "2");
    assert_int_equal(g.items[0].ecc_errors, 2);
    assert_int_equal(g.items[1].ecc_errors, 0);
    g = gpus_with(library, "FAKE_REPAIR", "1");
    assert_true(g.items[0].repair_pending && !g.items[0].repair_failed);
    g = gpus_with(library, "FAKE_REPAIR", "2");
    assert_true(!g.items[0].repair_pending && g.items[0].repair_failed);
    g = gpus_with(library, "FAKE_MODE", "2");
    assert_true(g.items[0].prohibited && !g.items[0].exclusive && !g.items[1].prohibited);
    g = gpus_with(library, "FAKE_MODE", "3");
    assert_true(!g.items[0].prohibited && g.items[0].exclusive);
    /* memory is the instance's, the address is the GPU's */
    g = gpus_with(library, "FAKE_MIG", "1");
    assert_int_equal(g.items[2].total_bytes, 100 << 20);
    assert_string_equal(g.items[2].pci, "0000:1b:00.0");
    g = gpus_with(old_library, "FAKE_FREE", "700");
    assert_int_equal(g.n, 3);
    assert_int_equal(g.items[0].total_bytes, 0);
    assert_string_equal(g.items[0].pci, "");
    assert_string_equal(g.driver, "");
    assert_false(g.items[0].has_ecc);
}

static void nvml_that_does_not_answer_is_a_reason(void **state)
{
    (void)state;
    kiln_gpu_list g = gpus_with("/nowhere/libnone.so", "FAKE_GPUS", "3");
    assert_int_equal(g.n, 0);
    assert_false(g.broken);
    assert_non_null(strstr(g.why_none, "no NVIDIA driver is found (/nowhere/libnone.so"));
    g = gpus_with(library, "FAKE_INIT", "9");
    assert_int_equal(g.n, 0);
    assert_non_null(strstr(g.why_none, "says: Driver Not Loaded"));
    assert_false(g.broken);
    /* the driver and its library differ, as after an update */
    g = gpus_with(library, "FAKE_INIT", "18");
    assert_int_equal(g.n, 0);
    assert_true(g.broken);
    g = gpus_with("libm.so.6", "FAKE_GPUS", "3");
    assert_non_null(strstr(g.why_none, "is not NVML"));
    /* a container that was given no more than nvidia-smi */
    g = gpus_with(library, "FAKE_CUDA", "0");
    assert_int_equal(g.n_gpus, 3);
    assert_string_equal(g.why_none,
                        "NVIDIA's driver is here, but not its CUDA library (libcuda.so.1)");
}

static void nothing_of_nvml_stays_here(void **state)
{
    (void)state;
    assert_int_equal(gpus_with(library, "FAKE_GPUS", "1").n, 1);
    /* it is never unloaded where it was loaded, as libcuda */
    assert_null(dlopen(library, RTLD_NOW | RTLD_NOLOAD));
    no_child_is_left();
}

static void a_driver_that_is_ill_is_a_reason(void **state)
{
    (void)state;
    kiln_gpu_list g = gpus_with(library, "FAKE_END", "11");
    assert_int_equal(g.n, 0);
    assert_true(g.broken);
    assert_string_equal(g.why_none,
                        "NVIDIA's management library failed when asked for GPUs (signal 11)");
    no_child_is_left();
    pretend(library, "FAKE_END", "0");
    assert_int_equal(kiln_gpus_list(300, &g, NULL), KILN_OK);
    assert_int_equal(g.n, 0);
    assert_true(g.broken);
    assert_string_equal(g.why_none, "NVIDIA's management library did not answer within 0.3 s");
    no_child_is_left();
}

/* The last test: this process has had its signal then. */
static void a_signal_ends_the_wait_for_nvml(void **state)
{
    (void)state;
    kiln_gpu_list g;
    pretend(library, "FAKE_END", "0");
    kiln_interrupt_watch("");
    const pid_t parent = getpid(), other = fork();
    assert_true(other >= 0);
    if (other == 0) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        _exit(kill(parent, SIGTERM));
    }
    assert_int_equal(kiln_gpus_list(60000, &g, NULL), KILN_E_TERMINATED);
    assert_int_equal(waitpid(other, NULL, 0), other);
    no_child_is_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_list_all_gpus_are_visible),
        cmocka_unit_test(a_list_hides_orders_and_is_passed_on_as_it_stands),
        cmocka_unit_test(the_first_invalid_entry_ends_a_list),
        cmocka_unit_test(a_gpu_listed_twice_leaves_none),
        cmocka_unit_test(where_no_gpu_can_be_used_auto_takes_the_cpu),
        cmocka_unit_test(auto_passes_over_gpus_that_the_build_has_no_code_for),
        cmocka_unit_test(auto_that_leaves_gpus_alone_is_worth_a_warning),
        cmocka_unit_test(the_build_decides_before_anything_is_seen),
        cmocka_unit_test(we_say_whose_choice_it_was),
        cmocka_unit_test(the_text_of_devices_is_checked_without_looking),
        cmocka_unit_test(an_instance_is_recorded_by_its_own_name),
        cmocka_unit_test(what_to_do_is_said_once_and_about_devices_only),
        cmocka_unit_test(nvml_tells_gpus_and_instances),
        cmocka_unit_test(nvml_tells_memory_address_and_health),
        cmocka_unit_test(nvml_that_does_not_answer_is_a_reason),
        cmocka_unit_test(nothing_of_nvml_stays_here),
        cmocka_unit_test(a_driver_that_is_ill_is_a_reason),
        cmocka_unit_test(a_signal_ends_the_wait_for_nvml),
    };
    return cmocka_run_group_tests(tests, build_library, remove_library);
}
