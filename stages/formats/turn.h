/* turn -- from one frame of axes to another that differs by signs alone, such as RUB (OpenGL) and
 * RDF (COLMAP, PLY). */
#ifndef KILN_STAGES_FORMATS_TURN_H
#define KILN_STAGES_FORMATS_TURN_H

#include "stages/formats/reader.h"

/* Multiplies each axis by its sign, 1 or -1, with what that does to rotations and spherical
 * harmonics up to degree 4 (nianticlabs/spz, splat-types.h). Lengths stay. Two negative signs are a
 * half turn; one or three mirror the scene, which no caller may do unasked. Exact: only signs of
 * numbers change. rows: Gaussians, with all of n. */
void kiln_rows_turn(kiln_rows *rows, uint32_t sh_degree, const int sign[3]);
/* The signs, 1 or -1, by which it multiplies w, x, y, z and the coefficients of degrees 1 to 4. */
void kiln_turn_signs(const int sign[3], int quat[4], int sh[24]);

#endif
