/* colmap_visit -- a COLMAP model's images and their keypoints, one after the other: its tracks,
 * ordered by image. Memory does not grow with the number of keypoints. */
#ifndef KILN_STAGES_CAMERAS_COLMAP_COLMAP_VISIT_H
#define KILN_STAGES_CAMERAS_COLMAP_COLMAP_VISIT_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    void *context;
    /* Keypoints of text that are no numbers (given as NAN), or observe no point (2^64 - 1), are
     * visited too: a track counts keypoints. */
    bool every;
    /* The id of the image that comes next; may be NULL. */
    void (*id)(void *context, uint32_t id);
    /* An image, called as its camera is, of width x height pixels. *wanted false: its keypoints are
     * passed over. */
    kiln_status (*image)(void *context, const char *camera, uint32_t width, uint32_t height,
                         bool *wanted, kiln_error *err);
    /* A keypoint of that image, in its pixels (the centre of the first at 0.5; as in the file: any
     * value), and the id of the point that it observes (binary models say 2^64 - 1 for none). */
    kiln_status (*keypoint)(void *context, double x, double y, uint64_t point, kiln_error *err);
} kiln_colmap_visitor;

/* suffix: "bin" or "txt". Files are checked as on import; order is the file's. Ends with the
 * visitor's first failure. */
kiln_status kiln_colmap_visit(const char *folder, const char *suffix, const kiln_colmap_visitor *v,
                              kiln_error *err) KILN_MUST_CHECK;

#endif
