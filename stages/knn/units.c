/* The worker's half of kiln-knn. The layer's row of chunks is read once and kept between units. */
#include "stages/knn/units.h"

#include "base/memory.h"
#include "stages/engine/layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_layer(void *layer) { kiln_layer_free(layer); }

static kiln_status source_layer(kiln_worker *w, kiln_hash digest, const kiln_layer **out, kiln_error *err)
{
    kiln_layer *l = kiln_worker_state(w);
    if (!l || !kiln_hash_equal(l->digest, digest)) {
        kiln_manifest *m;
        KILN_TRY(kiln_worker_manifest(w, &m, err));
        KILN_TRY(kiln_layer_get_digest(m, "source", digest, &l, err));
        kiln_worker_set_state(w, l, free_layer);
    }
    *out = l;
    return KILN_OK;
}

/* ---- spacing ---------------------------------------------------------------------------------------------------------- */
/* Values that are missing (fewer points than neighbours), infinite or beyond what later sums can take. */
static uint64_t replace_unusable(float *spacing2, uint64_t n, const kiln_knn_unit *u)
{
    uint64_t replaced = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (spacing2[i] <= u->most2 && n > u->neighbors) continue;
        spacing2[i] = u->fallback2;
        replaced++;
    }
    return replaced;
}

static kiln_status median_of(kiln_worker *w, const float *values, uint64_t n, float *out, kiln_error *err)
{
    uint64_t *counts, rank = (n - 1) / 2;
    KILN_TRY(KILN_ALLOC(&counts, KILN_RANK_BINS, "the bins of a median", err));
    kiln_ranks_args a = {.n = n, .values = values, .pass = 0, .counts = counts};
    kiln_status st = KILN_WORK(w, ranks, &a, err);
    if (st == KILN_OK) {
        a.high = kiln_rank_pick(counts, &rank);
        a.pass = 1;
        memset(counts, 0, KILN_RANK_BINS * sizeof *counts);
        st = KILN_WORK(w, ranks, &a, err);
    }
    if (st == KILN_OK) *out = kiln_rank_value(a.high << 16 | kiln_rank_pick(counts, &rank));
    free(counts);
    return st;
}

static kiln_status count_spacing(kiln_worker *w, const float *spacing2, uint64_t n, uint64_t replaced, kiln_error *err)
{
    float min2 = 0, max2 = 0, median2 = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (i == 0 || spacing2[i] < min2) min2 = spacing2[i];
        if (i == 0 || spacing2[i] > max2) max2 = spacing2[i];
    }
    if (n) KILN_TRY(median_of(w, spacing2, n, &median2, err));
    json_t *c = json_pack("{s:f, s:f, s:f, s:I}", "min2", (double)min2, "median2", (double)median2, "max2", (double)max2,
                          "fallbacks", (json_int_t)replaced);
    if (!c) return kiln_fail(err, KILN_E_NOMEM, "cannot write the counters of the spacing");
    kiln_status st = kiln_worker_counters(w, c, err);
    json_decref(c);
    return st;
}

static kiln_status compute_spacing(kiln_worker *w, const kiln_knn_unit *u, kiln_error *err)
{
    kiln_status st = KILN_OK;
    const kiln_layer *l;
    kiln_manifest *m;
    float *means = NULL, *spacing2 = NULL;
    uint64_t first = 0;
    KILN_GO(source_layer(w, u->source, &l, err));
    KILN_GO(kiln_worker_manifest(w, &m, err));
    KILN_GO(kiln_layer_means(m, l, &means, err));
    KILN_GO(KILN_ALLOC(&spacing2, l->count, "the spacing of a layer", err));
    kiln_knn_args a = {.n = l->count, .k = u->neighbors, .means = means, .spacing2 = spacing2};
    if (l->count) KILN_GO(KILN_WORK(w, knn, &a, err));
    KILN_GO(count_spacing(w, spacing2, l->count, replace_unusable(spacing2, l->count, u), err));
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        const kiln_chunk *c = &l->chunks[i];
        KILN_GO(kiln_worker_put(w, c->name, spacing2 + first, c->count * sizeof *spacing2, sizeof *spacing2, err));
        first += c->count;
    }
done:
    free(spacing2);
    free(means);
    return st;
}

/* ---- initial ---------------------------------------------------------------------------------------------------------- */
static kiln_status read_spacing(kiln_manifest *m, kiln_hash key, const kiln_chunk *c, float **out, kiln_error *err)
{
    kiln_unit_result r = {0};
    bool found;
    uint64_t bytes = 0;
    kiln_status st = KILN_OK;
    KILN_GO(kiln_unit_find(m, key, &found, &r, err));
    if (!found) KILN_GO(kiln_fail(err, KILN_E_BUG, "the spacing of block '%s' is not stored", c->name));
    KILN_GO(kiln_unit_result_read(m, &r, c->name, (void **)out, &bytes, err));
    if (bytes != c->count * sizeof **out)
        st = kiln_fail(err, KILN_E_IO, "the spacing of block '%s' has %llu bytes for %llu rows", c->name, (unsigned long long)bytes,
                       (unsigned long long)c->count);
done:
    kiln_unit_result_release(&r);
    return st;
}

