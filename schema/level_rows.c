/* level_rows -- writes and reads level_origin and level_error. A manifest of version 1 has neither
 * table, so that a layer of levels in it stands for nothing, which row_check_layer.c refuses. */
#include "schema/level_rows.h"

#include "base/endian.h"

#include "schema/layers.h"
#include "schema/row_check.h"

#include <inttypes.h>

/* ---- put ------------------------------------------------------------------------------------- */
kiln_status kiln_level_origin_put(kiln_manifest *m, int64_t layer, const kiln_layer *l,
                                  kiln_error *err)
{
    kiln_query q;
    if (!kiln_layer_is_levels(l)) return KILN_OK;
    KILN_TRY(kiln_query_open(m, &q,
                             "INSERT INTO level_origin (layer, baked, profile, antialiased, "
                             "near_m) VALUES (?, ?, ?, ?, ?)",
                             err));
    kiln_bind_i64(&q, layer);
    kiln_bind_hash(&q, l->origin);
    kiln_bind_text(&q, l->origin_profile);
    kiln_bind_i64(&q, l->origin_antialiased);
    kiln_bind_f64(&q, l->origin_near);
    return kiln_query_run(&q, err);
}

kiln_status kiln_level_errors_put(kiln_manifest *m, int64_t chunk, const kiln_chunk *c,
                                  kiln_error *err)
{
    kiln_query q;
    unsigned char bytes[4 * KILN_ERROR_STEPS];
    if (c->n_errors == 0) return KILN_OK;
    for (uint32_t i = 0; i < c->n_errors; i++) kiln_put_f32(bytes + 4 * i, c->errors[i]);
    KILN_TRY(kiln_query_open(
        m, &q, "INSERT INTO level_error (chunk, step, errors) VALUES (?, ?, ?)", err));
    kiln_bind_i64(&q, chunk);
    kiln_bind_i64(&q, c->error_step);
    kiln_bind_bytes(&q, bytes, 4 * (size_t)c->n_errors);
    return kiln_query_run(&q, err);
}

/* ---- get ------------------------------------------------------------------------------------- */
static kiln_status has_rows(kiln_manifest *m, const kiln_layer *l, bool *has, kiln_error *err)
{
    *has = kiln_layer_is_levels(l);
    return *has ? kiln_has_table(m, "level_origin", has, err) : KILN_OK;
}

kiln_status kiln_level_origin_get(kiln_manifest *m, int64_t layer, kiln_layer *l, kiln_error *err)
{
    kiln_query q;
    bool row;
    KILN_TRY(has_rows(m, l, &row, err));
    if (!row) return KILN_OK;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(
        m, &q, "SELECT baked, profile, antialiased, near_m FROM level_origin WHERE layer = ?",
        err));
    kiln_bind_i64(&q, layer);
    KILN_GO(kiln_query_step(&q, &row, err));
    if (!row) goto done;
    l->origin = kiln_column_hash(&q);
    kiln_column_text(&q, l->origin_profile, sizeof l->origin_profile);
    l->origin_antialiased = kiln_column_bool(&q);
    l->origin_near = kiln_column_f64(&q);
    st = kiln_row_take(m, &q, kiln_query_check(&q, err), err);
done:
    kiln_query_close(&q);
    return st;
}

/* A row whose bytes are no errors leaves its chunk without any. */
static kiln_status read_errors(kiln_query *q, kiln_layer *l, kiln_error *err)
{
    size_t n;
    const int64_t ordinal = kiln_column_i64(q), step = kiln_column_i64(q);
    const unsigned char *const bytes = kiln_column_bytes(q, &n);
    KILN_TRY(kiln_query_check(q, err));
    if (ordinal < 0 || ordinal >= l->n_chunks || l->chunks[ordinal].n_errors)
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s': the errors of chunk number %" PRId64
                         " occur twice, or the chunk does not exist",
                         l->kind, ordinal);
    kiln_chunk *const c = &l->chunks[ordinal];
    if (n < 4 || n % 4 != 0 || n > 4 * KILN_ERROR_STEPS || step < -KILN_ERROR_STEP_MOST ||
        step > KILN_ERROR_STEP_MOST)
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s', chunk '%s': its errors have %zu bytes, from step %" PRId64
                         " on",
                         l->kind, c->name, n, step);
    c->error_step = (int32_t)step;
    for (c->n_errors = 0; c->n_errors < n / 4; c->n_errors++)
        c->errors[c->n_errors] = kiln_get_f32(bytes + 4 * (size_t)c->n_errors);
    return kiln_row_check_errors(l, c, err);
}

kiln_status kiln_level_errors_get(kiln_manifest *m, int64_t layer, kiln_layer *l, kiln_error *err)
{
    kiln_query q;
    bool row;
    KILN_TRY(has_rows(m, l, &row, err));
    if (!row) return KILN_OK;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(
        m, &q,
        "SELECT ordinal, step, errors FROM level_error JOIN chunk ON chunk.id = level_error.chunk"
        " WHERE layer = ? ORDER BY ordinal",
        err));
    kiln_bind_i64(&q, layer);
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(kiln_row_take(m, &q, read_errors(&q, l, err), err));
    }
done:
    kiln_query_close(&q);
    return st;
}
