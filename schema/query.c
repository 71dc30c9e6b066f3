/* query -- the one file that binds, steps and reads columns, and that turns SQLite's codes into our
 * statuses.
 *
 * Statements are cached for the life of the connection because a bake runs the same few a hundred
 * thousand times. closing a query resets it at once: an open read statement would hold a read
 * transaction, and that keeps checkpoints of the writer from finishing. */
#include "base/file.h"
#include "base/memory.h"
#include "schema/manifest_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kiln_status status_of(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return KILN_E_BUSY;
    case SQLITE_NOMEM:
        return KILN_E_NOMEM;
    case SQLITE_MISUSE:
    case SQLITE_RANGE:
        return KILN_E_BUG;
    /* A constraint too: where an index of the file hides a row, our own insert of it breaks what
     * the index says. */
    default:
        return KILN_E_IO;
    }
}

static const char *advice_of(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG:
        return "; kiln-verify lists the damage";
    case SQLITE_BUSY:
        return "; another program holds it; try again";
    default:
        return "";
    }
}

/* What the file system said, as far as the code tells: sqlite3_system_errno has been overwritten by
 * the rollback. A write that fails where file sizes are limited has most likely come to that
 * limit. */
static int errno_of(int rc)
{
    if ((rc & 0xff) == SQLITE_FULL) return ENOSPC;
    return rc == SQLITE_IOERR_WRITE || rc == SQLITE_IOERR_TRUNCATE || rc == SQLITE_IOERR_SHMSIZE
               ? EFBIG
               : 0;
}

/* SQLite says "out of memory", too, where its list of tables is damaged in some ways: sqlite3_exec,
 * which reads the list, takes a text that is none for a lack of memory. It says so again then,
 * while there is memory; a real lack is over or shows at once. */
static bool tables_are_damaged(sqlite3 *db)
{
    enum { SOME_BYTES = 1 << 16 };
    sqlite3_stmt *any = NULL;
    void *some = sqlite3_malloc(SOME_BYTES);
    const int rc =
        some ? sqlite3_prepare_v2(db, "SELECT 1 FROM sqlite_schema", -1, &any, NULL) : SQLITE_OK;
    (void)sqlite3_finalize(any); /* accepts NULL; was never stepped */
    sqlite3_free(some);
    return (rc & 0xff) == SQLITE_NOMEM;
}

kiln_status kiln_sqlite_fail(kiln_manifest *m, int rc, const char *doing, kiln_error *err)
{
    if ((rc & 0xff) == SQLITE_NOMEM && m->db && tables_are_damaged(m->db)) rc = SQLITE_CORRUPT;
    const char *text = m->db && (sqlite3_errcode(m->db) & 0xff) == (rc & 0xff)
                           ? sqlite3_errmsg(m->db)
                           : sqlite3_errstr(rc);
    char free_text[128] = "", copy[400] = "";
    const int error = errno_of(rc);
    if ((rc & 0xff) == SQLITE_CANTOPEN ||
        ((rc & 0xff) == SQLITE_IOERR && rc != SQLITE_IOERR_SHORT_READ))
        m->unreadable = true;
    if ((rc & 0xff) == SQLITE_INTERRUPT)
        text = "a query takes more steps than a file of this size can need; the file is damaged or "
               "hostile";
    kiln_file_free_text(m->file, error, free_text, sizeof free_text);
    if (*free_text && strcmp(m->file, m->path) != 0)
        (void)snprintf(copy, sizeof copy, ", of which '%.300s' is the copy to work on", m->file);
    return kiln_fail(err, status_of(rc), "cannot %s '%s'%s: %s%s%s%s", doing, m->path, copy, text,
                     m->is_part ? "" : advice_of(rc), free_text,
                     *copy ? ", or name another folder with --scratch-dir" : "");
}

kiln_status kiln_sql(kiln_manifest *m, const char *sql, kiln_error *err)
{
    m->other_steps = 0;
    int rc = sqlite3_exec(m->db, sql, NULL, NULL, NULL);
    if (rc == SQLITE_OK) return KILN_OK;
    return kiln_sqlite_fail(m, rc, m->writer ? "write" : "read", err);
}

static sqlite3_stmt *cached(const kiln_manifest *m, const char *sql)
{
    for (uint32_t i = 0; i < m->n_statements; i++)
        if (m->statements[i].sql == sql) return m->statements[i].statement;
    return NULL;
}

