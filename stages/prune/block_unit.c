/* block_unit -- the pruned planes of one block: every plane that its source has, without the
 * dropped rows and with the scales that the rules left, and spacing2. A block that lost all its
 * rows keeps its planes, empty. A plane that stays as it is, nearly every plane of a sound scene,
 * is named by the blob that its source has: it is neither packed nor, but for the geometry,
 * read. */
#include "kernels/bounds/bounds.h"
#include "stages/prune/prune_tally.h"
#include "stages/prune/prune_units.h"

#include <stdlib.h>
#include <string.h>

/* Component after component, kept rows only; returns the bytes. */
static size_t compact_plane(const kiln_pruned_rows *r, const void *from, uint32_t components,
                            uint32_t elem, void *to)
{
    const unsigned char *src = from;
    unsigned char *dst = to;
    if (r->kept == r->n) {
        const size_t bytes = (size_t)r->n * components * elem;
        if (to != from && bytes > 0) memmove(to, from, bytes);
        return bytes;
    }
    for (uint32_t c = 0; c < components; c++) {
        for (uint64_t i = 0; i < r->n; i++, src += elem) {
            if (!r->keep[i]) continue;
            memmove(dst, src, elem); /* in place it may be where it belongs already */
            dst += elem;
        }
    }
    return (size_t)(dst - (unsigned char *)to);
}

/* The plane as pruning leaves it, all rows; NULL: as the source has it. */
static const float *replaced(const kiln_pruned_rows *r, const char *name)
{
    if (strcmp(name, "means") == 0) return r->means;
    if (strcmp(name, "log_scales") == 0) return r->log_scales_after;
    if (strcmp(name, "quats") == 0) return r->quats;
    if (strcmp(name, "opacity_logits") == 0) return r->opacity_logits;
    return NULL;
}

/* All rows of a plane as its source has it, into data. What a camera's unit reads again is kept.
 * Colours and extra columns, two thirds of a layer, no unit asks for twice where no rows are
 * merged: they do not pass through the cache. */
static kiln_status read_source_plane(kiln_worker *w, kiln_prune_input *in,
                                     const kiln_prune_request *q, const kiln_plane *plane,
                                     void *data, uint64_t bytes, kiln_error *err)
{
    const void *from;
    kiln_manifest *m;
    if (q->head->n_merges == 0 && !kiln_prune_keeps(plane->name)) {
        KILN_TRY(kiln_worker_manifest(w, &m, err));
        return kiln_plane_read(m, &in->layer->chunks[q->head->block], plane->name, data,
                               (size_t)bytes, err);
    }
    KILN_TRY(kiln_prune_plane(w, in, q->head->block, plane->name, &from, err));
    memcpy(data, from, bytes);
    return KILN_OK;
}

/* Names the plane of the source if pruning leaves it as it is. */
static kiln_status name_plane(kiln_worker *w, const kiln_prune_input *in,
                              const kiln_prune_request *q, const kiln_pruned_rows *r,
                              const kiln_plane *plane, bool *named, kiln_error *err)
{
    const kiln_plane *from =
        kiln_chunk_plane(kiln_prune_plane_chunk(in, q->head->block, plane->name), plane->name);
    *named = false;
    if (!from || r->kept < r->n || q->head->n_merges > 0) return KILN_OK;
    if (!kiln_pruned_rows_keep_scales(r) && strcmp(plane->name, "log_scales") == 0) return KILN_OK;
    return kiln_worker_put_stored(w, plane->name, &from->data, kiln_type_size(plane->type), named,
                                  err);
}

static kiln_status put_plane(kiln_worker *w, kiln_prune_input *in, const kiln_prune_request *q,
                             const kiln_pruned_rows *r, const kiln_plane *plane, kiln_error *err)
{
    const uint32_t elem = kiln_type_size(plane->type);
    const uint64_t count = r->n * plane->components;
    const void *from = replaced(r, plane->name);
    void *data = NULL;
    bool named;
    kiln_status st = KILN_OK;
    KILN_TRY(name_plane(w, in, q, r, plane, &named, err));
    if (named) return KILN_OK;
    /* a copy: merging may send the plane out of the cache */
    KILN_GO(kiln_alloc_unset(&data, count, elem, "a pruned plane", err));
    if (from && count)
        memcpy(data, from, count * elem);
    else if (count)
        KILN_GO(read_source_plane(w, in, q, plane, data, count * elem, err));
    /* weighted means where rows were merged */
    if (strcmp(plane->name, "sh0") == 0 || strcmp(plane->name, "shN") == 0)
        KILN_GO(kiln_prune_merge_plane(w, in, q, q->head->block, plane, data, err));
    KILN_GO(kiln_worker_put(w, plane->name, data,
                            compact_plane(r, data, plane->components, elem, data), elem, err));
done:
    free(data);
    return st;
}

