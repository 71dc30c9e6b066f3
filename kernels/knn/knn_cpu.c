/* knn on the CPU. The points of one leaf are asked for together, one in each lane, as a warp would
 * serve them: a candidate is one value for all lanes, and keeping the k smallest is k min/max steps
 * on lanes, which gcc makes vector code of. The leaf's own box and its worst bound decide which
 * nodes to enter, the lanes' own bounds which leaves.
 *
 * The walk starts in the leaf and climbs: at each ancestor the siblings of the child it came from
 * are tried, so that the bound is tight before anything far is looked at. A box is left out when
 * its distance is at least the bound: what is in it could only give a value equal to one already
 * held. So k zeros end the search, and equal points cost nothing. Queries of a join are no points
 * of the tree: their walk starts in the leaf that is nearest by boxes.
 */
#include "kernels/knn/knn.h"

#include "kernels/knn/knn_math.h"
#include "kernels/knn/knn_tree.h"

#include <float.h>
#include <string.h>

kiln_knn_fn KILN_CPU(knn);
kiln_knn_join_fn KILN_CPU(knn_join);

enum { LANES = KNN_LEAF };

typedef struct {
    const knn_tree *tree;
    uint32_t k;
    float x[LANES], y[LANES], z[LANES];
    float lo[3], hi[3];              /* the leaf's box */
    float worst;                     /* largest of the lanes' bounds */
    float best[KILN_KNN_MAX][LANES]; /* ascending; best[k - 1] is the bound */
} query;

static inline uint64_t leaf_count(const knn_tree *t, uint64_t leaf)
{
    const uint64_t rest = t->n - leaf * KNN_LEAF;
    return rest < KNN_LEAF ? rest : KNN_LEAF;
}

static inline void keep_smallest(query *q, uint32_t k, float d[LANES])
{
    for (uint32_t i = 0; i < k; i++) {
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            const float have = q->best[i][l], new = d[l];
            q->best[i][l] = new < have ? new : have;
            d[l] = new < have ? have : new;
        }
    }
}

static inline void distances(const query *q, float x, float y, float z, float d[LANES])
{
#pragma omp simd
    for (int l = 0; l < LANES; l++)
        d[l] = kiln_knn_distance2(x - q->x[l], y - q->y[l], z - q->z[l]);
}

static inline int any_below(const float d[LANES], const float bound[LANES])
{
    int any = 0;
#pragma omp simd reduction(| : any)
    for (int l = 0; l < LANES; l++) any |= d[l] < bound[l];
    return any;
}

static inline void update_worst(query *q, uint32_t k)
{
    float worst = 0.0f;
#pragma omp simd reduction(max : worst)
    for (int l = 0; l < LANES; l++) worst = q->best[k - 1][l] > worst ? q->best[k - 1][l] : worst;
    q->worst = worst;
}

/* Three neighbours, a full leaf: what the lanes hold stays in registers, which gcc does not dare
 * for memory behind a pointer. A store stands between the two selections by one comparison. Without
 * it gcc 12 makes them a branch, and the search takes three times as long. */
static inline void scan_for_three(query *q, const knn_leaf *c, int self)
{
    float first[LANES], second[LANES], third[LANES];
    memcpy(first, q->best[0], sizeof first);
    memcpy(second, q->best[1], sizeof second);
    memcpy(third, q->best[2], sizeof third);
    for (int i = 0; i < KNN_LEAF; i++) {
        float d[LANES];
        distances(q, c->at[0][i], c->at[1][i], c->at[2][i], d);
        if (self) d[i] = FLT_MAX;
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            const float y = d[l] < first[l] ? first[l] : d[l];
            first[l] = d[l] < first[l] ? d[l] : first[l];
            const float z = y < second[l] ? second[l] : y;
            second[l] = y < second[l] ? y : second[l];
            third[l] = z < third[l] ? z : third[l];
        }
    }
    memcpy(q->best[0], first, sizeof first);
    memcpy(q->best[1], second, sizeof second);
    memcpy(q->best[2], third, sizeof third);
}

/* self: the candidate in lane i is the query itself */
static inline void scan_leaf(query *q, uint32_t k, uint64_t leaf, int self)
{
    const knn_leaf *c = &q->tree->leaves[leaf];
    const uint64_t count = leaf_count(q->tree, leaf);
    if (k == 3 && count == KNN_LEAF) {
        scan_for_three(q, c, self);
        update_worst(q, k);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        float d[LANES];
        distances(q, c->at[0][i], c->at[1][i], c->at[2][i], d);
        if (self) d[i] = FLT_MAX;
        if (k > 4 && !any_below(d, q->best[k - 1])) continue;
        keep_smallest(q, k, d);
    }
    update_worst(q, k);
}

