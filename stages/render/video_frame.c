/* video_frame -- see video_frame.h. */
#include "stages/render/video_frame.h"

#include "kernels/png_rows/png_rows_math.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char frame_line[] = "FRAME\n";
enum { FRAME_LINE = sizeof frame_line - 1 };

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
    if (film > 0 && fabs(fps - film / 1.001) < 0.004) return (kiln_video_rate){(uint32_t)film * 1000, 1001};
    const uint32_t thousandths = (uint32_t)floor(fps * 1000 + 0.5);
    const uint32_t by = (uint32_t)greatest_divisor(thousandths, 1000);
    return (kiln_video_rate){thousandths / by, 1000 / by};
}

static uint32_t half(uint32_t pixels) { return pixels / 2 + pixels % 2; }

size_t kiln_video_frame_bytes(kiln_video_kind kind, uint32_t width, uint32_t height)
{
    const size_t pixels = (size_t)width * height;
    switch (kind) {
    case KILN_VIDEO_Y4M:
        return FRAME_LINE + pixels + 2 * (size_t)half(width) * half(height);
    case KILN_VIDEO_RGB:
        return 3 * pixels;
    default:
        return 0;
    }
}

size_t kiln_video_head(kiln_video_kind kind, uint32_t width, uint32_t height, kiln_video_rate rate, char out[128])
{
    out[0] = '\0';
    if (kind != KILN_VIDEO_Y4M) return 0;
    return (size_t)snprintf(out, 128, "YUV4MPEG2 W%u H%u F%u:%u Ip A1:1 C420jpeg XYSCSS=420JPEG XCOLORRANGE=LIMITED\n", width,
                            height, rate.num, rate.den);
}

static unsigned char byte_of(float v) { return (unsigned char)kiln_png_code(v, 255.f); }

/* Luma is 16 + 219 (kr r + kg g + kb b), chroma 128 + 224 (b - luma) / (2 (1 - kb)), of colours from 0 to 1. Here they are of
 * bytes, in 2^-20. */
typedef struct {
    int32_t y[3], cb[3], cr[3];
} matrix;

static int32_t fixed(double v) { return (int32_t)floor(v * (1 << 20) / 255 + 0.5); }

static matrix matrix_of(uint32_t width, uint32_t height)
{
    const bool high = width >= 1280 || height > 576;
    const double kr = high ? 0.2126 : 0.299, kb = high ? 0.0722 : 0.114, kg = 1 - kr - kb;
    const double b = 112 / (1 - kb), r = 112 / (1 - kr);
    return (matrix){.y = {fixed(219 * kr), fixed(219 * kg), fixed(219 * kb)},
                    .cb = {fixed(-b * kr), fixed(-b * kg), fixed(112)},
                    .cr = {fixed(112), fixed(-r * kg), fixed(-r * kb)}};
}

/* sum: of `count` pixels, a power of two; at most 4 * 255 * 2^20 in size. */
static unsigned char value_of(const int32_t weights[3], const int32_t sum[3], int shift, int32_t offset)
{
    const int64_t v = (int64_t)weights[0] * sum[0] + (int64_t)weights[1] * sum[1] + (int64_t)weights[2] * sum[2];
    return (unsigned char)(((v + ((int64_t)offset << (20 + shift))) + ((int64_t)1 << (19 + shift))) >> (20 + shift));
}

static void write_rgb(const float *rgba, uint32_t stride, uint32_t width, uint32_t height, unsigned char *out)
{
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            for (uint32_t c = 0; c < 3; c++) *out++ = byte_of(rgba[4 * ((size_t)y * stride + x) + c]);
}

/* The pixels beyond an odd edge are those at the edge. */
static void write_y4m(const float *rgba, uint32_t stride, uint32_t width, uint32_t height, unsigned char *out)
{
    const matrix m = matrix_of(width, height);
    unsigned char *luma = out + FRAME_LINE, *cb = luma + (size_t)width * height, *cr = cb + (size_t)half(width) * half(height);
    memcpy(out, frame_line, FRAME_LINE);
    for (uint32_t y = 0; y < height; y += 2)
        for (uint32_t x = 0; x < width; x += 2) {
            int32_t sum[3] = {0};
            for (uint32_t k = 0; k < 4; k++) {
                const uint32_t at_x = x + k % 2 < width ? x + k % 2 : x, at_y = y + k / 2 < height ? y + k / 2 : y;
                const float *p = rgba + 4 * ((size_t)at_y * stride + at_x);
                const int32_t rgb[3] = {byte_of(p[0]), byte_of(p[1]), byte_of(p[2])};
                for (int c = 0; c < 3; c++) sum[c] += rgb[c];
                luma[(size_t)at_y * width + at_x] = value_of(m.y, rgb, 0, 16);
            }
            *cb++ = value_of(m.cb, sum, 2, 128);
            *cr++ = value_of(m.cr, sum, 2, 128);
        }
}

void kiln_video_frame_write(kiln_video_kind kind, const float *rgba, uint32_t stride, uint32_t width, uint32_t height,
                            unsigned char *out)
{
    if (kind == KILN_VIDEO_Y4M) write_y4m(rgba, stride, width, height, out);
    if (kind == KILN_VIDEO_RGB) write_rgb(rgba, stride, width, height, out);
}
