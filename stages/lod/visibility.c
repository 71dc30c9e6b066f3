/* The parent's side of visibility: units, their keys and memory, the layer. */
#include "stages/lod/visibility.h"

#include "base/memory.h"
#include "base/minmax.h"
#include "kernels/draw/draw_size.h"
#include "stages/engine/parent/run_layers.h"
#include "stages/engine/devices/work.h"
#include "stages/engine/hosts/decisions.h"
#include "stages/frame/ahead.h"
#include "stages/lod/visibility_math.h"
#include "stages/lod/visibility_units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLABS_MOST = 64, /* a chunk is read once for each slab that it reaches into */
    /* bytes of the planes that are drawn: means, log_scales, quats, opacity_logits, source_row */
    DRAWN_ROW = 4 * 12,
    LARGEST_ROW = 4 * 4,   /* of the largest of them */
    SUM = 8,               /* of shares */
    PLANE_ENTRY = 1 << 13, /* what a cache of planes takes for one, beside its bytes */
};

/* Of a row for a view, on one thread, about. */
#define PROJECTING_S 60e-9

typedef struct {
    kiln_run *run;
    const kiln_layer *baked;
    const kiln_view_request *views;
    uint32_t n_views, n_groups;
    uint64_t largest; /* rows of the largest chunk */
    kiln_unit *shares, *seen;
    kiln_shares_unit *of_shares; /* [n_groups] */
    char *of_seen;               /* [n_chunks] kiln_seen_unit and kiln_hash [n_groups] */
} making;

static void making_release(making *k)
{
    if (k->shares) kiln_units_release(k->shares, k->n_groups);
    if (k->seen) kiln_units_release(k->seen, k->baked->n_chunks);
    free(k->shares);
    free(k->seen);
    free(k->of_shares);
    free(k->of_seen);
}

static bool may_see(const kiln_view_request *views, uint32_t n, const kiln_chunk *c)
{
    for (uint32_t v = 0; v < n; v++)
        if (kiln_view_request_may_see(&views[v], c)) return true;
    return false;
}

/* ---- memory ---------------------------------------------------------------------------------- */
static uint64_t rows_seen(const making *k, const kiln_view_request *views, uint32_t n)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < k->baked->n_chunks; i++)
        if (may_see(views, n, &k->baked->chunks[i])) rows += k->baked->chunks[i].count;
    return rows;
}

/* What a picture takes, of at most `capacity` Gaussians at a time; 0: of all that it may have. */
static uint64_t drawing_ram(const making *k, const kiln_view_request *v, uint64_t rows,
                            uint64_t capacity)
{
    const kiln_draw_shares_size size = {.view = &v->view,
                                        .rows = rows,
                                        .capacity = capacity,
                                        .largest_chunk = k->largest,
                                        .share_bytes = KILN_DRAW_SHARE_BYTES,
                                        .n_chunks = k->baked->n_chunks};
    return kiln_draw_shares_bytes(&size);
}

/* Rows that each of a unit's views may see, and that any of them may. */
typedef struct {
    uint64_t of[KILN_SHARES_VIEWS], all;
} seen_rows;

static seen_rows count_seen_rows(const making *k, const kiln_shares_unit *u)
{
    seen_rows rows = {.all = rows_seen(k, u->views, u->n_views)};
    for (uint32_t v = 0; v < u->n_views; v++) rows.of[v] = rows_seen(k, &u->views[v], 1);
    return rows;
}

/* With pictures in slabs of `capacity`; 0: whole. A chunk's planes are decoded, sums are kept for
 * all rows, then lent chunk by chunk.
 */
static uint64_t shares_ram(const making *k, const kiln_shares_unit *u, const seen_rows *rows,
                           uint64_t capacity)
{
    const uint64_t putting = kiln_outputs_lent_ram(sizeof(float) * rows->all);
    uint64_t drawing = 0;
    for (uint32_t v = 0; v < u->n_views; v++)
        drawing = kiln_max_u64(drawing, drawing_ram(k, &u->views[v], rows->of[v], capacity));
    return k->largest * (DRAWN_ROW + 2 * LARGEST_ROW) + SUM * rows->all +
           kiln_max_u64(drawing, putting) + KILN_CONNECTION_RAM;
}

/* Whole pictures if a unit may take so much, else the largest slabs for which there is room. */
static void size_shares(const making *k, const seen_rows *rows, kiln_shares_unit *u)
{
    const uint64_t may = kiln_run_unit_ram(k->run);
    u->ram = shares_ram(k, u, rows, 0);
    if (u->ram <= may) return;
    uint64_t low = rows->all / SLABS_MOST + 1, high = rows->all;
    while (high > low + 1) {
        const uint64_t middle = low + (high - low) / 2;
        *(shares_ram(k, u, rows, middle) <= may ? &low : &high) = middle;
    }
    const uint64_t ram = shares_ram(k, u, rows, low);
    if (ram >= u->ram) return;
    u->capacity = low;
    u->ram = ram;
}

