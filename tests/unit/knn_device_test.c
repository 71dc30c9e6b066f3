/* knn_device_test -- kiln-knn under a small --ram on a GPU of host memory (device_stage.h): the
 * whole layer is measured in the memory of the device, to which each point goes once; where that
 * has no room, in ranges. The bits are those of the CPU. */
#define DEVICE_STAGE kiln_stage_knn
#include "tests/unit/device_stage.h"

enum { POINTS = 1000000, RAM = 75 };

static char right[4096]; /* digest */

static int import(void **state)
{
    const char *bin = programs();
    unsigned char *data;
    size_t size;
    char path[TEST_PATH_MAX];
    (void)state;
    if (new_folder("knn_device") != 0) return -1;
    must_run("%s/kiln-generate points %s/s --quiet --gaussians %d >%s/out", bin, folder, POINTS,
             folder);
    must_run("%s/kiln-import --quiet %s/s %s/base.db && cp %s/base.db %s/cpu.db", bin, folder,
             folder, folder, folder);
    must_run("%s/kiln-knn --quiet --devices cpu %s/cpu.db && %s/kiln-verify %s/cpu.db --digest "
             ">%s/right",
             bin, folder, bin, folder, folder);
    (void)snprintf(path, sizeof path, "%s/right", folder);
    if (kiln_file_read(path, 4095, &data, &size, NULL) != KILN_OK) return -1;
    memcpy(right, data, size);
    free(data);
    return 0;
}

static bool has(const char *path)
{
    json_t *at = reported(path);
    json_decref(at);
    return at != NULL;
}

static void points_go_to_the_device_once(void **state)
{
    static const struct {
        const char *words;
        json_int_t mib;
    } ways[] = {{"--threads=2", 0}, {"--threads=2 --ram=75M", RAM}};
    char got[4096];
    (void)state;
    needs_own_memory();
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        run_stage(ways[k].words, 256 * MIB, got);
        assert_string_equal(got, right);
        assert_true(has("phases.whole_s"));
        assert_false(has("phases.ranges"));
        if (ways[k].mib) must_be_within(ways[k].mib);
        if (ways[k].mib)
            assert_in_range(given(), POINTS * 36,
                            /* and values that are counted, and what makes Gaussians */
                            POINTS * 36 + 2 * MIB);
    }
}

static void where_the_device_has_no_room_ranges_are_measured(void **state)
{
    char got[4096];
    (void)state;
    needs_own_memory();
    run_stage("--threads=2 --ram=75M", 32 * MIB, got);
    assert_string_equal(got, right);
    assert_true(has("phases.ranges"));
    must_be_within(RAM);
}

/* What is stored is gone on with: nothing is measured again, and again with --force. */
static void a_second_run_takes_the_same_way(void **state)
{
    char got[4096];
    (void)state;
    needs_own_memory();
    run_stage("--threads=2 --ram=75M", 256 * MIB, got);
    assert_int_equal(run("--threads=2 --ram=75M --force"), 0);
    assert_true(has("phases.whole_s"));
    must_be_within(RAM);
}

int main(int argc, char **argv)
{
    if (argc > 1) return be_the_stage(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_go_to_the_device_once),
        cmocka_unit_test(where_the_device_has_no_room_ranges_are_measured),
        cmocka_unit_test(a_second_run_takes_the_same_way),
    };
    return cmocka_run_group_tests_name("knn on a device", tests, import, remove_folder_of);
}
