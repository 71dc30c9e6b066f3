/* pinholes -- the pinholes as which cameras with a lens are drawn, so that a picture and the undistorted photo compare pixel by
 * pixel.
 */
#ifndef KILN_STAGES_IMPORT_PINHOLES_H
#define KILN_STAGES_IMPORT_PINHOLES_H

#include "kernels/lens/lens.h"
#include "stages/import/dataset/dataset.h"

/* Gives each distorted camera of d the size and intrinsics of its pinhole (kiln_lens_target with this blank), and notes in d how
 * many have a lens. as_is: their own size and intrinsics stay, and they count as pinholes: --ignore-distortion. Once for a data
 * set. */
kiln_status kiln_pinholes_set(kiln_dataset *d, double blank, bool as_is, kiln_error *err) KILN_MUST_CHECK;

/* The lens of a distorted camera with a photo. KILN_E_INPUT: it names no model that we know, or has other parameters. */
kiln_status kiln_pinhole_lens(const kiln_camera *c, kiln_lens *out, kiln_error *err) KILN_MUST_CHECK;

#endif
