/* mutate_rows -- changes of cells and rows by SQL, past STRICT, NOT NULL, CHECKs, foreign keys and,
 * where asked for, unique indexes. */
#include "tests/mutate/mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sets a cell of the k-th row; false where the row or the table refuses. */
static bool set_cell(mutation *m, const char *table, const char *column, int64_t k,
                     void (*bind)(mutation *, sqlite3_stmt *, int, sqlite3_value *))
{
    const char *row = row_of(m, table, k);
    sqlite3_stmt *was = ask(m, "SELECT %s FROM %s WHERE %s", column, table, row);
    sqlite3_stmt *s = ask(m, "UPDATE OR IGNORE %s SET %s = ?1 WHERE %s", table, column, row);
    bool done = s && was && sqlite3_step(was) == SQLITE_ROW;
    sqlite3_value *value = done ? sqlite3_value_dup(sqlite3_column_value(was, 0)) : NULL;
    (void)sqlite3_finalize(was);
    if (done) {
        say("%s.%s of row %lld: ", table, column, (long long)k);
        bind(m, s, 1, value);
        done = sqlite3_step(s) == SQLITE_DONE && sqlite3_changes(m->db) > 0;
    }
    (void)sqlite3_finalize(s);
    sqlite3_value_free(value);
    return done;
}

static int64_t some_row(mutation *m, const char *table)
{
    return (int64_t)below(m, (uint64_t)number_of(m, "SELECT count(*) FROM %s", table));
}

static void bind_other_row(mutation *m, const char *table, const char *column)
{
    say(" copied from another row");
    char *row = strdup(row_of(m, table, some_row(m, table)));
    (void)sql(m, "UPDATE OR IGNORE %s SET %s = (SELECT %s FROM %s LIMIT 1 OFFSET %d) WHERE %s",
              table, column, column, table, (int)some_row(m, table), row);
    free(row);
}

/* What goes with a changed row, half of the time, so that programs go past the digests, or compute
 * again. */
static void follow_up(mutation *m)
{
    if (chance(m, 45)) recompute_digests(m);
    if (chance(m, 35)) make_stale(m);
}

bool change_cell(mutation *m)
{
    if (chance(m, 30) && !loosen(m)) return false;
    char table[64], column[64];
    (void)snprintf(table, sizeof table, "%s", some_table(m));
    (void)snprintf(column, sizeof column, "%s", some_column(m, table));
    say("cell ");
    if (chance(m, 10)) {
        say("%s.%s", table, column);
        bind_other_row(m, table, column);
    } else if (!set_cell(m, table, column, some_row(m, table), bind_value)) {
        return false;
    }
    follow_up(m);
    return true;
}

static void bind_size(mutation *m, sqlite3_stmt *s, int i, sqlite3_value *was)
{
    const int64_t old = was ? sqlite3_value_int64(was) : 0;
    int64_t v;
    switch (below(m, 6)) {
    case 0:
        v = old + 1;
        break;
    case 1:
        v = old - 1;
        break;
    case 2:
        v = old / 2;
        break;
    case 3:
        v = old * 2;
        break;
    case 4:
        v = 0;
        break;
    default:
        v = (int64_t)(hostile_number(m) & INT64_MAX);
    }
    (void)sqlite3_bind_int64(s, i, v);
    say("%lld, was %lld", (long long)v, (long long)old);
}

