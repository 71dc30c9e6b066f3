#include "stages/cameras/pinholes.h"

#include "kernels/lens/lens_math.h"
#include "stages/cameras/camera_models.h"

#include <stdio.h>
#include <string.h>

enum { SIDE_MAX = 1 << 20 }; /* as for photos and pictures */
static bool is_side(uint32_t n) { return n > 0 && n <= SIDE_MAX; }

static kiln_status lens_of(const kiln_camera *c, uint32_t width, uint32_t height, kiln_lens *out,
                           kiln_error *err)
{
    const kiln_camera_model *m = kiln_camera_model_by_name(c->model);
    bool sound = m && m->n_params == c->n_params && is_side(width) && is_side(height);
    for (uint32_t i = 0; sound && i < (m->n_focal ? m->n_focal : m->n_params); i++)
        sound = c->params[i] > 0;
    if (!sound)
        return kiln_fail(err, KILN_E_INPUT,
                         "camera '%.300s' has a lens '%.40s' of %u parameters for %u x %u pixels, "
                         "which is unknown; import again",
                         c->name, c->model, c->n_params, width, height);
    return kiln_lens_init(out, m->id, c->params, width, height, err);
}

kiln_status kiln_pinhole_lens(const kiln_camera *c, kiln_lens *out, kiln_error *err)
{
    return lens_of(c, c->photo_width, c->photo_height, out, err);
}

static void take_pinhole(kiln_camera *c, const kiln_pinhole *p)
{
    c->width = p->width;
    c->height = p->height;
    c->fx = p->fx;
    c->fy = p->fy;
    c->cx = p->cx;
    c->cy = p->cy;
}

/* Cameras that follow each other often have one lens: it is measured once. */
typedef struct {
    bool known;
    char model[40];
    double params[KILN_CAMERA_PARAMS];
    uint32_t width, height;
    kiln_pinhole pinhole;
    bool blind, folded;
} last_lens;

static bool has_lens(const kiln_camera *c, const last_lens *l)
{
    return l->known && strcmp(c->model, l->model) == 0 &&
           memcmp(c->params, l->params, sizeof l->params) == 0 && c->width == l->width &&
           c->height == l->height;
}

static bool lens_shows_pixel(const kiln_lens *l, const kiln_pinhole *p, uint32_t x, uint32_t y)
{
    const double u = (x + 0.5 - p->cx) / p->fx, v = (y + 0.5 - p->cy) / p->fy;
    double at[2], j[4];
    return u * u + v * v <= l->limit * l->limit && kiln_lens_bend(l, u, v, at, j) && at[0] >= 0 &&
           at[0] <= l->width && at[1] >= 0 && at[1] <= l->height;
}

/* No pixel of the undistorted photo is one of the photo. Every 64th is looked at first, which is
 * enough for all lenses but these.
 */
static bool shows_nothing(const kiln_lens *l, const kiln_pinhole *p)
{
    for (uint32_t step = 64; step; step /= 64)
        for (uint32_t y = 0; y < p->height; y += step)
            for (uint32_t x = 0; x < p->width; x += step)
                if (lens_shows_pixel(l, p, x, y)) return false;
    return true;
}

/* A corner of the photo is behind the circle where rays come back. */
static bool lens_folds(const kiln_lens *l)
{
    const double most = 1e4; /* of limit: no ray comes back */
    double ray[2];
    for (int k = 0; l->limit < most && k < 4; k++)
        if (!kiln_lens_ray(l, (double[2]){k & 1 ? l->width : 0, k & 2 ? l->height : 0}, ray))
            return true;
    return false;
}

static kiln_status set_pinhole(kiln_camera *c, double blank, last_lens *last, kiln_error *err)
{
    kiln_lens lens;
    if (!has_lens(c, last)) {
        KILN_TRY(lens_of(c, c->width, c->height, &lens, err));
        *last = (last_lens){.known = true,
                            .width = c->width,
                            .height = c->height,
                            .pinhole = kiln_lens_target(&lens, blank)};
        memcpy(last->model, c->model, sizeof last->model);
        memcpy(last->params, c->params, sizeof last->params);
        last->blind = shows_nothing(&lens, &last->pinhole);
        last->folded = !last->blind && lens_folds(&lens);
    }
    take_pinhole(c, &last->pinhole);
    return KILN_OK;
}

void kiln_lenses_count(kiln_camera_set *set, bool as_is)
{
    set->n_distorted = set->n_blind = set->n_folded = 0;
    set->other_lenses = false;
    set->as_is = as_is;
    for (uint32_t i = 0; i < set->n_cameras; i++) {
        kiln_camera *c = &set->cameras[i];
        if (!c->distorted) continue;
        if (set->n_distorted++ == 0) memcpy(set->lens, c->model, sizeof set->lens);
        set->other_lenses |= strcmp(set->lens, c->model) != 0;
        if (as_is) c->distorted = false;
    }
}

kiln_status kiln_pinholes_set(kiln_camera_set *set, double blank, kiln_error *err)
{
    last_lens last = {0};
    for (uint32_t i = 0; i < set->n_cameras; i++) {
        if (!set->cameras[i].distorted) continue;
        KILN_TRY(set_pinhole(&set->cameras[i], blank, &last, err));
        set->n_blind += last.blind;
        set->n_folded += last.folded;
    }
    return KILN_OK;
}
