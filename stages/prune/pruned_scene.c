/* pruned_scene -- see the header. */
#include "stages/prune/pruned_scene.h"

#include "base/memory.h"
#include "stages/files/hash_file.h"
#include "stages/image/image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ------------------------------------------------------------------------------------ */
static bool is_drawn(const kiln_pruned_scene *s, uint32_t block, uint64_t row)
{
    const uint64_t bytes = kiln_prune_pairs_of_bits_bytes(s->in->largest);
    return s->rows.keep[row] &&
           (!s->classes || kiln_prune_two_bits(s->classes + block * bytes, row) >= s->least);
}

static void hide_rows(kiln_pruned_scene *s, uint32_t block)
{
    for (uint64_t i = 0; i < s->rows.n; i++)
        for (uint64_t a = 0; a < 3 && !is_drawn(s, block, i); a++)
            s->rows.means[a * s->rows.n + i] = NAN;
}

/* A copy, merged colours in it. */
static kiln_status copy_colours(const kiln_pruned_scene *s, uint32_t block, const char *name,
                                float **out, kiln_error *err)
{
    const kiln_plane *plane = kiln_chunk_plane(&s->in->layer->chunks[block], name);
    const void *from;
    if (!plane) return KILN_OK;
    KILN_TRY(kiln_prune_plane(s->w, s->in, block, name, &from, err));
    KILN_TRY(KILN_ALLOC_UNSET(out, s->rows.n * plane->components, "colours of a block", err));
    memcpy(*out, from, s->rows.n * plane->components * sizeof **out);
    return kiln_prune_merge_plane(s->w, s->in, s->q, block, plane, *out, err);
}

static void drop_chunk(kiln_pruned_scene *s)
{
    kiln_pruned_rows_release(&s->rows);
    free(s->sh0);
    free(s->shN);
    s->rows = (kiln_pruned_rows){0};
    s->sh0 = s->shN = NULL;
}

static bool is_hidden(const kiln_pruned_scene *s, uint32_t block)
{
    return !kiln_prune_has_block(s->in, block) ||
           !kiln_prune_may_see(s->q->head, s->view, &s->in->layer->chunks[block]);
}

/* ---- for kernels/draw ------------------------------------------------------------------------ */
static bool is_left_in_view(const void *context, uint32_t block)
{
    return !is_hidden(context, block);
}

static kiln_status give_left_rows(void *context, uint32_t block, kiln_draw_chunk *out,
                                  kiln_error *err)
{
    kiln_pruned_scene *const s = context;
    const void *source_rows;
    *out = (kiln_draw_chunk){0};
    drop_chunk(s);
    if (is_hidden(s, block)) return KILN_OK;
    const kiln_ahead_view ahead = {.cache = s->in->planes,
                                   .layer = s->in->layer,
                                   .colour = s->colour,
                                   .in_view = is_left_in_view,
                                   .context = s};
    KILN_TRY(kiln_ahead_read(&s->in->ahead, &ahead, block, err));
    KILN_TRY(kiln_pruned_rows_make(s->w, s->in, s->q, block, &s->rows, err));
    hide_rows(s, block);
    if (s->colour) KILN_TRY(copy_colours(s, block, "sh0", &s->sh0, err));
    if (s->colour) KILN_TRY(copy_colours(s, block, "shN", &s->shN, err));
    KILN_TRY(kiln_prune_plane(s->w, s->in, block, "source_row", &source_rows, err));
    const kiln_pruned_rows *r = &s->rows;
    *out = (kiln_draw_chunk){.n = r->n,
                             .means = r->means,
                             .log_scales = r->log_scales_after,
                             .quats = r->quats,
                             .opacity_logits = r->opacity_logits,
                             .sh0 = s->sh0,
                             .shN = s->shN,
                             .source_rows = source_rows};
    return KILN_OK;
}

/* The rules are the same as long as the worker lives. */
static kiln_status give_left_header(void *context, uint32_t block, kiln_draw_chunk_header *out,
                                    kiln_error *err)
{
    const kiln_pruned_scene *s = context;
    kiln_hasher *h = kiln_hasher_new();
    (void)err;
    kiln_key_hash(h, "geometry", s->in->keys[block]);
    kiln_key_u64(h, "block", block); /* whose colours are its own */
    kiln_key_u64(h, "number", s->number);
    const kiln_hash key = kiln_key_end(h);
    *out = (kiln_draw_chunk_header){
        .n = s->in->layer->chunks[block].count, .hidden = is_hidden(s, block), .colour = s->colour};
    memcpy(out->key, key.bytes, sizeof out->key);
    return KILN_OK;
}

