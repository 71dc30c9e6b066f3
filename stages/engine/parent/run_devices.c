/* Where the lists of a run are: on the GPUs that --devices names, or on the CPU beside them. */
#include "stages/engine/parent/run_devices.h"

#include "base/count.h"
#include "base/log.h"
#include "base/memory.h"
#include "kernels/device.h"
#include "stages/engine/devices/work.h"
#include "stages/engine/parent/run.h"
#include "stages/engine/parent/run_units.h"
#include "stages/engine/parent/worker_end.h"
#include "stages/engine/parent/worker_rest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const kiln_device *kiln_home_device(const kiln_home *h, unsigned slot)
{
    return &h->devices.items[h->devices.n > 1 ? slot : 0];
}

const char *kiln_run_named_kind(const kiln_run *r)
{
    return (r->program->flags & KILN_PROGRAM_CPU_ONLY)
               ? "cpu"
               : kiln_devices_named_kind(r->common->devices);
}

/* Why a list is on the CPU. NO_REASON: it is where --devices says. */
typedef enum { NO_REASON, CPU_ALONE, PACKS, LITTLE_WORK } cpu_reason;

/* --devices says which GPUs may be used, and takes nothing from the CPU: a GPU has one worker, so
 * what packs is on the CPU, where every thread has one. What computes is on the GPUs that are
 * named, whatever its size; `auto` opens none for a little work (work.h). */
static cpu_reason why_cpu(const kiln_run *r)
{
    if ((r->program->flags & KILN_PROGRAM_CPU_ONLY) || r->devices.on_cpu) return CPU_ALONE;
    if ((r->program->flags & KILN_PROGRAM_PACKS) && !r->devices.computes) return PACKS;
    if (kiln_devices_named_kind(r->common->devices)) return NO_REASON;
    if (kiln_device_built_version() == 0) return NO_REASON; /* which is said in the place of this */
    return r->devices.work_s > 0 && !kiln_run_gpu_pays(r->devices.work_s) ? LITTLE_WORK : NO_REASON;
}

bool kiln_run_gpu_pays(double cpu_s)
{
    return kiln_work_pays(cpu_s, kiln_devices_threads(kiln_common_values.threads),
                          kiln_rest_has_gpu());
}

void kiln_run_expect_work(kiln_run *r, double cpu_s) { r->devices.work_s = cpu_s; }
void kiln_run_expect_later(kiln_run *r, double cpu_s) { r->devices.later_s = cpu_s; }

/* Writes the sentence about the choice of auto; nothing if there was none to make. */
static void say_choice(const kiln_run *r, cpu_reason reason, kiln_device_list *d)
{
    const unsigned threads = kiln_devices_threads(r->common->threads);
    const bool open = kiln_rest_has_gpu(), gpu = d->items[0].kind == KILN_DEVICE_CUDA;
    if (reason == PACKS)
        (void)snprintf(d->note, sizeof d->note, "%s mostly packs, which is done on the CPU",
                       r->program->name);
    if (r->devices.work_s <= 0 ||
        (reason != LITTLE_WORK &&
         (!gpu || d->note[0] || kiln_devices_named_kind(r->common->devices))))
        return;
    (void)snprintf(d->note, sizeof d->note,
                   "%s has about %.2g s of work for %u thread%s, %s than %s a GPU takes (%g s)",
                   r->program->name, r->devices.work_s / threads, threads, threads == 1 ? "" : "s",
                   gpu ? "more" : "less", open ? "continuing with" : "opening",
                   kiln_work_gpu_s(open));
}

/* GPUs that are named must be there, although this list is on the CPU: a run whose later lists
 * could not be computed ends before it has computed the first. */
static kiln_status find_named(kiln_run *r, kiln_error *err)
{
    kiln_device_list *found;
    const char *kind = kiln_run_named_kind(r);
    if (r->devices.found_named || !kind || strcmp(kind, "cuda") != 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&found, 1, "devices", err));
    const kiln_status st = kiln_devices_resolve(r->common->devices, found, err);
    r->devices.found_named = st == KILN_OK;
    free(found);
    return st;
}

static void tell_choice(const kiln_run *r, cpu_reason reason, kiln_device_list *d)
{
    say_choice(r, reason, d);
    const char *where = d->items[0].kind == KILN_DEVICE_CUDA ? "" : "computing on the CPU: ";
    if (d->passed_over)
        kiln_warn("%s%s", where, d->note);
    else if (d->note[0])
        kiln_chat("%s%s", where, d->note);
}

kiln_status kiln_run_find_devices(kiln_run *r, kiln_error *err)
{
    kiln_device_list *const d = &r->devices.home->devices;
    if (d->n) return KILN_OK;
    const cpu_reason reason = why_cpu(r);
    if (reason == PACKS) KILN_TRY(find_named(r, err));
    KILN_TRY(kiln_devices_resolve(reason == NO_REASON ? r->common->devices : "cpu", d, err));
    tell_choice(r, reason, d);
    return KILN_OK;
}

static bool is_cpu(const kiln_device_list *d)
{
    return d->n == 1 && d->items[0].kind == KILN_DEVICE_CPU;
}

static kiln_home *other_home(kiln_run *r)
{
    return &r->devices.homes[r->devices.home == r->devices.homes];
}

