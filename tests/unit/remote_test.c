/* remote: a manifest on a network file system is never changed in place. A writer's copy takes its
 * place whole or not at all, and readers beside a claim make no file. KILN_NETWORK_FS makes the
 * scratch folder a network file system. */
#include "manifest_fixture.h"

#include "base/file.h"
#include "schema/claim.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

typedef struct {
    char folder[600], path[600], local[600], copy[4096];
} place;

/* A folder `net` that counts as another machine's, with a manifest, and a folder `local` that does
 * not. */
static place make_place(void **state)
{
    place p;
    kiln_error err = {0};
    in_scratch(state, "net", p.folder);
    in_scratch(state, "net/m.db", p.path);
    in_scratch(state, "local", p.local);
    assert_int_equal(mkdir(p.folder, 0755), 0);
    assert_int_equal(mkdir(p.local, 0755), 0);
    kiln_manifest *m = open_manifest(p.path, KILN_OPEN_CREATE);
    (void)put_bytes(m, "hello", 5, 1);
    kiln_manifest_close(m);
    assert_int_equal(chmod(p.path, 0640), 0);
    assert_int_equal(setenv("KILN_NETWORK_FS", p.folder, 1), 0);
    OK(kiln_manifest_copy_path(p.path, p.local, p.copy, &err));
    return p;
}

static int forget_place(void **state)
{
    (void)unsetenv("KILN_NETWORK_FS");
    return remove_scratch(state);
}

static unsigned count_files(const char *folder)
{
    unsigned n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) n += e->d_name[0] != '.';
    (void)closedir(d);
    return n;
}

static kiln_hash hash_of_file(const char *path)
{
    unsigned char *data;
    size_t size;
    kiln_error err = {0};
    OK(kiln_file_read(path, 1 << 30, &data, &size, &err));
    const kiln_hash h = kiln_hash_of(data, size);
    free(data);
    return h;
}

static kiln_manifest *open_copy(const place *p, kiln_open_mode mode)
{
    kiln_error err = {0};
    kiln_manifest *m;
    OK(kiln_manifest_open_copy(p->path, p->copy, mode, "test", &m, &err));
    return m;
}

static int64_t blobs_of(const place *p)
{
    kiln_error err = {0};
    kiln_manifest *m;
    uint64_t bytes;
    OK(kiln_manifest_open(p->path, KILN_OPEN_FROZEN, "test", false, &m, &err));
    const int64_t n = number_of(m, "SELECT count(*) FROM blob");
    OK(kiln_manifest_verify(m, NULL, NULL, &bytes, &err));
    kiln_manifest_close(m);
    return n;
}

static void a_copy_becomes_the_manifest_when_it_is_published(void **state)
{
    const place p = make_place(state);
    kiln_error err = {0};
    struct stat s;
    const kiln_hash before = hash_of_file(p.path);
    kiln_manifest *m = open_copy(&p, KILN_OPEN_WRITE), *reader, *second;
    (void)put_bytes(m, "world", 5, 1);
    assert_true(kiln_hash_equal(before, hash_of_file(p.path)));
    assert_string_equal(kiln_manifest_path(m), p.path);
    /* the lock is the manifest's, and a worker reads the copy */
    assert_int_equal(
        kiln_manifest_open_copy(p.path, p.copy, KILN_OPEN_WRITE, "test", &second, &err),
        KILN_E_BUSY);
    assert_int_equal(kiln_manifest_open(p.path, KILN_OPEN_FROZEN, "test", false, &second, &err),
                     KILN_E_BUSY);
    reader = open_manifest(p.copy, KILN_OPEN_READ);
    assert_int_equal(number_of(reader, "SELECT count(*) FROM blob"), 2);
    OK(kiln_manifest_publish(m, &err));
    const kiln_hash published = hash_of_file(p.path);
    assert_false(kiln_hash_equal(before, published));
    assert_int_equal(stat(p.path, &s), 0);
    assert_int_equal(s.st_mode & 07777, 0640);
    /* nothing new: the same file stays */
    const ino_t inode = s.st_ino;
    OK(kiln_manifest_publish(m, &err));
    assert_int_equal(stat(p.path, &s), 0);
    assert_int_equal(s.st_ino, inode);
    (void)put_bytes(m, "lost", 4, 1);
    kiln_manifest_close(reader);
    kiln_manifest_close(m);
    assert_true(kiln_hash_equal(published, hash_of_file(p.path)));
    assert_int_equal(count_files(p.local), 0);
    assert_int_equal(count_files(p.folder), 1);
    assert_int_equal(blobs_of(&p), 2);
}

static void a_manifest_is_made_by_publishing_it(void **state)
{
    place p = make_place(state);
    kiln_error err = {0};
    in_scratch(state, "net/new.db", p.path);
    OK(kiln_manifest_copy_path(p.path, p.local, p.copy, &err));
    kiln_manifest *m = open_copy(&p, KILN_OPEN_CREATE);
    assert_true(access(p.path, F_OK) != 0);
    OK(kiln_manifest_publish(m, &err));
    kiln_manifest_close(m);
    assert_int_equal(blobs_of(&p), 0);
    m = open_copy(&p, KILN_OPEN_WRITE);
    kiln_manifest_close(m);
    assert_int_equal(count_files(p.local), 0);
}

