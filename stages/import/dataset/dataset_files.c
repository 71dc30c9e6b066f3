/* dataset_files -- the splat and point files of a directory, probed by content.
 *
 * Two places are looked into first: point_cloud/iteration_N with the largest N, and the directory
 * itself; of the latter at most FILES_MAX files with a suffix of a reader, in the order of their
 * names; with --parts PARTS_MAX, and no more. Folders below are looked into where these hold no
 * Gaussians (dataset_below.c).
 */
#include "stages/cameras/camera_file.h"
#include "stages/files/foreign.h"
#include "stages/files/packing.h"
#include "stages/formats/lod/lod.h"
#include "stages/formats/sog/sog.h"
#include "stages/import/dataset/dataset_search.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FILES_MAX = 64, PARTS_MAX = 1024, ENTRIES_MAX = 100000 };

/* Suffixes that belong to splats and points alone: a .bin or .txt may be anything, and COLMAP's are
 * found with its model; a .json may be anything, too. */
bool kiln_search_is_candidate(const char *name)
{
    char plain[256];
    snprintf(plain, sizeof plain, "%.*s", (int)kiln_packing_stem(name), name);
    const char *suffix = kiln_path_suffix(plain);
    if (kiln_foreign_is_splats(plain)) return true; /* to be named as what it is */
    if (!*suffix || strcasecmp(suffix, "bin") == 0 || strcasecmp(suffix, "txt") == 0 ||
        strcasecmp(suffix, "json") == 0)
        return false;
    for (const kiln_reader *const *r = kiln_readers; *r; r++) {
        const char *at = (*r)->suffixes;
        for (size_t n; *at; at += n + strspn(at + n, ",")) {
            n = strcspn(at, ",");
            if (strlen(suffix) == n && strncasecmp(suffix, at, n) == 0) return true;
        }
    }
    return false;
}

/* The JSON file of a SOG scene has one of these names, which other programs use as well. */
static bool may_be_scene_json(const char *name)
{
    return strcmp(name, KILN_SOG_META) == 0 || strcmp(name, KILN_LOD_META) == 0;
}

static bool is_packed(const char *path)
{
    const kiln_packing *packing = NULL;
    kiln_error unread;
    return kiln_packing_find(path, &packing, &unread) == KILN_OK && packing;
}

/* Opens the files from `first` on far enough to know what they are; one that cannot be read keeps
 * the reason. */
static kiln_status look_at_files(kiln_search *s, uint32_t first, kiln_error *err)
{
    kiln_source_info *info = NULL; /* too large for the stack */
    KILN_TRY(KILN_ALLOC(&info, 1, "what a file says of itself", err));
    for (uint32_t i = first; i < s->n_files; i++) {
        kiln_candidate *c = &s->files[i];
        memset(info, 0, sizeof *info);
        if (kiln_source_look(c->path, s->options, &c->reader, info, &c->why) != KILN_OK)
            c->reader = NULL;
        c->has_none = info->has_none;
        c->kind = info->kind;
        c->n_rows = info->n_rows;
        if (c->reader)
            snprintf(c->notes, sizeof c->notes, "%s%s%s", info->remarks,
                     info->remarks[0] && info->notes[0] ? "; " : "", info->notes);
        c->is_unknown = c->reader && c->reader->packed == KILN_PACKED_WHOLE && c->n_rows == 0 &&
                        is_packed(c->path);
    }
    free(info);
    return KILN_OK;
}

kiln_status kiln_search_add_file(kiln_search *s, const char *path, uint64_t iteration,
                                 kiln_error *err)
{
    const size_t root = strlen(s->d->set.root);
    kiln_file_info info = {0};
    kiln_error unread;
    if (s->leave_out && strcmp(path, s->leave_out) == 0) return KILN_OK;
    KILN_TRY(kiln_grow((void **)&s->files, s->n_files, sizeof *s->files, "splat files", err));
    kiln_candidate *c = &s->files[s->n_files++];
    *c = (kiln_candidate){.iteration = iteration};
    snprintf(c->path, sizeof c->path, "%s", path);
    const bool inside = strncmp(path, s->d->set.root, root) == 0 && path[root] == '/';
    kiln_step_of(inside ? path + root + 1 : path, &c->state);
    if (kiln_file_stat(path, &info, &unread) == KILN_OK) c->mtime_ns = info.mtime_ns;
    return KILN_OK;
}

