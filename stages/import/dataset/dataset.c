/* dataset -- what a scene holds and what of it is used; the order of precedence is dataset.h's.
 *
 * A directory is asked three things: which splat and point files it has (dataset_files.c), which
 * cameras (dataset_cameras.c), and then here: which of the files becomes the scene's rows. Points
 * follow the cameras that bring them, because both have to lie in one world.
 */
#include "stages/import/dataset/dataset.h"

#include "stages/files/packing.h"
#include "stages/import/dataset/additions.h"
#include "stages/import/dataset/cfg_args.h"
#include "stages/import/dataset/dataparser.h"
#include "stages/import/dataset/dataset_search.h"
#include "stages/import/dataset/exposure_file.h"
#include "stages/import/dataset/training_marks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Point clouds that trainers leave under fixed names, before any other. */
static const char *const known_points[] = {"input.ply", "sparse_pc.ply", "points3D.ply"};

static bool is_splats(const kiln_candidate *c) { return c->reader && c->kind == KILN_SCENE_SPLATS; }

/* The file beside a packed one that has its name without the packing's suffix, if there are splats
 * in it; else NULL. */
static const kiln_candidate *unpacked_twin(const kiln_search *s, const kiln_candidate *c)
{
    const size_t stem = kiln_packing_stem(c->path);
    for (uint32_t i = 0; i < s->n_files && c->path[stem]; i++) {
        const kiln_candidate *twin = &s->files[i];
        if (is_splats(twin) && strncmp(twin->path, c->path, stem) == 0 && !twin->path[stem])
            return twin;
    }
    return NULL;
}

bool kiln_search_competes(const kiln_search *s, const kiln_candidate *c)
{
    return is_splats(c) && !(c->is_unknown && unpacked_twin(s, c));
}

/* Is b a later state than a? Of equal steps the newer file, then the last by name. */
static bool is_later(const kiln_candidate *b, const kiln_candidate *a)
{
    if (b->state.step != a->state.step) return b->state.step > a->state.step;
    if (b->mtime_ns != a->mtime_ns) return b->mtime_ns > a->mtime_ns;
    return strcmp(b->path, a->path) > 0;
}

const kiln_candidate *kiln_search_later_state(const kiln_search *s, const kiln_candidate *c)
{
    const kiln_candidate *last = c;
    for (uint32_t i = 0; i < s->n_files; i++) {
        const kiln_candidate *b = &s->files[i];
        const bool same = b->state.has_step == c->state.has_step &&
                          strcmp(b->state.pattern, c->state.pattern) == 0;
        if (b != c && same && !b->iteration && !c->iteration && kiln_search_competes(s, b) &&
            is_later(b, last))
            last = b;
    }
    return last != c ? last : NULL;
}

static bool is_choice(const kiln_search *s, const kiln_candidate *c)
{
    return kiln_search_competes(s, c) && !kiln_search_later_state(s, c);
}

/* Several files, and of one or more nobody knows how large they are. */
static kiln_status refuse_to_guess(const kiln_search *s, kiln_error *err)
{
    char names[600] = "", packed[KILN_PATH_MAX] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < s->n_files && used < sizeof names; i++) {
        const kiln_candidate *c = &s->files[i];
        if (!is_choice(s, c)) continue;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s'%.100s'", used ? ", " : "",
                                 kiln_path_base(c->path));
        if (c->is_unknown && !packed[0])
            snprintf(packed, sizeof packed, "%s", kiln_path_base(c->path));
    }
    if (used >= sizeof names) memcpy(names + sizeof names - 4, "...", 4);
    return kiln_fail(err, KILN_E_INPUT,
                     "'%s' holds several splat files, %s, but '%.100s' must be unpacked to know "
                     "which one has the most Gaussians; "
                     "name one of them on the command line",
                     s->d->set.root, names, packed);
}

static kiln_status best_splats(const kiln_search *s, const kiln_candidate **best, kiln_error *err)
{
    uint32_t n = 0, n_unknown = 0;
    *best = s->trained && is_splats(&s->files[0]) ? &s->files[0] : NULL;
    if (*best) return KILN_OK;
    for (uint32_t i = 0; i < s->n_files; i++) {
        const kiln_candidate *c = &s->files[i];
        if (!is_choice(s, c)) continue;
        n++;
        n_unknown += c->is_unknown;
        if (!*best || c->n_rows > (*best)->n_rows) *best = c;
    }
    return n > 1 && n_unknown ? refuse_to_guess(s, err) : KILN_OK;
}

