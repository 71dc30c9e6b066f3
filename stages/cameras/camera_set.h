/* camera_set -- the cameras of a scene as they are read, the files that were looked at for them,
 * and what there is to say of both.
 *
 * A camera set stands by itself: kiln-render reads one from --cameras FILE, import has one in its
 * data set (import/dataset), which adds the files of rows to the sources and findings. One thread
 * at a time.
 *
 * A camera is named by its photo: the path as given, without leading ./, image folder (images,
 * images_N) and extension. Photos are sought beside the camera file, in the directory and, for
 * COLMAP, above sparse: by their path as given, then in images, images_2, images_4, images_8,
 * input; by their own name, then as .png, .jpg, .jpeg, .webp, .tif, .tiff. Before all of these they
 * are sought in --photos DIR, after them in cfg_args's source_path, or beside the directory in a
 * folder of its name. Intrinsics are scaled to the photo's true size. A camera without photo is
 * drawn and not measured; a frame of a transforms.json that has no size either (w, h) is dropped
 * and counted by reason. Absolute paths count by their last parts (absolute_paths.h). A photo's
 * mask is the frame's mask_path; without one masks/NAME.png (masks.c). Cameras that
 * train_cameras.json and test_cameras.json call alike are named train/NAME and test/NAME.
 *
 * Test views: those of --split; else as the files say (transforms_test.json, test_cameras.json;
 * test_filenames of a transforms.json, val_filenames where those are empty, what train_filenames
 * lack where both are); else by a list of names in the directory, the first whose names fit
 * cameras: test.txt, sparse/0/test.txt, train.txt, sparse/0/train.txt; else none where cfg_args
 * says eval=False, because INRIA then trains on all; else names beginning test/; else every 8th by
 * name, as INRIA does with eval=True. A list has a name on each line, with or without folders and
 * extension; lines beginning # are passed over.
 */
#ifndef KILN_STAGES_CAMERAS_CAMERA_SET_H
#define KILN_STAGES_CAMERAS_CAMERA_SET_H

#include "base/memory.h"
#include "schema/manifest.h"
#include "stages/cameras/camera_split.h"

#include <stdbool.h>
#include <stdint.h>

/* The world that a camera file's poses are of. */
typedef enum {
    KILN_WORLD_OF_ROWS,  /* that of the Gaussians or points, as far as anybody can tell */
    KILN_WORLD_ORIGINAL, /* that of a COLMAP model: nerfstudio's original world */
    /* that of a transforms.json: the original one after its applied_transform */
    KILN_WORLD_SAVED,
} kiln_camera_world;

typedef struct {
    char path[4096]; /* file or folder */
    char what[160];  /* "COLMAP model (binary), 23 cameras, 1,443 points" */
    char role[16];   /* "splats", "points", "cameras", "photos", "other" */
    bool used;
    char why_not[480]; /* "a splat file takes precedence" */
    /* what the reader of rows that are used says of the file (reader.h: remarks, notes); ""
     * nothing */
    char notes[1600];
} kiln_finding;

