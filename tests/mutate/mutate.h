/* mutate -- makes a manifest or a part hostile: one or two changes that a seed chooses, and their
 * names in words.
 *
 * A change works on an open connection whose CHECKs and foreign keys are off, or on the file. It
 * says what it did with `say`, and returns false where the manifest has nothing for it to change:
 * then another one is chosen. DESIGN.md has the kinds. */
#ifndef KILN_TESTS_MUTATE_H
#define KILN_TESTS_MUTATE_H

#include "schema/hash.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t random;  /* state */
    const char *path; /* of the manifest or part */
    /* folder outside of the bake's: victim.png, victim.npy, fifo; nothing may touch it */
    const char *victims;
    sqlite3 *db; /* open while a change of rows or schema is made */
    bool loose;  /* STRICT and NOT NULL are off for now */
} mutation;

typedef bool change_fn(mutation *m);

/* ---- chance: mutate.c ------------------------------------------------------------------------ */
uint64_t any(mutation *m);               /* 64 random bits */
uint64_t below(mutation *m, uint64_t n); /* 0 .. n - 1; 0 for n = 0 */
bool chance(mutation *m, unsigned percent);
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- SQL: mutate.c --------------------------------------------------------------------------- */
/* Runs statements; false where one fails, which some are expected to. */
bool sql(mutation *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* NULL: it fails */
sqlite3_stmt *ask(mutation *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* first column, 0: none */
int64_t number_of(mutation *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* the same, NULL: none; free() */
char *text_of(mutation *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Closes and opens again, so that a changed schema counts. STRICT and NOT NULL go, or come back as
 * they were. */
bool loosen(mutation *m);
bool tighten(mutation *m);
/* A table with rows, or any; a column of it. Names live in m's own memory until the next call. */
const char *some_table(mutation *m);
const char *some_column(mutation *m, const char *table);
/* SQL that is true for one row of a table, the k-th. */
const char *row_of(mutation *m, const char *table, int64_t k);
/* Layers and tables are named by what they hold now; stages run again over the units that there
 * are. */
void recompute_digests(mutation *m);
void make_stale(mutation *m);

/* ---- values.c -------------------------------------------------------------------------------- */
enum { VALUE_TEXT = 300000 };
/* Binds something hostile; `was` is what stands there (may be NULL). Says what. */
void bind_value(mutation *m, sqlite3_stmt *s, int i, sqlite3_value *was);
const char *hostile_name(mutation *m, size_t *bytes); /* may have a NUL inside */
uint64_t hostile_number(mutation *m);

/* ---- the changes ----------------------------------------------------------------------------- */
/* mutate_rows.c */
change_fn change_cell, change_size, change_name, change_path, change_json, delete_rows, copy_row;
/* blobs.c */
change_fn change_blob, change_packed, reshape_plane, recount_chunk, change_unit, change_table_array;
/* tree.c */
change_fn change_tree;
/* schema.c */
change_fn change_schema;
/* bytes.c: db is NULL */
change_fn change_bytes, change_wal, change_companion, change_claim;

#endif
