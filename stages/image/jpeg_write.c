/* jpeg_write -- pictures to look at: JPEG in memory, for pages. What is measured or kept is never one.
 *
 * libjpeg reports an error by a callback that must not return: it jumps back into compress_jpeg(), which has no local that changes
 * after setjmp. */
#include "stages/image/image_internal.h"

#include <jpeglib.h>

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

static unsigned char to_byte(float v) { return v > 0 ? v < 1 ? (unsigned char)(v * 255 + 0.5f) : 255 : 0; /* 0 of NaN */ }

static bool compress_jpeg(jpeg_job *j, const float *rgb, uint32_t width, uint32_t height, int quality)
{
    struct jpeg_compress_struct *c = &j->cinfo;
    if (setjmp(j->jump)) return false;
    jpeg_create_compress(c);
    jpeg_mem_dest(c, &j->file, &j->bytes);
    c->image_width = width;
    c->image_height = height;
    c->input_components = 3;
    c->in_color_space = JCS_RGB;
    jpeg_set_defaults(c);
    jpeg_set_quality(c, quality, TRUE);
    jpeg_start_compress(c, TRUE);
    while (c->next_scanline < height) {
        const float *from = rgb + (size_t)3 * width * c->next_scanline;
        for (size_t i = 0; i < (size_t)3 * width; i++) j->row[i] = to_byte(from[i]);
        (void)jpeg_write_scanlines(c, &j->row, 1);
    }
    jpeg_finish_compress(c);
    return true;
}

kiln_status kiln_jpeg_encode(const float *rgb, uint32_t width, uint32_t height, int quality, kiln_buffer *out, kiln_error *err)
{
    jpeg_job *j = NULL;
    kiln_status st;
    KILN_TRY(KILN_ALLOC(&j, 1, "a JPEG", err));
    KILN_GO(KILN_ALLOC(&j->row, 3 * (uint64_t)width, "a row of a JPEG", err));
    j->cinfo.err = jpeg_std_error(&j->errors);
    j->errors.error_exit = on_jpeg_write_error;
    j->errors.emit_message = on_message;
    if (compress_jpeg(j, rgb, width, height, quality))
        st = kiln_buffer_put(out, j->file, j->bytes, err);
    else
        st = kiln_fail(err, KILN_E_NOMEM, "cannot make a JPEG of %u x %u pixels: %s", width, height, j->why);
    jpeg_destroy_compress(&j->cinfo);
done:
    free(j->file);
    free(j->row);
    free(j);
    return st;
}
