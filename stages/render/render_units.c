/* render_units -- a camera in the worker: it is drawn (unit_picture.h) and measured. Then the
 * picture is hashed and its files are written; a GPU's worker does so while it draws the next
 * cameras. */
#include "stages/render/render_units.h"

#include "base/log.h"
#include "stages/engine/json_text.h"
#include "stages/render/depth.h"
#include "stages/render/distance.h"
#include "stages/render/exposure.h"
#include "stages/render/picture_size.h"
#include "stages/render/pixels.h"
#include "stages/render/unit_picture.h"
#include "stages/render/written.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static double seconds_since(uint64_t start_ns) { return (double)(kiln_now_ns() - start_ns) * 1e-9; }

static kiln_status write_picture(const kiln_worker *w, const kiln_render_unit *u, const char *path,
                                 const kiln_product_seen *seen, const kiln_unit_picture *p,
                                 kiln_error *err)
{
    const kiln_picture_text text[] = {KILN_PICTURE_SOFTWARE,
                                      {"Profile", kiln_profiles[u->request.profile].name},
                                      {"Arithmetic", "fast, not exact"}};
    kiln_picture_job job = kiln_unit_picture_job(u, p);
    job.path = path;
    job.seen = seen;
    job.text = text;
    job.n_text = p->fast ? 3 : 2;
    job.threads = kiln_worker_threads(w);
    return kiln_picture_write(&job, err);
}

static kiln_status write_full(const kiln_worker *w, const kiln_render_unit *u,
                              const kiln_unit_picture *p, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    kiln_render_full_path(u, path);
    return path[0] ? write_picture(w, u, path, &u->full_seen, p, err) : KILN_OK;
}

/* Draws the exact picture, or that of the full scene, into memory of its own. */
static kiln_status compare_with_exact(kiln_worker *w, kiln_frame_state *s,
                                      const kiln_render_unit *u, kiln_unit_picture *p, double *db,
                                      kiln_error *err)
{
    kiln_status st;
    kiln_metrics result;
    kiln_unit_picture other = *p; /* its canvas stays p's */
    other.fast = false;
    other.depth = NULL;
    other.rgba = NULL;
    other.hashes = NULL;
    if (u->against_full) kiln_frame_set_wish(s, &kiln_level_full);
    KILN_GO(KILN_ALLOC_UNSET(&other.rgba, (uint64_t)4 * p->width * p->height,
                             "picture to compare with", err));
    KILN_GO(kiln_unit_picture_draw(w, s, u, &other, err));
    KILN_GO(kiln_distance(w, u, (kiln_compared){p->rgba, 4}, (kiln_compared){other.rgba, 4}, NULL,
                          &result, err));
    *db = result.psnr;
    kiln_frame_forget(s);
    if (u->against_full) KILN_GO(write_full(w, u, &other, err));
done:
    kiln_unit_picture_drop_hashes(&other);
    free(other.rgba);
    return st;
}

/* The background, which a PNG with alpha takes out again, is exposed as the rest is. */
static void expose(const kiln_render_unit *u, kiln_unit_picture *p)
{
    const float behind[4] = {p->background[0], p->background[1], p->background[2], 1};
    kiln_exposure_apply(u->exposure_matrix, p->rgba, (uint64_t)p->width * p->height, p->rgba, 4);
    kiln_exposure_apply(u->exposure_matrix, behind, 1, p->background, 3);
}

static kiln_status draw_unit_picture(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u,
                                     kiln_unit_picture *p, kiln_error *err)
{
    for (int c = 0; c < 3; c++) p->background[c] = (float)u->background[c];
    if ((p->n_encoding > 0 || kiln_unit_picture_on_device(u)) &&
        kiln_unit_picture_wanted(u, p) != KILN_WANTED_NOTHING)
        /* may wait, which does not count as drawing */
        KILN_TRY(kiln_unit_picture_take_canvas(w, s, u, p, err));
    const uint64_t start_ns = kiln_now_ns();
    KILN_TRY(kiln_unit_picture_draw(w, s, u, p, err));
    p->draw_s = seconds_since(start_ns);
    p->fast_db = p->full_db = NAN;
    if (kiln_render_is_compared(u))
        KILN_TRY(compare_with_exact(w, s, u, p, u->against_full ? &p->full_db : &p->fast_db, err));
    if (u->exposure == KILN_EXPOSURE_ON) expose(u, p);
    kiln_frame_forget(s); /* no other unit uses this camera */
    /* frees lists before photos are read and files are written */
    kiln_runner_trim(kiln_worker_runner(w));
    return KILN_OK;
}

