/* store -- see store.h. A hash table with chains finds planes by their key; a list in order of use
 * says which are evicted first. The planes of a chunk are one allocation. */
#include "kernels/draw/store.h"

#include "base/carve.h"
#include "base/memory.h"
#include "kernels/device.h"
#include "kernels/draw/planes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CHAINS = 1024 };

typedef struct kept_planes kept_planes;
struct kept_planes {
    kept_planes *chain;         /* next in the same chain */
    kept_planes *newer, *older; /* in the order of use */
    kiln_draw_chunk_header header;
    uint32_t sh_degree;
    uint64_t picture; /* that used them last */
    uint64_t bytes;
    void *at;
};

struct kiln_draw_store {
    kiln_runner *runner;
    kiln_store_block records, scratch;
    bool has_drawing;      /* in `records` */
    bool drawing_is_whole; /* its rows are rows of `whole`, not of chunks */
    kiln_whole whole;
    uint64_t refused; /* rows of the smallest view whose Gaussians did not fit */
    kiln_pass_sizes sizes;
    uint64_t picture; /* number of the current picture */
    struct CUevent_st *marks[KILN_PLAN_PARTS];
    char *landing;
    bool landing_is_pinned;
    uint64_t kept_bytes; /* of planes of chunks */
    kept_planes *newest, *oldest, *chains[CHAINS];
};

kiln_runner *kiln_store_runner(const kiln_draw_store *s) { return s->runner; }
kiln_exec kiln_store_exec(const kiln_draw_store *s) { return kiln_runner_exec(s->runner); }
void kiln_store_next_picture(kiln_draw_store *s) { s->picture++; }
kiln_store_block *kiln_store_scratch(kiln_draw_store *s) { return &s->scratch; }
kiln_store_block *kiln_store_records(kiln_draw_store *s) { return &s->records; }
const kiln_whole *kiln_store_whole(const kiln_draw_store *s) { return &s->whole; }
kiln_pass_sizes *kiln_store_sizes(kiln_draw_store *s) { return &s->sizes; }
char *kiln_store_landing(const kiln_draw_store *s) { return s->landing; }
struct CUevent_st **kiln_store_marks(kiln_draw_store *s) { return s->marks; }

uint64_t kiln_store_planes_bytes(const kiln_draw_store *s)
{
    return s->kept_bytes + s->whole.bytes + s->whole.halves_bytes;
}

/* ---- the drawing ----------------------------------------------------------------------------- */
bool kiln_store_has_drawing(const kiln_draw_store *s) { return s->has_drawing; }
bool kiln_store_drawing_is_whole(const kiln_draw_store *s) { return s->drawing_is_whole; }
void kiln_store_release_drawing(kiln_draw_store *s) { s->has_drawing = false; }

void kiln_store_hold_drawing(kiln_draw_store *s, bool whole)
{
    s->has_drawing = true;
    s->drawing_is_whole = whole;
}

void kiln_store_refuse(kiln_draw_store *s, uint64_t rows) { s->refused = rows; }
bool kiln_store_may(const kiln_draw_store *s, uint64_t rows) { return rows < s->refused; }

/* ---- planes ---------------------------------------------------------------------------------- */
static kept_planes **chain_of(kiln_draw_store *s, const kiln_draw_chunk_header *l)
{
    uint32_t h;
    memcpy(&h, l->key, sizeof h); /* the key is a hash, so any of its bytes do */
    return &s->chains[h % CHAINS];
}

static void unlink_use(kiln_draw_store *s, kept_planes *p)
{
    *(p->newer ? &p->newer->older : &s->newest) = p->older;
    *(p->older ? &p->older->newer : &s->oldest) = p->newer;
}

static void link_newest(kiln_draw_store *s, kept_planes *p)
{
    p->newer = NULL;
    p->older = s->newest;
    *(s->newest ? &s->newest->newer : &s->oldest) = p;
    s->newest = p;
    p->picture = s->picture;
}

static void drop_planes(kiln_draw_store *s, kept_planes *p)
{
    kept_planes **at = chain_of(s, &p->header);
    assert(s->kept_bytes >= p->bytes && s->newest && s->oldest);
    while (*at != p) {
        assert(*at); /* planes are in the chain of their key */
        at = &(*at)->chain;
    }
    *at = p->chain;
    unlink_use(s, p);
    s->kept_bytes -= p->bytes;
    kiln_runner_give(s->runner, p->at, p->bytes);
    free(p);
}

/* Evicts planes until `bytes` are left. keep: planes of the current picture, and a scene in one
 * piece, stay. */
static void evict_planes(kiln_draw_store *s, uint64_t bytes, bool keep)
{
    for (kept_planes *p = s->oldest, *next; p && kiln_runner_left(s->runner) < bytes; p = next) {
        next = p->newer;
        if (!keep || p->picture != s->picture) drop_planes(s, p);
    }
    if (keep || kiln_runner_left(s->runner) >= bytes || !s->whole.at) return;
    if (s->whole.halves) {
        s->whole.halves_refused = true; /* else every picture would make them and drop them again */
        kiln_whole_drop_halves(&s->whole, s->runner);
        if (kiln_runner_left(s->runner) >= bytes) return;
    }
    s->whole.refused = true; /* for the same reason */
    kiln_whole_drop(&s->whole, s->runner);
}

