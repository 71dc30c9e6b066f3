/* single_pass -- see kiln_pass_draw: draws a picture without a drawing and with a single wait, at
 * its end. The host does not read back how many Gaussians are visible and how many pairs they have.
 * Buffers are somewhat larger than the last pictures needed. If they are too small, tile_lists
 * lists nothing, and the numbers that come with the picture say what it needs. It is then drawn
 * once more with that much; if even this is too little, the caller draws it in steps.
 *
 * Floats of a picture are copied only if the caller wants them. A picture of 3840 x 2160 has 133
 * MB, which take as long to copy as it takes to draw; its hashes are 2 KB, the rows of its PNG or
 * its bytes 25 MB. They are made on the device. What is large is copied in parts: the upper ones
 * cross the bus while the lower ones are drawn.
 */
#include "kernels/draw/single_pass.h"

#include "kernels/draw/pass_outputs.h"
#include "kernels/draw/resident_collect.h"
#include "kernels/draw/settle.h"

#include <string.h>

/* Sets the capacities. Returns false if no earlier picture is of this scene, or if they would be
 * too large. */
static bool find_bounds(kiln_pass *p)
{
    enum { MOST = 1 << 30 }; /* of either; far more than pictures have */
    const kiln_pass_sizes *last = kiln_store_sizes(p->v.store);
    if (last->pairs == 0 || memcmp(last->scene, p->v.all.key, sizeof last->scene) != 0)
        return false;
    p->visible = kiln_pass_bound(last->visible);
    if (p->visible > p->v.rows) p->visible = p->v.rows;
    p->pairs = kiln_pass_bound(last->pairs);
    return p->visible > 0 && p->visible <= MOST && p->pairs <= MOST;
}

/* ---- device memory --------------------------------------------------------------------------- */
static kiln_tile_lists_args lists_of(const kiln_pass *p, const kiln_pass_block *b)
{
    return (kiln_tile_lists_args){.n = p->visible,
                                  .n_visible = b->g.total,
                                  .splats = b->g.splats,
                                  .depths = b->g.depths,
                                  .source_rows = b->g.rows,
                                  .view = p->v.scene->view,
                                  .row0 = p->picture->row0,
                                  .row1 = p->picture->row1,
                                  .capacity = p->pairs,
                                  .tile_counts = b->counts,
                                  .ids = b->ids,
                                  .stats = b->g.list_stats,
                                  .plan = b->plan};
}

static kiln_status lay_out_pass(const kiln_pass *p, char *at, kiln_pass_block *b, kiln_error *err)
{
    kiln_carve c = {at, 0};
    const kiln_raster_args *a = p->picture;
    const uint64_t tiles = (uint64_t)(a->row1 - a->row0) * kiln_view_tiles_x(a->view);
    *b = (kiln_pass_block){0};
    /* project writes a scene in one piece to an array of all its rows. */
    KILN_TRY(kiln_gather_lay_out(&p->v, &c, p->v.whole ? p->v.largest.n : p->visible, &b->g, err));
    b->counts = kiln_take(&c, tiles, sizeof *b->counts);
    b->plan.ends = kiln_take(&c, tiles, sizeof *b->plan.ends);
    b->plan.order = kiln_take(&c, tiles, sizeof *b->plan.order);
    b->plan.parts = kiln_pass_parts(p);
    b->ids = kiln_take(&c, p->pairs, sizeof *b->ids);
    b->rgba = kiln_take(&c, 4 * kiln_raster_pixels(a), sizeof *b->rgba);
    if (a->depth) b->depth = kiln_take(&c, kiln_raster_pixels(a), sizeof *b->depth);
    const kiln_tile_lists_args lists = lists_of(p, b);
    const kiln_raster_args raster = kiln_pass_raster(p, b);
    KILN_TRY(kiln_gather_add_work(&p->v, KILN_OP_tile_lists, &lists, &b->g, err));
    KILN_TRY(kiln_gather_add_work(&p->v, KILN_OP_raster, &raster, &b->g, err));
    KILN_TRY(kiln_pass_lay_out_outputs(p, &c, b, err));
    kiln_gather_take_work(&c, &b->g);
    b->bytes = c.used;
    return KILN_OK;
}

/* Sets *bytes to the size for an eighth more of both. Along a path that shows more and more, the
 * block would otherwise grow with each picture. */
static kiln_status ample_bytes(const kiln_pass *p, uint64_t *bytes, kiln_error *err)
{
    kiln_pass_block b;
    kiln_pass more = *p;
    more.visible += more.visible / 8;
    more.pairs += more.pairs / 8;
    KILN_TRY(lay_out_pass(&more, NULL, &b, err));
    *bytes = b.bytes;
    return KILN_OK;
}

/* Makes the scratch block large enough without evicting planes. The records block may go, as there
 * is no drawing. */
