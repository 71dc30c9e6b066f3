/* render_units -- draws a camera in the worker: lists band by band, raster, metrics. Then it hashes the picture and writes the
 * files; a GPU's worker does so while it draws the next cameras. */
#include "stages/render/render_units.h"

#include "base/log.h"
#include "stages/engine/json_text.h"
#include "stages/render/depth.h"
#include "stages/render/distance.h"
#include "stages/render/lists.h"
#include "stages/render/picture_size.h"
#include "stages/render/pixels.h"
#include "stages/render/written.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A picture while it is made. */
typedef struct {
    uint32_t width, height;
    uint32_t n_encoding; /* pictures that the worker encodes at a time (encoding.h); 0: each is encoded before the next is drawn */
    uint64_t encoding_ram; /* bytes that they take, without canvases */
    float background[3];
    kiln_canvas *canvas; /* taken from the worker's, to be given back; NULL: not taken yet */
    float *rgba;         /* its pixels; NULL: they stayed on the GPU */
    float *depth;        /* NULL: not asked for */
    /* What a GPU has made of the pixels: */
    unsigned char *rows;   /* those of the PNG, in the canvas; NULL: the host makes them */
    unsigned char *frame;  /* that of a video, without its line, in the canvas; NULL: the host makes it */
    unsigned char *hashes; /* of the picture's pieces (pixels.h); owned; NULL: the host makes them */
    uint64_t visible, pairs;
    uint32_t slabs; /* 0: not drawn in slabs */
    bool from_table;
    bool fast;
    double psnr, ssim;
    double fast_db, full_db; /* NAN: not measured */
    double draw_s, encode_s;
    double depth_step; /* scene units of a step of its depth's file; 0: none */
    kiln_outside outside;
    char damage[KILN_PHOTO_DAMAGE]; /* of the photo */
} picture;

static double seconds_since(uint64_t start_ns) { return (double)(kiln_now_ns() - start_ns) * 1e-9; }

/* Checks that a band has no more pairs than the unit has memory for. A single tile row can exceed the size of a band, and the plan
 * cannot know this before pairs are counted. */
static kiln_status check_room(const kiln_worker *w, const kiln_render_unit *u, uint64_t pairs, kiln_error *err)
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
static kiln_raster_args rows_of(const kiln_render_unit *u, const picture *p, uint32_t row0, uint32_t row1)
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

static kiln_status draw_bands(kiln_worker *w, const kiln_render_unit *u, kiln_frame *f, const kiln_lists *l, picture *p,
                              kiln_error *err)
{
    kiln_status st;
    uint32_t *counts = NULL, *ranks = NULL, tiles_x = kiln_view_tiles_x(&u->request.view);
    uint64_t most_pairs = 0, most_rows = 0;
    for (uint32_t b = 0; b < l->n_bands; b++) {
        if (l->pairs[b] > most_pairs) most_pairs = l->pairs[b];
        if (l->starts[b + 1] - l->starts[b] > most_rows) most_rows = l->starts[b + 1] - l->starts[b];
    }
    KILN_GO(check_room(w, u, most_pairs, err));
    KILN_GO(KILN_ALLOC(&counts, most_rows * tiles_x, "tile counts", err));
    KILN_GO(KILN_ALLOC_UNSET(&ranks, most_pairs, "pairs of a band", err));
    for (uint32_t b = 0; b < l->n_bands; b++) {
        kiln_raster_args a = rows_of(u, p, l->starts[b], l->starts[b + 1]);
        a.n_pairs = l->pairs[b];
        KILN_GO(kiln_lists_draw(w, l, b, f, &a, counts, ranks, err));
    }
done:
    free(ranks);
    free(counts);
    return st;
}

static kiln_status draw_frame(kiln_worker *w, const kiln_render_unit *u, kiln_frame *f, kiln_lists *l, picture *p, kiln_error *err)
{
    KILN_TRY(kiln_lists_open(w, f, &u->request, l, err));
    KILN_TRY(draw_bands(w, u, f, l, p, err));
    p->visible = f->n;
    p->pairs = l->total;
    p->from_table = l->table != NULL;
    return KILN_OK;
}

static void take_stats(picture *p, const kiln_draw_stats *stats)
{
    p->visible = stats->visible;
    p->pairs = stats->pairs;
    p->slabs = stats->slabs;
}

