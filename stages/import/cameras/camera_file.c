/* camera_file -- the list of cameras under construction: room, names, notes, the split. */
#include "stages/import/cameras/camera_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What a photo may be called; the first six are those that we read. */
static const char *const extensions[] = {"png",  "jpg",  "jpeg", "bmp", "gif",  "tga",  "tif",
                                         "tiff", "webp", "exr",  "ppm", "heic", "avif", "dng"};

kiln_status kiln_grow(void **array, uint32_t n, size_t elem, const char *what, kiln_error *err)
{
    if (n & (n - 1)) return KILN_OK;
    const size_t room = n ? (size_t)n * 2 : 1;
    void *p = n > UINT32_MAX / 2 ? NULL : realloc(*array, room * elem);
    if (!p) return kiln_fail(err, KILN_E_NOMEM, "no memory for %zu %s", room, what);
    *array = p;
    return KILN_OK;
}

kiln_status kiln_dataset_add_camera(kiln_dataset *d, const kiln_camera *c, kiln_error *err)
{
    KILN_TRY(kiln_grow((void **)&d->cameras, d->n_cameras, sizeof *c, "cameras", err));
    kiln_camera *to = &d->cameras[d->n_cameras];
    *to = *c;
    KILN_TRY(kiln_texts_add(&d->texts, c->name, &to->name, err));
    KILN_TRY(kiln_texts_add(&d->texts, c->photo, &to->photo, err));
    KILN_TRY(kiln_texts_add(&d->texts, c->mask, &to->mask, err));
    d->n_cameras++;
    return KILN_OK;
}

kiln_status kiln_dataset_add_source(kiln_dataset *d, const char *path, const char *role, kiln_error *err)
{
    kiln_file_info info;
    KILN_TRY(kiln_file_stat(path, &info, err));
    KILN_TRY(kiln_grow((void **)&d->sources, d->n_sources, sizeof *d->sources, "source files", err));
    kiln_source_file *s = &d->sources[d->n_sources];
    *s = (kiln_source_file){.size = info.size, .mtime_ns = info.mtime_ns, .inode = info.inode};
    snprintf(s->role, sizeof s->role, "%s", role);
    KILN_TRY(kiln_texts_add(&d->texts, path, &s->path, err));
    d->n_sources++;
    return KILN_OK;
}

static void append_line(char *lines, size_t room, const char *sentence)
{
    const size_t used = strlen(lines);
    if (used + strlen(sentence) + 2 > room) return;
    snprintf(lines + used, room - used, "%s%s", used ? "\n" : "", sentence);
}

void kiln_dataset_note(kiln_dataset *d, const char *fmt, ...)
{
    char sentence[1024];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    if (n >= 0) append_line(d->notes, sizeof d->notes, sentence);
}

void kiln_dataset_note_meaning(kiln_dataset *d, const char *fmt, ...)
{
    char sentence[1024];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    if (n < 0) return;
    append_line(d->notes, sizeof d->notes, sentence);
    append_line(d->meaning, sizeof d->meaning, sentence);
}

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

kiln_status kiln_camera_set_name(kiln_camera_file *f, kiln_camera *c, const char *given, kiln_photo_path *p, const char *who,
                                 kiln_error *err)
{
    const char *why = NULL;
    while (given[0] == '.' && given[1] == '/') given += 2 + strspn(given + 2, "/");
    if (!kiln_name_is_safe(given, &why))
        return kiln_fail(err, KILN_E_INPUT, "'%s': the photo's name of %s is refused: %s", f->path, who, why);
    p->full[0] = '\0';
    snprintf(p->path, sizeof p->path, "%s", given);
    p->after_folder = image_folder_length(f, given);
    p->stem = kiln_photo_stem(given);
    if (p->stem <= p->after_folder || given[p->stem - 1] == '/')
        return kiln_fail(err, KILN_E_INPUT, "'%s': %s cannot be named after its photo '%.200s'", f->path, who, given);
    snprintf(p->name, sizeof p->name, "%.*s", (int)(p->stem - p->after_folder), given + p->after_folder);
    c->name = p->name;
    return KILN_OK;
}

static int by_name(const void *a, const void *b) { return strcmp(((const kiln_camera *)a)->name, ((const kiln_camera *)b)->name); }

static int by_path(const void *a, const void *b)
{
    return strcmp(((const kiln_source_file *)a)->path, ((const kiln_source_file *)b)->path);
}

kiln_status kiln_dataset_finish_cameras(kiln_dataset *d, kiln_error *err)
{
    if (d->n_cameras) qsort(d->cameras, d->n_cameras, sizeof *d->cameras, by_name);
    for (uint32_t i = 1; i < d->n_cameras; i++)
        if (strcmp(d->cameras[i - 1].name, d->cameras[i].name) == 0)
            return kiln_fail(err, KILN_E_INPUT, "the camera name '%.300s' occurs twice; two photos need different names",
                             d->cameras[i].name);
    KILN_TRY(kiln_split_cameras(d, err));
    if (d->n_sources) qsort(d->sources, d->n_sources, sizeof *d->sources, by_path);
    return KILN_OK;
}
