/* shuffle -- byte planes: all first bytes of the elements together, then all second bytes, and so
 * on (SCHEMA.md, "Blobs"). Private to this folder.
 *
 *   raw  n elements of `elem` bytes, 2, 4 or 8, little-endian as they lie in memory; needs no
 *        alignment
 *
 * Moves bytes and nothing else, so both sets of functions give the same: one for any processor, one
 * with AVX2. Any thread. */
#ifndef KILN_SCHEMA_SHUFFLE_H
#define KILN_SCHEMA_SHUFFLE_H

#include <stddef.h>

typedef struct {
    /* out[i] = byte b of element i; one plane at a time, so that no second copy of raw is needed */
    void (*gather)(const unsigned char *raw, size_t n, size_t elem, size_t b, unsigned char *out);
    /* planes [elem][n] to elements */
    void (*join)(const unsigned char *planes, size_t n, size_t elem, unsigned char *raw);
} kiln_shuffle;

const kiln_shuffle *kiln_shuffle_baseline(void);
const kiln_shuffle *kiln_shuffle_best(void); /* of what this machine can do */

#endif
