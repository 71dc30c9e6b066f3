/* runner -- runs operations on arrays in host memory, on the CPU or on a GPU. Callers need no CUDA,
 * and the bits are the same on both (raster's picture included).
 *
 * On the CPU, an operation works on the caller's arrays. On a GPU, the runner copies arrays to
 * device memory, runs the CUDA sibling and copies results back. A GPU's runner owns two streams
 * (exec.h) and one block of device memory, which grows up to `cap_bytes` and is reused. An
 * operation that needs more than the cap runs on the CPU instead and is counted in n_host. Callers
 * that run several operations on the same arrays may keep arrays on the device themselves, under
 * the same cap (kiln_runner_take).
 *
 * Threads: one thread at a time may use a runner. Several runners may work side by side, also on
 * one device. The caller's current CUDA context stays as it was.
 */
#ifndef KILN_KERNELS_RUNNER_H
#define KILN_KERNELS_RUNNER_H

#include "base/extern_c.h"
#include "kernels/arrays.h"
#include "kernels/device.h"

KILN_C_BEGIN

enum { KILN_RUNNER_CPU = -1 };

typedef struct {
    int device;       /* CUDA ordinal of this process, or KILN_RUNNER_CPU */
    unsigned threads; /* of CPU siblings; 0 counts as 1 */
    bool sync;        /* CUDA: wait after every launch, so that a failure names its kernel */
    /* CUDA: most device memory to allocate; 0: four fifths of what is free now */
    uint64_t cap_bytes;
} kiln_runner_options;

typedef struct {
    kiln_device_info device; /* all zero for the CPU */
    /* UINT64_MAX for the CPU; lowered if the device turns out to have less left */
    uint64_t cap_bytes;
    /* most device memory held so far, with what was taken by kiln_runner_take */
    uint64_t peak_bytes;
    /* size of the block now; it is given back when kiln_runner_take needs the memory */
    uint64_t block_bytes;
    /* operations that ran on the device; on the CPU, because the cap was too small */
    uint64_t n_device, n_host;
    /* of CPU siblings, at least 1; callers use as many to prepare arrays */
    unsigned threads;
} kiln_runner_info;

typedef struct kiln_runner kiln_runner;

/* Errors as kiln_device_open. Free with kiln_runner_free. */
kiln_status kiln_runner_new(const kiln_runner_options *o, kiln_runner **out,
                            kiln_error *err) KILN_MUST_CHECK;
void kiln_runner_free(kiln_runner *r); /* NULL: does nothing */
kiln_runner_info kiln_runner_get_info(const kiln_runner *r);
const char *kiln_runner_name(const kiln_runner *r); /* "cpu", "cpu-avx2" or "cuda" */
/* of CPU siblings from now on; 0 counts as 1 */
void kiln_runner_set_threads(kiln_runner *r, unsigned threads);
/* Returns the device, stream and --sync setting of its operations, for work that is not an
 * operation. The runner owns the stream.
 */
kiln_exec kiln_runner_exec(const kiln_runner *r);
/* Frees the host memory that is kept as work space for the next operation on the CPU. */
void kiln_runner_trim(kiln_runner *r);

/* Runs an operation on host arrays and waits for it. Errors are those of the operation. After
 * KILN_E_DEVICE the runner can only be freed. */
kiln_status kiln_runner_run(kiln_runner *r, kiln_op_id op, const void *args,
                            kiln_error *err) KILN_MUST_CHECK;
/* Sets *bytes to the device memory that the operation would take, arrays and work space; 0 on the
 * CPU. The arrays are not read, but pointers of arrays that will be given must not be NULL. */
kiln_status kiln_runner_need(kiln_runner *r, kiln_op_id op, const void *args, uint64_t *bytes,
                             kiln_error *err) KILN_MUST_CHECK;

/* ---- arrays that stay on the device (kernels/draw/store.h) ----------------------------------- */
/* Takes device memory besides the block; the block is given back if both do not fit. *out is NULL
 * if the cap or the device does not have so much left, which is not a failure. The stream must be
 * idle, also for giving back. */
kiln_status kiln_runner_take(kiln_runner *r, uint64_t bytes, void **out,
                             kiln_error *err) KILN_MUST_CHECK;
/* bytes as taken; NULL: does nothing */
void kiln_runner_give(kiln_runner *r, void *p, uint64_t bytes);
/* Returns how much the cap would let kiln_runner_take take; 0 on the CPU. */
uint64_t kiln_runner_left(const kiln_runner *r);
/* Sets a function that is called before an operation for which the cap does not leave enough. It
 * gives back memory that can be spared, until `bytes` are left. NULL: none. */
typedef void kiln_runner_spare_fn(void *context, uint64_t bytes);
void kiln_runner_on_need(kiln_runner *r, kiln_runner_spare_fn *spare, void *context);
/* Sets *bytes to the work space of an operation on arrays that are on the device. */
kiln_status kiln_runner_work(kiln_runner *r, kiln_op_id op, const void *args, size_t *bytes,
                             kiln_error *err) KILN_MUST_CHECK;
/* Puts an operation on the runner's stream and does not wait. args' arrays, work and violation
 * point to device memory. The caller sets the violation word before and reads it afterwards
 * (kernels/violation.h). */
kiln_status kiln_runner_launch(kiln_runner *r, kiln_op_id op, const void *args, void *work,
                               size_t work_bytes, uint64_t *violation,
                               kiln_error *err) KILN_MUST_CHECK;

/* ---- arrays of kiln_runner_run that stay on the device --------------------------------------- */
/* From now on the runner keeps these bytes of host memory on the device: operations on arrays
 * within them copy nothing, neither in (but once) nor out. Until kiln_runner_fetch, what operations
 * write is on the device alone. The host must not write them before kiln_runner_drop. undefined:
 * nothing is in them yet, so nothing is copied. Does nothing on the CPU, and if that is more than
 * half of what the cap leaves: then arrays are copied as ever. Ranges must not overlap. */
kiln_status kiln_runner_keep(kiln_runner *r, void *host, uint64_t bytes, bool undefined,
                             kiln_error *err) KILN_MUST_CHECK;
/* Copies bytes to the host, from the device if they are kept there, and waits. They stay on the
 * device. */
kiln_status kiln_runner_fetch(kiln_runner *r, void *host, uint64_t bytes,
                              kiln_error *err) KILN_MUST_CHECK;
/* Forgets what is kept of memory that begins at `host`, without fetching it. Call before freeing
 * it. NULL, or not kept: does nothing. */
void kiln_runner_drop(kiln_runner *r, const void *host);
/* Sets the first `width` of every `pitch` bytes to `byte`, `height` times, on the device if they
 * are kept there. */
kiln_status kiln_runner_fill(kiln_runner *r, void *host, size_t pitch, unsigned char byte,
                             size_t width, uint64_t height, kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
