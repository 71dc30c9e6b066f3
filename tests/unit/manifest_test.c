/* manifest: who may open what, the lock, transactions, and what a killed process leaves. */
#include "manifest_fixture.h"

#include "schema/manifest_internal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static bool exists(const char *path) { return access(path, F_OK) == 0; }

static void write_file(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static kiln_hash file_hash(const char *path)
{
    static unsigned char data[8 << 20]; /* more than a fixture's manifest */
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(data, 1, sizeof data, f);
    assert_int_equal(fclose(f), 0);
    return kiln_hash_of(data, n);
}

/* ---- open ------------------------------------------------------------------------------------ */
static void new_manifest_is_configured_as_the_specification_says(void **state)
{
    char path[600];
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    assert_true(kiln_manifest_created(m));
    assert_int_equal(number_of(m, "PRAGMA application_id"), 0x4b494c4e);
    assert_int_equal(number_of(m, "PRAGMA user_version"), 2);
    assert_int_equal(number_of(m, "PRAGMA page_size"), 65536);
    assert_int_equal(number_of(m, "PRAGMA synchronous"), 2);
    assert_int_equal(number_of(m, "PRAGMA foreign_keys"), 1);
    assert_int_equal(number_of(m, "SELECT journal_mode = 'wal' FROM pragma_journal_mode"), 1);
    kiln_manifest_close(m);
    m = open_manifest(path, KILN_OPEN_CREATE);
    assert_false(kiln_manifest_created(m));
    kiln_manifest_close(m);
}

static void closed_manifest_is_one_file(void **state)
{
    char path[600], other[600];
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    fixture_fill(m, false);
    kiln_manifest_close(m);
    for (int round = 0; round < 2; round++) {
        assert_true(exists(path));
        assert_false(exists(in_scratch(state, "m.db-wal", other)));
        assert_false(exists(in_scratch(state, "m.db-shm", other)));
        assert_false(exists(in_scratch(state, "m.db.lock", other)));
        kiln_hash before = file_hash(path);
        kiln_manifest_close(open_manifest(path, KILN_OPEN_READ)); /* leaves the same */
        assert_true(kiln_hash_equal(before, file_hash(path)));
    }
}

static void discard_removes_what_this_open_made_and_nothing_else(void **state)
{
    char path[600], folder[600];
    in_scratch(state, "deep/er/m.db", path);
    kiln_manifest *m = open_manifest(path, KILN_OPEN_CREATE);
    fixture_fill(m, false);
    kiln_manifest_discard(m);
    assert_false(exists(path));
    assert_false(exists(in_scratch(state, "deep/er", folder)));

    kiln_manifest_close(open_manifest(path, KILN_OPEN_CREATE));
    kiln_manifest_discard(open_manifest(path, KILN_OPEN_CREATE));
    assert_true(exists(path));
    kiln_manifest_discard(NULL);
    kiln_manifest_close(NULL);
}

static void refused(const char *path, kiln_open_mode mode, const char *sentence)
{
    kiln_error err = {0};
    kiln_manifest *m = NULL;
    assert_int_equal(kiln_manifest_open(path, mode, "test", false, &m, &err), KILN_E_INPUT);
    assert_null(m);
    assert_says(&err, sentence);
    assert_says(&err, path);
}

static void what_is_no_manifest_is_refused_and_left_as_it_is(void **state)
{
    char path[600], lock[600];
    refused(in_scratch(state, "none.db", path), KILN_OPEN_READ, "kiln-import");
    refused(path, KILN_OPEN_WRITE, "No such file");
    assert_false(exists(path));
    refused((const char *)*state, KILN_OPEN_CREATE, "is a directory");

    static const char *const contents[] = {"ply\nformat ascii 1.0\n", "SQLite format 3", "\0"};
    for (size_t i = 0; i < 3; i++) {
        write_file(in_scratch(state, "other", path), contents[i], strlen(contents[i]) + 1);
        kiln_hash before = file_hash(path);
        for (int mode = KILN_OPEN_READ; mode <= KILN_OPEN_CREATE; mode++)
            refused(path, (kiln_open_mode)mode, "is not a manifest");
        assert_true(kiln_hash_equal(before, file_hash(path)));
        assert_false(exists(in_scratch(state, "other.lock", lock)));
    }
}

static void make_foreign(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void foreign_database_is_refused_and_left_as_it_is(void **state)
{
    char path[600];
    static const char *const sql[] = {"PRAGMA application_id = 77; CREATE TABLE t (a)",
                                      "CREATE TABLE t (a)"};
    for (size_t i = 0; i < 2; i++) {
        make_foreign(in_scratch(state, i ? "b.db" : "a.db", path), sql[i]);
        kiln_hash before = file_hash(path);
        for (int mode = KILN_OPEN_READ; mode <= KILN_OPEN_CREATE; mode++)
            refused(path, (kiln_open_mode)mode, "another program");
        assert_true(kiln_hash_equal(before, file_hash(path)));
    }
}

static void newer_schema_is_refused(void **state)
{
    char path[600];
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    run_sql(m, "PRAGMA user_version = 3");
    kiln_manifest_close(m);
    for (int mode = KILN_OPEN_READ; mode <= KILN_OPEN_CREATE; mode++)
        refused(path, (kiln_open_mode)mode, "schema version 3");
}

static void empty_file_is_filled_by_create_only(void **state)
{
    char path[600];
    write_file(in_scratch(state, "m.db", path), "", 0);
    refused(path, KILN_OPEN_READ, "it is empty");
    refused(path, KILN_OPEN_WRITE, "it is empty");
    kiln_manifest_close(open_manifest(path, KILN_OPEN_CREATE));
    kiln_manifest_close(open_manifest(path, KILN_OPEN_READ));
}

static void network_file_systems_are_told_by_their_magic(void **state)
{
    (void)state;
    assert_true(kiln_magic_is_network(0x6969));     /* NFS */
    assert_true(kiln_magic_is_network(0xFF534D42)); /* CIFS */
    /* sign-extended, as statfs gives it on 32 bits */
    assert_true(kiln_magic_is_network((uint64_t)(int32_t)0xFF534D42));
    assert_false(kiln_magic_is_network(0xEF53));     /* ext4 */
    assert_false(kiln_magic_is_network(0x01021994)); /* tmpfs */
    assert_false(kiln_magic_is_network(0x65735546)); /* FUSE */
}

/* Root may write anywhere, so the reader is a child that is nobody. */
static void reading_works_in_a_folder_that_cannot_be_written(void **state)
{
    char path[600], folder[600];
    in_scratch(state, "r o?/m#%.db", path); /* what URIs reserve */
    kiln_manifest *m = open_manifest(path, KILN_OPEN_CREATE);
    fixture_fill(m, false);
    kiln_manifest_close(m);
    assert_int_equal(chmod((const char *)*state, 0755), 0);
    assert_int_equal(chmod(in_scratch(state, "r o?", folder), 0555), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        kiln_error err = {0};
        kiln_layer *l = NULL;
        if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(1);
        if (access(folder, X_OK) != 0) _exit(77); /* the scratch folder's own parents are closed */
        if (kiln_manifest_open(path, KILN_OPEN_READ, "test", false, &m, &err) != KILN_OK) _exit(2);
        if (kiln_layer_get(m, "baked", &l, &err) != KILN_OK) _exit(3);
        kiln_layer_free(l);
        kiln_manifest_close(m);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(folder, 0755), 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip();
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- lock ------------------------------------------------------------------------------------ */
typedef void child_fn(const char *path, int ready);

/* Runs fn in a child until it writes to `ready`. */
static pid_t start_child(child_fn *fn, const char *path)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        fn(path, ends[1]);
        _exit(9);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return child;
}

static void kill_child(pid_t child)
{
    int status;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

static void say_ready(int ready)
{
    if (write(ready, "r", 1) != 1) _exit(8);
}

static void hold_the_lock(const char *path, int ready)
{
    kiln_error err = {0};
    kiln_manifest *m;
    if (kiln_manifest_open(path, KILN_OPEN_WRITE, "prune", false, &m, &err) != KILN_OK) _exit(1);
    say_ready(ready);
    for (;;) pause();
}

static void second_writer_is_told_who_holds_the_lock(void **state)
{
    char path[600], who[40];
    kiln_error err = {0};
    kiln_manifest *m = NULL;
    kiln_manifest_close(open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE));
    pid_t child = start_child(hold_the_lock, path);
    assert_int_equal(kiln_manifest_open(path, KILN_OPEN_WRITE, "knn", false, &m, &err),
                     KILN_E_BUSY);
    assert_null(m);
    snprintf(who, sizeof who, "pid %ld", (long)child);
    assert_says(&err, who);
    assert_says(&err, "host ");
    assert_says(&err, "stage prune");
    assert_says(&err, "start 20");
    kiln_manifest_close(open_manifest(path, KILN_OPEN_READ)); /* readers are not blocked */
    kill_child(child);
    kiln_manifest_close(open_manifest(path, KILN_OPEN_WRITE)); /* a dead holder holds nothing */
}

/* Holds the lock, has a child that shares the descriptor for a while, as a worker does before its
 * exec, and is killed. */
static void die_before_the_child(const char *path, int ready)
{
    kiln_error err = {0};
    kiln_lock lock;
    if (kiln_lock_take(path, "prune", &lock, &err) != KILN_OK) _exit(1);
    pid_t child = fork();
    if (child < 0) _exit(2);
    if (child == 0) {
        usleep(300000);
        _exit(0);
    }
    say_ready(ready);
    for (;;) pause();
}

static void lock_of_a_dead_holder_is_waited_for_until_its_children_end(void **state)
{
    char path[600];
    kiln_manifest_close(open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE));
    kill_child(start_child(die_before_the_child, path));
    kiln_manifest_close(open_manifest(path, KILN_OPEN_WRITE));
}

/* As between a holder's taking the lock and its writing who it is, only longer. */
static void hold_the_lock_and_say_who_later(const char *path, int ready)
{
    char name[700];
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    snprintf(name, sizeof name, "%s.lock", path);
    int fd = open(name, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || fcntl(fd, F_OFD_SETLK, &whole) != 0) _exit(1);
    say_ready(ready);
    usleep(30000);
    if (write(fd, "pid 4711\n", 9) != 9) _exit(2);
    for (;;) pause();
}

static void holder_that_just_took_the_lock_is_named_too(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = NULL;
    kiln_manifest_close(open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE));
    pid_t child = start_child(hold_the_lock_and_say_who_later, path);
    assert_int_equal(kiln_manifest_open(path, KILN_OPEN_WRITE, "knn", false, &m, &err),
                     KILN_E_BUSY);
    assert_says(&err, "pid 4711");
    kill_child(child);
}

static void second_writer_in_the_same_process_is_refused_too(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE),
                  *other = NULL;
    assert_int_equal(kiln_manifest_open(path, KILN_OPEN_CREATE, "knn", false, &other, &err),
                     KILN_E_BUSY);
    kiln_manifest_close(m);
    assert_true(exists(path)); /* the refused CREATE did not discard it */
}

