/* The workers of a run together, on both kinds of devices: for reports, records and messages. */
#include "stages/engine/parent/run_workers.h"

#include "stages/engine/json_text.h"
#include "stages/engine/parent/worker_end.h"

#include <stdio.h>
#include <string.h>

const kiln_worker_process *kiln_run_slot(const kiln_run_devices *d, unsigned i)
{
    for (unsigned k = 0; k < KILN_HOMES; k++) {
        if (i < d->homes[k].n_workers) return &d->homes[k].workers[i];
        i -= d->homes[k].n_workers;
    }
    return NULL;
}

void kiln_run_dismiss_workers(kiln_run_devices *d)
{
    for (unsigned k = 0; k < KILN_HOMES; k++)
        kiln_workers_dismiss(d->homes[k].workers, d->homes[k].n_workers);
}

kiln_worker_use kiln_workers_use(const kiln_run_devices *d)
{
    kiln_worker_use all = {0};
    const kiln_worker_process *w;
    for (unsigned i = 0; (w = kiln_run_slot(d, i)); i++) {
        kiln_worker_use_add(&all, &w->past);
        kiln_worker_use_add(&all, &w->use);
    }
    return all;
}

uint64_t kiln_workers_open_ns(const kiln_run_devices *d)
{
    uint64_t ns = 0;
    const kiln_worker_process *w;
    for (unsigned i = 0; (w = kiln_run_slot(d, i)); i++)
        if (w->open_ns > ns) ns = w->open_ns;
    return ns;
}

const char *kiln_worker_name(const kiln_run_devices *d, const kiln_worker_process *w, char *buf,
                             size_t size)
{
    unsigned slot = 0;
    while (&d->homes[0].workers[slot] != w && &d->homes[1].workers[slot] != w) slot++;
    if (w->device->kind == KILN_DEVICE_CUDA && !*w->device_text)
        (void)snprintf(buf, size, "GPU '%s'", w->device->visible);
    else if (w->device->kind == KILN_DEVICE_CUDA)
        (void)snprintf(buf, size, "%s", w->device_text);
    else
        (void)snprintf(buf, size, "worker %u of the CPU", slot);
    return buf;
}

/* Says whether an earlier worker has the same device: all on the CPU have. Also true for one that
 * was never ready. */
static bool is_listed(const kiln_run_devices *d, unsigned i)
{
    const char *text = kiln_run_slot(d, i)->device_text;
    for (unsigned k = 0; k < i; k++)
        if (!strcmp(kiln_run_slot(d, k)->device_text, text)) return true;
    return !*text;
}

void kiln_workers_devices(const kiln_run_devices *d, char *out, size_t size)
{
    size_t used = 0;
    const kiln_worker_process *w;
    *out = '\0';
    for (unsigned i = 0; (w = kiln_run_slot(d, i)) && used < size; i++) {
        if (is_listed(d, i)) continue;
        const int more =
            snprintf(out + used, size - used, "%s%s", used ? "; " : "", w->device_text);
        used += more > 0 ? (size_t)more : 0;
    }
}

json_t *kiln_workers_json(const kiln_run_devices *d)
{
    json_t *list = json_array();
    const kiln_worker_process *w;
    for (unsigned i = 0; list && (w = kiln_run_slot(d, i)); i++) {
        if (!w->device && !w->start_ns) continue; /* never started */
        json_t *one =
            json_pack("{s:s, s:I, s:o, s:o, s:b}", "device", w->device_text, "units",
                      (json_int_t)w->n_units, "busy_s", kiln_json_real((double)w->busy_ns * 1e-9),
                      "start_s", kiln_json_real((double)w->open_ns * 1e-9), "retired", w->retired);
        if (json_array_append_new(list, one) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}
