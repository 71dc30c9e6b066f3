/* lod_units -- what the parent of kiln-lod asks its workers for.
 *
 * leaf     the levels of a chunk of `baked`, merged bottom-up
 * inner    the levels of a node above: its children's coarsest levels, merged further. The
 *          children's units are stored before
 * others    visibility (visibility_units.h) and refinement (refine_units.h) have payloads of their
 *           own, which begin with the kind,
 * too
 *
 * Outputs of a leaf and of an inner node, for each level K: "K PLANE" for every plane of a level
 * (lod_rows.h), "K bounds" (kiln_bounds); and "errors" (kiln_lod_errors) if there are cameras.
 */
#ifndef KILN_STAGES_LOD_UNITS_H
#define KILN_STAGES_LOD_UNITS_H

#include "schema/levels.h"
#include "stages/engine/engine.h"
#include "stages/lod/distance_prior.h"
#include "stages/lod/errors.h"

/* First word of every payload. */
typedef enum {
    KILN_LOD_LEAF,
    KILN_LOD_INNER,
    KILN_LOD_SHARES, /* visibility_units.h */
    KILN_LOD_SEEN,
    KILN_LOD_REFINE = 16 /* refine_units.h */
} kiln_lod_unit_kind;

/* A child of an inner node, as its unit left it. */
typedef struct {
    kiln_hash unit;   /* key of the unit that made it */
    uint32_t level;   /* the coarsest */
    uint32_t is_leaf; /* 64 bits altogether with level: the array is hashed and copied as it is */
    uint64_t count;   /* rows of that level */
} kiln_lod_child;

/* Payload of leaves and inner nodes. Behind it: kiln_lod_child [n_children]. */
typedef struct {
    kiln_lod_unit_kind unit;
    uint32_t chunk;                 /* leaf: of the layer `baked` */
    uint32_t n_children;            /* inner */
    uint32_t first_level, n_levels; /* the levels that are made */
    uint32_t sh_degree;             /* of the layer */
    /* that are merged: of the chunk, or of the children's coarsest levels */
    uint64_t rows;
    uint64_t counts[KILN_LEVELS_MAX]; /* [n_levels] rows of each level */
    kiln_hash baked;                  /* digest of the layer */
    /* leaf: blob of the chunk's plane of the layer `visibility`; zero: all 1 */
    kiln_hash visibility;
    kiln_hash prominence; /* likewise of its plane `prominence`; zero: none */
    /* leaf: says the prominence of rows where there is no such plane; radius 0: none */
    kiln_distance_prior prior;
    uint32_t weighted; /* the levels have the planes `visibility` and `prominence` */
    /* that it may have if its share of memory has room; they are no part of its key */
    uint32_t threads;
    kiln_lod_error_request errors; /* how they are measured */
} kiln_lod_unit;

/* kiln_stage_program.unit: looks at the kind and calls one of those below. */
kiln_status kiln_lod_compute(kiln_worker *w, const char *name, const void *payload,
                             size_t payload_bytes, kiln_error *err);
kiln_status kiln_lod_leaf_unit(kiln_worker *w, const kiln_lod_unit *u,
                               kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_lod_inner_unit(kiln_worker *w, const kiln_lod_unit *u,
                                const kiln_lod_child *children, kiln_error *err) KILN_MUST_CHECK;

/* Host memory that such a unit takes on one thread, for kiln_unit.ram; and that each further thread
 * takes. */
uint64_t kiln_lod_unit_ram(const kiln_lod_unit *u);
uint64_t kiln_lod_unit_ram_thread(const kiln_lod_unit *u);
/* The same of any unit with the default number of levels, before there are chunks: the scene has so
 * many rows. */
uint64_t kiln_lod_scene_ram(uint64_t rows, uint32_t sh_degree);

#endif
