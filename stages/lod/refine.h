/* refine -- fits the levels of a chunk to pictures of the full scene: kiln-lod --refine STEPS. The
 * only part of SplatKiln that fits anything.
 *
 * A level of a chunk is moved by Adam (kernels/adam) so that pictures of it, with its neighbours'
 * merged rows of the same level around it, look like pictures of level 0 of the chunk and its
 * neighbours. Rows keep their number, ancestry and weights. Then it is led back towards the merged
 * level, by halves, until it takes the share KILN_REFINE_LEAST_GAIN of the merged one's squared
 * error away in views that it was not fitted to, and neither these nor views like them are worse
 * (refine_judge.h). If no such share is found, it stays as merged.
 *
 * Views are the cameras that have rows of the chunk in their picture, at most KILN_REFINE_CAMERAS,
 * evenly spread, and others between cameras that are neighbours. A picture is a part of the view's
 * own picture, at most KILN_REFINE_WINDOW pixels across, at two sizes: that of the camera, or the
 * largest at which it shows a quarter of the chunk, and 2^(-K/2) of the camera's for level K, or
 * the largest at which it shows all of the chunk. One in KILN_REFINE_LEFT_OUT of the views between
 * cameras is left out of fitting.
 *
 * Neighbours are the chunks whose Gaussians reach into the chunk's, the nearest
 * KILN_REFINE_NEIGHBOURS: what lies farther away neither hides the chunk nor shows through in these
 * pictures. So a unit depends on its neighbourhood alone.
 *
 * Same bits on every device: all operations have the same bits on CPU and GPU, views and decisions
 * are computed in pinned doubles.
 */
#ifndef KILN_STAGES_LOD_REFINE_H
#define KILN_STAGES_LOD_REFINE_H

#include "stages/frame/frame.h"
#include "stages/lod/node_units.h"
#include "stages/lod/refine_units.h"

/* ---- parent: main thread --------------------------------------------------------------------- */
/* Before the first list: plans what the leaves' neighbourhoods say already, and announces what a
 * unit takes, so that a refusal of --ram names a cap that is enough for it. steps: 0 does
 * nothing. */
kiln_status kiln_lod_refine_prepare(kiln_run *r, kiln_lod_plan *p, const kiln_view_request *request,
                                    uint32_t steps, kiln_error *err) KILN_MUST_CHECK;
/* Refines the leaves of a plan that was prepared for it and whose merged levels are stored, and
 * leaves the units of those in p->refined and their counts in p->tried and p->better. Nodes that no
 * camera sees have none. Fails as kiln_run_units. */
kiln_status kiln_lod_refine(kiln_run *r, kiln_lod_plan *p, const kiln_camera *cameras,
                            uint32_t n_cameras, const kiln_view_request *request,
                            const double origin[3], kiln_error *err) KILN_MUST_CHECK;

/* ---- worker ---------------------------------------------------------------------------------- */
/* Outputs as those of a leaf. */
kiln_status kiln_lod_refine_compute(kiln_worker *w, const void *payload, size_t payload_bytes,
                                    kiln_error *err) KILN_MUST_CHECK;
/* Host memory that such a unit takes, and each further thread of it. */
uint64_t kiln_lod_refine_ram(const kiln_refine_unit *u);
uint64_t kiln_lod_refine_ram_thread(const kiln_refine_unit *u);

#endif
