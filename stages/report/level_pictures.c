/* level_pictures -- see the header. */
#include "stages/report/level_pictures.h"

#include "kernels/metrics/metrics.h"
#include "stages/frame/background.h"
#include "stages/frame/camera_path.h"
#include "stages/frame/frame.h"
#include "stages/frame/level_cost.h"
#include "stages/engine/memory/plane_cache.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_SIDE = 48, /* pixels of the longer side: what is smaller shows nothing */
    CANDIDATES = 64, /* cameras of which the two are chosen */
    /* of decoded planes; the pictures have KILN_LEVEL_ROWS rows together, so little is decoded
     * again */
    CACHE_BYTES = 1 << 26
};

typedef struct {
    const kiln_bake_facts *bake;
    kiln_view_options options;
    char near_text[32];
    double background[3];
    kiln_drawn drawn;
    kiln_plane_cache *planes;
    kiln_runner *runner;
    bool *in_view;  /* [chunks of drawn] of the picture that is drawn */
    float *rgba[2]; /* [KILN_LEVEL_SIDE squared][4] */
    uint64_t rows;  /* drawn so far */
} drawer;

/* ---- a view ---------------------------------------------------------------------------------- */
/* The middle of a larger picture, as a picture of its own: profiles that know no principal point
 * take it as it is, too. */
static void keep_middle(kiln_camera *c)
{
    const uint32_t width = c->width < KILN_LEVEL_SIDE ? c->width : KILN_LEVEL_SIDE;
    const uint32_t height = c->height < KILN_LEVEL_SIDE ? c->height : KILN_LEVEL_SIDE;
    c->cx -= (c->width - width) / 2.0;
    c->cy -= (c->height - height) / 2.0;
    c->width = width;
    c->height = height;
}

static kiln_status view_at(const drawer *d, const kiln_bake_camera *camera, uint32_t level,
                           kiln_camera *seen, kiln_view_request *out, kiln_error *err)
{
    kiln_bake_camera_unpack(camera, seen);
    kiln_camera_for_level(seen, level);
    keep_middle(seen);
    return kiln_view_request_init(out, &d->options, d->bake->scene, seen, err);
}

/* ---- which cameras --------------------------------------------------------------------------- */
/* What errors foretell of a view, in pixels. */
static double cost_of_cut(const drawer *d, const kiln_level_cut *cut,
                          const kiln_view_request *request)
{
    double cost = 0;
    for (uint32_t i = 0; i < cut->n; i++) {
        const kiln_chunk *c = &d->drawn.chunks->chunks[cut->picks[i].chunk];
        if (cut->picks[i].level > 0 && kiln_view_request_may_see(request, c))
            cost += kiln_level_cost(&request->view, &d->drawn.tree.nodes[cut->picks[i].node], c);
    }
    return cost;
}

typedef struct {
    const kiln_bake_camera *camera;
    double cost; /* a pixel */
} candidate;

static int costliest_view_first(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->cost != y->cost) return x->cost > y->cost ? -1 : 1;
    return strcmp(x->camera->name, y->camera->name);
}

/* Evenly of the test cameras, or of all where there is none. */
static uint32_t list_candidates(const kiln_bake_views *v, candidate out[CANDIDATES])
{
    uint32_t n_test = 0, n = 0, at = 0;
    for (uint32_t i = 0; i < v->n_cameras; i++) n_test += strcmp(v->cameras[i].split, "test") == 0;
    const uint32_t all = n_test ? n_test : v->n_cameras, step = all / CANDIDATES + 1;
    for (uint32_t i = 0; i < v->n_cameras; i++) {
        if (n_test && strcmp(v->cameras[i].split, "test") != 0) continue;
        if (at++ % step == 0 && n < CANDIDATES) out[n++].camera = &v->cameras[i];
    }
    return n;
}

/* Fills the cameras, the worst and one in the middle, and returns how many. By a level in the
 * middle. */
