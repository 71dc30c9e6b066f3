/* ops_no_cuda -- linked in a build without CUDA, in the place of ops_cuda.c and the .cu files:
 * absence is a file, not an #ifdef. */
#include "kernels/device.h"
#include "kernels/ops.h"

#include <string.h>

const kiln_ops *kiln_ops_cuda(void) { return NULL; }

static kiln_status absent(kiln_error *err)
{
    return kiln_fail(err, KILN_E_DEVICE, "this build has no CUDA");
}

uint32_t kiln_device_built_version(void) { return 0; }
uint32_t kiln_device_built_arch(void) { return 0; }
const char *kiln_device_built_archs(void) { return ""; }

kiln_status kiln_device_open(int device, kiln_device_info *out, kiln_error *err)
{
    (void)device;
    memset(out, 0, sizeof *out);
    return absent(err);
}

kiln_status kiln_device_stream_new(int device, bool urgent, struct CUstream_st **out,
                                   kiln_error *err)
{
    (void)device;
    (void)urgent;
    *out = NULL;
    return absent(err);
}

void kiln_device_stream_free(int device, struct CUstream_st *stream)
{
    (void)device;
    (void)stream;
}

kiln_status kiln_device_alloc(int device, size_t bytes, void **out, kiln_error *err)
{
    (void)device;
    (void)bytes;
    *out = NULL;
    return absent(err);
}

void kiln_device_free(int device, void *p)
{
    (void)device;
    (void)p;
}

kiln_status kiln_device_copy_in(const kiln_exec *x, void *device_to, const void *host_from,
                                size_t bytes, kiln_error *err)
{
    (void)x;
    (void)device_to;
    (void)host_from;
    (void)bytes;
    return absent(err);
}

kiln_status kiln_device_copy_out(const kiln_exec *x, void *host_to, const void *device_from,
                                 size_t bytes, kiln_error *err)
{
    (void)x;
    (void)host_to;
    (void)device_from;
    (void)bytes;
    return absent(err);
}

kiln_status kiln_device_copy_out_beside(const kiln_exec *x, struct CUevent_st *mark, void *host_to,
                                        const void *device_from, size_t bytes, kiln_error *err)
{
    (void)mark;
    return kiln_device_copy_out(x, host_to, device_from, bytes, err);
}

kiln_status kiln_device_mark_new(int device, struct CUevent_st **out, kiln_error *err)
{
    (void)device;
    *out = NULL;
    return absent(err);
}

void kiln_device_mark_free(int device, struct CUevent_st *mark)
{
    (void)device;
    (void)mark;
}

kiln_status kiln_device_mark(const kiln_exec *x, struct CUevent_st *mark, kiln_error *err)
{
    (void)x;
    (void)mark;
    return absent(err);
}

kiln_status kiln_device_fill(const kiln_exec *x, void *device_to, unsigned char byte, size_t bytes,
                             kiln_error *err)
{
    (void)x;
    (void)device_to;
    (void)byte;
    (void)bytes;
    return absent(err);
}

kiln_status kiln_device_fill_rows(const kiln_exec *x, void *device_to, size_t pitch,
                                  unsigned char byte, size_t width, size_t height, kiln_error *err)
{
    (void)x;
    (void)device_to;
    (void)pitch;
    (void)byte;
    (void)width;
    (void)height;
    return absent(err);
}

bool kiln_device_pin(int device, void *p, size_t bytes)
{
    (void)device;
    (void)p;
    (void)bytes;
    return false;
}

void kiln_device_unpin(int device, void *p)
{
    (void)device;
    (void)p;
}

kiln_status kiln_device_wait(const kiln_exec *x, kiln_error *err)
{
    (void)x;
    return absent(err);
}

bool kiln_device_is_lost(int device)
{
    (void)device;
    return false;
}

kiln_status kiln_device_provoke(const kiln_exec *x, kiln_error *err)
{
    (void)x;
    return absent(err);
}

void kiln_range_push(const char *name) { (void)name; }
void kiln_range_pop(void) {}
