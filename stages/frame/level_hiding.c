/* level_hiding -- see level_hiding.h. */
#include "stages/frame/level_hiding.h"

#include "base/memory.h"
#include "kernels/math/real64.h"
#include "stages/frame/level_cost.h"

#include <stdlib.h>
#include <string.h>

#define DEEP 1.5 /* of a run's reach: what is nearer than that may be the same surface */
/* not seen of an error from within a scene that fills the picture: what shows instead is alike */
#define ALIKE 0.4
/* pixels that a Gaussian covers at least, at half opacity: 2 pi 0.3 / 2 (the blur of classic
 * pictures) */
#define BLUR 0.94

enum { SIDE = KILN_HIDING_SIDE, CELLS = SIDE * SIDE };

/* A site in the picture. */
typedef struct {
    double depth, deep; /* distance from the camera; of the run to each side of it */
    double thick;       /* optical depth of each of its cells */
    /* its share of the node's rows over distance squared, times those rows: what it is in the
     * picture */
    double heavy;
    double seen; /* the part that the others let through */
    uint32_t node, leaf;
    uint8_t x0, x1, y0, y1; /* its cells, both ends within */
} spot;

/* Cells that an interval of the picture [0, 1] covers. */
static void cells_of(double middle, double half, uint8_t *first, uint8_t *last)
{
    const double lo = (middle - half) * SIDE, hi = (middle + half) * SIDE;
    *first = (uint8_t)(lo <= 0 ? 0 : lo >= SIDE ? SIDE - 1 : lo);
    *last = (uint8_t)(hi <= 0 ? 0 : hi >= SIDE ? SIDE - 1 : hi);
}

/* Lays a site on the picture; false: it is behind the camera or beside the picture. */
static bool lay(const kiln_level_eye *e, const kiln_level_sites *s, uint32_t i, double widened,
                spot *out)
{
    double off[3], at[3];
    const double wide = e->right - e->left, high = e->bottom - e->top;
    const double reach = (double)s->site[i].reach, least = (double)s->site[i].least;
    for (int a = 0; a < 3; a++) off[a] = (double)s->site[i].at[a] - e->at[a];
    for (int a = 0; a < 3; a++)
        at[a] = e->axes[3 * a] * off[0] + e->axes[3 * a + 1] * off[1] + e->axes[3 * a + 2] * off[2];
    if (!(at[2] > e->near_m)) return false;
    const double x = (at[0] / at[2] - e->left) / wide, y = (at[1] / at[2] - e->top) / high;
    const double half = (reach > least ? reach : least) / at[2];
    if (!(x + half / wide >= 0 && x - half / wide <= 1 && y + half / high >= 0 &&
          y - half / high <= 1))
        return false; /* or no number */
    const double depth2 = off[0] * off[0] + off[1] * off[1] + off[2] * off[2];
    out->depth = sqrt(depth2);
    out->deep = DEEP * (reach > least ? reach : least);
    out->heavy = (double)s->site[i].share / depth2;
    /* half a surface is what a Gaussian covers in the mean, its sides counted as far as it fades */
    const double covers = 6.283185307179586 * least * least / depth2 + widened;
    const double cell_x = wide / SIDE, cell_y = high / SIDE;
    out->thick = covers / ((2 * half > cell_x ? 2 * half : cell_x) *
                           (2 * half > cell_y ? 2 * half : cell_y));
    cells_of(x, half / wide, &out->x0, &out->x1);
    cells_of(y, half / high, &out->y0, &out->y1);
    return true;
}

/* A spot is looked at where it begins, and hides what begins behind its end. */
typedef struct {
    double depth;
    uint32_t spot, ends;
} event;

static int nearest_first(const void *a, const void *b)
{
    const event *x = a, *y = b;
    if (x->depth != y->depth) return x->depth < y->depth ? -1 : 1;
    if (x->spot != y->spot) return x->spot < y->spot ? -1 : 1;
    return (x->ends > y->ends) - (x->ends < y->ends);
}

static void end_spot(const spot *s, double *all, float *own)
{
    for (uint32_t y = s->y0; y <= s->y1; y++)
        for (uint32_t x = s->x0; x <= s->x1; x++) {
            all[y * SIDE + x] += s->thick;
            own[y * SIDE + x] += (float)s->thick;
        }
}

/* Of a spot: the mean over its cells of what the others let through. */
static double seen_of(const spot *s, const double *all, const float *own)
{
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t y = s->y0; y <= s->y1; y++)
        for (uint32_t x = s->x0; x <= s->x1; x++, n++) {
            const uint32_t cell = y * SIDE + x;
            const double others = all[cell] - (double)own[cell];
            sum += others > 0 ? kiln_exp_f64(-(others < 300 ? others : 300)) : 1;
        }
    return sum / n;
}

/* How much of the picture the scene fills. */
static double filled(const double *all)
{
    double sum = 0;
    for (uint32_t cell = 0; cell < CELLS; cell++)
        sum += 1 - kiln_exp_f64(-(all[cell] < 300 ? all[cell] : 300));
    return sum / CELLS;
}

