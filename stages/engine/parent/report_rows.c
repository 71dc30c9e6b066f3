/* report_rows -- a list of a report that has a row for each of many things, such as cameras.
 *
 * Problem. 20,000 rows as a tree of JSON are 50 MB, and the text of all of them in each run's
 * record made that 4 MB a run. What they say of cameras stands in the tables `image` and
 * `tile_table`. Layout. The first KILN_ROWS_RECORDED rows are in the report like everything else.
 * When there is one more, all of them become text, which --json prints and the record leaves
 * out. */
#include "stages/engine/parent/report_rows.h"

#include "base/quote.h"
#include "stages/engine/json_text.h"
#include "stages/engine/parent/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kiln_status no_memory(kiln_error *err)
{
    return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
}

/* Appends the text of a row as it stands in an indented report. */
static kiln_status append_text(kiln_report_rows *rows, const json_t *row, kiln_error *err)
{
    static const char indent[] = "\n    ";
    kiln_status st = KILN_OK;
    char *text = kiln_json_text(row, JSON_INDENT(2));
    if (!text) return no_memory(err);
    KILN_GO(kiln_buffer_printf(&rows->text, err, "%s%s", rows->text.size ? "," : "", indent));
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, "\n");
        KILN_GO(kiln_buffer_put(&rows->text, at, n, err));
        at += n;
        if (*at) KILN_GO(kiln_buffer_put(&rows->text, indent, sizeof indent - 1, err));
        at += *at != '\0';
    }
done:
    free(text);
    return st;
}

static kiln_status leave_out(const kiln_run *r, kiln_report_rows *rows, json_t *list,
                             kiln_error *err)
{
    for (size_t i = 0; kiln_run_json(r) && i < json_array_size(list); i++)
        KILN_TRY(append_text(rows, json_array_get(list, i), err));
    return json_array_clear(list) == 0 ? KILN_OK : no_memory(err);
}

kiln_status kiln_run_report_rows(kiln_run *r, const char *name, kiln_error *err)
{
    kiln_buffer_release(&r->report.rows.text);
    r->report.rows = (kiln_report_rows){.name = name};
    return json_object_set_new(r->report.own, name, json_array()) == 0 ? KILN_OK : no_memory(err);
}

kiln_status kiln_run_report_row(kiln_run *r, json_t *row, kiln_error *err)
{
    kiln_report_rows *rows = &r->report.rows;
    json_t *list = json_object_get(r->report.own, rows->name);
    kiln_status st = row && list ? KILN_OK : no_memory(err);
    if (st == KILN_OK && rows->n == KILN_ROWS_RECORDED) st = leave_out(r, rows, list, err);
    if (st == KILN_OK && rows->n >= KILN_ROWS_RECORDED && kiln_run_json(r))
        st = append_text(rows, row, err);
    if (st == KILN_OK && rows->n < KILN_ROWS_RECORDED && json_array_append(list, row) != 0)
        st = no_memory(err);
    rows->n++;
    json_decref(row);
    return st;
}

/* The text doubles its room as it grows; what is not written yet takes no memory. */
uint64_t kiln_run_report_rows_ram(const kiln_run *r, uint64_t n, size_t row_bytes)
{
    enum { TREE = 4096 }; /* of a row that is kept as JSON */
    return n <= KILN_ROWS_RECORDED
               ? n * TREE
               : KILN_ROWS_RECORDED * TREE + (kiln_run_json(r) ? n * row_bytes : 0);
}

int kiln_report_rows_leave_out(const kiln_report_rows *rows, json_t *record)
{
    char name[80];
    if (rows->n <= KILN_ROWS_RECORDED) return 0;
    (void)snprintf(name, sizeof name, "%s_left_out", rows->name);
    return json_object_del(record, rows->name) |
           json_object_set_new(record, name, json_integer((json_int_t)rows->n));
}

void kiln_report_rows_print(const kiln_report_rows *rows, const char *report)
{
    char empty[80];
    (void)snprintf(empty, sizeof empty, "\n  \"%s\": []", rows->text.size ? rows->name : "");
    /* no text of JSON has a line feed in it: two blanks are of the report itself */
    const char *at = strstr(report, empty);
    if (at) {
        at += strlen(empty) - 1;
        kiln_print_json_part(report, (size_t)(at - report));
        kiln_print_json_part((const char *)rows->text.data, rows->text.size);
        kiln_print_json_part("\n  ", 3);
    }
    kiln_print_json(at ? at : report);
}
