/* ply_ascii -- see ply_ascii.h. */
#include "stages/formats/ply/ply_ascii.h"

#include "stages/files/text_numbers.h"
#include "stages/formats/spool.h"
#include "stages/formats/text_rows.h"

#include <math.h>
#include <string.h>

static kiln_number parse_integer(const char *w, size_t n, kiln_type type, unsigned char *dst)
{
    static const double lo[] = {0, -128, 0, -32768, 0, -2147483648.0},
                        hi[] = {255, 127, 65535, 32767, 4294967295.0, 2147483647.0};
    double v;
    kiln_number r = kiln_parse_f64(w, n, &v);
    if (r != KILN_NUMBER_OK) return r;
    if (!(v >= lo[type] && v <= hi[type])) return KILN_NUMBER_TOO_LARGE;
    if (v != floor(v)) return KILN_NUMBER_NOT_ONE;
    int64_t i = (int64_t)v;
    memcpy(dst, &i, kiln_type_size(type)); /* little-endian: the low bytes */
    return KILN_NUMBER_OK;
}

static kiln_number parse_value(const char *w, size_t n, kiln_type type, unsigned char *dst)
{
    kiln_number r;
    if (type == KILN_TYPE_F32) {
        float v = 0;
        r = kiln_parse_f32(w, n, &v);
        memcpy(dst, &v, sizeof v);
    } else if (type == KILN_TYPE_F64) {
        double v = 0;
        r = kiln_parse_f64(w, n, &v);
        memcpy(dst, &v, sizeof v);
    } else {
        r = parse_integer(w, n, type, dst);
    }
    return r;
}

typedef struct {
    const kiln_ply_header *h;
    const char *path;
} ascii_rows;

static kiln_status parse_row(const void *context, uint64_t row, const char *line, size_t size,
                             unsigned char *dst, kiln_error *err)
{
    const ascii_rows *a = context;
    kiln_token_line words = {line, line + size};
    const char *w;
    size_t n;
    for (uint32_t i = 0; i < a->h->n_columns; i++) {
        const kiln_ply_property *p = &a->h->columns[i];
        if (!kiln_token_next(&words, &w, &n))
            return kiln_fail(err, KILN_E_INPUT, "'%s', row %llu has %u values instead of %u",
                             a->path, (unsigned long long)row, i, a->h->n_columns);
        const kiln_number r = parse_value(w, n, p->type, dst + p->offset);
        if (r != KILN_NUMBER_OK)
            return kiln_fail(err, KILN_E_INPUT, "'%s', row %llu, property %s: the value %s",
                             a->path, (unsigned long long)row, p->name,
                             r == KILN_NUMBER_NOT_ONE ? "is not a number"
                                                      : "does not fit its type");
    }
    if (kiln_token_next(&words, &w, &n))
        return kiln_fail(err, KILN_E_INPUT, "'%s', row %llu has more than %u values", a->path,
                         (unsigned long long)row, a->h->n_columns);
    return KILN_OK;
}

uint64_t kiln_ply_ascii_bytes(const kiln_ply_header *h) { return h->n_rows * h->row_bytes + 1; }

kiln_status kiln_ply_ascii_spool(const kiln_ply_header *h, int fd, const char *path, int out,
                                 unsigned threads, kiln_error *err)
{
    const ascii_rows a = {.h = h, .path = path};
    const kiln_text_rows t = {.fd = fd,
                              .path = path,
                              .offset = h->data_offset,
                              .skip = h->lines_before,
                              .n_rows = h->n_rows,
                              .record_bytes = h->row_bytes,
                              .parse = parse_row,
                              .context = &a};
    uint64_t found;
    KILN_TRY(kiln_text_rows_spool(&t, out, threads, &found, err));
    if (found < h->lines_before)
        return kiln_fail(err, KILN_E_INPUT, "'%s' ends before its first vertex row", path);
    if (found - h->lines_before < h->n_rows)
        return kiln_fail(
            err, KILN_E_INPUT, "'%s' ends before row %llu of %llu; is the download complete?", path,
            (unsigned long long)(found - h->lines_before), (unsigned long long)h->n_rows);
    const unsigned char follows = found - h->lines_before > h->n_rows && !h->more_elements;
    return kiln_spool_write(out, path, h->n_rows * h->row_bytes, &follows, 1, err);
}
