/* unit_picture -- see the header. */
#include "stages/render/unit_picture.h"

#include "stages/render/lists.h"
#include "stages/render/picture_size.h"
#include "stages/render/pixels.h"

#include <stdlib.h>
#include <string.h>

/* Checks that a band has no more pairs than the unit has memory for. A single tile row can exceed the size of a band, and the plan
 * cannot know this before pairs are counted. */
static kiln_status check_band_room(const kiln_worker *w, const kiln_render_unit *u, uint64_t pairs, kiln_error *err)
{
    char lists[32], more[32];
    const uint64_t may = kiln_worker_ram(w);
    if (pairs <= u->band_pairs) return KILN_OK;
    /* bytes of ranks, of a part's ranks, and of their code */
    const uint64_t need = u->ram + 4 * sizeof(uint32_t) * (pairs - u->band_pairs);
    if (need <= may) return KILN_OK;
    return kiln_fail(err, KILN_E_CAP, "a band of '%s' lists %llu pairs, which take %s of memory; give --ram %s more", u->camera,
                     (unsigned long long)pairs, kiln_size_text(sizeof(uint32_t) * pairs, lists), kiln_size_text(need - may, more));
}

/* Returns the arguments of raster for these tile rows, without lists. */
static kiln_raster_args raster_rows_of(const kiln_render_unit *u, const kiln_unit_picture *p, uint32_t row0, uint32_t row1)
{
    const size_t at = (size_t)row0 * KILN_TILE * p->width;
    kiln_raster_args a = {.view = &u->request.view,
                          .profile = u->request.profile,
                          .fast = p->fast,
                          .row0 = row0,
                          .row1 = row1,
                          .rgba = p->rgba + 4 * at,
                          .depth = p->depth ? p->depth + at : NULL};
    memcpy(a.background, p->background, sizeof a.background);
    return a;
}

static kiln_status draw_bands(kiln_worker *w, const kiln_render_unit *u, kiln_frame *f, const kiln_lists *l, kiln_unit_picture *p,
                              kiln_error *err)
{
    kiln_status st;
    uint32_t *counts = NULL, *ranks = NULL, tiles_x = kiln_view_tiles_x(&u->request.view);
    uint64_t most_pairs = 0, most_rows = 0;
    for (uint32_t b = 0; b < l->n_bands; b++) {
        if (l->pairs[b] > most_pairs) most_pairs = l->pairs[b];
        if (l->starts[b + 1] - l->starts[b] > most_rows) most_rows = l->starts[b + 1] - l->starts[b];
    }
    KILN_GO(check_band_room(w, u, most_pairs, err));
    KILN_GO(KILN_ALLOC(&counts, most_rows * tiles_x, "tile counts", err));
    KILN_GO(KILN_ALLOC_UNSET(&ranks, most_pairs, "pairs of a band", err));
    for (uint32_t b = 0; b < l->n_bands; b++) {
        kiln_raster_args a = raster_rows_of(u, p, l->starts[b], l->starts[b + 1]);
        a.n_pairs = l->pairs[b];
        KILN_GO(kiln_lists_draw(w, l, b, f, &a, counts, ranks, err));
    }
done:
    free(ranks);
    free(counts);
    return st;
}

static kiln_status draw_frame(kiln_worker *w, const kiln_render_unit *u, kiln_frame *f, kiln_lists *l, kiln_unit_picture *p,
                              kiln_error *err)
{
    KILN_TRY(kiln_lists_open(w, f, &u->request, l, err));
    KILN_TRY(draw_bands(w, u, f, l, p, err));
    p->visible = f->n;
    p->pairs = l->total;
    p->from_table = l->table != NULL;
    return KILN_OK;
}

static void take_stats(kiln_unit_picture *p, const kiln_draw_stats *stats)
{
    p->visible = stats->visible;
    p->pairs = stats->pairs;
    p->slabs = stats->slabs;
}

