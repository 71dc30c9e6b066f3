/* Memory that the workers of a run share: memfds. Only the parent keeps descriptors of them;
 * workers open them through /proc. So however the run ends, the memory goes with its last
 * process. */
#include "stages/engine/memory/shared_memory.h"

#include "stages/engine/memory/memfd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

bool kiln_shared_memory_fits(uint64_t bytes)
{
    struct rlimit most;
    /* others may not look below our /proc: a program that can only be executed */
    if (prctl(PR_GET_DUMPABLE) != 1) return false;
    return bytes <= INT64_MAX && (getrlimit(RLIMIT_FSIZE, &most) != 0 ||
                                  most.rlim_cur == RLIM_INFINITY || bytes <= most.rlim_cur);
}

void kiln_shared_memory_path(const kiln_shared_memory *m, uint32_t file, char path[64])
{
    (void)snprintf(path, 64, "/proc/%lld/fd/%d", (long long)m->pid, m->fds[file]);
}

void kiln_shared_memory_close(kiln_shared_memory *m)
{
    for (uint32_t i = 0; i < m->n; i++) (void)close(m->fds[i]);
    *m = (kiln_shared_memory){0};
}

static kiln_status add_file(kiln_shared_memory *m, kiln_error *err)
{
    KILN_TRY(kiln_memfd_new(&m->fds[m->n], err));
    if (ftruncate(m->fds[m->n++], (off_t)m->bytes) == 0) return KILN_OK;
    return kiln_fail(err, KILN_E_NOMEM, "cannot make shared memory of %llu bytes: %s",
                     (unsigned long long)m->bytes, strerror(errno));
}

kiln_status kiln_shared_memory_make(uint64_t bytes, uint32_t n_files, kiln_shared_memory *out,
                                    kiln_error *err)
{
    kiln_status st = KILN_OK;
    *out = (kiln_shared_memory){.bytes = bytes, .pid = getpid()};
    while (st == KILN_OK && out->n < n_files) st = add_file(out, err);
    if (st != KILN_OK) kiln_shared_memory_close(out);
    return st;
}
