/* errors -- measures how much a level of a node differs from the full scene, for
 * stages/frame/level_choice.h.
 *
 * Definition. The error of a level at a footprint f (the width of a pixel in scene units) is the
 * mean over views of f^2 times the sum over pixels, and mean over red, green and blue, of (level -
 * reference)^2: an energy in scene units squared. Both pictures show the node alone, over black,
 * under the profile and antialiasing of the request.
 *
 * Visibility. To a camera among the rows a difference counts in proportion to v below 0.1 and fully
 * above (v: the share of a row that reaches the pictures of the scene's cameras): colours are
 * multiplied by sqrt(v / 0.1). A node that is seen from outside counts in full: what hides it there
 * depends on where a camera stands, and is asked for each view (stages/frame/level_hiding.h).
 *
 * Views. The parent picks up to KILN_LOD_CANDIDATES of the cameras that have the middle of the
 * node's box in their pictures, evenly spread in their order; of all cameras if none has. The
 * worker measures with up to KILN_LOD_VIEWS of them: of each part of the list that one whose
 * picture has most of the node's rows. From afar a view stands where the camera stands and looks at
 * the middle of the node. (Turning changes no footprint, and every profile draws about the middle
 * of its picture.) Its focal length makes the footprint at the middle exact. A camera nearer than
 * twice the radius of the node, or among its rows, is taken as it is, with its own direction and
 * picture: from outside, the near rows of a capture are not what it sees of them. Its distance is
 * that of the node's sites in its picture, as when levels are chosen, and what it measures is
 * divided by the share of the coarsest level's rows that its picture has (schema/level_sites.h):
 * errors are of the whole node. If no such picture has any row, views look at the node from twice
 * its radius and twice the near plane.
 *
 * Window. A picture holds the node up to 2.5 standard deviations of its Gaussians, but for the half
 * per cent that reach farthest in each direction: a few large ones would leave no pixels for the
 * rest. Of a picture of more than KILN_LOD_WINDOW pixels across a few parts are drawn, which stand
 * for all of it (error_windows.h).
 *
 * Footprints are 2^(first_step + i), i = 0 .. KILN_LOD_STEPS - 1. The first is the largest power of
 * two that is not above the smallest footprint that any camera of the parent's choice has at the
 * nearest point of the node's box, or the median of those that the candidates have, if that is
 * larger or cameras are taken as they are; larger if a picture would have more than 4,096 pixels
 * across.
 *
 * Every second footprint is measured. Those between have the mean of both sides, which halves the
 * time: from one to the next an error changes by a factor of at most 2 as a rule, where that mean
 * is 6 % above the geometric one.
 *
 * Nodes above the chunks are compared with their children's coarsest levels, and the children's
 * errors are added to what is measured, for a camera among the rows at the distances and with the
 * shares that it has of each child's sites: what one merge loses and what the next one loses are
 * about orthogonal. The square of the sum of roots would be certain, but up to 3 dB more for each
 * height.
 *
 * Errors are made monotone: none is below that of a finer level, nor, in pixels (error / f^2),
 * below its own at a larger footprint.
 *
 * Same bits everywhere: drawn by operations on the CPU (kernels/runner.h), also in a worker that
 * has a GPU; sums of doubles in the order of pixels. Results do not depend on threads. Source:
 * ours; Chou et al. 1989 for additive errors in tree pruning.
 */
#ifndef KILN_STAGES_LOD_ERRORS_H
#define KILN_STAGES_LOD_ERRORS_H

#include "kernels/coarsen/coarsen.h"
#include "kernels/profiles/profiles.h"
#include "schema/level_sites.h"

enum {
    KILN_LOD_VIEWS = 4,
    KILN_LOD_CANDIDATES = 16,
    KILN_LOD_STEPS = 7,
    KILN_LOD_WINDOW = 128 /* pixels, without the border of KILN_LOD_BORDER on each side */,
    KILN_LOD_BORDER = 4
};

