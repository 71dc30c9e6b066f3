/* sog_rows -- see the header. Decoding is sog.h's; positions need an exponential each, which is the
 * product of two out of tables, one for each byte of the code:
 *
 *   n = mins + (maxs - mins) (256 u + l) / 65535,  exp n = exp(mins + (maxs - mins) 256 u / 65535)
 *                                                  exp((maxs - mins) l / 65535)
 *   x = sign(n) (exp abs n - 1): exp n - 1 above 0, 1 - 1 / exp n below
 */
#include "stages/formats/sog/sog_rows.h"

#include "base/file.h"
#include "base/harmonics.h"
#include "base/memory.h"
#include "kernels/math/real64.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TILE_ROWS = 8192, TILE_BYTES = 6 * TILE_ROWS };

struct kiln_sog_rows {
    int fd;
    uint64_t base;
    kiln_sog_codes codes;
    double exp_low[3][256], exp_high[3][256]; /* exp n by the bytes of a code */
    double quats[256];
    unsigned char *palette; /* [3 K][entries] */
    unsigned char *tile;    /* [TILE_BYTES] */
    char *name;
};

uint64_t kiln_sog_plane(const kiln_sog_codes *c, kiln_sog_image image, uint64_t *bytes)
{
    const uint64_t n = c->n, palette = (uint64_t)kiln_sh_components(c->degree) * c->palette;
    uint64_t sizes[KILN_SOG_IMAGES + 1] = {[KILN_SOG_PALETTE] = palette}, at = sizeof *c;
    for (int i = 0; i < KILN_SOG_PALETTE; i++)
        sizes[i] = i < KILN_SOG_LABELS || c->degree ? kiln_sog_pictures[i].n * n : 0;
    for (int i = 0; i < (int)image; i++) at += sizes[i];
    if (bytes) *bytes = sizes[image];
    return at;
}

kiln_status kiln_sog_spool_write(int fd, const char *name, uint64_t at, const void *data, size_t n,
                                 kiln_error *err)
{
    const int why = kiln_file_pwrite(fd, at, data, n, NULL);
    if (why == 0) return KILN_OK;
    return kiln_fail(err, KILN_E_IO,
                     "cannot write the pixels of '%s' to scratch: %s; make room, or name another "
                     "folder with --scratch-dir",
                     name, strerror(why));
}

const kiln_sog_codes *kiln_sog_rows_codes(const kiln_sog_rows *r) { return &r->codes; }

uint64_t kiln_sog_rows_ram(void)
{
    return sizeof(kiln_sog_rows) + TILE_BYTES +
           (uint64_t)kiln_sh_components(KILN_SOG_DEGREE_MAX) * KILN_SOG_PALETTE_MAX;
}

void kiln_sog_rows_free(kiln_sog_rows *r)
{
    if (!r) return;
    free(r->palette);
    free(r->tile);
    free(r->name);
    free(r);
}

static void fill_tables(kiln_sog_rows *r)
{
    for (int a = 0; a < 3; a++) {
        const double min = r->codes.mins[a], span = r->codes.maxs[a] - min;
        for (int b = 0; b < 256; b++) {
            r->exp_low[a][b] = kiln_exp_f64(span * b / KILN_SOG_POSITION_MOST);
            r->exp_high[a][b] = kiln_exp_f64(min + span * (256 * b) / KILN_SOG_POSITION_MOST);
        }
    }
    for (int b = 0; b < 256; b++) r->quats[b] = (b / 255.0 * 2 - 1) / sqrt(2.0);
}

kiln_status kiln_sog_rows_open(int fd, const char *name, uint64_t base, kiln_sog_rows **out,
                               kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_sog_rows *r = NULL;
    uint64_t bytes = 0;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&r, 1, "SOG rows", err));
    r->fd = fd;
    r->base = base;
    KILN_GO(KILN_ALLOC(&r->name, strlen(name) + 1, "path", err));
    memcpy(r->name, name, strlen(name));
    KILN_GO(kiln_file_read_at(fd, name, base, &r->codes, sizeof r->codes, err));
    const uint64_t palette = kiln_sog_plane(&r->codes, KILN_SOG_PALETTE, &bytes);
    KILN_GO(KILN_ALLOC_UNSET(&r->tile, TILE_BYTES, "SOG codes", err));
    KILN_GO(KILN_ALLOC_UNSET(&r->palette, bytes, "a palette", err));
    KILN_GO(kiln_file_read_at(fd, name, base + palette, r->palette, bytes, err));
    fill_tables(r);
    *out = r;
    return KILN_OK;
done:
    kiln_sog_rows_free(r);
    return st;
}

/* Rows [first, first + n) of a plane into dst. */
static kiln_status read_image_rows(const kiln_sog_rows *r, kiln_sog_image image, uint32_t row_bytes,
                                   uint64_t first, uint64_t n, unsigned char *dst, kiln_error *err)
{
    const uint64_t at = r->base + kiln_sog_plane(&r->codes, image, NULL);
    return kiln_file_read_at(r->fd, r->name, at + first * row_bytes, dst, n * row_bytes, err);
}

