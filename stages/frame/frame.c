/* frame -- projects a layer for a camera, one chunk at a time, and puts the visible Gaussians in
 * drawing order.
 *
 * Chunks that the profile's cull rules out are not read. Planes come through a cache, so a worker
 * that draws many cameras decodes each plane once if they fit. On a GPU planes and the frame stay
 * in device memory (kernels/draw/store.h). The last frame is kept, because all bands of a table use
 * it. */
#include "stages/frame/frame.h"

#include "base/memory.h"
#include "stages/frame/ahead.h"
#include "stages/engine/memory/plane_cache.h"

#include <stdlib.h>
#include <string.h>

struct kiln_frame_state {
    kiln_drawn drawn;
    kiln_layer *layer; /* drawn.chunks */
    kiln_level_wish wish;
    /* the chunks of view_request, which the last frame or count was of */
    kiln_view_chunks view;
    bool *in_view;             /* [n_chunks] the same */
    kiln_view_request view_of; /* of `view` */
    bool has_view;
    kiln_hash *keys; /* [n_chunks] of the planes of each */
    kiln_plane_cache *planes;
    kiln_ahead ahead;
    kiln_draw_store *store;    /* of the worker's runner */
    kiln_view_request request; /* of `frame` */
    bool has_frame, has_colour;
    bool has_drawn; /* kiln_frame_has_drawn */
    bool fast;
    bool colour; /* planes of colour are read */
    bool kept;   /* freed memory is kept: the planes lie between it in malloc's heap */
    kiln_frame frame;
    kiln_canvases *canvases; /* NULL: none yet */
};

void kiln_frame_forget(kiln_frame_state *s)
{
    kiln_drawing_release(&s->frame);
    s->has_frame = false;
}

kiln_status kiln_frame_canvas(kiln_worker *w, kiln_frame_state *s, uint64_t pixels, unsigned most,
                              kiln_canvas **out, kiln_error *err)
{
    const int device = kiln_runner_exec(kiln_worker_runner(w)).device;
    if (!kiln_canvases_are(s->canvases, pixels, most)) {
        kiln_canvases_free(s->canvases);
        s->canvases = NULL;
        KILN_TRY(kiln_canvases_new(device, pixels, most, &s->canvases, err));
    }
    return kiln_canvas_take(s->canvases, out, err);
}

static void state_free(void *state)
{
    kiln_frame_state *s = state;
    if (!s) return;
    kiln_frame_forget(s);
    kiln_canvases_free(s->canvases);
    kiln_draw_store_free(s->store);
    kiln_ahead_release(&s->ahead);
    kiln_plane_cache_free(s->planes);
    kiln_view_chunks_release(&s->view);
    free(s->in_view);
    free(s->keys);
    kiln_drawn_release(&s->drawn);
    free(s);
}

/* Returns a hash of a chunk's planes, from the hashes of their segments. */
static kiln_hash key_frame_chunk(const kiln_chunk *c)
{
    static const char *const names[] = {"means",      "log_scales", "quats", "opacity_logits",
                                        "source_row", "sh0",        "shN"};
    kiln_hash planes[sizeof names / sizeof *names] = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const kiln_plane *p = kiln_chunk_plane(c, names[i]);
        if (p)
            planes[i] =
                kiln_hash_of(p->data.segments, p->data.n_segments * sizeof *p->data.segments);
    }
    return kiln_hash_of(planes, sizeof planes);
}

static kiln_status read_drawn(kiln_manifest *m, const kiln_drawn_name *name, kiln_drawn *out,
                              kiln_error *err)
{
    kiln_layer *newest;
    if (name) return kiln_drawn_get(m, name, out, err);
    KILN_TRY(kiln_layer_get_drawn(m, &newest, err));
    *out = (kiln_drawn){.chunks = newest, .layer = newest, .n_full = newest->n_chunks};
    return KILN_OK;
}

/* Makes the state, without a store, because the device may not be open yet. name NULL: for the
 * newest layer that can be drawn. */