/* What the unit of colours found for points of this block goes over what the source has. */
static kiln_status put_colours(kiln_manifest *m, kiln_hash key, const kiln_chunk *c, float *rgb, kiln_error *err)
{
    kiln_unit_result r = {0};
    bool found;
    char name[96];
    uint32_t *rows = NULL;
    float *from = NULL;
    uint64_t bytes = 0, n = 0;
    kiln_status st = KILN_OK;
    KILN_GO(kiln_unit_find(m, key, &found, &r, err));
    if (!found) KILN_GO(kiln_fail(err, KILN_E_BUG, "the colours of block '%s' are not stored", c->name));
    (void)snprintf(name, sizeof name, KILN_KNN_COLOURED_ROWS, c->name);
    KILN_GO(kiln_unit_result_read(m, &r, name, (void **)&rows, &bytes, err));
    n = bytes / sizeof *rows;
    (void)snprintf(name, sizeof name, KILN_KNN_COLOURED_RGB, c->name);
    KILN_GO(kiln_unit_result_read(m, &r, name, (void **)&from, &bytes, err));
    if (bytes != 3 * n * sizeof *from)
        KILN_GO(kiln_fail(err, KILN_E_IO, "the colours of block '%s' have %llu bytes for %llu points", c->name,
                          (unsigned long long)bytes, (unsigned long long)n));
    for (uint64_t i = 0; i < n; i++) {
        if (rows[i] >= c->count) KILN_GO(kiln_fail(err, KILN_E_IO, "block '%s' has no row %u to colour", c->name, rows[i]));
        for (uint64_t k = 0; k < 3; k++) rgb[k * c->count + rows[i]] = from[k * n + i];
    }
done:
    free(from);
    free(rows);
    kiln_unit_result_release(&r);
    return st;
}

/* The colours of a block's points; a cloud without any starts as grey, so that its picture shows something. */
static kiln_status read_colours(kiln_manifest *m, const kiln_chunk *c, const kiln_knn_unit *u, float *rgb, kiln_error *err)
{
    if (u->grey)
        for (uint64_t i = 0; i < 3 * c->count; i++) rgb[i] = 0.5f;
    else if (kiln_chunk_plane(c, "rgb"))
        KILN_TRY(kiln_plane_read(m, c, "rgb", rgb, c->count * 3 * sizeof *rgb, err));
    return kiln_hash_is_zero(u->colours) ? KILN_OK : put_colours(m, u->colours, c, rgb, err);
}

static kiln_status put_planes(kiln_worker *w, const kiln_initial_args *a, const float *means, kiln_error *err)
{
    kiln_bounds bounds;
    kiln_chunk_bounds(a->n, means, a->log_scales, a->opacity_logits, &bounds);
    KILN_TRY(kiln_worker_put(w, "log_scales", a->log_scales, a->n * 3 * sizeof(float), sizeof(float), err));
    KILN_TRY(kiln_worker_put(w, "quats", a->quats, a->n * 4 * sizeof(float), sizeof(float), err));
    KILN_TRY(kiln_worker_put(w, "opacity_logits", a->opacity_logits, a->n * sizeof(float), sizeof(float), err));
    KILN_TRY(kiln_worker_put(w, "sh0", a->sh0, a->n * 3 * sizeof(float), sizeof(float), err));
    return kiln_worker_put(w, "bounds", &bounds, sizeof bounds, sizeof(float), err);
}

static kiln_status compute_initial(kiln_worker *w, const kiln_knn_unit *u, kiln_error *err)
{
    enum { FLOATS = 3 + 3 + 3 + 4 + 1 + 3 }; /* means, rgb, log_scales, quats, opacity_logits, sh0 */
    kiln_status st = KILN_OK;
    const kiln_layer *l;
    kiln_manifest *m;
    float *block = NULL, *spacing2 = NULL;
    uint64_t fallbacks = 0;
    KILN_GO(source_layer(w, u->source, &l, err));
    KILN_GO(kiln_worker_manifest(w, &m, err));
    if (u->block >= l->n_chunks) KILN_GO(kiln_fail(err, KILN_E_BUG, "there is no block %u", u->block));
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
    if (fallbacks) KILN_GO(kiln_fail(err, KILN_E_BUG, "%llu stored spacings are not finite", (unsigned long long)fallbacks));
    KILN_GO(put_planes(w, &a, means, err));
done:
    free(spacing2);
    free(block);
    return st;
}

kiln_status kiln_knn_compute(kiln_worker *w, const char *name, const void *payload, size_t payload_bytes, kiln_error *err)
{
    kiln_knn_unit u;
    if (payload_bytes != sizeof u) return kiln_fail(err, KILN_E_BUG, "unit '%s' came with %zu bytes", name, payload_bytes);
    memcpy(&u, payload, sizeof u);
    if (u.kind == KILN_KNN_COLOURS) {
        const kiln_layer *l;
        KILN_TRY(source_layer(w, u.source, &l, err));
        return kiln_knn_colours(w, l, err);
    }
    return u.kind == KILN_KNN_SPACING ? compute_spacing(w, &u, err) : compute_initial(w, &u, err);
}
