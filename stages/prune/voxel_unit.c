/* voxel_unit -- --filter-floaters and --filter-cluster: which rows of the whole layer touch no
 * solid voxel, or none of the cluster (voxel_math.h says what that means).
 *
 * The grid may have more blocks than memory. So it is taken in parts, boxes of blocks whose sums
 * have room. Of each part
 *
 *   want   a pass over the layer takes in the blocks that decide something: of floaters those that
 *          undecided rows may hit, of the cluster all. A part with too many is halved where half of
 *          its blocks lie, and begun again.
 *   sum    another pass adds the densities of all rows to what is wanted. Most voxels are solid
 *          soon, and nothing is added to those.
 *   keep   of floaters: a third pass keeps rows. Of the cluster: solid voxels go to a scratch file,
 *          since those of all parts must be there. Then they are in memory at a time, 8 bytes of
 *          bits a block instead of 256 of sums, and one pass keeps rows.
 *
 * Most rows of floaters are decided near their mean. So all parts are taken several times, in
 * rounds: first with the blocks of means, at last with all.
 *
 * Sums are integers, and any part may keep a row, so no bit depends on parts or threads.
 *
 * A row with a large box looks for wanted blocks by cells of 8 x 8 x 8 of them, instead of asking
 * for each block of its box. */
#include "base/file.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "stages/prune/prune_units.h"
#include "stages/prune/voxel_cluster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ROWS_AT_A_TIME = 512, /* whole bytes of the bits of rows */
    CELL_SHIFT = 3,       /* a cell has 8 blocks along an axis */
    FEW_BLOCKS = 32,      /* of a box, which is looked through without cells */
    CELLS_OF_BLOCK = 8,   /* that are passed over while one block is looked for */
};
/* Blocks that rows may ask for on average, and those of a small scene in all; and wanted blocks
 * that their boxes may meet. Beyond it voxels are far smaller than Gaussians, and the search would
 * take hours. */
#define ASKED_OF_ROW 0x1p7
#define ASKED_OF_SCENE 0x1p24
#define MEETINGS_OF_ROW 0x1p12
#define MEETINGS_OF_SCENE 0x1p29

typedef struct {
    uint64_t key, solid;
} solid_block;

/* Wanted blocks that are near each other: order[first] to order[first + n - 1] of the search. */
typedef struct {
    kiln_voxel_box box;
    uint32_t first, n;
} voxel_cell;

/* Where a block belongs to. */
typedef struct {
    uint64_t cell;
    uint32_t place;
} cell_of_block;

typedef struct {
    kiln_worker *w;
    kiln_prune_input *in;
    kiln_prune_voxels o;
    unsigned threads;
    kiln_voxel_grid grid;
    float middle[3]; /* the median of the means */
    uint32_t need;
    /* [n_chunks] what rows of a block of the layer meet and touch; and all rows */
    kiln_voxel_box *meets, *touches, all_meet, all_touch;
    kiln_voxel_table table;
    cell_of_block *order; /* [capacity] */
    voxel_cell *cells;    /* [capacity] */
    uint32_t n_cells;
    /* blocks that rows have asked for, of the part in work and of those before; and how often boxes
     * of rows met wanted blocks */
    uint64_t asked_of_part, asked, meetings;
    kiln_voxel_box *parts; /* [n_parts] that are still to be done */
    uint32_t n_parts;
    int fd, reads; /* of the solid blocks of a cluster */
    char path[64];
    uint64_t n_solid_blocks;
    uint8_t *strays;    /* as KILN_PRUNE_STRAYS has them; a row loses its bit when it is kept */
    uint8_t *undecided; /* strays as the round began, so that parts want the same voxels */
    int32_t from, to;   /* blocks of this round: so many away from that of the mean */
    kiln_prune_voxels_found found;
} voxel_search;

static void voxel_search_release(voxel_search *s)
{
    if (s->fd >= 0) (void)close(s->fd);
    if (s->reads >= 0) (void)close(s->reads);
    kiln_voxel_table_release(&s->table);
    free(s->meets);
    free(s->touches);
    free(s->order);
    free(s->cells);
    free(s->parts);
    free(s->strays);
    free(s->undecided);
}

