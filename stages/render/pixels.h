/* pixels -- the digest of a picture (SCHEMA.md, Digests). It is the hash of the hashes of pieces,
 * so that several threads can make it: one thread reads ten gigabytes a second, which takes a third
 * of the time in which a GPU draws a picture of eight million pixels. */
#ifndef KILN_STAGES_RENDER_PIXELS_H
#define KILN_STAGES_RENDER_PIXELS_H

#include "base/status.h"
#include "kernels/pixel_hashes/pixel_hashes.h"
#include "schema/hash.h"

/* Hashes rgba [pixels][4]. The result is the same for any number of threads. KILN_E_NOMEM. */
kiln_status kiln_pixels_hash(const float *rgba, uint64_t pixels, unsigned threads, kiln_hash *out,
                             kiln_error *err) KILN_MUST_CHECK;
/* Returns the same digest from the hashes of the pieces, [pieces][KILN_PIXEL_HASH_BYTES], as a GPU
 * makes them (kernels/pixel_hashes). */
kiln_hash kiln_pixels_hash_of_pieces(const unsigned char *hashes, uint64_t pieces);

#endif
