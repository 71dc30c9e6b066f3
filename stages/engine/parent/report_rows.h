/* report_rows -- the list of a report that has many rows. For the parent's main thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_REPORT_ROWS_H
#define KILN_STAGES_ENGINE_PARENT_REPORT_ROWS_H

#include "base/file.h"
#include "stages/engine/engine.h"

/* The list of a report that has many rows. */
typedef struct {
    const char *name; /* its key; NULL: there is none */
    uint64_t n;       /* rows */
    /* of all of them, once there are more than KILN_ROWS_RECORDED; with --json alone */
    kiln_buffer text;
} kiln_report_rows;
/* Leaves a list that is too long out of a run's record. Returns 0, or -1 if there is no memory. */
int kiln_report_rows_leave_out(const kiln_report_rows *rows, json_t *record);
/* Prints the text of a report, indented by 2, with the rows that are not in it. */
void kiln_report_rows_print(const kiln_report_rows *rows, const char *report);

#endif
