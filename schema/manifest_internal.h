/* manifest_internal -- what the files of schema/ share: the connection, and queries whose every
 * SQLite call is checked.
 *
 *   kiln_query q;
 *   KILN_TRY(kiln_query_open(m, &q, "UPDATE t SET a = ?, b = ? WHERE c = ?", err));
 *   kiln_bind_i64(&q, 7);
 *   kiln_bind_text(&q, "seven");
 *   kiln_bind_hash(&q, key);
 *   return kiln_query_run(&q, err);
 *
 * Binds and columns go from left to right. The query keeps a failure and reports it at the next
 * run, step or close, so that a list of binds reads as a list. Statements are compiled once for a
 * connection and kept: the SQL text must be a literal, its address is the key. What is bound is
 * borrowed until the query is closed.
 */
#ifndef KILN_SCHEMA_MANIFEST_INTERNAL_H
#define KILN_SCHEMA_MANIFEST_INTERNAL_H

#include "base/memory.h"
#include "schema/manifest.h"

#include <sqlite3.h>

enum {
    KILN_APPLICATION_ID = 0x4b494c4e, /* 'KILN' */
    KILN_SCHEMA_VERSION = 2,
    KILN_STATEMENTS_MAX = 128,             /* all different statements of the library: about 70 */
    KILN_PART_APPLICATION_ID = 0x4b505254, /* 'KPRT' */
    KILN_PART_VERSION = 1,
};

extern const char kiln_manifest_sql[]; /* manifest.sql, NUL-terminated */
extern const char kiln_part_sql[];     /* part.sql, likewise */

typedef struct {
    int fd; /* -1: not held */
    char *path;
} kiln_lock;

struct kiln_manifest {
    char *path; /* as given */
    char *file; /* that SQLite has open: a copy of its own (remote.c), else `path` itself */
    sqlite3 *db;
    kiln_lock lock;
    bool writer, created;
    /* schema version of the file when it was opened; a writer has made it KILN_SCHEMA_VERSION
     * since */
    uint32_t version;
    bool frozen; /* KILN_OPEN_FROZEN, or read as such */
    /* remote.c: what sqlite3_total_changes said when the copy was published last; -1: never */
    int copy_changes;
    uint64_t copy_commits; /* likewise, of the second connection */
    /* a file of part.h: its writer is alone with it, its readers know that it does not change */
    bool is_part;
    /* the system has failed to open or read the file; its content has no part in that */
    bool unreadable;
    /* of a part that is written: blobs that it has are left out; NULL: none are */
    kiln_manifest *base;
    bool made_folder;                    /* the folder of `path` was made by this open */
    int wal_pages;                       /* frames in the WAL after the last commit */
    struct kiln_bulk *bulk;              /* bulk.c; NULL: not opened */
    unsigned threads;                    /* kiln_bulk_use_threads */
    bool passes;                         /* kiln_bulk_pass */
    struct kiln_blob_unpacker *unpacker; /* of all blobs that are read; NULL: none was read yet */
    /* of SQLite's machine: those of the query that runs, or other_steps */
    uint64_t *steps;
    uint64_t other_steps, most_steps;
    kiln_problem_fn
        /* for kiln_manifest_verify: gets each row that breaks a rule, and reading goes on; NULL:
         * reading ends there */
        *listen;
    void *listener;
    uint32_t n_statements;
    struct {
        const char *sql;
        sqlite3_stmt *statement;
    } statements[KILN_STATEMENTS_MAX];
};

/* ---- lock.c ---------------------------------------------------------------------------------- */
/* Takes PATH.lock and writes who holds it. KILN_E_BUSY names the holder. */
kiln_status kiln_lock_take(const char *manifest_path, const char *stage, kiln_lock *out,
                           kiln_error *err) KILN_MUST_CHECK;
