/* quote -- see the header. One scanner names the next piece of a text and whether it may be shown;
 * the two writers differ in how they write a piece that may not. */
#include "base/quote.h"

#include "base/file.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ESCAPE = 16 }; /* bytes of the longest escape, with its NUL */

typedef struct {
    size_t bytes;  /* that it takes in the text */
    uint32_t code; /* character; where it is no UTF-8, the byte */
    bool is_utf8, plain;
} piece;

static bool is_plain(uint32_t c)
{
    if (c < 0x20 || (c >= 0x7f && c < 0xa0)) return false;
    if (c == 0x61c || c == 0x200e || c == 0x200f) return false;
    return !((c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069));
}

static uint32_t decode_utf8(const unsigned char *s, size_t n)
{
    static const unsigned char lead_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = s[0] & lead_bits[n];
    for (size_t i = 1; i < n; i++) code = code << 6 | (s[i] & 0x3f);
    return code;
}

static piece next_piece(const unsigned char *s, size_t n)
{
    const size_t length = kiln_utf8_sequence(s, n);
    if (!length) return (piece){.bytes = 1, .code = s[0]};
    const uint32_t code = decode_utf8(s, length);
    return (piece){.bytes = length, .code = code, .is_utf8 = true, .plain = is_plain(code)};
}

static void write_escape(piece p, char out[ESCAPE])
{
    const char *known = p.code == '\n'   ? "\\n"
                        : p.code == '\r' ? "\\r"
                        : p.code == '\t' ? "\\t"
                                         : NULL;
    if (known)
        (void)snprintf(out, ESCAPE, "%s", known);
    else if (p.is_utf8 && p.code >= 0x80)
        (void)snprintf(out, ESCAPE, "\\u{%x}", (unsigned)p.code);
    else
        (void)snprintf(out, ESCAPE, "\\x%02x", (unsigned)p.code);
}

void kiln_quote(char *out, size_t size, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t at = 0, n = strlen(text);
    char escape[ESCAPE];
    while (n) {
        const piece p = next_piece(s, n);
        const void *from = s;
        size_t bytes = p.bytes;
        if (!p.plain) {
            write_escape(p, escape);
            from = escape;
            bytes = strlen(escape);
        }
        if (at + bytes >= size) break; /* a piece is written whole or not at all */
        memcpy(out + at, from, bytes);
        at += bytes;
        s += p.bytes;
        n -= p.bytes;
    }
    out[at] = '\0';
}

/* ---- columns --------------------------------------------------------------------------------- */
/* A byte that continues a character takes no column. */
static bool takes_column(char byte) { return ((unsigned char)byte & 0xC0) != 0x80; }

void kiln_wrap(char *line, size_t capacity)
{
    enum { INDENT = 2 };
    size_t n = strlen(line), start = 0, column = 0;
    char *blank = NULL;
    for (size_t i = 0; i < n; i++) {
        if (line[i] == ' ' && i > start) blank = line + i;
        column += takes_column(line[i]);
        if (column <= KILN_COLUMNS || !blank || n + INDENT + 1 >= capacity) continue;
        i = (size_t)(blank - line);
        memmove(blank + INDENT + 1, blank + 1, n - i);
        memcpy(blank, "\n  ", INDENT + 1);
        n += INDENT;
        start = i += INDENT;
        column = INDENT;
        blank = NULL;
    }
}

static size_t columns_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++) n += takes_column(*text);
    return n;
}

void kiln_quote_fit(char *out, size_t size, const char *text, unsigned columns)
{
    static const char cut[] = "...";
    size_t width;
    kiln_quote(out, size, text);
    width = columns_of(out);
    if (width > columns) {
        const char *tail = out;
        for (size_t drop = width - columns + sizeof cut - 1; drop > 0 || !takes_column(*tail);
             tail++)
            if (takes_column(*tail)) drop -= drop > 0;
        memmove(out + sizeof cut - 1, tail, strlen(tail) + 1);
        memcpy(out, cut, sizeof cut - 1);
        width = columns_of(out);
    }
    for (size_t at = strlen(out); width < columns && at + 1 < size; width++) {
        out[at++] = ' ';
        out[at] = '\0';
    }
}

/* ---- stdout ---------------------------------------------------------------------------------- */
/* What fwrite cannot write, ferror remembers until the end of main. */
static void put_quoted(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    char escape[ESCAPE];
    for (size_t n = strlen(text); n;) {
        const piece p = next_piece(s, n);
        if (!p.plain) write_escape(p, escape);
        (void)fwrite(p.plain ? (const char *)s : escape, 1, p.plain ? p.bytes : strlen(escape),
                     stdout);
        s += p.bytes;
        n -= p.bytes;
    }
}

static void KILN_PRINTF(1, 0) print_part(const char *fmt, va_list args)
{
    char few[1024], *text = few;
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(few, sizeof few, fmt, args);
    if (n >= (int)sizeof few) {
        char *many = malloc((size_t)n + 1);
        /* no memory: cut */
        if (many && vsnprintf(many, (size_t)n + 1, fmt, again) == n) text = many;
        put_quoted(text);
        free(many);
    } else if (n >= 0) {
        put_quoted(text);
    }
    va_end(again);
}

void kiln_print_gap(void) { (void)putchar('\n'); }

void kiln_print_list(const char *fmt, va_list args)
{
    print_part(fmt, args);
    kiln_print_gap();
}

void kiln_print_part(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_part(fmt, args);
    va_end(args);
}

void kiln_print(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    kiln_print_list(fmt, args);
    va_end(args);
}

/* The line, quoted and wrapped; NULL: no memory. Freed by the caller. */
static char *KILN_PRINTF(1, 0) wrapped_line(const char *fmt, va_list args)
{
    enum { ESCAPED = 4, BROKEN = 2 }; /* most bytes for one, in each of the two steps */
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, fmt, args);
    const size_t size = n < 0 ? 0 : (size_t)n + 1, capacity = size * ESCAPED * BROKEN;
    char *text = size ? malloc(size) : NULL, *line = text ? malloc(capacity) : NULL;
    if (line && vsnprintf(text, size, fmt, again) == n) {
        kiln_quote(line, size * ESCAPED, text);
        kiln_wrap(line, capacity);
    }
    va_end(again);
    free(text);
    return line;
}

static void KILN_PRINTF(1, 0) print_wrapped(const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    char *line = wrapped_line(fmt, args);
    if (line)
        (void)fputs(line, stdout);
    else
        print_part(fmt, again);
    kiln_print_gap();
    free(line);
    va_end(again);
}

void kiln_print_wrapped(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_wrapped(fmt, args);
    va_end(args);
}

void kiln_print_sentence(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (isatty(STDOUT_FILENO))
        print_wrapped(fmt, args);
    else
        kiln_print_list(fmt, args);
    va_end(args);
}

void kiln_print_json_part(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    while (n) {
        const piece p = next_piece(s, n);
        if (p.plain || p.code == '\n')
            (void)fwrite(s, 1, p.bytes, stdout);
        else
            (void)printf("\\u%04x", (unsigned)p.code); /* none of them is above U+FFFF */
        s += p.bytes;
        n -= p.bytes;
    }
}

void kiln_print_json(const char *text)
{
    kiln_print_json_part(text, strlen(text));
    kiln_print_gap();
}
