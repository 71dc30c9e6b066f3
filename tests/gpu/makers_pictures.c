/* makers_pictures -- Pixels: metrics, hashes and the bytes of picture files. */
#include "tests/gpu/makers_internal.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A wave with some noise on it: cheap, and neither flat nor random. */
static void fill_picture(float *out, uint64_t floats, float noise, float level)
{
    uint64_t state = floats;
    for (uint64_t i = 0; i < floats; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull; /* Knuth, MMIX */
        const float wave = (float)(i % 301) / 301.0f;
        out[i] = level + wave + noise * ((float)(state >> 40) * 0x1p-24f - 0.5f);
    }
}

static uint8_t *make_mask(made_call *c, uint32_t width, uint32_t height, bool some)
{
    uint8_t *mask = made_own(c, (uint64_t)width * height, 1);
    for (uint32_t y = 0; some && y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            mask[(uint64_t)y * width + x] =
                (x / 23 + y / 9) % 3 != 0 && (x + y) % 11 != 0 ? 255 : 0;
    return mask;
}

/* Variant 0: two pictures that differ; 1: the same one twice; 2: out of range, rows with margins,
 * some values no numbers; 3: a mask of squares and single pixels; 4: an empty one. */
bool make_metrics(const scene *s, unsigned variant, kiln_metrics_args *a, made_call *c)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, FLT_TRUE_MIN, 1.0f};
    if (variant > 4 || !s->spec.of_views || s->spec.kind != SCENE_RANDOM || s->spec.antialiased)
        return false;
    const uint32_t width = s->view.width, height = s->view.height, margin = variant == 2 ? 5 : 0;
    *a = (kiln_metrics_args){
        .width = width, .height = height, .a_row = width + margin, .b_row = width};
    a->a_step = variant == 2 ? 3 : 4;
    a->b_step = variant == 0 ? 3 : a->a_step;
    const uint64_t a_floats = kiln_metrics_floats(a->a_row, a->a_step, width, height);
    const uint64_t b_floats = kiln_metrics_floats(a->b_row, a->b_step, width, height);
    float *left = made_own(c, a_floats, sizeof *left),
          *right = made_own(c, b_floats, sizeof *right);
    fill_picture(left, a_floats, 0.1f * (float)s->spec.profile, variant == 2 ? -0.4f : 0.0f);
    fill_picture(right, b_floats, 0.05f * (float)s->spec.profile, 0.1f);
    if (variant == 1) memcpy(right, left, b_floats * sizeof *left);
    for (uint64_t i = 0; variant == 2 && i < a_floats; i += 37) left[i] = odd[i % 6];
    if (variant > 2) a->mask = make_mask(c, width, height, variant == 3);
    a->a = left;
    a->b = right;
    a->out = made_own(c, 1, sizeof *a->out);
    return true;
}

/* Whole blocks and pieces, and what ends in the first, the second and the last stripe of a
 * block. */
bool make_pixel_hashes(const scene *s, unsigned variant, kiln_pixel_hashes_args *a, made_call *c)
{
    enum { PIECE = KILN_PIXEL_PIECE };
    static const uint64_t pixels[] = {
        333, 16, 64, 65, 127, 4 * 64 * 17 + 3, PIECE - 1, PIECE, 2 * PIECE + 16, 9 * PIECE + 4099};
    const unsigned n = sizeof pixels / sizeof *pixels;
    if (!s->spec.of_views || s->spec.kind != SCENE_RANDOM) return false;
    if (variant >= (scenes_are_small() ? n - 2 : n)) return false;
    float *rgba = made_own(c, 4 * pixels[variant], sizeof *rgba);
    fill_picture(rgba, 4 * pixels[variant], 0.5f, 0.1f * (float)s->spec.profile);
    *a = (kiln_pixel_hashes_args){
        .pixels = pixels[variant],
        .rgba = rgba,
        .hashes = made_own(c, kiln_pixel_pieces(pixels[variant]), KILN_PIXEL_HASH_BYTES)};
    return true;
}