static kiln_status state_new(kiln_worker *w, const kiln_drawn_name *name, kiln_frame_state **out,
                             kiln_error *err)
{
    kiln_manifest *m;
    kiln_status st;
    kiln_frame_state *s = NULL;
    kiln_worker_set_state(w, NULL, NULL); /* the old one first: it has memory of the same device */
    kiln_memory_trim();
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_TRY(KILN_ALLOC(&s, 1, "frame state", err));
    KILN_GO(read_drawn(m, name, &s->drawn, err));
    s->layer = s->drawn.chunks;
    KILN_GO(KILN_ALLOC(&s->in_view, s->layer->n_chunks, "chunks of a view", err));
    KILN_GO(KILN_ALLOC(&s->keys, s->layer->n_chunks, "keys of chunks", err));
    for (uint32_t i = 0; i < s->layer->n_chunks; i++)
        s->keys[i] = key_frame_chunk(&s->layer->chunks[i]);
    KILN_GO(kiln_plane_cache_new(0, &s->planes, err));
    kiln_worker_set_state(w, s, state_free);
    *out = s;
    return KILN_OK;
done:
    state_free(s);
    return st;
}

/* An earlier list had room to keep what is freed; this one has not. Planes of then lie in malloc's
 * heap, and one that is dropped would leave a hole there that stays taken: under --ram 218M a
 * worker held 100 MB of them. */
static void give_back(kiln_frame_state *s)
{
    kiln_plane_cache_set_budget(s->planes, 0);
    kiln_memory_trim();
    s->kept = false;
}

/* `ram` includes the one chunk that the cache always holds, and the frame of an earlier unit.
 * Canvases of an earlier unit stay until this unit takes some. */
void kiln_frame_state_share(kiln_worker *w, kiln_frame_state *s, const kiln_frame_share *share)
{
    const uint64_t have = kiln_canvases_bytes(s->canvases),
                   drawn = have > share->canvases ? have : share->canvases;
    const uint64_t ram = share->ram, most = share->largest > ram ? share->largest : ram;
    const uint64_t may = kiln_worker_ram(w) > drawn ? kiln_worker_ram(w) - drawn : 0;
    const uint64_t freed = kiln_frame_kept_free(most);
    uint64_t left = may > ram ? may - ram : 0;
    if (kiln_runner_exec(kiln_worker_runner(w)).device < 0 && may > most &&
        (may - most) / 4 > freed) {
        kiln_memory_keep(freed); /* or the kernel zeroes pages for each unit anew */
        left -= freed;
        s->kept = true;
    } else if (s->kept) {
        give_back(s);
    }
    kiln_plane_cache_set_budget(s->planes,
                                left - kiln_ahead_set(&s->ahead, w, s->layer, s->colour, left));
}

/* Says whether the state is of these layers, whatever levels its views take, and of one cut if that
 * is asked for. */
static bool is_of(const kiln_frame_state *s, const kiln_drawn_name *name)
{
    const kiln_hash none = {0};
    return s && strcmp(s->layer->kind, kiln_layer_kinds[name->kind].name) == 0 &&
           kiln_hash_equal(s->layer->digest, name->layer) &&
           kiln_hash_equal(s->drawn.levels ? s->drawn.levels->digest : none, name->levels) &&
           s->drawn.narrow == (name->narrow != 0) &&
           (!name->narrow || memcmp(&s->wish, &name->wish, sizeof s->wish) == 0);
}

kiln_status kiln_frame_state_get(kiln_worker *w, const kiln_drawn_name *name, bool colour,
                                 const kiln_frame_share *share, kiln_frame_state **out,
                                 kiln_error *err)
{
    const uint64_t may = kiln_worker_ram(w), spare = may > share->ram ? may - share->ram : 0;
    *out = kiln_worker_state(w);
    if (!is_of(*out, name)) KILN_TRY(state_new(w, name, out, err));
    kiln_frame_set_wish(*out, &name->wish);
    if (!(*out)->store) KILN_TRY(kiln_draw_store_new(kiln_worker_runner(w), &(*out)->store, err));
    (*out)->colour = colour;
    if (kiln_canvases_bytes((*out)->canvases) > spare) { /* those of an earlier unit */
        kiln_canvases_free((*out)->canvases);
        (*out)->canvases = NULL;
    }
    kiln_frame_state_share(w, *out, share);
    return KILN_OK;
}

