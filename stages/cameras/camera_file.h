/* camera_file -- what the readers of camera files share: names, photos, poses, and what is counted
 * while one is read. Cameras are appended to a set (camera_set.h).
 *
 * A camera source is one file with one function of type kiln_camera_read_fn (cameras_*.c) and one
 * row of the table in cameras.c. It parses, makes a kiln_camera with take_name, take_size,
 * take_lens and a pose, attaches the photo and adds it.
 */
#ifndef KILN_STAGES_CAMERAS_CAMERA_FILE_H
#define KILN_STAGES_CAMERAS_CAMERA_FILE_H

#include "base/file.h"
#include "stages/cameras/camera_models.h"
#include "stages/cameras/camera_set.h"
#include "stages/files/name_fold.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { KILN_PHOTO_DIRS = 64 };

/* A photo's path as a camera file gives it, safe to append to a folder. */
typedef struct {
    /* absolute on the machine that wrote it (absolute_paths.h), whose end `path` is; "": it was
     * none */
    char full[KILN_PATH_MAX];
    char path[KILN_PATH_MAX]; /* without leading ./ */
    size_t after_folder;      /* offset behind the image folder */
    /* where the extension begins, at its dot; the end when there is none that we know */
    size_t stem;
    /* the camera's, which it points to until kiln_camera_set_add copies it */
    char name[KILN_CAMERA_NAME];
} kiln_photo_path;

typedef struct {
    kiln_camera_set *set; /* borrowed: what is appended to */
    /* borrowed: what `path` holds, where it has been parsed; NULL: it has not */
    const json_t *json;
    const char *avoid;        /* folder that is never looked into; NULL none */
    char path[KILN_PATH_MAX]; /* absolute: the file or folder that is read */
    bool need_photos;         /* frames of a transforms.json without photo and size are dropped */
    /* the folder that absolute paths of its photos share, with its slash; "" there are none */
    char common[KILN_PATH_MAX];
    /* of all its cameras: "test", "train", or "" where the file does not say */
    const char *split;
    const char *prefix; /* put before the names of INRIA's cameras: "test/", or "" */
    char images[256];   /* name of the image folder where one is known, "" else */
    /* where photos are sought: by their path as given, or in an image folder by what follows its
     * name */
    char (*dirs)[KILN_PATH_MAX]; /* owned */
    bool is_image_folder[KILN_PHOTO_DIRS];
    /* the first n_given of them are of --photos */
    uint32_t n_dirs, n_given;
    /* out: point file that belongs to the cameras, "" none */
    char points[KILN_PATH_MAX];
    /* counted in the notes at the end */
    uint64_t n_photos, n_missing, n_unreadable, n_scaled, n_normalised;
    /* photos of which one file cannot be read and another is taken; the others are n_unreadable */
    uint64_t n_replaced;
    char unreadable[512]; /* why the first unreadable photo is that */
    uint8_t orientation;  /* EXIF's, of the photo that was found last */
    /* of the folders where photos that are not there by name were sought */
    kiln_folded_names folded;
    /* a name was not there: names are looked for in lists of folders before files are */
    bool lists_folders;
    /* photos whose names differ from the file's in case or normalisation */
    uint64_t n_folded;
    char first_folded[512]; /* the first of them: what is named, and what is there */
    /* photos whose width and height differ in scale from those of their cameras */
    uint64_t n_stretched;
    char first_stretched[512];       /* how the first of them differs */
    char unfit_masks[KILN_PATH_MAX]; /* a folder of masks that was looked into, "" none */
    /* photos with an orientation: those that follow it, and those that are taken as stored */
    uint64_t n_turned, n_untilted;
    /* of the camera that is read now, which points to them */
    char photo[KILN_PATH_MAX], mask[KILN_PATH_MAX];
    /* the photo that was sought last is there and cannot be read */
    bool last_unreadable;
    /* its cameras name no photos: none is expected */
    bool may_lack_photos;
    uint64_t n_frames; /* of a transforms.json; */
    /* of these, those whose file_path is absolute */
    uint64_t n_absolute;
    /* of these, for want of a photo and of a size */
    uint64_t n_dropped;
    /* of those, where it is there and cannot be read */
    uint64_t n_dropped_unreadable;
    char first_dropped[200];
    uint64_t n_masks_resampled, n_masks_left, n_masks_unreadable, n_masks_missing;
    /* why; why; its name as given */
    char first_mask_left[512], first_mask_unreadable[512], first_mask_missing[512];
} kiln_camera_file;

/* root: the data set's folder or NULL. Finds the photo folders beside the file, inside root and,
 * for a COLMAP model, above it as far as folders are called sparse, colmap or a number. Release
 * with _end, which adds the notes. */
