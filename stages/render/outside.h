/* outside -- what photos show where nothing is drawn. Photos that were put over a colour before anybody saw them (renders, masked
 * captures) show it there, and a picture over another colour measures the difference of the two colours and little else: the chair
 * of white photos over black has 0.95 dB. Of each camera some pixels are looked at; all cameras of a run together say whether the
 * photos have one colour there, and whether it is the background's. */
#ifndef KILN_STAGES_RENDER_OUTSIDE_H
#define KILN_STAGES_RENDER_OUTSIDE_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Of one camera. */
typedef struct {
    uint64_t looked;  /* pixels that were looked at, some 2^16 of a picture */
    uint64_t empty;   /* of those: nothing is drawn there */
    uint64_t near;    /* of those: the photo is within 16/255 of ... */
    double colour[3]; /* ... the colour that it has there most often, 0 to 1 */
} kiln_outside;

/* rgba [height][width][4] as drawn, photo [height][width][3]. */
kiln_outside kiln_outside_look(const float *rgba, const float *photo, uint32_t width, uint32_t height);

/* For a unit's counters, and back. All 0 for what is no such object, or cannot be. */
json_t *kiln_outside_json(const kiln_outside *o);
kiln_outside kiln_outside_of_json(const json_t *v);

/* Do photos of n cameras have one colour where nothing is drawn, and is it another than the background's? Then *colour is theirs.
 * Not where less than a hundredth of the pixels is empty, or less than four fifths of those have that colour: a natural background
 * has many. */
bool kiln_outside_differs(const kiln_outside *views, uint32_t n, const double background[3], double colour[3]);

/* A colour as --background takes it: "white", "black" or "r,g,b" of 0 to 255. */
void kiln_colour_text(const double colour[3], char out[16]);

#endif
