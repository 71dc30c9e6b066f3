/* containment -- the rules for a failed unit and the device under it. Pure functions: no process
 * and no clock.
 *
 * Problem. A unit that kills its process, or a GPU that fails, must cost as little as possible: not
 * the run, not other units, not the devices that work.
 *
 * Rules. A slot is a place for one worker process at a time. A GPU has one slot; the CPU has as
 * many as --workers says. A unit that fails with its worker or device, and not because of its
 * input, is tried again in a fresh process of the same slot, then in another slot, then given up.
 * The other slot must be another GPU; on the CPU all slots are the same device, so the same slot
 * will do if there is no other. A slot on which three different units failed is struck out and used
 * no more. If a unit later fails elsewhere too, the unit was the cause: its strikes are withdrawn,
 * so that a few bad units do not cost every GPU. */
#ifndef KILN_STAGES_ENGINE_DEVICES_CONTAINMENT_H
#define KILN_STAGES_ENGINE_DEVICES_CONTAINMENT_H

#include "base/status.h"
#include "schema/hash.h"
#include "stages/engine/devices/devices.h"

#include <stdbool.h>
#include <stdint.h>

enum { KILN_ATTEMPTS_MAX = 3, KILN_STRIKES_MAX = 3, KILN_SLOTS_MAX = 256 };
_Static_assert((int)KILN_SLOTS_MAX >= (int)KILN_DEVICES_MAX, "each device has a slot");

/* Says whether a fresh process or device may succeed after this status (KILN_E_DEVICE, _NOMEM,
 * _BUG). Every other status comes from the input, the disk or the cap and ends the run. */
bool kiln_failure_is_contained(kiln_status st);

typedef struct {
    unsigned n;
    bool one_device;             /* all slots are on the CPU */
    bool closed[KILN_SLOTS_MAX]; /* retired: gets no more units */
} kiln_slots;
/* Returns the number of slots that are not closed. */
unsigned kiln_slots_open(const kiln_slots *s);

/* The failures of one unit. Starts as {0}. */
typedef struct {
    uint8_t attempts; /* that failed */
    uint8_t slot;     /* of the last failure: KILN_SLOTS_MAX values */
    bool elsewhere;   /* it failed in more than one slot */
    /* it was in work together with another unit when their process died; that is no failed
     * attempt */
    bool is_suspect;
} kiln_trial;
/* Says whether this slot may make the next attempt. */
bool kiln_trial_fits(const kiln_trial *t, const kiln_slots *s, unsigned slot);
/* Counts a failure in this slot. Returns true if the unit is to be tried again, false if it is
 * given up. */
bool kiln_trial_fail(kiln_trial *t, const kiln_slots *s, unsigned slot);
/* Says whether no open slot may make the next attempt, so that the unit must be given up. */
bool kiln_trial_is_stranded(const kiln_trial *t, const kiln_slots *s);

/* The different units that failed in one slot. Starts as {0}. */
typedef struct {
    kiln_hash units[KILN_STRIKES_MAX];
    unsigned n;
} kiln_strikes;
/* Adds a unit, once. Returns true if there are now KILN_STRIKES_MAX: the slot is struck out. */
bool kiln_strikes_add(kiln_strikes *s, kiln_hash unit);
/* Removes the unit if it is there. */
void kiln_strikes_withdraw(kiln_strikes *s, kiln_hash unit);

#endif
