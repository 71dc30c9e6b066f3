/* schedule -- decides which unit a slot (containment.h) computes next. It is a data structure: it
 * knows no processes and no time.
 *
 * Problem. Units of one group share what a worker keeps between units, so one slot should compute
 * them all. But at the end of a list no slot should be idle while another still has a long group.
 *
 * Layout. Units with a higher cost go first; a group counts with the sum of its costs. A slot takes
 * a group and computes it in list order. If only groups that other slots have taken are left, an
 * idle slot takes units from the far end of the group with the most cost left. Units that came back
 * are handed out before all others.
 *
 * Units are called items here: item i is the i-th of the list that kiln_schedule_new was given. All
 * calls are for one thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_SCHEDULE_H
#define KILN_STAGES_ENGINE_PARENT_SCHEDULE_H

#include "stages/engine/devices/containment.h"

#include "base/status.h"

typedef struct {
    uint64_t cost, group; /* as in kiln_unit; group 0: none */
} kiln_schedule_item;

typedef struct kiln_schedule kiln_schedule;

/* Makes the schedule of n items. `items` is copied. `slots` is borrowed and read by every later
 * call: when its owner closes a slot, the slot gets no more items, and the group that it had taken
 * is free for others. KILN_E_NOMEM. */
kiln_status kiln_schedule_new(const kiln_schedule_item *items, uint64_t n, const kiln_slots *slots,
                              kiln_schedule **out, kiln_error *err) KILN_MUST_CHECK;
void kiln_schedule_free(kiln_schedule *s); /* NULL: does nothing */

/* Returns the number of items that no slot has: never handed out, or come back. */
uint64_t kiln_schedule_waiting(const kiln_schedule *s);
/* Hands out the next item for this slot; returns false if there is none. idle: the slot has nothing
 * in work, so it may take an item from another slot's group. */
bool kiln_schedule_next(kiln_schedule *s, unsigned slot, bool idle, uint64_t *item);
/* From now on, items of `limit` and above wait: a slot takes no new group that begins with one. It
 * is for items in no group, of which the lower one has at least the cost of the higher: they are
 * handed out in their order. Items that came back do not wait. Without a call nothing waits. */
void kiln_schedule_limit(kiln_schedule *s, uint64_t limit);
/* Takes back an item that a slot had not begun, as if it had never been handed out. */
void kiln_schedule_return(kiln_schedule *s, uint64_t item);
/* Takes back one of several items that a process had in work when it died. Any of them may be the
 * cause. It counts as no attempt; the item is marked suspect, so that the caller has it computed
 * alone and the cause shows. */
void kiln_schedule_suspect(kiln_schedule *s, uint64_t item);
/* Says whether an item must be computed alone: it is suspect or has failed before. */
bool kiln_schedule_is_suspect(const kiln_schedule *s, uint64_t item);
/* Counts a failure of the item in this slot. Returns true if the item waits for another attempt,
 * false if it is given up. */
bool kiln_schedule_fail(kiln_schedule *s, uint64_t item, unsigned slot);
/* Takes out an item that waits for another attempt although no open slot may make it. Returns false
 * if there is none. */
bool kiln_schedule_stranded(kiln_schedule *s, uint64_t *item);
/* Says whether this slot is needed: an item that came back may go to this slot and to none of the
 * slots in `others`. */
bool kiln_schedule_needs(const kiln_schedule *s, unsigned slot, const bool others[KILN_SLOTS_MAX]);
/* Returns the failures of an item: borrowed. */
const kiln_trial *kiln_schedule_trial(const kiln_schedule *s, uint64_t item);

#endif
