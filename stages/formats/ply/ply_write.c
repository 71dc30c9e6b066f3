/* ply_write -- a layer as one binary PLY. Every row has its place: header + rank * row size. In
 * baked order, or where the layer itself is in the order of its source, a chunk is one piece of the
 * file; else its rows are scattered (row_scatter.h). */
#include "stages/formats/float_places.h"
#include "stages/formats/ply/ply_table.h"
#include "stages/formats/row_scatter.h"
#include "stages/formats/writer.h"

#include "base/minmax.h"
#include "schema/layers.h"

#include <stdlib.h>

/* Encoded at once: a core's own cache still has them when they are written. */
enum { STEP_BYTES = 256 << 10 };

static uint64_t ply_step_rows(uint64_t row_bytes)
{
    return kiln_max_u64(STEP_BYTES / kiln_max_u64(row_bytes, 1), 1);
}

typedef struct {
    kiln_ply_table table;
    unsigned planes;
} ply_state;

/* Blocks are consecutive rows of the source. */
static bool scatters_rows(const kiln_export *e)
{
    bool spatial = false;
    for (uint32_t i = 0; i < e->n_bakes; i++)
        spatial = spatial || kiln_layer_kinds[kiln_layer_kind_find(e->bakes[i].layer->kind)].form ==
                                 KILN_FORM_CHUNKS;
    return e->source_order && spatial;
}

/* ---- parent ---------------------------------------------------------------------------------- */

static kiln_status plan_ply(kiln_export_parent *p, kiln_error *err)
{
    kiln_ply_table table;
    kiln_status st = kiln_ply_table_plan(p->e, &table, p->notes, err);
    if (st == KILN_OK && p->e->inria_columns && table.splats && !p->e->keep_origin)
        st = kiln_float_places_note(p, err);
    if (st == KILN_OK)
        st = kiln_scatter_plan(p->e, table.header.size, table.row_bytes, p->plan, err);
    kiln_ply_table_release(&table);
    return st;
}

static kiln_status begin_ply(kiln_export_parent *p, kiln_error *err)
{
    kiln_ply_table table;
    kiln_status st = kiln_ply_table_plan(p->e, &table, NULL, err);
    if (st == KILN_OK) st = kiln_export_put(p, table.header.data, table.header.size, 0, err);
    if (st == KILN_OK)
        st = kiln_export_resize(p, table.header.size + p->e->n_rows * table.row_bytes, err);
    kiln_ply_table_release(&table);
    return st;
}

/* ---- worker ---------------------------------------------------------------------------------- */

static void close_ply_state(void *own)
{
    ply_state *s = own;
    kiln_ply_table_release(&s->table);
    free(s);
}

static kiln_status state_of(kiln_export_worker *x, const ply_state **out, kiln_error *err)
{
    ply_state *s = x->own;
    if (!s) {
        KILN_TRY(KILN_ALLOC(&s, 1, "PLY writer", err));
        x->own = s;
        KILN_TRY(kiln_ply_table_plan(x->e, &s->table, NULL, err));
        s->planes =
            kiln_ply_table_planes(&s->table) | (scatters_rows(x->e) ? KILN_ROWS_SOURCE_ROW : 0u);
    }
    *out = s;
    return KILN_OK;
}

/* All planes, because what a column is made of is known only in the worker; the rows of a step;
 * their order. */
static uint64_t ply_writer_ram(const kiln_export *e, uint64_t unit)
{
    const kiln_row_scatter *s = e->plan;
    return kiln_export_rows_ram(e, unit, ~0u) + ply_step_rows(s->row_bytes) * s->row_bytes +
           kiln_scatter_put_ram(e, unit);
}

static kiln_status write_ply_rows(kiln_export_worker *x, const ply_state *s,
                                  const kiln_export_rows *rows, unsigned char *step,
                                  kiln_error *err)
{
    const uint64_t size = s->table.row_bytes, most = ply_step_rows(size),
                   first = s->table.header.size + rows->first * size;
    for (uint64_t at = 0; at < rows->n; at += most) {
        const uint64_t n = kiln_min_u64(rows->n - at, most);
        KILN_TRY(kiln_ply_encode(&s->table, rows, at, n, step, err));
        if (scatters_rows(x->e))
            KILN_TRY(kiln_scatter_put(x, rows, at, n, step, err));
        else
            KILN_TRY(kiln_export_write(x, step, n * size, first + at * size, err));
    }
    if (scatters_rows(x->e)) return kiln_scatter_put_end(x, rows, err);
    kiln_export_written(x, first, rows->n * size);
    return KILN_OK;
}

static kiln_status write_ply_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const ply_state *s = NULL;
    kiln_export_rows rows = {0};
    unsigned char *step = NULL;
    kiln_status st = KILN_OK;
    KILN_GO(state_of(x, &s, err));
    KILN_GO(kiln_export_rows_read(x, unit, s->planes, &rows, err));
    KILN_GO(kiln_export_keep(x, KILN_KEPT_STEP,
                             ply_step_rows(s->table.row_bytes) * s->table.row_bytes,
                             "rows of a chunk", (void **)&step, err));
    if (scatters_rows(x->e)) KILN_GO(kiln_scatter_sort(x, &rows, err));
    KILN_GO(write_ply_rows(x, s, &rows, step, err));
done:
    kiln_export_rows_release(&rows);
    return st;
}

static kiln_status gather_ply_buckets(kiln_export_parent *p, uint64_t unit, const void *result,
                                      size_t bytes, kiln_error *err)
{
    return scatters_rows(p->e) ? kiln_scatter_gather(p, unit, result, bytes, err) : KILN_OK;
}

static uint64_t ply_buckets(const kiln_export *e)
{
    return scatters_rows(e) ? kiln_scatter_buckets(e) : 0;
}

static uint64_t foresee_ply_buckets(const kiln_export *e)
{
    return scatters_rows(e) ? kiln_scatter_foresee(e) : 0;
}

static const kiln_export_round rounds[] = {
    {.what = "exporting",
     .ram = ply_writer_ram,
     .run = write_ply_chunk,
     .gather = gather_ply_buckets},
    {.what = "ordering",
     .units = ply_buckets,
     .ram = kiln_scatter_bucket_ram,
     .run = kiln_scatter_bucket,
     .foresee = foresee_ply_buckets},
};

const kiln_writer_functions kiln_writer_ply = {
    .place = KILN_PLACE_FILE,
    .scratch = true,
    .keeps_order = true,
    .plan = plan_ply,
    .begin = begin_ply,
    .rounds = rounds,
    .n_rounds = 2,
    .close = close_ply_state,
    .reader = "ply",
};
