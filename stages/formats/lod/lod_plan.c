/* lod_plan -- see lod_plan.h. */
#include "stages/formats/lod/lod_plan.h"

#include "base/minmax.h"

#include <math.h>
#include <string.h>

static uint32_t levels_of(const kiln_level_tree *t)
{
    const kiln_level_node *root = &t->nodes[t->n_nodes - 1];
    return root->first_level + root->n_levels;
}

/* Nodes are depth first, so those below one lie before it, its first leaf as the first of them. */
void kiln_lod_leaves_of(const kiln_level_tree *t, uint32_t node, uint32_t *first, uint32_t *end)
{
    uint32_t low = node;
    while (t->nodes[low].n_children) low = t->children[t->nodes[low].first_child];
    *first = *end = 0;
    for (uint32_t i = 0; i <= node; i++) {
        if (!t->nodes[i].chunk) continue;
        *first += i < low;
        ++*end;
    }
}

/* As fill_level closes files. */
uint64_t kiln_lod_file_rows_max(const kiln_export *e)
{
    uint64_t most = 0;
    for (uint32_t level = 0; level < levels_of(e->tree); level++)
        for (uint64_t i = 0, rows = 0; i < e->n_chunks; i++) {
            if (e->chunks[i].level != level) continue;
            rows += e->chunks[i].n;
            most = kiln_max_u64(most, rows);
            if (rows >= KILN_LOD_FILE_ROWS) rows = 0;
        }
    return most;
}

/* ---- the first plan -------------------------------------------------------------------------- */

/* Room for an array of zeros behind what is there. */
static kiln_status add_array(kiln_buffer *plan, uint64_t n, size_t size, uint64_t *at,
                             kiln_error *err)
{
    static const char zeros[4096];
    *at = plan->size;
    for (uint64_t left = (n * size + 7) / 8 * 8; left;) {
        const uint64_t piece = kiln_min_u64(left, sizeof zeros);
        KILN_TRY(kiln_buffer_put(plan, zeros, piece, err));
        left -= piece;
    }
    return KILN_OK;
}

static void fill_lists(const kiln_export *e, void *plan)
{
    const kiln_lod_head *h = plan;
    uint32_t *own = KILN_LOD_AT(plan, uint32_t, h->own),
             *inner = KILN_LOD_AT(plan, uint32_t, h->inner);
    for (uint32_t i = 0; i < e->n_chunks; i++) {
        if (e->tree->nodes[e->chunks[i].node].chunk)
            *own++ = i;
        else
            *inner++ = i;
    }
}

static void fill_leaves(const kiln_level_tree *t, void *plan)
{
    kiln_lod_leaf *leaf = KILN_LOD_AT(plan, kiln_lod_leaf, ((const kiln_lod_head *)plan)->leaves);
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        if (!t->nodes[i].chunk) continue;
        *leaf = (kiln_lod_leaf){.node = i};
        for (int c = 0; c < 3; c++) {
            leaf->mean_lo[c] = leaf->lo[c] = INFINITY;
            leaf->mean_hi[c] = leaf->hi[c] = -INFINITY;
        }
        leaf++;
    }
}