/* Channels, bits and alpha as pictures are written; some rows alone, and values that are no
 * numbers. Four floats a pixel, and as many as channels. */
bool make_png_rows(const scene *s, unsigned variant, kiln_png_rows_args *a, made_call *c)
{
    static const struct {
        uint32_t channels, bits, step;
        bool straight, some;
    } kinds[] = {{3, 8, 4, false, false}, {4, 8, 4, true, false},   {3, 16, 4, false, true},
                 {4, 16, 4, true, true},  {1, 16, 1, false, false}, {3, 8, 3, false, true},
                 {4, 8, 4, false, false}, {1, 8, 4, false, true}};
    static const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, FLT_TRUE_MIN, 1.0f};
    if (variant >= sizeof kinds / sizeof *kinds || !s->spec.of_views ||
        s->spec.kind != SCENE_RANDOM)
        return false;
    const uint32_t width = s->view.width, height = s->view.height;
    const uint64_t floats = (uint64_t)width * height * kinds[variant].step;
    float *pixels = made_own(c, floats, sizeof *pixels);
    fill_picture(pixels, floats, 0.3f, -0.1f);
    for (uint64_t i = 0; i < floats; i += 13) pixels[i] = odd[i / 13 % 6];
    *a = (kiln_png_rows_args){.width = width,
                              .height = height,
                              .step = kinds[variant].step,
                              .channels = kinds[variant].channels,
                              .bits = kinds[variant].bits,
                              .straight = kinds[variant].straight,
                              .over = {0.25f, 1.0f, 0.1f},
                              .first = kinds[variant].some ? height / 3 : 0,
                              .pixels = pixels};
    a->n = kinds[variant].some ? height / 2 : height;
    a->rows = made_own(c, a->n * kiln_png_row_bytes(a), 1);
    return true;
}

/* All layouts; of the whole picture, and of a part of it that has odd sides. Values that are no
 * numbers, too. */
bool make_pixel_bytes(const scene *s, unsigned variant, kiln_pixel_bytes_args *a, made_call *c)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, FLT_TRUE_MIN, 1.0f};
    if (variant >= 2 * KILN_N_PIXEL_LAYOUTS || !s->spec.of_views || s->spec.kind != SCENE_RANDOM)
        return false;
    const uint32_t width = s->view.width, height = s->view.height,
                   less = variant / KILN_N_PIXEL_LAYOUTS;
    const uint64_t floats = (uint64_t)4 * width * height;
    float *pixels = made_own(c, floats, sizeof *pixels);
    fill_picture(pixels, floats, 0.3f, -0.1f);
    for (uint64_t i = 0; i < floats; i += 13) pixels[i] = odd[i / 13 % 6];
    *a = (kiln_pixel_bytes_args){.width = less ? (width - 1) | 1 : width,
                                 .height = less ? (height - 1) | 1 : height,
                                 .stride = width,
                                 .layout = (kiln_pixel_layout)(variant % KILN_N_PIXEL_LAYOUTS),
                                 .pixels = pixels};
    if (less && width > 2) a->width -= 2;
    a->bytes = made_own(c, kiln_pixel_bytes_size(a->layout, a->width, a->height), 1);
    return true;
}

/* Planes: one, three and four, of a picture, its first half of columns and one column less, which
 * is no whole quad; values beyond [0,1]. What is no number makes NaN of other bits in each sibling;
 * ssim_test has those. */
static uint64_t shape_of_planes(const scene *s, unsigned variant, uint64_t *planes, uint32_t *width,
                                uint32_t *height)
{
    static const uint64_t how_many[] = {1, 3, 4, 3};
    if (variant > 3 || !s->spec.of_views || s->spec.kind != SCENE_RANDOM || s->spec.antialiased)
        return 0;
    *planes = how_many[variant];
    *width =
        variant == 1 ? s->view.width / 2 + 1 : s->view.width - (variant == 2 && s->view.width > 1);
    *height = s->view.height;
    return *planes * *width * *height;
}