static const kiln_candidate *best_points(const kiln_search *s)
{
    const kiln_candidate *best = NULL;
    for (size_t k = 0; k < sizeof known_points / sizeof *known_points; k++)
        for (uint32_t i = 0; i < s->n_files; i++)
            if (s->files[i].reader && s->files[i].kind == KILN_SCENE_POINTS &&
                strcmp(kiln_path_base(s->files[i].path), known_points[k]) == 0)
                return &s->files[i];
    for (uint32_t i = 0; i < s->n_files; i++) {
        const kiln_candidate *c = &s->files[i];
        if (c->reader && c->kind == KILN_SCENE_POINTS && (!best || c->n_rows > best->n_rows))
            best = c;
    }
    return best;
}

static void use_rows(kiln_dataset *d, const char *path, const kiln_reader *reader)
{
    snprintf(d->rows_path, sizeof d->rows_path, "%s", path);
    d->reader = reader;
}

/* All files of the directory that hold Gaussians, or points where none does; they are in the order
 * of their names. */
static kiln_status choose_parts(kiln_search *s, kiln_error *err)
{
    const kiln_move none = {.scale = 1};
    kiln_scene_kind kind = KILN_SCENE_POINTS;
    for (uint32_t i = 0; i < s->n_files; i++) {
        const kiln_candidate *c = &s->files[i];
        if (!c->reader && !c->has_none) return kiln_fail(err, c->why.status, "%s", c->why.msg);
        if (c->kind == KILN_SCENE_SPLATS) kind = c->kind;
    }
    for (uint32_t i = 0; i < s->n_files; i++) {
        if (!s->files[i].reader || s->files[i].kind != kind) continue;
        if (s->d->reader)
            KILN_TRY(kiln_dataset_add_rows(s->d, s->files[i].path, &none, err));
        else
            use_rows(s->d, s->files[i].path, s->files[i].reader);
    }
    if (s->d->reader) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "--parts: '%s' holds no splat or point file",
                     s->d->set.root);
}

/* Do two paths differ in one number alone? Folders of other runs are other trainings. */
static bool differ_in_number(const char *a, const char *b)
{
    static const char digits[] = "0123456789";
    size_t at = 0;
    while (a[at] && a[at] == b[at]) at++;
    while (at > 0 && strchr(digits, a[at - 1])) at--;
    const size_t n_a = strspn(a + at, digits), n_b = strspn(b + at, digits);
    return n_a && n_b && strcmp(a + at + n_a, b + at + n_b) == 0;
}

/* The last step of the training that c is a step of; c where no later one is there. */
static const kiln_candidate *last_step(const kiln_search *s, const kiln_candidate *c)
{
    const kiln_candidate *last = c;
    for (uint32_t i = 0; i < s->n_files && c->state.has_step; i++) {
        const kiln_candidate *b = &s->files[i];
        if (b->state.has_step && b->state.step > last->state.step &&
            differ_in_number(b->path, c->path) && kiln_search_competes(s, b))
            last = b;
    }
    return last;
}

/* A bake keeps the file that it was made of: another one that is put beside it must not change the
 * bake. A later step of the same training takes its place, as a later iteration_N does. */
static const kiln_candidate *keep_choice(kiln_search *s, const kiln_candidate *best)
{
    const size_t root = strlen(s->d->set.root);
    if (!s->stays || !s->stays[0] || strcmp(best->path, s->stays) == 0 || best->iteration)
        return best;
    const bool is_ours = strncmp(s->stays, s->d->set.root, root) == 0 && s->stays[root] == '/' &&
                         kiln_is_file(s->stays);
    const kiln_candidate *stays = NULL;
    for (uint32_t i = 0; i < s->n_files && is_ours; i++)
        if (kiln_search_competes(s, &s->files[i]) && strcmp(s->files[i].path, s->stays) == 0)
            stays = &s->files[i];
    /* gone, or points before there were Gaussians */
    if (!stays && !(is_ours && best->below)) return best;
    const kiln_candidate *step = stays ? last_step(s, stays) : NULL;
    if (step != stays)
        kiln_camera_set_note(&s->d->set, "'%s' takes the place of '%s', as a later training step",
                             step->path + root + 1, s->stays + root + 1);
    if (step != best)
        snprintf(s->d->passed_over, sizeof s->d->passed_over, "%s", best->path + root + 1);
    return step;
}

