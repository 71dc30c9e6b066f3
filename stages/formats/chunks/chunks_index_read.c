/* chunks_index_read -- reads an index.json that lies in a folder, a stranger's perhaps, for the
 * files that it names.
 *
 * Problem. With 20,000 cameras an index has 40 MB, and as a tree of JSON ten times as much. What is
 * asked of it is one list of names.
 *
 * Solution. The text is gone through once, a piece of the file at a time. Of it an element of the
 * lists that name files (chunks, tile_tables, nodes of levels) is put together and parsed by
 * itself; of all else only brackets and strings are looked at. */
#include "stages/formats/chunks/chunks_index.h"

#include "base/file.h"
#include "stages/engine/json_text.h"

#include <stdio.h>
#include <string.h>

enum {
    KEY_MOST = 32,          /* bytes of a name that is looked at */
    DEPTH_MOST = 2050,      /* of brackets: those of the parser are 2,048 */
    ELEMENT_MOST = 16 << 20 /* bytes of an element */
};

typedef enum { LIST_NONE, LIST_CHUNKS, LIST_TABLES, LIST_NODES } list_kind;

typedef struct {
    kiln_chunks_file_fn *fn;
    void *context;
    uint32_t depth;
    char open[DEPTH_MOST];   /* brackets */
    bool in_string, escaped; /* escaped: behind a backslash */
    /* the last string outside of elements; "" if it is longer or has escapes */
    char text[KEY_MOST];
    size_t text_size;       /* of the string in work */
    char keys[3][KEY_MOST]; /* by depth: the member in work */
    list_kind list;         /* LIST_NONE: what is read is in none */
    uint32_t list_depth;    /* of its bracket */
    kiln_buffer element;
    bool has_chunks, is_ours, ended; /* ended: the outermost bracket is closed */
} scan;

/* ---- elements -------------------------------------------------------------------------------- */

static bool tell_files(const scan *s, const json_t *arrays)
{
    const char *key;
    json_t *a;
    json_object_foreach((json_t *)arrays, key, a)
    {
        const char *name = json_string_value(json_object_get(a, "file")), *why;
        if (!name || !kiln_name_is_safe(name, &why)) return false;
        if (s->fn &&
            !s->fn(s->context, name, (uint64_t)json_integer_value(json_object_get(a, "bytes"))))
            return false;
    }
    return true;
}

static bool tell_lists(const scan *s, const json_t *list, const char *member)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one)
    {
        if (!tell_files(s, json_object_get(one, member))) return false;
    }
    return true;
}

static bool tell_element(const scan *s, const json_t *v)
{
    switch (s->list) {
    case LIST_CHUNKS:
        return tell_files(s, json_object_get(v, "planes"));
    case LIST_TABLES:
        return tell_files(s, json_object_get(v, "arrays")) &&
               tell_lists(s, json_object_get(v, "bands"), "arrays");
    case LIST_NODES:
        return tell_lists(s, json_object_get(v, "levels"), "planes");
    case LIST_NONE:
        break;
    }
    return false;
}

static bool is_json_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/* last: behind the bracket of an empty list there is none. */
static bool end_element(scan *s, bool last)
{
    bool blank = true;
    for (size_t i = 0; i < s->element.size && blank; i++)
        blank = is_json_blank((char)s->element.data[i]);
    if (blank && last) return true;
    json_t *v = NULL;
    const char *text = (const char *)s->element.data;
    const bool told = !blank &&
                      kiln_json_parse(text, s->element.size, JSON_DECODE_ANY, "an index", &v, NULL,
                                      NULL) == KILN_OK &&
                      v && tell_element(s, v);
    json_decref(v);
    s->element.size = 0;
    return told;
}

/* ---- the text -------------------------------------------------------------------------------- */

