/* The octree and the groups.
 *
 * Codes are sorted, so a cell is a range of rows, its children are the sub-ranges with the same
 * next three bits, and the curve's order is the order of the rows. Groups are made inside one split
 * cell only and end at every child that is split itself: what happens below one cell never moves a
 * border below another.
 *
 * Codes are looked at through a window: borders inside a large cell are found by a few reads of
 * single codes, a cell that fits into the window is read once and everything below it is cut in
 * memory. */
#include "stages/chunk/cells.h"

#include "base/memory.h"
#include "kernels/spatial_order/spatial_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const kiln_code_source *source; /* NULL: the window is all there is */
    const uint64_t *codes;          /* the window: codes [window_begin, window_end) */
    uint64_t window_begin, window_end;
    uint64_t *buffer; /* [source->window], owned: what the window shows of a source */
    uint32_t max, min;
    kiln_cell_list *out;
    char path[96]; /* of the cell in hand: "" for the root, "/0/3" */
} cutter;

typedef struct {
    uint64_t begin, end;  /* rows; empty: no group is open */
    unsigned first, last; /* children */
} group;

static kiln_status add_cell_group(cutter *c, kiln_error *err, uint64_t begin, uint64_t end,
                                  uint32_t depth, kiln_cell_group **out)
{
    kiln_cell_list *l = c->out;
    if (l->n == l->capacity) {
        uint64_t capacity = l->capacity ? 2 * l->capacity : 64;
        kiln_cell_group *items;
        KILN_TRY(KILN_ALLOC(&items, capacity, "the list of chunks", err));
        if (l->n) memcpy(items, l->items, l->n * sizeof *items);
        free(l->items);
        l->items = items;
        l->capacity = capacity;
    }
    *out = &l->items[l->n++];
    **out = (kiln_cell_group){.begin = begin, .end = end, .depth = depth};
    return KILN_OK;
}

/* A path with something behind it always fits: 21 levels of two characters and a part of at most 20
 * digits. */
static void set_text(char out[96], const char *path, const char *suffix)
{
    (void)snprintf(out, 96, "%.60s%.30s", path, suffix);
    if (!*out) (void)snprintf(out, 96, "/");
}

static kiln_status close_group(cutter *c, group *g, uint32_t child_depth, kiln_error *err)
{
    kiln_cell_group *out;
    char suffix[16];
    if (g->begin == g->end) return KILN_OK;
    KILN_TRY(add_cell_group(c, err, g->begin, g->end, child_depth, &out));
    if (g->first == g->last)
        (void)snprintf(suffix, sizeof suffix, "/%u", g->first);
    else
        (void)snprintf(suffix, sizeof suffix, "/%u-%u", g->first, g->last);
    set_text(out->name, c->path, suffix);
    set_text(out->parent, c->path, "");
    g->begin = g->end = 0;
    return KILN_OK;
}

/* A cell of the deepest level with too many rows: nothing is left to split by but their rank. */
static kiln_status cut_by_rank(cutter *c, uint64_t begin, uint64_t end, const char *parent,
                               uint32_t depth, kiln_error *err)
{
    for (uint64_t part = 0; begin < end; part++) {
        uint64_t stop = end - begin > c->max ? begin + c->max : end;
        kiln_cell_group *out;
        char suffix[32];
        KILN_TRY(add_cell_group(c, err, begin, stop, depth, &out));
        (void)snprintf(suffix, sizeof suffix, ".%llu", (unsigned long long)part);
        set_text(out->name, c->path, suffix);
        set_text(out->parent, parent, "");
        begin = stop;
    }
    return KILN_OK;
}

static bool in_window(const cutter *c, uint64_t begin, uint64_t end)
{
    return begin >= c->window_begin && end <= c->window_end;
}

/* Moves the window to the cell, where it fits. */
static kiln_status read_cell_codes(cutter *c, uint64_t begin, uint64_t end, kiln_error *err)
{
    if (in_window(c, begin, end) || end - begin > c->source->window) return KILN_OK;
    c->window_begin = c->window_end = 0;
    KILN_TRY(c->source->read(c->source->context, begin, end - begin, c->buffer, err));
    c->codes = c->buffer;
    c->window_begin = begin;
    c->window_end = end;
    return KILN_OK;
}