/* "iteration_30000" -> 30000; false for any other name. */
static bool iteration_of(const char *name, uint64_t *n)
{
    const char *digits = name + 10;
    if (strncmp(name, "iteration_", 10) != 0 || !*digits || digits[strspn(digits, "0123456789")] ||
        strlen(digits) > 18)
        return false;
    *n = strtoull(digits, NULL, 10);
    return true;
}

static int later_first(const void *a, const void *b)
{
    const uint64_t x = ((const kiln_candidate *)a)->iteration,
                   y = ((const kiln_candidate *)b)->iteration;
    return (x < y) - (x > y);
}

static kiln_status list_iterations(kiln_search *s, const char *dir, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    uint64_t n;
    kiln_status st = KILN_OK;
    DIR *d = opendir(dir);
    if (!d) return kiln_fail(err, KILN_E_IO, "cannot list '%s': %s", dir, strerror(errno));
    for (const struct dirent *e; st == KILN_OK && (e = readdir(d));) {
        const int length = snprintf(path, sizeof path, "%s/%s/point_cloud.ply", dir, e->d_name);
        if (iteration_of(e->d_name, &n) && length > 0 && (size_t)length < sizeof path &&
            kiln_is_file(path))
            st = kiln_search_add_file(s, path, n, err);
    }
    closedir(d); /* opened for reading: nothing to lose */
    return st;
}

/* Only the last one is read; the others are findings. */
static kiln_status find_iteration(kiln_search *s, kiln_error *err)
{
    char dir[KILN_PATH_MAX], what[64];
    KILN_TRY(kiln_path_join(dir, sizeof dir, s->d->set.root, "point_cloud", err));
    if (!kiln_may_look_into(dir, s->avoid)) return KILN_OK;
    s->has_point_cloud = true;
    KILN_TRY(list_iterations(s, dir, err));
    if (s->n_files == 0) return KILN_OK;
    qsort(s->files, s->n_files, sizeof *s->files, later_first);
    for (uint32_t i = 1; i < s->n_files; i++) {
        snprintf(what, sizeof what, "iteration %llu", (unsigned long long)s->files[i].iteration);
        KILN_TRY(kiln_camera_set_add_finding(&s->d->set, s->files[i].path, "splats", false, what,
                                             "a later iteration takes precedence", err));
    }
    s->n_files = 1;
    s->trained = true;
    return KILN_OK;
}

static int candidates_by_path(const void *a, const void *b)
{
    return strcmp(((const kiln_candidate *)a)->path, ((const kiln_candidate *)b)->path);
}

/* Of more files than are opened, those of which a later step is there by name: the last one must be
 * among those that are opened. */
static void drop_earlier_steps(kiln_search *s, uint32_t first)
{
    uint32_t n = first;
    for (uint32_t i = first; i < s->n_files; i++) {
        const kiln_step *mine = &s->files[i].state;
        bool later = false;
        for (uint32_t k = first; k < s->n_files && mine->has_step && !later; k++) {
            const kiln_step *other = &s->files[k].state;
            later = k != i && other->has_step && other->step > mine->step &&
                    strcmp(other->pattern, mine->pattern) == 0;
        }
        if (!later && n++ != i) s->files[n - 1] = s->files[i];
    }
    kiln_camera_set_note(&s->d->set,
                         "'%s' holds %u splat and point files; %u of them are earlier training "
                         "steps and are left out",
                         s->d->set.root, s->n_files - first, s->n_files - n);
    s->n_files = n;
}