/* Draws in slabs. A stored table is not used, because its lists name Gaussians of the whole view. */
static kiln_status draw_slabs(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, uint64_t room, picture *p,
                              kiln_error *err)
{
    kiln_draw_stats stats;
    KILN_TRY(kiln_frame_slabs(w, s, &u->request, room, p->background, p->rgba, p->depth, &stats, err));
    take_stats(p, &stats);
    return KILN_OK;
}

/* Says whether the picture is drawn in the GPU's memory, because the host's has no room for its Gaussians. */
static bool is_on_device(const kiln_render_unit *u) { return u->device_ram > 0; }

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

/* Returns the bytes of the canvases if so many pictures are encoded at a time. If none is, the only canvas is a part of u->ram. */
static uint64_t canvas_bytes(const kiln_render_unit *u, uint32_t n_encoding)
{
    return n_encoding > 0 ? (n_encoding + 1) * kiln_canvas_bytes(u->encoding.pixels) : 0;
}

/* Takes a canvas. If there are as many as there may be, waits until a picture is encoded. */
static kiln_status take_canvas(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, picture *p, kiln_error *err)
{
    const uint64_t pixels = p->n_encoding > 0 ? u->encoding.pixels : (uint64_t)p->width * p->height;
    if (p->canvas) return KILN_OK;
    KILN_TRY(kiln_frame_canvas(w, s, pixels, p->n_encoding + 1, &p->canvas, err));
    p->rgba = kiln_canvas_pixels(p->canvas);
    return KILN_OK;
}

static void give_canvas(picture *p)
{
    kiln_canvas_give(p->canvas);
    p->canvas = NULL;
    p->rgba = NULL;
    p->rows = p->frame = NULL;
}

static void drop_hashes(picture *p)
{
    free(p->hashes);
    p->hashes = NULL;
}

/* Describes the picture's file. */
static kiln_picture_job job_of(const kiln_render_unit *u, const picture *p)
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

/* What a single pass copies to the host, besides hashes and depth. */
typedef enum { FLOATS, PNG_ROWS, FRAME, NOTHING } wanted;

/* Says whether the GPU hashes the picture: not if a part of it is cut out on the host. */
static bool is_hashed_there(const kiln_render_unit *u, const picture *p)
{
    return u->crop.width == 0 && kiln_pixel_hashes_can((uint64_t)p->width * p->height);
}

/* Floats are compared with a photo or an exact picture, written as they are, or hashed if the GPU cannot. */
static wanted wanted_of(const kiln_render_unit *u, const picture *p)
{
    const bool hashed = is_hashed_there(u, p);
    if (!hashed || u->photo[0] || kiln_render_is_compared(u) || u->format == KILN_NPY) return FLOATS;
    if (u->frame.kind != KILN_VIDEO_NONE) return FRAME;
    return u->format == KILN_RENDER_NO_FILE ? NOTHING : PNG_ROWS;
}

/* Tries a single pass, which a GPU can do that has drawn such a picture before. If the pass fails, a frame is made while the canvas
 * exists. The unit's memory has room for both only if the worker encodes beside drawing, or if no frame comes to host memory.
 *
 * The GPU hashes the picture and copies only what the host needs of it, to the canvas. There is none if that is nothing. */
static kiln_status try_single_pass(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, picture *p, bool *done,
                                   kiln_error *err)
{
    const uint64_t pixels = (uint64_t)p->width * p->height;
    const wanted what = wanted_of(u, p);
    kiln_draw_stats stats;
    *done = false;
    if ((p->n_encoding == 0 && !is_on_device(u)) || u->slab_room > 0) return KILN_OK;
    if (is_hashed_there(u, p))
        KILN_TRY(KILN_ALLOC_UNSET(&p->hashes, KILN_PIXEL_HASH_BYTES * kiln_pixel_pieces(pixels), "hashes of a picture", err));
    const kiln_picture_job job = job_of(u, p);
    kiln_png_rows_args png = kiln_picture_png_rows(&job);
    kiln_pixel_bytes_args frame = kiln_video_frame_args(u->frame.kind, p->width, u->frame.width, u->frame.height);
    png.rows = frame.bytes = (unsigned char *)p->rgba;
    const kiln_draw_outputs to = {.rgba = what == FLOATS ? p->rgba : NULL,
                                  .depth = p->depth,
                                  .hashes = p->hashes,
                                  .png = what == PNG_ROWS ? &png : NULL,
                                  .bytes = what == FRAME ? &frame : NULL};
    KILN_TRY(kiln_frame_single_pass(w, s, &u->request, p->background, &to, &stats, done, err));
    if (*done) {
        take_stats(p, &stats);
        p->rows = what == PNG_ROWS ? png.rows : NULL;
        p->frame = what == FRAME ? frame.bytes : NULL;
        p->rgba = to.rgba;
        return KILN_OK;
    }
    drop_hashes(p);
    return KILN_OK;
}