static kiln_status code_at(const cutter *c, uint64_t i, uint64_t *code, kiln_error *err)
{
    if (!in_window(c, i, i + 1)) return c->source->read(c->source->context, i, 1, code, err);
    *code = c->codes[i - c->window_begin];
    return KILN_OK;
}

/* *out: the first row in [begin, end) whose digit at `shift` is above `digit`. */
static kiln_status end_of_child(const cutter *c, uint64_t begin, uint64_t end, unsigned shift,
                                unsigned digit, uint64_t *out, kiln_error *err)
{
    while (begin < end) {
        const uint64_t middle = begin + (end - begin) / 2;
        uint64_t code;
        KILN_TRY(code_at(c, middle, &code, err));
        if ((code >> shift & 7) <= digit)
            begin = middle + 1;
        else
            end = middle;
    }
    *out = begin;
    return KILN_OK;
}

static void join_group(cutter *c, group *g, uint64_t begin, uint64_t end, unsigned child,
                       bool *joined)
{
    uint64_t have = g->end - g->begin, more = end - begin;
    *joined = have > 0 && have + more <= c->max && (have < c->min || more < c->min);
    if (!*joined) return;
    g->end = end;
    g->last = child;
}

/* Splits the cell at c->path, which has more than max rows and is not of the deepest level. */
static kiln_status split_cell(cutter *c, uint64_t begin, uint64_t end, uint32_t depth,
                              kiln_error *err)
{
    unsigned shift = 3 * (KILN_HILBERT_BITS - 1 - depth);
    size_t length = strlen(c->path);
    group g = {0};
    KILN_TRY(read_cell_codes(c, begin, end, err));
    for (unsigned child = 0; child < 8; child++) {
        uint64_t stop;
        bool joined;
        KILN_TRY(end_of_child(c, begin, end, shift, child, &stop, err));
        if (stop == begin) continue;
        if (stop - begin <= c->max) {
            join_group(c, &g, begin, stop, child, &joined);
            if (!joined) {
                KILN_TRY(close_group(c, &g, depth + 1, err));
                g = (group){.begin = begin, .end = stop, .first = child, .last = child};
            }
        } else {
            char parent[96];
            KILN_TRY(close_group(c, &g, depth + 1, err));
            memcpy(parent, c->path, sizeof parent);
            (void)snprintf(c->path + length, sizeof c->path - length, "/%u", child);
            if (depth + 1 == KILN_HILBERT_BITS)
                KILN_TRY(cut_by_rank(c, begin, stop, parent, depth + 1, err));
            else
                KILN_TRY(split_cell(c, begin, stop, depth + 1, err));
            c->path[length] = '\0';
        }
        begin = stop;
    }
    return close_group(c, &g, depth + 1, err);
}

static kiln_status cut_cells(cutter *c, uint64_t n, kiln_error *err)
{
    kiln_cell_group *root;
    *c->out = (kiln_cell_list){0};
    if (c->max == 0) return kiln_fail(err, KILN_E_BUG, "chunks of no rows were asked for");
    if (n == 0) return KILN_OK;
    if (n > c->max) return split_cell(c, 0, n, 0, err);
    KILN_TRY(add_cell_group(c, err, 0, n, 0, &root));
    set_text(root->name, "/", "");
    return KILN_OK;
}

kiln_status kiln_cells_cut(const uint64_t *codes, uint64_t n, uint32_t max, uint32_t min,
                           kiln_cell_list *out, kiln_error *err)
{
    cutter c = {.codes = codes, .window_end = n, .max = max, .min = min, .out = out};
    return cut_cells(&c, n, err);
}

kiln_status kiln_cells_cut_from(const kiln_code_source *source, uint32_t max, uint32_t min,
                                kiln_cell_list *out, kiln_error *err)
{
    cutter c = {.source = source, .max = max, .min = min, .out = out};
    const uint64_t window = source->window < source->n ? source->window : source->n;
    *out = (kiln_cell_list){0};
    KILN_TRY(KILN_ALLOC_UNSET(&c.buffer, window, "the codes of a cell", err));
    const kiln_status st = cut_cells(&c, source->n, err);
    free(c.buffer);
    return st;
}

void kiln_cell_list_release(kiln_cell_list *l)
{
    free(l->items);
    *l = (kiln_cell_list){0};
}
