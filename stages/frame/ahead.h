/* ahead -- decodes the planes of the next visible chunks on all threads of a worker, when the first
 * of them is needed. A worker's first frame needs all planes of the scene, and one thread decodes
 * only a gigabyte a second. */
#ifndef KILN_STAGES_AHEAD_H
#define KILN_STAGES_AHEAD_H

#include "schema/layers.h"
#include "stages/engine/engine.h"
#include "stages/engine/memory/plane_cache.h"

enum { KILN_AHEAD_THREADS = 16 };

typedef struct {
    /* number of open readers, one a thread; below 2: planes are decoded one by one when they are
     * needed */
    unsigned n;
    kiln_manifest *readers[KILN_AHEAD_THREADS];
} kiln_ahead;

/* Opens as many readers as `spare` bytes have room for, at most one for each thread of the worker:
 * each takes a connection, memory to decode in, and a decoded chunk. Planes that fit into `spare`
 * without readers keep their room. Returns how many of the spare bytes readers and decoding take;
 * the rest is for decoded planes. colour false: planes of colour are not read. A reader that cannot
 * be opened is left out. */
uint64_t kiln_ahead_set(kiln_ahead *a, kiln_worker *w, const kiln_layer *layer, bool colour,
                        uint64_t spare);
/* The number of readers of `threads` threads, and the bytes of one without its chunk; for
 * kiln_ahead_set and tests. */
unsigned kiln_ahead_count(const kiln_layer *layer, bool colour, unsigned threads, uint64_t spare);
uint64_t kiln_ahead_reader_bytes(const kiln_layer *layer, bool colour);
void kiln_ahead_release(kiln_ahead *a);
/* Says whether a view draws a chunk. */
typedef bool kiln_ahead_fn(const void *context, uint32_t chunk);
/* What is read ahead. */
typedef struct {
    kiln_plane_cache *cache;
    const kiln_layer *layer;
    bool colour;
    kiln_ahead_fn *in_view; /* NULL: all chunks are */
    const void *context;
} kiln_ahead_view;
/* If the cache lacks a plane of chunk `first`, decodes the planes of this chunk and of the next
 * ones that are in view, one chunk a reader. Does nothing with fewer than two readers.
 * KILN_E_IO. */
kiln_status kiln_ahead_read(const kiln_ahead *a, const kiln_ahead_view *v, uint32_t first,
                            kiln_error *err) KILN_MUST_CHECK;

uint64_t kiln_ahead_bytes(const kiln_chunk *c); /* bytes of all planes of a chunk, decoded */
/* Returns the bytes of the chunks all of whose planes the cache holds. */
uint64_t kiln_ahead_held(const kiln_plane_cache *cache, const kiln_layer *layer);

#endif
