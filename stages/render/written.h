/* written -- describes a picture's file as its unit has written it. The description is kept in the
 * unit's counters. A later run with other options, or with --camera, may overwrite the file. The
 * first unit then no longer counts as done, because its picture is gone. */
#ifndef KILN_STAGES_RENDER_WRITTEN_H
#define KILN_STAGES_RENDER_WRITTEN_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>

/* Describes a file as {"size": ., "mtime_ns": ., "hash": "."}, a new reference. KILN_E_IO: the file
 * cannot be read. KILN_E_NOMEM.
 */
kiln_status kiln_written_describe(const char *path, json_t **out, kiln_error *err) KILN_MUST_CHECK;
/* Says whether the file still has the described content. Equal size and time are enough; if the
 * time differs, as in a copy of the bake, the content is hashed. False if the file is gone or a
 * link, or `described` is NULL. */
bool kiln_written_is_intact(const json_t *described, const char *path);
/* Asks a network file system anew what the folder of this path holds, since it may remember that a
 * file was not there. "": nothing.
 */
void kiln_written_look_again(const char *path);

#endif
