/* image_rows -- what was drawn: one row for a camera and kind of device. */
#include "base/memory.h"
#include "schema/manifest_internal.h"

#include <stdlib.h>

kiln_status kiln_image_put(kiln_manifest *m, const kiln_image *i, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(
        m, &q,
        "INSERT OR REPLACE INTO image (camera, device_kind, profile, antialiased, near_m, background_r, background_g,"
        " background_b, width, height, key, pixels, visible, pairs, psnr, ssim, path, format)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        err));
    kiln_bind_text(&q, i->camera);
    kiln_bind_text(&q, i->device_kind);
    kiln_bind_text(&q, i->profile);
    kiln_bind_i64(&q, i->antialiased);
    kiln_bind_f64(&q, i->near_m);
    for (int c = 0; c < 3; c++) kiln_bind_f64(&q, i->background[c]);
    kiln_bind_i64(&q, i->width);
    kiln_bind_i64(&q, i->height);
    kiln_bind_hash(&q, i->key);
    kiln_bind_hash(&q, i->pixels);
    kiln_bind_u64(&q, i->visible);
    kiln_bind_u64(&q, i->pairs);
    kiln_bind_f64(&q, i->psnr); /* NaN becomes NULL */
    kiln_bind_f64(&q, i->ssim);
    kiln_bind_text(&q, i->path);
    kiln_bind_text(&q, i->format);
    return kiln_query_run(&q, err);
}

static kiln_status read_image(kiln_query *q, kiln_image *i, kiln_error *err)
{
    kiln_column_text(q, i->camera, sizeof i->camera);
    kiln_column_text(q, i->device_kind, sizeof i->device_kind);
    kiln_column_text(q, i->profile, sizeof i->profile);
    i->antialiased = kiln_column_bool(q);
    i->near_m = kiln_column_f64(q);
    for (int c = 0; c < 3; c++) i->background[c] = kiln_column_f64(q);
    i->width = kiln_column_u32(q);
    i->height = kiln_column_u32(q);
    i->key = kiln_column_hash(q);
    i->pixels = kiln_column_hash(q);
    i->visible = kiln_column_u64(q);
    i->pairs = kiln_column_u64(q);
    i->psnr = kiln_column_f64(q);
    i->ssim = kiln_column_f64(q);
    kiln_column_text(q, i->path, sizeof i->path);
    kiln_column_text(q, i->format, sizeof i->format);
    return kiln_query_check(q, err);
}

static kiln_status read_images(kiln_manifest *m, kiln_image *images, uint32_t room, uint32_t *n, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(
        kiln_query_open(m, &q,
                        "SELECT camera, device_kind, profile, antialiased, near_m, background_r, background_g, background_b, width,"
                        " height, key, pixels, visible, pairs, psnr, ssim, path, format FROM image ORDER BY camera, device_kind",
                        err));
    for (*n = 0; *n < room; ++*n) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(read_image(&q, &images[*n], err));
    }
done:
    kiln_query_close(&q);
    return st;
}

kiln_status kiln_images_get(kiln_manifest *m, kiln_image **out, uint32_t *n, kiln_error *err)
{
    bool own;
    int64_t count;
    kiln_image *images = NULL;
    kiln_status st = KILN_OK;
    *out = NULL;
    *n = 0;
    KILN_TRY(kiln_group_begin(m, &own, err)); /* the count and the rows from one state */
    KILN_GO(kiln_query_number(m, "SELECT count(*) FROM image", &count, err));
    KILN_GO(KILN_ALLOC(&images, (uint64_t)count, "images", err));
    KILN_GO(read_images(m, images, (uint32_t)count, n, err));
    *out = images;
done:
    st = kiln_group_end(m, own, st, err);
    if (st != KILN_OK) {
        free(images);
        *out = NULL;
        *n = 0;
    }
    return st;
}

kiln_status kiln_images_clear(kiln_manifest *m, kiln_error *err) { return kiln_sql(m, "DELETE FROM image", err); }
