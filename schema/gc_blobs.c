/* gc_blobs -- the blobs that nothing needs.
 *
 * No index leads from a blob to the rows that name it, so asking for each blob would read all of
 * them each time. Instead the hashes that kept rows name are read once and sorted, and run through
 * beside the blobs' own hashes, which have an index. */
#include "schema/gc_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- sets of hashes -------------------------------------------------------------------------- */
static int hashes_by_bytes(const void *a, const void *b) { return memcmp(a, b, sizeof(kiln_hash)); }

void kiln_gc_sort_hashes(kiln_buffer *hashes)
{
    if (hashes->size)
        qsort(hashes->data, hashes->size / sizeof(kiln_hash), sizeof(kiln_hash), hashes_by_bytes);
}

bool kiln_gc_has_hash(const kiln_buffer *sorted, kiln_hash hash)
{
    return sorted->size && bsearch(hash.bytes, sorted->data, sorted->size / sizeof hash,
                                   sizeof hash, hashes_by_bytes);
}

static kiln_status add_hash(kiln_query *q, kiln_buffer *list, kiln_error *err)
{
    const kiln_hash hash = kiln_column_hash(q);
    KILN_TRY(kiln_query_check(q, err));
    return kiln_buffer_put(list, hash.bytes, sizeof hash.bytes, err);
}

kiln_status kiln_gc_read_hashes(kiln_manifest *m, const char *sql, kiln_buffer *out,
                                kiln_error *err)
{
    return kiln_gc_read_rows(m, sql, add_hash, out, err);
}

/* ---- what is named --------------------------------------------------------------------------- */
kiln_status kiln_gc_output_hashes(kiln_manifest *m, kiln_buffer *out, kiln_error *err)
{
    KILN_TRY(kiln_gc_read_hashes(m,
                                 "SELECT hash FROM stage_output JOIN chunk USING (layer) JOIN "
                                 "plane ON plane.chunk = chunk.id"
                                 " JOIN plane_segment ON plane_segment.plane = plane.id",
                                 out, err));
    return kiln_gc_read_hashes(m, "SELECT hash FROM tile_segment", out, err);
}

static kiln_status unit_hashes(const kiln_gc *g, kiln_buffer *out, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    uint64_t i = 0;
    KILN_TRY(kiln_query_open(g->m, &q, "SELECT unit, hash FROM unit_output ORDER BY unit", err));
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        const int64_t unit = kiln_column_i64(&q);
        const kiln_hash hash = kiln_column_hash(&q);
        KILN_GO(kiln_row_take(g->m, &q, kiln_query_check(&q, err), err));
        while (i < g->n_units && g->units[i].id < unit) i++;
        const bool dropped = i < g->n_units && g->units[i].id == unit && !g->units[i].kept;
        if (!dropped) KILN_GO(kiln_buffer_put(out, hash.bytes, sizeof hash.bytes, err));
    }
done:
    kiln_query_close(&q);
    return st;
}

/* ---- what is not ----------------------------------------------------------------------------- */
/* A place in the sorted hashes that are named, each perhaps several times. */
typedef struct {
    const kiln_buffer *named;
    size_t at;
} walk;

/* Goes on to `hash`. A named one that was passed by is not among the blobs. */
static kiln_status go_to(const kiln_gc *g, walk *w, const unsigned char *hash, bool *is_named,
                         kiln_error *err)
{
    const size_t n = w->named->size / sizeof(kiln_hash);
    *is_named = false;
    for (; w->at < n; w->at++) {
        kiln_hash h;
        char hex[33];
        memcpy(h.bytes, w->named->data + w->at * sizeof h, sizeof h);
        const int order = hash ? memcmp(h.bytes, hash, sizeof h) : -1;
        if (order > 0) return KILN_OK;
        if (order < 0)
            return kiln_fail(
                err, KILN_E_IO,
                "manifest '%s' is damaged: blob %s is missing; kiln-verify says what refers to it",
                g->m->path, kiln_hash_hex(h, hex));
        *is_named = true;
    }
    return KILN_OK;
}

static kiln_status list_unnamed(kiln_gc *g, const kiln_buffer *named, kiln_buffer *list,
                                kiln_error *err)
{
    kiln_query q;
    bool row, is_named;
    walk w = {.named = named};
    kiln_status st = KILN_OK;
    /* the index alone has both */
    KILN_TRY(kiln_query_open(g->m, &q, "SELECT hash, id FROM blob ORDER BY hash", err));
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        const kiln_hash hash = kiln_column_hash(&q);
        const kiln_gc_blob blob = {.id = kiln_column_i64(&q)};
        KILN_GO(kiln_row_take(g->m, &q, kiln_query_check(&q, err), err));
        KILN_GO(go_to(g, &w, hash.bytes, &is_named, err));
        g->n_blobs_kept += is_named;
        if (!is_named) KILN_GO(kiln_buffer_put(list, &blob, sizeof blob, err));
    }
    KILN_GO(go_to(g, &w, NULL, &is_named, err));
done:
    kiln_query_close(&q);
    return st;
}

static int blobs_by_id(const void *a, const void *b)
{
    const int64_t x = ((const kiln_gc_blob *)a)->id, y = ((const kiln_gc_blob *)b)->id;
    return (x > y) - (x < y);
}

/* By id, which is the order in the file. */
static kiln_status measure_blobs(kiln_gc *g, kiln_error *err)
{
    kiln_query q;
    bool row;
    if (g->n_blobs) qsort(g->blobs, g->n_blobs, sizeof *g->blobs, blobs_by_id);
    for (uint64_t i = 0; i < g->n_blobs; i++) {
        KILN_TRY(kiln_query_open(g->m, &q, "SELECT length(packed) FROM blob WHERE id = ?", err));
        kiln_bind_i64(&q, g->blobs[i].id);
        kiln_status st = kiln_query_step(&q, &row, err);
        if (st == KILN_OK && row) g->blobs[i].bytes = kiln_column_u64(&q);
        if (st == KILN_OK) st = kiln_row_take(g->m, &q, kiln_query_check(&q, err), err);
        kiln_query_close(&q);
        KILN_TRY(st);
        g->bytes += g->blobs[i].bytes;
    }
    return KILN_OK;
}

kiln_status kiln_gc_find_blobs(kiln_gc *g, kiln_error *err)
{
    kiln_buffer named = {0}, list = {0};
    kiln_status st;
    KILN_GO(kiln_gc_output_hashes(g->m, &named, err));
    KILN_GO(unit_hashes(g, &named, err));
    kiln_gc_sort_hashes(&named);
    KILN_GO(list_unnamed(g, &named, &list, err));
done:
    kiln_buffer_release(&named);
    g->blobs = (kiln_gc_blob *)list.data;
    g->n_blobs = list.size / sizeof *g->blobs;
    return st == KILN_OK ? measure_blobs(g, err) : st;
}