static kiln_status choose_level_cameras(const drawer *d, uint32_t levels,
                                        const kiln_bake_camera *out[2], uint32_t *n_out,
                                        kiln_error *err)
{
    candidate of[CANDIDATES];
    kiln_level_cut cut = {0};
    kiln_view_request request;
    kiln_camera *seen;
    const uint32_t n = list_candidates(&d->bake->views, of), level = (levels + 1) / 2;
    *n_out = n < 2 ? n : 2;
    KILN_TRY(KILN_ALLOC(&seen, 1, "a camera", err));
    kiln_status st = kiln_level_choose(
        &d->drawn.tree, &(kiln_level_wish){.form = KILN_LEVEL_AT, .level = level}, NULL, &cut, err);
    for (uint32_t i = 0; i < n && st == KILN_OK; i++) {
        st = view_at(d, of[i].camera, level, seen, &request, err);
        if (st == KILN_OK)
            of[i].cost = cost_of_cut(d, &cut, &request) / ((double)seen->width * seen->height);
    }
    kiln_level_cut_release(&cut);
    free(seen);
    if (st != KILN_OK || n == 0) return st;
    qsort(of, n, sizeof *of, costliest_view_first);
    out[0] = of[0].camera;
    out[1] = of[n / 2].camera;
    return KILN_OK;
}

/* ---- a picture ------------------------------------------------------------------------------- */
static kiln_status give_level_chunk(void *context, uint32_t index, kiln_draw_chunk *out,
                                    kiln_error *err)
{
    const drawer *d = context;
    *out = (kiln_draw_chunk){.n = 0};
    if (!d->in_view[index]) return KILN_OK;
    return kiln_chunk_to_draw(d->planes, d->bake->m, &d->drawn.chunks->chunks[index],
                              d->drawn.chunks->sh_degree, true, out, err);
}

static kiln_status draw_level(drawer *d, const kiln_view_request *request,
                              const kiln_view_chunks *chunks, float *rgba, kiln_error *err)
{
    const float over[3] = {(float)d->background[0], (float)d->background[1],
                           (float)d->background[2]};
    const kiln_draw_scene scene = {.view = &request->view,
                                   .profile = request->profile,
                                   .antialiased = request->antialiased,
                                   .apart = true,
                                   .sh_degree = d->drawn.chunks->sh_degree,
                                   .n_chunks = d->drawn.chunks->n_chunks,
                                   .chunk = give_level_chunk,
                                   .context = d};
    memset(d->in_view, 0, d->drawn.chunks->n_chunks * sizeof *d->in_view);
    for (uint32_t i = 0; i < chunks->n; i++) d->in_view[chunks->numbers[i]] = true;
    d->rows += chunks->rows;
    return kiln_draw(d->runner, &scene, &(kiln_draw_want){.background = over, .rgba = rgba}, NULL,
                     err);
}

static kiln_status as_thumbnail(const float *rgba, uint32_t width, uint32_t height,
                                kiln_thumbnail *out, kiln_error *err)
{
    const uint64_t n = (uint64_t)width * height;
    *out = (kiln_thumbnail){.width = width, .height = height};
    KILN_TRY(KILN_ALLOC_UNSET(&out->rgb, 3 * n, "a picture", err));
    for (uint64_t i = 0; i < n; i++) memcpy(out->rgb + 3 * i, rgba + 4 * i, 3 * sizeof *rgba);
    return KILN_OK;
}

static kiln_status compare_level(drawer *d, uint32_t width, uint32_t height, kiln_level_picture *p,
                                 kiln_error *err)
{
    kiln_thumbnail full = {0}, level = {0};
    kiln_metrics metrics;
    kiln_metrics_args a = {.width = width,
                           .height = height,
                           .a = d->rgba[0],
                           .b = d->rgba[1],
                           .a_step = 4,
                           .b_step = 4};
    kiln_status st;
    a.a_row = a.b_row = width;
    a.out = &metrics;
    KILN_GO(kiln_runner_run(d->runner, KILN_OP_metrics, &a, err));
    p->psnr = metrics.psnr;
    p->mse = metrics.mse;
    p->ssim = metrics.ssim_same;
    KILN_GO(as_thumbnail(d->rgba[0], width, height, &full, err));
    KILN_GO(as_thumbnail(d->rgba[1], width, height, &level, err));
    p->pair.width = width;
    p->pair.height = height;
    KILN_GO(kiln_picture_pair_make(&full, &level, &p->pair, err));
done:
    kiln_thumbnail_release(&full);
    kiln_thumbnail_release(&level);
    return st;
}

