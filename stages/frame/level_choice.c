/* level_choice -- optimal tree pruning, from the full scene towards the root.
 *
 * State. Each node is open (its subtree is drawn of its children), ended (it is drawn itself, at a level) or dead (below an ended
 * node). At first all leaves are ended at level 0 and all cells are open. `rows` and `cost` of a node are the sums over what is
 * drawn below it now.
 *
 * Steps. A node that is not dead can be ended at any of its levels with fewer rows than its subtree has now. Its best step is the
 * one with the least cost for a saved row, among those that the budget allows. A heap has every node's best step. Taking a step
 * changes sums and best steps of the node and its ancestors alone. Sums are always made anew from the children, so nothing drifts.
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

enum { NOWHERE = UINT32_MAX };

/* ---- the text of --level ---------------------------------------------------------------------------------------------------- */
kiln_status kiln_level_wish_parse(const char *text, kiln_level_wish *out, kiln_error *err)
{
    char *end = NULL;
    *out = (kiln_level_wish){.form = KILN_LEVEL_DB, .db = 35};
    if (strcmp(text, "auto") == 0) return KILN_OK;
    errno = 0;
    if (strncmp(text, "dB:", 3) == 0 && isdigit((unsigned char)text[3])) {
        out->db = strtod(text + 3, &end);
        if (!errno && !*end && out->db >= 0 && out->db <= 200) return KILN_OK;
    } else if (isdigit((unsigned char)text[0])) {
        const unsigned long level = strtoul(text, &end, 10);
        *out = (kiln_level_wish){.form = KILN_LEVEL_AT, .level = (uint32_t)level};
        if (!errno && !*end && level <= KILN_LEVELS_MAX) return KILN_OK;
    }
    return kiln_fail(err, KILN_E_USAGE, "--level takes auto, a level from 0 (full) to %d, or dB:X with X from 0 to 200, not '%s'",
                     KILN_LEVELS_MAX, text);
}

kiln_status kiln_level_check(const char *text, kiln_error *err)
{
    kiln_level_wish wish;
    return kiln_level_wish_parse(text, &wish, err);
}

/* ---- levels of a node ------------------------------------------------------------------------------------------------------- */
static uint32_t coarsest_of(const kiln_level_node *n) { return n->n_levels == 0 ? 0 : n->first_level + n->n_levels - 1; }

static const kiln_chunk *chunk_of(const kiln_level_node *n, uint32_t level)
{
    return level == 0 ? n->chunk : n->levels[level - n->first_level];
}

static uint32_t index_of(const kiln_level_tree *t, const kiln_level_node *n, uint32_t level)
{
    const kiln_chunk *c = chunk_of(n, level);
    return level == 0 ? (uint32_t)(c - t->baked->chunks) : t->baked->n_chunks + (uint32_t)(c - t->levels->chunks);
}

static kiln_status begin_cut(const kiln_level_tree *t, kiln_level_cut *out, kiln_error *err)
{
    *out = (kiln_level_cut){0};
    return KILN_ALLOC(&out->picks, t->n_nodes, "a cut through the levels", err);
}

static void add_pick(const kiln_level_tree *t, uint32_t node, uint32_t level, kiln_level_cut *out)
{
    const kiln_level_node *n = &t->nodes[node];
    out->picks[out->n++] = (kiln_level_pick){.node = node, .level = level, .chunk = index_of(t, n, level)};
    out->rows += chunk_of(n, level)->count;
}

/* ---- a fixed level ---------------------------------------------------------------------------------------------------------- */
/* A leaf always ends; a cell does if it has a level of at most k. */
static bool ends_at(const kiln_level_node *n, uint32_t k) { return n->chunk || (n->n_levels > 0 && n->first_level <= k); }

static kiln_status choose_at(const kiln_level_tree *t, uint32_t k, kiln_level_cut *out, kiln_error *err)
{
    bool *reached; /* its parent is open */
    KILN_TRY(KILN_ALLOC(&reached, t->n_nodes, "a cut through the levels", err));
    if (t->n_nodes > 0) reached[t->n_nodes - 1] = true;
    for (uint32_t i = t->n_nodes; i-- > 0;) {
        const kiln_level_node *n = &t->nodes[i];
        if (!reached[i] || ends_at(n, k)) continue;
        reached[i] = false;
        for (uint32_t c = 0; c < n->n_children; c++) reached[t->children[n->first_child + c]] = true;
    }
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const uint32_t coarsest = coarsest_of(&t->nodes[i]);
        if (reached[i]) add_pick(t, i, k < coarsest ? k : coarsest, out);
    }
    free(reached);
    return KILN_OK;
}

/* ---- by cost ---------------------------------------------------------------------------------------------------------------- */
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

