/* ksplat_layout -- what stands where in a .ksplat that is written, and how its positions are cut into steps. The format itself is
 * described where it is read: stages/import/ksplat/ksplat_header.h and ksplat.c.
 *
 * Rows stay in their order. Buckets are 256 consecutive rows each, sections are whole buckets, and all but the last bucket and the
 * last section are full: so every row, centre and header has a place that follows from its number alone.
 *
 * Positions of levels 1 and 2 are whole numbers of steps from the centre of their bucket. The reference cuts space into blocks of 5
 * units, whose steps are 1/13,107. Here the rows come in the order of a curve through space, so a bucket is small, and a section
 * has the least step that its largest bucket needs. Steps are powers of two, and centres whole multiples of 2,048 of them: what was
 * read from such a file is on the grid of the next one, and is written without loss however often.
 */
#ifndef KILN_STAGES_EXPORT_KSPLAT_LAYOUT_H
#define KILN_STAGES_EXPORT_KSPLAT_LAYOUT_H

#include "base/memory.h"
#include "base/status.h"

#include <stdint.h>

enum {
    KILN_KSPLAT_BUCKET_ROWS = 256,
    KILN_KSPLAT_RANGE = 32767, /* codes of positions are 0 .. 2 of it; Spark takes this one whatever the file says */
    KILN_KSPLAT_WRITTEN_DEGREE = 2,
    KILN_KSPLAT_WRITTEN_SECTIONS = 1024, /* at most */
};

typedef struct {
    uint64_t n_rows;
    uint32_t level, sh_degree, row_bytes;
    uint64_t section_rows; /* of every section but the last */
    uint32_t n_sections;
    uint64_t n_buckets; /* 0 at level 0 */
    uint64_t bytes;     /* of the file */
} kiln_ksplat_layout;

/* n_rows at least 1, below 2^32; level 0 to 2, sh_degree 0 to 2. */
void kiln_ksplat_layout_make(uint64_t n_rows, uint32_t level, uint32_t sh_degree, kiln_ksplat_layout *out);
/* First byte of a row's record, and of a bucket's centre (3 f32). */
uint64_t kiln_ksplat_row_place(const kiln_ksplat_layout *l, uint64_t row);
uint64_t kiln_ksplat_centre_place(const kiln_ksplat_layout *l, uint64_t bucket);
uint32_t kiln_ksplat_row_section(const kiln_ksplat_layout *l, uint64_t row);

/* What the headers say beside the layout. steps: [n_sections], 2^steps is the step of a section; level 0: NULL. */
typedef struct {
    const int16_t *steps;
    float sh_least, sh_most; /* of level 2; 0, 0 otherwise */
} kiln_ksplat_scales;

/* The file header and those of all sections, from byte 0 on. */
kiln_status kiln_ksplat_head(const kiln_ksplat_layout *l, const kiln_ksplat_scales *s, kiln_buffer *out,
                             kiln_error *err) KILN_MUST_CHECK;
/* The rows of the last bucket, a u32, if it is not full; *place: where it stands. 0: it is full, or there are no buckets. */
uint32_t kiln_ksplat_last_bucket(const kiln_ksplat_layout *l, uint64_t *place);

/* A box of positions; empty: lo > hi. */
typedef struct {
    double lo[3], hi[3];
} kiln_ksplat_box;

void kiln_ksplat_box_clear(kiln_ksplat_box *b);
void kiln_ksplat_box_add(kiln_ksplat_box *b, const kiln_ksplat_box *other);
/* The exponent of the least step with which all of a box is in reach of its centre, which also is for every larger one. */
int16_t kiln_ksplat_box_step(const kiln_ksplat_box *b);
void kiln_ksplat_box_centre(const kiln_ksplat_box *b, int16_t step, float centre[3]);
/* The exponent that any box has at least. */
enum { KILN_KSPLAT_LEAST_STEP = -120 };

/* Of the range of coefficients, what can stand in the header: 0 would mean a default. */
void kiln_ksplat_sh_range(float least, float most, kiln_ksplat_scales *s);

#endif
