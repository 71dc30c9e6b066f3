/* float_text -- the shortest decimal text that reads back as the same float32, the same in every
 * locale. */
#ifndef KILN_STAGES_FORMATS_CSV_FLOAT_TEXT_H
#define KILN_STAGES_FORMATS_CSV_FLOAT_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum {
    KILN_FLOAT_TEXT_MAX = 15, /* -1.00000001e-39 */
    KILN_U32_TEXT_MAX = 10,
};

/* Writes at most KILN_FLOAT_TEXT_MAX bytes, no NUL, and returns how many. Of all decimals that any
 * correctly rounding parser reads as v the one with the fewest digits, at most 9, and of these the
 * nearest. From 1e-4 on and below 1e9 without an exponent: 0.1, -2, 12345.6; else 1e-7,
 * 3.4028235e+38. nan, inf, -inf; -0 keeps its sign. Any thread. */
size_t kiln_float_text(float v, char out[KILN_FLOAT_TEXT_MAX]);

/* Writes at most KILN_U32_TEXT_MAX bytes, no NUL, and returns how many. */
size_t kiln_u32_text(uint32_t v, char out[KILN_U32_TEXT_MAX]);

#endif
