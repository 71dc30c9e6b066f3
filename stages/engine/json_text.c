/* lex_save in jansson's load.c ignores the result of strbuffer_append_byte, and do_dump in dump.c that of dump_string for a sorted
 * key. But jansson allocates through a function that can be replaced. Ours is malloc and remembers a failure. Memory that was
 * allocated before is freed by the same free, so the function may be set at any time. */
#include "stages/engine/json_text.h"

#include <math.h>
#include <stdbool.h>
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

kiln_status kiln_json_parse(const char *text, size_t bytes, size_t flags, const char *what, json_t **out, json_error_t *why,
                            kiln_error *err)
{
    watch_memory();
    *out = json_loadb(text, bytes, flags, why);
    if (!ran_out) return KILN_OK;
    json_decref(*out);
    *out = NULL;
    return kiln_fail(err, KILN_E_NOMEM, "no memory to read %s, %zu bytes of JSON", what, bytes);
}

char *kiln_json_text(const json_t *v, size_t flags)
{
    watch_memory();
    char *text = v ? json_dumps(v, flags) : NULL;
    if (!ran_out) return text;
    free(text);
    return NULL;
}

size_t kiln_json_put(const json_t *v, char *out, size_t room, size_t flags)
{
    watch_memory();
    const size_t bytes = v ? json_dumpb(v, out, room, flags) : 0;
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
