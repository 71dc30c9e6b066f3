/* draw_gather -- see draw_gather.h. */
#include "kernels/draw/draw_gather.h"

#include "base/memory.h"
#include "kernels/device.h"
#include "kernels/draw/planes.h"
#include "kernels/draw/settle.h"
#include "kernels/violation.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(kiln_gather_numbers) <= KILN_STORE_NUMBERS, "they land in the first bytes");

/* ---- what it consists of --------------------------------------------------------------------- */
static kiln_status read_headers(kiln_draw_gather *v, kiln_error *err)
{
    const kiln_draw_scene *s = v->scene;
    KILN_TRY(KILN_ALLOC(&v->headers, s->n_chunks, "chunks in view", err));
    for (uint32_t i = 0; i < s->n_chunks; i++) {
        kiln_draw_chunk_header *l = &v->headers[i];
        KILN_TRY(s->header(s->context, i, l, err));
        if (l->n == 0) l->hidden = true;
        if (l->hidden) continue;
        v->rows += l->n;
        if (l->n > v->largest.n) v->largest = *l;
    }
    v->all = kiln_whole_header(v->headers, s->n_chunks);
    v->all.colour = v->largest.colour; /* hidden chunks need not set it */
    return KILN_OK;
}

/* Sets v->whole if the scene is, or can be, on the device in one piece; the arrays then have a
 * capacity of all rows. */
static kiln_status try_whole(kiln_draw_gather *v, kiln_error *err)
{
    const kiln_draw_scene *s = v->scene;
    const kiln_draw_chunk_header of_chunks = v->largest;
    const kiln_whole_scene whole = {&v->all, v->headers, s->n_chunks, s->sh_degree};
    uint64_t beside;
    if (s->window || s->apart || v->rows == 0 || v->all.n > UINT32_MAX - 1) return KILN_OK;
    v->whole = true;
    v->largest = v->all;
    KILN_TRY(v->bytes(v, v->all.n, &beside, err));
    KILN_TRY(kiln_store_whole_get(v->store, &whole, beside, &v->whole, err));
    if (!v->whole) v->largest = of_chunks;
    return KILN_OK;
}

kiln_status kiln_gather_open(kiln_draw_gather *v, bool *may, kiln_error *err)
{
    *may = false;
    KILN_TRY(read_headers(v, err));
    *may = v->scene->window || kiln_store_may(v->store, v->rows);
    return *may ? try_whole(v, err) : KILN_OK;
}

void kiln_gather_close(kiln_draw_gather *v)
{
    free(v->headers);
    v->headers = NULL;
}

/* ---- device memory --------------------------------------------------------------------------- */
static kiln_project_args project_of(const kiln_draw_gather *v, const kiln_draw_chunk *c,
                                    const kiln_gathered *g)
{
    const kiln_draw_scene *s = v->scene;
    kiln_project_args a = {.n = c->n,
                           .means = c->means,
                           .log_scales = c->log_scales,
                           .quats = c->quats,
                           .opacity_logits = c->opacity_logits,
                           .sh0 = c->sh0,
                           .shN = c->shN,
                           .sh_halves =
                               v->whole && s->fast ? kiln_store_whole(v->store)->halves : NULL,
                           .sh_degree = c->sh0 ? s->sh_degree : 0,
                           .half_sh = s->fast,
                           .view = s->view,
                           .cut = s->cut,
                           .profile = s->profile,
                           .antialiased = s->antialiased,
                           .splats = v->whole ? g->splats : g->of_chunk,
                           .n_visible = v->whole ? g->total : g->visible};
    if (v->whole && !v->counts) {
        a.source_rows = c->source_rows;
        a.depths = g->depths;
        a.rows = g->rows;
    }
    return a;
}

static kiln_visible_window_args window_of(const kiln_draw_gather *v, uint64_t n,
                                          const uint32_t *source_rows, const kiln_gathered *g)
{
    kiln_visible_window_args a = {.n = n,
                                  .splats = g->of_chunk,
                                  .n_visible = g->visible,
                                  .source_rows = source_rows,
                                  .window = v->scene->window->visible,
                                  .kept = g->kept,
                                  .n_kept = g->n_kept};
    a.window.live = g->live;
    return a;
}

