/* section_record -- what is needed to bake the same again and to compare: versions, parameters,
 * digests. */
#include "stages/report/report_page.h"

#include "stages/report/report_table.h"

#include <stdlib.h>
#include <string.h>

static bool has_record_section(const kiln_report *r)
{
    for (int i = 0; i < KILN_STAGE_COUNT; i++)
        if (r->bake->stages[i].ran) return true;
    return false;
}

static void write_versions(kiln_html *h, const kiln_report *r)
{
    static const kiln_column columns[] = {{"Stage", NULL},
                                          {"Program", "word"},
                                          {"Algorithm", "n"},
                                          {"Device", NULL},
                                          {"Finished", "word"}};
    KILN_HTML(h, "<h3>Versions</h3>");
    kiln_table_begin(h, "Versions", "", columns, 5);
    for (int i = 0; i < KILN_STAGE_COUNT; i++) {
        const kiln_stage_facts *s = &r->bake->stages[i];
        const char *device =
            s->n_tasks && s->run.device && !*s->run.device ? s->tasks[0].device : s->run.device;
        const kiln_cell cells[] = {kiln_text(s->name), kiln_text(s->run.program),
                                   kiln_count(s->row.version), kiln_text(device),
                                   kiln_time(s->row.finished_ns)};
        if (s->ran) kiln_table_row(h, columns, cells, 5);
    }
    kiln_table_end(h);
}

/* As the stage's command line would have them; an option whose text is empty has no value. */
static void write_parameters_of(kiln_html *h, const kiln_stage_facts *s)
{
    const char *key;
    json_t *v;
    KILN_HTML(h, "<details><summary>kiln-");
    kiln_html_text(h, s->name);
    KILN_HTML(h, "</summary><dl class=\"options\">");
    json_object_foreach(s->parameters, key, v)
    {
        const char *text = json_string_value(v);
        if (!text || !*text) continue;
        KILN_HTML(h, "<div><dt>--");
        kiln_html_text(h, key);
        KILN_HTML(h, "</dt><dd>");
        kiln_html_text(h, text);
        KILN_HTML(h, "</dd></div>");
    }
    KILN_HTML(h, "</dl></details>");
}

static void write_parameters(kiln_html *h, const kiln_report *r)
{
    KILN_HTML(h, "<h3>Parameters</h3>");
    for (int i = 0; i < KILN_STAGE_COUNT; i++)
        if (json_object_size(r->bake->stages[i].parameters))
            write_parameters_of(h, &r->bake->stages[i]);
}

/* ---- digests --------------------------------------------------------------------------------- */
typedef struct {
    kiln_html *h;
    char kind[16]; /* whose list is open; "": none is */
} digest_list;

static void close_list(digest_list *l)
{
    if (!l->kind[0]) return;
    kiln_table_end(l->h);
    KILN_HTML(l->h, "</details>");
}

/* Layers are few and shown; tables and images, one for each camera, are folded. */
static void open_list(digest_list *l, const char *kind)
{
    close_list(l);
    strncpy(l->kind, kind, sizeof l->kind - 1);
    if (strcmp(kind, "layer") == 0)
        KILN_HTML(l->h, "<details open><summary>");
    else
        KILN_HTML(l->h, "<details><summary>");
    kiln_html_text(l->h, kind);
    KILN_HTML(l->h, "s</summary>");
    kiln_table_begin(l->h, "Digests", "", NULL, 0);
}

static void add_digest(void *context, const char *kind, const char *name, kiln_hash digest)
{
    static const kiln_column columns[] = {{"", NULL}, {"", "hash"}};
    digest_list *l = context;
    char hex[33];
    if (strcmp(l->kind, kind) != 0) open_list(l, kind);
    kiln_table_row(l->h, columns,
                   (kiln_cell[]){kiln_text(name), kiln_text(kiln_hash_hex(digest, hex))}, 2);
}

static void write_digests(kiln_html *h, const kiln_report *r)
{
    digest_list l = {.h = h};
    KILN_HTML(h, "<h3>Digests</h3>");
    if (h->st == KILN_OK) h->st = kiln_manifest_digests(r->bake->m, add_digest, &l, h->err);
    close_list(&l);
}

static void write_record_section(kiln_html *h, const kiln_report *r)
{
    write_versions(h, r);
    write_parameters(h, r);
    write_digests(h, r);
}

const kiln_report_section kiln_section_record = {
    .id = "record", .title = "Record", .has = has_record_section, .write = write_record_section};
