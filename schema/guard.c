/* guard -- what a manifest from a stranger may make SQLite do: read and write rows of our tables,
 * and no more.
 *
 * Problem: a manifest is a program as much as a file. Its triggers run at our writes, a view can
 * take a table's name and never end, a b-tree can lead to the same page a thousand times at each of
 * twenty levels, and the files beside it have a say too: a rollback journal may end with the name
 * of another file, which SQLite deletes once the journal is played back.
 *
 * What is done about it, in this order, at every open by every program:
 *   1. files companions that are no regular files, and a journal that names another file, are
 *      refused before SQLite sees them
 *   2. settings nothing of the file's schema may call functions that reach outside; triggers and
 *      views are off; sizes are limited
 *   3. steps each query has a number of steps that grows with the file, so that every query ends
 *   4. schema the objects must be those that manifest.sql has for the file's version, text for
 *      text; no table is touched before
 * What the rows say is not this file's business: row_check.c. */
#include "schema/manifest_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

/* ---- files ----------------------------------------------------------------------------------- */
/* The last bytes of a journal that names a super-journal (sqlite.org/atomiccommit.html 5.0;
 * pager.c, readSuperJournal). */
static const unsigned char journal_magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};

/* A manifest is in WAL mode and never part of a transaction over several files, so no journal of
 * ours ends like this. */
static kiln_status refuse_named_file(const char *journal, kiln_error *err)
{
    unsigned char end_bytes[sizeof journal_magic];
    int fd = open(journal, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT
                   ? KILN_OK
                   : kiln_fail(err, KILN_E_IO, "cannot open '%s': %s", journal, strerror(errno));
    off_t end = lseek(fd, 0, SEEK_END);
    bool names =
        end >= (off_t)sizeof end_bytes &&
        pread(fd, end_bytes, sizeof end_bytes, end - (off_t)sizeof end_bytes) == sizeof end_bytes &&
        memcmp(end_bytes, journal_magic, sizeof end_bytes) == 0;
    (void)close(fd); /* was only read */
    if (!names) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "the journal '%s' names another file, which SQLite would delete; no program "
                     "of SplatKiln writes such a "
                     "journal: remove it, or get the manifest again",
                     journal);
}

kiln_status kiln_guard_files(const char *path, kiln_error *err)
{
    static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
    char real[PATH_MAX], name[PATH_MAX + 16];
    struct stat s;
    /* SQLite follows links of the manifest itself and looks for its companions where they lead. */
    /* is to be made: check_file has reported everything else */
    if (!realpath(path, real)) return KILN_OK;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(name, sizeof name, "%s%s", real, suffixes[i]);
        if (lstat(name, &s) != 0) continue;
        if (!S_ISREG(s.st_mode))
            return kiln_fail(err, KILN_E_INPUT,
                             "'%s' is not a regular file; SQLite would write through it or wait "
                             "for it: remove it, or get the manifest "
                             "again",
                             name);
    }
    snprintf(name, sizeof name, "%s-journal", real);
    return refuse_named_file(name, err);
}

/* ---- steps ----------------------------------------------------------------------------------- */
/* Why these numbers. Our queries take 5 to 60 steps of SQLite's machine for a row, including
 * sorting and joining, and rows have 20 bytes or more: at most some 3 steps for a byte of the file.
 * Measured: the longest query of kiln-verify, PRAGMA integrity_check, takes 5.5 million steps over
 * 267 MB with 3,122 blocks and chunks, 0.02 for a byte. 16 leave room for plans that a stranger's
 * statistics spoil. The floor is what small files get: 50 million steps are about a second. Steps
 * are counted for each query from its opening. Counting them for each row would not help, because a
 * loop in a b-tree can give endless rows. */
enum { STEPS_A_CALL = 10000, STEPS_A_BYTE = 16 };
#define STEPS_FLOOR UINT64_C(50000000)

static uint64_t bytes_on_disk(const kiln_manifest *m)
{
    char wal[PATH_MAX + 16];
    struct stat s;
    uint64_t bytes = stat(m->file, &s) == 0 ? (uint64_t)s.st_size : 0;
    snprintf(wal, sizeof wal, "%s-wal", m->file);
    return bytes + (stat(wal, &s) == 0 ? (uint64_t)s.st_size : 0);
}

