/* writer_output -- what writers call (writer.h): sentences, the temporary file, scratch,
 * results. */
#include "stages/formats/writer.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- the parent ------------------------------------------------------------------------------ */

static kiln_status add_sentence(kiln_buffer *to, const char *fmt, va_list args, kiln_error *err)
{
    char text[1024];
    (void)vsnprintf(text, sizeof text, fmt, args);
    return kiln_buffer_printf(to, err, "%s%s", to->size ? "; " : "", text);
}

kiln_status kiln_export_note(kiln_export_parent *p, kiln_error *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const kiln_status st = add_sentence(p->notes, fmt, args, err);
    va_end(args);
    return st;
}

kiln_status kiln_export_remark(kiln_export_parent *p, kiln_error *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const kiln_status st = add_sentence(p->remarks, fmt, args, err);
    va_end(args);
    return st;
}

kiln_status kiln_export_put(kiln_export_parent *p, const void *data, size_t bytes, uint64_t offset,
                            kiln_error *err)
{
    return kiln_file_write_at(p->fd, p->e->temporary, offset, data, bytes, err);
}

/* Takes the room on the disk at once, so that a full one is known before anything is computed, and
 * the file lies in one piece although several workers write it. Where the file system cannot, the
 * writes will tell. */
kiln_status kiln_export_resize(kiln_export_parent *p, uint64_t bytes, kiln_error *err)
{
    int rc;
    if (ftruncate(p->fd, (off_t)bytes) != 0)
        return kiln_file_write_failed(p->e->temporary, errno, err);
    if (bytes == 0) return KILN_OK;
    do rc = fallocate(p->fd, 0, 0, (off_t)bytes);
    while (rc != 0 && errno == EINTR);
    if (rc == 0 || (errno != ENOSPC && errno != EDQUOT && errno != EFBIG)) return KILN_OK;
    return kiln_file_write_failed(p->e->temporary, errno, err);
}

uint64_t kiln_export_one_unit(const kiln_export *e)
{
    (void)e;
    return 1;
}

/* ---- a worker -------------------------------------------------------------------------------- */

kiln_status kiln_export_keep(kiln_export_worker *x, unsigned which, uint64_t bytes,
                             const char *what, void **out, kiln_error *err)
{
    kiln_kept *k = &x->kept[which];
    if (!k->data || k->bytes < bytes) {
        free(k->data); /* first: both at a time have no room */
        *k = (kiln_kept){0};
        KILN_TRY(kiln_alloc_unset(&k->data, bytes, 1, what, err));
        k->bytes = bytes;
    }
    *out = k->data;
    return KILN_OK;
}

/* Large pieces go to the disk at once, so that the sync at the end has little left to do. */
enum { LARGE = 1 << 20 };

void kiln_export_written(kiln_export_worker *x, uint64_t offset, uint64_t bytes)
{
    /* a hint */
    if (bytes >= LARGE)
        (void)sync_file_range(x->fd, (off_t)offset, (off_t)bytes, SYNC_FILE_RANGE_WRITE);
}

kiln_status kiln_export_write(kiln_export_worker *x, const void *data, size_t bytes,
                              uint64_t offset, kiln_error *err)
{
    KILN_TRY(kiln_file_write_at(x->fd, x->e->temporary, offset, data, bytes, err));
    kiln_export_written(x, offset, bytes);
    return KILN_OK;
}

/* The piece of scratch at `offset`: its file, its place there, and how many of `bytes` it has. */
typedef struct {
    int fd;
    uint64_t at;
    size_t bytes;
} stripe;

static stripe stripe_at(const kiln_export_worker *x, uint64_t offset, size_t bytes)
{
    const uint64_t number = offset / KILN_SCRATCH_STRIPE, inside = offset % KILN_SCRATCH_STRIPE;
    const uint64_t left = KILN_SCRATCH_STRIPE - inside;
    return (stripe){.fd = x->scratch[number % KILN_SCRATCH_FILES],
                    .at = number / KILN_SCRATCH_FILES * KILN_SCRATCH_STRIPE + inside,
                    .bytes = bytes < left ? bytes : left};
}

kiln_status kiln_export_scratch_write(kiln_export_worker *x, const void *data, size_t bytes,
                                      uint64_t offset, kiln_error *err)
{
    const char *from = data;
    for (size_t done = 0; done < bytes;) {
        const stripe s = stripe_at(x, offset + done, bytes - done);
        const int error = kiln_file_pwrite(s.fd, s.at, from + done, s.bytes, NULL);
        if (error) return kiln_scratch_write_failed(s.fd, x->e->target, error, err);
        done += s.bytes;
    }
    return KILN_OK;
}

kiln_status kiln_export_scratch_read(kiln_export_worker *x, void *data, size_t bytes,
                                     uint64_t offset, kiln_error *err)
{
    char *to = data;
    for (size_t done = 0; done < bytes;) {
        const stripe s = stripe_at(x, offset + done, bytes - done);
        KILN_TRY(kiln_file_read_at(s.fd, "scratch", s.at, to + done, s.bytes, err));
        done += s.bytes;
    }
    return KILN_OK;
}

kiln_status kiln_export_result(kiln_export_worker *x, const void *data, size_t bytes,
                               kiln_error *err)
{
    return kiln_worker_put(x->w, "result", data, bytes, 1, err);
}

kiln_status kiln_export_scratch_result(kiln_export_worker *x, const char *what,
                                       const kiln_buffer *encoded, uint64_t bytes_max,
                                       uint64_t offset, kiln_error *err)
{
    const uint64_t bytes = encoded->size;
    if (bytes > bytes_max)
        return kiln_fail(err, KILN_E_BUG, "%s of %zu bytes, more than is left for it", what,
                         encoded->size);
    KILN_TRY(kiln_export_scratch_write(x, encoded->data, encoded->size, offset, err));
    return kiln_export_result(x, &bytes, sizeof bytes, err);
}