/* How much of the scene is not in the picture: to a camera within, which has some of it behind
 * whatever it sees. */
static double around(const kiln_level_tree *t, const kiln_view_request *s)
{
    const kiln_level_sites *all = t->nodes[t->n_nodes - 1].sites;
    const kiln_level_eye eye = kiln_level_eye_of(&s->view);
    return all ? 1 - kiln_level_sites_seen(all, &eye).share : 0;
}

/* Of all sites in the picture. Leaves are counted that have some. */
static uint64_t list_spots(const kiln_level_tree *t, const kiln_view_request *s, spot *spots,
                           uint32_t *n_leaves)
{
    const kiln_view *v = &s->view;
    const kiln_level_eye eye = kiln_level_eye_of(v);
    const double blur = s->antialiased ? 0 : BLUR / ((double)v->fx * (double)v->fy);
    uint64_t n = 0;
    *n_leaves = 0;
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const kiln_level_node *node = &t->nodes[i];
        const uint64_t before = n;
        if (!node->chunk || !node->sites) continue;
        for (uint32_t k = 0; k < node->sites->n; k++) {
            spot *at = &spots[n];
            if (!lay(&eye, node->sites, k, blur * (double)node->rows / node->sites->n, at))
                continue;
            at->node = i;
            at->leaf = *n_leaves;
            at->heavy *= (double)node->rows;
            n++;
        }
        *n_leaves += n > before;
    }
    return n;
}

static void list_events(const spot *spots, uint64_t n, event *events)
{
    for (uint64_t i = 0; i < n; i++)
        for (uint32_t ends = 0; ends < 2; ends++)
            events[2 * i + ends] = (event){spots[i].depth + (ends ? spots[i].deep : -spots[i].deep),
                                           (uint32_t)i, ends};
    qsort(events, 2 * n, sizeof *events, nearest_first);
}

/* Sums of leaves, in the order of spots; all: the thickness of each cell in the end. */
static kiln_status look_through(spot *spots, uint64_t n, uint32_t n_leaves, double all[CELLS],
                                kiln_error *err)
{
    event *events = NULL;
    float *own = NULL;
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC(&events, 2 * n, "what hides nodes", err));
    KILN_GO(KILN_ALLOC(&own, (uint64_t)n_leaves * CELLS, "what hides nodes", err));
    list_events(spots, n, events);
    for (uint64_t i = 0; i < 2 * n; i++) {
        spot *at = &spots[events[i].spot];
        float *const its = own + (uint64_t)at->leaf * CELLS;
        if (events[i].ends)
            end_spot(at, all, its);
        else
            at->seen = seen_of(at, all, its);
    }
done:
    free(events);
    free(own);
    return st;
}

static void sum_nodes(const kiln_level_tree *t, const spot *spots, uint64_t n, double *open,
                      double *heavy)
{
    memset(open, 0, t->n_nodes * sizeof *open);
    for (uint64_t i = 0; i < n; i++) {
        open[spots[i].node] += spots[i].heavy * spots[i].seen;
        heavy[spots[i].node] += spots[i].heavy;
    }
    for (uint32_t i = 0; i < t->n_nodes; i++) { /* children stand before their parents */
        const uint32_t up = t->nodes[i].parent;
        if (up == KILN_NO_NODE) continue;
        open[up] += open[i];
        heavy[up] += heavy[i];
    }
}

kiln_status kiln_level_hiding(const kiln_level_tree *t, const kiln_view_request *s, double *open,
                              kiln_error *err)
{
    double all[CELLS] = {0}, *heavy = NULL;
    spot *spots = NULL;
    kiln_status st = KILN_OK;
    uint64_t sites = 0;
    uint32_t n_leaves;
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        open[i] = 1;
        if (t->nodes[i].chunk && t->nodes[i].sites) sites += t->nodes[i].sites->n;
    }
    if (sites == 0) return KILN_OK;
    KILN_GO(KILN_ALLOC(&heavy, t->n_nodes, "what hides nodes", err));
    KILN_GO(KILN_ALLOC(&spots, sites, "what hides nodes", err));
    const uint64_t n = list_spots(t, s, spots, &n_leaves);
    KILN_GO(look_through(spots, n, n_leaves, all, err));
    sum_nodes(t, spots, n, open, heavy);
    const double cover = filled(all), alike = ALIKE * cover * cover * around(t, s),
                 whole = heavy[t->n_nodes - 1];
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const double others = whole > 0 ? 1 - heavy[i] / whole : 0;
        const double seen = heavy[i] > 0 ? open[i] / heavy[i] : 1;
        open[i] = (1 - others * (1 - seen)) * (1 - others * alike);
        if (!(open[i] >= KILN_HIDING_LEAST)) open[i] = KILN_HIDING_LEAST;
    }
done:
    free(heavy);
    free(spots);
    return st;
}
