/* part: what a task has computed comes into the manifest whole, once, or not at all; cut files,
 * flipped bits and strangers' rows.
 */
#include "manifest_fixture.h"

#include "base/file.h"
#include "schema/part_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum { UNITS = 3, FLOATS = 5000 };

static kiln_part_info info_of(uint32_t shard)
{
    return (kiln_part_info){.stage = "knn",
                            .plan = kiln_hash_of("plan", 4),
                            .shard = shard,
                            .shards = 4,
                            .host = "node7"};
}

static kiln_hash key_of(uint32_t unit) { return kiln_hash_of(&unit, sizeof unit); }

/* Unit u has "numbers", floats of its own, and "word", bytes that all units share. */
static void fill_numbers(uint32_t u, float out[FLOATS])
{
    for (uint32_t i = 0; i < FLOATS; i++) out[i] = (float)((i * 2654435761u) >> 8) * (float)(u + 1);
}

static void store_unit(kiln_manifest *m, uint32_t u)
{
    static float numbers[FLOATS];
    kiln_error err = {0};
    kiln_blob blobs[2];
    char name[32], counters[64];
    kiln_unit_output outputs[2] = {{.name = "numbers", .elem = 4, .raw_bytes = sizeof numbers},
                                   {.name = "word", .elem = 1, .raw_bytes = 5}};
    fill_numbers(u, numbers);
    OK(kiln_blob_pack(numbers, sizeof numbers, 4, &blobs[0], &err));
    OK(kiln_blob_pack("hello", 5, 1, &blobs[1], &err));
    for (int i = 0; i < 2; i++) outputs[i].hash = blobs[i].hash;
    snprintf(name, sizeof name, "range %u", u);
    snprintf(counters, sizeof counters, "{\"pairs\": %u}", 1000 + u);
    kiln_unit_result r = {.n = 2, .outputs = outputs, .counters = counters};
    OK(kiln_unit_store(m, &(kiln_unit_done){key_of(u), "knn", name, 77}, &r, blobs, &err));
    for (int i = 0; i < 2; i++) free(blobs[i].packed);
}

/* True where the unit is there; then it is the right one. */
static bool unit_is_right(kiln_manifest *m, uint32_t u)
{
    static float numbers[FLOATS];
    kiln_error err = {0};
    kiln_unit_result r;
    char counters[64];
    bool found;
    void *data;
    uint64_t bytes;
    OK(kiln_unit_find(m, key_of(u), &found, &r, &err));
    if (!found) return false;
    fill_numbers(u, numbers);
    snprintf(counters, sizeof counters, "{\"pairs\": %u}", 1000 + u);
    assert_int_equal(r.n, 2);
    assert_string_equal(r.counters, counters);
    OK(kiln_unit_result_read(m, &r, "numbers", &data, &bytes, &err));
    assert_int_equal(bytes, sizeof numbers);
    assert_memory_equal(data, numbers, sizeof numbers);
    free(data);
    OK(kiln_unit_result_read(m, &r, "word", &data, &bytes, &err));
    assert_int_equal(bytes, 5);
    assert_memory_equal(data, "hello", 5);
    free(data);
    kiln_unit_result_release(&r);
    return true;
}

typedef struct {
    uint32_t first, n;
} range;

static kiln_status store_range(kiln_manifest *to, void *context, kiln_error *err)
{
    const range *r = context;
    (void)err;
    for (uint32_t u = r->first; u < r->first + r->n; u++) store_unit(to, u);
    return KILN_OK;
}

static kiln_quarantine_row bad_unit(void)
{
    kiln_quarantine_row row = {.stage = "knn",
                               .name = "range 9",
                               .attempts = 3,
                               .device = "cpu",
                               .reason = "no",
                               .failed_ns = 5};
    row.key = key_of(9);
    return row;
}

/* A whole part with UNITS units, one in quarantine and a run; path: where it is. */
static void make_part(void **state, uint32_t shard, kiln_manifest *base, char path[600])
{
    char private_path[600], name[KILN_PART_NAME_MAX];
    const kiln_part_info info = info_of(shard);
    kiln_error err = {0};
    kiln_manifest *m;
    const kiln_quarantine_row row = bad_unit();
    const kiln_run_row run = {
        .stage = "knn", .counters = (char[]){"{\"host\": \"node7\"}"}, .start_ns = 1, .stop_ns = 2};
    OK(kiln_part_create(in_scratch(state, "private", private_path), &info, base, &m, &err));
    OK(kiln_bulk_store(m, 4 << 20, store_range, &(range){0, UNITS}, &err));
    OK(kiln_quarantine_put(m, &row, &err));
    OK(kiln_run_row_put(m, &run, &err));
    OK(kiln_part_finish(m, *state, 0, &err));
    OK(kiln_part_name(&info, name, &err));
    in_scratch(state, name, path);
    assert_true(access(private_path, F_OK) != 0);
}

static kiln_part *open_part(const char *path)
{
    kiln_error err = {0};
    kiln_part *p;
    OK(kiln_part_open(path, &p, NULL, &err));
    return p;
}

