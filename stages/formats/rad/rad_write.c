/* rad_write -- RAD of Spark: one file with a tree of rows, the full scene and its levels
 * (rad_plan.h).
 *
 *   0  chunks      counts of values to scratch
 *   1  one unit    their sum, from which the parent chooses how values are coded
 *   2  segments    the row above each row, which gives every row its place and every row above its
 *                  first row below
 *   3  segments    rows as records, at their places in scratch; and those above the coarsest level
 *   4  file chunks 65,536 records each: planes, deflated, to scratch; then the parent knows where
 *      each lies
 *   5  file chunks into the file
 *
 * Memory is that of a segment (a chunk, or the coarsest levels of up to eight nodes) or of a chunk
 * of the file. */
#include "stages/formats/float_places.h"
#include "stages/formats/rad/rad_chunk.h"
#include "stages/formats/rad/rad_plan.h"
#include "stages/formats/rad/rad_relate.h"
#include "stages/formats/rad/rad_rows.h"
#include "stages/formats/rad/rad_top.h"
#include "stages/formats/rows.h"

#include "base/harmonics.h"
#include "base/minmax.h"
#include "kernels/coarsen/coarsen.h"

#include <stdlib.h>
#include <string.h>

enum {
    RELATED = KILN_ROWS_MEANS | KILN_ROWS_LOG_SCALES | KILN_ROWS_OPACITY | KILN_ROWS_SOURCE_ROW |
              KILN_ROWS_ANCESTRY | KILN_ROWS_WEIGHTS,
    COUNTED = KILN_ROWS_LOG_SCALES | KILN_ROWS_SH0 | KILN_ROWS_SHN,
    WRITTEN = KILN_ROWS_SPLAT | KILN_ROWS_WEIGHTS,
};

static const kiln_rad_head *head_of(const kiln_export *e) { return e->plan; }
static kiln_rad_head *head_to_fill(kiln_export_parent *p)
{
    return (kiln_rad_head *)(void *)p->plan->data;
}
static const kiln_rad_segment *segment_at(const kiln_export *e, uint64_t unit)
{
    return &KILN_RAD_AT(e->plan, kiln_rad_segment, head_of(e)->segments)[unit];
}
static uint32_t member_at(const kiln_export *e, const kiln_rad_segment *s, uint32_t i)
{
    return KILN_RAD_AT(e->plan, uint32_t, head_of(e)->members)[s->first + i];
}

/* ---- scratch --------------------------------------------------------------------------------- */

/* By number of the row in e->chunks: its place in the file; the place of its first row below, and
 * how many they are. */
typedef enum { AT_PLACES, AT_FIRST_BELOW, AT_BELOW, AT_RECORDS, AT_CHUNKS } part_of_scratch;

static uint64_t scratch_at(const kiln_export *e, part_of_scratch part)
{
    const uint64_t words = (4 * e->n_rows + 4095) / 4096 * 4096;
    if (part < AT_CHUNKS) return words * part;
    return words * AT_RECORDS + (head_of(e)->rows * kiln_rad_record_bytes(e) + 4095) / 4096 * 4096;
}

static kiln_status words_io(kiln_export_worker *x, bool writes, part_of_scratch part,
                            uint64_t first, uint64_t n, uint32_t *words, kiln_error *err)
{
    const uint64_t at = scratch_at(x->e, part) + 4 * first;
    return writes ? kiln_export_scratch_write(x, words, 4 * n, at, err)
                  : kiln_export_scratch_read(x, words, 4 * n, at, err);
}

/* ---- before anything is written -------------------------------------------------------------- */

static uint64_t chunk_rows(const kiln_rad_head *h, uint64_t chunk)
{
    return kiln_min_u64(KILN_RAD_CHUNK, h->rows - chunk * KILN_RAD_CHUNK);
}

static uint64_t pack_ram_of(const kiln_export *e, uint64_t n)
{
    return n * kiln_rad_record_bytes(e) + kiln_rad_chunk_ram(e, n);
}

static kiln_status plan_rad(kiln_export_parent *p, kiln_error *err)
{
    if (p->e->sh_degree > KILN_RAD_DEGREE_MAX)
        KILN_TRY(kiln_export_note(p, err, "RAD holds no spherical harmonics above degree 3"));
    KILN_TRY(kiln_float_places_note(p, err));
    return kiln_rad_plan_begin(p->e, p->plan, err);
}

