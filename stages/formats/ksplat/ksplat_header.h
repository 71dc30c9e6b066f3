/* ksplat_header -- the headers of a .ksplat file, checked against its size (ksplat.h). */
#ifndef KILN_STAGES_FORMATS_KSPLAT_KSPLAT_HEADER_H
#define KILN_STAGES_FORMATS_KSPLAT_KSPLAT_HEADER_H

#include "base/status.h"
#include "stages/formats/ksplat/ksplat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The reference writes one section, or one a file that it joins. More than so many with rows are
 * refused, so that memory has a bound. */
enum { KILN_KSPLAT_SECTIONS_MAX = 4096 };

/* A section that has rows. */
typedef struct {
    uint64_t first_row, n_rows; /* of the file */
    uint32_t sh_degree, row_bytes;
    uint64_t rows_at; /* byte of the file */
    /* Levels 1 and 2: */
    double block_size;
    uint32_t range;                  /* of positions: codes are 0 .. 2 range */
    uint32_t bucket_rows, n_full;    /* rows of a full bucket, full buckets */
    uint32_t n_partial;              /* the others */
    uint64_t lengths_at, centres_at; /* byte of the file */
    uint64_t first_partial;          /* partial buckets of the sections before */
    uint64_t partial_rows;           /* rows in these; kiln_ksplat_buckets_open sets it */
} kiln_ksplat_section;

typedef struct {
    uint64_t file_bytes, used_bytes; /* used: where the last section ends */
    uint32_t level;
    uint64_t n_rows;
    uint32_t sh_degree;    /* the highest of its sections */
    double sh_min, sh_max; /* level 2: what the codes 0 and 255 stand for */
    uint32_t n_sections;
    kiln_ksplat_section *sections; /* owned */
} kiln_ksplat_header;

/* path: what fd is of; name: for sentences. KILN_E_INPUT with what is wrong.
 * kiln_ksplat_header_release afterwards in any case. */
kiln_status kiln_ksplat_header_read(int fd, const char *path, const char *name,
                                    kiln_ksplat_header *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_ksplat_header_release(kiln_ksplat_header *h);
/* By the first bytes, whatever the file is called; for certain enough only where there are 512 of
 * them. */
bool kiln_ksplat_begins(const unsigned char *head, size_t len);
/* The section that a row of the file is in; row < n_rows. */
const kiln_ksplat_section *kiln_ksplat_section_of(const kiln_ksplat_header *h, uint64_t row);

#endif
