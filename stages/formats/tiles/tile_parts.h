/* tile_parts -- which rows of a tile its codes can hold, and what becomes of the others.
 *
 * Problem. SPZ has 24 bits for a coordinate. A tile that holds the scene and a floater at 5e8 units
 * has steps of 60 units at best, and every row takes the place of a few.
 *
 * Rule. A row is far if it lies more than KILN_TILE_REACH times half of the root cube's edge from
 * that cube's middle: without far rows a tile has at least 4096 steps along half of that edge, as
 * kiln_spz_choose_fraction wants. Far rows of a chunk of the layer go into parts, each a file of
 * its own that is always drawn; a part is cut at the middle of its longest side until its codes
 * hold it as well, or until there are KILN_TILE_PARTS of them. What no part holds then is left out.
 * Far rows of coarser levels are left out, too: the parts have what they were merged of.
 *
 * Where the root cube is larger than 24 bits reach, because one row in a hundred is a floater or
 * because units are tiny, or where there is no such cube, its middle says nothing. Then a tile that
 * its codes cannot hold is cut likewise, and keeps the piece with most rows. At a coarser level the
 * other pieces are left out, and there may be holes until the tiles below are drawn.
 *
 * Pure; any thread. */
#ifndef KILN_STAGES_FORMATS_TILES_TILE_PARTS_H
#define KILN_STAGES_FORMATS_TILES_TILE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

enum { KILN_TILE_REACH = 2048, KILN_TILE_PARTS = 250, KILN_TILE_LEFT_OUT = 255 };

/* Where the scene is, in the coordinates of the rows. */
typedef struct {
    double centre[3], half; /* the root cube; half 0: not known */
} kiln_tile_core;

/* Does the root cube say which rows are far? */
bool kiln_tile_knows_core(const kiln_tile_core *core);
/* May a tile whose rows lie in this box have such rows? */
bool kiln_tile_may_have_parts(const kiln_tile_core *core, const float lo[3], const float hi[3]);

/* part[i] of row i of means [3][n]: 0, the tile's own; 1 to the returned number of parts;
 * KILN_TILE_LEFT_OUT. level: 0 of a chunk of the layer. work: [2 n]. */
uint32_t kiln_tile_parts(const kiln_tile_core *core, uint32_t level, const float *means, uint64_t n,
                         uint8_t *part, uint32_t *work);

#endif