static kiln_status reserve(const kiln_pass *p, bool *fits, kiln_error *err)
{
    kiln_draw_store *s = p->v.store;
    kiln_store_block *const scratch = kiln_store_scratch(s), *const records = kiln_store_records(s);
    const uint64_t left = scratch->bytes + records->bytes + kiln_runner_left(kiln_store_runner(s));
    uint64_t bytes = p->b.bytes, ample;
    *fits = bytes <= scratch->bytes;
    if (*fits) return KILN_OK;
    *fits = bytes <= left;
    if (!*fits) return KILN_OK;
    KILN_TRY(ample_bytes(p, &ample, err));
    if (ample <= left) bytes = ample;
    kiln_store_drop_block(s, records);
    return kiln_store_reserve(s, scratch, bytes, fits, err);
}

/* ---- drawing --------------------------------------------------------------------------------- */
static kiln_status put_on_streams(const kiln_pass *p, kiln_error *err)
{
    const kiln_pass_block *b = &p->b;
    const kiln_draw_gather *v = &p->v;
    const kiln_tile_lists_args lists = lists_of(p, b);
    KILN_TRY(kiln_gather_run(v, &b->g, err));
    KILN_TRY(kiln_gather_launch(v, &b->g, KILN_OP_tile_lists, &lists, err));
    KILN_TRY(kiln_pass_draw_parts(p, err));
    return kiln_gather_ask(v, &b->g, err);
}

/* Puts all work of the picture on the streams. *fits is false if nothing was, because no earlier
 * picture is of this scene or memory is short. Evicts no planes. */
static kiln_status start_pass(kiln_pass *p, bool *fits, kiln_error *err)
{
    *fits = find_bounds(p);
    if (!*fits) return KILN_OK;
    KILN_TRY(lay_out_pass(p, NULL, &p->b, err));
    KILN_TRY(reserve(p, fits, err));
    if (!*fits) return KILN_OK;
    p->v.work_bytes = p->b.g.work_bytes;
    KILN_TRY(lay_out_pass(p, kiln_store_scratch(p->v.store)->at, &p->b, err));
    p->v.work_bytes = 0;
    return put_on_streams(p, err);
}

/* Waits. Sets the sizes of the last pictures, also if the capacities were too small: *done is false
 * then. */
static kiln_status end_pass(kiln_pass *p, kiln_draw_stats *stats, bool *done, kiln_error *err)
{
    kiln_pass_sizes *const last = kiln_store_sizes(p->v.store);
    kiln_gather_numbers numbers;
    KILN_TRY(kiln_gather_read(&p->v, &numbers, err));
    kiln_pass_bring(p);
    const uint64_t listed = numbers.list_stats[0], found = numbers.list_stats[1],
                   visible = numbers.list_stats[2];
    *done = visible <= p->visible && listed == found;
    last->visible = kiln_pass_faded(last->visible, visible);
    /* found is 0 if more were visible than there was room for */
    last->pairs = kiln_pass_faded(last->pairs, found);
    if (!*done) return KILN_OK;
    stats->visible = visible;
    stats->pairs = stats->listed = found;
    return KILN_OK;
}

static kiln_status draw_single_pass(kiln_pass *p, kiln_draw_stats *stats, bool *done,
                                    kiln_error *err)
{
    enum { TURNS = 2 };
    bool fits;
    KILN_TRY(kiln_gather_open(&p->v, &fits, err));
    for (int turn = 0; fits && !*done && turn < TURNS; turn++) {
        KILN_TRY(start_pass(p, &fits, err));
        if (fits) KILN_TRY(end_pass(p, stats, done, err));
    }
    return KILN_OK;
}

/* There is a device, no drawing, and a picture was drawn before. */
static bool may_pass(const kiln_draw_scene *s, const kiln_exec *x)
{
    return x->device >= 0 && !kiln_store_has_drawing(s->store) &&
           kiln_store_sizes(s->store)->pairs > 0 && !s->window;
}

kiln_status kiln_pass_draw(const kiln_draw_scene *s, const kiln_raster_args *a,
                           const kiln_draw_outputs *to, kiln_draw_stats *stats, bool *done,
                           kiln_error *err)
{
    const kiln_exec x = kiln_store_exec(s->store);
    kiln_pass p = {.v = {.scene = s,
                         .store = s->store,
                         .x = x,
                         .landing = kiln_store_landing(s->store),
                         .bytes = kiln_resident_bytes},
                   .picture = a,
                   .to = to};
    *done = false;
    if (!may_pass(s, &x)) return KILN_OK;
    kiln_store_next_picture(s->store);
    const kiln_status st = kiln_settle(&p.v.x, draw_single_pass(&p, stats, done, err));
    kiln_gather_close(&p.v);
    return st;
}
