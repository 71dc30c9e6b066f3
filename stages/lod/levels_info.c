/* Levels of detail for kiln-info: first as JSON, from which the table is printed. */
#include "stages/lod/levels_info.h"

#include "base/memory.h"
#include "base/quote.h"
#include "schema/layers.h"
#include "schema/levels.h"
#include "stages/engine/json_text.h"
#include "stages/frame/level_choice.h"
#include "stages/frame/level_cost.h"
#include "stages/frame/scene_box.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum { FOOTPRINTS = 4, FOOTPRINT_STEP = 2, LEVELS = KILN_LEVELS_MAX + 1 };

typedef struct {
    kiln_layer *baked, *levels;
    kiln_level_tree tree;
    bool current;  /* the tree is made */
    double pixels; /* of a camera's picture; 0: there are no cameras */
    double area;   /* of the scene as a picture shows it, in scene units squared */
    double footprints[FOOTPRINTS];
    uint32_t n_footprints; /* 0: no errors were measured */
    uint32_t n;            /* levels, with level 0 */
    uint64_t nodes[LEVELS], rows[LEVELS], bytes[LEVELS];
} survey;

static void survey_release(survey *s)
{
    kiln_level_tree_release(&s->tree);
    kiln_layer_free(s->levels);
    kiln_layer_free(s->baked);
}

/* ---- what is stored --------------------------------------------------------------------------------------------------- */
static void add_rows(survey *s, const kiln_layer *l)
{
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        const kiln_chunk *c = &l->chunks[i];
        if (c->level >= LEVELS) continue;
        s->nodes[c->level]++;
        s->rows[c->level] += c->count;
        if (c->level >= s->n) s->n = c->level + 1;
    }
}

/* Of the blobs as they are packed. A blob of several planes counts for each. */
static kiln_status add_bytes(kiln_manifest *m, survey *s, const char *kind, kiln_error *err)
{
    static const char sql[] =
        "SELECT c.level, sum(length(b.packed)) FROM stage_output o JOIN chunk c ON c.layer = o.layer"
        " JOIN plane p ON p.chunk = c.id JOIN plane_segment g ON g.plane = p.id JOIN blob b ON b.hash = g.hash"
        " WHERE o.role = ?1 GROUP BY c.level";
    sqlite3 *db = kiln_manifest_sqlite(m);
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_bind_text(q, 1, kind, -1, SQLITE_STATIC);
    while (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        const sqlite3_int64 level = sqlite3_column_int64(q, 0), bytes = sqlite3_column_int64(q, 1);
        if (level >= 0 && level < LEVELS && bytes > 0) s->bytes[level] += (uint64_t)bytes;
        rc = SQLITE_OK;
    }
    const kiln_status st =
        rc == SQLITE_DONE ? KILN_OK : kiln_fail(err, KILN_E_IO, "the levels cannot be read: %s", sqlite3_errmsg(db));
    sqlite3_finalize(q);
    return st;
}

/* ---- the scene at a level ------------------------------------------------------------------------------------------------- */
static kiln_status count_pixels(kiln_manifest *m, survey *s, kiln_error *err)
{
    kiln_camera *cameras;
    uint32_t n;
    KILN_TRY(kiln_cameras_get(m, &cameras, &n, err));
    for (uint32_t i = 0; i < n; i++) s->pixels += (double)cameras[i].width * cameras[i].height / n;
    free(cameras);
    return KILN_OK;
}

/* A box seen from all sides shows about a face. */
static kiln_status measure_area(kiln_manifest *m, survey *s, kiln_error *err)
{
    kiln_scene *scene;
    double lo[3], hi[3];
    KILN_TRY(KILN_ALLOC(&scene, 1, "the scene", err));
    kiln_status st = kiln_scene_get(m, scene, err);
    if (st == KILN_OK) st = kiln_scene_box(scene, s->baked, lo, hi, err);
    for (int a = 0; a < 3 && st == KILN_OK; a++) {
        const int b = (a + 1) % 3;
        s->area += (hi[a] - lo[a]) * (hi[b] - lo[b]) / 3;
    }
    free(scene);
    return st;
}

