/* ahead -- see ahead.h. A connection of SQLite is for one thread, so each thread has its own. */
#include "stages/frame/ahead.h"

#include "base/minmax.h"
#include "stages/frame/chunk_size.h"

static const char *const planes[] = {"means",      "log_scales", "quats", "opacity_logits",
                                     "source_row", "sh0",        "shN"};
enum { PLANES = sizeof planes / sizeof *planes, GEOMETRY = 5 };

void kiln_ahead_release(kiln_ahead *a)
{
    while (a->n > 0) kiln_manifest_close(a->readers[--a->n]);
}

uint64_t kiln_ahead_reader_bytes(const kiln_layer *layer, bool colour)
{
    const uint64_t rows = kiln_frame_largest_chunk(layer);
    return KILN_CONNECTION_RAM + kiln_frame_chunk_bytes(layer, colour) -
           rows * kiln_frame_row_bytes(layer, colour);
}

unsigned kiln_ahead_count(const kiln_layer *layer, bool colour, unsigned threads, uint64_t spare)
{
    enum { PLANE = 4096 + 256 }; /* a plane's entry, and to which its array is rounded up */
    const uint64_t reader = kiln_ahead_reader_bytes(layer, colour),
                   row = kiln_frame_row_bytes(layer, colour);
    const uint64_t chunk = kiln_frame_largest_chunk(layer) * row + PLANES * PLANE;
    const uint64_t all = layer->count * row + (uint64_t)layer->n_chunks * PLANES * PLANE;
    uint64_t n = kiln_min_u64(kiln_min_u64(threads, KILN_AHEAD_THREADS), spare / (reader + chunk));
    if (spare >= all) n = kiln_min_u64(n, (spare - all) / reader);
    return n < 2 ? 0 : (unsigned)n;
}

uint64_t kiln_ahead_set(kiln_ahead *a, kiln_worker *w, const kiln_layer *layer, bool colour,
                        uint64_t spare)
{
    kiln_error why;
    const unsigned n = kiln_ahead_count(layer, colour, kiln_worker_threads(w), spare);
    while (a->n > n) kiln_manifest_close(a->readers[--a->n]);
    while (a->n < n && kiln_worker_reader(w, &a->readers[a->n], &why) == KILN_OK) a->n++;
    return n * kiln_ahead_reader_bytes(layer, colour);
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

uint64_t kiln_ahead_held(const kiln_plane_cache *cache, const kiln_layer *layer)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < layer->n_chunks; i++)
        if (kiln_plane_cache_has(cache, &layer->chunks[i], planes, PLANES))
            bytes += kiln_ahead_bytes(&layer->chunks[i]);
    return bytes;
}

kiln_status kiln_ahead_read(const kiln_ahead *a, const kiln_ahead_view *v, uint32_t first,
                            kiln_error *err)
{
    const kiln_chunk *next[KILN_AHEAD_THREADS];
    const uint32_t n_planes = v->colour ? PLANES : GEOMETRY;
    uint32_t n = 0;
    if (a->n < 2 || kiln_plane_cache_has(v->cache, &v->layer->chunks[first], planes, n_planes))
        return KILN_OK;
    for (uint32_t i = first; i < v->layer->n_chunks && n < a->n; i++)
        if (!v->in_view || v->in_view(v->context, i)) next[n++] = &v->layer->chunks[i];
    const kiln_planes_of_chunks wanted = {
        .chunks = next, .n_chunks = n, .planes = planes, .n_planes = n_planes};
    return kiln_plane_cache_ahead(v->cache, a->readers, a->n, &wanted, err);
}
