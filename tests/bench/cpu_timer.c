/* cpu_timer -- runs two sides in turns and takes medians. */
#include "tests/bench/cpu_bench.h"

#include "base/memory.h"

#include <stdlib.h>
#include <time.h>

enum { RUNS_MAX = 20, RUNS = 5, RUNS_SLOW = 3 };
static const double fast_s = 0.25; /* both sides together: RUNS_MAX */
/* both sides together; there the first run counts, too: caches and pages are nothing beside it */
static const double slow_s = 3.0;

static double seconds(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0) return 0; /* cannot fail: both clocks are Linux's own */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

cpu_time cpu_now(void)
{
    return (cpu_time){seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID)};
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double cpu_median(double *values, unsigned n)
{
    qsort(values, n, sizeof *values, compare_doubles);
    return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

static kiln_status time_one(cpu_work w, cpu_time *out, kiln_error *err)
{
    const cpu_time from = cpu_now();
    KILN_TRY(w.run(w.context, err));
    const cpu_time to = cpu_now();
    *out = (cpu_time){to.wall_s - from.wall_s, to.cpu_s - from.cpu_s};
    return KILN_OK;
}

static cpu_time median_time(const cpu_time *t, unsigned n)
{
    double wall[RUNS_MAX], cpu[RUNS_MAX];
    for (unsigned i = 0; i < n; i++) {
        wall[i] = t[i].wall_s;
        cpu[i] = t[i].cpu_s;
    }
    return (cpu_time){cpu_median(wall, n), cpu_median(cpu, n)};
}

kiln_status cpu_compare(cpu_bench *b, cpu_row *r, cpu_work ours, cpu_work theirs, kiln_error *err)
{
    cpu_time a[RUNS_MAX], o[RUNS_MAX] = {{0}};
    double wall[RUNS_MAX], cpu[RUNS_MAX];
    KILN_TRY(time_one(ours, &a[0], err));
    if (theirs.run) KILN_TRY(time_one(theirs, &o[0], err));
    const double both_s = a[0].wall_s + o[0].wall_s;
    const bool slow = both_s > slow_s;
    const unsigned runs = b->quick ? 1 : slow ? RUNS_SLOW : both_s < fast_s ? RUNS_MAX : RUNS;
    for (unsigned i = slow ? 1 : 0; i < runs; i++) {
        KILN_TRY(time_one(ours, &a[i], err));
        if (theirs.run) KILN_TRY(time_one(theirs, &o[i], err));
    }
    r->ours = median_time(a, runs);
    if (theirs.run) {
        for (unsigned i = 0; i < runs; i++) {
            wall[i] = o[i].wall_s / a[i].wall_s;
            cpu[i] = o[i].cpu_s / a[i].cpu_s;
        }
        r->theirs = median_time(o, runs);
        r->wall_ratio = cpu_median(wall, runs);
        r->cpu_ratio = cpu_median(cpu, runs);
    }
    cpu_keep_row(b, r);
    return KILN_OK;
}

kiln_status cpu_prepare_op(cpu_op *o, kiln_error *err)
{
    const kiln_exec x = {.device = -1, .threads = o->threads};
    o->work = NULL;
    KILN_TRY(kiln_op_call(kiln_ops_cpu(), o->op, &x, o->args, NULL, &o->work_bytes, err));
    return kiln_alloc(&o->work, o->work_bytes, 1, "a workspace", err);
}

kiln_status cpu_run_op(void *context, kiln_error *err)
{
    cpu_op *o = context;
    const kiln_exec x = {.device = -1, .threads = o->threads};
    return kiln_op_call(kiln_ops_cpu(), o->op, &x, o->args, o->work, &o->work_bytes, err);
}

unsigned cpu_next_threads(const cpu_bench *b, unsigned threads)
{
    return threads < b->threads ? b->threads : 0;
}
