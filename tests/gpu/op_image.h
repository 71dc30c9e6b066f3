/* op_image -- one call of an operation with all its arrays, the workspace and the fault word in one
 * block of memory, so that everything it wrote can be looked at: what is not input is poisoned
 * beforehand, and there is poison between the pieces that nobody may touch. From kernels/arrays.h
 * alone, for any operation and sibling. */
#ifndef KILN_TESTS_GPU_OP_IMAGE_H
#define KILN_TESTS_GPU_OP_IMAGE_H

#include "kernels/arrays.h"

#include <stdbool.h>
#include <stddef.h>

enum { OP_POISON = 0xA5, OP_ARGS_MAX = 512, OP_WHY_MAX = 512 };

/* Who computes, and where: exec.device -1 is host memory. */
typedef struct {
    const kiln_ops *ops;
    kiln_exec exec;
    /* Called after each step (the operation, each function of kernels/device.h) with its name;
     * NULL: not. */
    void (*after_step)(void *context, const char *step);
    void *context;
    /* arrays lie so many bytes behind a multiple of 256; a multiple of 8, below 256 */
    size_t shift;
} sibling;

typedef struct {
    size_t at, bytes;
} op_piece;

typedef struct {
    kiln_op_id op;
    kiln_status status; /* of the operation, of waiting for it, of the fault it left */
    kiln_error err;
    unsigned n;                               /* arrays */
    kiln_op_array arrays[KILN_OP_ARRAYS_MAX]; /* of args, below */
    op_piece pieces[KILN_OP_ARRAYS_MAX + 2];  /* the arrays, the fault word, the workspace */
    unsigned char *block;                     /* owned; as it was after the call, in host memory */
    size_t bytes, work_bytes, shift;
    _Alignas(16) unsigned char args[OP_ARGS_MAX]; /* the caller's, with pointers into block */
} op_image;

/* The block as it is before a call: for those who make the call themselves. */
kiln_status op_image_prepare(op_image *out, kiln_op_id op, const void *args, size_t work_bytes,
                             kiln_error *err) KILN_MUST_CHECK;
/* Runs the operation on a copy of the arrays that `args` point to; the call's own failure is in
 * out->status. work_missing: so many bytes less workspace are given than were asked for. Release
 * also after a failure. */
kiln_status op_image_run(op_image *out, const sibling *s, kiln_op_id op, const void *args,
                         size_t work_missing, kiln_error *err) KILN_MUST_CHECK;
void op_image_release(op_image *i);

/* False when the two calls ended or wrote differently: every byte that the operation says it
 * writes. */
bool op_image_same(const op_image *a, const op_image *b, char why[OP_WHY_MAX]);
/* False when something was changed that is not the operation's to change: its inputs, the poison
 * between the pieces. */
bool op_image_kept(const op_image *i, const void *args, char why[OP_WHY_MAX]);

#endif
