/* resident_collect -- see resident.h. A scene that is there in one piece is projected at once. Else each chunk's visible Gaussians
 * are appended where those of the chunks before end, which a number in device memory says. Nobody waits but where planes are
 * copied, and for the sum at the end. */
#include "kernels/draw/resident.h"

#include "base/carve.h"
#include "base/memory.h"

#include <stdlib.h>

/* ---- device memory ----------------------------------------------------------------------------------------------------- */
typedef struct {
    uint64_t *fault, *total, *visible;
    uint64_t *boxes, *row_pairs; /* [n_chunks], [tiles_y]: when pairs are counted alone */
    char *staging;
    kiln_splat2d *of_chunk;          /* NULL, as visible is, where the scene is in one piece */
    void *project_work, *order_work; /* order_work: of depth_order, or of counting */
    kiln_splat2d *splats;
    float *depths;
    uint32_t *rows, *order;
    uint32_t *chunks;   /* NULL where the scene is in one piece */
    kiln_splat2d *kept; /* of a slab, of one chunk */
    uint64_t *n_kept;
    uint32_t *live;
    size_t project_bytes, order_bytes, bytes;
} gathering;

/* A view before it is drawn. */
typedef struct {
    const kiln_draw_scene *scene;
    kiln_draw_store *store;
    kiln_draw_tally *tally; /* not NULL: pairs are counted, and there is no drawing */
    kiln_exec x;
    kiln_draw_label *labels; /* [n_chunks] */
    bool whole;              /* all chunks at once */
    kiln_draw_label largest; /* of what is projected at a time */
    uint64_t rows;           /* of all chunks that may be seen */
    uint64_t room;           /* for Gaussians */
    gathering g;             /* in store->scratch */
    uint64_t n, fault;       /* as copied from there */
} collecting;

static kiln_project_args project_of(const collecting *v, const kiln_draw_chunk *c, const gathering *g)
{
    const kiln_draw_scene *s = v->scene;
    kiln_project_args a = {.n = c->n,
                           .means = c->means,
                           .log_scales = c->log_scales,
                           .quats = c->quats,
                           .opacity_logits = c->opacity_logits,
                           .sh0 = c->sh0,
                           .shN = c->shN,
                           .sh_degree = c->sh0 ? s->sh_degree : 0,
                           .view = s->view,
                           .profile = s->profile,
                           .antialiased = s->antialiased,
                           .splats = v->whole ? g->splats : g->of_chunk,
                           .n_visible = v->whole ? g->total : g->visible};
    if (v->whole && !v->tally) {
        a.source_rows = c->source_rows;
        a.depths = g->depths;
        a.rows = g->rows;
    }
    return a;
}

static kiln_tile_pairs_count_args count_of(const collecting *v, uint64_t n, const gathering *g)
{
    return (kiln_tile_pairs_count_args){
        .n = n, .splats = g->splats, .view = v->scene->view, .row1 = kiln_view_tiles_y(v->scene->view), .row_pairs = g->row_pairs};
}

static kiln_seen_window_args window_of(const collecting *v, uint64_t n, const uint32_t *source_rows, const gathering *g)
{
    kiln_seen_window_args a = {.n = n,
                               .splats = g->of_chunk,
                               .n_visible = g->visible,
                               .source_rows = source_rows,
                               .window = v->scene->window->seen,
                               .kept = g->kept,
                               .n_kept = g->n_kept};
    a.window.live = g->live;
    return a;
}

static uint64_t live_sums(const kiln_draw_window *w) { return ((uint64_t)w->seen.tiles_x + 1) * ((uint64_t)w->seen.tiles_y + 1); }

/* What a slab takes beside; its work is that of project, whose turn is over then. */
static kiln_status lay_out_window(const collecting *v, kiln_carve *c, gathering *g, kiln_error *err)
{
    size_t bytes;
    if (!v->scene->window) return KILN_OK;
    g->kept = kiln_take(c, v->largest.n, sizeof *g->kept);
    g->n_kept = kiln_take(c, 1, sizeof *g->n_kept);
    g->live = kiln_take(c, live_sums(v->scene->window), sizeof *g->live);
    const kiln_seen_window_args a = window_of(v, v->largest.n, NULL, g);
    KILN_TRY(kiln_runner_work(v->store->runner, KILN_OP_seen_window, &a, &bytes, err));
    if (bytes > g->project_bytes) g->project_bytes = bytes;
    return KILN_OK;
}