/* SQLite calls it every STEPS_A_CALL steps; true ends the query with SQLITE_INTERRUPT. The file is
 * looked at only where the limit is met, since it grows while a stage writes. */
static int count_steps(void *context)
{
    kiln_manifest *m = context;
    *m->steps += STEPS_A_CALL;
    if (*m->steps <= m->most_steps) return 0;
    m->most_steps = STEPS_FLOOR + STEPS_A_BYTE * bytes_on_disk(m);
    return *m->steps > m->most_steps;
}

/* ---- settings -------------------------------------------------------------------------------- */
static const struct {
    int option, value;
} switches[] = {
    /* no writable_schema, no journal_mode=OFF: the file cannot be broken by SQL */
    {SQLITE_DBCONFIG_DEFENSIVE, 1},
    /* no function with side effects in CHECKs, indexes, views */
    {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
    {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},        /* manifest.sql has none */
    {SQLITE_DBCONFIG_ENABLE_VIEW, 0},           /* its views are for other programs */
    {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0}, /* the default, but a build of SQLite may differ */
    {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0}, /* likewise */
    {SQLITE_DBCONFIG_DQS_DML, 0},               /* "text" is a name, never a string */
    {SQLITE_DBCONFIG_DQS_DDL, 0},
};

/* Each at least twice what manifest.sql and our queries need (tests/unit/stranger_test.c opens,
 * fills and verifies under them). */
enum {
    ROW_BESIDE = 1 << 20, /* beside the packed bytes of a blob in its row */
    SQL_MAX = 64 << 10,   /* one statement; the longest is a view of 2 KiB */
    COLUMNS_MAX = 64,     /* camera has 24 */
    DEPTH_MAX = 100,      /* of an expression: digest_line's is 15 */
    COMPOUND_MAX = 16,    /* SELECTs in a UNION: 5 */
    OPS_MAX = 100000,     /* instructions of one statement: PRAGMA integrity_check has some 3,000 */
    ARGUMENTS_MAX = 16,
    PATTERN_MAX = 100,
    VARIABLES_MAX = 64, /* 24 */
    ATTACHED_MAX = 1,   /* VACUUM attaches what it copies into */
};

static void set_limits(sqlite3 *db)
{
    const struct {
        int id, value;
    } limits[] = {
        {SQLITE_LIMIT_LENGTH, (int)ZSTD_COMPRESSBOUND(KILN_BLOB_MAX) + ROW_BESIDE},
        {SQLITE_LIMIT_SQL_LENGTH, SQL_MAX},
        {SQLITE_LIMIT_COLUMN, COLUMNS_MAX},
        {SQLITE_LIMIT_EXPR_DEPTH, DEPTH_MAX},
        {SQLITE_LIMIT_COMPOUND_SELECT, COMPOUND_MAX},
        {SQLITE_LIMIT_VDBE_OP, OPS_MAX},
        {SQLITE_LIMIT_FUNCTION_ARG, ARGUMENTS_MAX},
        {SQLITE_LIMIT_ATTACHED, ATTACHED_MAX},
        {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_MAX},
        {SQLITE_LIMIT_VARIABLE_NUMBER, VARIABLES_MAX},
        /* foreign keys with cascades count as triggers: layer, chunk, plane, plane_segment */
        {SQLITE_LIMIT_TRIGGER_DEPTH, 8},
        {SQLITE_LIMIT_WORKER_THREADS, 0},
    };
    /* was */
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        (void)sqlite3_limit(db, limits[i].id, limits[i].value);
}

static const char *noun_of(const kiln_manifest *m) { return m->is_part ? "part" : "manifest"; }

static const char *advice_of(const kiln_manifest *m)
{
    return m->is_part ? "remove it, its units are then computed again"
                      : "get the manifest again, or bake the scene anew";
}

/* Reading sqlite_schema for the first time parses all of its SQL: what SQLite says against that is
 * said of the file. */
static kiln_status unreadable(kiln_manifest *m, int rc, kiln_error *err)
{
    switch (rc & 0xff) {
    case SQLITE_ERROR:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_INTERRUPT:
    case SQLITE_TOOBIG:
    case SQLITE_FORMAT:
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' is not a sound %s: SQLite cannot read its list of tables (%s); %s", m->path,
            noun_of(m), (rc & 0xff) == SQLITE_INTERRUPT ? "it does not end" : sqlite3_errmsg(m->db),
            advice_of(m));
    default:
        return kiln_sqlite_fail(m, rc, "read", err);
    }
}

