/* time_line -- the part of a page that shows when stages, their lists of units and the tasks of
 * other hosts ran. */
#ifndef KILN_STAGES_REPORT_TIME_LINE_H
#define KILN_STAGES_REPORT_TIME_LINE_H

#include "stages/page/html.h"
#include "stages/survey/bake_facts.h"

/* Writes nothing of a bake whose runs took no time. */
void kiln_time_line_write(kiln_html *h, const kiln_bake_facts *b);

/* Units that a stage's run and its tasks computed; that were stored before. */
uint64_t kiln_stage_units_done(const kiln_stage_facts *s);
uint64_t kiln_stage_units_there(const kiln_stage_facts *s);
/* The record k of a stage: of its run for k = 0, of its tasks for 1 .. n_tasks. */
const json_t *kiln_stage_record(const kiln_stage_facts *s, uint32_t k);

#endif
