/* pixels -- the digest of a picture (SCHEMA.md, Digests): the hash of its pieces' hashes, so that many threads can make it. One
 * alone reads some ten gigabytes a second, a third of the time in which a GPU draws a picture of eight million pixels. */
#ifndef KILN_STAGES_RENDER_PIXELS_H
#define KILN_STAGES_RENDER_PIXELS_H

#include "base/status.h"
#include "schema/hash.h"

enum { KILN_PIXELS_PIECE = 1 << 16 }; /* 1 MiB; part of the definition */

/* rgba [pixels][4]. The same for any number of threads; KILN_E_NOMEM. */
kiln_status kiln_pixels_hash(const float *rgba, uint64_t pixels, unsigned threads, kiln_hash *out, kiln_error *err) KILN_MUST_CHECK;

#endif
