/* thumbnail -- pictures as a page shows them: small, opaque, three channels. Pure functions, any
 * thread. */
#ifndef KILN_STAGES_REPORT_THUMBNAIL_H
#define KILN_STAGES_REPORT_THUMBNAIL_H

#include "stages/image/image.h"

typedef struct {
    uint32_t width, height;
    float *rgb; /* [height][width][3], owned; NULL: none */
} kiln_thumbnail;

enum { KILN_THUMBNAIL_SIDE = 640 /* pixels of the longer side at most */ };

/* The size that a picture of this size has on the page. */
void kiln_thumbnail_size(uint32_t width, uint32_t height, uint32_t *out_width,
                         uint32_t *out_height);
/* The means of the picture's pixels over each pixel of `out`, whose size is set by the caller; grey
 * becomes colour, and what is transparent shows the background. */
kiln_status kiln_thumbnail_make(const kiln_picture *p, const double background[3],
                                kiln_thumbnail *out, kiln_error *err) KILN_MUST_CHECK;
/* How far two of the same size are apart, KILN_DIFFERENCE_GAIN times, as colours from black over
 * red and yellow to white. */
enum { KILN_DIFFERENCE_GAIN = 4 };
kiln_status kiln_thumbnail_difference(const kiln_thumbnail *a, const kiln_thumbnail *b,
                                      kiln_thumbnail *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_thumbnail_release(kiln_thumbnail *t);
/* The colour of a share from 0 to 1, each channel 0 to 1. */
void kiln_heat_colour(float share, float rgb[3]);

#endif
