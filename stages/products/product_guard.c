/* product_guard -- see the header. */
#include "stages/products/product_guard.h"

#include "base/file.h"
#include "base/memory.h"
#include "stages/products/product_mark.h"
#include "stages/products/product_records.h"
#include "stages/products/scene_files.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* A folder that was asked about last: pictures come folder by folder. */
typedef struct {
    char given[KILN_PATH_MAX], real[KILN_PATH_MAX];
    bool there, known;
    kiln_scene_folder is; /* or, if it is not there, what the folder is in which it would be */
} folder;

struct kiln_product_guard {
    kiln_manifest *m;
    bool overwrite, keeps_ours;
    kiln_hash export; /* kiln_product_seen.bake; zero: what is asked for is no export */
    kiln_scene_files *scene;
    kiln_product_list list;
    /* the manifest's real folder; "": there is none */
    char bake[KILN_PATH_MAX];
    /* of a scene that is not imported yet; "": there is none */
    char new_scene[KILN_PATH_MAX], out[KILN_PATH_MAX];
    folder last;
};

/* ---- open ------------------------------------------------------------------------------------ */
static bool real_path(const char *path, char out[KILN_PATH_MAX])
{
    char *const real = realpath(path, NULL);
    const bool fits = real && strlen(real) < KILN_PATH_MAX;
    if (fits) memcpy(out, real, strlen(real) + 1);
    free(real);
    return fits;
}

static kiln_status read_manifest(kiln_product_guard *g, kiln_error *err)
{
    if (real_path(kiln_manifest_path(g->m), g->bake)) {
        char *const slash = strrchr(g->bake, '/');
        slash[slash == g->bake] = '\0';
    }
    KILN_TRY(kiln_scene_files_open(g->m, &g->scene, err));
    return kiln_product_records_get(g->m, &g->list, err);
}

kiln_status kiln_product_guard_open(kiln_manifest *m, bool overwrite, kiln_product_guard **out,
                                    kiln_error *err)
{
    kiln_product_guard *g;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&g, 1, "what may be replaced", err));
    g->m = m;
    g->overwrite = overwrite;
    const kiln_status st = m ? read_manifest(g, err) : kiln_scene_files_open(NULL, &g->scene, err);
    if (st == KILN_OK)
        *out = g;
    else
        kiln_product_guard_close(g);
    return st;
}

void kiln_product_guard_close(kiln_product_guard *g)
{
    if (!g) return;
    kiln_scene_files_close(g->scene);
    kiln_product_list_release(&g->list);
    free(g);
}

void kiln_product_guard_scene(kiln_product_guard *g, const char *scene, const char *out)
{
    /* import says that it is not there */
    if (!real_path(scene, g->new_scene)) g->new_scene[0] = '\0';
    if (!real_path(out, g->out)) g->out[0] = '\0';
}

void kiln_product_guard_keep_ours(kiln_product_guard *g) { g->keeps_ours = true; }