static void old_lock_file_with_any_content_is_no_obstacle(void **state)
{
    char path[600], lock[600];
    in_scratch(state, "m.db", path);
    write_file(in_scratch(state, "m.db.lock", lock), "\xff\x00garbage", 9);
    kiln_manifest_close(open_manifest(path, KILN_OPEN_CREATE));
    assert_false(exists(lock));
}

/* Takes and releases the lock for a while; inside, nobody else may be. */
static void take_turns(const char *path, const char *inside)
{
    kiln_error err = {0};
    kiln_lock lock;
    for (int taken = 0, tries = 0; taken < 300 && tries < 1000000; tries++) {
        kiln_status st = kiln_lock_take(path, "test", &lock, &err);
        if (st == KILN_E_BUSY) continue;
        if (st != KILN_OK) _exit(1);
        int fd = open(inside, O_CREAT | O_EXCL | O_WRONLY, 0600);
        if (fd < 0) _exit(2);
        close(fd);
        if (unlink(inside) != 0) _exit(3);
        kiln_lock_release(&lock);
        taken++;
    }
    _exit(0);
}

static void lock_has_one_holder_while_its_file_comes_and_goes(void **state)
{
    enum { CHILDREN = 4 };
    char path[600], inside[600];
    pid_t children[CHILDREN];
    int status;
    in_scratch(state, "m.db", path);
    in_scratch(state, "inside", inside);
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) take_turns(path, inside);
    }
    for (int i = 0; i < CHILDREN; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

/* ---- transactions ---------------------------------------------------------------------------- */
static void reader_sees_the_last_commit_while_a_writer_writes(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *w = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE),
                  *r = open_manifest(path, KILN_OPEN_READ);
    kiln_hash a, b;
    OK(kiln_manifest_begin(w, &err));
    a = put_bytes(w, "first", 5, 1);
    OK(kiln_manifest_commit(w, &err));
    OK(kiln_manifest_begin(w, &err));
    b = put_bytes(w, "second", 6, 1);
    assert_true(kiln_manifest_has_blob(r, a));
    assert_false(kiln_manifest_has_blob(r, b));
    OK(kiln_manifest_commit(w, &err));
    assert_true(kiln_manifest_has_blob(r, b));
    kiln_manifest_close(w);
    kiln_manifest_close(r);
}

