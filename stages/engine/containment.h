/* containment -- what a failed unit and the device under it are granted: pure rules, no process and no clock.
 *
 * A slot is a place for one worker process at a time: a GPU has one, the CPU as many as --workers says. A unit that fails
 * with its worker or device (not by its input) is tried again in a fresh process of the same slot, then in another slot, then
 * given up. On the CPU every slot is the same device, so where there is no other the same will do; a GPU must be another one.
 *
 * A slot on which three different units failed is struck out. A unit that then failed elsewhere too was itself the cause: its
 * strikes are withdrawn, so that a few bad units do not take every GPU with them. */
#ifndef KILN_STAGES_CONTAINMENT_H
#define KILN_STAGES_CONTAINMENT_H

#include "base/status.h"
#include "schema/hash.h"
#include "stages/engine/devices.h"

#include <stdbool.h>
#include <stdint.h>

enum { KILN_ATTEMPTS_MAX = 3, KILN_STRIKES_MAX = 3, KILN_SLOTS_MAX = KILN_DEVICES_MAX };

/* Is this a failure of process or device, which a fresh one may not have? Else it is the input's, the disk's or the cap's, and
 * ends the run. */
bool kiln_failure_is_contained(kiln_status st);

typedef struct {
    unsigned n;
    bool one_device;             /* the CPU: all slots are */
    bool closed[KILN_SLOTS_MAX]; /* retired: takes nothing any more */
} kiln_slots;
unsigned kiln_slots_open(const kiln_slots *s); /* how many are not closed */

/* One unit's story; {0} at first. */
typedef struct {
    uint8_t attempts; /* that failed */
    uint8_t slot;     /* where the last of them did */
    bool elsewhere;   /* it failed in more than one slot */
    bool doubtful;    /* it was in work beside another when their process died: no attempt */
} kiln_trial;
/* May this slot take it next? */
bool kiln_trial_fits(const kiln_trial *t, const kiln_slots *s, unsigned slot);
/* It failed there. true: it is to be tried again; false: it is given up. */
bool kiln_trial_fail(kiln_trial *t, const kiln_slots *s, unsigned slot);
/* No open slot may take it: it must be given up. */
bool kiln_trial_is_stranded(const kiln_trial *t, const kiln_slots *s);

/* The different units that failed in a slot; {0} at first. */
typedef struct {
    kiln_hash units[KILN_STRIKES_MAX];
    unsigned n;
} kiln_strikes;
bool kiln_strikes_add(kiln_strikes *s, kiln_hash unit); /* true: three, the slot is struck out */
void kiln_strikes_withdraw(kiln_strikes *s, kiln_hash unit);

#endif
