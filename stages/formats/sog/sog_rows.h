/* sog_rows -- Gaussians of a SOG scene as the spool holds them, and from there into rows.
 *
 * A part of the spool is what one meta.json describes: kiln_sog_codes as it lies in memory, then a
 * plane for each image with the channels that mean something, row after row: means_l 3 bytes,
 * means_u 3, scales 3, quats 4, sh0 4; with coefficients above degree 0 labels 2 and the palette,
 * which is [3 K][entries], so that one coefficient of all entries lies in the L2 cache. The spool
 * is made and read by one program on one machine, within one import.
 */
#ifndef KILN_STAGES_FORMATS_SOG_SOG_ROWS_H
#define KILN_STAGES_FORMATS_SOG_SOG_ROWS_H

#include "stages/formats/reader.h"
#include "stages/formats/sog/sog.h"

#include <stdbool.h>
#include <stdint.h>

/* What codes mean. */
typedef struct {
    uint64_t n;               /* Gaussians */
    uint32_t degree, palette; /* 0..3; entries, 0 none */
    double mins[3], maxs[3];  /* of sign(x) ln(abs x + 1) */
    float log_scales[3][256], sh0[3][256], opacity_logits[256], shN[256];
    bool antialiased, is_2dgs;
    bool codebook_began_null; /* as old writers had it: the value is extrapolated */
    char writer[64];
    uint64_t unknown_tags,
        /* quaternions without a valid tag, labels outside of the palette: counted by the spool */
        unknown_labels;
} kiln_sog_codes;

/* Where the plane of an image begins, counted from the part's, and its bytes; KILN_SOG_IMAGES: the
 * end of the part. */
uint64_t kiln_sog_plane(const kiln_sog_codes *c, kiln_sog_image image, uint64_t *bytes);

/* Writes data[n] to the spool. KILN_E_IO: the disk is full. */
kiln_status kiln_sog_spool_write(int fd, const char *name, uint64_t at, const void *data, size_t n,
                                 kiln_error *err) KILN_MUST_CHECK;

typedef struct kiln_sog_rows kiln_sog_rows;
/* The part of the spool fd at `base`; name: what sentences call it. fd stays the caller's.
 * kiln_sog_rows_free(*out). */
kiln_status kiln_sog_rows_open(int fd, const char *name, uint64_t base, kiln_sog_rows **out,
                               kiln_error *err) KILN_MUST_CHECK;
void kiln_sog_rows_free(kiln_sog_rows *r);
const kiln_sog_codes *kiln_sog_rows_codes(const kiln_sog_rows *r);
/* Rows [first, first + n) of the part into rows [at, at + n) of out, which are of degree `degree`,
 * not below the part's. */
kiln_status kiln_sog_rows_read(kiln_sog_rows *r, uint64_t first, uint64_t n, uint32_t degree,
                               kiln_rows *out, uint64_t at, kiln_error *err) KILN_MUST_CHECK;
/* Host memory of one that is open. */
uint64_t kiln_sog_rows_ram(void);

#endif
