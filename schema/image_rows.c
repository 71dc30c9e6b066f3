/* image_rows -- what was drawn: one row for a camera and kind of device. */
#include "base/memory.h"
#include "schema/manifest_internal.h"
#include "schema/row_check.h"

#include <stdlib.h>
#include <string.h>

kiln_status kiln_image_put(kiln_manifest *m, const kiln_image *i, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(
        m, &q,
        "INSERT OR REPLACE INTO image (camera, device_kind, profile, antialiased, near_m, "
        "background_r, background_g,"
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

static kiln_status read_image_row(kiln_query *q, kiln_image *i, kiln_error *err)
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

static kiln_status check_row(const kiln_image *images, uint32_t i, kiln_error *err)
{
    KILN_TRY(kiln_row_check_image(&images[i], err));
    int order = i == 0 ? -1 : strcmp(images[i - 1].camera, images[i].camera);
    if (order == 0) order = strcmp(images[i - 1].device_kind, images[i].device_kind);
    if (order < 0) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "the picture of camera '%.300s' occurs twice or is out of order",
                     images[i].camera);
}

static const char SELECT_IMAGES[] = "SELECT camera, device_kind, profile, antialiased, near_m, "
                                    "background_r, background_g, background_b, width,"
                                    " height, key, pixels, visible, pairs, psnr, ssim, path, "
                                    "format FROM image ORDER BY camera, device_kind";

static kiln_status read_images(kiln_manifest *m, kiln_image **images, uint32_t *n, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(m, &q, SELECT_IMAGES, err));
    for (;; ++*n) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(kiln_row_reserve((void **)images, *n, sizeof **images, "images", err));
        st = read_image_row(&q, &(*images)[*n], err);
        if (st == KILN_OK) st = check_row(*images, *n, err);
        KILN_GO(kiln_row_take(m, &q, st, err));
    }
done:
    kiln_query_close(&q);
    return st;
}

kiln_status kiln_images_get(kiln_manifest *m, kiln_image **out, uint32_t *n, kiln_error *err)
{
    *out = NULL;
    *n = 0;
    kiln_status st = read_images(m, out, n, err);
    if (st == KILN_OK && *n == 0) st = KILN_ALLOC(out, 0, "images", err); /* never NULL */
    if (st == KILN_OK) return st;
    free(*out);
    *out = NULL;
    *n = 0;
    return st;
}

/* two: the one before, of which its names are kept, and the one that is read. */
static kiln_status each_image(kiln_manifest *m, kiln_image two[2], kiln_image_fn *each,
                              void *context, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(m, &q, SELECT_IMAGES, err));
    for (uint32_t n = 0;; n++) {
        kiln_image *i = &two[1];
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        memset(i, 0, sizeof *i);
        st = read_image_row(&q, i, err);
        if (st == KILN_OK) st = check_row(n ? two : i, n ? 1 : 0, err);
        KILN_GO(kiln_row_take(m, &q, st, err));
        KILN_GO(each(context, i, err));
        strcpy(two[0].camera, i->camera);
        strcpy(two[0].device_kind, i->device_kind);
    }
done:
    kiln_query_close(&q);
    return st;
}

kiln_status kiln_images_each(kiln_manifest *m, kiln_image_fn *each, void *context, kiln_error *err)
{
    kiln_image *two;
    KILN_TRY(KILN_ALLOC(&two, 2, "a picture's row", err));
    const kiln_status st = each_image(m, two, each, context, err);
    free(two);
    return st;
}

/* WHERE true: row by row, whose steps are counted, instead of page by page, where a loop in a
 * b-tree has no end. */
kiln_status kiln_images_clear(kiln_manifest *m, kiln_error *err)
{
    return kiln_sql(m, "DELETE FROM image WHERE true", err);
}

kiln_status kiln_image_paths_visit(kiln_manifest *m, kiln_image_path_fn *visit, void *context,
                                   kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    char path[sizeof((kiln_image *)NULL)->path];
    KILN_TRY(
        kiln_query_open(m, &q, "SELECT path, key FROM image WHERE path <> '' ORDER BY path", err));
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        kiln_column_text(&q, path, sizeof path);
        const kiln_hash key = kiln_column_hash(&q);
        KILN_GO(kiln_row_take(m, &q, kiln_query_check(&q, err), err));
        KILN_GO(visit(context, path, key, err));
    }
done:
    kiln_query_close(&q);
    return st;
}
