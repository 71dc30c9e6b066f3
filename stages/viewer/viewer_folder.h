/* viewer_folder -- finds the viewer that `make viewer` has made: a page, a script, a style, the
 * licences of what is in the script.
 *
 * It lies in ../share/splatkiln/viewer, seen from the program's own folder, in a build folder and
 * where it is installed, or in the folder that KILN_VIEWER in the environment names. It is there
 * whole or not at all: viewer.js is written last. */
#ifndef KILN_STAGES_VIEWER_FOLDER_H
#define KILN_STAGES_VIEWER_FOLDER_H

#include "base/file.h"
#include "base/status.h"

#include <stddef.h>

#define KILN_VIEWER_SCRIPT "viewer.js"
#define KILN_VIEWER_STYLE "viewer.css"
#define KILN_VIEWER_PAGE "serve.html"

/* Writes the path of one of its files, or with NULL of the folder, whether it is there or not. */
kiln_status kiln_viewer_path(const char *name, char out[KILN_PATH_MAX],
                             kiln_error *err) KILN_MUST_CHECK;
/* Reads one of its files, at most 16 MiB; NUL-terminated behind *size, free(*text). KILN_E_INPUT:
 * the viewer is not installed; the sentence says how it is. */
kiln_status kiln_viewer_read(const char *name, char **text, size_t *size,
                             kiln_error *err) KILN_MUST_CHECK;

#endif
