/* lex_save in jansson's load.c ignores the result of strbuffer_append_byte, and do_dump in dump.c
 * that of dump_string for a sorted key. But jansson allocates through a function that can be
 * replaced. Ours is malloc and remembers a failure. Memory that was allocated before is freed by
 * the same free, so the function may be set at any time. */
#include "stages/engine/json_text.h"

#include "base/memory.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local bool ran_out; /* jansson hands its allocator no context */

static void *remembering_malloc(size_t bytes)
{
    void *p = malloc(bytes);
    if (!p) ran_out = true;
    return p;
}

static void watch_memory(void)
{
    json_set_alloc_funcs(remembering_malloc, free);
    ran_out = false;
}

kiln_status kiln_json_parse(const char *text, size_t bytes, size_t flags, const char *what,
                            json_t **out, json_error_t *why, kiln_error *err)
{
    watch_memory();
    *out = json_loadb(text, bytes, flags, why);
    if (!ran_out) return KILN_OK;
    json_decref(*out);
    *out = NULL;
    return kiln_fail(err, KILN_E_NOMEM, "out of memory: cannot read %s, %zu bytes of JSON", what,
                     bytes);
}

/* at: behind the quote that begins a string. Returns where the text goes on behind the one that
 * ends it. */
static size_t pass_string(const char *text, size_t bytes, size_t at)
{
    for (; at < bytes; at++) {
        if (text[at] == '\\')
            at++;
        else if (text[at] == '"')
            return at + 1;
    }
    return bytes;
}

/* Writes the text without what is behind the first `most` elements of each array, and returns its
 * length. What is no JSON stays none: brackets are counted as they come. Arrays deeper than DEPTH
 * stay whole. out: [bytes]. */
static size_t shorten(const char *text, size_t bytes, size_t most, char *out)
{
    enum { DEPTH = 32 };
    size_t commas[DEPTH] = {0}, depth = 0, left_out = 0,
           n = 0; /* left_out: depth of the array whose rest is passed over; 0: none */
    for (size_t at = 0, next; at < bytes; at = next) {
        const char c = text[at];
        next = c == '"' ? pass_string(text, bytes, at + 1) : at + 1;
        if (c == '[' || c == '{') {
            depth++;
            /* of an object none is counted */
            if (depth < DEPTH) commas[depth] = c == '{' ? SIZE_MAX : 0;
        } else if (c == ',' && !left_out && depth && depth < DEPTH && commas[depth] != SIZE_MAX &&
                   ++commas[depth] == most) {
            left_out = depth;
        } else if ((c == ']' || c == '}') && depth) {
            if (depth == left_out) left_out = 0;
            depth--;
        }
        if (left_out) continue;
        memcpy(out + n, text + at, next - at);
        n += next - at;
    }
    return n;
}

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/* Returns the place behind the bracket that begins the array `key` of the object, or `bytes` where
 * there is none. */
static size_t find_array(const char *text, size_t bytes, const char *key)
{
    const size_t length = strlen(key);
    size_t depth = 0, next;
    for (size_t at = 0; at < bytes; at = next) {
        const char c = text[at];
        next = c == '"' ? pass_string(text, bytes, at + 1) : at + 1;
        if (c == '[' || c == '{') depth++;
        if ((c == ']' || c == '}') && depth) depth--;
        if (c != '"' || depth != 1 || next - at != length + 2 ||
            memcmp(text + at + 1, key, length) != 0)
            continue;
        size_t value = next;
        while (value < bytes && is_blank(text[value])) value++;
        if (value == bytes || text[value] != ':') continue; /* it is no name */
        for (value++; value < bytes && is_blank(text[value]);) value++;
        return value < bytes && text[value] == '[' ? value + 1 : bytes;
    }
    return bytes;
}

/* Returns where the element that begins at `at` ends: before the comma or bracket behind it. */
static size_t end_of_item(const char *text, size_t bytes, size_t at)
{
    size_t depth = 0, next;
    for (; at < bytes; at = next) {
        const char c = text[at];
        next = c == '"' ? pass_string(text, bytes, at + 1) : at + 1;
        if (c == '[' || c == '{') depth++;
        if (depth == 0 && (c == ',' || c == ']')) return at;
        if ((c == ']' || c == '}') && depth) depth--;
    }
    return bytes;
}

kiln_status kiln_json_each(const char *text, size_t bytes, const char *key, kiln_json_item_fn *each,
                           void *context, kiln_error *err)
{
    for (size_t at = find_array(text, bytes, key), end; at < bytes; at = end + 1) {
        json_t *item;
        end = end_of_item(text, bytes, at);
        KILN_TRY(kiln_json_parse(text + at, end - at, JSON_DECODE_ANY, "a list", &item, NULL, err));
        const kiln_status st = item ? each(context, item, err) : KILN_OK;
        json_decref(item);
        if (st != KILN_OK || end == bytes || text[end] == ']') return st;
    }
    return KILN_OK;
}

kiln_status kiln_json_parse_short(const char *text, size_t bytes, size_t most, const char *what,
                                  json_t **out, kiln_error *err)
{
    char *small = malloc(bytes + 1);
    *out = NULL;
    if (!small)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory: cannot read %s, %zu bytes of JSON",
                         what, bytes);
    const kiln_status st =
        kiln_json_parse(small, shorten(text, bytes, most, small), 0, what, out, NULL, err);
    free(small);
    return st;
}

char *kiln_json_text(const json_t *v, size_t flags)
{
    watch_memory();
    char *text = v ? json_dumps(v, flags) : NULL;
    if (!ran_out) return text;
    free(text);
    return NULL;
}

/* Of a text that is given line by line. */
typedef struct {
    kiln_buffer waits;
    kiln_json_sink_fn *sink;
} line_list;

static int add_text(const char *text, size_t bytes, void *list)
{
    enum { WAITS_MOST = 1 << 16 };
    line_list *l = list;
    if (kiln_buffer_put(&l->waits, text, bytes, NULL) != KILN_OK) return -1;
    const char *end =
        l->waits.size < WAITS_MOST ? NULL : memrchr(l->waits.data, '\n', l->waits.size);
    if (!end) return 0;
    const size_t whole = (size_t)(end + 1 - (const char *)l->waits.data);
    l->sink((const char *)l->waits.data, whole);
    l->waits.size -= whole;
    memmove(l->waits.data, l->waits.data + whole, l->waits.size);
    return 0;
}

bool kiln_json_lines(const json_t *v, size_t flags, kiln_json_sink_fn *sink)
{
    line_list l = {.sink = sink};
    watch_memory();
    const bool done = v && json_dump_callback(v, add_text, &l, flags) == 0 && !ran_out;
    if (done && l.waits.size) sink((const char *)l.waits.data, l.waits.size);
    kiln_buffer_release(&l.waits);
    return done;
}

size_t kiln_json_put(const json_t *v, char *out, size_t capacity, size_t flags)
{
    watch_memory();
    const size_t bytes = v ? json_dumpb(v, out, capacity, flags) : 0;
    return ran_out ? 0 : bytes;
}

json_t *kiln_json_string(const char *text)
{
    json_t *v = json_string(text);
    char *plain = v ? NULL : strdup(text);
    if (!plain) return v;
    for (char *c = plain; *c; c++)
        if ((unsigned char)*c >= 0x80) *c = '?';
    v = json_string(plain);
    free(plain);
    return v;
}

json_t *kiln_json_real(double v) { return isfinite(v) ? json_real(v) : json_null(); }

json_t *kiln_json_reals(const double *v, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++) {
        if (json_array_append_new(list, kiln_json_real(v[i])) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}
