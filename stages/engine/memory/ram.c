/* The plan: how the cap is shared out among parent and workers.
 *
 * Problem. All processes together must stay below --ram, whatever the units need, and a refusal
 * must name the least cap that works.
 *
 * Parts. The parent takes its process, the page cache of its connection and what it holds of the
 * list. Each worker without a unit takes its process, its threads and its connection. The rest is
 * divided into equal shares for units. A share covers what the worker keeps between units, and the
 * unit's outputs until the parent has stored them.
 *
 * Threads take memory: a compressor, a stack, and what a unit needs for each. All threads of a run
 * together take at most a quarter of the cap. If a unit has no room beside them, the number of
 * threads is lowered, down to one, before the cap is refused. The least --ram that a refusal names
 * is for one worker with one thread, and covers later units that the stage has announced
 * (kiln_run_foresee_ram).
 *
 * Results. If there is room, a worker computes its next unit while the result of the last one waits
 * for its transaction: two units in flight, and a batch of results. Outputs count as half of a
 * unit, because the unit's own arrays exist beside them. With less room a worker has one unit in
 * flight, and its result still waits in a batch. If memory is short, a result is stored before its
 * worker gets another unit, so it needs no room beside the share. That makes all workers wait for
 * each transaction, so a few workers are given up for a batch.
 *
 * Defaults. A program may have a small default of --ram (kiln_ram_default_grows). It refuses
 * nothing that the machine can do: where a refusal would name a larger cap, the cap grows. */
#include "stages/engine/memory/ram.h"

#include "base/checked.h"
#include "base/count.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "stages/engine/devices/devices.h"
#include "stages/engine/memory/ram_use.h"

#include <stdio.h>

enum {
    MIB = 1 << 20,
    PARENT_BYTES = 24 * MIB, /* measured: 18, of which 8 are the page cache */
    /* the parent's growth from kiln_run_unit_ram to the plan of the list */
    PLAN_GROWS = 4 * MIB,
    /* the parent's growth after the first plan, beside its page cache and what is announced */
    PARENT_GROWS = 8 * MIB,
    LATER_GROWS = 4 * MIB,      /* and after a later one */
    WORKER_BYTES = 12 * MIB,    /* measured: 7, of which 4 are the page cache */
    THREAD_BYTES = 3 * MIB / 2, /* compressor and stack */
    CHUNK_OUTPUTS = 12,
    /* of a unit's result, until the run ends: counters, and for each output more; measured: 1,680
     * of */
    RESULT_BYTES = 320,
    OUTPUT_BYTES = 144,  /* a chunk's twelve outputs */
    COMMIT_BYTES = 2560, /* of the rows of layers that the commit makes of it */
    /* of a unit in a list: among those due, in the schedule while it is sorted, its key */
    LISTED_BYTES = 192,
    BATCH_MOST = 256 * MIB,
    BATCH_SHARE = 16,         /* of the cap */
    BATCH_AMPLE = 1024 * MIB, /* where the cap is so large that a small share of it is more */
    BATCH_AMPLE_SHARE = 32,
    THREADS_SHARE = 4, /* of the cap, less the parent: all threads together */
};
static const double FREE_SHARE = 0.95; /* of what is free; the cap is never larger */

uint64_t kiln_ram_cap(kiln_ram_use *u)
{
    if (u->cap) return u->cap;
    const uint64_t free_bytes = kiln_ram_free_by("", &u->bound);
    u->free = kiln_max_u64(free_bytes, 1);
    uint64_t cap = kiln_size_resolve(kiln_common_values.ram, free_bytes);
    if (free_bytes != UINT64_MAX && (double)cap > FREE_SHARE * (double)free_bytes) {
        char wanted[32], got[32];
        const uint64_t wanted_bytes = cap;
        cap = (uint64_t)(FREE_SHARE * (double)free_bytes);
        kiln_chat("--ram is %s instead of %s, because no more is free", kiln_size_text(cap, got),
                  kiln_size_text(wanted_bytes, wanted));
    }
    kiln_memory_tidy(cap);
    return u->cap = kiln_max_u64(cap, 1);
}

