#include "stages/knn/tracks.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int sources_by_path(const void *a, const void *b)
{
    return strcmp(((const kiln_source_file *)a)->path, ((const kiln_source_file *)b)->path);
}

static int track_cameras_by_name(const void *a, const void *b)
{
    return strcmp(((const kiln_camera *)a)->name, ((const kiln_camera *)b)->name);
}

static const kiln_source_file *find_source(const kiln_tracks *t, const char *path)
{
    /* not bsearch: a key would be a whole kiln_source_file */
    for (uint32_t lo = 0, hi = t->n_sources; lo < hi;) {
        const uint32_t middle = lo + (hi - lo) / 2;
        const int order = strcmp(path, t->sources[middle].path);
        if (order == 0) return &t->sources[middle];
        if (order < 0)
            hi = middle;
        else
            lo = middle + 1;
    }
    return NULL;
}

static const kiln_source_file *part_of_model(const kiln_tracks *t, const char *part)
{
    char path[KILN_PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/%s.%s", t->folder, part, t->suffix);
    const kiln_source_file *f = n > 0 && (size_t)n < sizeof path ? find_source(t, path) : NULL;
    return f && strcmp(f->role, "cameras") == 0 ? f : NULL;
}

kiln_status kiln_tracks_get(kiln_manifest *m, const kiln_scene *s, kiln_tracks *t, kiln_error *err)
{
    memset(t, 0, sizeof *t);
    t->suffix = strcmp(s->source_format, "colmap-bin") == 0   ? "bin"
                : strcmp(s->source_format, "colmap-txt") == 0 ? "txt"
                                                              : NULL;
    t->colmap = t->suffix && s->kind == KILN_SCENE_POINTS;
    if (!t->colmap) return KILN_OK;
    snprintf(t->folder, sizeof t->folder, "%s", s->source_path);
    char *slash = strrchr(t->folder, '/');
    if (slash) *slash = '\0';
    KILN_TRY(kiln_cameras_get(m, &t->cameras, &t->n_cameras, err));
    KILN_TRY(kiln_sources_get(m, &t->sources, &t->n_sources, err));
    if (t->n_sources) qsort(t->sources, t->n_sources, sizeof *t->sources, sources_by_path);
    t->cameras_file = part_of_model(t, "cameras");
    t->images_file = part_of_model(t, "images");
    if (!t->cameras_file || !t->images_file) t->cameras_file = t->images_file = NULL;
    return KILN_OK;
}

void kiln_tracks_release(kiln_tracks *t)
{
    free(t->sources);
    free(t->cameras);
    memset(t, 0, sizeof *t);
}

void kiln_key_tracks(kiln_hasher *h, const kiln_tracks *t)
{
    if (!t->images_file) return;
    kiln_key_text(h, "encoding", t->suffix);
    kiln_key_hash(h, "cameras", t->cameras_file->hash);
    kiln_key_hash(h, "images", t->images_file->hash);
    for (uint32_t i = 0; i < t->n_cameras; i++) {
        const kiln_source_file *photo =
            t->cameras[i].photo[0] ? find_source(t, t->cameras[i].photo) : NULL;
        kiln_key_text(h, "camera", t->cameras[i].name);
        if (photo) kiln_key_hash(h, "photo", photo->hash);
        const kiln_source_file *mask =
            t->cameras[i].mask[0] ? find_source(t, t->cameras[i].mask) : NULL;
        if (mask) kiln_key_hash(h, "mask", mask->hash); /* without masks the key of before */
    }
}

const kiln_camera *kiln_tracks_camera(const kiln_tracks *t, const char *name)
{
    const kiln_camera key = {.name = name};
    return t->n_cameras ? bsearch(&key, t->cameras, t->n_cameras, sizeof key, track_cameras_by_name)
                        : NULL;
}

kiln_status kiln_tracks_check(const kiln_tracks *t, const char *path, kiln_error *err)
{
    const kiln_source_file *f = find_source(t, path);
    if (!f) return kiln_fail(err, KILN_E_BUG, "'%s' is not a source of the scene", path);
    const kiln_file_info then = {.size = f->size, .mtime_ns = f->mtime_ns, .inode = f->inode};
    return kiln_file_unchanged(path, &then, err);
}