/* ---- rounds 0 and 1: coding ------------------------------------------------------------------ */

/* Counts wait where records come later. They are 40 KiB a chunk: as results, the parent would hold
 * those of all chunks at once. */
static uint64_t counts_at(const kiln_export *e, uint64_t unit)
{
    return scratch_at(e, AT_RECORDS) + unit * sizeof(kiln_rad_counts);
}

static uint64_t count_ram(const kiln_export *e, uint64_t unit)
{
    return kiln_export_rows_ram(e, unit, COUNTED) + 2 * sizeof(kiln_rad_counts);
}

/* Of a flat Gaussian the shortest axis says nothing. */
static void count_scales(const kiln_export_rows *rows, uint64_t i, kiln_rad_counts *c)
{
    double v[3], least;
    for (uint64_t a = 0; a < 3; a++) v[a] = (double)rows->log_scales[a * rows->n + i];
    least = v[0] < v[1] ? v[0] : v[1];
    least = v[2] < least ? v[2] : least;
    bool left_out = false;
    for (int a = 0; a < 3; a++) {
        if (!left_out && v[a] == least)
            left_out = true;
        else
            kiln_rad_count_scale(c, v[a]);
    }
}

static void count_rad_rows(const kiln_export *e, const kiln_export_rows *rows, kiln_rad_counts *c)
{
    for (uint64_t i = 0; i < 3 * rows->n; i++)
        kiln_rad_count_rgb(c, 0.5 + KILN_SH_C0_F64 * (double)rows->sh0[i]);
    for (uint64_t i = 0; i < rows->n; i++) count_scales(rows, i, c);
    for (uint32_t d = 1; d <= kiln_rad_degree(e); d++)
        for (uint64_t i = kiln_sh_components(d - 1) * rows->n; i < kiln_sh_components(d) * rows->n;
             i++)
            kiln_rad_count_sh(c, d, (double)rows->shN[i]);
}

static kiln_status count_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_export_rows rows;
    kiln_rad_counts *c = NULL;
    KILN_TRY(kiln_export_rows_read(x, unit, COUNTED, &rows, err));
    kiln_status st = KILN_ALLOC(&c, 1, "counts of values", err);
    if (st == KILN_OK) count_rad_rows(x->e, &rows, c);
    if (st == KILN_OK) st = kiln_export_scratch_write(x, c, sizeof *c, counts_at(x->e, unit), err);
    free(c);
    kiln_export_rows_release(&rows);
    return st;
}

static uint64_t sum_ram(const kiln_export *e, uint64_t unit)
{
    (void)e, (void)unit;
    return 2 * sizeof(kiln_rad_counts) + kiln_outputs_ram(sizeof(kiln_rad_counts));
}

static kiln_status sum_counts(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_rad_counts *c; /* the sum, then those of a chunk */
    kiln_status st = KILN_OK;
    (void)unit;
    KILN_TRY(KILN_ALLOC(&c, 2, "counts of values", err));
    uint64_t *sum = (uint64_t *)(void *)&c[0];
    const uint64_t *of = (const uint64_t *)(const void *)&c[1];
    for (uint32_t i = 0; i < x->e->n_chunks; i++) {
        KILN_GO(kiln_export_scratch_read(x, &c[1], sizeof c[1], counts_at(x->e, i), err));
        for (size_t k = 0; k < sizeof c[1] / sizeof *of; k++) sum[k] += of[k];
    }
    KILN_GO(kiln_export_result(x, &c[0], sizeof c[0], err));
done:
    free(c);
    return st;
}

static kiln_status take_counts(kiln_export_parent *p, uint64_t unit, const void *result,
                               size_t bytes, kiln_error *err)
{
    (void)unit;
    if (bytes != sizeof(kiln_rad_counts))
        return kiln_fail(err, KILN_E_BUG, "counts of values as %zu bytes", bytes);
    memcpy(&head_to_fill(p)->counts, result, bytes);
    return KILN_OK;
}

static kiln_status choose_rad_coding(kiln_export_parent *p, kiln_error *err)
{
    kiln_rad_head *h = head_to_fill(p);
    (void)err;
    kiln_rad_choose(&h->counts, &h->coding);
    return KILN_OK;
}

/* ---- round 2: rows above --------------------------------------------------------------------- */

static uint64_t segment_units(const kiln_export *e) { return head_of(e)->n_segments; }

