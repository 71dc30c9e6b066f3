/* run_clock -- see the header. Times are not below 0 (kiln_run_row_last), so differences do not
 * overflow. */
#include "stages/survey/run_clock.h"

#include "base/memory.h"

#include <stdlib.h>

kiln_status kiln_run_clock_begin(kiln_run_clock *c, uint32_t n, kiln_error *err)
{
    *c = (kiln_run_clock){.n = 0};
    return KILN_ALLOC(&c->spans, n, "times of runs", err);
}

void kiln_run_clock_add(kiln_run_clock *c, int64_t start_ns, int64_t stop_ns)
{
    if (stop_ns > start_ns)
        c->spans[c->n++] = (kiln_run_span){.from_ns = start_ns, .to_ns = stop_ns};
}

static int by_start(const void *a, const void *b)
{
    const kiln_run_span *x = a, *y = b;
    return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

static double seconds_of(const kiln_run_span *s) { return (double)(s->to_ns - s->from_ns) * 1e-9; }

void kiln_run_clock_end(kiln_run_clock *c)
{
    uint32_t n = 0;
    if (c->n == 0) return;
    qsort(c->spans, c->n, sizeof *c->spans, by_start);
    for (uint32_t i = 0; i < c->n; i++) {
        kiln_run_span *last = n ? &c->spans[n - 1] : NULL;
        if (!last || c->spans[i].from_ns > last->to_ns)
            c->spans[n++] = c->spans[i];
        else if (c->spans[i].to_ns > last->to_ns)
            last->to_ns = c->spans[i].to_ns;
    }
    c->n = n;
    for (uint32_t i = 1; i < n; i++)
        c->spans[i].at = c->spans[i - 1].at + seconds_of(&c->spans[i - 1]);
}

void kiln_run_clock_release(kiln_run_clock *c)
{
    free(c->spans);
    *c = (kiln_run_clock){.n = 0};
}

double kiln_run_clock_at(const kiln_run_clock *c, int64_t ns)
{
    /* the last span that begins at ns or before it is below `high` */
    uint32_t low = 0, high = c->n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (c->spans[middle].from_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return 0;
    const kiln_run_span *s = &c->spans[low - 1];
    return s->at + (double)((ns < s->to_ns ? ns : s->to_ns) - s->from_ns) * 1e-9;
}

double kiln_run_clock_seconds(const kiln_run_clock *c)
{
    return c->n ? c->spans[c->n - 1].at + seconds_of(&c->spans[c->n - 1]) : 0;
}
