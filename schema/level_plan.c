/* level_plan -- the tree of nodes that the chunks of a baked layer make (levels.h).
 *
 * Cells are worked off from the deepest to the root. Each step has a list of the nodes that belong
 * to cells of one depth. It is sorted by cell and, within a cell, by the first chunk below. A group
 * of one cell becomes a node, or is passed on where it is one node alone; what comes of it belongs
 * to a cell of the next depth. A path is a text within a chunk's parent and is never copied; names
 * of cells are only made for nodes.
 *
 * Nodes are numbered as they are made; `order_nodes` then puts them depth first. */
#include "schema/levels.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* a path has a slash for each cell below the root */
enum { DEPTH_MAX = sizeof((kiln_chunk *)0)->parent };

/* A node that belongs to a cell. */
typedef struct {
    const char *path; /* of the cell: its first `length` bytes; 0: the root cell */
    size_t length;
    uint32_t first; /* chunk of baked, the first below the node */
    uint32_t node;
} entry;

typedef struct {
    entry *entries;
    size_t n, capacity;
} entry_list;

/* A node as it is made: its parent is known later, its children are looked up from their
 * parents. */
typedef struct {
    kiln_level_node node;
    uint32_t first; /* as entry.first */
} made_node;

typedef struct {
    const kiln_layer *baked;
    made_node *nodes;
    uint32_t n, capacity;
    entry_list depths[DEPTH_MAX + 1];
} planner;

/* ---- lists ----------------------------------------------------------------------------------- */
static kiln_status add_entry(entry_list *l, const entry *e, kiln_error *err)
{
    if (l->n == l->capacity) {
        const size_t capacity = l->capacity ? 2 * l->capacity : 16;
        entry *more = realloc(l->entries, capacity * sizeof *more);
        if (!more)
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for %zu nodes of levels", capacity);
        l->entries = more;
        l->capacity = capacity;
    }
    l->entries[l->n++] = *e;
    return KILN_OK;
}

/* Puts the entry to its cell's depth. A path without slashes is the root cell's. */
static kiln_status put_entry(planner *p, entry *e, kiln_error *err)
{
    while (e->length > 0 && e->path[e->length - 1] == '/') e->length--;
    size_t depth = 0;
    for (size_t i = 0; i < e->length; i++) depth += e->path[i] == '/';
    if (depth == 0) e->length = 0;
    return add_entry(&p->depths[depth], e, err);
}

static void to_cell_above(entry *e)
{
    while (e->length > 0 && e->path[--e->length] != '/') {
    }
}

