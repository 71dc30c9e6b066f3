/* dataset -- what a directory or a file holds, and what of it will be used.
 *
 * Precedence, first found wins; --list prints all that was found and marks what is used.
 *   Gaussians: a file named on the command line; point_cloud/iteration_N/point_cloud.ply with the largest N; a splat
 *              file at the top of the directory; where it has none, one in its folders, at most three down (gsplat's results/ply,
 *              nerfstudio's exports/splat; hidden folders and those of bakes are passed over). Of several states of one training
 *              (training_steps.h) the last step counts, of equal ones the newest file; of several others the largest count (a
 * packed file whose count is not known stands back behind the same name unpacked, and beside any other file the user has to name
 * one). The file that the bake was made of stays (kiln_dataset_wishes.stays) cameras:   --cameras FILE; cameras.json (INRIA, or a
 * list); train_cameras.json and test_cameras.json (forks of INRIA), read together; COLMAP sparse model; transforms.json;
 * transforms_{train,val,test}.json, read together points:    without Gaussians only: those of the cameras (COLMAP points3D;
 * ply_file_path of transforms.json), because both lie in one world; a COLMAP model's that is there; input.ply, sparse_pc.ply,
 * points3D.ply; any other point cloud (largest count when several) A file that cannot be read is left out with a note beside
 * Gaussians, and is the error where there are none. A COLMAP model is sparse/N with most images, sparse, colmap/sparse/N, or the
 * directory itself, else dense/N/sparse, distorted/sparse/N or sparse_text (camera_file.h); binary before text. A file by itself
 * has no cameras but those of --cameras; a .json file by itself is a camera file, unless it is that of a SOG scene (meta.json,
 * lod-meta.json), which is a splat file in a directory, too. Files of --add follow the rows; they are the rows where the scene has
 * cameras alone. With --parts all splat files at the top of the directory are read in the order of their names, points where there
 * are no Gaussians; point_cloud/ is not looked into. Import never looks into the folder of the manifest nor into a folder that
 * holds a manifest, but for the scene itself.
 *
 * A camera is named by its photo: the path as given, without leading ./, image folder (images, images_N) and extension.
 * Photos are sought beside the camera file, in the directory and, for COLMAP, above sparse: by their path as given, then
 * in images, images_2, images_4, images_8, input; by their own name, then as .png, .jpg, .jpeg, .webp, .tif, .tiff. Before all of
 * these they are sought in --photos DIR, after them in cfg_args's source_path, or beside the directory in a folder of its name.
 * Intrinsics are scaled to the photo's true size. A camera without photo is drawn and not measured; a frame of a transforms.json
 * that has no size either (w, h) is dropped and counted by reason. Absolute paths count by their last parts
 * (cameras/absolute_paths.h). A photo's mask is the frame's mask_path; without one masks/NAME.png (masks.c). Cameras that
 * train_cameras.json and test_cameras.json call alike are named train/NAME and test/NAME.
 *
 * Test views: those of --split; else as the files say (transforms_test.json, test_cameras.json; test_filenames of a
 * transforms.json, val_filenames where those are empty, what train_filenames lack where both are); else by a list of names in the
 * directory, the first whose names fit cameras: test.txt, sparse/0/test.txt, train.txt, sparse/0/train.txt; else none where
 * cfg_args says eval=False, because INRIA then trains on all; else names beginning test/; else every 8th by name, as INRIA does
 * with eval=True. A list has a name on each line, with or without folders and extension; lines beginning # are passed over.
 *
 * The world: rows and cameras are taken as their files have them, with one exception. nerfstudio trains Gaussians in a world that
 * it has turned, moved and scaled, and writes how into dataparser_transforms.json. Where that file lies beside the Gaussians, or in
 * the directory and the Gaussians are not INRIA's point_cloud/iteration_N, cameras of a transforms.json or of a COLMAP model are
 * moved into the world of the Gaussians. Not moved are: points, because those of a transforms.json (sparse_pc.ply) and of COLMAP
 * lie in the world of their cameras, and cameras beside them; a camera_path.json, which is in the world of training; cameras of
 * INRIA's files and lists, which nerfstudio does not write. --no-dataparser leaves all as it is.
 */
#ifndef KILN_STAGES_IMPORT_DATASET_H
#define KILN_STAGES_IMPORT_DATASET_H

#include "base/memory.h"
#include "stages/import/cameras/camera_split.h"
#include "stages/import/reader.h"

/* The world that a camera file's poses are of. */
typedef enum {
    KILN_WORLD_OF_ROWS,  /* that of the Gaussians or points, as far as anybody can tell */
    KILN_WORLD_ORIGINAL, /* that of a COLMAP model: nerfstudio's original world */
    KILN_WORLD_SAVED,    /* that of a transforms.json: the original one after its applied_transform */
} kiln_camera_world;

typedef struct {
    char path[4096]; /* file or folder */
    char what[160];  /* "COLMAP model (binary), 23 cameras, 1,443 points" */
    char role[16];   /* "splats", "points", "cameras", "photos", "other" */
    bool used;
    char why_not[480]; /* "a splat file takes precedence" */
    char notes[1600];  /* what the reader of rows that are used says of the file (reader.h: remarks, notes); "" nothing */
} kiln_finding;

typedef struct {
    char text[4096];
} kiln_path;

/* How rows are moved: x' = scale R x + translate, R = Rz Ry Rx of degrees about x, y and z (kernels/similarity). */
typedef struct {
    double translate[3], rotate[3], scale;
} kiln_move;

/* A file of rows besides the first. */
typedef struct {
    char path[4096]; /* absolute */
    const kiln_reader *reader;
    kiln_scene_kind kind;
    uint64_t n_rows;    /* as its header says */
    kiln_path *members; /* owned */
    uint32_t n_members;
    kiln_move move;
} kiln_rows_file;

