/* part_read -- opens a part, which may be cut short, changed by a bad disk, or made by a stranger.
 *
 * SQLite's pages have no checksums, so a flipped bit in a number would be gathered like a right
 * one. A part therefore has a seal: the hash of everything that its rows say. It protects against
 * accidents; whoever makes a part can make its seal, too, so all that is read is checked like a
 * stranger's all the same. */
#include "base/endian.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "schema/part_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_BYTES = 100, PAGE_BYTES = 65536, VERSION_ROLLBACK = 1 };

/* ---- before SQLite --------------------------------------------------------------------------- */
/* Offsets: sqlite.org/fileformat2.html 1.3. A page size of 1 means 65536. */
static kiln_status check_head(const char *path, const unsigned char *head, uint64_t bytes,
                              kiln_error *err)
{
    if (memcmp(head, "SQLite format 3", 16) != 0)
        return kiln_fail(err, KILN_E_INPUT, "'%s' is not a part: it is not an SQLite file", path);
    if (kiln_get_u32_be(head + 68) != KILN_PART_APPLICATION_ID)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' is not a part: it is an SQLite file of another program (application_id 0x%08x)",
            path, kiln_get_u32_be(head + 68));
    if (head[16] != 0 || head[17] != 1 || head[18] != VERSION_ROLLBACK ||
        head[19] != VERSION_ROLLBACK)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is not a sound part: it has pages of another size or a log, and "
                         "SplatKiln writes no such part",
                         path);
    const uint64_t wanted = (uint64_t)kiln_get_u32_be(head + 28) * PAGE_BYTES;
    if (bytes == wanted) return KILN_OK;
    return kiln_fail(err, KILN_E_IO,
                     "part '%s' is damaged: it has %" PRIu64 " bytes and must have %" PRIu64, path,
                     bytes, wanted);
}

static kiln_status check_file(const char *path, bool *unreadable, kiln_error *err)
{
    unsigned char head[HEADER_BYTES];
    struct stat s;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ELOOP)
        return kiln_fail(err, KILN_E_INPUT, "'%s' is not a part: it is a link", path);
    *unreadable = fd < 0;
    if (fd < 0)
        return kiln_fail(err, KILN_E_IO, "cannot open part '%s': %s", path, strerror(errno));
    const bool known = fstat(fd, &s) == 0, regular = known && S_ISREG(s.st_mode);
    const ssize_t n = regular ? pread(fd, head, sizeof head, 0) : 0;
    const int why = errno;
    (void)close(fd); /* was only read; SQLite has no locks on a file that it takes for immutable */
    *unreadable = !known || n < 0;
    if (*unreadable)
        return kiln_fail(err, KILN_E_IO, "cannot read part '%s': %s", path, strerror(why));
    if (!regular)
        return kiln_fail(err, KILN_E_INPUT, "'%s' is not a part: it is not a regular file", path);
    if (n < HEADER_BYTES)
        return kiln_fail(err, KILN_E_IO, "part '%s' is damaged: it has %zd bytes", path, n);
    return check_head(path, head, (uint64_t)s.st_size, err);
}

/* ---- what it is of --------------------------------------------------------------------------- */
kiln_status kiln_part_check_info(const kiln_part_info *info, kiln_status wrong, kiln_error *err)
{
    if (!info->stage[0] ||
        info->stage[strspn(info->stage, "abcdefghijklmnopqrstuvwxyz0123456789-_")])
        return kiln_fail(err, wrong, "a part belongs to a stage whose name is invalid: '%s'",
                         info->stage);
    if (kiln_hash_is_zero(info->plan)) return kiln_fail(err, wrong, "a part belongs to no plan");
    if (info->shard < 1 || info->shard > info->shards || info->shards > KILN_TASKS_MAX)
        return kiln_fail(
            err, wrong, "a part claims to be shard %" PRIu32 " of %" PRIu32 ", which is impossible",
            info->shard, info->shards);
    /* version 2 changed none of the tables that parts have */
    if (info->version < 1 || info->version > KILN_SCHEMA_VERSION)
        return kiln_fail(err, wrong,
                         "a part has tables of schema version %" PRIu32
                         ", this program knows up to %d",
                         info->version, KILN_SCHEMA_VERSION);
    return KILN_OK;
}

static kiln_status read_info_row(kiln_query *q, kiln_part_info *out, kiln_hash *seal,
                                 kiln_error *err)
{
    size_t bytes;
    *out = (kiln_part_info){0};
    kiln_column_text(q, out->stage, sizeof out->stage);
    out->plan = kiln_column_hash(q);
    out->shard = kiln_column_u32(q);
    out->shards = kiln_column_u32(q);
    kiln_column_text(q, out->host, sizeof out->host);
    out->version = kiln_column_u32(q);
    const void *p = kiln_column_bytes(q, &bytes);
    *seal = (kiln_hash){{0}};
    if (bytes == sizeof seal->bytes) memcpy(seal->bytes, p, sizeof seal->bytes);
    KILN_TRY(kiln_query_check(q, err));
    return kiln_part_check_info(out, KILN_E_INPUT, err);
}

