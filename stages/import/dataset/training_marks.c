/* training_marks -- see the header. */
#include "stages/import/dataset/training_marks.h"

#include "base/file.h"
#include "stages/cameras/camera_file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SIZE_LIMIT = 1 << 20, ABOVE = 3, RUNS_MAX = 64 };

static const struct {
    const char *file, *key;
    bool top;
    const char *what; /* it says, where it is on */
} marks[] = {
    {"cfg.yml", "antialiased", true, "gsplat: antialiased"},
    {"config.yml", "rasterize_mode", false, "nerfstudio: rasterize_mode antialiased"},
};
enum { N_MARKS = sizeof marks / sizeof *marks };

/* ---- a scalar -------------------------------------------------------------------------------- */
static bool take_quoted(const char *at, const char *end, char *out, size_t capacity)
{
    const char *close = memchr(at + 1, *at, (size_t)(end - at - 1));
    if (!close || (size_t)(close - at - 1) >= capacity) return false;
    snprintf(out, capacity, "%.*s", (int)(close - at - 1), at + 1);
    return true;
}

/* What stands behind the colon, up to a comment or the line's end. */
static bool take_value(const char *at, const char *end, char *out, size_t capacity)
{
    while (at < end && (*at == ' ' || *at == '\t')) at++;
    if (at == end || strchr("#&*!|>{[", *at)) return false;
    if (*at == '"' || *at == '\'') return take_quoted(at, end, out, capacity);
    const char *stop = at;
    while (stop < end && !(*stop == '#' && (stop[-1] == ' ' || stop[-1] == '\t'))) stop++;
    while (stop > at && (stop[-1] == ' ' || stop[-1] == '\t' || stop[-1] == '\r')) stop--;
    if (stop == at || (size_t)(stop - at) >= capacity || memchr(at, '\0', (size_t)(stop - at)))
        return false;
    snprintf(out, capacity, "%.*s", (int)(stop - at), at);
    return true;
}

bool kiln_yaml_scalar(const char *text, size_t n, const char *key, bool top, char *out,
                      size_t capacity)
{
    const size_t length = strlen(key);
    for (const char *line = text, *const end = text + n, *next; line < end; line = next) {
        const char *stop = memchr(line, '\n', (size_t)(end - line)), *at = line;
        if (!stop) stop = end;
        next = stop < end ? stop + 1 : end;
        while (!top && at < stop && *at == ' ') at++;
        if ((size_t)(stop - at) <= length || memcmp(at, key, length) != 0 || at[length] != ':')
            continue;
        at += length + 1;
        if (at < stop && *at != ' ' && *at != '\t') continue;
        if (take_value(at, stop, out, capacity)) return true;
    }
    return false;
}

/* ---- files ----------------------------------------------------------------------------------- */
static bool says_yes(const char *value)
{
    static const char *const words[] = {"antialiased", "true", "yes", "on", "1"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(value, words[i]) == 0) return true;
    return false;
}

/* *said: -1 the file is not there or says nothing of it, else whether it is on. */
static kiln_status read_training_mark(kiln_dataset *d, const char *path, size_t mark, int *said,
                                      kiln_error *err)
{
    unsigned char *text = NULL;
    size_t size = 0;
    char value[64];
    kiln_error why = {0};
    *said = -1;
    if (!kiln_is_file(path)) return KILN_OK;
    const kiln_status st = kiln_file_read(path, SIZE_LIMIT, &text, &size, &why);
    if (st == KILN_E_NOMEM) return kiln_fail(err, st, "%s", why.msg);
    if (st != KILN_OK) {
        kiln_camera_set_note(&d->set, "settings of the training are not used: %s", why.msg);
        return KILN_OK;
    }
    if (kiln_yaml_scalar((const char *)text, size, marks[mark].key, marks[mark].top, value,
                         sizeof value))
        *said = says_yes(value);
    free(text);
    return KILN_OK;
}

static kiln_status use_training_mark(kiln_dataset *d, const char *path, size_t mark, bool on,
                                     kiln_error *err)
{
    char what[160];
    snprintf(what, sizeof what, "%s%s", marks[mark].what, on ? "" : " is off");
    d->antialiased |= on;
    KILN_TRY(kiln_camera_set_add_finding(&d->set, path, "settings", true, what, "", err));
    return kiln_camera_set_add_source(&d->set, path, "settings", err);
}