void kiln_pruned_scene_of(kiln_pruned_scene *s, kiln_draw_scene *out)
{
    *out = (kiln_draw_scene){.view = &s->view->view,
                             .profile = s->view->profile,
                             .antialiased = s->view->antialiased,
                             .sh_degree = s->colour ? s->in->layer->sh_degree : 0,
                             .n_chunks = s->in->layer->n_chunks,
                             .chunk = give_left_rows,
                             .header = give_left_header,
                             .store = s->in->store,
                             .context = s};
}

void kiln_pruned_scene_release(kiln_pruned_scene *s) { drop_chunk(s); }

/* The geometry as it is stored and as the rules leave it, and what reading takes; colours twice. */
uint64_t kiln_pruned_scene_ram(const kiln_prune_size *s, bool colour)
{
    enum { GEOMETRY = 13 * sizeof(float) };
    const uint64_t plane = colour ? s->blocks.plane : 4 * s->blocks.rows * sizeof(float);
    return s->blocks.rows * (GEOMETRY + KILN_PRUNED_ROW_BYTES) + kiln_read_ram(plane) +
           (colour ? 2 * s->blocks.planes : 0);
}

/* ---- masks ----------------------------------------------------------------------------------- */
static kiln_status check_mask_file(const kiln_prune_mask *m, kiln_error *err)
{
    kiln_file_info now;
    kiln_hash hash;
    KILN_TRY(kiln_file_stat(m->path, &now, err));
    if (now.size == m->file.size && now.mtime_ns == m->file.mtime_ns && now.inode == m->file.inode)
        return KILN_OK;
    KILN_TRY(kiln_hash_file(m->path, &hash, err));
    return kiln_hash_equal(hash, m->hash) ? KILN_OK : kiln_file_unchanged(m->path, &m->file, err);
}

/* To the pinhole that is drawn, as the photo itself would be. */
static kiln_status undistort_mask(kiln_worker *w, const kiln_prune_mask *m, uint8_t **mask,
                                  kiln_error *err)
{
    const uint64_t pixels = (uint64_t)m->target.width * m->target.height,
                   of_photo = (uint64_t)m->width * m->height;
    float *photo = NULL;
    kiln_status st;
    kiln_undistort_args a = {
        .lens = m->lens, .target = m->target, .channels = 1, .photo_mask = *mask};
    KILN_GO(KILN_ALLOC(&photo, of_photo, "the place of a photo", err));
    KILN_GO(KILN_ALLOC_UNSET(&a.out, pixels, "the place of a photo", err));
    KILN_GO(KILN_ALLOC_UNSET(&a.mask, pixels, "mask of a photo", err));
    a.photo = photo;
    KILN_GO(KILN_WORK(w, undistort, &a, err));
    kiln_runner_trim(kiln_worker_runner(w));
    free(*mask);
    *mask = a.mask;
    a.mask = NULL;
done:
    free(a.mask);
    free(a.out);
    free(photo);
    return st;
}

kiln_status kiln_prune_mask_read(kiln_worker *w, const kiln_prune_request *q,
                                 const kiln_prune_look *look, uint8_t **out, kiln_error *err)
{
    *out = NULL;
    if (look->mask >= q->head->n_masks) return KILN_OK;
    const kiln_prune_mask *m = &q->masks[look->mask];
    KILN_TRY(kiln_mask_read(m->path, m->width, m->height, out, err));
    kiln_status st = check_mask_file(m, err);
    if (st == KILN_OK && m->lens.width > 0) st = undistort_mask(w, m, out, err);
    if (st == KILN_OK) return KILN_OK;
    free(*out);
    *out = NULL;
    return st;
}

/* A picture of four channels is decoded, a second one beside it while it is; the photo's place, and
 * the operation's work. */
uint64_t kiln_prune_mask_ram(const kiln_prune_mask *mask, const kiln_view *view)
{
    enum { DECODED = 2 * 4 * sizeof(float) };
    if (!mask) return 0;
    const uint64_t of_photo = (uint64_t)mask->width * mask->height,
                   pixels = (uint64_t)view->width * view->height;
    const uint64_t read = of_photo * (DECODED + 1);
    const kiln_undistort_args a = {.lens = mask->lens, .target = mask->target, .channels = 1};
    if (mask->lens.width == 0) return read;
    const uint64_t warped = (of_photo + pixels) * (sizeof(float) + 1) + kiln_undistort_bytes(&a);
    return read > warped ? read : warped;
}
