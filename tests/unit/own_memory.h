/* own_memory -- for tests of how much memory a process takes: AddressSanitizer's shadow, red zones
 * and quarantine are memory of the process, too. */
#ifndef KILN_TESTS_OWN_MEMORY_H
#define KILN_TESTS_OWN_MEMORY_H

#include "base/carve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Skips the test in a build with AddressSanitizer. */
static inline void needs_own_memory(void)
{
#ifdef KILN_ADDRESS_SANITIZER
    skip();
#endif
}

#endif
