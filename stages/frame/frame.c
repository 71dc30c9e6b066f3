/* frame -- projects a layer's chunks through a camera, one chunk at a time, and puts the visible ones in drawing order.
 *
 * Chunks that the profile's cull rules out are not read. Planes come through a cache so that a worker that draws many
 * cameras decodes each plane once while they fit. The last frame is kept: a table's bands ask for it again and again. */
#include "stages/frame/frame.h"

#include <stdlib.h>
#include <string.h>

/* Decoded planes kept between cameras. 400,000 Gaussians of degree 3 are 94 MiB. */
#define PLANE_BUDGET ((uint64_t)768 << 20)

struct kiln_frame_state {
    char kind[16];
    kiln_layer *layer;
    kiln_plane_cache *planes;
    kiln_shot shot; /* of `frame` */
    bool has_frame, has_colour;
    kiln_frame frame;
};

static void frame_clear(kiln_frame_state *s)
{
    free(s->frame.splats);
    free(s->frame.chunk);
    memset(&s->frame, 0, sizeof s->frame);
    s->has_frame = false;
}

static void state_free(void *state)
{
    kiln_frame_state *s = state;
    if (!s) return;
    frame_clear(s);
    kiln_plane_cache_free(s->planes);
    kiln_layer_free(s->layer);
    free(s);
}

kiln_status kiln_frame_state_get(kiln_worker *w, const char *kind, kiln_hash digest, kiln_frame_state **out, kiln_error *err)
{
    kiln_frame_state *s = kiln_worker_state(w);
    *out = s;
    if (s && strcmp(s->kind, kind) == 0 && kiln_hash_equal(s->layer->digest, digest)) return KILN_OK;

    kiln_manifest *m;
    kiln_status st;
    s = NULL;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_TRY(KILN_ALLOC(&s, 1, "frame state", err));
    snprintf(s->kind, sizeof s->kind, "%s", kind);
    KILN_GO(kiln_layer_get_digest(m, kind, digest, &s->layer, err));
    KILN_GO(kiln_plane_cache_new(PLANE_BUDGET, &s->planes, err));
    kiln_worker_set_state(w, s, state_free);
    *out = s;
    return KILN_OK;
done:
    state_free(s);
    return st;
}

const kiln_layer *kiln_frame_layer(const kiln_frame_state *s) { return s->layer; }

static kiln_status plane(kiln_worker *w, kiln_frame_state *s, const kiln_chunk *c, const char *name, void *out, kiln_error *err)
{
    kiln_manifest *m;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    return kiln_plane_cache_get(s->planes, m, c, name, out, err);
}

static kiln_status project_chunk(kiln_worker *w, kiln_frame_state *s, const kiln_shot *shot, const kiln_chunk *c, bool colour,
                                 kiln_splat2d *splats, uint64_t *n_visible, kiln_error *err)
{
    kiln_project_args a = {.n = c->count,
                           .sh_degree = colour ? s->layer->sh_degree : 0,
                           .view = &shot->view,
                           .profile = shot->profile,
                           .antialiased = shot->antialiased,
                           .splats = splats,
                           .n_visible = n_visible};
    KILN_TRY(plane(w, s, c, "means", &a.means, err));
    KILN_TRY(plane(w, s, c, "log_scales", &a.log_scales, err));
    KILN_TRY(plane(w, s, c, "quats", &a.quats, err));
    KILN_TRY(plane(w, s, c, "opacity_logits", &a.opacity_logits, err));
    if (colour) KILN_TRY(plane(w, s, c, "sh0", &a.sh0, err));
    if (colour && s->layer->sh_degree > 0) KILN_TRY(plane(w, s, c, "shN", &a.shN, err));
    return KILN_WORK(w, project, &a, err);
}

static uint64_t largest_chunk(const kiln_layer *l)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < l->n_chunks; i++)
        if (l->chunks[i].count > most) most = l->chunks[i].count;
    return most;
}

/* Arrays that grow while chunks are appended, in layer order. */
typedef struct {
    uint64_t n, room;
    kiln_splat2d *splats;
    uint32_t *chunk, *source_row;
} gathered;

static kiln_status gathered_grow(gathered *g, uint64_t need, kiln_error *err)
{
    if (need <= g->room) return KILN_OK;
    uint64_t room = need + need / 2;
    void *splats = realloc(g->splats, room * sizeof *g->splats);
    if (splats) g->splats = splats;
    void *chunk = realloc(g->chunk, room * sizeof *g->chunk);
    if (chunk) g->chunk = chunk;
    void *rows = realloc(g->source_row, room * sizeof *g->source_row);
    if (rows) g->source_row = rows;
    if (!splats || !chunk || !rows)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for %llu visible Gaussians", (unsigned long long)need);
    g->room = room;
    return KILN_OK;
}

