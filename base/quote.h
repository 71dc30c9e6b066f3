/* quote -- makes text from files safe to print on a terminal.
 *
 * Names, comments, reasons and paths come from files of other people. Printed as they are, they can
 * move the cursor, set the window's title, or forge lines. Each byte that can do so is shown as an
 * escape; everything else is unchanged:
 *
 *   \n \r \t              line feed, carriage return, tab
 *   \x1b                  another control byte, DEL, or a byte that is no UTF-8
 *   \u{9b}, \u{202e}      the control characters U+0080 to U+009F; marks that reorder text or break
 *                         lines (U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069)
 *
 * Text is quoted line by line. kiln_print and the functions of log.h (kiln_warn, kiln_say,
 * kiln_chat, kiln_tell_error) format one line, quote all of it and add the line feed. So callers
 * quote nothing themselves, and a message has no line feed of its own. No other function writes
 * text from a file to stdout (tests/unit/layers.t).
 */
#ifndef KILN_BASE_QUOTE_H
#define KILN_BASE_QUOTE_H

#include "base/extern_c.h"
#include "base/status.h"

#include <stddef.h>

KILN_C_BEGIN

/* Writes text with escapes into out[size], cut if it does not fit, always with a NUL (size > 0). */
void kiln_quote(char *out, size_t size, const char *text);

enum { KILN_COLUMNS = 80 }; /* of a terminal */
/* Breaks a line at blanks so that none is wider than KILN_COLUMNS, each but the first with two
 * blanks in front. A word that is wider itself, such as a path, stays whole; so does what finds no
 * room in line[capacity]. */
void kiln_wrap(char *line, size_t capacity);
/* Writes text with escapes into out[size], just `columns` wide (more than 3): with blanks behind
 * it, or with "..." in the place of its beginning, because names that differ mostly differ at their
 * end. What of the text does not fit into out is not known to it.
 */
void kiln_quote_fit(char *out, size_t size, const char *text, unsigned columns);

/* Prints one line to stdout, quoted, with a line feed. Write errors are found at the end of main,
 * as with printf. */
void kiln_print(const char *fmt, ...) KILN_PRINTF(1, 2);
/* The same, wrapped (kiln_wrap). _sentence: only where stdout is a terminal; in a file or a pipe,
 * where programs look for it, a sentence is one line. */
void kiln_print_wrapped(const char *fmt, ...) KILN_PRINTF(1, 2);
void kiln_print_sentence(const char *fmt, ...) KILN_PRINTF(1, 2);
void kiln_print_list(const char *fmt, __builtin_va_list args) KILN_PRINTF(1, 0);
/* Print a part of a line, without the line feed; an empty line. */
void kiln_print_part(const char *fmt, ...) KILN_PRINTF(1, 2);
void kiln_print_gap(void);

/* Prints JSON text to stdout, with a line feed. Characters that the list above names can only stand
 * in its strings: there they become \u001b or \u202e, which mean the same. Line feeds and blanks
 * between values stay. */
void kiln_print_json(const char *text);
/* The same of n bytes of such a text, which end between two characters, without the line feed. */
void kiln_print_json_part(const char *text, size_t n);

KILN_C_END

#endif