static kiln_status open_voxel_search(voxel_search *s, kiln_error *err)
{
    const kiln_layer *l = s->in->layer;
    kiln_manifest *m;
    const uint64_t bytes = kiln_prune_stray_bytes(s->in->largest);
    const unsigned threads = kiln_worker_threads(s->w);
    s->threads = threads < KILN_VOXEL_TABLE_THREADS ? threads : KILN_VOXEL_TABLE_THREADS;
    s->need = kiln_voxel_need(s->o.opacity);
    KILN_TRY(KILN_ALLOC(&s->meets, l->n_chunks, "the blocks", err));
    KILN_TRY(KILN_ALLOC(&s->touches, l->n_chunks, "the blocks", err));
    KILN_TRY(KILN_ALLOC_UNSET(&s->order, s->o.capacity, "cells of voxels", err));
    KILN_TRY(KILN_ALLOC_UNSET(&s->cells, s->o.capacity, "cells of voxels", err));
    KILN_TRY(KILN_ALLOC(&s->strays, l->n_chunks * bytes, "stray rows", err));
    KILN_TRY(KILN_ALLOC(&s->undecided, l->n_chunks * bytes, "stray rows", err));
    for (uint32_t b = 0; b < l->n_chunks; b++)
        for (uint64_t i = 0; i < l->chunks[b].count; i++)
            s->strays[b * bytes + (i >> 3)] |= (uint8_t)(1u << (i & 7));
    KILN_TRY(kiln_worker_manifest(s->w, &m, err));
    if (!s->o.cluster) return KILN_OK;
    KILN_TRY(kiln_scratch_unnamed(kiln_manifest_path(m), &s->fd, s->path, err));
    return kiln_file_open(s->path, &s->reads, err);
}

/* ---- rows ------------------------------------------------------------------------------------ */
static void make_voxel_row(const kiln_voxel_grid *g, const kiln_geometry *r, uint64_t i,
                           kiln_voxel_row *out)
{
    const uint64_t n = r->n;
    const float mean[3] = {r->means[i], r->means[n + i], r->means[2 * n + i]},
                scale[3] = {r->log_scales[i], r->log_scales[n + i], r->log_scales[2 * n + i]},
                quat[4] = {r->quats[i], r->quats[n + i], r->quats[2 * n + i], r->quats[3 * n + i]};
    kiln_voxel_row_make(g, mean, scale, quat, r->opacity_logits[i], out);
}

/* ---- the middle ------------------------------------------------------------------------------ */
/* How many means begin with which 16 bits, an axis each. */
typedef struct {
    uint64_t n[3][1 << 16];
} mean_counts;

/* Of a float that is no NaN: ordered as the floats are. */
static uint32_t ordered_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 31 ? ~bits : bits | 1u << 31;
}