static kiln_status put_kept_planes(kiln_worker *w, kiln_prune_input *in,
                                   const kiln_prune_request *q, const kiln_pruned_rows *r,
                                   kiln_error *err)
{
    const kiln_chunk *c = &in->layer->chunks[q->head->block];
    for (uint32_t i = 0; i < c->n_planes; i++) KILN_TRY(put_plane(w, in, q, r, &c->planes[i], err));
    if (!in->spacing) return KILN_OK;
    const kiln_plane spacing = {.name = "spacing2", .type = KILN_TYPE_F32, .components = 1};
    return put_plane(w, in, q, r, &spacing, err);
}

/* Of the rows that stay; uses the copies, which are not needed after this. */
static kiln_status put_bounds(kiln_worker *w, kiln_pruned_rows *r, kiln_error *err)
{
    kiln_bounds b;
    /* to the left within one array */
    (void)compact_plane(r, r->means, 3, sizeof *r->means, r->means);
    (void)compact_plane(r, r->log_scales_after, 3, sizeof *r->log_scales_after,
                        r->log_scales_after);
    (void)compact_plane(r, r->opacity_logits, 1, sizeof *r->opacity_logits, r->opacity_logits);
    kiln_chunk_bounds(kiln_worker_threads(w), r->kept, r->means, r->log_scales_after,
                      r->opacity_logits, &b);
    return kiln_worker_put(w, "bounds", &b, sizeof b, 4, err);
}

/* Both sides; rows that no rule touched are counted once. */
static kiln_status tally_sides(kiln_worker *w, kiln_prune_input *in, const kiln_prune_request *q,
                               const kiln_pruned_rows *r, kiln_tally *t, kiln_error *err)
{
    const void *log_scales = NULL, *logits = NULL;
    if (r->n == 0) return KILN_OK;
    KILN_TRY(kiln_prune_plane(w, in, q->head->block, "log_scales", &log_scales, err));
    KILN_TRY(kiln_prune_plane(w, in, q->head->block, "opacity_logits", &logits, err));
    kiln_tally_rows(t, 0, r->n, log_scales, logits, NULL);
    if (r->kept == r->n && q->head->n_merges == 0 && kiln_pruned_rows_keep_scales(r)) {
        kiln_tally_same(t);
        return KILN_OK;
    }
    kiln_tally_rows(t, 1, r->n, r->log_scales_after, r->opacity_logits, r->keep);
    for (uint64_t i = 0; i < r->n; i++) t->touched += kiln_pruned_rows_is_touched(r, log_scales, i);
    return KILN_OK;
}

static kiln_status put_tally(kiln_worker *w, kiln_prune_input *in, const kiln_prune_request *q,
                             const kiln_pruned_rows *r, bool filters, kiln_error *err)
{
    kiln_tally *t;
    kiln_status st = KILN_OK;
    KILN_TRY(KILN_ALLOC(&t, 1, "a tally", err));
    t->rows = r->n;
    t->kept = r->kept;
    memcpy(t->counts, r->counts, sizeof t->counts);
    KILN_GO(tally_sides(w, in, q, r, t, err));
    KILN_GO(kiln_worker_put(w, "tally", t, sizeof *t, 8, err));
    if (filters) KILN_GO(kiln_worker_put(w, "filtered", r->filtered, sizeof r->filtered, 8, err));
done:
    free(t);
    return st;
}

/* The block's planes, copies of its geometry, and what reading a plane takes, later the plane on
 * its way out: together only where merging reads other blocks meanwhile. */
uint64_t kiln_prune_block_ram(const kiln_prune_size *s, bool merges)
{
    return s->blocks.planes + KILN_PRUNED_ROW_BYTES * s->blocks.rows +
           kiln_read_ram(s->blocks.plane) + (merges ? s->blocks.planes + s->blocks.plane : 0) +
           kiln_outputs_ram(s->blocks.planes + sizeof(kiln_tally));
}

kiln_status kiln_prune_block_unit(kiln_worker *w, const kiln_prune_request *q, kiln_error *err)
{
    kiln_prune_input *in;
    kiln_pruned_rows r;
    kiln_status st;
    KILN_TRY(kiln_prune_input_get(w, q->head, &in, err));
    if (q->head->block >= in->layer->n_chunks)
        return kiln_fail(err, KILN_E_BUG, "block %u does not exist; the layer has %u",
                         q->head->block, in->layer->n_chunks);
    KILN_TRY(kiln_pruned_rows_make(w, in, q, q->head->block, &r, err));
    KILN_GO(put_tally(w, in, q, &r, q->head->text_bytes > 0, err));
    if (q->head->planes) KILN_GO(put_kept_planes(w, in, q, &r, err));
    KILN_GO(put_bounds(w, &r, err)); /* of a dry run, too: its report has the largest scale */
done:
    kiln_pruned_rows_release(&r);
    return st;
}
