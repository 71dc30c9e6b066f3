/* export_homes_test -- SOG on a machine with GPUs (as in two_homes_test): they open while rows are
 * coded, images that need no palette are encoded on the CPU beside what the GPUs compute, and
 * neither that nor what fails on either home changes a byte. */
#define DEVICE_STAGE kiln_stage_export
#include "tests/unit/device_stage.h"
#include "stages/engine/program.h"

enum { ROWS = 3000, CHUNKS_MOST = 3000, BESIDE = 5, LEFT = 2 };

static json_int_t n_chunks;

/* Its devices are those that the library tells of. */
static int be_it(int argc, char **argv)
{
    fake.capacity = 32 * MIB; /* each process fills it */
    return kiln_program_main(&kiln_stage_export, argc, argv);
}

static int make_base(void **state)
{
    const char *bin = programs();
    char path[TEST_PATH_MAX];
    (void)state;
    if (new_folder("export_homes") != 0) return -1;
    must_run("%s/kiln-generate scene %s/s --quiet --gaussians %d --cameras 2 --size 32x24", bin,
             folder, ROWS);
    must_run("cd %s && %s/kiln-import --quiet s scene.db && %s/kiln-knn --quiet scene.db && "
             "%s/kiln-prune --quiet scene.db && "
             "%s/kiln-chunk --quiet scene.db --max %d && %s/kiln-export --quiet scene.db -o "
             "right.sog --devices cpu",
             folder, bin, bin, bin, bin, CHUNKS_MOST, bin);
    must_run("${CC:-cc} -shared -fPIC -Wl,-z,nodelete -o %s/libfake.so tests/unit/fake_nvml.c",
             folder);
    (void)snprintf(path, sizeof path, "%s/libfake.so", folder);
    return setenv("KILN_NVML", path, 1) || setenv("FAKE_GPUS", "3", 1) ||
           unsetenv("CUDA_VISIBLE_DEVICES");
}

static int export_with(const char *words)
{
    char line[512];
    must_run("rm -f %s/got.sog*", folder);
    (void)snprintf(line, sizeof line, "-o %s/got.sog --force %s", folder, words);
    return run(line);
}

/* What is written has the bytes that the CPU writes. */
static void must_be_right(const char *words)
{
    const int code = export_with(words);
    if (code != 0) {
        (void)said("(nothing)");
        fail_msg("exit %d: %s", code, words);
    }
    must_run("cmp %s/right.sog %s/got.sog", folder, folder);
}

/* Place of a list among those of the last run, by the time of their ends; -1: there is none. */
static int place_of(const char *what, json_int_t *units)
{
    int place = -1;
    size_t i;
    json_t *one, *lists = reported("lists");
    json_array_foreach(lists, i, one)
    {
        if (strcmp(json_string_value(json_object_get(one, "what")), what) != 0) continue;
        place = (int)i;
        *units = json_integer_value(json_object_get(one, "units"));
    }
    json_decref(lists);
    return place;
}

static void images_are_encoded_beside_what_gpus_compute(void **state)
{
    static const char *const ways[] = {"--devices=1 --threads=4", "--devices=0,2 --threads=2",
                                       "--devices=all --threads=8",
                                       "--devices=cuda --threads=3 --vram=8M"};
    json_int_t n = 0;
    (void)state;
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        must_be_right(ways[k]);
        const int beside = place_of("image beside", &n);
        assert_int_equal(n, BESIDE);
        const int left = place_of("image", &n);
        assert_int_equal(n, LEFT);
        const int labels = place_of("labels", &n_chunks);
        /* it ended last, though it began before all of them */
        assert_true(0 <= labels && labels < left && left < beside);
        assert_int_equal(units_on("fake"), 1 + n_chunks + LEFT);
    }
}

/* One thread is for one list, and a small --ram has no room for two at a time, or none for opening
 * a GPU ahead. */
static void with_little_room_lists_follow_each_other(void **state)
{
    static const char *const ways[] = {"--devices=1 --threads=1",
                                       "--devices=0,1 --threads=2 --ram=300M",
                                       "--devices=cpu --threads=4"};
    json_int_t n = 0;
    (void)state;
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        must_be_right(ways[k]);
        assert_int_equal(place_of("image beside", &n), -1);
        assert_true(place_of("image", &n) > 0);
        assert_int_equal(n, BESIDE + LEFT);
        assert_int_equal(units_on("fake"), strstr(ways[k], "cpu") ? 0 : 1 + n_chunks);
        if (strstr(ways[k], "--ram")) must_be_within(300);
    }
    must_be_right("--devices=0,1 --threads=4 --ram=1G"); /* there is room */
    must_be_within(1024);
    assert_true(place_of("image beside", &n) > 0);
}

/* Without a palette nothing is computed but the loss, so images are encoded by all threads of the
 * CPU. */
static void images_stay_on_the_cpu_where_no_palette_is_made(void **state)
{
    json_int_t n = 0;
    (void)state;
    assert_int_equal(export_with("--devices=0 --threads=8 --sh-degree 0 --report-loss 1"), 0);
    assert_int_equal(place_of("image beside", &n), -1);
    assert_true(place_of("image", &n) > 0);
    assert_true(n > 1);
    assert_int_equal(units_on("fake"), 1);
}

static void what_fails_is_tried_again_and_changes_nothing(void **state)
{
    static const char *const faults[] = {
        "unit=image beside 2:kill,times=1; unit=chunk*:kill,times=1",
        "unit=image beside*:exit,times=2", "unit=palette*:device,device=0",
        "unit=image 1:kill,times=1", "unit=*:exit,times=1"};
    (void)state;
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
        assert_int_equal(setenv("KILN_FAULT", faults[k], 1), 0);
        must_be_right("--devices=0,1 --threads=3");
        assert_int_equal(unsetenv("KILN_FAULT"), 0);
        assert_true(number("units.retried") > 0);
        assert_int_equal(number("units.quarantined"), 0);
    }
}

/* Of both lists that are open: the other is dropped, and nothing is left of the file. */
static void what_fails_for_good_ends_both_lists(void **state)
{
    static const char *const faults[] = {"unit=image beside 2:kill", "unit=palette*:kill",
                                         "unit=image 0:kill"};
    (void)state;
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
        assert_int_equal(setenv("KILN_FAULT", faults[k], 1), 0);
        assert_int_equal(export_with("--devices=0,1 --threads=4"), 7);
        assert_int_equal(unsetenv("KILN_FAULT"), 0);
        must_run("! ls %s/got.sog* >%s/left 2>&1", folder, folder);
    }
    must_be_right("--devices=0,1 --threads=4");
}

int main(int argc, char **argv)
{
    if (argc > 1) return be_it(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_encoded_beside_what_gpus_compute),
        cmocka_unit_test(with_little_room_lists_follow_each_other),
        cmocka_unit_test(images_stay_on_the_cpu_where_no_palette_is_made),
        cmocka_unit_test(what_fails_is_tried_again_and_changes_nothing),
        cmocka_unit_test(what_fails_for_good_ends_both_lists),
    };
    return cmocka_run_group_tests_name("homes of an export", tests, make_base, remove_folder_of);
}
