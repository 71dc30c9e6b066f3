/* scene_files -- see the header. */
#include "stages/products/scene_files.h"

#include "base/file.h"
#include "base/memory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files are listed twice, by path and by inode; texts stand one behind the other. */
typedef struct {
    size_t path; /* in `texts` */
    uint64_t inode, size;
    int64_t mtime_ns;
    bool many; /* a photo or mask, of which there may be thousands */
} scene_file;

typedef struct {
    dev_t device;
    ino_t inode;
    kiln_scene_folder is;
    size_t path; /* as the manifest has it, in `texts` */
    bool root;   /* the folder that photos' names begin in; photos may lie below it alone */
} scene_folder;

enum { BASES_MAX = 12 };

struct kiln_scene_files {
    kiln_buffer texts;
    char *bases[BASES_MAX]; /* real paths of the folders from which import seeks photos */
    uint32_t n_bases;
    /* a scene that moved with its bake: from, to; "": it did not */
    char was[KILN_PATH_MAX], is[KILN_PATH_MAX];
    scene_file *files; /* [n] by path */
    uint32_t *by_inode;
    uint32_t n, capacity;
    scene_folder *folders;
    uint32_t n_folders, folder_capacity;
    struct stat bake; /* the manifest's folder */
    bool has_bake;
};

static const char *text_at(const kiln_scene_files *s, size_t at)
{
    return (const char *)s->texts.data + at;
}

/* ---- folders --------------------------------------------------------------------------------- */
static kiln_status add_text(kiln_scene_files *s, const char *text, size_t n, size_t *at,
                            kiln_error *err)
{
    *at = s->texts.size;
    KILN_TRY(kiln_buffer_put(&s->texts, text, n, err));
    return kiln_buffer_put(&s->texts, "", 1, err);
}

static scene_folder *folder_named(const kiln_scene_files *s, const char *path, size_t n, bool root)
{
    for (uint32_t i = s->n_folders; i-- > 0;) {
        const char *const known = text_at(s, s->folders[i].path);
        if (s->folders[i].root == root && strncmp(known, path, n) == 0 && known[n] == '\0')
            return &s->folders[i];
    }
    return NULL;
}

/* path[n]: without the slash at its end. A folder that is not there any more has no inode, and is
 * left out. */
static kiln_status add_folder(kiln_scene_files *s, const char *path, size_t n, kiln_scene_folder is,
                              bool root, kiln_error *err)
{
    struct stat info;
    char name[KILN_PATH_MAX];
    scene_folder *known = folder_named(s, path, n, root);
    if (known && is > known->is) known->is = is;
    if (known || n >= sizeof name) return KILN_OK;
    memcpy(name, path, n);
    name[n] = '\0';
    if (stat(n ? name : "/", &info) != 0) return KILN_OK;
    if (s->n_folders == s->folder_capacity) {
        const uint32_t capacity = s->folder_capacity ? 2 * s->folder_capacity : 16;
        scene_folder *more = realloc(s->folders, capacity * sizeof *more);
        if (!more)
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for the folders of the scene");
        s->folders = more;
        s->folder_capacity = capacity;
    }
    scene_folder *const f = &s->folders[s->n_folders++];
    *f = (scene_folder){.device = info.st_dev, .inode = info.st_ino, .is = is, .root = root};
    return add_text(s, path, n, &f->path, err);
}

static const scene_folder *folder_that_is(const kiln_scene_files *s, const struct stat *info,
                                          bool roots)
{
    const scene_folder *found = NULL;
    for (uint32_t i = 0; i < s->n_folders; i++) {
        const scene_folder *const f = &s->folders[i];
        if (f->device == info->st_dev && f->inode == info->st_ino && (roots || !f->root) &&
            (!found || f->is > found->is))
            found = f;
    }
    return found;
}

static bool is_bake(const kiln_scene_files *s, const struct stat *info)
{
    return s->has_bake && info->st_dev == s->bake.st_dev && info->st_ino == s->bake.st_ino;
}

