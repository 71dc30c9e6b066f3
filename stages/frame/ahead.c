/* ahead -- see ahead.h. A connection of SQLite is for one thread, so each thread has its own. */
#include "stages/frame/ahead.h"

static const char *const planes[] = {"means", "log_scales", "quats", "opacity_logits", "source_row", "sh0", "shN"};
enum { PLANES = sizeof planes / sizeof *planes, GEOMETRY = 5 };

void kiln_ahead_release(kiln_ahead *a)
{
    while (a->n > 0) kiln_manifest_close(a->readers[--a->n]);
}

uint64_t kiln_ahead_set(kiln_ahead *a, kiln_worker *w, const kiln_layer *layer, uint64_t spare)
{
    kiln_error why;
    const unsigned threads = kiln_worker_threads(w), n = threads < KILN_AHEAD_THREADS ? threads : KILN_AHEAD_THREADS;
    const uint64_t readers = n * KILN_CONNECTION_RAM, decoding = n * kiln_frame_chunk_bytes(layer, true);
    if (n < 2 || n != a->n || spare < readers + decoding) kiln_ahead_release(a);
    if (n < 2 || spare < readers + decoding) return 0;
    while (a->n < n && kiln_worker_reader(w, &a->readers[a->n], &why) == KILN_OK) a->n++;
    return readers;
}

uint64_t kiln_ahead_bytes(const kiln_chunk *c)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < PLANES; i++) {
        const kiln_plane *p = kiln_chunk_plane(c, planes[i]);
        if (p) bytes += p->data.raw_bytes;
    }
    return bytes;
}

kiln_status kiln_ahead_read(const kiln_ahead *a, kiln_plane_cache *cache, const kiln_layer *layer, const kiln_view_request *request,
                            uint32_t first, bool colour, kiln_error *err)
{
    const kiln_chunk *next[KILN_AHEAD_THREADS];
    const uint32_t n_planes = colour ? PLANES : GEOMETRY;
    uint32_t n = 0;
    if (a->n < 2 || kiln_plane_cache_has(cache, &layer->chunks[first], planes, n_planes)) return KILN_OK;
    for (uint32_t i = first; i < layer->n_chunks && n < a->n; i++)
        if (!request || kiln_view_request_may_see(request, &layer->chunks[i])) next[n++] = &layer->chunks[i];
    return kiln_plane_cache_ahead(cache, a->readers, a->n, next, n, planes, n_planes, err);
}
