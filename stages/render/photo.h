/* photo -- a camera's photo, as it is to be compared with its picture: whole, and of the camera's size. A photo that is not, or not
 * there, costs its camera the metric and nothing else; its state is kept, so that a later run looks at it again once it has
 * changed. */
#ifndef KILN_STAGES_RENDER_PHOTO_H
#define KILN_STAGES_RENDER_PHOTO_H

#include "stages/render/render_units.h"

#include <jansson.h>

enum { KILN_PHOTO_DAMAGE = 1024 };

typedef struct {
    kiln_picture rgb;               /* over the background; no data where damage says something */
    bool cut_out;                   /* some of it shows the background that it was put over */
    char damage[KILN_PHOTO_DAMAGE]; /* what is wrong, with the file's name; "": nothing */
} kiln_photo;

/* KILN_E_NOMEM, and KILN_E_INPUT for a whole photo that is not the one that import hashed. kiln_photo_release in any case. Never
 * waits: what is no regular file is damaged. */
kiln_status kiln_photo_read(const kiln_render_unit *u, kiln_photo *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_photo_release(kiln_photo *p);

/* Size, time and inode of a file, or null where there is none: for the counters of a unit whose photo is damaged. NULL: no memory.
 */
json_t *kiln_photo_state(const char *path);
/* Is the file still as `state` describes it? */
bool kiln_photo_state_is(const json_t *state, const char *path);

#endif
