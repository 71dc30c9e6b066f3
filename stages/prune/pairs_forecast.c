/* pairs_forecast -- see the header. */
#include "stages/prune/pairs_forecast.h"

#include "base/memory.h"
#include "stages/engine/devices/devices.h"
#include "stages/engine/devices/work.h"
#include "stages/engine/hosts/decisions.h"
#include "stages/prune/judgement.h"

#include <stdio.h>
#include <stdlib.h>

kiln_status kiln_pruning_sizes(const char *text, uint32_t sizes[KILN_PRUNE_SIZES_MAX], uint32_t *n,
                               kiln_error *err)
{
    uint32_t *list = NULL;
    uint64_t count = 0;
    *n = 1;
    sizes[0] = 0; /* the camera's own */
    if (!text) return KILN_OK;
    KILN_TRY(kiln_prune_rows_parse("--sizes", text, &list, &count, err));
    kiln_status st = KILN_OK;
    if (count == 0 || count > KILN_PRUNE_SIZES_MAX || list[0] < 16 || list[count - 1] > 1u << 20)
        st =
            kiln_fail(err, KILN_E_USAGE, "--sizes takes 1 to %d sizes from 16 to 1048576, not '%s'",
                      KILN_PRUNE_SIZES_MAX, text);
    for (uint64_t i = 0; st == KILN_OK && i < count; i++) sizes[i] = list[i];
    if (st == KILN_OK) *n = (uint32_t)count;
    free(list);
    return st;
}

kiln_status kiln_pruning_sizes_check(const char *text, kiln_error *err)
{
    uint32_t sizes[KILN_PRUNE_SIZES_MAX], n;
    return kiln_pruning_sizes(text, sizes, &n, err);
}

static uint32_t at_least_one(double v) { return v < 1 ? 1 : (uint32_t)(v + 0.5); }

/* The same view with its longer side `size` pixels long. */
static kiln_camera resized(const kiln_camera *c, uint32_t size)
{
    kiln_camera out = *c;
    if (size == 0) return out;
    const double s = (double)size / (c->width > c->height ? c->width : c->height);
    out.width = at_least_one(c->width * s);
    out.height = at_least_one(c->height * s);
    const double sx = (double)out.width / c->width, sy = (double)out.height / c->height;
    out.fx *= sx;
    out.cx *= sx;
    out.fy *= sy;
    out.cy *= sy;
    return out;
}

static kiln_status make_views(kiln_run *r, kiln_pruning *p, kiln_error *err)
{
    const kiln_view_options request = {.near_text = "profile"}; /* inria, as the scene says */
    uint32_t sizes[KILN_PRUNE_SIZES_MAX], n_sizes;
    KILN_TRY(kiln_pruning_read_cameras(r, p, err));
    KILN_TRY(kiln_pruning_sizes(p->o->sizes, sizes, &n_sizes, err));
    const uint32_t n = kiln_pruning_forecast_cameras(p->o, p->n_cameras);
    p->n_views = n * n_sizes;
    KILN_TRY(KILN_ALLOC(&p->views, p->n_views, "views", err));
    KILN_TRY(KILN_ALLOC(&p->requests, p->n_views, "views", err));
    if (!p->keys.layer) KILN_TRY(kiln_chunk_keys_make(p->input, &p->keys, err));
    for (uint32_t i = 0; i < p->n_views; i++) {
        /* evenly chosen */
        const uint32_t camera = (uint32_t)((uint64_t)(i / n_sizes) * p->n_cameras / n);
        const kiln_camera *c = &p->cameras[camera];
        const kiln_camera scaled = resized(c, sizes[i % n_sizes]);
        p->views[i] =
            (kiln_prune_view){.camera = c->name, .width = scaled.width, .height = scaled.height};
        const bool weighed = sizes[0] == 0 && p->judgement.weighed && p->judgement.weighed[camera];
        if (weighed) p->views[i].would_touch = &p->judgement.weights[camera];
        KILN_TRY(kiln_view_request_init(&p->requests[i], &request, &p->scene, &scaled, err));
    }
    return KILN_OK;
}