static void a_link_to_a_manifest_stays_one(void **state)
{
    place p = make_place(state);
    char link[600], copy[4096];
    kiln_error err = {0};
    struct stat s;
    in_scratch(state, "net/link.db", link);
    assert_int_equal(symlink("m.db", link), 0);
    OK(kiln_manifest_copy_path(link, p.local, copy, &err));
    assert_string_equal(copy, p.copy);
    strcpy(p.path, link);
    kiln_manifest *m = open_copy(&p, KILN_OPEN_WRITE);
    (void)put_bytes(m, "world", 5, 1);
    OK(kiln_manifest_publish(m, &err));
    kiln_manifest_close(m);
    assert_int_equal(lstat(link, &s), 0);
    assert_true(S_ISLNK(s.st_mode));
    assert_int_equal(blobs_of(&p), 2);
}

static void a_log_beside_the_manifest_is_refused(void **state)
{
    const place p = make_place(state);
    char log[600];
    kiln_error err = {0};
    kiln_manifest *m;
    assert_int_equal(kiln_manifest_open(p.path, KILN_OPEN_WRITE, "test", false, &m, &err),
                     KILN_E_IO);
    in_scratch(state, "net/m.db-wal", log);
    OK(kiln_file_write(log, "x", 1, &err));
    assert_int_equal(kiln_manifest_open_copy(p.path, p.copy, KILN_OPEN_WRITE, "test", &m, &err),
                     KILN_E_BUSY);
    assert_says(&err, "m.db-wal");
    assert_int_equal(count_files(p.local), 0);
    /* a copy that would be on such a file system, too */
    (void)unlink(log);
    in_scratch(state, "net/copy", log);
    assert_int_equal(kiln_manifest_open_copy(p.path, log, KILN_OPEN_WRITE, "test", &m, &err),
                     KILN_E_IO);
    assert_int_equal(count_files(p.folder), 1);
}

static void readers_beside_a_claim_make_no_file(void **state)
{
    const place p = make_place(state);
    kiln_error err = {0};
    kiln_manifest *m;
    kiln_claim_range due = {0, 1};
    kiln_claim c = {.stage = "knn",
                    .plan = kiln_hash_of("plan", 4),
                    .tasks = 2,
                    .n_units = 2,
                    .what = "list",
                    .due = &due,
                    .n_due = 1};
    assert_int_equal(kiln_manifest_open(p.path, KILN_OPEN_READ, "test", false, &m, &err),
                     KILN_E_IO);
    assert_says(&err, "network file system");
    OK(kiln_claim_write(p.path, &c, &err));
    m = open_manifest(p.path, KILN_OPEN_READ);
    assert_int_equal(number_of(m, "SELECT count(*) FROM blob"), 1);
    assert_int_equal(count_files(p.folder), 2);
    kiln_manifest_close(m);
    /* while it is gathered, there is nothing to rely on */
    kiln_manifest *writer = open_copy(&p, KILN_OPEN_CLAIMED);
    assert_int_equal(kiln_manifest_open(p.path, KILN_OPEN_READ, "test", false, &m, &err),
                     KILN_E_BUSY);
    kiln_manifest_close(writer);
    /* on a local disk readers are as always: what is gathered does not disturb them */
    (void)unsetenv("KILN_NETWORK_FS");
    m = open_manifest(p.path, KILN_OPEN_READ);
    writer = open_manifest(p.path, KILN_OPEN_CLAIMED);
    (void)put_bytes(writer, "world", 5, 1);
    assert_int_equal(number_of(m, "SELECT count(*) FROM blob"), 2);
    kiln_manifest_close(writer);
    kiln_manifest_close(m);
    assert_int_equal(count_files(p.folder), 2);
    OK(kiln_claim_break(p.path, "test", NULL, &err));
    assert_int_equal(count_files(p.folder), 1);
}

enum { NOISE = 1 << 20 };

/* Adds a blob, publishes, and so on until it is killed. */
static void write_for_ever(const place *p)
{
    static unsigned char noise[NOISE];
    kiln_error err = {0};
    kiln_manifest *m = open_copy(p, KILN_OPEN_WRITE);
    uint64_t random = (uint64_t)number_of(m, "SELECT count(*) FROM blob");
    for (;;) {
        for (size_t i = 0; i < NOISE; i++)
            noise[i] = (unsigned char)((random = random * 6364136223846793005u + 1) >> 56);
        (void)put_bytes(m, noise, sizeof noise, 1);
        OK(kiln_manifest_publish(m, &err));
    }
}

static void a_writer_that_is_killed_leaves_one_state_or_the_other(void **state)
{
    enum { KILLS = 12, STEP_MS = 7, KILLS_MOST = 120 };
    const place p = make_place(state);
    int64_t before = 1;
    /* a slow machine needs longer to publish once */
    for (int i = 1; i <= KILLS || (before == 1 && i < KILLS_MOST); i++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) write_for_ever(&p);
        assert_int_equal(nanosleep(&(struct timespec){.tv_nsec = i * STEP_MS * 1000000L}, NULL), 0);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        const int64_t now = blobs_of(&p); /* it is whole */
        assert_true(now >= before);
        before = now;
    }
    assert_true(before > 1);
    kiln_manifest_close(open_copy(&p, KILN_OPEN_WRITE)); /* clears up */
    assert_int_equal(count_files(p.folder), 1);
    assert_int_equal(count_files(p.local), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_scratch, forget_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_copy_becomes_the_manifest_when_it_is_published),
        TEST(a_manifest_is_made_by_publishing_it),
        TEST(a_link_to_a_manifest_stays_one),
        TEST(a_log_beside_the_manifest_is_refused),
        TEST(readers_beside_a_claim_make_no_file),
        TEST(a_writer_that_is_killed_leaves_one_state_or_the_other),
    };
    return cmocka_run_group_tests_name("remote", tests, NULL, NULL);
}