static uint64_t read_ram_of(const kiln_export *e, const kiln_rad_segment *s, unsigned planes)
{
    uint64_t most = s->parent == KILN_RAD_NO_CHUNK ? 0 : kiln_export_rows_ram(e, s->parent, planes);
    for (uint32_t i = 0; i < s->n_chunks; i++)
        most = kiln_max_u64(most, kiln_export_rows_ram(e, member_at(e, s, i), planes));
    return most;
}

static uint64_t rows_above(const kiln_export *e, const kiln_rad_segment *s)
{
    return s->parent == KILN_RAD_NO_CHUNK ? 0 : e->chunks[s->parent].n;
}

static uint64_t relate_ram(const kiln_export *e, uint64_t unit)
{
    const kiln_rad_segment *s = segment_at(e, unit);
    const uint64_t n = s->n, n_above = rows_above(e, s);
    return read_ram_of(e, s, RELATED) + (n + n_above) * (12 + 4 + 12) + 4 * (2 * n + 3 * n_above) +
           kiln_rad_relate_ram(n, n_above);
}

static void release_level(kiln_rad_level *l)
{
    free(l->means);
    free(l->weights);
    free(l->first);
    free(l->last);
    free(l->count);
}

static kiln_status new_level(kiln_rad_level *l, uint64_t n, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC_UNSET(&l->means, 3 * n, "rows of a level", err));
    KILN_TRY(KILN_ALLOC_UNSET(&l->weights, n, "rows of a level", err));
    KILN_TRY(KILN_ALLOC_UNSET(&l->first, n, "rows of a level", err));
    KILN_TRY(KILN_ALLOC_UNSET(&l->last, n, "rows of a level", err));
    return KILN_ALLOC_UNSET(&l->count, n, "rows of a level", err);
}

/* Appends a chunk's rows. A row of level 0 stands for itself; its weight is what kiln-lod began
 * with. */
static kiln_status take_level(kiln_export_worker *x, uint32_t chunk, kiln_rad_level *to,
                              kiln_error *err)
{
    kiln_export_rows rows;
    KILN_TRY(kiln_export_rows_read(x, chunk, RELATED, &rows, err));
    const uint64_t n = rows.n, at = to->n;
    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t c = 0; c < 3; c++) to->means[3 * (at + i) + c] = rows.means[c * n + i];
        to->first[at + i] = rows.source_row[i];
        to->last[at + i] = rows.source_last ? rows.source_last[i] : rows.source_row[i];
        to->count[at + i] = rows.source_count ? rows.source_count[i] : 1;
    }
    const kiln_coarsen_rows own = {.n = n,
                                   .log_scales = rows.log_scales,
                                   .opacity_logits = rows.opacity_logits,
                                   .weights = to->weights + at};
    if (rows.weights)
        memcpy(to->weights + at, rows.weights, n * sizeof *rows.weights);
    else
        kiln_coarsen_weights(&own);
    to->n += n;
    kiln_export_rows_release(&rows);
    return KILN_OK;
}

/* From the row above each row to the rows' places and, of the rows above, the place of the first
 * row below. */
static void place_rows(const kiln_rad_segment *s, const uint32_t *parent, uint64_t n_above,
                       uint32_t *first, uint32_t *below, uint32_t *places)
{
    uint64_t at = s->base;
    memset(below, 0, n_above * sizeof *below);
    for (uint64_t i = 0; i < s->n; i++) below[parent[i]]++;
    for (uint64_t k = 0; k < n_above; k++) {
        first[k] = (uint32_t)at;
        at += below[k];
    }
    for (uint64_t i = 0; i < s->n; i++) places[i] = first[parent[i]]++;
    for (uint64_t k = 0; k < n_above; k++) first[k] -= below[k];
}

typedef struct {
    kiln_rad_level fine, coarse;
    uint32_t *parent, *places, *first, *below;
} relation;

static void release_relation(relation *r)
{
    release_level(&r->fine);
    release_level(&r->coarse);
    free(r->parent);
    free(r->places);
    free(r->first);
    free(r->below);
}

/* child_count has 16 bits; merges have far fewer rows. */
static kiln_status check_below(const uint32_t *below, uint64_t n, kiln_error *err)
{
    for (uint64_t i = 0; i < n; i++)
        if (below[i] > UINT16_MAX)
            return kiln_fail(
                err, KILN_E_INPUT,
                "a row of the levels stands for %u rows of the level below; RAD holds up to 65535",
                below[i]);
    return KILN_OK;
}

