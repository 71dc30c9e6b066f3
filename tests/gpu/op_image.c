#include "tests/gpu/op_image.h"

#include "base/carve.h"
#include "kernels/device.h"
#include "kernels/violation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 256 };

static void *pointer_in(const void *args, size_t field)
{
    void *p;
    memcpy(&p, (const char *)args + field, sizeof p);
    return p;
}

/* The pointers of the arrays, as they lie at `base`. */
static void point_at(const op_image *i, unsigned char *base, unsigned char *args)
{
    for (unsigned k = 0; k < i->n; k++) {
        const void *p = base + i->pieces[k].at;
        memcpy(args + i->arrays[k].field, &p, sizeof p);
    }
}

static unsigned piece_count(const op_image *i) { return i->n + 2; }
static op_piece *violation_piece(op_image *i) { return &i->pieces[i->n]; }
static op_piece *work_piece(op_image *i) { return &i->pieces[i->n + 1]; }

static bool lay_out(op_image *i)
{
    kiln_carve c = {0};
    (void)kiln_take(&c, GUARD, 1);
    for (unsigned k = 0; k < piece_count(i); k++) {
        op_piece *p = &i->pieces[k];
        p->bytes = k < i->n    ? i->arrays[k].elements * i->arrays[k].elem
                   : k == i->n ? sizeof(uint64_t)
                               : i->work_bytes;
        const size_t shift = k < i->n ? i->shift : 0;
        (void)kiln_take(&c, p->bytes + shift, 1);
        if (c.used == SIZE_MAX) return false;
        p->at = c.used - p->bytes;
        (void)kiln_take(&c, GUARD, 1);
    }
    i->bytes = (c.used + 255) & ~(size_t)255;
    return c.used != SIZE_MAX;
}

static kiln_status prepare(op_image *out, kiln_op_id op, const void *args, size_t work_bytes,
                           size_t shift, kiln_error *err)
{
    const uint64_t no_violation = KILN_VIOLATION_NONE;
    *out = (op_image){.op = op, .work_bytes = work_bytes, .shift = shift};
    if (kiln_op_args_bytes(op) > sizeof out->args)
        return kiln_fail(err, KILN_E_BUG, "op_image: arguments too large");
    memcpy(out->args, args, kiln_op_args_bytes(op));
    out->n = kiln_op_arrays(op, args, out->arrays);
    if (!lay_out(out)) return kiln_fail(err, KILN_E_NOMEM, "op_image: too large");
    out->block = aligned_alloc(256, out->bytes);
    if (!out->block) return kiln_fail(err, KILN_E_NOMEM, "op_image: no %zu bytes", out->bytes);
    memset(out->block, OP_POISON, out->bytes);
    for (unsigned k = 0; k < out->n; k++)
        if ((out->arrays[k].direction & KILN_ARRAY_IN) && out->pieces[k].bytes > 0)
            memcpy(out->block + out->pieces[k].at, pointer_in(args, out->arrays[k].field),
                   out->pieces[k].bytes);
    memcpy(out->block + violation_piece(out)->at, &no_violation, sizeof no_violation);
    point_at(out, out->block, out->args);
    /* counts of used elements are in the block, too */
    out->n = kiln_op_arrays(op, out->args, out->arrays);
    return KILN_OK;
}

kiln_status op_image_prepare(op_image *out, kiln_op_id op, const void *args, size_t work_bytes,
                             kiln_error *err)
{
    return prepare(out, op, args, work_bytes, 0, err);
}

void op_image_release(op_image *i)
{
    free(i->block);
    i->block = NULL;
}

/* ---- the call -------------------------------------------------------------------------------- */

static void stepped(const sibling *s, const char *step)
{
    if (s->after_step) s->after_step(s->context, step);
}

#define STEP(name, call)  \
    do {                  \
        st = (call);      \
        stepped(s, name); \
        KILN_GO(st);      \
    } while (0)

/* On a copy of the block in device memory, which comes back whole. Failures of the operation are
 * the image's. */
static kiln_status run_on_device(op_image *i, const sibling *s, size_t work_bytes, kiln_error *err)
{
    kiln_status st;
    kiln_exec x = s->exec;
    void *base = NULL;
    _Alignas(16) unsigned char args[OP_ARGS_MAX];
    memcpy(args, i->args, sizeof args);
    STEP("kiln_device_alloc", kiln_device_alloc(x.device, i->bytes, &base, err));
    STEP("kiln_device_fill", kiln_device_fill(&x, base, OP_POISON, i->bytes, err));
    STEP("kiln_device_copy_in", kiln_device_copy_in(&x, base, i->block, i->bytes, err));
    point_at(i, base, args);
    x.violation = (uint64_t *)((char *)base + violation_piece(i)->at);
    i->status = kiln_op_call(s->ops, i->op, &x, args, (char *)base + work_piece(i)->at, &work_bytes,
                             &i->err);
    stepped(s, kiln_op_name(i->op));
    if (i->status == KILN_OK) i->status = kiln_device_wait(&x, &i->err);
    stepped(s, "kiln_device_wait");
    /* the context may be lost: nothing more comes back */
    if (i->status == KILN_E_DEVICE) goto done;
    STEP("kiln_device_copy_out", kiln_device_copy_out(&x, i->block, base, i->bytes, err));
    STEP("kiln_device_wait", kiln_device_wait(&x, err));
done:
    kiln_device_free(x.device, base);
    stepped(s, "kiln_device_free");
    return st;
}

