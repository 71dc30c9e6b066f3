/* loss -- what a written file has lost: it is read again by its format's reader, and drawn beside
 * the rows that were to be written. Of a format with levels that are the finest rows: the leaves of
 * a RAD (rad_read.h), the GLBs of 3D Tiles with nothing below them.
 *
 * dB is the PSNR of the float pictures over the scene's background, RGB, clamped to 0 .. 1 (DESIGN
 * of render), in the profile that render stores for the bake, else inria, with the scene's
 * antialiased flag on both sides.
 */
#ifndef KILN_STAGES_EXPORT_LOSS_H
#define KILN_STAGES_EXPORT_LOSS_H

#include "stages/formats/writer.h"

/* What is asked for, and, filled by the parent's side, what came of it. */
typedef struct {
    uint32_t most;   /* cameras to draw; evenly among those of the bake, by name */
    double min_psnr; /* NAN: none is asked for */
    kiln_camera *cameras;
    kiln_texts names; /* theirs */
    double *psnr;     /* [n]; INFINITY: the pictures are equal */
    uint32_t n;
} kiln_loss;
void kiln_loss_release(kiln_loss *l);

/* Fills l->cameras and the plan of the round. f: of the format, which has a reader. spool: path of
 * an empty scratch file. KILN_E_INPUT: the bake has no cameras. */
kiln_status kiln_loss_plan(kiln_manifest *m, const kiln_export *e, const kiln_writer_functions *f,
                           const char *spool, kiln_loss *l, kiln_buffer *plan,
                           kiln_error *err) KILN_MUST_CHECK;
/* The unit. Its result is [n] double. */
kiln_status kiln_loss_measure(kiln_export_worker *x, kiln_error *err) KILN_MUST_CHECK;
/* What the unit takes at most, by the round's plan, unless one row of tiles has more than
 * KILN_BAND_PAIRS pairs: it asks for that when it has counted them. */
uint64_t kiln_loss_ram(const kiln_export *e);
/* The same before anything is written, and the bytes of the round's plan. As kiln_cameras_each. */
kiln_status kiln_loss_foresee(kiln_manifest *m, const kiln_export *e,
                              const kiln_writer_functions *f, const kiln_loss *l, uint64_t *ram,
                              uint64_t *plan_bytes, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_loss_take(kiln_loss *l, const void *result, size_t bytes,
                           kiln_error *err) KILN_MUST_CHECK;

#endif
