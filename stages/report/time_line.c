/* time_line -- see the header.
 *
 * A stage is a row, and below it are the lists of units of its run, one behind the other: the
 * record has their lengths alone. Where tasks of other hosts or shards computed the units, a row is
 * a list on a host, with a bar for each task at its own time. */
#include "stages/report/time_line.h"

#include "base/memory.h"
#include "stages/report/report_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LISTS_MOST = 40, ROWS_MOST = 60, BARS_MOST = 200 };

const json_t *kiln_stage_record(const kiln_stage_facts *s, uint32_t k)
{
    return k ? s->task_counters[k - 1] : s->counters;
}

static uint64_t units_of(const json_t *record, const char *key)
{
    return kiln_json_count_of(json_object_get(record, "units"), key);
}

static uint64_t task_units(const kiln_stage_facts *s)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->n_tasks; i++) n += units_of(s->task_counters[i], "done");
    return n;
}

uint64_t kiln_stage_units_done(const kiln_stage_facts *s)
{
    return units_of(s->counters, "done") + task_units(s);
}

uint64_t kiln_stage_units_there(const kiln_stage_facts *s)
{
    const uint64_t cached = units_of(s->counters, "cached"), gathered = task_units(s);
    return cached > gathered ? cached - gathered : 0;
}

/* ---- bars ------------------------------------------------------------------------------------ */
typedef struct {
    double from, length; /* seconds of the time line */
} piece;

typedef struct {
    const piece *pieces;
    size_t n;
    double whole;
    const char *class; /* constant */
} bar;

static void write_bar(kiln_html *h, const void *context)
{
    const bar *b = context;
    KILN_HTML(h, "<svg preserveAspectRatio=\"none\" viewBox=\"0 0 1000 10\" aria-hidden=\"true\">");
    for (size_t i = 0; i < b->n; i++) {
        KILN_HTML(h, "<rect");
        KILN_ATTR(h, "class", b->class);
        KILN_ATTR_XY(h, "x", 1000 * b->pieces[i].from / b->whole);
        KILN_ATTR_XY(h, "width", fmax(2, 1000 * b->pieces[i].length / b->whole));
        KILN_HTML(h, " y=\"0\" height=\"10\"/>");
    }
    KILN_HTML(h, "</svg>");
}

static const kiln_column columns[] = {
    {"Stage, list", NULL}, {"Time", "bar"}, {"Takes", "n"}, {"Work", "work"}};

typedef struct {
    kiln_html *h;
    const kiln_stage_facts *stage;
    double from, whole; /* of the stage; of the time line */
} line;

static void write_row(const line *l, const char *class, kiln_cell name, const bar *b, double takes,
                      kiln_cell work)
{
    const kiln_cell cells[] = {name, kiln_by(write_bar, b), kiln_seconds(takes), work};
    kiln_table_row_of(l->h, class, columns, cells, 4);
}

/* ---- a stage --------------------------------------------------------------------------------- */
static int hosts_by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static kiln_status count_hosts(const kiln_stage_facts *s, uint64_t *hosts, kiln_error *err)
{
    const char **names;
    KILN_TRY(KILN_ALLOC(&names, s->n_tasks, "hosts", err));
    for (uint32_t i = 0; i < s->n_tasks; i++)
        names[i] = kiln_json_text_of(s->task_counters[i], "host");
    qsort(names, s->n_tasks, sizeof *names, hosts_by_name);
    *hosts = 1;
    for (uint32_t i = 1; i < s->n_tasks; i++) *hosts += strcmp(names[i - 1], names[i]) != 0;
    free(names);
    return KILN_OK;
}

/* There are some. */
static void write_tasks(kiln_html *h, const kiln_stage_facts *s)
{
    uint64_t hosts = 0;
    if (h->st == KILN_OK) h->st = count_hosts(s, &hosts, h->err);
    KILN_HTML(h, " in ");
    kiln_plural(h, s->n_tasks, "task", "tasks");
    KILN_HTML(h, " on ");
    kiln_plural(h, hosts, "host", "hosts");
}

static void write_stage_work(kiln_html *h, const void *context)
{
    const kiln_stage_facts *s = context;
    const uint64_t there = kiln_stage_units_there(s), retried = units_of(s->counters, "retried");
    kiln_plural(h, kiln_stage_units_done(s), "unit", "units");
    if (s->n_tasks) write_tasks(h, s);
    if (there) {
        KILN_HTML(h, ", ");
        kiln_html_count(h, there);
        KILN_HTML(h, " were there");
    }
    if (retried) {
        KILN_HTML(h, ", ");
        kiln_html_count(h, retried);
        KILN_HTML(h, " tried again");
    }
    if (!*s->run.device) return;
    KILN_HTML(h, " <small>");
    kiln_html_text(h, s->run.device);
    KILN_HTML(h, "</small>");
}

static void write_list_work(kiln_html *h, const void *context)
{
    kiln_plural(h, kiln_json_count_of(context, "units"), "unit", "units");
    KILN_HTML(h, " on ");
    kiln_plural(h, kiln_json_count_of(context, "workers"), "worker", "workers");
}

