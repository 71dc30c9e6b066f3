/* level_choice -- optimal tree pruning, from the full scene towards the root.
 *
 * State. Each node is open (its subtree is drawn of its children), ended (it is drawn itself, at a
 * level) or dead (below an ended node). At first all leaves are ended at level 0 and all cells are
 * open. `rows` and `cost` of a node are the sums over what is drawn below it now.
 *
 * Steps. A node that is not dead can be ended at any of its levels with fewer rows than its subtree
 * has now. Its best step is the one with the least cost for a saved row, among those that the
 * budget allows. A heap has every node's best step. Taking a step changes sums and best steps of
 * the node and its ancestors alone. Sums are always made anew from the children, so nothing drifts.
 */
#include "stages/frame/level_choice.h"

#include "base/memory.h"
#include "kernels/math/real64.h"
#include "stages/frame/level_cost.h"
#include "stages/frame/level_hiding.h"
#include "stages/frame/level_margin.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NOWHERE = UINT32_MAX, NOT_DRAWN = UINT32_MAX };

/* ---- the text of --level --------------------------------------------------------------------- */
kiln_status kiln_level_wish_parse(const char *text, kiln_level_wish *out, kiln_error *err)
{
    char *end = NULL;
    *out = (kiln_level_wish){.form = KILN_LEVEL_DB, .db = 35};
    if (strcmp(text, "auto") == 0) return KILN_OK;
    errno = 0;
    const bool decimal =
        strncmp(text, "dB:", 3) == 0 && strspn(text + 3, "0123456789.eE+-") == strlen(text + 3);
    if (decimal && isdigit((unsigned char)text[3])) { /* strtod would take hexadecimal, too */
        out->db = strtod(text + 3, &end);
        if (!errno && !*end && out->db >= 0 && out->db <= 200) return KILN_OK;
    } else if (isdigit((unsigned char)text[0])) {
        const unsigned long level = strtoul(text, &end, 10);
        *out = (kiln_level_wish){.form = KILN_LEVEL_AT, .level = (uint32_t)level};
        if (!errno && !*end && level <= KILN_LEVELS_MAX) return KILN_OK;
    }
    return kiln_fail(
        err, KILN_E_USAGE,
        "--level takes auto, a level from 0 (full) to %d, or dB:X with X from 0 to 200, not '%s'",
        KILN_LEVELS_MAX, text);
}

kiln_status kiln_level_check(const char *text, kiln_error *err)
{
    kiln_level_wish wish;
    return kiln_level_wish_parse(text, &wish, err);
}

/* ---- levels of a node ------------------------------------------------------------------------ */
static uint32_t coarsest_of(const kiln_level_node *n)
{
    return n->n_levels == 0 ? 0 : n->first_level + n->n_levels - 1;
}

static const kiln_chunk *chunk_of(const kiln_level_node *n, uint32_t level)
{
    return level == 0 ? n->chunk : n->levels[level - n->first_level];
}

static uint32_t index_of(const kiln_level_tree *t, const kiln_level_node *n, uint32_t level)
{
    const kiln_chunk *c = chunk_of(n, level);
    return level == 0 ? (uint32_t)(c - t->baked->chunks)
                      : t->baked->n_chunks + (uint32_t)(c - t->levels->chunks);
}

static kiln_status begin_cut(const kiln_level_tree *t, kiln_level_cut *out, kiln_error *err)
{
    *out = (kiln_level_cut){0};
    return KILN_ALLOC(&out->picks, t->n_nodes, "a cut through the levels", err);
}

/* What is left of a tree whose leaves may have lost rows. */
typedef struct {
    uint64_t rows; /* below the node */
    bool whole;    /* all of them: its levels stand for it */
} remains;

static void find_remains(const kiln_level_tree *t, const uint64_t *left, remains *out)
{
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const kiln_level_node *n = &t->nodes[i];
        const uint64_t rows = !n->chunk ? 0 : left ? left[i] : n->chunk->count;
        out[i] = (remains){.rows = rows, .whole = !n->chunk || rows == n->chunk->count};
        for (uint32_t k = 0; k < n->n_children; k++) {
            const remains *child = &out[t->children[n->first_child + k]];
            out[i].rows += child->rows;
            out[i].whole = out[i].whole && child->whole;
        }
    }
}

static uint32_t usable_levels(const kiln_level_node *n, const remains *of)
{
    return n->chunk || of->whole ? n->n_levels : 0;
}

