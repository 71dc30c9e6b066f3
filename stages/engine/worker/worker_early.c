/* Reading before the first unit. To open a GPU takes a fifth of a second, nearly all of it on one
 * thread of the driver. The first unit would then read and decode for half as long; a thread does
 * so meanwhile. */
#include "stages/engine/worker/worker_early.h"

#include "base/memory.h"
#include "stages/engine/worker/worker_internal.h"

static void *read_early(void *context)
{
    kiln_early *e = context;
    e->bytes = e->worker->program->early(e->worker, &e->stop);
    return NULL;
}

void kiln_early_begin(kiln_early *e, kiln_worker *w)
{
    e->worker = w;
    e->bytes = 0;
    atomic_init(&e->stop, false);
    e->runs =
        w->program->early && w->ram > 0 && pthread_create(&e->thread, NULL, read_early, e) == 0;
}

uint64_t kiln_early_end(kiln_early *e)
{
    if (!e->runs) return 0;
    atomic_store(&e->stop, true);
    (void)pthread_join(e->thread, NULL); /* cannot fail: it is ours and was not joined */
    e->runs = false;
    kiln_memory_trim(); /* else it would count as the driver's memory */
    return e->bytes;
}
