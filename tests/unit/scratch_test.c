/* Scratch folders: bakes that share --scratch-dir keep apart, and room is asked for less what a
 * folder holds, files without a name are there for workers and for nobody else. */
#include "stages/engine/parent/run.h"
#include "stages/engine/parent/run_memory.h"
#include "stages/engine/engine_options.h"
#include "stages/engine/hosts/round.h"

#include "base/file.h"
#include "tests/unit/manifest_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define GIB ((uint64_t)1 << 30)

static const kiln_stage_program program = {.name = "knn"};

/* A bake called manifest.db in a folder of its own. */
static void bake_init(void **state, const char *folder, kiln_run *r)
{
    char dir[600], path[700];
    assert_int_equal(mkdir(in_scratch(state, folder, dir), 0777), 0);
    snprintf(path, sizeof path, "%s/manifest.db", dir);
    memset(r, 0, sizeof *r);
    r->program = &program;
    r->options = &kiln_engine_values;
    r->common = &kiln_common_values;
    r->manifest = open_manifest(path, KILN_OPEN_CREATE);
}

static void put_file(const char *folder, const char *name, uint64_t bytes)
{
    char path[KILN_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    /* without blocks: the disk of a test is small */
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    assert_int_equal(close(fd), 0);
}

static void bakes_share_a_folder(void **state)
{
    static kiln_run runs[2];
    static char paths[2][KILN_PATH_MAX], again[KILN_PATH_MAX];
    kiln_error err = {0};
    char dir[600], link[700], real[600];
    const kiln_hash key = {{1}};
    bake_init(state, "a", &runs[0]);
    bake_init(state, "b", &runs[1]);
    kiln_engine_values.scratch_dir = in_scratch(state, "shared", dir);
    for (int i = 0; i < 2; i++) {
        OK(kiln_run_scratch(&runs[i], key, paths[i], &err));
        put_file(paths[i], "rows", 1);
    }
    assert_string_not_equal(paths[0], paths[1]);
    assert_true(kiln_is_dir(paths[0])); /* the second has not taken it for one of its own */
    kiln_scratch_folder_drop(kiln_run_scratch_folder(&runs[1]));
    assert_false(kiln_is_dir(paths[1]));
    assert_true(kiln_is_dir(paths[0]));

    /* the same bake by another name is the same bake */
    kiln_manifest_close(runs[0].manifest);
    snprintf(link, sizeof link, "%s/link", (char *)*state);
    assert_int_equal(symlink(in_scratch(state, "a", real), link), 0);
    snprintf(link, sizeof link, "%s/link/manifest.db", (char *)*state);
    runs[0].manifest = open_manifest(link, KILN_OPEN_WRITE);
    OK(kiln_run_scratch(&runs[0], key, again, &err));
    assert_string_equal(paths[0], again);
    kiln_scratch_folder_drop(kiln_run_scratch_folder(&runs[0]));
    assert_false(kiln_is_dir(paths[0]));
    for (int i = 0; i < 2; i++) kiln_manifest_close(runs[i].manifest);
    kiln_engine_values.scratch_dir = NULL;
}

/* What a plan makes for tasks is where all hosts see it, not in the scratch of one of them. Tasks
 * only find it. The end of the stage removes it, whichever run that is. */
static void a_plan_shares_its_folder(void **state)
{
    static kiln_run r;
    static char path[KILN_PATH_MAX], again[KILN_PATH_MAX], shared_path[KILN_PATH_MAX];
    kiln_error err = {0};
    char node[600], shared[600], beside[700];
    const kiln_hash key = {{1}};
    kiln_engine_options *const o = &kiln_engine_values;
    static kiln_round round;
    bake_init(state, "a", &r);
    assert_int_equal(mkdir(in_scratch(state, "node", node), 0777), 0);
    assert_int_equal(mkdir(in_scratch(state, "all", shared), 0777), 0);
    snprintf(beside, sizeof beside, "%s/a/manifest.db.scratch/knn-", (char *)*state);
    assert_int_equal(kiln_run_scratch_use(&r), KILN_SCRATCH_OWN);
    o->scratch_dir = node;
    o->plan = true;
    r.hosts.round = &round;
    OK(kiln_round_read(&r, &err));
    assert_int_equal(kiln_run_scratch_use(&r), KILN_SCRATCH_PLAN);
    OK(kiln_run_scratch(&r, key, path, &err));
    assert_true(kiln_is_dir(path) && !strncmp(path, beside, strlen(beside)));
    OK(kiln_scratch_folder_sync(kiln_run_scratch_folder(&r), &err));

    o->plan = false;
    o->part = "parts";
    o->shard = "1/2";
    OK(kiln_round_read(&r, &err));
    assert_int_equal(kiln_run_scratch_use(&r), KILN_SCRATCH_READ);
    /* of another plan: neither made, nor the reason to remove the first */
    OK(kiln_run_scratch(&r, (kiln_hash){{2}}, again, &err));
    assert_true(kiln_is_dir(path) && !kiln_is_dir(again));

    o->shared_dir = shared;
    o->part = NULL;
    o->shard = NULL;
    o->gather = "parts";
    OK(kiln_round_read(&r, &err));
    assert_int_equal(kiln_run_scratch_use(&r), KILN_SCRATCH_MEND);
    OK(kiln_run_scratch(&r, key, shared_path, &err));
    assert_true(kiln_is_dir(shared_path) && !strncmp(shared_path, shared, strlen(shared)));
    o->no_compute = true;
    OK(kiln_round_read(&r, &err));
    assert_int_equal(kiln_run_scratch_use(&r), KILN_SCRATCH_READ);

    o->no_compute = false;
    o->gather = NULL;
    OK(kiln_round_read(&r, &err));
    kiln_scratch_folder_drop(kiln_run_scratch_folder(&r));
    assert_false(kiln_is_dir(path) || kiln_is_dir(shared_path));
    o->scratch_dir = o->shared_dir = NULL;
    kiln_manifest_close(r.manifest);
}

static void room_is_asked_for_again(void **state)
{
    static kiln_run r;
    static char path[KILN_PATH_MAX];
    kiln_error err = {0};
    struct statvfs fs;
    bake_init(state, "a", &r);
    OK(kiln_run_scratch(&r, (kiln_hash){{1}}, path, &err));
    OK(kiln_run_check_scratch(&r, 1, &err));
    assert_int_equal(statvfs(path, &fs), 0);
    const uint64_t need = (uint64_t)fs.f_bavail * fs.f_frsize + 2 * GIB;
    for (int i = 0; i < 2; i++) { /* a folder that is there already is no room */
        OK(kiln_run_scratch(&r, (kiln_hash){{1}}, path, &err));
        assert_int_equal(kiln_run_check_scratch(&r, need, &err), KILN_E_IO);
        assert_says(&err, "are free; make room");
    }
    put_file(path, "rows", 4 * GIB); /* what it holds is */
    OK(kiln_run_check_scratch(&r, need, &err));
    kiln_scratch_folder_drop(kiln_run_scratch_folder(&r));
    kiln_manifest_close(r.manifest);
}

/* A bake's folder may come from somebody else: nothing is made or removed through a link beside the
 * manifest. */
static void links_are_not_followed(void **state)
{
    static kiln_run r;
    static char path[KILN_PATH_MAX];
    char link[700], outside[600], kept[700];
    kiln_error err = {0};
    bake_init(state, "a", &r);
    assert_int_equal(mkdir(in_scratch(state, "outside", outside), 0777), 0);
    snprintf(kept, sizeof kept, "%s/knn-of-others", outside);
    assert_int_equal(mkdir(kept, 0777), 0);
    snprintf(link, sizeof link, "%s/a/manifest.db.scratch", (char *)*state);
    assert_int_equal(symlink(outside, link), 0);
    kiln_scratch_folder_drop(kiln_run_scratch_folder(&r));
    assert_true(kiln_is_dir(kept));
    assert_int_equal(kiln_run_scratch(&r, (kiln_hash){{1}}, path, &err), KILN_E_INPUT);
    assert_says(&err, "is a link");
    assert_says(&err, "--scratch-dir");
    assert_true(kiln_is_dir(kept));

    /* one folder deeper */
    assert_int_equal(unlink(link), 0);
    OK(kiln_run_scratch(&r, (kiln_hash){{1}}, path, &err));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink(outside, path), 0);
    assert_int_equal(kiln_run_scratch(&r, (kiln_hash){{1}}, path, &err), KILN_E_INPUT);
    kiln_scratch_folder_drop(kiln_run_scratch_folder(&r));
    assert_true(kiln_is_dir(kept));
    kiln_manifest_close(r.manifest);
}