typedef struct kiln_camera_set {
    char root[4096];      /* absolute: the folder of the data set; "" none */
    bool is_folder;       /* the scene is that folder, no file in it */
    kiln_camera *cameras; /* owned; sorted by name, unique */
    uint32_t n_cameras;
    uint64_t frames_read, frames_dropped;
    /* of those dropped: lens or pose is no number; of the others: */
    uint64_t frames_without_camera;
    /* of those dropped: the photo is there and cannot be read; the others have none */
    uint64_t frames_unreadable;
    kiln_split split;     /* how the user wants test views chosen; borrowed */
    char split_rule[160]; /* how test views were chosen; "" without cameras */
    /* by a rule, over the same files, that is newer than bakes that are about: a part of their
     * key */
    bool split_later;
    uint64_t n_masks; /* cameras whose photo has a mask */
    /* photos that cameras name and that are nowhere, of dropped frames too */
    uint64_t photos_missing;
    kiln_buffer missing;       /* their names, each ended by NUL */
    char photos[4096];         /* --photos; "" not given; of the photos that cameras name: */
    uint64_t photos_sought;    /*   all of them */
    uint64_t photos_in_given;  /*   those that are there, readable or not */
    uint64_t photos_elsewhere; /*   those that are not there, but in another folder */
    char first_sought[400];    /*   the first of all: its path as given, */
    char sought_in_given[600]; /*   and the folders of --photos where it was sought, for people */
    char first_elsewhere[400]; /*   where the first of those is */
    char sought[1024];         /* the folders where photos were sought, for people */
    kiln_source_file *sources; /* camera files and photos looked at; hashes not filled; owned */
    uint32_t n_sources;
    kiln_texts texts;     /* of cameras and sources; owned */
    uint32_t n_distorted; /* cameras with a lens, by kiln_pinholes_set */
    char lens[40];        /* model of the first of them */
    bool other_lenses;    /* there are more models */
    uint32_t n_blind;     /* those whose undistorted photo has no pixel of the photo */
    uint32_t n_folded;    /* others whose lens folds the picture back before the photo ends */
    bool as_is;           /* their photos are compared as they are */
    char up_axis[64];     /* as the camera files say */
    char frame[64];
    /* JSON array: what the camera files say was applied to the world, and what was to cameras; ""
     * nothing */
    char transforms[2048];
    kiln_camera_world world;
    /* of a transforms.json: rows of its applied_transform, else those of the identity; its
     * applied_scale, else 1 */
    double applied[12], applied_scale;
    bool has_eval, eval; /* INRIA's cfg_args says eval=; its value */
    char images[256];    /* image folder by cfg_args, "" unknown */
    /* folder of the training data by cfg_args, on the machine of the training; "" unknown */
    char source_path[1024];
    kiln_finding *findings; /* owned */
    uint32_t n_findings;
    char notes[4096]; /* sentences for the user, newline-separated */
    /* those of them that change the meaning of results (engine/meaning.h), newline-separated */
    char meaning[2048];
} kiln_camera_set;

/* One list of cameras from a file or folder: INRIA cameras.json, transforms*.json, a COLMAP folder,
 * nerfstudio's camera_path.json, or a JSON list of camera objects (R, t, fx, fy, cx, cy, width,
 * height[, name]; used as they stand). Also for kiln-render --cameras. Poses stay in the world of
 * the file. photos_root: where photos are sought besides the file's own folder; may be NULL.
 * Appends to the cameras, sources and notes of the set. */
kiln_status kiln_cameras_read(const char *path, const char *photos_root, kiln_camera_set *set,
                              kiln_error *err) KILN_MUST_CHECK;
void kiln_camera_set_release(kiln_camera_set *set);

/* Copies the camera and its texts. */
kiln_status kiln_camera_set_add(kiln_camera_set *set, const kiln_camera *c,
                                kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_camera_set_add_source(kiln_camera_set *set, const char *path, const char *role,
                                       kiln_error *err) KILN_MUST_CHECK;
/* One sentence more; what does not fit is left out. */
void kiln_camera_set_note(kiln_camera_set *set, const char *fmt, ...) KILN_PRINTF(2, 3);
/* The same of one that changes the meaning of results. */
void kiln_camera_set_note_meaning(kiln_camera_set *set, const char *fmt, ...) KILN_PRINTF(2, 3);
/* Sorts the cameras, refuses equal names, gives each its split (camera_split.h). */
kiln_status kiln_camera_set_finish(kiln_camera_set *set, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_camera_set_add_finding(kiln_camera_set *set, const char *path, const char *role,
                                        bool used, const char *what, const char *why_not,
                                        kiln_error *err) KILN_MUST_CHECK;

/* The name of the next missing photo behind `name`, a pointer that this gave; NULL: the first;
 * returns NULL behind the last. */
const char *kiln_missing_next(const kiln_camera_set *set, const char *name);
/* Fails if --photos has none of the photos that cameras name (KILN_E_INPUT), and notes those that
 * are elsewhere. Behind the last camera. */
kiln_status kiln_photos_check_given(kiln_camera_set *set, kiln_error *err) KILN_MUST_CHECK;

#endif
