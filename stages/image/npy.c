/* npy -- NumPy's array file, float32 only.
 *
 *     0  93 'N' 'U' 'M' 'P' 'Y'   major  minor
 *     8  header length: u16 (major 1) or u32 (major 2, 3), little-endian
 *        header: text of a Python dict, padded with blanks, ended by a newline:
 *            {'descr': '<f4', 'fortran_order': False, 'shape': (480, 640, 3), }
 *        then the array, row-major
 * Source: numpy/lib/format.py. We write version 1.0 with the array at a multiple of 64 bytes, as
 * NumPy does.
 */
#include "stages/image/image_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_MAX = 65536 };

/* What follows 'key': in the dict, or NULL. */
static const char *npy_header_value(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    at = at ? strchr(at + strlen(key), ':') : NULL;
    return at ? at + 1 + strspn(at + 1, " ") : NULL;
}

/* "(480, 640, 3)" -> dims, their number; 0 when it is no tuple of 1 to 3 plain numbers. */
static int parse_shape(const char *text, uint64_t dims[3])
{
    int n = 0;
    if (!text || *text++ != '(') return 0;
    for (;;) {
        char *end;
        text += strspn(text, " ,");
        if (*text == ')') return n;
        if (n == 3 || *text < '0' || *text > '9') return 0;
        dims[n++] = strtoull(text, &end, 10);
        text = end;
    }
}

static kiln_status read_npy_header(FILE *f, const char *path, char header[HEADER_MAX + 1],
                                   uint64_t *array_at, kiln_error *err)
{
    unsigned char head[12];
    if (fread(head, 1, 10, f) != 10)
        return kiln_fail(err, KILN_E_INPUT, "'%s' is shorter than an npy header", path);
    uint32_t length = head[8] | (uint32_t)head[9] << 8, start = 10;
    if (head[6] > 1) {
        if (fread(head + 10, 1, 2, f) != 2)
            return kiln_fail(err, KILN_E_INPUT, "'%s' is shorter than an npy header", path);
        length |= (uint32_t)head[10] << 16 | (uint32_t)head[11] << 24;
        start = 12;
    }
    if (length > HEADER_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' has an npy header of %u bytes; at most %d are read", path, length,
                         HEADER_MAX);
    if (fread(header, 1, length, f) != length)
        return kiln_fail(err, KILN_E_INPUT, "'%s' ends inside its npy header", path);
    header[length] = 0;
    *array_at = start + length;
    return KILN_OK;
}

static kiln_status check_header(const char *path, const char *header, uint64_t bytes,
                                kiln_picture *out, kiln_error *err)
{
    uint64_t dims[3] = {0, 0, 1};
    const char *type = npy_header_value(header, "'descr'"),
               *order = npy_header_value(header, "'fortran_order'");
    if (!type || strncmp(type, "'<f4'", 5) != 0)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' does not hold little-endian float32; save it with astype('<f4')",
                         path);
    if (!order || strncmp(order, "False", 5) != 0)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is in Fortran order; save it with numpy.ascontiguousarray", path);
    if (parse_shape(npy_header_value(header, "'shape'"), dims) < 2 || dims[2] < 1 || dims[2] > 4)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' does not have the shape of a picture: height, width and up to 4 channels", path);
    KILN_TRY(kiln_picture_check(path, dims[1], dims[0], err));
    if (bytes != dims[0] * dims[1] * dims[2] * sizeof(float))
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' holds %llu bytes of pixels, but its shape needs %llu; is the file complete?",
            path, (unsigned long long)bytes,
            (unsigned long long)(dims[0] * dims[1] * dims[2] * sizeof(float)));
    *out = (kiln_picture){.width = (uint32_t)dims[1],
                          .height = (uint32_t)dims[0],
                          .channels = (uint32_t)dims[2],
                          .depth_bits = 32};
    return KILN_OK;
}

kiln_status kiln_npy_read(const char *path, int size_only, kiln_picture *out, kiln_error *err)
{
    FILE *f = NULL;
    char *header = NULL;
    uint64_t file_size = 0, array_at = 0;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_picture_open(path, &f, &file_size, err));
    KILN_GO(KILN_ALLOC(&header, HEADER_MAX + 1, "header of an npy file", err));
    KILN_GO(read_npy_header(f, path, header, &array_at, err));
    KILN_GO(check_header(path, header, file_size - array_at, out, err));
    if (size_only) goto done;
    const size_t n = (size_t)out->width * out->height * out->channels;
    KILN_GO(KILN_ALLOC(&out->data, n, "pixels of an npy file", err));
    if (fread(out->data, sizeof(float), n, f) != n)
        st = kiln_fail(err, KILN_E_IO, "cannot read the pixels of '%s'", path);
done:
    free(header);
    fclose(f); /* opened for reading: nothing to lose */
    return st;
}

/* Rows of `channels` floats out of pixels of `step`. */
static size_t write_npy_rows(const kiln_picture_job *job, float *row, FILE *f)
{
    size_t written = 0;
    for (uint32_t y = 0; y < job->height; y++) {
        const float *src = job->data + (size_t)y * job->width * job->step;
        for (uint32_t x = 0; x < job->width; x++)
            memcpy(row + (size_t)x * job->channels, src + (size_t)x * job->step,
                   job->channels * sizeof *row);
        written += fwrite(row, sizeof *row, (size_t)job->width * job->channels, f);
    }
    return written;
}

kiln_status kiln_npy_write(const kiln_picture_job *job, FILE *f, kiln_error *err)
{
    char head[128];
    float *row = NULL;
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10); /* 118 = 128 - 10 */
    int n = snprintf(head + 10, sizeof head - 10,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%u, %u", job->height,
                     job->width);
    n += snprintf(head + 10 + n, sizeof head - 10 - (size_t)n,
                  job->channels == 1 ? "), }" : ", %u), }", job->channels);
    head[10 + n] = ' '; /* over the NUL */
    head[sizeof head - 1] = '\n';
    KILN_TRY(KILN_ALLOC(&row, (uint64_t)job->width * job->channels, "a row of an npy file", err));
    const int ok = fwrite(head, 1, sizeof head, f) == sizeof head &&
                   write_npy_rows(job, row, f) == (size_t)job->width * job->height * job->channels;
    const kiln_status st = ok ? KILN_OK : kiln_file_write_failed(job->path, errno, err);
    free(row);
    return st;
}
