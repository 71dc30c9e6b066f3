/* makers_points -- Points: order, neighbours, initial Gaussians. */
#include "tests/gpu/makers_internal.h"

#include "kernels/depth_order/depth_order_math.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The k of a call of knn and knn_join; 0: this scene has no such call. Under KILN_GPU_SMALL one for
 * each search kernel, of scenes that differ: their blocks sort samples in shared memory however few
 * points there are, and racecheck takes three seconds a call.
 */
static uint32_t neighbours_asked(const scene *s, unsigned variant, const uint32_t ks[5])
{
    static const uint32_t of_kernels[] = {3, 7, 32};
    const scene_kind kind = s->spec.kind;
    if (!scene_is_finite_cloud(s)) return 0;
    if (!scenes_are_small()) {
        if (variant > 1 && s->n > 5000 && kind > SCENE_EQUAL) return 0; /* the time it takes */
        return variant < 5 ? ks[variant] : 0;
    }
    if (kind == SCENE_RANDOM)
        return variant < 3 && s->n > 1 && s->n != 257 ? of_kernels[variant] : 0;
    if (kind == SCENE_EQUAL || kind == SCENE_LARGE) return variant == 0 && s->n == 257 ? ks[0] : 0;
    return variant == 0 && kind == SCENE_CLUSTERED && s->n > 257 ? ks[0] : 0;
}

/* Spread over many depths, over three and over one; rows ascending, descending and mixed, some of
 * them equal, so that ties show. */
bool make_depth_order(const scene *s, unsigned variant, kiln_depth_order_args *a, made_call *c)
{
    if (variant > 3 || !scene_is_finite_cloud(s) ||
        (scenes_are_small() && s->spec.kind > SCENE_EQUAL))
        return false;
    float *depths = made_own(c, s->n, sizeof *depths);
    uint32_t *rows = made_own(c, s->n, sizeof *rows);
    for (uint64_t i = 0; i < s->n; i++) {
        const float d = fabsf(s->means[i]), one_of_three = (float)(1 + i % 3);
        depths[i] = variant == 2 ? one_of_three : variant == 3 ? 7.5f : d > 0.0f ? d : FLT_TRUE_MIN;
        rows[i] = (uint32_t)(variant == 0   ? i
                             : variant == 3 ? i * 2654435761u % (s->n / 2 + 1)
                                            : UINT32_MAX - 1 - i);
    }
    *a = (kiln_depth_order_args){.n = s->n,
                                 .depths = depths,
                                 .source_rows = rows,
                                 .order = made_own(c, s->n, sizeof *a->order)};
    return true;
}

bool make_initial(const scene *s, unsigned variant, kiln_initial_args *a, made_call *c)
{
    if (variant > 1 || s->spec.of_views) return false;
    *a = (kiln_initial_args){.n = s->n,
                             .spacing2 = s->spacing2,
                             .rgb = s->rgb,
                             .opacity = variant ? 0.9f : 0.1f,
                             .fallback_log_scale = -3.5f,
                             .log_scales = made_own(c, 3 * s->n, sizeof(float)),
                             .quats = made_own(c, 4 * s->n, sizeof(float)),
                             .opacity_logits = made_own(c, s->n, sizeof(float)),
                             .sh0 = made_own(c, 3 * s->n, sizeof(float)),
                             .n_fallback = made_own(c, 1, sizeof(uint64_t))};
    return true;
}

bool make_knn(const scene *s, unsigned variant, kiln_knn_args *a, made_call *c)
{
    static const uint32_t ks[] = {3, 1, 7, 32, 3};
    const uint32_t k = neighbours_asked(s, variant, ks);
    if (k == 0) return false;
    *a = (kiln_knn_args){.n = s->n, .k = k, .means = s->means};
    if (variant != 4) a->spacing2 = made_own(c, s->n, sizeof(float));
    if (variant > 1) a->best = made_own(c, s->n * a->k, sizeof(float));
    return true;
}

/* Two fifths ask the others; some have found much, some little, every seventh nothing. */
bool make_knn_join(const scene *s, unsigned variant, kiln_knn_join_args *a, made_call *c)
{
    static const uint32_t ks[] = {3, 3, 1, 7, 32};
    const uint64_t m = s->n * 2 / 5, n = s->n - m;
    const uint32_t k = neighbours_asked(s, variant, ks);
    if (k == 0) return false;
    float *queries = made_own(c, 3 * m, sizeof *queries),
          *means = made_own(c, 3 * n, sizeof *means), *best = made_own(c, k * m, sizeof *best);
    for (uint64_t axis = 0; axis < 3; axis++) {
        memcpy(queries + axis * m, s->means + axis * s->n, m * sizeof *queries);
        memcpy(means + axis * n, s->means + axis * s->n + m, n * sizeof *means);
    }
    for (uint64_t i = 0; i < m; i++)
        for (uint32_t j = 0; j < k; j++)
            best[j * m + i] =
                variant == 0 || i % 7 == 0 ? FLT_MAX : 1e-4f * (float)(i % 100) * (float)(j + 1);
    *a = (kiln_knn_join_args){
        .n = n, .n_queries = m, .k = k, .means = means, .queries = queries, .best = best};
    return true;
}

bool make_ranks(const scene *s, unsigned variant, kiln_ranks_args *a, made_call *c)
{
    if (variant > 2 || !scene_is_finite_cloud(s)) return false;
    uint64_t *counts = made_own(c, KILN_RANK_BINS, sizeof *counts);
    const float *values = variant == 2 ? s->log_scales : s->means;
    /* they are added to */
    for (uint64_t i = 0; i < KILN_RANK_BINS; i++) counts[i] = i * 65537 % 1000 << (i % 3 * 20);
    *a = (kiln_ranks_args){.n = 3 * s->n, .values = values, .pass = variant > 0, .counts = counts};
    if (variant > 0) a->high = s->n > 0 ? kiln_rank_key(values[s->n / 2]) >> 16 : 7;
    return true;
}

bool make_spatial_order(const scene *s, unsigned variant, kiln_spatial_order_args *a, made_call *c)
{
    static const struct {
        double centre[3], half;
    } cubes[] = {{{0, 0, 0}, 8},
                 {{0.5, -0.25, 1.0 / 3.0}, 0.25},
                 {{1e6, 0, -3e-9}, 0x1p-20},
                 {{0, 0, 0}, 0x1p100}};
    if (variant >= sizeof cubes / sizeof *cubes || !scene_is_finite_cloud(s)) return false;
    *a = (kiln_spatial_order_args){.n = s->n,
                                   .means = s->means,
                                   .half = cubes[variant].half,
                                   .order = made_own(c, s->n, sizeof *a->order),
                                   .codes = made_own(c, s->n, sizeof *a->codes)};
    memcpy(a->centre, cubes[variant].centre, sizeof a->centre);
    return true;
}
