/* A cache of decoded planes that drops the least recently used ones.
 *
 * Planes are found by the hashes of their content, so a plane that two layers share is decoded
 * once. Planes of the chunk that is asked for are never dropped, because the caller may hold all
 * planes of a chunk. A hash table with chains finds a plane; a list in the order of use says which
 * one is dropped first.
 *
 * Planes have pages of their own instead of a place in malloc's heap, however much malloc is told
 * to keep (kiln_memory_keep). In the heap, the hole of a dropped plane stays taken while anything
 * lies behind it, and large arrays move into such holes. A worker would then hold the planes of its
 * first list in all later lists. */
#include "stages/engine/memory/plane_cache.h"

#include "base/checked.h"
#include "base/memory.h"

#include <assert.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CHAINS = 4096, PAGES_FROM = 64 << 10 };

typedef struct entry {
    struct entry *chain;         /* next in the same chain */
    struct entry *newer, *older; /* in the order of use */
    kiln_hash key;
    const kiln_chunk *chunk; /* for which it was last asked */
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

static uint32_t chain_number(kiln_hash key)
{
    uint32_t h;
    memcpy(&h, key.bytes, sizeof h); /* a hash's bytes are as good as random */
    return h % CHAINS;
}

static entry **chain_of(kiln_plane_cache *c, kiln_hash key)
{
    return &c->chains[chain_number(key)];
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

static kiln_status take_plane(uint64_t bytes, unsigned char **out, kiln_error *err)
{
    if (bytes < PAGES_FROM) return kiln_alloc_unset((void **)out, bytes, 1, "a decoded plane", err);
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for a decoded plane: %llu bytes",
                         (unsigned long long)bytes);
    kiln_memory_use_large_pages(pages, (size_t)bytes);
    *out = pages;
    return KILN_OK;
}

static void free_plane(unsigned char *data, uint64_t bytes)
{
    if (bytes < PAGES_FROM)
        free(data);
    else
        (void)munmap(data, bytes);
}

static void drop(kiln_plane_cache *c, entry *e)
{
    entry **at = chain_of(c, e->key);
    assert(c->used >= e->bytes && c->newest && c->oldest);
    while (*at != e) {
        assert(*at); /* each entry is in the chain of its key */
        at = &(*at)->chain;
    }
    *at = e->chain;
    unlink_use(c, e);
    c->used -= e->bytes;
    free_plane(e->data, e->bytes);
    free(e);
}

void kiln_plane_cache_free(kiln_plane_cache *c)
{
    if (!c) return;
    while (c->oldest) drop(c, c->oldest);
    assert(c->used == 0 && !c->newest);
    free(c);
}

static void evict_for(kiln_plane_cache *c, uint64_t bytes, const kiln_chunk *keep)
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
    evict_for(c, 0, NULL);
}

static entry *find(const kiln_plane_cache *c, const kiln_plane *p)
{
    const kiln_hash key = plane_key(p);
    entry *e = c->chains[chain_number(key)];
    while (e && (!kiln_hash_equal(e->key, key) || e->bytes != p->data.raw_bytes)) e = e->chain;
    return e;
}

/* Adds an entry for a plane. From now on it is found; the caller fills it. */
static kiln_status add(kiln_plane_cache *c, const kiln_plane *p, entry **out, kiln_error *err)
{
    entry *e;
    /* or two entries would have its key, and one of them would never be found */
    assert(!find(c, p));
    KILN_TRY(KILN_ALLOC(&e, 1, "the cache of planes", err));
    const kiln_status st = take_plane(p->data.raw_bytes, &e->data, err);
    if (st != KILN_OK) {
        free(e);
        return st;
    }
    e->key = plane_key(p);
    e->bytes = p->data.raw_bytes;
    entry **chain = chain_of(c, e->key);
    e->chain = *chain;
    *chain = e;
    link_newest(c, e);
    c->used += e->bytes;
    *out = e;
    return KILN_OK;
}

/* On the thread that calls: several make the pages of their planes at the same time. */
static kiln_status read_plane(kiln_manifest *m, const kiln_chunk *chunk, const kiln_plane *p,
                              entry *e, kiln_error *err)
{
    kiln_memory_populate(e->data, (size_t)e->bytes);
    return kiln_plane_read(m, chunk, p->name, e->data, (size_t)e->bytes, err);
}

