/* mutate FILE SEED VICTIMS NUMBER -- makes a manifest or a part hostile (mutate.h) and prints what
 * was done to it, a line a change. The same file, seed and number give the same change. */
#include "tests/mutate/mutate.h"

#include "schema/part_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- chance ---------------------------------------------------------------------------------- */
/* splitmix64 (Vigna) */
uint64_t any(mutation *m)
{
    uint64_t z = m->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t below(mutation *m, uint64_t n) { return n ? any(m) % n : 0; }
bool chance(mutation *m, unsigned percent) { return below(m, 100) < percent; }

void say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vprintf(fmt, args);
    va_end(args);
}

/* ---- SQL ------------------------------------------------------------------------------------- */
static char *compose(const char *fmt, va_list args)
{
    char *text = sqlite3_vmprintf(fmt, args);
    if (!text) abort();
    return text;
}

bool sql(mutation *m, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *text = compose(fmt, args);
    va_end(args);
    const int rc = sqlite3_exec(m->db, text, NULL, NULL, NULL);
    sqlite3_free(text);
    return rc == SQLITE_OK;
}

static sqlite3_stmt *prepare(mutation *m, const char *fmt, va_list args)
{
    sqlite3_stmt *s = NULL;
    char *text = compose(fmt, args);
    if (sqlite3_prepare_v2(m->db, text, -1, &s, NULL) != SQLITE_OK) s = NULL;
    sqlite3_free(text);
    return s;
}

sqlite3_stmt *ask(mutation *m, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    sqlite3_stmt *s = prepare(m, fmt, args);
    va_end(args);
    return s;
}

int64_t number_of(mutation *m, const char *fmt, ...)
{
    va_list args;
    int64_t n = 0;
    va_start(args, fmt);
    sqlite3_stmt *s = prepare(m, fmt, args);
    va_end(args);
    if (s && sqlite3_step(s) == SQLITE_ROW) n = sqlite3_column_int64(s, 0);
    (void)sqlite3_finalize(s);
    return n;
}

char *text_of(mutation *m, const char *fmt, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, fmt);
    sqlite3_stmt *s = prepare(m, fmt, args);
    va_end(args);
    if (s && sqlite3_step(s) == SQLITE_ROW && sqlite3_column_text(s, 0))
        text = strdup((const char *)sqlite3_column_text(s, 0));
    (void)sqlite3_finalize(s);
    return text;
}

