/* kiln-compare -- how alike two pictures are: PSNR and SSIM of their colours, means of their channels.
 *
 * Colours are clamped to [0,1] for PSNR and SSIM, as kiln-render's own metrics are; the means are of the values as they
 * stand, so that an unclamped .npy can be held against a renderer's figures. Alpha enters psnr_rgba and the means alone. */
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "kernels/ops.h"
#include "stages/engine/engine.h"
#include "stages/image/image.h"
#include "stages/engine/json_text.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *rect;
} o;

static const kiln_opt options[] = {
    {"rect", 0, KILN_OPT_TEXT, &o.rect, "X,Y,W,H", NULL, NULL, "compare this part of A; B is the part, or as large as A", 0},
    {NULL, 0, KILN_OPT_END, NULL, NULL, NULL, NULL, NULL, 0},
};

static const kiln_cli cli = {.program = "kiln-compare",
                             .summary = "compares two pictures: 8- or 16-bit PNG, JPEG, .npy",
                             .positionals = "A B",
                             .n_positionals = 2,
                             .options = options,
                             .common = kiln_common_options};

typedef struct {
    uint32_t x, y, width, height;
} rect;

/* A part of a picture of 3 or 4 channels. */
typedef struct {
    const float *data; /* first pixel of the part */
    uint32_t step, row;
} view;

typedef struct {
    kiln_metrics colour;
    bool has_alpha;
    double psnr_rgba;
    uint32_t n_a, n_b; /* channels in the means */
    double mean_a[4], mean_b[4];
} comparison;

static kiln_status parse_rect(const char *text, rect *out, kiln_error *err)
{
    char after;
    if (strspn(text, "0123456789,") != strlen(text) || strlen(text) > 40 ||
        sscanf(text, "%u,%u,%u,%u%c", &out->x, &out->y, &out->width, &out->height, &after) != 4)
        return kiln_fail(err, KILN_E_USAGE, "--rect takes four whole numbers X,Y,W,H, not '%s'", text);
    return KILN_OK;
}

/* Grey becomes red, green and blue; alpha stays behind them. */
static kiln_status spread_grey(kiln_picture *p, kiln_error *err)
{
    const uint32_t from = p->channels, to = from + 2;
    const size_t n = (size_t)p->width * p->height;
    float *data;
    if (from > 2) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&data, n * to, "a grey picture in colour", err));
    for (size_t i = 0; i < n; i++) {
        data[i * to] = data[i * to + 1] = data[i * to + 2] = p->data[i * from];
        if (from == 2) data[i * to + 3] = p->data[i * from + 1];
    }
    free(p->data);
    p->data = data;
    p->channels = to;
    return KILN_OK;
}

static kiln_status read_picture(const char *path, kiln_picture *p, kiln_error *err)
{
    KILN_TRY(kiln_picture_read(path, p, err));
    if (p->warning[0]) kiln_warn("'%s' is damaged, some of its pixels are made up: %s", path, p->warning);
    for (size_t i = 0; i < (size_t)p->width * p->height * p->channels; i++)
        if (!isfinite(p->data[i]))
            return kiln_fail(err, KILN_E_INPUT, "'%s' holds a value that is not finite, at pixel %zu,%zu", path,
                             i / p->channels % p->width, i / p->channels / p->width);
    return spread_grey(p, err);
}

/* The part of B that lies against the part of A: all of it, or the same part when B is as large as A. */
static kiln_status place(const rect *part, const char *path, const kiln_picture *a, const kiln_picture *b, rect *in_b,
                         kiln_error *err)
{
    if ((uint64_t)part->x + part->width > a->width || (uint64_t)part->y + part->height > a->height || !part->width || !part->height)
        return kiln_fail(err, KILN_E_USAGE, "the rectangle %u,%u,%u,%u does not lie in A, which has %u x %u pixels", part->x,
                         part->y, part->width, part->height, a->width, a->height);
    *in_b = *part;
    if (b->width == a->width && b->height == a->height) return KILN_OK;
    in_b->x = in_b->y = 0;
    if (b->width == part->width && b->height == part->height) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "'%s' has %u x %u pixels, compared are %u x %u; choose a part of A with --rect", path,
                     b->width, b->height, part->width, part->height);
}

static view view_of(const kiln_picture *p, const rect *part)
{
    return (view){p->data + ((size_t)part->y * p->width + part->x) * p->channels, p->channels, p->width};
}

static double clamp01(double v) { return v < 0 ? 0 : v > 1 ? 1 : v; }

static void add_means(const view *v, const rect *part, double mean[4])
{
    const double n = (double)part->width * part->height;
    for (uint32_t c = 0; c < v->step; c++) {
        double sum = 0;
        for (uint32_t y = 0; y < part->height; y++)
            for (uint32_t x = 0; x < part->width; x++) sum += (double)v->data[((size_t)y * v->row + x) * v->step + c];
        mean[c] = sum / n;
    }
}

