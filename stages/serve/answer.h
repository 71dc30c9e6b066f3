/* answer -- what is sent for a request: a status, a type and bytes in memory, shared by all
 * connections that it is sent to.
 *
 * A slow client keeps its answer in memory for as long as it takes. So all answers of a server are
 * counted together in a kiln_answer_pool, and beyond its limit no further one is made: the client
 * is told to come again. */
#ifndef KILN_STAGES_SERVE_ANSWER_H
#define KILN_STAGES_SERVE_ANSWER_H

#include "base/memory.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    atomic_uint_fast64_t bytes; /* of all answers that live */
    uint64_t limit;
} kiln_answer_pool;

/* What the maker of an answer fills in. Empty: 200, HTML, not to be kept by the browser. */
typedef struct {
    unsigned status;      /* of HTTP; 0: 200 */
    const char *type;     /* of the body, static; NULL: text/html */
    const char *location; /* of a redirect, static; NULL: none */
    const char *policy;   /* Content-Security-Policy, static; NULL: nothing may be loaded or run */
    bool immutable;       /* the address names the content: the browser may keep it */
    bool again;           /* Retry-After: the client may come again in a second */
    kiln_buffer body;
} kiln_reply;

typedef struct {
    atomic_uint users;
    kiln_answer_pool *pool;
    kiln_reply reply; /* not changed any more */
} kiln_answer;

/* Makes an answer with one user of a reply, whose body it takes, after a failure too. KILN_E_BUSY:
 * the pool is full. The pool must outlive the answer. */
kiln_status kiln_answer_make(kiln_answer_pool *pool, kiln_reply *reply, kiln_answer **out,
                             kiln_error *err) KILN_MUST_CHECK;
/* Makes one with a line of text. KILN_E_NOMEM. */
kiln_status kiln_answer_text(kiln_answer_pool *pool, unsigned status, const char *text,
                             kiln_answer **out, kiln_error *err) KILN_MUST_CHECK;
/* Says that the pool would take an answer of this size now. */
bool kiln_answer_pool_takes(const kiln_answer_pool *pool, uint64_t bytes);
kiln_answer *kiln_answer_use(kiln_answer *a); /* one more user; any thread */
/* one less; the last frees it. Accepts NULL; any thread */
void kiln_answer_drop(void *answer);

#endif
