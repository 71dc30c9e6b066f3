/* camera_file -- the list of cameras under construction: room, names, notes, the split. */
#include "stages/cameras/camera_file.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* What a photo may be called; the first six are those that we read. */
static const char *const extensions[] = {"png",  "jpg",  "jpeg", "bmp", "gif",  "tga",  "tif",
                                         "tiff", "webp", "exr",  "ppm", "heic", "avif", "dng"};

/* "images", "images_2", or what the file itself calls its image folder. */
static size_t image_folder_length(const kiln_camera_file *f, const char *path)
{
    const char *slash = strchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) : 0;
    if (!slash) return 0;
    if (strlen(f->images) == n && memcmp(path, f->images, n) == 0) return n + 1;
    if (n < 6 || memcmp(path, "images", 6) != 0) return 0;
    if (n == 6) return n + 1;
    return path[6] == '_' && n > 7 && strspn(path + 7, "0123456789") == n - 7 ? n + 1 : 0;
}

size_t kiln_photo_stem(const char *path)
{
    const char *suffix = kiln_path_suffix(path);
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
        if (strcasecmp(suffix, extensions[i]) == 0) return (size_t)(suffix - 1 - path);
    return strlen(path);
}

kiln_status kiln_camera_take_name(kiln_camera_file *f, kiln_camera *c, const char *given,
                                  kiln_photo_path *p, const char *who, kiln_error *err)
{
    const char *why = NULL;
    while (given[0] == '.' && given[1] == '/') given += 2 + strspn(given + 2, "/");
    if (!kiln_name_is_safe(given, &why))
        return kiln_fail(err, KILN_E_INPUT, "'%s': the photo's name of %s is refused: %s", f->path,
                         who, why);
    p->full[0] = '\0';
    snprintf(p->path, sizeof p->path, "%s", given);
    p->after_folder = image_folder_length(f, given);
    p->stem = kiln_photo_stem(given);
    if (p->stem <= p->after_folder || given[p->stem - 1] == '/')
        return kiln_fail(err, KILN_E_INPUT, "'%s': %s cannot be named after its photo '%.200s'",
                         f->path, who, given);
    snprintf(p->name, sizeof p->name, "%.*s", (int)(p->stem - p->after_folder),
             given + p->after_folder);
    c->name = p->name;
    return KILN_OK;
}
