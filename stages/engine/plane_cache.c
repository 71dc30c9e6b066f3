/* Decoded planes, least recently used first out.
 *
 * Planes are found by the hashes of their content, so a plane that two layers share is decoded once. Planes of the chunk
 * that was asked for last are never thrown out: whoever works on a chunk may hold all of its planes. A table of chains
 * finds them; a list in the order of use tells which goes first. */
#include "stages/engine/engine.h"

#include "base/checked.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { CHAINS = 4096 };

typedef struct entry {
    struct entry *chain;         /* next in the same chain */
    struct entry *newer, *older; /* in the order of use */
    kiln_hash key;
    const kiln_chunk *chunk; /* for which it was asked for last */
    uint64_t bytes;
    unsigned char *data;
} entry;

struct kiln_plane_cache {
    uint64_t budget, used;
    entry *newest, *oldest;
    entry *chains[CHAINS];
};

kiln_status kiln_plane_cache_new(uint64_t budget_bytes, kiln_plane_cache **out, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(out, 1, "the cache of planes", err));
    (*out)->budget = budget_bytes;
    return KILN_OK;
}

static kiln_hash plane_key(const kiln_plane *p)
{
    if (p->data.n_segments == 1) return p->data.segments[0];
    return kiln_hash_of(p->data.segments, p->data.n_segments * sizeof *p->data.segments);
}

static entry **chain_of(kiln_plane_cache *c, kiln_hash key)
{
    uint32_t h;
    memcpy(&h, key.bytes, sizeof h); /* a hash's bytes are as good as random */
    return &c->chains[h % CHAINS];
}

static void unlink_use(kiln_plane_cache *c, entry *e)
{
    *(e->newer ? &e->newer->older : &c->newest) = e->older;
    *(e->older ? &e->older->newer : &c->oldest) = e->newer;
}

static void link_newest(kiln_plane_cache *c, entry *e)
{
    e->newer = NULL;
    e->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
}

static void drop(kiln_plane_cache *c, entry *e)
{
    entry **at = chain_of(c, e->key);
    while (*at != e) at = &(*at)->chain;
    *at = e->chain;
    unlink_use(c, e);
    c->used -= e->bytes;
    free(e->data);
    free(e);
}

void kiln_plane_cache_free(kiln_plane_cache *c)
{
    if (!c) return;
    while (c->oldest) drop(c, c->oldest);
    free(c);
}

static void make_room(kiln_plane_cache *c, uint64_t bytes, const kiln_chunk *keep)
{
    for (entry *e = c->oldest; e && c->used + bytes > c->budget;) {
        entry *next = e->newer;
        if (e->chunk != keep) drop(c, e);
        e = next;
    }
}

void kiln_plane_cache_set_budget(kiln_plane_cache *c, uint64_t budget_bytes)
{
    c->budget = budget_bytes;
    make_room(c, 0, NULL);
}

static kiln_status load(kiln_plane_cache *c, kiln_manifest *m, const kiln_chunk *chunk, const kiln_plane *p, entry **out,
                        kiln_error *err)
{
    uint64_t bytes = p->data.raw_bytes;
    make_room(c, bytes, chunk);
    entry *e;
    KILN_TRY(KILN_ALLOC(&e, 1, "the cache of planes", err));
    kiln_status st = kiln_alloc_unset((void **)&e->data, bytes, 1, "a decoded plane", err);
    if (st == KILN_OK) st = kiln_plane_read(m, chunk, p->name, e->data, (size_t)bytes, err);
    if (st != KILN_OK) {
        free(e->data);
        free(e);
        return st;
    }
    e->key = plane_key(p);
    e->bytes = bytes;
    entry **chain = chain_of(c, e->key);
    e->chain = *chain;
    *chain = e;
    link_newest(c, e);
    c->used += bytes;
    *out = e;
    return KILN_OK;
}

kiln_status kiln_plane_cache_get(kiln_plane_cache *c, kiln_manifest *m, const kiln_chunk *chunk, const char *plane,
                                 const void **data, kiln_error *err)
{
    const kiln_plane *p = kiln_chunk_plane(chunk, plane);
    if (!p) return kiln_fail(err, KILN_E_INPUT, "chunk '%s' has no plane '%s'", chunk->name, plane);
    kiln_hash key = plane_key(p);
    entry *e = *chain_of(c, key);
    while (e && (!kiln_hash_equal(e->key, key) || e->bytes != p->data.raw_bytes)) e = e->chain;
    if (e) {
        unlink_use(c, e);
        link_newest(c, e);
    } else {
        KILN_TRY(load(c, m, chunk, p, &e, err));
    }
    e->chunk = chunk;
    *data = e->data;
    return KILN_OK;
}
