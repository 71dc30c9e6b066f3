/* coarsen_cpu -- greedy merging: a heap with the best edge of every slot.
 *
 * An edge taken from the heap may be out of date, because its partner has merged since: then the
 * best one is looked for again and put back. A merged slot takes the candidates of both and keeps
 * the cheapest. The heap is ordered by (cost, slot), and a slot's best edge by (cost, partner), so
 * that no tie depends on the machine. */
#include "kernels/coarsen/coarsen_state.h"

#include "kernels/math/ellipsoid_math.h"
#include "kernels/math/real.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Flatness that the cost sees: this share of the sum of the variances is added to each of them. */
static const double floor_share = 0.002;

/* ln x, x a positive normal double: the exponent taken off, the rest in float. Absolute error below
 * 3e-7 + 1e-7 |ln x|. */
static inline double log_of(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    const int64_t e = (int64_t)(u >> 52) - 1023;
    const uint64_t m = (u & 0x000fffffffffffffu) | 0x3ff0000000000000u;
    double mantissa;
    memcpy(&mantissa, &m, sizeof mantissa);
    return (double)e * 0.69314718055994531 + (double)kiln_logf((float)mantissa);
}

static inline double covar_determinant(const double c[6])
{
    return c[0] * (c[3] * c[5] - c[4] * c[4]) - c[1] * (c[1] * c[5] - c[2] * c[4]) +
           c[2] * (c[1] * c[4] - c[2] * c[3]);
}

/* How much a merge of this row matters where nothing says what cameras see of it: weight^(7/16),
 * antialiased weight^(3/4), for there what is small is drawn small. */
static double gate_of(double weight, bool antialiased)
{
    const double half = sqrt(weight), quarter = sqrt(half), eighth = sqrt(quarter);
    return antialiased ? half * quarter : quarter * eighth * sqrt(eighth);
}

/* Prominence is the root of what cameras see and of what they would see if nothing stood in front:
 * W v^1/2 at a scale that depends on how near the cameras are. */
static float closeness_of(const coarsen_node *g, bool antialiased)
{
    /* W v^1/2, both ways */
    const double surface = antialiased ? g->weight : sqrt(g->weight) * sqrt(g->mass);
    return g->prominence > 0 ? kiln_logf(g->prominence) - (float)log_of(surface) : 0;
}

/* What follows from covar, weight, mass and prominence. */
static void derive(coarsen_node *g, bool antialiased)
{
    g->floor = floor_share * (g->covar[0] + g->covar[3] + g->covar[5]);
    const double c[6] = {g->covar[0] + g->floor, g->covar[1], g->covar[2],
                         g->covar[3] + g->floor, g->covar[4], g->covar[5] + g->floor};
    const double det = covar_determinant(c);
    g->inv_root_det = 1 / sqrt(det > 1e-290 ? det : 1e-290);
    g->closeness = closeness_of(g, antialiased);
    g->gate = g->prominence > 0 ? (double)g->prominence : gate_of(g->weight, antialiased);
}

/* Bhattacharyya distance of the two with their floors, at least 0. */
static inline double distance_of(const coarsen_node *a, const coarsen_node *b)
{
    double c[6], d[3];
    const double pad = 0.5 * (a->floor + b->floor);
    for (int i = 0; i < 6; i++) c[i] = 0.5 * (a->covar[i] + b->covar[i]);
    for (int i = 0; i < 3; i++) d[i] = a->mean[i] - b->mean[i];
    c[0] += pad, c[3] += pad, c[5] += pad;
    const double xx = c[3] * c[5] - c[4] * c[4], xy = c[2] * c[4] - c[1] * c[5],
                 xz = c[1] * c[4] - c[2] * c[3];
    const double yy = c[0] * c[5] - c[2] * c[2], yz = c[1] * c[2] - c[0] * c[4],
                 zz = c[0] * c[3] - c[1] * c[1];
    const double det = c[0] * xx + c[1] * xy + c[2] * xz;
    const double form = d[0] * (xx * d[0] + 2 * (xy * d[1] + xz * d[2])) +
                        d[1] * (yy * d[1] + 2 * yz * d[2]) + zz * d[2] * d[2];
    const double lower = a->inv_root_det < b->inv_root_det ? a->inv_root_det : b->inv_root_det;
    const double upper = a->inv_root_det < b->inv_root_det ? b->inv_root_det : a->inv_root_det;
    const double ratio = det * lower * upper;
    return 0.125 * form / det + (ratio > 1 ? 0.5 * log_of(ratio) : 0.0);
}

