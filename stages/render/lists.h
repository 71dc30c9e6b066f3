/* lists -- a camera's stored tile table, band by band, for a picture that is drawn of it instead of
 * computed lists. The bits of the picture are the same. */
#ifndef KILN_STAGES_RENDER_LISTS_H
#define KILN_STAGES_RENDER_LISTS_H

#include "stages/frame/frame.h"

typedef struct {
    kiln_worker *w;
    const kiln_view_request *request;
    kiln_tile_table *table; /* NULL: there is none; owned */
    uint64_t visible;       /* Gaussians of the drawing */
    /* [table->n_bands + 1] first tile row of each band; owned. NULL until a drawing uses the
     * table */
    uint32_t *starts;
    uint64_t *pairs; /* [table->n_bands]; owned */
} kiln_lists;

/* Looks for a stored table. table_key: a table that was made from other inputs is ignored.
 * KILN_E_IO. */
kiln_status kiln_lists_find(kiln_worker *w, const kiln_view_request *request, const char *camera,
                            kiln_hash table_key, kiln_lists *out, kiln_error *err) KILN_MUST_CHECK;
/* For kiln_draw_want. A table of another number of visible Gaussians is not used. KILN_E_IO: its
 * bands do not cover the image, or it is damaged. */
kiln_draw_lists kiln_lists_of(kiln_lists *l);
/* Also after a failure. */
void kiln_lists_release(kiln_lists *l);

#endif
