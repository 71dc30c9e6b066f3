/* dataset -- what a directory or a file holds, and what of it will be used.
 *
 * Precedence, first found wins; --list prints all that was found and marks what is used.
 *   Gaussians: a file named on the command line; point_cloud/iteration_N/point_cloud.ply with the largest N; a splat
 *              file at the top of the directory; where it has none, one in its folders, at most three down (gsplat's results/ply,
 *              nerfstudio's exports/splat; hidden folders and those of bakes are passed over). Of several states of one training
 *              (training_steps.h) the last step counts, of equal ones the newest file; of several others the largest count (a
 *              packed file whose count is not known stands back behind the same name unpacked, and
 *                  beside any other file the
 *              user has to name one). The file that the bake was made of, or a later step of it, stays
 *              (kiln_dataset_wishes.stays)
 *   cameras:   --cameras FILE; cameras.json (INRIA, or a list); train_cameras.json and
 *              test_cameras.json (forks of INRIA), read together; COLMAP sparse model;
 *              transforms.json; transforms_{train,val,test}.json, read together
 *   points:    without Gaussians only: those of the cameras (COLMAP points3D; ply_file_path of
 *              transforms.json), because both lie in one world; a COLMAP model's that is there;
 *              input.ply, sparse_pc.ply, points3D.ply; any other point cloud (largest count when
 *              several)
 *
 * A file that cannot be read is left out with a note beside Gaussians, and is the error where there
 * are none.
 *
 * A COLMAP model is sparse/N with most images, sparse, colmap/sparse/N, or the directory itself,
 * else dense/N/sparse, distorted/sparse/N or sparse_text (camera_file.h); binary before text. How
 * cameras are named, where their photos are sought and which of them are test views: camera_set.h.
 *
 * A file by itself has no cameras but those of --cameras; a .json file by itself is a camera file,
 * unless it is that of a SOG scene (meta.json, lod-meta.json), which is a splat file in a
 * directory, too.
 *
 * Files of --add follow the rows; they are the rows where the scene has cameras alone. With --parts
 * all splat files at the top of the directory are read in the order of their names, points where
 * there are no Gaussians; point_cloud/ is not looked into.
 *
 * Import never looks into the folder of the manifest nor into a folder that holds a manifest, but
 * for the scene itself.
 *
 * The world: rows and cameras are taken as their files have them, with one exception. nerfstudio
 * trains Gaussians in a world that it has turned, moved and scaled, and writes how into
 * dataparser_transforms.json. Where that file lies beside the Gaussians, or in the directory and
 * the Gaussians are not INRIA's point_cloud/iteration_N, cameras of a transforms.json or of a
 * COLMAP model are moved into the world of the Gaussians. Not moved are: points, because those of a
 * transforms.json (sparse_pc.ply) and of COLMAP lie in the world of their cameras, and cameras
 * beside them; a camera_path.json, which is in the world of training; cameras of INRIA's files and
 * lists, which nerfstudio does not write. --no-dataparser leaves all as it is.
 */
#ifndef KILN_STAGES_IMPORT_DATASET_H
#define KILN_STAGES_IMPORT_DATASET_H

#include "base/memory.h"
#include "stages/cameras/camera_set.h"
#include "stages/formats/reader.h"
#include "stages/select/move.h"

typedef struct {
    char text[4096];
} kiln_path;

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
    kiln_camera_set set; /* cameras, the files that were looked at, and what is said of all */
    char name[256];
    const kiln_reader *reader; /* of rows_path; NULL when there is none */
    char rows_path[4096];      /* splat or point file; COLMAP: the points3D file; "" none */
    kiln_scene_kind rows_kind; /* KILN_SCENE_NONE without rows_path */
    /* the file that would be chosen if the bake's own did not stay; below the root, "" none */
    char passed_over[4096];
    kiln_read_options read; /* how rows_path is read */
    kiln_path *members;     /* owned: files besides it that the rows come from (reader.h) */
    uint32_t n_members;
    kiln_move rows_move;  /* of rows_path alone; scale 0: none, as it is no file of --add */
    kiln_rows_file *more; /* owned: files whose rows follow those of rows_path, in this order */
    uint32_t n_more;
    bool has_background;
    double background[3];
    bool has_dataparser; /* a dataparser_transforms.json is about the Gaussians, used or not */
    /* the settings of the training say so (training_marks.h), whatever the file of rows says */
    bool antialiased;
    /* cfg_args says train_test_exp=True: test views were trained on, with their left halves */
    bool trained_left;
    /* JSON object of the pairs of INRIA's cfg_args that matter to us; "" without the file */
    char cfg_args[1024];
} kiln_dataset;

/* What the user says about finding; all may be NULL or 0. */
typedef struct {
    const char *cameras; /* --cameras FILE */
    const char *photos;  /* --photos DIR, absolute */
    const char *avoid;   /* folder of the manifest, absolute */
    const char *add;     /* --add: the text of the list (base/option.h), paths absolute */
    /* --parts: all splat files of the directory, in the order of their names (bytes), are the
     * scene */
    bool parts;
    kiln_read_options read;
    kiln_split split;   /* --split; its file is borrowed */
    bool no_dataparser; /* --no-dataparser */
    const char
        /* the file of rows that the bake was made of: it stays while it is there, unless a later
         * step of its training or an iteration_N is there; NULL */
        *stays;
    const char *leave_out; /* a file that is not looked at, its real path; NULL */
    /* cameras and photos are not looked for where rows are there without them */
    bool rows_alone;
} kiln_dataset_wishes;

/* scene: directory or file. */
kiln_status kiln_dataset_find(const char *scene, const kiln_dataset_wishes *wishes,
                              kiln_dataset *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_dataset_release(kiln_dataset *d);

#endif
