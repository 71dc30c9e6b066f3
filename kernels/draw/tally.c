/* tally -- how many Gaussians and pairs a camera sees, before anything is drawn: on a device at once where all of them fit there,
 * else chunk by chunk, which takes the memory of one chunk. Counts add up, so both give the same. */
#include "base/memory.h"
#include "kernels/draw/fit.h"
#include "kernels/draw/resident.h"

#include <stdlib.h>
#include <string.h>

/* Room for what is known of one chunk. */
typedef struct {
    uint64_t room;
    kiln_splat2d *splats; /* [room] */
    uint64_t *row_pairs;  /* [tiles_y] */
} one_chunk;

static kiln_status make_room(one_chunk *o, uint64_t n, kiln_error *err)
{
    if (n <= o->room && o->splats) return KILN_OK;
    free(o->splats);
    o->splats = NULL;
    o->room = n;
    return KILN_ALLOC_UNSET(&o->splats, n, "projected chunk", err);
}

static kiln_status add_chunk(kiln_runner *r, const kiln_draw_scene *s, uint32_t i, one_chunk *o, kiln_draw_tally *t,
                             kiln_error *err)
{
    const uint32_t tiles_y = kiln_view_tiles_y(s->view);
    kiln_draw_chunk c = {0};
    uint64_t n = 0, boxes = 0;
    KILN_TRY(s->chunk(s->context, i, &c, err));
    if (c.n == 0) return KILN_OK;
    KILN_TRY(make_room(o, c.n, err));
    const kiln_project_args p = {.n = c.n,
                                 .means = c.means,
                                 .log_scales = c.log_scales,
                                 .quats = c.quats,
                                 .opacity_logits = c.opacity_logits,
                                 .view = s->view,
                                 .profile = s->profile,
                                 .antialiased = s->antialiased,
                                 .splats = o->splats,
                                 .n_visible = &n,
                                 .box_pairs = &boxes};
    KILN_TRY(kiln_runner_run(r, KILN_OP_project, &p, err));
    if (n == 0) return KILN_OK;
    const kiln_tile_pairs_count_args a = {.n = n, .splats = o->splats, .view = s->view, .row1 = tiles_y, .row_pairs = o->row_pairs};
    KILN_TRY(kiln_fit_count(r, &a, err));
    for (uint32_t row = 0; row < tiles_y; row++) t->row_pairs[row] += o->row_pairs[row];
    t->visible += n;
    t->box_pairs += boxes;
    return KILN_OK;
}

static kiln_status add_chunks(kiln_runner *r, const kiln_draw_scene *s, kiln_draw_tally *t, kiln_error *err)
{
    one_chunk o = {0};
    kiln_status st;
    KILN_GO(KILN_ALLOC(&o.row_pairs, kiln_view_tiles_y(s->view), "pairs of tile rows", err));
    for (uint32_t i = 0; i < s->n_chunks; i++) KILN_GO(add_chunk(r, s, i, &o, t, err));
done:
    free(o.splats);
    free(o.row_pairs);
    return st;
}

kiln_status kiln_draw_count_all(kiln_runner *r, const kiln_draw_scene *s, kiln_draw_tally *t, kiln_error *err)
{
    const uint32_t tiles_y = kiln_view_tiles_y(s->view);
    bool done = false;
    t->visible = t->pairs = t->box_pairs = 0;
    memset(t->row_pairs, 0, tiles_y * sizeof *t->row_pairs);
    if (s->store && s->label) KILN_TRY(kiln_resident_count_all(s, t, &done, err));
    if (!done) KILN_TRY(add_chunks(r, s, t, err));
    for (uint32_t row = 0; row < tiles_y; row++) t->pairs += t->row_pairs[row];
    return KILN_OK;
}
