/* sog -- the layout of SOG of PlayCanvas, versions 1 and 2, for readers and writers: meta.json and
 * lossless WebP images of codes, in a folder or in one ZIP archive (.sog). PlayCanvas, "The SOG
 * Format"; playcanvas/splat-transform, src/lib/readers/read-sog.ts and read-sog-v1.ts.
 *
 * Images have the rows in order, pixel i = row i, all the same size; codes stand in red, green,
 * blue, alpha:
 *
 *   means_l, means_u   x y z     u = lower byte and upper byte; mins + (maxs - mins) u / 65535 is
 *                                sign(x) ln(|x| + 1)
 *   scales             x y z     log scales out of a codebook
 *   quats              3 and a   a - 252 is which of w x y z is the largest; the others in this
 *                                order: (2 b / 255 - 1) / sqrt(2)
 *   sh0                r g b a   colours out of a codebook; opacity a / 255
 *   shN_labels         lower, upper byte of a row's entry in the palette
 *   shN_centroids      the palette: 64 entries in a row of pixels, and K pixels an entry, one for
 *                      each coefficient above degree 0, whose r g b are out of a codebook
 *
 * meta.json of version 2; an image has the name that stands there:
 *
 *   {"version": 2, "asset": {"generator": TEXT}, "count": rows, "model": "antialiased" or "2dgs" (may be absent),
 *    "means": {"mins": [3], "maxs": [3], "files": [l, u]},   "scales": {"codebook": [256], "files":
 *                                                            [1]},
 *    "quats": {"files": [1]},                                "sh0": {"codebook": [256], "files":
 *                                                            [1]},
 *    "shN": {"count": entries, "bands": degree, "codebook": [256], "files": [centroids, labels]} (absent at degree 0)}
 *
 * Version 1 names none: "count" is "shape"[0] of means, codebooks are ranges "mins" and "maxs",
 * that of sh0's alpha is of logits, and the degree is what the palette's width says.
 */
#ifndef KILN_STAGES_FORMATS_SOG_SOG_H
#define KILN_STAGES_FORMATS_SOG_SOG_H

#include "base/checked.h"
#include "base/harmonics.h"

#include <stdint.h>

/* ---- meta.json ------------------------------------------------------------------------------- */

#define KILN_SOG_META "meta.json"
enum { KILN_SOG_VERSION = 2 };

#define KILN_SOG_KEY_VERSION "version"
#define KILN_SOG_KEY_ASSET "asset"
#define KILN_SOG_KEY_GENERATOR "generator"
#define KILN_SOG_KEY_COUNT "count"
#define KILN_SOG_KEY_MODEL "model"
/* true: what Spark asks for, where all others ask for the model */
#define KILN_SOG_KEY_ANTIALIAS "antialias"
#define KILN_SOG_KEY_MEANS "means"
#define KILN_SOG_KEY_SCALES "scales"
#define KILN_SOG_KEY_QUATS "quats"
#define KILN_SOG_KEY_SH0 "sh0"
#define KILN_SOG_KEY_SHN "shN"
#define KILN_SOG_KEY_MINS "mins"
#define KILN_SOG_KEY_MAXS "maxs"
#define KILN_SOG_KEY_FILES "files"
#define KILN_SOG_KEY_CODEBOOK "codebook"
#define KILN_SOG_KEY_BANDS "bands"
#define KILN_SOG_ANTIALIASED "antialiased" /* models */
#define KILN_SOG_2DGS "2dgs"

/* ---- images ---------------------------------------------------------------------------------- */

typedef enum {
    KILN_SOG_MEANS_L,
    KILN_SOG_MEANS_U,
    KILN_SOG_SCALES,
    KILN_SOG_QUATS,
    KILN_SOG_SH0,
    KILN_SOG_LABELS, /* this and the palette only where there are coefficients above degree 0 */
    KILN_SOG_PALETTE,
    KILN_SOG_IMAGES
} kiln_sog_image;

/* The codes of the images, as planes of one byte a row: where those of an image begin, and how many
 * it has. */
typedef struct {
    const char *file;  /* as it is written */
    uint32_t first, n; /* n: channels; of the palette, whose planes are 3 K of its entries, 0 */
} kiln_sog_picture;
enum { KILN_SOG_CODES = 17 };
extern const kiln_sog_picture kiln_sog_pictures[KILN_SOG_IMAGES]; /* sog_layout.c */

enum {
    KILN_SOG_DEGREE_MAX = 3,
    KILN_SOG_PALETTE_MAX = 65536, /* entries */
    KILN_SOG_ENTRIES_A_ROW = 64,
    KILN_SOG_QUAT_TAG = 252,
    KILN_SOG_POSITION_MOST = 65535, /* code of a coordinate */
};
/* Of |x|, as a logarithm: exp(80) still is a float32. |x| up to 5.5e34. */
#define KILN_SOG_POSITION_LOG_MAX 80.0

/* Pixels of a palette. */
static inline void kiln_sog_palette_size(uint32_t entries, uint32_t degree, uint64_t *width,
                                         uint64_t *height)
{
    *width = (uint64_t)KILN_SOG_ENTRIES_A_ROW * kiln_sh_coefficients(degree);
    *height = kiln_div_up(entries, KILN_SOG_ENTRIES_A_ROW);
}

#endif
