/* made_levels -- levels of detail that an export merges for itself, because no bake has a level of
 * just so many rows.
 *
 * A unit reads a chunk of a layer, of which filters may leave a part, or one of its levels. It
 * merges the rows as kiln-lod does (kernels/coarsen), halving them until the wanted number is
 * next. The rows that are left go to a file in scratch, at a place that the parent has chosen, and
 * writers read them there as they read stored chunks (formats/rows.h). */
#ifndef KILN_STAGES_EXPORT_MADE_LEVELS_H
#define KILN_STAGES_EXPORT_MADE_LEVELS_H

#include "kernels/bounds/bounds.h"
#include "stages/formats/writer.h"
#include "stages/lod/distance_prior.h"

/* A unit, and what came of it. The list of them is kiln_export.plan of the round. */
typedef struct {
    uint32_t bake, chunk; /* of the bake's layer; behind its chunks, those of its levels */
    uint64_t n;           /* rows that are wanted, at least 1 */
    uint64_t at;          /* where they go in kiln_export.made_path */
    /* of a chunk of the layer: blob of its plane of the layer `visibility`; zero: all 1 */
    kiln_hash visibility;
    kiln_hash prominence; /* likewise of its plane `prominence` */
    /* of a chunk of the layer: says its prominence; radius 0: it does not */
    kiln_distance_prior prior;
    uint32_t weighted;    /* rows have visibility and prominence */
    uint32_t antialiased; /* pictures that the levels are for */
    kiln_bounds bounds;   /* of the rows; set when the unit is done */
} kiln_made_request;

/* Names the planes of a made chunk of c->count rows. Free c->planes. KILN_E_NOMEM. */
kiln_status kiln_made_planes(kiln_chunk *c, uint32_t sh_degree, kiln_error *err) KILN_MUST_CHECK;
/* Bytes of n rows in scratch. */
uint64_t kiln_made_bytes(uint64_t n, uint32_t sh_degree);
/* The unit. Its result is a kiln_bounds. KILN_E_INPUT: filters leave fewer rows than are wanted;
 * and as kiln_plane_read. */
kiln_status kiln_made_unit(kiln_export_worker *x, uint64_t unit, kiln_error *err) KILN_MUST_CHECK;
/* What a unit takes at most, for kiln_export_round.ram. */
uint64_t kiln_made_ram(const kiln_export *e, uint64_t unit);

#endif