static float float_of_ordered(uint32_t ordered)
{
    const uint32_t bits = ordered >> 31 ? ordered ^ 1u << 31 : ~ordered;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* prefix: NULL counts upper halves, else the lower halves of those that have this upper half. */
static kiln_status count_means(const voxel_search *s, const uint32_t *prefix, mean_counts *out,
                               kiln_error *err)
{
    memset(out, 0, sizeof *out);
    for (uint32_t b = 0; b < s->in->layer->n_chunks; b++) {
        const uint64_t n = s->in->layer->chunks[b].count;
        const void *data;
        if (n == 0) continue;
        KILN_TRY(kiln_prune_plane(s->w, s->in, b, "means", &data, err));
        const float *means = data;
        for (uint64_t i = 0; i < 3 * n; i++) {
            const uint32_t bits = ordered_bits(means[i]);
            const uint64_t a = i / n;
            if (!prefix) out->n[a][bits >> 16]++;
            if (prefix && bits >> 16 == prefix[a]) out->n[a][bits & 0xffff]++;
        }
    }
    return KILN_OK;
}

/* Which entry has number `rank` of what is counted; rank becomes its number in that entry. */
static uint32_t entry_of_rank(const uint64_t counts[1 << 16], uint64_t *rank)
{
    uint32_t i = 0;
    for (; i < 0xffff && *rank >= counts[i]; i++) *rank -= counts[i];
    return i;
}

/* The exact median of each coordinate, so no outlier moves it and no order of rows matters. */
static kiln_status find_middle(voxel_search *s, kiln_error *err)
{
    uint64_t rank[3];
    uint32_t upper[3];
    mean_counts *counts;
    kiln_status st;
    KILN_TRY(KILN_ALLOC_UNSET(&counts, 1, "the middle of the scene", err));
    KILN_GO(count_means(s, NULL, counts, err));
    for (int a = 0; a < 3; a++) {
        rank[a] = s->in->layer->count / 2;
        upper[a] = entry_of_rank(counts->n[a], &rank[a]);
    }
    KILN_GO(count_means(s, upper, counts, err));
    for (int a = 0; a < 3; a++)
        s->middle[a] = float_of_ordered(upper[a] << 16 | entry_of_rank(counts->n[a], &rank[a]));
    s->grid = kiln_voxel_grid_of(s->o.size, s->o.origin, s->middle);
done:
    free(counts);
    return st;
}

/* ---- where rows are -------------------------------------------------------------------------- */
/* A row whose own opacity makes a voxel solid is no floater, whatever else lies there. Of a row
 * outside of the grid nothing else is asked. */
static bool is_solid_alone(const voxel_search *s, const kiln_voxel_row *row)
{
    return !s->o.cluster && kiln_voxel_units(row->alpha) >= s->need;
}

static void place_rows(voxel_search *s, const kiln_geometry *r, uint32_t block)
{
    uint8_t *strays = s->strays + block * kiln_prune_stray_bytes(s->in->largest);
#pragma omp parallel for num_threads(s->threads) schedule(dynamic, 1)
    for (uint64_t first = 0; first < r->n; first += ROWS_AT_A_TIME) {
        const uint64_t end = kiln_min_u64(first + ROWS_AT_A_TIME, r->n);
        kiln_voxel_box meets = kiln_voxel_box_empty(), touches = kiln_voxel_box_empty();
        for (uint64_t i = first; i < end; i++) {
            kiln_voxel_row row;
            make_voxel_row(&s->grid, r, i, &row);
            if (is_solid_alone(s, &row)) strays[i >> 3] &= (uint8_t) ~(1u << (i & 7));
            if (!row.inside) continue;
            kiln_voxel_box_widen(&meets, &row.meets);
            kiln_voxel_box_widen(&touches, &row.touches);
        }
#pragma omp critical(kiln_voxel_place)
        {
            kiln_voxel_box_widen(&s->meets[block], &meets);
            kiln_voxel_box_widen(&s->touches[block], &touches);
        }
    }
}

static kiln_status place_scene(voxel_search *s, kiln_error *err)
{
    s->all_meet = s->all_touch = kiln_voxel_box_empty();
    for (uint32_t b = 0; b < s->in->layer->n_chunks; b++) {
        kiln_geometry r;
        s->meets[b] = s->touches[b] = kiln_voxel_box_empty();
        if (s->in->layer->chunks[b].count == 0) continue;
        KILN_TRY(kiln_prune_geometry(s->w, s->in, b, &r, err));
        place_rows(s, &r, b);
        kiln_voxel_box_widen(&s->all_meet, &s->meets[b]);
        kiln_voxel_box_widen(&s->all_touch, &s->touches[b]);
    }
    return KILN_OK;
}

/* ---- what is wanted -------------------------------------------------------------------------- */
/* Of floaters the voxels that the row may hit, and its own. */
static uint64_t wanted_of_row(const voxel_search *s, const kiln_voxel_row *row, double limit2,
                              const int32_t block[3])
{
    int32_t own[3];
    if (s->o.cluster) return UINT64_MAX;
    const int at = kiln_voxel_centre(&s->grid, row, own);
    const bool is_own = memcmp(own, block, sizeof own) == 0;
    return kiln_voxel_hits(&s->grid, row, block, UINT64_MAX, limit2) | (uint64_t)is_own << at;
}

/* The largest distance along an axis, in blocks. */
static int32_t blocks_between(const int32_t a[3], const int32_t b[3])
{
    int32_t most = 0;
    for (int i = 0; i < 3; i++) most = abs(a[i] - b[i]) > most ? abs(a[i] - b[i]) : most;
    return most;
}

/* Of the row's near box what this round is about. */
static kiln_voxel_box box_of_round(const voxel_search *s, const kiln_voxel_row *row,
                                   const int32_t own[3])
{
    kiln_voxel_box box = row->meets;
    for (int a = 0; a < 3; a++) {
        if (box.lo[a] < own[a] - s->to) box.lo[a] = own[a] - s->to;
        if (box.hi[a] > own[a] + s->to) box.hi[a] = own[a] + s->to;
    }
    return box;
}

static void want_row(voxel_search *s, const kiln_voxel_row *row, const kiln_voxel_box *part)
{
    const double limit2 = kiln_voxel_limit2(row->alpha, s->o.min);
    int32_t at[3], own[3];
    (void)kiln_voxel_centre(&s->grid, row, own);
    kiln_voxel_box box = box_of_round(s, row, own);
    box = kiln_voxel_box_common(&box, part);
    const uint64_t asked = kiln_voxel_box_count(&box);
#pragma omp atomic
    s->asked_of_part += asked;
    for (at[2] = box.lo[2]; at[2] <= box.hi[2]; at[2]++)
        for (at[1] = box.lo[1]; at[1] <= box.hi[1]; at[1]++)
            for (at[0] = box.lo[0]; at[0] <= box.hi[0]; at[0]++) {
                if (blocks_between(at, own) < s->from) continue;
                const uint64_t wanted = wanted_of_row(s, row, limit2, at);
                if (!wanted) continue;
                const uint32_t place = kiln_voxel_table_take(&s->table, kiln_voxel_key(at));
                if (place == KILN_VOXEL_NONE) return;
                kiln_voxel_table_want(&s->table, place, wanted);
            }
}

/* What a pass does with each row that it asks. strays: the byte that has its bit. */
typedef void pass_fn(voxel_search *s, const kiln_voxel_row *row, const kiln_voxel_box *part,
                     uint8_t *strays, uint8_t bit);
typedef struct {
    pass_fn *fn;
    const kiln_voxel_box *boxes; /* what rows of each block of the layer reach */
    const uint8_t *asks;         /* bits of the rows that it asks; NULL: all */
} voxel_pass;

static void want_fn(voxel_search *s, const kiln_voxel_row *row, const kiln_voxel_box *part,
                    uint8_t *strays, uint8_t bit)
{
    (void)strays, (void)bit;
    if (!kiln_voxel_table_is_full(&s->table)) want_row(s, row, part);
}

static bool meets_too_often(voxel_search *s)
{
    uint64_t meetings;
#pragma omp atomic read
    meetings = s->meetings;
    return (double)meetings >
           fmax(MEETINGS_OF_SCENE, MEETINGS_OF_ROW * (double)s->in->layer->count);
}

/* Rows of a block of the layer, on all threads. A thread has whole bytes of the bits of rows. It
 * leaves rows out once the search is to be refused. */
static void pass_rows(voxel_search *s, uint32_t block, const kiln_geometry *r,
                      const kiln_voxel_box *part, const voxel_pass *pass)
{
    const uint64_t bits = block * kiln_prune_stray_bytes(s->in->largest);
#pragma omp parallel for num_threads(s->threads) schedule(dynamic, 1)
    for (uint64_t first = 0; first < r->n; first += ROWS_AT_A_TIME) {
        const uint64_t end = kiln_min_u64(first + ROWS_AT_A_TIME, r->n);
        for (uint64_t i = first; i < end && !meets_too_often(s); i++) {
            const uint64_t at = bits + (i >> 3);
            const uint8_t bit = (uint8_t)(1u << (i & 7));
            kiln_voxel_row row;
            if (pass->asks && !(pass->asks[at] & bit)) continue;
            make_voxel_row(&s->grid, r, i, &row);
            if (row.inside) pass->fn(s, &row, part, &s->strays[at], bit);
        }
    }
}

/* The blocks that all rows would ask for in voxels of this size. */
static kiln_status count_asked(const voxel_search *s, double size, double *out, kiln_error *err)
{
    const kiln_voxel_grid g = kiln_voxel_grid_of(size, s->o.origin, s->middle);
    double sum = 0;
    for (uint32_t b = 0; b < s->in->layer->n_chunks; b++) {
        kiln_geometry r;
        if (s->in->layer->chunks[b].count == 0) continue;
        KILN_TRY(kiln_prune_geometry(s->w, s->in, b, &r, err));
        for (uint64_t i = 0; i < r.n; i++) {
            kiln_voxel_row row;
            make_voxel_row(&g, &r, i, &row);
            if (row.inside) sum += (double)kiln_voxel_box_count(&row.meets);
        }
    }
    *out = sum;
    return KILN_OK;
}

static double most_asked(const voxel_search *s)
{
    return fmax(ASKED_OF_SCENE, ASKED_OF_ROW * (double)s->in->layer->count);
}

static kiln_status refuse_size(const voxel_search *s, kiln_error *err)
{
    const char *option = s->o.cluster ? "cluster" : "floaters";
    double size = s->o.size, asked;
    do {
        size *= 2;
        KILN_TRY(count_asked(s, size, &asked, err));
    } while (asked > most_asked(s));
    return kiln_fail(
        err, KILN_E_INPUT,
        "--filter-%s: voxels of %g are so much smaller than the scene's Gaussians that "
        "the search would take hours; take --filter-%s %g",
        option, s->o.size, option, size);
}

/* Depends on neither parts nor threads: each block is in one part. */
static kiln_status check_work(voxel_search *s, kiln_error *err)
{
    return (double)s->asked > most_asked(s) || meets_too_often(s) ? refuse_size(s, err) : KILN_OK;
}

static kiln_status pass_part(voxel_search *s, const kiln_voxel_box *part, const voxel_pass *pass,
                             kiln_error *err)
{
    for (uint32_t b = 0; b < s->in->layer->n_chunks; b++) {
        kiln_geometry r;
        if (kiln_voxel_box_is_apart(&pass->boxes[b], part)) continue;
        KILN_TRY(kiln_prune_geometry(s->w, s->in, b, &r, err));
        pass_rows(s, b, &r, part, pass);
        KILN_TRY(check_work(s, err));
    }
    return KILN_OK;
}

/* ---- sums ------------------------------------------------------------------------------------ */
static int by_cell(const void *a, const void *b)
{
    const cell_of_block *p = a, *q = b;
    return p->cell != q->cell ? (p->cell < q->cell ? -1 : 1) : p->place < q->place ? -1 : 1;
}

static void make_cells(voxel_search *s)
{
    const uint32_t n = s->table.n;
    int32_t block[3], cell[3];
    for (uint32_t i = 0; i < n; i++) {
        kiln_voxel_unkey(s->table.blocks[i], block);
        for (int a = 0; a < 3; a++) cell[a] = block[a] >> CELL_SHIFT;
        s->order[i] = (cell_of_block){.cell = kiln_voxel_key(cell), .place = i};
    }
    qsort(s->order, n, sizeof *s->order, by_cell);
    s->n_cells = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || s->order[i].cell != s->order[i - 1].cell)
            s->cells[s->n_cells++] = (voxel_cell){.box = kiln_voxel_box_empty(), .first = i};
        voxel_cell *last = &s->cells[s->n_cells - 1];
        last->n++;
        kiln_voxel_unkey(s->table.blocks[s->order[i].place], block);
        kiln_voxel_box_add(&last->box, block);
    }
}

