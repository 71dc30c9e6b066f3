/* splat_writer -- .splat: 32 bytes a Gaussian, without a header (formats: antimatter15/splat). Colour without spherical harmonics
 * above degree 0; linear scales; alpha and the quaternion in bytes. Values are rounded to the nearest code. */
#include "stages/export/rows.h"
#include "stages/export/writer.h"

#include "kernels/math/real64.h"
#include "stages/import/ply/ply_columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROW = 32, PLANES = KILN_ROWS_SPLAT & ~KILN_ROWS_SHN };

static const char *const counts[] = {"colours were clamped to 0 .. 1", NULL};

static kiln_status plan(kiln_export_parent *p, kiln_error *err)
{
    return p->e->sh_degree ? kiln_export_note(p, err, "a .splat holds no spherical harmonics above degree 0") : KILN_OK;
}

static kiln_status begin(kiln_export_parent *p, kiln_error *err) { return kiln_export_resize(p, p->e->n_rows * ROW, err); }

static uint64_t ram(const kiln_export *e, uint64_t unit) { return kiln_export_rows_ram(e, unit, PLANES) + e->chunks[unit].n * ROW; }

static uint8_t unit_code(double v) { return (uint8_t)(v <= 0 ? 0 : v >= 1 ? 255 : floor(v * 255 + 0.5)); }
static uint8_t signed_code(double v)
{
    const double code = floor(v * 128 + 128 + 0.5);
    return (uint8_t)(code <= 0 ? 0 : code >= 255 ? 255 : code);
}

/* Codes that came from a .splat are written back: import keeps them as (code - 128) / 128, whatever length that has. */
static bool are_codes(const double q[4])
{
    for (int c = 0; c < 4; c++)
        if (q[c] < -1 || q[c] > 127.0 / 128 || q[c] * 128 != floor(q[c] * 128)) return false;
    return true;
}

static void put_quat(const double q[4], unsigned char out[4])
{
    const double length = are_codes(q) ? 1 : sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for (int c = 0; c < 4; c++) out[c] = signed_code(q[c] / length);
}

static void put_row(kiln_export_worker *x, const kiln_export_rows *rows, uint64_t i, unsigned char *out)
{
    const uint64_t n = rows->n;
    float real[6];
    double q[4];
    for (uint64_t c = 0; c < 3; c++) real[c] = (float)((double)rows->means[c * n + i] + x->e->origin[c]);
    for (uint64_t c = 0; c < 3; c++) real[3 + c] = (float)kiln_exp_f64((double)rows->log_scales[c * n + i]);
    memcpy(out, real, sizeof real);
    for (uint64_t c = 0; c < 3; c++) {
        const double colour = 0.5 + KILN_SH_C0 * (double)rows->sh0[c * n + i];
        x->counts[0] += colour < 0 || colour > 1;
        out[24 + c] = unit_code(colour);
    }
    out[27] = unit_code(1 / (1 + kiln_exp_f64(-(double)rows->opacity_logits[i])));
    for (uint64_t c = 0; c < 4; c++) q[c] = (double)rows->quats[c * n + i];
    put_quat(q, out + 28);
}

static kiln_status write_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_export_rows rows;
    unsigned char *out = NULL;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_export_rows_read(x, unit, PLANES, &rows, err));
    KILN_GO(kiln_alloc_unset((void **)&out, rows.n, ROW, "rows", err));
    for (uint64_t i = 0; i < rows.n; i++) put_row(x, &rows, i, out + i * ROW);
    KILN_GO(kiln_export_write(x, out, rows.n * ROW, rows.first * ROW, err));
done:
    free(out);
    kiln_export_rows_release(&rows);
    return st;
}

static const kiln_export_round rounds[] = {{.what = "exporting", .ram = ram, .run = write_chunk}};

const kiln_writer_functions kiln_writer_splat = {
    .place = KILN_PLACE_FILE, .counts = counts, .plan = plan, .begin = begin, .rounds = rounds, .n_rounds = 1, .reader = "splat"};
