#include "stages/formats/lod/lod_tree.h"

#include "base/file.h"
#include "base/memory.h"
#include "stages/files/json_file.h"
#include "stages/formats/lod/lod.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name;
    kiln_lod_tree *tree;
} taking;

void kiln_lod_tree_release(kiln_lod_tree *t)
{
    for (uint32_t i = 0; i < t->n_files; i++) free(t->files[i]);
    free(t->files);
    free(t->environment);
    free(t->ranges);
    *t = (kiln_lod_tree){0};
}

/* A whole number from 0 to most - 1. */
static bool whole_below(const json_t *v, double most, uint64_t *out)
{
    const double d = json_number_value(v);
    if (!json_is_number(v) || !(d >= 0 && d < most) || d != floor(d)) return false;
    *out = (uint64_t)d;
    return true;
}

static kiln_status copy_name(const taking *t, const json_t *file, char **out, kiln_error *err)
{
    const char *why = "it is no text", *name = json_string_value(file);
    if (!name || strlen(name) != json_string_length(file) || !kiln_name_is_safe(name, &why))
        return kiln_fail(err, KILN_E_INPUT, "'%s' names a file that is refused: %s", t->name, why);
    KILN_TRY(KILN_ALLOC(out, strlen(name) + 1, "the name of a file", err));
    memcpy(*out, name, strlen(name));
    return KILN_OK;
}

static kiln_status take_names(const taking *t, const json_t *json, kiln_error *err)
{
    const json_t *names = json_object_get(json, KILN_LOD_KEY_FILES),
                 *environment = json_object_get(json, KILN_LOD_KEY_ENVIRONMENT);
    if (!json_is_array(names))
        return kiln_fail(err, KILN_E_INPUT, "'%s' has no list \"filenames\"", t->name);
    KILN_TRY(KILN_ALLOC(&t->tree->files, json_array_size(names), "the names of files", err));
    for (size_t i = 0; i < json_array_size(names); i++)
        KILN_TRY(copy_name(t, json_array_get(names, i), &t->tree->files[t->tree->n_files++], err));
    if (!environment || json_is_null(environment)) return KILN_OK;
    return copy_name(t, environment, &t->tree->environment, err);
}

/* ---- the tree -------------------------------------------------------------------------------- */

static kiln_status add_range(const taking *t, const kiln_lod_range *range, kiln_error *err)
{
    kiln_lod_tree *tree = t->tree;
    tree->counts[range->level] += range->n;
    if (range->n == 0) return KILN_OK;
    KILN_TRY(
        kiln_grow((void **)&tree->ranges, tree->n_ranges, sizeof *tree->ranges, "leaves", err));
    tree->ranges[tree->n_ranges++] = *range;
    return KILN_OK;
}

static kiln_status take_leaf(const taking *t, const json_t *lods, kiln_error *err)
{
    const char *key;
    json_t *entry;
    json_object_foreach((json_t *)(uintptr_t)lods, key, entry) /* jansson's type; it only reads */
    {
        const char *end = key + strspn(key, "0123456789");
        const uint64_t level =
            *end || end == key || end - key > 4 ? UINT64_MAX : strtoull(key, NULL, 10);
        kiln_lod_range range;
        uint64_t file;
        if (level >= t->tree->n_levels)
            return kiln_fail(err, KILN_E_INPUT,
                             "'%s' has a leaf with the level '%.20s', and its levels are 0 to %u",
                             t->name, key, t->tree->n_levels - 1);
        if (!whole_below(json_object_get(entry, KILN_LOD_KEY_FILE), t->tree->n_files, &file))
            return kiln_fail(err, KILN_E_INPUT, "'%s' has a leaf whose file is none of its %u",
                             t->name, t->tree->n_files);
        if (!whole_below(json_object_get(entry, KILN_LOD_KEY_OFFSET), UINT32_MAX, &range.first) ||
            !whole_below(json_object_get(entry, KILN_LOD_KEY_COUNT), UINT32_MAX, &range.n))
            return kiln_fail(
                err, KILN_E_INPUT,
                "'%s' has a leaf whose offset or count is no whole number from 0 to 2^32", t->name);
        range.level = (uint32_t)level;
        range.file = (uint32_t)file;
        KILN_TRY(add_range(t, &range, err));
    }
    return KILN_OK;
}