uint64_t kiln_frame_early(kiln_worker *w, const atomic_bool *stop)
{
    const uint64_t may = kiln_worker_ram(w) / 4;
    kiln_frame_state *s;
    kiln_error why;
    if (state_new(w, NULL, &s, &why) != KILN_OK) return 0;
    const uint64_t readers = kiln_ahead_set(&s->ahead, w, s->layer, true, may),
                   capacity = (may - readers) / 2;
    uint64_t bytes = 0;
    const kiln_ahead_view all = {.cache = s->planes, .layer = s->layer, .colour = true};
    if (readers == 0) return 0;
    kiln_plane_cache_set_budget(s->planes, may - readers);
    for (uint32_t i = 0; i < s->layer->n_chunks && bytes < capacity && !atomic_load(stop); i++) {
        if (kiln_ahead_read(&s->ahead, &all, i, &why) != KILN_OK) break;
        bytes += kiln_ahead_bytes(&s->layer->chunks[i]);
    }
    /* what is held now: what decoding took is free again, and the last batch may be larger than
     * what was counted */
    return s->ahead.n * KILN_CONNECTION_RAM + kiln_ahead_held(s->planes, s->layer);
}

bool kiln_frame_has_drawn(kiln_worker *w)
{
    const kiln_frame_state *s = kiln_worker_state(w);
    return s && s->has_drawn;
}

const kiln_layer *kiln_frame_layer(const kiln_frame_state *s) { return s->layer; }

void kiln_frame_set_fast(kiln_frame_state *s, bool fast)
{
    if (s->fast != fast) kiln_frame_forget(s);
    s->fast = fast;
}

/* ---- the chunks of a view -------------------------------------------------------------------- */
void kiln_frame_set_wish(kiln_frame_state *s, const kiln_level_wish *wish)
{
    if (memcmp(&s->wish, wish, sizeof *wish) == 0) return;
    kiln_frame_forget(s);
    s->has_view = false;
    s->wish = *wish;
}

/* Chooses the chunks of a view, unless they are those of the last one. */
static kiln_status choose_view_chunks(kiln_frame_state *s, const kiln_view_request *request,
                                      kiln_error *err)
{
    if (s->has_view && memcmp(&s->view_of, request, sizeof *request) == 0) return KILN_OK;
    s->has_view = false;
    kiln_view_chunks_release(&s->view);
    KILN_TRY(kiln_view_chunks_choose(&s->drawn, &s->wish, request, &s->view, err));
    memset(s->in_view, 0, s->layer->n_chunks * sizeof *s->in_view);
    for (uint32_t i = 0; i < s->view.n; i++) s->in_view[s->view.numbers[i]] = true;
    s->view_of = *request;
    s->has_view = true;
    return KILN_OK;
}

kiln_status kiln_frame_state_bound(kiln_frame_state *s, const kiln_view_request *request,
                                   kiln_draw_size *out, kiln_error *err)
{
    KILN_TRY(choose_view_chunks(s, request, err));
    *out = kiln_frame_bound(request, s->layer, &s->view);
    return KILN_OK;
}

kiln_status kiln_chunk_to_draw(kiln_plane_cache *planes, kiln_manifest *m, const kiln_chunk *c,
                               uint32_t sh_degree, bool colour, kiln_draw_chunk *out,
                               kiln_error *err)
{
    const void *data[7] = {NULL};
    static const char *const names[] = {"means",      "log_scales", "quats", "opacity_logits",
                                        "source_row", "sh0",        "shN"};
    const int n = !colour ? 5 : sh_degree == 0 ? 6 : 7;
    for (int i = 0; i < n; i++)
        KILN_TRY(kiln_plane_cache_get(planes, m, c, names[i], &data[i], err));
    *out = (kiln_draw_chunk){.n = c->count,
                             .means = data[0],
                             .log_scales = data[1],
                             .quats = data[2],
                             .opacity_logits = data[3],
                             .source_rows = data[4],
                             .sh0 = data[5],
                             .shN = data[6]};
    return KILN_OK;
}

