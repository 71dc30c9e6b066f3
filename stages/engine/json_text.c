/* lex_save of jansson's load.c ignores what strbuffer_append_byte returns. jansson takes its memory through functions that
 * can be set; ours is malloc that remembers a failure. What was allocated before is freed by free as well, so the moment at
 * which it is set does not matter. */
#include "stages/engine/json_text.h"

#include <stdbool.h>
#include <stdlib.h>

static _Thread_local bool ran_out; /* jansson hands no context to its allocator */

static void *remembering_malloc(size_t bytes)
{
    void *p = malloc(bytes);
    if (!p) ran_out = true;
    return p;
}

kiln_status kiln_json_parse(const char *text, size_t bytes, size_t flags, const char *what, json_t **out, json_error_t *why,
                            kiln_error *err)
{
    json_set_alloc_funcs(remembering_malloc, free);
    ran_out = false;
    *out = json_loadb(text, bytes, flags, why);
    if (!ran_out) return KILN_OK;
    json_decref(*out);
    *out = NULL;
    return kiln_fail(err, KILN_E_NOMEM, "no memory to read %s, %zu bytes of JSON", what, bytes);
}
