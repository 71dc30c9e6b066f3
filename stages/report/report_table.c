/* report_table -- see the header. */
#include "stages/report/report_table.h"

#include <string.h>

void kiln_cell_write(kiln_html *h, kiln_cell c)
{
    switch (c.kind) {
    case KILN_CELL_NONE:
        KILN_HTML(h, "\xe2\x80\x93");
        break;
    case KILN_CELL_TEXT:
        kiln_html_text(h, c.of.text);
        break;
    case KILN_CELL_COUNT:
        kiln_html_count(h, c.of.count);
        break;
    case KILN_CELL_BYTES:
        kiln_html_bytes(h, c.of.count);
        break;
    case KILN_CELL_SECONDS:
        kiln_html_seconds(h, c.of.number);
        break;
    case KILN_CELL_FIXED:
        kiln_html_fixed(h, c.of.number, c.decimals);
        break;
    case KILN_CELL_SHORT:
        kiln_html_short(h, c.of.number);
        break;
    case KILN_CELL_TIME:
        kiln_html_time(h, c.of.ns);
        break;
    case KILN_CELL_BY:
        c.of.by.write(h, c.of.by.context);
        break;
    }
}

/* ---- tables ---------------------------------------------------------------------------------- */
static void write_label(kiln_html *h, const char *label)
{
    char line[64];
    const size_t n = strcspn(label, "\n");
    if (label[n] == '\0' || n >= sizeof line) {
        kiln_html_text(h, label);
        return;
    }
    memcpy(line, label, n);
    line[n] = '\0';
    kiln_html_text(h, line);
    KILN_HTML(h, "<br>");
    write_label(h, label + n + 1);
}

static void write_column_head(kiln_html *h, const kiln_column *c)
{
    if (!*c->label) {
        KILN_HTML(h, "<td></td>");
        return;
    }
    KILN_HTML(h, "<th scope=\"col\"");
    if (c->class && strcmp(c->class, "n") == 0) KILN_ATTR(h, "class", "n");
    KILN_HTML(h, ">");
    write_label(h, c->label);
    KILN_HTML(h, "</th>");
}

void kiln_table_begin(kiln_html *h, const char *what, const char *classes,
                      const kiln_column *columns, size_t n)
{
    KILN_HTML(h, "<div class=\"scroll\" tabindex=\"0\" role=\"region\"");
    KILN_ATTR(h, "aria-label", what);
    KILN_HTML(h, "><table");
    KILN_ATTR(h, "class", classes);
    KILN_HTML(h, ">");
    if (n) KILN_HTML(h, "<thead><tr>");
    for (size_t i = 0; i < n; i++) write_column_head(h, &columns[i]);
    if (n) KILN_HTML(h, "</tr></thead>");
    KILN_HTML(h, "<tbody>");
}

static void write_cell(kiln_html *h, const kiln_column *column, kiln_cell c, bool names_row)
{
    if (names_row)
        KILN_HTML(h, "<th scope=\"row\"");
    else
        KILN_HTML(h, "<td");
    if (column->class) KILN_ATTR(h, "class", column->class);
    KILN_HTML(h, ">");
    kiln_cell_write(h, c);
    if (names_row)
        KILN_HTML(h, "</th>");
    else
        KILN_HTML(h, "</td>");
}

void kiln_table_row_of(kiln_html *h, const char *class, const kiln_column *columns,
                       const kiln_cell *cells, size_t n)
{
    KILN_HTML(h, "<tr");
    if (*class) KILN_ATTR(h, "class", class);
    KILN_HTML(h, ">");
    for (size_t i = 0; i < n; i++) write_cell(h, &columns[i], cells[i], i == 0);
    KILN_HTML(h, "</tr>");
}

void kiln_table_row(kiln_html *h, const kiln_column *columns, const kiln_cell *cells, size_t n)
{
    kiln_table_row_of(h, "", columns, cells, n);
}

void kiln_table_end(kiln_html *h) { KILN_HTML(h, "</tbody></table></div>"); }

/* ---- facts ----------------------------------------------------------------------------------- */
static bool is_known(kiln_cell c)
{
    return c.kind != KILN_CELL_NONE && (c.kind != KILN_CELL_TEXT || (c.of.text && *c.of.text));
}

void kiln_facts(kiln_html *h, const char *class, const kiln_fact *facts, size_t n)
{
    KILN_HTML(h, "<dl");
    KILN_ATTR(h, "class", class);
    KILN_HTML(h, ">");
    for (size_t i = 0; i < n; i++) {
        if (!is_known(facts[i].value)) continue;
        KILN_HTML(h, "<div><dt>");
        kiln_html_text(h, facts[i].label);
        KILN_HTML(h, "</dt><dd>");
        kiln_cell_write(h, facts[i].value);
        KILN_HTML(h, "</dd></div>");
    }
    KILN_HTML(h, "</dl>");
}

void kiln_plural(kiln_html *h, uint64_t n, const char *one, const char *more)
{
    kiln_html_count(h, n);
    KILN_HTML(h, " ");
    kiln_html_text(h, n == 1 ? one : more);
}
