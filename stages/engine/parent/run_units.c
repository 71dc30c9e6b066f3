/* kiln_run_units: finds the units that are stored, has workers compute the others (pool.c), and
 * stores the results (arrivals.c). Results that have arrived are stored even if a failed unit, a
 * signal or a full disk ends the list. */
#include "stages/engine/parent/run_units.h"

#include "base/count.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "stages/engine/engine_options.h"
#include "stages/engine/interrupt.h"
#include "stages/engine/json_text.h"
#include "stages/engine/memory/ram_use.h"
#include "stages/engine/parent/arrivals.h"
#include "stages/engine/parent/job.h"
#include "stages/engine/parent/pool.h"
#include "stages/engine/parent/run_memory.h"
#include "stages/engine/parent/worker_end.h"
#include "stages/engine/parent/worker_rest.h"

#include <stdlib.h>

/* ---- what is due ----------------------------------------------------------------------------- */
static kiln_status find_each(kiln_job *j, uint64_t n, kiln_error *err)
{
    kiln_run *r = j->run;
    for (uint64_t i = 0; i < n; i++) {
        kiln_unit *u = &j->units[i];
        u->was_cached = u->quarantined = false;
        u->result = (kiln_unit_result){0};
        u->volatile_data = NULL;
        u->counters_again = NULL;
        if (!u->volatile_result) KILN_TRY(kiln_run_uses(r, u->key, err));
        const bool chosen = kiln_selection_has(&r->selection, u, i == 0);
        if (!u->volatile_result && r->manifest)
            KILN_TRY(kiln_unit_find(r->manifest, u->key, &u->was_cached, &u->result, err));
        if (chosen && (!u->was_cached || kiln_run_force(r)))
            j->due[j->n_due++] = i;
        else if (u->was_cached)
            r->lists.n_cached++;
        else
            r->selection.left++;
    }
    j->n_open = j->n_due;
    return KILN_OK;
}

/* One transaction for all: of a unit that is stored, two thirds of the time were that of its own.
 * Nothing is written in it. */
static kiln_status find_due(kiln_job *j, uint64_t n, kiln_error *err)
{
    kiln_run *r = j->run;
    KILN_TRY(KILN_ALLOC(&j->due, n, "the list of units", err));
    r->lists.n_units += n;
    if (!r->manifest || n < 2) return find_each(j, n, err);
    KILN_TRY(kiln_manifest_begin(r->manifest, err));
    const kiln_status st = find_each(j, n, err);
    kiln_manifest_rollback(r->manifest);
    return st;
}

/* ---- which workers compute ------------------------------------------------------------------- */
/* Returns the number of workers that suits the CPU. Several of them share the threads, because one
 * unit may not keep all threads busy. */
static unsigned cpu_workers(const kiln_run *r, unsigned n_threads)
{
    enum { THREADS_EACH = 4 };
    const unsigned n = (r->program->flags & KILN_PROGRAM_SERIAL) || r->devices.serial
                           ? n_threads
                           : n_threads / THREADS_EACH;
    return n < 1 ? 1 : n;
}

/* Opens n slots. Retired slots stay closed and keep their numbers; further slots take their
 * place. */
static void open_slots(kiln_job *j, unsigned n)
{
    for (j->slots.n = 0; n > 0 && j->slots.n < KILN_SLOTS_MAX; j->slots.n++) {
        if (!j->slots.one_device && j->slots.n == j->home->devices.n) break;
        j->slots.closed[j->slots.n] = j->home->workers[j->slots.n].retired;
        n -= !j->slots.closed[j->slots.n];
    }
}

/* Returns the threads of a list: all, but that one that is open beside others leaves them one, and
 * they leave it one for each of its workers. */
static unsigned threads_for(const kiln_job *j)
{
    const kiln_job *beside = j->run->lists.beside;
    const unsigned all = kiln_devices_threads(j->run->common->threads);
    const unsigned others = j->is_beside ? 1 : beside ? beside->plan.n_workers : 0;
    return all > others ? all - others : 1;
}

