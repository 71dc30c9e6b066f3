/* lists -- a camera's tile lists band by band, from its stored table where there is one, else computed. The picture
 * drawn from them has the same bits either way. */
#ifndef KILN_STAGES_RENDER_LISTS_H
#define KILN_STAGES_RENDER_LISTS_H

#include "stages/frame/frame.h"

typedef struct {
    uint32_t n_bands;
    uint32_t *starts; /* [n_bands + 1] tile rows; owned */
    uint64_t *pairs;  /* [n_bands]; owned */
    uint64_t total;
    kiln_tile_table *table; /* NULL: computed */
} kiln_lists;

/* Finds the table, where there is one; table_key: only one made from the same inputs counts. */
kiln_status kiln_lists_find(kiln_worker *w, const kiln_view_request *request, const char *camera, kiln_hash table_key,
                            kiln_lists *out, kiln_error *err) KILN_MUST_CHECK;
/* Bands: of the table, or of the pairs as they are counted now. */
kiln_status kiln_lists_open(kiln_worker *w, kiln_frame *f, const kiln_view_request *request, kiln_lists *l,
                            kiln_error *err) KILN_MUST_CHECK;
/* Draws band b of the frame: `a` is raster's but for the Gaussians, which are the frame's, and the lists, which come from the table
 * or are computed. tile_counts and ranks are room for them. */
kiln_status kiln_lists_draw(kiln_worker *w, const kiln_lists *l, uint32_t b, kiln_frame *f, const kiln_raster_args *a,
                            uint32_t *tile_counts, uint32_t *ranks, kiln_error *err) KILN_MUST_CHECK;
void kiln_lists_release(kiln_lists *l);

#endif
