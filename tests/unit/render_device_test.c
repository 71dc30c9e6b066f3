/* render_device_test -- kiln-render under a small --ram on a GPU of host memory (fake_device.h): pictures are drawn in the memory
 * of the device, to which each plane goes once, and are drawn in slabs where it is too small. The test program is the stage, with a
 * device that is not there, when it gets arguments (so its workers are too), and the test without.
 *
 * starts first */
#define FAKE_NUMBER 0
#define FAKE_BALLAST
#include "tests/unit/engine_stage.h"
#include "tests/unit/fake_device.h"

enum { MIB = 1 << 20, GAUSSIANS = 300000, CAMERAS = 3, ROW_BYTES = 4 * (59 + 1), GEOMETRY_BYTES = 4 * (11 + 1) };

/* ---- the stage ------------------------------------------------------------------------------------------------------------ */
static kiln_status run_on_a_gpu(kiln_run *r, kiln_error *err)
{
    r->devices = (kiln_device_list){.n = 1};
    r->devices.items[0] = (kiln_device){.kind = KILN_DEVICE_CUDA, .visible = "GPU-0"};
    return kiln_stage_render.run(r, err);
}

/* A worker adds what its device was given to a file. */
static void tell_device(void)
{
    FILE *f = fopen(getenv("FAKE_LOG"), "a");
    if (!f || fprintf(f, "%llu\n", (unsigned long long)fake.bytes_in) < 0 || fclose(f) != 0) _exit(97);
}

static int be_the_stage(int argc, char **argv)
{
    kiln_stage_program on_a_gpu = kiln_stage_render;
    const char *room = getenv("FAKE_ROOM");
    on_a_gpu.run = run_on_a_gpu;
    fake.room = room ? strtoull(room, NULL, 10) : 0;
    if (strncmp(argv[1], "--worker", 8) == 0 && atexit(tell_device) != 0) return 97;
    return kiln_program_main(&on_a_gpu, argc, argv);
}

/* ---- the test ------------------------------------------------------------------------------------------------------------- */
static char told[TEST_PATH_MAX];

static void must_run(const char *format, ...)
{
    char line[1024];
    va_list a;
    va_start(a, format);
    (void)vsnprintf(line, sizeof line, format, a);
    va_end(a);
    if (system(line) != 0) fail_msg("%s", line);
}

static int bake(void **state)
{
    const char *bin = getenv("KILN_BIN");
    (void)state;
    if (!bin) bin = "build/bin";
    if (test_folder_new(folder, "render_device") != 0) return -1;
    (void)snprintf(db, sizeof db, "%s/scene.db", folder);
    (void)snprintf(told, sizeof told, "%s/told", folder);
    must_run("%s/kiln-generate scene %s/s --quiet --gaussians %d --cameras %d --size 320x200 >%s/out", bin, folder, GAUSSIANS,
             CAMERAS, folder);
    must_run("%s/kiln-import --quiet %s/s %s/base.db && %s/kiln-knn --quiet %s/base.db && %s/kiln-prune --quiet %s/base.db", bin,
             folder, folder, bin, folder, bin, folder);
    must_run("%s/kiln-chunk --quiet %s/base.db --max 4000", bin, folder);
    return setenv("FAKE_LOG", told, 1);
}

static int remove_bake(void **state)
{
    (void)state;
    return test_folder_remove(folder);
}

/* Draws all cameras anew; the digest of the bake is in `digest`. */
static void draw(const char *words, uint64_t room, char digest[4096])
{
    const char *bin = getenv("KILN_BIN");
    char text[32], path[TEST_PATH_MAX];
    unsigned char *data;
    size_t size;
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)room);
    assert_int_equal(setenv("FAKE_ROOM", text, 1), 0);
    must_run("cd %s && rm -rf scene.db* told renders && cp base.db scene.db", folder);
    const int code = run(words);
    if (code != 0) {
        (void)said("(nothing)");
        fail_msg("exit %d: %s", code, words);
    }
    must_run("%s/kiln-verify %s --digest >%s/digest", bin ? bin : "build/bin", db, folder);
    (void)snprintf(path, sizeof path, "%s/digest", folder);
    assert_int_equal(kiln_file_read(path, 4095, &data, &size, NULL), KILN_OK);
    assert_true(size < 4096);
    memcpy(digest, data, size);
    digest[size] = '\0';
    free(data);
}

static uint64_t given(void)
{
    unsigned long long bytes = 0, one;
    FILE *f = fopen(told, "r");
    assert_non_null(f);
    while (fscanf(f, "%llu", &one) == 1) bytes += one;
    (void)fclose(f);
    return bytes;
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

/* Under the larger cap nothing is counted first, under the smaller one everything is: geometry goes to the device twice then. */
static void no_cap_changes_what_the_device_is_given(void **state)
{
    static const char *const ways[] = {"--threads=2", "--threads=2 --depth --format=npy"};
    static const struct {
        json_int_t mib, units;
        uint64_t again; /* bytes of a row that are given twice */
    } caps[] = {{130, CAMERAS, 0}, {70, 2 * CAMERAS, GEOMETRY_BYTES}};
    (void)state;
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        char uncapped[4096], capped[4096], words[128];
        draw(ways[k], 256 * MIB, uncapped);
        const uint64_t once = given();
        assert_int_equal(number("units.done"), CAMERAS);
        assert_true(once <= (uint64_t)GAUSSIANS * ROW_BYTES && once > (uint64_t)GAUSSIANS * ROW_BYTES / 2);
        for (size_t c = 0; c < sizeof caps / sizeof *caps; c++) {
            (void)snprintf(words, sizeof words, "%s --ram=%dM", ways[k], (int)caps[c].mib);
            draw(words, 256 * MIB, capped);
            assert_string_equal(uncapped, capped);
            assert_int_equal(number("units.done"), caps[c].units);
            assert_true(given() <= once + GAUSSIANS * caps[c].again);
            assert_int_equal(views_with("slabs"), 0);
            assert_int_equal(number("ram_cap_bytes"), caps[c].mib * MIB);
            assert_true(number("ram_peak_bytes") <= number("ram_cap_bytes"));
        }
    }
}

static void what_the_device_refuses_is_drawn_in_slabs(void **state)
{
    static const struct {
        int ram_mib;
        uint64_t device_mib;
    } caps[] = {{130, 3}, {130, 18}, {70, 18}}; /* slabs in host memory, slabs on the device; counted first */
    char uncapped[4096], capped[4096], words[128];
    (void)state;
    draw("--threads=2 --depth", 256 * MIB, uncapped);
    for (size_t k = 0; k < sizeof caps / sizeof *caps; k++) {
        (void)snprintf(words, sizeof words, "--threads=2 --depth --ram=%dM", caps[k].ram_mib);
        draw(words, caps[k].device_mib * MIB, capped);
        assert_string_equal(uncapped, capped);
        assert_int_equal(views_with("slabs"), CAMERAS);
        assert_true(number("ram_peak_bytes") <= number("ram_cap_bytes"));
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) return be_the_stage(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_cap_changes_what_the_device_is_given),
        cmocka_unit_test(what_the_device_refuses_is_drawn_in_slabs),
    };
    return cmocka_run_group_tests_name("render on a device", tests, bake, remove_bake);
}