static uint64_t seen_ram(const kiln_chunk *c)
{
    enum { ROW = 11 * 4 + 3 * 8 + 4 + sizeof(kiln_splat2d), PROJECTING = 64 };
    return c->count * (ROW + PROJECTING) + kiln_read_ram(LARGEST_ROW * c->count) +
           2 * kiln_outputs_ram(sizeof(float) * c->count) + KILN_CONNECTION_RAM + (1u << 20);
}

/* ---- keys ------------------------------------------------------------------------------------ */
static const char *const geometry[] = {"means", "log_scales", "quats", "opacity_logits",
                                       "source_row"};
enum { GEOMETRY = sizeof geometry / sizeof *geometry, PROJECTED = GEOMETRY - 1 };

static void key_view(kiln_hasher *h, const kiln_view_request *v)
{
    KILN_KEY_LISTS(kiln_view_request, 176);
    kiln_key_bytes(h, "view", &v->view, sizeof v->view); /* near_m is in it */
    kiln_key_text(h, "profile", kiln_profiles[v->profile].name);
    kiln_key_u64(h, "antialiased", v->antialiased);
}

static void key_chunk(kiln_hasher *h, const kiln_chunk *c, int planes)
{
    for (int p = 0; p < planes; p++) kiln_key_plane(h, c, geometry[p]);
}

/* The views, and for each view the chunks that it may see. */
static kiln_hash shares_key(const making *k, const kiln_shares_unit *u)
{
    kiln_hasher *h = kiln_run_key_bare(k->run, "shares");
    for (uint32_t v = 0; v < u->n_views; v++) key_view(h, &u->views[v]);
    for (uint32_t i = 0; i < k->baked->n_chunks; i++) {
        uint64_t seen_by = 0;
        for (uint32_t v = 0; v < u->n_views; v++)
            seen_by |= (uint64_t)kiln_view_request_may_see(&u->views[v], &k->baked->chunks[i]) << v;
        if (!seen_by) continue;
        kiln_key_u64(h, "seen by", seen_by);
        key_chunk(h, &k->baked->chunks[i], GEOMETRY);
    }
    return kiln_key_end(h);
}

static kiln_hash seen_key(const making *k, const kiln_chunk *c, const kiln_hash *shares)
{
    kiln_hasher *h = kiln_run_key_bare(k->run, "seen");
    /* those that see nothing of it have a distance */
    for (uint32_t v = 0; v < k->n_views; v++) key_view(h, &k->views[v]);
    key_chunk(h, c, PROJECTED);
    for (uint32_t g = 0; g < k->n_groups; g++)
        if (!kiln_hash_is_zero(shares[g])) kiln_key_hash(h, "shares", shares[g]);
    return kiln_key_end(h);
}

/* ---- shares ---------------------------------------------------------------------------------- */
/* Decoded planes, and what decodes them ahead. */
static uint64_t kept_ram(const making *k)
{
    return k->baked->count * DRAWN_ROW + (uint64_t)k->baked->n_chunks * GEOMETRY * PLANE_ENTRY +
           KILN_AHEAD_THREADS * (kiln_ahead_reader_bytes(k->baked, false) + k->largest * DRAWN_ROW);
}

/* A unit has neighbours in the order of names, which often see the same: fewer rows for each, and a
 * change leaves more units alone.
 */
static void plan_group(making *k, uint32_t g)
{
    kiln_shares_unit *u = &k->of_shares[g];
    uint64_t pixels = 0;
    *u = (kiln_shares_unit){.unit = KILN_LOD_SHARES, .baked = k->baked->digest};
    const uint32_t first = (uint32_t)((uint64_t)g * k->n_views / k->n_groups);
    const uint32_t end = (uint32_t)(((uint64_t)g + 1) * k->n_views / k->n_groups);
    for (uint32_t v = first; v < end; v++) {
        pixels += (uint64_t)k->views[v].view.width * k->views[v].view.height;
        u->views[u->n_views++] = k->views[v];
    }
    const seen_rows rows = count_seen_rows(k, u);
    size_shares(k, &rows, u);
    k->shares[g] = (kiln_unit){.key = shares_key(k, u),
                               .payload = u,
                               .payload_bytes = sizeof *u,
                               .cost = 4 * rows.all + pixels,
                               .ram = u->ram,
                               .planning = true,
                               .ram_cache = kept_ram(k)};
    (void)snprintf(k->shares[g].name, sizeof k->shares[g].name, "views %u of %u", g + 1,
                   k->n_groups);
}