/* shared: what all views get, all merges, marks and the rows to drop. */
static kiln_status plan_view(kiln_run *r, const kiln_pruning *p, uint32_t i,
                             const kiln_buffer *shared, kiln_unit *u, kiln_error *err)
{
    kiln_prune_unit head = kiln_pruning_head(p, KILN_PRUNE_PAIRS);
    kiln_buffer payload = {0};
    head.request = p->requests[i];
    head.n_rows = p->n_rows;
    head.n_merges = p->n_merges;
    /* in no key: it says what the rules and the input say, sooner */
    head.n_kept = 2 * (uint64_t)p->input->n_chunks;
    head.mark_bytes = p->marks ? kiln_pruning_mark_bytes(p) : 0;
    head.stray_bytes = p->stray_bytes;
    if (p->filters.filters.n) head.text_bytes = sizeof p->filters;
    kiln_view_chunks blocks;
    KILN_TRY(kiln_view_chunks_of_layer(p->input, &p->requests[i], &blocks, err));
    kiln_hasher *h = kiln_run_key_bare(r, "pairs");
    kiln_key_hash(h, "view", kiln_view_request_table_key(&p->requests[i], &p->keys, &blocks));
    kiln_prune_rules_key(h, &p->rules);
    kiln_pruning_key_filters(h, p);
    for (uint32_t b = 0; b < blocks.n; b++)
        kiln_pruning_key_planes(h, p, blocks.numbers[b], (const char *const[]){"spacing2"}, 1);
    kiln_view_chunks_release(&blocks);
    kiln_key_bytes(h, "rows", p->rows, p->n_rows * sizeof *p->rows);
    kiln_key_bytes(h, "merges", p->merges, p->n_merges * sizeof *p->merges);
    if (p->marks) kiln_key_bytes(h, "asked", p->marks, head.mark_bytes);
    if (p->strays) kiln_key_bytes(h, "strays", p->strays, p->stray_bytes);
    (void)snprintf(u->name, sizeof u->name, "pairs of %.120s", p->views[i].camera);
    u->key = kiln_key_end(h);
    u->cost = 1;
    u->n_outputs = 1;
    /* a forecast: the layer is whole without it, and every shard prints it */
    u->optional = u->planning = true;
    u->shared_payload = shared->data;
    u->shared_payload_bytes = shared->size;
    u->ram = head.ram = kiln_prune_pairs_ram(&p->size, kiln_view_tiles_y(&p->requests[i].view)) +
                        kiln_pruning_filters_ram(p) + kiln_shared_payload_ram(shared->size);
    u->ram_cache = p->cache + kiln_prune_ahead_ram(p->input);
    KILN_TRY(kiln_buffer_put(&payload, &head, sizeof head, err));
    u->payload = payload.data;
    u->payload_bytes = payload.size;
    return KILN_OK;
}

/* What follows the head in a payload, as read_request of prune_units.c expects it. */
static kiln_status put_lists(const kiln_pruning *p, kiln_buffer *b, kiln_error *err)
{
    if (p->n_merges) KILN_TRY(kiln_buffer_put(b, p->merges, p->n_merges * sizeof *p->merges, err));
    if (p->n_rows) KILN_TRY(kiln_buffer_put(b, p->rows, p->n_rows * sizeof *p->rows, err));
    KILN_TRY(kiln_buffer_put(b, p->kept, 2 * (uint64_t)p->input->n_chunks * sizeof *p->kept, err));
    if (p->marks) KILN_TRY(kiln_buffer_put(b, p->marks, kiln_pruning_mark_bytes(p), err));
    if (p->strays) KILN_TRY(kiln_buffer_put(b, p->strays, p->stray_bytes, err));
    return p->filters.filters.n ? kiln_buffer_put(b, &p->filters, sizeof p->filters, err) : KILN_OK;
}

/* Is counting long enough for a GPU that nobody has named? A thread of the CPU counts a row of a
 * view in 0.13 microseconds (DESIGN.md). The worker of the GPU decodes the planes once more, which
 * takes about as long as the GPU does to be ready. */
static bool is_long(const kiln_pruning *p)
{
    const double cpu_s = 0.13e-6 * (double)p->input->count * p->n_views;
    return kiln_run_gpu_pays(cpu_s / 2);
}

/* Of one thread; the same on all hosts. */
static double pairs_s(const kiln_pruning *p)
{
    return kiln_work_count((double)p->input->count * p->n_views);
}

kiln_status kiln_pruning_predict(kiln_run *r, kiln_pruning *p, kiln_error *err)
{
    kiln_buffer shared = {0};
    kiln_unit *units = NULL;
    kiln_status st;
    KILN_GO(make_views(r, p, err));
    KILN_GO(KILN_ALLOC(&units, p->n_views, "views", err));
    KILN_GO(put_lists(p, &shared, err));
    for (uint32_t i = 0; i < p->n_views; i++) KILN_GO(plan_view(r, p, i, &shared, &units[i], err));
    kiln_run_computes(r, kiln_run_named_kind(r) || is_long(p));
    kiln_run_shares_planning(r, kiln_work_is_round(pairs_s(p)));
    KILN_GO(kiln_run_units(r, "counting pairs", units, p->n_views, err));
    for (uint32_t i = 0; i < p->n_views; i++) {
        p->views[i].missing = units[i].quarantined;
        if (units[i].quarantined) continue;
        KILN_GO(kiln_unit_struct(r, &units[i], "pairs", &p->views[i].count,
                                 sizeof p->views[i].count, err));
    }
done:
    kiln_pruning_units_free(units, p->n_views);
    kiln_buffer_release(&shared);
    return st;
}