static kiln_part_report gather_path(kiln_manifest *m, const char *path)
{
    kiln_error err = {0};
    kiln_part_report report;
    kiln_part *p = open_part(path);
    kiln_part_use_threads(p, 4);
    OK(kiln_part_gather(m, p, NULL, 0, &report, NULL, &err));
    kiln_part_close(p);
    return report;
}

static unsigned n_files(const char *folder)
{
    unsigned n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static unsigned char *read_all(const char *path, size_t *size)
{
    unsigned char *data;
    kiln_error err = {0};
    OK(kiln_file_read(path, 1 << 30, &data, size, &err));
    return data;
}

static void write_all(const char *path, const void *data, size_t size)
{
    kiln_error err = {0};
    OK(kiln_file_write(path, data, size, &err));
}

static void mutate(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *text = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "PRAGMA writable_schema = ON; PRAGMA ignore_check_constraints = "
                                  "ON; PRAGMA foreign_keys = OFF",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK) fail_msg("%s: %s", sql, text);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* ---- whole parts ----------------------------------------------------------------------------- */
static void a_part_is_gathered_once(void **state)
{
    char path[600], db[600];
    kiln_error err = {0};
    uint64_t n, bytes;
    make_part(state, 2, NULL, path);
    assert_int_equal(n_files(*state), 1); /* neither -journal nor -wal nor the private file */
    kiln_part *p = open_part(path);
    assert_int_equal(n_files(*state), 1);
    const kiln_part_info *info = kiln_part_get_info(p);
    assert_string_equal(info->stage, "knn");
    assert_string_equal(info->host, "node7");
    assert_int_equal(info->shard, 2);
    assert_int_equal(info->shards, 4);
    assert_int_equal(info->version, KILN_SCHEMA_VERSION);
    assert_true(kiln_hash_equal(info->plan, kiln_hash_of("plan", 4)));
    const kiln_hash *keys = kiln_part_keys(p, &n);
    assert_int_equal(n, UNITS);
    for (uint32_t i = 1; i < n; i++) assert_true(memcmp(&keys[i - 1], &keys[i], sizeof *keys) < 0);
    kiln_part_close(p);

    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", db), KILN_OPEN_CREATE);
    kiln_part_report r = gather_path(m, path);
    assert_int_equal(r.inserted, UNITS);
    assert_int_equal(r.quarantined, 1);
    assert_int_equal(r.runs, 1);
    assert_int_equal(number_of(m, "SELECT count(*) FROM blob"), UNITS + 1);
    for (uint32_t u = 0; u < UNITS; u++) assert_true(unit_is_right(m, u));
    OK(kiln_manifest_verify(m, NULL, NULL, &bytes, &err));
    r = gather_path(m, path);
    assert_int_equal(r.inserted, 0);
    assert_int_equal(r.present, UNITS);
    assert_int_equal(r.quarantined, 0);
    assert_int_equal(r.runs, 0);
    assert_int_equal(r.bytes, 0);
    assert_int_equal(number_of(m, "SELECT count(*) FROM run"), 1);
    kiln_manifest_close(m);
}

static void units_come_in_the_order_that_is_wanted(void **state)
{
    char path[600], db[600];
    kiln_error err = {0};
    kiln_part_report r;
    const kiln_hash wanted[] = {key_of(2), key_of(50), key_of(0)};
    make_part(state, 1, NULL, path);
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", db), KILN_OPEN_CREATE);
    kiln_part *p = open_part(path);
    OK(kiln_part_gather(m, p, wanted, 3, &r, NULL, &err));
    kiln_part_close(p);
    assert_int_equal(r.inserted, 2);
    assert_int_equal(r.unwanted, UNITS - 2);
    assert_int_equal(r.quarantined, 0);
    assert_true(unit_is_right(m, 2) && unit_is_right(m, 0) && !unit_is_right(m, 1));
    assert_int_equal(number_of(m, "SELECT (SELECT id FROM unit WHERE name = 'range 2') < (SELECT "
                                  "id FROM unit WHERE name = 'range 0')"),
                     1);
    kiln_manifest_close(m);
}

static void what_is_done_or_tried_later_is_not_quarantined(void **state)
{
    char path[600], db[600];
    kiln_error err = {0};
    kiln_quarantine_row row = bad_unit();
    make_part(state, 1, NULL, path);
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", db), KILN_OPEN_CREATE);
    row.failed_ns = 6;
    strcpy(row.reason, "later");
    OK(kiln_quarantine_put(m, &row, &err));
    assert_int_equal(gather_path(m, path).quarantined, 0);
    assert_int_equal(number_of(m, "SELECT reason = 'later' FROM quarantine"), 1);
    store_unit(m, 9);
    assert_int_equal(gather_path(m, path).quarantined, 0);
    assert_int_equal(number_of(m, "SELECT count(*) FROM quarantine"), 0);
    kiln_manifest_close(m);
}

static void blobs_of_the_base_are_left_out(void **state)
{
    char path[600], db[600], other[600];
    kiln_error err = {0};
    kiln_part_report r;
    bool m_failed = true;
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", db), KILN_OPEN_CREATE);
    (void)put_bytes(m, "hello", 5, 1);
    make_part(state, 1, m, path);
    r = gather_path(m, path);
    assert_int_equal(r.inserted, UNITS);
    assert_int_equal(r.blobs, UNITS);
    for (uint32_t u = 0; u < UNITS; u++) assert_true(unit_is_right(m, u));
    kiln_manifest_close(m);
    /* a manifest that lost it */
    m = open_manifest(in_scratch(state, "other.db", other), KILN_OPEN_CREATE);
    kiln_part *p = open_part(path);
    assert_int_equal(kiln_part_gather(m, p, NULL, 0, &r, &m_failed, &err), KILN_E_IO);
    assert_says(&err, "is neither in the part nor in the manifest");
    assert_says(&err, path);
    assert_false(m_failed);
    assert_int_equal(r.refused, UNITS);
    assert_int_equal(r.inserted, 0);
    assert_int_equal(number_of(m, "SELECT count(*) FROM unit_output"), 0);
    assert_int_equal(number_of(m, "SELECT count(*) FROM blob"), UNITS); /* the sound ones */
    kiln_part_close(p);
    kiln_manifest_close(m);
}

enum { PIECE = 5 << 20, PIECES = 5, WHOLE = 24 << 20 };

/* More than a batch of blobs: two units are, in pieces, and one has a single blob that is. */
static void make_large_part(void **state, char path[600])
{
    static unsigned char noise[WHOLE];
    char name[KILN_PART_NAME_MAX];
    const kiln_part_info info = info_of(1);
    kiln_error err = {0};
    kiln_manifest *m;
    uint64_t random = 1;
    for (size_t i = 0; i < WHOLE; i++)
        noise[i] = (unsigned char)((random = random * 6364136223846793005u + 1) >> 56);
    OK(kiln_part_create(in_scratch(state, "private", path), &info, NULL, &m, &err));
    for (uint32_t u = 0; u < 3; u++) {
        kiln_unit_output outputs[PIECES];
        kiln_blob blobs[PIECES] = {{.raw_bytes = 0}};
        const uint32_t n = u == 1 ? 1 : PIECES;
        for (uint32_t i = 0; i < n; i++) {
            noise[0] = (unsigned char)(16 * u + i); /* other bytes in each */
            const size_t size = n == 1 ? WHOLE : PIECE;
            OK(kiln_blob_pack(noise, size, 1, &blobs[i], &err));
            outputs[i] = (kiln_unit_output){
                .name = "data", .segment = i, .hash = blobs[i].hash, .raw_bytes = size, .elem = 1};
        }
        OK(kiln_unit_store(m, &(kiln_unit_done){key_of(u), "knn", "large", 1},
                           &(kiln_unit_result){.n = n, .outputs = outputs}, blobs, &err));
        for (uint32_t i = 0; i < n; i++) free(blobs[i].packed);
    }
    OK(kiln_part_finish(m, *state, 0, &err));
    OK(kiln_part_name(&info, name, &err));
    in_scratch(state, name, path);
}

static void large_units_come_in_batches(void **state)
{
    char path[600], db[600];
    kiln_error err = {0};
    uint64_t bytes;
    make_large_part(state, path);
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", db), KILN_OPEN_CREATE);
    const kiln_part_report r = gather_path(m, path);
    assert_int_equal(r.inserted, 3);
    assert_int_equal(r.blobs, 2 * PIECES + 1);
    assert_true(r.bytes >= 2 * (uint64_t)PIECES * PIECE + WHOLE);
    OK(kiln_manifest_verify(m, NULL, NULL, &bytes, &err));
    kiln_manifest_close(m);
    /* one of the first unit's is damaged: whichever thread meets it, that unit alone is left out */
    kiln_part_report damaged;
    mutate(path, "UPDATE blob SET packed = zeroblob(length(packed)) WHERE id = 2");
    kiln_part *p = open_part(path);
    kiln_part_use_threads(p, 4);
    m = open_manifest(in_scratch(state, "other.db", db), KILN_OPEN_CREATE);
    assert_int_equal(kiln_part_gather(m, p, NULL, 0, &damaged, NULL, &err), KILN_E_IO);
    assert_says(&err, "is damaged");
    assert_int_equal(damaged.refused, 1);
    assert_int_equal(damaged.inserted, 2);
    assert_int_equal(damaged.blobs, 2 * PIECES); /* its sound ones are stored */
    OK(kiln_manifest_verify(m, NULL, NULL, &bytes, &err));
    kiln_part_close(p);
    kiln_manifest_close(m);
}

/* Killed at eight instants one after the other: every state is sound, and what is there is not
 * stored again. */
static void a_gather_that_is_killed_goes_on(void **state)
{
    enum { KILLS = 8, STEP_MS = 12 };
    char path[600], db[600];
    kiln_error err = {0};
    uint64_t bytes;
    int64_t before = 0;
    make_large_part(state, path);
    kiln_manifest_close(open_manifest(in_scratch(state, "m.db", db), KILN_OPEN_CREATE));
    for (int i = 1; i <= KILLS; i++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            kiln_manifest *m = open_manifest(db, KILN_OPEN_WRITE);
            (void)gather_path(m, path);
            (void)pause(); /* has it all: is killed here */
        }
        assert_int_equal(nanosleep(&(struct timespec){.tv_nsec = i * STEP_MS * 1000000L}, NULL), 0);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        kiln_manifest *m = open_manifest(db, KILN_OPEN_WRITE);
        OK(kiln_manifest_verify(m, NULL, NULL, &bytes, &err));
        const int64_t now = number_of(m, "SELECT count(*) FROM unit");
        assert_true(now >= before);
        before = now;
        kiln_manifest_close(m);
    }
    kiln_manifest *m = open_manifest(db, KILN_OPEN_WRITE);
    const kiln_part_report r = gather_path(m, path);
    assert_int_equal(r.present, before);
    assert_int_equal(r.inserted, 3 - before);
    assert_int_equal(number_of(m, "SELECT count(*) FROM blob"), 2 * PIECES + 1);
    OK(kiln_manifest_verify(m, NULL, NULL, &bytes, &err));
    kiln_manifest_close(m);
}

