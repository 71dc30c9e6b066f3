/* chunks_answer -- chunks.json: the tree of nodes with their levels of detail, and from which width
 * of a pixel on each is good enough. */
#include "stages/engine/json_text.h"
#include "stages/formats/tiles/tileset.h"
#include "stages/serve/routes.h"

#include <math.h>
#include <stdlib.h>

/* kiln_tile_error is 16 pixels' worth. */
enum { TILE_PIXELS = 16 };

typedef struct {
    const kiln_bake_state *s;
    double *parts; /* [n_nodes] of the scene's shadow */
    /* [n_nodes] error of the node's coarsest level: no coarser detail is said to be better */
    double *worst;
} measures;

static json_t *pack_detail(const kiln_chunk *c, const char *of, uint32_t index, double error)
{
    return json_pack("{s:I, s:I, s:s, s:I, s:o}", "level", (json_int_t)c->level, "chunk",
                     (json_int_t)index, "of", of, "rows", (json_int_t)c->count, "error",
                     kiln_json_real(error));
}

static bool add_details(const measures *m, uint32_t node, json_t *list)
{
    const kiln_level_tree *t = &m->s->tree;
    const kiln_level_node *n = &t->nodes[node];
    double error = 0;
    for (uint32_t k = 0; k < n->n_children; k++)
        error = fmax(error, m->worst[t->children[n->first_child + k]]);
    if (n->chunk && json_array_append_new(
                        list, pack_detail(n->chunk, "layer",
                                          (uint32_t)(n->chunk - m->s->drawn->chunks), 0)) != 0)
        return false;
    for (uint32_t k = 0; k < n->n_levels; k++) {
        const kiln_chunk *c = n->levels[k];
        error =
            fmax(error, kiln_tile_error(c, m->parts[node], m->parts[t->n_nodes - 1]) / TILE_PIXELS);
        if (json_array_append_new(
                list, pack_detail(c, "levels", (uint32_t)(c - m->s->levels->chunks), error)) != 0)
            return false;
    }
    m->worst[node] = error;
    return true;
}

static json_t *pack_node(const kiln_level_tree *t, const kiln_level_node *n, json_t *details)
{
    json_t *children = json_array();
    bool whole = children != NULL;
    for (uint32_t k = 0; k < n->n_children && whole; k++)
        whole = json_array_append_new(
                    children, json_integer((json_int_t)t->children[n->first_child + k])) == 0;
    json_t *node =
        whole
            ? json_pack("{s:o, s:I, s:o, s:o, s:O, s:O}", "name", kiln_json_string(n->name),
                        "parent",
                        n->parent == KILN_NO_NODE ? (json_int_t)-1 : (json_int_t)n->parent, "lo",
                        kiln_json_floats(n->reach_min, 3), "hi", kiln_json_floats(n->reach_max, 3),
                        "children", children, "details", details)
            : NULL;
    json_decref(children);
    return node;
}

static kiln_status add_nodes(const measures *m, json_t *list, kiln_error *err)
{
    const kiln_level_tree *t = &m->s->tree;
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        json_t *details = json_array();
        json_t *node =
            details && add_details(m, i, details) ? pack_node(t, &t->nodes[i], details) : NULL;
        json_decref(details);
        if (json_array_append_new(list, node) != 0)
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for an answer");
    }
    return KILN_OK;
}

static kiln_status list_nodes(kiln_bake_state *s, json_t *list, kiln_error *err)
{
    measures m = {.s = s};
    kiln_status st;
    KILN_TRY(kiln_bake_state_tree(s, err));
    if (!s->drawn || s->tree.n_nodes == 0) return KILN_OK;
    KILN_GO(KILN_ALLOC(&m.parts, s->tree.n_nodes, "the tree of chunks", err));
    KILN_GO(KILN_ALLOC(&m.worst, s->tree.n_nodes, "the tree of chunks", err));
    kiln_tile_shares(&s->tree, m.parts);
    KILN_GO(add_nodes(&m, list, err));
done:
    free(m.parts);
    free(m.worst);
    return st;
}

kiln_status kiln_answer_chunks(kiln_bake_state *s, const kiln_request *q, kiln_reply *out,
                               kiln_error *err)
{
    json_t *list = json_array();
    (void)q;
    const kiln_status st = list_nodes(s, list, err);
    json_t *answer = st == KILN_OK
                         ? json_pack("{s:I, s:o, s:o, s:O}", "version", (json_int_t)s->version,
                                     "layer", kiln_json_layer(s->drawn), "levels",
                                     kiln_json_layer(s->levels), "nodes", list)
                         : NULL;
    json_decref(list);
    return st == KILN_OK ? kiln_reply_json(out, answer, err) : st;
}
