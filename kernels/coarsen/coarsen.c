/* coarsen -- what needs no second build: checks, memory, weights, and the rows of a level. */
#include "kernels/coarsen/coarsen.h"

#include "base/carve.h"
#include "kernels/coarsen/coarsen_state.h"
#include "kernels/math/ellipsoid_math.h"
#include "kernels/math/real.h"

#include <float.h>
#include <string.h>

size_t kiln_knn_tree_layout_cpu(knn_tree *t, uint64_t n, void *work);

static const float most_weight = 1e37f, least_weight = COARSEN_LEAST_WEIGHT;
static const double most_alpha = 0.999994, most_log_scale = 88; /* planes hold no more */
static const uint64_t max_rows = UINT32_MAX - 1;

static double surface_of(const kiln_coarsen_rows *rows, uint64_t row)
{
    double log_scales[3];
    for (uint64_t a = 0; a < 3; a++) log_scales[a] = (double)rows->log_scales[a * rows->n + row];
    return kiln_ellipsoid_area(log_scales);
}

void kiln_coarsen_weights(const kiln_coarsen_rows *rows)
{
    for (uint64_t i = 0; i < rows->n; i++) {
        const double w = (double)kiln_sigmoidf(rows->opacity_logits[i]) * surface_of(rows, i);
        rows->weights[i] = w > (double)most_weight    ? most_weight
                           : w > (double)least_weight ? (float)w
                                                      : least_weight;
    }
}

size_t kiln_coarsen_layout(coarsen_state *s, uint64_t n, uint32_t sh_degree, void *base)
{
    kiln_carve c = {base, 0};
    memset(s, 0, sizeof *s);
    s->n = n;
    s->threads = 1;
    s->stride = (uint32_t)((kiln_coarsen_colours(sh_degree) + COARSEN_LANES - 1) / COARSEN_LANES *
                           COARSEN_LANES);
    s->nodes = kiln_take(&c, n, sizeof *s->nodes);
    s->colours = kiln_take(&c, n, s->stride * sizeof *s->colours);
    s->into = kiln_take(&c, n, sizeof *s->into);
    s->version = kiln_take(&c, n, sizeof *s->version);
    s->near = kiln_take(&c, n, sizeof *s->near);
    s->n_near = kiln_take(&c, n, sizeof *s->n_near);
    s->edges = kiln_take(&c, n, sizeof *s->edges);
    s->heap = kiln_take(&c, n, sizeof *s->heap);
    s->place = kiln_take(&c, n, sizeof *s->place);
    s->live = kiln_take(&c, n, sizeof *s->live);
    s->points = kiln_take(&c, n, 3 * sizeof *s->points);
    knn_tree tree;
    s->tree_bytes = kiln_knn_tree_layout_cpu(&tree, n, NULL);
    s->tree = kiln_take(&c, s->tree_bytes, 1);
    return c.used;
}

size_t kiln_coarsen_bytes(uint64_t n, uint32_t sh_degree, uint32_t n_levels)
{
    (void)n_levels; /* levels are written one after the other from one state */
    if (n > max_rows || sh_degree > 4) return SIZE_MAX;
    coarsen_state s;
    return kiln_coarsen_layout(&s, n, sh_degree, NULL);
}

static void copy_planes(const float *from, uint64_t n_from, uint64_t row, float *to, uint64_t n_to,
                        uint64_t at, uint64_t planes)
{
    for (uint64_t p = 0; p < planes; p++) to[p * n_to + at] = from[p * n_from + row];
}

static void store_unmerged(const kiln_coarsen_rows *in, uint64_t row, kiln_coarsen_rows *out,
                           uint64_t at)
{
    copy_planes(in->means, in->n, row, out->means, out->n, at, 3);
    copy_planes(in->log_scales, in->n, row, out->log_scales, out->n, at, 3);
    copy_planes(in->quats, in->n, row, out->quats, out->n, at, 4);
    copy_planes(in->opacity_logits, in->n, row, out->opacity_logits, out->n, at, 1);
    copy_planes(in->sh0, in->n, row, out->sh0, out->n, at, 3);
    if (in->sh_degree > 0)
        copy_planes(in->shN, in->n, row, out->shN, out->n, at,
                    kiln_coarsen_colours(in->sh_degree) - 3);
    copy_planes(in->weights, in->n, row, out->weights, out->n, at, 1);
    if (in->visibility) out->visibility[at] = in->visibility[row];
    if (in->prominence) out->prominence[at] = in->prominence[row];
}

static float opacity_logit_of(double mass, double surface)
{
    double alpha = mass / surface;
    alpha = alpha < most_alpha ? alpha : most_alpha;
    return kiln_logitf((float)(alpha > 1e-37 ? alpha : 1e-37));
}

