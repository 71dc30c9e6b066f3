/* text_numbers -- words of a line and the numbers that they stand for, the same in every locale.
 *
 * A number is decimal and has at most KILN_TOKEN_MAX bytes; hexadecimal and the decimal comma are
 * none. Results are correctly rounded. Every function may be called from any thread.
 */
#ifndef KILN_STAGES_FILES_TEXT_NUMBERS_H
#define KILN_STAGES_FILES_TEXT_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KILN_TOKEN_MAX = 255 };

typedef struct {
    const char *at, *end;
} kiln_token_line;
/* The next word of a line (blanks and tabs separate); false when there is none. */
bool kiln_token_next(kiln_token_line *w, const char **word, size_t *size);

typedef enum { KILN_NUMBER_OK, KILN_NUMBER_NOT_ONE, KILN_NUMBER_TOO_LARGE } kiln_number;
/* Decimal floats, nan and inf. A finite literal that overflows is too large. */
kiln_number kiln_parse_f32(const char *word, size_t size, float *out);
kiln_number kiln_parse_f64(const char *word, size_t size, double *out);
/* Digits only, no sign. */
kiln_number kiln_parse_u64(const char *word, size_t size, uint64_t *out);

#endif
