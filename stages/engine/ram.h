/* ram -- --ram: what parent and workers may take of the host's memory together, shared out before the work, measured during it.
 *
 * What counts is anonymous memory of all processes, and shared memory (the memfds that carry payloads and results) once. The
 * CUDA runtime's own share in a worker is read right after its context is there and reported beside. */
#ifndef KILN_STAGES_ENGINE_RAM_H
#define KILN_STAGES_ENGINE_RAM_H

#include "stages/engine/engine.h"

/* Bytes that may be taken now (ram_free.c); root: "", or the folder of a pretended /proc and /sys. UINT64_MAX: nobody knows. */
uint64_t kiln_ram_free(const char *root);
/* The same; *by: what leaves so little, for people, and what to do about it. */
typedef struct {
    const char *what, *advice;
} kiln_ram_bound;
uint64_t kiln_ram_free_by(const char *root, kiln_ram_bound *by);

/* --ram in bytes, found out once a run. */
uint64_t kiln_ram_cap(kiln_run *r);

/* How a list of units is to be worked on. */
typedef struct {
    uint64_t cap;          /* --ram in bytes */
    uint64_t unit;         /* host memory of one worker for its units: the `ram` of UNIT messages */
    uint64_t batch;        /* results that may wait for a common transaction; one that would exceed it: store first. 0: each is
                              stored before its worker is handed another unit */
    uint64_t predicted;    /* what all take together at most, what workers keep for later included */
    unsigned n_workers;    /* at least 1, at most what was wanted */
    unsigned n_threads;    /* of all of them together: --threads, or fewer where memory is short */
    unsigned threads_each; /* that one may have which works while others idle */
    unsigned in_flight;    /* units that a worker has at a time, but for those whose tails run: 1, or 2 where memory has room for
                              a result that waits */
} kiln_ram_plan;

/* Shares the cap out among at most n_wanted workers so that the largest of the due units (indices into units) fits. KILN_E_CAP
 * when not even one worker has room: names the unit and the least --ram that would do. */
kiln_status kiln_ram_plan_make(kiln_run *r, const kiln_unit *units, const uint64_t *due, uint64_t n_due, unsigned n_wanted,
                               kiln_ram_plan *out, kiln_error *err) KILN_MUST_CHECK;

/* The parent keeps the result of every unit, and makes rows of them at the end. What a list of n, of which n_due have no result
 * yet, still adds: counted by plans from now on. */
void kiln_ram_results(kiln_run *r, uint64_t n, uint64_t n_due);
/* Before the list is looked up, and where nothing is due the only check: KILN_E_CAP with the least --ram that does when the parent
 * alone has no room for it. */
kiln_status kiln_ram_need_list(kiln_run *r, const char *what, const kiln_unit *units, uint64_t n, kiln_error *err) KILN_MUST_CHECK;

/* What was measured; part of a run. */
typedef struct {
    uint64_t cap;  /* 0: not resolved yet */
    uint64_t free; /* then: what could be taken when it was, by what it is bound; 0: not looked at */
    kiln_ram_bound bound;
    uint64_t predicted; /* largest of the plans */
    uint64_t peak;      /* largest sum seen */
    uint64_t cuda;      /* largest share of the CUDA runtime in a worker, not in peak */
    uint64_t held;      /* bytes of memfds that the parent has mapped and closed: whoever maps and unmaps one counts it here */
    uint64_t foreseen;  /* kiln_run_foresee_ram */
    uint64_t results;   /* what the units of the list add to the parent until the run ends */
    uint64_t last_ns;   /* of the last look */
} kiln_ram_use;

/* Looks at all processes, unless that was less than 50 ms ago and `now` is false. Call it where results have just arrived and
 * whenever the parent waits. */
void kiln_ram_look(kiln_run *r, bool now);
/* Anonymous and shared memory that this process has mapped, in bytes; 0 where /proc is not there. */
uint64_t kiln_ram_mapped(void);
/* Adds ram_cap_bytes, ram_predicted_bytes, ram_peak_bytes and, with GPU workers, ram_cuda_bytes; 0, or -1 without memory. */
int kiln_ram_report(const kiln_run *r, json_t *summary);
/* Warns when the cap was exceeded: a bug of ours. */
void kiln_ram_judge(const kiln_run *r);

#endif
