/* spz_axes -- the sixteen coordinate systems that an SPZ file can name, and from each of them to
 * that of PLY, RDF.
 *
 * A name says where +X, +Y and +Z point: L or R (left, right), U or D (up, down), F or B (forward,
 * back). Eight of them have x, y, z in this order and differ by signs; in the other eight y and z
 * are exchanged. A left-handed one (RUF, LBD) is mirrored on the way, which is right because its
 * numbers are mirrored: kiln_spz_system_is_mirrored says so to whoever tells the user.
 *
 * Source: nianticlabs/spz, src/cc/splat-types.h (state 21715c3), CoordinateSystem.
 */
#ifndef KILN_STAGES_FORMATS_SPZ_SPZ_AXES_H
#define KILN_STAGES_FORMATS_SPZ_SPZ_AXES_H

#include "stages/formats/reader.h"

#include <stdbool.h>
#include <stdint.h>

enum { KILN_SPZ_SYSTEMS = 16, KILN_SPZ_RUB = 4, KILN_SPZ_RDF = 6 };

const char *kiln_spz_system_name(uint32_t system); /* "RUB"; system is 1 to KILN_SPZ_SYSTEMS */
bool kiln_spz_system_is_mirrored(uint32_t system);
/* Turns rows from this system to RDF. Exact but for the harmonics of systems with y and z
 * exchanged, from degree 2 on: those become sums of two or three, in double. */
void kiln_spz_rows_turn(kiln_rows *rows, uint32_t sh_degree, uint32_t system);

#endif