static int by_cell(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    const size_t n = x->length < y->length ? x->length : y->length;
    const int c = n ? memcmp(x->path, y->path, n) : 0;
    if (c) return c;
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static bool is_same_cell(const entry *a, const entry *b)
{
    return a->length == b->length && (a->length == 0 || memcmp(a->path, b->path, a->length) == 0);
}

/* ---- nodes ----------------------------------------------------------------------------------- */
static kiln_status add_node(planner *p, uint32_t first, uint32_t *node, kiln_error *err)
{
    if (p->n == p->capacity) {
        const uint64_t capacity = p->capacity ? 2 * (uint64_t)p->capacity : 64;
        made_node *more =
            capacity < KILN_NO_NODE ? realloc(p->nodes, capacity * sizeof *more) : NULL;
        if (!more)
            return kiln_fail(err, KILN_E_NOMEM, "there are more than %u nodes of levels",
                             (unsigned)p->n);
        p->nodes = more;
        p->capacity = (uint32_t)capacity;
    }
    p->nodes[p->n] = (made_node){.node.parent = KILN_NO_NODE, .first = first};
    *node = p->n++;
    return KILN_OK;
}

static kiln_status add_leaf(planner *p, uint32_t chunk, kiln_error *err)
{
    const kiln_chunk *c = &p->baked->chunks[chunk];
    entry e = {.path = c->parent, .length = strlen(c->parent), .first = chunk};
    KILN_TRY(add_node(p, chunk, &e.node, err));
    kiln_level_node *n = &p->nodes[e.node].node;
    memcpy(n->name, c->name, sizeof n->name);
    n->chunk = c;
    n->first_level = 1;
    n->rows = c->count;
    memcpy(n->box_min, c->box_min, sizeof n->box_min);
    memcpy(n->box_max, c->box_max, sizeof n->box_max);
    memcpy(n->reach_min, c->reach_min, sizeof n->reach_min);
    memcpy(n->reach_max, c->reach_max, sizeof n->reach_max);
    return put_entry(p, &e, err);
}

static void widen_node_box(float lo[3], float hi[3], const float other_lo[3],
                           const float other_hi[3], bool is_first)
{
    for (int a = 0; a < 3; a++) {
        if (is_first || other_lo[a] < lo[a]) lo[a] = other_lo[a];
        if (is_first || other_hi[a] > hi[a]) hi[a] = other_hi[a];
    }
}

/* Makes one node of n entries of a cell, at least two. part: number of the run; KILN_NO_NODE: the
 * cell itself. */
static kiln_status join_entries(planner *p, const entry *e, size_t n, uint32_t part, entry *out,
                                kiln_error *err)
{
    char suffix[16] = "";
    *out = e[0];
    KILN_TRY(add_node(p, e[0].first, &out->node, err));
    kiln_level_node *to = &p->nodes[out->node].node;
    if (part != KILN_NO_NODE) (void)snprintf(suffix, sizeof suffix, "+%u", (unsigned)part);
    const int length = snprintf(to->name, sizeof to->name, "%.*s%s", e->length ? (int)e->length : 1,
                                e->length ? e->path : "/", suffix);
    if (length < 0 || (size_t)length >= sizeof to->name)
        return kiln_fail(err, KILN_E_INPUT,
                         "the cell '%.*s' has a name that is too long for a node of levels",
                         (int)e->length, e->path);
    for (size_t i = 0; i < n; i++) {
        kiln_level_node *from = &p->nodes[e[i].node].node;
        from->parent = out->node;
        to->rows += from->rows;
        to->n_children++;
        widen_node_box(to->box_min, to->box_max, from->box_min, from->box_max, i == 0);
        widen_node_box(to->reach_min, to->reach_max, from->reach_min, from->reach_max, i == 0);
    }
    return KILN_OK;
}

/* Joins runs of n entries into fewer, in their place. */
static kiln_status join_runs(planner *p, entry *e, size_t *n, uint32_t *part, kiln_error *err)
{
    size_t runs = 0;
    for (size_t at = 0; at < *n; at += KILN_NODE_CHILDREN, runs++) {
        const size_t run = *n - at < KILN_NODE_CHILDREN ? *n - at : KILN_NODE_CHILDREN;
        entry joined = e[at];
        if (run > 1) KILN_TRY(join_entries(p, &e[at], run, (*part)++, &joined, err));
        e[runs] = joined;
    }
    *n = runs;
    return KILN_OK;
}

/* n entries of one cell become one, which belongs to the cell above. */
static kiln_status close_cell(planner *p, entry *e, size_t n, kiln_error *err)
{
    uint32_t part = 0;
    while (n > KILN_NODE_CHILDREN) KILN_TRY(join_runs(p, e, &n, &part, err));
    entry one = e[0];
    if (n > 1) KILN_TRY(join_entries(p, e, n, KILN_NO_NODE, &one, err));
    if (one.length == 0) return KILN_OK; /* the root */
    to_cell_above(&one);
    return put_entry(p, &one, err);
}

static kiln_status close_depth(planner *p, size_t depth, kiln_error *err)
{
    entry_list *l = &p->depths[depth];
    if (l->n) qsort(l->entries, l->n, sizeof *l->entries, by_cell);
    for (size_t at = 0, end; at < l->n; at = end) {
        for (end = at + 1; end < l->n && is_same_cell(&l->entries[at], &l->entries[end]);) end++;
        KILN_TRY(close_cell(p, &l->entries[at], end - at, err));
    }
    return KILN_OK;
}

/* ---- order ----------------------------------------------------------------------------------- */
typedef struct {
    uint32_t parent, first, node;
} kin;

typedef struct {
    const planner *p;
    kin *kin;         /* all nodes but the root, children of one parent together, in their order */
    uint32_t *begin;  /* [n + 1]: children of node i are kin[begin[i] .. begin[i + 1]) */
    uint32_t *number; /* of node i in the tree */
    uint32_t n_children;
    kiln_level_tree *out;
} ordering;

static int by_parent(const void *a, const void *b)
{
    const kin *x = a, *y = b;
    if (x->parent != y->parent) return x->parent < y->parent ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static void list_kin(ordering *o)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->p->n; i++) {
        const made_node *m = &o->p->nodes[i];
        if (m->node.parent != KILN_NO_NODE) o->kin[n++] = (kin){m->node.parent, m->first, i};
    }
    if (n) qsort(o->kin, n, sizeof *o->kin, by_parent);
    for (uint32_t i = 0, k = 0; i <= o->p->n; i++) {
        while (k < n && o->kin[k].parent < i) k++;
        o->begin[i] = k;
    }
}

