/* ksplat_layout -- what stands where in a .ksplat that is written, and how its positions are cut
 * into steps (ksplat.h).
 *
 * Rows stay in their order. Buckets are 256 consecutive rows each, and a section is a run of
 * buckets: only the last bucket of the last section may be shorter. So every row, centre and header
 * has a place that follows from its number and the sections' borders.
 *
 * Positions of levels 1 and 2 are whole numbers of steps from the centre of their bucket. The
 * reference cuts space into blocks of 5 units, whose steps are 1/13,107. Here the rows come in the
 * order of a curve through space, so a bucket is small. A section has one step, the least that its
 * largest bucket needs; a new section begins where buckets of another size do, so that a few far
 * rows do not coarsen the others. Steps are powers of two, and centres whole multiples of 2,048 of
 * them: what was read from such a file is on the grid of the next one, and is written without loss
 * however often.
 */
#ifndef KILN_STAGES_FORMATS_KSPLAT_KSPLAT_LAYOUT_H
#define KILN_STAGES_FORMATS_KSPLAT_KSPLAT_LAYOUT_H

#include "base/memory.h"
#include "base/status.h"
#include "stages/formats/ksplat/ksplat.h"

#include <stdint.h>

enum {
    KILN_KSPLAT_BUCKET_ROWS = 256,
    KILN_KSPLAT_WRITTEN_DEGREE = 2,
    KILN_KSPLAT_WRITTEN_SECTIONS = 1024, /* at most */
    KILN_KSPLAT_LEAST_STEP = -120,
};

typedef struct {
    uint64_t n_rows, n_buckets;
    uint32_t level, sh_degree, row_bytes;
    uint32_t n_sections;
    uint32_t first[KILN_KSPLAT_WRITTEN_SECTIONS + 1]; /* bucket of each section, and n_buckets */
    int8_t step[KILN_KSPLAT_WRITTEN_SECTIONS];        /* 2^step is its step; not of level 0 */
} kiln_ksplat_layout;

/* n_rows at least 1, below 2^32; level 0 to 2, sh_degree 0 to 2; steps: exponents of the steps that
 * buckets need, at level 0 NULL.
 */
void kiln_ksplat_layout_make(uint64_t n_rows, uint32_t level, uint32_t sh_degree,
                             const int8_t *steps, kiln_ksplat_layout *out);
static inline uint64_t kiln_ksplat_buckets_of(uint64_t n_rows)
{
    return (n_rows + KILN_KSPLAT_BUCKET_ROWS - 1) / KILN_KSPLAT_BUCKET_ROWS;
}
/* The section of a bucket; the first byte of a row's record, and of a bucket's centre (3 f32). */
uint32_t kiln_ksplat_bucket_section(const kiln_ksplat_layout *l, uint64_t bucket);
uint64_t kiln_ksplat_row_place(const kiln_ksplat_layout *l, uint64_t row);
uint64_t kiln_ksplat_centre_place(const kiln_ksplat_layout *l, uint64_t bucket);

/* The range of coefficients of level 2; 0, 0 otherwise. */
typedef struct {
    float least, most;
} kiln_ksplat_sh_range;

/* Of the least and greatest coefficient, what can stand in the header: 0 would mean a default. */
kiln_ksplat_sh_range kiln_ksplat_sh_range_of(float least, float most);

/* The file header and those of all sections, from byte 0 on. */
kiln_status kiln_ksplat_head(const kiln_ksplat_layout *l, kiln_ksplat_sh_range range,
                             kiln_buffer *out, kiln_error *err) KILN_MUST_CHECK;
/* The rows of the last bucket, a u32, if it is not full; *place: where it stands. 0: it is full, or
 * of level 0. */
uint32_t kiln_ksplat_last_bucket(const kiln_ksplat_layout *l, uint64_t *place);

/* A box of positions; empty: lo > hi. */
typedef struct {
    double lo[3], hi[3];
} kiln_ksplat_box;

void kiln_ksplat_box_clear(kiln_ksplat_box *b);
void kiln_ksplat_box_add(kiln_ksplat_box *b, const kiln_ksplat_box *other);
/* The exponent of the least step with which all of a box is in reach of its centre, which also is
 * for every larger one. */
int8_t kiln_ksplat_box_step(const kiln_ksplat_box *b);
void kiln_ksplat_box_centre(const kiln_ksplat_box *b, int step, float centre[3]);

#endif
