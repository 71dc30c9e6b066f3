/* --ram: what parent and workers may take of the machine's memory together. */
#include "stages/engine/engine_internal.h"

#include <unistd.h>

static uint64_t whole_ram(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

uint64_t kiln_run_unit_ram(kiln_run *r)
{
    (void)r;
    return kiln_size_resolve(kiln_common_values.ram, whole_ram()) / 2;
}

uint64_t kiln_worker_ram(const kiln_worker *w)
{
    (void)w;
    return kiln_size_resolve(kiln_common_values.ram, whole_ram()) / 2;
}