static uint64_t live_sums(const kiln_draw_window *w)
{
    return ((uint64_t)w->visible.tiles_x + 1) * ((uint64_t)w->visible.tiles_y + 1);
}

kiln_status kiln_gather_add_work(const kiln_draw_gather *v, kiln_op_id op, const void *args,
                                 kiln_gathered *g, kiln_error *err)
{
    size_t bytes = v->work_bytes;
    if (bytes == 0) KILN_TRY(kiln_runner_work(kiln_store_runner(v->store), op, args, &bytes, err));
    if (bytes > g->work_bytes) g->work_bytes = bytes;
    return KILN_OK;
}

void kiln_gather_take_work(kiln_carve *c, kiln_gathered *g)
{
    g->work = kiln_take(c, g->work_bytes, 1);
}

/* Takes the arrays that only a slab needs. */
static kiln_status lay_out_window(const kiln_draw_gather *v, kiln_carve *c, kiln_gathered *g,
                                  kiln_error *err)
{
    g->kept = kiln_take(c, v->largest.n, sizeof *g->kept);
    g->n_kept = kiln_take(c, 1, sizeof *g->n_kept);
    g->live = kiln_take(c, live_sums(v->scene->window), sizeof *g->live);
    const kiln_visible_window_args a = window_of(v, v->largest.n, NULL, g);
    return kiln_gather_add_work(v, KILN_OP_visible_window, &a, g, err);
}

kiln_status kiln_gather_lay_out(const kiln_draw_gather *v, kiln_carve *c, uint64_t capacity,
                                kiln_gathered *g, kiln_error *err)
{
    kiln_draw_chunk planes;
    const uint64_t largest = kiln_planes_lay_out(&v->largest, v->scene->sh_degree, NULL, &planes);
    *g = (kiln_gathered){.capacity = capacity};
    g->numbers = kiln_take(c, 1, sizeof *g->numbers);
    if (g->numbers) {
        g->violation = &g->numbers->violation;
        g->total = &g->numbers->total;
        g->list_stats = g->numbers->list_stats;
    }
    g->splats = kiln_take(c, capacity, sizeof *g->splats);
    g->depths = kiln_take(c, capacity, sizeof *g->depths);
    g->rows = kiln_take(c, capacity, sizeof *g->rows);
    if (!v->whole) {
        g->visible = kiln_take(c, 1, sizeof *g->visible);
        g->staging = kiln_take(c, largest, 1);
        g->of_chunk = kiln_take(c, v->largest.n, sizeof *g->of_chunk);
        g->chunks = kiln_take(c, capacity, sizeof *g->chunks);
    }
    if (v->counts) g->boxes = kiln_take(c, v->scene->n_chunks, sizeof *g->boxes);
    const kiln_project_args project = project_of(v, &planes, g);
    KILN_TRY(kiln_gather_add_work(v, KILN_OP_project, &project, g, err));
    return v->scene->window ? lay_out_window(v, c, g, err) : KILN_OK;
}

/* ---- planes ---------------------------------------------------------------------------------- */
static kiln_status ask_for(const kiln_draw_gather *v, uint32_t i, kiln_draw_chunk *host,
                           kiln_error *err)
{
    const kiln_draw_chunk_header *l = &v->headers[i];
    *host = (kiln_draw_chunk){0};
    KILN_TRY(v->scene->chunk(v->scene->context, i, host, err));
    if (host->n == l->n && (host->sh0 != NULL) == l->colour) return KILN_OK;
    return kiln_fail(err, KILN_E_BUG, "chunk %u has %llu rows%s, but its header claims %llu", i,
                     (unsigned long long)host->n, host->sh0 ? " with colour" : "",
                     (unsigned long long)l->n);
}

static kiln_status find_or_load_planes(const kiln_draw_gather *v, const kiln_gathered *g,
                                       uint32_t i, kiln_draw_chunk *out, kiln_error *err)
{
    const kiln_draw_chunk_header *l = &v->headers[i];
    kiln_draw_chunk host;
    if (kiln_store_find(v->store, l, v->scene->sh_degree, out)) return KILN_OK;
    KILN_TRY(ask_for(v, i, &host, err));
    return kiln_store_load(v->store, l, v->scene->sh_degree, &host, g->staging, out, err);
}

/* Loads the chunks that may be visible and are not loaded yet. *out: the planes of the whole
 * scene. */