static kiln_status choose_splats(kiln_search *s, kiln_error *err)
{
    const kiln_candidate *best;
    KILN_TRY(best_splats(s, &best, err));
    if (best) {
        best = keep_choice(s, best);
        if (!best) return KILN_OK; /* the points that stay follow the cameras */
        use_rows(s->d, best->path, best->reader);
        return KILN_OK;
    }
    if (s->has_point_cloud && !s->trained)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' holds no point_cloud/iteration_N/point_cloud.ply; was the training saved?",
            s->d->set.root);
    /* splats that cannot be read must not quietly become points */
    for (uint32_t i = 0; i < s->n_files; i++)
        if (!s->files[i].reader && !s->files[i].has_none)
            return kiln_fail(err, s->files[i].why.status, "%s", s->files[i].why.msg);
    return KILN_OK;
}

static kiln_status choose_points(kiln_search *s, kiln_error *err)
{
    kiln_dataset *d = s->d;
    const kiln_candidate *c = NULL;
    if (s->points[0]) {
        KILN_TRY(kiln_search_file(s, s->points, &c, err));
        if (!c->reader) return kiln_fail(err, c->why.status, "%s", c->why.msg);
    } else {
        c = best_points(s);
    }
    if (c) use_rows(d, c->path, c->reader);
    if (!c && s->camera_kind && strcmp(s->camera_kind, "COLMAP model") == 0)
        return kiln_fail(
            err, KILN_E_INPUT,
            "the points of the COLMAP model in '%s' are missing: points3D.bin or points3D.txt",
            d->set.root);
    return KILN_OK;
}

/* Why a file that could be read is not the one that is used. */
static void say_why_not(const kiln_search *s, const kiln_candidate *c, char *out, size_t capacity)
{
    const kiln_candidate *used = NULL;
    for (uint32_t i = 0; i < s->n_files; i++)
        if (strcmp(s->files[i].path, s->d->rows_path) == 0) used = &s->files[i];
    const kiln_candidate *later = kiln_search_competes(s, c) ? kiln_search_later_state(s, c) : NULL;
    const size_t root = strlen(s->d->set.root) + 1;
    const char *name = kiln_path_base(s->d->rows_path);
    if (later && later->state.step > c->state.step)
        snprintf(out, capacity, "%.120s is a later step", later->path + root);
    else if (later)
        snprintf(out, capacity, "%.120s is newer", later->path + root);
    else if (s->stays && s->stays[0] && strcmp(s->stays, s->d->rows_path) == 0)
        snprintf(out, capacity, "the bake was made of %.80s, which stays until --reset", name);
    else if (s->d->passed_over[0])
        snprintf(out, capacity, "the bake is of the training of %.80s until --reset", name);
    else if (!used)
        snprintf(out, capacity, "another file takes precedence");
    else if (used->kind != c->kind)
        snprintf(out, capacity, "%.80s holds Gaussians", name);
    else if (s->trained && used == &s->files[0])
        snprintf(out, capacity, "the trained iteration %llu takes precedence",
                 (unsigned long long)used->iteration);
    else if (c->is_unknown && unpacked_twin(s, c))
        snprintf(out, capacity, "%.80s exists unpacked", kiln_path_base(unpacked_twin(s, c)->path));
    else if (used->n_rows > c->n_rows)
        snprintf(out, capacity, "%.80s has more: %llu", name, (unsigned long long)used->n_rows);
    else
        snprintf(out, capacity, "%.80s takes precedence by its name", name);
}

/* As rows of the scene, or by --add, which gets a finding of its own. */
static bool is_used(const kiln_search *s, const char *path, bool *added)
{
    const kiln_dataset *d = s->d;
    const bool is_first = strcmp(path, d->rows_path) == 0;
    *added = false;
    for (uint32_t i = 0; i < d->n_more; i++) {
        if (strcmp(d->more[i].path, path) != 0) continue;
        *added = i >= s->first_added && !is_first;
        return true;
    }
    return is_first;
}