static uint64_t rows_at(const kiln_level_node *n, const remains *of, uint32_t level)
{
    if (of->whole) return chunk_of(n, level)->count;
    const uint64_t rows = of->rows >> level;
    return rows ? rows : of->rows > 0;
}

/* The coarsest stored rows that are no fewer: merging goes on from there. */
static uint32_t level_below(const kiln_level_node *n, const remains *of, uint32_t level,
                            uint64_t rows)
{
    while (of->whole && rows < rows_at(n, of, level) && level < coarsest_of(n) &&
           rows_at(n, of, level ? level + 1 : n->first_level) >= rows)
        level = level ? level + 1 : n->first_level;
    return of->whole ? level : 0;
}

static void add_pick(const kiln_level_tree *t, uint32_t node, const remains *of, uint32_t level,
                     uint64_t rows, kiln_level_cut *out)
{
    const kiln_level_node *n = &t->nodes[node];
    if (rows == 0) return;
    const uint32_t stored = level_below(n, of, level, rows);
    out->picks[out->n++] = (kiln_level_pick){.node = node,
                                             .level = of->whole ? stored : level,
                                             .chunk = index_of(t, n, stored),
                                             .rows = rows};
    out->rows += rows;
}

/* ---- a fixed level --------------------------------------------------------------------------- */
/* A leaf always ends; a cell does if it has a level of at most k. */
static bool ends_at(const kiln_level_node *n, const remains *of, uint32_t k)
{
    return n->chunk || (usable_levels(n, of) > 0 && n->first_level <= k);
}

/* Sets levels[n_nodes] to the level at which each node is drawn; NOT_DRAWN: it is not. */
static void find_levels_at(const kiln_level_tree *t, uint32_t k, const remains *of,
                           uint32_t *levels)
{
    for (uint32_t i = 0; i < t->n_nodes; i++) levels[i] = NOT_DRAWN;
    if (t->n_nodes > 0) levels[t->n_nodes - 1] = k;
    for (uint32_t i = t->n_nodes; i-- > 0;) { /* parents stand behind their children */
        const kiln_level_node *n = &t->nodes[i];
        const uint32_t coarsest = coarsest_of(n);
        if (levels[i] == NOT_DRAWN) continue;
        levels[i] = !ends_at(n, &of[i], k) ? NOT_DRAWN : k < coarsest ? k : coarsest;
        for (uint32_t c = 0; c < n->n_children && levels[i] == NOT_DRAWN; c++)
            levels[t->children[n->first_child + c]] = k;
    }
}

static uint64_t rows_of_levels(const kiln_level_tree *t, const remains *of, const uint32_t *levels)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < t->n_nodes; i++)
        if (levels[i] != NOT_DRAWN) rows += rows_at(&t->nodes[i], &of[i], levels[i]);
    return rows;
}

static kiln_status choose_at(const kiln_level_tree *t, uint32_t k, const remains *of,
                             kiln_level_cut *out, kiln_error *err)
{
    uint32_t *levels;
    KILN_TRY(KILN_ALLOC(&levels, t->n_nodes, "a cut through the levels", err));
    find_levels_at(t, k, of, levels);
    for (uint32_t i = 0; i < t->n_nodes; i++)
        if (levels[i] != NOT_DRAWN)
            add_pick(t, i, &of[i], levels[i], rows_at(&t->nodes[i], &of[i], levels[i]), out);
    free(levels);
    return KILN_OK;
}

/* ---- by the number of rows ------------------------------------------------------------------- */
/* Sets levels to those of the coarsest K of which there are no fewer rows. */
static kiln_status find_levels_above(const kiln_level_tree *t, uint64_t rows, const remains *of,
                                     uint32_t *levels, kiln_error *err)
{
    uint32_t *coarser;
    KILN_TRY(KILN_ALLOC(&coarser, t->n_nodes, "a cut through the levels", err));
    find_levels_at(t, 0, of, levels);
    for (uint32_t k = 1; k <= KILN_LEVELS_MAX; k++) {
        find_levels_at(t, k, of, coarser);
        if (rows_of_levels(t, of, coarser) < rows) break;
        memcpy(levels, coarser, t->n_nodes * sizeof *levels);
    }
    free(coarser);
    return KILN_OK;
}

/* Each node keeps the same share of its `all` rows, at least one, rounded so that the sum is
 * `rows`. */
