/* cameras_colmap -- a COLMAP sparse model: which one, which encoding, and what its records mean
 * (colmap_model.h).
 *
 * An image with its camera is one of our cameras. Its pose is taken from the image, which repeats
 * what rigs and frames say; those are only checked, when both are there. Points are a reader's
 * (colmap_points.c). Keypoints and tracks that name missing things are COLMAP's own loose ends and
 * do no harm. Keypoints are for visitors (colmap_visit.h), who get the images instead of the list
 * of cameras.
 */
#include "base/count.h"
#include "stages/cameras/colmap/colmap_model.h"
#include "stages/cameras/colmap/colmap_visit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint32_t id, width, height;
    const kiln_camera_model *model;
    double params[KILN_CAMERA_PARAMS];
    /* a parameter is no finite number: calibration failed, and its images are left out */
    bool is_void;
} colmap_camera;

/* Images without a camera or a pose that is a number, which are left out while they are few. */
typedef struct {
    uint32_t n;
    char names[400], why[80]; /* the first ones, and what the first lacks */
} void_images;

typedef struct {
    uint32_t *id; /* owned, sorted once it is complete */
    uint32_t n;
} id_list;

struct kiln_colmap {
    kiln_camera_file *f;
    const char *path;       /* of the file being read */
    colmap_camera *cameras; /* owned; sorted by id before the images are read */
    uint32_t n_cameras;
    id_list images, rigs, framed; /* framed: images that belong to a frame */
    const kiln_colmap_visitor *visitor;
    void_images without;
    bool wanted; /* the keypoints of the image put last, by the visitor */
};

typedef struct {
    const char *suffix;
    kiln_colmap_read_fn *cameras, *images, *rigs, *frames;
    uint64_t (*count)(const char *path);
} encoding;

static const encoding encodings[] = {
    {"bin", kiln_colmap_bin_cameras, kiln_colmap_bin_images, kiln_colmap_bin_rigs,
     kiln_colmap_bin_frames, kiln_colmap_bin_count},
    {"txt", kiln_colmap_txt_cameras, kiln_colmap_txt_images, kiln_colmap_txt_rigs,
     kiln_colmap_txt_frames, kiln_colmap_txt_count},
};

static int by_u32(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int by_camera_id(const void *a, const void *b)
{
    const uint32_t x = ((const colmap_camera *)a)->id, y = ((const colmap_camera *)b)->id;
    return (x > y) - (x < y);
}

static kiln_status add_id(id_list *l, uint32_t id, kiln_error *err)
{
    KILN_TRY(kiln_grow((void **)&l->id, l->n, sizeof *l->id, "ids of a COLMAP model", err));
    l->id[l->n++] = id;
    return KILN_OK;
}

static bool has_id(const id_list *l, uint32_t id)
{
    return l->n && bsearch(&id, l->id, l->n, sizeof id, by_u32);
}

static kiln_status sort_ids(id_list *l, const char *path, const char *what, kiln_error *err)
{
    if (l->n) qsort(l->id, l->n, sizeof *l->id, by_u32);
    for (uint32_t i = 1; i < l->n; i++)
        if (l->id[i - 1] == l->id[i])
            return kiln_fail(err, KILN_E_INPUT, "'%s': %s id %u occurs twice", path, what,
                             l->id[i]);
    return KILN_OK;
}

static bool are_finite(const double *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!isfinite(v[i])) return false;
    return true;
}

kiln_status kiln_colmap_put_camera(kiln_colmap *m, uint32_t id, const kiln_camera_model *model,
                                   uint64_t width, uint64_t height, const double *params,
                                   kiln_error *err)
{
    char who[40];
    kiln_camera c = {.name = "", .photo = "", .mask = ""};
    snprintf(who, sizeof who, "camera %u", id);
    KILN_TRY(kiln_camera_take_size(&c, (double)width, (double)height, m->path, who, err));
    const bool is_void = !are_finite(params, model->n_params);
    if (!is_void) KILN_TRY(kiln_camera_take_lens(&c, model, params, m->path, who, err));
    KILN_TRY(kiln_grow((void **)&m->cameras, m->n_cameras, sizeof *m->cameras,
                       "cameras of a COLMAP model", err));
    colmap_camera *to = &m->cameras[m->n_cameras++];
    *to = (colmap_camera){
        .id = id, .width = c.width, .height = c.height, .model = model, .is_void = is_void};
    memcpy(to->params, params, model->n_params * sizeof *params);
    return KILN_OK;
}

