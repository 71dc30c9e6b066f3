/* bake_report -- report.html, the page that a bake ends with. */
#ifndef KILN_STAGES_FRONT_BAKE_REPORT_H
#define KILN_STAGES_FRONT_BAKE_REPORT_H

#include "stages/front/words.h"

/* Runs the command of the report (words, the path of kiln-report first; none: there is to be no
 * report) unless out/report.html is newer than the manifest. The bake is whole without it: a
 * failure is told and is none. KILN_E_INTERRUPTED, KILN_E_TERMINATED, KILN_E_HANGUP. */
kiln_status kiln_bake_report_make(const kiln_words *words, const char *manifest, const char *out,
                                  kiln_error *err) KILN_MUST_CHECK;

#endif