static kiln_status put_places(kiln_export_worker *x, const kiln_rad_segment *s, relation *r,
                              kiln_error *err)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < s->n_chunks; i++) {
        const kiln_export_chunk *c = &x->e->chunks[member_at(x->e, s, i)];
        KILN_TRY(words_io(x, true, AT_PLACES, c->first, c->n, r->places + at, err));
        at += c->n;
    }
    if (s->parent == KILN_RAD_NO_CHUNK) return KILN_OK;
    const kiln_export_chunk *above = &x->e->chunks[s->parent];
    KILN_TRY(check_below(r->below, above->n, err));
    KILN_TRY(words_io(x, true, AT_FIRST_BELOW, above->first, above->n, r->first, err));
    return words_io(x, true, AT_BELOW, above->first, above->n, r->below, err);
}

static kiln_status relate_rows(kiln_export_worker *x, const kiln_rad_segment *s, relation *r,
                               kiln_error *err)
{
    const uint64_t n_above = rows_above(x->e, s);
    KILN_TRY(KILN_ALLOC_UNSET(&r->places, s->n, "places of rows", err));
    /* of the root's: as they are */
    for (uint64_t i = 0; i < s->n; i++) r->places[i] = (uint32_t)(s->base + i);
    if (s->parent == KILN_RAD_NO_CHUNK) return put_places(x, s, r, err);
    KILN_TRY(KILN_ALLOC_UNSET(&r->parent, s->n, "rows above", err));
    KILN_TRY(KILN_ALLOC_UNSET(&r->first, n_above, "rows below", err));
    KILN_TRY(KILN_ALLOC_UNSET(&r->below, n_above, "rows below", err));
    KILN_TRY(new_level(&r->fine, s->n, err));
    KILN_TRY(new_level(&r->coarse, n_above, err));
    for (uint32_t i = 0; i < s->n_chunks; i++)
        KILN_TRY(take_level(x, member_at(x->e, s, i), &r->fine, err));
    KILN_TRY(take_level(x, s->parent, &r->coarse, err));
    KILN_TRY(kiln_rad_relate(&r->fine, &r->coarse, r->parent, err));
    place_rows(s, r->parent, n_above, r->first, r->below, r->places);
    return put_places(x, s, r, err);
}

static kiln_status relate_segment(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    relation r = {.parent = NULL};
    const kiln_status st = relate_rows(x, segment_at(x->e, unit), &r, err);
    release_relation(&r);
    return st;
}

/* ---- round 3: records ------------------------------------------------------------------------ */

/* the last: rows above the coarsest */
static uint64_t record_units(const kiln_export *e) { return head_of(e)->n_segments + 1ull; }

static uint64_t record_ram(const kiln_export *e, uint64_t unit)
{
    const bool tops = unit == head_of(e)->n_segments;
    const kiln_rad_segment *s = segment_at(e, tops ? 0 : unit);
    const uint64_t read = read_ram_of(e, s, WRITTEN);
    return read + (tops ? kiln_rad_top_ram(head_of(e))
                        : s->n * (kiln_rad_record_bytes(e) + 12) + sizeof(kiln_rad_row));
}

typedef struct {
    uint32_t *places, *first, *below;
} links;

static kiln_status read_links(kiln_export_worker *x, const kiln_export_chunk *c, links *l,
                              kiln_error *err)
{
    KILN_TRY(KILN_ALLOC_UNSET(&l->places, c->n, "places of rows", err));
    KILN_TRY(KILN_ALLOC(&l->first, c->n, "rows below", err));
    KILN_TRY(KILN_ALLOC(&l->below, c->n, "rows below", err));
    KILN_TRY(words_io(x, false, AT_PLACES, c->first, c->n, l->places, err));
    if (c->level == 0) return KILN_OK; /* nothing is below */
    KILN_TRY(words_io(x, false, AT_FIRST_BELOW, c->first, c->n, l->first, err));
    return words_io(x, false, AT_BELOW, c->first, c->n, l->below, err);
}

