/* json_text -- JSON from text and to text, with a failure where memory ran out. jansson 2.14 forgets some: its scanner drops
 * the bytes of a token that it has no room for, and its writer the keys of a sorted object, so that tree and text are there
 * and wrong. Nothing else calls json_loads, json_dumps and their siblings (tests/unit/layers.t). */
#ifndef KILN_STAGES_ENGINE_JSON_TEXT_H
#define KILN_STAGES_ENGINE_JSON_TEXT_H

#include "base/status.h"

#include <jansson.h>
#include <stddef.h>

/* flags: JSON_DECODE_ANY and so on. *out: json_decref; NULL with KILN_OK: the text is no JSON, *why (may be NULL) says where.
 * `what` is for the sentence of KILN_E_NOMEM, the only failure. */
kiln_status kiln_json_parse(const char *text, size_t bytes, size_t flags, const char *what, json_t **out, json_error_t *why,
                            kiln_error *err) KILN_MUST_CHECK;
/* free(); NULL: no memory, or no value. */
char *kiln_json_text(const json_t *v, size_t flags) KILN_MUST_CHECK;
/* Into out[room], without a NUL: bytes that the text has, more than room when it did not fit; 0: no memory, or no value. */
size_t kiln_json_put(const json_t *v, char *out, size_t room, size_t flags) KILN_MUST_CHECK;

/* A JSON string of text that may be no UTF-8, such as a path or a sentence that was cut: then what is not ASCII becomes '?'.
 * NULL when memory is gone. */
json_t *kiln_json_string(const char *text);

/* A JSON number, or null for an infinity or NAN: JSON has neither, and jansson's json_real and the "f" of json_pack return NULL for
 * them, as they do when memory is gone. Nothing else makes numbers of reals (tests/unit/layers.t). NULL only when memory is gone.
 */
json_t *kiln_json_real(double v);

#endif
