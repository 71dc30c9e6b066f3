/* scene_folder -- see the header. */
#include "stages/products/scene_folder.h"

#include "base/file.h"
#include "stages/products/product_mark.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static bool is_manifest(const char *path, const char *manifest)
{
    struct stat one, other;
    return manifest && stat(path, &one) == 0 && stat(manifest, &other) == 0 &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* A PLY that SplatKiln wrote is what an earlier run put there. */
static bool is_of_scene(const char *folder, const char *name, const char *manifest)
{
    static const char *const names[] = {
        "cameras.json", "transforms.json", "train_cameras.json", "images",      "input",
        "sparse",       "colmap",          "point_cloud",        "manifest.db", "bake"};
    char path[KILN_PATH_MAX];
    if (kiln_path_join(path, sizeof path, folder, name, NULL) != KILN_OK) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return !is_manifest(path, manifest);
    return strcasecmp(kiln_path_suffix(name), "ply") == 0 && !kiln_product_was_written(path);
}

bool kiln_folder_holds_scene(const char *folder, const char *manifest, char found[KILN_SCENE_FOUND])
{
    DIR *const entries = opendir(folder);
    found[0] = '\0';
    if (!entries) return false;
    for (const struct dirent *e = readdir(entries); e && !found[0]; e = readdir(entries))
        if (is_of_scene(folder, e->d_name, manifest))
            (void)snprintf(found, KILN_SCENE_FOUND, "%s", e->d_name);
    (void)closedir(entries);
    return found[0] != '\0';
}

kiln_status kiln_refuse_scene_folder(const char *folder, const char *found, const char *what,
                                     const char *give, kiln_error *err)
{
    return kiln_fail(err, KILN_E_USAGE,
                     "the folder '%.1200s' holds a scene ('%s'); name the %s that is to be "
                     "written, such as '%.1200s'",
                     folder, found, what, give);
}
