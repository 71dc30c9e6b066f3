/* photo -- reads a camera's photo for the comparison with its picture. The photo must be whole and
 * of the camera's size. If it is damaged, missing or of another size, only the camera's metric is
 * lost. The file's state is then kept, so that a later run tries again when the file has changed.
 * The photo of a camera with a lens is read in its own size, then undistorted. */
#ifndef KILN_STAGES_RENDER_PHOTO_H
#define KILN_STAGES_RENDER_PHOTO_H

#include "stages/render/render_units.h"

#include <jansson.h>

enum { KILN_PHOTO_DAMAGE = 1024 };

typedef struct {
    kiln_picture rgb;               /* over the background; without data if `damage` is not "" */
    uint8_t *mask;                  /* [height][width], 0: left out; NULL: nothing is; owned */
    bool cut_out;                   /* the photo has alpha, so that the background shows in it */
    char damage[KILN_PHOTO_DAMAGE]; /* what is wrong, with the file's name; "": nothing is */
} kiln_photo;

/* Reads the unit's photo. A damaged one is no failure. It never waits: what is no regular file
 * counts as damaged. Release also after a failure. KILN_E_NOMEM. KILN_E_INPUT: a whole photo that
 * is not the one that import hashed. */
kiln_status kiln_photo_read(const kiln_render_unit *u, kiln_photo *out,
                            kiln_error *err) KILN_MUST_CHECK;
void kiln_photo_release(kiln_photo *p);

/* Warps what was read, with its mask, to the unit's pinhole. If nothing of it counts then, it is
 * damaged; without a lens not to be called. KILN_E_NOMEM, KILN_E_CAP, KILN_E_DEVICE. */
kiln_status kiln_photo_undistort(kiln_worker *w, const kiln_render_unit *u, kiln_photo *p,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Returns the arguments of that operation, without arrays. */
kiln_undistort_args kiln_photo_undistortion(const kiln_render_unit *u);

/* Describes a file by size, time and inode, for the counters of a unit whose photo is damaged;
 * JSON's null if there is no file. NULL: no memory. */
json_t *kiln_photo_state(const char *path);
/* Says whether the file is still as `state` describes it. */
bool kiln_photo_state_is(const json_t *state, const char *path);

#endif
