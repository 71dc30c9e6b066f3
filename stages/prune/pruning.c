/* pruning -- see the header. */
#include "stages/prune/pruning.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void kiln_pruning_units_free(kiln_unit *units, uint64_t n)
{
    if (!units) return;
    kiln_units_release(units, n);
    for (uint64_t i = 0; i < n; i++) free(units[i].payload);
    free(units);
}

void kiln_pruning_release(kiln_pruning *p)
{
    kiln_pruning_units_free(p->blocks, p->n_blocks);
    free(p->block_of);
    free(p->kept);
    free(p->requests);
    kiln_chunk_keys_release(&p->keys);
    free(p->views);
    free(p->judgement.weights);
    free(p->judgement.weighed);
    free(p->cameras);
    kiln_texts_release(&p->camera_names);
    free(p->looks);
    free(p->masks);
    free(p->marks);
    free(p->strays);
    free(p->merges);
    free(p->rows);
    free(p->spacing_of);
    kiln_layer_free(p->spacing);
    kiln_layer_free(p->input);
}

/* ---- strays ---------------------------------------------------------------------------------- */
static kiln_status put_strays(kiln_pruning *p, kiln_stray pass, const uint8_t *bits,
                              kiln_error *err)
{
    const uint64_t of_block = kiln_prune_pairs_of_bits_bytes(p->size.blocks.rows),
                   given = kiln_prune_stray_bytes(p->size.blocks.rows);
    p->stray_bytes = kiln_pruning_strays_bytes(p);
    if (!p->strays) KILN_TRY(KILN_ALLOC(&p->strays, p->stray_bytes, "stray rows", err));
    for (uint32_t b = 0; b < p->input->n_chunks; b++) {
        uint8_t *to = p->strays + b * of_block;
        const uint8_t *from = bits + b * given;
        for (uint64_t i = 0; i < p->input->chunks[b].count; i++)
            if ((from[i >> 3] >> (i & 7) & 1) && !kiln_prune_two_bits(to, i))
                kiln_prune_set_two_bits(to, i, pass);
    }
    return KILN_OK;
}

kiln_status kiln_pruning_take_strays(kiln_run *r, kiln_pruning *p, kiln_stray pass,
                                     const kiln_unit *u, kiln_error *err)
{
    void *bits;
    uint64_t bytes;
    KILN_TRY(kiln_unit_data(r, u, "strays", &bits, &bytes, err));
    const kiln_status st =
        bytes == kiln_pruning_stray_bytes(p)
            ? put_strays(p, pass, bits, err)
            : kiln_unit_refuse(r, u, kiln_fail(err, KILN_E_IO, "it is not of this layer's rows"),
                               err);
    free(bits);
    return st;
}

/* ---- cameras --------------------------------------------------------------------------------- */
uint32_t kiln_pruning_forecast_cameras(const kiln_prune_values *o, uint32_t all)
{
    return o->all_cameras || all < KILN_PRUNE_CAMERAS_USUAL ? all : KILN_PRUNE_CAMERAS_USUAL;
}

uint32_t kiln_pruning_held_cameras(const kiln_prune_values *o, uint32_t all)
{
    return kiln_prune_auto_rules(&o->rules) ? all : kiln_pruning_forecast_cameras(o, all);
}

/* Takes n of n_all cameras, evenly chosen, while they are read one after the other. */
typedef struct {
    kiln_camera *chosen; /* [n] */
    kiln_texts *names;
    uint32_t n_all, n, at, n_chosen;
} choosing;

static kiln_status choose_camera(void *context, const kiln_camera *c, kiln_error *err)
{
    choosing *x = context;
    while (x->n_chosen < x->n && (uint64_t)x->n_chosen * x->n_all / x->n == x->at) {
        kiln_camera *to = &x->chosen[x->n_chosen++];
        *to = *c;
        to->photo = to->mask = ""; /* they last as long as the row is read */
        KILN_TRY(kiln_texts_add(x->names, c->name, &to->name, err));
    }
    x->at++;
    return KILN_OK;
}

