/* draw_camera -- opens a bake, draws one of its cameras on a device of your choice, writes a PNG.
 *
 *   draw_camera MANIFEST CAMERA DEVICE OUT.png         DEVICE: -1 the CPU, else a CUDA device from
 *                                                      0
 *   draw_camera build/demo/bake/manifest.db view_00 -1 view.png
 *
 *   cc -O2 -o draw_camera draw_camera.c $(pkg-config --cflags --libs splatkiln libpng)
 *
 * It shows how a renderer uses libsplatkiln: schema/manifest.h reads the bake, kernels/draw/draw.h
 * draws, libpng writes. Every call of the library takes a kiln_error, which holds the sentence for
 * people when the call failed; nothing below main prints or exits.
 */
#include "kernels/draw/draw.h"
#include "schema/manifest.h"

#include <errno.h>
#include <limits.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The planes that drawing reads, in memory of ours that grows to the largest chunk. */
enum { MEANS, LOG_SCALES, QUATS, OPACITY_LOGITS, SH0, SHN, SOURCE_ROW, PLANES };
static const char *const plane_names[PLANES] = {
    "means", "log_scales", "quats", "opacity_logits", "sh0", "shN", "source_row"};

typedef struct {
    kiln_manifest *manifest;
    kiln_scene scene;
    kiln_layer *layer;
    kiln_camera *cameras;
    uint32_t n_cameras;
    kiln_view view;
    kiln_profile_id profile;
    void *planes[PLANES];
    size_t capacity[PLANES];
} bake;

static void bake_close(bake *b)
{
    for (int i = 0; i < PLANES; i++) free(b->planes[i]);
    free(b->cameras);
    kiln_layer_free(b->layer);
    kiln_manifest_close(b->manifest);
}

static kiln_status bake_open(bake *b, const char *path, kiln_error *err)
{
    KILN_TRY(kiln_manifest_open(path, KILN_OPEN_READ, "draw_camera", false, &b->manifest, err));
    KILN_TRY(kiln_scene_get(b->manifest, &b->scene, err));
    KILN_TRY(kiln_cameras_get(b->manifest, &b->cameras, &b->n_cameras, err));
    return kiln_layer_get_drawn(b->manifest, &b->layer, err);
}

/* The sentence names the first cameras of the bake, because users do not know them by heart. */
static kiln_status no_camera(const bake *b, const char *name, kiln_error *err)
{
    enum { NAMED = 5 };
    char names[256] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < b->n_cameras && i < NAMED && n < sizeof names; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "",
                              b->cameras[i].name);
    return kiln_fail(err, KILN_E_USAGE, "the bake has no camera '%s'; its %u are %s%s", name,
                     b->n_cameras, names, b->n_cameras > NAMED || n >= sizeof names ? " ..." : "");
}

/* The view as the chosen renderer family would have it: its near plane, the scene's origin taken
 * off. */
static kiln_status aim(bake *b, const char *name, kiln_profile_id profile, kiln_error *err)
{
    const kiln_profile *p = &kiln_profiles[profile];
    for (uint32_t i = 0; i < b->n_cameras; i++) {
        const kiln_camera *c = &b->cameras[i];
        const double intrinsics[4] = {c->fx, c->fy, c->cx, c->cy};
        if (strcmp(c->name, name) != 0) continue;
        b->profile = profile;
        kiln_view_init(&b->view, c->r, c->t, b->scene.origin, intrinsics, c->width, c->height,
                       p->near_m, p->far_m);
        return KILN_OK;
    }
    return no_camera(b, name, err);
}

static kiln_status read_plane(bake *b, const kiln_chunk *c, int i, kiln_error *err)
{
    const kiln_plane *p = kiln_chunk_plane(c, plane_names[i]);
    if (!p)
        return kiln_fail(err, KILN_E_INPUT, "chunk '%s' has no plane '%s'", c->name,
                         plane_names[i]);
    const size_t bytes = (size_t)p->data.raw_bytes;
    if (bytes > b->capacity[i]) {
        free(b->planes[i]);
        b->capacity[i] = 0;
        b->planes[i] = malloc(bytes);
        if (!b->planes[i])
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for chunk '%s'", c->name);
        b->capacity[i] = bytes;
    }
    return kiln_plane_read(b->manifest, c, plane_names[i], b->planes[i], bytes, err);
}

/* kiln_draw_chunk_fn: a chunk that the camera cannot see is not even read. */
static kiln_status give_chunk(void *context, uint32_t index, kiln_draw_chunk *out, kiln_error *err)
{
    bake *b = context;
    const kiln_chunk *c = &b->layer->chunks[index];
    kiln_project_bound bound = {.max_log_scale = c->max_log_scale,
                                .max_opacity_logit = c->max_opacity_logit};
    memcpy(bound.box_min, c->box_min, sizeof bound.box_min);
    memcpy(bound.box_max, c->box_max, sizeof bound.box_max);
    if (c->count == 0 || !kiln_project_may_see(&b->view, b->profile, b->scene.antialiased, &bound))
        return KILN_OK;
    for (int i = 0; i < PLANES; i++)
        if (i != SHN || b->layer->sh_degree > 0) KILN_TRY(read_plane(b, c, i, err));
    *out = (kiln_draw_chunk){.n = c->count,
                             .means = b->planes[MEANS],
                             .log_scales = b->planes[LOG_SCALES],
                             .quats = b->planes[QUATS],
                             .opacity_logits = b->planes[OPACITY_LOGITS],
                             .sh0 = b->planes[SH0],
                             .shN = b->planes[SHN],
                             .source_rows = b->planes[SOURCE_ROW]};
    return KILN_OK;
}