/* Sum of squared differences of all colours; lanes are added in one order. */
static inline float colours_apart(const float *a, const float *b, uint32_t stride)
{
    float sum[COARSEN_LANES] = {0};
    for (uint32_t i = 0; i < stride; i += COARSEN_LANES) {
#pragma omp simd
        for (int l = 0; l < COARSEN_LANES; l++) {
            const float d = a[i + l] - b[i + l];
            sum[l] += d * d;
        }
    }
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

/* What a squared difference of colours costs beside the distance. 0.282...: 1/(2 sqrt pi), Y_0^0 */
static double colour_share(bool antialiased)
{
    const double y = 0.28209479177387814;
    return (antialiased ? 2 : 4) * y * y;
}

static inline float finite_cost(double cost)
{
    return cost < (double)FLT_MAX ? (float)cost : FLT_MAX;
}

/* Two rows at distances from the cameras that differ much: their mixture would reach from one to
 * the other, and be drawn over all that stands beside. Distances that differ by the root of two or
 * less cost nothing. */
static inline double apart_in_depth(const coarsen_node *a, const coarsen_node *b)
{
    const double apart = fabs((double)a->closeness - (double)b->closeness) - 0.7;
    return apart > 0 ? apart * apart : 0;
}

/* The cost of merging i and j; `enough` or more where it is at least that. */
static inline float merge_cost(const coarsen_state *s, uint32_t i, uint32_t j, float enough)
{
    const coarsen_node *a = &s->nodes[i], *b = &s->nodes[j];
    const double gate = a->gate < b->gate ? a->gate : b->gate, shape = distance_of(a, b);
    const double away = s->prominent ? shape + 0.35 * shape * shape + apart_in_depth(a, b) : shape;
    const float least = finite_cost(away * gate);
    if (least > enough) return least;
    const float apart = colours_apart(s->colours + (uint64_t)i * s->stride,
                                      s->colours + (uint64_t)j * s->stride, s->stride);
    return finite_cost((away + colour_share(s->antialiased) * (double)apart) * gate);
}

/* ---- the heap ---- */

static inline int before(const coarsen_state *s, uint32_t a, uint32_t b)
{
    const float x = s->edges[a].cost, y = s->edges[b].cost;
    return x < y || (x == y && a < b);
}

static inline void put_heap_slot(coarsen_state *s, uint32_t at, uint32_t slot)
{
    s->heap[at] = slot;
    s->place[slot] = at;
}

static void rise(coarsen_state *s, uint32_t at)
{
    const uint32_t slot = s->heap[at];
    for (; at > 0 && before(s, slot, s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        put_heap_slot(s, at, s->heap[(at - 1) / 2]);
    put_heap_slot(s, at, slot);
}

static void sink(coarsen_state *s, uint32_t at)
{
    const uint32_t slot = s->heap[at];
    for (uint64_t child; (child = 2 * (uint64_t)at + 1) < s->n_heap; at = (uint32_t)child) {
        if (child + 1 < s->n_heap && before(s, s->heap[child + 1], s->heap[child])) child++;
        if (!before(s, s->heap[child], slot)) break;
        put_heap_slot(s, at, s->heap[child]);
    }
    put_heap_slot(s, at, slot);
}

static void take_out(coarsen_state *s, uint32_t slot)
{
    const uint32_t at = s->place[slot];
    if (at == COARSEN_NONE) return;
    s->place[slot] = COARSEN_NONE;
    const uint32_t last = s->heap[--s->n_heap];
    if (last == slot) return;
    put_heap_slot(s, at, last);
    rise(s, at);
    sink(s, s->place[last]);
}

/* A slot whose edge has changed: in, out, or elsewhere. */
static void place_again(coarsen_state *s, uint32_t slot)
{
    if (s->edges[slot].partner == COARSEN_NONE) {
        take_out(s, slot);
        return;
    }
    if (s->place[slot] == COARSEN_NONE) put_heap_slot(s, s->n_heap++, slot);
    rise(s, s->place[slot]);
    sink(s, s->place[slot]);
}

/* ---- candidates ---- */

static uint32_t alive(coarsen_state *s, uint32_t slot)
{
    while (s->into[slot] != slot) {
        s->into[slot] = s->into[s->into[slot]];
        slot = s->into[slot];
    }
    return slot;
}

/* The live slots that a list stands for, each once, without `self`. Returns how many; `to` may be
 * the list itself. */
static uint32_t gather_live_slots(coarsen_state *s, uint32_t self, const uint32_t *list, uint32_t n,
                                  uint32_t *to, uint32_t have)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t slot = alive(s, list[i]);
        uint32_t known = slot == self;
        for (uint32_t j = 0; j < have; j++) known |= to[j] == slot;
        if (!known) to[have++] = slot;
    }
    return have;
}

static inline void try_edge(coarsen_state *s, coarsen_edge *best, uint32_t slot, uint32_t other,
                            float cost, uint64_t max_members)
{
    if ((uint64_t)s->nodes[slot].members + s->nodes[other].members > max_members) return;
    if (best->partner != COARSEN_NONE &&
        (cost > best->cost || (cost == best->cost && other > best->partner)))
        return;
    *best = (coarsen_edge){cost, other, s->version[other]};
}

static void find_best(coarsen_state *s, uint32_t slot, uint64_t max_members)
{
    uint32_t *list = s->near[slot];
    const uint32_t n = gather_live_slots(s, slot, list, s->n_near[slot], list, 0);
    coarsen_edge best = {FLT_MAX, COARSEN_NONE, 0};
    s->n_near[slot] = (uint8_t)n;
    for (uint32_t i = 0; i < n; i++)
        if ((uint64_t)s->nodes[slot].members + s->nodes[list[i]].members <= max_members)
            try_edge(s, &best, slot, list[i], merge_cost(s, slot, list[i], best.cost), max_members);
    s->edges[slot] = best;
}

/* The candidates of both, the cheapest kept, and the best edge. */
static void join_candidates(coarsen_state *s, uint32_t into, uint32_t from, uint64_t max_members)
{
    uint32_t both[2 * COARSEN_KEPT];
    float cost[2 * COARSEN_KEPT];
    uint32_t n = gather_live_slots(s, into, s->near[into], s->n_near[into], both, 0);
    n = gather_live_slots(s, into, s->near[from], s->n_near[from], both, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t slot = both[i];
        const float c = merge_cost(s, into, slot, FLT_MAX);
        uint32_t at = i;
        for (; at > 0 && (c < cost[at - 1] || (c == cost[at - 1] && slot < both[at - 1])); at--) {
            cost[at] = cost[at - 1];
            both[at] = both[at - 1];
        }
        cost[at] = c;
        both[at] = slot;
    }
    coarsen_edge best = {FLT_MAX, COARSEN_NONE, 0};
    n = n < COARSEN_KEPT ? n : COARSEN_KEPT;
    for (uint32_t i = 0; i < n; i++) try_edge(s, &best, into, both[i], cost[i], max_members);
    memcpy(s->near[into], both, n * sizeof *both);
    s->n_near[into] = (uint8_t)n;
    s->edges[into] = best;
}

/* ---- merging ---- */

static void merge_moments(coarsen_node *a, const coarsen_node *b, double p, double q)
{
    double mean[3], da[3], db[3];
    for (int i = 0; i < 3; i++) {
        mean[i] = p * a->mean[i] + q * b->mean[i];
        da[i] = a->mean[i] - mean[i];
        db[i] = b->mean[i] - mean[i];
    }
    for (int i = 0, at = 0; i < 3; i++)
        for (int j = i; j < 3; j++, at++)
            a->covar[at] = p * (a->covar[at] + da[i] * da[j]) + q * (b->covar[at] + db[i] * db[j]);
    memcpy(a->mean, mean, sizeof mean);
}

static void merge_colours(float *a, const float *b, uint32_t stride, float p, float q)
{
#pragma omp simd
    for (uint32_t i = 0; i < stride; i++) a[i] = p * a[i] + q * b[i];
}

static double sum_of_weights(double a, double b)
{
    return a + b < 3e38 ? (double)(float)(a + b) : 3e38;
}

/* What is hidden behind others where they are seen adds little to what is seen of both: its mass
 * counts with the 0.1th power of the ratio of their visibilities (antialiased: weight has the root
 * of them). */
static double mass_shown(const coarsen_node *g, const coarsen_node *other, bool antialiased)
{
    const double v = g->weight / g->mass, above = other->weight / other->mass;
    return v < above ? g->mass * kiln_exp_f64((antialiased ? 0.2 : 0.1) * kiln_log_f64(v / above))
                     : g->mass;
}

/* b goes into a. */
static void merge_nodes(coarsen_state *s, uint32_t a, uint32_t b)
{
    coarsen_node *x = &s->nodes[a], *y = &s->nodes[b];
    const double p = x->weight / (x->weight + y->weight), q = 1 - p;
    merge_moments(x, y, p, q);
    merge_colours(s->colours + (uint64_t)a * s->stride, s->colours + (uint64_t)b * s->stride,
                  s->stride, (float)p, (float)q);
    const double of_x = s->prominent ? mass_shown(x, y, s->antialiased) : x->mass;
    const double of_y = s->prominent ? mass_shown(y, x, s->antialiased) : y->mass;
    x->mass = sum_of_weights(of_x, of_y);
    x->weight += y->weight;
    x->prominence = (float)sum_of_weights((double)x->prominence, (double)y->prominence);
    x->first = x->first < y->first ? x->first : y->first;
    x->last = x->last > y->last ? x->last : y->last;
    x->count = x->count < UINT32_MAX - y->count ? x->count + y->count : UINT32_MAX;
    x->members += y->members;
    derive(x, s->antialiased);
    s->into[b] = a;
    s->version[a]++;
    s->n_live--;
}

static void start_heap(coarsen_state *s, uint64_t max_members)
{
    s->n_heap = 0;
    /* Candidates are as the search has left them, live slots all of them: nothing is written that
     * another slot reads. */
#pragma omp parallel for num_threads(s->threads) schedule(static) if (s->threads > 1)
    for (uint64_t slot = 0; slot < s->n; slot++)
        if (s->into[slot] == slot) find_best(s, (uint32_t)slot, max_members);
    for (uint32_t slot = 0; slot < s->n; slot++) {
        s->place[slot] = COARSEN_NONE;
        if (s->into[slot] != slot) continue;
        if (s->edges[slot].partner != COARSEN_NONE) put_heap_slot(s, s->n_heap++, slot);
    }
    for (uint32_t i = s->n_heap / 2; i-- > 0;) sink(s, i);
}

/* Merges until the heap is empty or `target` slots live. */
static void merge_best(coarsen_state *s, uint64_t target, uint64_t max_members)
{
    while (s->n_live > target && s->n_heap > 0) {
        const uint32_t slot = s->heap[0], other = s->edges[slot].partner;
        if (s->into[other] != other || s->version[other] != s->edges[slot].partner_version) {
            find_best(s, slot, max_members);
            place_again(s, slot);
            continue;
        }
        const uint32_t into = slot < other ? slot : other, from = slot < other ? other : slot;
        merge_nodes(s, into, from);
        take_out(s, from);
        join_candidates(s, into, from, max_members);
        place_again(s, into);
    }
}

/* kiln_coarsen_merge_cpu, kiln_coarsen_merge_cpu_avx2 */
void KILN_CPU(coarsen_merge)(coarsen_state *s, uint64_t target, uint32_t max_members)
{
    /* Where every pair is too large or not known to either, larger ones are let in. */
    for (uint64_t most = max_members; s->n_live > target; most = 2 * most) {
        KILN_CPU(coarsen_near)(s);
        start_heap(s, most);
        merge_best(s, target, most);
    }
}

/* ---- loading ---- */

static void load_node(coarsen_node *g, const kiln_coarsen_rows *in, uint64_t row)
{
    double log_scales[3], quat[4];
    for (uint64_t a = 0; a < 3; a++) {
        g->mean[a] = (double)in->means[a * in->n + row];
        log_scales[a] = (double)in->log_scales[a * in->n + row];
    }
    for (uint64_t a = 0; a < 4; a++) quat[a] = (double)in->quats[a * in->n + row];
    g->mass = (double)in->weights[row];
    kiln_coarsen_shrink(g->mass, in->antialiased, log_scales);
    kiln_covar_of(log_scales, quat, g->covar);
    const double v = in->visibility ? (double)in->visibility[row] : 1;
    g->weight = g->mass * (in->antialiased ? sqrt(v) : v);
    g->weight = g->weight > 1e-60 ? g->weight : 1e-60; /* two of them have shares */
    g->prominence = in->prominence ? in->prominence[row] : 0;
    g->first = in->source_first ? in->source_first[row] : 0;
    g->last = in->source_first ? in->source_last[row] : 0;
    g->count = in->source_first ? in->source_count[row] : 1;
    g->members = 1;
    derive(g, in->antialiased);
}

/* kiln_coarsen_load_cpu, kiln_coarsen_load_cpu_avx2 */
void KILN_CPU(coarsen_load)(coarsen_state *s, const kiln_coarsen_rows *in)
{
    const uint32_t rest = (uint32_t)kiln_coarsen_colours(in->sh_degree) - 3;
    memset(s->colours, 0, in->n * s->stride * sizeof *s->colours);
#pragma omp parallel for num_threads(s->threads) schedule(static) if (s->threads > 1)
    for (uint64_t slot = 0; slot < in->n; slot++) {
        float *colours = s->colours + slot * s->stride;
        load_node(&s->nodes[slot], in, (uint32_t)slot);
        for (uint64_t c = 0; c < 3; c++) colours[c] = in->sh0[c * in->n + slot];
        for (uint64_t c = 0; c < rest; c++) colours[3 + c] = in->shN[c * in->n + slot];
        s->into[slot] = (uint32_t)slot;
        s->version[slot] = 0;
    }
    s->n_live = in->n;
    s->antialiased = in->antialiased;
    s->prominent = in->prominence != NULL;
}
