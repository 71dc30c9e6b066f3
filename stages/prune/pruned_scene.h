/* pruned_scene -- what the rules leave of the layer as a scene of kernels/draw, block by block: no
 * pruned layer is needed.
 *
 * A block keeps its rows, so that what is found out of a row is the row's of the source: rows that
 * are dropped have no position, which no profile counts as visible. */
#ifndef KILN_STAGES_PRUNE_PRUNED_SCENE_H
#define KILN_STAGES_PRUNE_PRUNED_SCENE_H

#include "stages/prune/prune_units.h"

typedef struct {
    kiln_worker *w;
    kiln_prune_input *in;
    const kiln_prune_request *q; /* its rules and marks say what is left */
    const kiln_view_request *view;
    bool colour;
    /* two bits a row of all blocks; NULL: all rows that are left are drawn */
    const uint8_t *classes;
    unsigned least;        /* with classes: rows of a lower one are not drawn */
    uint32_t number;       /* scenes of one unit that draw other rows have other numbers */
    kiln_pruned_rows rows; /* of the chunk that was asked for last */
    float *sh0, *shN;
} kiln_pruned_scene;

/* Fills what kiln_draw asks for; s must outlive it. Release s, after a failure of kiln_draw,
 * too. */
void kiln_pruned_scene_of(kiln_pruned_scene *s, kiln_draw_scene *out);
void kiln_pruned_scene_release(kiln_pruned_scene *s);
/* Bytes of a chunk that is drawn, with the planes that it is made of. */
uint64_t kiln_pruned_scene_ram(const kiln_prune_size *s, bool colour);

/* Reads the mask of a look as it is drawn, [height][width]; NULL: there is none. free(*out).
 * KILN_E_INPUT: the file is not the one that was imported. */
kiln_status kiln_prune_mask_read(kiln_worker *w, const kiln_prune_request *q,
                                 const kiln_prune_look *look, uint8_t **out,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Bytes that this takes at most; mask NULL: none. */
uint64_t kiln_prune_mask_ram(const kiln_prune_mask *mask, const kiln_view *view);

#endif