/* Planes with colour also serve a request without colour. */
bool kiln_store_find(kiln_draw_store *s, const kiln_draw_chunk_header *l, uint32_t sh_degree,
                     kiln_draw_chunk *out)
{
    kept_planes *p = *chain_of(s, l);
    while (p && (memcmp(p->header.key, l->key, sizeof l->key) != 0 || p->header.n != l->n ||
                 (l->colour && !p->header.colour) || (l->colour && p->sh_degree != sh_degree)))
        p = p->chain;
    if (!p) return false;
    unlink_use(s, p);
    link_newest(s, p);
    (void)kiln_planes_lay_out(&p->header, p->sh_degree, p->at, out);
    if (!l->colour) out->sh0 = out->shN = NULL;
    return true;
}

/* Takes memory in which these planes are kept; *out is NULL if there is none. The runner's block is
 * left alone: it is needed for every picture that is compared with a photo. */
static kiln_status find_place(kiln_draw_store *s, const kiln_draw_chunk_header *l,
                              uint32_t sh_degree, uint64_t bytes, kept_planes **out,
                              kiln_error *err)
{
    kiln_status st;
    kept_planes *p = NULL;
    const uint64_t with_block = bytes + kiln_runner_get_info(s->runner).block_bytes;
    *out = NULL;
    evict_planes(s, with_block, true);
    if (kiln_runner_left(s->runner) < with_block) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&p, 1, "planes on a device", err));
    KILN_GO(kiln_runner_take(s->runner, bytes, &p->at, err));
    if (!p->at) goto done;
    p->header = *l;
    p->sh_degree = sh_degree;
    p->bytes = bytes;
    kept_planes **chain = chain_of(s, l);
    p->chain = *chain;
    *chain = p;
    link_newest(s, p);
    s->kept_bytes += bytes;
    *out = p;
    return KILN_OK;
done:
    free(p);
    return st;
}

kiln_status kiln_store_load(kiln_draw_store *s, const kiln_draw_chunk_header *l, uint32_t sh_degree,
                            const kiln_draw_chunk *from, char *staging, kiln_draw_chunk *out,
                            kiln_error *err)
{
    const kiln_exec x = kiln_runner_exec(s->runner);
    const uint64_t bytes = kiln_planes_lay_out(l, sh_degree, NULL, out);
    kept_planes *p;
    KILN_TRY(kiln_device_wait(&x, err)); /* planes that are evicted may be in use */
    KILN_TRY(find_place(s, l, sh_degree, bytes, &p, err));
    (void)kiln_planes_lay_out(l, sh_degree, p ? p->at : staging, out);
    const kiln_status st = kiln_planes_copy(&x, from, out, 0, sh_degree, err);
    if (st != KILN_OK && p) drop_planes(s, p); /* it may be incomplete */
    return st;
}

/* ---- blocks ---------------------------------------------------------------------------------- */
void kiln_store_drop_block(kiln_draw_store *s, kiln_store_block *b)
{
    kiln_runner_give(s->runner, b->at, b->bytes);
    *b = (kiln_store_block){NULL, 0};
}

uint64_t kiln_store_most(const kiln_draw_store *s)
{
    return kiln_runner_left(s->runner) + kiln_store_planes_bytes(s) + s->records.bytes +
           s->scratch.bytes;
}

void kiln_store_trim_blocks(kiln_draw_store *s, uint64_t scratch_bytes, uint64_t records_bytes)
{
    const uint64_t scratch = s->scratch.bytes > scratch_bytes ? s->scratch.bytes : scratch_bytes;
    const uint64_t records = s->records.bytes > records_bytes ? s->records.bytes : records_bytes;
    const uint64_t most = kiln_store_most(s);
    if (scratch <= most && records <= most - scratch) return;
    kiln_store_drop_block(s, &s->scratch);
    kiln_store_drop_block(s, &s->records);
}

kiln_status kiln_store_reserve(kiln_draw_store *s, kiln_store_block *b, uint64_t bytes, bool *fits,
                               kiln_error *err)
{
    void *at = NULL;
    *fits = true;
    if (b->at && b->bytes >= bytes) return KILN_OK;
    kiln_store_drop_block(s, b);
    evict_planes(s, bytes, false);
    KILN_TRY(kiln_runner_take(s->runner, bytes, &at, err));
    *fits = at != NULL;
    if (at) *b = (kiln_store_block){at, bytes};
    assert(!*fits || b->bytes >= bytes);
    return KILN_OK;
}

kiln_store_ordered kiln_store_ordered_at(char *at, uint64_t n)
{
    kiln_carve c = {at, 0};
    kiln_store_ordered o;
    o.splats = kiln_take(&c, n, sizeof *o.splats);
    o.chunks = kiln_take(&c, n, sizeof *o.chunks);
    o.rows = kiln_take(&c, n, sizeof *o.rows);
    o.bytes = c.used;
    return o;
}

