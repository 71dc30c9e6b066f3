/* deadlines -- ends connections that take too long, however busy they look: a client that sends a
 * byte every few seconds is never idle, so a time-out of idleness alone would let it hold its
 * connection for ever.
 *
 * Each connection has at most one deadline: for the head of its next request, or for taking the
 * answer. While a request is being worked on it has none. All functions but _init and _release are
 * for any thread. */
#ifndef KILN_STAGES_SERVE_DEADLINES_H
#define KILN_STAGES_SERVE_DEADLINES_H

#include "base/status.h"

#include <pthread.h>
#include <stdint.h>

#define KILN_NO_DEADLINE UINT64_MAX

typedef struct kiln_deadline {
    int fd;          /* of the connection */
    uint64_t due_ns; /* kiln_now_ns; KILN_NO_DEADLINE */
    struct kiln_deadline *before, *after;
} kiln_deadline;

typedef struct {
    pthread_mutex_t lock; /* guards all that follows, and what is in the list */
    kiln_deadline *first;
    uint32_t n;
} kiln_deadlines;

kiln_status kiln_deadlines_init(kiln_deadlines *d, kiln_error *err) KILN_MUST_CHECK;
void kiln_deadlines_release(kiln_deadlines *d); /* when the list is empty */
/* Adds a connection that ends in so many milliseconds unless that is changed. NULL: no memory. */
kiln_deadline *kiln_deadlines_add(kiln_deadlines *d, int fd, uint64_t ms);
/* ms: KILN_NO_DEADLINE, or from now on. */
void kiln_deadlines_set(kiln_deadlines *d, kiln_deadline *of, uint64_t ms);
/* Takes it out and frees it: before the connection's descriptor is closed, so that no other one of
 * its number is meant. */
void kiln_deadlines_remove(kiln_deadlines *d, kiln_deadline *of);
/* Shuts down the connections whose time is over; who reads from them sees their end. Returns how
 * many. */
uint32_t kiln_deadlines_sweep(kiln_deadlines *d);

#endif