/* As deep as paths are long and runs are joined: some 110 at most. */
static void order_subtree(ordering *o, uint32_t node)
{
    kiln_level_tree *const t = o->out;
    for (uint32_t k = o->begin[node]; k < o->begin[node + 1]; k++) order_subtree(o, o->kin[k].node);
    const uint32_t number = t->n_nodes++;
    o->number[node] = number;
    kiln_level_node *const n = &t->nodes[number];
    *n = o->p->nodes[node].node;
    n->parent = KILN_NO_NODE; /* its parent comes later and says so */
    n->first_child = o->n_children;
    for (uint32_t k = o->begin[node]; k < o->begin[node + 1]; k++) {
        const uint32_t child = o->number[o->kin[k].node];
        t->children[o->n_children++] = child;
        t->nodes[child].parent = number;
    }
}

/* The root was made last. */
static kiln_status order_nodes(const planner *p, kiln_level_tree *out, kiln_error *err)
{
    ordering o = {.p = p, .out = out};
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC(&out->nodes, p->n, "nodes of levels", err));
    KILN_GO(KILN_ALLOC(&out->children, p->n, "nodes of levels", err));
    KILN_GO(KILN_ALLOC(&o.kin, p->n, "nodes of levels", err));
    KILN_GO(KILN_ALLOC(&o.begin, (uint64_t)p->n + 1, "nodes of levels", err));
    KILN_GO(KILN_ALLOC(&o.number, p->n, "nodes of levels", err));
    list_kin(&o);
    if (p->n) order_subtree(&o, p->n - 1);
done:
    free(o.kin);
    free(o.begin);
    free(o.number);
    return st;
}

static int node_names_by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static kiln_status check_node_names(const kiln_level_tree *t, kiln_error *err)
{
    const char **names;
    kiln_status st = KILN_OK;
    KILN_TRY(KILN_ALLOC(&names, t->n_nodes, "names of nodes", err));
    for (uint32_t i = 0; i < t->n_nodes; i++) names[i] = t->nodes[i].name;
    if (t->n_nodes) qsort(names, t->n_nodes, sizeof *names, node_names_by_text);
    for (uint32_t i = 1; i < t->n_nodes && st == KILN_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            st = kiln_fail(err, KILN_E_INPUT, "layer '%s': two nodes of levels have the name '%s'",
                           t->baked->kind, names[i]);
    free(names);
    return st;
}

/* ---- the plan -------------------------------------------------------------------------------- */
static kiln_status make_nodes(planner *p, kiln_error *err)
{
    for (uint32_t i = 0; i < p->baked->n_chunks; i++)
        if (p->baked->chunks[i].count > 0) KILN_TRY(add_leaf(p, i, err));
    for (size_t depth = DEPTH_MAX + 1; depth-- > 0;) KILN_TRY(close_depth(p, depth, err));
    return KILN_OK;
}

kiln_status kiln_level_tree_plan(const kiln_layer *baked, kiln_level_tree *out, kiln_error *err)
{
    planner *p;
    kiln_status st = KILN_OK;
    *out = (kiln_level_tree){.baked = baked};
    KILN_TRY(KILN_ALLOC(&p, 1, "nodes of levels", err));
    p->baked = baked;
    KILN_GO(make_nodes(p, err));
    KILN_GO(order_nodes(p, out, err));
    KILN_GO(check_node_names(out, err));
done:
    for (size_t i = 0; i <= DEPTH_MAX; i++) free(p->depths[i].entries);
    free(p->nodes);
    free(p);
    if (st != KILN_OK) kiln_level_tree_release(out);
    return st;
}