kiln_status kiln_pruning_read_cameras(kiln_run *r, kiln_pruning *p, kiln_error *err)
{
    kiln_scene_size size;
    if (p->cameras) return KILN_OK;
    KILN_TRY(kiln_scene_size_get(kiln_run_manifest(r), &size, err));
    choosing x = {.n_all = (uint32_t)size.cameras};
    x.n = kiln_pruning_held_cameras(p->o, x.n_all);
    KILN_TRY(KILN_ALLOC(&p->cameras, x.n, "cameras", err));
    x.chosen = p->cameras;
    x.names = &p->camera_names;
    KILN_TRY(kiln_cameras_each(kiln_run_manifest(r), choose_camera, &x, err));
    p->n_cameras = x.n_chosen;
    return KILN_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */
bool kiln_pruning_has_block(const kiln_pruning *p, uint32_t block)
{
    return !p->spacing || p->spacing_of[block] != KILN_PRUNE_NO_BLOCK;
}

const kiln_chunk *kiln_pruning_spacing_block(const kiln_pruning *p, uint32_t block)
{
    return p->spacing && kiln_pruning_has_block(p, block)
               ? &p->spacing->chunks[p->spacing_of[block]]
               : NULL;
}

uint64_t kiln_pruning_filters_ram(const kiln_pruning *p)
{
    uint64_t planes = 0;
    for (uint32_t k = 0; k < p->filters.filters.n_planes; k++)
        planes += !kiln_prune_keeps(p->filters.filters.planes[k].name);
    return p->filters.filters.n
               ? planes * (p->size.blocks.plane + kiln_read_ram(p->size.blocks.plane)) +
                     sizeof p->filters
               : 0;
}

void kiln_pruning_key_planes(kiln_hasher *h, const kiln_pruning *p, uint32_t block,
                             const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) kiln_key_plane(h, &p->input->chunks[block], names[i]);
    if (kiln_pruning_spacing_block(p, block))
        kiln_key_plane(h, kiln_pruning_spacing_block(p, block), "spacing2");
}

void kiln_pruning_key_filters(kiln_hasher *h, const kiln_pruning *p)
{
    if (p->filters.filters.n == 0) return;
    kiln_key_text(h, "boxes", p->o->filter_boxes ? p->o->filter_boxes : "");
    kiln_key_text(h, "spheres", p->o->filter_spheres ? p->o->filter_spheres : "");
    kiln_key_text(h, "values", p->o->filter_values ? p->o->filter_values : "");
    kiln_key_bytes(h, "origin", p->filters.origin, sizeof p->filters.origin);
}

/* ---- payloads -------------------------------------------------------------------------------- */
kiln_prune_unit kiln_pruning_head(const kiln_pruning *p, kiln_prune_unit_kind kind)
{
    kiln_prune_unit u;
    memset(&u, 0, sizeof u);
    u.kind = kind;
    u.layer = p->input->digest;
    u.layer_kind = kiln_layer_kind_find(p->input->kind);
    if (p->spacing) u.spacing = p->spacing->digest;
    u.rules = p->rules;
    return u;
}

static kiln_status put_list(kiln_buffer *b, const void *list, uint64_t n, size_t elem,
                            kiln_error *err)
{
    return n > 0 ? kiln_buffer_put(b, list, n * elem, err) : KILN_OK;
}

kiln_status kiln_pruning_put_own(const kiln_prune_request *q, kiln_buffer *b, kiln_error *err)
{
    KILN_TRY(kiln_buffer_put(b, q->head, sizeof *q->head, err));
    KILN_TRY(put_list(b, q->looks, q->head->n_looks, sizeof *q->looks, err));
    return put_list(b, q->masks, q->head->n_masks, sizeof *q->masks, err);
}

kiln_status kiln_pruning_put_lists(const kiln_prune_request *q, kiln_buffer *b, kiln_error *err)
{
    KILN_TRY(put_list(b, q->merges, q->head->n_merges, sizeof *q->merges, err));
    KILN_TRY(put_list(b, q->rows, q->head->n_rows, sizeof *q->rows, err));
    KILN_TRY(put_list(b, q->kept, q->head->n_kept, sizeof *q->kept, err));
    KILN_TRY(put_list(b, q->marks, q->head->mark_bytes, 1, err));
    KILN_TRY(put_list(b, q->strays, q->head->stray_bytes, 1, err));
    return put_list(b, q->text, q->head->text_bytes, 1, err);
}

kiln_status kiln_pruning_set_payload(kiln_unit *unit, const kiln_prune_request *q, bool lists,
                                     kiln_error *err)
{
    kiln_buffer b = {0};
    kiln_status st;
    KILN_GO(kiln_pruning_put_own(q, &b, err));
    if (lists) KILN_GO(kiln_pruning_put_lists(q, &b, err));
    unit->payload = b.data;
    unit->payload_bytes = b.size;
    return KILN_OK;
done:
    kiln_buffer_release(&b);
    return st;
}