kiln_status op_image_run(op_image *out, const sibling *s, kiln_op_id op, const void *args,
                         size_t work_missing, kiln_error *err)
{
    size_t need = 0;
    uint64_t violation;
    *out = (op_image){.op = op};
    out->status = kiln_op_call(s->ops, op, &s->exec, args, NULL, &need, &out->err);
    stepped(s, kiln_op_name(op));
    if (out->status != KILN_OK) return KILN_OK; /* it refuses these arguments */
    if (need < work_missing)
        return kiln_fail(err, KILN_E_BUG, "op_image: the workspace has %zu bytes only", need);
    need -= work_missing;
    KILN_TRY(prepare(out, op, args, need, s->shift, err));
    if (s->exec.device >= 0)
        KILN_TRY(run_on_device(out, s, need, err));
    else
        out->status = kiln_op_call(s->ops, op, &s->exec, out->args,
                                   out->block + work_piece(out)->at, &need, &out->err);
    memcpy(&violation, out->block + violation_piece(out)->at, sizeof violation);
    if (out->status == KILN_OK) out->status = kiln_violation_fail(violation, &out->err);
    return KILN_OK;
}

/* ---- looking at it --------------------------------------------------------------------------- */

static void describe(const op_image *a, const op_image *b, unsigned k, size_t at,
                     char why[OP_WHY_MAX])
{
    const kiln_op_array *array = &a->arrays[k];
    const size_t word = at / 4 * 4, element = at / array->elem;
    uint32_t left = 0, right = 0;
    const size_t bytes = a->pieces[k].bytes - word < 4 ? a->pieces[k].bytes - word : 4;
    memcpy(&left, a->block + a->pieces[k].at + word, bytes);
    memcpy(&right, b->block + b->pieces[k].at + word, bytes);
    snprintf(why, OP_WHY_MAX, "%s[%zu] byte %zu: %08x, not %08x%s", array->name, element,
             word - element * array->elem, right, left,
             right == 0xA5A5A5A5u ? " (never written)" : "");
}

bool op_image_same(const op_image *a, const op_image *b, char why[OP_WHY_MAX])
{
    if (a->status != b->status) {
        snprintf(why, OP_WHY_MAX, "%s (%.200s), not %s (%.200s)", kiln_status_name(b->status),
                 b->err.msg, kiln_status_name(a->status), a->err.msg);
        return false;
    }
    for (unsigned k = 0; k < a->n && a->status == KILN_OK; k++) {
        const kiln_op_array *array = &a->arrays[k];
        if (!(array->direction & KILN_ARRAY_OUT)) continue;
        /* used counts are arrays themselves, and come first: they are equal here */
        size_t bytes = a->pieces[k].bytes;
        if (array->used && *array->used < array->elements) bytes = *array->used * array->elem;
        const unsigned char *left = a->block + a->pieces[k].at, *right = b->block + b->pieces[k].at;
        if (bytes == 0 || memcmp(left, right, bytes) == 0) continue;
        size_t at = 0;
        while (left[at] == right[at]) at++;
        describe(a, b, k, at, why);
        return false;
    }
    return true;
}

static bool is_poison(const unsigned char *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (p[i] != OP_POISON) return false;
    return true;
}

bool op_image_kept(const op_image *i, const void *args, char why[OP_WHY_MAX])
{
    size_t from = 0;
    if (!i->block) return true;
    for (unsigned k = 0; k < piece_count(i); k++) {
        const op_piece *p = &i->pieces[k];
        const char *name = k < i->n    ? i->arrays[k].name
                           : k == i->n ? "the violation word"
                                       : "the workspace";
        if (!is_poison(i->block + from, p->at - from)) {
            snprintf(why, OP_WHY_MAX, "something was written outside the arrays, before %s", name);
            return false;
        }
        from = p->at + p->bytes;
        if (k < i->n && i->arrays[k].direction == KILN_ARRAY_IN && p->bytes > 0 &&
            memcmp(i->block + p->at, pointer_in(args, i->arrays[k].field), p->bytes) != 0) {
            snprintf(why, OP_WHY_MAX, "the input %s was changed", name);
            return false;
        }
    }
    if (is_poison(i->block + from, i->bytes - from)) return true;
    snprintf(why, OP_WHY_MAX, "something was written behind the workspace");
    return false;
}
