/* resident_collect -- see the header. The host waits where planes are copied, and once for the
 * number of visible Gaussians. */
#include "kernels/draw/resident_collect.h"

#include "base/memory.h"
#include "kernels/device.h"
#include "kernels/draw/settle.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    kiln_gathered g;
    uint32_t *order;     /* for a drawing */
    uint64_t *row_pairs; /* [tiles_y] for counts */
    uint64_t bytes;
} block;

typedef struct {
    kiln_draw_gather v;
    uint64_t capacity; /* for Gaussians */
    block b;           /* in store->scratch */
    kiln_gather_numbers numbers;
    uint64_t n; /* visible Gaussians, including those beyond the capacity */
} collecting;

static kiln_tile_pairs_count_args count_of(const kiln_draw_gather *v, uint64_t n, const block *b)
{
    const kiln_view *view = v->scene->view;
    return (kiln_tile_pairs_count_args){.n = n,
                                        .splats = b->g.splats,
                                        .view = view,
                                        .row1 = kiln_view_tiles_y(view),
                                        .row_pairs = b->row_pairs};
}

static kiln_depth_order_args order_of(uint64_t n, const block *b)
{
    return (kiln_depth_order_args){
        .n = n, .depths = b->g.depths, .source_rows = b->g.rows, .order = b->order};
}

static kiln_status lay_out_block(const kiln_draw_gather *v, char *at, uint64_t capacity, block *b,
                                 kiln_error *err)
{
    kiln_carve c = {at, 0};
    *b = (block){0};
    KILN_TRY(kiln_gather_lay_out(v, &c, capacity, &b->g, err));
    if (v->counts) {
        b->row_pairs = kiln_take(&c, kiln_view_tiles_y(v->scene->view), sizeof *b->row_pairs);
        const kiln_tile_pairs_count_args count = count_of(v, capacity, b);
        KILN_TRY(kiln_gather_add_work(v, KILN_OP_tile_pairs_count, &count, &b->g, err));
    } else {
        b->order = kiln_take(&c, capacity, sizeof *b->order);
        const kiln_depth_order_args order = order_of(capacity, b);
        KILN_TRY(kiln_gather_add_work(v, KILN_OP_depth_order, &order, &b->g, err));
    }
    kiln_gather_take_work(&c, &b->g);
    b->bytes = c.used;
    return KILN_OK;
}

kiln_status kiln_resident_bytes(const kiln_draw_gather *v, uint64_t capacity, uint64_t *bytes,
                                kiln_error *err)
{
    block b;
    KILN_TRY(lay_out_block(v, NULL, capacity, &b, err));
    const uint64_t records = v->counts ? 0 : kiln_store_ordered_at(NULL, capacity).bytes;
    *bytes = b.bytes > SIZE_MAX - records ? SIZE_MAX : b.bytes + records;
    return KILN_OK;
}

/* Finds the largest capacity that fits, at most the number of rows. */
static kiln_status find_capacity(const kiln_draw_gather *v, uint64_t *capacity, kiln_error *err)
{
    const uint64_t most = kiln_store_most(v->store),
                   rows = v->scene->window ? v->scene->window->most : v->rows;
    const uint64_t all = rows < UINT32_MAX - 1 ? rows : UINT32_MAX - 1;
    /* low fits or is 0; high does not fit or is more than needed */
    uint64_t low = 0, high = all + 1, bytes;
    KILN_TRY(kiln_resident_bytes(v, all, &bytes, err));
    if (bytes <= most) low = all;
    while (low < all && high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        KILN_TRY(kiln_resident_bytes(v, middle, &bytes, err));
        *(bytes <= most ? &low : &high) = middle;
    }
    *capacity = low;
    return KILN_OK;
}

static collecting collecting_of(const kiln_draw_scene *s, bool counts)
{
    return (collecting){.v = {.scene = s,
                              .store = s->store,
                              .x = kiln_store_exec(s->store),
                              .landing = kiln_store_landing(s->store),
                              .counts = counts,
                              .bytes = kiln_resident_bytes}};
}

