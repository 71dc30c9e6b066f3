/* insert_bench FROM TO [log|THREADS [pass]] -- how fast bare inserts are: the blobs of FROM's tile
 * tables, or all if it has none, read into memory first, go into a fresh manifest TO in
 * transactions like the engine's (64 MiB or 256 blobs). log: all through SQLite's log. pass: what
 * is on the disk leaves the page cache (kiln_bulk_pass). THREADS: as kiln_bulk_use_threads has
 * them; by default this machine's. What the parent of kiln-tiles stores a second is compared with
 * it (tests/bench/scaling). Prints "BYTES SECONDS". */
#include "base/log.h"
#include "base/memory.h"
#include "schema/manifest.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH_BYTES = 64 << 20, BATCH_BLOBS = 256 };

typedef struct {
    kiln_blob *items;
    uint64_t n, capacity, bytes;
} blobs;

static void blobs_release(blobs *b)
{
    for (uint64_t i = 0; i < b->n; i++) free(b->items[i].packed);
    free(b->items);
}

static kiln_status add_row(sqlite3_stmt *q, blobs *b, kiln_error *err)
{
    if (b->n == b->capacity) {
        kiln_blob *more = realloc(b->items, (2 * b->capacity + 64) * sizeof *more);
        if (!more)
            return kiln_fail(err, KILN_E_NOMEM, "no memory for %llu blobs",
                             (unsigned long long)b->n);
        b->items = more;
        b->capacity = 2 * b->capacity + 64;
    }
    kiln_blob blob = {.raw_bytes = (uint64_t)sqlite3_column_int64(q, 1),
                      .elem = (uint32_t)sqlite3_column_int(q, 2),
                      .packed_bytes = (size_t)sqlite3_column_bytes(q, 3)};
    if (sqlite3_column_bytes(q, 0) != (int)sizeof blob.hash.bytes)
        return kiln_fail(err, KILN_E_IO, "a hash of another size");
    memcpy(blob.hash.bytes, sqlite3_column_blob(q, 0), sizeof blob.hash.bytes);
    KILN_TRY(kiln_alloc((void **)&blob.packed, blob.packed_bytes, 1, "a blob", err));
    memcpy(blob.packed, sqlite3_column_blob(q, 3), blob.packed_bytes);
    b->items[b->n++] = blob;
    b->bytes += blob.packed_bytes;
    return KILN_OK;
}

static kiln_status read_blobs(kiln_manifest *m, blobs *b, kiln_error *err)
{
    static const char sql[] = "SELECT hash, raw_bytes, elem, packed FROM blob"
                              " WHERE hash IN (SELECT hash FROM tile_segment) OR NOT EXISTS "
                              "(SELECT 1 FROM tile_segment) ORDER BY rowid";
    sqlite3 *db = kiln_manifest_sqlite(m);
    sqlite3_stmt *q = NULL;
    kiln_status st = KILN_OK;
    int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(q);
        if (rc == SQLITE_ROW) KILN_GO(add_row(q, b, err));
    }
    if (rc != SQLITE_DONE)
        st = kiln_fail(err, KILN_E_IO, "cannot read the blobs: %s", sqlite3_errmsg(db));
done:
    (void)sqlite3_finalize(q);
    return st;
}

typedef struct {
    const blobs *b;
    uint64_t first, end;
} batch;

static kiln_status store(kiln_manifest *to, void *context, kiln_error *err)
{
    const batch *a = context;
    for (uint64_t i = a->first; i < a->end; i++)
        KILN_TRY(kiln_manifest_put_blob(to, &a->b->items[i], err));
    return KILN_OK;
}

/* One transaction; *next moves on. */
static kiln_status insert_batch(kiln_manifest *m, const blobs *b, bool through_log, uint64_t *next,
                                kiln_error *err)
{
    uint64_t bytes = 0;
    batch a = {b, *next, *next};
    for (; a.end < b->n && a.end - a.first < BATCH_BLOBS && bytes < BATCH_BYTES; a.end++)
        bytes += b->items[a.end].packed_bytes;
    *next = a.end;
    return kiln_bulk_store(m, through_log ? 0 : bytes, store, &a, err);
}

typedef struct {
    bool through_log, pass;
    unsigned threads;
} how;

static kiln_status measure(const char *from, const char *to, how h, kiln_error *err)
{
    kiln_status st;
    kiln_manifest *source = NULL, *target = NULL;
    blobs b = {0};
    KILN_GO(kiln_manifest_open(from, KILN_OPEN_READ, "insert_bench", true, &source, err));
    KILN_GO(read_blobs(source, &b, err));
    KILN_GO(kiln_manifest_open(to, KILN_OPEN_CREATE, "insert_bench", true, &target, err));
    kiln_bulk_use_threads(target, h.threads);
    kiln_bulk_pass(target, h.pass);
    const uint64_t start_ns = kiln_now_ns();
    for (uint64_t next = 0; next < b.n;)
        KILN_GO(insert_batch(target, &b, h.through_log, &next, err));
    printf("%llu %.6f\n", (unsigned long long)b.bytes, (double)(kiln_now_ns() - start_ns) * 1e-9);
done:
    kiln_manifest_close(target);
    kiln_manifest_close(source);
    blobs_release(&b);
    return st;
}

int main(int argc, char **argv)
{
    kiln_error err = {0};
    const bool through_log = argc == 4 && strcmp(argv[3], "log") == 0,
               pass = argc == 5 && strcmp(argv[4], "pass") == 0;
    const long threads =
        argc >= 4 && !through_log ? strtol(argv[3], NULL, 10) : sysconf(_SC_NPROCESSORS_ONLN);
    if (argc < 3 || argc > 5 || (argc == 5 && !pass) || threads < 1) {
        fprintf(stderr, "usage: insert_bench FROM TO [log|THREADS [pass]]\n");
        return 2;
    }
    const kiln_status st =
        measure(argv[1], argv[2], (how){through_log, pass, (unsigned)threads}, &err);
    if (st != KILN_OK) fprintf(stderr, "insert_bench: %s\n", err.msg);
    return kiln_exit_code(st);
}