/* The list comes first: if it has no room beside workers that rest, they end. */
static kiln_status plan_memory(kiln_job *j, unsigned n_wanted, kiln_error *err)
{
    kiln_ram_use *ram = kiln_run_ram(j->run);
    kiln_ram_list l = {.units = j->units, .due = j->due, .n_due = j->n_due, .n_wanted = n_wanted};
    l.resting = kiln_rest_fit(j->home, n_wanted, kiln_ram_cap(ram));
    if (kiln_ram_plan_make(ram, &l, &j->plan, NULL) == KILN_OK) return KILN_OK;
    kiln_rest_stop();
    l.resting = 0;
    return kiln_ram_plan_make(ram, &l, &j->plan, err);
}

/* Plans the memory and opens the slots. With GPUs all of them are slots, so that a unit can be
 * tried on another one; the plan says how many work at a time. On the CPU there are as many slots
 * as the plan has room for. */
static kiln_status make_plan(kiln_job *j, kiln_error *err)
{
    kiln_run *r = j->run;
    const unsigned asked = r->options->workers;
    KILN_TRY(kiln_run_find_devices(r, err));
    const kiln_device_list *const d = &j->home->devices;
    j->n_threads = threads_for(j);
    j->slots.one_device = d->n == 1 && d->items[0].kind == KILN_DEVICE_CPU;
    unsigned most = j->slots.one_device ? cpu_workers(r, j->n_threads) : d->n;
    if (asked && (j->slots.one_device || asked < most)) most = asked;
    if (most > KILN_SLOTS_MAX) most = KILN_SLOTS_MAX;
    const unsigned wanted = j->n_due < most ? (unsigned)j->n_due : most;
    KILN_TRY(plan_memory(j, wanted, err));
    j->n_threads = j->n_threads < j->plan.n_threads ? j->n_threads : j->plan.n_threads;
    open_slots(j, j->slots.one_device ? j->plan.n_workers : most);
    if (kiln_slots_open(&j->slots) == 0)
        return kiln_fail(err, KILN_E_DEVICE, "no device is left to compute on");
    /* of an earlier list, which had room for more */
    for (unsigned i = j->plan.n_workers; i < j->home->n_workers; i++)
        if (!j->home->workers[i].n_flight) kiln_workers_stop(&j->home->workers[i], 1);
    return KILN_OK;
}

void kiln_run_passes_results(kiln_run *r, bool on) { kiln_bulk_pass(kiln_run_store(r), on); }

void kiln_run_takes(kiln_run *r, const kiln_unit_taker *t) { r->lists.taker = t; }

/* All units must be due: one that is left out would never be taken. */
static kiln_status check_taker(const kiln_job *j, uint64_t n, kiln_error *err)
{
    if (!j->run->lists.taker || j->n_due == n) return KILN_OK;
    return kiln_fail(err, KILN_E_BUG, "%llu of %llu units are due, but all are needed in order",
                     (unsigned long long)j->n_due, (unsigned long long)n);
}

static kiln_status make_schedule(kiln_job *j, kiln_error *err)
{
    kiln_schedule_item *items;
    KILN_TRY(KILN_ALLOC(&items, j->n_due, "the list of units", err));
    for (uint64_t i = 0; i < j->n_due; i++)
        items[i] = (kiln_schedule_item){.cost = kiln_job_unit(j, i)->cost,
                                        .group = kiln_job_unit(j, i)->group};
    const kiln_status st = kiln_schedule_new(items, j->n_due, &j->slots, &j->schedule, err);
    free(items);
    return st;
}

/* ---- the list -------------------------------------------------------------------------------- */
/* SQLite copies each blob into an array of its own. If a small part of the cap has room for it, its
 * pages are kept from blob to blob: under --ram 1G, faulting them in was a third of the storing
 * thread's time. */
static void keep_arrays_of_blobs(const kiln_job *j)
{
    enum { CAP_PART = 64, MOST = 32 << 20 };
    if (j->plan.batch) kiln_memory_keep(kiln_min_u64(MOST, j->plan.cap / CAP_PART));
}

