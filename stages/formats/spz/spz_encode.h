/* spz_encode -- Gaussians as the codes of SPZ (spz.h): each attribute to its plane, rounded as
 * nianticlabs/spz rounds, but for harmonics, which become the nearest multiple of 2^(8 - bits).
 *
 * Rounding is to the nearest, halves away from 0, in float32 as there. What lies outside the range
 * of codes takes the nearest one and is counted; positions are not: the fraction is chosen so that
 * they fit.
 *
 * Codes that were read from an SPZ come out as the same codes: that of a rotation, too, whose two
 * largest components are so near to each other that either may be left out (spz_encode.c).
 *
 * Nothing here allocates, fails or knows a file. Any thread.
 */
#ifndef KILN_STAGES_FORMATS_SPZ_SPZ_ENCODE_H
#define KILN_STAGES_FORMATS_SPZ_SPZ_ENCODE_H

#include "stages/formats/spz/spz.h"

#include <stdbool.h>
#include <stdint.h>

/* n rows, planar: component c of row i is at [c * stride + i]. All numbers are finite. */
typedef struct {
    uint64_t n, stride;
    const float *means;          /* [3][stride] */
    const float *log_scales;     /* [3][stride] */
    const float *quats;          /* [4][stride] w x y z, of any length but 0 */
    const float *opacity_logits; /* [stride] */
    const float *sh0;            /* [3][stride] */
    const float *shN;            /* [3K][stride]; not read at degree 0 */
} kiln_spz_values;

typedef struct {
    uint32_t sh_degree, fraction; /* fractional bits of positions, 0 to KILN_SPZ_FRACTION_MAX */
    uint32_t first_bits;          /* of coefficients of degree 1 ... */
    uint32_t other_bits;          /* ... and of those above; 1 to 8 */
    bool first_three;             /* rotations of version 2 */
    /* turn from PLY's frame, RDF, to RUB; else the numbers as they stand */
    bool to_rub;
    /* the rows were read from SPZ, whose codes tell -0 from 0; else either is 0, as turning makes
     * one of the other */
    bool signed_zeros;
} kiln_spz_coding;

/* what nianticlabs/spz writes */
enum { KILN_SPZ_FRACTION = 12, KILN_SPZ_FIRST_BITS = 5, KILN_SPZ_OTHER_BITS = 4 };

/* Values that no code is near: rows are told once for each kind. */
typedef struct {
    uint64_t scales; /* rows with a log scale outside -10 .. 5.9375, by more than half a step */
    uint64_t colours;
    uint64_t sh; /* rows with a coefficient outside -1 .. 1 */
} kiln_spz_clamped;

/* Writes the codes of all rows: planes[p] has room for n times the plane's bytes a row. Adds to
 * *clamped. */
void kiln_spz_encode(const kiln_spz_coding *coding, const kiln_spz_values *v,
                     unsigned char *const planes[KILN_SPZ_PLANES], kiln_spz_clamped *clamped);

/* ---- fractional bits of positions ------------------------------------------------------------ */

/* 1 << bits is an int in every reader, and a step of 2^-24 is finer than float32 at 1. */
enum { KILN_SPZ_FRACTION_MAX = 24 };

/* Chooses the fractional bits of a scene: 12 as everybody does, so that files of others keep their
 * codes; more where the bulk of the scene, a cube of this half edge, would have fewer than 8192
 * steps along an edge; fewer where the farthest coordinate, the greatest |x|, |y| or |z|, would not
 * fit 24 bits. Returns false if the bulk then has fewer than 4096 steps: one far row would cost all
 * others their place. *out is set in either case. */
bool kiln_spz_choose_fraction(double farthest, double half_edge, uint32_t *out);
/* Does a coordinate of this size fit with so many fractional bits? */
bool kiln_spz_fits(double farthest, uint32_t fraction);
/* The fewest fractional bits that lose nothing of any of these coordinates; up to 149. */
uint32_t kiln_spz_needed_fraction(const float *v, uint64_t n);

#endif
