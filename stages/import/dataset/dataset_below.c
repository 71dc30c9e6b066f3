/* dataset_below -- files of Gaussians in the folders of a directory, where trainers write them:
 * results/ply, exports/splat, outputs.
 *
 * Three folders down and no farther, because a folder of many scenes is no scene. Links to folders
 * are not followed: they may lead anywhere, or back. Scenes of many files (SOG's JSON, glTF) are
 * not sought: folders hold meshes and tiles that are parts of others.
 */
#include "stages/cameras/camera_file.h"
#include "stages/import/dataset/dataset_search.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { DEEPEST = 3, FOLDERS_MAX = 1000, ENTRIES_MAX = 100000, FOUND_MAX = 1024 };

typedef struct {
    kiln_search *s;
    uint32_t n_folders, n_entries, first;
} descent;

static bool is_of_one_file(const char *name)
{
    const char *suffix = kiln_path_suffix(name);
    return kiln_search_is_candidate(name) && strcasecmp(suffix, "glb") != 0 &&
           strcasecmp(suffix, "gltf") != 0;
}

static bool is_own_folder(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static kiln_status descend(descent *x, const char *folder, int depth, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    kiln_status st = KILN_OK;
    /* one that may not be read holds nothing for us */
    DIR *d = x->n_folders++ < FOLDERS_MAX ? opendir(folder) : NULL;
    if (!d) return KILN_OK;
    for (const struct dirent *e;
         st == KILN_OK && (e = readdir(d)) && x->n_entries++ < ENTRIES_MAX;) {
        const int n = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] == '.' || n < 0 || (size_t)n >= sizeof path) continue;
        if (depth > 0 && is_of_one_file(e->d_name) && kiln_is_file(path) &&
            x->s->n_files - x->first < FOUND_MAX)
            st = kiln_search_add_file(x->s, path, 0, err);
        else if (depth < DEEPEST && is_own_folder(path) && kiln_may_look_into(path, x->s->avoid))
            st = descend(x, path, depth + 1, err);
    }
    closedir(d); /* opened for reading: nothing to lose */
    return st;
}

kiln_status kiln_search_below(kiln_search *s, kiln_error *err)
{
    descent x = {.s = s, .first = s->n_files};
    return descend(&x, s->d->set.root, 0, err);
}
