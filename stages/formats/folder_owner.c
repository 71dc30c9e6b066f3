/* folder_owner -- see the header.
 *
 * A mistyped -o must not cost anybody his files, so an export replaces a folder only if an earlier
 * export of ours has written all that is in it. Names alone do not say so: other programs write
 * tileset.json, meta.json and means_l.webp, too. What says it is the file by which the format
 * begins, `last_file`: it names its generator, and the other files. It is enough, because a folder
 * of ours gets its name when it is whole, so that no interrupted export leaves tiles without their
 * tileset. Somebody may have removed the file since; then the names have to do, if the bake
 * remembers that it wrote there, or --overwrite says so. */
#include "stages/formats/folder_owner.h"

#include "base/file.h"
#include "base/log.h"
#include "stages/engine/json_text.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { INDEX_MAX = 1 << 30 };

/* NULL names: whatever the format could have written may go. */
typedef struct {
    const kiln_writer_functions *f;
    const char *target;
    json_t *names; /* an object, the keys of which are all texts of last_file */
} owner;

bool kiln_is_real_folder(const char *path)
{
    struct stat s;
    return lstat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static bool is_dots(const char *name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

/* kiln convert names the folder without -o. */
static const char *with_option(void) { return kiln_log_is_stage() ? " with -o" : ""; }

static kiln_status fail_no_folder(const char *path, kiln_error *err)
{
    return kiln_fail(
        err, KILN_E_USAGE,
        "'%s' exists, but is not a folder that may be replaced; choose another place%s", path,
        with_option());
}

kiln_status kiln_folder_fail_foreign(const char *folder, const char *name, kiln_error *err)
{
    return kiln_fail(err, KILN_E_USAGE,
                     "the folder '%s' holds '%s', which has a name of this format, but was not "
                     "written by SplatKiln; choose "
                     "another folder%s, or replace it with -w, --overwrite",
                     folder, name, with_option());
}

/* As deep as jansson parses, 2048. False: memory is gone. */
static bool collect_strings(json_t *from, json_t *names) // NOLINT(misc-no-recursion)
{
    bool all = true;
    size_t i;
    const char *key;
    json_t *one;
    if (json_is_string(from))
        return json_object_set_new(names, json_string_value(from), json_true()) == 0;
    json_array_foreach(from, i, one) all = all && collect_strings(one, names);
    json_object_foreach(from, key, one) all = all && collect_strings(one, names);
    return all;
}

/* What an export of ours wrote into the folder, by its own word: an empty object where there is
 * none. */
static kiln_status read_names(const kiln_writer_functions *f, const char *target, json_t **names,
                              kiln_error *err)
{
    static const char ours[] = "SplatKiln ";
    char path[KILN_PATH_MAX];
    unsigned char *text;
    size_t size;
    json_t *index = NULL;
    *names = json_object();
    if (!*names)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory while looking into '%s'", target);
    KILN_TRY(kiln_path_join(path, sizeof path, target, f->last_file, err));
    if (!kiln_is_file(path) || kiln_file_read(path, INDEX_MAX, &text, &size, NULL) != KILN_OK)
        return KILN_OK;
    kiln_status st = kiln_json_parse((const char *)text, size, 0, path, &index, NULL, err);
    free(text);
    const char *by =
        st == KILN_OK
            ? json_string_value(json_object_get(json_object_get(index, "asset"), "generator"))
            : NULL;
    if (by && strncmp(by, ours, strlen(ours)) == 0 &&
        (!collect_strings(index, *names) ||
         json_object_set_new(*names, f->last_file, json_true()) != 0))
        st = kiln_fail(err, KILN_E_NOMEM, "out of memory while reading '%s'", path);
    json_decref(index);
    return st;
}

/* FOLDER/FILE is named where FOLDER/ANYTHING is: by the file that tells what is in FOLDER. */
static bool is_named(const owner *o, const char *prefix, const char *name)
{
    const char *key;
    json_t *value;
    if (json_object_get(o->names, name)) return true;
    if (!prefix[0]) return false;
    json_object_foreach(o->names, key, value)
    {
        if (strncmp(key, prefix, strlen(prefix)) == 0) return true;
    }
    return false;
}

/* All of a folder at `path`, whose files the format calls PREFIX and their names. A folder inside
 * is ours when all in it is. */
static kiln_status check_folder_names(const owner *o, const char *path, const char *prefix,
                                      kiln_error *err) // NOLINT(misc-no-recursion)
{
    kiln_status st = KILN_OK;
    char name[KILN_PATH_MAX], below[KILN_PATH_MAX];
    DIR *folder = opendir(path);
    if (!folder) return fail_no_folder(path, err);
    for (struct dirent *d = readdir(folder); d && st == KILN_OK; d = readdir(folder)) {
        if (is_dots(d->d_name)) continue;
        (void)snprintf(name, sizeof name, "%s%s", prefix, d->d_name);
        st = kiln_path_join(below, sizeof below, path, d->d_name, err);
        const bool inside = st == KILN_OK && !prefix[0] && kiln_is_real_folder(below);
        if (inside) (void)snprintf(name + strlen(name), sizeof name - strlen(name), "/");
        if (inside)
            st = check_folder_names(o, below, name, err);
        else if (st == KILN_OK && !o->f->is_ours(name))
            st = kiln_fail(
                err, KILN_E_USAGE,
                "the folder '%s' holds '%s', which this format does not write; %s", o->target, name,
                kiln_log_is_stage() ? "choose an empty folder with -o" : "name another folder");
        else if (st == KILN_OK && o->names && !is_named(o, prefix, name))
            st = kiln_folder_fail_foreign(o->target, name, err);
    }
    closedir(folder);
    return st;
}

kiln_status kiln_folder_check(const kiln_writer_functions *f, const char *target, bool replace,
                              kiln_error *err)
{
    struct stat s;
    owner o = {.f = f, .target = target};
    if (lstat(target, &s) != 0) return KILN_OK;
    if (!S_ISDIR(s.st_mode)) return fail_no_folder(target, err);
    kiln_status st = replace ? KILN_OK : read_names(f, target, &o.names, err);
    if (st == KILN_OK) st = check_folder_names(&o, target, "", err);
    json_decref(o.names);
    return st;
}
