/* visibility_units -- what the parent asks workers for to find out how much cameras see of each
 * Gaussian.
 *
 * shares  draws some views of the whole layer. Output, for each chunk that one of them may see,
 *         named as the chunk: f32 [rows], the rows' shares of the pictures (kernels/draw/shares.h),
 *         summed over the views, in pixels
 * seen    a chunk: sums up its shares, projects it for each view, and divides. Output: "visibility"
 *         f32 [rows]. Counter: hidden, the rows that have the least
 *
 * A share is summed as an integer and rounded once, to f32: no order and no cut of memory shows.
 */
#ifndef KILN_STAGES_LOD_VISIBILITY_UNITS_H
#define KILN_STAGES_LOD_VISIBILITY_UNITS_H

#include "stages/frame/frame.h"
#include "stages/lod/lod_units.h"

/* of a unit: few enough to be spread over devices, and sums of a chunk are stored for each unit */
enum { KILN_SHARES_VIEWS = 4 };

typedef struct {
    kiln_lod_unit_kind unit;
    uint32_t n_views;
    kiln_hash baked;
    uint64_t ram; /* what the unit takes, without planes that are kept */
    /* 0, or the most Gaussians that a picture has in memory: it is drawn in slabs */
    uint64_t capacity;
    kiln_view_request views[KILN_SHARES_VIEWS];
} kiln_shares_unit;

/* Behind it: kiln_hash [n_groups], blobs of the chunk's shares of each shares unit, zero where it
 * has none. Then, shared by all units: kiln_view_request [n_views]. */
typedef struct {
    kiln_lod_unit_kind unit;
    uint32_t chunk;
    uint32_t n_groups, n_views;
    kiln_hash baked;
    uint64_t rows;
} kiln_seen_unit;

/* One of both. */
kiln_status kiln_lod_visibility_unit(kiln_worker *w, const char *name, const void *payload,
                                     size_t payload_bytes, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_shares_compute(kiln_worker *w, const kiln_shares_unit *u,
                                kiln_error *err) KILN_MUST_CHECK;
/* KILN_E_IO: one of the shares is none that pictures give. */
kiln_status kiln_shares_check(const float *shares, uint64_t n, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_seen_compute(kiln_worker *w, const kiln_seen_unit *u, const kiln_hash *shares,
                              const kiln_view_request *views, kiln_error *err) KILN_MUST_CHECK;

#endif
