/* ksplat_buckets -- see the header. */
#include "stages/formats/ksplat/ksplat_buckets.h"

#include "base/checked.h"
#include "base/file.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "lengths and centres are little-endian and copied as they lie");

static uint64_t full_rows(const kiln_ksplat_section *s)
{
    return (uint64_t)s->n_full * s->bucket_rows;
}

/* Of one section, from `rows` partial rows of the file on, which it adds to; b->lengths is the
 * buffer. */
static kiln_status index_section(kiln_ksplat_buckets *b, const kiln_ksplat_section *s,
                                 uint64_t *rows, kiln_error *err)
{
    for (uint64_t at = 0; at < s->n_partial; at += KILN_KSPLAT_WINDOW) {
        const uint64_t n =
            s->n_partial - at < KILN_KSPLAT_WINDOW ? s->n_partial - at : KILN_KSPLAT_WINDOW;
        KILN_TRY(kiln_file_read_at(b->fd, b->path, s->lengths_at + at * KILN_KSPLAT_LENGTH,
                                   b->lengths, n * KILN_KSPLAT_LENGTH, err));
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t bucket = s->first_partial + at + i;
            if (bucket % b->step == 0) b->index[bucket / b->step] = *rows;
            *rows += b->lengths[i]; /* less than 2^64: 2^32 times the buckets of a file */
        }
    }
    return KILN_OK;
}

kiln_status kiln_ksplat_buckets_open(int fd, const char *path, kiln_ksplat_header *h,
                                     kiln_ksplat_buckets *out, kiln_error *err)
{
    const kiln_ksplat_section *last = &h->sections[h->n_sections - 1];
    const uint64_t n_partial = last->first_partial + last->n_partial;
    uint64_t rows = 0;
    *out = (kiln_ksplat_buckets){.fd = fd, .path = path};
    out->step = n_partial ? kiln_div_up(n_partial, KILN_KSPLAT_INDEX_MAX) : 1;
    out->n_index = kiln_div_up(n_partial, out->step);
    KILN_TRY(KILN_ALLOC(&out->index, out->n_index, "index of buckets", err));
    for (uint32_t i = 0; i < h->n_sections; i++) {
        kiln_ksplat_section *s = &h->sections[i];
        s->partial_rows = rows;
        KILN_TRY(index_section(out, s, &rows, err));
        if (rows - s->partial_rows != s->n_rows - full_rows(s))
            return kiln_fail(
                err, KILN_E_INPUT,
                "'%s': the buckets of a section have %llu rows, but the section has %llu", path,
                (unsigned long long)(full_rows(s) + rows - s->partial_rows),
                (unsigned long long)s->n_rows);
    }
    return KILN_OK;
}

void kiln_ksplat_buckets_release(kiln_ksplat_buckets *b)
{
    free(b->index);
    memset(b, 0, sizeof *b);
}

static void stand_at(kiln_ksplat_buckets *b, const kiln_ksplat_section *s, uint64_t bucket,
                     uint64_t bucket_row)
{
    if (b->section != s) b->n_window = 0;
    b->section = s;
    b->bucket = bucket;
    b->bucket_row = bucket_row;
}

/* The last place of the index at or before that partial row of the file; index[0] is 0. */
static uint64_t last_place(const kiln_ksplat_buckets *b, uint64_t row)
{
    uint64_t lo = 0, hi = b->n_index - 1;
    while (lo < hi) {
        const uint64_t middle = hi - (hi - lo) / 2;
        if (b->index[middle] <= row)
            lo = middle;
        else
            hi = middle - 1;
    }
    return lo;
}

/* Stands at a bucket at or before the one that the row is in, at most `step` lengths before. */
static void seek_bucket(kiln_ksplat_buckets *b, const kiln_ksplat_section *s, uint64_t row)
{
    if (row < full_rows(s)) {
        stand_at(b, s, row / s->bucket_rows, row / s->bucket_rows * s->bucket_rows);
        return;
    }
    const uint64_t place = last_place(b, s->partial_rows + row - full_rows(s)),
                   bucket = place * b->step;
    const bool goes_on = b->section == s && b->bucket_row <= row;
    /* its first partial bucket, where the place is before that */
    uint64_t first = s->n_full, first_row = full_rows(s);
    if (bucket > s->first_partial) {
        first = s->n_full + (bucket - s->first_partial);
        first_row = full_rows(s) + (b->index[place] - s->partial_rows);
    }
    if (!goes_on || b->bucket < first) stand_at(b, s, first, first_row);
}

/* Reads on from the bucket that b stands at. */
static kiln_status fill_window(kiln_ksplat_buckets *b, kiln_error *err)
{
    const kiln_ksplat_section *s = b->section;
    const uint64_t all = (uint64_t)s->n_full + s->n_partial, left = all - b->bucket;
    const uint64_t n = left < KILN_KSPLAT_WINDOW ? left : KILN_KSPLAT_WINDOW;
    const uint64_t full = b->bucket >= s->n_full      ? 0
                          : s->n_full - b->bucket < n ? s->n_full - b->bucket
                                                      : n;
    b->window = b->bucket;
    b->n_window = n;
    for (uint64_t i = 0; i < full; i++) b->lengths[i] = s->bucket_rows;
    if (n > full)
        KILN_TRY(kiln_file_read_at(
            b->fd, b->path, s->lengths_at + (b->bucket + full - s->n_full) * KILN_KSPLAT_LENGTH,
            b->lengths + full, (n - full) * KILN_KSPLAT_LENGTH, err));
    return kiln_file_read_at(b->fd, b->path, s->centres_at + b->bucket * KILN_KSPLAT_CENTRE,
                             b->centres, n * KILN_KSPLAT_CENTRE, err);
}

/* The window holds the bucket that b stands at. A file that another program changes meanwhile has
 * other lengths than it had. */
static kiln_status have_bucket(kiln_ksplat_buckets *b, kiln_error *err)
{
    if (b->bucket >= b->window && b->bucket - b->window < b->n_window) return KILN_OK;
    if (b->bucket < (uint64_t)b->section->n_full + b->section->n_partial)
        return fill_window(b, err);
    return kiln_fail(err, KILN_E_INPUT,
                     "'%s' changed while it was read: its buckets have fewer rows than before",
                     b->path);
}

kiln_status kiln_ksplat_centres(kiln_ksplat_buckets *b, const kiln_ksplat_section *section,
                                uint64_t row, uint64_t n, double *const centres[3], kiln_error *err)
{
    seek_bucket(b, section, row);
    for (uint64_t i = 0; i < n;) {
        KILN_TRY(have_bucket(b, err));
        const uint64_t at = b->bucket - b->window, end = b->bucket_row + b->lengths[at];
        if (end <= row + i) {
            b->bucket++;
            b->bucket_row = end;
            continue;
        }
        const uint64_t stop = end - row < n ? end - row : n;
        for (; i < stop; i++)
            for (int c = 0; c < 3; c++) centres[c][i] = (double)b->centres[3 * at + (uint64_t)c];
    }
    return KILN_OK;
}
