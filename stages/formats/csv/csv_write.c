/* csv_write -- a line of text for each row, under a line with the names of the columns, as
 * splat-transform writes it: those of its PLY in its order, of points x y z red green blue. The
 * last column, source_row, is ours: rows come as the layer has them, and with it they can be joined
 * with the source's.
 *
 * Lines have any length, so a line's place is known when all lines before it are. The first round
 * writes each chunk's text to scratch, at a place as far on as the longest lines could take; there
 * it is written nowhere else and leaves holes. The second round copies each text to its place in
 * the file. */
#include "stages/formats/csv/csv_rows.h"
#include "stages/formats/float_places.h"
#include "stages/formats/rows.h"
#include "stages/formats/writer.h"

#include "base/harmonics.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLUMNS_MAX = 3 + 4 + 3 + 1 + 3 + 72 + 1,
    PIECE_BYTES = 1 << 20,
    SPLAT_PLANES = KILN_ROWS_SPLAT | KILN_ROWS_SOURCE_ROW,
};

/* ---- columns --------------------------------------------------------------------------------- */

typedef struct {
    uint32_t n;
    char names[COLUMNS_MAX][24];
    kiln_csv_column columns[COLUMNS_MAX];
} table;

/* The planes that make the columns. */
static unsigned csv_planes(const kiln_export *e)
{
    if (e->splats) return SPLAT_PLANES;
    const unsigned rgb = kiln_chunk_plane(kiln_export_sample(e), "rgb") ? KILN_ROWS_RGB : 0;
    return KILN_ROWS_MEANS | KILN_ROWS_SOURCE_ROW | rgb;
}

static void add_csv_column(table *t, const char *name, kiln_csv_kind kind, const void *values)
{
    (void)snprintf(t->names[t->n], sizeof t->names[t->n], "%s", name);
    t->columns[t->n++] = (kiln_csv_column){.kind = kind, .values = values};
}

/* name_0, name_1, ... of planar floats; values NULL: names alone are wanted. */
static void add_numbered(table *t, const char *name, uint32_t n, const float *values,
                         uint64_t n_rows)
{
    for (uint32_t i = 0; i < n; i++) {
        char numbered[24];
        (void)snprintf(numbered, sizeof numbered, "%s_%u", name, i);
        add_csv_column(t, numbered, KILN_CSV_FLOAT, values ? values + i * n_rows : NULL);
    }
}

static void add_sh(table *t, uint32_t degree, const float *values, uint64_t n_rows)
{
    for (uint32_t i = 0; i < kiln_sh_components(degree); i++) {
        char numbered[24];
        (void)snprintf(numbered, sizeof numbered, "f_rest_%u", i);
        add_csv_column(t, numbered, KILN_CSV_FLOAT,
                       values ? values + (uint64_t)kiln_sh_component_of_rest(degree, i) * n_rows
                              : NULL);
    }
}

static void add_splat(table *t, const kiln_export *e, const kiln_export_rows *r)
{
    add_numbered(t, "rot", 4, r->quats, r->n);
    add_numbered(t, "scale", 3, r->log_scales, r->n);
    add_csv_column(t, "opacity", KILN_CSV_FLOAT, r->opacity_logits);
    add_numbered(t, "f_dc", 3, r->sh0, r->n);
    add_sh(t, e->sh_degree, r->shN, r->n);
}

/* rows: of a chunk, or all zero for the names alone. */
static void fill_table(table *t, const kiln_export *e, const kiln_export_rows *r)
{
    static const char *const xyz[] = {"x", "y", "z"}, *const rgb[] = {"red", "green", "blue"};
    t->n = 0;
    for (uint64_t c = 0; c < 3; c++) {
        add_csv_column(t, xyz[c], KILN_CSV_PLACE, r->means ? r->means + c * r->n : NULL);
        t->columns[t->n - 1].origin = e->origin[c];
    }
    if (e->splats) add_splat(t, e, r);
    for (uint64_t c = 0; c < 3 && csv_planes(e) & KILN_ROWS_RGB; c++)
        add_csv_column(t, rgb[c], KILN_CSV_COLOUR, r->rgb ? r->rgb + c * r->n : NULL);
    add_csv_column(t, "source_row", KILN_CSV_WHOLE, r->source_row);
    t->columns[t->n - 1].first = r->chunk ? e->bakes[r->chunk->bake].source_first : 0;
}

/* ---- parent ---------------------------------------------------------------------------------- */

/* The plan: bytes of the longest line, and from round 2 on where each chunk's text begins, and the
 * end. */
static uint64_t plan_at(const kiln_export *e, uint64_t i)
{
    uint64_t v;
    memcpy(&v, (const char *)e->plan + i * sizeof v, sizeof v);
    return v;
}

