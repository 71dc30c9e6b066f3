/* device -- what a program needs of a CUDA device besides the operations: its properties, memory,
 * streams, copies.
 *
 * Every function takes its device as an argument, sets it, and leaves the caller's current context
 * as it found it, even if there was none. Functions may be called from any thread. In a build
 * without CUDA each returns KILN_E_DEVICE.
 *
 * A device is a CUDA ordinal of this process, after CUDA_VISIBLE_DEVICES. The first call that names
 * a device makes its primary context (about 520 MiB of device memory, a tenth of a second); no
 * other device is touched.
 *
 * If a thread had no context and shares its CUDA runtime with this library, cudaGetDevice may name
 * this library's device afterwards. What the runtime then makes is on the thread's own device as
 * before (observed with CUDA 13.0 on two H200s).
 *
 * KILN_E_DEVICE names the call, the device, file and line. An error that a copy or a wait reports
 * may come from an operation before it; the message says so. With exec->sync each operation reports
 * its own errors.
 */
#ifndef KILN_KERNELS_DEVICE_H
#define KILN_KERNELS_DEVICE_H

#include "base/extern_c.h"
#include "base/status.h"
#include "kernels/exec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

typedef struct {
    char name[256], uuid[48]; /* "NVIDIA H200", "GPU-xxxxxxxx-..." */
    uint32_t major, minor;    /* compute capability */
    /* CUDA runtime linked in, CUDA that the driver has: 13000 is 13.0 */
    uint32_t built_version, driver_version;
    uint64_t total_bytes, free_bytes; /* of device memory, now */
} kiln_device_info;

/* The CUDA runtime linked in: 13000 is 13.0; 0 in a build without CUDA. Touches no CUDA. */
uint32_t kiln_device_built_version(void);
/* The lowest compute capability that this build has code for, times ten: 90 is 9.0; 0 without CUDA.
 * Touches no CUDA. */
uint32_t kiln_device_built_arch(void);
/* All compute capabilities of this build: "80 90"; "" without CUDA. Touches no CUDA. */
const char *kiln_device_built_archs(void);

struct CUevent_st; /* a mark in a stream, below */

/* Opens a device and describes it in *out. Compares the CUDA versions of build and driver first.
 * The message says so if the driver is too old, or if this build has no code for the device. */
kiln_status kiln_device_open(int device, kiln_device_info *out, kiln_error *err) KILN_MUST_CHECK;

/* Makes a stream; never the legacy default stream. urgent: its work goes first when both could run,
 * as that of kiln_exec's `side` does: small launches that others wait for. */
kiln_status kiln_device_stream_new(int device, bool urgent, struct CUstream_st **out,
                                   kiln_error *err) KILN_MUST_CHECK;
void kiln_device_stream_free(int device, struct CUstream_st *stream); /* NULL: does nothing */

/* Allocates device memory. KILN_E_CAP, with needed and free bytes in the message, if the device
 * does not have so much. bytes == 0 gives a valid pointer. */
kiln_status kiln_device_alloc(int device, size_t bytes, void **out,
                              kiln_error *err) KILN_MUST_CHECK;
void kiln_device_free(int device, void *p); /* NULL: does nothing */

/* Put a copy or fill on x->stream of x->device. Host memory must not be changed or freed before
 * kiln_device_wait has returned. */
kiln_status kiln_device_copy_in(const kiln_exec *x, void *device_to, const void *host_from,
                                size_t bytes, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_device_copy_out(const kiln_exec *x, void *host_to, const void *device_from,
                                 size_t bytes, kiln_error *err) KILN_MUST_CHECK;
/* As kiln_device_copy_out, but beside what x->stream gets from now on: on x->side, behind what
 * x->stream had when `mark` was set. Without a side it is put on x->stream. kiln_device_wait waits
 * for both. */
kiln_status kiln_device_copy_out_beside(const kiln_exec *x, struct CUevent_st *mark, void *host_to,
                                        const void *device_from, size_t bytes,
                                        kiln_error *err) KILN_MUST_CHECK;
/* A place in a stream, which can be set again and again. */
kiln_status kiln_device_mark_new(int device, struct CUevent_st **out,
                                 kiln_error *err) KILN_MUST_CHECK;
void kiln_device_mark_free(int device, struct CUevent_st *mark); /* NULL: does nothing */
/* Sets it behind what x->stream has so far. */
kiln_status kiln_device_mark(const kiln_exec *x, struct CUevent_st *mark,
                             kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_device_fill(const kiln_exec *x, void *device_to, unsigned char byte, size_t bytes,
                             kiln_error *err) KILN_MUST_CHECK;
/* Fills the first `width` of every `pitch` bytes, `height` times. */
kiln_status kiln_device_fill_rows(const kiln_exec *x, void *device_to, size_t pitch,
                                  unsigned char byte, size_t width, size_t height,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Page-locks host memory, so that copies from and to it run at the speed of the bus. This takes
 * longer than one copy, so it pays only for memory that is used again and again. Returns false if
 * it could not be locked, which is not a failure. Unpin before freeing. */
bool kiln_device_pin(int device, void *p, size_t bytes);
void kiln_device_unpin(int device, void *p);
/* Waits until x->stream is idle, and x->side if it is set. */
kiln_status kiln_device_wait(const kiln_exec *x, kiln_error *err) KILN_MUST_CHECK;

/* Call after KILN_E_DEVICE. Returns true if CUDA says that the device itself is gone or defective,
 * so that another process would fail, too; false if only this process's context is lost, or nothing
 * is. May wait for running work. Always false without CUDA. */
bool kiln_device_is_lost(int device);
/* For tests: launches a kernel that writes to an invalid address and waits for x->stream. Never
 * returns KILN_OK. This process's context is lost afterwards. */
kiln_status kiln_device_provoke(const kiln_exec *x, kiln_error *err) KILN_MUST_CHECK;

/* Named ranges for profilers (NVTX); nested; no device needed. */
void kiln_range_push(const char *name);
void kiln_range_pop(void);

KILN_C_END

#endif