static double alpha_mse(const view *a, const view *b, const rect *part)
{
    double sum = 0;
    for (uint32_t y = 0; y < part->height; y++)
        for (uint32_t x = 0; x < part->width; x++) {
            const double d = clamp01((double)a->data[((size_t)y * a->row + x) * 4 + 3]) -
                             clamp01((double)b->data[((size_t)y * b->row + x) * 4 + 3]);
            sum += d * d;
        }
    return sum / ((double)part->width * part->height);
}

static kiln_status measure(const view *a, const view *b, const rect *part, comparison *out, kiln_error *err)
{
    const kiln_exec x = {.device = -1,
                         .threads = kiln_common_values.threads ? kiln_common_values.threads : (unsigned)omp_get_num_procs()};
    const kiln_metrics_args args = {.width = part->width,
                                    .height = part->height,
                                    .a = a->data,
                                    .b = b->data,
                                    .a_step = a->step,
                                    .b_step = b->step,
                                    .a_row = a->row,
                                    .b_row = b->row,
                                    .out = &out->colour};
    size_t bytes = 0;
    unsigned char *work = NULL;
    KILN_TRY(kiln_ops_cpu()->metrics(&x, &args, NULL, &bytes, err));
    KILN_TRY(KILN_ALLOC(&work, bytes, "workspace of the metrics", err));
    const kiln_status st = kiln_ops_cpu()->metrics(&x, &args, work, &bytes, err);
    free(work);
    if (st != KILN_OK) return st;
    out->n_a = a->step;
    out->n_b = b->step;
    add_means(a, part, out->mean_a);
    add_means(b, part, out->mean_b);
    out->has_alpha = a->step == 4 && b->step == 4;
    if (out->has_alpha) out->psnr_rgba = -10 * log10((3 * out->colour.mse + alpha_mse(a, b, part)) / 4);
    return KILN_OK;
}

static json_t *numbers(const double *v, uint32_t n)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < n; i++)
        if (json_array_append_new(array, kiln_json_real(v[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

/* psnr is null for equal pictures, where it is infinite; ssim_valid below 11 pixels, where it is not defined. */
static kiln_status print_json(const comparison *c, const rect *part, kiln_error *err)
{
    json_t *doc = json_pack("{s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "version", 1, "width", (int)part->width, "height",
                            (int)part->height, "psnr", kiln_json_real(c->colour.psnr), "mse", kiln_json_real(c->colour.mse),
                            "ssim_same", kiln_json_real(c->colour.ssim_same), "ssim_valid", kiln_json_real(c->colour.ssim_valid),
                            "mean_a", numbers(c->mean_a, c->n_a), "mean_b", numbers(c->mean_b, c->n_b));
    const bool whole = doc && (!c->has_alpha || json_object_set_new(doc, "psnr_rgba", kiln_json_real(c->psnr_rgba)) == 0);
    char *text = whole ? kiln_json_text(doc, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
    if (text) kiln_print_json(text); /* stdout is checked at the end of main */
    free(text);
    json_decref(doc);
    return text ? KILN_OK : kiln_fail(err, KILN_E_NOMEM, "no memory for the report");
}

static void print_text(const comparison *c)
{
    kiln_print("psnr       %.6f dB", c->colour.psnr);
    if (c->has_alpha) kiln_print("psnr_rgba  %.6f dB", c->psnr_rgba);
    kiln_print("ssim_same  %.9f", c->colour.ssim_same);
    kiln_print("ssim_valid %.9f", c->colour.ssim_valid);
    kiln_print_part("mean_a    ");
    for (uint32_t i = 0; i < c->n_a; i++) kiln_print_part(" %.9f", c->mean_a[i]);
    kiln_print_gap();
    kiln_print_part("mean_b    ");
    for (uint32_t i = 0; i < c->n_b; i++) kiln_print_part(" %.9f", c->mean_b[i]);
    kiln_print_gap();
}

static kiln_status run(kiln_run *r, kiln_error *err)
{
    const char *path_a = kiln_run_args(r)->positional[0], *path_b = kiln_run_args(r)->positional[1];
    kiln_picture a = {0}, b = {0};
    rect part = {0}, in_b;
    comparison c = {0};
    kiln_status st = KILN_OK;
    if (o.rect) KILN_TRY(parse_rect(o.rect, &part, err));
    KILN_GO(read_picture(path_a, &a, err));
    KILN_GO(read_picture(path_b, &b, err));
    if (!o.rect) part = (rect){0, 0, a.width, a.height};
    KILN_GO(place(&part, path_b, &a, &b, &in_b, err));
    const view of_a = view_of(&a, &part), of_b = view_of(&b, &in_b);
    KILN_GO(measure(&of_a, &of_b, &part, &c, err));
    if (kiln_run_json(r))
        KILN_GO(print_json(&c, &part, err));
    else
        print_text(&c);
done:
    kiln_picture_release(&a);
    kiln_picture_release(&b);
    return st;
}

static const kiln_stage_program program = {.name = "compare", .cli = &cli, .opens_itself = true, .run = run};

int main(int argc, char **argv) { return kiln_program_main(&program, argc, argv); }
