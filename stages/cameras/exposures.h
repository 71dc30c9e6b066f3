/* exposures -- INRIA's exposure.json: what train.py learnt of each photo's exposure (since October
 * 2024).
 *
 *     {"v0.png": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], ...}
 * A 3x4 matrix E for each image. INRIA draws p (a row of r, g, b over the background) and compares
 * p E[:,:3] + E[:,3] with the photo (gaussian_renderer/__init__.py, render). Images are named as in
 * cameras.json.
 */
#ifndef KILN_STAGES_CAMERAS_EXPOSURES_H
#define KILN_STAGES_CAMERAS_EXPOSURES_H

#include "base/status.h"
#include "schema/manifest.h"

#include <stdbool.h>
#include <stdint.h>

#define KILN_EXPOSURE_FILE "exposure.json"
#define KILN_EXPOSURE_ROLE "exposures" /* of the file among the sources */

typedef struct {
    char name[256]; /* of the image, without leading ./ and without extension */
    double m[12];   /* row-major */
} kiln_exposure;

typedef struct {
    kiln_exposure *list; /* [n] owned; by name */
    uint32_t n;
    uint32_t n_changing; /* of them, those that are not the identity */
} kiln_exposures;

/* KILN_E_INPUT: it is no JSON, no object of 3 x 4 finite numbers each, or two names are one without
 * their extensions. Release also after a failure. */
kiln_status kiln_exposures_read(const char *path, kiln_exposures *out,
                                kiln_error *err) KILN_MUST_CHECK;
void kiln_exposures_release(kiln_exposures *e);
bool kiln_exposure_is_identity(const double m[12]);

/* Fills of[n] with the exposure of each camera, NULL for none; borrowed from e. A camera has that
 * of its name. Where there is none, it has that of what follows the last slash of its name, if no
 * other camera's name ends so, or if it is the only one of those that was trained on: Blender's r_0
 * is train/r_0, not test/r_0. KILN_E_NOMEM. */
kiln_status kiln_exposures_match(const kiln_exposures *e, const kiln_camera *cameras, uint32_t n,
                                 const kiln_exposure **of, kiln_error *err) KILN_MUST_CHECK;

#endif
