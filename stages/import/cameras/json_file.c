/* json_file -- jansson behind the checks that it leaves to us: depth, encoding and size come before parsing. */
#include "stages/import/cameras/json_file.h"

#include "base/file.h"
#include "stages/engine/json_text.h"

#include <math.h>
#include <stdlib.h>

enum { DEPTH_LIMIT = 64 };

static int depth_of(const unsigned char *s, size_t n)
{
    int depth = 0, deepest = 0;
    bool in_string = false;
    for (size_t i = 0; i < n; i++) {
        if (in_string && s[i] == '\\')
            i++;
        else if (s[i] == '"')
            in_string = !in_string;
        else if (!in_string && (s[i] == '[' || s[i] == '{'))
            depth++;
        else if (!in_string && (s[i] == ']' || s[i] == '}'))
            depth--;
        if (depth > deepest) deepest = depth;
    }
    return deepest;
}

kiln_status kiln_json_text_read(const char *path, const unsigned char *text, size_t size, json_t **out, kiln_error *err)
{
    json_error_t why;
    *out = NULL;
    if (size >= 3 && text[0] == 0xef && text[1] == 0xbb && text[2] == 0xbf) text += 3, size -= 3; /* byte order mark */
    if (size == 0) return kiln_fail(err, KILN_E_INPUT, "'%s' is empty", path);
    if (!kiln_utf8_valid(text, size)) return kiln_fail(err, KILN_E_INPUT, "'%s' is not UTF-8; save it as UTF-8", path);
    if (depth_of(text, size) > DEPTH_LIMIT) return kiln_fail(err, KILN_E_INPUT, "'%s' is nested deeper than %d", path, DEPTH_LIMIT);
    KILN_TRY(kiln_json_parse((const char *)text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, path,
                             out, &why, err));
    if (!*out) return kiln_fail(err, KILN_E_INPUT, "'%s' is not valid JSON: line %d: %s", path, why.line, why.text);
    return KILN_OK;
}

kiln_status kiln_json_file_read(const char *path, json_t **out, kiln_error *err)
{
    unsigned char *text = NULL;
    size_t size = 0;
    *out = NULL;
    KILN_TRY(kiln_file_read(path, KILN_JSON_SIZE_LIMIT, &text, &size, err));
    const kiln_status st = kiln_json_text_read(path, text, size, out, err);
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
        if (!kiln_json_vector(json_array_get(array, i), columns, numbers + (size_t)i * columns)) return false;
    return true;
}