static kiln_status load(kiln_plane_cache *c, kiln_manifest *m, const kiln_chunk *chunk,
                        const kiln_plane *p, entry **out, kiln_error *err)
{
    evict_for(c, p->data.raw_bytes, chunk);
    KILN_TRY(add(c, p, out, err));
    const kiln_status st = read_plane(m, chunk, p, *out, err);
    if (st != KILN_OK) drop(c, *out);
    return st;
}

kiln_status kiln_plane_cache_get(kiln_plane_cache *c, kiln_manifest *m, const kiln_chunk *chunk,
                                 const char *plane, const void **data, kiln_error *err)
{
    const kiln_plane *p = kiln_chunk_plane(chunk, plane);
    if (!p) return kiln_fail(err, KILN_E_INPUT, "chunk '%s' has no plane '%s'", chunk->name, plane);
    entry *e = find(c, p);
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

/* ---- ahead ----------------------------------------------------------------------------------- */
typedef struct {
    entry *e;
    const kiln_chunk *chunk;
    const kiln_plane *plane;
} job;

/* Adds entries for missing planes, up to the budget, and makes a job of each. These entries are the
 * newest, so making room for one does not drop another. */
static kiln_status add_missing(kiln_plane_cache *c, const kiln_planes_of_chunks *wanted, job *jobs,
                               uint32_t *n, kiln_error *err)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < wanted->n_chunks * wanted->n_planes; i++) {
        const kiln_chunk *chunk = wanted->chunks[i / wanted->n_planes];
        const kiln_plane *p = kiln_chunk_plane(chunk, wanted->planes[i % wanted->n_planes]);
        if (!p || find(c, p)) continue;
        bytes += p->data.raw_bytes;
        if (bytes > c->budget) return KILN_OK;
        evict_for(c, p->data.raw_bytes, NULL);
        jobs[*n] = (job){.chunk = chunk, .plane = p};
        KILN_TRY(add(c, p, &jobs[*n].e, err));
        jobs[(*n)++].e->chunk = chunk;
    }
    return KILN_OK;
}

/* Decodes the jobs. If several fail, *err is that of one of them. */
static kiln_status decode(const job *jobs, uint32_t n_jobs, kiln_manifest *const *m, unsigned n,
                          kiln_error *err)
{
    kiln_status st = KILN_OK;
#pragma omp parallel for num_threads(n) schedule(dynamic)
    for (uint32_t i = 0; i < n_jobs; i++) {
        const job *j = &jobs[i];
        kiln_error why = {0};
        const kiln_status one = read_plane(m[omp_get_thread_num()], j->chunk, j->plane, j->e, &why);
        if (one == KILN_OK) continue;
#pragma omp critical(kiln_plane_cache)
        {
            st = one;
            if (err) *err = why;
        }
    }
    return st;
}

bool kiln_plane_cache_has(const kiln_plane_cache *c, const kiln_chunk *chunk,
                          const char *const *planes, uint32_t n_planes)
{
    bool all = true;
    for (uint32_t i = 0; i < n_planes; i++) {
        const kiln_plane *p = kiln_chunk_plane(chunk, planes[i]);
        all = all && (!p || find(c, p));
    }
    return all;
}

kiln_status kiln_plane_cache_ahead(kiln_plane_cache *c, kiln_manifest *const *m, unsigned n,
                                   const kiln_planes_of_chunks *wanted, kiln_error *err)
{
    job *jobs;
    uint32_t n_jobs = 0;
    KILN_TRY(
        KILN_ALLOC(&jobs, (uint64_t)wanted->n_chunks * wanted->n_planes, "planes to decode", err));
    kiln_status st = add_missing(c, wanted, jobs, &n_jobs, err);
    if (st == KILN_OK) st = decode(jobs, n_jobs, m, n, err);
    /* it is not known which are complete */
    for (uint32_t i = 0; st != KILN_OK && i < n_jobs; i++) drop(c, jobs[i].e);
    free(jobs);
    return st;
}