static kiln_status read_means(const kiln_sog_rows *r, uint64_t first, uint64_t n, double *out,
                              uint64_t stride, kiln_error *err)
{
    const unsigned char *low = r->tile, *high = r->tile + 3 * n;
    KILN_TRY(read_image_rows(r, KILN_SOG_MEANS_L, 3, first, n, r->tile, err));
    KILN_TRY(read_image_rows(r, KILN_SOG_MEANS_U, 3, first, n, r->tile + 3 * n, err));
    for (uint32_t a = 0; a < 3; a++)
        for (uint64_t i = 0; i < n; i++) {
            const double e = r->exp_high[a][high[3 * i + a]] * r->exp_low[a][low[3 * i + a]];
            out[a * stride + i] = e >= 1 ? e - 1 : 1 - 1 / e;
        }
    return KILN_OK;
}

/* Three channels out of row_bytes. */
static void look_up(const float tables[3][256], const unsigned char *codes, uint32_t row_bytes,
                    uint64_t n, float *out, uint64_t stride)
{
    for (uint32_t a = 0; a < 3; a++)
        for (uint64_t i = 0; i < n; i++) out[a * stride + i] = tables[a][codes[i * row_bytes + a]];
}

/* The three that are not the largest stand in their order w x y z; no valid tag: no rotation. */
static void decode_quat(const kiln_sog_rows *r, const unsigned char code[4], float *out,
                        uint64_t stride)
{
    const uint32_t largest = code[3] - (uint32_t)KILN_SOG_QUAT_TAG;
    const double q[3] = {r->quats[code[0]], r->quats[code[1]], r->quats[code[2]]};
    const double rest = 1 - (q[0] * q[0] + q[1] * q[1] + q[2] * q[2]);
    for (uint32_t c = 0, k = 0; c < 4; c++) {
        if (code[3] < KILN_SOG_QUAT_TAG)
            out[c * stride] = c == 0;
        else if (c == largest)
            out[c * stride] = (float)sqrt(rest > 0 ? rest : 0);
        else
            out[c * stride] = (float)q[k++];
    }
}

static kiln_status read_colours(const kiln_sog_rows *r, uint64_t first, uint64_t n, kiln_rows *out,
                                uint64_t at, kiln_error *err)
{
    KILN_TRY(read_image_rows(r, KILN_SOG_SH0, 4, first, n, r->tile, err));
    look_up(r->codes.sh0, r->tile, 4, n, out->sh0 + at, out->n);
    for (uint64_t i = 0; i < n; i++)
        out->opacity_logits[at + i] = r->codes.opacity_logits[r->tile[4 * i + 3]];
    return KILN_OK;
}

/* A label outside of the palette means zeros. */
static kiln_status read_shN(const kiln_sog_rows *r, uint64_t first, uint64_t n, float *out,
                            uint64_t stride, kiln_error *err)
{
    const uint32_t m = kiln_sh_components(r->codes.degree), palette = r->codes.palette;
    uint16_t *labels = (uint16_t *)(void *)r->tile;
    unsigned char *unknown = r->tile + 2 * n;
    KILN_TRY(read_image_rows(r, KILN_SOG_LABELS, 2, first, n, r->tile, err));
    bool any = false;
    for (uint64_t i = 0; i < n; i++) {
        unknown[i] = labels[i] >= palette;
        any |= unknown[i];
        if (unknown[i]) labels[i] = 0;
    }
    for (uint32_t k = 0; k < m; k++) {
        const unsigned char *codes = r->palette + (uint64_t)k * palette;
        for (uint64_t i = 0; i < n; i++) out[k * stride + i] = r->codes.shN[codes[labels[i]]];
        for (uint64_t i = 0; any && i < n; i++)
            if (unknown[i]) out[k * stride + i] = 0;
    }
    return KILN_OK;
}

static kiln_status read_tile(const kiln_sog_rows *r, uint64_t first, uint64_t n, uint32_t degree,
                             kiln_rows *out, uint64_t at, kiln_error *err)
{
    KILN_TRY(read_means(r, first, n, out->means + at, out->n, err));
    KILN_TRY(read_image_rows(r, KILN_SOG_SCALES, 3, first, n, r->tile, err));
    look_up(r->codes.log_scales, r->tile, 3, n, out->log_scales + at, out->n);
    KILN_TRY(read_image_rows(r, KILN_SOG_QUATS, 4, first, n, r->tile, err));
    for (uint64_t i = 0; i < n; i++) decode_quat(r, r->tile + 4 * i, out->quats + at + i, out->n);
    KILN_TRY(read_colours(r, first, n, out, at, err));
    if (r->codes.degree) KILN_TRY(read_shN(r, first, n, out->shN + at, out->n, err));
    for (uint32_t k = kiln_sh_components(r->codes.degree); k < kiln_sh_components(degree); k++)
        memset(out->shN + k * out->n + at, 0, n * sizeof *out->shN);
    return KILN_OK;
}

kiln_status kiln_sog_rows_read(kiln_sog_rows *r, uint64_t first, uint64_t n, uint32_t degree,
                               kiln_rows *out, uint64_t at, kiln_error *err)
{
    for (uint64_t i = 0; i < n; i += TILE_ROWS)
        KILN_TRY(read_tile(r, first + i, n - i < TILE_ROWS ? n - i : TILE_ROWS, degree, out, at + i,
                           err));
    return KILN_OK;
}