static kiln_status measure_unit_picture(kiln_worker *w, const kiln_render_unit *u,
                                        kiln_unit_picture *p, kiln_error *err)
{
    kiln_metrics m = {.psnr = NAN, .ssim_same = NAN};
    if (u->photo[0]) KILN_TRY(kiln_distance_photo(w, u, p->rgba, &m, &p->outside, p->damage, err));
    if (p->damage[0] && kiln_worker_is_of_part(w))
        kiln_warn("camera '%s' is drawn but not measured: %s", u->camera, p->damage);
    p->psnr = m.psnr;
    p->ssim = m.ssim_same;
    return KILN_OK;
}

/* Moves the rows of a part of the picture to the front. */
static void cut_out(float *data, uint32_t channels, uint32_t width, const kiln_render_crop *c)
{
    const size_t row = (size_t)channels * c->width;
    for (uint32_t y = 0; y < c->height; y++)
        memmove(data + y * row, data + channels * ((size_t)(c->y + y) * width + c->x),
                row * sizeof *data);
}

static void crop(const kiln_render_unit *u, kiln_unit_picture *p)
{
    if (u->crop.width == 0) return;
    cut_out(p->rgba, 4, p->width, &u->crop);
    if (p->depth) cut_out(p->depth, 1, p->width, &u->crop);
    p->width = u->crop.width;
    p->height = u->crop.height;
}

static kiln_status write_depth(const kiln_worker *w, const kiln_render_unit *u,
                               kiln_unit_picture *p, kiln_error *err)
{
    const kiln_depth_job job = {.path = u->depth,
                                .depth = p->depth,
                                .width = p->width,
                                .height = p->height,
                                .colours = u->depth_colours,
                                .seen = &u->depth_seen,
                                .threads = kiln_worker_threads(w)};
    return kiln_depth_write(&job, &p->depth_step, err);
}

/* Writes a frame of the picture's floats. */
static kiln_status write_floats(int fd, const kiln_worker *w, const kiln_video_frame *f,
                                const kiln_unit_picture *p, kiln_error *err)
{
    unsigned char *bytes;
    const size_t n = kiln_video_frame_bytes(f->kind, f->width, f->height);
    KILN_TRY(KILN_ALLOC_UNSET(&bytes, n, "a frame", err));
    kiln_status st =
        kiln_video_frame_write(f, p->rgba, p->width, kiln_worker_threads(w), bytes, err);
    if (st == KILN_OK) st = kiln_file_write_at(fd, "a frame", 0, bytes, n, err);
    free(bytes);
    return st;
}

/* Writes a frame that the GPU has made. */
static kiln_status write_made(int fd, const kiln_video_frame *f, const kiln_unit_picture *p,
                              kiln_error *err)
{
    const char *const line = kiln_video_frame_line(f->kind);
    const size_t n = strlen(line);
    if (n > 0) KILN_TRY(kiln_file_write_at(fd, "a frame", 0, line, n, err));
    return kiln_file_write_at(fd, "a frame", n, p->frame,
                              kiln_video_frame_bytes(f->kind, f->width, f->height) - n, err);
}