static kiln_status sort_cameras(kiln_colmap *m, kiln_error *err)
{
    if (m->n_cameras == 0) return kiln_fail(err, KILN_E_INPUT, "'%s' holds no camera", m->path);
    qsort(m->cameras, m->n_cameras, sizeof *m->cameras, by_camera_id);
    for (uint32_t i = 1; i < m->n_cameras; i++)
        if (m->cameras[i - 1].id == m->cameras[i].id)
            return kiln_fail(err, KILN_E_INPUT, "'%s': camera id %u occurs twice", m->path,
                             m->cameras[i].id);
    return KILN_OK;
}

static void leave_out(kiln_colmap *m, const char *name, const colmap_camera *from, uint32_t id)
{
    enum { NAMED = 4 };
    void_images *v = &m->without;
    const size_t used = strlen(v->names);
    if (v->n == 0 && from->is_void)
        snprintf(v->why, sizeof v->why, "camera %u has a parameter that is not a number", from->id);
    if (v->n == 0 && !from->is_void)
        snprintf(v->why, sizeof v->why, "the pose of image %u is not a number", id);
    if (v->n < NAMED)
        snprintf(v->names + used, sizeof v->names - used, "%s'%.80s'", used ? ", " : "", name);
    if (v->n == NAMED) snprintf(v->names + used, sizeof v->names - used, ", ...");
    v->n++;
    m->f->set->frames_read++;
    m->f->set->frames_dropped++;
    m->f->set->frames_without_camera++;
}

kiln_status kiln_colmap_put_image(kiln_colmap *m, uint32_t id, const double pose[7],
                                  uint32_t camera_id, const char *name, kiln_error *err)
{
    char who[40];
    kiln_camera c = {.name = "", .photo = "", .mask = ""};
    kiln_photo_path p;
    const colmap_camera key = {.id = camera_id};
    const colmap_camera *from = bsearch(&key, m->cameras, m->n_cameras, sizeof key, by_camera_id);
    snprintf(who, sizeof who, "image %u", id);
    if (!from)
        return kiln_fail(err, KILN_E_INPUT, "'%s': image %u names camera %u, which does not exist",
                         m->path, id, camera_id);
    KILN_TRY(add_id(&m->images, id, err));
    KILN_TRY(kiln_camera_take_name(m->f, &c, name, &p, who, err));
    if (m->visitor && m->visitor->id) m->visitor->id(m->visitor->context, id);
    if (m->visitor)
        return m->visitor->image(m->visitor->context, c.name, from->width, from->height, &m->wanted,
                                 err);
    if (from->is_void || !are_finite(pose, 7)) {
        leave_out(m, name, from, id);
        return KILN_OK;
    }
    KILN_TRY(kiln_camera_pose_of_quat(m->f, &c, pose, pose + 4, who, err));
    KILN_TRY(kiln_camera_take_size(&c, from->width, from->height, m->path, who, err));
    KILN_TRY(kiln_camera_take_lens(&c, from->model, from->params, m->path, who, err));
    KILN_TRY(kiln_photo_find(m->f, &c, &p, err));
    kiln_photo_fit(m->f, &c, from->width, from->height);
    KILN_TRY(kiln_mask_find(m->f, &c, &p, NULL, err));
    m->f->set->frames_read++;
    return kiln_camera_set_add(m->f->set, &c, err);
}

bool kiln_colmap_wants_keypoints(const kiln_colmap *m) { return m->visitor && m->wanted; }

bool kiln_colmap_wants_every_keypoint(const kiln_colmap *m)
{
    return kiln_colmap_wants_keypoints(m) && m->visitor->every;
}

kiln_status kiln_colmap_put_keypoint(kiln_colmap *m, double x, double y, uint64_t point,
                                     kiln_error *err)
{
    return m->visitor->keypoint(m->visitor->context, x, y, point, err);
}

kiln_status kiln_colmap_put_rig(kiln_colmap *m, uint32_t id, kiln_error *err)
{
    return add_id(&m->rigs, id, err);
}

kiln_status kiln_colmap_put_frame(kiln_colmap *m, uint32_t id, uint32_t rig_id, kiln_error *err)
{
    if (!has_id(&m->rigs, rig_id))
        return kiln_fail(err, KILN_E_INPUT, "'%s': frame %u names rig %u, which does not exist",
                         m->path, id, rig_id);
    return KILN_OK;
}

kiln_status kiln_colmap_put_frame_image(kiln_colmap *m, uint32_t frame_id, uint64_t image_id,
                                        kiln_error *err)
{
    if (image_id > UINT32_MAX || !has_id(&m->images, (uint32_t)image_id))
        return kiln_fail(err, KILN_E_INPUT, "'%s': frame %u names image %llu, which does not exist",
                         m->path, frame_id, (unsigned long long)image_id);
    return add_id(&m->framed, (uint32_t)image_id, err);
}

static bool part_path(char out[KILN_PATH_MAX], const char *folder, const char *part,
                      const char *suffix)
{
    const int n = snprintf(out, KILN_PATH_MAX, "%s/%s.%s", folder, part, suffix);
    return n > 0 && n < KILN_PATH_MAX;
}