kiln_status kiln_query_open(kiln_manifest *m, kiln_query *q, const char *sql, kiln_error *err)
{
    *q = (kiln_query){.m = m, .next_bind = 1, .column = -1};
    q->statement = cached(m, sql);
    if (q->statement) {
        if (!sqlite3_stmt_busy(q->statement)) return KILN_OK;
        q->statement = NULL;
        return kiln_fail(err, KILN_E_BUG, "a query was used inside itself: %s", sql);
    }
    if (m->n_statements == KILN_STATEMENTS_MAX)
        return kiln_fail(err, KILN_E_BUG, "more than %d statements", KILN_STATEMENTS_MAX);
    int rc = sqlite3_prepare_v3(m->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &q->statement, NULL);
    if (rc != SQLITE_OK) return kiln_sqlite_fail(m, rc, "read", err);
    m->statements[m->n_statements].sql = sql;
    m->statements[m->n_statements++].statement = q->statement;
    return KILN_OK;
}

void kiln_query_close(kiln_query *q)
{
    if (!q->statement) return;
    (void)sqlite3_reset(q->statement);          /* repeats the code of a step that was reported */
    (void)sqlite3_clear_bindings(q->statement); /* always SQLITE_OK */
    q->statement = NULL;
}

/* ---- binds ----------------------------------------------------------------------------------- */
static void keep_failure(kiln_query *q, kiln_status status, const char *problem)
{
    if (q->status != KILN_OK) return;
    q->status = status;
    q->problem = problem;
    q->column = q->next_column - 1; /* the one that was taken last; -1 before the first */
}

static void bound(kiln_query *q, int rc)
{
    if (rc != SQLITE_OK) keep_failure(q, status_of(rc), NULL);
}

void kiln_bind_i64(kiln_query *q, int64_t v)
{
    bound(q, sqlite3_bind_int64(q->statement, q->next_bind++, v));
}

void kiln_bind_u64(kiln_query *q, uint64_t v)
{
    if (v > INT64_MAX) keep_failure(q, KILN_E_BUG, "a number is above 2^63 - 1");
    kiln_bind_i64(q, (int64_t)v);
}

void kiln_bind_f64(kiln_query *q, double v)
{
    bound(q, sqlite3_bind_double(q->statement, q->next_bind++, v));
}

void kiln_bind_text(kiln_query *q, const char *v)
{
    if (!v) keep_failure(q, KILN_E_BUG, "a text is missing");
    bound(q, sqlite3_bind_text(q->statement, q->next_bind++, v, -1, SQLITE_STATIC));
}

void kiln_bind_bytes(kiln_query *q, const void *v, size_t bytes)
{
    bound(q,
          sqlite3_bind_blob64(q->statement, q->next_bind++, bytes ? v : "", bytes, SQLITE_STATIC));
}

void kiln_bind_hash(kiln_query *q, kiln_hash v)
{
    bound(q, sqlite3_bind_blob(q->statement, q->next_bind++, v.bytes, sizeof v.bytes,
                               SQLITE_TRANSIENT));
}

void kiln_bind_null(kiln_query *q) { bound(q, sqlite3_bind_null(q->statement, q->next_bind++)); }

/* The table that one of our statements is about, for a sentence that shows no SQL: what it writes
 * into, else the first that it reads; of one that begins with WITH the last, because the first may
 * be a name that it makes itself. Returns the length of the name. */
static int find_table(const char *sql, const char **table)
{
    static const char *const before[] = {"INTO ", "UPDATE ", " FROM "};
    const bool takes_last = strncmp(sql, "WITH ", 5) == 0;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        const char *at = strstr(sql, before[i]), *next;
        if (!at) continue;
        while (takes_last && (next = strstr(at + 1, before[i]))) at = next;
        *table = at + strlen(before[i]);
        return (int)strspn(*table, "abcdefghijklmnopqrstuvwxyz_");
    }
    return 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */
kiln_status kiln_query_check(kiln_query *q, kiln_error *err)
{
    if (q->status == KILN_OK) return KILN_OK;
    const char *why = q->problem ? q->problem : sqlite3_errmsg(q->m->db), *table = "";
    const int length = find_table(sqlite3_sql(q->statement), &table);
    if (q->column < 0)
        return kiln_fail(err, q->status, "'%s', table '%.*s': %s", q->m->path, length, table, why);
    return kiln_fail(err, q->status, "column '%s' of a row of '%.*s': %s",
                     sqlite3_column_name(q->statement, q->column), length, table, why);
}

/* SQLite says "out of memory" of some damaged pages too. While there is room for the longest row,
 * and the same query says so again, it is damage; a real lack is over or shows at once. */