static kiln_status tell_files(kiln_search *s, kiln_error *err)
{
    kiln_dataset *d = s->d;
    char what[160], why_not[200];
    for (uint32_t i = 0; i < s->n_files; i++) {
        const kiln_candidate *c = &s->files[i];
        bool added;
        const bool used = is_used(s, c->path, &added),
                   points = c->reader && c->kind == KILN_SCENE_POINTS;
        if (strcmp(c->path, d->rows_path) == 0) d->rows_kind = c->kind;
        if (added) continue;
        snprintf(what, sizeof what, "%s", c->has_none ? "no Gaussians" : "unreadable");
        if (c->is_unknown)
            snprintf(what, sizeof what, "%s, packed", c->reader->name);
        else if (c->reader)
            snprintf(what, sizeof what, "%s, %llu %s%s", c->reader->name,
                     (unsigned long long)c->n_rows, points ? "point" : "Gaussian",
                     c->n_rows == 1 ? "" : "s");
        if (c->reader) say_why_not(s, c, why_not, sizeof why_not);
        KILN_TRY(kiln_camera_set_add_finding(&d->set, c->path, points ? "points" : "splats", used,
                                             what,
                                             used        ? ""
                                             : c->reader ? why_not
                                                         : c->why.msg,
                                             err));
        if (used) memcpy(d->set.findings[d->set.n_findings - 1].notes, c->notes, sizeof c->notes);
        if (!c->reader) kiln_camera_set_note(&d->set, "a file is left out: %s", c->why.msg);
    }
    if (s->points[0] && strcmp(s->points, d->rows_path) != 0)
        KILN_TRY(kiln_camera_set_add_finding(&d->set, s->points, "points", false,
                                             "points of the cameras",
                                             "a splat file takes precedence", err));
    return KILN_OK;
}

/* --add: behind the rows that were found, or in their place where there are none. */
static kiln_status add_files(kiln_search *s, kiln_error *err)
{
    kiln_dataset *d = s->d;
    s->first_added = d->n_more;
    KILN_TRY(kiln_dataset_add_list(d, s->add, err));
    if (d->reader || d->n_more == 0) return KILN_OK;
    kiln_rows_file *f = &d->more[0];
    use_rows(d, f->path, f->reader);
    d->rows_move = f->move;
    d->rows_kind = f->kind;
    KILN_TRY(kiln_dataset_tell_added(d, f, err));
    free(f->members); /* are found again, as those of the first file */
    memmove(f, f + 1, --d->n_more * sizeof *f);
    return KILN_OK;
}

static kiln_status tell_added(const kiln_search *s, kiln_error *err)
{
    for (uint32_t i = s->first_added; i < s->d->n_more; i++)
        KILN_TRY(kiln_dataset_tell_added(s->d, &s->d->more[i], err));
    return KILN_OK;
}

static kiln_status find_in_directory(kiln_search *s, const char *cameras, kiln_error *err)
{
    kiln_dataset *d = s->d;
    KILN_TRY(kiln_cfg_args_read(d, err));
    KILN_TRY(kiln_search_files(s, err));
    KILN_TRY(s->parts ? choose_parts(s, err) : choose_splats(s, err));
    if (!s->rows_alone || !d->reader) KILN_TRY(kiln_search_cameras(s, cameras, err));
    if (!d->reader) KILN_TRY(choose_points(s, err));
    KILN_TRY(add_files(s, err));
    KILN_TRY(tell_files(s, err));
    KILN_TRY(tell_added(s, err));
    KILN_TRY(kiln_search_foreign(s, err));
    if (!d->reader && d->set.n_cameras == 0)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' holds nothing to import: no splat or point file, no COLMAP model "
                         "(sparse/0), no transforms.json, no cameras.json",
                         d->set.root);
    return KILN_OK;
}

/* A file by itself has the cameras that --cameras names; a camera file by itself the points that it
 * names. */
static kiln_status find_in_file(kiln_search *s, const char *path, const char *cameras,
                                kiln_error *err)
{
    kiln_dataset *d = s->d;
    const kiln_candidate *c = NULL;
    KILN_TRY(kiln_search_file(s, path, &c, err));
    const bool is_json = !c->reader && !cameras && strcmp(kiln_path_suffix(path), "json") == 0 &&
                         /* else it is a damaged scene, and no camera file */
                         kiln_source_claim(path) < KILN_CLAIM_BY_CONTENT;
    if (!c->reader && !is_json) return kiln_fail(err, c->why.status, "%s", c->why.msg);
    if (c->reader) use_rows(d, path, c->reader);
    if (is_json) s->n_files = 0;
    if ((cameras && !(s->rows_alone && d->reader)) || is_json)
        KILN_TRY(kiln_search_cameras(s, cameras ? cameras : path, err));
    if (!d->reader) KILN_TRY(choose_points(s, err));
    KILN_TRY(add_files(s, err));
    KILN_TRY(tell_files(s, err));
    return tell_added(s, err);
}

