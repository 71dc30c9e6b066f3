/* The plan: how the cap is shared out.
 *
 * Parts of the whole: the parent (its process, its connection's page cache, what it holds of the list), each worker with nothing
 * in hand (process, threads, connection), and what is left, in equal shares, for units. A share covers what the worker keeps
 * between units and the unit's outputs until the parent has stored them.
 *
 * With room enough a worker computes its next unit while the result of the last one waits for its transaction: two units in
 * flight, and a batch of results. Outputs are at most half of what a unit takes, since its own arrays exist beside them. Where
 * memory is short a result is stored before its worker gets another unit, so that it needs no room beside the share. */
#include "stages/engine/ram.h"

#include "base/checked.h"
#include "base/log.h"
#include "base/memory.h"
#include "stages/engine/engine_internal.h"

#include <stdio.h>

enum {
    MIB = 1 << 20,
    PARENT_BYTES = 24 * MIB,    /* measured: 18, of which 8 are the page cache */
    PLAN_GROWS = 4 * MIB,       /* between asking what a unit may take and planning it */
    PARENT_GROWS = 16 * MIB,    /* beyond what it has when the work is planned */
    WORKER_BYTES = 12 * MIB,    /* measured: 7, of which 4 are the page cache */
    THREAD_BYTES = 3 * MIB / 2, /* compressor and stack */
    RESULT_BYTES = 2048,        /* of a unit, while the run lasts; measured: a chunk's twelve outputs */
    COMMIT_BYTES = 2560,        /* and what the commit makes of it */
    BATCH_MOST = 64 * MIB,
    BATCH_SHARE = 16, /* of the cap */
};
static const double FREE_SHARE = 0.95; /* of what is free, at most, whatever --ram says */

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

uint64_t kiln_ram_cap(kiln_run *r)
{
    if (r->ram.cap) return r->ram.cap;
    const uint64_t free_bytes = kiln_ram_free_by("", &r->ram.bound);
    r->ram.free = most(free_bytes, 1);
    uint64_t cap = kiln_size_resolve(kiln_common_values.ram, free_bytes);
    if (free_bytes != UINT64_MAX && (double)cap > FREE_SHARE * (double)free_bytes) {
        char wanted[32], got[32];
        const uint64_t wanted_bytes = cap;
        cap = (uint64_t)(FREE_SHARE * (double)free_bytes);
        kiln_chat("--ram is %s instead of %s, that much is free", kiln_size_text(cap, got), kiln_size_text(wanted_bytes, wanted));
    }
    kiln_memory_tidy(cap);
    return r->ram.cap = most(cap, 1);
}

static unsigned all_threads(void) { return kiln_devices_threads(kiln_common_values.threads); }

/* The threads are shared out among them. */
static uint64_t worker_bytes(unsigned n)
{
    const unsigned threads = all_threads() / n;
    return WORKER_BYTES + (uint64_t)THREAD_BYTES * (threads ? threads : 1);
}

uint64_t kiln_later_ram(unsigned most) { return THREAD_BYTES * kiln_div_up(all_threads(), most); }

static uint64_t parent_bytes(const kiln_run *r) { return most(PARENT_BYTES, kiln_ram_mapped() + PARENT_GROWS) + r->ram.results; }

void kiln_ram_results(kiln_run *r, uint64_t n, uint64_t n_due) { r->ram.results = COMMIT_BYTES * n + RESULT_BYTES * n_due; }

/* Share of each of n workers when the parent takes so much; 0: none. */
static uint64_t share_of(uint64_t cap, uint64_t parent, unsigned n)
{
    if (cap <= parent) return 0;
    const uint64_t each = (cap - parent) / n;
    return each > worker_bytes(n) ? each - worker_bytes(n) : 0;
}

/* The parent is a little larger when the unit's list is planned: room for that, so that a unit which asks for just this much fits.
 */
uint64_t kiln_run_unit_ram(kiln_run *r) { return share_of(kiln_ram_cap(r), parent_bytes(r) + PLAN_GROWS, 1); }

/* The blob as it is stored, and once more shuffled. */
uint64_t kiln_read_ram(uint64_t raw_bytes) { return 2 * least(raw_bytes, KILN_BLOB_MAX) + MIB / 4; }

uint64_t kiln_tail_ram(uint64_t bytes) { return KILN_IN_FLIGHT * bytes; }

/* A worker's --ram is the whole cap in bytes: its parent resolved it. */
kiln_status kiln_worker_need_ram(const kiln_worker *w, uint64_t bytes, const char *what, kiln_error *err)
{
    char needs[32], has[32];
    const uint64_t share = kiln_worker_ram(w);
    if (bytes <= share) return KILN_OK;
    return kiln_fail(err, KILN_E_CAP, "%s needs %s of host memory, --ram leaves it %s; the least that works is --ram %lluM", what,
                     kiln_size_text(bytes, needs), kiln_size_text(share, has),
                     (unsigned long long)((kiln_common_values.ram.bytes + bytes - share) / MIB + 2));
}

static uint64_t unit_bytes(const kiln_unit *u) { return most(u->ram ? u->ram : KILN_UNIT_RAM, u->payload_bytes + u->tail_bytes); }

