/* spz_rows -- SPZ without its container: the header, where each attribute lies, extension records,
 * and rows out of the planes.
 *
 * spz.h has the layout. `base` below is the offset of the first plane in a file that holds them one
 * after the other: 16 in what a gzip stream of versions 1 to 3 unpacks to, 0 in what
 * kiln_spz_streams_spool writes for version 4. Rows can be read in any order.
 *
 * For a reader of a format that carries such a gzip stream in a range of its own file:
 * kiln_spz_range_header in `open`, then kiln_spz_range_unpack in `spool`, then
 * kiln_spz_decoder_read with base = where it was unpacked to + KILN_SPZ_HEADER.
 *
 * Errors: KILN_E_INPUT with `name`, the user's file. Nothing here is shared between threads but
 * constant tables.
 */
#ifndef KILN_STAGES_FORMATS_SPZ_SPZ_ROWS_H
#define KILN_STAGES_FORMATS_SPZ_SPZ_ROWS_H

#include "base/status.h"
#include "stages/formats/reader.h"
#include "stages/formats/spz/spz.h"

#include <stdbool.h>
#include <stdint.h>

extern const char *const kiln_spz_plane_names[KILN_SPZ_PLANES]; /* "position", for sentences */

typedef struct {
    uint32_t version; /* 1..4 */
    uint32_t n;       /* > 0 */
    uint32_t sh_degree, fraction;
    bool antialiased;
    bool extended;                    /* extension records follow */
    uint8_t n_streams;                /* byte 15: 0, but in a file of version 4 */
    uint32_t stride[KILN_SPZ_PLANES]; /* bytes a Gaussian; SH of degree 0: 0 */
    /* where each plane begins behind `base`, and where the last one ends */
    uint64_t at[KILN_SPZ_PLANES + 1];
} kiln_spz_header;

/* The quaternion w, x, y, z of a smallest-three code (version 3 on): unit, and the component that
 * is left out not below 0. */
void kiln_spz_smallest_three(uint32_t word, float wxyz[4]);

/* Checks magic, version, count, degree, fractional bits and flags. The sizes are not checked: no
 * file is known here. */
kiln_status kiln_spz_header_parse(const unsigned char bytes[KILN_SPZ_HEADER], const char *name,
                                  kiln_spz_header *out, kiln_error *err) KILN_MUST_CHECK;

/* Walks the extension records in bytes [from, to) of fd. *system: the coordinate system that one of
 * them names (spz_axes.h), left as it is where none does. */
kiln_status kiln_spz_extensions_read(int fd, const char *name, uint64_t from, uint64_t to,
                                     uint32_t *system, kiln_error *err) KILN_MUST_CHECK;

/* A gzip stream of versions 1 to 4 in bytes [from, from + bytes) of a file. name: for messages. */
typedef struct {
    int fd;
    const char *name;
    uint64_t from, bytes;
} kiln_spz_range;

/* Its header. Unpacks no more than it needs. */
kiln_status kiln_spz_range_header(const kiln_spz_range *in, kiln_spz_header *out,
                                  kiln_error *err) KILN_MUST_CHECK;
/* All of it into `to` from byte `at` on: header and planes, KILN_SPZ_HEADER +
 * h->at[KILN_SPZ_PLANES] bytes. What follows them in the stream is checked with it and left out;
 * more than a MiB of it is refused. Takes KILN_UNPACK_RAM of memory. */
kiln_status kiln_spz_range_unpack(const kiln_spz_range *in, const kiln_spz_header *h, int to,
                                  uint64_t at, kiln_error *err) KILN_MUST_CHECK;

/* ---- rows ------------------------------------------------------------------------------------ */

typedef struct kiln_spz_decoder kiln_spz_decoder; /* tables and a piece of the planes */

/* Host memory of a decoder. */
uint64_t kiln_spz_decoder_ram(uint32_t sh_degree);
kiln_status kiln_spz_decoder_new(const kiln_spz_header *h, kiln_spz_decoder **out,
                                 kiln_error *err) KILN_MUST_CHECK;
void kiln_spz_decoder_free(kiln_spz_decoder *d); /* may be NULL */
/* Where the unpacked planes lie: behind a header, which ends at byte `base`. */
typedef struct {
    int fd;
    const char *name;
    uint64_t base;
} kiln_spz_unpacked;

/* Rows [first, first + n) into rows (rows->n set to n): numbers as they stand, axes of the file.
 * Alphas of 255 and 0 become +-HUGE_VALF, quaternions are unit. */
kiln_status kiln_spz_decoder_read(kiln_spz_decoder *d, const kiln_spz_unpacked *from,
                                  uint64_t first, uint64_t n, kiln_rows *rows,
                                  kiln_error *err) KILN_MUST_CHECK;

#endif