/* Gives kernels/draw the planes of a chunk, or says that it is none of the view's. */
typedef struct {
    kiln_worker *w;
    kiln_frame_state *s;
    bool colour;
} reading;

static bool is_in_view(const void *state, uint32_t chunk)
{
    return ((const kiln_frame_state *)state)->in_view[chunk];
}

static kiln_status give_frame_chunk(void *context, uint32_t index, kiln_draw_chunk *out,
                                    kiln_error *err)
{
    const reading *x = context;
    kiln_frame_state *const s = x->s;
    const kiln_ahead_view view = {.cache = s->planes,
                                  .layer = s->layer,
                                  .colour = x->colour,
                                  .in_view = is_in_view,
                                  .context = s};
    kiln_manifest *m;
    memset(out, 0, sizeof *out);
    if (!s->in_view[index]) return KILN_OK;
    KILN_TRY(kiln_ahead_read(&s->ahead, &view, index, err));
    KILN_TRY(kiln_worker_manifest(x->w, &m, err));
    return kiln_chunk_to_draw(s->planes, m, &s->layer->chunks[index], s->layer->sh_degree,
                              x->colour, out, err);
}

static kiln_status give_label(void *context, uint32_t index, kiln_draw_chunk_header *out,
                              kiln_error *err)
{
    const reading *x = context;
    const kiln_chunk *c = &x->s->layer->chunks[index];
    (void)err;
    *out = (kiln_draw_chunk_header){
        .n = c->count, .hidden = !x->s->in_view[index], .colour = x->colour};
    memcpy(out->key, x->s->keys[index].bytes, sizeof out->key);
    return KILN_OK;
}

/* The scene of the view that was chosen last. Where there are levels, chunks are hidden that the
 * camera may see. */
static kiln_draw_scene scene_of(reading *x)
{
    const kiln_view_request *request = &x->s->view_of;
    return (kiln_draw_scene){.view = &request->view,
                             .profile = request->profile,
                             .antialiased = request->antialiased,
                             .apart = x->s->drawn.levels && !x->s->drawn.narrow,
                             .sh_degree = x->s->layer->sh_degree,
                             .n_chunks = x->s->layer->n_chunks,
                             .chunk = give_frame_chunk,
                             .context = x,
                             .header = give_label,
                             .store = x->s->store,
                             .fast = x->s->fast};
}

kiln_status kiln_frame_make(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request,
                            bool colour, kiln_frame **out, kiln_error *err)
{
    *out = &s->frame;
    if (s->has_frame && s->has_colour == colour &&
        memcmp(&s->request, request, sizeof *request) == 0)
        return KILN_OK;
    kiln_frame_forget(s);
    KILN_TRY(choose_view_chunks(s, request, err));
    reading x = {.w = w, .s = s, .colour = colour};
    const kiln_draw_scene scene = scene_of(&x);
    KILN_TRY(kiln_draw_collect(kiln_worker_runner(w), &scene, &s->frame, err));
    s->request = *request;
    s->has_frame = true;
    s->has_colour = colour;
    return KILN_OK;
}

kiln_status kiln_frame_draw(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request,
                            const kiln_draw_want *want, kiln_draw_stats *out, kiln_error *err)
{
    kiln_frame_forget(s);
    KILN_TRY(choose_view_chunks(s, request, err));
    reading x = {.w = w, .s = s, .colour = true}, geometry = {.w = w, .s = s};
    kiln_draw_scene scene = scene_of(&x);
    scene.geometry_context = &geometry;
    KILN_TRY(kiln_draw(kiln_worker_runner(w), &scene, want, out, err));
    s->has_drawn |= out->way == KILN_DRAW_DEVICE && want->ways && !(want->ways & KILN_DRAW_HOST);
    return KILN_OK;
}

