/* jpeg_write -- pictures to look at: JPEG in memory, for pages, and files that were asked for. What
 * is measured is never one.
 *
 * libjpeg reports an error by a callback that must not return: it jumps back into compress_jpeg(),
 * which has no local that changes after setjmp. */
#include "stages/image/image_internal.h"

#include <jpeglib.h>

#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>

typedef struct {
    struct jpeg_error_mgr errors; /* first: libjpeg hands it back as cinfo->err */
    struct jpeg_compress_struct cinfo;
    jmp_buf jump;
    unsigned char *file, *row;
    unsigned long bytes;
    char why[JMSG_LENGTH_MAX];
} jpeg_job;

static void on_jpeg_write_error(j_common_ptr cinfo)
{
    jpeg_job *j = (jpeg_job *)cinfo->err;
    cinfo->err->format_message(cinfo, j->why);
    longjmp(j->jump, 1);
}

static void on_message(j_common_ptr cinfo, int level) { (void)cinfo, (void)level; }

static unsigned char to_byte(float v)
{
    return v > 0 ? v < 1 ? (unsigned char)(v * 255 + 0.5f) : 255 : 0; /* 0 of NaN */
}

/* Rows of [width][step] floats, of which the first three are written. */
typedef struct {
    const float *data;
    uint32_t width, height, step;
    int quality;
} jpeg_pixels;

static bool compress_jpeg(jpeg_job *j, const jpeg_pixels *p)
{
    struct jpeg_compress_struct *c = &j->cinfo;
    if (setjmp(j->jump)) return false;
    jpeg_create_compress(c);
    jpeg_mem_dest(c, &j->file, &j->bytes);
    c->image_width = p->width;
    c->image_height = p->height;
    c->input_components = 3;
    c->in_color_space = JCS_RGB;
    jpeg_set_defaults(c);
    jpeg_set_quality(c, p->quality, TRUE);
    jpeg_start_compress(c, TRUE);
    while (c->next_scanline < p->height) {
        const float *from = p->data + (size_t)p->step * p->width * c->next_scanline;
        for (uint32_t x = 0; x < p->width; x++)
            for (int i = 0; i < 3; i++)
                j->row[(size_t)3 * x + i] = to_byte(from[(size_t)p->step * x + i]);
        (void)jpeg_write_scanlines(c, &j->row, 1);
    }
    jpeg_finish_compress(c);
    return true;
}

static kiln_status encode_jpeg(const jpeg_pixels *p, kiln_buffer *out, kiln_error *err)
{
    jpeg_job *j = NULL;
    kiln_status st;
    KILN_TRY(KILN_ALLOC(&j, 1, "a JPEG", err));
    KILN_GO(KILN_ALLOC(&j->row, 3 * (uint64_t)p->width, "a row of a JPEG", err));
    j->cinfo.err = jpeg_std_error(&j->errors);
    j->errors.error_exit = on_jpeg_write_error;
    j->errors.emit_message = on_message;
    if (compress_jpeg(j, p))
        st = kiln_buffer_put(out, j->file, j->bytes, err);
    else
        st = kiln_fail(err, KILN_E_NOMEM, "cannot make a JPEG of %u x %u pixels: %s", p->width,
                       p->height, j->why);
    jpeg_destroy_compress(&j->cinfo);
done:
    free(j->file);
    free(j->row);
    free(j);
    return st;
}

kiln_status kiln_jpeg_encode(const float *rgb, uint32_t width, uint32_t height, int quality,
                             kiln_buffer *out, kiln_error *err)
{
    return encode_jpeg(&(jpeg_pixels){rgb, width, height, 3, quality}, out, err);
}

kiln_status kiln_jpeg_write(const kiln_picture_job *job, FILE *f, kiln_error *err)
{
    enum { QUALITY = 95 };
    kiln_buffer file = {0};
    kiln_status st = encode_jpeg(
        &(jpeg_pixels){job->data, job->width, job->height, job->step, QUALITY}, &file, err);
    if (st == KILN_OK && fwrite(file.data, 1, file.size, f) != file.size)
        st = kiln_file_write_failed(job->path, errno, err);
    kiln_buffer_release(&file);
    return st;
}

/* libjpeg's buffer and ours double: noise takes two bytes a pixel. */
uint64_t kiln_jpeg_write_bytes(const kiln_picture_job *job)
{
    enum { OWN = 1 << 20, A_PIXEL = 12 };
    return OWN + (uint64_t)A_PIXEL * job->width * job->height;
}