static bool default_grows; /* kiln_ram_default_grows */
void kiln_ram_default_grows(void) { default_grows = true; }

static uint64_t later_runs; /* kiln_ram_foresee_runs */
void kiln_ram_foresee_runs(uint64_t unit_ram) { later_runs = unit_ram; }
static uint64_t foreseen_by(const kiln_ram_use *u) { return kiln_max_u64(u->foreseen, later_runs); }

/* What a refusal names, in MiB: the parent may be a little larger the next time. */
static uint64_t least_mib(const kiln_ram_use *u, uint64_t all)
{
    return kiln_max_u64(all, u->before) / MIB + 2;
}

/* Makes a default as large as a refusal would name, and a quarter more for threads, within half of
 * what is free. */
static void grow_cap(kiln_ram_use *u, uint64_t all)
{
    char was[32], is[32], needed[32];
    const uint64_t cap = kiln_ram_cap(u), least = least_mib(u, all) * MIB,
                   wanted = kiln_min_u64(least / 4 * 5, u->free / 2);
    if (!default_grows || kiln_max_u64(all, u->before) <= cap || wanted < least) return;
    kiln_say("--ram is %s instead of %s, its default, because %s are needed",
             kiln_size_text(wanted, is), kiln_size_text(cap, was), kiln_size_text(least, needed));
    u->cap = wanted;
    kiln_memory_tidy(wanted);
}

static unsigned all_threads(void) { return kiln_devices_threads(kiln_common_values.threads); }

uint64_t kiln_ram_of_threads(unsigned threads) { return (uint64_t)THREAD_BYTES * threads; }

static uint64_t worker_bytes(unsigned threads)
{
    return WORKER_BYTES + kiln_ram_of_threads(threads);
}

uint64_t kiln_deferred_ram(unsigned most)
{
    return THREAD_BYTES * kiln_div_up(all_threads(), most);
}

/* The first plan decides what the parent may come to; later ones follow it as long as that is
 * enough, because a cap that the first one named must do for them too. */
static uint64_t parent_bytes(kiln_ram_use *u)
{
    if (!u->parent) {
        /* what reading the input has left free, which is more or less by chance */
        kiln_memory_trim();
        u->before = kiln_ram_mapped_most();
    }
    const uint64_t now = kiln_ram_mapped() + u->cache_left;
    if (!u->parent) u->parent = kiln_max_u64(PARENT_BYTES, now + PARENT_GROWS) + u->announced;
    return kiln_max_u64(u->parent, now + LATER_GROWS) + u->results + u->shared + u->ahead +
           u->beside;
}

void kiln_ram_foresee_parent(kiln_ram_use *u, uint64_t bytes)
{
    if (u->parent)
        u->parent += bytes;
    else
        u->announced += bytes;
}

static uint64_t result_bytes(uint32_t n_outputs)
{
    return RESULT_BYTES + OUTPUT_BYTES * (n_outputs ? n_outputs : CHUNK_OUTPUTS);
}
static uint64_t listed_bytes(uint32_t n_outputs) { return n_outputs ? LISTED_BYTES : COMMIT_BYTES; }

void kiln_ram_results(kiln_ram_use *u, const kiln_unit *units, uint64_t n, uint64_t n_due)
{
    uint64_t result = 0, listed = 0; /* of the unit that takes most */
    for (uint64_t i = 0; i < n; i++) {
        result = kiln_max_u64(result, result_bytes(units[i].n_outputs));
        listed = kiln_max_u64(listed, listed_bytes(units[i].n_outputs));
    }
    u->results = listed * n + result * n_due;
}

/* Returns the largest number of threads that a run may have under this cap. */
static unsigned threads_most(uint64_t cap, uint64_t parent)
{
    const uint64_t capacity = cap > parent ? (cap - parent) / THREADS_SHARE / THREAD_BYTES : 0;
    const unsigned all = all_threads();
    return capacity >= all ? all : capacity > 1 ? (unsigned)capacity : 1;
}

/* Returns the share of each of n workers with so many threads; 0 if there is no room. */
static uint64_t share_of(uint64_t cap, uint64_t parent, unsigned n, unsigned threads)
{
    if (cap <= parent) return 0;
    const uint64_t each = (cap - parent) / n;
    return each > worker_bytes(threads) ? each - worker_bytes(threads) : 0;
}

