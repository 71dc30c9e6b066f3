/* json_file -- jansson behind the checks that it leaves to us: depth, encoding, size and memory
 * come before parsing. */
#include "stages/files/json_file.h"

#include "base/file.h"
#include "base/option.h"
#include "stages/engine/json_text.h"

#include <math.h>
#include <stdlib.h>

enum { DEPTH_LIMIT = 64 };

typedef struct {
    int deepest;
    uint64_t tree; /* bytes of memory that jansson's values take, at most */
} shape;

/* Bytes of jansson 2.14 with glibc's allocator, measured on x86-64: a number takes 32; a text 80
 * and what is longer than 24; an array 128, with room for 8; an object 224, with room for 8. A
 * member takes 96 besides its value, 112 behind the first 8: its key counts as a text here. The
 * list of an array has room for twice its values, and the former list is there too while it grows:
 * 24 a value. */
enum { NUMBER = 32, TEXT = 80, ARRAY = 128, OBJECT = 224, MEMBER = 16, NEXT = 24 };

static uint64_t token_bytes(unsigned char c)
{
    return c == '"'   ? TEXT
           : c == '[' ? ARRAY
           : c == '{' ? OBJECT
           : c == ':' ? MEMBER
           : c == ',' ? NEXT
                      : 0;
}

static bool begins_number(unsigned char c) { return c == '-' || (c >= '0' && c <= '9'); }

static bool is_of_number(unsigned char c)
{
    return begins_number(c) || c == '+' || c == '.' || c == 'e' || c == 'E';
}

/* Of a text that may be no JSON: jansson stops at the first mistake, and up to there this is
 * right. */
static shape shape_of(const unsigned char *s, size_t n)
{
    shape out = {0};
    int depth = 0;
    bool in_string = false, in_number = false;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = s[i];
        if (in_string) {
            out.tree++;
            if (c == '\\') i++, out.tree++;
            in_string = c != '"';
            continue;
        }
        if (c == '[' || c == '{') depth++;
        if (c == ']' || c == '}') depth--;
        if (depth > out.deepest) out.deepest = depth;
        if (!in_number && begins_number(c)) out.tree += NUMBER;
        in_number = begins_number(c) || (in_number && is_of_number(c));
        in_string = c == '"';
        out.tree += token_bytes(c);
    }
    return out;
}

kiln_status kiln_json_text_read(const char *path, const unsigned char *text, size_t size,
                                uint64_t tree_limit, json_t **out, kiln_error *err)
{
    json_error_t why;
    char amount[32], most[32];
    *out = NULL;
    /* byte order mark */
    if (size >= 3 && text[0] == 0xef && text[1] == 0xbb && text[2] == 0xbf) text += 3, size -= 3;
    if (size == 0) return kiln_fail(err, KILN_E_INPUT, "'%s' is empty", path);
    if (!kiln_utf8_valid(text, size))
        return kiln_fail(err, KILN_E_INPUT, "'%s' is not UTF-8; save it as UTF-8", path);
    const shape found = shape_of(text, size);
    if (found.deepest > DEPTH_LIMIT)
        return kiln_fail(err, KILN_E_INPUT, "'%s' is nested deeper than %d levels", path,
                         DEPTH_LIMIT);
    if (found.tree > tree_limit)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' has so many values that its JSON would take %s of memory; at most %s are allowed",
            path, kiln_size_text(found.tree, amount), kiln_size_text(tree_limit, most));
    KILN_TRY(kiln_json_parse((const char *)text, size,
                             JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL,
                             path, out, &why, err));
    if (!*out)
        return kiln_fail(err, KILN_E_INPUT, "'%s' is not valid JSON: line %d: %s", path, why.line,
                         why.text);
    return KILN_OK;
}

kiln_status kiln_json_file_read(const char *path, json_t **out, kiln_error *err)
{
    unsigned char *text = NULL;
    size_t size = 0;
    *out = NULL;
    KILN_TRY(kiln_file_read(path, KILN_JSON_SIZE_LIMIT, &text, &size, err));
    const kiln_status st = kiln_json_text_read(path, text, size, KILN_JSON_TREE_LIMIT, out, err);
    free(text);
    return st;
}

bool kiln_json_vector(const json_t *array, uint32_t n, double *numbers)
{
    if (!json_is_array(array) || json_array_size(array) != n) return false;
    for (uint32_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(array, i);
        numbers[i] = json_number_value(v);
        if (!json_is_number(v) || !isfinite(numbers[i])) return false;
    }
    return true;
}

bool kiln_json_matrix(const json_t *array, uint32_t rows, uint32_t columns, double *numbers)
{
    if (!json_is_array(array) || json_array_size(array) != rows) return false;
    for (uint32_t i = 0; i < rows; i++)
        if (!kiln_json_vector(json_array_get(array, i), columns, numbers + (size_t)i * columns))
            return false;
    return true;
}