/* A node whose baked rows cannot be seen costs nothing, unless a merged Gaussian reaches into the view. */
static double cost_here(const kiln_view_request *s, const kiln_level_node *n, bool seen, const kiln_chunk *level)
{
    if (!seen && !kiln_view_request_may_see(s, level)) return 0.0;
    return kiln_level_cost(&s->view, n, level);
}

static void fill_costs(chooser *c, const kiln_view_request *s, const double *open)
{
    const kiln_level_tree *t = c->t;
    size_t used = 0;
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const kiln_level_node *n = &t->nodes[i];
        place *p = &c->places[i];
        p->seen = n->chunk && kiln_view_request_may_see(s, n->chunk);
        for (uint32_t k = 0; k < n->n_children; k++) p->seen |= c->places[t->children[n->first_child + k]].seen;
        p->costs = used;
        for (uint32_t k = 0; k < n->n_levels; k++) c->costs[used++] = open[i] * cost_here(s, n, p->seen, n->levels[k]);
    }
}

static kiln_status chooser_init(chooser *c, const kiln_level_tree *t, double budget, const kiln_view_request *s, kiln_error *err)
{
    size_t levels = 0;
    *c = (chooser){.t = t, .budget = budget};
    for (uint32_t i = 0; i < t->n_nodes; i++) levels += t->nodes[i].n_levels;
    KILN_TRY(KILN_ALLOC(&c->places, t->n_nodes, "a cut through the levels", err));
    KILN_TRY(KILN_ALLOC(&c->costs, levels, "a cut through the levels", err));
    KILN_TRY(KILN_ALLOC(&c->heap, t->n_nodes, "a cut through the levels", err));
    KILN_TRY(KILN_ALLOC(&c->stack, t->n_nodes, "a cut through the levels", err));
    double *open;
    KILN_TRY(KILN_ALLOC(&open, t->n_nodes, "a cut through the levels", err));
    const kiln_status st = kiln_level_hiding(t, s, open, err);
    if (st == KILN_OK) kiln_level_margin(t, &s->view, open);
    if (st == KILN_OK) fill_costs(c, s, open);
    free(open);
    return st;
}

/* ---- the heap: least slope first, then lowest node --------------------------------------------------------------- */
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
    for (uint32_t up; at > 0 && before(c, node, c->heap[up = (at - 1) / 2]); at = up) heap_set(c, at, c->heap[up]);
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

/* ---- steps ------------------------------------------------------------------------------------------------------------------ */
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
    bool found = false;
    for (uint32_t k = 0; k < n->n_levels; k++) {
        if (n->levels[k]->count >= p->rows || !fits_budget(c, node, k)) continue;
        const double slope = (c->costs[p->costs + k] - p->cost) / (double)(p->rows - n->levels[k]->count);
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
    p->rows = chunk_of(n, p->level)->count;
    p->cost = c->costs[p->costs + (p->level - n->first_level)];
    for (uint32_t up = n->parent; up != KILN_NO_NODE; up = c->t->nodes[up].parent) sum_children(c, up);
    for (uint32_t up = node; up != KILN_NO_NODE; up = c->t->nodes[up].parent) find_step(c, up);
}

static void start_chooser(chooser *c)
{
    for (uint32_t i = 0; i < c->t->n_nodes; i++) {
        const kiln_level_node *n = &c->t->nodes[i];
        place *p = &c->places[i];
        p->place = NOWHERE;
        p->state = n->chunk ? ENDED : OPEN;
        p->rows = n->chunk ? n->chunk->count : 0;
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

static kiln_status choose_by_cost(const kiln_level_tree *t, double budget, const kiln_view_request *s, kiln_level_cut *out,
                                  kiln_error *err)
{
    chooser c;
    const kiln_status st = chooser_init(&c, t, budget, s, err);
    if (st == KILN_OK && t->n_nodes > 0) {
        start_chooser(&c);
        prune(&c);
        for (uint32_t i = 0; i < t->n_nodes; i++)
            if (c.places[i].state == ENDED) add_pick(t, i, c.places[i].level, out);
        out->cost = total_of(&c);
    }
    chooser_release(&c);
    return st;
}

kiln_status kiln_level_choose(const kiln_level_tree *t, const kiln_level_wish *w, const kiln_view_request *s, kiln_level_cut *out,
                              kiln_error *err)
{
    KILN_TRY(begin_cut(t, out, err));
    if (w->form == KILN_LEVEL_AT) return choose_at(t, w->level, out, err);
    const double share = kiln_exp_f64(w->db * -0.23025850929940457); /* ln 10 / 10 */
    return choose_by_cost(t, share * s->view.width * s->view.height, s, out, err);
}

void kiln_level_cut_release(kiln_level_cut *c)
{
    free(c->picks);
    *c = (kiln_level_cut){0};
}
