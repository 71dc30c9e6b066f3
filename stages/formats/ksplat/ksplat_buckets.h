/* ksplat_buckets -- the centre of the bucket that each row of a .ksplat file is in (levels 1 and
 * 2).
 *
 * Rows are in the order of buckets. Full buckets are counted off; of the others the file has
 * lengths, as many as it likes, so they are not kept: an index of at most KILN_KSPLAT_INDEX_MAX
 * places says how many rows stand before every so many of them, and from there on they are read. */
#ifndef KILN_STAGES_FORMATS_KSPLAT_KSPLAT_BUCKETS_H
#define KILN_STAGES_FORMATS_KSPLAT_KSPLAT_BUCKETS_H

#include "stages/formats/ksplat/ksplat_header.h"

enum { KILN_KSPLAT_INDEX_MAX = 1 << 16, KILN_KSPLAT_WINDOW = 1024 };

typedef struct {
    int fd;           /* the caller's */
    const char *path; /* for sentences; the caller's */
    /* owned; [i]: partial rows of the file before its partial bucket i * step */
    uint64_t *index;
    uint64_t n_index, step;             /* step: partial buckets to a place of the index */
    const kiln_ksplat_section *section; /* where the last call ended: */
    uint64_t bucket, bucket_row;        /* of the section; its first row */
    uint64_t window, n_window;          /* buckets of the section that are read: */
    uint32_t lengths[KILN_KSPLAT_WINDOW];
    float centres[3 * KILN_KSPLAT_WINDOW];
} kiln_ksplat_buckets;

/* Reads all lengths once. Sets partial_rows of h's sections, which must outlive *out. KILN_E_INPUT
 * where lengths do not add up to a section's rows. kiln_ksplat_buckets_release afterwards in any
 * case. */
kiln_status kiln_ksplat_buckets_open(int fd, const char *path, kiln_ksplat_header *h,
                                     kiln_ksplat_buckets *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_ksplat_buckets_release(kiln_ksplat_buckets *b);
/* centres[axis][n] of the buckets that rows [row, row + n) of the section are in. Fast where a call
 * goes on from the last one. */
kiln_status kiln_ksplat_centres(kiln_ksplat_buckets *b, const kiln_ksplat_section *section,
                                uint64_t row, uint64_t n, double *const centres[3],
                                kiln_error *err) KILN_MUST_CHECK;

#endif