static bool has_part(const char *folder, const char *part, const char *suffix)
{
    char path[KILN_PATH_MAX];
    return part_path(path, folder, part, suffix) && (kiln_is_file(path) || kiln_is_dir(path));
}

/* Binary wins when both are complete; else the one that is; else the one that has begun, for the
 * error's sake. */
static const encoding *encoding_of(const char *folder)
{
    const size_t n = sizeof encodings / sizeof *encodings;
    for (size_t i = 0; i < n; i++)
        if (has_part(folder, "cameras", encodings[i].suffix) &&
            has_part(folder, "images", encodings[i].suffix) &&
            has_part(folder, "points3D", encodings[i].suffix))
            return &encodings[i];
    for (size_t i = 0; i < n; i++)
        if (has_part(folder, "cameras", encodings[i].suffix) ||
            has_part(folder, "images", encodings[i].suffix))
            return &encodings[i];
    return NULL;
}

const char *kiln_colmap_look(const char *folder, uint64_t *images, char points[KILN_PATH_MAX])
{
    char path[KILN_PATH_MAX];
    const encoding *e = encoding_of(folder);
    *images = e && part_path(path, folder, "images", e->suffix) ? e->count(path) : 0;
    points[0] = 0;
    if (e && has_part(folder, "points3D", e->suffix) &&
        !part_path(points, folder, "points3D", e->suffix))
        points[0] = 0;
    return e ? e->suffix : NULL;
}

static kiln_status read_part(kiln_colmap *m, const char *folder, const char *part,
                             const char *suffix, kiln_colmap_read_fn *read, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    if (!part_path(path, folder, part, suffix))
        return kiln_fail(err, KILN_E_INPUT, "the path of '%.200s...' is too long", folder);
    m->path = path;
    kiln_status st = read(path, m, err);
    if (st == KILN_OK && strcmp(part, "cameras") == 0) st = sort_cameras(m, err);
    if (st == KILN_OK && strcmp(part, "images") == 0) st = sort_ids(&m->images, path, "image", err);
    if (st == KILN_OK && strcmp(part, "rigs") == 0) st = sort_ids(&m->rigs, path, "rig", err);
    if (st == KILN_OK) st = kiln_camera_set_add_source(m->f->set, path, "cameras", err);
    m->path = NULL;
    return st;
}

/* Few of many are what an alignment leaves; many mean that something else is wrong with it. */
static kiln_status check_left_out(const kiln_colmap *m, const char *folder, const char *suffix,
                                  kiln_error *err)
{
    const void_images *v = &m->without;
    if (v->n == 0) return KILN_OK;
    if ((uint64_t)v->n * 10 > m->images.n)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s/cameras.%s': %s; this affects %u of %u images (%s), more than a "
                         "tenth: align them again, or remove them "
                         "from the model",
                         folder, suffix, v->why, v->n, m->images.n, v->names);
    kiln_camera_set_note(m->f->set, "%u of %u images are left out: %s (%s)", v->n, m->images.n,
                         v->why, v->names);
    return KILN_OK;
}

static kiln_status read_rigs(kiln_colmap *m, const char *folder, const encoding *e, kiln_error *err)
{
    uint32_t n_alone = 0;
    if (!has_part(folder, "rigs", e->suffix) || !has_part(folder, "frames", e->suffix))
        return KILN_OK;
    KILN_TRY(read_part(m, folder, "rigs", e->suffix, e->rigs, err));
    KILN_TRY(read_part(m, folder, "frames", e->suffix, e->frames, err));
    if (m->framed.n) qsort(m->framed.id, m->framed.n, sizeof *m->framed.id, by_u32);
    for (uint32_t i = 0; i < m->images.n; i++) n_alone += !has_id(&m->framed, m->images.id[i]);
    if (n_alone)
        kiln_camera_set_note(
            m->f->set, "'%s': %s", folder,
            KILN_COUNT(n_alone, "image belongs to no frame; its own pose is used|images belong to "
                                "no frame; their own poses are used"));
    return KILN_OK;
}

kiln_status kiln_cameras_colmap(kiln_camera_file *f, const char *folder, kiln_error *err)
{
    const encoding *e = encoding_of(folder);
    const uint64_t before = f->set->frames_read;
    kiln_colmap m = {.f = f};
    kiln_status st = KILN_OK;
    if (!e) return kiln_fail(err, KILN_E_INPUT, "'%s' holds no COLMAP model", folder);
    KILN_GO(read_part(&m, folder, "cameras", e->suffix, e->cameras, err));
    KILN_GO(read_part(&m, folder, "images", e->suffix, e->images, err));
    if (f->set->frames_read == before)
        KILN_GO(kiln_fail(err, KILN_E_INPUT, "'%s/images.%s' holds no image", folder, e->suffix));
    KILN_GO(check_left_out(&m, folder, e->suffix, err));
    KILN_GO(read_rigs(&m, folder, e, err));
    snprintf(f->set->frame, sizeof f->set->frame, "opencv");
    if (has_part(folder, "points3D", e->suffix) &&
        !part_path(f->points, folder, "points3D", e->suffix))
        f->points[0] = 0;
done:
    free(m.cameras);
    free(m.images.id);
    free(m.rigs.id);
    free(m.framed.id);
    return st;
}