/* Draws in slabs. A stored table is not used, because its lists name Gaussians of the whole view. */
static kiln_status draw_slabs(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, uint64_t room, kiln_unit_picture *p,
                              kiln_error *err)
{
    kiln_draw_stats stats;
    KILN_TRY(kiln_frame_slabs(w, s, &u->request, room, p->background, p->rgba, p->depth, &stats, err));
    take_stats(p, &stats);
    return KILN_OK;
}

bool kiln_unit_picture_on_device(const kiln_render_unit *u) { return u->device_ram > 0; }

/* Makes the frame. If it does not fit, *room is the size of slabs, whose memory must be within what the unit has for a frame. */
static kiln_status make_frame(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, kiln_frame **f, uint64_t *room,
                              kiln_error *err)
{
    const kiln_layer *layer = kiln_frame_layer(s);
    kiln_draw_size size;
    *room = u->slab_room;
    if (*room > 0) return KILN_OK;
    KILN_TRY(kiln_frame_state_bound(s, &u->request, &size, err));
    KILN_TRY(kiln_frame_make_or_room(w, s, &u->request, true, f, room, err));
    size.visible = *room;
    if (*room == 0 || kiln_frame_slabs_ram(layer, &u->request, &size, kiln_render_picture_bytes(u)) <= u->ram) return KILN_OK;
    *room = 0;
    return kiln_frame_make(w, s, &u->request, true, f, err);
}

uint64_t kiln_unit_picture_canvases(const kiln_render_unit *u, uint32_t n_encoding)
{
    return n_encoding > 0 ? (n_encoding + 1) * kiln_canvas_bytes(u->encoding.pixels) : 0;
}

kiln_status kiln_unit_picture_take_canvas(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, kiln_unit_picture *p,
                                          kiln_error *err)
{
    const uint64_t pixels = p->n_encoding > 0 ? u->encoding.pixels : (uint64_t)p->width * p->height;
    if (p->canvas) return KILN_OK;
    KILN_TRY(kiln_frame_canvas(w, s, pixels, p->n_encoding + 1, &p->canvas, err));
    p->rgba = kiln_canvas_pixels(p->canvas);
    return KILN_OK;
}

void kiln_unit_picture_give_canvas(kiln_unit_picture *p)
{
    kiln_canvas_give(p->canvas);
    p->canvas = NULL;
    p->rgba = NULL;
    p->rows = p->frame = NULL;
}

void kiln_unit_picture_drop_hashes(kiln_unit_picture *p)
{
    free(p->hashes);
    p->hashes = NULL;
}

kiln_picture_job kiln_unit_picture_job(const kiln_render_unit *u, const kiln_unit_picture *p)
{
    return (kiln_picture_job){.path = u->picture,
                              .format = (kiln_picture_format)u->format,
                              .width = p->width,
                              .height = p->height,
                              .step = 4,
                              .channels = u->format == KILN_NPY || u->alpha ? 4 : 3,
                              .data = p->rgba,
                              .over = p->background,
                              .rows = p->rows};
}

/* Says whether the GPU hashes the picture: not if the host cuts a part of it out, or changes it. */
static bool is_hashed_there(const kiln_render_unit *u, const kiln_unit_picture *p)
{
    return u->crop.width == 0 && u->exposure != KILN_EXPOSURE_ON && kiln_pixel_hashes_can((uint64_t)p->width * p->height);
}

/* Floats are compared with a photo or an exact picture, written as they are, or hashed if the GPU cannot. */
kiln_wanted kiln_unit_picture_wanted(const kiln_render_unit *u, const kiln_unit_picture *p)
{
    const bool hashed = is_hashed_there(u, p);
    if (!hashed || u->photo[0] || kiln_render_is_compared(u) || u->format == KILN_NPY) return KILN_WANTED_FLOATS;
    if (u->frame.kind != KILN_VIDEO_NONE) return KILN_WANTED_FRAME;
    return u->format == KILN_RENDER_NO_FILE ? KILN_WANTED_NOTHING : KILN_WANTED_PNG_ROWS;
}