static kiln_status add_dataset_member(void *context, const char *path, kiln_error *err)
{
    kiln_dataset *d = context;
    KILN_TRY(
        kiln_grow((void **)&d->members, d->n_members, sizeof *d->members, "files of a scene", err));
    snprintf(d->members[d->n_members++].text, sizeof d->members->text, "%s", path);
    return kiln_camera_set_add_source(&d->set, path, "rows", err);
}

/* The data set's folder and name: of a file, the folder that holds it and the name without suffix.
 * path is absolute. */
static void set_root(kiln_dataset *d, const char *path, bool is_file)
{
    const size_t folder = (size_t)(kiln_path_base(path) - path);
    snprintf(d->set.root, sizeof d->set.root, "%s", path);
    if (is_file) d->set.root[folder > 1 ? folder - 1 : 1] = 0; /* "/" keeps its slash */
    char plain[KILN_PATH_MAX];
    snprintf(plain, sizeof plain, "%.*s", is_file ? (int)kiln_packing_stem(path) : KILN_PATH_MAX,
             path);
    const char *base = kiln_path_base(plain), *suffix = kiln_path_suffix(plain);
    const int n =
        is_file && *suffix && suffix - 1 > base ? (int)(suffix - 1 - base) : (int)strlen(base);
    snprintf(d->name, sizeof d->name, "%.*s", n < 255 ? n : 255, n ? base : "scene");
}

kiln_status kiln_dataset_find(const char *scene, const kiln_dataset_wishes *wishes,
                              kiln_dataset *out, kiln_error *err)
{
    char path[KILN_PATH_MAX], real[KILN_PATH_MAX];
    *out = (kiln_dataset){.set.split = wishes->split};
    if (!realpath(scene, path))
        return kiln_fail(err, KILN_E_INPUT, "cannot find the scene '%s': %s", scene,
                         strerror(errno));
    kiln_search s = {.d = out,
                     .avoid = wishes->avoid,
                     .options = &wishes->read,
                     .add = wishes->add,
                     .stays = wishes->stays,
                     .leave_out = wishes->leave_out,
                     .parts = wishes->parts,
                     .rows_alone = wishes->rows_alone};
    if (s.avoid && realpath(s.avoid, real)) s.avoid = real;
    out->read = wishes->read;
    if (wishes->photos) snprintf(out->set.photos, sizeof out->set.photos, "%s", wishes->photos);
    const bool is_file = !kiln_is_dir(path);
    if (is_file && wishes->parts)
        return kiln_fail(
            err, KILN_E_USAGE,
            "--parts joins the files of a folder, but '%s' is a file; --add joins single files",
            scene);
    set_root(out, path, is_file);
    out->set.is_folder = !is_file;
    kiln_status st = is_file ? find_in_file(&s, path, wishes->cameras, err)
                             : find_in_directory(&s, wishes->cameras, err);
    if (st == KILN_OK && out->reader && out->reader->members)
        st = kiln_source_members(out->rows_path, &out->read, add_dataset_member, out, err);
    if (st == KILN_OK && out->set.photos[0] && out->set.photos_sought == 0 && !wishes->rows_alone)
        kiln_camera_set_note(&out->set,
                             "--photos '%s' is not used, because no camera names a photo",
                             out->set.photos);
    free(s.files);
    if (st == KILN_OK) st = kiln_exposures_find(out, wishes->cameras, err);
    if (st == KILN_OK) st = kiln_training_marks_read(out, err);
    if (st == KILN_OK) st = kiln_dataparser_apply(out, wishes->no_dataparser, err);
    if (st != KILN_OK) kiln_dataset_release(out);
    return st;
}

void kiln_dataset_release(kiln_dataset *d)
{
    for (uint32_t i = 0; i < d->n_more; i++) free(d->more[i].members);
    free(d->more);
    free(d->members);
    kiln_camera_set_release(&d->set);
    *d = (kiln_dataset){0};
}
