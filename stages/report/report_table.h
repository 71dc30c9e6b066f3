/* report_table -- tables and lists of facts of a page: a column or a fact is a row of a C table, a
 * value is a cell.
 *
 *     static const kiln_column columns[] = {{"Lens", NULL}, {"Cameras", "n"}};
 *     kiln_table_begin(h, "Lenses", "", columns, 2);
 *     kiln_table_row(h, columns, (kiln_cell[]){kiln_text(name), kiln_count(n)}, 2);
 *     kiln_table_end(h);
 *
 * Texts are escaped like all others (html.h). Functions write nothing once h has failed. */
#ifndef KILN_STAGES_REPORT_REPORT_TABLE_H
#define KILN_STAGES_REPORT_REPORT_TABLE_H

#include "stages/page/html.h"

#include <stdbool.h>

/* Writes a value that takes more than one number or text. */
typedef void kiln_cell_fn(kiln_html *h, const void *context);

typedef enum {
    KILN_CELL_NONE, /* an en dash; a fact of it is left out */
    KILN_CELL_TEXT, /* a fact of an empty one is left out */
    KILN_CELL_COUNT,
    KILN_CELL_BYTES,
    KILN_CELL_SECONDS,
    KILN_CELL_FIXED,
    KILN_CELL_SHORT,
    KILN_CELL_TIME,
    KILN_CELL_BY
} kiln_cell_kind;

/* Made by the functions below; texts and contexts are borrowed. */
typedef struct {
    kiln_cell_kind kind;
    int decimals;
    union {
        const char *text;
        uint64_t count;
        double number;
        int64_t ns;
        struct {
            kiln_cell_fn *write;
            const void *context;
        } by;
    } of;
} kiln_cell;

static inline kiln_cell kiln_none(void) { return (kiln_cell){.kind = KILN_CELL_NONE}; }
static inline kiln_cell kiln_text(const char *text)
{
    return (kiln_cell){.kind = KILN_CELL_TEXT, .of.text = text};
}
static inline kiln_cell kiln_count(uint64_t n)
{
    return (kiln_cell){.kind = KILN_CELL_COUNT, .of.count = n};
}
static inline kiln_cell kiln_bytes(uint64_t n)
{
    return (kiln_cell){.kind = KILN_CELL_BYTES, .of.count = n};
}
static inline kiln_cell kiln_seconds(double s)
{
    return (kiln_cell){.kind = KILN_CELL_SECONDS, .of.number = s};
}
static inline kiln_cell kiln_short(double v)
{
    return (kiln_cell){.kind = KILN_CELL_SHORT, .of.number = v};
}
static inline kiln_cell kiln_time(int64_t ns)
{
    return (kiln_cell){.kind = KILN_CELL_TIME, .of.ns = ns};
}
static inline kiln_cell kiln_decimal(double v, int decimals)
{
    return (kiln_cell){.kind = KILN_CELL_FIXED, .decimals = decimals, .of.number = v};
}
static inline kiln_cell kiln_by(kiln_cell_fn *write, const void *context)
{
    return (kiln_cell){.kind = KILN_CELL_BY, .of.by = {write, context}};
}
/* Bytes of which 0 means that nobody knows. */
static inline kiln_cell kiln_bytes_known(uint64_t n) { return n ? kiln_bytes(n) : kiln_none(); }

void kiln_cell_write(kiln_html *h, kiln_cell c);

/* ---- tables ---------------------------------------------------------------------------------- */
typedef struct {
    const char *label; /* a line break is one; "": a head without words */
    /* of its cells; "n": numbers, to the right. NULL: none. The first column's cells name their
     * rows */
    const char *class;
} kiln_column;

/* Begins a table that scrolls in its own frame where the page is narrow. what: for who cannot see
 * it; classes: of the table. Both are constants of the source. */
void kiln_table_begin(kiln_html *h, const char *what, const char *classes,
                      const kiln_column *columns, size_t n);
/* Writes a row of n cells. The second gives the row a class. */
void kiln_table_row(kiln_html *h, const kiln_column *columns, const kiln_cell *cells, size_t n);
void kiln_table_row_of(kiln_html *h, const char *class, const kiln_column *columns,
                       const kiln_cell *cells, size_t n);
void kiln_table_end(kiln_html *h);

/* ---- facts ----------------------------------------------------------------------------------- */
typedef struct {
    const char *label;
    kiln_cell value;
} kiln_fact;

/* Writes a list of names and values without those that have none. class: of the list, a constant of
 * the source. */
void kiln_facts(kiln_html *h, const char *class, const kiln_fact *facts, size_t n);

/* "1 camera", "12 cameras". one and more are constants of the source. */
void kiln_plural(kiln_html *h, uint64_t n, const char *one, const char *more);

#endif