static void gathered_release(gathered *g)
{
    free(g->splats);
    free(g->chunk);
    free(g->source_row);
}

static kiln_status gather(kiln_worker *w, kiln_frame_state *s, const kiln_shot *shot, bool colour, gathered *g, kiln_error *err)
{
    for (uint32_t i = 0; i < s->layer->n_chunks; i++) {
        const kiln_chunk *c = &s->layer->chunks[i];
        if (!kiln_shot_may_see(shot, c)) continue;
        uint64_t visible = 0;
        const uint32_t *source_row;
        KILN_TRY(gathered_grow(g, g->n + c->count, err));
        KILN_TRY(project_chunk(w, s, shot, c, colour, g->splats + g->n, &visible, err));
        KILN_TRY(plane(w, s, c, "source_row", &source_row, err));
        for (uint64_t k = g->n; k < g->n + visible; k++) {
            g->chunk[k] = i;
            g->source_row[k] = source_row[g->splats[k].row];
        }
        g->n += visible;
    }
    return KILN_OK;
}

/* Into depth order; takes what it needs of g. */
static kiln_status put_in_order(kiln_worker *w, const gathered *g, kiln_frame *f, kiln_error *err)
{
    kiln_status st;
    float *depths = NULL;
    uint32_t *order = NULL;
    KILN_GO(KILN_ALLOC(&depths, g->n, "depths", err));
    KILN_GO(KILN_ALLOC(&order, g->n, "drawing order", err));
    KILN_GO(KILN_ALLOC(&f->splats, g->n, "visible Gaussians", err));
    KILN_GO(KILN_ALLOC(&f->chunk, g->n, "visible Gaussians", err));
    for (uint64_t i = 0; i < g->n; i++) depths[i] = g->splats[i].depth;
    kiln_depth_order_args a = {.n = g->n, .depths = depths, .source_rows = g->source_row, .order = order};
    KILN_GO(KILN_WORK(w, depth_order, &a, err));
    for (uint64_t i = 0; i < g->n; i++) {
        f->splats[i] = g->splats[order[i]];
        f->chunk[i] = g->chunk[order[i]];
    }
    f->n = g->n;
done:
    free(order);
    free(depths);
    return st;
}

kiln_status kiln_frame_make(kiln_worker *w, kiln_frame_state *s, const kiln_shot *shot, bool colour, const kiln_frame **out,
                            kiln_error *err)
{
    *out = &s->frame;
    if (s->has_frame && s->has_colour == colour && memcmp(&s->shot, shot, sizeof *shot) == 0) return KILN_OK;
    frame_clear(s);
    gathered g = {0};
    kiln_status st = gather(w, s, shot, colour, &g, err);
    if (st == KILN_OK && g.n > UINT32_MAX - 1)
        st = kiln_fail(err, KILN_E_INPUT, "%llu Gaussians are visible, 4294967294 is the most", (unsigned long long)g.n);
    if (st == KILN_OK) st = put_in_order(w, &g, &s->frame, err);
    gathered_release(&g);
    if (st != KILN_OK) {
        frame_clear(s);
        return st;
    }
    s->shot = *shot;
    s->has_frame = true;
    s->has_colour = colour;
    return KILN_OK;
}

kiln_status kiln_frame_count(kiln_worker *w, kiln_frame_state *s, const kiln_shot *shot, uint64_t *row_pairs, uint64_t *visible,
                             kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_splat2d *splats = NULL;
    uint64_t *rows = NULL;
    uint32_t tiles_y = kiln_view_tiles_y(&shot->view);
    *visible = 0;
    memset(row_pairs, 0, tiles_y * sizeof *row_pairs);
    KILN_GO(KILN_ALLOC(&splats, largest_chunk(s->layer), "projected chunk", err));
    KILN_GO(KILN_ALLOC(&rows, tiles_y, "pairs of tile rows", err));
    for (uint32_t i = 0; i < s->layer->n_chunks; i++) {
        const kiln_chunk *c = &s->layer->chunks[i];
        if (!kiln_shot_may_see(shot, c)) continue;
        uint64_t n = 0;
        KILN_GO(project_chunk(w, s, shot, c, false, splats, &n, err));
        kiln_tile_pairs_count_args a = {
            .n = n, .splats = splats, .view = &shot->view, .row0 = 0, .row1 = tiles_y, .row_pairs = rows};
        KILN_GO(KILN_WORK(w, tile_pairs_count, &a, err));
        for (uint32_t r = 0; r < tiles_y; r++) row_pairs[r] += rows[r];
        *visible += n;
    }
done:
    free(rows);
    free(splats);
    return st;
}