/* Reads and parses the list of tables, so that what is wrong with it is said here and not by
 * whichever query comes first. */
static kiln_status load_schema(kiln_manifest *m, kiln_error *err)
{
    sqlite3_stmt *any = NULL;
    m->other_steps = 0;
    int rc = sqlite3_prepare_v2(m->db, "SELECT 1 FROM sqlite_schema", -1, &any, NULL);
    (void)sqlite3_finalize(any); /* was not stepped */
    return rc == SQLITE_OK ? KILN_OK : unreadable(m, rc, err);
}

void kiln_guard_steps(kiln_manifest *m)
{
    m->steps = &m->other_steps;
    sqlite3_progress_handler(m->db, STEPS_A_CALL, count_steps, m);
}

kiln_status kiln_guard_connection(kiln_manifest *m, kiln_error *err)
{
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        int rc = sqlite3_db_config(m->db, switches[i].option, switches[i].value, NULL);
        if (rc != SQLITE_OK)
            return kiln_fail(
                err, KILN_E_BUG,
                "SQLite %s lacks a setting that guards against hostile files (number %d)",
                sqlite3_libversion(), switches[i].option);
    }
    set_limits(m->db);
    kiln_guard_steps(m);
    KILN_TRY(kiln_sql(m, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0", err));
    return load_schema(m, err);
}

/* ---- schema ---------------------------------------------------------------------------------- */
/* What ANALYZE makes. */
static const char *const statistics[][2] = {
    {"sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"},
    {"sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"},
};

/* Indexes that SQLite makes for UNIQUE and for PRIMARY KEY of tables with a rowid: they are objects
 * without SQL, named sqlite_autoindex_TABLE_NUMBER. A list that is not what manifest.sql makes
 * refuses every manifest. */
static const struct {
    const char *table;
    unsigned char n;
} implicit_indexes[] = {{"blob", 1},  {"unit", 1},  {"quarantine", 1}, {"layer", 1},
                        {"chunk", 2}, {"plane", 1}, {"tile_table", 1}};

enum { WANTED_MAX = 48, WORD_MAX = 40 };

/* One object as its row of sqlite_schema must be. SQLite stores the text of a CREATE statement as
 * it was given, without the ';', so texts are compared with manifest.sql itself; running it in a
 * database in memory to ask would take most of the time of an open. */
typedef struct {
    const char *type;
    char name[WORD_MAX], table[WORD_MAX];
    const char *sql; /* into kiln_manifest_sql; NULL: an implicit index */
    size_t length;
    bool later; /* may be absent, and is made by the first writer */
    bool found;
} wanted_object;

typedef struct {
    wanted_object objects[WANTED_MAX];
    size_t n;
} wanted_list;

/* The ';' that ends the statement at `sql`: those in comments and in 'text' do not. */
static const char *statement_end(const char *sql)
{
    for (;; sql++) {
        sql += strcspn(sql, ";'-");
        if (*sql == '\'')
            sql += 1 + strcspn(sql + 1, "'");
        else if (*sql == '-' && sql[1] == '-')
            sql += strcspn(sql, "\n");
        else if (*sql != '-')
            return sql;
        if (!*sql) return sql;
    }
}

static bool copy_word(const char *from, char to[WORD_MAX])
{
    const size_t n = strcspn(from, " ");
    if (n >= WORD_MAX) return false;
    memcpy(to, from, n);
    to[n] = '\0';
    return true;
}

/* The head of a statement is CREATE TABLE name, CREATE VIEW name or CREATE UNIQUE INDEX name ON
 * table. */
static bool read_statement(const char *sql, wanted_object *o)
{
    static const char *const heads[][2] = {
        {"CREATE TABLE ", "table"}, {"CREATE VIEW ", "view"}, {"CREATE UNIQUE INDEX ", "index"}};
    o->sql = sql;
    o->length = (size_t)(statement_end(sql) - sql);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const size_t head = strlen(heads[i][0]);
        if (strncmp(sql, heads[i][0], head) != 0) continue;
        o->type = heads[i][1];
        if (!copy_word(sql + head, o->name)) return false;
        const char *const on = sql + head + strlen(o->name);
        return copy_word(strncmp(on, " ON ", 4) == 0 ? on + 4 : sql + head, o->table);
    }
    return false;
}

