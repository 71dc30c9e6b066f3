/* A run and memory/: its account of --ram, and its scratch folder. */
#include "stages/engine/parent/run_memory.h"

#include "stages/engine/engine_options.h"
#include "stages/engine/memory/ram_use.h"
#include "stages/engine/memory/shared_memory.h"
#include "stages/engine/parent/run.h"
#include "stages/engine/parent/run_workers.h"
#include "stages/engine/parent/worker_rest.h"

/* ---- --ram ----------------------------------------------------------------------------------- */
kiln_ram_use *kiln_run_ram(kiln_run *r)
{
    r->ram.cache_left = kiln_manifest_cache_left(r->manifest);
    return &r->ram;
}

uint64_t kiln_run_unit_ram(kiln_run *r) { return kiln_ram_unit_most(kiln_run_ram(r)); }
void kiln_run_foresee_ram(kiln_run *r, uint64_t unit_ram, uint64_t n_units)
{
    kiln_ram_foresee(&r->ram, unit_ram, n_units);
}
void kiln_run_foresee_no_more(kiln_run *r) { r->ram.foreseen = 0; }
void kiln_run_foresee_parent(kiln_run *r, uint64_t bytes)
{
    kiln_ram_foresee_parent(&r->ram, bytes);
}
bool kiln_run_parent_fits(kiln_run *r) { return kiln_ram_parent_fits(kiln_run_ram(r)); }

kiln_status kiln_run_need_parent(kiln_run *r, const char *what, kiln_error *err)
{
    return kiln_ram_need_parent(kiln_run_ram(r), what, err);
}

kiln_status kiln_run_need_ram(kiln_run *r, uint64_t unit_ram, const char *what, kiln_error *err)
{
    return kiln_ram_need_unit(kiln_run_ram(r), unit_ram, what, err);
}

/* The CUDA runtime's share of a worker is not known before it is ready. */
static bool is_measured(const kiln_worker_process *w)
{
    return w->pid > 0 && (w->ready || w->device->kind != KILN_DEVICE_CUDA);
}

void kiln_run_look_at_ram(kiln_run *r)
{
    kiln_ram_process all[(KILN_HOMES + 1) * KILN_SLOTS_MAX];
    const kiln_worker_process *resting[KILN_SLOTS_MAX], *w;
    const unsigned n_resting = kiln_rest_processes(resting);
    unsigned n = 0;
    for (unsigned i = 0; (w = kiln_run_slot(&r->devices, i)); i++)
        if (is_measured(w)) all[n++] = (kiln_ram_process){.pid = w->pid, .cuda = w->use.ram_cuda};
    for (unsigned i = 0; i < n_resting; i++)
        if (is_measured(resting[i]))
            all[n++] = (kiln_ram_process){.pid = resting[i]->pid, .cuda = resting[i]->use.ram_cuda};
    kiln_ram_look(&r->ram, all, n);
}

void kiln_run_watch_ram(kiln_run *r)
{
    if (kiln_ram_look_is_due(&r->ram)) kiln_run_look_at_ram(r);
}

/* ---- memory that workers share --------------------------------------------------------------- */
kiln_status kiln_run_share_memory(kiln_run *r, uint64_t bytes, uint32_t n_files,
                                  kiln_shared_memory *out, kiln_error *err)
{
    KILN_TRY(kiln_shared_memory_make(bytes, n_files, out, err));
    r->ram.shared += bytes;
    return KILN_OK;
}

void kiln_run_unshare_memory(kiln_run *r, kiln_shared_memory *m)
{
    if (m->n > 0) r->ram.shared -= m->bytes;
    kiln_shared_memory_close(m);
}

/* ---- scratch --------------------------------------------------------------------------------- */
kiln_scratch_folder *kiln_run_scratch_folder(kiln_run *r)
{
    kiln_scratch_folder *s = &r->scratch;
    s->options = r->options;
    s->stage = r->program->name;
    s->manifest = r->manifest ? kiln_manifest_path(r->manifest) : NULL;
    return s;
}

kiln_scratch_use kiln_run_scratch_use(const kiln_run *r) { return r->scratch.use; }

kiln_status kiln_run_scratch(kiln_run *r, kiln_hash key, char *path, kiln_error *err)
{
    return kiln_scratch_folder_make(kiln_run_scratch_folder(r), key, path, err);
}

kiln_status kiln_run_check_scratch(kiln_run *r, uint64_t need_bytes, kiln_error *err)
{
    return kiln_scratch_folder_check(kiln_run_scratch_folder(r), need_bytes, err);
}
