/* arrays -- describes the operations as data: which arrays each reads and writes, and one function
 * that calls any of them.
 *
 * The header of operation `op` lists its arrays in KILN_ARRAYS_op(A), one row each:
 *   A(IN | OUT | INOUT, field, elements)      field: the pointer in the operation's args;
 *                                             `elements` may use `a`, the args; an array whose
 *                                             pointer is NULL is skipped
 *   A(OUT_USED, field, elements, used)        an output of `elements` elements, of which the first
 *                                             *used are defined afterwards; `used` is an OUT array
 *                                             of the same operation
 * kiln_view and kiln_prune_rules are not arrays: they are host memory for both siblings, read
 * before the call returns. The runner copies arrays to a device and back by this list (runner.h),
 * and the test of same bits runs every operation by it.
 */
#ifndef KILN_KERNELS_ARRAYS_H
#define KILN_KERNELS_ARRAYS_H

#include "base/extern_c.h"
#include "kernels/ops.h"

KILN_C_BEGIN

typedef enum {
#define OP(op) KILN_OP_##op,
    KILN_OP_MAP(OP)
#undef OP
        KILN_OP_COUNT
} kiln_op_id;

typedef enum { KILN_ARRAY_IN = 1, KILN_ARRAY_OUT = 2, KILN_ARRAY_INOUT = 3 } kiln_array_direction;

typedef struct {
    const char *name;
    kiln_array_direction direction;
    size_t field; /* offset of its pointer in the args */
    size_t elem;  /* bytes of one element */
    uint64_t elements;
    const uint64_t *used; /* NULL: all elements */
} kiln_op_array;

/* no operation has more: arrays.c asserts it */
enum { KILN_OP_ARRAYS_MAX = 13, KILN_OP_ARGS_BYTES_MAX = 512 };

const char *kiln_op_name(kiln_op_id op);
/* its number, which another version may change; -1: there is none of that name */
int kiln_op_find(const char *name);
size_t kiln_op_args_bytes(kiln_op_id op); /* sizeof its args */
/* Fills out with the arrays that are not NULL, those with `used` last; returns how many there
 * are. */
unsigned kiln_op_arrays(kiln_op_id op, const void *args, kiln_op_array out[KILN_OP_ARRAYS_MAX]);
/* Calls ops->op(x, args, ...), with the work space rules of knn.h. */
kiln_status kiln_op_call(const kiln_ops *ops, kiln_op_id op, const kiln_exec *x, const void *args,
                         void *work, size_t *work_bytes, kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
