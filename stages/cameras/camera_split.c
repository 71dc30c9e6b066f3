/* camera_split -- test views by --split, by what camera files say, by lists of names, by cfg_args,
 * by the names themselves.
 *
 * A list has a name on each line: of a photo, with or without its folders and extension. It fits
 * the camera of that name and every camera whose name ends with it behind a slash; a name that has
 * more folders than the cameras fits by what follows one of its slashes. Lists are large where data
 * sets are, so names are looked up in a sorted table of all ends of the cameras' names. */
#include "stages/cameras/camera_split.h"

#include "base/memory.h"
#include "stages/cameras/camera_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_LIMIT = 16 << 20 };

kiln_status kiln_split_parse(const char *text, kiln_split *out, kiln_error *err)
{
    *out = (kiln_split){0};
    if (strcmp(text, "auto") == 0) return KILN_OK;
    if (strcmp(text, "all-train") == 0) {
        out->kind = KILN_SPLIT_ALL_TRAIN;
        return KILN_OK;
    }
    if (strncmp(text, "names:", 6) == 0 && text[6]) {
        *out = (kiln_split){.kind = KILN_SPLIT_NAMES, .file = text + 6};
        return KILN_OK;
    }
    const char *n = strncmp(text, "every:", 6) == 0 ? text + 6 : "";
    const size_t digits = strspn(n, "0123456789");
    if (digits > 0 && digits <= 9 && !n[digits] && strtoul(n, NULL, 10) > 0) {
        *out = (kiln_split){.kind = KILN_SPLIT_EVERY, .every = (uint32_t)strtoul(n, NULL, 10)};
        return KILN_OK;
    }
    return kiln_fail(err, KILN_E_USAGE,
                     "--split takes auto, every:N with N from 1, names:FILE or all-train, not '%s'",
                     text);
}

/* ---- lists of names -------------------------------------------------------------------------- */

/* A camera's name, or what follows one of its slashes. */
typedef struct {
    const char *end; /* borrowed from the camera */
    uint32_t camera;
} name_end;

typedef struct {
    name_end *ends; /* [n] owned; sorted */
    uint64_t n;
    bool *listed;         /* [n_cameras] owned: a name fits this camera */
    uint64_t names, lost; /* lines with a name; those that fit no camera */
    char first_lost[200];
} name_list;

static int by_end(const void *a, const void *b)
{
    const name_end *x = a, *y = b;
    const int order = strcmp(x->end, y->end);
    return order ? order : (x->camera > y->camera) - (x->camera < y->camera);
}

static void name_list_release(name_list *l)
{
    free(l->ends);
    free(l->listed);
    *l = (name_list){0};
}

