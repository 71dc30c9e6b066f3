/* makers_lens -- Photos through a lens. */
#include "tests/gpu/makers_internal.h"

/* Each variant a model of another kind, with its own channels, filter and target: of the photo's
 * size, smaller, wider and flatter, one axis alone. Every other photo has a mask. */
bool make_undistort(const scene *s, unsigned variant, kiln_undistort_args *a, made_call *c)
{
    static const struct {
        int model;
        uint32_t channels, filter, levels, width, height; /* of the target */
        double params[16];
    } calls[] = {
        {4, 3, KILN_UNDISTORT_BILINEAR, 255, 61, 45, {60, 61, 32.5, 23.5, -0.2, 0.05, 0.01, -0.02}},
        {5, 4, KILN_UNDISTORT_LANCZOS, 0, 90, 70, {40, 41, 32, 24, 0.02, -0.01, 0.003, -0.0005}},
        {6,
         1,
         KILN_UNDISTORT_BILINEAR,
         0,
         64,
         48,
         {60, 61, 32.5, 23.5, 0.1, 0.02, 0.001, -0.002, 0.005, 0.12, 0.01, 0.002}},
        {7, 3, KILN_UNDISTORT_LANCZOS, 255, 64, 30, {45, 46, 32, 24, 0.9}},
        {10,
         2,
         KILN_UNDISTORT_BILINEAR,
         0,
         130,
         31,
         {40, 41, 32, 24, 0.02, -0.01, 0.001, -0.002, 0.003, -0.0005, 0.0007, -0.0009}},
        {11,
         3,
         KILN_UNDISTORT_BILINEAR,
         65535,
         64,
         77,
         {40, 41, 32, 24, .02, -.01, .003, -5e-4, 2e-4, -1e-4, .001, -.002, 7e-4, -9e-4, 3e-4,
          4e-4}},
        {13, 3, KILN_UNDISTORT_LANCZOS, 0, 50, 50, {60, 61, 32, 24, -0.2}},
        {16, 4, KILN_UNDISTORT_BILINEAR, 0, 63, 49, {45, 46, 32, 24, 0.55, 1.1}},
        {17, 3, KILN_UNDISTORT_BILINEAR, 0, 20, 20, {64, 48}},
        /* folds the picture back within it */
        {2, 3, KILN_UNDISTORT_BILINEAR, 255, 64, 48, {40, 32, 24, -0.9}},
    };
    enum { WIDTH = 64, HEIGHT = 48 };
    kiln_error err;
    if (variant >= sizeof calls / sizeof *calls || s->spec.kind != SCENE_RANDOM || s->n == 0 ||
        s->spec.of_views)
        return false;
    *a = (kiln_undistort_args){.channels = calls[variant].channels,
                               .filter = calls[variant].filter,
                               .levels = calls[variant].levels};
    if (kiln_lens_init(&a->lens, calls[variant].model, calls[variant].params, WIDTH, HEIGHT,
                       &err) != KILN_OK)
        call_off("makers", err.msg);
    a->target = kiln_lens_target(&a->lens, 0.5);
    a->target.width = calls[variant].width;
    a->target.height = calls[variant].height;
    float *photo = made_own(c, (uint64_t)WIDTH * HEIGHT * a->channels, sizeof *photo);
    uint8_t *mask = made_own(c, (uint64_t)WIDTH * HEIGHT, 1);
    for (uint64_t i = 0; i < (uint64_t)WIDTH * HEIGHT * a->channels; i++)
        photo[i] = (float)(i * 2654435761u % 256) / 255.0f;
    for (uint64_t i = 0; i < (uint64_t)WIDTH * HEIGHT; i++) mask[i] = i / 7 % 11 ? 255 : 0;
    const uint64_t pixels = (uint64_t)a->target.width * a->target.height;
    a->photo = photo;
    a->photo_mask = variant % 2 ? mask : NULL;
    a->out = made_own(c, pixels * a->channels, sizeof *a->out);
    a->mask = made_own(c, pixels, 1);
    return true;
}
