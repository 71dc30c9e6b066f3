/* dataset_foreign -- what lies in a directory that import does not read, named as what it is
 * (foreign.h).
 *
 * The directory's own files are findings, whatever else is used. Where nothing else is, its folders
 * are looked through as well, because trainers leave their checkpoints a few folders down; the
 * first file found then is the error.
 */
#include "stages/cameras/camera_file.h"
#include "stages/files/foreign.h"
#include "stages/import/dataset/dataset_search.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DEPTH_MAX = 5, NAMES_MAX = 20000, OPENED_MAX = 256, NAMED_MAX = 16 };

/* Names of one folder; owned. */
typedef struct {
    char (*name)[256];
    uint32_t n;
} names;

typedef struct {
    const kiln_search *s;
    uint32_t n_names, n_opened; /* of all folders so far */
} walk;

static int foreign_names_by_text(const void *a, const void *b) { return strcmp(a, b); }

static kiln_status list_names(walk *w, const char *folder, names *out, kiln_error *err)
{
    kiln_status st = KILN_OK;
    DIR *d = opendir(folder);
    *out = (names){0};
    if (!d) return KILN_OK; /* a folder that cannot be listed holds nothing for us */
    for (const struct dirent *e; st == KILN_OK && w->n_names < NAMES_MAX && (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        w->n_names++;
        st = kiln_grow((void **)&out->name, out->n, sizeof *out->name, "names in a folder", err);
        if (st == KILN_OK) snprintf(out->name[out->n++], sizeof *out->name, "%s", e->d_name);
    }
    closedir(d); /* opened for reading: nothing to lose */
    if (out->n) qsort(out->name, out->n, sizeof *out->name, foreign_names_by_text);
    return st;
}

static const kiln_foreign *look_at_foreign(walk *w, const char *path)
{
    if (!kiln_foreign_may_be(kiln_path_base(path)) || w->n_opened >= OPENED_MAX ||
        !kiln_is_file(path))
        return NULL;
    w->n_opened++;
    return kiln_foreign_of_file(path);
}

static bool is_found(const kiln_dataset *d, const char *path)
{
    for (uint32_t i = 0; i < d->set.n_findings; i++)
        if (strcmp(d->set.findings[i].path, path) == 0) return true;
    return false;
}

static kiln_status report_foreign(kiln_dataset *d, const char *path, const kiln_foreign *f,
                                  kiln_error *err)
{
    const bool cameras = kiln_foreign_role_of(f) == KILN_FOREIGN_CAMERAS;
    if (cameras && d->set.n_cameras == 0)
        kiln_camera_set_note(
            &d->set, "the cameras in '%s' are left out: the file is %s, which is not read; %s",
            path, kiln_foreign_what(f), kiln_foreign_help(f));
    return kiln_camera_set_add_finding(&d->set, path, cameras ? "cameras" : "other", false,
                                       kiln_foreign_what(f), kiln_foreign_help(f), err);
}

static kiln_status tell_own(walk *w, kiln_dataset *d, kiln_error *err)
{
    kiln_status st = KILN_OK;
    char path[KILN_PATH_MAX];
    names list;
    uint32_t n = 0;
    const kiln_foreign *f = kiln_foreign_of_folder(d->set.root);
    if (f) KILN_TRY(report_foreign(d, d->set.root, f, err));
    KILN_GO(list_names(w, d->set.root, &list, err));
    for (uint32_t i = 0; i < list.n && n < NAMED_MAX; i++) {
        KILN_GO(kiln_path_join(path, sizeof path, d->set.root, list.name[i], err));
        if (is_found(d, path) || !(f = look_at_foreign(w, path))) continue;
        KILN_GO(report_foreign(d, path, f, err));
        n++;
    }
done:
    free(list.name);
    return st;
}

/* KILN_E_INPUT at the first file or folder of such a kind: files of a folder before its folders,
 * all by name. */
static kiln_status refuse_first(walk *w, const char *folder, int depth, kiln_error *err)
{
    kiln_status st = KILN_OK;
    char path[KILN_PATH_MAX];
    names list = {0};
    const kiln_foreign *f = kiln_foreign_of_folder(folder);
    if (f) return kiln_foreign_refuse(folder, f, err);
    KILN_GO(list_names(w, folder, &list, err));
    for (uint32_t i = 0; i < list.n; i++) {
        KILN_GO(kiln_path_join(path, sizeof path, folder, list.name[i], err));
        if ((f = look_at_foreign(w, path))) KILN_GO(kiln_foreign_refuse(path, f, err));
    }
    for (uint32_t i = 0; i < list.n && depth < DEPTH_MAX; i++) {
        KILN_GO(kiln_path_join(path, sizeof path, folder, list.name[i], err));
        if (kiln_is_dir(path) && kiln_may_look_into(path, w->s->avoid))
            KILN_GO(refuse_first(w, path, depth + 1, err));
    }
done:
    free(list.name);
    return st;
}

kiln_status kiln_search_foreign(kiln_search *s, kiln_error *err)
{
    walk w = {.s = s};
    /* cameras were not looked for, so nothing can be said of them */
    if (s->rows_alone && s->d->reader) return KILN_OK;
    if (s->d->reader || s->d->set.n_cameras) return tell_own(&w, s->d, err);
    const kiln_status st = refuse_first(&w, s->d->set.root, 0, err);
    if (st == KILN_E_INPUT) kiln_note(err, "nothing in '%s' can be imported", s->d->set.root);
    return st;
}

/* The file of the directory that the splat file `path` is a part of; NULL: it stands for itself. */
static kiln_status find_whole(walk *w, const char *root, const char *suffix,
                              char whole[KILN_PATH_MAX], kiln_error *err)
{
    kiln_status st = KILN_OK;
    char path[KILN_PATH_MAX];
    names list = {0};
    KILN_GO(list_names(w, root, &list, err));
    for (uint32_t i = 0; i < list.n && !whole[0]; i++) {
        KILN_GO(kiln_path_join(path, sizeof path, root, list.name[i], err));
        if (kiln_foreign_holds_suffix(look_at_foreign(w, path), suffix))
            memcpy(whole, path, sizeof path);
    }
done:
    free(list.name);
    return st;
}

kiln_status kiln_search_drop_parts(kiln_search *s, uint32_t first, kiln_error *err)
{
    char whole[KILN_PATH_MAX] = "";
    const kiln_foreign *f = NULL;
    uint32_t n = first;
    for (uint32_t i = first; i < s->n_files && !f; i++) {
        walk w = {.s = s};
        const char *suffix = kiln_path_suffix(s->files[i].path);
        if (strcasecmp(suffix, "glb") != 0 && strcasecmp(suffix, "gltf") != 0) continue;
        KILN_TRY(find_whole(&w, s->d->set.root, suffix, whole, err));
        if (!whole[0]) return KILN_OK;
        f = kiln_foreign_of_file(whole);
    }
    if (!f) return KILN_OK;
    for (uint32_t i = first; i < s->n_files; i++)
        if (!kiln_foreign_holds_suffix(f, kiln_path_suffix(s->files[i].path)))
            s->files[n++] = s->files[i];
    /* in the place of its parts, of which there is one */
    snprintf(s->files[n].path, sizeof s->files[n].path, "%s", whole);
    s->n_files = n + 1;
    return KILN_OK;
}
