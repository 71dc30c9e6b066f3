/* move -- how a user moves a scene: --translate, --rotate, --scale, as options, as text for people,
 * and as a manifest stores it.
 *
 * Pure functions; any thread may call them. */
#ifndef KILN_STAGES_SELECT_MOVE_H
#define KILN_STAGES_SELECT_MOVE_H

#include "base/status.h"
#include "kernels/similarity/similarity.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* How rows are moved: x' = scale R x + translate, R = Rz Ry Rx of degrees about x, y and z
 * (kernels/similarity). */
typedef struct {
    double translate[3], rotate[3], scale;
} kiln_move;

/* What --scale takes. */
#define KILN_MOVE_SCALES "1e-9..1e9"
/* What --translate takes: farther away, double coordinates are coarser than scenes are. */
#define KILN_MOVE_PLACES "-1e12..1e12"

bool kiln_move_is_none(const kiln_move *m);
void kiln_similarity_of_move(const kiln_move *m, kiln_similarity *out);
enum { KILN_MOVE_TEXT = 160 };
/* "scale 2, rotate 0,90,0, translate 1,0,0", in the order in which they are done; what does nothing
 * is left out. */
void kiln_move_text(const kiln_move *m, char *out, size_t capacity);

/* Of the scene's transforms, a JSON array, the entry of a move: {"translate", "rotate", "scale"},
 * with "file" of one file alone. False: it is another one, as of a camera file. */
bool kiln_move_of_json(const json_t *o, kiln_move *out);
/* What such an array moved all by; the identity where it says nothing of that. Entries of single
 * files and of camera files do not count. KILN_E_NOMEM alone. */
kiln_status kiln_transforms_moves(const char *text, kiln_similarity *out,
                                  kiln_error *err) KILN_MUST_CHECK;

#endif