/* Nobody else reads or writes this file until the unit is answered. */
static kiln_status write_frame(const kiln_worker *w, const kiln_video_frame *f,
                               const kiln_unit_picture *p, kiln_error *err)
{
    const int fd = open(f->path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return kiln_fail(err, KILN_E_IO, "cannot open the memory for frames: %s", strerror(errno));
    const kiln_status st = p->frame ? write_made(fd, f, p, err) : write_floats(fd, w, f, p, err);
    (void)close(fd);
    return st;
}

static kiln_status write_files(const kiln_worker *w, const kiln_render_unit *u,
                               kiln_unit_picture *p, kiln_error *err)
{
    const uint64_t start_ns = kiln_now_ns();
    if (u->frame.kind != KILN_VIDEO_NONE) {
        KILN_TRY(write_frame(w, &u->frame, p, err));
        p->encode_s = seconds_since(start_ns);
    }
    if (u->format == KILN_RENDER_NO_FILE) return KILN_OK;
    KILN_TRY(write_picture(w, u, u->picture, &u->picture_seen, p, err));
    if (u->depth[0]) KILN_TRY(write_depth(w, u, p, err));
    p->encode_s = seconds_since(start_ns);
    return KILN_OK;
}

static kiln_status no_memory_for_counters(kiln_error *err)
{
    return kiln_fail(err, KILN_E_NOMEM, "out of memory for the counters");
}

static kiln_status describe_file(json_t *counters, const char *name, const char *path,
                                 kiln_error *err)
{
    json_t *written = NULL;
    if (!path[0]) return KILN_OK;
    KILN_TRY(kiln_written_describe(path, &written, err));
    return json_object_set_new(counters, name, written) == 0 ? KILN_OK
                                                             : no_memory_for_counters(err);
}

/* Adds a distance, unless it is NAN. Equal pictures are "inf", because JSON has no infinity. */
static int set_db(json_t *c, const char *name, double db)
{
    if (isnan(db)) return 0;
    return json_object_set_new(c, name, isinf(db) ? json_string("inf") : kiln_json_real(db));
}

static kiln_status count_metrics(json_t *c, const kiln_render_unit *u, const kiln_unit_picture *p,
                                 kiln_error *err)
{
    int failed = 0;
    failed |= set_db(c, "psnr", p->psnr) | set_db(c, "fast_db", p->fast_db) |
              set_db(c, "full_db", p->full_db);
    if (isfinite(p->ssim)) failed |= json_object_set_new(c, "ssim", kiln_json_real(p->ssim));
    if (p->outside.empty > 0)
        failed |= json_object_set_new(c, "outside", kiln_outside_json(&p->outside));
    if (p->damage[0]) failed |= json_object_set_new(c, "note", kiln_json_string(p->damage));
    if (p->damage[0]) failed |= json_object_set_new(c, "photo", kiln_photo_state(u->photo));
    if (p->damage[0] && u->exposure_lost)
        failed |= json_object_set_new(c, "exposure_lost", json_true());
    if (p->damage[0] && u->mask[0])
        failed |= json_object_set_new(c, "mask", kiln_photo_state(u->mask));
    if (p->depth_step > 0)
        failed |= json_object_set_new(c, "depth_step", kiln_json_real(p->depth_step));
    if (p->encode_s > 0) failed |= json_object_set_new(c, "encode_s", kiln_json_real(p->encode_s));
    return failed ? no_memory_for_counters(err) : KILN_OK;
}

static kiln_status hand_in(kiln_worker *w, const kiln_render_unit *u, const kiln_unit_picture *p,
                           kiln_error *err)
{
    kiln_hash pixels;
    const uint64_t n = (uint64_t)p->width * p->height;
    if (p->hashes)
        pixels = kiln_pixels_hash_of_pieces(p->hashes, kiln_pixel_pieces(n));
    else
        KILN_TRY(kiln_pixels_hash(p->rgba, n, kiln_worker_threads(w), &pixels, err));
    KILN_TRY(kiln_worker_put(w, "pixels", pixels.bytes, sizeof pixels.bytes, 1, err));
    json_t *c = json_pack("{s:I, s:I, s:b, s:o}", "visible", (json_int_t)p->visible, "pairs",
                          (json_int_t)p->pairs, "from_table", (int)p->from_table, "draw_s",
                          kiln_json_real(p->draw_s));
    if (!c) return no_memory_for_counters(err);
    kiln_status st = KILN_OK;
    if (p->slabs > 0 && json_object_set_new(c, "slabs", json_integer(p->slabs)) != 0)
        st = no_memory_for_counters(err);
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
    kiln_unit_picture picture;
    float depth[]; /* [pixels], if asked for */
} task;

static kiln_status task_new(const void *payload, task **out, kiln_error *err)
{
    kiln_render_unit *u = NULL;
    KILN_TRY(KILN_ALLOC(&u, 1, "unit", err));
    memcpy(u, payload, sizeof *u);
    const uint64_t pixels = (uint64_t)u->request.view.width * u->request.view.height;
    const kiln_status st = kiln_alloc_unset(
        (void **)out, sizeof **out + (u->depth[0] ? pixels * sizeof(float) : 0), 1, "unit", err);
    if (st == KILN_OK) {
        **out = (task){.unit = *u,
                       .picture = {.width = u->request.view.width,
                                   .height = u->request.view.height,
                                   .fast = u->fast}};
        if (u->depth[0]) (*out)->picture.depth = (*out)->depth;
    }
    free(u);
    return st;
}

static kiln_status finish_render_unit(kiln_worker *w, void *context, kiln_error *err)
{
    task *t = context;
    kiln_status st = write_files(w, &t->unit, &t->picture, err);
    if (st == KILN_OK) st = hand_in(w, &t->unit, &t->picture, err);
    /* before the outputs are packed: the next picture may be waiting for it */
    kiln_unit_picture_give_canvas(&t->picture);
    return st;
}

static void task_free(void *context)
{
    task *t = context;
    if (t) {
        kiln_unit_picture_give_canvas(&t->picture);
        kiln_unit_picture_drop_hashes(&t->picture);
    }
    free(t);
}

/* Returns how many pictures this worker encodes at a time; 0 on the CPU, where other workers use
 * the cores, and of the first picture where host memory is tight: it decodes the whole scene, on
 * more threads if nothing is kept for pictures. *ram: what they take beside drawing, without
 * canvases. */
static uint32_t count_encoding(kiln_worker *w, const kiln_render_unit *u, uint64_t *ram)
{
    uint64_t beside;
    *ram = 0;
    if (u->count_only || kiln_runner_exec(kiln_worker_runner(w)).device < 0) return 0;
    if (kiln_unit_picture_on_device(u) && !kiln_frame_has_drawn(w)) return 0;
    const uint32_t n = kiln_render_encoding_in(&u->encoding, kiln_worker_ram(w), &beside);
    if (n > 0) *ram = beside - u->encoding.drawing;
    return n;
}

/* Returns what drawing takes at first. Beside other pictures that are encoded it is the same for
 * all units of a run, so that no unit frees what the next one needs. */
static uint64_t drawing_ram(const kiln_render_unit *u, uint32_t n_encoding)
{
    if (kiln_unit_picture_on_device(u)) return u->device_ram;
    return n_encoding > 0 ? u->encoding.drawing : u->ram;
}

/* Defers encoding. The next picture is drawn as soon as a canvas is free. */
static void defer_encoding(kiln_worker *w, task *t)
{
    const unsigned n = t->picture.n_encoding, threads = kiln_worker_threads(w);
    kiln_worker_defer(w, KILN_RENDER_ANSWERS * n, (threads + n - 1) / n, finish_render_unit,
                      task_free, t);
}

/* Where less than a hundredth of a photo is white, it is not white wherever nothing is drawn, or
 * too little is empty to tell. */
static kiln_status is_worth_a_look(const kiln_render_unit *u, bool *worth, kiln_error *err)
{
    enum { LEAST = 100 };
    const float white = 240 / 255.0f;
    kiln_photo photo = {0};
    uint64_t n = 0;
    kiln_status st = kiln_photo_read(u, &photo, err);
    const uint64_t pixels =
        st == KILN_OK && !photo.damage[0] ? (uint64_t)photo.rgb.width * photo.rgb.height : 0;
    for (uint64_t i = 0; i < pixels; i++) {
        const float *p = photo.rgb.data + 3 * i;
        n += p[0] >= white && p[1] >= white && p[2] >= white;
    }
    *worth = n > 0 && n * LEAST >= pixels;
    kiln_photo_release(&photo);
    return st;
}

/* The answer of a unit that has only counters is an output all the same. */
static kiln_status hand_in_nothing(kiln_worker *w, kiln_error *err)
{
    static const unsigned char nothing = 0;
    json_t *c = json_object();
    kiln_status st = kiln_worker_put(w, "pixels", &nothing, sizeof nothing, 1, err);
    if (st == KILN_OK) st = c ? kiln_worker_counters(w, c, err) : no_memory_for_counters(err);
    json_decref(c);
    return st;
}

kiln_status kiln_render_compute(kiln_worker *w, const char *name, const void *payload,
                                size_t payload_bytes, kiln_error *err)
{
    kiln_status st;
    task *t = NULL;
    bool worth = true;
    kiln_frame_state *s;
    if (payload_bytes != sizeof t->unit)
        return kiln_fail(err, KILN_E_BUG, "unit '%s' has a payload of %zu bytes", name,
                         payload_bytes);
    KILN_TRY(task_new(payload, &t, err));
    const kiln_render_unit *u = &t->unit;
    t->picture.n_encoding = count_encoding(w, u, &t->picture.encoding_ram);
    const kiln_frame_share share =
        kiln_unit_picture_share(u, &t->picture, drawing_ram(u, t->picture.n_encoding));
    KILN_GO(kiln_frame_state_get(w, &u->drawn, !u->count_only, &share, &s, err));
    if (u->count_only) {
        st = kiln_frame_count(w, s, &u->request, err);
        goto done;
    }
    if (u->look_only) KILN_GO(is_worth_a_look(u, &worth, err));
    if (!worth) {
        st = hand_in_nothing(w, err);
        goto done;
    }
    KILN_GO(draw_unit_picture(w, s, u, &t->picture, err));
    KILN_GO(measure_unit_picture(w, u, &t->picture, err));
    crop(u, &t->picture);
    if (t->picture.n_encoding > 0) {
        defer_encoding(w, t);
        return KILN_OK;
    }
    KILN_GO(finish_render_unit(w, t, err));
done:
    task_free(t);
    return st;
}
