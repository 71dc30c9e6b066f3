/* plain -- see the header. Arguments are checked here, as no compiler has done it: sizes, and
 * pointers that are NULL. */
#include "kernels/draw/plain.h"

#include "base/memory.h"
#include "kernels/draw/draw.h"

#include <stdlib.h>
#include <string.h>

/* of an axis: KILN_PICTURE_SIDE_MAX of the manifest, which kernels may not include */
enum { MOST_PIXELS = 1 << 20 };

struct kiln_plain {
    kiln_runner_options options;
    kiln_runner *runner;    /* NULL: not opened yet */
    kiln_draw_store *store; /* of this scene, on a device; NULL: nothing of it has been drawn */
    kiln_error err;
    bool has_scene, has_renderer, has_camera;
    double origin[3], pose[12], intrinsics[4];
    uint32_t sh_degree, n_chunks, width, height;
    const uint64_t *rows;
    const void *const *planes;
    kiln_profile_id profile;
    bool antialiased;
    float near_m;
};

kiln_plain *kiln_plain_new(int device, unsigned threads)
{
    kiln_plain *p = NULL;
    if (KILN_ALLOC(&p, 1, "a painter", NULL) != KILN_OK) return NULL;
    p->options = (kiln_runner_options){.device = device, .threads = threads};
    return p;
}

void kiln_plain_free(kiln_plain *p)
{
    if (p) {
        kiln_draw_store_free(p->store);
        kiln_runner_free(p->runner);
    }
    free(p);
}

const char *kiln_plain_message(const kiln_plain *p) { return p->err.msg; }

/* Begins a call: a sentence is of the last one. */
static kiln_error *begin(kiln_plain *p)
{
    p->err = (kiln_error){0};
    return &p->err;
}

static int refuse_null(kiln_plain *p)
{
    return kiln_exit_code(kiln_fail(&p->err, KILN_E_USAGE, "a pointer is NULL"));
}

int kiln_plain_scene(kiln_plain *p, const double *origin, uint32_t sh_degree, uint32_t n_chunks,
                     const uint64_t *rows, const void *const *planes)
{
    (void)begin(p);
    kiln_draw_store_free(p->store); /* its planes are of the scene before */
    p->store = NULL;
    p->has_scene = origin && (n_chunks == 0 || (rows && planes));
    if (!p->has_scene) return refuse_null(p);
    memcpy(p->origin, origin, sizeof p->origin);
    p->sh_degree = sh_degree;
    p->n_chunks = n_chunks;
    p->rows = rows;
    p->planes = planes;
    return 0;
}

int kiln_plain_renderer(kiln_plain *p, const char *profile, int antialiased, float near_m)
{
    kiln_error *err = begin(p);
    p->profile = profile ? kiln_profile_find(profile) : KILN_PROFILE_COUNT;
    p->antialiased = antialiased != 0;
    p->near_m = near_m;
    p->has_renderer = p->profile != KILN_PROFILE_COUNT;
    if (p->has_renderer) return 0;
    return kiln_exit_code(kiln_fail(err, KILN_E_USAGE, "there is no profile '%.100s'; there are %s",
                                    profile ? profile : "", kiln_profile_names + 1));
}

int kiln_plain_camera(kiln_plain *p, const double *pose, const double *intrinsics, uint32_t width,
                      uint32_t height)
{
    kiln_error *err = begin(p);
    p->has_camera = false;
    if (!pose || !intrinsics) return refuse_null(p);
    if (width < 1 || width > MOST_PIXELS || height < 1 || height > MOST_PIXELS)
        return kiln_exit_code(kiln_fail(err, KILN_E_USAGE,
                                        "a picture has 1 to %d pixels an axis, not %u x %u",
                                        MOST_PIXELS, (unsigned)width, (unsigned)height));
    memcpy(p->pose, pose, sizeof p->pose);
    memcpy(p->intrinsics, intrinsics, sizeof p->intrinsics);
    p->width = width;
    p->height = height;
    p->has_camera = true;
    return 0;
}

static kiln_status give_plain_chunk(void *context, uint32_t index, kiln_draw_chunk *out,
                                    kiln_error *err)
{
    const kiln_plain *of = context;
    const void *const *p = of->planes + (size_t)index * KILN_PLAIN_PLANES;
    *out = (kiln_draw_chunk){.n = of->rows[index],
                             .means = p[0],
                             .log_scales = p[1],
                             .quats = p[2],
                             .opacity_logits = p[3],
                             .sh0 = p[4],
                             .shN = p[5],
                             .source_rows = p[6]};
    if (out->n == 0) return KILN_OK;
    for (int i = 0; i < KILN_PLAIN_PLANES; i++)
        if (!p[i] && (i != 5 || of->sh_degree > 0))
            return kiln_fail(err, KILN_E_USAGE, "pointer %d of chunk %u is NULL", i,
                             (unsigned)index);
    return KILN_OK;
}

/* A chunk's number is key enough: a store holds the planes of one scene. */
static kiln_status give_plain_header(void *context, uint32_t index, kiln_draw_chunk_header *out,
                                     kiln_error *err)
{
    (void)err;
    *out =
        (kiln_draw_chunk_header){.n = ((const kiln_plain *)context)->rows[index], .colour = true};
    memcpy(out->key, &index, sizeof index);
    return KILN_OK;
}

static kiln_status open_store(kiln_plain *p, kiln_error *err)
{
    if (!p->runner) KILN_TRY(kiln_runner_new(&p->options, &p->runner, err));
    return p->store || p->options.device < 0 ? KILN_OK
                                             : kiln_draw_store_new(p->runner, &p->store, err);
}

static kiln_status draw_plain(kiln_plain *p, const kiln_draw_want *want, kiln_error *err)
{
    const kiln_profile *profile = &kiln_profiles[p->profile];
    kiln_view view;
    KILN_TRY(open_store(p, err));
    const kiln_draw_scene scene = {.view = &view,
                                   .profile = p->profile,
                                   .antialiased = p->antialiased,
                                   .sh_degree = p->sh_degree,
                                   .n_chunks = p->n_chunks,
                                   .chunk = give_plain_chunk,
                                   .context = p,
                                   .header = give_plain_header,
                                   .store = p->store};
    kiln_view_init(&view, p->pose, p->pose + 9, p->origin, p->intrinsics, p->width, p->height,
                   p->near_m > 0 ? p->near_m : profile->near_m, profile->far_m);
    return kiln_draw(p->runner, &scene, want, NULL, err);
}

int kiln_plain_draw(kiln_plain *p, const float *background, float *rgba, float *depth)
{
    kiln_error *err = begin(p);
    const kiln_draw_want want = {.background = background, .rgba = rgba, .depth = depth};
    if (!background || !rgba) return refuse_null(p);
    if (!p->has_scene || !p->has_renderer || !p->has_camera)
        return kiln_exit_code(
            kiln_fail(err, KILN_E_USAGE, "a picture needs a scene, a renderer and a camera"));
    return kiln_exit_code(draw_plain(p, &want, err));
}