static kiln_status planes_of_whole(const kiln_draw_gather *v, kiln_draw_chunk *out, kiln_error *err)
{
    const kiln_whole *w = kiln_store_whole(v->store);
    kiln_draw_chunk host;
    for (uint32_t i = 0; i < v->scene->n_chunks; i++) {
        if (v->headers[i].hidden || kiln_whole_has(w, i, v->headers[i].colour)) continue;
        KILN_TRY(ask_for(v, i, &host, err));
        KILN_TRY(kiln_store_whole_load(v->store, i, &host, err));
    }
    *out = w->planes;
    if (!v->largest.colour) out->sh0 = out->shN = NULL;
    return KILN_OK;
}

/* ---- gathering ------------------------------------------------------------------------------- */
kiln_status kiln_gather_launch(const kiln_draw_gather *v, const kiln_gathered *g, kiln_op_id op,
                               const void *args, kiln_error *err)
{
    return kiln_runner_launch(kiln_store_runner(v->store), op, args, g->work, g->work_bytes,
                              g->violation, err);
}

/* Projects the planes c of chunk i (with v->whole of all chunks, i = 0) and appends the visible
 * Gaussians. A projection of all chunks writes them to their place itself. */
static kiln_status gather_from(const kiln_draw_gather *v, const kiln_gathered *g,
                               const kiln_draw_chunk *c, uint32_t i, kiln_error *err)
{
    kiln_project_args project = project_of(v, c, g);
    if (v->counts) project.box_pairs = g->boxes + i;
    KILN_TRY(kiln_gather_launch(v, g, KILN_OP_project, &project, err));
    if (v->whole) return KILN_OK;
    const kiln_visible_gather_args gather = {.n = c->n,
                                             .splats = v->scene->window ? g->kept : g->of_chunk,
                                             .n_visible = v->scene->window ? g->n_kept : g->visible,
                                             .source_rows = c->source_rows,
                                             .chunk = i,
                                             .capacity = g->capacity,
                                             .total = g->total,
                                             .all = g->splats,
                                             .depths = g->depths,
                                             .rows = g->rows,
                                             .chunks = g->chunks};
    if (v->scene->window) {
        const kiln_visible_window_args window = window_of(v, c->n, c->source_rows, g);
        KILN_TRY(kiln_gather_launch(v, g, KILN_OP_visible_window, &window, err));
    }
    return kiln_gather_launch(v, g, KILN_OP_visible_gather, &gather, err);
}

static kiln_status gather_chunks(const kiln_draw_gather *v, const kiln_gathered *g, kiln_error *err)
{
    kiln_draw_chunk c;
    if (v->whole) {
        KILN_TRY(planes_of_whole(v, &c, err));
        if (v->scene->fast) KILN_TRY(kiln_store_whole_halve(v->store, g->violation, err));
        return gather_from(v, g, &c, 0, err);
    }
    for (uint32_t i = 0; i < v->scene->n_chunks; i++) {
        if (v->headers[i].hidden) continue;
        KILN_TRY(find_or_load_planes(v, g, i, &c, err));
        KILN_TRY(gather_from(v, g, &c, i, err));
    }
    return KILN_OK;
}

kiln_status kiln_gather_run(const kiln_draw_gather *v, const kiln_gathered *g, kiln_error *err)
{
    const kiln_draw_window *const w = v->scene->window;
    KILN_TRY(kiln_violation_clear(&v->x, g->violation, err));
    KILN_TRY(kiln_device_fill(&v->x, g->total, 0, sizeof *g->total + sizeof g->numbers->list_stats,
                              err));
    if (w)
        KILN_TRY(kiln_device_copy_in(&v->x, g->live, w->visible.live,
                                     live_sums(w) * sizeof *g->live, err));
    return gather_chunks(v, g, err);
}

kiln_status kiln_gather_ask(const kiln_draw_gather *v, const kiln_gathered *g, kiln_error *err)
{
    return kiln_device_copy_out(&v->x, v->landing, g->numbers, sizeof *g->numbers, err);
}

kiln_status kiln_gather_read(const kiln_draw_gather *v, kiln_gather_numbers *out, kiln_error *err)
{
    KILN_TRY(kiln_device_wait(&v->x, err));
    memcpy(out, v->landing, sizeof *out);
    return kiln_violation_fail(out->violation, err);
}
