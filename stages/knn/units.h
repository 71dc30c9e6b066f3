/* units -- what kiln-knn computes in its worker: the spacing of a whole layer, and Gaussians from the points of a block. */
#ifndef KILN_STAGES_KNN_UNITS_H
#define KILN_STAGES_KNN_UNITS_H

#include "stages/engine/engine.h"

typedef enum { KILN_KNN_SPACING, KILN_KNN_INITIAL } kiln_knn_unit_kind;

/* Payload of both kinds. */
typedef struct {
    kiln_knn_unit_kind kind;
    uint32_t neighbors;     /* spacing */
    uint32_t block;         /* initial: index in the source layer */
    float fallback2, most2; /* spacing: what is stored where the value is not at most most2 */
    float opacity;          /* initial */
    kiln_hash source;       /* digest of the layer */
    kiln_hash spacing;      /* initial: key of the spacing unit, whose output called as the block is read */
} kiln_knn_unit;

/* Outputs: spacing: one f32 array per block, called as the block; counters min2, median2, max2, fallbacks.
 * initial: log_scales, quats, opacity_logits, sh0, and bounds (a kiln_bounds). */
kiln_status kiln_knn_compute(kiln_worker *w, const char *name, const void *payload, size_t payload_bytes, kiln_error *err);

#endif
