/* camera_set -- see the header. */
#include "stages/cameras/camera_set.h"

#include "base/file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

kiln_status kiln_camera_set_add(kiln_camera_set *set, const kiln_camera *c, kiln_error *err)
{
    KILN_TRY(kiln_grow((void **)&set->cameras, set->n_cameras, sizeof *c, "cameras", err));
    kiln_camera *to = &set->cameras[set->n_cameras];
    *to = *c;
    KILN_TRY(kiln_texts_add(&set->texts, c->name, &to->name, err));
    KILN_TRY(kiln_texts_add(&set->texts, c->photo, &to->photo, err));
    KILN_TRY(kiln_texts_add(&set->texts, c->mask, &to->mask, err));
    set->n_cameras++;
    return KILN_OK;
}

kiln_status kiln_camera_set_add_source(kiln_camera_set *set, const char *path, const char *role,
                                       kiln_error *err)
{
    kiln_file_info info;
    KILN_TRY(kiln_file_stat(path, &info, err));
    KILN_TRY(kiln_grow((void **)&set->sources, set->n_sources, sizeof *set->sources, "source files",
                       err));
    kiln_source_file *s = &set->sources[set->n_sources];
    *s = (kiln_source_file){.size = info.size, .mtime_ns = info.mtime_ns, .inode = info.inode};
    snprintf(s->role, sizeof s->role, "%s", role);
    KILN_TRY(kiln_texts_add(&set->texts, path, &s->path, err));
    set->n_sources++;
    return KILN_OK;
}

kiln_status kiln_camera_set_add_finding(kiln_camera_set *set, const char *path, const char *role,
                                        bool used, const char *what, const char *why_not,
                                        kiln_error *err)
{
    KILN_TRY(kiln_grow((void **)&set->findings, set->n_findings, sizeof *set->findings, "findings",
                       err));
    kiln_finding *f = &set->findings[set->n_findings++];
    *f = (kiln_finding){.used = used};
    snprintf(f->path, sizeof f->path, "%s", path);
    snprintf(f->role, sizeof f->role, "%s", role);
    snprintf(f->what, sizeof f->what, "%s", what);
    snprintf(f->why_not, sizeof f->why_not, "%s", why_not);
    return KILN_OK;
}

static void append_line(char *lines, size_t capacity, const char *sentence)
{
    const size_t used = strlen(lines);
    if (used + strlen(sentence) + 2 > capacity) return;
    snprintf(lines + used, capacity - used, "%s%s", used ? "\n" : "", sentence);
}

void kiln_camera_set_note(kiln_camera_set *set, const char *fmt, ...)
{
    char sentence[1024];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    if (n >= 0) append_line(set->notes, sizeof set->notes, sentence);
}

void kiln_camera_set_note_meaning(kiln_camera_set *set, const char *fmt, ...)
{
    char sentence[1024];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    if (n < 0) return;
    append_line(set->notes, sizeof set->notes, sentence);
    append_line(set->meaning, sizeof set->meaning, sentence);
}

static int cameras_by_name(const void *a, const void *b)
{
    return strcmp(((const kiln_camera *)a)->name, ((const kiln_camera *)b)->name);
}

static int camera_sources_by_path(const void *a, const void *b)
{
    return strcmp(((const kiln_source_file *)a)->path, ((const kiln_source_file *)b)->path);
}

kiln_status kiln_camera_set_finish(kiln_camera_set *set, kiln_error *err)
{
    if (set->n_cameras) qsort(set->cameras, set->n_cameras, sizeof *set->cameras, cameras_by_name);
    for (uint32_t i = 1; i < set->n_cameras; i++)
        if (strcmp(set->cameras[i - 1].name, set->cameras[i].name) == 0)
            return kiln_fail(
                err, KILN_E_INPUT,
                "the camera name '%.300s' occurs twice; two photos need different names",
                set->cameras[i].name);
    KILN_TRY(kiln_split_cameras(set, err));
    if (set->n_sources)
        qsort(set->sources, set->n_sources, sizeof *set->sources, camera_sources_by_path);
    return KILN_OK;
}

const char *kiln_missing_next(const kiln_camera_set *set, const char *name)
{
    const char *all = (const char *)set->missing.data, *next = name ? name + strlen(name) + 1 : all;
    return all && next < all + set->missing.size ? next : NULL;
}

void kiln_camera_set_release(kiln_camera_set *set)
{
    free(set->cameras);
    free(set->sources);
    free(set->findings);
    kiln_texts_release(&set->texts);
    kiln_buffer_release(&set->missing);
    *set = (kiln_camera_set){0};
}