kiln_scene_folder kiln_scene_files_folder(const kiln_scene_files *s, const char *folder)
{
    struct stat info;
    char path[KILN_PATH_MAX];
    const size_t n = strlen(folder);
    if (s->n_folders == 0 || n >= sizeof path || stat(folder, &info) != 0) return KILN_FOLDER_OTHER;
    const scene_folder *const own = folder_that_is(s, &info, false);
    if (own) return own->is;
    if (folder_that_is(s, &info, true) && !is_bake(s, &info)) return KILN_FOLDER_IN_PHOTOS;
    memcpy(path, folder, n + 1);
    while (!is_bake(s, &info)) { /* above the bake's own folder lies whatever the bake lies in */
        char *const slash = strrchr(path, '/');
        if (!slash || slash == path) return KILN_FOLDER_OTHER;
        *slash = '\0';
        if (stat(path, &info) != 0) return KILN_FOLDER_OTHER;
        const scene_folder *const above = is_bake(s, &info) ? NULL : folder_that_is(s, &info, true);
        if (above && (above->root || above->is == KILN_FOLDER_OF_PHOTOS))
            return KILN_FOLDER_IN_PHOTOS;
    }
    return KILN_FOLDER_OTHER;
}

/* ---- where photos are sought ----------------------------------------------------------------- */
static void add_base(kiln_scene_files *s, const char *folder)
{
    char *const real = realpath(folder, NULL);
    bool has = !real || strcmp(real, "/") == 0 || s->n_bases == BASES_MAX;
    for (uint32_t i = 0; i < s->n_bases && !has; i++) has = strcmp(s->bases[i], real) == 0;
    if (has)
        free(real);
    else
        s->bases[s->n_bases++] = real;
}

/* The folder of a file of cameras, and those above it if it is COLMAP's:
 * SCENE/sparse/0/cameras.bin. */
static void add_bases(kiln_scene_files *s, const char *file)
{
    char path[KILN_PATH_MAX];
    if (snprintf(path, sizeof path, "%s", file) >= (int)sizeof path) return;
    const bool is_colmap =
        strncmp(kiln_path_base(path), "cameras.", 8) == 0 && !strstr(path, ".json");
    for (int up = 0; up < (is_colmap ? 3 : 1); up++) {
        char *const slash = strrchr(path, '/');
        if (!slash || slash == path) return;
        *slash = '\0';
        add_base(s, path);
    }
}

static bool seeks_photos_in(const char *name)
{
    const size_t n = strncmp(name, "images", 6) == 0 ? 6 : strncmp(name, "masks", 5) == 0 ? 5 : 0;
    return n && (name[n] == '\0' || name[n] == '/' || name[n] == '_');
}