kiln_status kiln_part_read_info(kiln_manifest *m, kiln_part_info *out, kiln_hash *seal,
                                kiln_error *err)
{
    kiln_query q;
    bool row;
    KILN_TRY(kiln_query_open(
        m, &q, "SELECT stage, plan, shard, shards, host, version, ifnull(seal, x'') FROM part",
        err));
    kiln_status st = kiln_query_step(&q, &row, err);
    if (st == KILN_OK)
        st = kiln_row_take(
            m, &q,
            row ? read_info_row(&q, out, seal, err)
                : kiln_fail(err, KILN_E_INPUT, "it does not say which plan it belongs to"),
            err);
    if (st == KILN_OK) st = kiln_query_step(&q, &row, err);
    if (st == KILN_OK && row)
        st = kiln_row_take(
            m, &q, kiln_fail(err, KILN_E_INPUT, "it says twice which plan it belongs to"), err);
    kiln_query_close(&q);
    return st;
}

/* ---- the seal -------------------------------------------------------------------------------- */
/* In the order of the tables themselves, so that no index has a say and nothing is sorted. */
static const char *const sealed[] = {
    "SELECT id, stage, plan, shard, shards, host, version FROM part",
    "SELECT id, hash, elem, raw_bytes, length(packed) FROM blob ORDER BY id",
    "SELECT id, key, stage, name, counters, wall_ns, finished_ns FROM unit ORDER BY id",
    "SELECT unit, name, segment, hash, raw_bytes, elem FROM unit_output ORDER BY unit, name, "
    "segment",
    "SELECT key, stage, name, attempts, device, reason, failed_ns FROM quarantine ORDER BY rowid",
    "SELECT id, stage, program, parameters, device, counters, start_ns, stop_ns, exit_code FROM "
    "run ORDER BY id",
};

static void hash_column(kiln_hasher *h, sqlite3_stmt *row, int i)
{
    const int type = sqlite3_column_type(row, i);
    const void *p = type == SQLITE_TEXT   ? (const void *)sqlite3_column_text(row, i)
                    : type == SQLITE_BLOB ? sqlite3_column_blob(row, i)
                                          : "";
    if (type == SQLITE_INTEGER)
        kiln_key_u64(h, "", (uint64_t)sqlite3_column_int64(row, i));
    else if (type == SQLITE_TEXT || type == SQLITE_BLOB)
        kiln_key_bytes(h, type == SQLITE_TEXT ? "t" : "b", p,
                       p ? (size_t)sqlite3_column_bytes(row, i) : 0);
    else
        kiln_key_text(h, "?", ""); /* no column of ours; whoever reads it says so */
}

static kiln_status hash_table(kiln_manifest *m, const char *sql, kiln_hasher *h, kiln_error *err)
{
    kiln_query q;
    bool row;
    uint64_t n = 0;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(m, &q, sql, err));
    for (;; n++) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        for (int i = 0; i < sqlite3_column_count(q.statement); i++) hash_column(h, q.statement, i);
    }
    kiln_key_u64(h, "rows", n);
done:
    kiln_query_close(&q);
    return st;
}

kiln_status kiln_part_seal(kiln_manifest *m, kiln_hash *out, kiln_error *err)
{
    kiln_hasher *h = kiln_key_begin("part", KILN_PART_VERSION);
    kiln_status st = KILN_OK;
    for (size_t i = 0; st == KILN_OK && i < sizeof sealed / sizeof *sealed; i++)
        st = hash_table(m, sealed[i], h, err);
    *out = kiln_key_end(h);
    if (st == KILN_OK && kiln_hash_is_zero(*out))
        st = kiln_fail(err, KILN_E_NOMEM, "out of memory for a hash");
    return st;
}

static kiln_status check_seal(kiln_manifest *m, kiln_hash seal, kiln_error *err)
{
    kiln_hash now;
    if (kiln_hash_is_zero(seal))
        return kiln_fail(err, KILN_E_IO,
                         "part '%s' is damaged: it has no seal, because its task did not finish it",
                         m->path);
    KILN_TRY(kiln_part_seal(m, &now, err));
    if (kiln_hash_equal(seal, now)) return KILN_OK;
    return kiln_fail(err, KILN_E_IO,
                     "part '%s' is damaged: its rows differ from those that its task sealed",
                     m->path);
}

