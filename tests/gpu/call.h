/* call -- what GPU tests do all the time and what has no business to fail: memory, and an operation
 * on host memory. */
#ifndef KILN_TESTS_GPU_CALL_H
#define KILN_TESTS_GPU_CALL_H

#include "kernels/arrays.h"

#include <stddef.h>

/* Zeroed; free() it. Never NULL: without memory the test program ends. */
void *call_memory(uint64_t count, size_t elem);
/* On the CPU; a failure ends the test program with its sentence. */
void call_now(const kiln_ops *ops, const kiln_exec *x, kiln_op_id op, const void *args);
_Noreturn void call_off(const char *what, const char *why);

#endif