/* *fits is false, and nothing is drawn, if that would be too many Gaussians. */
static kiln_status make_picture(drawer *d, const kiln_bake_camera *camera, uint32_t level,
                                kiln_level_picture *p, bool *fits, kiln_error *err)
{
    kiln_camera *seen = NULL;
    kiln_view_request request;
    kiln_view_chunks chunks[2] = {{0}, {0}};
    kiln_status st;
    *p = (kiln_level_picture){.camera = camera, .level = level};
    KILN_GO(KILN_ALLOC(&seen, 1, "a camera", err));
    kiln_bake_camera_unpack(camera, seen);
    kiln_camera_for_level(seen, level);
    p->width = seen->width;
    p->height = seen->height;
    KILN_GO(view_at(d, camera, level, seen, &request, err));
    for (int i = 0; i < 2; i++) {
        const kiln_level_wish wish = {.form = KILN_LEVEL_AT, .level = i ? level : 0};
        KILN_GO(kiln_view_chunks_choose(&d->drawn, &wish, &request, &chunks[i], err));
    }
    p->full = chunks[0].rows;
    p->rows = chunks[1].rows;
    *fits = p->full <= KILN_LEVEL_ROWS && d->rows + p->full + p->rows <= KILN_LEVEL_ROWS;
    if (!*fits) goto done;
    for (int i = 0; i < 2; i++) KILN_GO(draw_level(d, &request, &chunks[i], d->rgba[i], err));
    KILN_GO(compare_level(d, seen->width, seen->height, p, err));
done:
    kiln_view_chunks_release(&chunks[0]);
    kiln_view_chunks_release(&chunks[1]);
    free(seen);
    return st;
}

/* ---- all ------------------------------------------------------------------------------------- */
uint64_t kiln_level_pictures_bytes(const kiln_level_pictures *p)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->n; i++) bytes += kiln_picture_pair_bytes(&p->of[i].pair);
    return bytes;
}

static bool is_worth_seeing(const kiln_bake_camera *c, uint32_t level)
{
    const double longer = c->width > c->height ? c->width : c->height;
    return longer * longer >= ldexp((double)LEAST_SIDE * LEAST_SIDE, (int)level);
}

/* *all: no level of the camera is left out. */
static kiln_status make_camera(drawer *d, const kiln_bake_camera *camera, uint32_t levels,
                               uint64_t bytes, kiln_level_pictures *out, bool *all, kiln_error *err)
{
    *all = true;
    for (uint32_t level = 1;
         level <= levels && out->n < KILN_LEVEL_PICTURES && is_worth_seeing(camera, level);
         level++) {
        kiln_level_picture *p = &out->of[out->n];
        bool fits = false;
        if (*all) KILN_TRY(make_picture(d, camera, level, p, &fits, err));
        out->n++; /* it is released even if it is dropped */
        if (fits && kiln_level_pictures_bytes(out) <= bytes) continue;
        kiln_picture_pair_release(&p->pair);
        out->n--;
        out->n_cut++;
        *all = false;
    }
    return KILN_OK;
}