static void choose_footprints(survey *s)
{
    int32_t first = INT32_MAX;
    for (uint32_t i = 0; i < s->levels->n_chunks; i++) {
        const kiln_chunk *c = &s->levels->chunks[i];
        if (c->n_errors && c->error_step < first) first = c->error_step;
    }
    if (first == INT32_MAX || !(s->pixels > 0)) return;
    s->n_footprints = FOOTPRINTS;
    for (int i = 0; i < FOOTPRINTS; i++) s->footprints[i] = ldexp(1, first + i * FOOTPRINT_STEP);
}

/* Errors are areas, and those of all chunks are spread over one picture. Where pixels are small the scene takes more of them than a
 * camera has, and is more than one picture would show: then it is spread over the scene's own area. */
static json_t *decibels(const survey *s, const kiln_level_cut *cut)
{
    json_t *list = json_array();
    for (uint32_t f = 0; f < s->n_footprints; f++) {
        const double picture = fmax(s->pixels * s->footprints[f] * s->footprints[f], s->area);
        double sum = 0;
        for (uint32_t i = 0; i < cut->n; i++)
            if (cut->picks[i].level > 0)
                sum += kiln_level_error_at(&s->levels->chunks[cut->picks[i].chunk - s->baked->n_chunks], s->footprints[f]);
        (void)json_array_append_new(list, kiln_json_real(10 * log10(picture / sum)));
    }
    return list;
}

static kiln_status add_scene(const survey *s, uint32_t level, json_t *row, kiln_error *err)
{
    const kiln_level_wish wish = {.form = KILN_LEVEL_AT, .level = level};
    kiln_level_cut cut = {.n = 0};
    if (!s->current || s->tree.n_nodes == 0) return KILN_OK;
    kiln_status st = kiln_level_choose(&s->tree, &wish, NULL, &cut, err);
    if (st == KILN_OK && (json_object_set_new(row, "drawn", json_integer((json_int_t)cut.rows)) != 0 ||
                          json_object_set_new(row, "psnr", level ? decibels(s, &cut) : json_array()) != 0))
        st = kiln_fail(err, KILN_E_NOMEM, "out of memory for the levels");
    kiln_level_cut_release(&cut);
    return st;
}

/* ---- JSON ----------------------------------------------------------------------------------------------------------------- */
/* Of chunks that are no longer drawn nothing is known: the row of level 0 is left out. */
static kiln_status write_rows(const survey *s, json_t *list, kiln_error *err)
{
    for (uint32_t i = s->current ? 0 : 1; i < s->n; i++) {
        json_t *row = json_pack("{s:i, s:I, s:I, s:I}", "level", (int)i, "nodes", (json_int_t)s->nodes[i], "gaussians",
                                (json_int_t)s->rows[i], "bytes", (json_int_t)s->bytes[i]);
        if (json_array_append_new(list, row) != 0) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the levels");
        KILN_TRY(add_scene(s, i, row, err));
    }
    return KILN_OK;
}

static kiln_status write(const survey *s, json_t **out, kiln_error *err)
{
    json_t *rows = json_array(), *footprints = json_array();
    for (uint32_t i = 0; i < s->n_footprints; i++) (void)json_array_append_new(footprints, kiln_json_real(s->footprints[i]));
    *out = json_pack("{s:b, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "current", s->current, "profile",
                     kiln_json_string(s->levels->origin_profile), "antialiased", s->levels->origin_antialiased, "near",
                     kiln_json_real(s->levels->origin_near), "pixels", kiln_json_real(s->pixels), "area", kiln_json_real(s->area),
                     "footprints", footprints, "rows", rows);
    if (*out) return write_rows(s, rows, err);
    return kiln_fail(err, KILN_E_NOMEM, "out of memory for the levels");
}

static kiln_status look(kiln_manifest *m, survey *s, kiln_error *err)
{
    KILN_TRY(kiln_layer_get_digest(m, "baked", s->levels->origin, &s->baked, err));
    add_rows(s, s->baked);
    add_rows(s, s->levels);
    KILN_TRY(add_bytes(m, s, "baked", err));
    KILN_TRY(add_bytes(m, s, "levels", err));
    KILN_TRY(count_pixels(m, s, err));
    KILN_TRY(measure_area(m, s, err));
    KILN_TRY(kiln_level_tree_make(s->baked, s->levels, &s->tree, err));
    choose_footprints(s);
    return KILN_OK;
}

