/* draw_tally -- see the header: on a device if all Gaussians fit there, else chunk by chunk in the
 * memory of one chunk. Counts add up, so both give the same. */
#include "kernels/draw/draw_tally.h"

#include "base/memory.h"
#include "kernels/draw/draw_probe.h"
#include "kernels/draw/resident_collect.h"

#include <stdlib.h>
#include <string.h>

static kiln_status add_chunks(kiln_runner *r, const kiln_draw_scene *s, kiln_draw_tally *t,
                              kiln_error *err)
{
    kiln_probe g = {0};
    kiln_status st = KILN_OK;
    for (uint32_t i = 0; st == KILN_OK && i < s->n_chunks; i++) {
        st = kiln_probe_chunk(r, s, i, &g, err);
        if (st != KILN_OK || g.n == 0) continue;
        for (uint32_t row = 0; row < kiln_view_tiles_y(s->view); row++)
            t->row_pairs[row] += g.row_pairs[row];
        t->visible += g.n;
        t->box_pairs += g.box_pairs;
    }
    kiln_probe_release(&g);
    return st;
}

kiln_status kiln_draw_count_all(kiln_runner *r, const kiln_draw_scene *s, kiln_draw_tally *t,
                                kiln_error *err)
{
    const uint32_t tiles_y = kiln_view_tiles_y(s->view);
    bool done = false;
    t->visible = t->pairs = t->box_pairs = 0;
    memset(t->row_pairs, 0, tiles_y * sizeof *t->row_pairs);
    if (s->store && s->header) KILN_TRY(kiln_resident_count_all(s, t, &done, err));
    if (!done) KILN_TRY(add_chunks(r, s, t, err));
    for (uint32_t row = 0; row < tiles_y; row++) t->pairs += t->row_pairs[row];
    return KILN_OK;
}