static const char *below_base(const kiln_scene_files *s, const char *path, uint32_t i)
{
    const size_t n = strlen(s->bases[i]);
    return strncmp(path, s->bases[i], n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

bool kiln_scene_files_seeks_photos(const kiln_scene_files *s, const char *folder)
{
    for (uint32_t i = 0; i < s->n_bases; i++) {
        const char *const name = below_base(s, folder, i);
        if (name && seeks_photos_in(name)) return true;
    }
    return false;
}

const char *kiln_scene_files_camera_at(const kiln_scene_files *s, const char *path, uint32_t n)
{
    for (uint32_t i = 0; i < s->n_bases; i++) {
        const char *const name = below_base(s, path, i);
        if (name && n-- == 0) return name;
    }
    return NULL;
}

/* ---- a scene that moved with its bake -------------------------------------------------------- */
/* The folder of all of the scene's files, but for those of photos, as the manifest has it. */
static kiln_status find_was(void *context, const kiln_source_file *row, kiln_error *err)
{
    kiln_scene_files *s = context;
    const size_t n = (size_t)(kiln_path_base(row->path) - row->path);
    (void)err;
    if (strcmp(row->role, "photo") == 0 || strcmp(row->role, "mask") == 0 || n < 2 ||
        n > sizeof s->was)
        return KILN_OK;
    if (!s->was[0] || n - 1 < strlen(s->was))
        (void)snprintf(s->was, sizeof s->was, "%.*s", (int)n - 1, row->path);
    return KILN_OK;
}

/* bake: the manifest's real folder, which lies in the scene's or is it. */
static kiln_status find_moved(kiln_scene_files *s, kiln_manifest *m, const char *bake,
                              kiln_error *err)
{
    KILN_TRY(kiln_sources_visit(m, find_was, s, err));
    const size_t n = (size_t)(kiln_path_base(bake) - bake);
    if (s->was[0] && n > 1) (void)snprintf(s->is, sizeof s->is, "%.*s", (int)n - 1, bake);
    if (strcmp(s->was, s->is) == 0 || strcmp(s->was, bake) == 0) s->is[0] = '\0';
    return KILN_OK;
}

/* The same file in the folder of today, if it is there. */
static bool moved_path(const kiln_scene_files *s, const char *path, char out[KILN_PATH_MAX],
                       struct stat *info)
{
    const size_t n = strlen(s->was);
    return s->is[0] && strncmp(path, s->was, n) == 0 && path[n] == '/' &&
           snprintf(out, KILN_PATH_MAX, "%s%s", s->is, path + n) < KILN_PATH_MAX &&
           stat(out, info) == 0;
}

/* ---- files ----------------------------------------------------------------------------------- */
static kiln_status add_row(kiln_scene_files *s, const kiln_source_file *row, kiln_error *err)
{
    const bool many = strcmp(row->role, "photo") == 0 || strcmp(row->role, "mask") == 0;
    const char *const name = kiln_path_base(row->path);
    if (s->n == s->capacity) {
        const uint32_t capacity = s->capacity ? 2 * s->capacity : 64;
        scene_file *more = realloc(s->files, capacity * sizeof *more);
        if (!more) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the files of the scene");
        s->files = more;
        s->capacity = capacity;
    }
    scene_file *const f = &s->files[s->n++];
    *f = (scene_file){
        .inode = row->inode, .size = row->size, .mtime_ns = row->mtime_ns, .many = many};
    KILN_TRY(add_text(s, row->path, strlen(row->path), &f->path, err));
    if (name == row->path) return KILN_OK;
    const size_t n = (size_t)(name - row->path) - 1;
    if (many) return add_folder(s, row->path, n, KILN_FOLDER_OF_PHOTOS, false, err);
    if (strcmp(row->role, "cameras") != 0) return KILN_OK;
    add_bases(s, row->path);
    return add_folder(s, row->path, n, KILN_FOLDER_OF_CAMERAS, false, err);
}

static kiln_status add_file(void *context, const kiln_source_file *row, kiln_error *err)
{
    kiln_scene_files *s = context;
    char path[KILN_PATH_MAX];
    struct stat info;
    KILN_TRY(add_row(s, row, err));
    if (!moved_path(s, row->path, path, &info)) return KILN_OK;
    kiln_source_file moved = *row;
    moved.path = path;
    moved.inode = info.st_ino;
    return add_row(s, &moved, err);
}

/* A photo images/left/a.png of camera left/a: names begin in images/. */
static kiln_status add_root_of(kiln_scene_files *s, const char *camera, const char *photo,
                               kiln_error *err)
{
    const size_t n = strlen(camera), stem = strlen(photo) - strlen(kiln_path_suffix(photo)) -
                                            kiln_path_has_suffix(photo);
    if (!strchr(camera, '/') || stem < n + 1 || strncmp(photo + stem - n, camera, n) != 0 ||
        photo[stem - n - 1] != '/')
        return KILN_OK;
    return add_folder(s, photo, stem - n - 1, KILN_FOLDER_IN_PHOTOS, true, err);
}

static kiln_status add_root(void *context, const char *camera, const char *photo, kiln_error *err)
{
    kiln_scene_files *s = context;
    char path[KILN_PATH_MAX];
    struct stat info;
    KILN_TRY(add_root_of(s, camera, photo, err));
    return moved_path(s, photo, path, &info) ? add_root_of(s, camera, path, err) : KILN_OK;
}

static int scene_files_by_path(const void *a, const void *b, void *texts)
{
    return strcmp((const char *)texts + ((const scene_file *)a)->path,
                  (const char *)texts + ((const scene_file *)b)->path);
}

static int by_inode(const void *a, const void *b, void *context)
{
    const scene_file *const files = context;
    const uint64_t x = files[*(const uint32_t *)a].inode, y = files[*(const uint32_t *)b].inode;
    return (x > y) - (x < y);
}

static kiln_status read_manifest(kiln_scene_files *s, kiln_manifest *m, kiln_error *err)
{
    char *real = realpath(kiln_manifest_path(m), NULL), *slash = real ? strrchr(real, '/') : NULL;
    if (slash) slash[slash == real] = '\0';
    s->has_bake = slash && stat(real, &s->bake) == 0;
    const kiln_status st = s->has_bake ? find_moved(s, m, real, err) : KILN_OK;
    free(real);
    KILN_TRY(st);
    KILN_TRY(kiln_sources_visit(m, add_file, s, err));
    KILN_TRY(kiln_photos_visit(m, add_root, s, err));
    if (s->n) qsort_r(s->files, s->n, sizeof *s->files, scene_files_by_path, s->texts.data);
    KILN_TRY(KILN_ALLOC(&s->by_inode, s->n, "the files of the scene", err));
    for (uint32_t i = 0; i < s->n; i++) s->by_inode[i] = i;
    if (s->n) qsort_r(s->by_inode, s->n, sizeof *s->by_inode, by_inode, s->files);
    return KILN_OK;
}

kiln_status kiln_scene_files_open(kiln_manifest *m, kiln_scene_files **out, kiln_error *err)
{
    kiln_scene_files *s;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&s, 1, "the files of the scene", err));
    const kiln_status st = m ? read_manifest(s, m, err) : KILN_OK;
    if (st == KILN_OK)
        *out = s;
    else
        kiln_scene_files_close(s);
    return st;
}

