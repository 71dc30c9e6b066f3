#include "stages/import/dataset/findings.h"

#include "base/count.h"
#include "base/log.h"
#include "base/quote.h"
#include "stages/cameras/orbit.h"
#include "stages/engine/json_text.h"
#include "stages/engine/meaning.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say_notes(const kiln_dataset *d)
{
    char notes[sizeof d->set.notes], *at = notes;
    memcpy(notes, d->set.notes, sizeof notes);
    for (char *line = strsep(&at, "\n"); line; line = strsep(&at, "\n"))
        if (line[0]) kiln_warn("%s", line);
}

/* A path inside the data set, relative to it: short enough for a line. */
static const char *path_below_root(const kiln_dataset *d, const char *path)
{
    const size_t n = strlen(d->set.root);
    if (strncmp(path, d->set.root, n) != 0) return path;
    if (path[n] == '\0') return "./";
    return path[n] == '/' ? path + n + 1 : path;
}

/* ---- what is known of all cameras together --------------------------------------------------- */
static uint32_t count_test(const kiln_dataset *d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->set.n_cameras; i++)
        n += strcmp(d->set.cameras[i].split, "test") == 0;
    return n;
}

enum { LINE = 200 };

static bool split_line(const kiln_dataset *d, char out[LINE])
{
    const uint32_t test = count_test(d);
    if (d->set.n_cameras == 0 || !d->set.split_rule[0]) return false;
    snprintf(out, LINE, "%u test, %u train (%s)", test, d->set.n_cameras - test, d->set.split_rule);
    return true;
}

static bool lens_line(const kiln_dataset *d, char out[LINE])
{
    if (d->set.n_distorted == 0) return false;
    snprintf(out, LINE, "%.20s%s, %u of %u distorted: photos are %s", d->set.lens,
             d->set.other_lenses ? " and others" : "", d->set.n_distorted, d->set.n_cameras,
             d->set.as_is ? "compared as they are" : "undistorted for metrics");
    return true;
}

void kiln_lenses_warn(const kiln_dataset *d)
{
    if (d->set.n_blind)
        kiln_warn("the undistorted photos of %u of %s are empty; are the lens parameters right?",
                  d->set.n_blind, KILN_COUNT(d->set.n_distorted, "lens|lenses"));
    if (d->set.n_folded)
        kiln_warn("the lens models of %u of %s fold back inside the photo; undistorted photos lack "
                  "what lies farther out",
                  d->set.n_folded, KILN_COUNT(d->set.n_distorted, "lens|lenses"));
}

static json_t *missing_json(const kiln_dataset *d)
{
    const char *first = kiln_missing_next(&d->set, NULL);
    json_t *names = json_array();
    for (const char *name = first; name; name = kiln_missing_next(&d->set, name))
        if (json_array_append_new(names, kiln_json_string(name)) != 0) {
            json_decref(names);
            return NULL;
        }
    return json_pack("{s:I, s:o, s:o, s:o, s:o}", "count", (json_int_t)d->set.photos_missing,
                     "first", kiln_json_string(first ? first : ""), "names", names, "sought",
                     kiln_json_string(d->set.sought), "source_path",
                     kiln_json_string(d->set.source_path));
}