/* Leaves room for the parent's growth until the list is planned, so that a unit of exactly this
 * size fits. */
uint64_t kiln_ram_unit_most(kiln_ram_use *u)
{
    const uint64_t cap = kiln_ram_cap(u), parent = parent_bytes(u) + PLAN_GROWS;
    return share_of(cap, parent, 1, threads_most(cap, parent));
}

uint64_t kiln_list_ram(uint64_t n) { return (listed_bytes(0) + result_bytes(0)) * n; }

uint64_t kiln_small_list_ram(uint64_t n, uint32_t n_outputs, size_t payload_bytes)
{
    return (sizeof(kiln_unit) + payload_bytes + listed_bytes(n_outputs) + result_bytes(n_outputs)) *
           n;
}

void kiln_ram_foresee(kiln_ram_use *u, uint64_t unit_ram, uint64_t n_units)
{
    u->foreseen = kiln_max_u64(u->foreseen, unit_ram + kiln_list_ram(n_units));
}

/* Counts the blob as it is stored and a shuffled copy. */
uint64_t kiln_read_ram(uint64_t raw_bytes)
{
    return 2 * kiln_min_u64(raw_bytes, KILN_BLOB_MAX) + MIB / 4;
}

uint64_t kiln_shared_payload_ram(uint64_t bytes) { return KILN_IN_FLIGHT * bytes; }

/* Returns what a unit takes in a worker with so many threads. */
static uint64_t unit_bytes(const kiln_unit *u, unsigned threads)
{
    const uint64_t ram = (u->ram ? u->ram : KILN_UNIT_RAM) + u->ram_thread * (threads - 1);
    return kiln_max_u64(ram, u->payload_bytes + u->shared_payload_bytes);
}

/* Writes the end of a refusal: the least --ram that works; or, if less than that is free, what
 * limits it and what can be done. */
enum { ADVICE = 256 };
static const char *advise(const kiln_ram_use *u, uint64_t all, char out[ADVICE])
{
    char leaves[32], needed[32];
    const uint64_t mib = least_mib(u, all);
    if (u->free == 0 || u->free == UINT64_MAX ||
        (double)(mib * MIB) <= FREE_SHARE * (double)u->free)
        (void)snprintf(out, ADVICE, "the least that works is --ram %lluM", (unsigned long long)mib);
    else
        (void)snprintf(out, ADVICE, "no --ram helps, because %s leaves %s and %s are needed: %s",
                       u->bound.what, kiln_size_text(u->free, leaves),
                       kiln_size_text((uint64_t)((double)(mib * MIB) / FREE_SHARE) + MIB, needed),
                       u->bound.advice);
    return out;
}

/* Workers are not counted, because they may not be needed at all. */
kiln_status kiln_ram_need_list(kiln_ram_use *u, const char *what, const kiln_unit *units,
                               uint64_t n, kiln_error *err)
{
    char needs[32], allowed[32], advice[ADVICE];
    kiln_ram_results(u, units, n, n);
    const uint64_t parent = parent_bytes(u);
    /* of all units, because any may be due: the cap that is named has room for it */
    uint64_t largest = 0;
    for (uint64_t i = 0; i < n; i++)
        largest = kiln_max_u64(largest, kiln_max_u64(unit_bytes(&units[i], 1), units[i].ram_after));
    largest = kiln_max_u64(largest, foreseen_by(u));
    grow_cap(u, parent + worker_bytes(1) + largest);
    const uint64_t cap = kiln_ram_cap(u);
    if (kiln_max_u64(parent, u->before) <= cap) {
        u->predicted = kiln_max_u64(u->predicted, kiln_max_u64(parent, u->before));
        return KILN_OK;
    }
    if (parent <= cap)
        return kiln_fail(err, KILN_E_CAP,
                         "reading the input took %s of host memory, but --ram allows %s; %s",
                         kiln_size_text(u->before, needs), kiln_size_text(cap, allowed),
                         advise(u, parent + worker_bytes(1) + largest, advice));
    return kiln_fail(err, KILN_E_CAP,
                     "%s: the parent process alone needs %s of host memory to list %llu unit%s, "
                     "but --ram allows %s; %s",
                     what, kiln_size_text(parent, needs), (unsigned long long)n, n == 1 ? "" : "s",
                     kiln_size_text(cap, allowed),
                     advise(u, parent + worker_bytes(1) + largest, advice));
}