/* ---- files ----------------------------------------------------------------------------------- */
static void a_part_that_is_given_up_leaves_nothing(void **state)
{
    char path[600];
    const kiln_part_info info = info_of(1);
    kiln_error err = {0};
    kiln_manifest *m;
    /* of an earlier process of this number */
    write_all(in_scratch(state, "private", path), "old", 3);
    OK(kiln_part_create(path, &info, NULL, &m, &err));
    store_unit(m, 0);
    kiln_manifest_discard(m);
    assert_int_equal(n_files(*state), 0);
    OK(kiln_part_create(path, &info, NULL, &m, &err));
    assert_int_equal(kiln_part_finish(m, "/nowhere/at/all", 0, &err), KILN_E_IO);
    assert_int_equal(n_files(*state), 0);
}

static void a_file_whose_task_did_not_end_it_is_no_part(void **state)
{
    char path[600], copy[600];
    size_t size;
    const kiln_part_info info = info_of(1);
    kiln_error err = {0};
    kiln_manifest *m;
    kiln_part *p;
    OK(kiln_part_create(in_scratch(state, "private", path), &info, NULL, &m, &err));
    store_unit(m, 0);
    unsigned char *data = read_all(path, &size);
    write_all(in_scratch(state, "copy", copy), data, size);
    free(data);
    assert_int_equal(kiln_part_open(copy, &p, NULL, &err), KILN_E_IO);
    assert_says(&err, "has no seal");
    kiln_manifest_discard(m);
}

