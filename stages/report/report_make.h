/* report_make -- makes the whole page of kiln-report in memory: gathers what a bake holds and
 * writes the page. */
#ifndef KILN_STAGES_REPORT_MAKE_H
#define KILN_STAGES_REPORT_MAKE_H

#include "base/memory.h"
#include "schema/manifest.h"

typedef struct {
    /* the page's most; cameras whose pictures do not fit are left out. Without any picture it may
     * be larger */
    uint64_t bytes;
    unsigned threads; /* that decode pictures at a time */
} kiln_report_wish;

/* Puts the page into out, which is empty. against: another bake to compare with, NULL without.
 * Called by the thread that the manifests belong to. As manifest.h; KILN_E_NOMEM. */
kiln_status kiln_report_make(kiln_manifest *m, kiln_manifest *against, const kiln_report_wish *wish,
                             kiln_buffer *out, kiln_error *err) KILN_MUST_CHECK;

#endif
