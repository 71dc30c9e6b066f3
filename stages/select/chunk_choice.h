/* chunk_choice -- which chunks --chunks names.
 *
 * The text is a list, separated by commas, of names, of #INDEX (place in the layer, from 0), and of
 * patterns. Names look like paths, "/0/3/5-7", so patterns treat them as shells treat paths:
 *
 *   *      any characters of one level, or none      /0/3* is /0/3 and /0/3-5, not /0/3/1
 *   **     any characters, levels too, or none       /0/3** is all that begins with /0/3
 *   ?      one character, not '/'
 *   [0-3]  one character of these; [!0-3] one of the others, not '/'
 *
 * A '\' in front of a character takes it as it is.
 */
#ifndef KILN_STAGES_SELECT_CHUNK_CHOICE_H
#define KILN_STAGES_SELECT_CHUNK_CHOICE_H

#include "base/status.h"
#include "schema/manifest.h"

#include <stdbool.h>
#include <stdint.h>

/* A '[' without its ']' stands for itself. */
bool kiln_pattern_matches(const char *pattern, const char *name);
/* Can each item of the text be one? of_chunks: of a layer in chunks, whose names begin with '/'.
 * KILN_E_USAGE. */
kiln_status kiln_chunks_check(const char *text, bool of_chunks, kiln_error *err) KILN_MUST_CHECK;
/* chosen[c] = 1 for each chunk that the text names or matches; others stay as they are. text NULL:
 * all of them. chosen: of all layers, one after the other; an item counts for each of them.
 * KILN_E_USAGE: an item means no chunk of any of them. */
kiln_status kiln_chunks_choose(const kiln_layer *const layers[], uint32_t n_layers,
                               const char *text, uint8_t *chosen, kiln_error *err) KILN_MUST_CHECK;

#endif