/* Tries a single pass, which a GPU can do that has drawn such a picture before. If the pass fails, a frame is made while the canvas
 * exists. The unit's memory has room for both only if the worker encodes beside drawing, or if no frame comes to host memory.
 *
 * The GPU hashes the picture and copies only what the host needs of it, to the canvas. There is none if that is nothing. */
static kiln_status try_single_pass(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, kiln_unit_picture *p, bool *done,
                                   kiln_error *err)
{
    const uint64_t pixels = (uint64_t)p->width * p->height;
    const kiln_wanted what = kiln_unit_picture_wanted(u, p);
    kiln_draw_stats stats;
    *done = false;
    if ((p->n_encoding == 0 && !kiln_unit_picture_on_device(u)) || u->slab_room > 0) return KILN_OK;
    if (is_hashed_there(u, p))
        KILN_TRY(KILN_ALLOC_UNSET(&p->hashes, KILN_PIXEL_HASH_BYTES * kiln_pixel_pieces(pixels), "hashes of a picture", err));
    const kiln_picture_job job = kiln_unit_picture_job(u, p);
    kiln_png_rows_args png = kiln_picture_png_rows(&job);
    kiln_pixel_bytes_args frame = kiln_video_frame_args(u->frame.kind, p->width, u->frame.width, u->frame.height);
    png.rows = frame.bytes = (unsigned char *)p->rgba;
    const kiln_draw_outputs to = {.rgba = what == KILN_WANTED_FLOATS ? p->rgba : NULL,
                                  .depth = p->depth,
                                  .hashes = p->hashes,
                                  .png = what == KILN_WANTED_PNG_ROWS ? &png : NULL,
                                  .bytes = what == KILN_WANTED_FRAME ? &frame : NULL};
    KILN_TRY(kiln_frame_single_pass(w, s, &u->request, p->background, &to, &stats, done, err));
    if (*done) {
        take_stats(p, &stats);
        p->rows = what == KILN_WANTED_PNG_ROWS ? png.rows : NULL;
        p->frame = what == KILN_WANTED_FRAME ? frame.bytes : NULL;
        p->rgba = to.rgba;
        return KILN_OK;
    }
    kiln_unit_picture_drop_hashes(p);
    return KILN_OK;
}

/* ---- where host memory has no room for the Gaussians ---------------------------------------------------------------- */
/* Sets how much of the worker's memory drawing takes; the rest keeps planes and decodes ahead. */
static void share(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, const kiln_unit_picture *p, uint64_t drawing)
{
    kiln_frame_state_share(w, s, p->encoding_ram + drawing, p->encoding_ram + u->encoding.drawing,
                           kiln_unit_picture_canvases(u, p->n_encoding));
}

/* Finds slabs for a view that nobody has counted, or that the GPU has refused. device_room: of its slabs, 0: none. They take at
 * most half of the memory if there is room for any, so that their chunks are decoded on several threads. */
static kiln_status find_room(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, const kiln_unit_picture *p,
                             uint64_t device_room, uint64_t *row_pairs, uint64_t *room, kiln_error *err)
{
    const kiln_layer *layer = kiln_frame_layer(s);
    const uint64_t others = p->encoding_ram + kiln_unit_picture_canvases(u, p->n_encoding), all = kiln_worker_ram(w);
    const uint64_t may = all > others ? all - others : 0;
    kiln_draw_size size;
    kiln_draw_tally t = {.row_pairs = row_pairs};
    KILN_TRY(kiln_frame_state_bound(s, &u->request, &size, err));
    KILN_TRY(kiln_frame_tally(w, s, &u->request, &t, err));
    size.visible = t.visible;
    kiln_draw_size_bands(&size, &u->request.view, row_pairs);
    size.band_pairs = kiln_render_slab_band(size.band_pairs, t.pairs);
    const uint64_t least = kiln_render_slabs_ram(layer, u, &size, kiln_render_smallest_slab(&size));
    *room = kiln_render_largest_slab(layer, u, &size, least <= may / 2 ? may / 2 : may);
    if (device_room > 0 && device_room < *room) *room = device_room;
    const uint64_t ram = kiln_render_slabs_ram(layer, u, &size, *room);
    KILN_TRY(kiln_worker_need_ram(w, others + ram, 0, u->camera, err)); /* a tile row with many pairs */
    share(w, s, u, p, ram);
    return KILN_OK;
}

