/* info_views -- cameras with their metrics, pictures that are not exact, photos that are
 * damaged. */
#include "stages/info/info_internal.h"

#include "base/count.h"
#include "base/quote.h"
#include "stages/engine/json_text.h"
#include "stages/survey/bake_views.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of kiln-render --fast: near the exact picture, not that picture. */
static bool is_fast(const kiln_bake_image *i) { return strcmp(i->device_kind, "cuda-fast") == 0; }

static json_t *camera_json(const kiln_bake_camera *c, const kiln_bake_image *image,
                           const kiln_bake_table *table)
{
    return json_pack("{s:o, s:o, s:I, s:I, s:o, s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:b}",
                     "name", kiln_json_string(c->name), "split", kiln_json_string(c->split),
                     "width", (json_int_t)c->width, "height", (json_int_t)c->height, "photo",
                     c->photo[0] ? kiln_json_string(c->photo) : json_null(), "mask",
                     c->mask[0] ? kiln_json_string(c->mask) : json_null(), "distorted",
                     c->distorted, "synthetic", c->synthetic, "pairs",
                     image   ? kiln_info_count(image->pairs)
                     : table ? kiln_info_count(table->pairs)
                             : json_null(),
                     "visible",
                     image   ? kiln_info_count(image->visible)
                     : table ? kiln_info_count(table->visible)
                             : json_null(),
                     "psnr", kiln_json_real(image ? image->psnr : NAN), "ssim",
                     kiln_json_real(image ? image->ssim : NAN), "image",
                     image && image->path[0] ? kiln_json_string(image->path) : json_null(), "fast",
                     image && is_fast(image));
}

/* Means over the cameras of the test split that have both numbers. */
typedef struct {
    double psnr, ssim;
    uint64_t n;
} test_sums;

static void add_to_test(test_sums *t, const kiln_bake_camera *c, const kiln_bake_image *image)
{
    if (!image || strcmp(c->split, "test") != 0 || isnan(image->psnr) || isnan(image->ssim)) return;
    t->psnr += image->psnr;
    t->ssim += image->ssim;
    t->n++;
}

static kiln_status add_cameras(const kiln_bake_views *v, bool in_full, json_t *info,
                               kiln_error *err)
{
    const size_t told = in_full ? v->n_cameras : kiln_info_shown(v->n_cameras);
    json_t *list = json_array();
    test_sums test = {0};
    uint64_t photos = 0;
    KILN_TRY(kiln_info_set(info, "cameras", list, err));
    for (uint32_t i = 0; i < v->n_cameras; i++) {
        const kiln_bake_camera *c = &v->cameras[i];
        const kiln_bake_image *image = kiln_bake_view_image(v, c->name);
        photos += c->photo[0] != '\0';
        add_to_test(&test, c, image);
        if (i < told && json_array_append_new(
                            list, camera_json(c, image, kiln_bake_view_table(v, c->name))) != 0)
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for camera '%s'", c->name);
    }
    json_t *counts = json_object_get(info, "counts");
    KILN_TRY(kiln_info_set(counts, "cameras", kiln_info_count(v->n_cameras), err));
    KILN_TRY(kiln_info_set(counts, "photos", kiln_info_count(photos), err));
    KILN_TRY(kiln_info_set(counts, "tables", kiln_info_count(v->n_tables), err));
    KILN_TRY(kiln_info_set(counts, "images", kiln_info_count(v->n_images), err));
    json_t *profile =
        v->profile[0] ? json_pack("{s:o, s:b, s:o}", "name", kiln_json_string(v->profile),
                                  "antialiased", v->antialiased, "near", kiln_json_real(v->near_m))
                      : json_null();
    KILN_TRY(kiln_info_set(info, "profile", profile, err));
    return kiln_info_set(info, "test",
                         json_pack("{s:o, s:o, s:o}", "psnr",
                                   kiln_json_real(test.n ? test.psnr / (double)test.n : NAN),
                                   "ssim",
                                   kiln_json_real(test.n ? test.ssim / (double)test.n : NAN),
                                   "views", kiln_info_count(test.n)),
                         err);
}

