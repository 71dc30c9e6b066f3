/* run_clock -- the time in which at least one of several runs ran: what a time line shows, without
 * the pauses in which tasks waited for their turn.
 *
 * Runs of several hosts overlap, and their clocks differ: the union of all is taken. Times of a
 * stranger may be any: a run that ends before it begins has no length. */
#ifndef KILN_STAGES_REPORT_RUN_CLOCK_H
#define KILN_STAGES_REPORT_RUN_CLOCK_H

#include "base/status.h"

#include <stdint.h>

typedef struct {
    int64_t from_ns, to_ns;
    double at; /* seconds of the clock at from_ns */
} kiln_run_span;

typedef struct {
    kiln_run_span *spans; /* [n] ascending, apart from each other once the clock is made */
    uint32_t n;
} kiln_run_clock;

/* Makes room for n runs; then each is added, and the end makes the clock. Release it also after a
 * failure. KILN_E_NOMEM. */
kiln_status kiln_run_clock_begin(kiln_run_clock *c, uint32_t n, kiln_error *err) KILN_MUST_CHECK;
void kiln_run_clock_add(kiln_run_clock *c, int64_t start_ns, int64_t stop_ns);
void kiln_run_clock_end(kiln_run_clock *c);
void kiln_run_clock_release(kiln_run_clock *c);
/* What the clock shows at a time of day: the seconds before it in which a run ran. */
double kiln_run_clock_at(const kiln_run_clock *c, int64_t ns);
/* All of them. */
double kiln_run_clock_seconds(const kiln_run_clock *c);

#endif
