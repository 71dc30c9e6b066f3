/* tileset -- what tileset.json of 3D Tiles 1.1 says of a tree of tiles, each a GLB of its own.
 *
 * Axes. A tile's glTF has y up, and readers turn it to z up: (x, y, z) becomes (x, -z, y) (3D Tiles
 * 1.1, 6.7.1.6.1). SPZ has right, up, back, so a row of a PLY's axes (right, down, forward) stands
 * at (x, -y, -z) in the glTF and at (x, z, -y) in the tileset.
 *
 * Refinement is REPLACE: a tile stands for all that is below it. A viewer draws a tile's children
 * instead of it where its error on the screen, geometricError * height / (2 distance tan(fov / 2)),
 * that is geometricError over the width of a pixel there, is above what it allows: 16 pixels in
 * CesiumJS. So a tile's error is 16 times the pixel at which it still looks like the whole
 * (kiln_tile_error).
 *
 * Source: OGC 22-025r4, 3D Tiles 1.1. Pure functions; any thread.
 */
#ifndef KILN_STAGES_FORMATS_TILES_TILESET_H
#define KILN_STAGES_FORMATS_TILES_TILESET_H

#include "base/memory.h"
#include "base/status.h"
#include "schema/levels.h"
#include "schema/manifest.h"

#include <stdbool.h>
#include <stdint.h>

#define KILN_NO_TILE UINT32_MAX
#define KILN_TILESET_FILE "tileset.json"
enum { KILN_TILE_URI = 128 };

typedef struct {
    char uri[KILN_TILE_URI]; /* of its GLB, beside tileset.json; "": it has none of its own */
    /* index of a tile in front of it; KILN_NO_TILE: the root, which is the first one */
    uint32_t parent;
    /* geometricError: not above its parent's; 0: nothing finer is below it */
    double error;
    /* box of what can be seen of it, in the tileset's axes; inside its parent's */
    double lo[3], hi[3];
} kiln_tile;

typedef struct {
    const kiln_tile *tiles; /* [n], parents first, at least one */
    uint32_t n;
    /* across the scene, without what lies far out: what is lost where not even the root is drawn */
    double extent;
    bool placed; /* transform is written */
    /* column-major, from the tileset's axes to earth-centred, earth-fixed metres */
    double transform[16];
} kiln_tileset;

/* Is this a name as kiln-chunk and kiln-lod give nodes: digits with / - . + between them? */
bool kiln_tile_can_name(const char *node);
/* The name of the GLB of a chunk of such a node: "/0/3/5-7@2" becomes "0_3_5-7_L2.glb", "/" at
 * level 0 "root_L0.glb". Two chunks never have one.
 */
void kiln_tile_uri(const char *node, uint32_t level, char out[KILN_TILE_URI]);
/* The name of part `part` of it, from 1 on, which holds rows that its own GLB cannot:
 * "0_3_5-7_L0_F1.glb". */
void kiln_tile_part_uri(const char *node, uint32_t level, uint32_t part, char out[KILN_TILE_URI]);
/* Is this a name that one of the two gives? */
bool kiln_tile_uri_is_ours(const char *name);

/* From a PLY's axes to the tileset's. */
void kiln_tile_axes(const double v[3], double out[3]);

/* The shadow of a box in the mean of all directions: a quarter of its surface (Cauchy), scene units
 * squared. */
double kiln_tile_shadow(const float lo[3], const float hi[3]);
/* The box of a node that counts: of where nearly all of its rows are, if that is known
 * (kiln_level_tree_read_sites), since a few far out would take all of a picture; else of where they
 * reach. */
void kiln_tile_core_box(const kiln_level_node *n, float lo[3], float hi[3]);

/* The geometricError of a level of a node: 16 times the pixel, in scene units, from which on the
 * level's measured error (kiln_chunk.errors) is 35 dB below the node in the picture. The node has
 * its part of the picture: so many pixels as its shadow has or, where the scene is so far away that
 * it does not fill a picture of 500 x 500 pixels, its shadow's part of the whole's; at most the
 * pixel at which the scene is 32 across. Without measured errors: the pixel that each Gaussian has
 * for itself. shadow: what the node has of the scene's shadow; whole: that. Parts of nodes that
 * stand for the scene together add up to the whole, although their boxes overlap in the picture. */
double kiln_tile_error(const kiln_chunk *level, double shadow, double whole);
/* What each node of a tree has of the scene's shadow, as if none lay behind another, into
 * parts[n_nodes]: leaves share one half by their shadows and the other evenly, so that a few
 * Gaussians in a small box do not decide for all, and a node above has what its leaves have. So the
 * parts of any cut through the tree add up to the whole, which is the root's, the last one. */
void kiln_tile_shares(const kiln_level_tree *t, double *parts);

/* Makes errors and boxes what the specification wants: a parent's error is not below its
 * children's, its box holds theirs. A tile of an empty box (lo above hi) with nothing below it gets
 * its parent's middle. */
void kiln_tileset_settle(kiln_tile *tiles, uint32_t n);

/* Where a tileset stands on the globe: z away from WGS 84's ellipsoid, y north, x east, at this
 * latitude and longitude in degrees and this height above the ellipsoid in metres. up: the
 * direction that shall point up, in a PLY's axes; it is turned to z by the shortest way. */
void kiln_tileset_place(double latitude, double longitude, double height, const double up[3],
                        double transform[16]);

/* Appends the text of tileset.json. KILN_E_NOMEM. */
kiln_status kiln_tileset_json(const kiln_tileset *t, kiln_buffer *out,
                              kiln_error *err) KILN_MUST_CHECK;

#endif
