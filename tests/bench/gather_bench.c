/* gather_bench FROM STAGE FOLDER TO [THREADS [PARTS]] -- what gathering costs beside bare inserts
 * (insert_bench; tests/bench/gather runs both): the units of STAGE that the bake FROM has become
 * PARTS parts in FOLDER, which are gathered into a fresh manifest TO. Prints "BYTES MAKE GATHER CPU
 * FIRST LAST": packed bytes, seconds for making the parts and for opening and gathering them,
 * processor seconds of the latter, and KiB that the first part and all of them added to the peak of
 * memory. */
#include "base/log.h"
#include "base/memory.h"
#include "schema/part.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { BATCH_UNITS = 16 };

typedef struct {
    kiln_manifest *from;
    const char *stage;
    const kiln_hash *keys;
    uint64_t first, end;
} batch;

static kiln_status copy_blob(sqlite3 *db, kiln_manifest *to, const kiln_unit_output *o,
                             kiln_error *err)
{
    sqlite3_stmt *q = NULL;
    kiln_status st = KILN_E_IO;
    if (sqlite3_prepare_v2(db, "SELECT elem, packed FROM blob WHERE hash = ?", -1, &q, NULL) ==
            SQLITE_OK &&
        sqlite3_bind_blob(q, 1, o->hash.bytes, sizeof o->hash.bytes, SQLITE_STATIC) == SQLITE_OK &&
        sqlite3_step(q) == SQLITE_ROW) {
        const kiln_blob b = {.hash = o->hash,
                             .raw_bytes = o->raw_bytes,
                             .elem = (uint32_t)sqlite3_column_int(q, 0),
                             .packed = (unsigned char *)sqlite3_column_blob(q, 1), /* read only */
                             .packed_bytes = (size_t)sqlite3_column_bytes(q, 1)};
        st = kiln_manifest_put_blob(to, &b, err);
    } else
        (void)kiln_fail(err, st, "cannot read a blob: %s", sqlite3_errmsg(db));
    (void)sqlite3_finalize(q); /* was only read */
    return st;
}

static kiln_status copy_units(kiln_manifest *to, void *context, kiln_error *err)
{
    const batch *a = context;
    for (uint64_t i = a->first; i < a->end; i++) {
        kiln_unit_result r;
        kiln_blob *none = NULL;
        bool found;
        KILN_TRY(kiln_unit_find(a->from, a->keys[i], &found, &r, err));
        kiln_status st = KILN_ALLOC(&none, r.n, "outputs", err);
        for (uint32_t k = 0; st == KILN_OK && k < r.n; k++)
            st = copy_blob(kiln_manifest_sqlite(a->from), to, &r.outputs[k], err);
        if (st == KILN_OK)
            st = kiln_unit_store(to, &(kiln_unit_done){a->keys[i], a->stage, "unit", 1}, &r, none,
                                 err);
        free(none);
        kiln_unit_result_release(&r);
        KILN_TRY(st);
    }
    return KILN_OK;
}