static void share_rows(uint32_t n, uint64_t rows, uint64_t all, uint64_t *of_nodes)
{
    uint64_t before_it = 0, above = 0; /* above: what those that keep one row have too many */
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t behind = before_it + of_nodes[i],
                       share = rows * behind / all - rows * before_it / all;
        before_it = behind;
        above += of_nodes[i] > 0 && share == 0;
        of_nodes[i] = of_nodes[i] > 0 && share == 0 ? 1 : share;
    }
    for (uint32_t i = 0; i < n && above > 0; i++) {
        const uint64_t spare = of_nodes[i] > 1 ? of_nodes[i] - 1 : 0,
                       less = above < spare ? above : spare;
        of_nodes[i] -= less;
        above -= less;
    }
}

/* Why not level K + 1 of some nodes and K of the others, by errors: merging begins with what
 * changes least, in all of them. At 36,000 rows of bench/unbounded.py (48,393, between levels 0 and
 * 1) that has 4.1 dB more, at 22,000 of the chair in 54 chunks 4.7, at half of these counts 0.4,
 * and nowhere less. Steps by errors from the full scene on lose 0.5 to 2.9 dB even beside whole
 * levels: what errors say of nodes that are levels apart is too good. (2026-11-30,
 * tests/bench/lod_scenes.py, held-out views.) */
static kiln_status choose_rows(const kiln_level_tree *t, uint64_t rows, const remains *of,
                               kiln_level_cut *out, kiln_error *err)
{
    uint32_t *levels;
    uint64_t *of_nodes = NULL;
    KILN_TRY(KILN_ALLOC(&levels, t->n_nodes, "a cut through the levels", err));
    kiln_status st = KILN_ALLOC(&of_nodes, t->n_nodes, "a cut through the levels", err);
    if (st == KILN_OK) st = find_levels_above(t, rows, of, levels, err);
    if (st == KILN_OK) {
        const uint64_t all = rows_of_levels(t, of, levels);
        for (uint32_t i = 0; i < t->n_nodes; i++)
            if (levels[i] != NOT_DRAWN) of_nodes[i] = rows_at(&t->nodes[i], &of[i], levels[i]);
        if (rows < all) share_rows(t->n_nodes, rows, all, of_nodes);
        for (uint32_t i = 0; i < t->n_nodes; i++)
            if (levels[i] != NOT_DRAWN) add_pick(t, i, &of[i], levels[i], of_nodes[i], out);
    }
    free(of_nodes);
    free(levels);
    return st;
}

/* ---- by cost --------------------------------------------------------------------------------- */
typedef enum { OPEN, ENDED, DEAD } node_state;

typedef struct {
    node_state state;
    uint32_t level; /* of an ended one */
    uint64_t rows;  /* drawn below it now */
    double cost;
    uint32_t next;  /* level of its best step */
    double slope;   /* of that step: cost for a saved row */
    uint32_t place; /* in the heap; NOWHERE: not there */
    size_t costs;   /* of its levels, first_level first: index into chooser.costs */
    bool seen;      /* the view may see some of its baked rows */
} place;

typedef struct {
    const kiln_level_tree *t;
    const remains *of; /* [n_nodes] */
    double budget;
    place *places; /* [n_nodes] */
    double *costs; /* of all nodes and levels */
    uint32_t *heap, n_heap;
    uint32_t *stack;
} chooser;

static void chooser_release(chooser *c)
{
    free(c->places);
    free(c->costs);
    free(c->heap);
    free(c->stack);
}

/* A node whose baked rows cannot be seen costs nothing, unless a merged Gaussian reaches into the
 * view. */
static double cost_here(const kiln_view_request *s, const kiln_level_node *n, bool seen,
                        const kiln_chunk *level)
{
    if (!seen && !kiln_view_request_may_see(s, level)) return 0.0;
    return kiln_level_cost(&s->view, n, level);
}

/* counts: what an error of each node counts in this view. */
static void add_costs(chooser *c, const kiln_view_request *s, const double *counts, double unit)
{
    const kiln_level_tree *t = c->t;
    size_t used = 0;
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const kiln_level_node *n = &t->nodes[i];
        place *p = &c->places[i];
        const double share =
            c->of[i].whole ? unit : unit * ((double)c->of[i].rows / (double)n->rows);
        p->seen = n->chunk && kiln_view_request_may_see(s, n->chunk);
        for (uint32_t k = 0; k < n->n_children; k++)
            p->seen |= c->places[t->children[n->first_child + k]].seen;
        p->costs = used;
        for (uint32_t k = 0; k < n->n_levels; k++)
            c->costs[used++] += share * (counts[i] * cost_here(s, n, p->seen, n->levels[k]));
    }
}

/* The mean of all views. One view's costs are in pixels, those of several are shares of their
 * pictures. */
