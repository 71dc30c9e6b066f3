/* store -- see store.h. A hash table with chains finds planes by their key; a list in order of use says which are evicted first.
 * The planes of a chunk are one allocation. */
#include "kernels/draw/store.h"

#include "base/carve.h"
#include "base/harmonics.h"
#include "base/memory.h"
#include "kernels/draw/lanes.h"
#include "kernels/violation.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CHAINS = sizeof(((kiln_draw_store *)0)->chains) / sizeof(kiln_store_planes *) };

struct kiln_store_planes {
    kiln_store_planes *chain;         /* next in the same chain */
    kiln_store_planes *newer, *older; /* in the order of use */
    kiln_draw_chunk_header header;
    uint32_t sh_degree;
    uint64_t picture; /* that used them last */
    uint64_t bytes;
    void *at;
};

/* ---- planes ------------------------------------------------------------------------------------------------------------ */
static kiln_store_planes **chain_of(kiln_draw_store *s, const kiln_draw_chunk_header *l)
{
    uint32_t h;
    memcpy(&h, l->key, sizeof h); /* the key is a hash, so any of its bytes do */
    return &s->chains[h % CHAINS];
}

static void unlink_use(kiln_draw_store *s, kiln_store_planes *p)
{
    *(p->newer ? &p->newer->older : &s->newest) = p->older;
    *(p->older ? &p->older->newer : &s->oldest) = p->newer;
}

static void link_newest(kiln_draw_store *s, kiln_store_planes *p)
{
    p->newer = NULL;
    p->older = s->newest;
    *(s->newest ? &s->newest->newer : &s->oldest) = p;
    s->newest = p;
    p->picture = s->picture;
}

static void drop_planes(kiln_draw_store *s, kiln_store_planes *p)
{
    kiln_store_planes **at = chain_of(s, &p->header);
    assert(s->planes_bytes >= p->bytes && s->newest && s->oldest);
    while (*at != p) {
        assert(*at); /* planes are in the chain of their key */
        at = &(*at)->chain;
    }
    *at = p->chain;
    unlink_use(s, p);
    s->planes_bytes -= p->bytes;
    kiln_runner_give(s->runner, p->at, p->bytes);
    free(p);
}

/* Evicts planes until `bytes` are left. keep: planes of the current picture, and a scene in one piece, stay. */
static void evict_planes(kiln_draw_store *s, uint64_t bytes, bool keep)
{
    if (kiln_runner_left(s->runner) < bytes) kiln_lanes_drop(s);
    for (kiln_store_planes *p = s->oldest, *next; p && kiln_runner_left(s->runner) < bytes; p = next) {
        next = p->newer;
        if (!keep || p->picture != s->picture) drop_planes(s, p);
    }
    if (keep || kiln_runner_left(s->runner) >= bytes || !s->whole.at) return;
    if (s->whole.halves) {
        s->whole.halves_refused = true; /* else every picture would make them and drop them again */
        kiln_store_halves_drop(s);
        if (kiln_runner_left(s->runner) >= bytes) return;
    }
    s->whole.refused = true; /* for the same reason */
    kiln_store_whole_drop(s);
}

uint64_t kiln_store_lay_out(const kiln_draw_chunk_header *l, uint32_t sh_degree, char *at, kiln_draw_chunk *out)
{
    kiln_carve c = {at, 0};
    const uint64_t harmonics = kiln_sh_components(sh_degree);
    memset(out, 0, sizeof *out);
    out->n = l->n;
    out->means = kiln_take(&c, 3 * l->n, sizeof *out->means);
    out->log_scales = kiln_take(&c, 3 * l->n, sizeof *out->log_scales);
    out->quats = kiln_take(&c, 4 * l->n, sizeof *out->quats);
    out->opacity_logits = kiln_take(&c, l->n, sizeof *out->opacity_logits);
    out->source_rows = kiln_take(&c, l->n, sizeof *out->source_rows);
    if (l->colour) out->sh0 = kiln_take(&c, 3 * l->n, sizeof *out->sh0);
    if (l->colour && harmonics > 0) out->shN = kiln_take(&c, harmonics * l->n, sizeof *out->shN);
    return c.used;
}