static void add_to_block(voxel_search *s, const kiln_voxel_row *row, uint32_t place,
                         const int32_t block[3])
{
    uint32_t add[KILN_VOXELS];
    const uint64_t open = atomic_load_explicit(&s->table.open[place], memory_order_relaxed);
    if (!open) return;
    const uint64_t some = kiln_voxel_densities(&s->grid, row, block, open, add);
    if (some) kiln_voxel_table_add(&s->table, place, some, add, s->need);
}

/* Both give how many wanted blocks the box has. */
static uint64_t add_by_blocks(voxel_search *s, const kiln_voxel_row *row, const kiln_voxel_box *box)
{
    uint64_t met = 0;
    int32_t at[3];
    for (at[2] = box->lo[2]; at[2] <= box->hi[2]; at[2]++)
        for (at[1] = box->lo[1]; at[1] <= box->hi[1]; at[1]++)
            for (at[0] = box->lo[0]; at[0] <= box->hi[0]; at[0]++) {
                const uint32_t place = kiln_voxel_table_find(&s->table, kiln_voxel_key(at));
                if (place == KILN_VOXEL_NONE) continue;
                add_to_block(s, row, place, at);
                met++;
            }
    return met;
}

static uint64_t add_by_cells(voxel_search *s, const kiln_voxel_row *row, const kiln_voxel_box *box)
{
    uint64_t met = 0;
    for (uint32_t c = 0; c < s->n_cells; c++) {
        const voxel_cell *cell = &s->cells[c];
        if (kiln_voxel_box_is_apart(&cell->box, box)) continue;
        for (uint32_t i = cell->first; i < cell->first + cell->n; i++) {
            const uint32_t place = s->order[i].place;
            int32_t block[3];
            kiln_voxel_unkey(s->table.blocks[place], block);
            if (!kiln_voxel_box_has(box, block)) continue;
            add_to_block(s, row, place, block);
            met++;
        }
    }
    return met;
}

