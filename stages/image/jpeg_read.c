/* jpeg_read -- JPEG, grey, colour or CMYK, to floats.
 *
 * libjpeg reports an error by a callback that must not return: it jumps back into decode_jpeg(),
 * which has no local that changes after setjmp. A file that ends too early is a mere warning to
 * libjpeg, which fills the rest with grey; a photo to measure against must not be half grey, so
 * that we refuse it. Other damage inside the coded data lets it make up pixels as well, but for a
 * while: the picture is read, and its warning has libjpeg's words.
 */
#include "stages/image/image_internal.h"

#include <jpeglib.h>

#include <jerror.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/* Every 8 x 8 block of the finest component takes at least one bit of a Huffman-coded file: fewer
 * bytes than pixels / 512 cannot hold the picture, and no memory is asked for. */
enum { PIXELS_A_BYTE = 512, SCANS_MAX = 500 };

typedef struct {
    struct jpeg_error_mgr errors; /* first: libjpeg hands it back as cinfo->err */
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct cinfo;
    jmp_buf jump;
    const char *path;
    FILE *f;
    uint64_t file_size;
    int size_only;
    kiln_picture *out;
    unsigned char *row;
    kiln_error *err;
    kiln_status st;
} jpeg_job;

static void on_jpeg_read_error(j_common_ptr cinfo)
{
    jpeg_job *j = (jpeg_job *)cinfo->err;
    char text[JMSG_LENGTH_MAX];
    cinfo->err->format_message(cinfo, text);
    j->st = kiln_fail(j->err, KILN_E_INPUT, "cannot read '%s' as JPEG: %s; is the file complete?",
                      j->path, text);
    longjmp(j->jump, 1);
}

/* Warnings of headers. All others are of coded data that went out of step: pixels are made up. */
static bool is_harmless(int code)
{
    return code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR || code == JWRN_TOO_MUCH_DATA;
}

static void on_message(j_common_ptr cinfo, int level)
{
    jpeg_job *j = (jpeg_job *)cinfo->err;
    const int code = cinfo->err->msg_code;
    char text[JMSG_LENGTH_MAX];
    if (level >= 0) return;
    if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER) on_jpeg_read_error(cinfo);
    if (j->out->warning[0] || is_harmless(code)) return;
    cinfo->err->format_message(cinfo, text);
    (void)snprintf(j->out->warning, sizeof j->out->warning, "%s", text);
}

/* A progressive file may repeat scans without end, each of them a pass over the whole picture. */
static void on_progress(j_common_ptr cinfo)
{
    jpeg_job *j = (jpeg_job *)cinfo->err;
    if (j->cinfo.input_scan_number <= SCANS_MAX) return;
    j->st =
        kiln_fail(j->err, KILN_E_INPUT,
                  "'%s' has more than %d scans; save it again as a plain JPEG", j->path, SCANS_MAX);
    longjmp(j->jump, 1);
}

/* Of the first EXIF block. */
static uint8_t orientation_of(const struct jpeg_decompress_struct *c)
{
    for (jpeg_saved_marker_ptr m = c->marker_list; m; m = m->next)
        if (m->data_length >= 6 && memcmp(m->data, "Exif\0", 6) == 0)
            return kiln_exif_orientation(m->data, m->data_length);
    return 1;
}

static kiln_status read_jpeg_header(jpeg_job *j)
{
    struct jpeg_decompress_struct *c = &j->cinfo;
    jpeg_stdio_src(c, j->f);
    jpeg_save_markers(c, JPEG_APP0 + 1, 0xffff); /* EXIF */
    if (jpeg_read_header(c, TRUE) != JPEG_HEADER_OK)
        return kiln_fail(j->err, KILN_E_INPUT, "'%s' has no JPEG header", j->path);
    KILN_TRY(kiln_picture_check(j->path, c->image_width, c->image_height, j->err));
    if ((uint64_t)c->image_width * c->image_height / PIXELS_A_BYTE > j->file_size)
        return kiln_fail(j->err, KILN_E_INPUT,
                         "'%s' is too short for its %u x %u pixels; is the file complete?", j->path,
                         c->image_width, c->image_height);
    j->out->width = c->image_width;
    j->out->height = c->image_height;
    j->out->orientation = orientation_of(c);
    return KILN_OK;
}

static bool is_cmyk(const struct jpeg_decompress_struct *c)
{
    return c->jpeg_color_space == JCS_CMYK || c->jpeg_color_space == JCS_YCCK;
}

/* A row of CMYK as RGB: (1 - ink) (1 - black), without a colour profile. Adobe's programs write all
 * four inverted, and say so by their marker. */
static void put_cmyk(const jpeg_job *j, float *dst)
{
    const bool inverted = j->cinfo.saw_Adobe_marker;
    for (size_t x = 0; x < j->out->width; x++) {
        float left[4]; /* what each ink leaves of white */
        for (int k = 0; k < 4; k++)
            left[k] = (float)(inverted ? j->row[4 * x + k] : 255 - j->row[4 * x + k]) / 255.f;
        for (int k = 0; k < 3; k++) dst[3 * x + k] = left[k] * left[3];
    }
}

static kiln_status read_jpeg_rows(jpeg_job *j)
{
    struct jpeg_decompress_struct *c = &j->cinfo;
    kiln_picture *p = j->out;
    const bool cmyk = is_cmyk(c);
    c->out_color_space = cmyk ? JCS_CMYK : c->num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    (void)jpeg_start_decompress(c); /* false only for a suspending source, which stdio is not */
    p->channels = cmyk ? 3 : (uint32_t)c->output_components;
    p->depth_bits = 8;
    const size_t n = (size_t)p->width * p->channels;
    KILN_TRY(KILN_ALLOC(&j->row, (size_t)p->width * (size_t)c->output_components, "a row of a JPEG",
                        j->err));
    KILN_TRY(KILN_ALLOC(&p->data, n * p->height, "pixels of a JPEG", j->err));
    while (c->output_scanline < c->output_height) {
        float *dst = p->data + c->output_scanline * n;
        (void)jpeg_read_scanlines(c, &j->row, 1);
        if (cmyk) put_cmyk(j, dst);
        for (size_t i = 0; !cmyk && i < n; i++) dst[i] = (float)j->row[i] / 255.f;
    }
    (void)jpeg_finish_decompress(c);
    return KILN_OK;
}

static kiln_status decode_jpeg(jpeg_job *j)
{
    if (setjmp(j->jump)) return j->st;
    jpeg_create_decompress(&j->cinfo);
    j->cinfo.progress = &j->progress;
    KILN_TRY(read_jpeg_header(j));
    return j->size_only ? KILN_OK : read_jpeg_rows(j);
}

kiln_status kiln_jpeg_read(const char *path, int size_only, kiln_picture *out, kiln_error *err)
{
    jpeg_job j = {.path = path, .size_only = size_only, .out = out, .err = err, .st = KILN_E_INPUT};
    KILN_TRY(kiln_picture_open(path, &j.f, &j.file_size, err));
    j.cinfo.err = jpeg_std_error(&j.errors);
    j.errors.error_exit = on_jpeg_read_error;
    j.errors.emit_message = on_message;
    j.progress.progress_monitor = on_progress;
    kiln_status st = decode_jpeg(&j);
    jpeg_destroy_decompress(&j.cinfo);
    free(j.row);
    fclose(j.f); /* opened for reading: nothing to lose */
    return st;
}
