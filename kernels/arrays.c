/* arrays -- every operation's list of arrays, and its call, by number. */
#include "kernels/arrays.h"

#include <stddef.h>
#include <string.h>

/* One function an operation: its arrays, and its call with the args' own type. */
#define ROW_IN(field_, elements_) ROW(KILN_ARRAY_IN, field_, elements_, NULL)
#define ROW_OUT(field_, elements_) ROW(KILN_ARRAY_OUT, field_, elements_, NULL)
#define ROW_INOUT(field_, elements_) ROW(KILN_ARRAY_INOUT, field_, elements_, NULL)
#define ROW_OUT_USED(field_, elements_, used_) ROW(KILN_ARRAY_OUT, field_, elements_, used_)
#define ROW(direction_, field_, elements_, used_)                                                 \
    if (a->field_)                                                                                \
        out[n++] = (kiln_op_array){.name = #field_,                                               \
                                   .direction = direction_,                                       \
                                   .field = (size_t)((const char *)&a->field_ - (const char *)a), \
                                   .elem = sizeof *a->field_,                                     \
                                   .elements = (elements_),                                       \
                                   .used = (used_)};
#define A(direction, ...) ROW_##direction(__VA_ARGS__)
#define OP(op)                                                                              \
    static unsigned arrays_of_##op(const void *args, kiln_op_array *out)                    \
    {                                                                                       \
        const kiln_##op##_args *a = args;                                                   \
        unsigned n = 0;                                                                     \
        KILN_ARRAYS_##op(A) return n;                                                       \
    }                                                                                       \
    static kiln_status call_##op(const kiln_ops *ops, const kiln_exec *x, const void *args, \
                                 void *work, size_t *work_bytes, kiln_error *err)           \
    {                                                                                       \
        return ops->op(x, (const kiln_##op##_args *)args, work, work_bytes, err);           \
    }
KILN_OP_MAP(OP)
#undef OP

#define ONE(...) +1
#define OP(op)                                                                                 \
    _Static_assert(0 KILN_ARRAYS_##op(ONE) <= KILN_OP_ARRAYS_MAX, #op " has too many arrays"); \
    _Static_assert(sizeof(kiln_##op##_args) <= KILN_OP_ARGS_BYTES_MAX,                         \
                   "the arguments of " #op " are too large");
KILN_OP_MAP(OP)
#undef OP
#undef ONE

static const struct {
    const char *name;
    size_t args_bytes;
    unsigned (*arrays)(const void *args, kiln_op_array *out);
    kiln_status (*call)(const kiln_ops *ops, const kiln_exec *x, const void *args, void *work,
                        size_t *work_bytes, kiln_error *err);
} operations[KILN_OP_COUNT] = {
#define OP(op) {#op, sizeof(kiln_##op##_args), arrays_of_##op, call_##op},
    KILN_OP_MAP(OP)
#undef OP
};

const char *kiln_op_name(kiln_op_id op) { return operations[op].name; }

int kiln_op_find(const char *name)
{
    for (int op = 0; op < KILN_OP_COUNT; op++)
        if (strcmp(operations[op].name, name) == 0) return op;
    return -1;
}

size_t kiln_op_args_bytes(kiln_op_id op) { return operations[op].args_bytes; }
unsigned kiln_op_arrays(kiln_op_id op, const void *args, kiln_op_array out[KILN_OP_ARRAYS_MAX])
{
    return operations[op].arrays(args, out);
}

kiln_status kiln_op_call(const kiln_ops *ops, kiln_op_id op, const kiln_exec *x, const void *args,
                         void *work, size_t *work_bytes, kiln_error *err)
{
    return operations[op].call(ops, x, args, work, work_bytes, err);
}
