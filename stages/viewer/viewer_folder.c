/* viewer_folder -- see the header. */
#include "stages/viewer/viewer_folder.h"

#include "base/own_program.h"

#include <stdlib.h>

enum { FILE_MAX = 16 << 20 };

static kiln_status folder_of_viewer(char out[KILN_PATH_MAX], kiln_error *err)
{
    char folder[KILN_PATH_MAX];
    const char *given = getenv("KILN_VIEWER");
    if (given && given[0]) return kiln_path_join(out, KILN_PATH_MAX, given, "", err);
    KILN_TRY(kiln_own_folder(folder, err));
    return kiln_path_join(out, KILN_PATH_MAX, folder, "../share/splatkiln/viewer", err);
}

kiln_status kiln_viewer_path(const char *name, char out[KILN_PATH_MAX], kiln_error *err)
{
    char folder[KILN_PATH_MAX];
    KILN_TRY(folder_of_viewer(folder, err));
    return kiln_path_join(out, KILN_PATH_MAX, folder, name ? name : "", err);
}

kiln_status kiln_viewer_read(const char *name, char **text, size_t *size, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    *text = NULL;
    KILN_TRY(kiln_viewer_path(name, path, err));
    if (!kiln_is_file(path))
        return kiln_fail(err, KILN_E_INPUT,
                         "the viewer is not installed: '%s' does not exist; `make viewer` in "
                         "SplatKiln's sources makes it, with npm",
                         path);
    return kiln_file_read(path, FILE_MAX, (unsigned char **)text, size, err);
}
