/* picture_targets -- whether the files of a run may be written, asked before anything is drawn, and
 * the list of them in the manifest. In the parent. */
#ifndef KILN_STAGES_RENDER_PICTURE_TARGETS_H
#define KILN_STAGES_RENDER_PICTURE_TARGETS_H

#include "stages/render/render_plan.h"

/* Asks for the files of all pictures that are due (product_guard.h), and notes in their jobs what
 * stands there. KILN_E_USAGE: one of them may not be replaced. */
kiln_status kiln_picture_targets_check(kiln_run *r, kiln_render_plan *s,
                                       kiln_error *err) KILN_MUST_CHECK;
/* Asks for the file of a video or of a stream of frames. */
kiln_status kiln_picture_targets_check_stream(kiln_run *r, kiln_render_plan *s,
                                              kiln_error *err) KILN_MUST_CHECK;
/* Lists the files of the pictures that are due as begun. Inside the transaction that decides what
 * is due; does nothing in a run that stores nothing. */
kiln_status kiln_picture_targets_begin(kiln_run *r, const kiln_render_plan *s,
                                       kiln_error *err) KILN_MUST_CHECK;
/* Lists the files of all pictures as those of the current output; others of this stage are
 * superseded. In the last transaction, before the rows of images are replaced. */
kiln_status kiln_picture_targets_put(kiln_run *r, kiln_manifest *m, const kiln_render_plan *s,
                                     kiln_error *err) KILN_MUST_CHECK;

#endif