static kiln_status draw_uncounted(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, uint64_t device_room,
                                  kiln_unit_picture *p, kiln_error *err)
{
    uint64_t room, *row_pairs;
    share(w, s, u, p, u->ram);
    KILN_TRY(KILN_ALLOC(&row_pairs, kiln_view_tiles_y(&u->request.view), "pairs of tile rows", err));
    kiln_status st = find_room(w, s, u, p, device_room, row_pairs, &room, err);
    if (st == KILN_OK) st = draw_slabs(w, s, u, room, p, err);
    free(row_pairs);
    return st;
}

/* The first picture of a scene, for which there is no single pass, or one that was larger than expected. */
static kiln_status draw_on_device(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, kiln_unit_picture *p,
                                  kiln_error *err)
{
    kiln_draw_stats stats;
    bool done;
    uint64_t room;
    KILN_TRY(kiln_unit_picture_take_canvas(w, s, u, p, err));
    KILN_TRY(kiln_frame_on_device(w, s, &u->request, p->background, p->rgba, p->depth, &stats, &done, &room, err));
    if (!done) return draw_uncounted(w, s, u, room, p, err);
    take_stats(p, &stats);
    return KILN_OK;
}

static kiln_status draw_in_parts(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, kiln_lists *l,
                                 kiln_unit_picture *p, kiln_error *err)
{
    kiln_frame *f = NULL;
    uint64_t room;
    if (u->count_first) {
        KILN_TRY(kiln_unit_picture_take_canvas(w, s, u, p, err));
        return draw_uncounted(w, s, u, 0, p, err);
    }
    KILN_TRY(make_frame(w, s, u, &f, &room, err));
    KILN_TRY(kiln_unit_picture_take_canvas(w, s, u, p, err));
    return room > 0 ? draw_slabs(w, s, u, room, p, err) : draw_frame(w, u, f, l, p, err);
}

/* Adds advice to a failure of a kernel, which knows no options, unless its sentence already names one. */
static void advise_fast(kiln_error *err)
{
    static const char advice[] = "; give --vram more, or draw with --no-fast";
    const int room = (int)(sizeof err->msg - sizeof advice);
    if (err && !strstr(err->msg, "--")) (void)kiln_fail(err, err->status, "%.*s%s", room, err->msg, advice);
}

/* A stored table saves work on the CPU alone: a GPU makes the lists in less time than a thread of the CPU decodes them. Nor is
 * there one for a fast picture, or for slabs. */
static bool may_use_table(kiln_worker *w, const kiln_render_unit *u, const kiln_unit_picture *p)
{
    return !p->fast && !u->count_first && kiln_runner_exec(kiln_worker_runner(w)).device < 0;
}

kiln_status kiln_unit_picture_draw(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, kiln_unit_picture *p,
                                   kiln_error *err)
{
    kiln_lists l = {0};
    kiln_status st = KILN_OK;
    bool drawn = false;
    kiln_frame_set_fast(s, p->fast);
    if (may_use_table(w, u, p)) KILN_GO(kiln_lists_find(w, &u->request, u->camera, u->table_key, &l, err));
    if (!l.table) KILN_GO(try_single_pass(w, s, u, p, &drawn, err));
    if (!drawn) KILN_GO(kiln_unit_picture_on_device(u) ? draw_on_device(w, s, u, p, err) : draw_in_parts(w, s, u, &l, p, err));
done:
    if (st == KILN_E_CAP && p->fast) advise_fast(err);
    kiln_lists_release(&l);
    return st;
}