static kiln_status begin_csv(kiln_export_parent *p, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_buffer header = {0};
    table *t = NULL;
    KILN_TRY(KILN_ALLOC(&t, 1, "columns", err));
    fill_table(t, p->e, &(kiln_export_rows){0});
    for (uint32_t c = 0; c < t->n; c++)
        KILN_GO(kiln_buffer_printf(&header, err, "%s%s", c ? "," : "", t->names[c]));
    KILN_GO(kiln_buffer_put(&header, "\n", 1, err));
    KILN_GO(kiln_export_put(p, header.data, header.size, 0, err));
    const uint64_t plan[2] = {(uint64_t)t->n * KILN_CSV_VALUE_MAX, header.size};
    KILN_GO(kiln_buffer_put(p->plan, plan, sizeof plan, err));
done:
    kiln_buffer_release(&header);
    free(t);
    return st;
}

/* Where the text behind the last known one begins. */
static uint64_t end_of_text(const kiln_export_parent *p)
{
    uint64_t at;
    memcpy(&at, (const char *)p->plan->data + p->plan->size - sizeof at, sizeof at);
    return at;
}

static kiln_status take_text_size(kiln_export_parent *p, uint64_t unit, const void *result,
                                  size_t bytes, kiln_error *err)
{
    uint64_t size;
    if (!result || bytes != sizeof size)
        return kiln_fail(err, KILN_E_BUG, "chunk %llu has no size", (unsigned long long)unit);
    memcpy(&size, result, sizeof size);
    const uint64_t at = end_of_text(p) + size;
    return kiln_buffer_put(p->plan, &at, sizeof at, err);
}

static kiln_status set_size(kiln_export_parent *p, kiln_error *err)
{
    return kiln_export_resize(p, end_of_text(p), err);
}

/* ---- round 1: text --------------------------------------------------------------------------- */

static uint64_t ram_of_text(const kiln_export *e, uint64_t unit)
{
    return kiln_export_rows_ram(e, unit, csv_planes(e)) + PIECE_BYTES + sizeof(table);
}

static uint64_t scratch_of(const kiln_export *e, uint64_t chunk)
{
    return e->chunks[chunk].first * plan_at(e, 0);
}

static kiln_status write_lines(kiln_export_worker *x, const kiln_export_rows *rows, const table *t,
                               char *piece, uint64_t at, kiln_error *err)
{
    const uint64_t first = at, step = PIECE_BYTES / plan_at(x->e, 0);
    for (uint64_t row = 0; row < rows->n; row += step) {
        const size_t bytes = kiln_csv_lines(t->columns, t->n, row,
                                            rows->n - row < step ? rows->n - row : step, piece);
        KILN_TRY(kiln_export_scratch_write(x, piece, bytes, at, err));
        at += bytes;
    }
    const uint64_t size = at - first;
    return kiln_export_result(x, &size, sizeof size, err);
}

static kiln_status write_text(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_export_rows rows;
    table *t = NULL;
    char *piece = NULL;
    KILN_TRY(kiln_export_rows_read(x, unit, csv_planes(x->e), &rows, err));
    KILN_GO(KILN_ALLOC(&t, 1, "columns", err));
    KILN_GO(KILN_ALLOC_UNSET(&piece, PIECE_BYTES, "text", err));
    fill_table(t, x->e, &rows);
    KILN_GO(write_lines(x, &rows, t, piece, scratch_of(x->e, unit), err));
done:
    free(piece);
    free(t);
    kiln_export_rows_release(&rows);
    return st;
}

/* ---- round 2: places ------------------------------------------------------------------------- */

static uint64_t ram_of_copy(const kiln_export *e, uint64_t unit)
{
    (void)e, (void)unit;
    return PIECE_BYTES;
}

static kiln_status copy_text(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_status st = KILN_OK;
    const uint64_t from = scratch_of(x->e, unit), to = plan_at(x->e, unit + 1),
                   size = plan_at(x->e, unit + 2) - to;
    char *piece = NULL;
    KILN_TRY(KILN_ALLOC_UNSET(&piece, PIECE_BYTES, "text", err));
    for (uint64_t at = 0; at < size && st == KILN_OK; at += PIECE_BYTES) {
        const size_t n = size - at < PIECE_BYTES ? (size_t)(size - at) : PIECE_BYTES;
        st = kiln_export_scratch_read(x, piece, n, from + at, err);
        if (st == KILN_OK) st = kiln_export_write(x, piece, n, to + at, err);
    }
    free(piece);
    return st;
}

/* With the places of all texts, which are in the plan then. */
static uint64_t copy_foresee(const kiln_export *e)
{
    return PIECE_BYTES + kiln_export_shared_ram(e, e->n_chunks * sizeof(uint64_t));
}

static const kiln_export_round rounds[] = {
    {.what = "writing text",
     .ram = ram_of_text,
     .run = write_text,
     .gather = take_text_size,
     .end = set_size},
    {.what = "putting text together",
     .ram = ram_of_copy,
     .run = copy_text,
     .foresee = copy_foresee},
};

const kiln_writer_functions kiln_writer_csv = {.place = KILN_PLACE_FILE,
                                               .scratch = true,
                                               .plan = kiln_origin_note,
                                               .begin = begin_csv,
                                               .rounds = rounds,
                                               .n_rounds = 2};
