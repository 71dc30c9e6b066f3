/* makers_training -- Gradients of Gaussians, and steps along them. */
#include "tests/gpu/makers_internal.h"

#include <math.h>
#include <string.h>

/* Numbers of both signs, from 2^-20 to 2^20 and some of them zero, each made from its place. */
float *make_signed(made_call *c, uint64_t n)
{
    float *to = made_own(c, n, sizeof *to);
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t mixed = (uint32_t)(i * 2654435761u) >> 8;
        to[i] = mixed % 11 ? ldexpf((float)(mixed % 2001) - 1000.0f, (int)(mixed / 2001 % 41) - 30)
                           : 0.0f;
    }
    return to;
}

bool make_project_backward(scene *s, unsigned variant, kiln_project_backward_args *a, made_call *c)
{
    if (variant > 1 || s->n == 0 || !scene_look_quickly(s)) return false;
    const uint32_t degree = variant ? 1 : SCENE_SH_DEGREE;
    *a = (kiln_project_backward_args){
        .n = s->n,
        .n_splats = s->visible,
        KILN_PROJECT_PLANES(s),
        .sh_degree = degree,
        .view = &s->view,
        .profile = s->spec.profile,
        .antialiased = s->spec.antialiased,
        .splats = s->splats,
        .drawn = make_signed(c, KILN_BACKWARD_PLANES * s->n),
        .gradients = made_own(c, kiln_gradient_planes(degree) * s->n, sizeof *a->gradients)};
    return true;
}

static float *make_copy(made_call *c, const float *from, uint64_t n)
{
    float *to = made_own(c, n, sizeof *to);
    memcpy(to, from, n * sizeof *to);
    return to;
}

/* The first step and one in the middle. */
bool make_adam(const scene *s, unsigned variant, kiln_adam_args *a, made_call *c)
{
    static const kiln_adam_steps steps = {.03f, .02f, .01f, .05f, .02f, .004f};
    if (variant > 1 || s->spec.of_views) return false;
    const uint32_t degree = variant ? 0 : SCENE_SH_DEGREE;
    const uint64_t n = s->n, values = kiln_gradient_planes(degree) * n;
    *a = (kiln_adam_args){
        .n = n,
        .sh_degree = degree,
        .means = make_copy(c, s->means, 3 * n),
        .log_scales = make_copy(c, s->log_scales, 3 * n),
        .quats = make_copy(c, s->quats, 4 * n),
        .opacity_logits = make_copy(c, s->opacity_logits, n),
        .sh0 = make_copy(c, s->sh0, 3 * n),
        .shN = make_copy(c, s->shN, 3 * (((uint64_t)degree + 1) * (degree + 1) - 1) * n),
        .gradients = make_signed(c, values),
        .m = made_own(c, values, sizeof *a->m),
        .v = made_own(c, values, sizeof *a->v),
        .weight = variant ? 0.3f : 1.0f,
        .least = variant ? 0.03f : 1e-15f};
    for (uint64_t i = 0; variant && i < values; i++) {
        a->m[i] = a->gradients[values - 1 - i] / 3;
        a->v[i] = a->gradients[i] * a->gradients[i] / 7;
    }
    kiln_adam_at(a, &steps, variant ? 37 : 0, 100);
    return true;
}