/* Units are planning ones: where they take little, a round over hosts would cost more. */
static void expect_work(const making *k)
{
    double cpu_s = kiln_work_decode((double)k->baked->count);
    for (uint32_t v = 0; v < k->n_views; v++) {
        const double rows = (double)rows_seen(k, &k->views[v], 1);
        cpu_s += kiln_work_picture(rows, (double)k->views[v].view.width * k->views[v].view.height,
                                   4 * rows, false);
    }
    kiln_run_expect_work(k->run, cpu_s);
    kiln_run_shares_planning(k->run, kiln_work_is_round(cpu_s));
}

static kiln_status draw_views(making *k, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&k->shares, k->n_groups, "the units of visibility", err));
    KILN_TRY(KILN_ALLOC(&k->of_shares, k->n_groups, "the units of visibility", err));
    for (uint32_t g = 0; g < k->n_groups; g++) plan_group(k, g);
    expect_work(k);
    const kiln_status st =
        kiln_run_units(k->run, "looking through cameras", k->shares, k->n_groups, err);
    kiln_run_shares_planning(k->run, false);
    return st;
}

/* ---- chunks ---------------------------------------------------------------------------------- */
static int outputs_by_name(const void *a, const void *b)
{
    const kiln_unit_output *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static kiln_seen_unit *payload_of(const making *k, uint32_t chunk)
{
    const size_t each = sizeof(kiln_seen_unit) + k->n_groups * sizeof(kiln_hash);
    return (kiln_seen_unit *)(void *)(k->of_seen + chunk * each);
}

/* A chunk that a view may see has an output of the group that has the view. */
static kiln_status hand_over(making *k, uint32_t g, kiln_error *err)
{
    const kiln_unit_result *result = &k->shares[g].result;
    kiln_unit_output wanted = {.segment = 0};
    kiln_status st = KILN_OK;
    for (uint32_t i = 0; i < k->baked->n_chunks; i++) {
        const kiln_chunk *c = &k->baked->chunks[i];
        kiln_hash *shares = (kiln_hash *)(payload_of(k, i) + 1);
        if (!may_see(k->of_shares[g].views, k->of_shares[g].n_views, c)) continue;
        memcpy(wanted.name, c->name, sizeof wanted.name);
        const kiln_unit_output *found =
            bsearch(&wanted, result->outputs, result->n, sizeof *found, outputs_by_name);
        if (!found || found->segment != 0 || found->raw_bytes != c->count * sizeof(float))
            KILN_GO(kiln_fail(err, KILN_E_IO, "it has no shares of the %llu rows of chunk '%s'",
                              (unsigned long long)c->count, c->name));
        shares[g] = found->hash;
    }
done:
    return kiln_unit_refuse(k->run, &k->shares[g], st, err);
}

/* Looks at the shares that were stored before, because a unit that reads them has failed. The units
 * that hold what no picture gives are refused; none: the failure stays. */
static kiln_status blame_shares(const making *k, kiln_error *err)
{
    const kiln_error failure = *err;
    for (uint32_t g = 0; g < k->n_groups; g++) {
        const kiln_unit *u = &k->shares[g];
        kiln_status st = KILN_OK;
        for (uint32_t i = 0; i < u->result.n && st == KILN_OK && !kiln_unit_is_new(u); i++) {
            void *shares;
            uint64_t bytes;
            st = kiln_unit_data(k->run, u, u->result.outputs[i].name, &shares, &bytes, err);
            if (st != KILN_OK) break;
            st = kiln_shares_check(shares, bytes / sizeof(float), err);
            free(shares);
        }
        KILN_TRY(kiln_unit_pass(k->run, u, kiln_unit_refuse(k->run, u, st, err)));
    }
    KILN_TRY(kiln_run_refused(k->run, err));
    *err = failure;
    return failure.status;
}

static kiln_status divide(making *k, kiln_error *err)
{
    const size_t each = sizeof(kiln_seen_unit) + k->n_groups * sizeof(kiln_hash),
                 shared = k->n_views * sizeof *k->views;
    const uint32_t n = k->baked->n_chunks;
    KILN_TRY(kiln_alloc((void **)&k->of_seen, n, each, "the units of visibility", err));
    KILN_TRY(KILN_ALLOC(&k->seen, n, "the units of visibility", err));
    for (uint32_t g = 0; g < k->n_groups; g++) KILN_TRY(hand_over(k, g, err));
    for (uint32_t i = 0; i < n; i++) {
        const kiln_chunk *c = &k->baked->chunks[i];
        kiln_seen_unit *u = payload_of(k, i);
        u->unit = KILN_LOD_SEEN;
        u->chunk = i;
        u->n_groups = k->n_groups;
        u->n_views = k->n_views;
        u->baked = k->baked->digest;
        u->rows = c->count;
        k->seen[i] = (kiln_unit){.key = seen_key(k, c, (const kiln_hash *)(u + 1)),
                                 .payload = u,
                                 .payload_bytes = each,
                                 .shared_payload = k->views,
                                 .shared_payload_bytes = shared,
                                 .cost = c->count,
                                 .ram = seen_ram(c) + kiln_shared_payload_ram(shared),
                                 .planning = true};
        (void)snprintf(k->seen[i].name, sizeof k->seen[i].name, "visibility of %s", c->name);
    }
    kiln_run_shares_planning(
        k->run, kiln_work_is_round(PROJECTING_S * (double)k->baked->count * k->n_views));
    const kiln_status st = kiln_run_units(k->run, "visibility", k->seen, n, err);
    kiln_run_shares_planning(k->run, false);
    return st == KILN_E_IO ? blame_shares(k, err) : st;
}

/* ---- layer ----------------------------------------------------------------------------------- */
/* Leaves read both planes as what rows weigh. What was stored before may be anything of its
 * size. */
static kiln_status check_steps(const making *k, const kiln_unit *u, const char *plane,
                               int (*is_step)(float), kiln_error *err)
{
    void *data;
    uint64_t bytes;
    kiln_status st = KILN_OK;
    if (kiln_unit_is_new(u)) return KILN_OK;
    KILN_TRY(kiln_unit_data(k->run, u, plane, &data, &bytes, err));
    const float *values = data;
    for (uint64_t i = 0; i < bytes / sizeof *values && st == KILN_OK; i++)
        if (!is_step(values[i]))
            st = kiln_fail(err, KILN_E_IO, "the %s of row %llu is %g, which is none of its steps",
                           plane, (unsigned long long)i, (double)values[i]);
    free(data);
    return st;
}

static kiln_status fill_chunk(const making *k, const kiln_unit *u, kiln_chunk *c, uint64_t *hidden,
                              kiln_error *err)
{
    json_t *counters;
    uint64_t rows = 0;
    KILN_TRY(
        kiln_chunk_add_output(c, &u->result, "visibility", "visibility", KILN_TYPE_F32, 1, err));
    KILN_TRY(check_steps(k, u, "visibility", kiln_seen_is_step, err));
    KILN_TRY(check_steps(k, u, "prominence", kiln_prominence_is_step, err));
    KILN_TRY(
        kiln_chunk_add_output(c, &u->result, "prominence", "prominence", KILN_TYPE_F32, 1, err));
    KILN_TRY(kiln_unit_counters(k->run, u, &counters, err));
    const kiln_status st = kiln_unit_count(k->run, u, counters, "hidden", &rows, err);
    json_decref(counters);
    KILN_TRY(st);
    if (rows > c->count)
        return kiln_fail(err, KILN_E_IO, "it counts more hidden rows than the chunk has");
    *hidden += rows;
    return KILN_OK;
}

static kiln_status fill_layer(const making *k, kiln_layer *l, uint64_t *hidden, kiln_error *err)
{
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        const kiln_unit *u = &k->seen[i];
        kiln_chunk *c = &l->chunks[i];
        memcpy(c->name, k->baked->chunks[i].name, sizeof c->name);
        memcpy(c->parent, k->baked->chunks[i].parent, sizeof c->parent);
        c->count = k->baked->chunks[i].count;
        l->count += c->count;
        const kiln_status st = fill_chunk(k, u, c, hidden, err);
        KILN_TRY(kiln_unit_pass(k->run, u, kiln_unit_refuse(k->run, u, st, err)));
    }
    return kiln_run_refused(k->run, err);
}