/* ---- where host memory has no room for the Gaussians ---------------------------------------------------------------- */
/* Sets how much of the worker's memory drawing takes; the rest keeps planes and decodes ahead. */
static void share(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, const picture *p, uint64_t drawing)
{
    kiln_frame_state_share(w, s, p->encoding_ram + drawing, canvas_bytes(u, p->n_encoding));
}

/* Finds slabs for a view that nobody has counted, or that the GPU has refused. device_room: of its slabs, 0: none. They take at
 * most half of the memory if there is room for any, so that their chunks are decoded on several threads. */
static kiln_status find_room(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, const picture *p, uint64_t device_room,
                             uint64_t *row_pairs, uint64_t *room, kiln_error *err)
{
    const kiln_layer *layer = kiln_frame_layer(s);
    const uint64_t others = p->encoding_ram + canvas_bytes(u, p->n_encoding), all = kiln_worker_ram(w);
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

static kiln_status draw_uncounted(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, uint64_t device_room, picture *p,
                                  kiln_error *err)
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
static kiln_status draw_on_device(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, picture *p, kiln_error *err)
{
    kiln_draw_stats stats;
    bool done;
    uint64_t room;
    KILN_TRY(take_canvas(w, s, u, p, err));
    KILN_TRY(kiln_frame_on_device(w, s, &u->request, p->background, p->rgba, p->depth, &stats, &done, &room, err));
    if (!done) return draw_uncounted(w, s, u, room, p, err);
    take_stats(p, &stats);
    return KILN_OK;
}

static kiln_status draw_in_parts(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, kiln_lists *l, picture *p,
                                 kiln_error *err)
{
    kiln_frame *f = NULL;
    uint64_t room;
    if (u->count_first) {
        KILN_TRY(take_canvas(w, s, u, p, err));
        return draw_uncounted(w, s, u, 0, p, err);
    }
    KILN_TRY(make_frame(w, s, u, &f, &room, err));
    KILN_TRY(take_canvas(w, s, u, p, err));
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
static bool may_use_table(kiln_worker *w, const kiln_render_unit *u, const picture *p)
{
    return !p->fast && !u->count_first && kiln_runner_exec(kiln_worker_runner(w)).device < 0;
}

static kiln_status draw_picture(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, picture *p, kiln_error *err)
{
    kiln_lists l = {0};
    kiln_status st = KILN_OK;
    bool drawn = false;
    kiln_frame_set_fast(s, p->fast);
    if (may_use_table(w, u, p)) KILN_GO(kiln_lists_find(w, &u->request, u->camera, u->table_key, &l, err));
    if (!l.table) KILN_GO(try_single_pass(w, s, u, p, &drawn, err));
    if (!drawn) KILN_GO(is_on_device(u) ? draw_on_device(w, s, u, p, err) : draw_in_parts(w, s, u, &l, p, err));
done:
    if (st == KILN_E_CAP && p->fast) advise_fast(err);
    kiln_lists_release(&l);
    return st;
}

static kiln_status write_picture(const kiln_worker *w, const kiln_render_unit *u, const char *path, const picture *p,
                                 kiln_error *err)
{
    const kiln_picture_text text[] = {
        {"Software", kiln_version}, {"Profile", kiln_profiles[u->request.profile].name}, {"Arithmetic", "fast, not exact"}};
    kiln_picture_job job = job_of(u, p);
    job.path = path;
    job.text = text;
    job.n_text = p->fast ? 3 : 2;
    job.threads = kiln_worker_threads(w);
    return kiln_picture_write(&job, err);
}

static kiln_status write_full(const kiln_worker *w, const kiln_render_unit *u, const picture *p, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    kiln_render_full_path(u, path);
    return path[0] ? write_picture(w, u, path, p, err) : KILN_OK;
}

/* Draws the exact picture, or that of the full scene, into memory of its own. */
static kiln_status compare(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, picture *p, double *db, kiln_error *err)
{
    kiln_status st;
    kiln_metrics result;
    picture other = *p; /* its canvas stays p's */
    other.fast = false;
    other.depth = NULL;
    other.rgba = NULL;
    other.hashes = NULL;
    if (u->against_full) kiln_frame_set_wish(s, &kiln_level_full);
    KILN_GO(KILN_ALLOC_UNSET(&other.rgba, (uint64_t)4 * p->width * p->height, "picture to compare with", err));
    KILN_GO(draw_picture(w, s, u, &other, err));
    KILN_GO(kiln_distance(w, u, p->rgba, other.rgba, 4, NULL, &result, err));
    *db = result.psnr;
    kiln_frame_forget(s);
    if (u->against_full) KILN_GO(write_full(w, u, &other, err));
done:
    drop_hashes(&other);
    free(other.rgba);
    return st;
}

static kiln_status draw(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u, picture *p, kiln_error *err)
{
    for (int c = 0; c < 3; c++) p->background[c] = (float)u->background[c];
    if ((p->n_encoding > 0 || is_on_device(u)) && wanted_of(u, p) != NOTHING)
        KILN_TRY(take_canvas(w, s, u, p, err)); /* may wait, which does not count as drawing */
    const uint64_t start_ns = kiln_now_ns();
    KILN_TRY(draw_picture(w, s, u, p, err));
    p->draw_s = seconds_since(start_ns);
    p->fast_db = p->full_db = NAN;
    if (kiln_render_is_compared(u)) KILN_TRY(compare(w, s, u, p, u->against_full ? &p->full_db : &p->fast_db, err));
    kiln_frame_forget(s);                    /* no other unit uses this camera */
    kiln_runner_trim(kiln_worker_runner(w)); /* frees lists before photos are read and files are written */
    return KILN_OK;
}

static kiln_status measure(kiln_worker *w, const kiln_render_unit *u, picture *p, kiln_error *err)
{
    kiln_metrics m = {.psnr = NAN, .ssim_same = NAN};
    if (u->photo[0]) KILN_TRY(kiln_distance_photo(w, u, p->rgba, &m, &p->outside, p->damage, err));
    if (p->damage[0] && kiln_worker_is_of_part(w)) kiln_warn("camera '%s' is drawn but not measured: %s", u->camera, p->damage);
    p->psnr = m.psnr;
    p->ssim = m.ssim_same;
    return KILN_OK;
}

/* Moves the rows of a part of the picture to the front. */
static void cut_out(float *data, uint32_t channels, uint32_t width, const kiln_render_crop *c)
{
    const size_t row = (size_t)channels * c->width;
    for (uint32_t y = 0; y < c->height; y++)
        memmove(data + y * row, data + channels * ((size_t)(c->y + y) * width + c->x), row * sizeof *data);
}

static void crop(const kiln_render_unit *u, picture *p)
{
    if (u->crop.width == 0) return;
    cut_out(p->rgba, 4, p->width, &u->crop);
    if (p->depth) cut_out(p->depth, 1, p->width, &u->crop);
    p->width = u->crop.width;
    p->height = u->crop.height;
}

static kiln_status write_depth(const kiln_worker *w, const kiln_render_unit *u, picture *p, kiln_error *err)
{
    const kiln_depth_job job = {.path = u->depth,
                                .depth = p->depth,
                                .width = p->width,
                                .height = p->height,
                                .colours = u->depth_colours,
                                .threads = kiln_worker_threads(w)};
    return kiln_depth_write(&job, &p->depth_step, err);
}

/* Writes a frame of the picture's floats. */
static kiln_status write_floats(int fd, const kiln_worker *w, const kiln_video_frame *f, const picture *p, kiln_error *err)
{
    unsigned char *bytes;
    const size_t n = kiln_video_frame_bytes(f->kind, f->width, f->height);
    KILN_TRY(KILN_ALLOC_UNSET(&bytes, n, "a frame", err));
    kiln_status st = kiln_video_frame_write(f->kind, p->rgba, p->width, f->width, f->height, kiln_worker_threads(w), bytes, err);
    if (st == KILN_OK) st = kiln_file_write_at(fd, "a frame", 0, bytes, n, err);
    free(bytes);
    return st;
}

/* Writes a frame that the GPU has made. */
static kiln_status write_made(int fd, const kiln_video_frame *f, const picture *p, kiln_error *err)
{
    const char *const line = kiln_video_frame_line(f->kind);
    const size_t n = strlen(line);
    if (n > 0) KILN_TRY(kiln_file_write_at(fd, "a frame", 0, line, n, err));
    return kiln_file_write_at(fd, "a frame", n, p->frame, kiln_video_frame_bytes(f->kind, f->width, f->height) - n, err);
}

/* Nobody else reads or writes this file until the unit is answered. */
static kiln_status write_frame(const kiln_worker *w, const kiln_video_frame *f, const picture *p, kiln_error *err)
{
    const int fd = open(f->path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return kiln_fail(err, KILN_E_IO, "cannot open the memory for frames: %s", strerror(errno));
    const kiln_status st = p->frame ? write_made(fd, f, p, err) : write_floats(fd, w, f, p, err);
    (void)close(fd);
    return st;
}

static kiln_status write_files(const kiln_worker *w, const kiln_render_unit *u, picture *p, kiln_error *err)
{
    const uint64_t start_ns = kiln_now_ns();
    if (u->frame.kind != KILN_VIDEO_NONE) {
        KILN_TRY(write_frame(w, &u->frame, p, err));
        p->encode_s = seconds_since(start_ns);
    }
    if (u->format == KILN_RENDER_NO_FILE) return KILN_OK;
    KILN_TRY(write_picture(w, u, u->picture, p, err));
    if (u->depth[0]) KILN_TRY(write_depth(w, u, p, err));
    p->encode_s = seconds_since(start_ns);
    return KILN_OK;
}

static kiln_status no_memory(kiln_error *err) { return kiln_fail(err, KILN_E_NOMEM, "out of memory for the counters"); }

static kiln_status describe_file(json_t *counters, const char *name, const char *path, kiln_error *err)
{
    json_t *written = NULL;
    if (!path[0]) return KILN_OK;
    KILN_TRY(kiln_written_describe(path, &written, err));
    return json_object_set_new(counters, name, written) == 0 ? KILN_OK : no_memory(err);
}

/* Adds a distance, unless it is NAN. Equal pictures are "inf", because JSON has no infinity. */
static int set_db(json_t *c, const char *name, double db)
{
    if (isnan(db)) return 0;
    return json_object_set_new(c, name, isinf(db) ? json_string("inf") : kiln_json_real(db));
}

static kiln_status count_metrics(json_t *c, const kiln_render_unit *u, const picture *p, kiln_error *err)
{
    int failed = 0;
    failed |= set_db(c, "psnr", p->psnr) | set_db(c, "fast_db", p->fast_db) | set_db(c, "full_db", p->full_db);
    if (isfinite(p->ssim)) failed |= json_object_set_new(c, "ssim", kiln_json_real(p->ssim));
    if (p->outside.empty > 0) failed |= json_object_set_new(c, "outside", kiln_outside_json(&p->outside));
    if (p->damage[0]) failed |= json_object_set_new(c, "note", kiln_json_string(p->damage));
    if (p->damage[0]) failed |= json_object_set_new(c, "photo", kiln_photo_state(u->photo));
    if (p->damage[0] && u->mask[0]) failed |= json_object_set_new(c, "mask", kiln_photo_state(u->mask));
    if (p->depth_step > 0) failed |= json_object_set_new(c, "depth_step", kiln_json_real(p->depth_step));
    if (p->encode_s > 0) failed |= json_object_set_new(c, "encode_s", kiln_json_real(p->encode_s));
    return failed ? no_memory(err) : KILN_OK;
}

static kiln_status hand_in(kiln_worker *w, const kiln_render_unit *u, const picture *p, kiln_error *err)
{
    kiln_hash pixels;
    const uint64_t n = (uint64_t)p->width * p->height;
    if (p->hashes)
        pixels = kiln_pixels_hash_of_pieces(p->hashes, kiln_pixel_pieces(n));
    else
        KILN_TRY(kiln_pixels_hash(p->rgba, n, kiln_worker_threads(w), &pixels, err));
    KILN_TRY(kiln_worker_put(w, "pixels", pixels.bytes, sizeof pixels.bytes, 1, err));
    json_t *c = json_pack("{s:I, s:I, s:b, s:o}", "visible", (json_int_t)p->visible, "pairs", (json_int_t)p->pairs, "from_table",
                          (int)p->from_table, "draw_s", kiln_json_real(p->draw_s));
    if (!c) return no_memory(err);
    kiln_status st = KILN_OK;
    if (p->slabs > 0 && json_object_set_new(c, "slabs", json_integer(p->slabs)) != 0) st = no_memory(err);
    if (st == KILN_OK) st = count_metrics(c, u, p, err);
    if (st == KILN_OK) st = describe_file(c, "picture", u->picture, err);
    if (st == KILN_OK) st = describe_file(c, "depth", u->depth, err);
    if (st == KILN_OK) st = kiln_worker_counters(w, c, err);
    json_decref(c);
    return st;
}

/* A unit and its picture in one piece of memory, which deferred work takes over. */
typedef struct {
    kiln_render_unit unit;
    picture picture;
    float depth[]; /* [pixels], if asked for */
} task;

static kiln_status task_new(const void *payload, task **out, kiln_error *err)
{
    kiln_render_unit *u = NULL;
    KILN_TRY(KILN_ALLOC(&u, 1, "unit", err));
    memcpy(u, payload, sizeof *u);
    const uint64_t pixels = (uint64_t)u->request.view.width * u->request.view.height;
    const kiln_status st =
        kiln_alloc_unset((void **)out, sizeof **out + (u->depth[0] ? pixels * sizeof(float) : 0), 1, "unit", err);
    if (st == KILN_OK) {
        **out = (task){.unit = *u, .picture = {.width = u->request.view.width, .height = u->request.view.height, .fast = u->fast}};
        if (u->depth[0]) (*out)->picture.depth = (*out)->depth;
    }
    free(u);
    return st;
}

static kiln_status finish(kiln_worker *w, void *context, kiln_error *err)
{
    task *t = context;
    kiln_status st = write_files(w, &t->unit, &t->picture, err);
    if (st == KILN_OK) st = hand_in(w, &t->unit, &t->picture, err);
    give_canvas(&t->picture); /* before the outputs are packed: the next picture may be waiting for it */
    return st;
}

static void task_free(void *context)
{
    task *t = context;
    if (t) {
        give_canvas(&t->picture);
        drop_hashes(&t->picture);
    }
    free(t);
}

/* Returns how many pictures this worker encodes at a time; 0 on the CPU, where other workers use the cores, and of the first
 * picture where host memory is tight: it decodes the whole scene, on more threads if nothing is kept for pictures. *ram: what they
 * take beside drawing, without canvases. */
static uint32_t count_encoding(kiln_worker *w, const kiln_render_unit *u, uint64_t *ram)
{
    uint64_t beside;
    *ram = 0;
    if (u->count_only || kiln_runner_exec(kiln_worker_runner(w)).device < 0) return 0;
    if (is_on_device(u) && !kiln_frame_has_drawn(w)) return 0;
    const uint32_t n = kiln_render_encoding_in(&u->encoding, kiln_worker_ram(w), &beside);
    if (n > 0) *ram = beside - u->encoding.drawing;
    return n;
}

/* Returns what drawing takes at first. Beside other pictures that are encoded it is the same for all units of a run, so that no
 * unit frees what the next one needs. */
static uint64_t drawing_ram(const kiln_render_unit *u, uint32_t n_encoding)
{
    if (is_on_device(u)) return u->device_ram;
    return n_encoding > 0 ? u->encoding.drawing : u->ram;
}

/* Defers encoding. The next picture is drawn as soon as a canvas is free. */
static void defer_encoding(kiln_worker *w, task *t)
{
    const unsigned n = t->picture.n_encoding, threads = kiln_worker_threads(w);
    kiln_worker_defer(w, KILN_RENDER_ANSWERS * n, (threads + n - 1) / n, finish, task_free, t);
}

kiln_status kiln_render_compute(kiln_worker *w, const char *name, const void *payload, size_t payload_bytes, kiln_error *err)
{
    kiln_status st;
    task *t = NULL;
    kiln_frame_state *s;
    if (payload_bytes != sizeof t->unit)
        return kiln_fail(err, KILN_E_BUG, "unit '%s' has a payload of %zu bytes", name, payload_bytes);
    KILN_TRY(task_new(payload, &t, err));
    const kiln_render_unit *u = &t->unit;
    t->picture.n_encoding = count_encoding(w, u, &t->picture.encoding_ram);
    const uint64_t ram = t->picture.encoding_ram + drawing_ram(u, t->picture.n_encoding);
    KILN_GO(kiln_frame_state_get(w, &u->drawn, !u->count_only, ram, canvas_bytes(u, t->picture.n_encoding), &s, err));
    if (u->count_only) {
        st = kiln_frame_count(w, s, &u->request, err);
        goto done;
    }
    KILN_GO(draw(w, s, u, &t->picture, err));
    KILN_GO(measure(w, u, &t->picture, err));
    crop(u, &t->picture);
    if (t->picture.n_encoding > 0) {
        defer_encoding(w, t);
        return KILN_OK;
    }
    KILN_GO(finish(w, t, err));
done:
    task_free(t);
    return st;
}
