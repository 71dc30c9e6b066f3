/* render_device_test -- kiln-render under a small --ram on a GPU of host memory (device_stage.h):
 * pictures are drawn in the memory of the device, to which each plane goes once, and are drawn in
 * slabs where it is too small.
 *
 * starts first */
#define DEVICE_STAGE kiln_stage_render
#include "tests/unit/device_stage.h"

enum { GAUSSIANS = 300000, CAMERAS = 3, ROW_BYTES = 4 * (59 + 1), GEOMETRY_BYTES = 4 * (11 + 1) };

static int bake(void **state)
{
    const char *bin = programs();
    (void)state;
    if (new_folder("render_device") != 0) return -1;
    must_run(
        "%s/kiln-generate scene %s/s --quiet --gaussians %d --cameras %d --size 320x200 >%s/out",
        bin, folder, GAUSSIANS, CAMERAS, folder);
    must_run("%s/kiln-import --quiet %s/s %s/base.db && %s/kiln-knn --quiet %s/base.db && "
             "%s/kiln-prune --quiet %s/base.db",
             bin, folder, folder, bin, folder, bin, folder);
    must_run("%s/kiln-chunk --quiet %s/base.db --max 4000", bin, folder);
    return 0;
}

static json_int_t views_with(const char *field)
{
    json_t *views = reported("views"), *v;
    json_int_t n = 0;
    size_t i;
    assert_int_equal(json_array_size(views), CAMERAS);
    json_array_foreach(views, i, v) n += json_object_get(v, field) != NULL;
    json_decref(views);
    return n;
}

/* Under the larger cap nothing is counted first, under the smaller one everything is: geometry goes
 * to the device twice then. */
static void no_cap_changes_what_the_device_is_given(void **state)
{
    static const char *const ways[] = {"--threads=2", "--threads=2 --depth --format=npy"};
    static const struct {
        json_int_t mib, units;
        uint64_t again; /* bytes of a row that are given twice */
    } caps[] = {{130, CAMERAS, 0}, {70, 2 * CAMERAS, GEOMETRY_BYTES}};
    (void)state;
    needs_own_memory();
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        char uncapped[4096], capped[4096], words[128];
        run_stage(ways[k], 256 * MIB, uncapped);
        const uint64_t once = given();
        assert_int_equal(number("units.done"), CAMERAS);
        assert_true(once <= (uint64_t)GAUSSIANS * ROW_BYTES &&
                    once > (uint64_t)GAUSSIANS * ROW_BYTES / 2);
        for (size_t c = 0; c < sizeof caps / sizeof *caps; c++) {
            (void)snprintf(words, sizeof words, "%s --ram=%dM", ways[k], (int)caps[c].mib);
            run_stage(words, 256 * MIB, capped);
            assert_string_equal(uncapped, capped);
            assert_int_equal(number("units.done"), caps[c].units);
            assert_true(given() <= once + GAUSSIANS * caps[c].again);
            assert_int_equal(views_with("slabs"), 0);
            must_be_within(caps[c].mib);
        }
    }
}

static void what_the_device_refuses_is_drawn_in_slabs(void **state)
{
    static const struct {
        int ram_mib;
        uint64_t device_mib;
    } caps[] = {{130, 3},
                {130, 18},
                {70, 18}}; /* slabs in host memory, slabs on the device; counted first */
    char uncapped[4096], capped[4096], words[128];
    (void)state;
    needs_own_memory();
    run_stage("--threads=2 --depth", 256 * MIB, uncapped);
    for (size_t k = 0; k < sizeof caps / sizeof *caps; k++) {
        (void)snprintf(words, sizeof words, "--threads=2 --depth --ram=%dM", caps[k].ram_mib);
        run_stage(words, caps[k].device_mib * MIB, capped);
        assert_string_equal(uncapped, capped);
        assert_int_equal(views_with("slabs"), CAMERAS);
        must_be_within(caps[k].ram_mib);
    }
}

static bool opened_early(void)
{
    char line[TEST_PATH_MAX + 64];
    (void)snprintf(line, sizeof line, "grep -q 'opening 1 GPU while the units are planned' %s/err",
                   folder);
    return system(line) == 0;
}

/* A list of many cameras that are due whatever is stored: the GPU opens and reads ahead while they
 * are planned. */
static void many_cameras_are_planned_while_the_gpu_opens(void **state)
{
    enum { MANY = 64, FEW = 63 };
    char line[128], late[4096], early[4096];
    (void)state;
    needs_own_memory();
    /* auto has to choose */
    run_stage("--threads=2 --orbit=64 --size=64x40 --format=none --verbose", 256 * MIB, late);
    assert_false(opened_early());
    json_t *const pictures = reported("views");
    for (int k = 0; k < 2; k++) {
        (void)snprintf(line, sizeof line,
                       "--threads=2 --orbit=64 --size=64x40 --format=none --verbose --devices=0%s",
                       k ? " --ram=100M" : "");
        run_stage(line, 256 * MIB, early);
        assert_true(opened_early());
        assert_string_equal(early, late);
        assert_int_equal(number("units.done"), MANY);
        assert_int_equal(started(), 1);
        json_t *const again = reported("views");
        for (size_t i = 0; i < MANY; i++)
            assert_true(json_equal(json_object_get(json_array_get(again, i), "pixels"),
                                   json_object_get(json_array_get(pictures, i), "pixels")));
        json_decref(again);
        if (k) must_be_within(100);
    }
    json_decref(pictures);
    run_stage("--threads=2 --orbit=63 --size=64x40 --format=none --verbose --devices=0", 256 * MIB,
              early);
    assert_int_equal(number("units.done"), FEW);
    assert_false(opened_early());
}

int main(int argc, char **argv)
{
    if (argc > 1) return be_the_stage(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_cap_changes_what_the_device_is_given),
        cmocka_unit_test(what_the_device_refuses_is_drawn_in_slabs),
        cmocka_unit_test(many_cameras_are_planned_while_the_gpu_opens),
    };
    return cmocka_run_group_tests_name("render on a device", tests, bake, remove_folder_of);
}
