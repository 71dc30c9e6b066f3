/* csv_rows -- see the header. Row after row; a line of each column's array stays in the cache for
 * the rows that it holds. */
#include "stages/formats/csv/csv_rows.h"

#include "stages/formats/csv/float_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t put_colour(float v, char *out)
{
    const float scaled = (float)((double)v * 255.0);
    const uint32_t code = scaled > 0 && scaled < 255.5f ? (uint32_t)(scaled + 0.5f) : 0;
    return (float)code / 255.0f == v ? kiln_u32_text(code, out) : kiln_float_text(scaled, out);
}

/* The fewest of 15 to 17 digits that read back as the same double. Programs stay in the locale
 * "C". */
static size_t put_double(double v, char *out)
{
    int n = 0;
    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(out, KILN_CSV_VALUE_MAX, "%.*g", digits, v);
        if (strtod(out, NULL) == v) break;
    }
    return (size_t)n;
}

static size_t put_whole(uint64_t v, char *out)
{
    if (v <= UINT32_MAX) return kiln_u32_text((uint32_t)v, out);
    return (size_t)snprintf(out, KILN_CSV_VALUE_MAX, "%llu", (unsigned long long)v);
}

static size_t put_value(const kiln_csv_column *c, uint64_t row, char *out)
{
    if (c->kind == KILN_CSV_WHOLE)
        return put_whole(c->first + ((const uint32_t *)c->values)[row], out);
    const float v = ((const float *)c->values)[row];
    if (c->kind == KILN_CSV_COLOUR) return put_colour(v, out);
    if (c->kind == KILN_CSV_PLACE && c->origin != 0) return put_double((double)v + c->origin, out);
    return kiln_float_text(v, out);
}

size_t kiln_csv_lines(const kiln_csv_column *columns, uint32_t n_columns, uint64_t first,
                      uint64_t n, char *out)
{
    char *at = out;
    for (uint64_t row = first; row < first + n; row++)
        for (uint32_t c = 0; c < n_columns; c++) {
            at += put_value(&columns[c], row, at);
            *at++ = c + 1 < n_columns ? ',' : '\n';
        }
    return (size_t)(at - out);
}
