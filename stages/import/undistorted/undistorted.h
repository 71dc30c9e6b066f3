/* undistorted -- --write-undistorted: the photos of a data set as its pinholes would have shown
 * them, and a COLMAP model of these.
 *
 *   DIR/images/NAME.png     each camera's photo; 16-bit where the photo has more than 8
 *   DIR/sparse/cameras.bin, images.bin, points3D.bin     PINHOLE cameras
 * as COLMAP's image_undistorter writes them. Of a COLMAP model image ids, keypoints (undistorted)
 * and points with their tracks stay; of other data sets there are none. Poses are those of the
 * files: --translate and its like move nothing. Everything is written into a folder beside DIR that
 * gets its name when all is there.
 */
#ifndef KILN_STAGES_IMPORT_UNDISTORTED_H
#define KILN_STAGES_IMPORT_UNDISTORTED_H

#include "base/file.h"
#include "kernels/undistort/undistort.h"
#include "stages/engine/engine.h"
#include "stages/import/dataset/dataset.h"

/* d: with its pinholes set. KILN_E_INPUT: DIR is there and not empty, no camera has a photo, a
 * photo or the model is damaged. KILN_E_IO, and as kiln_run_units. */
kiln_status kiln_undistorted_write(kiln_run *r, const kiln_dataset *d, const char *dir,
                                   kiln_undistort_filter filter, kiln_error *err) KILN_MUST_CHECK;

/* The unit, of one photo. */
typedef struct {
    char photo[KILN_PATH_MAX], out[KILN_PATH_MAX];
    kiln_lens lens; /* width 0: the photo is a pinhole's and stays as it is */
    kiln_pinhole pinhole;
    uint32_t width, height; /* of the photo */
    uint32_t filter;
} kiln_undistorted_request;
kiln_status kiln_undistorted_unit(kiln_worker *w, const kiln_undistorted_request *q,
                                  kiln_error *err) KILN_MUST_CHECK;

/* Writes the three files of the model into `folder`, which is there. */
kiln_status kiln_undistorted_model(const kiln_dataset *d, const char *folder,
                                   kiln_error *err) KILN_MUST_CHECK;

#endif