static bool connect_db(mutation *m)
{
    if (sqlite3_open_v2(m->path, &m->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) return false;
    (void)sqlite3_db_config(m->db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    return sql(m, "PRAGMA foreign_keys = off; PRAGMA ignore_check_constraints = on; PRAGMA "
                  "synchronous = off; PRAGMA trusted_schema = on");
}

static void disconnect(mutation *m)
{
    (void)sqlite3_close(m->db);
    m->db = NULL;
}

static bool reconnect(mutation *m)
{
    disconnect(m);
    return connect_db(m);
}

/* What sqlite_schema says is put aside in a table of the connection's file that tighten drops
 * again. */
bool loosen(mutation *m)
{
    if (m->loose) return true;
    if (!sql(m, "PRAGMA writable_schema = on; CREATE TABLE aside AS SELECT rowid AS id, sql FROM "
                "sqlite_schema WHERE type = 'table'"))
        return false;
    m->loose = sql(m, "UPDATE sqlite_schema SET sql = replace(replace(replace(sql, ') STRICT, "
                      "WITHOUT', ') WITHOUT'), ') STRICT', "
                      "')'), ' NOT NULL', '')"
                      " WHERE type = 'table' AND name <> 'aside'");
    return reconnect(m) && m->loose;
}

bool tighten(mutation *m)
{
    if (!m->loose) return true;
    m->loose = false;
    return sql(m, "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = (SELECT sql FROM "
                  "aside WHERE id = sqlite_schema.rowid)"
                  " WHERE rowid IN (SELECT id FROM aside); DROP TABLE aside") &&
           reconnect(m);
}

const char *some_table(mutation *m)
{
    static char name[64];
    const int64_t n = number_of(m, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND "
                                   "name NOT LIKE 'sqlite%%' AND name <> 'aside'");
    for (int tries = 0; tries < 50; tries++) {
        char *t = text_of(m,
                          "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE "
                          "'sqlite%%' AND name <> 'aside' ORDER BY name"
                          " LIMIT 1 OFFSET %d",
                          (int)below(m, (uint64_t)n));
        (void)snprintf(name, sizeof name, "%s", t ? t : "scene");
        free(t);
        if (number_of(m, "SELECT count(*) FROM %s", name) > 0) break;
    }
    return name;
}

const char *some_column(mutation *m, const char *table)
{
    static char name[64];
    const int64_t n = number_of(m, "SELECT count(*) FROM pragma_table_info('%s')", table);
    char *c = text_of(m, "SELECT name FROM pragma_table_info('%s') LIMIT 1 OFFSET %d", table,
                      (int)below(m, (uint64_t)n));
    (void)snprintf(name, sizeof name, "%s", c ? c : "rowid");
    free(c);
    return name;
}

const char *row_of(mutation *m, const char *table, int64_t k)
{
    static char text[512];
    char *key =
        text_of(m, "SELECT group_concat(name) FROM pragma_table_info('%s') WHERE pk > 0", table);
    char *made = text_of(m, "SELECT sql FROM sqlite_schema WHERE name = '%s'", table);
    const bool has_rowid = !key || !made || !strstr(made, "WITHOUT ROWID");
    const char *of = has_rowid ? "rowid" : key;
    (void)snprintf(text, sizeof text, "(%s) = (SELECT %s FROM %s LIMIT 1 OFFSET %lld)", of, of,
                   table, (long long)k);
    free(key);
    free(made);
    return text;
}

/* ---- what goes with a change ----------------------------------------------------------------- */
static kiln_hash hash_lines(mutation *m, const char *kind, const char *name)
{
    kiln_hasher *h = kiln_hasher_new();
    sqlite3_stmt *s = ask(m, "SELECT line FROM digest_line WHERE kind = ?1 AND name = ?2 ORDER BY "
                             "major, minor, segment");
    (void)sqlite3_bind_text(s, 1, kind, -1, SQLITE_TRANSIENT);
    (void)sqlite3_bind_text(s, 2, name, -1, SQLITE_TRANSIENT);
    while (s && sqlite3_step(s) == SQLITE_ROW)
        kiln_hasher_update(h, sqlite3_column_text(s, 0), (size_t)sqlite3_column_bytes(s, 0));
    (void)sqlite3_finalize(s);
    return kiln_hasher_end(h);
}

void recompute_digests(mutation *m)
{
    char hex[33];
    sqlite3_stmt *s = ask(m, "SELECT role, layer FROM stage_output WHERE layer IS NOT NULL");
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        const char *role = (const char *)sqlite3_column_text(s, 0);
        (void)kiln_hash_hex(hash_lines(m, "layer", role ? role : ""), hex);
        (void)sql(m, "UPDATE layer SET digest = x'%s' WHERE id = %lld", hex,
                  (long long)sqlite3_column_int64(s, 1));
        (void)sql(m, "UPDATE stage_output SET digest = x'%s' WHERE layer = %lld", hex,
                  (long long)sqlite3_column_int64(s, 1));
    }
    (void)sqlite3_finalize(s);
    s = ask(m, "SELECT id, replace(replace(camera, '%%', '%%25'), ' ', '%%20') || ':' || profile "
               "|| iif(antialiased, '_aa', '') || "
               "printf(':near=%%g', near_m)"
               " FROM tile_table");
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 1);
        (void)kiln_hash_hex(hash_lines(m, "table", name ? name : ""), hex);
        (void)sql(m, "UPDATE tile_table SET digest = x'%s' WHERE id = %lld", hex,
                  (long long)sqlite3_column_int64(s, 0));
    }
    (void)sqlite3_finalize(s);
    say(", digests recomputed");
}

