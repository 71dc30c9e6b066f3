/* report_page -- the page that kiln-report writes: its frame, and the sections in it.
 *
 * A section that has nothing to say is left out, with its entry in the list of contents. */
#ifndef KILN_STAGES_REPORT_PAGE_H
#define KILN_STAGES_REPORT_PAGE_H

#include "stages/survey/bake_facts.h"
#include "stages/report/html.h"
#include "stages/report/level_pictures.h"
#include "stages/survey/row_survey.h"
#include "stages/report/view_pictures.h"

#include <stdbool.h>

typedef struct {
    const kiln_bake_facts *bake, *against; /* against: another bake, NULL without */
    const kiln_prune_survey *survey;
    const kiln_picture_set *pictures;
    const json_t *levels; /* kiln_levels_info */
    const kiln_level_pictures *level_pictures;
} kiln_report;

typedef struct {
    const char *id, *title; /* constants of the source */
    bool (*has)(const kiln_report *r);
    void (*write)(kiln_html *h, const kiln_report *r);
} kiln_report_section;

/* In the order of the page. A new section: its file, and its row in report_page.c. */
extern const kiln_report_section kiln_section_against, kiln_section_import, kiln_section_prune, kiln_section_cameras,
    kiln_section_chunks, kiln_section_levels, kiln_section_run, kiln_section_record;

/* Appends the page to h. kiln_html_status tells whether it is whole. */
void kiln_report_page(kiln_html *h, const kiln_report *r);

/* ---- parts of sections ------------------------------------------------------------------------------------------------- */
/* Pairs of a name and what it is: begin, then for each a fact, its value, and an end. */
#define KILN_FACTS_BEGIN(h) KILN_HTML(h, "<dl class=\"facts\">")
#define KILN_FACT(h, name) KILN_HTML(h, "<div><dt>" name "</dt><dd>")
#define KILN_FACT_END(h) KILN_HTML(h, "</dd></div>")
#define KILN_FACTS_END(h) KILN_HTML(h, "</dl>")
/* A fact whose value is a text; left out where it is empty. */
#define KILN_FACT_TEXT(h, name, text)   \
    do {                                \
        const char *fact_ = (text);     \
        if (fact_ && *fact_) {          \
            KILN_FACT(h, name);         \
            kiln_html_text((h), fact_); \
            KILN_FACT_END(h);           \
        }                               \
    } while (0)
#define KILN_FACT_COUNT(h, name, n) \
    do {                            \
        KILN_FACT(h, name);         \
        kiln_html_count((h), (n));  \
        KILN_FACT_END(h);           \
    } while (0)
/* A table that scrolls in its own frame where the page is narrow; what: a literal for who cannot see it. */
#define KILN_TABLE_BEGIN(h, what, classes) \
    KILN_HTML(h, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" what "\"><table class=\"" classes "\">")
#define KILN_TABLE_END(h) KILN_HTML(h, "</tbody></table></div>")

/* "1 camera", "12 cameras". one and more are constants of the source. */
void kiln_report_plural(kiln_html *h, uint64_t n, const char *one, const char *more);

#endif
