/* schedule -- which unit is next for which slot (containment.h). A data structure alone: it knows neither processes nor time.
 *
 * Bigger cost first. Units of one group (a number that is not 0) share what a worker keeps, so one slot takes them, in their
 * order; the group counts with the sum of their costs. A slot that would idle while only groups that others hold are left
 * takes from the far end of the group with most left. Units that came back are handed out before all others. */
#ifndef KILN_STAGES_SCHEDULE_H
#define KILN_STAGES_SCHEDULE_H

#include "stages/engine/containment.h"

#include "base/status.h"

typedef struct {
    uint64_t cost, group;
} kiln_schedule_item;

typedef struct kiln_schedule kiln_schedule;

/* Items are called by their place in the list, 0 to n - 1. slots is borrowed and followed: a slot that its owner closes takes
 * nothing more, and what it held is free for others. */
kiln_status kiln_schedule_new(const kiln_schedule_item *items, uint64_t n, const kiln_slots *slots, kiln_schedule **out,
                              kiln_error *err) KILN_MUST_CHECK;
void kiln_schedule_free(kiln_schedule *s); /* NULL: nothing */

uint64_t kiln_schedule_waiting(const kiln_schedule *s); /* items that no slot has */
/* The next for this slot; false: there is none. idle: it has nothing else, so it may take of another's group. */
bool kiln_schedule_next(kiln_schedule *s, unsigned slot, bool idle, uint64_t *item);
/* An item that a slot had and did not begin: as if it had never been handed out. */
void kiln_schedule_return(kiln_schedule *s, uint64_t item);
/* One of several that a process had in work when it died: handed out again as if it had not been, to be computed alone, so that the
 * one that is at fault shows. */
void kiln_schedule_doubt(kiln_schedule *s, uint64_t item);
bool kiln_schedule_is_doubtful(const kiln_schedule *s, uint64_t item); /* that, or one that failed */
/* One that failed there: it waits for another attempt, or false: it is given up. */
bool kiln_schedule_fail(kiln_schedule *s, uint64_t item, unsigned slot);
/* Takes out an item that waits for another attempt and that no open slot may take any more. */
bool kiln_schedule_stranded(kiln_schedule *s, uint64_t *item);
/* Is there an item that came back which this slot may take and none of those in `others`? */
bool kiln_schedule_needs(const kiln_schedule *s, unsigned slot, const bool others[KILN_SLOTS_MAX]);
const kiln_trial *kiln_schedule_trial(const kiln_schedule *s, uint64_t item);

#endif
