/* report_answer -- report.html: kiln-report's page of the bake as it is now. */
#include "stages/report/report_make.h"
#include "stages/serve/routes.h"

enum { PAGE_BYTES = 15000000 /* as --max-mb of kiln-report */ };

kiln_status kiln_answer_report(kiln_bake_state *s, const kiln_request *q, kiln_reply *out,
                               kiln_error *err)
{
    const kiln_report_wish wish = {.bytes = PAGE_BYTES, .threads = q->threads};
    out->policy = KILN_POLICY_REPORT;
    return kiln_report_make(s->m, NULL, &wish, &out->body, err);
}
