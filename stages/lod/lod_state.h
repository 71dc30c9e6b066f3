/* lod_state -- what a worker of kiln-lod keeps between units: the layer `baked`, its decoded
 * planes, the readers that decode them, sums of shares, and the store that keeps planes in a GPU's
 * memory. It is the worker's state (kiln_worker_state), of all kinds of units. */
#ifndef KILN_STAGES_LOD_STATE_H
#define KILN_STAGES_LOD_STATE_H

#include "kernels/draw/draw.h"
#include "schema/layers.h"
#include "stages/engine/engine.h"
#include "stages/engine/memory/plane_cache.h"
#include "stages/frame/ahead.h"

typedef struct {
    kiln_layer *baked;
    kiln_plane_cache *planes; /* its budget is 0 but for units that draw the layer */
    kiln_ahead ahead;         /* likewise without readers */
    /* [baked->n_chunks] of the last unit that drew: its outputs are lent from them; NULL: none
     * did */
    uint64_t **sums;
    kiln_draw_store *store; /* of the worker's runner; NULL until a unit draws */
} kiln_lod_state;

/* Gives the state for this layer; makes it if the worker has none or one for another layer.
 * KILN_E_IO, KILN_E_INPUT: the layer cannot be read. */
kiln_status kiln_lod_state_get(kiln_worker *w, kiln_hash digest, kiln_lod_state **out,
                               kiln_error *err) KILN_MUST_CHECK;
/* Gives the layer itself: borrowed until the worker's next unit. */
kiln_status kiln_lod_state_baked(kiln_worker *w, kiln_hash digest, const kiln_layer **out,
                                 kiln_error *err) KILN_MUST_CHECK;
/* The state with a store, room for sums, and `spare` bytes for decoded planes and what decodes them
 * ahead. */
kiln_status kiln_lod_state_draws(kiln_worker *w, kiln_hash digest, uint64_t spare,
                                 kiln_lod_state **out, kiln_error *err) KILN_MUST_CHECK;

#endif
