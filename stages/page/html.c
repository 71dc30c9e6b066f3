/* html -- see the header. */
#include "stages/page/html.h"

#include "base/option.h"
#include "base/quote.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NONE "\xe2\x80\x93" /* U+2013, where there is no number */

void kiln_html_init(kiln_html *h, kiln_error *err) { *h = (kiln_html){.st = KILN_OK, .err = err}; }
void kiln_html_release(kiln_html *h) { kiln_buffer_release(&h->out); }
kiln_status kiln_html_status(const kiln_html *h) { return h->st; }

void kiln_html_markup(kiln_html *h, const char *literal, size_t bytes)
{
    if (h->st == KILN_OK) h->st = kiln_buffer_put(&h->out, literal, bytes, h->err);
}

static void put_markup(kiln_html *h, const char *s) { kiln_html_markup(h, s, strlen(s)); }

/* ---- text ------------------------------------------------------------------------------------ */
static const char *entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    case '`':
        return "&#96;";
    default:
        return NULL;
    }
}

static void put_escaped(kiln_html *h, const char *text)
{
    const char *from = text;
    for (const char *at = text; *at; at++) {
        const char *e = entity(*at);
        if (!e) continue;
        kiln_html_markup(h, from, (size_t)(at - from));
        put_markup(h, e);
        from = at + 1;
    }
    put_markup(h, from);
}

/* A byte becomes 8 bytes at most: "\u{206f}" stands for three. */
void kiln_html_text(kiln_html *h, const char *text)
{
    char small[512], *quoted = small;
    if (h->st != KILN_OK || !text) return;
    const size_t capacity = 8 * strlen(text) + 1;
    if (capacity > sizeof small)
        h->st = KILN_ALLOC_UNSET(&quoted, capacity, "text of a report", h->err);
    if (h->st != KILN_OK) return;
    kiln_quote(quoted, capacity, text);
    put_escaped(h, quoted);
    if (quoted != small) free(quoted);
}

void kiln_html_attribute(kiln_html *h, const char *begin, size_t bytes, const char *value)
{
    kiln_html_markup(h, begin, bytes);
    kiln_html_text(h, value);
    put_markup(h, "\"");
}

/* ---- numbers --------------------------------------------------------------------------------- */
static void put_coordinate(kiln_html *h, double v)
{
    char text[32];
    if (!isfinite(v) || fabs(v) > 1e6) v = 0;
    int n = snprintf(text, sizeof text, "%.2f", v);
    while (n > 0 && text[n - 1] == '0') n--;
    if (n > 0 && text[n - 1] == '.') n--;
    kiln_html_markup(h, text, (size_t)n);
}

void kiln_html_coordinate(kiln_html *h, const char *begin, size_t bytes, double value)
{
    kiln_html_markup(h, begin, bytes);
    put_coordinate(h, value);
    put_markup(h, "\"");
}

void kiln_html_path_number(kiln_html *h, double v)
{
    put_coordinate(h, v);
    put_markup(h, " ");
}

void kiln_html_count(kiln_html *h, uint64_t n)
{
    char digits[24], text[32];
    const int length = snprintf(digits, sizeof digits, "%" PRIu64, n);
    int at = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) text[at++] = ',';
        text[at++] = digits[i];
    }
    kiln_html_markup(h, text, (size_t)at);
}

static void put_number(kiln_html *h, double v, const char *format, int digits)
{
    char text[400];
    if (!isfinite(v)) {
        put_markup(h, NONE);
        return;
    }
    (void)snprintf(text, sizeof text, format, digits, v);
    put_markup(h, text);
}

void kiln_html_fixed(kiln_html *h, double v, int decimals)
{
    put_number(h, fabs(v) < 1e15 ? v : NAN, "%.*f", decimals < 0 ? 0 : decimals);
}

void kiln_html_short(kiln_html *h, double v) { put_number(h, v, "%.*g", 4); }

void kiln_html_bytes(kiln_html *h, uint64_t bytes)
{
    char text[32];
    put_markup(h, kiln_size_text(bytes, text));
}

void kiln_html_seconds(kiln_html *h, double s)
{
    if (!isfinite(s) || s < 0 || s > 1e12) {
        put_markup(h, NONE);
    } else if (s < 1) {
        kiln_html_fixed(h, 1000 * s, s < 0.01 ? 1 : 0);
        put_markup(h, " ms");
    } else if (s < 120) {
        kiln_html_fixed(h, s, s < 10 ? 2 : 1);
        put_markup(h, " s");
    } else {
        kiln_html_count(h, (uint64_t)(s / 60));
        put_markup(h, " min ");
        kiln_html_count(h, (uint64_t)fmod(s, 60));
        put_markup(h, " s");
    }
}

void kiln_html_time(kiln_html *h, int64_t ns)
{
    char text[64];
    const time_t s = (time_t)(ns / 1000000000);
    struct tm t;
    if (ns == 0 || !gmtime_r(&s, &t) ||
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &t) == 0)
        (void)strcpy(text, NONE);
    put_markup(h, text);
}

void kiln_html_hex(kiln_html *h, const unsigned char *bytes, size_t n)
{
    static const char digit[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++)
        kiln_html_markup(h, (char[]){digit[bytes[i] >> 4], digit[bytes[i] & 15]}, 2);
}

void kiln_html_base64(kiln_html *h, const void *data, size_t bytes)
{
    static const char code[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *in = data;
    char line[4 * 256];
    size_t n = 0;
    for (size_t i = 0; i < bytes; i += 3) {
        const uint32_t left = (uint32_t)(bytes - i);
        const uint32_t v = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
                           (left > 2 ? in[i + 2] : 0u);
        line[n++] = code[v >> 18];
        line[n++] = code[v >> 12 & 63];
        line[n++] = left > 1 ? code[v >> 6 & 63] : '=';
        line[n++] = left > 2 ? code[v & 63] : '=';
        if (n < sizeof line) continue;
        kiln_html_markup(h, line, n);
        n = 0;
    }
    kiln_html_markup(h, line, n);
}