kiln_status kiln_lod_visibility(kiln_run *r, const kiln_layer *baked,
                                const kiln_view_request *views, uint32_t n_views, kiln_layer **out,
                                uint64_t *hidden, kiln_error *err)
{
    kiln_status st;
    making k = {.run = r, .baked = baked, .views = views, .n_views = n_views};
    *out = NULL;
    *hidden = 0;
    if (n_views == 0 || baked->n_chunks == 0) return KILN_OK;
    k.n_groups = (n_views + KILN_SHARES_VIEWS - 1) / KILN_SHARES_VIEWS;
    for (uint32_t i = 0; i < baked->n_chunks; i++)
        k.largest = kiln_max_u64(k.largest, baked->chunks[i].count);
    KILN_GO(draw_views(&k, err));
    kiln_run_on_cpu(r, true); /* projecting a chunk alone is not worth the copies */
    kiln_run_serial(r, true);
    st = divide(&k, err);
    kiln_run_serial(r, false);
    kiln_run_on_cpu(r, false);
    if (st != KILN_OK) goto done;
    KILN_GO(kiln_layer_new(KILN_LAYER_visibility, 0, baked->n_chunks, out, err));
    KILN_GO(fill_layer(&k, *out, hidden, err));
done:
    making_release(&k);
    return st;
}
