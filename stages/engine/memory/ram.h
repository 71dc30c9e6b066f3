/* ram -- --ram: the host memory that parent and workers may take together. It is shared out before
 * the work and measured during it.
 *
 * What counts: the anonymous memory of all processes of the run, and shared memory (the memfds that
 * carry payloads and results), each memfd once. What the CUDA runtime takes in a worker does not
 * count; it is measured right after the context is made and is reported by itself. All sizes are
 * bytes. Everything here runs in the parent's main thread. */
#ifndef KILN_STAGES_ENGINE_MEMORY_RAM_H
#define KILN_STAGES_ENGINE_MEMORY_RAM_H

#include "stages/engine/engine.h"
#include "stages/engine/memory/ram_free.h"

/* What a run knows and has measured of its memory; a part of kiln_run. */
typedef struct {
    uint64_t cap;         /* 0: not resolved yet */
    uint64_t free;        /* what was free when the cap was resolved; 0: not resolved yet */
    kiln_ram_bound bound; /* what limited it then */
    uint64_t predicted;   /* the largest of the plans */
    uint64_t peak;        /* the largest sum that was measured */
    uint64_t cuda;        /* the largest share of the CUDA runtime in a worker; not in peak */
    /* memory of memfds that the parent has mapped and whose descriptor it has closed: no descriptor
     * shows them, so code that maps or unmaps one changes this number */
    uint64_t held;
    uint64_t shared;    /* kiln_run_share_memory */
    uint64_t foreseen;  /* kiln_run_foresee_ram */
    uint64_t parent;    /* what the parent may come to, by the first plan; 0: there was none */
    uint64_t announced; /* kiln_run_foresee_parent, before that plan */
    uint64_t before;    /* the most that the parent had before it, while it read its input */
    uint64_t results;   /* kiln_ram_results */
    uint64_t ahead;     /* of workers that open a GPU for a later list (kiln_run_open_ahead) */
    /* of the list that is open beside others (kiln_run_units_beside), without the parent */
    uint64_t beside;
    uint64_t gatherer; /* the parent before the first part was gathered; 0: none was */
    /* what the cache of the parent's connection may still take; its owner sets it before each
     * call */
    uint64_t cache_left;
    uint64_t last_ns; /* time of the last measurement */
    uint64_t look_ns; /* how long it took: with hundreds of workers, some milliseconds */
} kiln_ram_use;
/* Returns the cap: --ram in bytes, at most 95 % of what is free. The first call of a run resolves
 * it; later calls return the same.
 */
uint64_t kiln_ram_cap(kiln_ram_use *u);
/* Says that --ram is a default, which nobody gave. In every later run of this process it grows to
 * what the lists need, up to half of what is free, and the run says so. */
void kiln_ram_default_grows(void);
/* Announces a unit of a later run of this process: a refusal of any run names room for it, too. 0
 * forgets it. */
void kiln_ram_foresee_runs(uint64_t unit_ram);
/* Returns the most that one unit may take if its worker is the only one (kiln_run_unit_ram). */
uint64_t kiln_ram_unit_most(kiln_ram_use *u);
/* Returns what so many threads of a worker take. */
uint64_t kiln_ram_of_threads(unsigned threads);

/* units that a worker has at a time if memory has room: one in work and one that waits */
enum { KILN_IN_FLIGHT = 2 };

/* How a list of units is worked on. */
typedef struct {
    uint64_t cap;  /* as kiln_ram_cap */
    uint64_t unit; /* what each worker may take for its units: `ram` of UNIT messages */
    /* results that may wait for a common transaction. 0: each result is stored before its worker
     * gets another unit */
    uint64_t batch;
    /* there is room for the connection that writes large batches once (kiln_bulk_store) */
    bool direct;
    /* upper bound of what all processes take together, including what workers keep between units */
    uint64_t predicted;
    uint64_t workers;      /* of it, all but the parent's */
    unsigned n_workers;    /* 1 to the number that was wanted */
    unsigned n_threads;    /* of all workers together: --threads, or fewer if memory is short */
    unsigned threads_each; /* the most for one worker while others are idle */
    /* units that a worker has at a time, without those whose deferred work runs: 2, or 1 if memory
     * has no room for a result of each that waits */
    unsigned in_flight;
} kiln_ram_plan;

/* A list of units that is to be planned. Borrowed for the call. */
typedef struct {
    const kiln_unit *units;
    const uint64_t *due; /* [n_due] indices into units, at least one */
    uint64_t n_due;
    unsigned n_wanted; /* workers */
    uint64_t resting;  /* of workers that the list does not take and that stay beside it */
} kiln_ram_list;
/* Shares the cap out among at most n_wanted workers so that the largest of the due units fits.
 * KILN_E_CAP: not even one worker with one thread has room; names the unit and the least --ram that
 * works. */
kiln_status kiln_ram_plan_make(kiln_ram_use *u, const kiln_ram_list *list, kiln_ram_plan *out,
                               kiln_error *err) KILN_MUST_CHECK;

/* The parent keeps the result of every unit until the run ends, when it makes rows of them. Sets
 * what a list adds to that, which later plans count: n units, of which n_due have no result yet. */
void kiln_ram_results(kiln_ram_use *u, const kiln_unit *units, uint64_t n, uint64_t n_due);
/* Checks that the parent alone has room for a list. It is called before stored results are loaded;
 * if nothing is due, no plan is made and this is the only check. KILN_E_CAP names the least --ram
 * that works. */
kiln_status kiln_ram_need_list(kiln_ram_use *u, const char *what, const kiln_unit *units,
                               uint64_t n, kiln_error *err) KILN_MUST_CHECK;
/* Says whether one of these units has room at a time beside the parent and the list that is open
 * (kiln_run_units_beside). */
bool kiln_ram_fits_beside(kiln_ram_use *u, const kiln_unit *units, uint64_t n);

/* Checks that there is room for a gather that takes `bytes` of the parent's memory and stores in
 * bulk. `what` names the part. KILN_E_CAP names the least --ram that works. */
kiln_status kiln_ram_need_gather(kiln_ram_use *u, uint64_t bytes, const char *what,
                                 kiln_error *err) KILN_MUST_CHECK;

/* What stages call as kiln_run_foresee_parent, kiln_run_parent_fits and kiln_run_need_parent. */
void kiln_ram_foresee_parent(kiln_ram_use *u, uint64_t bytes);
bool kiln_ram_parent_fits(kiln_ram_use *u);
kiln_status kiln_ram_need_parent(kiln_ram_use *u, const char *what,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Announces a later list, or a later unit, which must have room (kiln_run_foresee_ram,
 * kiln_run_need_ram). */
void kiln_ram_foresee(kiln_ram_use *u, uint64_t unit_ram, uint64_t n_units);
kiln_status kiln_ram_need_unit(kiln_ram_use *u, uint64_t unit_ram, const char *what,
                               kiln_error *err) KILN_MUST_CHECK;

#endif
