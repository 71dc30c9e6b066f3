/* report_page -- the page that kiln-report writes: its frame, and the sections in it.
 *
 * A section that has nothing to say is left out, with its entry in the list of contents. */
#ifndef KILN_STAGES_REPORT_PAGE_H
#define KILN_STAGES_REPORT_PAGE_H

#include "stages/page/html.h"
#include "stages/report/level_pictures.h"
#include "stages/report/view_changes.h"
#include "stages/report/view_pictures.h"
#include "stages/survey/bake_facts.h"
#include "stages/survey/row_survey.h"

#include <stdbool.h>

typedef struct {
    const kiln_bake_facts *bake, *against; /* against: another bake, NULL without */
    const kiln_prune_survey *survey;
    const kiln_picture_set *pictures;
    const json_t *levels; /* kiln_levels_info */
    const kiln_level_pictures *level_pictures;
    const kiln_change_pictures *changes; /* of this bake and the other */
} kiln_report;

typedef struct {
    const char *id, *title; /* constants of the source */
    bool (*has)(const kiln_report *r);
    void (*write)(kiln_html *h, const kiln_report *r);
} kiln_report_section;

/* In the order of the page. A new section: its file, and its row in report_page.c. */
extern const kiln_report_section kiln_section_pictures, kiln_section_against, kiln_section_import,
    kiln_section_prune, kiln_section_cameras, kiln_section_chunks, kiln_section_levels,
    kiln_section_run, kiln_section_record;

/* Appends the page to h. kiln_html_status tells whether it is whole. */
void kiln_report_page(kiln_html *h, const kiln_report *r);

#endif