static kiln_status make_all(drawer *d, uint64_t bytes, kiln_level_pictures *out, kiln_error *err)
{
    const uint32_t coarsest = kiln_level_tree_coarsest(&d->drawn.tree);
    const uint32_t levels = coarsest < KILN_LEVELS_MAX ? coarsest : KILN_LEVELS_MAX;
    const kiln_bake_camera *cameras[2];
    uint32_t n = 0;
    bool all;
    KILN_TRY(choose_level_cameras(d, levels, cameras, &n, err));
    if (n == 0) return KILN_OK;
    KILN_TRY(make_camera(d, cameras[0], levels, bytes, out, &all, err));
    if (n < 2 || !all || 2 * d->rows > KILN_LEVEL_ROWS ||
        2 * kiln_level_pictures_bytes(out) > bytes)
        return KILN_OK;
    const uint32_t first = out->n, n_cut = out->n_cut;
    KILN_TRY(make_camera(d, cameras[1], levels, bytes, out, &all, err));
    out->n_cut = n_cut;
    /* all of its levels or none */
    while (!all && out->n > first) kiln_picture_pair_release(&out->of[--out->n].pair);
    return KILN_OK;
}

/* As the pictures of the bake are, or as kiln-render would draw them. */
static kiln_status set_options(drawer *d, kiln_error *err)
{
    const kiln_bake_views *v = &d->bake->views;
    const kiln_profile_id profile = kiln_profile_find(v->profile);
    d->options = (kiln_view_options){.profile = KILN_PROFILE_INRIA, .near_text = "profile"};
    KILN_TRY(kiln_background_parse("scene", d->bake->scene, d->background, err));
    if (v->n_image_of) memcpy(d->background, v->image_of[0]->background, sizeof d->background);
    if (profile == KILN_PROFILE_COUNT || !(v->near_m > 0) || !isfinite(v->near_m)) return KILN_OK;
    (void)snprintf(d->near_text, sizeof d->near_text, "%.9g", v->near_m);
    d->options = (kiln_view_options){.profile = (uint32_t)profile,
                                     .antialiased = v->antialiased ? 1 : 2,
                                     .near_text = d->near_text};
    return KILN_OK;
}

/* One thread: for pictures this small, several gain little where the machine is idle, and wait for
 * each other where it is not. */
static kiln_status open_drawer(drawer *d, kiln_error *err)
{
    const kiln_runner_options cpu = {.device = KILN_RUNNER_CPU, .threads = 1};
    KILN_TRY(set_options(d, err));
    KILN_TRY(KILN_ALLOC(&d->in_view, d->drawn.chunks->n_chunks, "chunks of a view", err));
    KILN_TRY(kiln_plane_cache_new(CACHE_BYTES, &d->planes, err));
    for (int i = 0; i < 2; i++)
        KILN_TRY(KILN_ALLOC_UNSET(&d->rgba[i], (uint64_t)KILN_LEVEL_SIDE * KILN_LEVEL_SIDE * 4,
                                  "a picture", err));
    return kiln_runner_new(&cpu, &d->runner, err);
}

kiln_status kiln_level_pictures_make(const kiln_bake_facts *b, uint64_t bytes,
                                     kiln_level_pictures *out, kiln_error *err)
{
    drawer *d;
    *out = (kiln_level_pictures){.n = 0};
    if (!b->scene || !b->layers[KILN_LAYER_levels] || !b->layers[KILN_LAYER_baked] ||
        b->views.n_cameras == 0)
        return KILN_OK;
    KILN_TRY(KILN_ALLOC(&d, 1, "pictures of levels", err));
    d->bake = b;
    kiln_status st = kiln_drawn_current(b->m, KILN_LAYER_baked, true, &d->drawn, err);
    const bool has_none = st == KILN_E_STALE; /* they are of other chunks than the bake has now */
    if (has_none) st = KILN_OK;
    if (st == KILN_OK && !has_none) st = open_drawer(d, err);
    if (st == KILN_OK && !has_none) st = make_all(d, bytes, out, err);
    kiln_runner_free(d->runner);
    kiln_plane_cache_free(d->planes);
    kiln_drawn_release(&d->drawn);
    free(d->rgba[0]);
    free(d->rgba[1]);
    free(d->in_view);
    free(d);
    return st;
}

void kiln_level_pictures_release(kiln_level_pictures *p)
{
    for (uint32_t i = 0; i < p->n; i++) kiln_picture_pair_release(&p->of[i].pair);
    p->n = 0;
}