bool kiln_ram_fits_beside(kiln_ram_use *u, const kiln_unit *units, uint64_t n)
{
    uint64_t largest = 0;
    for (uint64_t i = 0; i < n; i++) largest = kiln_max_u64(largest, unit_bytes(&units[i], 1));
    return share_of(kiln_ram_cap(u), parent_bytes(u) + kiln_list_ram(n), 1, 1) >= largest;
}

bool kiln_ram_parent_fits(kiln_ram_use *u) { return parent_bytes(u) <= kiln_ram_cap(u); }

kiln_status kiln_ram_need_parent(kiln_ram_use *u, const char *what, kiln_error *err)
{
    char needs[32], allowed[32], advice[ADVICE];
    const uint64_t parent = parent_bytes(u), all = parent + worker_bytes(1) + foreseen_by(u);
    grow_cap(u, all);
    const uint64_t cap = kiln_ram_cap(u);
    if (parent <= cap) return KILN_OK;
    return kiln_fail(
        err, KILN_E_CAP,
        "the parent process alone needs %s of host memory for %s, but --ram allows %s; %s",
        kiln_size_text(parent, needs), what, kiln_size_text(cap, allowed), advise(u, all, advice));
}

kiln_status kiln_ram_need_gather(kiln_ram_use *u, uint64_t bytes, const char *what, kiln_error *err)
{
    char needs[32], allowed[32], advice[ADVICE];
    /* what a part leaves in the heap is the next one's */
    if (!u->gatherer) u->gatherer = parent_bytes(u);
    const uint64_t parent = u->gatherer, all = parent + bytes + KILN_BULK_RAM;
    grow_cap(u, all);
    const uint64_t cap = kiln_ram_cap(u);
    if (all <= cap) {
        u->predicted = kiln_max_u64(u->predicted, all);
        return KILN_OK;
    }
    return kiln_fail(
        err, KILN_E_CAP, "gathering '%s' needs %s of host memory, but --ram allows %s; %s", what,
        kiln_size_text(all, needs), kiln_size_text(cap, allowed),
        advise(u, kiln_max_u64(all, parent + worker_bytes(1) + foreseen_by(u)), advice));
}

/* What a list comes to, for its plan. */
typedef struct {
    const kiln_ram_list *of;
    uint64_t cap, parent;
    uint64_t cache; /* the largest ram_cache */
    bool is_stored; /* there are results that go into the manifest */
} list;

/* Returns the largest unit of the list. */
static const kiln_unit *largest_of(const list *l, unsigned threads)
{
    const kiln_unit *big = &l->of->units[l->of->due[0]];
    for (uint64_t i = 1; i < l->of->n_due; i++)
        if (unit_bytes(&l->of->units[l->of->due[i]], threads) > unit_bytes(big, threads))
            big = &l->of->units[l->of->due[i]];
    return big;
}

/* Fills the plan for n workers with so many threads each. A worker takes what its units need, and
 * fills caches as far as its share goes. */
static void take_plan(kiln_ram_plan *p, const list *l, unsigned n, unsigned threads, uint64_t need)
{
    const uint64_t taken = kiln_min_u64(p->unit, need + l->cache);
    p->n_workers = n;
    p->n_threads = n * threads;
    p->predicted = l->parent + p->batch +
                   n * (worker_bytes(threads) + taken + (p->in_flight - 1) * (need / 2));
    p->direct = p->batch > 0 && p->predicted + KILN_BULK_RAM <= p->cap;
    if (p->direct) p->predicted += KILN_BULK_RAM;
    p->workers = p->predicted - l->parent;
    p->threads_each = (unsigned)kiln_min_u64(
        all_threads(), threads + (p->cap - kiln_min_u64(p->cap, p->predicted)) / THREAD_BYTES);
}