/* How far the fast pictures are from exact ones, as far as those were drawn, too. */
typedef struct {
    uint64_t n, n_measured;
    double least_db; /* INFINITY: the same bits */
} fast_sums;

static kiln_status add_to_fast(kiln_manifest *m, const kiln_bake_image *image, fast_sums *f,
                               kiln_error *err)
{
    kiln_unit_result unit;
    bool found;
    KILN_TRY(kiln_unit_find(m, image->key, &found, &unit, err));
    json_t *counters = found ? kiln_info_parsed(unit.counters) : NULL,
           *db = json_object_get(counters, "fast_db");
    if (json_is_number(db) || json_is_string(db)) { /* a string: "inf" */
        f->n_measured++;
        f->least_db = fmin(f->least_db, json_is_number(db) ? json_number_value(db) : INFINITY);
    }
    f->n++;
    json_decref(counters);
    kiln_unit_result_release(&unit);
    return KILN_OK;
}

static kiln_status add_fast(kiln_manifest *m, const kiln_bake_views *v, json_t *info,
                            kiln_error *err)
{
    fast_sums f = {.least_db = INFINITY};
    for (uint32_t i = 0; i < v->n_images; i++)
        if (is_fast(&v->images[i])) KILN_TRY(add_to_fast(m, &v->images[i], &f, err));
    if (f.n == 0) return kiln_info_set(info, "fast", json_null(), err);
    json_t *least =
        f.n_measured && isinf(f.least_db) ? json_string("inf") : kiln_json_real(f.least_db);
    return kiln_info_set(info, "fast",
                         json_pack("{s:o, s:o, s:o}", "images", kiln_info_count(f.n), "measured",
                                   kiln_info_count(f.n_measured), "least_db", least),
                         err);
}

/* Photos that kiln-render found damaged or gone: their cameras have no metric. */
static kiln_status add_damaged_of(kiln_manifest *m, const kiln_bake_image *image, json_t *rows,
                                  kiln_error *err)
{
    kiln_unit_result unit;
    bool found;
    int failed = 0;
    KILN_TRY(kiln_unit_find(m, image->key, &found, &unit, err));
    json_t *counters = found ? kiln_info_parsed(unit.counters) : NULL,
           *note = json_object_get(counters, "note");
    if (json_is_string(note))
        failed =
            json_array_append_new(rows, json_pack("{s:o, s:O}", "camera",
                                                  kiln_json_string(image->camera), "reason", note));
    json_decref(counters);
    kiln_unit_result_release(&unit);
    return failed ? kiln_fail(err, KILN_E_NOMEM, "out of memory for the report") : KILN_OK;
}

static kiln_status add_damaged(kiln_manifest *m, const kiln_bake_views *v, json_t *info,
                               kiln_error *err)
{
    json_t *rows = json_array();
    KILN_TRY(kiln_info_set(info, "damaged_photos", rows, err));
    for (uint32_t i = 0; i < v->n_images; i++) {
        const kiln_bake_camera *c =
            isfinite(v->images[i].psnr) ? NULL : kiln_bake_view_camera(v, v->images[i].camera);
        /* units are looked up for no other */
        if (c && c->photo[0]) KILN_TRY(add_damaged_of(m, &v->images[i], rows, err));
    }
    return kiln_info_set(json_object_get(info, "counts"), "photos_damaged",
                         kiln_info_count(json_array_size(rows)), err);
}

kiln_status kiln_info_views(kiln_manifest *m, bool in_full, json_t *info, kiln_error *err)
{
    kiln_bake_views v;
    kiln_status st = KILN_OK;
    KILN_GO(kiln_bake_views_get(m, &v, err));
    KILN_GO(add_cameras(&v, in_full, info, err));
    KILN_GO(add_fast(m, &v, info, err));
    KILN_GO(add_damaged(m, &v, info, err));
done:
    kiln_bake_views_release(&v);
    return st;
}

