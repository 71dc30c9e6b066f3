/* pinholes -- the pinholes as which cameras with a lens are drawn, so that a picture and the
 * undistorted photo compare pixel by pixel.
 */
#ifndef KILN_STAGES_CAMERAS_PINHOLES_H
#define KILN_STAGES_CAMERAS_PINHOLES_H

#include "kernels/lens/lens.h"
#include "stages/cameras/camera_set.h"

/* Notes in the set how many cameras have a lens. as_is: they count as pinholes from here on, with
 * their own size and intrinsics: --ignore-distortion. Once for a data set. */
void kiln_lenses_count(kiln_camera_set *set, bool as_is);
/* Gives each camera that still has a lens the size and intrinsics of its pinhole (kiln_lens_target
 * with this blank). Takes about 4 ms for each lens that is another one than that of the camera
 * before, so it comes once the cameras are known to be needed. Counts lenses that leave their
 * photos empty or fold them (set->n_blind, set->n_folded). Once for a data set. KILN_E_INPUT: as
 * kiln_pinhole_lens. */
kiln_status kiln_pinholes_set(kiln_camera_set *set, double blank, kiln_error *err) KILN_MUST_CHECK;

/* The lens of a distorted camera with a photo. KILN_E_INPUT: it names no model that we know, or has
 * other parameters. */
kiln_status kiln_pinhole_lens(const kiln_camera *c, kiln_lens *out,
                              kiln_error *err) KILN_MUST_CHECK;

#endif
