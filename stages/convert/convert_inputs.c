/* convert_inputs -- see the header. */
#include "stages/convert/convert_inputs.h"

#include "base/file.h"
#include "base/log.h"
#include "stages/import/plain_rows.h"
#include "stages/products/product_mark.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    const char *named;
    char place[KILN_PATH_MAX]; /* without links, but for the last name: a link is replaced itself */
    bool is_folder, there;
    bool is_old; /* of an earlier run, and left out of folders that are read */
    struct stat info;
} target;

static bool resolve(const char *path, char out[KILN_PATH_MAX])
{
    char *const real = realpath(path, NULL);
    const bool fits = real && strlen(real) < KILN_PATH_MAX;
    if (fits) memcpy(out, real, strlen(real) + 1);
    free(real);
    return fits;
}

/* Folders above it that are not there will be made. */
static bool find_place(const char *path, char out[KILN_PATH_MAX])
{
    char above[KILN_PATH_MAX], real[KILN_PATH_MAX];
    size_t at = strlen(path);
    if (strcmp(path, "/") == 0) return resolve(path, out);
    do {
        while (at > 0 && path[at - 1] != '/') at--;
        if ((size_t)snprintf(above, sizeof above, "%.*s", (int)at, at ? path : ".") >= sizeof above)
            return false;
        if (resolve(at ? above : ".", real))
            return snprintf(out, KILN_PATH_MAX, "%s/%s", strcmp(real, "/") == 0 ? "" : real,
                            path + at) < KILN_PATH_MAX;
        while (at > 0 && path[at - 1] == '/') at--;
    } while (at > 0);
    return false;
}

static bool is_in(const char *path, const char *folder)
{
    const size_t n = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool is_same(const target *t, const struct stat *info)
{
    return t->there && t->info.st_dev == info->st_dev && t->info.st_ino == info->st_ino;
}

/* Says whether it is no input though it lies in a folder that is read: that has other files. */
static bool is_left_out(const target *t, const struct stat *info, const char *real)
{
    return t->is_old && S_ISDIR(info->st_mode) && is_in(t->place, real);
}

/* What the target does to a file or folder that is read; NULL: nothing. */
static const char *touches(const target *t, const char *path)
{
    char real[KILN_PATH_MAX], place[KILN_PATH_MAX];
    struct stat info;
    if (!resolve(path, real) || stat(real, &info) != 0 || !find_place(path, place)) return NULL;
    if (is_same(t, &info) || strcmp(t->place, real) == 0 || strcmp(t->place, place) == 0)
        return "is";
    if (is_left_out(t, &info, real)) return NULL;
    /* what is new there is no input */
    if (t->there && S_ISDIR(info.st_mode) && is_in(t->place, real)) return "lies in";
    return t->is_folder && (is_in(real, t->place) || is_in(place, t->place)) ? "holds" : NULL;
}

static kiln_status spare(const target *t, const char *path, kiln_error *err)
{
    const char *how = touches(t, path);
    if (!how) return KILN_OK;
    if (strcmp(t->named, path) == 0)
        return kiln_fail(err, KILN_E_USAGE, "OUT '%.1500s' is also an input; choose another place",
                         path);
    return kiln_fail(err, KILN_E_USAGE,
                     "'%.1500s' %s '%.1500s', which is an input; choose another place", t->named,
                     how, path);
}

typedef struct {
    const target *target;
    uint64_t n;
} source_check;

static kiln_status spare_source(void *context, const char *path, kiln_error *err)
{
    source_check *c = context;
    c->n++;
    return spare(c->target, path, err);
}

/* The file or folder of a word, and what is read of it. A folder with no other file than the target
 * is read for that. */
static kiln_status spare_word(target *t, const char *path, unsigned position, kiln_error *err)
{
    source_check c = {.target = t};
    struct stat info;
    char real[KILN_PATH_MAX];
    KILN_TRY(spare(t, path, err));
    KILN_TRY(kiln_plain_rows_sources(path, position, spare_source, &c, err));
    if (!resolve(path, real) || stat(real, &info) != 0 || !is_left_out(t, &info, real))
        return KILN_OK;
    if (c.n > 0) {
        kiln_say("'%.1500s' is of an earlier run and is replaced, so it is no input", t->named);
        return KILN_OK;
    }
    t->is_old = false;
    kiln_plain_rows_leave_out(NULL);
    return spare(t, path, err);
}

kiln_status kiln_convert_spare_inputs(const char *const *files, unsigned n, const char *named,
                                      kiln_target_kind kind, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    target t = {.named = named, .is_folder = kind == KILN_TARGET_FOLDER};
    kiln_plain_rows_leave_out(NULL);
    if (!find_place(named, t.place)) return KILN_OK; /* it cannot be made, and the run says so */
    t.there = stat(named, &t.info) == 0;
    t.is_old = kind == KILN_TARGET_REPLACED && t.there && S_ISREG(t.info.st_mode) &&
               kiln_product_was_written(named);
    if (t.is_old) kiln_plain_rows_leave_out(t.place);
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(files[i], "-") == 0) continue;
        KILN_TRY(kiln_plain_rows_file(files[i], i, path, err));
        KILN_TRY(spare_word(&t, path, i, err));
    }
    return KILN_OK;
}