kiln_status kiln_camera_file_begin(kiln_camera_file *f, kiln_camera_set *set, const char *path,
                                   const char *root, const char *avoid,
                                   kiln_error *err) KILN_MUST_CHECK;
void kiln_camera_file_end(kiln_camera_file *f);

typedef kiln_status kiln_camera_read_fn(kiln_camera_file *f, const json_t *json, kiln_error *err);
kiln_camera_read_fn kiln_cameras_inria, kiln_cameras_list, kiln_cameras_path,
    kiln_cameras_transforms;
/* folder: of cameras, images, points3D. */
kiln_status kiln_cameras_colmap(kiln_camera_file *f, const char *folder,
                                kiln_error *err) KILN_MUST_CHECK;

/* The camera's name from its photo's path as given: without leading ./, image folder and extension.
 * `who` is the camera in messages ("camera 3", "frame 7"). KILN_E_INPUT when the path is not
 * safe. */
kiln_status kiln_camera_take_name(kiln_camera_file *f, kiln_camera *c, const char *given,
                                  kiln_photo_path *p, const char *who,
                                  kiln_error *err) KILN_MUST_CHECK;

/* Where the extension of a photo begins, at its dot; the length of the path when it has none that
 * we know. */
size_t kiln_photo_stem(const char *path);

/* The pose of cam_from_world given as it stands (r row-major), or by the camera's own axes and
 * centre in the world (columns of r: right, down, forward). Columns that are not of length 1 are
 * normalised and counted. KILN_E_INPUT: not finite, zero, not orthogonal to 1e-3, a reflection. */
kiln_status kiln_camera_pose(kiln_camera_file *f, kiln_camera *c, const double r[9],
                             const double t[3], const char *who, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_camera_pose_of_body(kiln_camera_file *f, kiln_camera *c, const double r[9],
                                     const double centre[3], const char *who,
                                     kiln_error *err) KILN_MUST_CHECK;
/* cam_from_world by a quaternion w, x, y, z of any length and t. */
kiln_status kiln_camera_pose_of_quat(kiln_camera_file *f, kiln_camera *c, const double q[4],
                                     const double t[3], const char *who,
                                     kiln_error *err) KILN_MUST_CHECK;

/* Seeks the photo; fills c->photo and its size, "" when there is none that can be read. */
kiln_status kiln_photo_find(kiln_camera_file *f, kiln_camera *c, const kiln_photo_path *p,
                            kiln_error *err) KILN_MUST_CHECK;
/* Seeks the mask of c->photo, whose name is p (masks.c); fills c->mask and its size. given: path by
 * which the camera file names it, safe to append to a folder; NULL: it names none, and it is sought
 * in a folder masks. Without a photo nothing is done. */
kiln_status kiln_mask_find(kiln_camera_file *f, kiln_camera *c, const kiln_photo_path *p,
                           const char *given, kiln_error *err) KILN_MUST_CHECK;
/* Adds to the notes what became of masks. */
void kiln_masks_note(const kiln_camera_file *f);
/* Decides whether the photo that was found last is turned as its EXIF block says, for a camera of
 * width x height pixels: only where that size fits no other way. c->photo_width and photo_height
 * become those of the turned photo. */
void kiln_photo_orient(kiln_camera_file *f, kiln_camera *c, double width, double height);
/* Fits the intrinsics, which are of width x height pixels, to the photo where there is one, which
 * is oriented first. */
void kiln_photo_fit(kiln_camera_file *f, kiln_camera *c, double width, double height);

/* What a camera file holds: "INRIA cameras.json", ...; NULL when it is none. */
const char *kiln_cameras_kind(const json_t *json);
/* Reads one camera file or COLMAP folder into f->set; kind (may be NULL) becomes what it was. */
kiln_status kiln_cameras_append(kiln_camera_file *f, const char **kind,
                                kiln_error *err) KILN_MUST_CHECK;

/* A folder that import may look into: it is one, holds no manifest and is not `avoid`. */
bool kiln_may_look_into(const char *dir, const char *avoid);
/* The folder of the COLMAP model in or below `dir`: sparse/N, sparse, colmap/sparse/N,
 * colmap/sparse, dir/N, dir itself, dense/N/sparse, dense/N, dense/sparse, distorted/sparse/N,
 * sparse_text/N, colmap_text; among numbered ones the one with most images. *found false when there
 * is none. */
kiln_status kiln_colmap_find(const char *dir, const char *avoid, bool *found,
                             char folder[KILN_PATH_MAX], kiln_error *err) KILN_MUST_CHECK;
/* What is used of the model in that folder: "bin" or "txt"; how many images it claims; path of its
 * points, "" when missing. */
const char *kiln_colmap_look(const char *folder, uint64_t *images, char points[KILN_PATH_MAX]);

#endif
