/* rad_rows -- Gaussians as the values of RAD (rad.h), in records of a fixed size; rad_chunk.h puts
 * them into the planes of a chunk.
 *
 *   0  position, float32, with kiln_export.origin   12  opacity, half        14  colour, halves
 *         20  log scales, halves
 *   26 rotation, 3 bytes                            30  u16 rows below       32  u32 the first of
 *       them
 *   36 coefficients, a byte each
 *
 * No libm call decides a bit. */
#ifndef KILN_STAGES_FORMATS_RAD_RAD_ROWS_H
#define KILN_STAGES_FORMATS_RAD_RAD_ROWS_H

#include "stages/formats/rad/rad_plan.h"
#include "stages/formats/rows.h"

enum {
    KILN_RAD_CENTRE_AT = 0,
    KILN_RAD_ALPHA_AT = 12,
    KILN_RAD_RGB_AT = 14,
    KILN_RAD_SCALES_AT = 20,
    KILN_RAD_ROTATION_AT = 26,
    KILN_RAD_BELOW_AT = 30,
    KILN_RAD_FIRST_BELOW_AT = 32,
    KILN_RAD_RECORD = 36,
};
enum { KILN_RAD_RECORD_MAX = KILN_RAD_RECORD + 45 };

static inline uint32_t kiln_rad_degree(const kiln_export *e)
{
    return kiln_export_degree(e, KILN_RAD_DEGREE_MAX);
}
uint64_t kiln_rad_record_bytes(const kiln_export *e);

/* A row by itself: what both kinds of rows are made of. shN: components as in a plane, one behind
 * the other. */
typedef struct {
    double mean[3], log_scale[3], quat[4]; /* quat: w x y z, length 1 */
    double opacity;                        /* may be above 1 */
    double sh0[3], shN[45];
} kiln_rad_row;

void kiln_rad_put(const kiln_rad_row *row, const kiln_rad_coding *c, uint32_t degree,
                  uint32_t n_below, uint32_t first_below, unsigned char *record);
/* Row i of a chunk. rows: KILN_ROWS_SPLAT, and of levels KILN_ROWS_WEIGHTS. */
void kiln_rad_take(const kiln_export *e, const kiln_export_rows *rows, uint64_t i,
                   kiln_rad_row *out);
/* Surface of its ellipsoid of one sigma. */
double kiln_rad_surface(const kiln_rad_row *row);
/* The three bytes of a rotation. */
void kiln_rad_rotation(const double quat[4], unsigned char code[3]);

#endif