static kiln_status lay_out_gathering(const collecting *v, char *at, uint64_t room, gathering *g, kiln_error *err)
{
    kiln_carve c = {at, 0};
    kiln_draw_chunk planes;
    const uint64_t largest = kiln_store_lay_out(&v->largest, v->scene->sh_degree, NULL, &planes);
    *g = (gathering){0};
    g->fault = kiln_take(&c, 1, sizeof *g->fault);
    g->total = kiln_take(&c, 1, sizeof *g->total);
    g->splats = kiln_take(&c, room, sizeof *g->splats);
    g->depths = kiln_take(&c, room, sizeof *g->depths);
    g->rows = kiln_take(&c, room, sizeof *g->rows);
    g->order = kiln_take(&c, room, sizeof *g->order);
    if (!v->whole) {
        g->visible = kiln_take(&c, 1, sizeof *g->visible);
        g->staging = kiln_take(&c, largest, 1);
        g->of_chunk = kiln_take(&c, v->largest.n, sizeof *g->of_chunk);
        g->chunks = kiln_take(&c, room, sizeof *g->chunks);
    }
    if (v->tally) g->boxes = kiln_take(&c, v->scene->n_chunks, sizeof *g->boxes);
    if (v->tally) g->row_pairs = kiln_take(&c, kiln_view_tiles_y(v->scene->view), sizeof *g->row_pairs);
    const kiln_project_args project = project_of(v, &planes, g);
    const kiln_tile_pairs_count_args count = count_of(v, room, g);
    const kiln_depth_order_args order = {.n = room, .depths = g->depths, .source_rows = g->rows, .order = g->order};
    KILN_TRY(kiln_runner_work(v->store->runner, KILN_OP_project, &project, &g->project_bytes, err));
    KILN_TRY(v->tally ? kiln_runner_work(v->store->runner, KILN_OP_tile_pairs_count, &count, &g->order_bytes, err)
                      : kiln_runner_work(v->store->runner, KILN_OP_depth_order, &order, &g->order_bytes, err));
    KILN_TRY(lay_out_window(v, &c, g, err));
    g->project_work = kiln_take(&c, g->project_bytes, 1);
    g->order_work = kiln_take(&c, g->order_bytes, 1);
    g->bytes = c.used;
    return KILN_OK;
}

/* Both blocks, with room for so many. */
static kiln_status bytes_for(const collecting *v, uint64_t room, uint64_t *bytes, kiln_error *err)
{
    gathering g;
    KILN_TRY(lay_out_gathering(v, NULL, room, &g, err));
    const uint64_t records = v->tally ? 0 : kiln_store_ordered_at(NULL, room).bytes;
    *bytes = g.bytes > SIZE_MAX - records ? SIZE_MAX : g.bytes + records;
    return KILN_OK;
}

/* As many Gaussians as there are rows, or as fit. */
static kiln_status find_room(collecting *v, kiln_error *err)
{
    const uint64_t most = kiln_store_most(v->store), rows = v->scene->window ? v->scene->window->most : v->rows;
    const uint64_t all = rows < UINT32_MAX - 1 ? rows : UINT32_MAX - 1;
    uint64_t low = 0, high = all + 1, bytes; /* low fits, if anything does; high does not or is more than needed */
    KILN_TRY(bytes_for(v, all, &bytes, err));
    if (bytes <= most) low = all;
    while (low < all && high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        KILN_TRY(bytes_for(v, middle, &bytes, err));
        *(bytes <= most ? &low : &high) = middle;
    }
    v->room = low;
    return KILN_OK;
}

/* ---- collecting -------------------------------------------------------------------------------------------------------- */
static kiln_status read_labels(collecting *v, kiln_error *err)
{
    const kiln_draw_scene *s = v->scene;
    KILN_TRY(KILN_ALLOC(&v->labels, s->n_chunks, "chunks in view", err));
    for (uint32_t i = 0; i < s->n_chunks; i++) {
        kiln_draw_label *l = &v->labels[i];
        KILN_TRY(s->label(s->context, i, l, err));
        if (l->n == 0) l->hidden = true;
        if (l->hidden) continue;
        v->rows += l->n;
        if (l->n > v->largest.n) v->largest = *l;
    }
    return KILN_OK;
}