static void a_part_goes_to_another_file_system_by_a_copy(void **state)
{
    static const char *const folders[] = {"/dev/shm", "/tmp", "/var/tmp", "."};
    char other[64] = "", path[600], name[KILN_PART_NAME_MAX], to[700];
    const kiln_part_info info = info_of(3);
    struct stat here, there;
    kiln_error err = {0};
    kiln_manifest *m;
    assert_int_equal(stat(*state, &here), 0);
    for (size_t i = 0; !*other && i < sizeof folders / sizeof *folders; i++)
        if (stat(folders[i], &there) == 0 && there.st_dev != here.st_dev &&
            access(folders[i], W_OK) == 0)
            snprintf(other, sizeof other, "%s/kiln-part.XXXXXX", folders[i]);
    if (!*other) skip(); /* one file system */
    assert_non_null(mkdtemp(other));
    OK(kiln_part_create(in_scratch(state, "private", path), &info, NULL, &m, &err));
    store_unit(m, 0);
    OK(kiln_part_finish(m, other, 2, &err));
    assert_int_equal(n_files(*state), 0);
    assert_int_equal(n_files(other), 1);
    OK(kiln_part_name(&info, name, &err));
    snprintf(to, sizeof to, "%s/%s", other, name);
    kiln_part_close(open_part(to));
    test_folder_remove(other);
}

static void copies_of_killed_tasks_are_removed(void **state)
{
    char host[KILN_PROCESS_SPACE_MAX], path[600], name[400];
    static const char stem[] = "knn-0123-1-of-4.part.tmp.";
    assert_true(kiln_process_space(host));
    const struct {
        const char *host;
        long pid;
        const char *stem;
    } files[] = {{host, 999999999, stem},
                 {host, (long)getpid(), stem},
                 {"elsewhere", 999999999, stem},
                 {host, 999999999, "prune-x.part.tmp."}};
    for (size_t i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s%s.%ld.0", files[i].stem, files[i].host, files[i].pid);
        write_all(in_scratch(state, name, path), "x", 1);
    }
    write_all(in_scratch(state, "knn-0123-1-of-4.part", path), "x", 1);
    kiln_part_leftovers_drop(*state, "knn", false);
    assert_int_equal(n_files(*state), 4);
    kiln_part_leftovers_drop(*state, "knn-4567", true); /* another plan's */
    assert_int_equal(n_files(*state), 4);
    kiln_part_leftovers_drop(*state, "knn-0123", true);
    assert_int_equal(n_files(*state), 2); /* the part, and what is of another stage */
}