void kiln_lock_release(kiln_lock *l); /* removes the file; accepts one that is not held */
/* KILN_E_BUSY, naming the holder, if another process holds it now. */
kiln_status kiln_lock_look(const char *manifest_path, kiln_error *err) KILN_MUST_CHECK;
/* Is this f_type of statfs a file system of another machine? */
bool kiln_magic_is_network(uint64_t f_type);
/* KILN_E_IO when the folder of `path` is on one (kiln_manifest_is_remote). */
kiln_status kiln_refuse_network(const char *path, kiln_error *err) KILN_MUST_CHECK;
/* The folder that holds `path`: "." where it has none. KILN_E_INPUT when it does not fit. */
kiln_status kiln_folder_of(const char *path, char out[4096], kiln_error *err) KILN_MUST_CHECK;

/* ---- open.c ---------------------------------------------------------------------------------- */
/* Writes the WAL back into the file as far as readers allow, if it is long. After each commit. */
kiln_status kiln_checkpoint_if_long(kiln_manifest *m, kiln_error *err) KILN_MUST_CHECK;
void kiln_disconnect(kiln_manifest *m); /* finalizes statements and closes the database */
/* kiln_manifest_open; file: what SQLite opens in its place (remote.c), NULL: the manifest
 * itself. */
kiln_status kiln_manifest_open_file(const char *path, const char *file, kiln_open_mode mode,
                                    const char *stage, bool allow_network, kiln_manifest **out,
                                    kiln_error *err) KILN_MUST_CHECK;
/* KILN_E_BUSY if the manifest has a log that is not in it yet. */
kiln_status kiln_refuse_log(const char *path, kiln_error *err) KILN_MUST_CHECK;
/* Writes all of the log back into the file and empties it. KILN_E_BUSY: a reader keeps it from
 * that. */
/* Empties the log into the file unless a reader keeps it: then it stays, which loses nothing. */
void kiln_checkpoint_if_free(kiln_manifest *m);
kiln_status kiln_checkpoint_all(kiln_manifest *m, kiln_error *err) KILN_MUST_CHECK;
/* A connection to a part: makes an empty one, in whose place nothing is left, or opens one to read,
 * whose header part_read.c has looked at. Its tables are checked. unreadable: as kiln_part_open,
 * set after a failure. */
kiln_status kiln_part_connect(const char *path, bool create, bool *unreadable, kiln_manifest **out,
                              kiln_error *err) KILN_MUST_CHECK;

/* Where the manifest's bytes are, links followed; where they will be if there are none yet. Its
 * lock and claim are beside that place, whatever name it was given by. KILN_E_IO: its folder is not
 * there. */
kiln_status kiln_manifest_real_path(const char *path, char out[4096],
                                    kiln_error *err) KILN_MUST_CHECK;

/* ---- remote.c -------------------------------------------------------------------------------- */
/* Makes m->file from what is at m->path now, or leaves none if the manifest is to be made. With the
 * lock held. */
kiln_status kiln_copy_fetch(const kiln_manifest *m, bool exists, kiln_error *err) KILN_MUST_CHECK;

/* ---- bulk.c ---------------------------------------------------------------------------------- */
/* Cuts off what a killed process has left behind the end of the database, if nobody can need it. At
 * a writer's open, because SQLite's first commit could take it for pages. A failure changes
 * nothing. */
void kiln_bulk_cut_garbage(kiln_manifest *m);
/* the second connection; accepts a manifest without one */
void kiln_bulk_close(kiln_manifest *m);
/* what is left of it; after the first connection is closed */
void kiln_bulk_release(kiln_manifest *m);
/* What it has done (direct.h); NULL: it is not open. */
const struct kiln_direct_state *kiln_bulk_state(const kiln_manifest *m);

/* ---- guard.c --------------------------------------------------------------------------------- */
/* KILN_E_INPUT where a companion of the manifest would make SQLite write, wait or delete elsewhere.
 * Before SQLite opens it. */
kiln_status kiln_guard_files(const char *path, kiln_error *err) KILN_MUST_CHECK;
/* Switches off what a file's schema could run, limits sizes, and counts steps so that every query
 * ends. Before the first query. */
kiln_status kiln_guard_connection(kiln_manifest *m, kiln_error *err) KILN_MUST_CHECK;
/* Counts steps from now on; part of kiln_guard_connection. For a caller that has put a progress
 * handler of its own in its place. */
void kiln_guard_steps(kiln_manifest *m);
/* KILN_E_INPUT, naming the first object that differs, unless the file's objects are those of
 * manifest.sql, text for text (beside the tables of ANALYZE; in version 1 a later table may be
 * absent), as m->version has them. Before the first query of a table. */