static kiln_status list_directory(kiln_search *s, kiln_error *err)
{
    const uint32_t first = s->n_files;
    char path[KILN_PATH_MAX];
    kiln_status st = KILN_OK;
    DIR *d = opendir(s->d->set.root);
    if (!d)
        return kiln_fail(err, KILN_E_IO, "cannot list '%s': %s", s->d->set.root, strerror(errno));
    const struct dirent *e = readdir(d);
    for (uint32_t n_entries = 0; st == KILN_OK && e && n_entries < ENTRIES_MAX;
         e = readdir(d), n_entries++) {
        const bool is_json = may_be_scene_json(e->d_name);
        if (!is_json && !kiln_search_is_candidate(e->d_name)) continue;
        st = kiln_path_join(path, sizeof path, s->d->set.root, e->d_name, err);
        if (st != KILN_OK || !kiln_is_file(path) ||
            (is_json && kiln_source_claim(path) < KILN_CLAIM_BY_CONTENT))
            continue;
        st = kiln_search_add_file(s, path, 0, err);
    }
    closedir(d); /* opened for reading: nothing to lose */
    if (st == KILN_OK) st = kiln_search_drop_parts(s, first, err);
    if (st != KILN_OK) return st;
    if (s->n_files > first)
        qsort(s->files + first, s->n_files - first, sizeof *s->files, candidates_by_path);
    if (s->parts && s->n_files > PARTS_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' holds %u splat and point files; --parts joins at most %d",
                         s->d->set.root, s->n_files, PARTS_MAX);
    if (s->n_files - first > FILES_MAX && !s->parts) drop_earlier_steps(s, first);
    if (s->n_files - first > FILES_MAX && !s->parts) {
        kiln_camera_set_note(&s->d->set,
                             "'%s' holds %u splat and point files; only the first %d by name are "
                             "considered; name a file to use another one",
                             s->d->set.root, s->n_files - first, FILES_MAX);
        s->n_files = first + FILES_MAX;
    }
    return KILN_OK;
}

/* What lies below and holds anything else than Gaussians is not the directory's. */
static kiln_status look_below(kiln_search *s, kiln_error *err)
{
    const uint32_t first = s->n_files;
    KILN_TRY(kiln_search_below(s, err));
    if (s->n_files > first)
        qsort(s->files + first, s->n_files - first, sizeof *s->files, candidates_by_path);
    if (s->n_files - first > FILES_MAX) drop_earlier_steps(s, first);
    if (s->n_files - first > FILES_MAX) s->n_files = first + FILES_MAX;
    KILN_TRY(look_at_files(s, first, err));
    uint32_t n = first;
    for (uint32_t i = first; i < s->n_files; i++) {
        s->files[i].below = true;
        if (s->files[i].reader && s->files[i].kind == KILN_SCENE_SPLATS && n++ != i)
            s->files[n - 1] = s->files[i];
    }
    s->n_files = n;
    return KILN_OK;
}

kiln_status kiln_search_files(kiln_search *s, kiln_error *err)
{
    if (!s->parts) KILN_TRY(find_iteration(s, err));
    KILN_TRY(list_directory(s, err));
    KILN_TRY(look_at_files(s, 0, err));
    for (uint32_t i = 0; i < s->n_files; i++)
        if (s->files[i].reader && s->files[i].kind == KILN_SCENE_SPLATS) return KILN_OK;
    return s->parts ? KILN_OK : look_below(s, err);
}

kiln_status kiln_search_file(kiln_search *s, const char *path, const kiln_candidate **out,
                             kiln_error *err)
{
    uint32_t i = 0;
    while (i < s->n_files && strcmp(s->files[i].path, path) != 0) i++;
    if (i == s->n_files) {
        KILN_TRY(kiln_search_add_file(s, path, 0, err));
        KILN_TRY(look_at_files(s, i, err));
    }
    *out = &s->files[i];
    return KILN_OK;
}