/* Which list begins with a bracket at this depth? */
static list_kind list_at(const scan *s)
{
    if (s->depth == 2 && strcmp(s->keys[1], "chunks") == 0) return LIST_CHUNKS;
    if (s->depth == 2 && strcmp(s->keys[1], "tile_tables") == 0) return LIST_TABLES;
    if (s->depth == 3 && strcmp(s->keys[1], "levels") == 0 && strcmp(s->keys[2], "nodes") == 0)
        return LIST_NODES;
    return LIST_NONE;
}

static bool open_bracket(scan *s, char c)
{
    if (s->ended || s->depth + 1 == DEPTH_MOST) return false;
    s->open[++s->depth] = c;
    if (s->depth < 3) s->keys[s->depth][0] = '\0';
    if (s->list || c != '[') return true;
    s->list = list_at(s);
    s->list_depth = s->depth;
    s->has_chunks |= s->list == LIST_CHUNKS;
    return true;
}

static bool close_bracket(scan *s, char c)
{
    if (s->depth == 0 || s->open[s->depth] != (c == ']' ? '[' : '{')) return false;
    if (s->list && s->depth == s->list_depth) s->list = LIST_NONE;
    s->ended = --s->depth == 0;
    return true;
}

static bool in_string(scan *s, char c)
{
    if (s->escaped || c == '\\') {
        s->escaped = !s->escaped;
        s->text_size = KEY_MOST; /* as if it were too long */
        return true;
    }
    if (c != '"') {
        if (s->text_size < KEY_MOST) s->text[s->text_size] = c;
        s->text_size += s->text_size < KEY_MOST;
        return true;
    }
    s->in_string = false;
    s->text[s->text_size < KEY_MOST ? s->text_size : 0] = '\0';
    if (s->depth == 1 && s->open[1] == '{' && strcmp(s->keys[1], "format") == 0)
        s->is_ours |= strcmp(s->text, KILN_CHUNKS_FORMAT) == 0;
    return true;
}

static bool next_byte(scan *s, char c)
{
    const bool at_list = s->list && s->depth == s->list_depth && !s->in_string;
    if (at_list && (c == ',' || c == ']') && !end_element(s, c == ']')) return false;
    if (s->list && !(at_list && (c == ',' || c == ']'))) {
        if (s->element.size == ELEMENT_MOST || kiln_buffer_put(&s->element, &c, 1, NULL) != KILN_OK)
            return false;
    }
    if (s->in_string) return in_string(s, c);
    switch (c) {
    case '"':
        s->in_string = true;
        s->text_size = 0;
        return s->depth > 0;
    case ':':
        if (s->depth < 3 && !s->list) strcpy(s->keys[s->depth], s->text);
        return true;
    case ',':
        if (s->depth < 3 && !s->list) s->keys[s->depth][0] = '\0';
        return true;
    case '[':
    case '{':
        return open_bracket(s, c);
    case ']':
    case '}':
        return close_bracket(s, c);
    default:
        return !s->ended || is_json_blank(c);
    }
}

kiln_chunks_index_kind kiln_chunks_index_read(const char *path, kiln_chunks_file_fn *fn,
                                              void *context)
{
    enum { PIECE = 1 << 16 };
    static char piece[PIECE]; /* the parent's main thread alone reads an index */
    static scan s;
    FILE *f = kiln_is_file(path) ? fopen(path, "re") : NULL;
    bool sound = f != NULL;
    s = (scan){.fn = fn, .context = context};
    for (size_t n; sound && (n = fread(piece, 1, PIECE, f)) > 0;)
        for (size_t i = 0; i < n && sound; i++) sound = next_byte(&s, piece[i]);
    sound = sound && !ferror(f) && s.ended;
    if (f) (void)fclose(f);
    kiln_buffer_release(&s.element);
    if (!sound) return KILN_CHUNKS_NO_INDEX;
    if (!s.is_ours) return KILN_CHUNKS_OTHERS;
    return s.has_chunks ? KILN_CHUNKS_OURS : KILN_CHUNKS_NO_INDEX;
}