bool change_size(mutation *m)
{
    static const char *const sizes[][2] = {
        {"blob", "raw_bytes"},        {"blob", "elem"},
        {"unit_output", "raw_bytes"}, {"unit_output", "elem"},
        {"unit_output", "segment"},   {"layer", "count"},
        {"layer", "sh_degree"},       {"chunk", "count"},
        {"chunk", "ordinal"},         {"chunk", "level"},
        {"plane", "components"},      {"plane", "raw_bytes"},
        {"plane_segment", "segment"}, {"camera", "width"},
        {"camera", "height"},         {"photo", "width"},
        {"photo", "height"},          {"photo_mask", "width"},
        {"photo_mask", "height"},     {"tile_table", "width"},
        {"tile_table", "height"},     {"tile_table", "tiles_x"},
        {"tile_table", "tiles_y"},    {"tile_table", "visible"},
        {"tile_table", "pairs"},      {"tile_band", "row0"},
        {"tile_band", "row1"},        {"tile_band", "pairs"},
        {"tile_band", "band"},        {"tile_segment", "band"},
        {"tile_segment", "segment"},  {"tile_segment", "raw_bytes"},
        {"image", "width"},           {"image", "height"},
        {"image", "visible"},         {"image", "pairs"},
        {"scene", "sh_degree"},       {"scene", "rows_read"},
        {"scene", "rows_dropped"},    {"source_file", "size"},
        {"stage", "version"},         {"quarantine", "attempts"},
        {"plane_segment", "plane"},   {"plane", "chunk"},
        {"chunk", "layer"},           {"tile_segment", "tile_table"},
        {"level_error", "chunk"},     {"level_error", "step"},
        {"level_origin", "layer"},    {"level_origin", "antialiased"}};
    const char *const *which = sizes[below(m, sizeof sizes / sizeof *sizes)];
    say("size ");
    if (!set_cell(m, which[0], which[1], some_row(m, which[0]), bind_size)) return false;
    follow_up(m);
    return true;
}

/* A name, and the references to it or not. */
static void bind_name(mutation *m, sqlite3_stmt *s, int i, sqlite3_value *was)
{
    size_t bytes;
    (void)was;
    const char *name = hostile_name(m, &bytes);
    (void)sqlite3_bind_text64(s, i, name, bytes, SQLITE_TRANSIENT, SQLITE_UTF8);
    say("'%.60s' of %zu bytes", name, bytes);
}

static bool rename_camera(mutation *m)
{
    size_t bytes;
    char *was = text_of(m, "SELECT name FROM camera LIMIT 1 OFFSET %d", (int)some_row(m, "camera"));
    const char *name = hostile_name(m, &bytes);
    bool done = was != NULL;
    say("camera '%s' and all that name it: '%.60s' of %zu bytes", was ? was : "", name, bytes);
    static const char *const tables[][2] = {{"camera", "name"},
                                            {"photo", "camera"},
                                            {"photo_mask", "camera"},
                                            {"tile_table", "camera"},
                                            {"image", "camera"}};
    for (size_t k = 0; done && k < 5; k++) {
        sqlite3_stmt *s = ask(m, "UPDATE OR IGNORE %s SET %s = ?1 WHERE %s = ?2", tables[k][0],
                              tables[k][1], tables[k][1]);
        (void)sqlite3_bind_text64(s, 1, name, bytes, SQLITE_TRANSIENT, SQLITE_UTF8);
        (void)sqlite3_bind_text(s, 2, was, -1, SQLITE_TRANSIENT);
        done = sqlite3_step(s) == SQLITE_DONE;
        (void)sqlite3_finalize(s);
    }
    free(was);
    if (chance(m, 50)) make_stale(m);
    return done;
}

bool change_name(mutation *m)
{
    static const char *const names[][2] = {
        {"camera", "name"},        {"chunk", "name"},          {"chunk", "parent"},
        {"plane", "name"},         {"layer", "kind"},          {"stage_output", "role"},
        {"stage", "name"},         {"stage_output", "stage"},  {"unit", "stage"},
        {"unit", "name"},          {"unit_output", "name"},    {"parameter", "name"},
        {"parameter", "value"},    {"tile_segment", "name"},   {"tile_table", "camera"},
        {"tile_table", "profile"}, {"image", "camera"},        {"image", "device_kind"},
        {"image", "profile"},      {"quarantine", "name"},     {"quarantine", "reason"},
        {"quarantine", "device"},  {"quarantine", "stage"},    {"run", "device"},
        {"run", "program"},        {"run", "stage"},           {"camera", "model"},
        {"camera", "split"},       {"plane", "type"},          {"stage", "state"},
        {"scene", "kind"},         {"scene", "name"},          {"scene", "up_axis"},
        {"scene", "frame"},        {"image", "format"},        {"photo", "camera"},
        {"photo_mask", "camera"},  {"level_origin", "profile"}};
    say("name ");
    if (chance(m, 25)) return rename_camera(m);
    const char *const *which = names[below(m, sizeof names / sizeof *names)];
    if (!set_cell(m, which[0], which[1], some_row(m, which[0]), bind_name)) return false;
    follow_up(m);
    return true;
}