/* ---- for people ------------------------------------------------------------------------------ */
/* numbers: size, visible, pairs, PSNR, SSIM. */
static void print_camera(const char *name, const char *split, const char *const numbers[5])
{
    enum { COLUMNS = 24 };
    char fitted[4 * KILN_CAMERA_NAME];
    kiln_quote_fit(fitted, sizeof fitted, name, COLUMNS);
    kiln_print("%s %-5s %-11s %9s %10s %7s %8s", fitted, split, numbers[0], numbers[1], numbers[2],
               numbers[3], numbers[4]);
}

void kiln_info_print_cameras(const json_t *info)
{
    char size[32], pairs[32], visible[32], psnr[32], ssim[32];
    const json_t *p = json_object_get(info, "profile"), *test = json_object_get(info, "test");
    const json_t *cameras = json_object_get(info, "cameras");
    const size_t shown = json_array_size(cameras);
    if (shown == 0) return;
    if (json_is_object(p)) {
        kiln_print_gap();
        kiln_print("profile %s%s, near %g", kiln_info_text(p, "name", "?"),
                   json_is_true(json_object_get(p, "antialiased")) ? ", antialiased" : "",
                   json_number_value(json_object_get(p, "near")));
    }
    kiln_print_gap();
    print_camera("camera", "split", (const char *[]){"size", "visible", "pairs", "PSNR", "SSIM"});
    for (size_t i = 0; i < shown; i++) {
        const json_t *c = json_array_get(cameras, i);
        snprintf(size, sizeof size, "%lldx%lld",
                 (long long)json_integer_value(json_object_get(c, "width")),
                 (long long)json_integer_value(json_object_get(c, "height")));
        print_camera(kiln_info_text(c, "name", "?"), kiln_info_text(c, "split", "?"),
                     (const char *[]){size, kiln_info_count_text(c, "visible", visible),
                                      kiln_info_count_text(c, "pairs", pairs),
                                      kiln_info_real_text(c, "psnr", 3, psnr),
                                      kiln_info_real_text(c, "ssim", 5, ssim)});
    }
    kiln_info_print_rest(
        (size_t)json_integer_value(json_object_get(json_object_get(info, "counts"), "cameras")),
        shown);
    if (json_integer_value(json_object_get(test, "views")) > 0)
        print_camera("mean", "test",
                     (const char *[]){"", "", "", kiln_info_real_text(test, "psnr", 3, psnr),
                                      kiln_info_real_text(test, "ssim", 5, ssim)});
}

void kiln_info_print_damaged(const json_t *info)
{
    enum { NAMED = 5 };
    const json_t *rows = json_object_get(info, "damaged_photos");
    const size_t n = json_array_size(rows);
    if (n == 0) return;
    kiln_print_gap();
    kiln_print("%s", KILN_COUNT(n, "photo is damaged or gone, its camera is not measured|photos "
                                   "are damaged or gone, their cameras are not measured"));
    for (size_t i = 0; i < n && i < NAMED; i++)
        kiln_print_sentence("%s: %s", kiln_info_text(json_array_get(rows, i), "camera", "?"),
                            kiln_info_text(json_array_get(rows, i), "reason", "?"));
    if (n > NAMED) kiln_print("... and %zu more (--json)", n - NAMED);
}

void kiln_info_print_fast(const json_t *info)
{
    const json_t *f = json_object_get(info, "fast");
    char measured[32], db[32];
    if (!json_is_object(f)) return;
    kiln_print_part("%s drawn with --fast, not exactly; %s measured",
                    KILN_COUNT(json_integer_value(json_object_get(f, "images")), "picture"),
                    kiln_info_count_text(f, "measured", measured));
    if (json_integer_value(json_object_get(f, "measured")) > 0)
        kiln_print_part(": at least %s dB from the exact ones",
                        kiln_info_text(f, "least_db", kiln_info_real_text(f, "least_db", 1, db)));
    kiln_print_gap();
}