/* How pictures will be drawn, and by which cameras. */
typedef struct {
    kiln_profile_id profile;
    bool antialiased;
    double near_m;
    double origin[3]; /* of the scene */
    uint32_t n_cameras;
    const kiln_camera **cameras; /* [n_cameras], borrowed from the caller's; the array is owned */
} kiln_lod_error_source;

/* A camera that measures: scene units, origin subtracted. */
typedef struct {
    double centre[3], right[3], forward[3];
    double tan_x, tan_y; /* half of its picture at distance 1 */
    double focal;        /* pixels, the larger of both axes */
} kiln_lod_error_view;

/* All that the errors of a node depend on besides its rows. Part of a unit's payload and key: no
 * bytes are undefined. */
typedef struct {
    uint32_t n_views; /* 0: there are no cameras, and so no errors */
    uint32_t profile;
    uint64_t antialiased;
    double near_m;
    double finest; /* smallest footprint that is of interest; above 0 */
    kiln_lod_error_view views[KILN_LOD_CANDIDATES];
} kiln_lod_error_request;

/* ---- parent ---------------------------------------------------------------------------------- */
/* Sets the cameras of a source: those of the training split, or all if there are none, in their
 * order. Release it with free. KILN_E_NOMEM. */
kiln_status kiln_lod_error_source_cameras(kiln_lod_error_source *s, const kiln_camera *all,
                                          uint32_t n_all, kiln_error *err) KILN_MUST_CHECK;
/* Fills the request of a node, of which the box is used. Without cameras n_views is 0. */
void kiln_lod_error_request_init(kiln_lod_error_request *q, const kiln_lod_error_source *s,
                                 const kiln_level_node *node);
/* Host memory of kiln_lod_errors_measure beside its arguments, on one thread; and of each further
 * thread. rows: the most of the reference and any level. */
uint64_t kiln_lod_errors_bytes(uint64_t rows);
uint64_t kiln_lod_errors_bytes_thread(uint64_t rows);

/* ---- worker ---------------------------------------------------------------------------------- */
/* The errors of a node's levels: one row for each level. */
typedef struct {
    uint32_t n_levels; /* 0: there are no errors */
    int32_t first_step;
    float at[KILN_LEVELS_MAX][KILN_LOD_STEPS];
} kiln_lod_errors;

/* What a node above takes from a child: its errors, and where the rows are that it gives. */
typedef struct {
    kiln_lod_errors errors;
    kiln_level_sites sites;
} kiln_lod_child_errors;

/* Adds the errors of a child's coarsest level to `sum` [KILN_LOD_STEPS], whose steps begin at
 * first_step. A step that the child lacks has the error of the next finer one that it has; finer
 * than all, at most twice the first (stages/frame/level_cost.h). */
void kiln_lod_errors_add(const kiln_lod_errors *child, int32_t first_step, double *sum);

/* Says whether stored errors are of so many levels, and numbers that the manifest takes. */
bool kiln_lod_errors_good(const kiln_lod_errors *e, uint32_t n_levels);

/* A node whose levels are measured against the reference. Rows need source_first, different in
 * each. */
typedef struct {
    const kiln_lod_error_request *request;
    const kiln_coarsen_rows *reference;
    const kiln_coarsen_rows *levels; /* [n_levels] */
    uint32_t n_levels;
    uint32_t n_children;                   /* 0 of a leaf */
    const kiln_lod_child_errors *children; /* [n_children] of an inner node */
} kiln_lod_measured_node;
/* Measures the levels of a node. Without views or without rows out->n_levels is 0. KILN_E_NOMEM,
 * and what the operations of kernels/draw return. */
kiln_status kiln_lod_errors_measure(const kiln_lod_measured_node *n, unsigned threads,
                                    kiln_lod_errors *out, kiln_error *err) KILN_MUST_CHECK;

#endif