/* What kiln_coarsen_load_cpu makes the row's w of again. */
static float visibility_of(const coarsen_state *s, const coarsen_node *g)
{
    const double share = g->weight < g->mass ? g->weight / g->mass : 1;
    return (float)(s->antialiased ? share * share : share);
}

static void store_merged(const coarsen_state *s, uint64_t slot, kiln_coarsen_rows *out, uint64_t at)
{
    const coarsen_node *g = &s->nodes[slot];
    const float *colours = s->colours + slot * s->stride;
    const double least = 1e-76; /* e^-87 squared: the least scale that import keeps */
    double values[3], axes[9], quat[4], log_scales[3];
    kiln_covar_axes(g->covar, values, axes);
    kiln_quat_of_rotation(axes, quat);
    for (uint64_t a = 0; a < 3; a++)
        log_scales[a] = 0.5 * kiln_log_f64(values[a] > least ? values[a] : least);
    kiln_coarsen_grow(g->mass, s->antialiased, log_scales);
    for (uint64_t a = 0; a < 3; a++)
        log_scales[a] = log_scales[a] < most_log_scale ? log_scales[a] : most_log_scale;
    for (uint64_t a = 0; a < 3; a++) {
        out->means[a * out->n + at] = (float)g->mean[a];
        out->log_scales[a * out->n + at] = (float)log_scales[a];
        out->sh0[a * out->n + at] = colours[a];
    }
    for (uint64_t a = 0; a < 4; a++) out->quats[a * out->n + at] = (float)quat[a];
    out->opacity_logits[at] = opacity_logit_of(g->mass, kiln_ellipsoid_area(log_scales));
    const uint64_t rest = kiln_coarsen_colours(out->sh_degree) - 3;
    for (uint64_t p = 0; p < rest; p++) out->shN[p * out->n + at] = colours[3 + p];
    out->weights[at] = (float)g->mass;
    if (out->visibility) out->visibility[at] = visibility_of(s, g);
    if (out->prominence) out->prominence[at] = g->prominence;
}

void kiln_coarsen_store(const coarsen_state *s, const kiln_coarsen_rows *in, kiln_coarsen_rows *out)
{
    out->n = s->n_live;
    out->sh_degree = in->sh_degree;
    out->antialiased = in->antialiased;
    uint64_t n = 0;
    for (uint32_t slot = 0; slot < s->n; slot++)
        if (s->into[slot] == slot) s->live[n++] = slot;
#pragma omp parallel for num_threads(s->threads) schedule(static) if (s->threads > 1)
    for (uint64_t at = 0; at < n; at++) {
        const uint32_t slot = s->live[at];
        const coarsen_node *g = &s->nodes[slot];
        if (g->members == 1)
            store_unmerged(in, slot, out, at);
        else
            store_merged(s, slot, out, at);
        if (out->source_first) {
            out->source_first[at] = g->first;
            out->source_last[at] = g->last;
            out->source_count[at] = g->count;
        }
    }
}

static kiln_status check_coarsen_rows(const kiln_coarsen_rows *in,
                                      const kiln_coarsen_levels *levels, kiln_error *err)
{
    if (in->sh_degree > 4)
        return kiln_fail(err, KILN_E_INPUT,
                         "coarsen: the harmonics have degree %u; the highest known degree is 4",
                         in->sh_degree);
    if (in->n > max_rows)
        return kiln_fail(err, KILN_E_INPUT, "coarsen: %llu rows; at most 2^32 - 2 are possible",
                         (unsigned long long)in->n);
    for (uint32_t i = 0; i < levels->n; i++)
        if (in->n > 0 && levels->counts[i] == 0)
            return kiln_fail(err, KILN_E_INPUT, "coarsen: level %u was asked for without rows",
                             i + 1);
    return KILN_OK;
}

/* Rows of `in` that one row of level k may stand for: twice the average. */
static uint32_t members_at(uint32_t level) { return level < 31 ? 2u << level : UINT32_MAX; }

kiln_status kiln_coarsen(const kiln_coarsen_rows *in, const kiln_coarsen_levels *levels, void *work,
                         size_t work_bytes, unsigned threads, kiln_error *err)
{
    KILN_TRY(check_coarsen_rows(in, levels, err));
    const size_t bytes = kiln_coarsen_bytes(in->n, in->sh_degree, levels->n);
    if (work_bytes < bytes)
        return kiln_fail(err, KILN_E_CAP,
                         "coarsen needs %zu bytes of work space, but was given %zu", bytes,
                         work_bytes);
    const coarsen_code *const code = kiln_coarsen_code();
    coarsen_state s;
    kiln_coarsen_layout(&s, in->n, in->sh_degree, work);
    s.threads = threads > 1 ? threads : 1;
    code->load(&s, in);
    for (uint32_t i = 0; i < levels->n; i++) {
        code->merge(&s, levels->counts[i], members_at(i + 1));
        kiln_coarsen_store(&s, in, &levels->out[i]);
    }
    return KILN_OK;
}
