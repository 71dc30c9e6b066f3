/* canvas -- memory for pictures in the making, kept from picture to picture. It is page-locked where a GPU copies into it: else the
 * driver copies once more.
 *
 * Page-locking takes longer than drawing (6 to 12 ms for the 33 MB of 1920 x 1080, against 1.4), so a thread of their own makes
 * canvases: the next one when all that there are have been taken. Who takes one waits for it or for one that is given back,
 * whichever comes first. Not all from the start: the driver locks pages for one thread at a time, and copies to the device wait. */
#ifndef KILN_STAGES_CANVAS_H
#define KILN_STAGES_CANVAS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { KILN_CANVASES_MAX = 32 };

typedef struct kiln_canvases kiln_canvases;
typedef struct kiln_canvas kiln_canvas;

/* What a canvas of so many pixels takes, float RGBA. */
uint64_t kiln_canvas_bytes(uint64_t pixels);
/* `most` of them, 1 to KILN_CANVASES_MAX. device: that copies into them, or KILN_RUNNER_CPU. KILN_E_NOMEM. */
kiln_status kiln_canvases_new(int device, uint64_t pixels, unsigned most, kiln_canvases **out, kiln_error *err) KILN_MUST_CHECK;
/* NULL: nothing. Waits until all are given back. */
void kiln_canvases_free(kiln_canvases *c);
bool kiln_canvases_are(const kiln_canvases *c, uint64_t pixels, unsigned most);
uint64_t kiln_canvases_bytes(const kiln_canvases *c); /* of all that may be made; NULL: none */
/* KILN_E_NOMEM where there was no memory for a single one. */
kiln_status kiln_canvas_take(kiln_canvases *c, kiln_canvas **out, kiln_error *err) KILN_MUST_CHECK;
/* From any thread. NULL: nothing. */
void kiln_canvas_give(kiln_canvas *canvas);
float *kiln_canvas_pixels(const kiln_canvas *canvas);

#endif
