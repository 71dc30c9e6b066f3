/* plane_cache -- decoded planes. A cache for units that read many chunks. When it exceeds its
 * budget, it drops the planes that were used least recently. One thread at a time may use a
 * cache. */
#ifndef KILN_STAGES_ENGINE_MEMORY_PLANE_CACHE_H
#define KILN_STAGES_ENGINE_MEMORY_PLANE_CACHE_H

#include "schema/manifest.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct kiln_plane_cache kiln_plane_cache;
kiln_status kiln_plane_cache_new(uint64_t budget_bytes, kiln_plane_cache **out,
                                 kiln_error *err) KILN_MUST_CHECK;
void kiln_plane_cache_free(kiln_plane_cache *c); /* NULL: does nothing */
/* Changes the budget. Planes beyond it are dropped at once. */
void kiln_plane_cache_set_budget(kiln_plane_cache *c, uint64_t budget_bytes);
/* Gives a decoded plane in the layout in which it is stored; decodes it if the cache lacks it.
 * *data is borrowed: it stays valid while the caller asks for planes of the same chunk, and may be
 * dropped by the first call for another chunk. The planes of one chunk are kept even if they exceed
 * the budget. KILN_E_INPUT: the chunk has no such plane. KILN_E_IO: it is damaged. */
kiln_status kiln_plane_cache_get(kiln_plane_cache *c, kiln_manifest *m, const kiln_chunk *chunk,
                                 const char *plane, const void **data,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Says whether the cache holds all of these planes that the chunk has. */
bool kiln_plane_cache_has(const kiln_plane_cache *c, const kiln_chunk *chunk,
                          const char *const *planes, uint32_t n_planes);
/* The same planes of several chunks. */
typedef struct {
    const kiln_chunk *const *chunks; /* [n_chunks] */
    const char *const *planes;       /* [n_planes] names; a chunk may lack some */
    uint32_t n_chunks, n_planes;
} kiln_planes_of_chunks;
/* Decodes the missing planes of several chunks, in their order, on n threads; thread i reads
 * through m[i]. It stops at the budget. Beside that, each thread takes twice the largest plane
 * while it decodes. This only makes later calls of kiln_plane_cache_get fast, which decode what is
 * still missing. May drop planes of any chunk. */
kiln_status kiln_plane_cache_ahead(kiln_plane_cache *c, kiln_manifest *const *m, unsigned n,
                                   const kiln_planes_of_chunks *wanted,
                                   kiln_error *err) KILN_MUST_CHECK;

#endif
