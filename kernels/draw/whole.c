/* whole -- see store.h: keeps the planes of a scene as those of a single chunk.
 *
 * A chunk has some ten thousand rows, too few to keep a device busy, and takes as many launches as one with a million rows. In one
 * piece the scene takes the launches of one chunk. Rows of chunks that no camera has needed yet have NaN means, which no profile
 * counts as visible; so when a chunk is first needed, only its planes are copied. Rows of chunks that this camera cannot see are
 * read and found invisible, which costs 12 bytes of reading for each.
 */
#include "base/harmonics.h"
#include "base/memory.h"
#include "kernels/draw/store.h"

#include <stdlib.h>
#include <string.h>

/* Mixes the chunks' keys in their order. The keys are hashes, so a few multiplications keep different scenes apart. */
kiln_draw_chunk_header kiln_store_whole_header(const kiln_draw_chunk_header *headers, uint32_t n_chunks)
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

void kiln_store_halves_drop(kiln_draw_store *s)
{
    kiln_store_whole *w = &s->whole;
    if (!w->halves) return;
    kiln_runner_give(s->runner, w->halves, w->halves_bytes);
    s->planes_bytes -= w->halves_bytes;
    w->halves = NULL;
    w->halves_bytes = 0;
    for (uint32_t i = 0; i < w->n_chunks; i++)
        if (w->loaded[i] == KILN_STORE_HALVES) w->loaded[i] = KILN_STORE_ALL;
}

void kiln_store_whole_drop(kiln_draw_store *s)
{
    kiln_store_whole *w = &s->whole;
    if (!w->at) return;
    kiln_store_halves_drop(s);
    kiln_runner_give(s->runner, w->at, w->bytes);
    s->planes_bytes -= w->bytes;
    w->at = NULL; /* starts stays: a drawing may still need it to name its chunks */
}

static bool is_it(const kiln_store_whole *w, const kiln_draw_chunk_header *all, uint32_t sh_degree)
{
    return memcmp(w->header.key, all->key, sizeof all->key) == 0 && w->header.n == all->n &&
           (!all->colour || (w->header.colour && w->sh_degree == sh_degree));
}

static kiln_status make_whole(kiln_draw_store *s, const kiln_draw_chunk_header *headers, uint32_t n_chunks, kiln_error *err)
{
    const kiln_exec x = kiln_runner_exec(s->runner);
    kiln_store_whole *w = &s->whole;
    free(w->starts);
    free(w->loaded);
    w->starts = NULL;
    w->loaded = NULL;
    KILN_TRY(KILN_ALLOC(&w->starts, (uint64_t)n_chunks + 1, "chunks on a device", err));
    KILN_TRY(KILN_ALLOC(&w->loaded, n_chunks, "chunks on a device", err));
    w->n_chunks = n_chunks;
    for (uint32_t i = 0; i < n_chunks; i++) w->starts[i + 1] = w->starts[i] + headers[i].n;
    (void)kiln_store_lay_out(&w->header, w->sh_degree, w->at, &w->planes);
    KILN_TRY(kiln_device_fill(&x, (void *)(uintptr_t)w->planes.means, 0xff, 3 * w->header.n * sizeof(float), err));
    return kiln_device_wait(&x, err); /* memory is taken and given back next, which needs an idle stream */
}

kiln_status kiln_store_whole_get(kiln_draw_store *s, const kiln_draw_chunk_header *all, const kiln_draw_chunk_header *headers,
                                 uint32_t n_chunks, uint32_t sh_degree, uint64_t beside, bool *there, kiln_error *err)
{
    kiln_store_whole *w = &s->whole;
    kiln_draw_chunk planes;
    void *at = NULL;
    const bool known = is_it(w, all, sh_degree);
    *there = known && w->at;
    if (*there || (known && w->refused)) return KILN_OK;
    kiln_store_whole_drop(s); /* it is another scene, or lacks colour */
    const uint64_t bytes = kiln_store_lay_out(all, sh_degree, NULL, &planes), most = kiln_store_most(s) / 4 * 3;
    if (bytes > most || beside > most - bytes) return KILN_OK;
    kiln_store_make_room(s, bytes);
    KILN_TRY(kiln_runner_take(s->runner, bytes, &at, err));
    if (!at) return KILN_OK;
    w->at = at;
    w->bytes = bytes;
    w->header = *all;
    w->sh_degree = sh_degree;
    w->refused = w->halves_refused = false;
    s->planes_bytes += bytes;
    const kiln_status st = make_whole(s, headers, n_chunks, err);
    *there = st == KILN_OK;
    if (st != KILN_OK) kiln_store_whole_drop(s);
    return st;
}

