/* rad_plan -- see rad_plan.h. */
#include "stages/formats/rad/rad_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- segments -------------------------------------------------------------------------------- */

typedef struct {
    const kiln_export *e;
    uint32_t *by_level; /* [n_nodes][n_levels] e->chunks; KILN_RAD_NO_CHUNK */
    uint32_t n_levels;
    uint64_t base;
    uint32_t n_members, n_segments;
    kiln_buffer segments, members;
} planning;

static uint32_t chunk_at(const planning *p, uint32_t node, uint32_t level)
{
    return p->by_level[(uint64_t)node * p->n_levels + level];
}

static uint32_t coarsest_of(const kiln_level_node *n)
{
    return n->n_levels ? n->first_level + n->n_levels - 1 : 0;
}

static kiln_status map_chunks(planning *p, kiln_error *err)
{
    const kiln_level_tree *t = p->e->tree;
    p->n_levels = coarsest_of(&t->nodes[t->n_nodes - 1]) + 1;
    KILN_TRY(KILN_ALLOC_UNSET(&p->by_level, (uint64_t)t->n_nodes * p->n_levels, "levels", err));
    memset(p->by_level, 0xff, (uint64_t)t->n_nodes * p->n_levels * sizeof *p->by_level);
    for (uint32_t i = 0; i < p->e->n_chunks; i++)
        p->by_level[(uint64_t)p->e->chunks[i].node * p->n_levels + p->e->chunks[i].level] = i;
    return KILN_OK;
}

static kiln_status add_segment_chunk(planning *p, kiln_rad_segment *s, uint32_t chunk,
                                     kiln_error *err)
{
    s->n_chunks++;
    s->n += p->e->chunks[chunk].n;
    p->n_members++;
    return kiln_buffer_put(&p->members, &chunk, sizeof chunk, err);
}

static kiln_status end_segment(planning *p, const kiln_rad_segment *s, kiln_error *err)
{
    p->base += s->n;
    p->n_segments++;
    return kiln_buffer_put(&p->segments, s, sizeof *s, err);
}

/* The rows below level `level` of a node. */
static kiln_status add_segment(planning *p, uint32_t node, uint32_t level, kiln_error *err)
{
    const kiln_level_tree *t = p->e->tree;
    const kiln_level_node *n = &t->nodes[node];
    kiln_rad_segment s = {
        .base = p->base, .parent = chunk_at(p, node, level), .first = p->n_members};
    if (level > n->first_level || n->chunk) {
        KILN_TRY(add_segment_chunk(p, &s, chunk_at(p, node, level - 1), err));
    } else {
        for (uint32_t i = 0; i < n->n_children; i++) {
            const uint32_t child = t->children[n->first_child + i];
            KILN_TRY(
                add_segment_chunk(p, &s, chunk_at(p, child, coarsest_of(&t->nodes[child])), err));
        }
    }
    return end_segment(p, &s, err);
}

/* From coarse to fine; those below one level in the tree's order. */
static kiln_status add_segments(planning *p, kiln_error *err)
{
    for (uint32_t level = p->n_levels; level-- > 1;)
        for (uint32_t i = 0; i < p->e->n_chunks; i++)
            if (p->e->chunks[i].level == level)
                KILN_TRY(add_segment(p, p->e->chunks[i].node, level, err));
    return KILN_OK;
}

static void plan_tops(kiln_rad_head *h, uint64_t n)
{
    h->n_top[h->n_tops++] = n;
    while (n > 1 && h->n_tops < KILN_RAD_TOPS) {
        n = (n + KILN_RAD_FAN - 1) / KILN_RAD_FAN;
        h->n_top[h->n_tops++] = n;
    }
}

uint64_t kiln_rad_top_base(const kiln_rad_head *h, uint32_t t)
{
    uint64_t base = 0;
    for (uint32_t i = t + 1; i < h->n_tops; i++) base += h->n_top[i];
    return base;
}

static kiln_status plan_segments(planning *p, kiln_rad_head *h, kiln_error *err)
{
    const kiln_level_tree *t = p->e->tree;
    const uint32_t root = t->n_nodes - 1, coarsest = coarsest_of(&t->nodes[root]);
    KILN_TRY(map_chunks(p, err));
    plan_tops(h, p->e->chunks[chunk_at(p, root, coarsest)].n);
    p->base = kiln_rad_top_base(h, 0);
    kiln_rad_segment s = {.base = p->base, .parent = KILN_RAD_NO_CHUNK};
    KILN_TRY(add_segment_chunk(p, &s, chunk_at(p, root, coarsest), err));
    KILN_TRY(end_segment(p, &s, err));
    KILN_TRY(add_segments(p, err));
    h->rows = p->base;
    if (h->rows > UINT32_MAX)
        return kiln_fail(
            err, KILN_E_INPUT,
            "%llu Gaussians with their levels are %llu rows, and RAD numbers rows with 32 bits",
            (unsigned long long)p->e->bakes[0].layer->count, (unsigned long long)h->rows);
    return KILN_OK;
}