/* Where the scene is there in one piece, or can be, room is for all of its rows. */
static kiln_status try_whole(collecting *v, kiln_error *err)
{
    const kiln_draw_scene *s = v->scene;
    const kiln_draw_label of_chunks = v->largest;
    kiln_draw_label all = kiln_store_whole_label(v->labels, s->n_chunks);
    uint64_t beside;
    all.colour = of_chunks.colour; /* what is hidden need not say */
    if (s->window || v->rows == 0 || all.n > UINT32_MAX - 1) return KILN_OK;
    v->whole = true;
    v->largest = all;
    KILN_TRY(bytes_for(v, all.n, &beside, err));
    KILN_TRY(kiln_store_whole_get(v->store, &all, v->labels, s->n_chunks, s->sh_degree, beside, &v->whole, err));
    if (!v->whole) v->largest = of_chunks;
    return KILN_OK;
}

static kiln_status ask_for(const collecting *v, uint32_t i, kiln_draw_chunk *host, kiln_error *err)
{
    const kiln_draw_label *l = &v->labels[i];
    *host = (kiln_draw_chunk){0};
    KILN_TRY(v->scene->chunk(v->scene->context, i, host, err));
    if (host->n == l->n && (host->sh0 != NULL) == l->colour) return KILN_OK;
    return kiln_fail(err, KILN_E_BUG, "chunk %u has %llu rows%s, its label said %llu", i, (unsigned long long)host->n,
                     host->sh0 ? " with colour" : "", (unsigned long long)l->n);
}

static kiln_status planes_of(collecting *v, uint32_t i, kiln_draw_chunk *out, kiln_error *err)
{
    const kiln_draw_label *l = &v->labels[i];
    kiln_draw_chunk host;
    if (kiln_store_find(v->store, l, v->scene->sh_degree, out)) return KILN_OK;
    KILN_TRY(ask_for(v, i, &host, err));
    return kiln_store_load(v->store, l, v->scene->sh_degree, &host, v->g.staging, out, err);
}

/* The chunks that may be seen and were not yet; *out: all of them. */
static kiln_status planes_of_whole(collecting *v, kiln_draw_chunk *out, kiln_error *err)
{
    const kiln_store_whole *w = &v->store->whole;
    kiln_draw_chunk host;
    for (uint32_t i = 0; i < v->scene->n_chunks; i++) {
        if (v->labels[i].hidden || kiln_store_whole_has(w, i, v->labels[i].colour)) continue;
        KILN_TRY(ask_for(v, i, &host, err));
        KILN_TRY(kiln_store_whole_load(v->store, i, &host, err));
    }
    *out = w->planes;
    if (!v->largest.colour) out->sh0 = out->shN = NULL;
    return KILN_OK;
}

static kiln_status launch(const collecting *v, kiln_op_id op, const void *args, void *work, size_t work_bytes, kiln_error *err)
{
    return kiln_runner_launch(v->store->runner, op, args, work, work_bytes, v->g.fault, err);
}

/* c: planes of chunk i, or with i = 0 of all, whose visible ones are where they belong already. */
static kiln_status gather_from(const collecting *v, const kiln_draw_chunk *c, uint32_t i, kiln_error *err)
{
    const gathering *g = &v->g;
    kiln_project_args project = project_of(v, c, g);
    if (v->tally) project.box_pairs = g->boxes + i;
    KILN_TRY(launch(v, KILN_OP_project, &project, g->project_work, g->project_bytes, err));
    if (v->whole) return KILN_OK;
    const kiln_seen_gather_args gather = {.n = c->n,
                                          .splats = v->scene->window ? g->kept : g->of_chunk,
                                          .n_visible = v->scene->window ? g->n_kept : g->visible,
                                          .source_rows = c->source_rows,
                                          .chunk = i,
                                          .room = v->room,
                                          .total = g->total,
                                          .all = g->splats,
                                          .depths = g->depths,
                                          .rows = g->rows,
                                          .chunks = g->chunks};
    if (v->scene->window) {
        const kiln_seen_window_args window = window_of(v, c->n, c->source_rows, g);
        KILN_TRY(launch(v, KILN_OP_seen_window, &window, g->project_work, g->project_bytes, err));
    }
    return launch(v, KILN_OP_seen_gather, &gather, g->project_work, 0, err);
}