/* What a part has of manifest.sql. */
static const char *const part_tables[] = {"blob", "unit", "unit_output", "quarantine", "run"};

static bool is_of_parts(const char *table)
{
    for (size_t i = 0; i < sizeof part_tables / sizeof *part_tables; i++)
        if (strcmp(table, part_tables[i]) == 0) return true;
    return false;
}

/* Where the next object is put: behind the others, or where a view of an earlier version stands
 * that has its name. NULL: no room.
 */
static wanted_object *place_for(wanted_list *list, const wanted_object *o)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->objects[i].name, o->name) == 0) return &list->objects[i];
    return list->n == WANTED_MAX ? NULL : &list->objects[list->n++];
}

/* Statements of a text of SQL up to `end` (NULL: all of it), which begin at the begin of a line.
 * What is behind `later` (NULL: nothing) are tables without implicit indexes. */
static bool list_statements(wanted_list *list, const char *text, const char *later, const char *end,
                            bool parts_only)
{
    for (const char *at = text; (at = strstr(at, "\nCREATE ")) && (!end || at < end); at++) {
        wanted_object o = {.later = later && at > later};
        if (!read_statement(at + 1, &o)) return false;
        if (parts_only && !is_of_parts(o.table)) continue;
        wanted_object *const place = place_for(list, &o);
        if (!place) return false;
        *place = o;
    }
    return true;
}

/* The text that makes a manifest of version 2 of one of version 1, which is the rest of
 * manifest.sql. */
static const char *version_2_sql(void)
{
    const char *const at = strstr(kiln_manifest_sql, "\n-- VERSION 2");
    return at ? at + 1 : NULL;
}

static bool list_wanted(wanted_list *list, bool of_part, uint32_t version)
{
    const char *const first = version == 1 ? strstr(kiln_manifest_sql, "\n-- LATER TABLES") : NULL,
                      *const next = version_2_sql();
    if (!next || (version == 1 && !first)) return false;
    if (!list_statements(list, kiln_manifest_sql, first, version == 1 ? next : NULL, of_part))
        return false;
    if (of_part && !list_statements(list, kiln_part_sql, NULL, NULL, false)) return false;
    for (size_t i = 0; i < sizeof implicit_indexes / sizeof *implicit_indexes; i++)
        for (unsigned k = 1; k <= implicit_indexes[i].n; k++) {
            if (of_part && !is_of_parts(implicit_indexes[i].table)) break;
            if (list->n == WANTED_MAX) return false;
            wanted_object *o = &list->objects[list->n++];
            o->type = "index";
            snprintf(o->name, sizeof o->name, "sqlite_autoindex_%.16s_%u",
                     implicit_indexes[i].table, k);
            snprintf(o->table, sizeof o->table, "%.16s", implicit_indexes[i].table);
        }
    return true;
}

/* The columns of a row of sqlite_schema. */
typedef struct {
    const char *type, *name, *table, *sql; /* sql: NULL for an implicit index */
} object;

static bool is_statistics(const object *o)
{
    for (size_t i = 0; i < sizeof statistics / sizeof *statistics; i++)
        if (o->sql && strcmp(o->type, "table") == 0 && strcmp(o->name, statistics[i][0]) == 0 &&
            strcmp(o->table, statistics[i][0]) == 0 && strcmp(o->sql, statistics[i][1]) == 0)
            return true;
    return false;
}

static bool is_wanted_object(const object *o, const wanted_object *w)
{
    if (strcmp(o->name, w->name) != 0 || strcmp(o->type, w->type) != 0 ||
        strcmp(o->table, w->table) != 0)
        return false;
    if (!o->sql || !w->sql) return o->sql == w->sql;
    return strlen(o->sql) == w->length && memcmp(o->sql, w->sql, w->length) == 0;
}

/* Marks the wanted object that `o` is; one that is found twice differs too. */
static bool find_wanted(wanted_list *list, const object *o)
{
    for (size_t i = 0; i < list->n; i++)
        if (!list->objects[i].found && is_wanted_object(o, &list->objects[i])) {
            list->objects[i].found = true;
            return true;
        }
    return is_statistics(o);
}

