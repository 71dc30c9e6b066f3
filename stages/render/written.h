/* written -- what a picture's file was when its unit had written it, kept in the unit's counters. A run with other options
 * or of --camera may write over the file since; whoever asks for the first picture again must not find its unit done. */
#ifndef KILN_STAGES_RENDER_WRITTEN_H
#define KILN_STAGES_RENDER_WRITTEN_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>

/* A new reference to {"size": ., "mtime_ns": ., "hash": "."} of a file. */
kiln_status kiln_written_describe(const char *path, json_t **out, kiln_error *err) KILN_MUST_CHECK;
/* Does the file still hold what was described? Its size and time say so, else, as in a copy of the bake, its content.
 * false too where it is gone or nothing was described (NULL). */
bool kiln_written_is_intact(const json_t *described, const char *path);

#endif