kiln_status kiln_lod_plan_begin(const kiln_export *e, kiln_buffer *plan, kiln_error *err)
{
    kiln_lod_head h = {.n_levels = levels_of(e->tree)};
    for (uint32_t i = 0; i < e->tree->n_nodes; i++) h.n_leaves += e->tree->nodes[i].chunk != NULL;
    for (uint32_t i = 0; i < e->n_chunks; i++)
        h.n_own += e->tree->nodes[e->chunks[i].node].chunk != NULL;
    h.n_inner = e->n_chunks - h.n_own;
    plan->size = 0;
    KILN_TRY(kiln_buffer_put(plan, &h, sizeof h, err));
    KILN_TRY(add_array(plan, h.n_own, sizeof(uint32_t), &h.own, err));
    KILN_TRY(add_array(plan, h.n_inner, sizeof(uint32_t), &h.inner, err));
    KILN_TRY(add_array(plan, h.n_leaves, sizeof(kiln_lod_leaf), &h.leaves, err));
    KILN_TRY(
        add_array(plan, (uint64_t)h.n_leaves * h.n_levels, sizeof(kiln_lod_part), &h.parts, err));
    memcpy(plan->data, &h, sizeof h);
    fill_lists(e, plan->data);
    fill_leaves(e->tree, plan->data);
    return KILN_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Where the next rows go. */
typedef struct {
    kiln_lod_file file;
    uint32_t n_files, n_members;
} filling;

/* The leaves of a chunk lie behind each other in the file. */
static void place_parts(const kiln_export *e, void *plan, const kiln_export_chunk *c,
                        const filling *f)
{
    const kiln_lod_head *h = plan;
    uint32_t first, end, at = (uint32_t)f->file.rows;
    kiln_lod_leaves_of(e->tree, c->node, &first, &end);
    for (uint32_t i = first; i < end; i++) {
        kiln_lod_part *part =
            &KILN_LOD_AT(plan, kiln_lod_part, h->parts)[(uint64_t)i * h->n_levels + c->level];
        part->file = f->n_files;
        part->offset = at;
        at += part->n;
    }
}

static kiln_status close_file(filling *f, kiln_buffer *files, kiln_error *err)
{
    if (f->file.n_chunks == 0) return KILN_OK;
    KILN_TRY(kiln_buffer_put(files, &f->file, sizeof f->file, err));
    f->n_files++;
    f->file = (kiln_lod_file){
        .level = f->file.level, .number = f->file.number + 1, .first = f->n_members};
    return KILN_OK;
}

static kiln_status fill_level(const kiln_export *e, void *plan, uint32_t level, filling *f,
                              kiln_buffer *files, kiln_buffer *members, kiln_error *err)
{
    f->file = (kiln_lod_file){.level = level, .first = f->n_members};
    for (uint32_t i = 0; i < e->n_chunks; i++) {
        const kiln_export_chunk *c = &e->chunks[i];
        if (c->level != level) continue;
        place_parts(e, plan, c, f);
        KILN_TRY(kiln_buffer_put(members, &i, sizeof i, err));
        f->n_members++;
        f->file.n_chunks++;
        f->file.rows += c->n;
        if (f->file.rows >= KILN_LOD_FILE_ROWS) KILN_TRY(close_file(f, files, err));
    }
    return close_file(f, files, err);
}

static bool has_level(const kiln_level_node *n, uint32_t level)
{
    return (n->chunk && level == 0) ||
           (level >= n->first_level && level - n->first_level < n->n_levels);
}

/* A level that no node above a leaf has: the one before. */
static void fill_gaps(const kiln_level_tree *t, void *plan)
{
    const kiln_lod_head *h = plan;
    kiln_lod_part *part = KILN_LOD_AT(plan, kiln_lod_part, h->parts);
    const kiln_lod_leaf *leaves = KILN_LOD_AT(plan, kiln_lod_leaf, h->leaves);
    for (uint32_t i = 0; i < h->n_leaves; i++)
        for (uint32_t k = 0; k < h->n_levels; k++, part++) {
            uint32_t node = leaves[i].node;
            while (node != KILN_NO_NODE && !has_level(&t->nodes[node], k))
                node = t->nodes[node].parent;
            if (node == KILN_NO_NODE && k > 0) *part = part[-1];
        }
}

kiln_status kiln_lod_plan_files(const kiln_export *e, kiln_buffer *plan, kiln_error *err)
{
    kiln_lod_head h;
    kiln_buffer files = {0}, members = {0};
    filling f = {0};
    kiln_status st = KILN_OK;
    memcpy(&h, plan->data, sizeof h);
    for (uint32_t k = 0; k < h.n_levels; k++)
        KILN_GO(fill_level(e, plan->data, k, &f, &files, &members, err));
    fill_gaps(e->tree, plan->data);
    h.n_files = f.n_files;
    h.n_members = f.n_members;
    h.files = plan->size;
    KILN_GO(kiln_buffer_put(plan, files.data, files.size, err));
    h.members = plan->size;
    KILN_GO(kiln_buffer_put(plan, members.data, members.size, err));
    memcpy(plan->data, &h, sizeof h);
done:
    kiln_buffer_release(&files);
    kiln_buffer_release(&members);
    return st;
}