static int go[2];

/* Waits for a byte, changes every page there is, and is the last writer to close. */
static void change_everything(const char *path, int ready)
{
    kiln_error err = {0};
    kiln_manifest *m;
    char byte;
    if (kiln_manifest_open(path, KILN_OPEN_WRITE, "test", false, &m, &err) != KILN_OK) _exit(1);
    say_ready(ready);
    if (read(go[0], &byte, 1) != 1 || kiln_manifest_begin(m, &err) != KILN_OK) _exit(2);
    for (uint32_t i = 100; i < 200; i++) put_bytes(m, &i, sizeof i, 4);
    if (kiln_manifest_commit(m, &err) != KILN_OK) _exit(3);
    kiln_manifest_close(m);
    _exit(0);
}

/* Closing any descriptor of a file drops the locks that the process has on it, so none is opened
 * beside SQLite's own. A writer that closes and finds no lock takes itself for the last one, and
 * writes over what others read. */
static void readers_of_one_process_keep_their_state(void **state)
{
    char path[600];
    kiln_error err = {0};
    int status;
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE), *r[3];
    for (uint32_t i = 0; i < 100; i++) put_bytes(m, &i, sizeof i, 4);
    kiln_manifest_close(m);
    assert_int_equal(pipe(go), 0);
    const pid_t child = start_child(change_everything, path);
    for (int i = 0; i < 3; i++) {
        r[i] = open_manifest(path, KILN_OPEN_READ);
        OK(kiln_manifest_begin(r[i], &err));
        /* has its state now, and few pages */
        assert_int_equal(number_of(r[i], "SELECT count(*) FROM scene"), 0);
    }
    assert_int_equal(write(go[1], "g", 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(number_of(r[i], "SELECT count(*) FROM blob"), 100);
        assert_int_equal(
            number_of(r[i],
                      "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"),
            1);
        kiln_manifest_rollback(r[i]);
        assert_int_equal(number_of(r[i], "SELECT count(*) FROM blob"), 200);
        kiln_manifest_close(r[i]);
    }
    close(go[0]), close(go[1]);
}

