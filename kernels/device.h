/* device -- the little that a program needs of a CUDA device besides the operations: what it is, memory, a stream,
 * copies. Every function takes its device, sets it, and leaves the caller's current context as it found it, none
 * included; any thread. In a build without CUDA each returns KILN_E_DEVICE.
 *
 * A thread that had no context: cudaGetDevice of a runtime that it shares with us may name our device afterwards, but what the
 * runtime then makes is on the thread's own device as before (seen with CUDA 13.0 on two H200s).
 *
 * A device is a CUDA ordinal of this process, after CUDA_VISIBLE_DEVICES. The first call that names one makes its
 * primary context (about 520 MiB of device memory, a tenth of a second); no other device is touched.
 * KILN_E_DEVICE names the call, the device, file and line of what failed; what a copy or a wait reports may be the failure of
 * an operation before it, and the sentence says so. With exec->sync each operation reports its own.
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
    char name[256], uuid[48];               /* "NVIDIA H200", "GPU-xxxxxxxx-..." */
    uint32_t major, minor;                  /* compute capability */
    uint32_t built_version, driver_version; /* CUDA runtime linked in, CUDA that the driver has: 13000 is 13.0 */
    uint64_t total_bytes, free_bytes;       /* of device memory, now */
} kiln_device_info;

/* The CUDA runtime linked in: 13000 is 13.0; 0 in a build without CUDA. A constant: touches no CUDA. */
uint32_t kiln_device_built_version(void);
/* The lowest compute capability that this build has code for, times ten: 90 is 9.0; 0 without CUDA. A constant, too. */
uint32_t kiln_device_built_arch(void);
/* All of them: "80 90"; "" without CUDA. A constant, too. */
const char *kiln_device_built_archs(void);

/* Compares the CUDA versions of build and driver before anything else, and says so when the driver is too old; also where
 * this build has no code for the device. */
kiln_status kiln_device_open(int device, kiln_device_info *out, kiln_error *err) KILN_MUST_CHECK;

/* A stream of its own; never the legacy default one. urgent: its work goes first where both could go on, as that of
 * kiln_exec's `side` does: small launches that others wait for. */
kiln_status kiln_device_stream_new(int device, bool urgent, struct CUstream_st **out, kiln_error *err) KILN_MUST_CHECK;
void kiln_device_stream_free(int device, struct CUstream_st *stream); /* NULL: nothing */

/* KILN_E_CAP with needed and free bytes when the device has not so much. bytes == 0 gives a valid pointer. */
kiln_status kiln_device_alloc(int device, size_t bytes, void **out, kiln_error *err) KILN_MUST_CHECK;
void kiln_device_free(int device, void *p); /* NULL: nothing */

/* On x->stream of x->device; host memory may be used again when kiln_device_wait has returned. */
kiln_status kiln_device_copy_in(const kiln_exec *x, void *device_to, const void *host_from, size_t bytes,
                                kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_device_copy_out(const kiln_exec *x, void *host_to, const void *device_from, size_t bytes,
                                 kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_device_fill(const kiln_exec *x, void *device_to, unsigned char byte, size_t bytes,
                             kiln_error *err) KILN_MUST_CHECK;
/* Page-locks host memory, so that copies from and to it go at the speed of the bus. Takes longer than one copy: for what is used
 * again and again. false: it stays as it was, which is no failure. Unpin before it is freed. */
bool kiln_device_pin(int device, void *p, size_t bytes);
void kiln_device_unpin(int device, void *p);
/* Until x->stream is idle, and x->side, where there is one. */
kiln_status kiln_device_wait(const kiln_exec *x, kiln_error *err) KILN_MUST_CHECK;

/* After a KILN_E_DEVICE: does CUDA say that the device itself is gone or ill, so that another process would fare no better?
 * false: only this process's context is lost, or nothing is. Asks CUDA, so it may wait for what runs; false without CUDA. */
bool kiln_device_is_lost(int device);
/* For tests of what happens then: a kernel writes to an address where nothing is, and x->stream is waited for. Never KILN_OK;
 * this process's context is lost afterwards. */
kiln_status kiln_device_provoke(const kiln_exec *x, kiln_error *err) KILN_MUST_CHECK;

/* Named ranges for profilers (NVTX); nested; no device needed. */
void kiln_range_push(const char *name);
void kiln_range_pop(void);

KILN_C_END

#endif
