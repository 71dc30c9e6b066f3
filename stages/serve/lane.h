/* lane -- a thread that makes answers one after the other, with a queue of bounded length in front
 * of it, a connection to the manifest, and a few answers that it has made.
 *
 * What two requests have in common is made once: an answer is kept as long as the data that it was
 * made of do not change, or, if its address names its content, until the room is needed. */
#ifndef KILN_STAGES_SERVE_LANE_H
#define KILN_STAGES_SERVE_LANE_H

#include "stages/serve/routes.h"

#include <pthread.h>

enum { KILN_LANE_KEEPS = 16 /* answers, */ };
#define KILN_LANE_KEEPS_BYTES ((uint64_t)32 << 20) /* of together so many bytes at most */

typedef struct kiln_serve_job {
    const kiln_route *route;
    char path[KILN_TARGET_MAX + 1]; /* behind the token */
    uint32_t sh_degree;
    /* set before `done` is called; NULL: there was no memory even for a sentence */
    kiln_answer *answer;
    void (*done)(
        /* called once by the lane's thread if it was accepted; the job is the caller's again */
        struct kiln_serve_job *job);
    void *context;
    struct kiln_serve_job *next;
} kiln_serve_job;

typedef struct {
    char key[KILN_TARGET_MAX + 16]; /* "": free */
    uint64_t version;               /* of the state; 0: of all */
    uint64_t used;                  /* when: the least is dropped first */
    kiln_answer *answer;
} kiln_kept_answer;

typedef struct {
    pthread_t thread;
    bool runs;
    pthread_mutex_t lock; /* guards the next five */
    pthread_cond_t wake;
    kiln_serve_job *first, *last;
    uint32_t waiting;
    bool stops;
    uint32_t queue_max;
    /* The thread's own: */
    kiln_bake_state state;
    kiln_answer_pool *pool;
    unsigned threads;
    kiln_kept_answer kept[KILN_LANE_KEEPS];
    uint64_t clock;
} kiln_lane;

typedef struct {
    const char *manifest;
    bool allow_network;
    kiln_answer_pool *pool; /* outlives the lane */
    unsigned threads;       /* for one answer */
    uint32_t queue_max;
} kiln_lane_options;

/* Starts the thread. KILN_E_NOMEM: the system has none. */
kiln_status kiln_lane_start(kiln_lane *l, const kiln_lane_options *o,
                            kiln_error *err) KILN_MUST_CHECK;
/* Puts a job into the queue. False: the queue is full or the lane stops; nothing is called then.
 * Any thread. */
bool kiln_lane_add(kiln_lane *l, kiln_serve_job *job);
/* Answers what waits with 503, ends the thread and closes the manifest; from now on kiln_lane_add
 * refuses every job. Both accept a lane that was never started ({0}). */
void kiln_lane_stop(kiln_lane *l);
void kiln_lane_release(kiln_lane *l); /* when no thread can call kiln_lane_add any more */

#endif
