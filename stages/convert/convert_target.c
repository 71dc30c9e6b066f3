/* convert_target -- see the header. */
#include "stages/convert/convert_target.h"

#include "base/file.h"
#include "stages/files/packing.h"
#include "stages/products/scene_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool kiln_convert_is_folder(const char *out) { return !kiln_path_base(out)[0] || kiln_is_dir(out); }

/* ---- its name -------------------------------------------------------------------------------- */

/* What files are called that are made of this one: guitar of a/guitar.compressed.ply, tower of the
 * folder tower/. */
static void name_of_input(const char *first, char out[KILN_PATH_MAX])
{
    char name[KILN_PATH_MAX];
    char *const real = kiln_is_dir(first) ? realpath(first, NULL) : NULL;
    const char *const path = real ? real : first;
    const size_t n = real ? strlen(real) : kiln_scene_stem(first, name);
    const size_t base = (size_t)(kiln_path_base(path) - path);
    (void)snprintf(out, KILN_PATH_MAX, "%.*s", (int)(n - base), path + base);
    free(real);
    if (!out[0] || strcmp(first, "-") == 0) (void)snprintf(out, KILN_PATH_MAX, "scene");
}

/* scene.v4.spz is the default name of a format: its files end in .v4.spz. */
static kiln_status name_in_folder(const char *out, const char *first, const kiln_writer *w,
                                  char target[KILN_PATH_MAX], kiln_error *err)
{
    char stem[KILN_PATH_MAX], name[KILN_PATH_MAX];
    name_of_input(first, stem);
    if (snprintf(name, sizeof name, "%s%s", stem, strchr(w->default_name, '.')) >= (int)sizeof name)
        return kiln_fail(err, KILN_E_USAGE, "the path '%.60s...' is too long", stem);
    return kiln_path_join(target, KILN_PATH_MAX, out, name, err);
}

kiln_status kiln_convert_target(const char *out, const char *first, const kiln_writer *w,
                                char target[KILN_PATH_MAX], kiln_error *err)
{
    const bool one_file = w->functions->place == KILN_PLACE_FILE;
    if (kiln_convert_is_folder(out) && one_file) return name_in_folder(out, first, w, target, err);
    (void)snprintf(target, KILN_PATH_MAX, "%s", out);
    for (size_t n = strlen(target); n > 1 && target[n - 1] == '/';) target[--n] = '\0';
    if (one_file || !kiln_is_dir(target)) return KILN_OK;
    char *real = realpath(target, NULL);
    if (!real) return kiln_fail(err, KILN_E_IO, "cannot open '%s': %s", target, strerror(errno));
    (void)snprintf(target, KILN_PATH_MAX, "%s", real);
    free(real);
    return KILN_OK;
}

/* ---- a folder that is somebody's scene ------------------------------------------------------- */

kiln_status kiln_convert_refuse_scene(const char *out, const char *target, const kiln_writer *w,
                                      kiln_error *err)
{
    char found[KILN_SCENE_FOUND], give[KILN_PATH_MAX];
    const bool one_file = w->functions->place == KILN_PLACE_FILE;
    if (!kiln_folder_holds_scene(out, NULL, found)) return KILN_OK;
    (void)snprintf(give, sizeof give, "%s", target);
    if (!one_file) KILN_TRY(kiln_path_join(give, sizeof give, out, w->default_name, err));
    return kiln_refuse_scene_folder(out, found, one_file ? "file" : "folder", give, err);
}