/* Returns the room for results that a batch has at least. */
static uint64_t least_batch(uint64_t cap, uint64_t need)
{
    return kiln_max_u64(kiln_min_u64(BATCH_MOST, cap / BATCH_SHARE), need / 2);
}

/* Returns more room than `batch` where that takes nothing that units and caches would: workers need
 * not wait then while a transaction waits for the disk. */
static uint64_t ample_batch(const kiln_ram_plan *p, const list *l, unsigned n, unsigned threads,
                            uint64_t batch, uint64_t need)
{
    const uint64_t ample = kiln_min_u64(BATCH_AMPLE, p->cap / BATCH_AMPLE_SHARE), result = need / 2;
    if (ample <= batch) return batch;
    return share_of(p->cap, l->parent + KILN_BULK_RAM + ample, n, threads) >=
                   need + l->cache + result
               ? ample
               : batch;
}

/* Plans so that results may wait while workers go on. */
static bool plan_ample(kiln_ram_plan *p, const list *l, unsigned n, unsigned threads, uint64_t need)
{
    const uint64_t result = need / 2, least = least_batch(p->cap, need);
    if (share_of(p->cap, l->parent + least, n, threads) < need + result) return false;
    const uint64_t batch = ample_batch(p, l, n, threads, least, need),
                   share = share_of(p->cap, l->parent + batch, n, threads);
    p->unit = share - result;
    p->batch = batch;
    p->in_flight = KILN_IN_FLIGHT;
    take_plan(p, l, n, threads, need);
    return true;
}

/* Says whether workers that do not wait for transactions gain anything. */
static bool is_batch_wanted(const list *l, unsigned n) { return l->is_stored && l->of->n_due > n; }

/* Plans so that results wait in a batch, which is written directly, while their workers go on with
 * one unit at a time. */
static bool plan_batch(kiln_ram_plan *p, const list *l, unsigned n, unsigned threads, uint64_t need)
{
    const uint64_t least = least_batch(p->cap, need),
                   taken = l->parent + KILN_BULK_RAM + n * (worker_bytes(threads) + need);
    if (!is_batch_wanted(l, n) || taken + least > p->cap) return false;
    p->batch = l->cache ? least : kiln_max_u64(kiln_min_u64(BATCH_MOST, p->cap - taken), least);
    p->unit = share_of(p->cap, l->parent + KILN_BULK_RAM + p->batch, n, threads);
    p->in_flight = 1;
    take_plan(p, l, n, threads, need);
    return true;
}

/* Plans so that each result is stored before its worker goes on. */
static bool plan_tight(kiln_ram_plan *p, const list *l, unsigned n, unsigned threads, uint64_t need)
{
    const uint64_t share = share_of(p->cap, l->parent, n, threads);
    if (share < need) return false;
    p->unit = share;
    p->batch = 0;
    p->in_flight = 1;
    take_plan(p, l, n, threads, need);
    return true;
}

/* Says whether a plan with a batch is worth the workers and threads that it has less than `tight`,
 * the plan without one. A single worker waits for no transactions but its own. */
static bool is_worth_it(const kiln_ram_plan *p, const kiln_ram_plan *tight)
{
    if (tight->n_workers == 1) return p->n_threads >= tight->n_threads;
    return 4 * p->n_workers >= 3 * tight->n_workers &&
           4 * p->n_threads >= 3 * kiln_min_u64(tight->n_threads, all_threads());
}

/* Finds the largest number of workers that have room with at least half of their threads. A single
 * worker may have any number. */
static bool find_plan(kiln_ram_plan *p, const list *l)
{
    const unsigned all = threads_most(l->cap, l->parent);
    kiln_ram_plan tight = {.cap = p->cap};
    for (unsigned n = l->of->n_wanted; n > 0 && 4 * n >= 3 * tight.n_workers; n--) {
        const unsigned full = (unsigned)kiln_div_up(all, n), few = n > 1 ? (full + 1) / 2 : 1;
        for (unsigned threads = full; threads >= few; threads--) {
            const uint64_t need = unit_bytes(largest_of(l, threads), threads);
            const bool ample = plan_ample(p, l, n, threads, need);
            if (((!ample || !p->direct) && plan_batch(p, l, n, threads, need)) || ample) {
                if (!tight.n_workers || is_worth_it(p, &tight)) return true;
            } else if (!tight.n_workers && plan_tight(p, l, n, threads, need)) {
                if (!is_batch_wanted(l, n)) return true;
                tight = *p;
            }
        }
    }
    *p = tight;
    return tight.n_workers > 0;
}