static kiln_status nothing_is_missing(const kiln_manifest *m, const wanted_list *list,
                                      kiln_error *err)
{
    for (size_t i = 0; i < list->n; i++)
        if (!list->objects[i].found && !list->objects[i].later)
            return kiln_fail(
                err, KILN_E_INPUT, "'%s' is not a sound %s: its %s '%s' is missing; %s", m->path,
                noun_of(m), list->objects[i].type, list->objects[i].name, advice_of(m));
    return KILN_OK;
}

static kiln_status compare_objects(kiln_manifest *m, sqlite3_stmt *rows, wanted_list *list,
                                   kiln_error *err)
{
    for (;;) {
        const char *text[4];
        int rc = sqlite3_step(rows);
        if (rc == SQLITE_DONE) return nothing_is_missing(m, list, err);
        if (rc != SQLITE_ROW) return unreadable(m, rc, err);
        for (int i = 0; i < 4; i++) text[i] = (const char *)sqlite3_column_text(rows, i);
        const object o = {text[0] ? text[0] : "", text[1] ? text[1] : "", text[2] ? text[2] : "",
                          text[3]};
        if (!find_wanted(list, &o))
            return kiln_fail(err, KILN_E_INPUT,
                             "'%s' is not a sound %s: its %.16s '%.100s' differs from that of "
                             "schema version %u, which its own "
                             "programs never change; %s",
                             m->path, noun_of(m), o.type, o.name, (unsigned)m->version,
                             advice_of(m));
    }
}

static kiln_status make_object(kiln_manifest *m, const wanted_object *o, kiln_error *err)
{
    char sql[4096];
    const int n = snprintf(sql, sizeof sql, "%.*s", (int)o->length, o->sql);
    return (size_t)n < sizeof sql
               ? kiln_sql(m, sql, err)
               : kiln_fail(err, KILN_E_BUG, "the table '%s' is too long", o->name);
}

kiln_status kiln_guard_make_part(kiln_manifest *m, kiln_error *err)
{
    wanted_list list = {.n = 0};
    if (!list_wanted(&list, true, KILN_SCHEMA_VERSION))
        return kiln_fail(err, KILN_E_BUG, "cannot list the objects of part.sql");
    KILN_TRY(kiln_sql(m, kiln_part_sql, err));
    for (size_t i = 0; i < list.n; i++)
        if (is_of_parts(list.objects[i].table) && list.objects[i].sql)
            KILN_TRY(make_object(m, &list.objects[i], err));
    return KILN_OK;
}

static kiln_status check_schema(kiln_manifest *m, wanted_list *list, kiln_error *err)
{
    sqlite3_stmt *rows = NULL;
    m->other_steps = 0;
    if (!list_wanted(list, m->is_part, m->is_part ? KILN_SCHEMA_VERSION : m->version))
        return kiln_fail(err, KILN_E_BUG, "cannot list the objects of manifest.sql");
    int rc = sqlite3_prepare_v2(m->db, "SELECT type, name, tbl_name, sql FROM sqlite_schema", -1,
                                &rows, NULL);
    kiln_status st = rc == SQLITE_OK ? compare_objects(m, rows, list, err) : unreadable(m, rc, err);
    (void)sqlite3_finalize(rows); /* accepts NULL; repeats what was reported */
    return st;
}

kiln_status kiln_guard_schema(kiln_manifest *m, kiln_error *err)
{
    wanted_list list = {.n = 0};
    return check_schema(m, &list, err);
}

/* The tables are looked at again inside the transaction, so that what is made over them is what was
 * checked. */
static kiln_status upgrade(kiln_manifest *m, kiln_error *err)
{
    wanted_list list = {.n = 0};
    KILN_TRY(check_schema(m, &list, err));
    for (size_t i = 0; i < list.n; i++)
        if (!list.objects[i].found) KILN_TRY(make_object(m, &list.objects[i], err));
    return kiln_sql(m, version_2_sql(), err);
}

/* One transaction, so that after a crash the manifest is of version 1 as it was, or of this one
 * with all of its tables. */
kiln_status kiln_guard_upgrade(kiln_manifest *m, kiln_error *err)
{
    bool own;
    if (m->version == KILN_SCHEMA_VERSION) return KILN_OK;
    KILN_TRY(kiln_group_begin(m, &own, err));
    const kiln_status st = kiln_group_end(m, own, upgrade(m, err), err);
    if (st == KILN_OK) m->version = KILN_SCHEMA_VERSION;
    return st;
}
