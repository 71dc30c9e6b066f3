/* fuzz_chunks -- an index.json that lies in a folder to which kiln-export writes chunks: it names
 * the files that are removed. It is read element by element; what is JSON without repeated members
 * gives the names that the whole tree gives. Lists in the records of runs are read by the same
 * means. */
#include "tests/fuzz/fuzz.h"

#include "base/file.h"
#include "stages/engine/json_text.h"
#include "stages/formats/chunks/chunks_index.h"

#include <string.h>

static bool add_name(void *names, const char *name, uint64_t bytes)
{
    const char *why;
    (void)bytes;
    HOLDS(kiln_name_is_safe(name, &why));
    return kiln_buffer_put(names, name, strlen(name) + 1, NULL) == KILN_OK;
}

static bool add_files(const json_t *arrays, kiln_buffer *names)
{
    const char *key;
    json_t *a;
    json_object_foreach((json_t *)arrays, key, a)
    {
        const char *name = json_string_value(json_object_get(a, "file")), *why;
        if (!name || !kiln_name_is_safe(name, &why)) return false;
        (void)add_name(names, name, 0);
    }
    return true;
}

static bool add_lists(const json_t *list, const char *member, kiln_buffer *names)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one)
    {
        if (!add_files(json_object_get(one, member), names)) return false;
    }
    return true;
}

static bool add_nested(const json_t *list, const char *outer, const char *member,
                       kiln_buffer *names)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one)
    {
        if (!add_lists(json_object_get(one, outer), member, names)) return false;
    }
    return true;
}

/* The lists in the order in which they stand is not known of a tree: of two of them the names are
 * counted. */
static bool names_of(const json_t *index, kiln_buffer *names)
{
    const json_t *tables = json_object_get(index, "tile_tables");
    return json_is_array(json_object_get(index, "chunks")) &&
           add_lists(json_object_get(index, "chunks"), "planes", names) &&
           add_nested(json_object_get(json_object_get(index, "levels"), "nodes"), "levels",
                      "planes", names) &&
           add_lists(tables, "arrays", names) && add_nested(tables, "bands", "arrays", names);
}

static bool is_ours(const json_t *index)
{
    const char *format = json_string_value(json_object_get(index, "format"));
    return format && strcmp(format, KILN_CHUNKS_FORMAT) == 0;
}

static kiln_status look_at_item(void *context, const json_t *item, kiln_error *err)
{
    (void)context, (void)err;
    HOLDS(item);
    return KILN_OK;
}

void kiln_fuzz_chunks_index(const void *argument, const uint8_t *data, size_t size)
{
    kiln_buffer found = {0}, known = {0};
    json_t *v = NULL, *again = NULL;
    const char *text = (const char *)data;
    (void)argument;
    const kiln_chunks_index_kind kind =
        kiln_chunks_index_read(kiln_fuzz_path(data, size), add_name, &found);
    HOLDS(kiln_json_parse(text, size, JSON_REJECT_DUPLICATES, "it", &v, NULL, NULL) == KILN_OK);
    HOLDS(kiln_json_parse_short(text, size, SIZE_MAX, "it", &again, NULL) == KILN_OK);
    HOLDS(!v || json_equal(v, again));
    HOLDS(kiln_json_each(text, size, "chunks", look_at_item, NULL, NULL) == KILN_OK);
    if (v && !memchr(data, '\\', size) && is_ours(v) && names_of(v, &known))
        HOLDS(kind == KILN_CHUNKS_OURS && found.size == known.size);
    json_decref(v);
    json_decref(again);
    kiln_buffer_release(&found);
    kiln_buffer_release(&known);
}