static int without_false_lack(const kiln_query *q, int rc)
{
    if ((rc & 0xff) != SQLITE_NOMEM || !sqlite3_stmt_readonly(q->statement)) return rc;
    void *longest =
        sqlite3_malloc64((sqlite3_uint64)sqlite3_limit(q->m->db, SQLITE_LIMIT_LENGTH, -1));
    if (!longest) return rc;
    sqlite3_free(longest);
    (void)sqlite3_reset(q->statement); /* repeats the code of the step */
    int again = SQLITE_ROW;
    while (again == SQLITE_ROW) again = sqlite3_step(q->statement);
    return (again & 0xff) == SQLITE_NOMEM || (again & 0xff) == SQLITE_INTERRUPT ? SQLITE_CORRUPT
                                                                                : rc;
}

kiln_status kiln_query_step(kiln_query *q, bool *row, kiln_error *err)
{
    *row = false;
    KILN_TRY(kiln_query_check(q, err));
    q->m->steps = &q->steps;
    const int rc = without_false_lack(q, sqlite3_step(q->statement));
    q->m->steps = &q->m->other_steps;
    q->next_column = 0;
    q->column = -1;
    if (rc == SQLITE_DONE) return KILN_OK;
    if (rc != SQLITE_ROW)
        return kiln_sqlite_fail(q->m, rc, sqlite3_stmt_readonly(q->statement) ? "read" : "write",
                                err);
    *row = true;
    return KILN_OK;
}

kiln_status kiln_query_run(kiln_query *q, kiln_error *err)
{
    bool row;
    kiln_status st = kiln_query_step(q, &row, err);
    kiln_query_close(q);
    return st;
}

kiln_status kiln_query_number(kiln_manifest *m, const char *sql, int64_t *out, kiln_error *err)
{
    kiln_query q;
    bool row;
    *out = 0;
    KILN_TRY(kiln_query_open(m, &q, sql, err));
    kiln_status st = kiln_query_step(&q, &row, err);
    if (st == KILN_OK && row) *out = kiln_column_i64(&q);
    if (st == KILN_OK) st = kiln_query_check(&q, err);
    kiln_query_close(&q);
    return st;
}

/* ---- columns --------------------------------------------------------------------------------- */
static int next_column(kiln_query *q, int type)
{
    int column = q->next_column++;
    if (sqlite3_column_type(q->statement, column) != type)
        keep_failure(q, KILN_E_IO, "a column has the wrong type");
    return column;
}

int64_t kiln_column_i64(kiln_query *q)
{
    return sqlite3_column_int64(q->statement, next_column(q, SQLITE_INTEGER));
}

uint64_t kiln_column_u64(kiln_query *q)
{
    int64_t v = kiln_column_i64(q);
    if (v < 0) keep_failure(q, KILN_E_IO, "a count is negative");
    return (uint64_t)v;
}

uint32_t kiln_column_u32(kiln_query *q)
{
    uint64_t v = kiln_column_u64(q);
    if (v > UINT32_MAX) keep_failure(q, KILN_E_IO, "a number is above 2^32 - 1");
    return (uint32_t)v;
}

bool kiln_column_bool(kiln_query *q)
{
    int64_t v = kiln_column_i64(q);
    if (v != 0 && v != 1) keep_failure(q, KILN_E_IO, "it is neither 0 nor 1");
    return v == 1;
}

double kiln_column_f64(kiln_query *q)
{
    int column = q->next_column;
    if (sqlite3_column_type(q->statement, column) == SQLITE_NULL) {
        q->next_column++;
        return NAN;
    }
    return sqlite3_column_double(q->statement, next_column(q, SQLITE_FLOAT));
}

float kiln_column_f32(kiln_query *q) { return (float)kiln_column_f64(q); }

kiln_hash kiln_column_hash(kiln_query *q)
{
    kiln_hash h = {{0}};
    size_t bytes;
    const void *p = kiln_column_bytes(q, &bytes);
    if (bytes == sizeof h.bytes)
        memcpy(h.bytes, p, sizeof h.bytes);
    else
        keep_failure(q, KILN_E_IO, "a hash does not have 16 bytes");
    return h;
}

const void *kiln_column_bytes(kiln_query *q, size_t *bytes)
{
    int column = next_column(q, SQLITE_BLOB);
    const void *p = sqlite3_column_blob(q->statement, column); /* before the size, as SQLite asks */
    *bytes = (size_t)sqlite3_column_bytes(q->statement, column);
    if (!p && *bytes > 0) keep_failure(q, KILN_E_NOMEM, "out of memory");
    if (!p) *bytes = 0;
    return p;
}

static const char *column_text(kiln_query *q, size_t *length)
{
    int column = next_column(q, SQLITE_TEXT);
    const char *p = (const char *)sqlite3_column_text(q->statement, column);
    *length = (size_t)sqlite3_column_bytes(q->statement, column);
    if (!p) {
        keep_failure(q, KILN_E_NOMEM, "out of memory"); /* a text is NULL for no other reason */
        *length = 0;
    }
    return p ? p : "";
}