static kiln_status refuse(const kiln_ram_use *u, uint64_t parent, uint64_t unit, const char *name,
                          kiln_error *err)
{
    char needs[32], allowed[32], advice[ADVICE];
    return kiln_fail(
        err, KILN_E_CAP,
        "'%s' needs %s of host memory in addition to the processes themselves, but "
        "--ram allows %s in all; %s",
        name, kiln_size_text(unit, needs), kiln_size_text(u->cap, allowed),
        advise(u, parent + worker_bytes(1) + kiln_max_u64(unit, foreseen_by(u)), advice));
}

/* The same for a list. If its units plan others, the cap that is named has room for those, too;
 * else it would be refused later. */
static kiln_status refuse_list(const kiln_ram_use *u, const list *l, kiln_error *err)
{
    char needs[32], allowed[32], then[32], advice[ADVICE];
    const kiln_unit *big = largest_of(l, 1);
    const uint64_t unit = unit_bytes(big, 1);
    uint64_t after = 0;
    for (uint64_t i = 0; i < l->of->n_due; i++)
        after = kiln_max_u64(after, l->of->units[l->of->due[i]].ram_after);
    if (after <= unit) return refuse(u, l->parent, unit, big->name, err);
    return kiln_fail(
        err, KILN_E_CAP,
        "'%s' needs %s of host memory, and later units need up to %s, in addition to the processes "
        "themselves, but --ram "
        "allows %s in all; %s",
        big->name, kiln_size_text(unit, needs), kiln_size_text(after, then),
        kiln_size_text(u->cap, allowed),
        advise(u, l->parent + worker_bytes(1) + kiln_max_u64(after, foreseen_by(u)), advice));
}

kiln_status kiln_ram_need_unit(kiln_ram_use *u, uint64_t unit_ram, const char *what,
                               kiln_error *err)
{
    const uint64_t parent = parent_bytes(u);
    kiln_ram_foresee(u, unit_ram, 0);
    grow_cap(u, parent + worker_bytes(1) + kiln_max_u64(unit_ram, foreseen_by(u)));
    return share_of(kiln_ram_cap(u), parent, 1, 1) < unit_ram
               ? refuse(u, parent, unit_ram, what, err)
               : KILN_OK;
}

kiln_status kiln_ram_plan_make(kiln_ram_use *u, const kiln_ram_list *of, kiln_ram_plan *out,
                               kiln_error *err)
{
    list l = {.of = of, .cap = kiln_ram_cap(u), .parent = parent_bytes(u) + of->resting};
    for (uint64_t i = 0; i < of->n_due; i++) {
        l.cache = kiln_max_u64(l.cache, of->units[of->due[i]].ram_cache);
        l.is_stored |= !of->units[of->due[i]].volatile_result;
    }
    *out = (kiln_ram_plan){.cap = l.cap};
    bool found = find_plan(out, &l);
    if (!found && !of->resting) {
        grow_cap(u, l.parent + worker_bytes(1) + unit_bytes(largest_of(&l, 1), 1));
        l.cap = out->cap = kiln_ram_cap(u);
        found = find_plan(out, &l);
    }
    if (!found) return refuse_list(u, &l, err);
    out->n_threads = (unsigned)kiln_min_u64(out->n_threads, all_threads());
    u->predicted = kiln_max_u64(u->predicted, out->predicted);
    if (out->n_workers < of->n_wanted)
        kiln_chat("--ram suffices for %u of %s", out->n_workers,
                  KILN_COUNT(of->n_wanted, "worker"));
    if (out->n_threads < all_threads())
        kiln_chat("--ram suffices for %u of %s", out->n_threads,
                  KILN_COUNT(all_threads(), "thread"));
    return KILN_OK;
}
