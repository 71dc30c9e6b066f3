/* two_homes_test -- a stage some of whose lists pack and some compute, on a machine with GPUs (of
 * host memory, fake_device.h, of which a library that stands for NVML tells): each list is on its
 * home, whatever --devices names, and neither that nor what fails on either home changes a bit.
 * STAGE in the environment is the stage that the test program is when it gets arguments. */
#define DEVICE_STAGE kiln_stage_prune
#include "tests/unit/device_stage.h"
#include "stages/engine/program.h"

enum { ROWS = 40000, VIEWS = 5 };

static char right[4096]; /* digest of prune on the CPU */

/* Its devices are those that the library tells of. */
static int be_it(int argc, char **argv)
{
    const char *stage = getenv("STAGE");
    fake.capacity = 64 * MIB;
    return kiln_program_main(
        stage && !strcmp(stage, "chunk") ? &kiln_stage_chunk : &kiln_stage_prune, argc, argv);
}

static int make_base(void **state)
{
    const char *bin = programs();
    char path[TEST_PATH_MAX];
    unsigned char *data;
    size_t size;
    (void)state;
    if (new_folder("two_homes") != 0) return -1;
    must_run("%s/kiln-generate scene %s/s --quiet --gaussians %d --cameras %d --size 160x120", bin,
             folder, ROWS, VIEWS);
    must_run("%s/kiln-import --quiet %s/s %s/base.db && %s/kiln-knn --quiet %s/base.db && cp "
             "%s/base.db %s/cpu.db",
             bin, folder, folder, bin, folder, folder, folder);
    must_run("%s/kiln-prune --quiet --min-opacity 0.3 --devices cpu %s/cpu.db && %s/kiln-verify "
             "%s/cpu.db --digest >%s/right",
             bin, folder, bin, folder, folder);
    (void)snprintf(path, sizeof path, "%s/right", folder);
    if (kiln_file_read(path, 4095, &data, &size, NULL) != KILN_OK) return -1;
    memcpy(right, data, size);
    free(data);
    must_run("${CC:-cc} -shared -fPIC -Wl,-z,nodelete -o %s/libfake.so tests/unit/fake_nvml.c",
             folder);
    (void)snprintf(path, sizeof path, "%s/libfake.so", folder);
    return setenv("KILN_NVML", path, 1) || setenv("FAKE_GPUS", "3", 1) ||
           unsetenv("CUDA_VISIBLE_DEVICES");
}

/* Runs prune with these words; its bake is that of the CPU. */
static void prune(const char *words)
{
    char got[4096], line[256];
    (void)snprintf(line, sizeof line, "--min-opacity=0.3 %s", words);
    run_stage(line, 64 * MIB, got);
    assert_string_equal(got, right);
}

static bool device_says(const char *word)
{
    json_t *at = reported("device");
    const bool says = json_string_value(at) && strstr(json_string_value(at), word);
    if (!says) print_message("device: %s\n", json_string_value(at));
    json_decref(at);
    return says;
}

static void what_packs_is_on_the_cpu_and_what_computes_on_the_gpu(void **state)
{
    static const char *const ways[] = {
        "--devices=1 --threads=4", "--devices=0,2 --threads=2", "--devices=all --threads=1",
        "--devices=cuda --threads=3 --vram=8M", "--devices=1 --threads=2 --ram=200M"};
    (void)state;
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        prune(ways[k]);
        assert_int_equal(units_on("fake"), VIEWS); /* small as they are */
        assert_true(units_on("cpu") > 0);
        assert_true(device_says("cpu") && device_says("fake"));
        if (strstr(ways[k], "--ram")) must_be_within(200);
    }
    prune("--devices=cpu --threads=4");
    assert_int_equal(units_on("fake"), 0);
    prune("--threads=4"); /* auto: little work */
    assert_int_equal(units_on("fake"), 0);
}

/* One worker of the CPU for each thread, although a GPU is named. */
static void all_threads_pack(void **state)
{
    (void)state;
    char got[4096];
    assert_int_equal(setenv("STAGE", "chunk", 1), 0);
    run_stage("--layer=source --max=2048 --devices=1 --threads=4", 64 * MIB, got);
    assert_true(device_says("cpu"));
    assert_int_equal(units_on("fake"), 0);
    assert_int_equal(started(), 4);
    assert_int_equal(unsetenv("STAGE"), 0);
}

/* On either home: a process that is killed, a unit that a device fails; and a GPU that fails always
 * is left for another. One that starts late may get no unit, as the other has done them all; then
 * it is run once more. */
static void what_fails_is_tried_again_and_changes_nothing(void **state)
{
    static const char *const faults[] = {
        "unit=pairs of cam0:kill,times=1; unit=block*:kill,times=1", "unit=*:exit,times=1",
        "unit=pairs*:device,device=0"};
    enum { RUNS = 9 };
    (void)state;
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
        assert_int_equal(setenv("KILN_FAULT", faults[k], 1), 0);
        for (int i = 0; i == 0 || (i < RUNS && number("units.retried") == 0); i++)
            prune("--devices=0,1 --threads=2");
        assert_int_equal(unsetenv("KILN_FAULT"), 0);
        assert_true(number("units.retried") > 0);
        assert_int_equal(number("units.quarantined"), 0);
        assert_int_equal(units_on("fake"), VIEWS);
    }
}

static void named_devices_are_looked_for_before_anything_is_computed(void **state)
{
    (void)state;
    must_run("cd %s && rm -rf scene.db* && cp base.db scene.db", folder);
    assert_int_equal(run("--devices=7 --threads=2"), 6);
    assert_true(said("'7' does not exist; 3 GPUs are visible"));
    assert_int_equal(state_of("prune"), KILN_STAGE_MISSING);
    assert_int_equal(setenv("STAGE", "chunk", 1), 0);
    /* though none of its units would be there */
    assert_int_equal(run("--layer=source --devices=7"), 6);
    assert_int_equal(setenv("FAKE_GPUS", "0", 1), 0);
    assert_int_equal(run("--layer=source --devices=cuda"), 6);
    assert_int_equal(run("--layer=source"), 0);
    assert_int_equal(setenv("FAKE_GPUS", "3", 1), 0);
    assert_int_equal(unsetenv("STAGE"), 0);
}

int main(int argc, char **argv)
{
    if (argc > 1) return be_it(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_packs_is_on_the_cpu_and_what_computes_on_the_gpu),
        cmocka_unit_test(all_threads_pack),
        cmocka_unit_test(what_fails_is_tried_again_and_changes_nothing),
        cmocka_unit_test(named_devices_are_looked_for_before_anything_is_computed),
    };
    return cmocka_run_group_tests_name("two homes", tests, make_base, remove_folder_of);
}
