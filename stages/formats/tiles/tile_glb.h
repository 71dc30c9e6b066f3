/* tile_glb -- the GLB of a tile: an SPZ file as a buffer view of a glTF, as CesiumJS 1.145 reads it
 * (gltf.h).
 *
 * CesiumJS wants both extensions required, the SPZ in buffer view 0, COLOR_0 beside the other
 * attributes, and everything in the first primitive of the first node. Attributes have accessors
 * without a buffer view: the SPZ holds their values.
 *
 * Pure; any thread.
 */
#ifndef KILN_STAGES_FORMATS_TILES_TILE_GLB_H
#define KILN_STAGES_FORMATS_TILES_TILE_GLB_H

#include "base/memory.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t n_rows;
    uint32_t sh_degree;      /* 0 to 3 */
    bool antialiased;        /* among the extras of the primitive */
    float least[3], most[3]; /* of the positions, in the glTF's axes, without the translation */
    double translation[3];   /* of the node, in the glTF's axes */
} kiln_tile_scene;

/* Appends the whole GLB with the SPZ of `bytes` bytes. KILN_E_INPUT: it would be too long.
 * KILN_E_NOMEM. */
kiln_status kiln_tile_glb(const kiln_tile_scene *s, const void *spz, uint64_t bytes,
                          kiln_buffer *out, kiln_error *err) KILN_MUST_CHECK;

#endif
