/* runner -- runs operations on arrays in host memory, wherever they compute: the CPU sibling in place, a CUDA sibling on
 * copies in device memory. Whoever calls it needs no CUDA and gets the same bits from both (raster's picture included).
 *
 * A runner of a device owns two streams (exec.h) and one block of device memory, which grows up to `cap_bytes` and is reused; an
 * operation that needs more than that runs on the CPU instead, and is counted. One thread at a time; several runners,
 * also of one device, may work side by side. The caller's current CUDA context stays as it was.
 * Who runs one operation after another on the same arrays may take device memory of its own, under the same cap.
 */
#ifndef KILN_KERNELS_RUNNER_H
#define KILN_KERNELS_RUNNER_H

#include "base/extern_c.h"
#include "kernels/arrays.h"
#include "kernels/device.h"

KILN_C_BEGIN

enum { KILN_RUNNER_CPU = -1 };

typedef struct {
    int device;         /* CUDA ordinal of this process, or KILN_RUNNER_CPU */
    unsigned threads;   /* of CPU siblings; 0 counts as 1 */
    bool sync;          /* CUDA: wait after every launch, so that a failure names its kernel */
    uint64_t cap_bytes; /* CUDA: most device memory that is allocated; 0: four fifths of what is free now */
} kiln_runner_options;

typedef struct {
    kiln_device_info device;   /* all zero for the CPU */
    uint64_t cap_bytes;        /* UINT64_MAX for the CPU; lowered where the device turns out to have less left */
    uint64_t peak_bytes;       /* largest device memory held so far, what was taken included */
    uint64_t block_bytes;      /* of that, what the block holds now: its own, which gives way to what is taken */
    uint64_t n_device, n_host; /* operations that ran on the device; on the CPU because the cap is too small for them */
    unsigned threads;          /* of CPU siblings, at least 1; for loops of whoever prepares their arrays, too */
} kiln_runner_info;

typedef struct kiln_runner kiln_runner;

/* KILN_E_DEVICE as kiln_device_open; kiln_runner_free. */
kiln_status kiln_runner_new(const kiln_runner_options *o, kiln_runner **out, kiln_error *err) KILN_MUST_CHECK;
void kiln_runner_free(kiln_runner *r); /* NULL: nothing */
kiln_runner_info kiln_runner_tell(const kiln_runner *r);
const char *kiln_runner_name(const kiln_runner *r);             /* "cpu", "cpu-avx2" or "cuda" */
void kiln_runner_set_threads(kiln_runner *r, unsigned threads); /* of CPU siblings from now on; 0 counts as 1 */
/* Device, stream and --sync of its operations, for what is no operation; the stream stays the runner's. */
kiln_exec kiln_runner_exec(const kiln_runner *r);
/* Gives back the host memory that it keeps as workspace for the next operation on the CPU. */
void kiln_runner_trim(kiln_runner *r);

/* Runs ops->op on host arrays; done when it returns. Errors as the operation's; after KILN_E_DEVICE the runner is lost. */
kiln_status kiln_runner_run(kiln_runner *r, kiln_op_id op, const void *args, kiln_error *err) KILN_MUST_CHECK;
/* Device memory that it would take: arrays and workspace; 0 on the CPU. The arrays need not be there, but their pointers
 * must be non-NULL where they will be. */
kiln_status kiln_runner_need(kiln_runner *r, kiln_op_id op, const void *args, uint64_t *bytes, kiln_error *err) KILN_MUST_CHECK;

/* ---- arrays that stay on the device (kernels/draw/store.h) ------------------------------------------------------------- */
/* Device memory beside the block, which is given back where both do not fit. *out NULL: neither the cap nor the device has so much
 * left, which is no failure. The stream must be idle; so for giving back. */
kiln_status kiln_runner_take(kiln_runner *r, uint64_t bytes, void **out, kiln_error *err) KILN_MUST_CHECK;
void kiln_runner_give(kiln_runner *r, void *p, uint64_t bytes); /* as it was taken; NULL: nothing */
/* What could be taken, as far as the cap says, the block given back; 0 on the CPU. */
uint64_t kiln_runner_left(const kiln_runner *r);
/* Called before an operation for which the cap does not leave enough: gives back what can be spared, so that `bytes` are left.
 * NULL: nobody is asked. */
typedef void kiln_runner_spare_fn(void *context, uint64_t bytes);
void kiln_runner_on_need(kiln_runner *r, kiln_runner_spare_fn *spare, void *context);
/* The workspace of an operation on arrays that are on the device. */
kiln_status kiln_runner_work(kiln_runner *r, kiln_op_id op, const void *args, size_t *bytes, kiln_error *err) KILN_MUST_CHECK;
/* Puts it on the runner's stream: args, work and violation (kernels/violation.h; read by the caller) point to device memory.
 * Nothing is waited for. */
kiln_status kiln_runner_launch(kiln_runner *r, kiln_op_id op, const void *args, void *work, size_t work_bytes, uint64_t *violation,
                               kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
