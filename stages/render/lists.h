/* lists -- a camera's tile lists, band by band: from its stored tile table if there is one, else computed. The bits of the picture
 * are the same in both cases. */
#ifndef KILN_STAGES_RENDER_LISTS_H
#define KILN_STAGES_RENDER_LISTS_H

#include "stages/frame/frame.h"

typedef struct {
    uint32_t n_bands;
    uint32_t *starts; /* [n_bands + 1] first tile row of each band; owned */
    uint64_t *pairs;  /* [n_bands]; owned */
    uint64_t total;
    kiln_tile_table *table; /* NULL: lists are computed; owned */
} kiln_lists;

/* Looks for a stored table. table_key: a table that was made from other inputs is ignored. KILN_E_IO. */
kiln_status kiln_lists_find(kiln_worker *w, const kiln_view_request *request, const char *camera, kiln_hash table_key,
                            kiln_lists *out, kiln_error *err) KILN_MUST_CHECK;
/* Fills the bands: those of the table, or by counting the pairs of the frame. KILN_E_IO: the table's bands do not cover the image.
 */
kiln_status kiln_lists_open(kiln_worker *w, kiln_frame *f, const kiln_view_request *request, kiln_lists *l,
                            kiln_error *err) KILN_MUST_CHECK;
/* Draws band b of the frame. `a` has the arguments of raster without Gaussians, which are the frame's, and without lists, which
 * come from the table or are computed. tile_counts and ranks have room for the lists of the largest band. KILN_E_IO: a damaged
 * table. */
kiln_status kiln_lists_draw(kiln_worker *w, const kiln_lists *l, uint32_t b, kiln_frame *f, const kiln_raster_args *a,
                            uint32_t *tile_counts, uint32_t *ranks, kiln_error *err) KILN_MUST_CHECK;
/* Also after a failure. */
void kiln_lists_release(kiln_lists *l);

#endif
