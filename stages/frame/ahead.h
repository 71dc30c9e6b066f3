/* ahead -- planes of the next chunks in view, decoded by all of a worker's threads while the first of them is asked for: one thread
 * decodes a gigabyte a second, and a worker's first frame needs all planes of the scene. */
#ifndef KILN_STAGES_AHEAD_H
#define KILN_STAGES_AHEAD_H

#include "stages/frame/frame.h"

enum { KILN_AHEAD_THREADS = 16 };

typedef struct {
    unsigned n; /* readers that are open; 0: planes are decoded when they are asked for */
    kiln_manifest *readers[KILN_AHEAD_THREADS];
} kiln_ahead;

/* As many readers as the worker has threads, where `spare` bytes leave room for them and for what they decode. Returns how many
 * bytes of it the readers take. */
uint64_t kiln_ahead_set(kiln_ahead *a, kiln_worker *w, const kiln_layer *layer, uint64_t spare);
void kiln_ahead_release(kiln_ahead *a);
/* Where a plane of chunk `first` is missing in the cache, it and those of the chunks behind it that the request may see; NULL:
 * all. */
kiln_status kiln_ahead_read(const kiln_ahead *a, kiln_plane_cache *cache, const kiln_layer *layer, const kiln_view_request *request,
                            uint32_t first, bool colour, kiln_error *err) KILN_MUST_CHECK;

uint64_t kiln_ahead_bytes(const kiln_chunk *c); /* of all of them, decoded */

#endif