/* Of a task that is killed while it makes a part. */
static bool leave_draft(const char *folder)
{
    char path[4096];
    kiln_error err = {0};
    const kiln_part_info info = info_of(1);
    kiln_manifest *m;
    const pid_t task = fork();
    if (task == 0) {
        if (kiln_part_draft_path(&info, folder, 3, path, &err) != KILN_OK) _exit(2);
        _exit(kiln_part_create(path, &info, NULL, &m, &err) == KILN_OK ? 0 : 3);
    }
    int status = -1;
    return waitpid(task, &status, 0) == task && status == 0;
}

/* Clusters have hosts with dots in their names. */
static void drafts_of_killed_tasks_are_removed(void **state)
{
    const pid_t host = fork();
    if (host == 0) {
        static const char dotted[] = "node7.cluster";
        /* else under the name that this host has */
        if (unshare(CLONE_NEWUTS) == 0) (void)sethostname(dotted, sizeof dotted - 1);
        const bool left = leave_draft(*state) && n_files(*state) == 1;
        kiln_part_leftovers_drop(*state, "knn", false);
        _exit(left && n_files(*state) == 0 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(host, &status, 0), host);
    assert_int_equal(status, 0);
}

/* Containers have PID namespaces of their own, on hosts of one name. */
static void drafts_of_another_pid_namespace_stay(void **state)
{
    if (!leave_draft(*state)) fail_msg("no draft");
    const pid_t container = fork();
    if (container == 0) {
        if (unshare(CLONE_NEWPID) != 0) _exit(77);
        const pid_t task = fork();
        if (task == 0) {
            kiln_part_leftovers_drop(*state, "knn", false);
            _exit(n_files(*state) == 1 ? 0 : 1);
        }
        int status = -1;
        _exit(waitpid(task, &status, 0) == task && status == 0 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(container, &status, 0), container);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip(); /* not for this user */
    assert_int_equal(status, 0);
    kiln_part_leftovers_drop(*state, "knn", false);
    assert_int_equal(n_files(*state), 0);
}

/* A stranger's: it would take memory that nobody has counted. */
static void a_blob_packed_into_more_than_it_needs_is_refused(void **state)
{
    enum { RAW = 100, PACKED = 4096 };
    char path[600], name[KILN_PART_NAME_MAX];
    unsigned char packed[PACKED] = {7};
    const kiln_part_info info = info_of(1);
    kiln_error err = {0};
    kiln_manifest *part, *m;
    kiln_part *p;
    kiln_part_report report;
    const kiln_hash hash = kiln_hash_of("large", 5);
    const kiln_blob blob = {
        .hash = hash, .elem = 1, .raw_bytes = RAW, .packed = packed, .packed_bytes = sizeof packed};
    kiln_unit_output output = {.name = "word", .elem = 1, .raw_bytes = RAW, .hash = hash};
    const kiln_unit_result r = {.n = 1, .outputs = &output, .counters = (char[]){"{}"}};
    OK(kiln_part_create(in_scratch(state, "private", path), &info, NULL, &part, &err));
    OK(kiln_unit_store(part, &(kiln_unit_done){key_of(0), "knn", "range 0", 1}, &r, &blob, &err));
    OK(kiln_part_finish(part, *state, 0, &err));
    OK(kiln_part_name(&info, name, &err));
    OK(kiln_part_open(in_scratch(state, name, path), &p, NULL, &err));
    OK(kiln_manifest_open(in_scratch(state, "m.db", path), KILN_OPEN_CREATE, "knn", false, &m,
                          &err));
    assert_int_equal(kiln_part_gather(m, p, NULL, 0, &report, NULL, &err), KILN_E_INPUT);
    assert_non_null(strstr(err.msg, "is packed into 4096"));
    assert_int_equal(report.refused, 1);
    assert_int_equal(report.blobs, 0);
    kiln_part_close(p);
    kiln_manifest_close(m);
}

static void a_part_of_nothing_is_not_made(void **state)
{
    char path[600];
    kiln_part_info infos[5];
    for (int i = 0; i < 5; i++) infos[i] = info_of(1);
    strcpy(infos[0].stage, "../knn");
    infos[1].plan = (kiln_hash){{0}};
    infos[2].shard = 0;
    infos[3].shard = 5;
    infos[4].shards = KILN_TASKS_MAX + 1;
    for (int i = 0; i < 5; i++) {
        kiln_error err = {0};
        kiln_manifest *m;
        assert_int_equal(
            kiln_part_create(in_scratch(state, "private", path), &infos[i], NULL, &m, &err),
            KILN_E_USAGE);
        assert_int_equal(n_files(*state), 0);
    }
}

/* ---- damage ---------------------------------------------------------------------------------- */
static void clear(kiln_manifest *m)
{
    run_sql(m, "DELETE FROM unit WHERE true; DELETE FROM blob WHERE true; DELETE FROM quarantine "
               "WHERE true; DELETE FROM run WHERE true");
}

/* Opens and gathers; what comes into the manifest must be right, and a failure must name the file.
 * Returns the status. */
static kiln_status try_gather(kiln_manifest *m, const char *path, kiln_part_report *r)
{
    kiln_error err = {0};
    kiln_part *p = NULL;
    bool m_failed = false;
    *r = (kiln_part_report){0};
    kiln_status st = kiln_part_open(path, &p, NULL, &err);
    if (st == KILN_OK) kiln_part_use_threads(p, 3);
    if (st == KILN_OK) st = kiln_part_gather(m, p, NULL, 0, r, &m_failed, &err);
    kiln_part_close(p);
    assert_false(m_failed);
    if (st != KILN_OK) assert_says(&err, path);
    if (st != KILN_OK && st != KILN_E_IO && st != KILN_E_INPUT) fail_msg("%s", err.msg);
    unsigned right = 0;
    for (uint32_t u = 0; u < UNITS; u++) right += unit_is_right(m, u);
    assert_int_equal(right, number_of(m, "SELECT count(*) FROM unit"));
    assert_int_equal(right, r->inserted);
    clear(m);
    return st;
}

static void a_cut_part_is_refused_at_every_length(void **state)
{
    char path[600], db[600];
    size_t size;
    kiln_part_report r;
    make_part(state, 1, NULL, path);
    unsigned char *data = read_all(path, &size);
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", db), KILN_OPEN_CREATE);
    for (size_t n = 0; n < size; n += n < 200 ? 33 : 9973) {
        write_all(path, data, n);
        if (try_gather(m, path, &r) == KILN_OK) fail_msg("gathered at %zu of %zu bytes", n, size);
        assert_int_equal(r.inserted, 0);
    }
    write_all(path, data, size);
    assert_int_equal(try_gather(m, path, &r), KILN_OK);
    free(data);
    kiln_manifest_close(m);
}

enum { PAGE = 65536 };

static size_t n_used(const unsigned char *page)
{
    size_t n = 0;
    for (size_t i = 0; i < PAGE; i++) n += page[i] != 0;
    return n;
}

/* Bytes that hold nothing may flip; of all others a flip is a failure, and what else is gathered is
 * right. */
static void a_flipped_bit_never_comes_into_the_manifest(void **state)
{
    char path[600], db[600];
    size_t size;
    bool dense = false;
    unsigned failures = 0, salvaged = 0;
    kiln_part_report r;
    make_part(state, 1, NULL, path);
    unsigned char *data = read_all(path, &size);
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", db), KILN_OPEN_CREATE);
    run_sql(m, "PRAGMA synchronous = OFF");
    for (size_t at = 0, i = 0, used = 0; at < size; at++) {
        if (at % PAGE == 0) dense = n_used(data + at) > PAGE / 8;
        /* pages of rows, not of blobs, byte by byte nearly */
        if (data[at] == 0 || used++ % (dense ? 2003 : 7) != 0) continue;
        i++;
        const unsigned char was = data[at];
        data[at] ^= (unsigned char)(1 << i % 8);
        write_all(path, data, size);
        failures += try_gather(m, path, &r) != KILN_OK;
        salvaged += r.refused > 0 && r.inserted > 0;
        data[at] = was;
    }
    assert_true(failures > 50);
    assert_true(salvaged > 5); /* a blob is damaged: the other units are taken */
    free(data);
    kiln_manifest_close(m);
}

/* ---- strangers ------------------------------------------------------------------------------- */
static void seal_again(const char *path)
{
    kiln_error err = {0};
    kiln_manifest *m;
    kiln_hash seal;
    char hex[33], sql[128];
    OK(kiln_part_connect(path, false, NULL, &m, &err));
    OK(kiln_part_seal(m, &seal, &err));
    kiln_manifest_close(m);
    snprintf(sql, sizeof sql, "UPDATE part SET seal = x'%s'", kiln_hash_hex(seal, hex));
    mutate(path, sql);
}

static void other_tables_are_refused(void **state)
{
    static const struct {
        const char *sql, *says;
    } changes[] = {
        {"CREATE TRIGGER t AFTER INSERT ON unit BEGIN DELETE FROM blob; END",
         "its trigger 't' differs"},
        {"CREATE TABLE camera (a)", "its table 'camera' differs"},
        {"CREATE VIEW own AS SELECT 1", "its view 'own' differs"},
        {"CREATE INDEX own ON unit (name)", "its index 'own' differs"},
        {"DROP TABLE run", "'run' is missing"},
        {"DROP TABLE quarantine; CREATE VIEW quarantine AS SELECT 1",
         "its view 'quarantine' differs"},
        {"UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name = 'unit'",
         "its table 'unit' differs"},
        {"UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (length(seal) = 16)', '') WHERE name "
         "= 'part'",
         "its table 'part' differs"},
        {"DELETE FROM sqlite_schema WHERE name = 'sqlite_autoindex_unit_1'", "is missing"},
        /* a manifest's */
        {"PRAGMA application_id = 0x4b494c4e",
         "not a part: it is an SQLite file of another program"},
        {"PRAGMA user_version = 2", "has version 2"},
        {"PRAGMA journal_mode = WAL", "or a log"},
        {"PRAGMA page_size = 4096; VACUUM", "pages of another size"},
        {"DELETE FROM part", "does not say which plan it belongs to"},
        {"INSERT INTO part SELECT 2, stage, plan, shard, shards, host, version, seal FROM part",
         "says twice"},
        {"UPDATE part SET stage = '../../x'", "whose name is invalid"},
        {"UPDATE part SET plan = zeroblob(16)", "no plan"},
        {"UPDATE part SET plan = zeroblob(15)", "a hash does not have 16 bytes"},
        {"UPDATE part SET shard = 0", "which is impossible"},
        {"UPDATE part SET shards = 5000000", "which is impossible"},
        {"UPDATE part SET version = 3", "schema version 3"},
        {"UPDATE part SET version = 0", "schema version 0"},
        {"UPDATE part SET seal = NULL", "has no seal"},
        {"UPDATE unit SET wall_ns = wall_ns + 1", "differ from those that its task sealed"},
        {"UPDATE unit_output SET hash = zeroblob(16)", "sealed"},
        {"UPDATE run SET counters = '{}'", "sealed"},
        {"UPDATE quarantine SET attempts = 4", "sealed"},
        {"UPDATE part SET host = 'other'", "sealed"},
        {"DELETE FROM unit WHERE name = 'range 1'", "sealed"},
    };
    char whole[600], path[600];
    size_t size;
    make_part(state, 1, NULL, whole);
    unsigned char *data = read_all(whole, &size);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        kiln_error err = {0};
        kiln_part *p = NULL;
        write_all(in_scratch(state, "changed.part", path), data, size);
        mutate(path, changes[i].sql);
        const kiln_status st = kiln_part_open(path, &p, NULL, &err);
        if (st != KILN_E_INPUT && st != KILN_E_IO) fail_msg("opened: %s", changes[i].sql);
        assert_null(p);
        if (!strstr(err.msg, changes[i].says))
            fail_msg("%s\nnot said: %s\nbut: %s", changes[i].sql, changes[i].says, err.msg);
        assert_says(&err, path);
    }
    free(data);
}

static void rows_of_strangers_are_refused_under_a_right_seal(void **state)
{
    static const struct {
        const char *sql, *says;
        unsigned inserted;
    } changes[] = {
        {"UPDATE unit SET stage = 'prune' WHERE id = 2",
         "belongs to stage 'prune', but is in a part of stage 'knn'", 2},
        {"UPDATE unit SET counters = 'x' WHERE id = 2", "no JSON object", 2},
        {"UPDATE unit SET counters = '[1]' WHERE id = 2", "no JSON object", 2},
        {"UPDATE unit SET wall_ns = -1 WHERE id = 2", "negative time", 2},
        {"UPDATE unit SET name = 'a' || char(0) || 'b' WHERE id = 2", "NUL", 2},
        {"UPDATE unit SET name = printf('%.200c', 'a') WHERE id = 2", "a text is too long", 2},
        {"UPDATE unit_output SET raw_bytes = 6 WHERE unit = 2 AND name = 'word'", "claims 6 bytes",
         2},
        {"UPDATE unit_output SET raw_bytes = 1 << 40 WHERE unit = 2 AND name = 'numbers'",
         "a blob has at most", 2},
        {"UPDATE unit_output SET elem = 3 WHERE unit = 2 AND name = 'word'", "elements of 3 bytes",
         2},
        {"UPDATE unit_output SET hash = x'00112233445566778899aabbccddeeff' WHERE unit = 2 AND "
         "name = 'word'",
         "neither in the part nor", 2},
        {"UPDATE unit_output SET name = '' WHERE unit = 2 AND name = 'word'", "has no name", 2},
        {"UPDATE blob SET raw_bytes = 1 << 40 WHERE raw_bytes = 20000 AND id = 1",
         "has 1099511627776", 2},
        {"UPDATE blob SET packed = x'28b52ffd' WHERE raw_bytes = 20000 AND id = 1", "is damaged",
         2},
        {"UPDATE blob SET packed = (SELECT packed FROM blob WHERE raw_bytes = 20000 AND id <> 1) "
         "WHERE id = 1",
         "another hash", 2},
        {"UPDATE blob SET elem = 8 WHERE id = 1", "another hash", 2},
        {"DELETE FROM blob WHERE raw_bytes = 5", "neither in the part nor", 0},
        {"UPDATE quarantine SET stage = 'prune'", "in quarantine is of another stage", 3},
        {"UPDATE quarantine SET reason = printf('%.2000c', 'a')", "a text is too long", 3},
        {"UPDATE run SET stage = 'prune'", "a run belongs to stage 'prune'", 3},
        {"UPDATE run SET counters = 'x'", "not JSON", 3},
        {"UPDATE run SET start_ns = -1", "before 1970", 3},
        {"WITH RECURSIVE r(n) AS (SELECT 10 UNION ALL SELECT n + 1 FROM r WHERE n < 2000) INSERT "
         "INTO run SELECT n, 'knn', '', "
         "'{}', '', "
         "'{}', n, n, 0 FROM r",
         "more than 1000 runs", 3},
    };
    char whole[600], path[600], db[600];
    size_t size;
    make_part(state, 1, NULL, whole);
    unsigned char *data = read_all(whole, &size);
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", db), KILN_OPEN_CREATE);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        kiln_error err = {0};
        kiln_part *p = NULL;
        kiln_part_report r;
        write_all(in_scratch(state, "changed.part", path), data, size);
        mutate(path, changes[i].sql);
        seal_again(path);
        OK(kiln_part_open(path, &p, NULL, &err));
        const kiln_status st = kiln_part_gather(m, p, NULL, 0, &r, NULL, &err);
        kiln_part_close(p);
        if (st != KILN_E_INPUT && st != KILN_E_IO) fail_msg("gathered: %s", changes[i].sql);
        if (!strstr(err.msg, changes[i].says))
            fail_msg("%s\nnot said: %s\nbut: %s", changes[i].sql, changes[i].says, err.msg);
        assert_says(&err, path);
        if (r.inserted != changes[i].inserted)
            fail_msg("%s: %llu units", changes[i].sql, (unsigned long long)r.inserted);
        clear(m);
    }
    free(data);
    kiln_manifest_close(m);
}

