/* viewer_files -- the files of the installed viewer, read once when the server starts, as answers:
 * a name in a request is compared with this list and never reaches the file system. */
#ifndef KILN_STAGES_SERVE_VIEWER_FILES_H
#define KILN_STAGES_SERVE_VIEWER_FILES_H

#include "stages/serve/answer.h"

enum { KILN_VIEWER_FILES_MAX = 32, KILN_VIEWER_NAME_MAX = 64 };

typedef struct {
    bool installed;
    kiln_answer *page; /* of the address itself: the viewer's, or a redirect to the report */
    struct {
        char name[KILN_VIEWER_NAME_MAX];
        kiln_answer *answer;
    } files[KILN_VIEWER_FILES_MAX];
    uint32_t n;
} kiln_viewer_files;

/* Reads them, or makes the redirect if the viewer is not installed. KILN_E_IO, KILN_E_NOMEM.
 * Release also after a failure. */
kiln_status kiln_viewer_files_load(kiln_answer_pool *pool, kiln_viewer_files *out,
                                   kiln_error *err) KILN_MUST_CHECK;
void kiln_viewer_files_release(kiln_viewer_files *v);
/* The answer for a path behind the token, "" or viewer/NAME; borrowed. NULL: it is none of
 * these. */
kiln_answer *kiln_viewer_files_find(const kiln_viewer_files *v, const char *path);

#endif