static void reader_is_told_when_another_has_written(void **state)
{
    char path[600], stage[32];
    kiln_error err = {0};
    int64_t first, again, later;
    kiln_manifest *w = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE),
                  *r = open_manifest(path, KILN_OPEN_READ);
    OK(kiln_manifest_begin_read(r, &first, &err));
    OK(kiln_parameter_put(w, "knn", "neighbors", "4", &err));
    /* of the state that the transaction began with */
    assert_int_equal(number_of(r, "SELECT count(*) FROM parameter"), 0);
    kiln_manifest_rollback(r);
    OK(kiln_manifest_begin_read(r, &later, &err));
    assert_int_not_equal(first, later);
    assert_int_equal(number_of(r, "SELECT count(*) FROM parameter"), 1);
    kiln_manifest_rollback(r);
    OK(kiln_manifest_begin_read(r, &again, &err));
    assert_int_equal(again, later);
    kiln_manifest_rollback(r);
    assert_true(kiln_manifest_is_written(path, stage));
    assert_string_equal(stage, "test");
    kiln_manifest_close(w);
    assert_false(kiln_manifest_is_written(path, stage));
    assert_string_equal(stage, "");
    kiln_manifest_close(r);
}

static void reader_cannot_write(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest_close(open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE));
    kiln_manifest *r = open_manifest(path, KILN_OPEN_READ);
    assert_int_equal(kiln_parameter_put(r, "knn", "neighbors", "4", &err), KILN_E_IO);
    assert_says(&err, "readonly");
    kiln_manifest_close(r);
}