/* Planes with colour also serve a request without colour. */
bool kiln_store_find(kiln_draw_store *s, const kiln_draw_chunk_header *l, uint32_t sh_degree, kiln_draw_chunk *out)
{
    kiln_store_planes *p = *chain_of(s, l);
    while (p && (memcmp(p->header.key, l->key, sizeof l->key) != 0 || p->header.n != l->n || (l->colour && !p->header.colour) ||
                 (l->colour && p->sh_degree != sh_degree)))
        p = p->chain;
    if (!p) return false;
    unlink_use(s, p);
    link_newest(s, p);
    (void)kiln_store_lay_out(&p->header, p->sh_degree, p->at, out);
    if (!l->colour) out->sh0 = out->shN = NULL;
    return true;
}

/* Takes memory in which these planes are kept; *out is NULL if there is none. The runner's block is left alone: it is needed for
 * every picture that is compared with a photo. */
static kiln_status find_place(kiln_draw_store *s, const kiln_draw_chunk_header *l, uint32_t sh_degree, uint64_t bytes,
                              kiln_store_planes **out, kiln_error *err)
{
    kiln_status st;
    kiln_store_planes *p = NULL;
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
    kiln_store_planes **chain = chain_of(s, l);
    p->chain = *chain;
    *chain = p;
    link_newest(s, p);
    s->planes_bytes += bytes;
    *out = p;
    return KILN_OK;
done:
    free(p);
    return st;
}

/* Copies the columns of a plane; in one copy if `to` has no other rows. */
static kiln_status copy_plane(const kiln_exec *x, const void *to, uint64_t rows, const void *from, uint64_t n, uint64_t columns,
                              uint64_t first, kiln_error *err)
{
    const uint64_t pieces = rows == n ? 1 : columns, words = rows == n ? columns * n : n;
    for (uint64_t i = 0; i < pieces; i++)
        KILN_TRY(kiln_device_copy_in(x, (float *)(uintptr_t)to + i * rows + first, (const float *)from + i * n,
                                     words * sizeof(float), err));
    return KILN_OK;
}

kiln_status kiln_store_copy_planes(const kiln_draw_store *s, const kiln_draw_chunk *from, const kiln_draw_chunk *to, uint64_t first,
                                   uint32_t sh_degree, kiln_error *err)
{
    const kiln_exec x = kiln_runner_exec(s->runner);
    const uint64_t harmonics = kiln_sh_components(sh_degree);
    const struct {
        const void *to, *from;
        uint64_t columns;
    } planes[] = {{to->means, from->means, 3},    {to->log_scales, from->log_scales, 3},
                  {to->quats, from->quats, 4},    {to->opacity_logits, from->opacity_logits, 1},
                  {to->sh0, from->sh0, 3},        {to->source_rows, from->source_rows, 1},
                  {to->shN, from->shN, harmonics}};
    for (size_t i = 0; i < sizeof planes / sizeof *planes; i++)
        if (planes[i].to && planes[i].from)
            KILN_TRY(copy_plane(&x, planes[i].to, to->n, planes[i].from, from->n, planes[i].columns, first, err));
    return kiln_device_wait(&x, err); /* the caller may change its arrays afterwards */
}

