/* json_text -- JSON out of text, told apart from memory that ran out: jansson 2.14 drops bytes of a token that it has no
 * memory for and goes on, so that the tree is there and wrong. */
#ifndef KILN_STAGES_ENGINE_JSON_TEXT_H
#define KILN_STAGES_ENGINE_JSON_TEXT_H

#include "base/status.h"

#include <jansson.h>
#include <stddef.h>

/* flags: JSON_DECODE_ANY and so on. *out: json_decref; NULL with KILN_OK: the text is no JSON, *why (may be NULL) says where.
 * `what` is for the sentence of KILN_E_NOMEM, the only failure. */
kiln_status kiln_json_parse(const char *text, size_t bytes, size_t flags, const char *what, json_t **out, json_error_t *why,
                            kiln_error *err) KILN_MUST_CHECK;

#endif
