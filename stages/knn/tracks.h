/* tracks -- where the photos are that see the points of a COLMAP model: its images file lists which
 * point a keypoint observes, the scene's cameras which photo an image is. Parent and worker look it
 * up alike; the manifest decides. */
#ifndef KILN_STAGES_KNN_TRACKS_H
#define KILN_STAGES_KNN_TRACKS_H

#include "schema/manifest.h"

typedef struct {
    bool colmap;          /* the points are a COLMAP model's; nothing else is filled when not */
    const char *suffix;   /* "bin" or "txt" */
    char folder[4096];    /* of the model */
    kiln_camera *cameras; /* owned; sorted by name */
    uint32_t n_cameras;
    kiln_source_file *sources; /* owned; sorted by path */
    uint32_t n_sources;
    /* of the model, as imported; NULL where the scene's cameras are others, and then there are no
     * tracks */
    const kiln_source_file *cameras_file, *images_file;
} kiln_tracks;

kiln_status kiln_tracks_get(kiln_manifest *m, const kiln_scene *s, kiln_tracks *t,
                            kiln_error *err) KILN_MUST_CHECK;
void kiln_tracks_release(kiln_tracks *t);
/* Adds what colours depend on besides the points: the model's files, and each camera's name and
 * photo. */
void kiln_key_tracks(kiln_hasher *h, const kiln_tracks *t);
const kiln_camera *kiln_tracks_camera(const kiln_tracks *t, const char *name); /* NULL: none */
/* KILN_E_INPUT when the file is not as it was imported: what was read of it may belong to another
 * key. */
kiln_status kiln_tracks_check(const kiln_tracks *t, const char *path,
                              kiln_error *err) KILN_MUST_CHECK;

#endif