kiln_status kiln_store_load(kiln_draw_store *s, const kiln_draw_chunk_header *l, uint32_t sh_degree, const kiln_draw_chunk *from,
                            char *staging, kiln_draw_chunk *out, kiln_error *err)
{
    const kiln_exec x = kiln_runner_exec(s->runner);
    const uint64_t bytes = kiln_store_lay_out(l, sh_degree, NULL, out);
    kiln_store_planes *p;
    KILN_TRY(kiln_device_wait(&x, err)); /* planes that are evicted may be in use */
    KILN_TRY(find_place(s, l, sh_degree, bytes, &p, err));
    (void)kiln_store_lay_out(l, sh_degree, p ? p->at : staging, out);
    const kiln_status st = kiln_store_settle(&x, kiln_store_copy_planes(s, from, out, 0, sh_degree, err));
    if (st != KILN_OK && p) drop_planes(s, p); /* it may be incomplete */
    return st;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------------ */
static void drop_store_block(kiln_draw_store *s, kiln_store_block *b)
{
    kiln_runner_give(s->runner, b->at, b->bytes);
    *b = (kiln_store_block){NULL, 0};
}

void kiln_store_drop_block(kiln_draw_store *s, kiln_store_block *b) { drop_store_block(s, b); }

void kiln_store_drop_records(kiln_draw_store *s) { drop_store_block(s, &s->records); }

uint64_t kiln_store_most(const kiln_draw_store *s)
{
    return kiln_runner_left(s->runner) + s->planes_bytes + s->records.bytes + s->scratch.bytes + kiln_lanes_bytes(s);
}

void kiln_store_trim_blocks(kiln_draw_store *s, uint64_t scratch_bytes, uint64_t records_bytes)
{
    const uint64_t scratch = s->scratch.bytes > scratch_bytes ? s->scratch.bytes : scratch_bytes;
    const uint64_t records = s->records.bytes > records_bytes ? s->records.bytes : records_bytes;
    const uint64_t most = kiln_store_most(s);
    if (scratch <= most && records <= most - scratch) return;
    drop_store_block(s, &s->scratch);
    drop_store_block(s, &s->records);
}

kiln_status kiln_store_reserve(kiln_draw_store *s, kiln_store_block *b, uint64_t bytes, bool *fits, kiln_error *err)
{
    void *at = NULL;
    *fits = true;
    if (b->at && b->bytes >= bytes) return KILN_OK;
    drop_store_block(s, b);
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

void kiln_store_make_room(kiln_draw_store *s, uint64_t bytes)
{
    evict_planes(s, bytes, false);
    if (kiln_runner_left(s->runner) >= bytes) return;
    drop_store_block(s, &s->scratch);
    drop_store_block(s, &s->records);
}

/* ---- the violation word ---------------------------------------------------------------------------------------------------- */
kiln_status kiln_store_clear_violation(const kiln_exec *x, uint64_t *violation, kiln_error *err)
{
    _Static_assert(KILN_VIOLATION_NONE == UINT64_MAX, "every byte of no violation is 0xff");
    return kiln_device_fill(x, violation, 0xff, sizeof *violation, err);
}

kiln_status kiln_store_read_violation(const kiln_exec *x, const uint64_t *violation, uint64_t *host, kiln_error *err)
{
    KILN_TRY(kiln_device_copy_out(x, host, violation, sizeof *host, err));
    KILN_TRY(kiln_device_wait(x, err));
    return kiln_violation_fail(*host, err);
}

kiln_status kiln_store_settle(const kiln_exec *x, kiln_status st)
{
    const kiln_status waited = st == KILN_OK ? KILN_OK : kiln_device_wait(x, NULL);
    return st == KILN_OK ? waited : st; /* the first failure is the cause */
}

/* ---- a store ----------------------------------------------------------------------------------------------------------- */
static void spare(void *context, uint64_t bytes)
{
    kiln_draw_store *s = context;
    if (kiln_runner_left(s->runner) < bytes) drop_store_block(s, &s->scratch); /* it holds nothing that must be kept */
    evict_planes(s, bytes, false);
    if (kiln_runner_left(s->runner) < bytes && !s->has_drawing) drop_store_block(s, &s->records);
}

static kiln_status make_landing(kiln_draw_store *s, kiln_error *err)
{
    const int device = kiln_runner_exec(s->runner).device;
    if (device < 0) return KILN_OK;
    s->landing = aligned_alloc(KILN_STORE_LANDING, KILN_STORE_LANES * KILN_STORE_LANDING);
    if (!s->landing) return kiln_fail(err, KILN_E_NOMEM, "out of memory for a store on a device");
    s->landing_is_pinned = kiln_device_pin(device, s->landing, KILN_STORE_LANES * KILN_STORE_LANDING);
    return KILN_OK;
}

static void free_landing(kiln_draw_store *s)
{
    if (s->landing_is_pinned) kiln_device_unpin(kiln_runner_exec(s->runner).device, s->landing);
    free(s->landing);
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
    kiln_store_whole_drop(s);
    assert(s->planes_bytes == 0 && !s->newest);
    free(s->whole.starts);
    free(s->whole.loaded);
    drop_store_block(s, &s->records);
    drop_store_block(s, &s->scratch);
    for (int i = 0; i < KILN_STORE_PARTS; i++) kiln_device_mark_free(kiln_runner_exec(s->runner).device, s->marks[i]);
    kiln_lanes_free(s);
    free_landing(s);
    free(s);
}