kiln_status kiln_colmap_visit(const char *folder, const char *suffix, const kiln_colmap_visitor *v,
                              kiln_error *err)
{
    kiln_camera_set set = {0};
    kiln_camera_file f = {.set = &set};
    kiln_colmap m = {.f = &f, .visitor = v};
    const encoding *e = strcmp(suffix, encodings[0].suffix) == 0 ? &encodings[0] : &encodings[1];
    snprintf(f.path, sizeof f.path, "%s", folder);
    kiln_status st = read_part(&m, folder, "cameras", e->suffix, e->cameras, err);
    if (st == KILN_OK) st = read_part(&m, folder, "images", e->suffix, e->images, err);
    free(m.cameras);
    free(m.images.id);
    kiln_camera_set_release(&set);
    return st;
}

/* The model of dir/0TAIL, dir/1TAIL, ... with most images; the lower number first. */
static bool best_numbered(const char *dir, const char *tail, const char *avoid,
                          char folder[KILN_PATH_MAX])
{
    char path[KILN_PATH_MAX], points[KILN_PATH_MAX];
    uint64_t images, most = 0;
    bool found = false;
    /* COLMAP numbers from 0 without gaps; what follows the first few are fragments */
    for (unsigned i = 0; i < 64; i++) {
        const int n = snprintf(path, sizeof path, "%s/%u%s", dir, i, tail);
        if (n < 0 || (size_t)n >= sizeof path || !kiln_may_look_into(path, avoid)) continue;
        if (!kiln_colmap_look(path, &images, points) || (found && images <= most)) continue;
        found = true;
        most = images;
        snprintf(folder, KILN_PATH_MAX, "%s", path);
    }
    return found;
}

/* A numbered model below dir, or dir itself. Any folder may hold an images.txt: one that is not
 * called sparse is a model only with two of the three files. */
static bool model_at(const char *dir, const char *avoid, int least_files,
                     char folder[KILN_PATH_MAX])
{
    if (best_numbered(dir, "", avoid, folder)) return true;
    const encoding *e = encoding_of(dir);
    if (!e || has_part(dir, "cameras", e->suffix) + has_part(dir, "images", e->suffix) +
                      has_part(dir, "points3D", e->suffix) <
                  least_files)
        return false;
    snprintf(folder, KILN_PATH_MAX, "%s", dir);
    return true;
}

/* dense/0/sparse: each of them has photos of its own. */
static bool best_dense(const char *dir, const char *avoid, char folder[KILN_PATH_MAX])
{
    char dense[KILN_PATH_MAX];
    const int n = snprintf(dense, sizeof dense, "%s/dense", dir);
    if (n < 0 || (size_t)n >= sizeof dense || !kiln_may_look_into(dense, avoid)) return false;
    return best_numbered(dense, "/sparse", avoid, folder) ||
           best_numbered(dense, "", avoid, folder);
}

kiln_status kiln_colmap_find(const char *dir, const char *avoid, bool *found,
                             char folder[KILN_PATH_MAX], kiln_error *err)
{
    static const char *const places[] = {"sparse", "colmap/sparse"};
    /* COLMAP's automatic reconstructor and image_undistorter; INRIA's convert.py; models written as
     * text beside */
    static const char *const later[] = {"dense/sparse", "distorted/sparse", "sparse_text",
                                        "colmap_text", "colmap/sparse_text"};
    char path[KILN_PATH_MAX];
    *found = false;
    for (size_t i = 0; !*found && i < sizeof places / sizeof *places; i++) {
        KILN_TRY(kiln_path_join(path, sizeof path, dir, places[i], err));
        *found = kiln_may_look_into(path, avoid) && model_at(path, avoid, 1, folder);
    }
    if (!*found) *found = model_at(dir, avoid, 2, folder);
    if (!*found) *found = best_dense(dir, avoid, folder);
    for (size_t i = 0; !*found && i < sizeof later / sizeof *later; i++) {
        KILN_TRY(kiln_path_join(path, sizeof path, dir, later[i], err));
        *found = kiln_may_look_into(path, avoid) && model_at(path, avoid, 1, folder);
    }
    return KILN_OK;
}
