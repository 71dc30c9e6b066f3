#include "stages/import/dataset/findings.h"

#include "base/log.h"
#include "base/quote.h"
#include "stages/engine/json_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say_notes(const kiln_dataset *d)
{
    char notes[sizeof d->notes], *at = notes;
    memcpy(notes, d->notes, sizeof notes);
    for (char *line = strsep(&at, "\n"); line; line = strsep(&at, "\n"))
        if (line[0]) kiln_warn("%s", line);
}

/* A path inside the data set as it is seen from there: short enough for a line. */
static const char *shown(const kiln_dataset *d, const char *path)
{
    const size_t n = strlen(d->root);
    if (strncmp(path, d->root, n) != 0) return path;
    if (path[n] == '\0') return "./";
    return path[n] == '/' ? path + n + 1 : path;
}

void kiln_findings_say(const kiln_dataset *d)
{
    for (uint32_t i = 0; i < d->n_findings; i++) {
        const kiln_finding *f = &d->findings[i];
        if (f->used)
            kiln_say("%s: %s (%s)", f->role, shown(d, f->path), f->what);
        else
            kiln_chat("not used: %s (%s): %s", shown(d, f->path), f->what, f->why_not);
    }
    say_notes(d);
}

kiln_status kiln_findings_list(kiln_run *r, const kiln_dataset *d, kiln_error *err)
{
    json_t *list = json_array();
    if (!list || json_object_set_new(kiln_run_report(r), "findings", list) != 0)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory");
    for (uint32_t i = 0; i < d->n_findings; i++) {
        const kiln_finding *f = &d->findings[i];
        json_t *j = json_pack("{s:o, s:o, s:s, s:b, s:o}", "path", kiln_json_string(f->path), "what", kiln_json_string(f->what),
                              "role", f->role, "used", f->used, "why_not", kiln_json_string(f->why_not));
        if (!j || json_array_append_new(list, j) != 0) return kiln_fail(err, KILN_E_NOMEM, "out of memory");
        if (!kiln_run_json(r))
            kiln_print("%-8s %-8s %s: %s%s%s", f->used ? "uses" : "leaves", f->role, f->path, f->what, f->used ? "" : ": ",
                       f->why_not);
    }
    say_notes(d);
    if (!kiln_run_json(r) && d->n_findings == 0) kiln_print("nothing found in %s", d->root);
    return KILN_OK;
}

kiln_status kiln_folder_to_avoid(const char *scene, const char *manifest, char out[KILN_PATH_MAX], kiln_error *err)
{
    char head[KILN_PATH_MAX], rest[KILN_PATH_MAX] = "", full[KILN_PATH_MAX], next[KILN_PATH_MAX], of_scene[KILN_PATH_MAX];
    if (snprintf(head, sizeof head, "%s%s", manifest[0] == '/' ? "" : "./", manifest) >= (int)sizeof head)
        return kiln_fail(err, KILN_E_INPUT, "the path '%s' is too long", manifest);
    char *slash = strrchr(head, '/');
    *slash = '\0';
    while (!realpath(head[0] ? head : "/", full)) {
        slash = strrchr(head, '/');
        if (!slash || errno != ENOENT)
            return kiln_fail(err, KILN_E_IO, "cannot look at the folder of '%s': %s", manifest, strerror(errno));
        if (snprintf(next, sizeof next, "%s%s", slash, rest) >= (int)sizeof next)
            return kiln_fail(err, KILN_E_INPUT, "the path '%s' is too long", manifest);
        memcpy(rest, next, sizeof rest);
        *slash = '\0';
    }
    if (snprintf(out, KILN_PATH_MAX, "%s%s", full, rest) >= KILN_PATH_MAX)
        return kiln_fail(err, KILN_E_INPUT, "the path '%s' is too long", manifest);
    size_t n = strlen(out);
    if (realpath(scene, of_scene) && strncmp(of_scene, out, n) == 0 && (of_scene[n] == '/' || of_scene[n] == '\0' || n == 1))
        out[0] = '\0';
    return KILN_OK;
}