/* Levels of chunks that are no longer drawn: the layer itself is what there is to tell of. */
static kiln_status look_at_old(kiln_manifest *m, survey *s, kiln_error *err)
{
    add_rows(s, s->levels);
    return add_bytes(m, s, "levels", err);
}

static kiln_status is_current(kiln_manifest *m, survey *s, kiln_error *err)
{
    kiln_layer *baked = NULL;
    const kiln_status st = kiln_layer_current(m, KILN_LAYER_baked, &baked, err);
    s->current = st == KILN_OK && kiln_hash_equal(baked->digest, s->levels->origin);
    kiln_layer_free(baked);
    return st == KILN_E_STALE ? KILN_OK : st;
}

kiln_status kiln_levels_info(kiln_manifest *m, json_t **out, kiln_error *err)
{
    survey *s;
    KILN_TRY(KILN_ALLOC(&s, 1, "the levels", err));
    *out = NULL;
    kiln_status st = kiln_layer_current(m, KILN_LAYER_levels, &s->levels, err);
    if (st == KILN_E_STALE) {
        *out = json_null();
        st = KILN_OK;
    } else {
        if (st == KILN_OK) st = is_current(m, s, err);
        if (st == KILN_OK) st = s->current ? look(m, s, err) : look_at_old(m, s, err);
        if (st == KILN_OK) st = write(s, out, err);
    }
    survey_release(s);
    free(s);
    return st;
}

/* ---- the table -------------------------------------------------------------------------------------------------------------- */
static double number(const json_t *object, const char *key) { return json_number_value(json_object_get(object, key)); }

static void print_row(const json_t *row, double all, size_t n_footprints)
{
    const json_t *drawn = json_object_get(row, "drawn"), *psnr = json_object_get(row, "psnr");
    const long long level = (long long)json_integer_value(json_object_get(row, "level"));
    kiln_print_part("%5lld %6lld %11lld %8.2f", level, (long long)json_integer_value(json_object_get(row, "nodes")),
                    (long long)json_integer_value(json_object_get(row, "gaussians")), number(row, "bytes") / (1 << 20));
    if (drawn)
        kiln_print_part(" %11lld %5.1f%%", (long long)json_integer_value(drawn), all > 0 ? 100 * number(row, "drawn") / all : 0);
    for (size_t i = 0; drawn && i < n_footprints; i++) {
        const json_t *v = json_array_get(psnr, i);
        if (json_is_number(v))
            kiln_print_part(" %6.2f", json_number_value(v));
        else
            kiln_print_part(" %6s", level ? "exact" : "full");
    }
    kiln_print_gap();
}

void kiln_levels_info_print(const json_t *info)
{
    const json_t *rows = json_object_get(info, "rows"), *footprints = json_object_get(info, "footprints");
    const size_t n = json_array_size(footprints);
    kiln_print_gap();
    if (!json_is_object(info)) {
        kiln_print("no levels of detail (kiln-lod makes them)");
        return;
    }
    if (!json_is_true(json_object_get(info, "current")))
        kiln_print("levels of detail of other chunks than the bake has now; run kiln-lod");
    kiln_print_part("%5s %6s %11s %8s", "level", "nodes", "Gaussians", "MiB");
    if (json_is_true(json_object_get(info, "current"))) kiln_print_part(" %11s %6s", "scene drawn", "share");
    for (size_t i = 0; i < n; i++) kiln_print_part(" %6.2g", json_number_value(json_array_get(footprints, i)));
    kiln_print_gap();
    const double all = number(json_array_get(rows, 0), "drawn");
    for (size_t i = 0; i < json_array_size(rows); i++) print_row(json_array_get(rows, i), all, n);
    if (n)
        kiln_print_wrapped(
            "right: PSNR of the whole scene where a pixel is so wide, in a picture of %.0f pixels or more; profile %s%s",
            number(info, "pixels"), json_string_value(json_object_get(info, "profile")),
            json_is_true(json_object_get(info, "antialiased")) ? ", antialiased" : "");
}