/* How a refusal ends. Where less is free than is needed, more --ram would be refused with the same sentence. */
enum { ADVICE = 256 };
static const char *advise(const kiln_run *r, uint64_t all, char out[ADVICE])
{
    char leaves[32], needed[32];
    const uint64_t mib = all / MIB + 2; /* the parent may be a little larger the next time */
    if (r->ram.free == 0 || r->ram.free == UINT64_MAX || (double)(mib * MIB) <= FREE_SHARE * (double)r->ram.free)
        (void)snprintf(out, ADVICE, "the least that works is --ram %lluM", (unsigned long long)mib);
    else
        (void)snprintf(out, ADVICE, "no --ram helps, for %s leaves %s where %s are needed: %s", r->ram.bound.what,
                       kiln_size_text(r->ram.free, leaves),
                       kiln_size_text((uint64_t)((double)(mib * MIB) / FREE_SHARE) + MIB, needed), r->ram.bound.advice);
    return out;
}

/* Before results are loaded: workers, which may not be needed at all, are not counted. */
kiln_status kiln_ram_need_list(kiln_run *r, const char *what, const kiln_unit *units, uint64_t n, kiln_error *err)
{
    char needs[32], allowed[32], advice[ADVICE];
    const uint64_t cap = kiln_ram_cap(r);
    kiln_ram_results(r, n, n);
    const uint64_t parent = parent_bytes(r);
    uint64_t largest = 0; /* it may be due: the number that is named does then, too */
    for (uint64_t i = 0; i < n; i++) largest = most(largest, most(unit_bytes(&units[i]), units[i].ram_after));
    if (parent <= cap) {
        r->ram.predicted = most(r->ram.predicted, parent);
        return KILN_OK;
    }
    return kiln_fail(err, KILN_E_CAP, "%s: a list of %llu units makes the parent alone need %s of host memory, --ram allows %s; %s",
                     what, (unsigned long long)n, kiln_size_text(parent, needs), kiln_size_text(cap, allowed),
                     advise(r, parent + worker_bytes(1) + largest, advice));
}

/* With results that wait, while workers go on. */
static bool plan_roomy(kiln_ram_plan *p, uint64_t parent, uint64_t largest, unsigned n)
{
    const uint64_t result = largest / 2;
    const uint64_t batch = most(least(BATCH_MOST, p->cap / BATCH_SHARE), result);
    const uint64_t share = share_of(p->cap, parent + batch, n);
    if (share < largest + result) return false;
    p->unit = share - result;
    p->batch = batch;
    p->in_flight = KILN_IN_FLIGHT;
    p->predicted = parent + batch + n * (worker_bytes(n) + largest + result);
    p->n_workers = n;
    return true;
}

static bool plan_tight(kiln_ram_plan *p, uint64_t parent, uint64_t largest, unsigned n)
{
    const uint64_t share = share_of(p->cap, parent, n);
    if (share < largest) return false;
    p->unit = share;
    p->batch = 0;
    p->in_flight = 1;
    p->predicted = parent + n * (worker_bytes(n) + largest);
    p->n_workers = n;
    return true;
}

static kiln_status refuse(const kiln_run *r, uint64_t parent, uint64_t unit, const char *name, kiln_error *err)
{
    char needs[32], allowed[32], advice[ADVICE];
    return kiln_fail(err, KILN_E_CAP, "'%s' needs %s of host memory beside parent and worker, --ram allows %s for all; %s", name,
                     kiln_size_text(unit, needs), kiln_size_text(r->ram.cap, allowed),
                     advise(r, parent + worker_bytes(1) + unit, advice));
}

/* The same for a list with this unit as its largest. Where it plans others, a cap that has room for it alone would be refused
 * later. */
static kiln_status refuse_list(const kiln_run *r, uint64_t parent, const kiln_unit *big, uint64_t after, kiln_error *err)
{
    char needs[32], allowed[32], then[32], advice[ADVICE];
    const uint64_t unit = unit_bytes(big);
    if (after <= unit) return refuse(r, parent, unit, big->name, err);
    return kiln_fail(err, KILN_E_CAP,
                     "'%s' needs %s of host memory beside parent and worker, what comes after it %s at most, --ram allows %s for "
                     "all; before that is known better, %s",
                     big->name, kiln_size_text(unit, needs), kiln_size_text(after, then), kiln_size_text(r->ram.cap, allowed),
                     advise(r, parent + worker_bytes(1) + after, advice));
}

kiln_status kiln_run_need_ram(kiln_run *r, uint64_t unit_ram, const char *what, kiln_error *err)
{
    const uint64_t cap = kiln_ram_cap(r), parent = parent_bytes(r);
    return share_of(cap, parent, 1) < unit_ram ? refuse(r, parent, unit_ram, what, err) : KILN_OK;
}

kiln_status kiln_ram_plan_make(kiln_run *r, const kiln_unit *units, const uint64_t *due, uint64_t n_due, unsigned n_wanted,
                               kiln_ram_plan *out, kiln_error *err)
{
    const uint64_t cap = kiln_ram_cap(r), parent = parent_bytes(r);
    const kiln_unit *big = &units[due[0]];
    uint64_t after = 0;
    for (uint64_t i = 0; i < n_due; i++) {
        if (unit_bytes(&units[due[i]]) > unit_bytes(big)) big = &units[due[i]];
        after = most(after, units[due[i]].ram_after);
    }
    *out = (kiln_ram_plan){.cap = cap};
    for (unsigned n = n_wanted; n > 0; n--) {
        if (!plan_roomy(out, parent, unit_bytes(big), n) && !plan_tight(out, parent, unit_bytes(big), n)) continue;
        r->ram.predicted = most(r->ram.predicted, out->predicted);
        if (n < n_wanted) kiln_chat("--ram has room for %u of %u workers", n, n_wanted);
        return KILN_OK;
    }
    return refuse_list(r, parent, big, after, err);
}