void make_stale(mutation *m)
{
    (void)sql(m, "UPDATE stage SET input_key = randomblob(16) WHERE name <> 'import'");
    say(", all stages due");
}

/* ---- which change ---------------------------------------------------------------------------- */
static const struct {
    change_fn *change;
    unsigned weight;
    bool on_file;
} changes[] = {
    {change_cell, 26, false},       {change_size, 8, false},     {change_name, 7, false},
    {change_path, 5, false},        {change_json, 6, false},     {delete_rows, 5, false},
    {copy_row, 3, false},           {change_blob, 16, false},    {change_packed, 3, false},
    {reshape_plane, 6, false},      {recount_chunk, 3, false},   {change_unit, 8, false},
    {change_table_array, 6, false}, {change_schema, 8, false},   {change_bytes, 7, true},
    {change_wal, 3, true},          {change_companion, 2, true}, {change_claim, 2, true},
    {change_tree, 6, false},
};
enum { N_CHANGES = sizeof changes / sizeof *changes };

static unsigned choose(mutation *m)
{
    unsigned sum = 0, i;
    for (i = 0; i < N_CHANGES; i++) sum += changes[i].weight;
    uint64_t at = below(m, sum);
    for (i = 0; at >= changes[i].weight; i++) at -= changes[i].weight;
    return i;
}

/* One that finds something to change; `first` is tried first, if there is such a kind of change. */
static bool make_one(mutation *m, uint64_t first)
{
    for (int tries = 0; tries < 20; tries++) {
        const unsigned i = tries == 0 && first < N_CHANGES ? (unsigned)first : choose(m);
        /* an earlier one broke the file: that must do */
        if (!changes[i].on_file && !connect_db(m)) {
            disconnect(m);
            say("(the file opens no more)\n");
            return true;
        }
        bool done = changes[i].change(m);
        if (!changes[i].on_file) {
            done = tighten(m) && done;
            disconnect(m);
        }
        if (done) {
            say("\n");
            return true;
        }
        say(" (nothing to change); ");
    }
    return false;
}

/* A part gets a right seal, as whoever makes one can give it; else hardly anything behind the seal
 * would be met. Where its rows cannot be read, it stays as it is. */
static void seal_part(mutation *m)
{
    char hex[33];
    kiln_hash seal;
    kiln_manifest *part;
    if (kiln_part_connect(m->path, false, NULL, &part, NULL) != KILN_OK) return;
    const bool sealed = kiln_part_seal(part, &seal, NULL) == KILN_OK;
    kiln_manifest_close(part);
    if (!sealed) return;
    if (connect_db(m) && sql(m, "UPDATE part SET seal = x'%s'", kiln_hash_hex(seal, hex)))
        say("sealed again\n");
    disconnect(m);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        (void)fprintf(stderr, "mutate FILE SEED VICTIMS NUMBER\n");
        return 2;
    }
    mutation m = {.path = argv[1], .random = strtoull(argv[2], NULL, 0), .victims = argv[3]};
    const unsigned n = chance(&m, 80) ? 1 : chance(&m, 80) ? 2 : 4;
    /* The first mutations of a run go through all kinds of changes twice, as not every bake has
     * something for each; chance alone would take hundreds to come to all. */
    const uint64_t number = strtoull(argv[4], NULL, 10);
    bool done = make_one(&m, number < 2 * N_CHANGES ? number % N_CHANGES : N_CHANGES);
    for (unsigned i = 1; done && i < n; i++) (void)make_one(&m, N_CHANGES);
    if (chance(&m, 80)) seal_part(&m);
    return done ? 0 : 1;
}