static void drop_arrays_of_blobs(const kiln_job *j)
{
    if (!j->plan.batch) return;
    kiln_memory_tidy(j->plan.cap);
    kiln_memory_trim();
}

static kiln_status work_off(kiln_job *j, kiln_error *err)
{
    kiln_progress_start(&j->progress, j->what, "units", j->n_due);
    keep_arrays_of_blobs(j);
    const kiln_status st = kiln_job_converse(j, err);
    kiln_progress_stop(&j->progress);
    /* what arrived is kept; the first failure is told */
    const kiln_status stored = kiln_job_store(j, st == KILN_OK ? err : NULL);
    drop_arrays_of_blobs(j);
    if (st == KILN_OK) return stored;
    if (stored != KILN_OK)
        kiln_warn("finished results could not be stored (%s)", kiln_status_text(stored));
    kiln_workers_stop(j->home->workers, j->home->n_workers);
    return st;
}

static kiln_work_sums sum_work(const kiln_job *j)
{
    const kiln_run *r = j->run;
    kiln_work_sums s = {.now_ns = kiln_now_ns(),
                        .store_ns = r->lists.store_ns,
                        .stored_bytes = r->lists.stored_bytes};
    for (unsigned i = 0; i < j->home->n_workers; i++) s.busy_ns += j->home->workers[i].busy_ns;
    return s;
}

/* Records how the time of a list was spent: busy_s is the sum over all workers, store_s the time in
 * the parent's transactions. */
static kiln_status record_list(const kiln_job *j, kiln_error *err)
{
    kiln_run *r = j->run;
    const kiln_work_sums now = sum_work(j), *before = &j->before;
    json_t *one =
        json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:I}", "what", j->what, "units",
                  (json_int_t)j->n_due, "workers", (json_int_t)j->plan.n_workers, "wall_s",
                  kiln_json_real((double)(now.now_ns - before->now_ns) * 1e-9), "busy_s",
                  kiln_json_real((double)(now.busy_ns - before->busy_ns) * 1e-9), "store_s",
                  kiln_json_real((double)(now.store_ns - before->store_ns) * 1e-9), "stored_bytes",
                  (json_int_t)(now.stored_bytes - before->stored_bytes));
    if (!r->report.lists) r->report.lists = json_array();
    if (json_array_append_new(r->report.lists, one) == 0) return KILN_OK;
    return kiln_fail(err, KILN_E_NOMEM, "cannot record the outcome of a list of units");
}

/* ---- a list ---------------------------------------------------------------------------------- */
static void job_free(kiln_job *j)
{
    if (!j) return;
    kiln_job_drop_arrivals(j);
    kiln_schedule_free(j->schedule);
    free(j->failures);
    free(j->due);
    free(j);
}

static kiln_status job_new(kiln_run *r, const char *what, kiln_unit *units, kiln_job **out,
                           kiln_error *err)
{
    KILN_TRY(kiln_interrupt_check(err));
    if (!r->program->unit) return kiln_fail(err, KILN_E_BUG, "%s has no units", r->program->name);
    KILN_TRY(KILN_ALLOC(out, 1, "the list of units", err)); /* too big for the stack */
    (*out)->run = r;
    (*out)->home = r->devices.home;
    (*out)->what = what;
    (*out)->units = units;
    return KILN_OK;
}

static kiln_status prepare(kiln_job *j, kiln_error *err)
{
    j->before = sum_work(j);
    KILN_TRY(make_plan(j, err));
    return make_schedule(j, err);
}