void kiln_scene_files_close(kiln_scene_files *s)
{
    if (!s) return;
    kiln_buffer_release(&s->texts);
    for (uint32_t i = 0; i < s->n_bases; i++) free(s->bases[i]);
    free(s->files);
    free(s->by_inode);
    free(s->folders);
    free(s);
}

/* ---- is it one of them? ---------------------------------------------------------------------- */
static bool is_now(const kiln_scene_files *s, const scene_file *f, const struct stat *info)
{
    struct stat now;
    return stat(text_at(s, f->path), &now) == 0 && now.st_dev == info->st_dev &&
           now.st_ino == info->st_ino;
}

static bool is_as_imported(const scene_file *f, const struct stat *info)
{
    return f->inode == info->st_ino && f->size == (uint64_t)info->st_size &&
           f->mtime_ns == (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

static bool has_inode(const kiln_scene_files *s, const struct stat *info)
{
    uint32_t low = 0, high = s->n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (s->files[s->by_inode[middle]].inode < info->st_ino)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < s->n && s->files[s->by_inode[low]].inode == info->st_ino; low++) {
        const scene_file *const f = &s->files[s->by_inode[low]];
        if (is_as_imported(f, info) || is_now(s, f, info)) return true;
    }
    return false;
}

static bool has_path(const kiln_scene_files *s, const char *path)
{
    uint32_t low = 0, high = s->n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = strcmp(text_at(s, s->files[middle].path), path);
        if (order == 0) return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* By the names that the manifest has for this folder, which may be reached by links. */
static bool has_name_in(const kiln_scene_files *s, const char *folder, const char *name)
{
    struct stat info;
    char path[KILN_PATH_MAX];
    if (stat(folder, &info) != 0) return false;
    for (uint32_t i = 0; i < s->n_folders; i++) {
        const scene_folder *const f = &s->folders[i];
        if (f->device == info.st_dev && f->inode == info.st_ino &&
            kiln_path_join(path, sizeof path, text_at(s, f->path), name, NULL) == KILN_OK &&
            has_path(s, path))
            return true;
    }
    return kiln_path_join(path, sizeof path, folder, name, NULL) == KILN_OK && has_path(s, path);
}

/* Photos that were changed since import, and whose new inode the manifest does not know, are looked
 * at only where one of them may have several names. */
bool kiln_scene_files_has(const kiln_scene_files *s, const char *folder, const char *name,
                          const struct stat *f)
{
    if (s->n == 0) return false;
    if (has_inode(s, f) || has_name_in(s, folder, name)) return true;
    for (uint32_t i = 0; i < s->n; i++)
        if ((!s->files[i].many || f->st_nlink > 1) && is_now(s, &s->files[i], f)) return true;
    return false;
}

bool kiln_scene_files_below(const kiln_scene_files *s, const char *folder)
{
    char real[KILN_PATH_MAX];
    const size_t n = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    for (uint32_t i = 0; i < s->n_folders; i++) {
        char *const path = realpath(text_at(s, s->folders[i].path), NULL);
        const bool below =
            path && strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
        free(path);
        if (below) return true;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->files[i].many) continue; /* its folder is among those above */
        char *const path = realpath(text_at(s, s->files[i].path), NULL);
        const char *const file = path ? path : text_at(s, s->files[i].path);
        (void)snprintf(real, sizeof real, "%s", file);
        free(path);
        if (strncmp(real, folder, n) == 0 && real[n] == '/') return true;
    }
    return false;
}