/* May the leaf in that slot of a node improve any lane? */
static inline int leaf_helps(const query *q, uint32_t k, const knn_node *node, unsigned slot)
{
    float d[LANES];
    const float lo[3] = {node->lo[0][slot], node->lo[1][slot], node->lo[2][slot]};
    const float hi[3] = {node->hi[0][slot], node->hi[1][slot], node->hi[2][slot]};
#pragma omp simd
    for (int l = 0; l < LANES; l++)
        d[l] = kiln_knn_distance2(kiln_knn_gap(lo[0], hi[0], q->x[l], q->x[l]),
                                  kiln_knn_gap(lo[1], hi[1], q->y[l], q->y[l]),
                                  kiln_knn_gap(lo[2], hi[2], q->z[l], q->z[l]));
    return any_below(d, q->best[k - 1]);
}

static inline void node_distances(const query *q, const knn_node *node, float d[KNN_WIDE])
{
#pragma omp simd
    for (int c = 0; c < KNN_WIDE; c++)
        d[c] = kiln_knn_distance2(kiln_knn_gap(node->lo[0][c], node->hi[0][c], q->lo[0], q->hi[0]),
                                  kiln_knn_gap(node->lo[1][c], node->hi[1][c], q->lo[1], q->hi[1]),
                                  kiln_knn_gap(node->lo[2][c], node->hi[2][c], q->lo[2], q->hi[2]));
}

/* Which children of a node are near enough for anybody, as bits; their distances. */
static inline uint32_t near_children(const query *q, const knn_node *node, float d[KNN_WIDE])
{
    const float worst = q->worst;
    uint32_t near = 0;
    node_distances(q, node, d);
#pragma omp simd reduction(| : near)
    for (uint32_t c = 0; c < KNN_WIDE; c++) near |= (uint32_t)(d[c] < worst) << c;
    return near;
}

/* All children of a node but `skip`. */
static void visit_knn_node(query *q, uint32_t k, unsigned level, uint64_t index, unsigned skip)
{
    const knn_node *node = &q->tree->nodes[level][index];
    float d[KNN_WIDE];
    for (uint32_t left = near_children(q, node, d) & ~(1u << skip); left; left &= left - 1) {
        const unsigned c = (unsigned)__builtin_ctz(left);
        if (d[c] >= q->worst) continue; /* nearer ones have been found meanwhile */
        if (level > 0)
            visit_knn_node(q, k, level - 1, index * KNN_WIDE + c, KNN_WIDE);
        else if (leaf_helps(q, k, node, c))
            scan_leaf(q, k, index * KNN_WIDE + c, 0);
    }
}

/* From a leaf that has been read to the root. */
static inline void climb(query *q, uint32_t k, uint64_t leaf)
{
    uint64_t child = leaf;
    for (unsigned level = 0; level < q->tree->n_levels && q->worst > 0.0f; level++) {
        visit_knn_node(q, k, level, child / KNN_WIDE, (unsigned)(child % KNN_WIDE));
        child /= KNN_WIDE;
    }
}

/* ---- knn ------------------------------------------------------------------------------------- */
static inline void put_answer(const query *q, uint32_t k, const kiln_knn_args *a,
                              const knn_leaf *own, uint64_t count)
{
    for (uint64_t l = 0; l < count; l++) {
        const uint64_t row = own->row[l];
        float sum = 0.0f;
        for (uint32_t i = 0; i < k; i++) {
            sum += q->best[i][l];
            if (a->best) a->best[i * a->n + row] = q->best[i][l];
        }
        if (a->spacing2) a->spacing2[row] = sum / (float)k;
    }
}

static inline void answer_leaf(const knn_tree *t, uint32_t k, uint64_t leaf, const kiln_knn_args *a)
{
    query q = {.tree = t, .k = k};
    const knn_leaf *own = &t->leaves[leaf];
    const knn_node *node = &t->nodes[0][leaf / KNN_WIDE];
    const uint64_t count = leaf_count(t, leaf);
    for (unsigned l = 0; l < LANES; l++) {
        q.x[l] = own->at[0][l];
        q.y[l] = own->at[1][l];
        q.z[l] = own->at[2][l];
        /* an empty lane wants nothing */
        for (uint32_t i = 0; i < k; i++) q.best[i][l] = l < count ? FLT_MAX : 0.0f;
    }
    for (int axis = 0; axis < 3; axis++) {
        q.lo[axis] = node->lo[axis][leaf % KNN_WIDE];
        q.hi[axis] = node->hi[axis][leaf % KNN_WIDE];
    }
    scan_leaf(&q, k, leaf, 1);
    climb(&q, k, leaf);
    put_answer(&q, k, a, own, count);
}

