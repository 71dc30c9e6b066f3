/* device_stage -- a stage on a GPU of host memory (fake_device.h), with workers and all, for tests
 * of what it does under --ram. The test program is the stage DEVICE_STAGE when it gets arguments
 * (so its workers are too), and the test without. FAKE_ROOM in the environment is the device's
 * memory. */
#ifndef KILN_TESTS_DEVICE_STAGE_H
#define KILN_TESTS_DEVICE_STAGE_H

#define FAKE_NUMBER 0
#define FAKE_BALLAST
#include "tests/unit/engine_stage.h"
#include "tests/unit/fake_device.h"
#include "tests/unit/own_memory.h"
#include "stages/engine/program.h"

enum { MIB = 1 << 20 };

/* ---- the stage ------------------------------------------------------------------------------- */
static inline kiln_status run_on_a_gpu(kiln_run *r, kiln_error *err)
{
    r->devices.home->devices = (kiln_device_list){.n = 1};
    r->devices.home->devices.items[0] = (kiln_device){.kind = KILN_DEVICE_CUDA, .visible = "GPU-0"};
    return DEVICE_STAGE.run(r, err);
}

/* A worker adds what its device was given to a file. */
static inline void tell_device(void)
{
    FILE *f = fopen(getenv("FAKE_LOG"), "a");
    if (!f || fprintf(f, "%llu\n", (unsigned long long)fake.bytes_in) < 0 || fclose(f) != 0)
        _exit(97);
}

static inline int be_the_stage(int argc, char **argv)
{
    kiln_stage_program on_a_gpu = DEVICE_STAGE;
    const char *capacity = getenv("FAKE_ROOM");
    on_a_gpu.run = run_on_a_gpu;
    fake.capacity = capacity ? strtoull(capacity, NULL, 10) : 0;
    if (strncmp(argv[1], "--worker", 8) == 0 && atexit(tell_device) != 0) return 97;
    return kiln_program_main(&on_a_gpu, argc, argv);
}

/* ---- the test -------------------------------------------------------------------------------- */
static char told[TEST_PATH_MAX];

static inline const char *programs(void)
{
    const char *bin = getenv("KILN_BIN");
    return bin ? bin : "build/bin";
}

static inline void must_run(const char *format, ...)
{
    char line[1024];
    va_list a;
    va_start(a, format);
    (void)vsnprintf(line, sizeof line, format, a);
    va_end(a);
    if (system(line) != 0) fail_msg("%s", line);
}

static inline int new_folder(const char *name)
{
    if (test_folder_new(folder, name) != 0) return -1;
    (void)snprintf(db, sizeof db, "%s/scene.db", folder);
    (void)snprintf(told, sizeof told, "%s/told", folder);
    return setenv("FAKE_LOG", told, 1);
}

static inline int remove_folder_of(void **state)
{
    (void)state;
    return test_folder_remove(folder);
}

/* Runs the stage on a copy of base.db, with a device of so much memory; the digest of the bake is
 * in `digest`. */
static inline void run_stage(const char *words, uint64_t capacity, char digest[4096])
{
    char text[32], path[TEST_PATH_MAX];
    unsigned char *data;
    size_t size;
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)capacity);
    assert_int_equal(setenv("FAKE_ROOM", text, 1), 0);
    must_run("cd %s && rm -rf scene.db* told renders && cp base.db scene.db", folder);
    const int code = run(words);
    if (code != 0) {
        (void)said("(nothing)");
        fail_msg("exit %d: %s", code, words);
    }
    must_run("%s/kiln-verify %s --digest >%s/digest", programs(), db, folder);
    (void)snprintf(path, sizeof path, "%s/digest", folder);
    assert_int_equal(kiln_file_read(path, 4095, &data, &size, NULL), KILN_OK);
    assert_true(size < 4096);
    memcpy(digest, data, size);
    digest[size] = '\0';
    free(data);
}

/* Bytes that the device was given by the last run. */
static inline uint64_t given(void)
{
    unsigned long long bytes = 0, one;
    FILE *f = fopen(told, "r");
    assert_non_null(f);
    while (fscanf(f, "%llu", &one) == 1) bytes += one;
    (void)fclose(f);
    return bytes;
}

/* The last run was within its cap, which was of so many MiB. */
static inline void must_be_within(json_int_t mib)
{
    assert_int_equal(number("ram_cap_bytes"), mib * MIB);
    assert_true(number("ram_peak_bytes") <= mib * MIB);
}

/* Units of the last run on devices whose text begins so. */
static inline json_int_t units_on(const char *kind)
{
    json_int_t n = 0;
    size_t i;
    json_t *one, *at = reported("workers");
    json_array_foreach(at, i, one)
    {
        const char *text = json_string_value(json_object_get(one, "device"));
        if (text && !strncmp(text, kind, strlen(kind)))
            n += json_integer_value(json_object_get(one, "units"));
    }
    json_decref(at);
    return n;
}

#endif
