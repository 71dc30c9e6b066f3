/* project_planes -- Gaussians for the tests of project: one by one, at random, as planes; and the
 * call itself. */
#ifndef KILN_TESTS_PROJECT_PLANES_H
#define KILN_TESTS_PROJECT_PLANES_H

#include "kernels/ops.h"
#include "stages/generate/inputs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MOST = 4096 }; /* Gaussians of a test */

typedef struct {
    float mean[3], log_scale[3], quat[4], opacity_logit, sh[25][3];
} gaussian;

/* The same as planes, of degree 4. Free data. */
typedef struct {
    uint64_t n;
    float *data, *means, *log_scales, *quats, *opacity_logits, *sh0, *shN;
} planes;

static inline planes planes_of(const gaussian *g, uint64_t n)
{
    planes p = {.n = n, .data = calloc(n * 86 + 1, sizeof(float))};
    assert_non_null(p.data);
    p.means = p.data;
    p.log_scales = p.means + 3 * n;
    p.quats = p.log_scales + 3 * n;
    p.opacity_logits = p.quats + 4 * n;
    p.sh0 = p.opacity_logits + n;
    p.shN = p.sh0 + 3 * n;
    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t c = 0; c < 3; c++) {
            p.means[c * n + i] = g[i].mean[c];
            p.log_scales[c * n + i] = g[i].log_scale[c];
            p.sh0[c * n + i] = g[i].sh[0][c];
            for (uint64_t k = 1; k < 25; k++) p.shN[(3 * (k - 1) + c) * n + i] = g[i].sh[k][c];
        }
        for (uint64_t c = 0; c < 4; c++) p.quats[c * n + i] = g[i].quat[c];
        p.opacity_logits[i] = g[i].opacity_logit;
    }
    return p;
}

typedef struct {
    kiln_profile_id profile;
    bool aa, no_colour;
    unsigned degree, threads;
    const kiln_ops *ops;
} how;

/* Number of visible ones; out has room for n. */
static inline uint64_t project(const planes *p, const kiln_view *view, how h, kiln_splat2d *out)
{
    uint64_t visible = 0;
    size_t bytes = 0;
    kiln_error err;
    const kiln_exec x = {.device = -1, .threads = h.threads ? h.threads : 1};
    const kiln_ops *ops = h.ops ? h.ops : kiln_ops_cpu();
    const kiln_project_args a = {.n = p->n,
                                 .means = p->means,
                                 .log_scales = p->log_scales,
                                 .quats = p->quats,
                                 .opacity_logits = p->opacity_logits,
                                 .sh0 = h.no_colour ? NULL : p->sh0,
                                 .shN = p->shN,
                                 .sh_degree = h.degree,
                                 .view = view,
                                 .profile = h.profile,
                                 .antialiased = h.aa,
                                 .splats = out,
                                 .n_visible = &visible};
    assert_int_equal(ops->project(&x, &a, NULL, &bytes, &err), KILN_OK);
    void *work = malloc(bytes + 1);
    assert_non_null(work);
    assert_int_equal(ops->project(&x, &a, work, &bytes, &err), KILN_OK);
    free(work);
    return visible;
}

/* A camera at (0.3, -0.2, -4) looking along a direction near +z, principal point off the middle,
 * sizes no multiple of 16. */
static inline void view_of(kiln_view *v)
{
    const double c = cos(0.2), s = sin(0.2), e = cos(0.1), f = sin(0.1);
    const double r[9] = {c, 0, -s, f * s, e, f * c, e * s, -f, e * c};
    const double eye[3] = {0.3, -0.2, -4}, origin[3] = {0, 0, 0},
                 intrinsics[4] = {310, 290, 150, 110};
    double t[3];
    for (int i = 0; i < 3; i++)
        t[i] = -(r[3 * i] * eye[0] + r[3 * i + 1] * eye[1] + r[3 * i + 2] * eye[2]);
    kiln_view_init(v, r, t, origin, intrinsics, 333, 217, 0.2f, 12.0f);
}

static inline double uniform(kg_rng *r, double lo, double hi) { return lo + (hi - lo) * kg_u(r); }

static inline void random_gaussians(gaussian *g, uint64_t n, uint64_t seed)
{
    kg_rng r = {kg_stream(seed, 77), 0};
    for (uint64_t i = 0; i < n; i++) {
        const double size = uniform(&r, -6, -0.5);
        for (int c = 0; c < 3; c++) {
            g[i].mean[c] = (float)uniform(&r, c == 2 ? -6 : -5, c == 2 ? 10 : 5);
            g[i].log_scale[c] = (float)(size + uniform(&r, -1, 1));
            for (int k = 0; k < 25; k++) g[i].sh[k][c] = (float)(kg_n(&r) * (k ? 0.2 : 0.8));
        }
        for (int c = 0; c < 4; c++) g[i].quat[c] = (float)(kg_n(&r) * 3);
        g[i].opacity_logit = (float)uniform(&r, -8, 6);
    }
}

#endif