static kiln_status draw(bake *b, kiln_runner *r, float *rgba, kiln_error *err)
{
    const kiln_draw_scene scene = {.view = &b->view,
                                   .profile = b->profile,
                                   .antialiased = b->scene.antialiased,
                                   .sh_degree = b->layer->sh_degree,
                                   .n_chunks = b->layer->n_chunks,
                                   .chunk = give_chunk,
                                   .context = b};
    float background[3] = {0, 0, 0};
    const kiln_draw_want want = {.background = background, .rgba = rgba};
    kiln_draw_stats stats;
    for (int i = 0; b->scene.has_background && i < 3; i++)
        background[i] = (float)b->scene.background[i];
    KILN_TRY(kiln_draw(r, &scene, &want, &stats, err));
    printf("%llu Gaussians visible, %llu pairs, drawn by %s%s%s\n",
           (unsigned long long)stats.visible, (unsigned long long)stats.pairs, kiln_runner_name(r),
           kiln_runner_get_info(r).device.name[0] ? " on " : "",
           kiln_runner_get_info(r).device.name);
    return KILN_OK;
}

/* Eight bits a colour, [height][width][3]; NULL: out of memory. */
static unsigned char *make_bytes(const float *rgba, size_t n_pixels)
{
    unsigned char *bytes = malloc(n_pixels * 3);
    for (size_t i = 0; bytes && i < n_pixels; i++)
        for (int c = 0; c < 3; c++) {
            const float v = rgba[4 * i + c];
            bytes[3 * i + c] = v >= 1 ? 255 : v > 0 ? (unsigned char)(v * 255 + 0.5f) : 0;
        }
    return bytes;
}

static kiln_status write_png(const char *path, const float *rgba, uint32_t width, uint32_t height,
                             kiln_error *err)
{
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = PNG_FORMAT_RGB};
    unsigned char *bytes = make_bytes(rgba, (size_t)width * height);
    if (!bytes) return kiln_fail(err, KILN_E_NOMEM, "out of memory for '%s'", path);
    FILE *f = fopen(path, "wbx"); /* x: a file that is there is not replaced */
    kiln_status st =
        f ? KILN_OK : kiln_fail(err, KILN_E_IO, "cannot write '%s': %s", path, strerror(errno));
    if (f && !png_image_write_to_stdio(&image, f, 0, bytes, 0, NULL))
        st = kiln_fail(err, KILN_E_IO, "cannot write '%s': %s", path, image.message);
    if (f && fclose(f) != 0 && st == KILN_OK)
        st = kiln_fail(err, KILN_E_IO, "cannot write '%s'", path);
    free(bytes);
    return st;
}

/* -1 the CPU, else the number of a CUDA device. */
static kiln_status read_device(const char *text, int *device, kiln_error *err)
{
    char *end;
    errno = 0;
    const long n = strtol(text, &end, 10);
    if (errno || end == text || *end || n < KILN_RUNNER_CPU || n > INT_MAX)
        return kiln_fail(err, KILN_E_USAGE,
                         "DEVICE is -1 for the CPU or the number of a CUDA device, not '%s'", text);
    *device = (int)n;
    return KILN_OK;
}

int main(int argc, char **argv)
{
    bake b = {0};
    kiln_error err = {0};
    kiln_runner *runner = NULL;
    kiln_runner_options options = {.threads = (unsigned)sysconf(_SC_NPROCESSORS_ONLN)};
    float *rgba = NULL;
    if (argc != 5) {
        fprintf(stderr, "usage: %s MANIFEST CAMERA DEVICE OUT.png\n", argv[0]);
        return 2;
    }
    kiln_status st = read_device(argv[3], &options.device, &err);
    if (st == KILN_OK) st = bake_open(&b, argv[1], &err);
    if (st == KILN_OK) st = aim(&b, argv[2], KILN_PROFILE_INRIA, &err);
    if (st == KILN_OK) st = kiln_runner_new(&options, &runner, &err);
    if (st == KILN_OK) {
        rgba = malloc((size_t)b.view.width * b.view.height * 4 * sizeof *rgba);
        st = rgba ? draw(&b, runner, rgba, &err)
                  : kiln_fail(&err, KILN_E_NOMEM, "out of memory for the picture");
    }
    if (st == KILN_OK) st = write_png(argv[4], rgba, b.view.width, b.view.height, &err);
    if (st != KILN_OK) fprintf(stderr, "draw_camera: %s\n", err.msg);
    free(rgba);
    kiln_runner_free(runner);
    bake_close(&b);
    return kiln_exit_code(st);
}
