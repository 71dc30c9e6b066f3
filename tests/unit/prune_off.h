/* prune_off -- thresholds with every rule switched off, for tests that switch some on. */
#ifndef KILN_TESTS_PRUNE_OFF_H
#define KILN_TESTS_PRUNE_OFF_H

#include "kernels/prune/prune.h"

#include <stddef.h>
#include <string.h>

static inline kiln_prune_rules prune_rules_off(void)
{
    kiln_prune_rules r;
    memset(&r, 0, sizeof r);
    /* a float of ones alone is a NAN */
    memset(&r, 0xff, offsetof(kiln_prune_rules, min_scale_policy));
    return r;
}

#endif
