/* The worker's half of kiln-knn. The layer's row of chunks is read once and kept between units. */
#include "stages/knn/knn_units.h"

#include "base/memory.h"
#include "stages/engine/parent/run_layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_layer(void *layer) { kiln_layer_free(layer); }

static kiln_status source_layer(kiln_worker *w, kiln_hash digest, const kiln_layer **out,
                                kiln_error *err)
{
    kiln_layer *l = kiln_worker_state(w);
    if (!l || !kiln_hash_equal(l->digest, digest)) {
        kiln_manifest *m;
        KILN_TRY(kiln_worker_manifest(w, &m, err));
        KILN_TRY(
            kiln_layer_get_digest(m, kiln_layer_kinds[KILN_LAYER_source].name, digest, &l, err));
        kiln_worker_set_state(w, l, free_layer);
    }
    *out = l;
    return KILN_OK;
}

/* ---- initial --------------------------------------------------------------------------------- */
static kiln_status read_spacing(kiln_manifest *m, kiln_hash key, const kiln_chunk *c, float **out,
                                kiln_error *err)
{
    kiln_unit_result r = {0};
    bool found;
    uint64_t bytes = 0;
    kiln_status st = KILN_OK;
    KILN_GO(kiln_unit_find(m, key, &found, &r, err));
    if (!found)
        KILN_GO(kiln_fail(err, KILN_E_BUG, "the spacing of block '%s' is not stored", c->name));
    KILN_GO(kiln_unit_result_read(m, &r, c->name, (void **)out, &bytes, err));
    if (bytes != c->count * sizeof **out)
        st = kiln_fail(err, KILN_E_IO, "the spacing of block '%s' has %llu bytes for %llu rows",
                       c->name, (unsigned long long)bytes, (unsigned long long)c->count);
done:
    kiln_unit_result_release(&r);
    return st;
}

/* What the unit of colours found for points of this block goes over what the source has. */
static kiln_status put_colours(kiln_manifest *m, kiln_hash key, const kiln_chunk *c, float *rgb,
                               kiln_error *err)
{
    kiln_unit_result r = {0};
    bool found;
    char name[96];
    uint32_t *rows = NULL;
    float *from = NULL;
    uint64_t bytes = 0, n = 0;
    kiln_status st = KILN_OK;
    KILN_GO(kiln_unit_find(m, key, &found, &r, err));
    if (!found)
        KILN_GO(kiln_fail(err, KILN_E_BUG, "the colours of block '%s' are not stored", c->name));
    (void)snprintf(name, sizeof name, KILN_KNN_COLOURED_ROWS, c->name);
    KILN_GO(kiln_unit_result_read(m, &r, name, (void **)&rows, &bytes, err));
    n = bytes / sizeof *rows;
    if (bytes % sizeof *rows)
        KILN_GO(kiln_fail(err, KILN_E_IO, "the colours of block '%s' have %llu bytes of rows",
                          c->name, (unsigned long long)bytes));
    (void)snprintf(name, sizeof name, KILN_KNN_COLOURED_RGB, c->name);
    KILN_GO(kiln_unit_result_read(m, &r, name, (void **)&from, &bytes, err));
    if (bytes != 3 * n * sizeof *from)
        KILN_GO(kiln_fail(err, KILN_E_IO,
                          "the colours of block '%s' have %llu bytes for %llu points", c->name,
                          (unsigned long long)bytes, (unsigned long long)n));
    for (uint64_t i = 0; i < n; i++) {
        if (rows[i] >= c->count)
            KILN_GO(
                kiln_fail(err, KILN_E_IO, "block '%s' has no row %u to colour", c->name, rows[i]));
        for (uint64_t k = 0; k < 3; k++) rgb[k * c->count + rows[i]] = from[k * n + i];
    }
done:
    free(from);
    free(rows);
    kiln_unit_result_release(&r);
    return st;
}

/* The colours of a block's points; a cloud without any starts as grey, so that its picture shows
 * something. */
static kiln_status read_colours(kiln_manifest *m, const kiln_chunk *c, const kiln_knn_unit *u,
                                float *rgb, kiln_error *err)
{
    if (u->grey)
        for (uint64_t i = 0; i < 3 * c->count; i++) rgb[i] = 0.5f;
    else if (kiln_chunk_plane(c, "rgb"))
        KILN_TRY(kiln_plane_read(m, c, "rgb", rgb, c->count * 3 * sizeof *rgb, err));
    return kiln_hash_is_zero(u->colours) ? KILN_OK : put_colours(m, u->colours, c, rgb, err);
}

static kiln_status put_initial_planes(kiln_worker *w, const kiln_initial_args *a,
                                      const float *means, kiln_error *err)
{
    kiln_bounds bounds;
    kiln_chunk_bounds(kiln_worker_threads(w), a->n, means, a->log_scales, a->opacity_logits,
                      &bounds);
    KILN_TRY(kiln_worker_put(w, "log_scales", a->log_scales, a->n * 3 * sizeof(float),
                             sizeof(float), err));
    KILN_TRY(kiln_worker_put(w, "quats", a->quats, a->n * 4 * sizeof(float), sizeof(float), err));
    KILN_TRY(kiln_worker_put(w, "opacity_logits", a->opacity_logits, a->n * sizeof(float),
                             sizeof(float), err));
    KILN_TRY(kiln_worker_put(w, "sh0", a->sh0, a->n * 3 * sizeof(float), sizeof(float), err));
    return kiln_worker_put(w, "bounds", &bounds, sizeof bounds, sizeof(float), err);
}

