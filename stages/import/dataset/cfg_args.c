/* cfg_args -- text of a Python Namespace, looked through for key=value and never evaluated:
 *
 *     Namespace(data_device='cuda', eval=False, images='images', sh_degree=3, white_background=False, ...)
 * Paths in it belong to another machine: source_path is shown where photos are missing, and nothing
 * else is done with it. A value that is not of the expected kind is passed over: the file is a
 * by-product, not what the user gave us to read.
 */
#include "stages/import/dataset/cfg_args.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE_LIMIT = 1 << 20 };

/* What follows "key=" where key is a whole word; NULL when it is not there. */
static const char *cfg_args_value(const char *text, const char *key)
{
    const size_t n = strlen(key);
    for (const char *at = strstr(text, key); at; at = strstr(at + 1, key)) {
        const bool starts = at == text || at[-1] == '(' || at[-1] == ' ' || at[-1] == ',';
        if (starts && at[n] == '=') return at + n + 1;
    }
    return NULL;
}

static bool read_bool(const char *text, const char *key, bool *out)
{
    const char *v = cfg_args_value(text, key);
    const bool yes = v && strncmp(v, "True", 4) == 0, no = v && strncmp(v, "False", 5) == 0;
    *out = yes;
    return yes || no;
}

/* A quoted name without quotes or backslashes in it. */
static bool read_name(const char *text, const char *key, char *out, size_t capacity)
{
    const char *v = cfg_args_value(text, key), *why;
    if (!v || (*v != '\'' && *v != '"')) return false;
    const char *end = strchr(v + 1, *v);
    if (!end || (size_t)(end - v - 1) >= capacity) return false;
    snprintf(out, capacity, "%.*s", (int)(end - v - 1), v + 1);
    if (kiln_name_is_safe(out, &why) && !strpbrk(out, "\"'")) return true;
    out[0] = 0;
    return false;
}

/* A quoted path as it stands. */
static void read_path(const char *text, const char *key, char *out, size_t capacity)
{
    const char *v = cfg_args_value(text, key),
               *end = v && (*v == '\'' || *v == '"') ? strchr(v + 1, *v) : NULL;
    out[0] = 0;
    if (end && (size_t)(end - v - 1) < capacity)
        snprintf(out, capacity, "%.*s", (int)(end - v - 1), v + 1);
}

static void interpret_cfg_args(kiln_dataset *d, const char *text)
{
    bool white, yes;
    const char *degree = cfg_args_value(text, "sh_degree");
    const bool has_name = read_name(text, "images", d->set.images, sizeof d->set.images);
    d->set.has_eval = read_bool(text, "eval", &d->set.eval);
    read_path(text, "source_path", d->set.source_path, sizeof d->set.source_path);
    char *out = d->cfg_args;
    const size_t capacity = sizeof d->cfg_args;
    int n = snprintf(out, capacity, "{");
    d->has_background = read_bool(text, "white_background", &white);
    if (d->has_background) {
        for (int i = 0; i < 3; i++) d->background[i] = white ? 1 : 0;
        n += snprintf(out + n, capacity - (size_t)n, "\"white_background\":%s,",
                      white ? "true" : "false");
    }
    if (degree && *degree >= '0' && *degree <= '9')
        n += snprintf(out + n, capacity - (size_t)n, "\"sh_degree\":%c,", *degree);
    if (d->set.has_eval)
        n +=
            snprintf(out + n, capacity - (size_t)n, "\"eval\":%s,", d->set.eval ? "true" : "false");
    if (has_name) n += snprintf(out + n, capacity - (size_t)n, "\"images\":\"%s\",", d->set.images);
    d->trained_left = read_bool(text, "train_test_exp", &yes) && yes;
    d->antialiased = read_bool(text, "antialiasing", &yes) && yes;
    if (d->antialiased) n += snprintf(out + n, capacity - (size_t)n, "\"antialiasing\":true,");
    if (d->trained_left) n += snprintf(out + n, capacity - (size_t)n, "\"train_test_exp\":true,");
    if (out[n - 1] == ',') n--;
    snprintf(out + n, capacity - (size_t)n, "}");
}

/* What of it decides something here; the rest is kept in the scene's notes. */
static kiln_status report_cfg_args(kiln_dataset *d, const char *path, kiln_error *err)
{
    char what[200];
    const char *background = !d->has_background     ? ""
                             : d->background[0] > 0 ? "white background"
                                                    : "black background";
    const bool named = d->has_background || d->set.images[0],
               used = named || d->antialiased || d->trained_left;
    snprintf(what, sizeof what, "%s%s%s%.90s%s%s%s%s", background,
             *background && d->set.images[0] ? ", " : "", d->set.images[0] ? "image folder '" : "",
             d->set.images,
             d->set.images[0] ? "'"
             : used           ? ""
                              : "nothing that matters here",
             d->antialiased ? (named ? ", antialiasing" : "antialiasing") : "",
             d->trained_left && (named || d->antialiased) ? ", " : "",
             d->trained_left ? "train_test_exp" : "");
    return kiln_camera_set_add_finding(
        &d->set, path, "settings", used, what,
        used ? "" : "it names neither a background nor an image folder", err);
}

kiln_status kiln_cfg_args_read(kiln_dataset *d, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    unsigned char *text = NULL;
    size_t size;
    KILN_TRY(kiln_path_join(path, sizeof path, d->set.root, "cfg_args", err));
    if (!kiln_is_file(path)) return KILN_OK;
    KILN_TRY(kiln_file_read(path, SIZE_LIMIT, &text, &size, err));
    /* a NUL byte in it ends it early, which is harmless */
    interpret_cfg_args(d, (const char *)text);
    free(text);
    KILN_TRY(report_cfg_args(d, path, err));
    return kiln_camera_set_add_source(&d->set, path, "settings", err);
}
