/* text_rows -- the lines of a text as records of fixed size in scratch, parsed once, on all
 * threads.
 *
 * Blocks of rows are read in any order, and where a line begins shows only when all before it were
 * read. So a reader of text has a spool (reader.h), and what it reads afterwards are records. A
 * line is a row unless it is blank or a comment. Lines end with LF or CR LF and have at most
 * KILN_LINE_MAX bytes (text_lines.h). Memory: KILN_TEXT_ROWS_RAM, and KILN_TEXT_ROWS_THREAD_RAM for
 * each further thread.
 */
#ifndef KILN_STAGES_FORMATS_TEXT_ROWS_H
#define KILN_STAGES_FORMATS_TEXT_ROWS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Parses one row into its record; on any thread. `row` counts from 0, rows that are skipped left
 * out. */
typedef kiln_status kiln_text_row_fn(const void *context, uint64_t row, const char *line,
                                     size_t size, unsigned char *record, kiln_error *err);

typedef struct {
    int fd;           /* of the text */
    const char *path; /* as sentences name it */
    uint64_t offset;  /* where the first line begins */
    uint64_t skip;    /* rows before those that are wanted */
    uint64_t n_rows;  /* that are wanted; UINT64_MAX: all there are */
    char comment;     /* a line whose first word begins with it is no row; 0: none is */
    uint32_t record_bytes;
    kiln_text_row_fn *parse;
    const void *context;
} kiln_text_rows;

#define KILN_TEXT_ROWS_RAM ((uint64_t)4 << 20)
#define KILN_TEXT_ROWS_THREAD_RAM ((uint64_t)2 << 20)

/* Writes record r to offset r * record_bytes of `out`. *found: rows that there are, skipped ones
 * among them; one more than skip + n_rows where others follow, however many. Of several bad rows
 * the first one is reported. KILN_E_INPUT: a row that parse refuses, a line that is too long.
 * KILN_E_IO. */
kiln_status kiln_text_rows_spool(const kiln_text_rows *t, int out, unsigned threads,
                                 uint64_t *found, kiln_error *err) KILN_MUST_CHECK;
/* Counts the rows from t->offset on and parses none. */
kiln_status kiln_text_rows_count(const kiln_text_rows *t, uint64_t *found,
                                 kiln_error *err) KILN_MUST_CHECK;

#endif