static kiln_status gather_chunks(collecting *v, kiln_error *err)
{
    kiln_draw_chunk c;
    if (v->whole) {
        KILN_TRY(planes_of_whole(v, &c, err));
        return gather_from(v, &c, 0, err);
    }
    for (uint32_t i = 0; i < v->scene->n_chunks; i++) {
        if (v->labels[i].hidden) continue;
        KILN_TRY(planes_of(v, i, &c, err));
        KILN_TRY(gather_from(v, &c, i, err));
    }
    return KILN_OK;
}

/* All chunks; v->n is how many of their Gaussians are visible, with or without room. */
static kiln_status gather_all(collecting *v, kiln_error *err)
{
    const kiln_draw_window *const w = v->scene->window;
    KILN_TRY(lay_out_gathering(v, v->store->scratch.at, v->room, &v->g, err));
    KILN_TRY(kiln_store_clear_fault(&v->x, v->g.fault, err));
    KILN_TRY(kiln_device_fill(&v->x, v->g.total, 0, sizeof *v->g.total, err));
    if (w) KILN_TRY(kiln_device_copy_in(&v->x, v->g.live, w->seen.live, live_sums(w) * sizeof *v->g.live, err));
    KILN_TRY(gather_chunks(v, err));
    KILN_TRY(kiln_device_copy_out(&v->x, &v->n, v->g.total, sizeof v->n, err));
    KILN_TRY(kiln_store_read_fault(&v->x, v->g.fault, &v->fault, err));
    return v->n > UINT32_MAX - 1 ? kiln_fail(err, KILN_E_INPUT, "more than 4294967294 Gaussians are visible") : KILN_OK;
}

static kiln_status put_in_order(collecting *v, kiln_error *err)
{
    const gathering *g = &v->g;
    const uint64_t n = v->n;
    const kiln_store_ordered o = kiln_store_ordered_at(v->store->records.at, n);
    const kiln_depth_order_args order = {.n = n, .depths = g->depths, .source_rows = g->rows, .order = g->order};
    const kiln_seen_order_args move = {.n = n,
                                       .splats = g->splats,
                                       .chunks = g->chunks,
                                       .order = g->order,
                                       .ordered = o.splats,
                                       .ordered_chunks = g->chunks ? o.chunks : NULL,
                                       .ordered_rows = o.rows};
    KILN_TRY(launch(v, KILN_OP_depth_order, &order, g->order_work, g->order_bytes, err));
    KILN_TRY(launch(v, KILN_OP_seen_order, &move, g->project_work, 0, err));
    return kiln_store_read_fault(&v->x, g->fault, &v->fault, err);
}

/* A slab that does not fit tells nothing of others, nor of views. */
static void refuse(const collecting *v)
{
    if (!v->scene->window) v->store->refused = v->rows;
}

/* All chunks, where there is room; *fits false where there is not. */
static kiln_status gather(collecting *v, bool *fits, kiln_error *err)
{
    gathering g;
    *fits = false;
    KILN_TRY(read_labels(v, err));
    if (!v->scene->window && v->rows >= v->store->refused) return KILN_OK;
    KILN_TRY(try_whole(v, err));
    v->room = v->largest.n;
    if (!v->whole) KILN_TRY(find_room(v, err));
    if (v->room == 0 && v->rows > 0) return KILN_OK;
    KILN_TRY(lay_out_gathering(v, NULL, v->room, &g, err));
    kiln_store_make_way(v->store, g.bytes, v->tally ? 0 : kiln_store_ordered_at(NULL, v->room).bytes);
    KILN_TRY(kiln_store_reserve(v->store, &v->store->scratch, g.bytes, fits, err));
    if (v->whole && !v->store->whole.at) *fits = false; /* it gave way */
    if (!*fits) return KILN_OK;
    KILN_TRY(gather_all(v, err));
    *fits = v->n <= v->room;
    if (!*fits) refuse(v);
    return KILN_OK;
}

