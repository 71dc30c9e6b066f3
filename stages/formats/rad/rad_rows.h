/* rad_rows -- Gaussians as the values of RAD, in records of a fixed size; rad_chunk.h puts them into the planes of a chunk.
 *
 *   offset  bytes
 *   0       12     position, float32, with kiln_export.origin
 *   12      2      opacity, half: below 1 as it is; above, (d + 3) / 4 with d = sqrt(1 + e ln o), where o is the weight of a merged
 *                  row over its own surface (Spark draws such a row as wide as o of its kind that lie over each other), at most 2
 *   14      6      colour, halves: 0.5 + C0 sh0
 *   20      6      logarithms of scales, halves
 *   26      3      rotation: axis in two bytes of an octahedron, angle in one
 *   29      1      0
 *   30      2      number of rows below
 *   32      4      place of the first of them
 *   36      3 K    coefficients, -127 .. 127 of the degree's largest; colours inside
 *
 * Source: sparkjsdev/spark, rust/spark-lib/src/splat_encode.rs and its splat vertex shader. No libm call decides a bit. */
#ifndef KILN_STAGES_FORMATS_RAD_RAD_ROWS_H
#define KILN_STAGES_FORMATS_RAD_RAD_ROWS_H

#include "stages/formats/rad/rad_plan.h"
#include "stages/formats/rows.h"

enum { KILN_RAD_RECORD = 36, KILN_RAD_CHILDREN_AT = 30, KILN_RAD_RECORD_MAX = KILN_RAD_RECORD + 45 };

static inline uint32_t kiln_rad_degree(const kiln_export *e) { return kiln_export_degree(e, KILN_RAD_DEGREE_MAX); }
uint64_t kiln_rad_record_bytes(const kiln_export *e);

/* A row by itself: what both kinds of rows are made of. shN: components as in a plane, one behind the other. */
typedef struct {
    double mean[3], log_scale[3], quat[4]; /* quat: w x y z, length 1 */
    double opacity;                        /* may be above 1 */
    double sh0[3], shN[45];
} kiln_rad_row;

void kiln_rad_put(const kiln_rad_row *row, const kiln_rad_coding *c, uint32_t degree, uint32_t n_below, uint32_t first_below,
                  unsigned char *record);
/* Row i of a chunk. rows: KILN_ROWS_SPLAT, and of levels KILN_ROWS_WEIGHTS. */
void kiln_rad_take(const kiln_export *e, const kiln_export_rows *rows, uint64_t i, kiln_rad_row *out);
/* Surface of its ellipsoid of one sigma. */
double kiln_rad_surface(const kiln_rad_row *row);
/* The three bytes of a rotation. */
void kiln_rad_rotation(const double quat[4], unsigned char code[3]);

#endif