static kiln_status compute_initial(kiln_worker *w, const kiln_layer *l, const kiln_knn_unit *u,
                                   kiln_error *err)
{
    /* means, rgb, log_scales, quats, opacity_logits, sh0 */
    enum { FLOATS = 3 + 3 + 3 + 4 + 1 + 3 };
    kiln_status st = KILN_OK;
    kiln_manifest *m;
    float *block = NULL, *spacing2 = NULL;
    uint64_t fallbacks = 0;
    KILN_GO(kiln_worker_manifest(w, &m, err));
    if (u->block >= l->n_chunks)
        KILN_GO(kiln_fail(err, KILN_E_BUG, "block %u does not exist", u->block));
    const kiln_chunk *c = &l->chunks[u->block];
    uint64_t n = c->count;
    KILN_GO(kiln_alloc((void **)&block, n, FLOATS * sizeof *block, "the planes of a block", err));
    float *means = block, *rgb = block + 3 * n;
    KILN_GO(read_spacing(m, u->spacing, c, &spacing2, err));
    if (n) KILN_GO(kiln_plane_read(m, c, "means", means, n * 3 * sizeof *means, err));
    KILN_GO(read_colours(m, c, u, rgb, err));
    /* the stored spacing is always finite, so the operation's own fallback is never taken */
    kiln_initial_args a = {.n = n,
                           .spacing2 = spacing2,
                           .rgb = rgb,
                           .opacity = u->opacity,
                           .log_scales = block + 6 * n,
                           .quats = block + 9 * n,
                           .opacity_logits = block + 13 * n,
                           .sh0 = block + 14 * n,
                           .n_fallback = &fallbacks};
    KILN_GO(KILN_WORK(w, initial, &a, err));
    if (fallbacks)
        KILN_GO(kiln_fail(err, KILN_E_IO,
                          "%llu stored spacings of block '%s' are not finite; get the manifest "
                          "again, or import the scene into a new one",
                          (unsigned long long)fallbacks, c->name));
    KILN_GO(put_initial_planes(w, &a, means, err));
done:
    free(spacing2);
    free(block);
    return st;
}

/* Only the payload of a `back` unit has more: one key for each range. */
static kiln_status unpack(const char *name, const void *payload, size_t bytes, kiln_knn_unit *u,
                          kiln_hash **keys, kiln_error *err)
{
    *keys = NULL;
    if (bytes < sizeof *u)
        return kiln_fail(err, KILN_E_BUG, "unit '%s' came with a payload of %zu bytes", name,
                         bytes);
    memcpy(u, payload, sizeof *u);
    const uint64_t n_keys = u->kind == KILN_KNN_BACK ? u->ranges.range : 0;
    if ((bytes - sizeof *u) / sizeof **keys != n_keys || (bytes - sizeof *u) % sizeof **keys)
        return kiln_fail(err, KILN_E_BUG, "unit '%s' came with a payload of %zu bytes", name,
                         bytes);
    if (n_keys == 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC(keys, n_keys, "the keys of ranges", err));
    memcpy(*keys, (const char *)payload + sizeof *u, bytes - sizeof *u);
    return KILN_OK;
}

kiln_status kiln_knn_compute(kiln_worker *w, const char *name, const void *payload,
                             size_t payload_bytes, kiln_error *err)
{
    kiln_knn_unit u;
    kiln_hash *keys;
    const kiln_layer *l;
    KILN_TRY(unpack(name, payload, payload_bytes, &u, &keys, err));
    kiln_status st = source_layer(w, u.source, &l, err);
    if (st == KILN_OK) {
        switch (u.kind) {
        case KILN_KNN_SPACING:
            st = u.on_device ? kiln_knn_on_device(w, l, &u, err) : kiln_knn_whole(w, l, &u, err);
            break;
        case KILN_KNN_FITS_DEVICE:
            st = kiln_knn_fits_device(w, l, &u, err);
            break;
        case KILN_KNN_PARTITION:
            st = kiln_knn_partition(w, l, &u, err);
            break;
        case KILN_KNN_RANGE:
            st = kiln_knn_range(w, l, &u, err);
            break;
        case KILN_KNN_BACK:
            st = kiln_knn_back(w, l, &u, keys, err);
            break;
        case KILN_KNN_COLOURS:
            st = kiln_knn_colours(w, l, err);
            break;
        case KILN_KNN_INITIAL:
            st = compute_initial(w, l, &u, err);
            break;
        default:
            st = kiln_fail(err, KILN_E_BUG, "unit '%s' is of kind %d", name, (int)u.kind);
        }
    }
    free(keys);
    return st;
}