/* Ends all workers, or lets them rest for a later stage, unless a list goes on beside those that
 * follow. The next list is on the other home, whose slots are as its last list left them. What was
 * left is looked for again when its turn comes. */
static void leave_home(kiln_run *r)
{
    kiln_home *const left = r->devices.home;
    r->devices.home = other_home(r);
    r->devices.home->ahead = false;
    r->ram.ahead = 0; /* they are in the plan of the next list */
    if (kiln_run_is_beside(&r->lists, left)) return;
    kiln_workers_dismiss(left->workers, left->n_workers);
    kiln_rest_wait();
    kiln_workers_stop(left->workers, left->n_workers);
    for (unsigned i = 0; i < KILN_SLOTS_MAX; i++)
        /* the next process is the first again, so that one that rests will do */
        left->workers[i].device = NULL;
    left->devices.n = 0;
}

static bool has_gpu(const kiln_run *r)
{
    kiln_error none;
    kiln_device_list *found;
    if (KILN_ALLOC(&found, 1, "devices", &none) != KILN_OK) return true;
    const kiln_status st = kiln_devices_resolve(r->common->devices, found, &none);
    /* what is wrong is said before the next list */
    const bool gpu = st != KILN_OK || !is_cpu(found) || found->passed_over;
    free(found);
    return gpu;
}

/* Call it when what decides about the next lists has changed. Workers on the CPU keep what they
 * have decoded where it stays the CPU's turn, or there is no GPU to take their place. GPUs that
 * were opened ahead are taken even if no list had work before them, and so no device was looked
 * for: looked for on this home, they would be opened twice. */
static void change_home(kiln_run *r)
{
    const bool to_cpu = why_cpu(r) != NO_REASON, found = r->devices.home->devices.n > 0;
    if (!found && !to_cpu && other_home(r)->ahead) leave_home(r);
    if (!found || is_cpu(&r->devices.home->devices) == to_cpu) return;
    if (to_cpu || has_gpu(r)) leave_home(r);
}

void kiln_run_on_cpu(kiln_run *r, bool on)
{
    r->devices.on_cpu = on;
    change_home(r);
}

void kiln_run_computes(kiln_run *r, bool on)
{
    r->devices.computes = on;
    change_home(r);
}

/* A GPU that cannot be opened, or is not there, is told of by the list that wants it. */
bool kiln_run_open_ahead(kiln_run *r)
{
    kiln_home *const h = other_home(r);
    const unsigned asked = r->options->workers;
    const bool on_cpu = r->devices.on_cpu;
    if (!on_cpu || kiln_devices_threads(r->common->threads) < 2) return false;
    if (h->devices.n) return true;
    r->devices.on_cpu = false;
    const cpu_reason reason = why_cpu(r);
    r->devices.on_cpu = on_cpu;
    if (reason != NO_REASON ||
        kiln_devices_resolve(r->common->devices, &h->devices, NULL) != KILN_OK ||
        is_cpu(&h->devices) || !kiln_rest_fits(&r->ram, h->devices.n)) {
        h->devices.n = 0;
        return false;
    }
    tell_choice(r, reason, &h->devices);
    h->ahead = true;
    for (unsigned i = 0; i < h->devices.n && (!asked || i < asked); i++) {
        if (h->workers[i].retired || h->workers[i].pid > 0) continue;
        if (kiln_worker_start(r, &h->devices.items[i], 0, &h->workers[i], NULL) != KILN_OK)
            continue;
        if (h->n_workers <= i) h->n_workers = i + 1;
        r->ram.ahead += kiln_rest_start_bytes();
    }
    return true;
}

/* Each reads ahead within the least that its units will have, because how many have room is not
 * known. */
void kiln_run_open_early(kiln_run *r)
{
    kiln_home *const h = r->devices.home;
    const char *kind = kiln_run_named_kind(r);
    const unsigned asked = r->options->workers;
    if (!kind || strcmp(kind, "cuda") != 0 || why_cpu(r) != NO_REASON) return;
    if (kiln_run_find_devices(r, NULL) != KILN_OK) { /* the list will say why */
        h->devices.n = 0;
        return;
    }
    const unsigned n = asked && asked < h->devices.n ? asked : h->devices.n;
    const uint64_t unit_ram = kiln_run_unit_ram(r) / n;
    kiln_chat("opening %s while the units are planned", KILN_COUNT(n, "GPU"));
    for (unsigned i = 0; i < n; i++) {
        if (h->workers[i].retired || h->workers[i].pid > 0) continue;
        if (kiln_worker_start(r, &h->devices.items[i], unit_ram, &h->workers[i], NULL) == KILN_OK &&
            h->n_workers <= i)
            h->n_workers = i + 1;
    }
}

void kiln_run_serial(kiln_run *r, bool on) { r->devices.serial = on; }

kiln_status kiln_run_device_kind(kiln_run *r, const char **kind, kiln_error *err)
{
    *kind = kiln_run_named_kind(r);
    if (*kind) return KILN_OK;
    KILN_TRY(kiln_run_find_devices(r, err));
    *kind = r->devices.home->devices.items[0].kind == KILN_DEVICE_CUDA ? "cuda" : "cpu";
    return KILN_OK;
}

kiln_status kiln_run_worker_count(kiln_run *r, unsigned *n, kiln_error *err)
{
    KILN_TRY(kiln_run_find_devices(r, err));
    *n = r->devices.home->devices.n;
    return KILN_OK;
}