kiln_status kiln_store_whole_load(kiln_draw_store *s, uint32_t chunk, const kiln_draw_chunk *from, kiln_error *err)
{
    kiln_store_whole *w = &s->whole;
    const kiln_exec x = kiln_runner_exec(s->runner);
    const uint64_t first = w->starts[chunk];
    const kiln_status st = kiln_store_settle(&x, kiln_store_copy_planes(s, from, &w->planes, first, w->sh_degree, err));
    if (st == KILN_OK)
        w->loaded[chunk] = from->sh0 ? KILN_STORE_ALL : KILN_STORE_GEOMETRY;
    else
        kiln_store_whole_drop(s); /* the chunk may be incomplete */
    return st;
}

/* Runs on the stream, after the copies and before the picture. */
static kiln_status halve_chunk(kiln_draw_store *s, uint32_t chunk, uint32_t columns, uint64_t *violation, kiln_error *err)
{
    kiln_store_whole *w = &s->whole;
    const kiln_sh_halves_args a = {.rows = w->header.n,
                                   .first = w->starts[chunk],
                                   .n = w->starts[chunk + 1] - w->starts[chunk],
                                   .columns = columns,
                                   .shN = w->planes.shN,
                                   .halves = w->halves};
    KILN_TRY(kiln_runner_launch(s->runner, KILN_OP_sh_halves, &a, w->halves, 0, violation,
                                err)); /* needs no work space; the pointer only must not be NULL */
    w->loaded[chunk] = KILN_STORE_HALVES;
    return KILN_OK;
}

kiln_status kiln_store_whole_halve(kiln_draw_store *s, uint64_t *violation, kiln_error *err)
{
    kiln_store_whole *w = &s->whole;
    void *at = NULL;
    const uint32_t columns = kiln_sh_components(w->sh_degree);
    const uint64_t bytes = kiln_sh_words(columns) * w->header.n * sizeof *w->halves;
    if (!w->planes.shN || w->halves_refused) return KILN_OK;
    if (!w->halves) {
        KILN_TRY(kiln_runner_take(s->runner, bytes, &at, err));
        if (!at) return KILN_OK;
        w->halves = at;
        w->halves_bytes = bytes;
        s->planes_bytes += bytes;
    }
    for (uint32_t i = 0; i < w->n_chunks; i++)
        if (w->loaded[i] == KILN_STORE_ALL) KILN_TRY(halve_chunk(s, i, columns, violation, err));
    return KILN_OK;
}

bool kiln_store_whole_is(const kiln_store_whole *w, const kiln_draw_chunk_header *all, uint32_t sh_degree)
{
    return w->at && is_it(w, all, sh_degree);
}

bool kiln_store_whole_lacks_halves(const kiln_store_whole *w, uint32_t chunk)
{
    return w->planes.shN && !w->halves_refused && w->loaded[chunk] == KILN_STORE_ALL;
}

bool kiln_store_whole_has(const kiln_store_whole *w, uint32_t chunk, bool colour)
{
    return w->loaded[chunk] >= (colour ? KILN_STORE_ALL : KILN_STORE_GEOMETRY);
}

uint32_t kiln_store_whole_chunk(const kiln_store_whole *w, uint32_t row, uint32_t *row_of_chunk)
{
    uint32_t low = 0, high = w->n_chunks; /* starts[low] <= row < starts[high] */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        *(w->starts[middle] <= row ? &low : &high) = middle;
    }
    *row_of_chunk = (uint32_t)(row - w->starts[low]);
    return low;
}
