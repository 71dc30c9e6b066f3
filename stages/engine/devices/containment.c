/* The rules of retry, giving up and striking out, which the opening comment of containment.h
 * lists. */
#include "stages/engine/devices/containment.h"

bool kiln_failure_is_contained(kiln_status st)
{
    return st == KILN_E_DEVICE || st == KILN_E_NOMEM || st == KILN_E_BUG;
}

unsigned kiln_slots_open(const kiln_slots *s)
{
    unsigned n = 0;
    for (unsigned i = 0; i < s->n; i++) n += !s->closed[i];
    return n;
}

static bool other_is_open(const kiln_slots *s, unsigned slot)
{
    for (unsigned i = 0; i < s->n; i++)
        if (i != slot && !s->closed[i]) return true;
    return false;
}

bool kiln_trial_fits(const kiln_trial *t, const kiln_slots *s, unsigned slot)
{
    if (slot >= s->n || s->closed[slot]) return false;
    if (t->attempts == 0) return true;
    if (t->attempts == 1) return slot == t->slot || s->closed[t->slot];
    return slot != t->slot || (s->one_device && !other_is_open(s, slot));
}

bool kiln_trial_is_stranded(const kiln_trial *t, const kiln_slots *s)
{
    for (unsigned i = 0; i < s->n; i++)
        if (kiln_trial_fits(t, s, i)) return false;
    return true;
}

bool kiln_trial_fail(kiln_trial *t, const kiln_slots *s, unsigned slot)
{
    t->elsewhere = t->elsewhere || (t->attempts > 0 && t->slot != slot);
    t->slot = (uint8_t)slot;
    t->attempts++;
    return t->attempts < KILN_ATTEMPTS_MAX && !kiln_trial_is_stranded(t, s);
}

bool kiln_strikes_add(kiln_strikes *s, kiln_hash unit)
{
    for (unsigned i = 0; i < s->n; i++)
        if (kiln_hash_equal(s->units[i], unit)) return s->n == KILN_STRIKES_MAX;
    if (s->n < KILN_STRIKES_MAX) s->units[s->n++] = unit;
    return s->n == KILN_STRIKES_MAX;
}

void kiln_strikes_withdraw(kiln_strikes *s, kiln_hash unit)
{
    for (unsigned i = 0; i < s->n; i++) {
        if (!kiln_hash_equal(s->units[i], unit)) continue;
        s->units[i] = s->units[--s->n];
        return;
    }
}