static void sum_fn(voxel_search *s, const kiln_voxel_row *row, const kiln_voxel_box *part,
                   uint8_t *strays, uint8_t bit)
{
    (void)strays, (void)bit;
    const kiln_voxel_box box = kiln_voxel_box_common(&row->touches, part);
    const uint64_t n = kiln_voxel_box_count(&box);
    if (n == 0) return;
    const bool few = n <= FEW_BLOCKS || n < s->n_cells / CELLS_OF_BLOCK;
    const uint64_t met = few ? add_by_blocks(s, row, &box) : add_by_cells(s, row, &box);
#pragma omp atomic
    s->meetings += met;
}

static kiln_status put_part(voxel_search *s, const kiln_voxel_box *part, kiln_error *err)
{
    void *parts = s->parts;
    KILN_TRY(kiln_grow(&parts, s->n_parts, sizeof *s->parts, "parts of the grid", err));
    s->parts = parts;
    s->parts[s->n_parts++] = *part;
    return KILN_OK;
}

static int by_coordinate(const void *a, const void *b)
{
    const int32_t p = *(const int32_t *)a, q = *(const int32_t *)b;
    return p < q ? -1 : p > q;
}

/* Along the axis on which the blocks in the table lie farthest apart, at their median. */
static kiln_status halve_part(voxel_search *s, const kiln_voxel_box *part, kiln_error *err)
{
    const uint32_t n = s->table.capacity;
    kiln_voxel_box box = kiln_voxel_box_empty(), halves[2] = {*part, *part};
    int32_t block[3], *along;
    int axis = 0;
    for (uint32_t i = 0; i < n; i++) {
        kiln_voxel_unkey(s->table.blocks[i], block);
        kiln_voxel_box_add(&box, block);
    }
    for (int a = 1; a < 3; a++)
        if (box.hi[a] - box.lo[a] > box.hi[axis] - box.lo[axis]) axis = a;
    KILN_TRY(KILN_ALLOC_UNSET(&along, n, "places of blocks", err));
    for (uint32_t i = 0; i < n; i++) {
        kiln_voxel_unkey(s->table.blocks[i], block);
        along[i] = block[axis];
    }
    qsort(along, n, sizeof *along, by_coordinate);
    const int32_t middle = along[n / 2] > along[0] ? along[n / 2] : along[0] + 1;
    free(along);
    halves[0].hi[axis] = middle - 1;
    halves[1].lo[axis] = middle;
    KILN_TRY(put_part(s, &halves[1], err));
    return put_part(s, &halves[0], err);
}