/* Lists of units follow each other; what is left of the run's time is planning and storing. */
static void write_lists(const line *l)
{
    const kiln_stage_facts *s = l->stage;
    const json_t *lists = json_object_get(s->counters, "lists");
    const double end = l->from + kiln_stage_seconds(s);
    double at = l->from + kiln_run_clock_at(&s->clock, s->run.start_ns);
    for (size_t i = 0; i < json_array_size(lists) && i < LISTS_MOST; i++) {
        const json_t *list = json_array_get(lists, i);
        const double wall = kiln_json_number_of(list, "wall_s");
        const piece p = {at, wall > 0 ? fmin(wall, end - at) : 0};
        const bar b = {&p, 1, l->whole, "list"};
        write_row(l, "part", kiln_text(kiln_json_text_of(list, "what")), &b, wall,
                  kiln_by(write_list_work, list));
        at += p.length;
    }
}

/* ---- tasks ----------------------------------------------------------------------------------- */
/* The tasks of a list on a host. */
typedef struct {
    const char *what, *host, *device;
    uint64_t tasks, units;
    double first, last; /* seconds of the stage's clock */
} task_group;

static const char *what_of(const json_t *record)
{
    const char *what = kiln_json_text_of(json_object_get(record, "round"), "what");
    return *what ? what
                 : kiln_json_text_of(json_array_get(json_object_get(record, "lists"), 0), "what");
}

static bool is_of(const task_group *g, const json_t *record)
{
    return strcmp(g->what, what_of(record)) == 0 &&
           strcmp(g->host, kiln_json_text_of(record, "host")) == 0;
}

static uint32_t group_tasks(const kiln_stage_facts *s, task_group groups[ROWS_MOST])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_tasks; i++) {
        const json_t *record = s->task_counters[i];
        const double from = kiln_run_clock_at(&s->clock, s->tasks[i].start_ns),
                     to = kiln_run_clock_at(&s->clock, s->tasks[i].stop_ns);
        uint32_t k = 0;
        while (k < n && !is_of(&groups[k], record)) k++;
        if (k == ROWS_MOST) continue;
        if (k == n)
            groups[n++] = (task_group){.what = what_of(record),
                                       .host = kiln_json_text_of(record, "host"),
                                       .device = s->tasks[i].device,
                                       .first = from,
                                       .last = to};
        groups[k].tasks++;
        groups[k].units += units_of(record, "done");
        groups[k].first = fmin(groups[k].first, from);
        groups[k].last = fmax(groups[k].last, to);
    }
    return n;
}

static void write_group_work(kiln_html *h, const void *context)
{
    const task_group *g = context;
    kiln_plural(h, g->units, "unit", "units");
    KILN_HTML(h, " in ");
    kiln_plural(h, g->tasks, "task", "tasks");
    if (*g->host) {
        KILN_HTML(h, " on ");
        kiln_html_text(h, g->host);
    }
    if (!*g->device) return;
    KILN_HTML(h, " <small>");
    kiln_html_text(h, g->device);
    KILN_HTML(h, "</small>");
}

static void write_group(const line *l, const task_group *g, piece pieces[BARS_MOST])
{
    const kiln_stage_facts *s = l->stage;
    bar b = {pieces, 0, l->whole, "list"};
    for (uint32_t i = 0; i < s->n_tasks && b.n < BARS_MOST; i++) {
        if (!is_of(g, s->task_counters[i])) continue;
        const double from = kiln_run_clock_at(&s->clock, s->tasks[i].start_ns);
        pieces[b.n++] =
            (piece){l->from + from, kiln_run_clock_at(&s->clock, s->tasks[i].stop_ns) - from};
    }
    write_row(l, "part", kiln_text(g->what), &b, g->last - g->first, kiln_by(write_group_work, g));
}

static void write_stage(const line *l)
{
    task_group groups[ROWS_MOST];
    piece pieces[BARS_MOST];
    const piece p = {l->from, kiln_stage_seconds(l->stage)};
    const bar b = {&p, 1, l->whole, "whole"};
    write_row(l, "", kiln_text(l->stage->name), &b, p.length, kiln_by(write_stage_work, l->stage));
    const uint32_t n = group_tasks(l->stage, groups);
    for (uint32_t i = 0; i < n; i++) write_group(l, &groups[i], pieces);
    write_lists(l);
}

void kiln_time_line_write(kiln_html *h, const kiln_bake_facts *b)
{
    line l = {.h = h, .whole = kiln_bake_seconds(b)};
    if (l.whole <= 0) return;
    KILN_HTML(h, "<h3>Time line</h3><p class=\"note\">The newest run of each stage that made its "
                 "output, with the tasks that computed "
                 "for it, one stage behind the other: pauses are left out.</p>");
    kiln_table_begin(h, "Time line", "time", columns, 4);
    for (int i = 0; i < KILN_STAGE_COUNT; i++) {
        l.stage = &b->stages[i];
        if (!l.stage->ran) continue;
        write_stage(&l);
        l.from += kiln_stage_seconds(l.stage);
    }
    kiln_table_end(h);
}
