/* absolute_paths -- paths that a camera file gives as they were on the machine that wrote it:
 * /home/me/cap/images/a.png, D:\cap\images\a.png. They are never opened as they stand: a file from
 * somebody else would choose what is read. What counts are their last parts: what follows the
 * folder that all photos of the file share.
 */
#ifndef KILN_STAGES_CAMERAS_ABSOLUTE_PATHS_H
#define KILN_STAGES_CAMERAS_ABSOLUTE_PATHS_H

#include <stdbool.h>
#include <stddef.h>

/* Begins with a slash or with a drive's letter; backslashes are slashes already. */
bool kiln_path_is_absolute(const char *path);
/* Shortens `common`, a folder with its slash at the end, to what it shares with the path's folder;
 * "" before the first path. */
void kiln_common_folder(char *common, size_t capacity, const char *path);
/* The end of an absolute path, as a name in a data set: what follows `common`, with the folder
 * before where that is an image folder (images, images_N) or `with_folder`. */
const char *kiln_path_end(const char *path, const char *common, bool with_folder);
/* The end that begins with the last folder whose name begins with `word`; else the last two
 * parts. */
const char *kiln_path_end_from(const char *path, const char *word);

#endif
