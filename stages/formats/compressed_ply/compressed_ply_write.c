/* compressed_ply_write -- PLY as PlayCanvas packs it (compressed_ply.h): bounds of all groups,
 * packed rows, SH, each an element.
 *
 * A group is 256 neighbouring rows of the file, and chunks end anywhere. A chunk's unit packs the
 * groups that lie wholly in it. Rows of the others, at most 255 at either end, wait in scratch,
 * half ready and at their place in the file times their size; the second round packs these groups.
 * So a group has the rows that the format says, whatever the chunks are.
 *
 * Rows of a spatial chunk may stand in any order: those that are whole groups are put into one in
 * which bounds are narrow (row_groups.h). Layers in blocks keep theirs, so that a file that was
 * read keeps its groups. */
#include "stages/formats/compressed_ply/compressed_ply_rows.h"
#include "stages/formats/float_places.h"
#include "stages/formats/ply/ply_table.h"
#include "stages/formats/row_groups.h"
#include "stages/formats/rows.h"
#include "stages/formats/writer.h"

#include "schema/layers.h"

#include "base/checked.h"
#include "base/harmonics.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { GROUP = KILN_PACKED_GROUP, CHUNKS_A_UNIT = 256, SH_DEGREE_MAX = 3 };

enum { LOG_SCALES, SH, STEPS }; /* of the counts */
static const kiln_export_count counts[] = {
    {"log scale was clamped to -20 .. 20", "log scales were clamped to -20 .. 20"},
    {"SH coefficient was clamped to -4 .. 4", "SH coefficients were clamped to -4 .. 4"},
    {"row is rounded to position steps larger than itself; leave out what lies far away "
     "(--filter-box)",
     "rows are rounded to position steps larger than themselves; leave out what lies far away "
     "(--filter-box)"},
    {NULL, NULL}};

/* ---- layout ---------------------------------------------------------------------------------- */

/* The plan: where the elements begin, and coefficients of each channel above degree 0. */
typedef struct {
    uint64_t bounds, vertices, sh, end;
    uint64_t n_coefficients;
} layout;

static layout layout_of(const kiln_export *e)
{
    layout l;
    memcpy(&l, e->plan, sizeof l);
    return l;
}

static kiln_status put_header(const kiln_export *e, uint32_t n_sh, kiln_buffer *h, kiln_error *err)
{
    KILN_TRY(kiln_buffer_printf(h, err, "ply\nformat binary_little_endian 1.0\n"));
    KILN_TRY(kiln_ply_put_comments(e, h, err));
    KILN_TRY(kiln_ply_put_origin(e, h, err));
    KILN_TRY(kiln_buffer_printf(h, err, "element chunk %llu\n",
                                (unsigned long long)kiln_div_up(e->n_rows, GROUP)));
    for (int i = 0; i < KILN_PACKED_BOUNDS; i++)
        KILN_TRY(kiln_buffer_printf(h, err, "property float %s\n", kiln_packed_bound_name(i)));
    KILN_TRY(kiln_buffer_printf(h, err, "element vertex %llu\n", (unsigned long long)e->n_rows));
    for (int i = 0; i < KILN_PACKED_FIELDS; i++)
        KILN_TRY(kiln_buffer_printf(h, err, "property uint %s\n", kiln_packed_field_name(i)));
    if (n_sh)
        KILN_TRY(kiln_buffer_printf(h, err, "element sh %llu\n", (unsigned long long)e->n_rows));
    for (uint32_t i = 0; i < n_sh; i++)
        KILN_TRY(kiln_buffer_printf(h, err, "property uchar f_rest_%u\n", i));
    return kiln_buffer_printf(h, err, "end_header\n");
}

static kiln_status plan_compressed_ply(kiln_export_parent *p, kiln_error *err)
{
    if (p->e->sh_degree > SH_DEGREE_MAX)
        KILN_TRY(kiln_export_note(p, err,
                                  "a compressed PLY holds no spherical harmonics above degree 3"));
    return kiln_float_places_note(p, err);
}

