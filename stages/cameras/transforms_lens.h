/* transforms_lens -- size, focal lengths and lens of one frame of a transforms.json. */
#ifndef KILN_STAGES_CAMERAS_TRANSFORMS_LENS_H
#define KILN_STAGES_CAMERAS_TRANSFORMS_LENS_H

#include "stages/cameras/camera_file.h"

/* A value of the frame, which wins over the file's own; NULL when neither has it. */
const json_t *kiln_frame_get(const json_t *file, const json_t *frame, const char *key);

/* Fills size and lens of c, whose photo is known, and fits them to the photo. *sized false and c
 * untouched when neither the file nor a photo says how large the picture is. */
kiln_status kiln_frame_lens(kiln_camera_file *f, const json_t *file, const json_t *frame,
                            kiln_camera *c, const char *who, bool *sized,
                            kiln_error *err) KILN_MUST_CHECK;

#endif