static unsigned entries_of(const char *folder)
{
    unsigned n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d)) n++;
    assert_int_equal(closedir(d), 0);
    return n - 2; /* . and .. */
}

/* Without a name, beside a manifest whose folders are not made yet, or in --scratch-dir; another
 * process may open it. */
static void unnamed_files(void **state)
{
    kiln_error err = {0};
    char manifest[600], dir[600], path[64], text[4];
    int fd;
    in_scratch(state, "not/there/manifest.db", manifest);
    for (int given = 0; given < 2; given++) {
        if (given) {
            assert_int_equal(mkdir(in_scratch(state, "given", dir), 0777), 0);
            kiln_engine_values.scratch_dir = dir;
        }
        OK(kiln_scratch_unnamed(manifest, &fd, path, &err));
        assert_int_equal(entries_of(*state), given);
        if (given) assert_int_equal(entries_of(dir), 0);
        assert_int_equal(write(fd, "abc", 4), 4);
        const int again = open(path, O_RDWR | O_CLOEXEC);
        assert_true(again >= 0);
        assert_int_equal(read(again, text, 4), 4);
        assert_string_equal(text, "abc");
        assert_int_equal(close(again) | close(fd), 0);
    }
    kiln_engine_values.scratch_dir = in_scratch(state, "missing", dir);
    assert_int_equal(kiln_scratch_unnamed(manifest, &fd, path, &err), KILN_E_IO);
    assert_int_equal(fd, -1);
    kiln_engine_values.scratch_dir = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bakes_share_a_folder, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(a_plan_shares_its_folder, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(room_is_asked_for_again, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(links_are_not_followed, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(unnamed_files, make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