static kiln_status begin_compressed_ply(kiln_export_parent *p, kiln_error *err)
{
    const kiln_export *e = p->e;
    const uint32_t n_coefficients = kiln_sh_coefficients(kiln_export_degree(e, SH_DEGREE_MAX));
    kiln_buffer header = {0};
    kiln_status st = KILN_OK;
    KILN_GO(put_header(e, 3 * n_coefficients, &header, err));
    layout l = {.bounds = header.size, .n_coefficients = n_coefficients};
    l.vertices = l.bounds + kiln_div_up(e->n_rows, GROUP) * KILN_PACKED_BOUNDS_BYTES;
    l.sh = l.vertices + e->n_rows * KILN_PACKED_ROW_BYTES;
    l.end = l.sh + e->n_rows * 3 * n_coefficients;
    KILN_GO(kiln_export_put(p, header.data, header.size, 0, err));
    KILN_GO(kiln_export_resize(p, l.end, err));
    KILN_GO(kiln_buffer_put(p->plan, &l, sizeof l, err));
done:
    kiln_buffer_release(&header);
    return st;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Packs rows [first, first + n) of the file, which are whole groups but for the file's last, and
 * writes them. Room for them in bounds and vertices. */
static kiln_status write_groups(kiln_export_worker *x, const kiln_half_packed *rows, uint64_t first,
                                uint64_t n, unsigned char *bounds, unsigned char *vertices,
                                kiln_error *err)
{
    const layout l = layout_of(x->e);
    for (uint64_t at = 0; at < n; at += GROUP)
        x->counts[STEPS] += kiln_pack_group(rows + at, (uint32_t)(n - at < GROUP ? n - at : GROUP),
                                            bounds + at / GROUP * KILN_PACKED_BOUNDS_BYTES,
                                            vertices + at * KILN_PACKED_ROW_BYTES);
    if (n == 0) return KILN_OK;
    KILN_TRY(kiln_export_write(x, bounds, kiln_div_up(n, GROUP) * KILN_PACKED_BOUNDS_BYTES,
                               l.bounds + first / GROUP * KILN_PACKED_BOUNDS_BYTES, err));
    return kiln_export_write(x, vertices, n * KILN_PACKED_ROW_BYTES,
                             l.vertices + first * KILN_PACKED_ROW_BYTES, err);
}

static kiln_status keep_for_later(kiln_export_worker *x, const kiln_half_packed *rows,
                                  uint64_t first, uint64_t n, kiln_error *err)
{
    return n ? kiln_export_scratch_write(x, rows, n * sizeof *rows, first * sizeof *rows, err)
             : KILN_OK;
}

/* The rows of a chunk that are whole groups of the file: [*from, *to) of its own, both 0 where
 * there are none. */
static void whole_groups(const kiln_export *e, const kiln_export_chunk *c, uint64_t *from,
                         uint64_t *to)
{
    const uint64_t end = c->first + c->n;
    const uint64_t first = kiln_div_up(c->first, GROUP) * GROUP,
                   last = end == e->n_rows ? end : end / GROUP * GROUP;
    *from = first < last ? first - c->first : 0;
    *to = first < last ? last - c->first : 0;
}

/* ---- round 1: chunks ------------------------------------------------------------------------- */

static uint64_t ram_of_chunk(const kiln_export *e, uint64_t unit)
{
    const uint64_t n = e->chunks[unit].n,
                   sh = kiln_sh_components(kiln_export_degree(e, SH_DEGREE_MAX));
    const uint64_t packed = n * (sizeof(kiln_half_packed) + KILN_PACKED_ROW_BYTES + sh) +
                            kiln_div_up(n, GROUP) * KILN_PACKED_BOUNDS_BYTES;
    const uint64_t regrouped = n * (sizeof(uint32_t) + sizeof(float)) + kiln_row_groups_ram(n);
    return kiln_export_rows_ram(e, unit, KILN_ROWS_SPLAT) +
           (packed > regrouped ? packed : regrouped);
}

static bool is_spatial(const kiln_export *e, const kiln_export_chunk *c)
{
    return kiln_layer_kinds[kiln_layer_kind_find(e->bakes[c->bake].layer->kind)].form ==
           KILN_FORM_CHUNKS;
}

static void reorder_planes(float *planes, uint64_t n_planes, uint64_t stride, const uint32_t *order,
                           uint64_t n, float *spare)
{
    for (uint64_t p = 0; p < n_planes; p++) {
        float *v = planes + p * stride;
        for (uint64_t i = 0; i < n; i++) spare[i] = v[order[i]];
        memcpy(v, spare, n * sizeof *v);
    }
}

/* Puts the rows that are whole groups into an order with narrow bounds. A y has half as many codes
 * as an x or z. */
static kiln_status regroup_rows(const kiln_export *e, kiln_export_rows *rows, kiln_error *err)
{
    static const double weights[3] = {1, 2, 1};
    kiln_status st = KILN_OK;
    uint32_t *order = NULL;
    float *spare = NULL;
    uint64_t from, to;
    whole_groups(e, rows->chunk, &from, &to);
    const uint64_t n = to - from, sh = 3 * layout_of(e).n_coefficients;
    if (n <= GROUP || !is_spatial(e, rows->chunk)) return KILN_OK;
    const float *const means[3] = {rows->means + from, rows->means + rows->n + from,
                                   rows->means + 2 * rows->n + from};
    KILN_GO(KILN_ALLOC_UNSET(&order, n, "rows", err));
    KILN_GO(KILN_ALLOC_UNSET(&spare, n, "rows", err));
    KILN_GO(kiln_row_groups(means, n, weights, order, err));
    reorder_planes(rows->means + from, 3, rows->n, order, n, spare);
    reorder_planes(rows->log_scales + from, 3, rows->n, order, n, spare);
    reorder_planes(rows->quats + from, 4, rows->n, order, n, spare);
    reorder_planes(rows->opacity_logits + from, 1, rows->n, order, n, spare);
    reorder_planes(rows->sh0 + from, 3, rows->n, order, n, spare);
    if (sh) reorder_planes(rows->shN + from, sh, rows->n, order, n, spare);
done:
    free(spare);
    free(order);
    return st;
}

static kiln_status write_sh(kiln_export_worker *x, const kiln_packing_planes *planes,
                            uint64_t first, kiln_error *err)
{
    const layout l = layout_of(x->e);
    const uint64_t width = 3 * l.n_coefficients;
    uint8_t *sh = NULL;
    if (!width) return KILN_OK;
    KILN_TRY(kiln_alloc_unset((void **)&sh, planes->n, width, "SH", err));
    x->counts[SH] += kiln_pack_sh(planes, 0, planes->n, (uint32_t)l.n_coefficients, sh);
    const kiln_status st = kiln_export_write(x, sh, planes->n * width, l.sh + first * width, err);
    free(sh);
    return st;
}

static kiln_status write_packed_rows(kiln_export_worker *x, const kiln_export_chunk *c,
                                     const kiln_packing_planes *planes, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_half_packed *rows = NULL;
    unsigned char *bounds = NULL, *vertices = NULL;
    uint64_t from, to;
    whole_groups(x->e, c, &from, &to);
    KILN_GO(kiln_alloc_unset((void **)&rows, c->n, sizeof *rows, "rows", err));
    KILN_GO(kiln_alloc_unset((void **)&bounds, kiln_div_up(to - from, GROUP),
                             KILN_PACKED_BOUNDS_BYTES, "bounds", err));
    KILN_GO(kiln_alloc_unset((void **)&vertices, to - from, KILN_PACKED_ROW_BYTES, "rows", err));
    x->counts[LOG_SCALES] += kiln_half_pack(planes, 0, c->n, rows);
    KILN_GO(write_groups(x, rows + from, c->first + from, to - from, bounds, vertices, err));
    KILN_GO(keep_for_later(x, rows, c->first, from, err));
    KILN_GO(keep_for_later(x, rows + to, c->first + to, c->n - to, err));
done:
    free(vertices);
    free(bounds);
    free(rows);
    return st;
}

static kiln_status write_compressed_ply_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_export_rows rows;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_export_rows_read(x, unit, KILN_ROWS_SPLAT, &rows, err));
    kiln_float_places(x->e, &rows);
    KILN_GO(regroup_rows(x->e, &rows, err));
    const kiln_packing_planes planes = {.n = rows.n,
                                        .means = rows.means,
                                        .log_scales = rows.log_scales,
                                        .quats = rows.quats,
                                        .opacity_logits = rows.opacity_logits,
                                        .sh0 = rows.sh0,
                                        .shN = rows.shN};
    KILN_GO(write_sh(x, &planes, rows.first, err));
    KILN_GO(write_packed_rows(x, rows.chunk, &planes, err));
