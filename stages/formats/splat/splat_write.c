/* splat_write -- .splat of antimatter15's viewer (splat.h).
 *
 * Viewers show what has come of a file while the rest is loading, so its writers have the most
 * important Gaussians first: by volume times opacity, falling (antimatter15/splat, convert.py),
 * those of one importance in the order of the layer. Importance is that of the codes: alphas have
 * steps of 1/255. */
#include "stages/formats/float_places.h"
#include "stages/formats/row_sort.h"
#include "stages/formats/rows.h"
#include "stages/formats/splat/splat_rows.h"
#include "stages/formats/writer.h"

#include <stdlib.h>
#include <string.h>

enum { PLANES = KILN_ROWS_SPLAT & ~KILN_ROWS_SHN };

enum { COLOURS, SCALES }; /* of the counts */
static const kiln_export_count counts[] = {
    {"colour was clamped to 0 .. 1", "colours were clamped to 0 .. 1"},
    {"scale was too small or too large for a float and was clamped",
     "scales were too small or too large for a float and were clamped"},
    {NULL, NULL}};

static kiln_status plan_splat(kiln_export_parent *p, kiln_error *err)
{
    if (p->e->sh_degree)
        KILN_TRY(kiln_export_note(p, err, "a .splat holds no spherical harmonics above degree 0"));
    KILN_TRY(kiln_float_places_note(p, err));
    return kiln_row_sort_plan(p->plan, KILN_SPLAT_ROW_BYTES, err);
}

static kiln_status begin_splat(kiln_export_parent *p, kiln_error *err)
{
    return kiln_export_resize(p, p->e->n_rows * KILN_SPLAT_ROW_BYTES, err);
}

static uint64_t splat_writer_ram(const kiln_export *e, uint64_t unit)
{
    return kiln_export_rows_ram(e, unit, PLANES) +
           e->chunks[unit].n * (KILN_SPLAT_ROW_BYTES + sizeof(uint64_t)) +
           kiln_row_sort_put_ram(e, unit, KILN_SPLAT_ROW_BYTES);
}

/* Least for the largest. Of what is written, so that a file that is read and written again keeps
 * its order. */
static uint64_t importance_key(const unsigned char *row)
{
    /* not negative: its bits are in the order of numbers */
    const double important = kiln_splat_importance(row);
    uint64_t bits;
    memcpy(&bits, &important, sizeof bits);
    return ~bits;
}

static kiln_status write_splat_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_export_rows rows;
    unsigned char *out = NULL;
    uint64_t *keys = NULL;
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
    KILN_GO(KILN_ALLOC_UNSET(&keys, rows.n, "the order of rows", err));
    for (uint64_t i = 0; i < rows.n; i++) keys[i] = importance_key(out + i * KILN_SPLAT_ROW_BYTES);
    KILN_GO(kiln_row_sort_put(x, unit, keys, out, rows.n, err));
done:
    free(keys);
    free(out);
    kiln_export_rows_release(&rows);
    return st;
}

static const kiln_export_round rounds[] = {
    {.what = "exporting",
     .ram = splat_writer_ram,
     .run = write_splat_chunk,
     .gather = kiln_row_sort_gather,
     .end = kiln_row_sort_end},
    KILN_ROW_SORT_ROUNDS,
};

const kiln_writer_functions kiln_writer_splat = {.place = KILN_PLACE_FILE,
                                                 .scratch = true,
                                                 .counts = counts,
                                                 .plan = plan_splat,
                                                 .begin = begin_splat,
                                                 .rounds = rounds,
                                                 .n_rounds = 3,
                                                 .reader = "splat"};
