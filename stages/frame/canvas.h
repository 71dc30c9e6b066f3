/* canvas -- memory into which pictures are drawn, kept from picture to picture.
 *
 * Problem. A GPU copies fast only into page-locked memory; into other memory the driver copies
 * twice. But locking pages takes longer than drawing: 6 to 12 ms for the 33 MB of 1920 x 1080,
 * against 1.4. Constraint. The driver locks pages for one thread at a time, and copies to the
 * device wait meanwhile. So making all canvases at the start would delay the first picture. Layout.
 * A thread makes canvases, the next one when all existing ones are taken. A caller that takes a
 * canvas waits for the new one or for one that is given back, whichever comes first. */
#ifndef KILN_STAGES_CANVAS_H
#define KILN_STAGES_CANVAS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { KILN_CANVASES_MAX = 32 };

typedef struct kiln_canvases kiln_canvases;
typedef struct kiln_canvas kiln_canvas;

/* Returns the bytes of a canvas of so many pixels, float RGBA. */
uint64_t kiln_canvas_bytes(uint64_t pixels);
/* Makes a set of at most `most` canvases, 1 to KILN_CANVASES_MAX. device: number of the GPU that
 * copies into them, or KILN_RUNNER_CPU. KILN_E_NOMEM. */
kiln_status kiln_canvases_new(int device, uint64_t pixels, unsigned most, kiln_canvases **out,
                              kiln_error *err) KILN_MUST_CHECK;
/* Waits until all canvases are given back, then frees the set. NULL: does nothing. */
void kiln_canvases_free(kiln_canvases *c);
/* Says whether the set was made with these numbers; false for NULL. */
bool kiln_canvases_are(const kiln_canvases *c, uint64_t pixels, unsigned most);
/* Returns the bytes of all canvases that the set may make; NULL: 0. */
uint64_t kiln_canvases_bytes(const kiln_canvases *c);
/* Takes a canvas; waits until one is free. KILN_E_NOMEM: there is no memory for even one. */
kiln_status kiln_canvas_take(kiln_canvases *c, kiln_canvas **out, kiln_error *err) KILN_MUST_CHECK;
/* Gives a canvas back, on any thread. NULL: does nothing. */
void kiln_canvas_give(kiln_canvas *canvas);
/* Returns the pixels, valid while the canvas is taken. */
float *kiln_canvas_pixels(const kiln_canvas *canvas);

#endif
