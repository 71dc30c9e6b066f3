/* html -- writes HTML and inline SVG in which text of strangers is only ever text.
 *
 * Problem. A report shows names, notes, reasons and paths that come from files of other people. In
 * a page, such a text can be markup, an attribute, or a script.
 *
 * Rule. Markup is a literal of the program's source: KILN_HTML takes nothing else. All that is not
 * a literal goes through one of the other functions, each of which escapes for both places where it
 * can stand, element content and quoted attribute values; SVG inside HTML has the same rules.
 * Nothing but constants ever stands in <script> and <style>. What a script needs to know stands in
 * data- attributes. A text is first quoted as for a terminal (base/quote.h), so that it cannot
 * reorder what is read either.
 *
 * Failures stick: after one, all functions do nothing, and kiln_html_status tells of the first. One
 * thread at a time. */
#ifndef KILN_STAGES_PAGE_HTML_H
#define KILN_STAGES_PAGE_HTML_H

#include "base/memory.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct {
    kiln_buffer out; /* owned: kiln_html_release */
    kiln_status st;
    kiln_error *err;
} kiln_html;

/* err stays the caller's and must outlive the writer. */
void kiln_html_init(kiln_html *h, kiln_error *err);
void kiln_html_release(kiln_html *h);
kiln_status kiln_html_status(const kiln_html *h) KILN_MUST_CHECK;

/* Writes markup that is a literal of the source; "" makes the compiler refuse anything else. */
#define KILN_HTML(h, literal) kiln_html_markup((h), "" literal, sizeof(literal) - 1)
/* for KILN_HTML, and for constants of report_assets.h */
void kiln_html_markup(kiln_html *h, const char *literal, size_t bytes);

/* Writes text, escaped. NULL: nothing. */
void kiln_html_text(kiln_html *h, const char *text);
/* Writes ` name="value"`, escaped. KILN_ATTR takes a literal name. */
#define KILN_ATTR(h, name, value) \
    kiln_html_attribute((h), " " name "=\"", sizeof(name) + 2, (value))
void kiln_html_attribute(kiln_html *h, const char *begin, size_t bytes, const char *value);
/* Writes ` name="number"` for SVG: at most two decimals; 0 for what is not finite. */
#define KILN_ATTR_XY(h, name, value) \
    kiln_html_coordinate((h), " " name "=\"", sizeof(name) + 2, (value))
void kiln_html_coordinate(kiln_html *h, const char *begin, size_t bytes, double value);

/* Numbers for people. What is not finite is an en dash. */
void kiln_html_count(kiln_html *h, uint64_t n);             /* 120,000 */
void kiln_html_fixed(kiln_html *h, double v, int decimals); /* 34.119 */
/* four significant digits: 0.02566, 6.91e-05 */
void kiln_html_short(kiln_html *h, double v);
void kiln_html_bytes(kiln_html *h, uint64_t bytes); /* 16.5 MiB */
/* 780 ms, 2.3 s, 4 min 10 s */
void kiln_html_seconds(kiln_html *h, double s);
/* 2026-11-23 21:44:12 UTC; a dash for 0 */
void kiln_html_time(kiln_html *h, int64_t ns);
void kiln_html_hex(kiln_html *h, const unsigned char *bytes, size_t n); /* 0f3a... */
/* a coordinate inside of a path's d, with a blank after it */
void kiln_html_path_number(kiln_html *h, double v);
void kiln_html_base64(kiln_html *h, const void *data, size_t bytes);

#endif