/* ---- which rows stay ------------------------------------------------------------------------- */
static bool hits_voxels(const voxel_search *s, const kiln_voxel_row *row,
                        const kiln_voxel_box *part)
{
    const double limit2 = kiln_voxel_limit2(row->alpha, s->o.min);
    const uint32_t needed = s->o.cluster ? kiln_voxel_hits_needed(s->o.size, row) : 1;
    const kiln_voxel_box box = kiln_voxel_box_common(&row->meets, part);
    uint32_t hits = 0;
    int32_t at[3];
    if (limit2 < 0) return false;
    for (at[2] = box.lo[2]; at[2] <= box.hi[2]; at[2]++)
        for (at[1] = box.lo[1]; at[1] <= box.hi[1]; at[1]++)
            for (at[0] = box.lo[0]; at[0] <= box.hi[0]; at[0]++) {
                const uint32_t place = kiln_voxel_table_find(&s->table, kiln_voxel_key(at));
                if (place == KILN_VOXEL_NONE) continue;
                hits += (uint32_t)__builtin_popcountll(
                    kiln_voxel_hits(&s->grid, row, at, s->table.solid[place], limit2));
                if (hits >= needed) return true;
            }
    return false;
}

static bool centre_is_solid(const voxel_search *s, const kiln_voxel_row *row)
{
    int32_t block[3];
    const int at = kiln_voxel_centre(&s->grid, row, block);
    const uint32_t place = kiln_voxel_table_find(&s->table, kiln_voxel_key(block));
    return place != KILN_VOXEL_NONE && (s->table.solid[place] >> at & 1);
}

static void keep_fn(voxel_search *s, const kiln_voxel_row *row, const kiln_voxel_box *part,
                    uint8_t *strays, uint8_t bit)
{
    if (centre_is_solid(s, row) || hits_voxels(s, row, part)) *strays &= (uint8_t)~bit;
}

static uint64_t count_solid(const kiln_voxel_table *t)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < t->n; i++) n += (uint64_t)__builtin_popcountll(t->solid[i]);
    return n;
}

enum { PIECE = 4096 }; /* blocks that are written and read at once */