static float *make_planes(made_call *c, uint64_t values, float noise, float level)
{
    float *out = made_own(c, values, sizeof *out);
    fill_picture(out, values, noise, level);
    return out;
}

bool make_ssim(const scene *s, unsigned variant, kiln_ssim_args *a, made_call *c)
{
    *a = (kiln_ssim_args){.valid = variant % 2 == 1};
    const uint64_t values = shape_of_planes(s, variant, &a->planes, &a->width, &a->height);
    if (values == 0) return false;
    a->a = make_planes(c, values, 0.1f * (float)s->spec.profile, -0.4f);
    a->b = make_planes(c, values, 0.05f, -0.3f);
    if (variant != 0) a->partials = made_own(c, 3 * values, sizeof(float));
    a->mean = made_own(c, 1, sizeof(float));
    return true;
}

bool make_ssim_backward(const scene *s, unsigned variant, kiln_ssim_backward_args *a, made_call *c)
{
    *a = (kiln_ssim_backward_args){.valid = variant % 2 == 1};
    const uint64_t values = shape_of_planes(s, variant, &a->planes, &a->width, &a->height);
    if (values == 0) return false;
    a->a = make_planes(c, values, 0.1f, -0.4f);
    a->b = make_planes(c, values, 0.05f, -0.3f);
    a->partials = make_planes(c, 3 * values, 2.0f, -0.5f);
    a->upstream = make_planes(c, 1, 0.0f, 0.7f);
    a->gradient = made_own(c, values, sizeof(float));
    return true;
}

/* Volumes of one tile and less, and of several along each axis. */
static const struct {
    uint64_t planes;
    uint32_t width, height, depth;
} volumes[] = {{1, 33, 9, 12}, {2, 40, 21, 43}, {3, 1, 2, 1}, {1, 75, 13, 33}};

static uint64_t values_of_volumes(const scene *s, unsigned variant)
{
    if (variant >= sizeof volumes / sizeof *volumes || !s->spec.of_views ||
        s->spec.kind != SCENE_RANDOM || s->spec.antialiased)
        return 0;
    return volumes[variant].planes * volumes[variant].width * volumes[variant].height *
           volumes[variant].depth;
}

bool make_ssim3d(const scene *s, unsigned variant, kiln_ssim3d_args *a, made_call *c)
{
    const uint64_t values = values_of_volumes(s, variant);
    if (values == 0) return false;
    *a = (kiln_ssim3d_args){.planes = volumes[variant].planes,
                            .width = volumes[variant].width,
                            .height = volumes[variant].height,
                            .depth = volumes[variant].depth,
                            .valid = variant % 2 == 1};
    a->a = make_planes(c, values, 0.1f * (float)s->spec.profile, -0.4f);
    a->b = make_planes(c, values, 0.05f, -0.3f);
    if (variant != 0) a->partials = made_own(c, 3 * values, sizeof(float));
    a->mean = made_own(c, 1, sizeof(float));
    return true;
}

bool make_ssim3d_backward(const scene *s, unsigned variant, kiln_ssim3d_backward_args *a,
                          made_call *c)
{
    const uint64_t values = values_of_volumes(s, variant);
    if (values == 0) return false;
    *a = (kiln_ssim3d_backward_args){.planes = volumes[variant].planes,
                                     .width = volumes[variant].width,
                                     .height = volumes[variant].height,
                                     .depth = volumes[variant].depth,
                                     .valid = variant % 2 == 1};
    a->a = make_planes(c, values, 0.1f, -0.4f);
    a->b = make_planes(c, values, 0.05f, -0.3f);
    a->partials = make_planes(c, 3 * values, 2.0f, -0.5f);
    a->upstream = make_planes(c, 1, 0.0f, 0.7f);
    a->gradient = made_own(c, values, sizeof(float));
    return true;
}
