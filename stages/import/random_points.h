/* random_points -- seeded points for a data set that has none, as trainers make them (uniform in a
 * box, random colours).
 *
 * Counter-based: row i depends on seed and i alone, so that blocks can be made in any order,
 * anywhere, with the same bits.
 */
#ifndef KILN_STAGES_IMPORT_RANDOM_POINTS_H
#define KILN_STAGES_IMPORT_RANDOM_POINTS_H

#include "stages/formats/reader.h"

/* Rows [first, first + n) into rows->means and rows->rgb. box: x0 y0 z0 x1 y1 z1 */
void kiln_random_points(uint64_t seed, const double box[6], uint64_t first, uint64_t n,
                        kiln_rows *rows);

/* The box of the camera centres, its flat axes widened to a tenth of the longest one; or [-1.3,
 * 1.3]^3 for a data set of Blender's form, as INRIA's loader has it (scene/dataset_readers.py,
 * readNerfSyntheticInfo). */
void kiln_random_box(const kiln_camera *cameras, uint32_t n, bool blender, double box[6]);

#endif
