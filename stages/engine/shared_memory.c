/* Memory that the workers of a run share: a memfd. Only the parent keeps a descriptor of it; workers open it through /proc. So
 * however the run ends, the memory goes with its last process. */
#include "stages/engine/engine_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

bool kiln_shared_memory_fits(uint64_t bytes)
{
    struct rlimit most;
    if (prctl(PR_GET_DUMPABLE) != 1) return false; /* others may not look below our /proc: a program that can only be executed */
    return bytes <= INT64_MAX && (getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur == RLIM_INFINITY || bytes <= most.rlim_cur);
}

kiln_status kiln_run_share_memory(kiln_run *r, uint64_t bytes, kiln_shared_memory *out, kiln_error *err)
{
    *out = (kiln_shared_memory){0};
    KILN_TRY(kiln_memfd_new(&out->fd, err));
    if (ftruncate(out->fd, (off_t)bytes) != 0) {
        const int why = errno;
        (void)close(out->fd);
        return kiln_fail(err, KILN_E_NOMEM, "cannot make shared memory of %llu bytes: %s", (unsigned long long)bytes,
                         strerror(why));
    }
    (void)snprintf(out->path, sizeof out->path, "/proc/%ld/fd/%d", (long)getpid(), out->fd);
    out->bytes = bytes;
    r->ram.shared += bytes;
    return KILN_OK;
}

void kiln_run_unshare_memory(kiln_run *r, kiln_shared_memory *m)
{
    if (!*m->path) return;
    (void)close(m->fd);
    r->ram.shared -= m->bytes;
    *m = (kiln_shared_memory){0};
}