static void rollback_leaves_nothing(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    OK(kiln_manifest_begin(m, &err));
    kiln_hash h = put_bytes(m, "gone", 4, 1);
    OK(kiln_parameter_put(m, "knn", "neighbors", "4", &err));
    kiln_manifest_rollback(m);
    kiln_manifest_rollback(m); /* without a transaction: nothing to do */
    assert_false(kiln_manifest_has_blob(m, h));
    assert_int_equal(number_of(m, "SELECT count(*) FROM parameter"), 0);
    OK(kiln_manifest_begin(m, &err)); /* and the connection goes on */
    OK(kiln_manifest_commit(m, &err));
    kiln_manifest_close(m);
}

static void close_in_the_middle_of_a_transaction_rolls_back(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    OK(kiln_manifest_begin(m, &err));
    kiln_hash h = put_bytes(m, "gone", 4, 1);
    kiln_manifest_close(m);
    m = open_manifest(path, KILN_OPEN_READ);
    assert_false(kiln_manifest_has_blob(m, h));
    kiln_manifest_close(m);
}

static void full_disk_is_told_with_sqlites_words_and_loses_nothing(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_blob b;
    uint64_t bytes;
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    fixture_fill(m, false);
    size_t n = 4 << 20;
    unsigned char *noise = malloc(n);
    assert_non_null(noise);
    for (size_t i = 0; i < n; i++) noise[i] = (unsigned char)(rand() >> 7);
    OK(kiln_blob_pack(noise, n, 1, &b, &err));
    run_sql(m, "PRAGMA max_page_count = 60"); /* SQLite's own way to run full: 60 pages of 64 KiB */
    OK(kiln_manifest_begin(m, &err));
    assert_int_equal(kiln_manifest_put_blob(m, &b, &err), KILN_E_IO);
    assert_says(&err, "database or disk is full");
    kiln_manifest_rollback(m);
    OK(kiln_manifest_verify(m, NULL, NULL, &bytes, &err));
    assert_false(kiln_manifest_has_blob(m, b.hash));
    free(b.packed);
    free(noise);
    kiln_manifest_close(m);
}

/* Commits one transaction, then dies in the next, which is larger than SQLite's cache and so partly
 * in the WAL already. */
static void write_and_wait(const char *path, int ready)
{
    enum { BYTES = 1 << 20 };
    static unsigned char noise[BYTES];
    kiln_error err = {0};
    kiln_manifest *m;
    if (kiln_manifest_open(path, KILN_OPEN_CREATE, "test", false, &m, &err) != KILN_OK) _exit(1);
    fixture_fill(m, false);
    if (kiln_manifest_begin(m, &err) != KILN_OK) _exit(2);
    for (int k = 0; k < 24; k++) {
        for (int i = 0; i < BYTES; i++) noise[i] = (unsigned char)(rand() >> 7);
        put_bytes(m, noise, BYTES, 1);
    }
    say_ready(ready);
    for (;;) pause();
}