/* ---- folders --------------------------------------------------------------------------------- */
static bool is_below(const char *path, const char *above)
{
    const size_t n = strcmp(above, "/") == 0 ? 0 : strlen(above);
    return above[0] && strncmp(path, above, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Of a path that is not there: the part behind the nearest folder above that is. real: where that
 * folder is; "" if it cannot be said. */
static const char *part_to_be(const char *path, char real[KILN_PATH_MAX])
{
    char above[KILN_PATH_MAX];
    (void)snprintf(above, sizeof above, "%s", path);
    for (char *slash; (slash = strrchr(above, '/'));) {
        slash[slash == above] = '\0'; /* the root keeps its '/' */
        if (real_path(above, real)) return path + (slash - above) + 1;
        if (slash == above) break;
    }
    if (path[0] == '/' || !real_path(".", real)) real[0] = '\0';
    return path;
}

void kiln_product_guard_export(kiln_product_guard *g, const char *manifest)
{
    char place[KILN_PATH_MAX], real[KILN_PATH_MAX];
    g->export = (kiln_hash){0};
    if (!manifest) return;
    if (!real_path(manifest, place)) {
        const char *const rest = part_to_be(manifest, real);
        if (kiln_path_join(place, sizeof place, real, rest, NULL) != KILN_OK) place[0] = '\0';
    }
    g->export = kiln_hash_of(place, strlen(place));
}

/* What a folder that is not there would be, by the nearest that is. to_be: its path then, without
 * links. */
static kiln_scene_folder folder_to_be(const kiln_product_guard *g, const char *path,
                                      char to_be[KILN_PATH_MAX])
{
    char real[KILN_PATH_MAX];
    const char *rest = part_to_be(path, real);
    to_be[0] = '\0';
    if (!real[0]) return KILN_FOLDER_OTHER;
    if (snprintf(to_be, KILN_PATH_MAX, "%s/%s", real, rest) >= KILN_PATH_MAX) to_be[0] = '\0';
    /* the bake's own folder may be one of photos; folders that it gets are the bake's */
    if (strcmp(real, g->bake) == 0) return KILN_FOLDER_OTHER;
    const kiln_scene_folder is = kiln_scene_files_folder(g->scene, real);
    return is == KILN_FOLDER_OF_PHOTOS || is == KILN_FOLDER_IN_PHOTOS ? KILN_FOLDER_IN_PHOTOS
                                                                      : KILN_FOLDER_OTHER;
}

/* "new/../images" is no place until new/ is made, and images/ then. What is there may go up:
 * "../tower/new". */
static bool goes_up(const char *path)
{
    char real[KILN_PATH_MAX];
    const char *rest = part_to_be(path, real);
    for (const char *at = rest; (at = strstr(at, "..")); at += 2)
        if ((at == rest || at[-1] == '/') && (at[2] == '/' || at[2] == '\0')) return true;
    return false;
}

static kiln_status look_at_folder(kiln_product_guard *g, const char *path, const folder **out,
                                  kiln_error *err)
{
    folder *const f = &g->last;
    *out = f;
    if (f->known && strcmp(f->given, path) == 0) return KILN_OK;
    f->known = false;
    if (snprintf(f->given, sizeof f->given, "%s", path) >= (int)sizeof f->given)
        return kiln_fail(err, KILN_E_USAGE, "the path '%.60s...' is too long", path);
    f->there = real_path(path, f->real);
    char to_be[KILN_PATH_MAX];
    if (!f->there) f->real[0] = '\0';
    if (!f->there && goes_up(path))
        return kiln_fail(err, KILN_E_USAGE,
                         "'%s' leads through '..', but one of its folders does not exist; name the "
                         "folder itself",
                         path);
    f->is = f->there ? kiln_scene_files_folder(g->scene, f->real) : folder_to_be(g, path, to_be);
    if ((f->is == KILN_FOLDER_OTHER || f->is == KILN_FOLDER_OF_CAMERAS) &&
        kiln_scene_files_seeks_photos(g->scene, f->there ? f->real : to_be))
        f->is = KILN_FOLDER_IN_PHOTOS;
    f->known = true;
    return KILN_OK;
}

static kiln_status folder_of_product(kiln_product_guard *g, const char *path, const folder **out,
                                     kiln_error *err)
{
    char name[KILN_PATH_MAX];
    const size_t n = (size_t)(kiln_path_base(path) - path);
    if (n >= sizeof name)
        return kiln_fail(err, KILN_E_USAGE, "the path '%.60s...' is too long", path);
    (void)snprintf(name, sizeof name, "%.*s", n > 1 ? (int)n - 1 : (int)n, path);
    return look_at_folder(g, n ? name : ".", out, err);
}

/* By what import reads as a photo. */
static bool is_picture(const char *path)
{
    static const char *const suffixes[] = {"png", "jpg", "jpeg", "webp", "tif", "tiff", "npy"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (strcasecmp(kiln_path_suffix(path), suffixes[i]) == 0) return true;
    return false;
}

/* Would import take it for the photo of a camera? It looks for one beside the file of the cameras,
 * too. */
static bool has_name_of_camera(const kiln_product_guard *g, const folder *in, const char *path)
{
    char real[KILN_PATH_MAX], bakes_own[KILN_PATH_MAX];
    const char *camera;
    bool exists = false;
    if (!g->m || !in->there ||
        kiln_path_join(real, sizeof real, in->real, kiln_path_base(path), NULL) != KILN_OK)
        return false;
    if (snprintf(bakes_own, sizeof bakes_own, "%s/renders", g->bake) < (int)sizeof bakes_own &&
        is_below(real, bakes_own))
        return false;
    real[strlen(real) - strlen(kiln_path_suffix(real)) - kiln_path_has_suffix(real)] = '\0';
    for (uint32_t i = 0; !exists && (camera = kiln_scene_files_camera_at(g->scene, real, i)); i++)
        if (kiln_camera_exists(g->m, camera, &exists, NULL) != KILN_OK) return true;
    return exists;
}

static bool is_photos_place(const kiln_product_guard *g, const folder *in, const char *path)
{
    return is_picture(path) && (in->is == KILN_FOLDER_OF_PHOTOS ||
                                in->is == KILN_FOLDER_IN_PHOTOS || has_name_of_camera(g, in, path));
}

/* What lies among the photos, and what import may read as cameras beside the cameras. The folder of
 * cameras is often the one that people work in, so other files there are as anywhere. */
static bool may_be_of_scene(const folder *in, const char *path)
{
    static const char *const suffixes[] = {"json", "txt", "bin"};
    for (size_t i = 0; in->is == KILN_FOLDER_OF_CAMERAS && i < sizeof suffixes / sizeof *suffixes;
         i++)
        if (strcasecmp(kiln_path_suffix(path), suffixes[i]) == 0) return true;
    return in->is == KILN_FOLDER_OF_PHOTOS;
}

/* ---- what is refused ------------------------------------------------------------------------- */
static kiln_status refuse_scene(const char *path, kiln_error *err)
{
    return kiln_fail(err, KILN_E_USAGE,
                     "'%s' is a file of the scene that was imported; choose another place", path);
}

static kiln_status refuse_photos(const char *path, kiln_error *err)
{
    return kiln_fail(err, KILN_E_USAGE,
                     "'%s' lies where import looks for the scene's photos, so the next import "
                     "could take it for one; choose another place",
                     path);
}

static kiln_status refuse_folder_of_scene(const char *path, kiln_error *err)
{
    return kiln_fail(err, KILN_E_USAGE,
                     "'%s' lies in a folder of the scene's photos or cameras, and was not written "
                     "by SplatKiln in its present form; choose another place",
                     path);
}

kiln_status kiln_product_refuse_changed(const char *path, kiln_error *err)
{
    return kiln_fail(err, KILN_E_USAGE,
                     "'%s' was changed since SplatKiln wrote it; rename it to keep it, or replace "
                     "it with -w, --overwrite",
                     path);
}

static kiln_status refuse_existing(const char *path, kiln_error *err)
{
    return kiln_fail(err, KILN_E_USAGE,
                     "'%s' exists already; choose another place, or replace it with -w, "
                     "--overwrite",
                     path);
}

static kiln_status refuse_copied(const char *path, kiln_error *err)
{
    return kiln_fail(err, KILN_E_USAGE,
                     "'%s' looks like a copy of what SplatKiln wrote, which may have been edited "
                     "since; choose another place, or replace it with -w, --overwrite",
                     path);
}

static kiln_status refuse_others(const char *path, kiln_error *err)
{
    return kiln_fail(err, KILN_E_USAGE,
                     "'%s' exists already, and was not exported to this place from this bake, as "
                     "far as SplatKiln knows, so it may be another scene; choose another place, or "
                     "replace it with -w, --overwrite",
                     path);
}

static kiln_status refuse_foreign(const char *path, kiln_error *err)
{
    const char *const suffix = kiln_path_suffix(path);
    char why[64] = "";
    if (*suffix && strcasecmp(suffix, "ply") != 0 && !kiln_product_name_has_mark(path))
        (void)snprintf(why, sizeof why, ": a .%.16s carries no mark of it", suffix);
    return kiln_fail(err, KILN_E_USAGE,
                     "'%s' exists, but SplatKiln did not write it, as far as it knows%s; choose "
                     "another place, or replace it with -w, "
                     "--overwrite",
                     path, why);
}

static kiln_status refuse_link(const char *path, kiln_error *err)
{
    return kiln_fail(err, KILN_E_USAGE,
                     "'%s' is a link; choose another place, or replace the link with -w, "
                     "--overwrite (its target stays)",
                     path);
}

/* ---- is it ours? ----------------------------------------------------------------------------- */
static const kiln_product *product_at(const kiln_product_guard *g, const char *real)
{
    const size_t n = strlen(g->bake);
    if (!n || strncmp(real, g->bake, n) != 0 || real[n] != '/') return NULL;
    return kiln_product_list_find(&g->list, real + n + 1);
}

void kiln_product_guard_own(kiln_product_guard *g, const char *path)
{
    char real[KILN_PATH_MAX];
    kiln_product *p;
    kiln_product_seen seen = {.overwrite = 1};
    const size_t n = strlen(g->bake);
    kiln_product_look(path, &seen);
    if (!n || !real_path(path, real) || strncmp(real, g->bake, n) != 0 || real[n] != '/' ||
        product_at(g, real))
        return;
    /* it goes by its mark */
    if (kiln_product_begin(&g->list, real + n + 1, "", (kiln_hash){0}, &seen, NULL) != KILN_OK)
        return;
    p = kiln_product_list_find(&g->list, real + n + 1);
    p->state = KILN_PRODUCT_CURRENT;
}

/* of a run that was killed: it may have written the file again, and nothing describes that; the
 * bake may be a copy */
static bool was_begun(const kiln_product *p, kiln_mark mark)
{
    if (p->state != KILN_PRODUCT_BEGUN) return false;
    return mark == KILN_MARK_OURS || mark == KILN_MARK_COPIED ||
           !kiln_product_name_has_mark(p->path);
}

static kiln_listed judge_product(const kiln_product *p, const char *path)
{
    if (kiln_product_is_unchanged(p, path) || kiln_product_is_copied_folder(p, path))
        return KILN_LISTED_UNCHANGED;
    const kiln_mark mark = kiln_product_mark(path);
    return mark == KILN_MARK_SEALED || was_begun(p, mark) ? KILN_LISTED_UNCHANGED
                                                          : KILN_LISTED_CHANGED;
}

/* real: FOLDER/NAME, the real folder's. */
static kiln_listed listed_state(const kiln_product_guard *g, const char *real)
{
    const kiln_product *const p = product_at(g, real);
    return p ? judge_product(p, real) : KILN_LISTED_NOT;
}

kiln_listed kiln_product_guard_listed(const kiln_product_guard *g, const char *path)
{
    char real[KILN_PATH_MAX], name[KILN_PATH_MAX];
    if (!real_path(path, real)) return KILN_LISTED_NOT;
    if (!kiln_is_dir(path)) return listed_state(g, real);
    return snprintf(name, sizeof name, "%s/", real) < (int)sizeof name ? listed_state(g, name)
                                                                       : KILN_LISTED_NOT;
}

bool kiln_product_guard_lists(const kiln_product_guard *g, const char *stage)
{
    for (uint32_t i = 0; i < g->list.n; i++)
        if (strcmp(g->list.products[i].stage, stage) == 0) return true;
    return false;
}

/* ---- a file ---------------------------------------------------------------------------------- */
static bool is_of_new_scene(const kiln_product_guard *g, const char *real, const struct stat *f)
{
    struct stat scene;
    if (!g->new_scene[0] || stat(g->new_scene, &scene) != 0) return false;
    if (!S_ISDIR(scene.st_mode)) return scene.st_dev == f->st_dev && scene.st_ino == f->st_ino;
    return is_below(real, g->new_scene) && !is_below(real, g->out);
}

/* A regular file that is none of the scene's. */
static kiln_status check_there(const kiln_product_guard *g, const folder *in, const char *path,
                               const char *real, kiln_error *err)
{
    if (is_photos_place(g, in, path)) return refuse_photos(path, err);
    const kiln_listed says = listed_state(g, real);
    if (says == KILN_LISTED_UNCHANGED) return KILN_OK;
    const kiln_mark mark =
        says == KILN_LISTED_NOT ? kiln_product_mark_of(path, g->export) : KILN_MARK_BROKEN;
    const bool is_ours = mark == KILN_MARK_OURS || mark == KILN_MARK_SEALED;
    if (is_ours && !g->keeps_ours) return KILN_OK;
    if (may_be_of_scene(in, path)) return refuse_folder_of_scene(path, err);
    if (g->overwrite) return KILN_OK;
    if (g->keeps_ours) return refuse_existing(path, err);
    return mark == KILN_MARK_BROKEN   ? kiln_product_refuse_changed(path, err)
           : mark == KILN_MARK_OTHERS ? refuse_others(path, err)
           : mark == KILN_MARK_COPIED ? refuse_copied(path, err)
                                      : refuse_foreign(path, err);
}

static kiln_status check_entry(const kiln_product_guard *g, const folder *in, const char *path,
                               const struct stat *entry, kiln_error *err)
{
    char real[KILN_PATH_MAX];
    struct stat f;
    KILN_TRY(kiln_path_join(real, sizeof real, in->real, kiln_path_base(path), err));
    const bool leads = stat(path, &f) == 0;
    if (leads && S_ISREG(f.st_mode) &&
        kiln_scene_files_has(g->scene, in->real, kiln_path_base(path), &f))
        return refuse_scene(path, err);
    if (leads && S_ISREG(f.st_mode) && is_of_new_scene(g, real, &f)) return refuse_scene(path, err);
    KILN_TRY(kiln_file_replaceable(path, err));
    if (!S_ISLNK(entry->st_mode)) return check_there(g, in, path, real, err);
    if (is_photos_place(g, in, path)) return refuse_photos(path, err);
    if (may_be_of_scene(in, path)) return refuse_folder_of_scene(path, err);
    return g->overwrite ? KILN_OK : refuse_link(path, err);
}

/* in: the folder of `path`; entry: what is there, NULL: nothing. Elsewhere only another name of a
 * file can be the manifest's. */
static kiln_status refuse_manifest(const kiln_product_guard *g, const folder *in, const char *path,
                                   const struct stat *entry, kiln_error *err)
{
    const bool may_be = strcmp(in->real, g->bake) == 0 ||
                        (entry && (S_ISLNK(entry->st_mode) || entry->st_nlink > 1));
    if (!g->m || !may_be || !kiln_manifest_owns(kiln_manifest_path(g->m), path)) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE,
                     "'%s' is the bake itself, or belongs to it; choose another place", path);
}

static kiln_product_seen seen_of(const kiln_product_guard *g)
{
    return (kiln_product_seen){
        .overwrite = g->overwrite, .keeps_ours = g->keeps_ours, .bake = g->export};
}

kiln_status kiln_product_guard_check(kiln_product_guard *g, const char *path,
                                     kiln_product_seen *seen, kiln_error *err)
{
    struct stat entry;
    kiln_product_seen now = seen_of(g);
    const folder *in;
    KILN_TRY(folder_of_product(g, path, &in, err));
    const bool there = lstat(path, &entry) == 0;
    KILN_TRY(refuse_manifest(g, in, path, there ? &entry : NULL, err));
    kiln_product_look(path, &now);
    if (there)
        KILN_TRY(check_entry(g, in, path, &entry, err));
    else if (is_photos_place(g, in, path))
        return refuse_photos(path, err);
    if (seen) *seen = now;
    return KILN_OK;
}

kiln_status kiln_product_guard_ask(kiln_manifest *m, bool overwrite, const char *path,
                                   kiln_product_seen *seen, kiln_error *err)
{
    kiln_product_guard *g;
    KILN_TRY(kiln_product_guard_open(m, overwrite, &g, err));
    const kiln_status st = kiln_product_guard_check(g, path, seen, err);
    kiln_product_guard_close(g);
    return st;
}

/* ---- a folder -------------------------------------------------------------------------------- */
bool kiln_folder_holds_any(const char *path)
{
    bool any = false;
    DIR *const entries = opendir(path);
    if (!entries) return false;
    for (const struct dirent *e = readdir(entries); e && !any; e = readdir(entries))
        any = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    (void)closedir(entries);
    return any;
}

static kiln_status refuse_holder(const char *path, kiln_error *err)
{
    return kiln_fail(
        err, KILN_E_USAGE,
        "the folder '%s' holds files of the scene that was imported; choose another place", path);
}

kiln_status kiln_product_guard_into(kiln_product_guard *g, const char *path, kiln_error *err)
{
    const folder *f;
    KILN_TRY(look_at_folder(g, path, &f, err));
    return f->there && f->is == KILN_FOLDER_OF_PHOTOS ? refuse_holder(path, err) : KILN_OK;
}

kiln_status kiln_product_guard_folder(kiln_product_guard *g, const char *path, bool whole,
                                      kiln_error *err)
{
    const folder *f;
    KILN_TRY(folder_of_product(g, path, &f, err));
    KILN_TRY(refuse_manifest(g, f, path, NULL, err));
    KILN_TRY(look_at_folder(g, path, &f, err));
    if (f->is == KILN_FOLDER_OF_PHOTOS ||
        (whole && f->there && kiln_scene_files_below(g->scene, f->real)))
        return refuse_holder(path, err);
    if (f->is == KILN_FOLDER_IN_PHOTOS) return refuse_photos(path, err);
    return whole && g->keeps_ours && !g->overwrite && kiln_folder_holds_any(path)
               ? refuse_existing(path, err)
               : KILN_OK;
}

kiln_status kiln_product_guard_folder_mark(const kiln_product_guard *g, const char *path,
                                           bool known, kiln_product_seen *seen, kiln_error *err)
{
    if (seen) *seen = seen_of(g);
    return !known && !g->overwrite &&
                   kiln_product_folder_mark_of(path, g->export) == KILN_MARK_OTHERS
               ? refuse_others(path, err)
               : KILN_OK;
}
