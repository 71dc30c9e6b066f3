/* Parts of rows, and copying rows. */
#include "stages/chunk/chunk_rows.h"

#include "base/memory.h"
#include "stages/engine/parent/run_layers.h"

#include <stdlib.h>
#include <string.h>

static const kiln_plane spacing_plane = {
    .name = "spacing2", .type = KILN_TYPE_F32, .components = 1};

static void add_part(kiln_row_parts *p, const kiln_layer *l, const kiln_plane *plane)
{
    p->items[p->n++] =
        (kiln_row_part){.layer = l, .plane = plane, .size = kiln_type_size(plane->type)};
}

/* Planes of wide elements come first, so that each begins at a multiple of its element's size,
 * however many rows there are. */
static void place_parts(kiln_row_parts *p)
{
    enum { WIDEST = 8 };
    for (uint32_t size = WIDEST; size > 0; size /= 2)
        for (uint32_t i = 0; i < p->n; i++) {
            if (p->items[i].size != size) continue;
            p->items[i].at = p->row_bytes;
            p->row_bytes += (uint64_t)p->items[i].plane->components * size;
        }
}

kiln_status kiln_row_parts_make(const kiln_layer *layer, const kiln_layer *spacing,
                                kiln_row_parts *out, kiln_error *err)
{
    const kiln_chunk *model = kiln_layer_model(layer);
    const uint32_t n = model ? model->n_planes : 0;
    *out = (kiln_row_parts){0};
    KILN_TRY(KILN_ALLOC(&out->items, (uint64_t)n + 1, "the planes of a chunk", err));
    for (uint32_t i = 0; i < n; i++) add_part(out, layer, &model->planes[i]);
    if (model && spacing) add_part(out, spacing, &spacing_plane);
    place_parts(out);
    return KILN_OK;
}

void kiln_row_parts_release(kiln_row_parts *p)
{
    free(p->items);
    *p = (kiln_row_parts){0};
}

uint64_t kiln_row_parts_largest(const kiln_row_parts *p)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const uint64_t bytes = (uint64_t)p->items[i].plane->components * p->items[i].size;
        if (bytes > largest) largest = bytes;
    }
    return largest;
}

kiln_status kiln_row_part_check(const kiln_row_part *p, const kiln_chunk *block, kiln_error *err)
{
    const kiln_plane *q = kiln_chunk_plane(block, p->plane->name);
    if (!q || (q->type == p->plane->type && q->components == p->plane->components))
        return KILN_OK; /* missing: its reader says so */
    return kiln_fail(err, KILN_E_IO,
                     "plane '%s' of block '%s' has another type than in other blocks",
                     p->plane->name, block->name);
}

kiln_status kiln_block_starts(const kiln_layer *l, uint64_t **out, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(out, (uint64_t)l->n_chunks + 1, "the blocks of a layer", err));
    for (uint32_t i = 0; i < l->n_chunks; i++) (*out)[i + 1] = (*out)[i] + l->chunks[i].count;
    return KILN_OK;
}

uint32_t kiln_piece_of(const uint64_t *starts, uint32_t n_pieces, uint64_t row)
{
    /* starts[lo] <= row < starts[hi] */
    uint32_t lo = 0, hi = n_pieces;
    /* nearly always pieces have the size of the first */
    const uint64_t first = starts[1], guess = first ? row / first : n_pieces;
    if (guess < n_pieces && starts[guess] <= row && row < starts[guess + 1]) return (uint32_t)guess;
    while (hi - lo > 1) {
        uint32_t middle = lo + (hi - lo) / 2;
        if (starts[middle] <= row)
            lo = middle;
        else
            hi = middle;
    }
    return lo;
}

/* Counting sort by piece, so that each piece is read once a chunk. */
kiln_status kiln_row_list_make(const uint32_t *rows, uint64_t n, const uint64_t *starts,
                               uint32_t n_pieces, kiln_row_list *l, kiln_error *err)
{
    *l = (kiln_row_list){.n = n};
    KILN_TRY(KILN_ALLOC(&l->from, n, "the rows of a chunk", err));
    KILN_TRY(KILN_ALLOC(&l->to, n, "the rows of a chunk", err));
    KILN_TRY(KILN_ALLOC(&l->starts, (uint64_t)n_pieces + 2, "the blocks of a chunk", err));
    /* after the second pass next[b] has become the end of b, the start of b + 1 */
    uint64_t *next = l->starts + 1;
    for (uint64_t i = 0; i < n; i++) {
        if (rows[i] >= starts[n_pieces])
            return kiln_fail(err, KILN_E_IO, "the row order names row %llu of %llu",
                             (unsigned long long)rows[i], (unsigned long long)starts[n_pieces]);
        next[kiln_piece_of(starts, n_pieces, rows[i]) + 1]++;
    }
    for (uint32_t b = 0; b < n_pieces; b++) next[b + 1] += next[b];
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t b = kiln_piece_of(starts, n_pieces, rows[i]);
        const uint64_t at = next[b]++;
        l->from[at] = (uint32_t)(rows[i] - starts[b]);
        l->to[at] = (uint32_t)i;
    }
    return KILN_OK;
}

void kiln_row_list_release(kiln_row_list *l)
{
    free(l->starts);
    free(l->to);
    free(l->from);
    *l = (kiln_row_list){0};
}

/* ---- copying --------------------------------------------------------------------------------- */
static void copy_words(const uint32_t *src, uint32_t *dst, const uint32_t *from, const uint32_t *to,
                       uint64_t n)
{
    if (!from)
        for (uint64_t i = 0; i < n; i++) dst[to[i]] = src[i];
    else if (!to)
        for (uint64_t i = 0; i < n; i++) dst[i] = src[from[i]];
    else
        for (uint64_t i = 0; i < n; i++) dst[to[i]] = src[from[i]];
}

static void copy_any(const unsigned char *src, unsigned char *dst, uint32_t size,
                     const uint32_t *from, const uint32_t *to, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        memcpy(dst + (to ? to[i] : i) * size, src + (from ? from[i] : i) * size, size);
}

static bool is_aligned(const void *p) { return (uintptr_t)p % sizeof(uint32_t) == 0; }

void kiln_row_component_copy(const kiln_row_copy *s, uint32_t c, const uint32_t *from,
                             const uint32_t *to, uint64_t n)
{
    const void *src = s->from + c * s->from_rows * s->size;
    void *dst = s->to + c * s->to_rows * s->size;
    if (s->size == 4 && is_aligned(src) && is_aligned(dst)) /* nearly all of them */
        copy_words(src, dst, from, to, n);
    else
        copy_any(src, dst, s->size, from, to, n);
}

void kiln_rows_copy(const kiln_row_copy *s, const uint32_t *from, const uint32_t *to, uint64_t n,
                    unsigned threads)
{
#pragma omp parallel for num_threads(threads) \
    schedule(static) if (threads > 1 && s->components * n > 65536)
    for (uint32_t c = 0; c < s->components; c++) kiln_row_component_copy(s, c, from, to, n);
}
