/* csv_rows -- rows as lines of comma-separated values.
 *
 * Numbers are the shortest text that reads back as the same float32 (float_text.h); a line ends
 * with LF. The same in every locale. Nothing here allocates or fails; any thread. */
#ifndef KILN_STAGES_FORMATS_CSV_CSV_ROWS_H
#define KILN_STAGES_FORMATS_CSV_CSV_ROWS_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    KILN_CSV_FLOAT,
    KILN_CSV_WHOLE, /* u32, to which `first` is added */
    /* float 0..1, written as 0..255: a whole number where it is one of 255 parts */
    KILN_CSV_COLOUR,
    /* float relative to an origin, which is added: a double of up to 17 digits where that is not
     * 0 */
    KILN_CSV_PLACE,
} kiln_csv_kind;

typedef struct {
    kiln_csv_kind kind;
    const void *values; /* [n] */
    double origin;      /* KILN_CSV_PLACE */
    uint64_t first;     /* KILN_CSV_WHOLE */
} kiln_csv_column;

enum {
    KILN_CSV_VALUE_MAX = 32, /* a value and what follows it */
};

/* Writes rows [first, first + n): at most n * n_columns * KILN_CSV_VALUE_MAX bytes, no NUL. Returns
 * how many. */
size_t kiln_csv_lines(const kiln_csv_column *columns, uint32_t n_columns, uint64_t first,
                      uint64_t n, char *out);

#endif