static kiln_status fill_costs(chooser *c, const kiln_view_request *views, uint32_t n,
                              double *counts, kiln_error *err)
{
    for (uint32_t v = 0; v < n; v++) {
        const double pixels = (double)views[v].view.width * views[v].view.height;
        KILN_TRY(kiln_level_hiding(c->t, &views[v], counts, err));
        kiln_level_margin(c->t, &views[v].view, counts);
        add_costs(c, &views[v], counts, n == 1 ? 1 : 1 / (pixels * n));
    }
    return KILN_OK;
}

static kiln_status chooser_init(chooser *c, const kiln_level_tree *t, const remains *of,
                                const kiln_view_request *views, uint32_t n_views, kiln_error *err)
{
    size_t levels = 0;
    *c = (chooser){.t = t, .of = of};
    for (uint32_t i = 0; i < t->n_nodes; i++) levels += t->nodes[i].n_levels;
    KILN_TRY(KILN_ALLOC(&c->places, t->n_nodes, "a cut through the levels", err));
    KILN_TRY(KILN_ALLOC(&c->costs, levels, "a cut through the levels", err));
    KILN_TRY(KILN_ALLOC(&c->heap, t->n_nodes, "a cut through the levels", err));
    KILN_TRY(KILN_ALLOC(&c->stack, t->n_nodes, "a cut through the levels", err));
    double *counts;
    KILN_TRY(KILN_ALLOC(&counts, t->n_nodes, "a cut through the levels", err));
    const kiln_status st = fill_costs(c, views, n_views, counts, err);
    free(counts);
    return st;
}

/* ---- the heap: least slope first, then lowest node ------------------------------------------- */
static bool before(const chooser *c, uint32_t a, uint32_t b)
{
    const double x = c->places[a].slope, y = c->places[b].slope;
    return x < y || (x == y && a < b);
}

static void heap_set(chooser *c, uint32_t at, uint32_t node)
{
    c->heap[at] = node;
    c->places[node].place = at;
}

/* Moves the node at `at` to where it belongs. */
static void heap_settle(chooser *c, uint32_t at)
{
    const uint32_t node = c->heap[at];
    for (uint32_t up; at > 0 && before(c, node, c->heap[up = (at - 1) / 2]); at = up)
        heap_set(c, at, c->heap[up]);
    for (;;) {
        uint32_t down = 2 * at + 1;
        if (down >= c->n_heap) break;
        if (down + 1 < c->n_heap && before(c, c->heap[down + 1], c->heap[down])) down++;
        if (!before(c, c->heap[down], node)) break;
        heap_set(c, at, c->heap[down]);
        at = down;
    }
    heap_set(c, at, node);
}

static void heap_remove(chooser *c, uint32_t node)
{
    const uint32_t at = c->places[node].place;
    if (at == NOWHERE) return;
    c->places[node].place = NOWHERE;
    const uint32_t last = c->heap[--c->n_heap];
    if (at == c->n_heap) return;
    heap_set(c, at, last);
    heap_settle(c, at);
}

static void heap_put(chooser *c, uint32_t node)
{
    if (c->places[node].place == NOWHERE) heap_set(c, c->n_heap++, node);
    heap_settle(c, c->places[node].place);
}

/* ---- steps ----------------------------------------------------------------------------------- */
static double total_of(const chooser *c) { return c->places[c->t->n_nodes - 1].cost; }

/* Would the budget allow to end the node at the k-th of its levels? */
static bool fits_budget(const chooser *c, uint32_t node, uint32_t k)
{
    const place *p = &c->places[node];
    return total_of(c) + (c->costs[p->costs + k] - p->cost) <= c->budget;
}

/* Finds the node's best step and puts it into the heap, or takes the node out if it has none. */
static void find_step(chooser *c, uint32_t node)
{
    const kiln_level_node *n = &c->t->nodes[node];
    place *p = &c->places[node];
    const remains *of = &c->of[node];
    bool found = false;
    for (uint32_t k = 0; k < usable_levels(n, of); k++) {
        const uint64_t rows = rows_at(n, of, n->first_level + k);
        if (rows >= p->rows || !fits_budget(c, node, k)) continue;
        const double slope = (c->costs[p->costs + k] - p->cost) / (double)(p->rows - rows);
        if (found && slope >= p->slope) continue;
        found = true;
        p->slope = slope;
        p->next = n->first_level + k;
    }
    if (found)
        heap_put(c, node);
    else
        heap_remove(c, node);
}

