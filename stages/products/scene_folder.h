/* scene_folder -- a folder that holds somebody's scene: what is put into it without a name of its
 * own could be taken for that scene by the next import. */
#ifndef KILN_STAGES_PRODUCTS_SCENE_FOLDER_H
#define KILN_STAGES_PRODUCTS_SCENE_FOLDER_H

#include "base/status.h"

#include <stdbool.h>

enum { KILN_SCENE_FOUND = 256 };

/* Says whether `folder` holds cameras, photos, a bake or a PLY of another program, and names one of
 * them. manifest: of the bake that is written from, whose own folder holds no scene by it; NULL:
 * there is none. */
bool kiln_folder_holds_scene(const char *folder, const char *manifest,
                             char found[KILN_SCENE_FOUND]);
/* KILN_E_USAGE with a name to give instead. found: of kiln_folder_holds_scene; what: is to be
 * written, "file" or "folder"; give: such a name. */
kiln_status kiln_refuse_scene_folder(const char *folder, const char *found, const char *what,
                                     const char *give, kiln_error *err) KILN_MUST_CHECK;

#endif