static kiln_status collect(collecting *v, kiln_drawing *out, bool *done, kiln_error *err)
{
    KILN_TRY(gather(v, done, err));
    if (!*done) return KILN_OK;
    KILN_TRY(kiln_store_reserve(v->store, &v->store->records, kiln_store_ordered_at(NULL, v->n).bytes, done, err));
    if (!*done) {
        refuse(v);
        return KILN_OK;
    }
    KILN_TRY(put_in_order(v, err));
    v->store->has_drawing = true;
    v->store->drawing_is_whole = v->whole;
    *out = (kiln_drawing){.n = v->n, .store = v->store};
    return KILN_OK;
}

kiln_status kiln_resident_collect(const kiln_draw_scene *s, kiln_drawing *out, bool *done, kiln_error *err)
{
    collecting v = {.scene = s, .store = s->store, .x = kiln_runner_exec(s->store->runner)};
    *done = false;
    if (v.x.device < 0 || v.store->has_drawing) return KILN_OK;
    if (!s->window) v.store->picture++;
    const kiln_status st = kiln_store_settle(&v.x, collect(&v, out, done, err));
    free(v.labels);
    return st;
}

/* ---- slabs -------------------------------------------------------------------------------------------------------------- */
/* A quarter is left for what drawing takes beside the records. */
static kiln_status room_of_slab(collecting *v, uint64_t *room, kiln_error *err)
{
    enum { SLABS_MOST = 64 }; /* a chunk is projected for each that it reaches into */
    KILN_TRY(read_labels(v, err));
    KILN_TRY(find_room(v, err));
    const uint64_t fits = v->room / 4 * 3;
    if (fits >= v->rows / SLABS_MOST) *room = fits;
    return KILN_OK;
}

kiln_status kiln_resident_room(const kiln_draw_scene *s, uint64_t *room, kiln_error *err)
{
    const kiln_draw_window all = {.seen = {.tiles_x = kiln_view_tiles_x(s->view), .tiles_y = kiln_view_tiles_y(s->view)},
                                  .most = UINT64_MAX};
    kiln_draw_scene slab = *s;
    collecting v = {.scene = &slab, .store = s->store, .x = kiln_runner_exec(s->store->runner)};
    slab.window = &all;
    *room = 0;
    if (v.x.device < 0 || v.store->has_drawing) return KILN_OK;
    const kiln_status st = room_of_slab(&v, room, err);
    free(v.labels);
    return st;
}

/* ---- counting alone: in no order ---------------------------------------------------------------------------------------- */
static bool has_boxes(const collecting *v, uint32_t i) { return v->whole ? i == 0 : !v->labels[i].hidden; }

static kiln_status count(collecting *v, uint64_t *boxes, bool *done, kiln_error *err)
{
    const gathering *g = &v->g;
    KILN_TRY(gather(v, done, err));
    if (!*done) return KILN_OK;
    const kiln_tile_pairs_count_args a = count_of(v, v->n, g);
    KILN_TRY(launch(v, KILN_OP_tile_pairs_count, &a, g->order_work, g->order_bytes, err));
    KILN_TRY(kiln_device_copy_out(&v->x, v->tally->row_pairs, g->row_pairs, a.row1 * sizeof *g->row_pairs, err));
    KILN_TRY(kiln_device_copy_out(&v->x, boxes, g->boxes, v->scene->n_chunks * sizeof *boxes, err));
    KILN_TRY(kiln_store_read_fault(&v->x, g->fault, &v->fault, err));
    v->tally->visible = v->n;
    for (uint32_t i = 0; i < v->scene->n_chunks; i++) v->tally->box_pairs += has_boxes(v, i) ? boxes[i] : 0;
    return KILN_OK;
}

kiln_status kiln_resident_count_all(const kiln_draw_scene *s, kiln_draw_tally *t, bool *done, kiln_error *err)
{
    collecting v = {.scene = s, .store = s->store, .tally = t, .x = kiln_runner_exec(s->store->runner)};
    uint64_t *boxes;
    *done = false;
    if (v.x.device < 0 || v.store->has_drawing) return KILN_OK;
    v.store->picture++;
    KILN_TRY(KILN_ALLOC(&boxes, s->n_chunks, "pairs of chunks", err));
    const kiln_status st = kiln_store_settle(&v.x, count(&v, boxes, done, err));
    free(boxes);
    free(v.labels);
    return st;
}