static kiln_status put_records(kiln_export_worker *x, const kiln_rad_segment *s, uint32_t chunk,
                               unsigned char *records, kiln_error *err)
{
    const uint64_t bytes = kiln_rad_record_bytes(x->e);
    kiln_export_rows rows;
    kiln_rad_row row = {.opacity = 0};
    links l = {.places = NULL};
    KILN_TRY(kiln_export_rows_read(x, chunk, WRITTEN, &rows, err));
    const kiln_status st = read_links(x, &x->e->chunks[chunk], &l, err);
    for (uint64_t i = 0; st == KILN_OK && i < rows.n; i++) {
        kiln_rad_take(x->e, &rows, i, &row);
        kiln_rad_put(&row, &head_of(x->e)->coding, kiln_rad_degree(x->e), l.below[i], l.first[i],
                     records + (l.places[i] - s->base) * bytes);
    }
    free(l.places);
    free(l.first);
    free(l.below);
    kiln_export_rows_release(&rows);
    return st;
}

static kiln_status put_tops(kiln_export_worker *x, kiln_error *err)
{
    const kiln_rad_head *h = head_of(x->e);
    const uint64_t n = kiln_rad_top_base(h, 0), bytes = kiln_rad_record_bytes(x->e);
    kiln_export_rows rows;
    unsigned char *records = NULL;
    kiln_status st = KILN_OK;
    if (n == 0) return KILN_OK;
    KILN_TRY(
        kiln_export_rows_read(x, member_at(x->e, segment_at(x->e, 0), 0), WRITTEN, &rows, err));
    KILN_GO(KILN_ALLOC(&records, n * bytes, "rows", err));
    KILN_GO(kiln_rad_top(x->e, h, &rows, records, err));
    KILN_GO(kiln_export_scratch_write(x, records, n * bytes, scratch_at(x->e, AT_RECORDS), err));
done:
    free(records);
    kiln_export_rows_release(&rows);
    return st;
}

static kiln_status record_segment(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    if (unit == head_of(x->e)->n_segments) return put_tops(x, err);
    const kiln_rad_segment *s = segment_at(x->e, unit);
    const uint64_t bytes = kiln_rad_record_bytes(x->e);
    unsigned char *records = NULL;
    kiln_status st = KILN_OK;
    KILN_TRY(KILN_ALLOC(&records, s->n * bytes, "rows", err));
    for (uint32_t i = 0; i < s->n_chunks; i++)
        KILN_GO(put_records(x, s, member_at(x->e, s, i), records, err));
    KILN_GO(kiln_export_scratch_write(x, records, s->n * bytes,
                                      scratch_at(x->e, AT_RECORDS) + s->base * bytes, err));
done:
    free(records);
    return st;
}

/* ---- rounds 4 and 5: chunks of the file ------------------------------------------------------ */

static uint64_t file_chunks(const kiln_export *e) { return kiln_rad_chunks(head_of(e)); }
static uint64_t packed_at(const kiln_export *e, uint64_t unit)
{
    return scratch_at(e, AT_CHUNKS) + unit * kiln_rad_chunk_max(e, KILN_RAD_CHUNK);
}
static uint64_t pack_ram(const kiln_export *e, uint64_t unit)
{
    return pack_ram_of(e, chunk_rows(head_of(e), unit));
}

static kiln_status pack_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const kiln_rad_head *h = head_of(x->e);
    const uint64_t n = chunk_rows(h, unit), bytes = kiln_rad_record_bytes(x->e),
                   base = unit * KILN_RAD_CHUNK;
    unsigned char *records = NULL;
    kiln_buffer chunk = {0};
    kiln_status st = KILN_OK;
    KILN_TRY(KILN_ALLOC_UNSET(&records, n * bytes, "rows", err));
    KILN_GO(kiln_export_scratch_read(x, records, n * bytes,
                                     scratch_at(x->e, AT_RECORDS) + base * bytes, err));
    KILN_GO(kiln_rad_chunk_put(x->e, h, base, n, records, &chunk, err));
    KILN_GO(kiln_export_scratch_result(x, "a chunk", &chunk, kiln_rad_chunk_max(x->e, n),
                                       packed_at(x->e, unit), err));
done:
    kiln_buffer_release(&chunk);
    free(records);
    return st;
}

static kiln_status take_packed_size(kiln_export_parent *p, uint64_t unit, const void *result,
                                    size_t bytes, kiln_error *err)
{
    if (bytes != sizeof(uint64_t))
        return kiln_fail(err, KILN_E_BUG, "the size of a chunk as %zu bytes", bytes);
    memcpy(&KILN_RAD_AT(p->plan->data, uint64_t, head_to_fill(p)->sizes)[unit], result, bytes);
    return KILN_OK;
}