static void kill_in_mid_transaction_leaves_the_last_commit(void **state)
{
    char path[600];
    kiln_error err = {0};
    uint64_t bytes;
    in_scratch(state, "m.db", path);
    kill_child(start_child(write_and_wait, path));
    /* a reader first: it must cope with the WAL alone */
    kiln_manifest *m = open_manifest(path, KILN_OPEN_READ);
    OK(kiln_manifest_verify(m, NULL, NULL, &bytes, &err));
    assert_true(number_of(m, "SELECT max(raw_bytes) FROM blob") < 1 << 20);
    kiln_manifest_close(m);
    m = open_manifest(path, KILN_OPEN_WRITE);
    assert_int_equal(number_of(m, "SELECT count(*) FROM layer"), 1);
    kiln_manifest_close(m);
}

/* One commit after the other, each of a blob and the parameter that counts them. */
static void commit_for_ever(const char *path, int ready)
{
    kiln_error err = {0};
    kiln_manifest *m;
    char text[32];
    if (kiln_manifest_open(path, KILN_OPEN_CREATE, "test", false, &m, &err) != KILN_OK) _exit(1);
    int64_t n = number_of(m, "SELECT count(*) FROM blob");
    say_ready(ready);
    for (;; n++) {
        snprintf(text, sizeof text, "%lld", (long long)n + 1);
        if (kiln_manifest_begin(m, &err) != KILN_OK) _exit(2);
        put_bytes(m, text, strlen(text), 1);
        if (kiln_parameter_put(m, "test", "n", text, &err) != KILN_OK ||
            kiln_manifest_commit(m, &err) != KILN_OK)
            _exit(3);
    }
}

static void kill_at_any_moment_leaves_whole_transactions(void **state)
{
    char path[600];
    kiln_error err = {0};
    uint64_t bytes;
    int64_t before = 0;
    in_scratch(state, "m.db", path);
    for (unsigned round = 0; round < 12; round++) {
        pid_t child = start_child(commit_for_ever, path);
        usleep(500 + round * 2711); /* 0.5 to 30 ms, a commit takes about one */
        kill_child(child);
        kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
        int64_t n = number_of(m, "SELECT count(*) FROM blob");
        assert_int_equal(
            number_of(m, "SELECT coalesce((SELECT CAST(value AS INTEGER) FROM parameter), 0)"), n);
        assert_true(n >= before);
        before = n;
        OK(kiln_manifest_verify(m, NULL, NULL, &bytes, &err));
        kiln_manifest_close(m);
    }
    assert_true(before > 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)
    const struct CMUnitTest tests[] = {
        TEST(new_manifest_is_configured_as_the_specification_says),
        TEST(closed_manifest_is_one_file),
        TEST(discard_removes_what_this_open_made_and_nothing_else),
        TEST(what_is_no_manifest_is_refused_and_left_as_it_is),
        TEST(foreign_database_is_refused_and_left_as_it_is),
        TEST(newer_schema_is_refused),
        TEST(empty_file_is_filled_by_create_only),
        TEST(network_file_systems_are_told_by_their_magic),
        TEST(reading_works_in_a_folder_that_cannot_be_written),
        TEST(second_writer_is_told_who_holds_the_lock),
        TEST(lock_of_a_dead_holder_is_waited_for_until_its_children_end),
        TEST(holder_that_just_took_the_lock_is_named_too),
        TEST(second_writer_in_the_same_process_is_refused_too),
        TEST(old_lock_file_with_any_content_is_no_obstacle),
        TEST(lock_has_one_holder_while_its_file_comes_and_goes),
        TEST(reader_sees_the_last_commit_while_a_writer_writes),
        TEST(readers_of_one_process_keep_their_state),
        TEST(reader_is_told_when_another_has_written),
        TEST(reader_cannot_write),
        TEST(rollback_leaves_nothing),
        TEST(close_in_the_middle_of_a_transaction_rolls_back),
        TEST(full_disk_is_told_with_sqlites_words_and_loses_nothing),
        TEST(kill_in_mid_transaction_leaves_the_last_commit),
        TEST(kill_at_any_moment_leaves_whole_transactions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