kiln_status kiln_guard_schema(kiln_manifest *m, kiln_error *err) KILN_MUST_CHECK;
/* Makes a writer's manifest of an earlier version one of KILN_SCHEMA_VERSION, in one
 * transaction. */
kiln_status kiln_guard_upgrade(kiln_manifest *m, kiln_error *err) KILN_MUST_CHECK;
/* Makes the tables of an empty part: those of part.sql, and some of manifest.sql. Inside a
 * transaction. */
kiln_status kiln_guard_make_part(kiln_manifest *m, kiln_error *err) KILN_MUST_CHECK;

/* ---- stage.c --------------------------------------------------------------------------------- */
/* Rows: a sentence, and the stage: it finished, layers of the kind that it must make are in the
 * file, and it names none. */
extern const char kiln_lost_outputs_sql[];

/* ---- query.c --------------------------------------------------------------------------------- */
typedef struct {
    kiln_manifest *m;
    sqlite3_stmt *statement;
    uint64_t steps; /* taken since it was opened (guard.c) */
    int next_bind, next_column;
    kiln_status status;  /* first failure of a bind or column */
    const char *problem; /* its reason, a literal; NULL: SQLite's own text */
    int column;          /* whose it is; -1: a bind's */
} kiln_query;

/* Translates a result code of SQLite, with its own text; `doing` completes "cannot ... 'PATH'". */
kiln_status kiln_sqlite_fail(kiln_manifest *m, int rc, const char *doing, kiln_error *err);
/* Runs SQL that returns nothing worth reading. */
kiln_status kiln_sql(kiln_manifest *m, const char *sql, kiln_error *err) KILN_MUST_CHECK;

kiln_status kiln_query_open(kiln_manifest *m, kiln_query *q, const char *sql,
                            kiln_error *err) KILN_MUST_CHECK;
void kiln_bind_i64(kiln_query *q, int64_t v);
void kiln_bind_u64(kiln_query *q, uint64_t v);     /* above 2^63 - 1 is a failure */
void kiln_bind_f64(kiln_query *q, double v);       /* NaN becomes NULL */
void kiln_bind_text(kiln_query *q, const char *v); /* NULL is a failure */
void kiln_bind_bytes(kiln_query *q, const void *v, size_t bytes);
void kiln_bind_hash(kiln_query *q, kiln_hash v);
void kiln_bind_null(kiln_query *q);
/* For statements without rows: steps once, closes. */
kiln_status kiln_query_run(kiln_query *q, kiln_error *err) KILN_MUST_CHECK;
/* *row false: no more rows. Does not close. */
kiln_status kiln_query_step(kiln_query *q, bool *row, kiln_error *err) KILN_MUST_CHECK;
/* A column that the row cannot have (NULL, too long, out of range) is damage: KILN_E_IO at the next
 * check. */
int64_t kiln_column_i64(kiln_query *q);
uint64_t kiln_column_u64(kiln_query *q);
uint32_t kiln_column_u32(kiln_query *q);
bool kiln_column_bool(kiln_query *q);
double kiln_column_f64(kiln_query *q); /* NULL gives NaN */
float kiln_column_f32(kiln_query *q);
kiln_hash kiln_column_hash(kiln_query *q);
void kiln_column_text(kiln_query *q, char *dst, size_t size);
/* A copy in `keep`, of at most size - 1 bytes; never NULL. */
const char *kiln_column_text_kept(kiln_query *q, size_t size, kiln_texts *keep);
/* free(); never NULL but after a failure */
char *kiln_column_text_dup(kiln_query *q);
/* until the next step; NULL when empty */
const void *kiln_column_bytes(kiln_query *q, size_t *bytes);
/* Reports a failure of the columns read since the last step. */
kiln_status kiln_query_check(kiln_query *q, kiln_error *err) KILN_MUST_CHECK;
/* What comes of a row that was read and checked (row_check.h) with this status and sentence. Damage
 * is put into a sentence with the manifest's name; or it is reported to kiln_manifest_verify and
 * the row stays as far as it could be read: KILN_OK. */
