/* video_frame -- see video_frame.h. */
#include "stages/render/video_frame.h"

#include "kernels/ops.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

kiln_video_rate kiln_video_rate_of(double fps)
{
    const double whole = floor(fps + 0.5), film = floor(fps * 1.001 + 0.5);
    if (whole > 0 && fabs(fps - whole) < 1e-6) return (kiln_video_rate){(uint32_t)whole, 1};
    if (film > 0 && fabs(fps - film / 1.001) < 0.004)
        return (kiln_video_rate){(uint32_t)film * 1000, 1001};
    const uint32_t thousandths = (uint32_t)floor(fps * 1000 + 0.5);
    const uint32_t by = (uint32_t)greatest_divisor(thousandths, 1000);
    return (kiln_video_rate){thousandths / by, 1000 / by};
}

static kiln_pixel_layout layout_of(kiln_video_kind kind)
{
    return kind == KILN_VIDEO_Y4M ? KILN_PIXELS_YUV420 : KILN_PIXELS_RGB;
}

const char *kiln_video_frame_line(kiln_video_kind kind)
{
    return kind == KILN_VIDEO_Y4M ? "FRAME\n" : "";
}

size_t kiln_video_frame_bytes(kiln_video_kind kind, uint32_t width, uint32_t height)
{
    if (kind == KILN_VIDEO_NONE) return 0;
    return strlen(kiln_video_frame_line(kind)) +
           (size_t)kiln_pixel_bytes_size(layout_of(kind), width, height);
}

size_t kiln_video_head(kiln_video_kind kind, uint32_t width, uint32_t height, kiln_video_rate rate,
                       char out[128])
{
    out[0] = '\0';
    if (kind != KILN_VIDEO_Y4M) return 0;
    return (size_t)snprintf(
        out, 128, "YUV4MPEG2 W%u H%u F%u:%u Ip A1:1 C420jpeg XYSCSS=420JPEG XCOLORRANGE=LIMITED\n",
        width, height, rate.num, rate.den);
}

kiln_pixel_bytes_args kiln_video_frame_args(kiln_video_kind kind, uint32_t stride, uint32_t width,
                                            uint32_t height)
{
    return (kiln_pixel_bytes_args){
        .layout = layout_of(kind), .stride = stride, .width = width, .height = height};
}

kiln_status kiln_video_frame_write(const kiln_video_frame *f, const float *rgba, uint32_t stride,
                                   unsigned threads, unsigned char *out, kiln_error *err)
{
    const char *const line = kiln_video_frame_line(f->kind);
    const kiln_exec x = {.device = -1, .threads = threads};
    kiln_pixel_bytes_args a = kiln_video_frame_args(f->kind, stride, f->width, f->height);
    size_t work_bytes = 0;
    memcpy(out, line, strlen(line));
    a.pixels = rgba;
    a.bytes = out + strlen(line);
    /* needs no work space; the pointer only must not be NULL */
    return kiln_ops_cpu()->pixel_bytes(&x, &a, out, &work_bytes, err);
}
