/* prune_off -- thresholds with every rule of rules.def switched off, for tests that switch some on. */
#ifndef KILN_TESTS_PRUNE_OFF_H
#define KILN_TESTS_PRUNE_OFF_H

#include "kernels/prune/prune.h"

#include <math.h>
#include <string.h>

static inline void prune_floats_off(float *at, size_t n)
{
    for (size_t i = 0; i < n; i++) at[i] = NAN;
}

static inline kiln_prune_rules prune_rules_off(void)
{
    kiln_prune_rules r;
    memset(&r, 0, sizeof r);
#define PRUNE_OFF_0(id)
#define PRUNE_OFF_1(id) r.id = NAN;
#define PRUNE_OFF_2(id) prune_floats_off(r.id, 2);
#define PRUNE_OFF_4(id) prune_floats_off(r.id, 4);
#define PRUNE_OFF_6(id) prune_floats_off(r.id, 6);
#define RULE(number, key, id, option, kind, arg, def, range, policy, n, looks_at, help) PRUNE_OFF_##n(id)
#include "kernels/prune/rules.def"
    return r;
}

#endif
