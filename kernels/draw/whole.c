/* whole -- see whole.h. */
#include "kernels/draw/whole.h"

#include "base/harmonics.h"
#include "base/memory.h"
#include "kernels/device.h"
#include "kernels/draw/planes.h"

#include <stdlib.h>
#include <string.h>

enum { NOTHING, GEOMETRY, ALL, HALVES }; /* what is loaded of a chunk */

/* Mixes the chunks' keys in their order. The keys are hashes, so a few multiplications keep
 * different scenes apart. */
kiln_draw_chunk_header kiln_whole_header(const kiln_draw_chunk_header *headers, uint32_t n_chunks)
{
    const uint64_t odd = 0x9e3779b97f4a7c15u; /* 2^64 over the golden ratio */
    kiln_draw_chunk_header all = {0};
    uint64_t mix[2] = {n_chunks, odd};
    for (uint32_t i = 0; i < n_chunks; i++) {
        uint64_t key[2];
        memcpy(key, headers[i].key, sizeof key);
        mix[0] = (mix[0] ^ key[0]) * odd + headers[i].n;
        mix[1] = (mix[1] ^ key[1] ^ mix[0] >> 32) * odd;
        all.n += headers[i].n;
    }
    memcpy(all.key, mix, sizeof all.key);
    return all;
}

void kiln_whole_drop_halves(kiln_whole *w, kiln_runner *r)
{
    if (!w->halves) return;
    kiln_runner_give(r, w->halves, w->halves_bytes);
    w->halves = NULL;
    w->halves_bytes = 0;
    for (uint32_t i = 0; i < w->n_chunks; i++)
        if (w->loaded[i] == HALVES) w->loaded[i] = ALL;
}

void kiln_whole_drop(kiln_whole *w, kiln_runner *r)
{
    if (!w->at) return;
    kiln_whole_drop_halves(w, r);
    kiln_runner_give(r, w->at, w->bytes);
    w->at = NULL;
    w->bytes = 0;
}

void kiln_whole_release(kiln_whole *w, kiln_runner *r)
{
    kiln_whole_drop(w, r);
    free(w->starts);
    free(w->loaded);
}

bool kiln_whole_is(const kiln_whole *w, const kiln_whole_scene *s)
{
    return memcmp(w->header.key, s->all->key, sizeof s->all->key) == 0 &&
           w->header.n == s->all->n &&
           (!s->all->colour || (w->header.colour && w->sh_degree == s->sh_degree));
}

kiln_status kiln_whole_begin(kiln_whole *w, const kiln_exec *x, const kiln_whole_scene *s,
                             kiln_error *err)
{
    w->header = *s->all;
    w->sh_degree = s->sh_degree;
    w->refused = w->halves_refused = false;
    free(w->starts);
    free(w->loaded);
    w->starts = NULL;
    w->loaded = NULL;
    KILN_TRY(KILN_ALLOC(&w->starts, (uint64_t)s->n_chunks + 1, "chunks on a device", err));
    KILN_TRY(KILN_ALLOC(&w->loaded, s->n_chunks, "chunks on a device", err));
    w->n_chunks = s->n_chunks;
    for (uint32_t i = 0; i < s->n_chunks; i++) w->starts[i + 1] = w->starts[i] + s->headers[i].n;
    (void)kiln_planes_lay_out(&w->header, w->sh_degree, w->at, &w->planes);
    KILN_TRY(kiln_device_fill(x, (void *)(uintptr_t)w->planes.means, 0xff,
                              3 * w->header.n * sizeof(float), err));
    /* memory is taken and given back next, which needs an idle stream */
    return kiln_device_wait(x, err);
}

bool kiln_whole_has(const kiln_whole *w, uint32_t chunk, bool colour)
{
    return w->loaded[chunk] >= (colour ? ALL : GEOMETRY);
}

kiln_status kiln_whole_load(kiln_whole *w, const kiln_exec *x, uint32_t chunk,
                            const kiln_draw_chunk *from, kiln_error *err)
{
    KILN_TRY(kiln_planes_copy(x, from, &w->planes, w->starts[chunk], w->sh_degree, err));
    w->loaded[chunk] = from->sh0 ? ALL : GEOMETRY;
    return KILN_OK;
}

uint64_t kiln_whole_halves_bytes(const kiln_whole *w)
{
    return kiln_sh_words(kiln_sh_components(w->sh_degree)) * w->header.n * sizeof *w->halves;
}

static kiln_status halve_chunk(kiln_whole *w, kiln_runner *r, uint32_t chunk, uint64_t *violation,
                               kiln_error *err)
{
    const kiln_sh_halves_args a = {.rows = w->header.n,
                                   .first = w->starts[chunk],
                                   .n = w->starts[chunk + 1] - w->starts[chunk],
                                   .columns = kiln_sh_components(w->sh_degree),
                                   .shN = w->planes.shN,
                                   .halves = w->halves};
    /* It needs no work space; the pointer only must not be NULL. */
    KILN_TRY(kiln_runner_launch(r, KILN_OP_sh_halves, &a, w->halves, 0, violation, err));
    w->loaded[chunk] = HALVES;
    return KILN_OK;
}

kiln_status kiln_whole_halve(kiln_whole *w, kiln_runner *r, uint64_t *violation, kiln_error *err)
{
    for (uint32_t i = 0; i < w->n_chunks; i++)
        if (w->loaded[i] == ALL) KILN_TRY(halve_chunk(w, r, i, violation, err));
    return KILN_OK;
}

uint32_t kiln_whole_chunk(const kiln_whole *w, uint32_t row, uint32_t *row_of_chunk)
{
    uint32_t low = 0, high = w->n_chunks; /* starts[low] <= row < starts[high] */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        *(w->starts[middle] <= row ? &low : &high) = middle;
    }
    *row_of_chunk = (uint32_t)(row - w->starts[low]);
    return low;
}
