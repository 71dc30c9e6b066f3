/* dataset -- what a directory or a file holds, and what of it will be used.
 *
 * Precedence, first found wins; --list prints all that was found and marks what is used.
 *   Gaussians: a file named on the command line; point_cloud/iteration_N/point_cloud.ply with the largest N; a splat
 *              file at the top of the directory (largest count when several)
 *   points:    COLMAP points3D; ply_file_path of transforms.json; input.ply, sparse_pc.ply, points3D.ply; any other point cloud
 *   cameras:   --cameras FILE; cameras.json (INRIA) ; COLMAP sparse model; transforms.json; transforms_{train,val,test}.json
 * Import never looks into the folder of the manifest nor into a folder that holds a manifest.
 */
#ifndef KILN_STAGES_IMPORT_DATASET_H
#define KILN_STAGES_IMPORT_DATASET_H

#include "stages/import/reader.h"

typedef struct {
    char path[4096];       /* file or folder */
    char what[160];        /* "COLMAP model (binary), 23 cameras, 1,443 points" */
    char role[16];         /* "splats", "points", "cameras", "photos" */
    bool used;
    char why_not[200];     /* "a splat file takes precedence" */
} kiln_finding;

typedef struct {
    char root[4096];               /* absolute */
    char name[256];
    const kiln_reader *reader;     /* of rows_path; NULL when there is none */
    char rows_path[4096];          /* splat or point file; COLMAP: the points3D file; "" none */
    kiln_camera *cameras;          /* owned; sorted by name, unique */
    uint32_t n_cameras;
    uint64_t frames_read, frames_dropped;
    kiln_source_file *sources;     /* camera files and photos looked at; hashes not filled; owned */
    uint32_t n_sources;
    bool has_background;
    double background[3];
    char up_axis[64];              /* as the camera files say */
    char frame[64];
    char transforms[2048];         /* JSON array */
    kiln_finding *findings;        /* owned */
    uint32_t n_findings;
    char notes[4096];              /* sentences for the user, newline-separated */
} kiln_dataset;

/* scene: directory or file. cameras: --cameras FILE or NULL. avoid: folder of the manifest (absolute). */
kiln_status kiln_dataset_find(const char *scene, const char *cameras, const char *avoid, kiln_dataset *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_dataset_release(kiln_dataset *d);

/* One list of cameras from a file or folder: INRIA cameras.json, transforms*.json, a COLMAP folder, or a JSON list of
 * camera objects (R, t, fx, fy, cx, cy, width, height[, name]; used as they stand). Also for kiln-render --cameras.
 * photos_root: where photos are sought besides the file's own folder; may be NULL. Appends to d->cameras, sources, notes. */
kiln_status kiln_cameras_read(const char *path, const char *photos_root, kiln_dataset *d, kiln_error *err) KILN_MUST_CHECK;

#endif
