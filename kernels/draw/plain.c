/* plain -- see the header. Arguments are checked here, as no compiler has done it: sizes, and pointers that are NULL. */
#include "kernels/draw/plain.h"

#include "kernels/draw/draw.h"

#include <string.h>

enum { MOST_PIXELS = 1 << 20 }; /* of an axis: KILN_PICTURE_SIDE_MAX of the manifest, which kernels may not include */

typedef struct {
    uint32_t sh_degree;
    const uint64_t *rows;
    const void *const *planes;
} plain_chunks;

static kiln_status give_plain_chunk(void *context, uint32_t index, kiln_draw_chunk *out, kiln_error *err)
{
    const plain_chunks *c = context;
    const void *const *p = c->planes + (size_t)index * KILN_PLAIN_PLANES;
    *out = (kiln_draw_chunk){.n = c->rows[index],
                             .means = p[0],
                             .log_scales = p[1],
                             .quats = p[2],
                             .opacity_logits = p[3],
                             .sh0 = p[4],
                             .shN = p[5],
                             .source_rows = p[6]};
    if (c->rows[index] == 0) return KILN_OK;
    for (int i = 0; i < KILN_PLAIN_PLANES; i++)
        if (!p[i] && (i != 5 || c->sh_degree > 0))
            return kiln_fail(err, KILN_E_USAGE, "pointer %d of chunk %u is NULL", i, (unsigned)index);
    return KILN_OK;
}

static kiln_status draw_plain(const kiln_runner_options *options, const kiln_draw_scene *scene, const float *background,
                              float *rgba, float *depth, kiln_error *err)
{
    kiln_runner *runner = NULL;
    KILN_TRY(kiln_runner_new(options, &runner, err));
    const kiln_draw_want want = {.background = background, .rgba = rgba, .depth = depth};
    const kiln_status st = kiln_draw(runner, scene, &want, NULL, err);
    kiln_runner_free(runner);
    return st;
}

static kiln_status check_plain_picture(const char *name, kiln_profile_id profile, uint32_t width, uint32_t height, kiln_error *err)
{
    if (profile == KILN_PROFILE_COUNT)
        return kiln_fail(err, KILN_E_USAGE, "there is no profile '%.100s'; there are %s", name ? name : "", kiln_profile_names + 1);
    if (width < 1 || width > MOST_PIXELS || height < 1 || height > MOST_PIXELS)
        return kiln_fail(err, KILN_E_USAGE, "a picture has 1 to %d pixels an axis, not %u x %u", MOST_PIXELS, (unsigned)width,
                         (unsigned)height);
    return KILN_OK;
}

int kiln_draw_plain(int device, unsigned threads, const char *profile, int antialiased, float near_m, const double *pose,
                    const double *origin, const double *intrinsics, uint32_t width, uint32_t height, const float *background,
                    uint32_t sh_degree, uint32_t n_chunks, const uint64_t *rows, const void *const *planes, float *rgba,
                    float *depth, char *message, size_t message_bytes)
{
    kiln_error err = {0};
    const kiln_runner_options options = {.device = device, .threads = threads};
    const kiln_profile_id id = profile ? kiln_profile_find(profile) : KILN_PROFILE_COUNT;
    plain_chunks chunks = {sh_degree, rows, planes};
    kiln_view view;
    kiln_status st = check_plain_picture(profile, id, width, height, &err);
    if (st == KILN_OK && !(pose && origin && intrinsics && background && rgba && (n_chunks == 0 || (rows && planes))))
        st = kiln_fail(&err, KILN_E_USAGE, "a pointer is NULL");
    if (st == KILN_OK) {
        const kiln_profile *p = &kiln_profiles[id];
        const kiln_draw_scene scene = {.view = &view,
                                       .profile = id,
                                       .antialiased = antialiased != 0,
                                       .sh_degree = sh_degree,
                                       .n_chunks = n_chunks,
                                       .chunk = give_plain_chunk,
                                       .context = &chunks};
        kiln_view_init(&view, pose, pose + 9, origin, intrinsics, width, height, near_m > 0 ? near_m : p->near_m, p->far_m);
        st = draw_plain(&options, &scene, background, rgba, depth, &err);
    }
    if (message && message_bytes > 0) {
        const size_t n = strnlen(err.msg, message_bytes - 1);
        memcpy(message, err.msg, n);
        message[n] = '\0';
    }
    return kiln_exit_code(st);
}