static void a_part_that_the_system_does_not_open_is_not_blamed(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_part *p;
    struct rlimit files, none;
    bool unreadable = false;
    make_part(state, 1, NULL, path);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = files;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const kiln_status st = kiln_part_open(path, &p, &unreadable, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(st, KILN_E_IO);
    assert_true(unreadable);
    assert_int_equal(truncate(path, 1000), 0);
    assert_int_equal(kiln_part_open(path, &p, &unreadable, &err), KILN_E_IO);
    assert_false(unreadable);
}

static void other_files_are_refused(void **state)
{
    char path[600], db[600], link[600];
    kiln_error err = {0};
    kiln_part *p;
    make_part(state, 1, NULL, path);
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", db), KILN_OPEN_CREATE);
    kiln_manifest_close(m);
    assert_int_equal(kiln_part_open(db, &p, NULL, &err), KILN_E_INPUT);
    assert_says(&err, "another program");
    assert_int_equal(symlink(path, in_scratch(state, "link.part", link)), 0);
    assert_int_equal(kiln_part_open(link, &p, NULL, &err), KILN_E_INPUT);
    assert_says(&err, "it is a link");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(mkfifo(link, 0600), 0);
    assert_int_equal(kiln_part_open(link, &p, NULL, &err), KILN_E_INPUT); /* and does not wait */
    assert_says(&err, "not a regular file");
    assert_int_equal(unlink(link), 0);
    write_all(link,
              "an empty part, or what is left of one; 100 bytes and more so that there is a header "
              "to look at, in words alone",
              110);
    assert_int_equal(kiln_part_open(link, &p, NULL, &err), KILN_E_INPUT);
    assert_says(&err, "not an SQLite file");
    assert_int_equal(kiln_manifest_open(path, KILN_OPEN_READ, "test", false, &m, &err),
                     KILN_E_INPUT); /* nor is a part a manifest */
    assert_says(&err, "not a manifest");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_scratch, remove_scratch)
    const struct CMUnitTest tests[] = {
        TEST(a_part_is_gathered_once),
        TEST(units_come_in_the_order_that_is_wanted),
        TEST(what_is_done_or_tried_later_is_not_quarantined),
        TEST(blobs_of_the_base_are_left_out),
        TEST(large_units_come_in_batches),
        TEST(a_gather_that_is_killed_goes_on),
        TEST(a_part_that_is_given_up_leaves_nothing),
        TEST(a_file_whose_task_did_not_end_it_is_no_part),
        TEST(a_part_goes_to_another_file_system_by_a_copy),
        TEST(copies_of_killed_tasks_are_removed),
        TEST(drafts_of_killed_tasks_are_removed),
        TEST(drafts_of_another_pid_namespace_stay),
        TEST(a_blob_packed_into_more_than_it_needs_is_refused),
        TEST(a_part_of_nothing_is_not_made),
        TEST(a_cut_part_is_refused_at_every_length),
        TEST(a_flipped_bit_never_comes_into_the_manifest),
        TEST(other_tables_are_refused),
        TEST(rows_of_strangers_are_refused_under_a_right_seal),
        TEST(a_part_that_the_system_does_not_open_is_not_blamed),
        TEST(other_files_are_refused),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