static kiln_status ask_folder(kiln_dataset *d, const char *folder, bool *found, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    for (size_t m = 0; m < N_MARKS && !*found; m++) {
        int said;
        const int n = snprintf(path, sizeof path, "%s/%s", folder, marks[m].file);
        if (n < 0 || (size_t)n >= sizeof path) return KILN_OK;
        KILN_TRY(read_training_mark(d, path, m, &said, err));
        *found = said >= 0;
        if (*found) KILN_TRY(use_training_mark(d, path, m, said == 1, err));
    }
    return KILN_OK;
}

typedef struct {
    char first[KILN_PATH_MAX];
    size_t mark;
    uint32_t n, n_on;
} runs;

/* outputs/NAME/METHOD/DATE/config.yml: one folder for each training. */
static kiln_status ask_runs(kiln_dataset *d, const char *folder, int depth, runs *r,
                            kiln_error *err)
{
    enum { DEPTH = 3, CONFIG = 1 };
    char path[KILN_PATH_MAX];
    kiln_status st = KILN_OK;
    DIR *dir = opendir(folder);
    if (!dir) return KILN_OK;
    for (const struct dirent *e; st == KILN_OK && r->n < RUNS_MAX && (e = readdir(dir));) {
        const int n = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        int said = -1;
        if (e->d_name[0] == '.' || n < 0 || (size_t)n >= sizeof path) continue;
        if (depth == DEPTH && strcmp(e->d_name, marks[CONFIG].file) == 0)
            st = read_training_mark(d, path, CONFIG, &said, err);
        if (depth < DEPTH && kiln_may_look_into(path, NULL))
            st = ask_runs(d, path, depth + 1, r, err);
        if (said < 0) continue;
        if (r->n++ == 0 || strcmp(path, r->first) < 0)
            snprintf(r->first, sizeof r->first, "%s", path);
        r->n_on += said == 1;
    }
    closedir(dir); /* opened for reading: nothing to lose */
    return st;
}

static kiln_status ask_outputs(kiln_dataset *d, kiln_error *err)
{
    char outputs[KILN_PATH_MAX];
    runs r = {.mark = 1};
    KILN_TRY(kiln_path_join(outputs, sizeof outputs, d->set.root, "outputs", err));
    KILN_TRY(ask_runs(d, outputs, 0, &r, err));
    if (r.n == 0) return KILN_OK;
    if (r.n_on == 0 || r.n_on == r.n) return use_training_mark(d, r.first, r.mark, r.n_on > 0, err);
    kiln_camera_set_note_meaning(&d->set,
                                 "%u trainings are in 'outputs', and %u of them are antialiased; "
                                 "it is unknown which one made the "
                                 "Gaussians: tell kiln-render with --antialiased on or off",
                                 r.n, r.n_on);
    return KILN_OK;
}

/* Is the folder one that a trainer makes below that of its settings, or one of the data set's? */
static bool is_below_settings(const kiln_dataset *d, const char *folder)
{
    static const char *const names[] = {"ply", "splat", "exports", "point_cloud", "ckpts"};
    const size_t root = strlen(d->set.root);
    const char *base = kiln_path_base(folder);
    if (strncmp(folder, d->set.root, root) == 0 && folder[root] == '/') return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(base, names[i]) == 0) return true;
    return strncmp(base, "iteration_", 10) == 0;
}

kiln_status kiln_training_marks_read(kiln_dataset *d, kiln_error *err)
{
    char folder[KILN_PATH_MAX];
    bool found = false;
    if (!d->reader || d->rows_kind != KILN_SCENE_SPLATS) return KILN_OK;
    snprintf(folder, sizeof folder, "%s", d->rows_path);
    for (int i = 0; i <= ABOVE && !found; i++) {
        const char *base = kiln_path_base(folder);
        if (base <= folder + 1 || (i > 0 && !is_below_settings(d, folder))) break;
        folder[base - folder - 1] = '\0';
        KILN_TRY(ask_folder(d, folder, &found, err));
    }
    if (!found) KILN_TRY(ask_folder(d, d->set.root, &found, err));
    return found || !d->set.is_folder ? KILN_OK : ask_outputs(d, err);
}