/* ---- a scene in one piece -------------------------------------------------------------------- */
/* Drops planes, then blocks, until `bytes` are free or nothing is left to drop. There is no
 * drawing, and the stream is idle. */
static void evict_for(kiln_draw_store *s, uint64_t bytes)
{
    evict_planes(s, bytes, false);
    if (kiln_runner_left(s->runner) >= bytes) return;
    kiln_store_drop_block(s, &s->scratch);
    kiln_store_drop_block(s, &s->records);
}

kiln_status kiln_store_whole_get(kiln_draw_store *s, const kiln_whole_scene *scene, uint64_t beside,
                                 bool *there, kiln_error *err)
{
    const kiln_exec x = kiln_runner_exec(s->runner);
    kiln_draw_chunk planes;
    void *at = NULL;
    const bool known = kiln_whole_is(&s->whole, scene);
    *there = known && s->whole.at;
    if (*there || (known && s->whole.refused)) return KILN_OK;
    kiln_whole_drop(&s->whole, s->runner); /* it is another scene, or lacks colour */
    const uint64_t bytes = kiln_planes_lay_out(scene->all, scene->sh_degree, NULL, &planes),
                   most = kiln_store_most(s) / 4 * 3;
    if (bytes > most || beside > most - bytes) return KILN_OK;
    evict_for(s, bytes);
    KILN_TRY(kiln_runner_take(s->runner, bytes, &at, err));
    if (!at) return KILN_OK;
    s->whole.at = at;
    s->whole.bytes = bytes;
    const kiln_status st = kiln_whole_begin(&s->whole, &x, scene, err);
    *there = st == KILN_OK;
    if (st != KILN_OK) kiln_whole_drop(&s->whole, s->runner);
    return st;
}

kiln_status kiln_store_whole_load(kiln_draw_store *s, uint32_t chunk, const kiln_draw_chunk *from,
                                  kiln_error *err)
{
    const kiln_exec x = kiln_runner_exec(s->runner);
    const kiln_status st = kiln_whole_load(&s->whole, &x, chunk, from, err);
    if (st != KILN_OK) kiln_whole_drop(&s->whole, s->runner); /* the chunk may be incomplete */
    return st;
}

kiln_status kiln_store_whole_halve(kiln_draw_store *s, uint64_t *violation, kiln_error *err)
{
    kiln_whole *w = &s->whole;
    void *at = NULL;
    if (!w->planes.shN || w->halves_refused) return KILN_OK;
    if (!w->halves) {
        const uint64_t bytes = kiln_whole_halves_bytes(w);
        KILN_TRY(kiln_runner_take(s->runner, bytes, &at, err));
        if (!at) return KILN_OK;
        w->halves = at;
        w->halves_bytes = bytes;
    }
    return kiln_whole_halve(w, s->runner, violation, err);
}

/* ---- a store --------------------------------------------------------------------------------- */
static void spare(void *context, uint64_t bytes)
{
    kiln_draw_store *s = context;
    /* it holds nothing that must be kept */
    if (kiln_runner_left(s->runner) < bytes) kiln_store_drop_block(s, &s->scratch);
    evict_planes(s, bytes, false);
    if (kiln_runner_left(s->runner) < bytes && !s->has_drawing)
        kiln_store_drop_block(s, &s->records);
}

static kiln_status make_landing(kiln_draw_store *s, kiln_error *err)
{
    const int device = kiln_runner_exec(s->runner).device;
    if (device < 0) return KILN_OK;
    s->landing = aligned_alloc(KILN_STORE_LANDING, KILN_STORE_LANDING);
    if (!s->landing) return kiln_fail(err, KILN_E_NOMEM, "out of memory for a store on a device");
    s->landing_is_pinned = kiln_device_pin(device, s->landing, KILN_STORE_LANDING);
    return KILN_OK;
}

kiln_status kiln_draw_store_new(kiln_runner *r, kiln_draw_store **out, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(out, 1, "a store on a device", err));
    (*out)->runner = r;
    (*out)->refused = UINT64_MAX;
    kiln_runner_on_need(r, spare, *out);
    const kiln_status st = make_landing(*out, err);
    if (st == KILN_OK) return KILN_OK;
    kiln_draw_store_free(*out);
    *out = NULL;
    return st;
}

void kiln_draw_store_free(kiln_draw_store *s)
{
    if (!s) return;
    kiln_runner_on_need(s->runner, NULL, NULL);
    while (s->oldest) drop_planes(s, s->oldest);
    kiln_whole_release(&s->whole, s->runner);
    assert(kiln_store_planes_bytes(s) == 0 && !s->newest);
    kiln_store_drop_block(s, &s->records);
    kiln_store_drop_block(s, &s->scratch);
    for (int i = 0; i < KILN_PLAN_PARTS; i++)
        kiln_device_mark_free(kiln_runner_exec(s->runner).device, s->marks[i]);
    if (s->landing_is_pinned) kiln_device_unpin(kiln_runner_exec(s->runner).device, s->landing);
    free(s->landing);
    free(s);
}