kiln_status kiln_findings_json(const kiln_dataset *d, json_t *report, kiln_error *err)
{
    const uint32_t test = count_test(d);
    json_t *cfg = NULL;
    if (d->cfg_args[0])
        KILN_TRY(kiln_json_parse(d->cfg_args, strlen(d->cfg_args), 0, "cfg_args", &cfg, NULL, err));
    json_t *all = json_pack(
        "{s:{s:o, s:i, s:i}, s:{s:I, s:I}, s:o, s:{s:i, s:o, s:b}, s:o}", "split", "rule",
        kiln_json_string(d->set.split_rule), "test", (int)test, "train",
        (int)(d->set.n_cameras - test), "frames_dropped_by", "photo_not_there",
        (json_int_t)(d->set.frames_dropped - d->set.frames_unreadable -
                     d->set.frames_without_camera),
        "photo_unreadable", (json_int_t)d->set.frames_unreadable, "photos_missing", missing_json(d),
        "distorted", "cameras", (int)d->set.n_distorted, "model", kiln_json_string(d->set.lens),
        "as_is", (int)d->set.as_is, "cfg_args", cfg ? cfg : json_null());
    json_t *dropped = json_object_get(all, "frames_dropped_by");
    int failed = !all || json_object_update(report, all) != 0;
    if (d->set.frames_without_camera)
        failed |= json_object_set_new(dropped, "camera_not_a_number",
                                      json_integer((json_int_t)d->set.frames_without_camera));
    json_decref(all);
    if (failed) return kiln_fail(err, KILN_E_NOMEM, "out of memory while reporting");
    for (const char *line = d->set.meaning; *line;
         line += strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n'))
        KILN_TRY(kiln_meaning_put(report, err, "%.*s", (int)strcspn(line, "\n"), line));
    return KILN_OK;
}

/* A role is stored and reported as it is spelled; people read the words of GLOSSARY.md. */
static const char *role_word(const kiln_finding *f)
{
    return strcmp(f->role, "splats") == 0 ? "Gaussians" : f->role;
}

/* ---- as talk --------------------------------------------------------------------------------- */
/* Another file of rows beside the one that is used is worth a line: perhaps it was meant. Not more
 * than a few of them. So is a list of test views that cannot be used. */
static void say_unused(const kiln_dataset *d)
{
    enum { NAMED = 3 };
    uint32_t n = 0;
    /* lists of test views stand in their order: one before that which is used could not be */
    bool has_list = false;
    for (uint32_t i = 0; i < d->set.n_findings; i++) {
        const kiln_finding *f = &d->set.findings[i];
        const bool list = strcmp(f->role, "split") == 0;
        const bool rows = strcmp(f->role, "splats") == 0 || strcmp(f->role, "points") == 0;
        has_list |= list && f->used;
        if (f->used) continue;
        if ((rows && n++ < NAMED) || (list && !has_list))
            kiln_say("not used: %s (%s): %s", path_below_root(d, f->path), f->what, f->why_not);
        else
            kiln_chat("not used: %s (%s): %s", path_below_root(d, f->path), f->what, f->why_not);
    }
    if (n > NAMED) kiln_say("not used: %s (--list names them)", KILN_COUNT(n - NAMED, "more file"));
}

void kiln_findings_say(const kiln_dataset *d)
{
    char line[LINE];
    for (uint32_t i = 0; i < d->set.n_findings; i++)
        if (d->set.findings[i].used)
            kiln_say("%s: %s (%s)", role_word(&d->set.findings[i]),
                     path_below_root(d, d->set.findings[i].path), d->set.findings[i].what);
    say_unused(d);
    if (split_line(d, line)) kiln_say("split: %s", line);
    if (lens_line(d, line)) kiln_say("lens: %s", line);
    kiln_lenses_warn(d);
    say_notes(d);
}

/* ---- as the program's output ----------------------------------------------------------------- */
static void print_list(const kiln_dataset *d)
{
    char line[LINE];
    kiln_print("scene    %s", d->set.root);
    for (uint32_t i = 0; i < d->set.n_findings; i++) {
        const kiln_finding *f = &d->set.findings[i];
        kiln_print("%-8s %-9s %s: %s%s%s", f->used ? "uses" : "leaves", role_word(f),
                   path_below_root(d, f->path), f->what, f->used ? "" : ": ", f->why_not);
        if (f->notes[0])
            kiln_print("%-8s %-9s %s: %s", "notes", role_word(f), path_below_root(d, f->path),
                       f->notes);
    }
    if (split_line(d, line)) kiln_print("%-8s %-9s %s", "uses", "split", line);
    if (lens_line(d, line)) kiln_print("%-8s %-9s %s", "uses", "lens", line);
    if (d->set.frames_without_camera)
        kiln_print("%-8s %-9s %llu of %llu: their camera holds values that are not numbers",
                   "drops", "images", (unsigned long long)d->set.frames_without_camera,
                   (unsigned long long)d->set.frames_read);
    const uint64_t dropped = d->set.frames_dropped - d->set.frames_without_camera;
    if (dropped)
        kiln_print("%-8s %-9s %llu of %llu: %llu without a photo, %llu with an unreadable photo",
                   "drops", "frames", (unsigned long long)dropped,
                   (unsigned long long)d->set.frames_read,
                   (unsigned long long)(dropped - d->set.frames_unreadable),
                   (unsigned long long)d->set.frames_unreadable);
    if (d->set.photos_missing)
        kiln_print("%-8s %-9s %llu; the first: %s", "misses", "photos",
                   (unsigned long long)d->set.photos_missing, kiln_missing_next(&d->set, NULL));
    for (const char *name = kiln_missing_next(&d->set, NULL); name;
         name = kiln_missing_next(&d->set, name))
        kiln_print("%-8s %-9s %s", "misses", "photo", name);
    if (d->reader && d->set.n_cameras == 0)
        kiln_print("%-8s %-9s %d on an orbit, as there are none", "makes", "cameras",
                   KILN_ORBIT_CAMERAS);
    if (!d->reader && d->set.n_cameras > 0)
        kiln_print("%-8s %-9s no Gaussians and no points; --random-points N makes points", "misses",
                   "rows");
    if (d->set.n_findings == 0) kiln_print("nothing found");
}

kiln_status kiln_findings_list(kiln_run *r, const kiln_dataset *d, kiln_error *err)
{
    json_t *list = json_array();
    if (!list || json_object_set_new(kiln_run_report(r), "findings", list) != 0)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory");
    for (uint32_t i = 0; i < d->set.n_findings; i++) {
        const kiln_finding *f = &d->set.findings[i];
        json_t *j =
            json_pack("{s:o, s:o, s:s, s:b, s:o, s:o}", "path", kiln_json_string(f->path), "what",
                      kiln_json_string(f->what), "role", f->role, "used", f->used, "why_not",
                      kiln_json_string(f->why_not), "notes", kiln_json_string(f->notes));
        if (!j || json_array_append_new(list, j) != 0)
            return kiln_fail(err, KILN_E_NOMEM, "out of memory");
    }
    if (!kiln_run_json(r)) print_list(d);
    say_notes(d);
    return kiln_findings_json(d, kiln_run_report(r), err);
}

kiln_status kiln_folder_to_avoid(const char *scene, const char *manifest, char out[KILN_PATH_MAX],
                                 kiln_error *err)
{
    char head[KILN_PATH_MAX], rest[KILN_PATH_MAX] = "", full[KILN_PATH_MAX], next[KILN_PATH_MAX],
                              of_scene[KILN_PATH_MAX];
    if (snprintf(head, sizeof head, "%s%s", manifest[0] == '/' ? "" : "./", manifest) >=
        (int)sizeof head)
        return kiln_fail(err, KILN_E_INPUT, "the path '%s' is too long", manifest);
    char *slash = strrchr(head, '/');
    *slash = '\0';
    while (!realpath(head[0] ? head : "/", full)) {
        slash = strrchr(head, '/');
        if (!slash || errno != ENOENT)
            return kiln_fail(err, KILN_E_IO, "cannot access the folder of '%s': %s", manifest,
                             strerror(errno));
        if (snprintf(next, sizeof next, "%s%s", slash, rest) >= (int)sizeof next)
            return kiln_fail(err, KILN_E_INPUT, "the path '%s' is too long", manifest);
        memcpy(rest, next, sizeof rest);
        *slash = '\0';
    }
    if (snprintf(out, KILN_PATH_MAX, "%s%s", full, rest) >= KILN_PATH_MAX)
        return kiln_fail(err, KILN_E_INPUT, "the path '%s' is too long", manifest);
    size_t n = strlen(out);
    if (realpath(scene, of_scene) && strncmp(of_scene, out, n) == 0 &&
        (of_scene[n] == '/' || of_scene[n] == '\0' || n == 1))
        out[0] = '\0';
    return KILN_OK;
}