/* ---- the cluster ----------------------------------------------------------------------------- */
static kiln_status store_solid(voxel_search *s, kiln_error *err)
{
    solid_block piece[PIECE];
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->table.n; i++) {
        if (s->table.solid[i])
            piece[n++] = (solid_block){.key = s->table.blocks[i], .solid = s->table.solid[i]};
        if (n < PIECE && (i + 1 < s->table.n || n == 0)) continue;
        KILN_TRY(kiln_file_write_at(s->fd, s->path, s->n_solid_blocks * sizeof *piece, piece,
                                    n * sizeof *piece, err));
        s->n_solid_blocks += n;
        n = 0;
    }
    return KILN_OK;
}

/* In place of the table of sums. */
static kiln_status load_solid(voxel_search *s, kiln_error *err)
{
    solid_block piece[PIECE];
    const uint64_t n = s->n_solid_blocks, most = 1u << 30,
                   bytes = kiln_voxel_table_bytes(n, false) + kiln_voxel_cluster_bytes(n),
                   had = kiln_prune_voxels_table_bytes(s->o.capacity);
    const char *what = "the cluster of --filter-cluster (with a larger RES less)";
    const uint64_t unit = kiln_prune_voxels_ram(s->in->layer, s->in->largest, s->o.capacity);
    if (n > most)
        return kiln_fail(err, KILN_E_CAP,
                         "--filter-cluster: %llu blocks of voxels; take a larger RES",
                         (unsigned long long)n);
    kiln_voxel_table_release(&s->table);
    free(s->order);
    free(s->cells);
    s->order = NULL;
    s->cells = NULL;
    if (bytes > had) {
        const uint64_t needs = unit - had + bytes;
        KILN_TRY(kiln_worker_need_ram(s->w, needs, 0, what, err));
        const uint64_t share = kiln_worker_ram(s->w);
        kiln_plane_cache_set_budget(s->in->planes, share > needs ? share - needs : 0);
    }
    KILN_TRY(kiln_voxel_table_make((uint32_t)kiln_max_u64(n, 1), false, &s->table, err));
    for (uint64_t at = 0; at < n; at += PIECE) {
        const uint64_t some = kiln_min_u64(PIECE, n - at);
        KILN_TRY(kiln_file_read_at(s->reads, s->path, at * sizeof *piece, piece,
                                   some * sizeof *piece, err));
        for (uint64_t i = 0; i < some; i++) {
            const uint32_t place = kiln_voxel_table_take(&s->table, piece[i].key);
            s->table.solid[place] = piece[i].solid;
        }
    }
    return KILN_OK;
}

/* The seed's voxel, or the nearest to it in the grid of the scene. Returns whether it is its
 * own. */
static bool find_seed(const voxel_search *s, int32_t out[3])
{
    bool own = true;
    for (int a = 0; a < 3; a++) {
        const double at = floor((s->o.seed[a] - s->o.origin[a] + s->grid.shift[a]) / s->o.size) -
                          s->grid.first[a];
        const int32_t lo = KILN_VOXEL_SIDE * s->all_touch.lo[a],
                      hi = KILN_VOXEL_SIDE * s->all_touch.hi[a] + KILN_VOXEL_SIDE - 1;
        own = own && at >= lo && at <= hi;
        out[a] = at < lo ? lo : at > hi ? hi : (int32_t)at;
    }
    return own;
}

static kiln_status keep_cluster(voxel_search *s, kiln_error *err)
{
    int32_t seed[3], from[3];
    bool whole;
    KILN_TRY(load_solid(s, err));
    s->found.solid = count_solid(&s->table);
    if (s->found.solid == 0) return KILN_OK;
    const bool own = find_seed(s, from);
    (void)kiln_voxel_nearest(&s->table, from, seed);
    s->found.moved = !own || memcmp(seed, from, sizeof seed) != 0;
    for (int a = 0; a < 3; a++)
        s->found.seed[a] =
            (s->grid.first[a] + seed[a] + 0.5) * s->o.size - s->grid.shift[a] + s->o.origin[a];
    KILN_TRY(kiln_voxel_cluster(&s->table, seed, &whole, err));
    s->found.kept = count_solid(&s->table);
    if (!whole) {
        const voxel_pass keep = {keep_fn, s->meets, s->strays};
        return pass_part(s, &s->all_meet, &keep, err);
    }
    memset(s->strays, 0, s->in->layer->n_chunks * kiln_prune_stray_bytes(s->in->largest));
    return KILN_OK;
}