/* ---- paths ----------------------------------------------------------------------------------- */
static void bind_path(mutation *m, sqlite3_stmt *s, int i, sqlite3_value *was)
{
    static const char *const ends[] = {"victim.png", "victim.npy", "fifo", "",
                                       "victim.db",  "none.png",   "loop"};
    static const char *const others[] = {"../victims/victim.png",
                                         "/dev/zero",
                                         "/dev/full",
                                         "/proc/self/mem",
                                         "/",
                                         ".",
                                         "..",
                                         "x.db",
                                         "x.db-wal",
                                         "/etc/passwd"};
    char path[4096];
    (void)was;
    if (chance(m, 60))
        (void)snprintf(path, sizeof path, "%s/%s", m->victims,
                       ends[below(m, sizeof ends / sizeof *ends)]);
    else
        (void)snprintf(path, sizeof path, "%s", others[below(m, sizeof others / sizeof *others)]);
    (void)sqlite3_bind_text(s, i, path, -1, SQLITE_TRANSIENT);
    say("'%s'", path);
}

bool change_path(mutation *m)
{
    static const char *const paths[][2] = {{"image", "path"},       {"image", "path"},
                                           {"photo", "path"},       {"photo_mask", "path"},
                                           {"source_file", "path"}, {"scene", "source_path"}};
    const char *const *which = paths[below(m, sizeof paths / sizeof *paths)];
    say("path ");
    if (!set_cell(m, which[0], which[1], some_row(m, which[0]), bind_path)) return false;
    if (chance(m, 70)) make_stale(m);
    return true;
}

/* ---- JSON ------------------------------------------------------------------------------------ */
static void nest(char *out, size_t n, char c)
{
    memset(out, c, n);
    out[n] = '\0';
}

/* A value of the text becomes another one: a number, a word, an object. */
static void spoil(mutation *m, const char *was, char *out, size_t size)
{
    static const char *const tokens[] = {"-1",
                                         "1e999",
                                         "18446744073709551616",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "0.5",
                                         "null",
                                         "\"text\"",
                                         "[]",
                                         "{}",
                                         "true",
                                         "\"\\u0000\"",
                                         "1e-400",
                                         "4294967296",
                                         "\"\\ud800\"",
                                         "\"inf\"",
                                         "[[[[[[[[]]]]]]]]",
                                         "0"};
    const char *token = tokens[below(m, sizeof tokens / sizeof *tokens)];
    const size_t n = strlen(was);
    size_t colons[512], k = 0;
    for (size_t i = 0; i < n && k < 512; i++)
        if (was[i] == ':' || was[i] == '[' || was[i] == ',') colons[k++] = i + 1;
    if (k == 0) {
        (void)snprintf(out, size, "%s", token);
        return;
    }
    const size_t at = colons[below(m, k)];
    size_t end = at;
    int depth = 0;
    bool quoted = false;
    for (; end < n; end++) { /* the value that stands there, so that what comes out is JSON */
        const char c = was[end];
        if (c == '"' && was[end - 1] != '\\') quoted = !quoted;
        if (quoted) continue;
        if (c == '{' || c == '[') depth++;
        if ((c == '}' || c == ']') && depth-- == 0) break;
        if (c == ',' && depth == 0) break;
    }
    (void)snprintf(out, size, "%.*s%s%s", (int)at, was, token, was + end);
}