kiln_status kiln_row_take(kiln_manifest *m, kiln_query *q, kiln_status st,
                          kiln_error *err) KILN_MUST_CHECK;
/* Room for row number n of an array that grows row by row, each zeroed. *rows is freed by the
 * caller. */
kiln_status kiln_row_reserve(void **rows, uint32_t n, size_t size, const char *what,
                             kiln_error *err) KILN_MUST_CHECK;
/* Moves the texts that n rows point to behind the rows, into the same block, so that free(*rows)
 * releases both. fields: offsets of the pointers in a row, none of which is NULL. */
kiln_status kiln_rows_own_texts(void **rows, uint32_t n, size_t size, const size_t *fields,
                                size_t n_fields, kiln_error *err) KILN_MUST_CHECK;
void kiln_query_close(kiln_query *q); /* accepts one that was never opened ({0}) or is closed */
/* Is the table there? A reader asks before each query of a later table (manifest.sql): an absent
 * one is empty. */
kiln_status kiln_has_table(kiln_manifest *m, const char *name, bool *has,
                           kiln_error *err) KILN_MUST_CHECK;
/* Whole query with one number: its first column of its first row. SQL without parameters. */
kiln_status kiln_query_number(kiln_manifest *m, const char *sql, int64_t *out,
                              kiln_error *err) KILN_MUST_CHECK;

/* A group of statements that is one change: begins a transaction unless one is open; *own says
 * whether it did. end commits or, when st is a failure, rolls back, both only if own. Returns st or
 * commit's failure. */
kiln_status kiln_group_begin(kiln_manifest *m, bool *own, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_group_end(kiln_manifest *m, bool own, kiln_status st,
                           kiln_error *err) KILN_MUST_CHECK;

/* ---- digest_lines.c -------------------------------------------------------------------------- */
/* Percent-encodes blanks, control bytes, '%' and DEL. */
kiln_status kiln_name_encode(const char *name, char *out, size_t size,
                             kiln_error *err) KILN_MUST_CHECK;

/* ---- unit.c ---------------------------------------------------------------------------------- */
kiln_status kiln_unit_is_stored(kiln_manifest *m, kiln_hash key, bool *stored,
                                kiln_error *err) KILN_MUST_CHECK;
/* Reads and checks the outputs of the unit whose unit.id this is; r->outputs is freed by the
 * caller, after a failure too. */
kiln_status kiln_unit_read_outputs(kiln_manifest *m, int64_t unit, kiln_unit_result *r,
                                   kiln_error *err) KILN_MUST_CHECK;

/* ---- run_record.c ---------------------------------------------------------------------------- */
/* Conditions on a row of `run`. A run of --shard, or of a part, has stored units and made no
 * output. */
#define KILN_SQL_RUN_STORED_UNITS                                                            \
    "(instr(counters, '\"status\":\"units stored\"') OR instr(counters, '\"status\":\"part " \
    "stored\"'))"
#define KILN_SQL_RUN_MADE_OUTPUT                                                         \
    "(exit_code = 7 AND instr(counters, '\"status\":\"partial\"') OR exit_code = 0 AND " \
    "NOT " KILN_SQL_RUN_STORED_UNITS ")"

/* Reads a row of `run` with the columns id, stage, program, parameters, device, counters, start_ns,
 * stop_ns, exit_code, and whether counters and parameters are JSON. kiln_run_row_release, after a
 * failure too. */
kiln_status kiln_run_row_read(kiln_query *q, kiln_run_row *out, kiln_error *err) KILN_MUST_CHECK;

/* ---- blob.c ---------------------------------------------------------------------------------- */
uint32_t kiln_array_segments(uint64_t raw_bytes); /* how many an array of this size has */
uint64_t kiln_array_segment_bytes(uint64_t raw_bytes, uint32_t segment);
/* has it as many segments as its size needs? Before its size is trusted */
bool kiln_array_is_whole(const kiln_array *a);
/* An array from a list that grows row by row: appends one segment's hash. */
kiln_status kiln_array_append(kiln_array *a, kiln_hash hash, uint64_t raw_bytes,
                              kiln_error *err) KILN_MUST_CHECK;

#endif