static kiln_status name_list_init(name_list *l, const kiln_camera_set *set, kiln_error *err)
{
    uint64_t n = 0;
    *l = (name_list){0};
    for (uint32_t i = 0; i < set->n_cameras; i++)
        for (const char *at = set->cameras[i].name; at; n++)
            at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL;
    KILN_TRY(KILN_ALLOC(&l->ends, n, "names of cameras", err));
    KILN_TRY(KILN_ALLOC(&l->listed, set->n_cameras, "cameras", err));
    for (uint32_t i = 0; i < set->n_cameras; i++)
        for (const char *at = set->cameras[i].name; at;
             at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
            l->ends[l->n++] = (name_end){at, i};
    qsort(l->ends, l->n, sizeof *l->ends, by_end);
    return KILN_OK;
}

/* Marks the cameras that have this end; whole: only the one that is called so. Returns whether
 * there is one. */
static bool mark_named_cameras(name_list *l, const kiln_camera_set *set, const char *name,
                               bool whole)
{
    uint64_t lo = 0, hi = l->n;
    bool found = false;
    while (lo < hi) {
        const uint64_t middle = lo + (hi - lo) / 2;
        if (strcmp(l->ends[middle].end, name) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    for (; lo < l->n && strcmp(l->ends[lo].end, name) == 0; lo++) {
        if (whole && l->ends[lo].end != set->cameras[l->ends[lo].camera].name) continue;
        l->listed[l->ends[lo].camera] = true;
        found = true;
    }
    return found;
}

static void take_name(name_list *l, const kiln_camera_set *set, const char *line, size_t size)
{
    char name[1100];
    while (size && (line[size - 1] == ' ' || line[size - 1] == '\t' || line[size - 1] == '\r'))
        size--;
    while (size && (*line == ' ' || *line == '\t')) line++, size--;
    if (size == 0 || *line == '#') return;
    l->names++;
    const char *given = name;
    snprintf(name, sizeof name, "%.*s", size < sizeof name ? (int)size : (int)sizeof name, line);
    for (char *s = name; *s; s++)
        if (*s == '\\') *s = '/';
    while (given[0] == '.' && given[1] == '/') given += 2 + strspn(given + 2, "/");
    name[kiln_photo_stem(given) + (size_t)(given - name)] = '\0';
    /* the whole name before any end of a longer one: a list that names each camera fully means
     * those alone */
    bool found =
        mark_named_cameras(l, set, given, true) || mark_named_cameras(l, set, given, false);
    for (const char *at = strchr(given, '/'); at && !found; at = strchr(at + 1, '/'))
        found = mark_named_cameras(l, set, at + 1, true);
    if (!found && l->lost++ == 0)
        snprintf(l->first_lost, sizeof l->first_lost, "%.*s", size < 199 ? (int)size : 199, line);
}

static kiln_status read_names(name_list *l, const kiln_camera_set *set, const char *path,
                              kiln_error *err)
{
    unsigned char *text = NULL;
    size_t size = 0;
    KILN_TRY(kiln_file_read(path, LIST_LIMIT, &text, &size, err));
    const char *at = (const char *)text, *end = at + size;
    if (!kiln_utf8_valid(text, size)) {
        free(text);
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is not UTF-8; a list of names has one name on each line", path);
    }
    if (size >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) at += 3; /* byte order mark */
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        take_name(l, set, at, (size_t)(stop - at));
        at = stop + 1;
    }
    free(text);
    return KILN_OK;
}

/* The cameras that are listed become `listed`, the others `others`. */
static kiln_status use_list(kiln_camera_set *set, const name_list *l, const char *path,
                            const char *listed, const char *others, kiln_error *err)
{
    char what[160];
    for (uint32_t i = 0; i < set->n_cameras; i++)
        snprintf(set->cameras[i].split, sizeof set->cameras[i].split, "%s",
                 l->listed[i] ? listed : others);
    if (l->lost)
        kiln_camera_set_note(set, "'%s': %llu of %llu names match no camera; the first is '%s'",
                             path, (unsigned long long)l->lost, (unsigned long long)l->names,
                             l->first_lost);
    snprintf(set->split_rule, sizeof set->split_rule, "names in %.100s", kiln_path_base(path));
    snprintf(what, sizeof what, "list of %s views, %llu name%s", listed,
             (unsigned long long)l->names, l->names == 1 ? "" : "s");
    KILN_TRY(kiln_camera_set_add_finding(set, path, "split", true, what, "", err));
    return kiln_camera_set_add_source(set, path, "split", err);
}

static kiln_status split_by_file(kiln_camera_set *set, const char *path, kiln_error *err)
{
    name_list l;
    kiln_status st;
    KILN_GO(name_list_init(&l, set, err));
    KILN_GO(read_names(&l, set, path, err));
    if (l.names == l.lost)
        st = l.names == 0
                 ? kiln_fail(err, KILN_E_INPUT,
                             "'%s' holds no name; --split names:FILE takes one on each line", path)
                 : kiln_fail(err, KILN_E_INPUT,
                             "none of the %llu names in '%s' belongs to a camera; the first name "
                             "is '%s', the first camera '%.300s'",
                             (unsigned long long)l.names, path, l.first_lost, set->cameras[0].name);
    else
        st = use_list(set, &l, path, "test", "train", err);
done:
    name_list_release(&l);
    return st;
}

/* A list that lies in the data set. It may be about something else, so that one that fits nothing
 * or is no text is a finding. */
static kiln_status try_list(kiln_camera_set *set, const char *name, bool *used, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    const bool test = strcmp(kiln_path_base(name), "test.txt") == 0;
    kiln_status st = KILN_OK;
    kiln_error why = {0};
    name_list l = {0};
    KILN_TRY(kiln_path_join(path, sizeof path, set->root, name, err));
    if (!kiln_is_file(path)) return KILN_OK;
    if (*used)
        return kiln_camera_set_add_finding(set, path, "split", false, "list of names",
                                           "another list takes precedence", err);
    KILN_GO(name_list_init(&l, set, err));
    const kiln_status read = read_names(&l, set, path, &why);
    if (read != KILN_OK && read != KILN_E_INPUT) {
        st = kiln_fail(err, read, "%s", why.msg);
    } else if (read != KILN_OK) {
        st = kiln_camera_set_add_finding(set, path, "split", false, "list of names", why.msg, err);
    } else if (l.names == l.lost) {
        st = kiln_camera_set_add_finding(set, path, "split", false, "list of names",
                                         "none of its names belongs to a camera", err);
    } else {
        st = use_list(set, &l, path, test ? "test" : "train", test ? "train" : "test", err);
        *used = true;
    }
done:
    name_list_release(&l);
    return st;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void split_every(kiln_camera_set *set, uint32_t n)
{
    for (uint32_t i = 0; i < set->n_cameras; i++)
        snprintf(set->cameras[i].split, sizeof set->cameras[i].split, "%s",
                 i % n == 0 ? "test" : "train");
}

static void split_all_train(kiln_camera_set *set)
{
    for (uint32_t i = 0; i < set->n_cameras; i++)
        snprintf(set->cameras[i].split, sizeof set->cameras[i].split, "train");
}

static bool is_test_name(const char *name) { return strncmp(name, "test/", 5) == 0; }

/* What camera files say; false when they say nothing. A camera of which they say nothing is a
 * training view. */
static bool split_as_said(kiln_camera_set *set)
{
    bool said = false, test = false;
    for (uint32_t i = 0; i < set->n_cameras; i++) {
        said |= set->cameras[i].split[0] != 0;
        test |= strcmp(set->cameras[i].split, "test") == 0;
    }
    set->split_later |= said && !test; /* once that was as good as nothing said */
    for (uint32_t i = 0; i < set->n_cameras && said; i++)
        if (!set->cameras[i].split[0])
            snprintf(set->cameras[i].split, sizeof set->cameras[i].split, "train");
    return said;
}

static bool split_by_own_names(kiln_camera_set *set)
{
    bool named = false;
    for (uint32_t i = 0; i < set->n_cameras; i++) named |= is_test_name(set->cameras[i].name);
    for (uint32_t i = 0; i < set->n_cameras && named; i++)
        snprintf(set->cameras[i].split, sizeof set->cameras[i].split, "%s",
                 is_test_name(set->cameras[i].name) ? "test" : "train");
    return named;
}

static void set_rule(kiln_camera_set *set, const char *rule)
{
    snprintf(set->split_rule, sizeof set->split_rule, "%s", rule);
}

static kiln_status split_auto(kiln_camera_set *set, kiln_error *err)
{
    static const char *const lists[] = {"test.txt", "sparse/0/test.txt", "train.txt",
                                        "sparse/0/train.txt"};
    bool used = false;
    if (split_as_said(set)) {
        set_rule(set, "as the camera files say");
        return KILN_OK;
    }
    for (size_t i = 0; set->is_folder && i < sizeof lists / sizeof *lists; i++)
        KILN_TRY(try_list(set, lists[i], &used, err));
    if (used) return KILN_OK;
    if (set->has_eval && !set->eval) {
        split_all_train(set);
        set->split_later = true;
        set_rule(set, "cfg_args says eval=False, so all were trained on");
    } else if (split_by_own_names(set)) {
        set_rule(set, "names beginning test/");
    } else {
        split_every(set, 8);
        set_rule(set, "every 8th by name"); /* as INRIA does with eval=True */
    }
    return KILN_OK;
}

kiln_status kiln_split_cameras(kiln_camera_set *set, kiln_error *err)
{
    const kiln_split *s = &set->split;
    set->split_rule[0] = '\0';
    if (set->n_cameras == 0) return KILN_OK;
    switch (s->kind) {
    case KILN_SPLIT_NAMES:
        return split_by_file(set, s->file, err);
    case KILN_SPLIT_EVERY:
        split_every(set, s->every);
        snprintf(set->split_rule, sizeof set->split_rule, "--split every:%u", s->every);
        return KILN_OK;
    case KILN_SPLIT_ALL_TRAIN:
        split_all_train(set);
        set_rule(set, "--split all-train");
        return KILN_OK;
    case KILN_SPLIT_AUTO:
        break;
    }
    return split_auto(set, err);
}
