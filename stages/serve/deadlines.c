/* deadlines -- see the header. */
#include "stages/serve/deadlines.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static uint64_t due_in(uint64_t ms)
{
    return ms == KILN_NO_DEADLINE ? KILN_NO_DEADLINE : kiln_now_ns() + ms * 1000000;
}

kiln_status kiln_deadlines_init(kiln_deadlines *d, kiln_error *err)
{
    *d = (kiln_deadlines){.n = 0};
    const int error = pthread_mutex_init(&d->lock, NULL);
    return error ? kiln_fail(err, KILN_E_NOMEM, "cannot make a lock: %s", strerror(error))
                 : KILN_OK;
}

void kiln_deadlines_release(kiln_deadlines *d) { (void)pthread_mutex_destroy(&d->lock); }

kiln_deadline *kiln_deadlines_add(kiln_deadlines *d, int fd, uint64_t ms)
{
    kiln_deadline *of = malloc(sizeof *of);
    if (!of) return NULL;
    *of = (kiln_deadline){.fd = fd, .due_ns = due_in(ms)};
    (void)pthread_mutex_lock(&d->lock);
    of->after = d->first;
    if (d->first) d->first->before = of;
    d->first = of;
    d->n++;
    (void)pthread_mutex_unlock(&d->lock);
    return of;
}

void kiln_deadlines_set(kiln_deadlines *d, kiln_deadline *of, uint64_t ms)
{
    (void)pthread_mutex_lock(&d->lock);
    of->due_ns = due_in(ms);
    (void)pthread_mutex_unlock(&d->lock);
}

void kiln_deadlines_remove(kiln_deadlines *d, kiln_deadline *of)
{
    (void)pthread_mutex_lock(&d->lock);
    if (of->before)
        of->before->after = of->after;
    else
        d->first = of->after;
    if (of->after) of->after->before = of->before;
    d->n--;
    (void)pthread_mutex_unlock(&d->lock);
    free(of);
}

uint32_t kiln_deadlines_sweep(kiln_deadlines *d)
{
    const uint64_t now = kiln_now_ns();
    uint32_t ended = 0;
    (void)pthread_mutex_lock(&d->lock);
    for (kiln_deadline *of = d->first; of; of = of->after) {
        if (of->due_ns > now) continue;
        (void)shutdown(of->fd, SHUT_RDWR); /* fails where the client has closed it already */
        of->due_ns = KILN_NO_DEADLINE;
        ended++;
    }
    (void)pthread_mutex_unlock(&d->lock);
    return ended;
}