done:
    kiln_export_rows_release(&rows);
    return st;
}

/* ---- round 2: groups of several chunks ------------------------------------------------------- */

/* Is this the first chunk with rows of a group that goes on in later chunks? *first: of the group's
 * rows. */
static bool opens_shared_group(const kiln_export *e, const kiln_export_chunk *c, uint64_t *first)
{
    const uint64_t end = c->first + c->n;
    *first = end / GROUP * GROUP;
    return c->n && end % GROUP && end < e->n_rows && c->first <= *first;
}

/* None where all groups lie in one chunk: of layers in blocks, whose sizes are multiples of a
 * group's. */
static uint64_t shared_units(const kiln_export *e)
{
    uint64_t first;
    for (uint32_t c = 0; c < e->n_chunks; c++)
        if (opens_shared_group(e, &e->chunks[c], &first))
            return kiln_div_up(e->n_chunks, CHUNKS_A_UNIT);
    return 0;
}

static uint64_t ram_of_shared(const kiln_export *e, uint64_t unit)
{
    (void)e, (void)unit;
    return 0; /* a group is on the stack */
}

static kiln_status write_shared_group(kiln_export_worker *x, uint64_t first, kiln_error *err)
{
    kiln_half_packed rows[GROUP];
    unsigned char bounds[KILN_PACKED_BOUNDS_BYTES], vertices[GROUP * KILN_PACKED_ROW_BYTES];
    const uint64_t left = x->e->n_rows - first, n = left < GROUP ? left : GROUP;
    KILN_TRY(kiln_export_scratch_read(x, rows, n * sizeof *rows, first * sizeof *rows, err));
    return write_groups(x, rows, first, n, bounds, vertices, err);
}

static kiln_status write_shared(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const kiln_export *e = x->e;
    uint64_t first;
    for (uint64_t c = unit * CHUNKS_A_UNIT; c < e->n_chunks && c < (unit + 1) * CHUNKS_A_UNIT; c++)
        if (opens_shared_group(e, &e->chunks[c], &first))
            KILN_TRY(write_shared_group(x, first, err));
    return KILN_OK;
}

static const kiln_export_round rounds[] = {
    {.what = "packing", .ram = ram_of_chunk, .run = write_compressed_ply_chunk},
    {.what = "packing groups of several chunks",
     .units = shared_units,
     .ram = ram_of_shared,
     .run = write_shared},
};

const kiln_writer_functions kiln_writer_compressed_ply = {.place = KILN_PLACE_FILE,
                                                          .reader = "compressed-ply",
                                                          .scratch = true,
                                                          .counts = counts,
                                                          .plan = plan_compressed_ply,
                                                          .begin = begin_compressed_ply,
                                                          .rounds = rounds,
                                                          .n_rounds = 2};