/* ---- collecting ------------------------------------------------------------------------------ */
/* Projects all chunks and reads back how many Gaussians are visible. */
static kiln_status gather_all(collecting *c, kiln_error *err)
{
    const kiln_draw_gather *v = &c->v;
    KILN_TRY(lay_out_block(v, kiln_store_scratch(v->store)->at, c->capacity, &c->b, err));
    KILN_TRY(kiln_gather_run(v, &c->b.g, err));
    KILN_TRY(kiln_gather_ask(v, &c->b.g, err));
    KILN_TRY(kiln_gather_read(v, &c->numbers, err));
    c->n = c->numbers.total;
    return c->n > UINT32_MAX - 1
               ? kiln_fail(err, KILN_E_INPUT, "more than 4294967294 Gaussians are visible")
               : KILN_OK;
}

static kiln_status put_in_order(collecting *c, kiln_error *err)
{
    const kiln_draw_gather *v = &c->v;
    const kiln_gathered *g = &c->b.g;
    const kiln_store_ordered o = kiln_store_ordered_at(kiln_store_records(v->store)->at, c->n);
    const kiln_depth_order_args order = order_of(c->n, &c->b);
    const kiln_visible_order_args move = {.n = c->n,
                                          .splats = g->splats,
                                          .chunks = g->chunks,
                                          .order = c->b.order,
                                          .ordered = o.splats,
                                          .ordered_chunks = g->chunks ? o.chunks : NULL,
                                          .ordered_rows = o.rows};
    KILN_TRY(kiln_gather_launch(v, g, KILN_OP_depth_order, &order, err));
    KILN_TRY(kiln_gather_launch(v, g, KILN_OP_visible_order, &move, err));
    KILN_TRY(kiln_gather_ask(v, g, err));
    return kiln_gather_read(v, &c->numbers, err);
}

/* Remembers that a view of so many rows did not fit. A slab says nothing about other slabs or
 * views. */
static void refuse_view(const kiln_draw_gather *v)
{
    if (!v->scene->window) kiln_store_refuse(v->store, v->rows);
}

/* Gathers all chunks if they fit; else *fits is false. */
static kiln_status gather_all_chunks(collecting *c, bool *fits, kiln_error *err)
{
    block b;
    kiln_draw_gather *v = &c->v;
    KILN_TRY(kiln_gather_open(v, fits, err));
    if (!*fits) return KILN_OK;
    *fits = false;
    c->capacity = v->largest.n;
    if (!v->whole) KILN_TRY(find_capacity(v, &c->capacity, err));
    if (c->capacity == 0 && v->rows > 0) return KILN_OK;
    KILN_TRY(lay_out_block(v, NULL, c->capacity, &b, err));
    kiln_store_trim_blocks(v->store, b.bytes,
                           v->counts ? 0 : kiln_store_ordered_at(NULL, c->capacity).bytes);
    KILN_TRY(kiln_store_reserve(v->store, kiln_store_scratch(v->store), b.bytes, fits, err));
    /* it was dropped for the block */
    if (v->whole && !kiln_store_whole(v->store)->at) *fits = false;
    if (!*fits) return KILN_OK;
    KILN_TRY(gather_all(c, err));
    *fits = c->n <= c->capacity;
    if (!*fits) refuse_view(v);
    return KILN_OK;
}

/* Remembers the size of a whole view; resident.c adds its pairs. */
static void note_sizes(const collecting *c)
{
    kiln_pass_sizes *last = kiln_store_sizes(c->v.store);
    *last = (kiln_pass_sizes){.visible = c->v.scene->window ? 0 : c->n};
    memcpy(last->scene, c->v.all.key, sizeof last->scene);
}

static kiln_status collect_resident(collecting *c, kiln_drawing *out, bool *done, kiln_error *err)
{
    kiln_draw_store *store = c->v.store;
    KILN_TRY(gather_all_chunks(c, done, err));
    if (!*done) return KILN_OK;
    KILN_TRY(kiln_store_reserve(store, kiln_store_records(store),
                                kiln_store_ordered_at(NULL, c->n).bytes, done, err));
    if (!*done) {
        refuse_view(&c->v);
        return KILN_OK;
    }
    KILN_TRY(put_in_order(c, err));
    note_sizes(c);
    kiln_store_hold_drawing(store, c->v.whole);
    *out = (kiln_drawing){.n = c->n, .store = store};
    return KILN_OK;
}

