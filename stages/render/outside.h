/* outside -- what photos show where nothing is drawn.
 *
 * Problem. Renders and masked captures have a plain background of one colour. If the picture is
 * drawn over another colour, PSNR measures the difference of the two colours and little else: the
 * chair's white photos against black give 0.95 dB. Layout. Each camera's unit looks at some pixels
 * where nothing is drawn. All cameras of a run together show whether the photos have one colour
 * there, and whether it is the background's; if it is not, the report warns. */
#ifndef KILN_STAGES_RENDER_OUTSIDE_H
#define KILN_STAGES_RENDER_OUTSIDE_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* The counts of one camera. */
typedef struct {
    uint64_t looked;  /* pixels that were looked at, about 2^16 of a picture */
    uint64_t empty;   /* of them, pixels where nothing is drawn */
    uint64_t near;    /* of the empty pixels, those whose photo is within 16/255 of `colour` */
    double colour[3]; /* the photo's most frequent colour at empty pixels, 0 to 1 */
} kiln_outside;

/* Counts for one camera. rgba [height][width][4]: the picture; photo [height][width][3]; mask
 * [height][width], 0: the pixel is looked at as if something were drawn there, NULL: none is. */
kiln_outside kiln_outside_look(const float *rgba, const float *photo, const uint8_t *mask,
                               uint32_t width, uint32_t height);

/* Write the counts for a unit's counters, and read them back. NULL: no memory. Read counts are all
 * 0 if v is no such object or holds impossible numbers. */
json_t *kiln_outside_json(const kiln_outside *o);
kiln_outside kiln_outside_of_json(const json_t *v);

/* Says whether the photos of n cameras have one colour where nothing is drawn that differs from the
 * background; *colour is then that colour. False if less than a hundredth of the pixels is empty,
 * or less than four fifths of the empty ones have the colour, as a natural background has many
 * colours. */
bool kiln_outside_differs(const kiln_outside *views, uint32_t n, const double background[3],
                          double colour[3]);

/* Writes a colour as --background takes it: "white", "black" or "r,g,b" of 0 to 255. */
void kiln_colour_text(const double colour[3], char out[16]);

#endif