static kiln_status run_list(kiln_job *j, uint64_t n, kiln_error *err)
{
    kiln_run *r = j->run;
    KILN_TRY(kiln_ram_need_list(kiln_run_ram(r), j->what, j->units, n, err));
    KILN_TRY(find_due(j, n, err));
    KILN_TRY(check_taker(j, n, err));
    KILN_TRY(r->hosts.hooks->begin_list(j, n, err));
    kiln_ram_results(&r->ram, j->units, n, j->n_due);
    kiln_run_look_at_ram(r);
    if (j->n_due && !r->hosts.cut) {
        KILN_TRY(prepare(j, err));
        KILN_TRY(work_off(j, err));
        KILN_TRY(record_list(j, err));
    }
    KILN_TRY(kiln_run_refused(r, err)); /* --force: what differs */
    KILN_TRY(r->hosts.hooks->end_list(j, err));
    if (r->hosts.cut) /* the stage cannot go on; its program ends well */
        return kiln_fail(err, KILN_E_PARTIAL, "the units are distributed");
    r->selection.cut = r->selection.left > 0;
    if (r->selection.cut) /* the stage cannot go on; its program says so and ends well */
        return kiln_fail(err, KILN_E_PARTIAL, "%llu of %s left",
                         (unsigned long long)r->selection.left,
                         KILN_COUNT(r->lists.n_units, "unit is|units are"));
    return KILN_OK;
}

/* ---- a list beside others -------------------------------------------------------------------- */
bool kiln_run_is_beside(const kiln_run_lists *l, const kiln_home *h)
{
    return l->beside && l->beside->home == h;
}

static bool all_volatile(const kiln_unit *units, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (!units[i].volatile_result) return false;
    return true;
}

/* Says whether a list can be worked off while another is open: they have no workers, and no
 * transactions, in common. */
static bool may_go_beside(kiln_run *r, const kiln_unit *units, uint64_t n)
{
    return !kiln_run_is_beside(&r->lists, r->devices.home) && all_volatile(units, n) &&
           kiln_ram_fits_beside(kiln_run_ram(r), units, n);
}

kiln_status kiln_run_units_beside(kiln_run *r, const char *what, kiln_unit *units, uint64_t n,
                                  kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_job *j = NULL;
    KILN_TRY(kiln_run_units_join(r, err));
    if (!all_volatile(units, n))
        return kiln_fail(err, KILN_E_BUG,
                         "%s: units whose results are stored cannot run beside other lists", what);
    if (r->lists.taker)
        return kiln_fail(
            err, KILN_E_BUG,
            "%s: units whose results are needed in order cannot run beside other lists", what);
    KILN_GO(job_new(r, what, units, &j, err));
    KILN_GO(kiln_ram_need_list(kiln_run_ram(r), what, units, n, err));
    KILN_GO(find_due(j, n, err));
    if (j->n_due == 0) goto done;
    kiln_ram_results(&r->ram, units, n, j->n_due);
    j->is_beside = true;
    KILN_GO(prepare(j, err));
    j->n_threads = j->plan.n_workers;
    /* they are held until the list ends, beside those of the next ones */
    r->ram.beside = j->plan.workers + r->ram.results;
    r->ram.results = 0;
    r->lists.beside = j;
    return KILN_OK;
done:
    job_free(j);
    return st;
}

kiln_status kiln_run_units_join(kiln_run *r, kiln_error *err)
{
    kiln_job *const j = r->lists.beside;
    if (!j) return KILN_OK;
    r->lists.beside = NULL;
    r->ram.beside = 0;
    kiln_status st = work_off(j, err);
    if (st == KILN_OK) st = record_list(j, err);
    job_free(j);
    return st;
}

void kiln_run_units_drop(kiln_run *r)
{
    kiln_job *const j = r->lists.beside;
    if (!j) return;
    r->lists.beside = NULL;
    r->ram.beside = 0;
    kiln_workers_stop(j->home->workers, j->home->n_workers);
    job_free(j);
}

kiln_status kiln_run_units(kiln_run *r, const char *what, kiln_unit *units, uint64_t n,
                           kiln_error *err)
{
    kiln_job *j = NULL;
    kiln_status st = KILN_OK;
    if (r->lists.beside && !may_go_beside(r, units, n)) st = kiln_run_units_join(r, err);
    if (st == KILN_OK) st = job_new(r, what, units, &j, err);
    if (st == KILN_OK) st = run_list(j, n, err);
    if (st != KILN_OK) kiln_run_units_drop(r);
    job_free(j);
    return st;
}
