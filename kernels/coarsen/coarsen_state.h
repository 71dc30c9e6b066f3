/* coarsen_state -- what coarsen works on; private to this folder.
 *
 * A row of `in` is a slot. When two slots merge, the lower one holds the result and the other is
 * dead; its `into` leads to the one that it went into. A slot's candidates are slots that it may
 * merge with next, dead ones standing for what they went into. */
#ifndef KILN_KERNELS_COARSEN_STATE_H
#define KILN_KERNELS_COARSEN_STATE_H

#include "kernels/coarsen/coarsen.h"
#include "kernels/exec.h"
#include "kernels/knn/knn_tree.h"
#include "kernels/math/ellipsoid_math.h"

#include <float.h>

enum { COARSEN_NEAR = 16, COARSEN_KEPT = 24, COARSEN_LANES = 8 };
#define COARSEN_NONE UINT32_MAX
#define COARSEN_LEAST_WEIGHT FLT_MIN

typedef struct {
    double mean[3], covar[6];
    /* added to every axis' variance in the cost, so that a flat Gaussian has a volume */
    double floor;
    double inv_root_det; /* of covar with the floor: 1 / sqrt(determinant) */
    double weight;       /* w: shares of a merge */
    double mass;         /* W */
    float prominence;    /* 0: rows have none */
    /* ln of the pixels that a surface of 1 has where it stands, unoccluded; 0 without prominence */
    float closeness;
    double gate;          /* what the cost is multiplied by: prominence, or a power of weight */
    uint32_t first, last; /* rows of the bake */
    uint32_t count;       /* that many of them */
    uint32_t members;     /* rows of `in` */
} coarsen_node;

typedef struct {
    float cost;
    uint32_t partner;
    uint32_t partner_version; /* of the partner when the cost was computed */
} coarsen_edge;

typedef struct {
    uint64_t n, n_live;
    unsigned threads;            /* at least 1 */
    bool antialiased, prominent; /* prominent: rows have prominence */
    /* floats of a slot's colours, a multiple of COARSEN_LANES; those behind the last are 0 */
    uint32_t stride;
    coarsen_node *nodes;
    float *colours;                 /* [n][stride] */
    uint32_t *into;                 /* [n]; itself while it lives */
    uint32_t *version;              /* [n] number of merges */
    uint32_t (*near)[COARSEN_KEPT]; /* [n] candidates */
    uint8_t *n_near;                /* [n] */
    coarsen_edge *edges;            /* [n] the best one */
    /* [n] slots by (cost, slot); where a slot stands, COARSEN_NONE: it is not in the heap */
    uint32_t *heap, *place;
    uint32_t n_heap;
    uint32_t *live; /* [n] slots, for the search of neighbours */
    float *points;  /* [3][n] their means */
    void *tree;     /* work of that search */
    size_t tree_bytes;
} coarsen_state;

static inline uint64_t kiln_coarsen_colours(uint32_t sh_degree)
{
    return 3 * (uint64_t)(sh_degree + 1) * (sh_degree + 1);
}

/* A row whose weight is more than its ellipsoid covers when opaque, W = t A with t > 1, stands for
 * Gaussians one over the other. Together they are opaque over a larger part than one Gaussian of
 * their covariance is, so the stored one has t^g times that surface. What is stored then has W =
 * t^(1-g) A', from which the covariance is found again. A row that was never merged has W <= A.
 *
 * g is 1/2, antialiased 2/5: pictures that are not antialiased draw what is small larger, and so
 * more of it as opaque. */
static inline void kiln_coarsen_grow(double mass, bool antialiased, double log_scales[3])
{
    const double over = mass / kiln_ellipsoid_area(log_scales);
    if (!(over > 1)) return;
    const double by = kiln_log_f64(over) * (antialiased ? 0.2 : 0.25); /* of a length: g / 2 */
    for (int a = 0; a < 3; a++) log_scales[a] += by;
}

static inline void kiln_coarsen_shrink(double mass, bool antialiased, double log_scales[3])
{
    const double over = mass / kiln_ellipsoid_area(log_scales);
    /* that weight may be a limit, not a sum */
    if (!(over > 1) || mass <= (double)COARSEN_LEAST_WEIGHT) return;
    const double by = kiln_log_f64(over) * (antialiased ? 1.0 / 3 : 0.5); /* g / 2 / (1 - g) */
    for (int a = 0; a < 3; a++) log_scales[a] -= by;
}

/* Lays the state out; base NULL measures. Returns the bytes, SIZE_MAX after an overflow. */
size_t kiln_coarsen_layout(coarsen_state *s, uint64_t n, uint32_t sh_degree, void *base);

/* Fills candidates of all live slots with the exact COARSEN_NEAR nearest of the live ones. Slots
 * without any, as all distances from them overflow, get the next live one. */
/* kiln_coarsen_near_cpu, kiln_coarsen_near_cpu_avx2 */
void KILN_CPU(coarsen_near)(coarsen_state *s);

/* Fills the state from rows, but for candidates. */
/* kiln_coarsen_load_cpu, kiln_coarsen_load_cpu_avx2 */
void KILN_CPU(coarsen_load)(coarsen_state *s, const kiln_coarsen_rows *in);

/* Merges until `target` slots live; a merge of more than max_members rows of `in` is refused as
 * long as there is another. */
/* kiln_coarsen_merge_cpu, kiln_coarsen_merge_cpu_avx2 */
void KILN_CPU(coarsen_merge)(coarsen_state *s, uint64_t target, uint32_t max_members);

/* The two above as this machine gets them. */
typedef struct {
    void (*load)(coarsen_state *s, const kiln_coarsen_rows *in);
    void (*merge)(coarsen_state *s, uint64_t target, uint32_t max_members);
} coarsen_code;

const coarsen_code *kiln_coarsen_code(void);

/* Writes the live slots. */
void kiln_coarsen_store(const coarsen_state *s, const kiln_coarsen_rows *in,
                        kiln_coarsen_rows *out);

#endif