/* ---- keys ------------------------------------------------------------------------------------ */
static kiln_status grow_keys(kiln_part *p, kiln_error *err)
{
    enum { FIRST = 1024 };
    const uint64_t capacity = p->capacity ? 2 * p->capacity : FIRST;
    kiln_hash *keys = realloc(p->keys, capacity * sizeof *keys);
    if (keys) p->keys = keys;
    int64_t *ids = keys ? realloc(p->ids, capacity * sizeof *ids) : NULL;
    if (!ids)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for %" PRIu64 " units of part '%s'",
                         capacity, p->m->path);
    p->ids = ids;
    p->capacity = capacity;
    return KILN_OK;
}

static kiln_status read_key(kiln_query *q, kiln_part *p, kiln_error *err)
{
    if (p->n == p->capacity) KILN_TRY(grow_keys(p, err));
    p->ids[p->n] = kiln_column_i64(q);
    p->keys[p->n] = kiln_column_hash(q);
    KILN_TRY(kiln_query_check(q, err));
    if (p->n > 0 &&
        memcmp(p->keys[p->n - 1].bytes, p->keys[p->n].bytes, sizeof p->keys->bytes) >= 0)
        return kiln_fail(err, KILN_E_INPUT, "a unit occurs twice or is out of order");
    p->n++;
    return KILN_OK;
}

static kiln_status read_keys(kiln_part *p, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(p->m, &q, "SELECT id, key FROM unit ORDER BY key", err));
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(kiln_row_take(p->m, &q, read_key(&q, p, err), err));
    }
done:
    kiln_query_close(&q);
    return st;
}

uint64_t kiln_part_find(const kiln_part *p, kiln_hash key)
{
    uint64_t low = 0, high = p->n;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (memcmp(p->keys[middle].bytes, key.bytes, sizeof key.bytes) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->n && kiln_hash_equal(p->keys[low], key) ? low : p->n;
}

/* ---- open, close ----------------------------------------------------------------------------- */
kiln_status kiln_part_read_rows(kiln_part *p, kiln_error *err)
{
    kiln_hash seal;
    p->n = 0;
    KILN_TRY(kiln_part_read_info(p->m, &p->info, &seal, err));
    KILN_TRY(check_seal(p->m, seal, err));
    return read_keys(p, err);
}

void kiln_part_free_rows(kiln_part *p)
{
    free(p->keys);
    free(p->ids);
    p->keys = NULL;
    p->ids = NULL;
    p->n = p->capacity = 0;
}

kiln_status kiln_part_open(const char *path, kiln_part **out, bool *unreadable, kiln_error *err)
{
    kiln_part *p = NULL;
    kiln_status st = KILN_OK;
    bool system = false;
    *out = NULL;
    if (!unreadable) unreadable = &system;
    *unreadable = false;
    KILN_TRY(check_file(path, unreadable, err));
    KILN_TRY(KILN_ALLOC(&p, 1, "a part", err));
    KILN_GO(kiln_part_connect(path, false, unreadable, &p->m, err));
    KILN_GO(kiln_part_read_rows(p, err));
    *out = p;
    return KILN_OK;
done:
    if (p->m) *unreadable = p->m->unreadable;
    kiln_part_close(p);
    return st;
}

bool kiln_part_unreadable(const kiln_part *p) { return p->m->unreadable; }

void kiln_part_close(kiln_part *p)
{
    if (!p) return;
    kiln_manifest_close(p->m);
    kiln_part_free_rows(p);
    free(p);
}

const kiln_part_info *kiln_part_get_info(const kiln_part *p) { return &p->info; }

/* Gathering needs at most three batches, which hold no more than the part, and five times the
 * largest blob, whatever it does in parallel. */
uint64_t kiln_part_ram(const kiln_part *p)
{
    enum { BLOBS = 5 };
    kiln_query q;
    bool any = false;
    int64_t n_pages;
    uint64_t largest = KILN_BLOB_MAX, batches = KILN_PART_BATCHES * (uint64_t)KILN_PART_BATCH_BYTES;
    if (kiln_query_open(p->m, &q, "SELECT coalesce(max(raw_bytes), 0) FROM blob", NULL) ==
        KILN_OK) {
        if (kiln_query_step(&q, &any, NULL) == KILN_OK && any)
            largest = kiln_min_u64(kiln_column_u64(&q), KILN_BLOB_MAX);
        kiln_query_close(&q);
    }
    if (kiln_query_number(p->m, "PRAGMA page_count", &n_pages, NULL) == KILN_OK && n_pages > 0)
        batches = kiln_min_u64(batches, (uint64_t)n_pages * PAGE_BYTES);
    return kiln_min_u64(KILN_PART_RAM, batches + BLOBS * largest);
}

void kiln_part_use_threads(kiln_part *p, unsigned threads) { p->threads = threads; }
void kiln_part_use_memory(kiln_part *p, kiln_part_memory **memory) { p->keeps = memory; }

const kiln_hash *kiln_part_keys(const kiln_part *p, uint64_t *n)
{
    *n = p->n;
    return p->keys;
}