static kiln_status list_keys(kiln_manifest *m, const char *stage, kiln_buffer *keys,
                             kiln_error *err)
{
    sqlite3 *db = kiln_manifest_sqlite(m);
    sqlite3_stmt *q = NULL;
    kiln_status st = KILN_OK;
    int rc =
        sqlite3_prepare_v2(db, "SELECT key FROM unit WHERE stage = ? ORDER BY id", -1, &q, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_bind_text(q, 1, stage, -1, SQLITE_STATIC);
    while (st == KILN_OK && (rc == SQLITE_OK || rc == SQLITE_ROW)) {
        rc = sqlite3_step(q);
        if (rc == SQLITE_ROW)
            st = kiln_buffer_put(keys, sqlite3_column_blob(q, 0), sizeof(kiln_hash), err);
    }
    (void)sqlite3_finalize(q); /* was only read */
    if (st == KILN_OK && rc != SQLITE_DONE)
        st = kiln_fail(err, KILN_E_IO, "cannot read the units: %s", sqlite3_errmsg(db));
    return st;
}

/* One part of the units from first to end. */
static kiln_status make_part(kiln_manifest *from, const char *folder, const kiln_part_info *info,
                             const kiln_hash *keys, uint64_t first, uint64_t end, kiln_error *err)
{
    char path[4096];
    kiln_manifest *part;
    kiln_status st = KILN_OK;
    (void)snprintf(path, sizeof path, "%s/private", folder);
    KILN_TRY(kiln_part_create(path, info, NULL, &part, err));
    batch a = {.from = from, .stage = info->stage, .keys = keys, .end = first};
    while (st == KILN_OK && a.end < end) {
        a.first = a.end;
        a.end = a.first + BATCH_UNITS < end ? a.first + BATCH_UNITS : end;
        st = kiln_bulk_store(part, 0, copy_units, &a, err);
    }
    if (st == KILN_OK) return kiln_part_finish(part, folder, 0, err);
    kiln_manifest_discard(part);
    return st;
}

static kiln_status make(const char *from, const char *folder, kiln_part_info info, kiln_error *err)
{
    kiln_manifest *source = NULL;
    kiln_buffer keys = {0};
    kiln_status st;
    KILN_GO(kiln_manifest_open(from, KILN_OPEN_READ, "gather_bench", true, &source, err));
    KILN_GO(list_keys(source, info.stage, &keys, err));
    const uint64_t n = keys.size / sizeof(kiln_hash);
    for (info.shard = 1; info.shard <= info.shards; info.shard++)
        KILN_GO(make_part(source, folder, &info, (const kiln_hash *)(const void *)keys.data,
                          n * (info.shard - 1) / info.shards, n * info.shard / info.shards, err));
done:
    kiln_manifest_close(source);
    kiln_buffer_release(&keys);
    return st;
}

static kiln_status gather(kiln_manifest *to, const char *folder, const kiln_part_info *info,
                          unsigned threads, kiln_part_memory **capacity, uint64_t *bytes,
                          kiln_error *err)
{
    char name[KILN_PART_NAME_MAX], path[4096];
    kiln_part *p;
    kiln_part_report r = {0};
    KILN_TRY(kiln_part_name(info, name, err));
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    KILN_TRY(kiln_part_open(path, &p, NULL, err));
    kiln_part_use_threads(p, threads);
    kiln_part_use_memory(p, capacity);
    const kiln_status st = kiln_part_gather(to, p, NULL, 0, &r, NULL, err);
    *bytes += r.bytes;
    kiln_part_close(p);
    return st;
}

static double cpu_seconds(const struct rusage *u)
{
    return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
           (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) * 1e-6;
}

static kiln_status measure(char **argv, unsigned threads, uint32_t parts, kiln_error *err)
{
    kiln_part_info info = {.plan = kiln_hash_of("bench", 5), .shards = parts};
    kiln_manifest *to = NULL;
    kiln_part_memory *capacity = NULL;
    uint64_t bytes = 0;
    kiln_status st;
    struct rusage before, first = {0}, after;
    (void)snprintf(info.stage, sizeof info.stage, "%s", argv[2]);
    const uint64_t start = kiln_now_ns();
    KILN_GO(make(argv[1], argv[3], info, err));
    const uint64_t made = kiln_now_ns();
    KILN_GO(kiln_manifest_open(argv[4], KILN_OPEN_CREATE, "gather_bench", true, &to, err));
    (void)getrusage(RUSAGE_SELF, &before); /* cannot fail with these arguments */
    const uint64_t begun = kiln_now_ns();
    for (info.shard = 1; info.shard <= parts; info.shard++) {
        KILN_GO(gather(to, argv[3], &info, threads, &capacity, &bytes, err));
        if (info.shard == 1) (void)getrusage(RUSAGE_SELF, &first); /* likewise */
    }
    const uint64_t end = kiln_now_ns();
    (void)getrusage(RUSAGE_SELF, &after); /* likewise */
    printf("%llu %.3f %.3f %.3f %ld %ld\n", (unsigned long long)bytes,
           (double)(made - start) * 1e-9, (double)(end - begun) * 1e-9,
           cpu_seconds(&after) - cpu_seconds(&before), first.ru_maxrss - before.ru_maxrss,
           after.ru_maxrss - before.ru_maxrss);
done:
    kiln_part_memory_free(capacity);
    kiln_manifest_close(to);
    return st;
}

int main(int argc, char **argv)
{
    kiln_error err = {0};
    if (argc < 5 || argc > 7) {
        fprintf(stderr, "usage: gather_bench FROM STAGE FOLDER TO [THREADS [PARTS]]\n");
        return 2;
    }
    const unsigned long threads = argc > 5 ? strtoul(argv[5], NULL, 10) : 1,
                        parts = argc > 6 ? strtoul(argv[6], NULL, 10) : 1;
    const kiln_status st = measure(argv, (unsigned)threads, parts ? (uint32_t)parts : 1, &err);
    if (st != KILN_OK) fprintf(stderr, "gather_bench: %s\n", err.msg);
    return kiln_exit_code(st);
}