/* From sizes to where each chunk ends: the head is as long as it says. */
static kiln_status put_head(kiln_export_parent *p, kiln_error *err)
{
    const kiln_rad_head *h = head_to_fill(p);
    uint64_t *sizes = KILN_RAD_AT(p->plan->data, uint64_t, h->sizes), end;
    kiln_buffer head = {0};
    kiln_status st = KILN_OK;
    KILN_GO(kiln_rad_head_put(p->e, h, sizes, &head, err));
    end = head.size;
    for (uint64_t i = 0; i < kiln_rad_chunks(h); i++) sizes[i] = end += sizes[i];
    KILN_GO(kiln_export_resize(p, end, err));
    KILN_GO(kiln_export_put(p, head.data, head.size, 0, err));
    /* what comes first in the file: room for the first chunk's begin */
    KILN_GO(kiln_buffer_put(p->plan, &(uint64_t){head.size}, sizeof(uint64_t), err));
done:
    kiln_buffer_release(&head);
    return st;
}

/* Where chunk `unit` begins and ends; the plan's last number is the size of the head. */
static uint64_t begin_of(const kiln_export *e, uint64_t unit)
{
    uint64_t head;
    if (unit) return KILN_RAD_AT(e->plan, uint64_t, head_of(e)->sizes)[unit - 1];
    memcpy(&head, (const char *)e->plan + e->plan_bytes - sizeof head, sizeof head);
    return head;
}
static uint64_t size_of(const kiln_export *e, uint64_t unit)
{
    return KILN_RAD_AT(e->plan, uint64_t, head_of(e)->sizes)[unit] - begin_of(e, unit);
}

static kiln_status copy_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const uint64_t size = size_of(x->e, unit);
    unsigned char *data = NULL;
    KILN_TRY(KILN_ALLOC_UNSET(&data, size, "a chunk", err));
    kiln_status st = kiln_export_scratch_read(x, data, size, packed_at(x->e, unit), err);
    if (st == KILN_OK) st = kiln_export_write(x, data, size, begin_of(x->e, unit), err);
    free(data);
    return st;
}

/* What each round takes, by the plan, which the lists of chunks decide. Where memory for it is
 * gone, plan_rad says so. */
static uint64_t foresee_rad(const kiln_export *e)
{
    kiln_buffer plan = {0};
    kiln_export with = *e;
    uint64_t most = 0;
    if (kiln_rad_plan_begin(e, &plan, NULL) == KILN_OK) {
        with.plan = plan.data;
        with.plan_bytes = plan.size;
        for (uint64_t i = 0; i < segment_units(&with); i++)
            most = kiln_max_u64(most, relate_ram(&with, i));
        for (uint64_t i = 0; i < record_units(&with); i++)
            most = kiln_max_u64(most, record_ram(&with, i));
        for (uint64_t i = 0; i < file_chunks(&with); i++)
            most = kiln_max_u64(most, pack_ram(&with, i));
        most += kiln_export_shared_ram(e, plan.size);
    }
    kiln_buffer_release(&plan);
    return most;
}

static const kiln_export_round rounds[] = {
    {.what = "counting values", .ram = count_ram, .run = count_chunk},
    {.what = "choosing codes",
     .units = kiln_export_one_unit,
     .ram = sum_ram,
     .run = sum_counts,
     .gather = take_counts,
     .end = choose_rad_coding},
    {.what = "relating rows", .units = segment_units, .ram = relate_ram, .run = relate_segment},
    {.what = "coding", .units = record_units, .ram = record_ram, .run = record_segment},
    {.what = "packing",
     .units = file_chunks,
     .ram = pack_ram,
     .run = pack_chunk,
     .gather = take_packed_size,
     .end = put_head},
    {.what = "writing", .units = file_chunks, .ram = size_of, .run = copy_chunk},
};

const kiln_writer_functions kiln_writer_rad = {.place = KILN_PLACE_FILE,
                                               .reader = KILN_READER_RAD,
                                               .scratch = true,
                                               .foresee = foresee_rad,
                                               .plan = plan_rad,
                                               .rounds = rounds,
                                               .n_rounds = sizeof rounds / sizeof *rounds};
