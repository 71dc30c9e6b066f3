/* open_round -- the round of a bake over hosts that is open: what its claim says (schema/claim.h),
 * checked, and which of its tasks have left a part. Both lie in a folder that may have come from
 * somebody else. */
#ifndef KILN_STAGES_FRONT_OPEN_ROUND_H
#define KILN_STAGES_FRONT_OPEN_ROUND_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { KILN_ROUND_TASKS_MAX = 100000 };

typedef struct {
    bool there;        /* a round is open; else all else is empty */
    const char *stage; /* of the stage graph; "" */
    char key[33];      /* of the plan, in hexadecimal digits */
    uint32_t tasks;    /* 1 .. KILN_ROUND_TASKS_MAX: what was asked for, or one for each due unit */
    uint64_t units, due;
    char what[96];
} kiln_open_round;

/* KILN_E_INPUT: what lies there is no claim, or of no stage, or has more tasks than
 * KILN_ROUND_TASKS_MAX. */
kiln_status kiln_open_round_read(const char *manifest, kiln_open_round *out,
                                 kiln_error *err) KILN_MUST_CHECK;

typedef struct {
    uint32_t *task; /* rising, from 1; owned */
    uint32_t n;
} kiln_task_list;

/* The tasks of the round that have no part in this folder. What is there under a part's name and is
 * no regular file does not count. fd: of the folder; it stays open. path: for sentences. */
kiln_status kiln_open_round_missing(const kiln_open_round *round, int fd, const char *path,
                                    kiln_task_list *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_task_list_release(kiln_task_list *l);

#endif
