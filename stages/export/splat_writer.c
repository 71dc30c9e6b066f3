/* splat_writer -- .splat of antimatter15's viewer: no header, a row of 32 bytes a Gaussian (splat_rows.h), chunk after chunk. */
#include "stages/export/float_places.h"
#include "stages/export/rows.h"
#include "stages/export/splat_rows.h"
#include "stages/export/writer.h"

#include <stdlib.h>

enum { PLANES = KILN_ROWS_SPLAT & ~KILN_ROWS_SHN };

enum { COLOURS, SCALES }; /* of the counts */
static const kiln_export_count counts[] = {{"colour was clamped to 0 .. 1", "colours were clamped to 0 .. 1"},
                                           {"scale was too small or too large for a float and was clamped",
                                            "scales were too small or too large for a float and were clamped"},
                                           {NULL, NULL}};

static kiln_status plan(kiln_export_parent *p, kiln_error *err)
{
    if (p->e->sh_degree) KILN_TRY(kiln_export_note(p, err, "a .splat holds no spherical harmonics above degree 0"));
    return kiln_float_places_note(p, err);
}

static kiln_status begin(kiln_export_parent *p, kiln_error *err)
{
    return kiln_export_resize(p, p->e->n_rows * KILN_SPLAT_ROW_BYTES, err);
}

static uint64_t ram(const kiln_export *e, uint64_t unit)
{
    return kiln_export_rows_ram(e, unit, PLANES) + e->chunks[unit].n * KILN_SPLAT_ROW_BYTES;
}

static kiln_status write_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_export_rows rows;
    unsigned char *out = NULL;
    kiln_splat_moved moved = {0};
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_export_rows_read(x, unit, PLANES, &rows, err));
    kiln_float_places(x->e, &rows);
    const kiln_splat_planes planes = {.n = rows.n,
                                      .means = rows.means,
                                      .log_scales = rows.log_scales,
                                      .quats = rows.quats,
                                      .opacity_logits = rows.opacity_logits,
                                      .sh0 = rows.sh0};
    KILN_GO(kiln_alloc_unset((void **)&out, rows.n, KILN_SPLAT_ROW_BYTES, "rows", err));
    kiln_splat_pack(&planes, 0, rows.n, out, &moved);
    x->counts[COLOURS] += moved.colours;
    x->counts[SCALES] += moved.scales;
    KILN_GO(kiln_export_write(x, out, rows.n * KILN_SPLAT_ROW_BYTES, rows.first * KILN_SPLAT_ROW_BYTES, err));
done:
    free(out);
    kiln_export_rows_release(&rows);
    return st;
}

static const kiln_export_round rounds[] = {{.what = "exporting", .ram = ram, .run = write_chunk}};

const kiln_writer_functions kiln_writer_splat = {
    .place = KILN_PLACE_FILE, .counts = counts, .plan = plan, .begin = begin, .rounds = rounds, .n_rounds = 1, .reader = "splat"};
