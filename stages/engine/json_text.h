/* json_text -- JSON from text and to text, which fails if memory runs out.
 *
 * jansson 2.14 can miss such a failure: its scanner drops the bytes of a token for which it has no
 * room, and its writer drops the keys of a sorted object, so the result exists and is wrong. These
 * functions detect that. No other code calls json_loads, json_dumps and the like
 * (tests/unit/layers.t). */
#ifndef KILN_STAGES_ENGINE_JSON_TEXT_H
#define KILN_STAGES_ENGINE_JSON_TEXT_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Parses `bytes` bytes of text. flags: JSON_DECODE_ANY and so on. The caller releases *out with
 * json_decref. If the text is no JSON, the call succeeds, *out is NULL and *why (may be NULL) says
 * where. KILN_E_NOMEM is the only failure; `what` names the text in its sentence. */
kiln_status kiln_json_parse(const char *text, size_t bytes, size_t flags, const char *what,
                            json_t **out, json_error_t *why, kiln_error *err) KILN_MUST_CHECK;
/* The same with the first `most` elements of each array that has more: of the records of runs,
 * whose lists of cameras may be long.
 */
kiln_status kiln_json_parse_short(const char *text, size_t bytes, size_t most, const char *what,
                                  json_t **out, kiln_error *err) KILN_MUST_CHECK;
/* Calls `each` for one element after the other of the array that is the member `key` of the object
 * that the text is: of lists that are too long to be in memory as JSON. One that is no JSON is left
 * out. Without such a member nothing is called. What `each` returns ends it, unless it is KILN_OK.
 * KILN_E_NOMEM. */
typedef kiln_status kiln_json_item_fn(void *context, const json_t *item, kiln_error *err);
kiln_status kiln_json_each(const char *text, size_t bytes, const char *key, kiln_json_item_fn *each,
                           void *context, kiln_error *err) KILN_MUST_CHECK;
/* Returns the text of v, to be freed with free(); NULL if there is no memory or v is NULL. */
char *kiln_json_text(const json_t *v, size_t flags) KILN_MUST_CHECK;
/* Gives the text of v to `sink` in pieces that end with a line, so that a long one is never in
 * memory as a whole. Returns false if there is no memory or v is NULL: then what was given is no
 * text. */
typedef void kiln_json_sink_fn(const char *text, size_t bytes);
bool kiln_json_lines(const json_t *v, size_t flags, kiln_json_sink_fn *sink) KILN_MUST_CHECK;
/* Writes the text of v into out[capacity], without a NUL. Returns its length, which is above room
 * if it did not fit; 0 if there is no memory or v is NULL. */
size_t kiln_json_put(const json_t *v, char *out, size_t capacity, size_t flags) KILN_MUST_CHECK;

/* Returns a new JSON string. If the text is no UTF-8, as a path or a cut sentence may be, every
 * byte that is not ASCII becomes '?'. NULL if there is no memory. */
json_t *kiln_json_string(const char *text);

/* Returns a new JSON number, or JSON's null for an infinity or NAN, which JSON lacks. NULL only if
 * there is no memory; jansson's own json_real, and the "f" of json_pack, return NULL in both cases.
 * So no other code makes numbers of reals (tests/unit/layers.t). */
json_t *kiln_json_real(double v);
/* A new array of such numbers; NULL if there is no memory, so that json_pack fails with it. */
json_t *kiln_json_reals(const double *v, size_t n);

#endif
