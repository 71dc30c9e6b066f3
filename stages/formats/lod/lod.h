/* lod -- the layout of lod-meta.json, streamed SOG of PlayCanvas, for reader and writer
 * (playcanvas/splat-transform, src/lib/writers/write-lod.ts and readers/read-lod.ts):
 *
 *   {"version": 1, "asset": {"generator": TEXT}, "count": rows of all levels, "counts": [of each], "lodLevels": L,
 *    "environment": NAME (may be absent: Gaussians that every level has), "filenames": [NAME, ...], "tree": node}
 *
 *   node:  {"bound": {"min": [3], "max": [3]}, "children": [node, node]}
 *   leaf:  {"bound": ..., "lods": {"0": {"file": index of filenames, "offset": first row, "count":
 *          rows}, ...}}
 *
 * Names are of meta.json files or archives of SOG (sog.h), from lod-meta.json on. Level 0 is the
 * finest; a leaf has those at which it is not empty. "version", "count" and "counts" are not there
 * before splat-transform 1.0. kiln-export adds "lodErrors": true where leaves have "errors", one a
 * level.
 */
#ifndef KILN_STAGES_FORMATS_LOD_LOD_H
#define KILN_STAGES_FORMATS_LOD_LOD_H

#define KILN_LOD_META "lod-meta.json"
enum { KILN_LOD_VERSION = 1 };

#define KILN_LOD_KEY_VERSION "version"
#define KILN_LOD_KEY_COUNT "count" /* of a leaf's level too */
#define KILN_LOD_KEY_COUNTS "counts"
#define KILN_LOD_KEY_LEVELS "lodLevels"
#define KILN_LOD_KEY_ENVIRONMENT "environment"
#define KILN_LOD_KEY_FILES "filenames"
#define KILN_LOD_KEY_TREE "tree"
#define KILN_LOD_KEY_CHILDREN "children"
#define KILN_LOD_KEY_LODS "lods"
#define KILN_LOD_KEY_FILE "file"
#define KILN_LOD_KEY_OFFSET "offset"

#endif
