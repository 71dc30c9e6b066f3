/* frame -- projects a layer's chunks through a camera, one chunk at a time, and puts the visible ones in drawing order.
 *
 * Chunks that the profile's cull rules out are not read. Planes come through a cache so that a worker that draws many
 * cameras decodes each plane once while they fit. The last frame is kept: a table's bands ask for it again and again. */
#include "stages/frame/frame.h"

#include "kernels/draw/fit.h"

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
    kiln_drawing_release(&s->frame);
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

static uint64_t largest_chunk(const kiln_layer *l)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < l->n_chunks; i++)
        if (l->chunks[i].count > most) most = l->chunks[i].count;
    return most;
}

/* What draw asks for: a chunk's planes, or nothing of it where the cull rules it out. */
typedef struct {
    kiln_worker *w;
    kiln_frame_state *s;
    const kiln_shot *shot;
    bool colour;
} reading;

static kiln_status give_chunk(void *context, uint32_t index, kiln_draw_chunk *out, kiln_error *err)
{
    const reading *x = context;
    const kiln_chunk *c = &x->s->layer->chunks[index];
    memset(out, 0, sizeof *out);
    if (!kiln_shot_may_see(x->shot, c)) return KILN_OK;
    KILN_TRY(plane(x->w, x->s, c, "means", &out->means, err));
    KILN_TRY(plane(x->w, x->s, c, "log_scales", &out->log_scales, err));
    KILN_TRY(plane(x->w, x->s, c, "quats", &out->quats, err));
    KILN_TRY(plane(x->w, x->s, c, "opacity_logits", &out->opacity_logits, err));
    KILN_TRY(plane(x->w, x->s, c, "source_row", &out->source_rows, err));
    if (x->colour) KILN_TRY(plane(x->w, x->s, c, "sh0", &out->sh0, err));
    if (x->colour && x->s->layer->sh_degree > 0) KILN_TRY(plane(x->w, x->s, c, "shN", &out->shN, err));
    out->n = c->count;
    return KILN_OK;
}

/* Geometry only. */
static kiln_status project_chunk(reading *x, uint32_t index, kiln_splat2d *splats, uint64_t *n_visible, kiln_error *err)
{
    kiln_draw_chunk c;
    *n_visible = 0;
    KILN_TRY(give_chunk(x, index, &c, err));
    const kiln_project_args a = {.n = c.n,
                                 .means = c.means,
                                 .log_scales = c.log_scales,
                                 .quats = c.quats,
                                 .opacity_logits = c.opacity_logits,
                                 .view = &x->shot->view,
                                 .profile = x->shot->profile,
                                 .antialiased = x->shot->antialiased,
                                 .splats = splats,
                                 .n_visible = n_visible};
    return c.n ? KILN_WORK(x->w, project, &a, err) : KILN_OK;
}

kiln_status kiln_frame_make(kiln_worker *w, kiln_frame_state *s, const kiln_shot *shot, bool colour, const kiln_frame **out,
                            kiln_error *err)
{
    *out = &s->frame;
    if (s->has_frame && s->has_colour == colour && memcmp(&s->shot, shot, sizeof *shot) == 0) return KILN_OK;
    frame_clear(s);
    reading x = {.w = w, .s = s, .shot = shot, .colour = colour};
    const kiln_draw_scene scene = {.view = &shot->view,
                                   .profile = shot->profile,
                                   .antialiased = shot->antialiased,
                                   .sh_degree = s->layer->sh_degree,
                                   .n_chunks = s->layer->n_chunks,
                                   .chunk = give_chunk,
                                   .context = &x};
    KILN_TRY(kiln_draw_collect(kiln_worker_runner(w), &scene, &s->frame, err));
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
    reading x = {.w = w, .s = s, .shot = shot};
    *visible = 0;
    memset(row_pairs, 0, tiles_y * sizeof *row_pairs);
    KILN_GO(KILN_ALLOC(&splats, largest_chunk(s->layer), "projected chunk", err));
    KILN_GO(KILN_ALLOC(&rows, tiles_y, "pairs of tile rows", err));
    for (uint32_t i = 0; i < s->layer->n_chunks; i++) {
        uint64_t n = 0;
        KILN_GO(project_chunk(&x, i, splats, &n, err));
        if (n == 0) continue;
        kiln_tile_pairs_count_args a = {
            .n = n, .splats = splats, .view = &shot->view, .row0 = 0, .row1 = tiles_y, .row_pairs = rows};
        KILN_GO(kiln_fit_count(kiln_worker_runner(w), &a, err));
        for (uint32_t r = 0; r < tiles_y; r++) row_pairs[r] += rows[r];
        *visible += n;
    }
done:
    free(rows);
    free(splats);
    return st;
}
