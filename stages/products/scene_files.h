/* scene_files -- which files and folders belong to the scene that was imported, as it was imported
 * and as it is now.
 *
 * A file belongs to the scene by its path, though it was trained again and has another size, time
 * and inode; by its inode, whatever name leads to it: a hard link, a symbolic link, other letter
 * case; and, if it was moved since, by its inode together with its size and time. Inodes alone say
 * nothing of a file that is gone: file systems give its number to the next one.
 *
 * Folders are known too, because import looks a photo up by its name without the suffix: a new
 * a.png beside a.jpg would be measured against at the next import. */
#ifndef KILN_STAGES_PRODUCTS_SCENE_FILES_H
#define KILN_STAGES_PRODUCTS_SCENE_FILES_H

#include "schema/manifest.h"

#include <sys/stat.h>

typedef struct kiln_scene_files kiln_scene_files;

/* m NULL: nothing is imported. Costs about 100 bytes for a source file, and one look at each
 * folder. */
kiln_status kiln_scene_files_open(kiln_manifest *m, kiln_scene_files **out,
                                  kiln_error *err) KILN_MUST_CHECK;
void kiln_scene_files_close(kiln_scene_files *s); /* accepts NULL */

/* Says whether the regular file `f`, found at FOLDER/NAME, is one of the scene's. folder: the real
 * one. */
bool kiln_scene_files_has(const kiln_scene_files *s, const char *folder, const char *name,
                          const struct stat *f);

/* Says whether a file of the scene, as the manifest names it, lies in this real folder or below
 * it. */
bool kiln_scene_files_below(const kiln_scene_files *s, const char *folder);

typedef enum {
    KILN_FOLDER_OTHER,
    KILN_FOLDER_OF_CAMERAS, /* files of cameras lie in it, and no photo */
    KILN_FOLDER_OF_PHOTOS,  /* photos or masks lie in it */
    /* it lies below such a folder, or below the one that photos' names begin in */
    KILN_FOLDER_IN_PHOTOS,
} kiln_scene_folder;
/* What a real folder is to the scene. Folders of the bake are none of the scene's, though the bake
 * lies in one. */
kiln_scene_folder kiln_scene_files_folder(const kiln_scene_files *s, const char *folder);

/* Says whether import looks for photos or masks at FOLDER: images, images_2, masks and their like
 * beside a file of cameras, or below the folder above its folder (COLMAP's sparse/0), whether it is
 * there or not. folder: real, or what would be. */
bool kiln_scene_files_seeks_photos(const kiln_scene_files *s, const char *folder);
/* The name of the camera that a picture of this real path would become the photo of, without its
 * suffix, if import looks for one there: relative to the n-th of the folders from which photos are
 * sought; NULL behind the last. */
const char *kiln_scene_files_camera_at(const kiln_scene_files *s, const char *path, uint32_t n);

#endif
