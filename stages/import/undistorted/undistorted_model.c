/* The model of the undistorted photos, in COLMAP's binary files (formats as in colmap_binary.c). */
#include "stages/import/undistorted/undistorted.h"

#include "base/endian.h"
#include "kernels/lens/lens.h"
#include "kernels/similarity/similarity.h"
#include "stages/cameras/colmap/colmap_visit.h"
#include "stages/cameras/pinholes.h"
#include "stages/files/text_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PINHOLE = 1 };

/* ---- a file ---------------------------------------------------------------------------------- */
typedef struct {
    char path[KILN_PATH_MAX];
    FILE *f;
    int failed; /* errno of the first write that failed */
} file;

static kiln_status begin_model_file(file *f, const char *folder, const char *name, kiln_error *err)
{
    int fd;
    f->failed = 0;
    f->f = NULL;
    KILN_TRY(kiln_path_join(f->path, sizeof f->path, folder, name, err));
    KILN_TRY(kiln_file_create(f->path, &fd, err));
    f->f = fdopen(fd, "wb");
    if (f->f) return KILN_OK;
    close(fd);
    return kiln_fail(err, KILN_E_NOMEM, "out of memory: cannot write '%s'", f->path);
}

static void put_model_bytes(file *f, const void *data, size_t bytes)
{
    if (!f->failed && fwrite(data, 1, bytes, f->f) != bytes) f->failed = errno ? errno : EIO;
}

/* Numbers as they lie in memory (base/endian.h). */
static void put_u64(file *f, uint64_t v) { put_model_bytes(f, &v, sizeof v); }
static void put_u32(file *f, uint32_t v) { put_model_bytes(f, &v, sizeof v); }
static void put_f64(file *f, double v) { put_model_bytes(f, &v, sizeof v); }

/* Writes a count over what stands at `at`, then goes on at the end. */
static void put_count_at(file *f, off_t at, uint64_t n)
{
    if (!f->failed && fseeko(f->f, at, SEEK_SET) != 0) f->failed = errno;
    put_u64(f, n);
    if (!f->failed && fseeko(f->f, 0, SEEK_END) != 0) f->failed = errno;
}

/* Also after a failure `st`. */
static kiln_status end_model_file(file *f, kiln_status st, kiln_error *err)
{
    if (!f->f) return st;
    if (!f->failed && (fflush(f->f) != 0 || fsync(fileno(f->f)) != 0)) f->failed = errno;
    if (fclose(f->f) != 0 && !f->failed) f->failed = errno;
    return st == KILN_OK && f->failed ? kiln_file_write_failed(f->path, f->failed, err) : st;
}

/* ---- cameras --------------------------------------------------------------------------------- */
static bool same_pinhole(const kiln_camera *a, const kiln_camera *b)
{
    return a->width == b->width && a->height == b->height && a->fx == b->fx && a->fy == b->fy &&
           a->cx == b->cx && a->cy == b->cy;
}

/* Ids from 1 in the order of names; cameras that follow each other and have one pinhole share an
 * id. */
static kiln_status write_cameras(const kiln_dataset *d, const char *folder, uint32_t *ids,
                                 kiln_error *err)
{
    file f;
    uint32_t n = 0;
    KILN_TRY(begin_model_file(&f, folder, "cameras.bin", err));
    put_u64(&f, 0);
    for (uint32_t i = 0; i < d->set.n_cameras; i++) {
        const kiln_camera *c = &d->set.cameras[i];
        const bool again = i > 0 && same_pinhole(c, &d->set.cameras[i - 1]);
        ids[i] = again ? ids[i - 1] : ++n;
        if (again) continue;
        put_u32(&f, ids[i]);
        put_u32(&f, PINHOLE);
        put_u64(&f, c->width);
        put_u64(&f, c->height);
        put_f64(&f, c->fx);
        put_f64(&f, c->fy);
        put_f64(&f, c->cx);
        put_f64(&f, c->cy);
    }
    put_count_at(&f, 0, n);
    return end_model_file(&f, KILN_OK, err);
}

/* ---- images ---------------------------------------------------------------------------------- */
/* Up to its keypoints. */
static void put_image(file *f, uint32_t id, const kiln_camera *c, uint32_t camera_id)
{
    kiln_similarity pose = {.scale = 1};
    double q[4];
    memcpy(pose.r, c->r, sizeof pose.r);
    kiln_similarity_quat(&pose, q);
    put_u32(f, id);
    put_model_bytes(f, q, sizeof q);
    put_model_bytes(f, c->t, sizeof c->t);
    put_u32(f, camera_id);
    put_model_bytes(f, c->name, strlen(c->name));
    put_model_bytes(f, ".png", sizeof ".png");
}

