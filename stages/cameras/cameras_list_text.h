/* cameras_list_text -- writes cameras as the JSON list that cameras_list.c reads: --cameras of
 * kiln-render and kiln-import. */
#ifndef KILN_STAGES_CAMERAS_CAMERAS_LIST_TEXT_H
#define KILN_STAGES_CAMERAS_CAMERAS_LIST_TEXT_H

#include "base/memory.h"
#include "kernels/similarity/similarity.h"
#include "schema/manifest.h"

/* Appends the list of n cameras to `out`, a camera a line, in their order, and a NUL. move: how
 * import moved the scene; what is written are the places before, because whoever reads the list
 * moves them again. Numbers have all the digits that give the same double again. A camera with a
 * lens is written as the pinhole that is drawn. KILN_E_NOMEM. */
kiln_status kiln_cameras_list_text(const kiln_camera *cameras, uint32_t n,
                                   const kiln_similarity *move, kiln_buffer *out,
                                   kiln_error *err) KILN_MUST_CHECK;

#endif
