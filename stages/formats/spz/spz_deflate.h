/* spz_deflate -- the gzip stream of SPZ version 3, put together of planes that are deflated piece
 * by piece.
 *
 *   gzip header 10 | stored block: SPZ header | pieces of plane 0 | of plane 1 ... | empty block,
 *       last | crc, size
 *
 * A piece is deflated by itself and ends on a byte (Z_SYNC_FLUSH), so that pieces one behind the
 * other are one deflate stream. The same bytes whoever packs them.
 *
 * Codes are noise to a search for matches. zlib's Z_RLE, Huffman codes and runs, is smaller than
 * its level 6, which nianticlabs/spz uses, and takes a tenth of the time: harmonics of 1M Gaussians
 * of degree 3 8.2 MB in 0.5 s against 9.4 MB in 4.3 s. Not always: of a trained chair most
 * harmonics are near 0, and matches of more than a few bytes (Z_FILTERED) make 162 kB of what are
 * 183 by runs. So the beginning of each piece of harmonics is packed in both ways, and the better
 * one has to be better by 3 % to be taken: 0.1 s. Positions in the layer's order have high bytes in
 * common with the row before, which level 1 finds: 6.4 MB against 6.7 by runs alone, in 0.3 s.
 *
 * Any thread.
 */
#ifndef KILN_STAGES_FORMATS_SPZ_SPZ_DEFLATE_H
#define KILN_STAGES_FORMATS_SPZ_SPZ_DEFLATE_H

#include "base/memory.h"
#include "stages/formats/spz/spz_encode.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    KILN_SPZ_PIECE = 1 << 18,       /* bytes of a plane that are deflated together, at most */
    KILN_SPZ_DEFLATE_RAM = 1 << 19, /* what zlib takes meanwhile */
    KILN_SPZ_FRONT = 10 + 5 + KILN_SPZ_HEADER,
    KILN_SPZ_BACK = 10,
};

/* Pieces of a plane of so many bytes; and room for what deflate makes of a piece at most. */
uint64_t kiln_spz_pieces(size_t plane);
size_t kiln_spz_deflate_bound(size_t plain);
/* Deflates a piece of a plane (KILN_SPZ_...). false: no memory. */
bool kiln_spz_deflate(int plane, const unsigned char *plain, size_t bytes, unsigned char *out,
                      size_t capacity, size_t *packed);
/* What stands in front of the first piece, and behind the last one: the CRC-32 of header and
 * planes, and their bytes. */
void kiln_spz_front(const unsigned char header[KILN_SPZ_HEADER], unsigned char out[KILN_SPZ_FRONT]);
void kiln_spz_back(uint32_t crc, uint64_t bytes, unsigned char out[KILN_SPZ_BACK]);

/* Appends a whole SPZ of version 3: its header and six planes, planes[p] of bytes[p]. One thread.
 * KILN_E_NOMEM. */
kiln_status kiln_spz_pack(const unsigned char header[KILN_SPZ_HEADER],
                          unsigned char *const planes[KILN_SPZ_PLANES],
                          const size_t bytes[KILN_SPZ_PLANES], kiln_buffer *out,
                          kiln_error *err) KILN_MUST_CHECK;

#endif
