/* refine -- fits the levels of a chunk to pictures of the full scene: kiln-lod --refine STEPS. The only part of SplatKiln that fits
 * anything.
 *
 * A level of a chunk is moved by Adam (kernels/adam) so that pictures of it, with its neighbours' merged rows of the same level
 * around it, look like pictures of level 0 of the chunk and its neighbours. Rows keep their number, ancestry and weights. A level
 * is kept as refined only if it is better than the merged one in views that it was not fitted to.
 *
 * Views are the cameras that have the middle of the chunk in their picture (of the box that holds all but the outermost rows), at
 * most KILN_REFINE_CAMERAS, evenly spread. A view stands where the camera stands and looks at a point of the chunk, at most
 * KILN_REFINE_WINDOW pixels across, at two sizes: that of the camera and 2^(-K/2) of it for level K. One in KILN_REFINE_LEFT_OUT of
 * the views between cameras is left out of fitting. (Turning a camera changes no footprint, and every profile draws about the
 * middle of its picture.)
 *
 * Neighbours are the chunks whose Gaussians reach into the chunk's, the nearest KILN_REFINE_NEIGHBOURS: what lies farther away
 * neither hides the chunk nor shows through in these pictures. So a unit depends on its neighbourhood alone.
 *
 * Same bits on every device: all operations have the same bits on CPU and GPU, views and decisions are computed in pinned doubles.
 */
#ifndef KILN_STAGES_LOD_REFINE_H
#define KILN_STAGES_LOD_REFINE_H

#include "stages/frame/frame.h"
#include "stages/lod/node_units.h"

enum {
    KILN_REFINE_VIEWS = 40,
    KILN_REFINE_CAMERAS = 28,    /* views that stand where cameras do; the others stand between them */
    KILN_REFINE_CANDIDATES = 48, /* cameras that the parent offers */
    KILN_REFINE_LEFT_OUT = 3,    /* one view between cameras in so many */
    KILN_REFINE_NEIGHBOURS = 12,
    KILN_REFINE_WINDOW = 256,
    KILN_REFINE_LEVELS = 8,     /* most levels of a leaf */
    KILN_REFINE_PAIRS = 1 << 22 /* a view that lists more pairs is left out */
};

/* A camera that may see the chunk: scene units, origin subtracted. */
typedef struct {
    double r[9], centre[3]; /* rows: right, down, forward */
    double fx, fy, cx, cy, width, height;
} kiln_refine_camera;

/* A chunk: the one that is refined, or a neighbour. */
typedef struct {
    kiln_hash unit; /* key of its merged levels */
    uint32_t chunk; /* of `baked` */
    uint32_t zero;
    uint64_t rows;
} kiln_refine_chunk;

/* Payload. No bytes are undefined. */
typedef struct {
    kiln_lod_unit_kind unit; /* KILN_LOD_REFINE */
    uint32_t steps;
    uint32_t n_chunks; /* the refined one is the first */
    uint32_t n_cameras;
    uint32_t n_levels; /* 1 .. n_levels */
    uint32_t sh_degree;
    uint32_t weighted;
    uint32_t profile;
    uint32_t antialiased;
    uint32_t zero;
    double near_m;
    kiln_hash baked;
    kiln_hash visibility; /* of the refined chunk, as in kiln_lod_unit: errors count what cameras see */
    kiln_lod_error_request errors;
    uint64_t counts[KILN_REFINE_LEVELS]; /* of the chunk's levels */
    kiln_refine_chunk chunks[1 + KILN_REFINE_NEIGHBOURS];
    kiln_refine_camera cameras[KILN_REFINE_CANDIDATES];
} kiln_refine_unit;

/* ---- parent: main thread -------------------------------------------------------------------------------------------------- */
/* Refines the leaves of a plan whose merged levels are stored, and leaves the units of those in p->refined and their counts in
 * p->tried and p->better. Nodes that no camera sees have none. steps: 0 does nothing. Fails as kiln_run_units. */
kiln_status kiln_lod_refine(kiln_run *r, kiln_lod_plan *p, const kiln_camera *cameras, uint32_t n_cameras,
                            const kiln_view_request *request, const double origin[3], uint32_t steps,
                            kiln_error *err) KILN_MUST_CHECK;

/* ---- worker ----------------------------------------------------------------------------------------------------------------- */
/* Outputs as those of a leaf. */
kiln_status kiln_lod_refine_compute(kiln_worker *w, const void *payload, size_t payload_bytes, kiln_error *err) KILN_MUST_CHECK;
/* Host memory that such a unit takes, and each further thread of it. */
uint64_t kiln_lod_refine_ram(const kiln_refine_unit *u);
uint64_t kiln_lod_refine_ram_thread(const kiln_refine_unit *u);

#endif
