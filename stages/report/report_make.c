/* report_make -- see the header. */
#include "stages/report/report_make.h"

#include "stages/lod/levels_info.h"
#include "stages/report/report_page.h"

#include <stdlib.h>

typedef struct {
    kiln_bake_facts bake, against;
    bool has_against;
    kiln_prune_survey survey;
    kiln_picture_set pictures;
    json_t *levels;
    kiln_level_pictures level_pictures;
    kiln_change_pictures changes;
} findings; /* too big for the stack */

static kiln_status write_page(const findings *f, kiln_html *h)
{
    const kiln_report report = {.bake = &f->bake,
                                .against = f->has_against ? &f->against : NULL,
                                .survey = &f->survey,
                                .pictures = &f->pictures,
                                .levels = f->levels,
                                .level_pictures = &f->level_pictures,
                                .changes = &f->changes};
    kiln_report_page(h, &report);
    return kiln_html_status(h);
}

/* What the page's most leaves for pictures beside everything else, and the markup around them. */
static kiln_status memory_for_pictures(const findings *f, uint64_t most, uint64_t *bytes,
                                       kiln_error *err)
{
    enum { AROUND = 3000 * (KILN_VIEWS_SHOWN + KILN_LEVEL_PICTURES + KILN_CHANGES_SHOWN) };
    kiln_html h;
    kiln_html_init(&h, err);
    const kiln_status st = write_page(f, &h);
    *bytes = h.out.size + AROUND < most ? most - h.out.size - AROUND : 0;
    kiln_html_release(&h);
    return st;
}

static kiln_status gather_findings(kiln_manifest *m, kiln_manifest *against,
                                   const kiln_report_wish *wish, findings *f, kiln_error *err)
{
    uint64_t bytes;
    KILN_TRY(kiln_bake_facts_get(m, &f->bake, err));
    f->has_against = against != NULL;
    if (against) KILN_TRY(kiln_bake_facts_get(against, &f->against, err));
    KILN_TRY(kiln_prune_survey_make(&f->bake, &f->survey, err));
    KILN_TRY(kiln_levels_info(m, &f->levels, err));
    KILN_TRY(memory_for_pictures(f, wish->bytes, &bytes, err));
    if (against)
        KILN_TRY(kiln_change_pictures_make(&f->bake, &f->against, bytes / 4, &f->changes, err));
    bytes -= kiln_change_pictures_bytes(&f->changes);
    KILN_TRY(kiln_level_pictures_make(&f->bake, bytes / 2, &f->level_pictures, err));
    bytes -= kiln_level_pictures_bytes(&f->level_pictures);
    return kiln_picture_set_make(&f->bake, bytes, wish->threads, &f->pictures, err);
}

kiln_status kiln_report_make(kiln_manifest *m, kiln_manifest *against, const kiln_report_wish *wish,
                             kiln_buffer *out, kiln_error *err)
{
    findings *f = NULL;
    kiln_html h;
    kiln_html_init(&h, err);
    KILN_TRY(KILN_ALLOC(&f, 1, "a report", err));
    kiln_status st = gather_findings(m, against, wish, f, err);
    if (st == KILN_OK) st = write_page(f, &h);
    if (st == KILN_OK) {
        kiln_buffer_release(out);
        *out = h.out; /* not a second copy of a page that may be large */
        h.out = (kiln_buffer){0};
    }
    kiln_html_release(&h);
    json_decref(f->levels);
    kiln_change_pictures_release(&f->changes);
    kiln_level_pictures_release(&f->level_pictures);
    kiln_picture_set_release(&f->pictures);
    kiln_bake_facts_release(&f->against);
    kiln_bake_facts_release(&f->bake);
    free(f);
    return st;
}
