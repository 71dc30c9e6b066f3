/* thumbnail -- see the header. */
#include "stages/report/thumbnail.h"

#include <math.h>
#include <stdlib.h>

void kiln_thumbnail_size(uint32_t width, uint32_t height, uint32_t *out_width, uint32_t *out_height)
{
    const uint32_t longer = width > height ? width : height;
    const double scale = longer > KILN_THUMBNAIL_SIDE ? (double)KILN_THUMBNAIL_SIDE / longer : 1;
    *out_width = (uint32_t)fmax(1, floor(width * scale + 0.5));
    *out_height = (uint32_t)fmax(1, floor(height * scale + 0.5));
}

void kiln_heat_colour(float share, float rgb[3])
{
    static const float stops[][3] = {{0.02f, 0.02f, 0.05f},
                                     {0.34f, 0.06f, 0.43f},
                                     {0.78f, 0.23f, 0.29f},
                                     {0.98f, 0.58f, 0.15f},
                                     {1, 0.98f, 0.80f}};
    enum { LAST = sizeof stops / sizeof *stops - 1 };
    const float at = share > 0 ? share < 1 ? share * LAST : LAST : 0; /* 0 of NaN */
    const int i = at >= LAST ? LAST - 1 : (int)at;
    for (int c = 0; c < 3; c++)
        rgb[c] = stops[i][c] + (at - (float)i) * (stops[i + 1][c] - stops[i][c]);
}

static void add_pixel(const kiln_picture *p, uint64_t pixel, const float background[3],
                      float sum[3])
{
    const float *v = p->data + pixel * p->channels;
    if (p->channels == 3) {
        for (int c = 0; c < 3; c++) sum[c] += v[c];
        return;
    }
    const float alpha = p->channels == 1 ? 1 : v[p->channels - 1];
    for (int c = 0; c < 3; c++)
        sum[c] += v[p->channels < 3 ? 0 : c] * alpha + background[c] * (1 - alpha);
}

/* A span of whole pixels: those whose place falls into pixel i of n, at least one. */
typedef struct {
    uint32_t from, to;
} span;

static span span_of(uint32_t i, uint32_t n, uint32_t pixels)
{
    const uint32_t from = (uint32_t)((uint64_t)i * pixels / n),
                   to = (uint32_t)((uint64_t)(i + 1) * pixels / n);
    return (span){from, to > from ? to : from + 1};
}

static void take_row(const kiln_picture *p, const float background[3], const span *across,
                     span down, uint32_t width, float *to)
{
    for (uint32_t x = 0; x < width; x++, to += 3) {
        float sum[3] = {0};
        for (uint64_t j = down.from; j < down.to; j++)
            for (uint64_t i = across[x].from; i < across[x].to; i++)
                add_pixel(p, j * p->width + i, background, sum);
        const float share =
            1 / (float)((uint64_t)(across[x].to - across[x].from) * (down.to - down.from));
        for (int c = 0; c < 3; c++) to[c] = sum[c] * share;
    }
}

kiln_status kiln_thumbnail_make(const kiln_picture *p, const double background[3],
                                kiln_thumbnail *out, kiln_error *err)
{
    const float behind[3] = {(float)background[0], (float)background[1], (float)background[2]};
    span *across;
    KILN_TRY(KILN_ALLOC_UNSET(&out->rgb, 3 * (uint64_t)out->width * out->height, "a small picture",
                              err));
    KILN_TRY(KILN_ALLOC(&across, out->width, "a row of a small picture", err));
    for (uint32_t x = 0; x < out->width; x++) across[x] = span_of(x, out->width, p->width);
    for (uint32_t y = 0; y < out->height; y++)
        take_row(p, behind, across, span_of(y, out->height, p->height), out->width,
                 out->rgb + 3 * (uint64_t)y * out->width);
    free(across);
    return KILN_OK;
}

static float clamped(float v) { return v > 0 ? v < 1 ? v : 1 : 0; }

kiln_status kiln_thumbnail_difference(const kiln_thumbnail *a, const kiln_thumbnail *b,
                                      kiln_thumbnail *out, kiln_error *err)
{
    const uint64_t n = (uint64_t)a->width * a->height;
    *out = (kiln_thumbnail){.width = a->width, .height = a->height};
    KILN_TRY(KILN_ALLOC_UNSET(&out->rgb, 3 * n, "a difference", err));
    for (uint64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int c = 0; c < 3; c++)
            sum += fabsf(clamped(a->rgb[3 * i + c]) - clamped(b->rgb[3 * i + c]));
        kiln_heat_colour(sum / 3 * KILN_DIFFERENCE_GAIN, out->rgb + 3 * i);
    }
    return KILN_OK;
}

void kiln_thumbnail_release(kiln_thumbnail *t)
{
    free(t->rgb);
    t->rgb = NULL;
}