/* kiln_knn_cpu, kiln_knn_cpu_avx2 */
kiln_status KILN_CPU(knn)(const kiln_exec *x, const kiln_knn_args *a, void *work,
                          size_t *work_bytes, kiln_error *err)
{
    knn_tree t;
    KILN_TRY(kiln_knn_check("knn", a->n, a->k, err));
    const size_t need = KILN_CPU(knn_tree_layout)(&t, a->n, work);
    if (!work) {
        *work_bytes = need;
        return KILN_OK;
    }
    if (*work_bytes < need)
        return kiln_fail(err, KILN_E_CAP, "knn needs %zu bytes of work space, but was given %zu",
                         need, *work_bytes);
    KILN_CPU(knn_tree_build)(&t, a->means, x->threads);

    const int64_t n_leaves = (int64_t)t.n_leaves;
    const int threads = (int)x->threads;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 256) if (n_leaves > 256)
    for (int64_t leaf = 0; leaf < n_leaves; leaf++) {
        if (a->k == 3)
            answer_leaf(&t, 3, (uint64_t)leaf, a); /* the usual case, unrolled */
        else
            answer_leaf(&t, a->k, (uint64_t)leaf, a);
    }
    return KILN_OK;
}

/* ---- knn_join -------------------------------------------------------------------------------- */
/* Queries from `first`, as many as there are lanes; a lane too many repeats one and wants
 * nothing. */
static inline void load_queries(query *q, uint32_t k, const kiln_knn_join_args *a, uint64_t first,
                                uint64_t count)
{
    const float *x = a->queries + first, *y = x + a->n_queries, *z = y + a->n_queries;
    for (uint64_t l = 0; l < LANES; l++) {
        const uint64_t from = l < count ? l : 0;
        q->x[l] = x[from];
        q->y[l] = y[from];
        q->z[l] = z[from];
        for (uint32_t i = 0; i < k; i++)
            q->best[i][l] = l < count ? a->best[i * a->n_queries + first + l] : 0.0f;
    }
    const float *const at[3] = {q->x, q->y, q->z};
    for (int axis = 0; axis < 3; axis++) {
        q->lo[axis] = q->hi[axis] = at[axis][0];
        for (int l = 1; l < LANES; l++) {
            q->lo[axis] = at[axis][l] < q->lo[axis] ? at[axis][l] : q->lo[axis];
            q->hi[axis] = at[axis][l] > q->hi[axis] ? at[axis][l] : q->hi[axis];
        }
    }
    update_worst(q, k);
}

/* Down the nearest box of each node. Returns false when no box of the root is near enough for
 * anybody. */
static inline int find_leaf(const query *q, uint64_t *leaf)
{
    uint64_t index = 0;
    for (unsigned level = q->tree->n_levels; level-- > 0;) {
        float d[KNN_WIDE];
        unsigned nearest = 0;
        node_distances(q, &q->tree->nodes[level][index], d);
        for (unsigned c = 1; c < KNN_WIDE; c++)
            if (d[c] < d[nearest]) nearest = c;
        if (level + 1 == q->tree->n_levels && !(d[nearest] < q->worst)) return 0;
        index = index * KNN_WIDE + nearest;
    }
    *leaf = index;
    return 1;
}

static inline void join_queries(const knn_tree *t, uint32_t k, const kiln_knn_join_args *a,
                                uint64_t first)
{
    query q = {.tree = t, .k = k};
    const uint64_t count = a->n_queries - first < LANES ? a->n_queries - first : LANES;
    uint64_t leaf;
    load_queries(&q, k, a, first, count);
    if (!find_leaf(&q, &leaf)) return;
    scan_leaf(&q, k, leaf, 0);
    climb(&q, k, leaf);
    for (uint64_t l = 0; l < count; l++)
        for (uint32_t i = 0; i < k; i++) a->best[i * a->n_queries + first + l] = q.best[i][l];
}

/* kiln_knn_join_cpu, kiln_knn_join_cpu_avx2 */
kiln_status KILN_CPU(knn_join)(const kiln_exec *x, const kiln_knn_join_args *a, void *work,
                               size_t *work_bytes, kiln_error *err)
{
    knn_tree t;
    KILN_TRY(kiln_knn_check("knn_join", a->n, a->k, err));
    const size_t need = KILN_CPU(knn_tree_layout)(&t, a->n, work);
    if (!work) {
        *work_bytes = need;
        return KILN_OK;
    }
    if (*work_bytes < need)
        return kiln_fail(err, KILN_E_CAP,
                         "knn_join needs %zu bytes of work space, but was given %zu", need,
                         *work_bytes);
    if (a->n == 0 || a->n_queries == 0) return KILN_OK;
    KILN_CPU(knn_tree_build)(&t, a->means, x->threads);

    const int64_t n_parts = (int64_t)((a->n_queries + LANES - 1) / LANES);
    const int threads = (int)x->threads;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 256) if (n_parts > 256)
    for (int64_t part = 0; part < n_parts; part++) {
        if (a->k == 3)
            join_queries(&t, 3, a, (uint64_t)part * LANES);
        else
            join_queries(&t, a->k, a, (uint64_t)part * LANES);
    }
    return KILN_OK;
}