static kiln_status put_plan(const planning *p, kiln_rad_head *h, kiln_buffer *plan, kiln_error *err)
{
    h->n_segments = p->n_segments;
    h->n_members = p->n_members;
    plan->size = 0;
    KILN_TRY(kiln_buffer_put(plan, h, sizeof *h, err));
    h->segments = plan->size;
    KILN_TRY(kiln_buffer_put(plan, p->segments.data, p->segments.size, err));
    h->sizes = plan->size;
    for (uint64_t i = 0, none = 0; i < kiln_rad_chunks(h); i++)
        KILN_TRY(kiln_buffer_put(plan, &none, sizeof none, err));
    h->members = plan->size;
    KILN_TRY(kiln_buffer_put(plan, p->members.data, p->members.size, err));
    memcpy(plan->data, h, sizeof *h);
    return KILN_OK;
}

kiln_status kiln_rad_plan_begin(const kiln_export *e, kiln_buffer *plan, kiln_error *err)
{
    planning p = {.e = e};
    kiln_rad_head *h;
    KILN_TRY(KILN_ALLOC(&h, 1, "a plan", err));
    kiln_status st = plan_segments(&p, h, err);
    if (st == KILN_OK) st = put_plan(&p, h, plan, err);
    kiln_buffer_release(&p.segments);
    kiln_buffer_release(&p.members);
    free(p.by_level);
    free(h);
    return st;
}

/* ---- coding ---------------------------------------------------------------------------------- */

static const double RGB_LO = -1.5, RGB_HI = 2.5, SCALE_LO = -24, SCALE_HI = 16, SH_HI = 2;

static void count_in_bin(uint64_t *bins, double v, double lo, double hi)
{
    const double at = (v - lo) / (hi - lo) * KILN_RAD_BINS;
    bins[!(at > 0) ? 0 : at >= KILN_RAD_BINS ? KILN_RAD_BINS - 1 : (uint32_t)at]++;
}

void kiln_rad_count_rgb(kiln_rad_counts *c, double v) { count_in_bin(c->rgb, v, RGB_LO, RGB_HI); }
void kiln_rad_count_scale(kiln_rad_counts *c, double v)
{
    count_in_bin(c->scales, v, SCALE_LO, SCALE_HI);
}
void kiln_rad_count_sh(kiln_rad_counts *c, uint32_t degree, double v)
{
    count_in_bin(c->sh[degree - 1], fabs(v), 0, SH_HI);
}

/* The number of the first bin with which more than `share` of all values are at or below it. */
static uint32_t bin_of_share(const uint64_t *bins, double share)
{
    uint64_t all = 0, sum = 0;
    for (uint32_t i = 0; i < KILN_RAD_BINS; i++) all += bins[i];
    for (uint32_t i = 0; i < KILN_RAD_BINS; i++) {
        sum += bins[i];
        if ((double)sum > share * (double)all) return i;
    }
    return KILN_RAD_BINS - 1;
}

/* Few outliers must not cost all others a bit of their codes: a thousandth at either end may be
 * held. */
void kiln_rad_choose(const kiln_rad_counts *c, kiln_rad_coding *out)
{
    const double rgb_step = (RGB_HI - RGB_LO) / KILN_RAD_BINS,
                 scale_step = (SCALE_HI - SCALE_LO) / KILN_RAD_BINS;
    out->rgb_lo = (float)fmin(0, RGB_LO + rgb_step * bin_of_share(c->rgb, 0.001));
    out->rgb_hi = (float)fmax(1, RGB_LO + rgb_step * (bin_of_share(c->rgb, 0.999) + 1));
    out->scale_lo = (float)(SCALE_LO + scale_step * bin_of_share(c->scales, 0.001));
    out->scale_hi = (float)(SCALE_LO + scale_step * (bin_of_share(c->scales, 0.9999) + 1));
    for (int d = 0; d < KILN_RAD_DEGREE_MAX; d++)
        out->sh_max[d] = (float)(SH_HI * (bin_of_share(c->sh[d], 0.999) + 1) / KILN_RAD_BINS);
}