static kiln_status write_bare_images(const kiln_dataset *d, const char *folder, const uint32_t *ids,
                                     kiln_error *err)
{
    file f;
    KILN_TRY(begin_model_file(&f, folder, "images.bin", err));
    put_u64(&f, d->set.n_cameras);
    for (uint32_t i = 0; i < d->set.n_cameras; i++) {
        put_image(&f, i + 1, &d->set.cameras[i], ids[i]);
        put_u64(&f, 0);
    }
    return end_model_file(&f, KILN_OK, err);
}

/* ---- images of a COLMAP model ---------------------------------------------------------------- */
typedef struct {
    const kiln_dataset *d;
    const uint32_t *ids;
    file f;
    uint32_t image_id;
    const kiln_camera *camera;
    kiln_lens lens;
    double scale_x, scale_y; /* from the pixels of keypoints to those of the photo */
    off_t count_at;          /* of the image in hand */
    uint64_t n_images, n_keypoints;
} images;

static int name_against_camera(const void *a, const void *b)
{
    return strcmp(a, ((const kiln_camera *)b)->name);
}

static void finish_image(images *s)
{
    if (s->camera) put_count_at(&s->f, s->count_at, s->n_keypoints);
}

static void take_id(void *context, uint32_t id) { ((images *)context)->image_id = id; }

static kiln_status begin_image(void *context, const char *name, uint32_t width, uint32_t height,
                               bool *wanted, kiln_error *err)
{
    images *s = context;
    finish_image(s);
    s->camera = bsearch(name, s->d->set.cameras, s->d->set.n_cameras, sizeof *s->camera,
                        name_against_camera);
    if (!s->camera)
        return kiln_fail(err, KILN_E_INPUT,
                         "the model has an image '%.300s' that was not there before", name);
    s->scale_x = (double)s->camera->photo_width / width;
    s->scale_y = (double)s->camera->photo_height / height;
    if (s->camera->distorted) KILN_TRY(kiln_pinhole_lens(s->camera, &s->lens, err));
    put_image(&s->f, s->image_id, s->camera, s->ids[s->camera - s->d->set.cameras]);
    s->count_at = ftello(s->f.f);
    put_u64(&s->f, 0);
    s->n_images++;
    s->n_keypoints = 0;
    *wanted = true;
    return KILN_OK;
}

/* One that is no number, or that no ray in front of the camera has, stands outside, because tracks
 * count keypoints. */
static kiln_status put_keypoint(void *context, double x, double y, uint64_t point, kiln_error *err)
{
    images *s = context;
    const kiln_camera *c = s->camera;
    double at[2] = {x * s->scale_x, y * s->scale_y}, ray[2];
    (void)err;
    bool shown = isfinite(at[0]) && isfinite(at[1]);
    if (c->distorted && shown) {
        shown = kiln_lens_ray(&s->lens, at, ray);
        at[0] = c->fx * ray[0] + c->cx;
        at[1] = c->fy * ray[1] + c->cy;
    }
    if (!shown) at[0] = at[1] = -1;
    put_model_bytes(&s->f, at, sizeof at);
    put_u64(&s->f, point);
    s->n_keypoints++;
    return KILN_OK;
}

static kiln_status write_images(const kiln_dataset *d, const char *model, const char *suffix,
                                const char *folder, const uint32_t *ids, kiln_error *err)
{
    images *s;
    KILN_TRY(KILN_ALLOC(&s, 1, "images", err));
    s->d = d;
    s->ids = ids;
    const kiln_colmap_visitor v = {
        .context = s, .every = true, .id = take_id, .image = begin_image, .keypoint = put_keypoint};
    kiln_status st = begin_model_file(&s->f, folder, "images.bin", err);
    if (st == KILN_OK) {
        put_u64(&s->f, 0);
        st = kiln_colmap_visit(model, suffix, &v, err);
        finish_image(s);
        put_count_at(&s->f, 0, s->n_images);
        st = end_model_file(&s->f, st, err);
    }
    free(s);
    return st;
}

/* ---- points ---------------------------------------------------------------------------------- */
static kiln_status copy_points(int fd, const char *path, file *f, kiln_error *err)
{
    unsigned char block[65536];
    for (;;) {
        const ssize_t n = read(fd, block, sizeof block);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return kiln_fail(err, KILN_E_IO, "cannot read '%s': %s", path, strerror(errno));
        if (n == 0) return KILN_OK;
        put_model_bytes(f, block, (size_t)n);
    }
}