/* As deep as JSON may be nested here: 64. */
static kiln_status take_node(const taking *t, const json_t *node,
                             kiln_error *err) // NOLINT(misc-no-recursion)
{
    const json_t *children = json_object_get(node, KILN_LOD_KEY_CHILDREN),
                 *lods = json_object_get(node, KILN_LOD_KEY_LODS);
    if (!json_is_array(children) && !json_is_object(lods))
        return kiln_fail(err, KILN_E_INPUT,
                         "the tree of '%s' has a node with neither children nor lods", t->name);
    if (json_is_object(lods)) KILN_TRY(take_leaf(t, lods, err));
    for (size_t i = 0; i < json_array_size(children); i++)
        KILN_TRY(take_node(t, json_array_get(children, i), err));
    return KILN_OK;
}

static int by_place(const void *a, const void *b)
{
    const kiln_lod_range *x = a, *y = b;
    if (x->level != y->level) return x->level < y->level ? -1 : 1;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static kiln_status check_ranges(const taking *t, kiln_error *err)
{
    kiln_lod_tree *tree = t->tree;
    if (tree->n_ranges) qsort(tree->ranges, tree->n_ranges, sizeof *tree->ranges, by_place);
    for (uint32_t i = 1; i < tree->n_ranges; i++) {
        const kiln_lod_range *a = &tree->ranges[i - 1], *b = &tree->ranges[i];
        if (a->level == b->level && a->file == b->file && a->first + a->n > b->first)
            return kiln_fail(err, KILN_E_INPUT, "'%s' has two leaves that share row %llu of '%s'",
                             t->name, (unsigned long long)b->first, tree->files[b->file]);
    }
    return KILN_OK;
}

/* Where they are there. */
static kiln_status check_counts(const taking *t, const json_t *json, kiln_error *err)
{
    const json_t *counts = json_object_get(json, KILN_LOD_KEY_COUNTS),
                 *count = json_object_get(json, KILN_LOD_KEY_COUNT);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < t->tree->n_levels; i++) {
        const double said = json_number_value(json_array_get(counts, i));
        sum += t->tree->counts[i];
        if (counts &&
            (json_array_size(counts) != t->tree->n_levels || said != (double)t->tree->counts[i]))
            return kiln_fail(err, KILN_E_INPUT,
                             "'%s' says that level %u has %.0f Gaussians, and its leaves have %llu",
                             t->name, i, said, (unsigned long long)t->tree->counts[i]);
    }
    if (count && json_number_value(count) != (double)sum)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' says that it has %.0f Gaussians, and its leaves have %llu", t->name,
                         json_number_value(count), (unsigned long long)sum);
    return KILN_OK;
}

static kiln_status take_lod_meta(const taking *t, const json_t *json, kiln_error *err)
{
    uint64_t levels;
    const json_t *version = json_object_get(json, KILN_LOD_KEY_VERSION);
    if (version && json_number_value(version) != KILN_LOD_VERSION)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is of a version of streamed SOG that is not known; 1 is read",
                         t->name);
    if (!whole_below(json_object_get(json, KILN_LOD_KEY_LEVELS), KILN_LOD_LEVELS_MAX + 1,
                     &levels) ||
        levels == 0)
        return kiln_fail(err, KILN_E_INPUT, "'%s': lodLevels must be a whole number from 1 to %d",
                         t->name, KILN_LOD_LEVELS_MAX);
    t->tree->n_levels = (uint32_t)levels;
    KILN_TRY(take_names(t, json, err));
    KILN_TRY(take_node(t, json_object_get(json, KILN_LOD_KEY_TREE), err));
    KILN_TRY(check_ranges(t, err));
    return check_counts(t, json, err);
}

kiln_status kiln_lod_tree_read(const char *path, const char *name, kiln_lod_tree *out,
                               kiln_error *err)
{
    json_t *json = NULL;
    *out = (kiln_lod_tree){0};
    KILN_TRY(kiln_json_file_read(path, &json, err));
    const taking t = {.name = name, .tree = out};
    const kiln_status st = take_lod_meta(&t, json, err);
    json_decref(json);
    return st;
}
