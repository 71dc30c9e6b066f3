/* row_check -- what every row of a manifest must say, asked wherever a row is read and, of cameras
 * and scenes, before it is written.
 *
 * A manifest may come from a stranger, whose file needs no CHECK, no UNIQUE index and no STRICT to
 * hold: these functions are what the code behind them may rely on. Pure functions of the structs in
 * manifest.h; nothing is read from the file. KILN_E_INPUT with a sentence that names the row and
 * what is wrong with it.
 *
 * The rule for exit codes: a row that no program of ours writes (its values, its order, a schema of
 * the file's own) is bad input, 3: somebody made or edited the file. What was right once is damage,
 * 74: a blob or page that does not read back, a column of another type, rows that are missing where
 * others name them, an index that hides a row, a unit's result that its stage cannot use. SCHEMA.md
 * says it to others. */
#ifndef KILN_SCHEMA_ROW_CHECK_H
#define KILN_SCHEMA_ROW_CHECK_H

#include "base/extern_c.h"
#include "schema/manifest.h"

KILN_C_BEGIN

enum {
    KILN_PICTURE_SIDE_MAX = 1 << 20, /* pixels of a camera's width or height; import's limit too */
    /* rows of a block or chunk: a tile table numbers them with 16 bits */
    KILN_CHUNK_COUNT_MAX = 65536,
    KILN_BLOCK_ROWS = 65536, /* source rows of a block; the last of a file may have fewer */
    KILN_LAYER_DEGREE_MAX = 8,
    KILN_ERROR_STEP_MOST = 1000, /* size of the exponent of an error's first footprint */
};
#define KILN_LAYER_COUNT_MAX (UINT32_MAX - 1) /* rows of a layer: 2^32 - 2 */
/* exp of it is a normal number: lower ones are stored as this */
#define KILN_LOG_SCALE_MIN (-87.0f)
#define KILN_LOG_SCALE_MAX 88.0f /* exp of it is finite */

/* Names that lead nowhere, sizes from 1 to 2^20, a rotation, positive focal lengths, finite
 * numbers. */
kiln_status kiln_row_check_camera(const kiln_camera *c, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_row_check_scene(const kiln_scene *s, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_row_check_source(const kiln_source_file *f, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_row_check_image(const kiln_image *i, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_row_check_output(const kiln_unit_output *o, kiln_error *err) KILN_MUST_CHECK;

/* One plane of a chunk: type and components as planes.def has them, its bytes those of the chunk's
 * rows. */
kiln_status kiln_row_check_plane(const kiln_layer *l, const kiln_chunk *c, const kiln_plane *p,
                                 kiln_error *err) KILN_MUST_CHECK;
/* A chunk's own numbers, without its planes. */
kiln_status kiln_row_check_chunk(const kiln_layer *l, const kiln_chunk *c,
                                 kiln_error *err) KILN_MUST_CHECK;
/* A chunk's errors: finite, not negative, none more than 4 times the one before, which is as many
 * pixels at twice the footprint; none of chunks that are no levels. */
kiln_status kiln_row_check_errors(const kiln_layer *l, const kiln_chunk *c,
                                  kiln_error *err) KILN_MUST_CHECK;
/* What holds between chunks: the sum of rows, the same planes in each, all planes that Gaussians
 * have, no name twice. After all of its chunks and planes were checked. */
kiln_status kiln_row_check_layer(const kiln_layer *l, kiln_error *err) KILN_MUST_CHECK;
/* Values of a plane of planes.def, as they were read: numbers are finite, with no log scale above
 * 88, no zero quaternion and no negative weight. Visibility is above 0 and at most 1, prominence
 * above 0, and rows can be numbered. Other planes may hold anything. data has count * components
 * elements. */
kiln_status kiln_row_check_values(const kiln_chunk *c, const kiln_plane *p, const void *data,
                                  kiln_error *err) KILN_MUST_CHECK;

/* The table's own numbers; its bands tile the picture and add up. with_arrays: the arrays have the
 * sizes that follow. */
kiln_status kiln_row_check_table(const kiln_tile_table *t, bool with_arrays,
                                 kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
