/* depth -- writes the depth of a picture as a file, for programs or to be looked at.
 *
 *   numbers   16-bit grey PNG: the farthest depth is 65535; the PNG's text "Unit" says how many
 *             scene units a step is. Or .npy, in scene units
 *   colours   8-bit RGB PNG: from red, near, to blue, far, even in 1 / depth, because what is near
 *             matters more to the eye. The
 * ends are the depths that a hundredth of the pixels is nearer or farther than; the PNG's text
 * "Unit" says them
 *
 * Depth is 0 where nothing is drawn, which is 0 in numbers and black in colours. For any thread.
 * Source of the colours: Turbo, Anton Mikhailov (Google, 2019), as the polynomial that he gives for
 * it.
 */
#ifndef KILN_STAGES_RENDER_DEPTH_H
#define KILN_STAGES_RENDER_DEPTH_H

#include "base/status.h"
#include "stages/products/product_place.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    const char *path;   /* its suffix says the format: .png or .npy */
    const float *depth; /* [height][width], scene units */
    uint32_t width, height;
    bool colours;
    unsigned threads;
    const kiln_product_seen *seen; /* as in kiln_picture_job */
} kiln_depth_job;

/* Returns the host memory that writing takes besides the depth and what kiln_picture_write
 * takes. */
uint64_t kiln_depth_bytes(uint64_t pixels, bool colours);
/* Writes the file. *step: scene units of a step of a 16-bit PNG; 0: of another file, or all is
 * empty. KILN_E_IO, KILN_E_NOMEM. */
kiln_status kiln_depth_write(const kiln_depth_job *job, double *step,
                             kiln_error *err) KILN_MUST_CHECK;

/* Finds the ends of the colours. *near_m is 0 if all is empty. KILN_E_NOMEM. */
kiln_status kiln_depth_range(const float *depth, uint64_t n, float *near_m, float *far_m,
                             kiln_error *err) KILN_MUST_CHECK;
/* The colour of a depth, 0 to 1 each. */
void kiln_depth_colour(float depth, float near_m, float far_m, float rgb[3]);

#endif
