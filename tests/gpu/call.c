#include "tests/gpu/call.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void call_off(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

void *call_memory(uint64_t count, size_t elem)
{
    void *p = NULL;
    kiln_error err = {0};
    if (kiln_alloc(&p, count, elem, "a test's array", &err) != KILN_OK)
        call_off("call_memory", err.msg);
    return p;
}

void call_now(const kiln_ops *ops, const kiln_exec *x, kiln_op_id op, const void *args)
{
    kiln_error err = {0};
    size_t bytes = 0;
    kiln_status st = kiln_op_call(ops, op, x, args, NULL, &bytes, &err);
    void *work = call_memory(bytes, 1);
    if (st == KILN_OK) st = kiln_op_call(ops, op, x, args, work, &bytes, &err);
    free(work);
    if (st != KILN_OK) call_off(kiln_op_name(op), err.msg);
}