/* ID X Y Z R G B ERROR, then a track; false: it is none. */
static bool put_point(kiln_token_line words, file *f)
{
    const char *w;
    size_t n;
    uint64_t id, track[2], length = 0;
    double v[7];
    if (!kiln_token_next(&words, &w, &n) || kiln_parse_u64(w, n, &id) != KILN_NUMBER_OK)
        return false;
    for (int i = 0; i < 7; i++)
        if (!kiln_token_next(&words, &w, &n) || kiln_parse_f64(w, n, &v[i]) != KILN_NUMBER_OK)
            return false;
    put_u64(f, id);
    put_model_bytes(f, v, 3 * sizeof *v);
    for (int i = 3; i < 6; i++) {
        const uint8_t colour = v[i] >= 0 && v[i] <= 255 ? (uint8_t)v[i] : 0;
        put_model_bytes(f, &colour, 1);
    }
    put_f64(f, v[6]);
    const off_t count_at = ftello(f->f);
    put_u64(f, 0);
    for (; kiln_token_next(&words, &w, &n); length++) {
        for (int i = 0; i < 2; i++)
            if ((i && !kiln_token_next(&words, &w, &n)) ||
                kiln_parse_u64(w, n, &track[i]) != KILN_NUMBER_OK || track[i] > UINT32_MAX)
                return false;
        put_u32(f, (uint32_t)track[0]);
        put_u32(f, (uint32_t)track[1]);
    }
    put_count_at(f, count_at, length);
    return true;
}

static kiln_status convert_points(int fd, const char *path, file *f, kiln_error *err)
{
    kiln_lines l = {0};
    uint64_t n_points = 0;
    kiln_status st = kiln_lines_init(&l, fd, path, err);
    put_u64(f, 0);
    while (st == KILN_OK) {
        const char *line, *w;
        size_t size, n;
        st = kiln_lines_next(&l, &line, &size, err);
        if (st != KILN_OK || !line) break;
        kiln_token_line words = {line, line + size}, look = words;
        if (!kiln_token_next(&look, &w, &n) || w[0] == '#') continue;
        if (!put_point(words, f))
            st = kiln_fail(err, KILN_E_INPUT, "'%s', before offset %" PRIu64 ": not a point", path,
                           kiln_lines_offset(&l));
        n_points++;
    }
    kiln_lines_release(&l);
    put_count_at(f, 0, n_points);
    return st;
}

/* model NULL: no points. */
static kiln_status write_points(const char *model, const char *suffix, const char *folder,
                                kiln_error *err)
{
    char name[32], path[KILN_PATH_MAX];
    file f;
    int fd = -1;
    kiln_status st = KILN_OK;
    if (model) {
        snprintf(name, sizeof name, "points3D.%s", suffix);
        KILN_TRY(kiln_path_join(path, sizeof path, model, name, err));
        if (kiln_is_file(path)) KILN_TRY(kiln_file_open(path, &fd, err));
    }
    st = begin_model_file(&f, folder, "points3D.bin", err);
    if (st == KILN_OK) {
        if (fd < 0)
            put_u64(&f, 0);
        else
            st = strcmp(suffix, "bin") == 0 ? copy_points(fd, path, &f, err)
                                            : convert_points(fd, path, &f, err);
        st = end_model_file(&f, st, err);
    }
    if (fd >= 0) close(fd);
    return st;
}

/* ---- the model ------------------------------------------------------------------------------- */
/* The folder and suffix of the COLMAP model that the cameras are of. *suffix NULL: they are of
 * none. */
static void find_model(const kiln_dataset *d, char folder[KILN_PATH_MAX], const char **suffix)
{
    *suffix = NULL;
    for (uint32_t i = 0; i < d->set.n_sources && !*suffix; i++) {
        const char *path = d->set.sources[i].path, *base = kiln_path_base(path);
        if (strcmp(d->set.sources[i].role, "cameras") != 0) continue;
        *suffix = strcmp(base, "images.bin") == 0   ? "bin"
                  : strcmp(base, "images.txt") == 0 ? "txt"
                                                    : NULL;
        if (*suffix) snprintf(folder, KILN_PATH_MAX, "%.*s", (int)(base - path - 1), path);
    }
}

kiln_status kiln_undistorted_model(const kiln_dataset *d, const char *folder, kiln_error *err)
{
    kiln_status st;
    char model[KILN_PATH_MAX];
    const char *suffix;
    uint32_t *ids = NULL;
    find_model(d, model, &suffix);
    KILN_GO(KILN_ALLOC(&ids, d->set.n_cameras, "ids of cameras", err));
    KILN_GO(write_cameras(d, folder, ids, err));
    KILN_GO(suffix ? write_images(d, model, suffix, folder, ids, err)
                   : write_bare_images(d, folder, ids, err));
    KILN_GO(write_points(suffix ? model : NULL, suffix, folder, err));
done:
    free(ids);
    return st;
}