/* ---- parts ----------------------------------------------------------------------------------- */
static kiln_status finish_part(voxel_search *s, const kiln_voxel_box *part, kiln_error *err)
{
    const voxel_pass sum = {sum_fn, s->touches, NULL}, keep = {keep_fn, s->meets, s->strays};
    make_cells(s);
    KILN_TRY(pass_part(s, part, &sum, err));
    kiln_voxel_table_settle(&s->table, s->need);
    return s->o.cluster ? store_solid(s, err) : pass_part(s, part, &keep, err);
}

static kiln_status search_parts(voxel_search *s, kiln_error *err)
{
    const voxel_pass want = {want_fn, s->meets, s->undecided};
    memcpy(s->undecided, s->strays,
           s->in->layer->n_chunks * kiln_prune_stray_bytes(s->in->largest));
    KILN_TRY(put_part(s, &s->all_meet, err));
    while (s->n_parts > 0) {
        const kiln_voxel_box part = s->parts[--s->n_parts];
        kiln_voxel_table_clear(&s->table);
        s->asked_of_part = 0;
        KILN_TRY(pass_part(s, &part, &want, err));
        if (!kiln_voxel_table_is_full(&s->table)) s->asked += s->asked_of_part;
        KILN_TRY(kiln_voxel_table_is_full(&s->table) ? halve_part(s, &part, err)
                                                     : finish_part(s, &part, err));
    }
    return KILN_OK;
}

static kiln_status search_rounds(voxel_search *s, kiln_error *err)
{
    static const int32_t ends[] = {0, 1, 3, 2 * KILN_VOXEL_BLOCKS};
    const size_t n = sizeof ends / sizeof *ends;
    double asked = 0;
    KILN_TRY(count_asked(s, s->o.size, &asked, err));
    if (asked > most_asked(s)) return refuse_size(s, err);
    KILN_TRY(kiln_voxel_table_make(s->o.capacity, true, &s->table, err));
    for (size_t i = s->o.cluster ? n - 1 : 0; i < n; i++) {
        s->from = i == 0 || s->o.cluster ? 0 : ends[i - 1] + 1;
        s->to = ends[i];
        KILN_TRY(search_parts(s, err));
    }
    return s->o.cluster ? keep_cluster(s, err) : KILN_OK;
}

/* ---- the unit -------------------------------------------------------------------------------- */
uint64_t kiln_prune_voxels_table_bytes(uint64_t capacity)
{
    return kiln_voxel_table_bytes(capacity, true) +
           capacity * (sizeof(int32_t) + sizeof(cell_of_block) + sizeof(voxel_cell));
}

uint64_t kiln_prune_voxels_ram(const kiln_layer *l, uint64_t largest, uint64_t capacity)
{
    enum { FLOATS = 3 + 3 + 4 + 1, WIDEST = 4, SLACK = 4 << 20 };
    const uint64_t strays = l->n_chunks * kiln_prune_stray_bytes(largest);
    return 2 * strays + kiln_outputs_ram(strays) + 2 * l->n_chunks * sizeof(kiln_voxel_box) +
           largest * FLOATS * sizeof(float) + kiln_read_ram(largest * WIDEST * sizeof(float)) +
           sizeof(mean_counts) + kiln_prune_voxels_table_bytes(capacity) + KILN_CONNECTION_RAM +
           SLACK;
}

kiln_status kiln_prune_voxels_unit(kiln_worker *w, const kiln_prune_request *q, kiln_error *err)
{
    voxel_search s = {.w = w, .fd = -1, .reads = -1};
    kiln_status st;
    if (q->head->text_bytes != sizeof s.o)
        return kiln_fail(err, KILN_E_BUG, "a search in voxels has no options");
    memcpy(&s.o, q->text, sizeof s.o);
    KILN_TRY(kiln_prune_input_get(w, q->head, &s.in, err));
    KILN_GO(open_voxel_search(&s, err));
    KILN_GO(find_middle(&s, err));
    KILN_GO(place_scene(&s, err));
    KILN_GO(search_rounds(&s, err));
    KILN_GO(kiln_worker_put(w, "strays", s.strays,
                            s.in->layer->n_chunks * kiln_prune_stray_bytes(s.in->largest), 1, err));
    KILN_GO(kiln_worker_put(w, "voxels", &s.found, sizeof s.found, 8, err));
done:
    voxel_search_release(&s);
    return st;
}