/* ---- counting -------------------------------------------------------------------------------- */
static kiln_status hand_in(kiln_worker *w, const kiln_draw_tally *t, uint32_t tiles_y,
                           kiln_error *err)
{
    KILN_TRY(kiln_worker_put(w, "row_pairs", t->row_pairs, tiles_y * sizeof *t->row_pairs, 8, err));
    json_t *c = json_pack("{s:I, s:I, s:I}", "visible", (json_int_t)t->visible, "pairs",
                          (json_int_t)t->pairs, "box_pairs", (json_int_t)t->box_pairs);
    if (!c) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the counters");
    const kiln_status st = kiln_worker_counters(w, c, err);
    json_decref(c);
    return st;
}

kiln_status kiln_frame_tally(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request,
                             kiln_draw_tally *t, kiln_error *err)
{
    kiln_frame_forget(s); /* a counting pass has no memory for one */
    KILN_TRY(choose_view_chunks(s, request, err));
    reading x = {.w = w, .s = s};
    const kiln_draw_scene scene = scene_of(&x);
    return kiln_draw_count_all(kiln_worker_runner(w), &scene, t, err);
}

kiln_status kiln_frame_count(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request,
                             kiln_error *err)
{
    kiln_status st;
    kiln_draw_tally t = {0};
    const uint32_t tiles_y = kiln_view_tiles_y(&request->view);
    KILN_GO(KILN_ALLOC(&t.row_pairs, tiles_y, "pairs of tile rows", err));
    KILN_GO(kiln_frame_tally(w, s, request, &t, err));
    KILN_GO(hand_in(w, &t, tiles_y, err));
done:
    free(t.row_pairs);
    return st;
}

/* A visible Gaussian belongs to a chunk of the view, and a tile lists it at most once. */
static kiln_status check_counts(const kiln_frame_counts *c, const kiln_view_request *request,
                                const kiln_view_chunks *chunks, kiln_error *err)
{
    const uint64_t may = chunks->rows, of_row = c->visible * kiln_view_tiles_x(&request->view);
    uint64_t sum = 0;
    if (c->visible > may)
        return kiln_fail(err, KILN_E_IO,
                         "it counts %llu visible Gaussians, but the view can see at most %llu",
                         (unsigned long long)c->visible, (unsigned long long)may);
    for (uint32_t i = 0; i < kiln_view_tiles_y(&request->view); i++) {
        if (c->row_pairs[i] > of_row)
            return kiln_fail(err, KILN_E_IO, "it counts too many pairs for tile row %u", i);
        sum += c->row_pairs[i];
    }
    if (sum == c->pairs) return KILN_OK;
    return kiln_fail(err, KILN_E_IO, "its tile rows have %llu pairs instead of %llu",
                     (unsigned long long)sum, (unsigned long long)c->pairs);
}

static kiln_status read_counts(kiln_run *r, const kiln_unit *u, kiln_frame_counts *out,
                               kiln_error *err)
{
    json_t *c;
    KILN_TRY(kiln_unit_counters(r, u, &c, err));
    kiln_status st = kiln_unit_count(r, u, c, "visible", &out->visible, err);
    if (st == KILN_OK) st = kiln_unit_count(r, u, c, "pairs", &out->pairs, err);
    if (st == KILN_OK) st = kiln_unit_count(r, u, c, "box_pairs", &out->box_pairs, err);
    json_decref(c);
    return st;
}

kiln_status kiln_frame_counts_read(kiln_run *r, const kiln_unit *u,
                                   const kiln_view_request *request, const kiln_view_chunks *c,
                                   kiln_frame_counts *out, kiln_error *err)
{
    const uint32_t tiles_y = kiln_view_tiles_y(&request->view);
    *out = (kiln_frame_counts){0};
    KILN_TRY(KILN_ALLOC(&out->row_pairs, tiles_y, "pairs of tile rows", err));
    kiln_status st =
        kiln_unit_struct(r, u, "row_pairs", out->row_pairs, tiles_y * sizeof *out->row_pairs, err);
    if (st == KILN_OK) st = read_counts(r, u, out, err);
    if (st == KILN_OK) st = kiln_unit_refuse(r, u, check_counts(out, request, c, err), err);
    if (st == KILN_OK) return KILN_OK;
    free(out->row_pairs);
    *out = (kiln_frame_counts){0};
    return st;
}