static void bind_json(mutation *m, sqlite3_stmt *s, int i, sqlite3_value *was)
{
    static char out[VALUE_TEXT];
    const char *old = was ? (const char *)sqlite3_value_text(was) : NULL;
    switch (below(m, 10)) {
    case 0:
        (void)snprintf(out, sizeof out, "%s", "{");
        break;
    case 1:
        (void)snprintf(out, sizeof out, "%s", "[]");
        break;
    case 2:
        nest(out, 100000, '[');
        break;
    case 3:
        (void)snprintf(out, sizeof out, "%s", "{\"a\": \"\\u001b]0;pwned\\u0007\\u009b\\u202e\"}");
        break;
    default:
        spoil(m, old ? old : "{}", out, sizeof out);
    }
    (void)sqlite3_bind_text(s, i, out, -1, SQLITE_TRANSIENT);
    say("%zu bytes beginning '%.70s'", strlen(out), out);
}

bool change_json(mutation *m)
{
    static const char *const texts[][2] = {
        {"unit", "counters"},  {"unit", "counters"}, {"unit", "counters"}, {"run", "counters"},
        {"run", "parameters"}, {"scene", "notes"},   {"scene", "notes"},   {"scene", "transforms"}};
    const char *const *which = texts[below(m, sizeof texts / sizeof *texts)];
    say("JSON ");
    if (!set_cell(m, which[0], which[1], some_row(m, which[0]), bind_json)) return false;
    if (chance(m, 70)) make_stale(m);
    return true;
}

/* ---- rows ------------------------------------------------------------------------------------ */
bool delete_rows(mutation *m)
{
    char table[64];
    (void)snprintf(table, sizeof table, "%s", some_table(m));
    if (chance(m, 25)) {
        say("all rows of %s deleted", table);
        (void)sql(m, "DELETE FROM %s", table);
    } else {
        const int64_t k = some_row(m, table);
        say("row %lld of %s deleted", (long long)k, table);
        if (!sql(m, "DELETE FROM %s WHERE %s", table, row_of(m, table, k))) return false;
    }
    follow_up(m);
    return true;
}

/* A row twice: its unique indexes go, the row is written again, and the indexes come back as they
 * were, without it. */
bool copy_row(mutation *m)
{
    char table[64];
    (void)snprintf(table, sizeof table, "%s", some_table(m));
    char *made = text_of(m, "SELECT sql FROM sqlite_schema WHERE name = '%s'", table);
    const bool has_rowid = made && !strstr(made, "WITHOUT ROWID");
    free(made);
    if (!has_rowid) return false;
    char *columns = text_of(m,
                            "SELECT group_concat(name) FROM pragma_table_info('%s') WHERE NOT (pk "
                            "AND type = 'INTEGER')",
                            table);
    say("a row of %s twice, past its unique indexes", table);
    bool done = sql(m,
                    "PRAGMA writable_schema = on; CREATE TABLE kept AS SELECT * FROM sqlite_schema "
                    "WHERE tbl_name = '%s';"
                    " DELETE FROM sqlite_schema WHERE tbl_name = '%s' AND type = 'index';"
                    " UPDATE sqlite_schema SET sql = replace(replace(sql, 'NOT NULL UNIQUE', 'NOT "
                    "NULL'), 'BLOB PRIMARY KEY', 'BLOB')"
                    " WHERE name = '%s';"
                    " UPDATE sqlite_schema SET sql = substr(sql, 1, instr(sql, 'UNIQUE (') - 1) || "
                    "'CHECK (1)) STRICT'"
                    " WHERE name = '%s' AND instr(sql, 'UNIQUE (')",
                    table, table, table, table);
    (void)sqlite3_close(m->db);
    done = done && sqlite3_open(m->path, &m->db) == SQLITE_OK;
    done = done && sql(m,
                       "PRAGMA foreign_keys = off; PRAGMA ignore_check_constraints = on; INSERT "
                       "INTO %s (%s) SELECT %s FROM %s "
                       "LIMIT 1 OFFSET %d",
                       table, columns, columns, table, (int)some_row(m, table));
    (void)sql(m,
              "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = (SELECT sql FROM kept "
              "WHERE kept.name = '%s') WHERE "
              "name = '%s';"
              " INSERT INTO sqlite_schema SELECT * FROM kept WHERE type = 'index'; DROP TABLE kept",
              table, table);
    free(columns);
    return done;
}
