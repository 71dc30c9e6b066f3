/* units -- what kiln-knn computes in its worker: the spacing of a whole layer, colours of COLMAP's colourless points, and
 * Gaussians from the points of a block. */
#ifndef KILN_STAGES_KNN_UNITS_H
#define KILN_STAGES_KNN_UNITS_H

#include "stages/engine/engine.h"

typedef enum { KILN_KNN_SPACING, KILN_KNN_COLOURS, KILN_KNN_INITIAL } kiln_knn_unit_kind;

/* Payload of all kinds. */
typedef struct {
    kiln_knn_unit_kind kind;
    uint32_t neighbors;     /* spacing */
    uint32_t block;         /* initial: index in the source layer */
    float fallback2, most2; /* spacing: what is stored where the value is not at most most2 */
    float opacity;          /* initial */
    bool grey;              /* initial: no point of the cloud has a colour, so those that no photo colours are grey */
    kiln_hash source;       /* digest of the layer */
    kiln_hash spacing;      /* initial: key of the spacing unit, whose output called as the block is read */
    kiln_hash colours;      /* initial: key of the colours unit where it coloured points of this block, else zero */
} kiln_knn_unit;

/* Outputs: spacing: one f32 array per block, called as the block; counters min2, median2, max2, fallbacks.
 * colours: for each block with points that got a colour their rows in the block, increasing, u32[n], and their colours,
 * f32[3][n]; counters points (without colour), coloured, photos (looked at).
 * initial: log_scales, quats, opacity_logits, sh0, and bounds (a kiln_bounds). */
#define KILN_KNN_COLOURED_ROWS "%.80s rows" /* output names, from the block's */
#define KILN_KNN_COLOURED_RGB "%.80s rgb"
kiln_status kiln_knn_compute(kiln_worker *w, const char *name, const void *payload, size_t payload_bytes, kiln_error *err);

/* The unit of colours (colours.c). */
kiln_status kiln_knn_colours(kiln_worker *w, const kiln_layer *source, kiln_error *err) KILN_MUST_CHECK;

#endif