/* Sums of an open node anew. */
static void sum_children(chooser *c, uint32_t node)
{
    const kiln_level_node *n = &c->t->nodes[node];
    place *p = &c->places[node];
    p->rows = 0;
    p->cost = 0;
    for (uint32_t k = 0; k < n->n_children; k++) {
        const place *child = &c->places[c->t->children[n->first_child + k]];
        p->rows += child->rows;
        p->cost += child->cost;
    }
}

static void kill_below(chooser *c, uint32_t node)
{
    uint32_t n = 0;
    c->stack[n++] = node;
    while (n > 0) {
        const kiln_level_node *at = &c->t->nodes[c->stack[--n]];
        for (uint32_t k = 0; k < at->n_children; k++) {
            const uint32_t child = c->t->children[at->first_child + k];
            if (c->places[child].state == DEAD) continue; /* and so is all below it */
            c->places[child].state = DEAD;
            heap_remove(c, child);
            c->stack[n++] = child;
        }
    }
}

static void take_step(chooser *c, uint32_t node)
{
    const kiln_level_node *n = &c->t->nodes[node];
    place *p = &c->places[node];
    if (p->state == OPEN) kill_below(c, node);
    p->state = ENDED;
    p->level = p->next;
    p->rows = rows_at(n, &c->of[node], p->level);
    p->cost = c->costs[p->costs + (p->level - n->first_level)];
    for (uint32_t up = n->parent; up != KILN_NO_NODE; up = c->t->nodes[up].parent)
        sum_children(c, up);
    for (uint32_t up = node; up != KILN_NO_NODE; up = c->t->nodes[up].parent) find_step(c, up);
}

static void start_chooser(chooser *c)
{
    for (uint32_t i = 0; i < c->t->n_nodes; i++) {
        const kiln_level_node *n = &c->t->nodes[i];
        place *p = &c->places[i];
        p->place = NOWHERE;
        p->state = n->chunk ? ENDED : OPEN;
        p->rows = n->chunk ? c->of[i].rows : 0;
        if (!n->chunk) sum_children(c, i);
    }
    for (uint32_t i = 0; i < c->t->n_nodes; i++) find_step(c, i);
}

static void prune(chooser *c)
{
    while (c->n_heap > 0) {
        const uint32_t node = c->heap[0];
        if (fits_budget(c, node, c->places[node].next - c->t->nodes[node].first_level))
            take_step(c, node);
        else
            find_step(c, node); /* another of its levels may still fit */
    }
}

static kiln_status choose_by_cost(const kiln_level_aim *aim, const remains *of,
                                  const kiln_level_tree *t, kiln_level_cut *out, kiln_error *err)
{
    chooser c;
    const double share = kiln_exp_f64(aim->wish.db * -0.23025850929940457); /* ln 10 / 10 */
    const kiln_status st = chooser_init(&c, t, of, aim->views, aim->n_views, err);
    if (st == KILN_OK && t->n_nodes > 0) {
        c.budget = aim->n_views == 1 ? share * aim->views[0].view.width * aim->views[0].view.height
                                     : share;
        start_chooser(&c);
        prune(&c);
        for (uint32_t i = 0; i < t->n_nodes; i++)
            if (c.places[i].state == ENDED)
                add_pick(t, i, &of[i], c.places[i].level, c.places[i].rows, out);
        out->cost = total_of(&c);
    }
    chooser_release(&c);
    return st;
}

kiln_status kiln_level_choose_file(const kiln_level_tree *t, const kiln_level_aim *aim,
                                   kiln_level_cut *out, kiln_error *err)
{
    remains *of;
    kiln_status st;
    KILN_TRY(begin_cut(t, out, err));
    KILN_TRY(KILN_ALLOC(&of, t->n_nodes, "a cut through the levels", err));
    find_remains(t, aim->left, of);
    if (aim->rows)
        st = choose_rows(t, aim->rows, of, out, err);
    else if (aim->wish.form == KILN_LEVEL_AT)
        st = choose_at(t, aim->wish.level, of, out, err);
    else
        st = choose_by_cost(aim, of, t, out, err);
    free(of);
    return st;
}

kiln_status kiln_level_choose(const kiln_level_tree *t, const kiln_level_wish *w,
                              const kiln_view_request *s, kiln_level_cut *out, kiln_error *err)
{
    const kiln_level_aim aim = {.wish = *w, .views = s, .n_views = 1};
    return kiln_level_choose_file(t, &aim, out, err);
}

void kiln_level_cut_release(kiln_level_cut *c)
{
    free(c->picks);
    *c = (kiln_level_cut){0};
}
