/* colmap_model -- a COLMAP model while it is read: what both encodings, binary and text, fill.
 *
 * The encodings only take records apart and check that they are whole; what a record means and may
 * not be is checked once, in the _put functions of cameras_colmap.c. Cameras come before images,
 * rigs before frames.
 */
#ifndef KILN_STAGES_CAMERAS_COLMAP_COLMAP_MODEL_H
#define KILN_STAGES_CAMERAS_COLMAP_COLMAP_MODEL_H

#include "stages/cameras/camera_file.h"

typedef struct kiln_colmap kiln_colmap;

kiln_status kiln_colmap_put_camera(kiln_colmap *m, uint32_t id, const kiln_camera_model *model,
                                   uint64_t width, uint64_t height, const double *params,
                                   kiln_error *err) KILN_MUST_CHECK;
/* pose: quaternion w x y z, then t; name: NUL-terminated, borrowed. */
kiln_status kiln_colmap_put_image(kiln_colmap *m, uint32_t id, const double pose[7],
                                  uint32_t camera_id, const char *name,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Does anybody want the keypoints of the image put last? Else they need not be taken apart. */
bool kiln_colmap_wants_keypoints(const kiln_colmap *m);
/* Also those of text that say nothing? */
bool kiln_colmap_wants_every_keypoint(const kiln_colmap *m);
/* A keypoint of that image, in its pixels (the centre of the first at 0.5), and the id of the point
 * that it observes. */
kiln_status kiln_colmap_put_keypoint(kiln_colmap *m, double x, double y, uint64_t point,
                                     kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_colmap_put_rig(kiln_colmap *m, uint32_t id, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_colmap_put_frame(kiln_colmap *m, uint32_t id, uint32_t rig_id,
                                  kiln_error *err) KILN_MUST_CHECK;
/* An image of the frame put last. */
kiln_status kiln_colmap_put_frame_image(kiln_colmap *m, uint32_t frame_id, uint64_t image_id,
                                        kiln_error *err) KILN_MUST_CHECK;

typedef kiln_status kiln_colmap_read_fn(const char *path, kiln_colmap *m, kiln_error *err);
kiln_colmap_read_fn kiln_colmap_bin_cameras, kiln_colmap_bin_images, kiln_colmap_bin_rigs,
    kiln_colmap_bin_frames;
kiln_colmap_read_fn kiln_colmap_txt_cameras, kiln_colmap_txt_images, kiln_colmap_txt_rigs,
    kiln_colmap_txt_frames;
/* How many images a file claims to hold, to choose among models: 0 when it cannot be read. */
uint64_t kiln_colmap_bin_count(const char *path);
uint64_t kiln_colmap_txt_count(const char *path);

#endif