void kiln_column_text(kiln_query *q, char *dst, size_t size)
{
    size_t length;
    const char *p = column_text(q, &length);
    if (length >= size) {
        keep_failure(q, KILN_E_IO, "a text is too long");
        length = 0;
    }
    if (memchr(p, '\0', length)) keep_failure(q, KILN_E_IO, "a text holds a NUL byte");
    memcpy(dst, p, length);
    dst[length] = '\0';
}

const char *kiln_column_text_kept(kiln_query *q, size_t size, kiln_texts *keep)
{
    size_t length;
    const char *out = "", *p = column_text(q, &length);
    if (length >= size) {
        keep_failure(q, KILN_E_IO, "a text is too long");
        return out;
    }
    if (memchr(p, '\0', length)) keep_failure(q, KILN_E_IO, "a text holds a NUL byte");
    if (kiln_texts_add(keep, p, &out, NULL) != KILN_OK)
        keep_failure(q, KILN_E_NOMEM, "out of memory");
    return out;
}

char *kiln_column_text_dup(kiln_query *q)
{
    size_t length;
    const char *p = column_text(q, &length);
    char *copy;
    if (KILN_ALLOC(&copy, length + 1, "a text", NULL) != KILN_OK) {
        keep_failure(q, KILN_E_NOMEM, "out of memory");
        return NULL;
    }
    memcpy(copy, p, length);
    return copy;
}

/* ---- rows ------------------------------------------------------------------------------------ */
kiln_status kiln_row_take(kiln_manifest *m, kiln_query *q, kiln_status st, kiln_error *err)
{
    if (st != KILN_E_IO && st != KILN_E_INPUT) return st;
    if (q) q->status = KILN_OK; /* the next row has its own chance */
    if (m->listen && err) {
        m->listen(m->listener, err->msg);
        return KILN_OK;
    }
    if (!err) return st;
    if (m->is_part) return kiln_fail(err, st, "part '%s' is damaged: %s", m->path, err->msg);
    return kiln_fail(err, st, "manifest '%s' is damaged: %s; kiln-verify lists all damage", m->path,
                     err->msg);
}

kiln_status kiln_row_reserve(void **rows, uint32_t n, size_t size, const char *what,
                             kiln_error *err)
{
    /* as many as the next power of two; what is not used yet takes no memory */
    if (n == 0 || (n & (n - 1)) == 0) {
        void *more = n > UINT32_MAX / 2 ? NULL : realloc(*rows, (n ? 2 * (size_t)n : 1) * size);
        if (!more)
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for %" PRIu32 " %s", n + 1, what);
        *rows = more;
    }
    memset((char *)*rows + n * size, 0, size);
    return KILN_OK;
}

static char **text_of_row(void *rows, uint32_t i, size_t size, size_t field)
{
    return (char **)(void *)((char *)rows + i * size + field);
}

kiln_status kiln_rows_own_texts(void **rows, uint32_t n, size_t size, const size_t *fields,
                                size_t n_fields, kiln_error *err)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        for (size_t k = 0; k < n_fields; k++)
            bytes += strlen(*text_of_row(*rows, i, size, fields[k])) + 1;
    void *block = realloc(*rows, n * size + bytes);
    if (!block) return kiln_fail(err, KILN_E_NOMEM, "out of memory for %zu bytes of text", bytes);
    *rows = block;
    char *to = (char *)block + n * size;
    for (uint32_t i = 0; i < n; i++)
        for (size_t k = 0; k < n_fields; k++) {
            char **text = text_of_row(block, i, size, fields[k]);
            const size_t length = strlen(*text) + 1;
            *text = memcpy(to, *text, length);
            to += length;
        }
    return KILN_OK;
}

/* ---- later tables ---------------------------------------------------------------------------- */
kiln_status kiln_has_table(kiln_manifest *m, const char *name, bool *has, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?",
                             err));
    kiln_bind_text(&q, name);
    const kiln_status st = kiln_query_step(&q, has, err);
    kiln_query_close(&q);
    return st;
}

/* ---- groups ---------------------------------------------------------------------------------- */
kiln_status kiln_group_begin(kiln_manifest *m, bool *own, kiln_error *err)
{
    *own = sqlite3_get_autocommit(m->db) != 0;
    return *own ? kiln_manifest_begin(m, err) : KILN_OK;
}

kiln_status kiln_group_end(kiln_manifest *m, bool own, kiln_status st, kiln_error *err)
{
    if (own && st == KILN_OK) st = kiln_manifest_commit(m, err);
    if (own && st != KILN_OK) kiln_manifest_rollback(m);
    return st;
}