typedef struct kiln_dataset {
    char root[4096]; /* absolute */
    bool is_folder;  /* the scene is that folder, no file in it */
    char name[256];
    const kiln_reader *reader; /* of rows_path; NULL when there is none */
    char rows_path[4096];      /* splat or point file; COLMAP: the points3D file; "" none */
    kiln_scene_kind rows_kind; /* KILN_SCENE_NONE without rows_path */
    kiln_read_options read;    /* how rows_path is read */
    kiln_path *members;        /* owned: files besides it that the rows come from (reader.h) */
    uint32_t n_members;
    kiln_move rows_move;  /* of rows_path alone; scale 0: none, as it is no file of --add */
    kiln_rows_file *more; /* owned: files whose rows follow those of rows_path, in this order */
    uint32_t n_more;
    kiln_camera *cameras; /* owned; sorted by name, unique */
    uint32_t n_cameras;
    uint64_t frames_read, frames_dropped;
    uint64_t frames_without_camera; /* of those dropped: lens or pose is no number; of the others: */
    uint64_t frames_unreadable; /* of those dropped: the photo is there and cannot be read; the others have none */
    kiln_split split;           /* how the user wants test views chosen; borrowed */
    char split_rule[160];       /* how test views were chosen; "" without cameras */
    bool split_later;           /* by a rule, over the same files, that is newer than bakes that are about: a part of their key */
    uint64_t n_masks;           /* cameras whose photo has a mask */
    uint64_t photos_missing;    /* photos that cameras name and that are nowhere, of dropped frames too */
    kiln_buffer missing;        /* their names, each ended by NUL */
    char photos[4096];          /* --photos; "" not given; of the photos that cameras name: */
    uint64_t photos_sought;     /*   all of them */
    uint64_t photos_in_given;   /*   those that are there, readable or not */
    uint64_t photos_elsewhere;  /*   those that are not there, but in another folder */
    char first_sought[400];     /*   the first of all: its path as given, */
    char sought_in_given[600];  /*   and the folders of --photos where it was sought, for people */
    char first_elsewhere[400];  /*   where the first of those is */
    char sought[1024];          /* the folders where photos were sought, for people */
    kiln_source_file *sources;  /* camera files and photos looked at; hashes not filled; owned */
    uint32_t n_sources;
    kiln_texts texts;     /* of cameras and sources; owned */
    uint32_t n_distorted; /* cameras with a lens, by kiln_pinholes_set */
    char lens[40];        /* model of the first of them */
    bool other_lenses;    /* there are more models */
    uint32_t n_blind;     /* those whose undistorted photo has no pixel of the photo */
    uint32_t n_folded;    /* others whose lens folds the picture back before the photo ends */
    bool as_is;           /* their photos are compared as they are */
    bool has_background;
    double background[3];
    char up_axis[64]; /* as the camera files say */
    char frame[64];
    char transforms[2048]; /* JSON array: what the camera files say was applied to the world, and what was to cameras; "" nothing */
    kiln_camera_world world;
    /* of a transforms.json: rows of its applied_transform, else those of the identity; its applied_scale, else 1 */
    double applied[12], applied_scale;
    bool has_dataparser;    /* a dataparser_transforms.json is about the Gaussians, used or not */
    bool has_eval, eval;    /* INRIA's cfg_args says eval=; its value */
    bool antialiased;       /* the settings of the training say so (training_marks.h), whatever the file of rows says */
    bool trained_left;      /* cfg_args says train_test_exp=True: test views were trained on, with their left halves */
    char cfg_args[1024];    /* JSON object of the pairs of INRIA's cfg_args that matter to us; "" without the file */
    char images[256];       /* image folder by cfg_args, "" unknown */
    char source_path[1024]; /* folder of the training data by cfg_args, on the machine of the training; "" unknown */
    kiln_finding *findings; /* owned */
    uint32_t n_findings;
    char notes[4096];   /* sentences for the user, newline-separated */
    char meaning[2048]; /* those of them that change the meaning of results (engine/meaning.h), newline-separated */
} kiln_dataset;

/* What the user says about finding; all may be NULL or 0. */
typedef struct {
    const char *cameras; /* --cameras FILE */
    const char *photos;  /* --photos DIR, absolute */
    const char *avoid;   /* folder of the manifest, absolute */
    const char *add;     /* --add: the text of the list (base/option.h), paths absolute */
    bool parts;          /* --parts: all splat files of the directory, in the order of their names (bytes), are the scene */
    kiln_read_options read;
    kiln_split split;   /* --split; its file is borrowed */
    bool no_dataparser; /* --no-dataparser */
    const char
        *stays;      /* the file of rows that the bake was made of: it stays while it is there, unless it is an iteration_N; NULL */
    bool rows_alone; /* cameras and photos are not looked for where rows are there without them */
} kiln_dataset_wishes;

/* scene: directory or file. */
kiln_status kiln_dataset_find(const char *scene, const kiln_dataset_wishes *wishes, kiln_dataset *out,
                              kiln_error *err) KILN_MUST_CHECK;
void kiln_dataset_release(kiln_dataset *d);

/* One list of cameras from a file or folder: INRIA cameras.json, transforms*.json, a COLMAP folder, nerfstudio's camera_path.json,
 * or a JSON list of camera objects (R, t, fx, fy, cx, cy, width, height[, name]; used as they stand). Also for kiln-render
 * --cameras. Poses stay in the world of the file. photos_root: where photos are sought besides the file's own folder; may be NULL.
 * Appends to d->cameras, sources, notes. */
kiln_status kiln_cameras_read(const char *path, const char *photos_root, kiln_dataset *d, kiln_error *err) KILN_MUST_CHECK;

#endif
