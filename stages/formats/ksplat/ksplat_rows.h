/* ksplat_rows -- rows of planar arrays as the records of a .ksplat (ksplat.h). */
#ifndef KILN_STAGES_FORMATS_KSPLAT_KSPLAT_ROWS_H
#define KILN_STAGES_FORMATS_KSPLAT_KSPLAT_ROWS_H

#include "stages/formats/ksplat/ksplat_layout.h"

/* What does not fit, by kind; STEPS: rows whose position has a step larger than they are. */
enum {
    KILN_KSPLAT_COLOURS,
    KILN_KSPLAT_LENGTHS,
    KILN_KSPLAT_COEFFICIENTS,
    KILN_KSPLAT_POSITIONS,
    KILN_KSPLAT_STEPS,
    KILN_KSPLAT_COUNTS
};

/* A chunk: planes [components][n] as in the manifest, but with linear scales and unit
 * quaternions. */
typedef struct {
    uint64_t n, first; /* first: place of row 0 in the file */
    double origin[3];  /* of the means */
    const float *means, *scales, *quats, *opacity_logits, *sh0, *shN;
} kiln_ksplat_rows;

/* Unit quaternions [4][n], not in place. Levels 1 and 2: those that were halves before stay, though
 * halves are unit only to three digits; so what was read from a .ksplat is written as it was. */
void kiln_ksplat_quats(uint32_t level, uint64_t n, const float *quats, float *unit);
/* The box of rows `at` .. `at` + n. */
void kiln_ksplat_rows_box(const kiln_ksplat_rows *r, uint64_t at, uint64_t n, kiln_ksplat_box *out);
/* The range of coefficients of degrees 1 to sh_degree, which it widens. */
void kiln_ksplat_rows_range(const kiln_ksplat_rows *r, uint32_t sh_degree, float *least,
                            float *most);
/* Rows of one bucket: `at` .. `at` + n. */
typedef struct {
    uint64_t at, n;  /* n <= KILN_KSPLAT_BUCKET_ROWS */
    float centre[3]; /* of the bucket; level 0 has none */
} kiln_ksplat_bucket;
/* The rows of a bucket as records. counts: adds what was clamped. */
void kiln_ksplat_encode(const kiln_ksplat_layout *l, kiln_ksplat_sh_range range,
                        const kiln_ksplat_rows *r, const kiln_ksplat_bucket *b, unsigned char *out,
                        uint64_t counts[KILN_KSPLAT_COUNTS]);

#endif
