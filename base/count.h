/* count -- a number of things in words: "1 camera", "12 cameras". */
#ifndef KILN_BASE_COUNT_H
#define KILN_BASE_COUNT_H

#include "base/extern_c.h"

#include <stdint.h>

KILN_C_BEGIN

enum { KILN_COUNT_TEXT = 128 };

/* Writes a number and what it counts into out, which is returned. words: the word for one, of which
 * others have an s more, or both with a bar between them: "camera", "photo is|photos are". */
const char *kiln_count_text(uint64_t n, const char *words, char out[KILN_COUNT_TEXT]);
/* The same into a buffer of its own, which lasts as long as the block: for an argument of a
 * message. */
#define KILN_COUNT(n, words) kiln_count_text((uint64_t)(n), words, (char[KILN_COUNT_TEXT]){0})

KILN_C_END

#endif
