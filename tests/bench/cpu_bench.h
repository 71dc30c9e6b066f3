/* cpu_bench -- what the parts of the bench on CPU cores share: timing, table, ceilings, inputs.
 *
 * Cores may be shared with others, so a time is two: by the clock, and what all threads of the
 * process took of the processor. Two sides are timed in turns, in one run, and a ratio is the
 * median of the turns' own. The limit of a row is processor time: the least that must be moved and
 * computed at the rates that this run has measured a thread to reach. */
#ifndef KILN_TESTS_BENCH_CPU_BENCH_H
#define KILN_TESTS_BENCH_CPU_BENCH_H

#include "kernels/arrays.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double wall_s, cpu_s;
} cpu_time;

/* Of one thread while `threads` of them do it, a second of processor time. */
typedef struct {
    unsigned threads;
    double fp32;       /* float32 instructions on lanes: what the FMA units take */
    double copy_bytes; /* read and written, arrays beyond the caches */
} cpu_ceiling;

/* The least that must be moved, and float32 instructions on lanes. 0: not counted. */
typedef struct {
    double bytes, fp32;
} cpu_cost;

typedef struct {
    char what[48];
    unsigned threads;
    uint64_t items;
    cpu_cost least;
    const char *peer; /* NULL: nobody does the same */
    cpu_time ours, theirs;
    double wall_ratio, cpu_ratio; /* how many times ours the peer takes */
} cpu_row;

typedef kiln_status cpu_work_fn(void *context, kiln_error *err);

typedef struct {
    cpu_work_fn *run; /* NULL: no such side */
    void *context;
} cpu_work;

enum { CPU_ROWS_MAX = 64, CPU_FINDINGS_MAX = 32, CPU_FIGURES_MAX = 32 };

/* A number that is no time. */
typedef struct {
    char what[80];
    double value;
    const char *unit;
} cpu_figure;

/* Something that must hold: of so many, so many were wrong. */
typedef struct {
    char what[48];
    const char *complaint;
    uint64_t checked, wrong;
} cpu_finding;

typedef struct {
    bool quick;           /* small inputs, to see that it works */
    unsigned threads;     /* all */
    const char *programs; /* folder of kiln-import; NULL: it is left out */
    cpu_ceiling one, all;
    cpu_row rows[CPU_ROWS_MAX];
    unsigned n_rows;
    cpu_finding findings[CPU_FINDINGS_MAX];
    unsigned n_findings;
    cpu_figure figures[CPU_FIGURES_MAX];
    unsigned n_figures;
} cpu_bench;

/* The parts. */
kiln_status cpu_bench_knn(cpu_bench *b, kiln_error *err) KILN_MUST_CHECK;
kiln_status cpu_bench_frame(cpu_bench *b, kiln_error *err) KILN_MUST_CHECK;
kiln_status cpu_bench_codec(cpu_bench *b, kiln_error *err) KILN_MUST_CHECK;
kiln_status cpu_bench_import(cpu_bench *b, kiln_error *err) KILN_MUST_CHECK;
/* Runs the program argv[0], which says nothing then, and prints what it took: seconds by the clock
 * and of the processor, KiB resident at most. Returns a status. */
int cpu_usage_main(char **argv);

/* Fills b->one and b->all. */
kiln_status cpu_measure_ceilings(cpu_bench *b, kiln_error *err) KILN_MUST_CHECK;

/* Times r->ours, and r->theirs in turns with it, after a run of each that counts only where a run
 * takes seconds; prints the row and keeps it. */
kiln_status cpu_compare(cpu_bench *b, cpu_row *r, cpu_work ours, cpu_work theirs,
                        kiln_error *err) KILN_MUST_CHECK;
cpu_time cpu_now(void);
double cpu_median(double *values, unsigned n); /* sorts them */
/* Processor seconds that the row cannot be below. */
double cpu_limit(const cpu_bench *b, const cpu_row *r);

void cpu_print_head(const cpu_bench *b, const char *commit);
void cpu_print_section(const char *title);
void cpu_keep_row(cpu_bench *b, const cpu_row *r);
void cpu_keep_finding(cpu_bench *b, const cpu_finding *f);
void cpu_keep_figure(cpu_bench *b, const cpu_figure *f);
kiln_status cpu_write_json(const cpu_bench *b, const char *path, const char *commit,
                           kiln_error *err) KILN_MUST_CHECK;

/* One operation on the CPU with its workspace allocated before the clock starts; context of
 * cpu_run_op. */
typedef struct {
    kiln_op_id op;
    const void *args;
    unsigned threads;
    void *work; /* free() it */
    size_t work_bytes;
} cpu_op;
kiln_status cpu_prepare_op(cpu_op *o, kiln_error *err) KILN_MUST_CHECK;
cpu_work_fn cpu_run_op;
/* One thread, then all: what follows `threads` in a loop over both; 0: nothing. */
unsigned cpu_next_threads(const cpu_bench *b, unsigned threads);

/* "1M", "250k". */
void cpu_size_name(uint64_t n, char out[24]);

#endif