kiln_status kiln_resident_collect(const kiln_draw_scene *s, kiln_drawing *out, bool *done,
                                  kiln_error *err)
{
    collecting c = collecting_of(s, false);
    *done = false;
    if (c.v.x.device < 0 || kiln_store_has_drawing(s->store)) return KILN_OK;
    if (!s->window) kiln_store_next_picture(s->store);
    const kiln_status st = kiln_settle(&c.v.x, collect_resident(&c, out, done, err));
    kiln_gather_close(&c.v);
    return st;
}

/* ---- slabs ----------------------------------------------------------------------------------- */
/* Leaves a quarter of the memory to listing and blending. */
static kiln_status slab_capacity(kiln_draw_gather *v, uint64_t *capacity, kiln_error *err)
{
    enum { SLABS_MOST = 64 }; /* a chunk is projected once for each slab that it reaches into */
    bool may;
    uint64_t all;
    KILN_TRY(kiln_gather_open(v, &may, err));
    KILN_TRY(find_capacity(v, &all, err));
    const uint64_t fits = all / 4 * 3;
    if (fits >= v->rows / SLABS_MOST) *capacity = fits;
    return KILN_OK;
}

kiln_status kiln_resident_slab_capacity(const kiln_draw_scene *s, uint64_t *capacity,
                                        kiln_error *err)
{
    const kiln_draw_window all = {
        .visible = {.tiles_x = kiln_view_tiles_x(s->view), .tiles_y = kiln_view_tiles_y(s->view)},
        .most = UINT64_MAX};
    kiln_draw_scene slab = *s;
    collecting c = collecting_of(&slab, false);
    slab.window = &all;
    *capacity = 0;
    if (c.v.x.device < 0 || kiln_store_has_drawing(s->store)) return KILN_OK;
    const kiln_status st = slab_capacity(&c.v, capacity, err);
    kiln_gather_close(&c.v);
    return st;
}

/* ---- counting, without sorting --------------------------------------------------------------- */
static bool has_boxes(const kiln_draw_gather *v, uint32_t i)
{
    return v->whole ? i == 0 : !v->headers[i].hidden;
}

static kiln_status count_resident_pairs(collecting *c, kiln_draw_tally *t, uint64_t *boxes,
                                        bool *done, kiln_error *err)
{
    const kiln_draw_gather *v = &c->v;
    const kiln_gathered *g = &c->b.g;
    KILN_TRY(gather_all_chunks(c, done, err));
    if (!*done) return KILN_OK;
    const kiln_tile_pairs_count_args a = count_of(v, c->n, &c->b);
    KILN_TRY(kiln_gather_launch(v, g, KILN_OP_tile_pairs_count, &a, err));
    KILN_TRY(kiln_device_copy_out(&v->x, t->row_pairs, c->b.row_pairs,
                                  a.row1 * sizeof *t->row_pairs, err));
    KILN_TRY(kiln_device_copy_out(&v->x, boxes, g->boxes, v->scene->n_chunks * sizeof *boxes, err));
    KILN_TRY(kiln_gather_ask(v, g, err));
    KILN_TRY(kiln_gather_read(v, &c->numbers, err));
    t->visible = c->n;
    for (uint32_t i = 0; i < v->scene->n_chunks; i++)
        t->box_pairs += has_boxes(v, i) ? boxes[i] : 0;
    return KILN_OK;
}

kiln_status kiln_resident_count_all(const kiln_draw_scene *s, kiln_draw_tally *t, bool *done,
                                    kiln_error *err)
{
    collecting c = collecting_of(s, true);
    uint64_t *boxes;
    *done = false;
    if (c.v.x.device < 0 || kiln_store_has_drawing(s->store)) return KILN_OK;
    kiln_store_next_picture(s->store);
    KILN_TRY(KILN_ALLOC(&boxes, s->n_chunks, "pairs of chunks", err));
    const kiln_status st = kiln_settle(&c.v.x, count_resident_pairs(&c, t, boxes, done, err));
    free(boxes);
    kiln_gather_close(&c.v);
    return st;
}
