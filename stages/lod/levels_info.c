/* Levels of detail for kiln-info: first as JSON, from which the table is printed. */
#include "stages/lod/levels_info.h"

#include "base/memory.h"
#include "base/quote.h"
#include "schema/layers.h"
#include "schema/level_sites.h"
#include "schema/levels.h"
#include "stages/engine/json_text.h"
#include "stages/frame/level_choice.h"
#include "stages/frame/level_cost.h"
#include "stages/frame/level_hiding.h"
#include "stages/frame/camera_path.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLACES = 3,
    SIZES = 3,
    FIGURES = PLACES * SIZES,
    CAMERAS_MOST = 64,
    LEVELS = KILN_LEVELS_MAX + 1
};
static const char *const places[PLACES] = {"near", "median", "far"};
static const double sizes[SIZES] = {1, 0.5, 0.25};
/* in the table: all at full size, the median one at half and quarter */
static const uint32_t shown[] = {0, 1, 2, 4, 7};

/* A camera of the bake at a size: for which errors are told. */
typedef struct {
    kiln_view_request request;
    double footprint; /* that it has on the whole scene */
    const char *camera;
    double *open; /* [n_nodes] what errors of nodes count in it */
} figure;

typedef struct {
    kiln_layer *baked, *levels;
    kiln_level_tree tree;
    bool current; /* the tree is made */
    /* [n_cameras] at most CAMERAS_MOST, evenly spread over those of the bake */
    kiln_camera *cameras;
    kiln_texts names; /* of those */
    uint32_t n_cameras;
    figure figures[FIGURES]; /* sizes one after the other, of each the places */
    uint32_t n_figures;      /* 0: no errors were measured, or there are no cameras */
    uint32_t n;              /* levels, with level 0 */
    uint64_t nodes[LEVELS], rows[LEVELS], bytes[LEVELS];
} survey;

static void survey_release(survey *s)
{
    for (uint32_t i = 0; i < FIGURES; i++) free(s->figures[i].open);
    free(s->cameras);
    kiln_texts_release(&s->names);
    kiln_level_tree_release(&s->tree);
    kiln_layer_free(s->levels);
    kiln_layer_free(s->baked);
}

/* ---- what is stored -------------------------------------------------------------------------- */
static void add_layer_rows(survey *s, const kiln_layer *l)
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
    static const char sql[] = "SELECT c.level, sum(length(b.packed)) FROM stage_output o JOIN "
                              "chunk c ON c.layer = o.layer"
                              " JOIN plane p ON p.chunk = c.id JOIN plane_segment g ON g.plane = "
                              "p.id JOIN blob b ON b.hash = g.hash"
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
        rc == SQLITE_DONE
            ? KILN_OK
            : kiln_fail(err, KILN_E_IO, "the levels cannot be read: %s", sqlite3_errmsg(db));
    sqlite3_finalize(q);
    return st;
}

/* ---- the scene at a level -------------------------------------------------------------------- */
static bool has_errors(const survey *s)
{
    for (uint32_t i = 0; i < s->levels->n_chunks; i++)
        if (s->levels->chunks[i].n_errors) return true;
    return false;
}

typedef struct {
    uint32_t camera;
    double footprint;
} standing;

static int nearest_first(const void *a, const void *b)
{
    const standing *x = a, *y = b;
    if (x->footprint != y->footprint) return x->footprint < y->footprint ? -1 : 1;
    return (x->camera > y->camera) - (x->camera < y->camera);
}

static kiln_status look_through(const survey *s, const kiln_scene *scene, uint32_t camera,
                                double size, figure *out, kiln_error *err)
{
    const kiln_level_node *root = &s->tree.nodes[s->tree.n_nodes - 1];
    kiln_view_options options = {.antialiased = s->levels->origin_antialiased ? 1 : 2,
                                 .near_text = "profile"};
    kiln_camera *smaller;
    options.profile = (uint32_t)kiln_profile_find(s->levels->origin_profile);
    KILN_TRY(KILN_ALLOC(&smaller, 1, "a camera", err));
    *smaller = s->cameras[camera];
    kiln_camera_rescale(smaller, kiln_camera_scaled(smaller->width, size),
                        kiln_camera_scaled(smaller->height, size));
    const kiln_status st = kiln_view_request_init(&out->request, &options, scene, smaller, err);
    free(smaller);
    out->camera = s->cameras[camera].name;
    double share;
    if (st == KILN_OK) out->footprint = kiln_level_node_footprint(&out->request.view, root, &share);
    return st;
}

typedef struct {
    survey *s;
    uint64_t all, met;
    uint32_t n;
} spreading;

static kiln_status take_camera(void *context, const kiln_camera *c, kiln_error *err)
{
    spreading *x = context;
    if (x->s->n_cameras < x->n && x->met++ == x->s->n_cameras * x->all / x->n) {
        kiln_camera *to = &x->s->cameras[x->s->n_cameras++];
        *to = *c;
        to->photo = to->mask = ""; /* they last as long as the row is read */
        KILN_TRY(kiln_texts_add(&x->s->names, c->name, &to->name, err));
    }
    return KILN_OK;
}

/* One after the other, as there may be many more. */
static kiln_status read_cameras(kiln_manifest *m, survey *s, kiln_error *err)
{
    kiln_scene_size size;
    KILN_TRY(kiln_scene_size_get(m, &size, err));
    spreading x = {.s = s, .all = (uint64_t)size.cameras};
    x.n = x.all < CAMERAS_MOST ? (uint32_t)x.all : CAMERAS_MOST;
    KILN_TRY(KILN_ALLOC(&s->cameras, x.n, "cameras", err));
    return kiln_cameras_each(m, take_camera, &x, err);
}

/* The nearest, the median and the farthest. */
static kiln_status choose_place_cameras(const survey *s, const kiln_scene *scene,
                                        uint32_t at[PLACES], kiln_error *err)
{
    const uint32_t n = s->n_cameras;
    standing all[CAMERAS_MOST];
    for (uint32_t i = 0; i < n; i++) {
        figure f;
        all[i].camera = i;
        KILN_TRY(look_through(s, scene, i, 1, &f, err));
        all[i].footprint = f.footprint;
    }
    qsort(all, n, sizeof *all, nearest_first);
    at[0] = all[0].camera;
    at[1] = all[n / 2].camera;
    at[2] = all[n - 1].camera;
    return KILN_OK;
}

static kiln_status choose_figures(kiln_manifest *m, survey *s, kiln_error *err)
{
    kiln_scene *scene;
    uint32_t at[PLACES];
    KILN_TRY(read_cameras(m, s, err));
    if (s->n_cameras == 0 || s->tree.n_nodes == 0 || !has_errors(s)) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&scene, 1, "the scene", err));
    kiln_status st = kiln_scene_get(m, scene, err);
    if (st == KILN_OK) st = choose_place_cameras(s, scene, at, err);
    for (uint32_t i = 0; i < FIGURES && st == KILN_OK; i++) {
        figure *f = &s->figures[i];
        st = look_through(s, scene, at[i % PLACES], sizes[i / PLACES], f, err);
        if (st == KILN_OK) st = KILN_ALLOC(&f->open, s->tree.n_nodes, "what hides nodes", err);
        if (st == KILN_OK) st = kiln_level_hiding(&s->tree, &f->request, f->open, err);
    }
    if (st == KILN_OK) s->n_figures = FIGURES;
    free(scene);
    return st;
}

/* What the errors of the cut foretell of each figure's picture. */
static json_t *decibels(const survey *s, const kiln_level_cut *cut)
{
    json_t *list = json_array();
    for (uint32_t f = 0; f < s->n_figures; f++) {
        const kiln_view_request *r = &s->figures[f].request;
        double sum = 0;
        for (uint32_t i = 0; i < cut->n; i++) {
            if (cut->picks[i].level == 0) continue;
            const kiln_chunk *c = &s->levels->chunks[cut->picks[i].chunk - s->baked->n_chunks];
            const uint32_t node = cut->picks[i].node;
            if (kiln_view_request_may_see(r, c))
                sum +=
                    s->figures[f].open[node] * kiln_level_cost(&r->view, &s->tree.nodes[node], c);
        }
        (void)json_array_append_new(
            list, kiln_json_real(10 * log10((double)r->view.width * r->view.height / sum)));
    }
    return list;
}

static kiln_status add_scene(const survey *s, uint32_t level, json_t *row, kiln_error *err)
{
    const kiln_level_wish wish = {.form = KILN_LEVEL_AT, .level = level};
    kiln_level_cut cut = {.n = 0};
    if (!s->current || s->tree.n_nodes == 0) return KILN_OK;
    kiln_status st = kiln_level_choose(&s->tree, &wish, NULL, &cut, err);
    if (st == KILN_OK &&
        (json_object_set_new(row, "drawn", json_integer((json_int_t)cut.rows)) != 0 ||
         json_object_set_new(row, "psnr", level ? decibels(s, &cut) : json_array()) != 0))
        st = kiln_fail(err, KILN_E_NOMEM, "out of memory for the levels");
    kiln_level_cut_release(&cut);
    return st;
}

/* ---- JSON ------------------------------------------------------------------------------------ */
/* Of chunks that are no longer drawn nothing is known: the row of level 0 is left out. */
static kiln_status write_level_rows(const survey *s, json_t *list, kiln_error *err)
{
    for (uint32_t i = s->current ? 0 : 1; i < s->n; i++) {
        json_t *row =
            json_pack("{s:i, s:I, s:I, s:I}", "level", (int)i, "nodes", (json_int_t)s->nodes[i],
                      "gaussians", (json_int_t)s->rows[i], "bytes", (json_int_t)s->bytes[i]);
        if (json_array_append_new(list, row) != 0)
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for the levels");
        KILN_TRY(add_scene(s, i, row, err));
    }
    return KILN_OK;
}

static kiln_status write_levels_json(const survey *s, json_t **out, kiln_error *err)
{
    json_t *rows = json_array(), *figures = json_array();
    for (uint32_t i = 0; i < s->n_figures; i++) {
        const figure *f = &s->figures[i];
        (void)json_array_append_new(
            figures,
            json_pack("{s:s, s:o, s:o, s:i, s:i, s:o}", "place", places[i % PLACES], "size",
                      kiln_json_real(sizes[i / PLACES]), "camera", kiln_json_string(f->camera),
                      "width", (int)f->request.view.width, "height", (int)f->request.view.height,
                      "footprint", kiln_json_real(f->footprint)));
    }
    *out = json_pack("{s:b, s:o, s:b, s:o, s:o, s:o}", "current", s->current, "profile",
                     kiln_json_string(s->levels->origin_profile), "antialiased",
                     s->levels->origin_antialiased, "near", kiln_json_real(s->levels->origin_near),
                     "figures", figures, "rows", rows);
    if (*out) return write_level_rows(s, rows, err);
    return kiln_fail(err, KILN_E_NOMEM, "out of memory for the levels");
}

static kiln_status survey_levels(kiln_manifest *m, survey *s, kiln_error *err)
{
    KILN_TRY(kiln_layer_get_digest(m, "baked", s->levels->origin, &s->baked, err));
    add_layer_rows(s, s->baked);
    add_layer_rows(s, s->levels);
    KILN_TRY(add_bytes(m, s, "baked", err));
    KILN_TRY(add_bytes(m, s, "levels", err));
    KILN_TRY(kiln_level_tree_make(s->baked, s->levels, &s->tree, err));
    KILN_TRY(kiln_level_tree_read_sites(m, &s->tree, err));
    return choose_figures(m, s, err);
}

/* Levels of chunks that are no longer drawn: the layer itself is what there is to tell of. */
static kiln_status look_at_old(kiln_manifest *m, survey *s, kiln_error *err)
{
    add_layer_rows(s, s->levels);
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
        if (st == KILN_OK) st = s->current ? survey_levels(m, s, err) : look_at_old(m, s, err);
        if (st == KILN_OK) st = write_levels_json(s, out, err);
    }
    survey_release(s);
    free(s);
    return st;
}

/* ---- the table ------------------------------------------------------------------------------- */
static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void print_row(const json_t *row, double all, bool figures)
{
    const json_t *drawn = json_object_get(row, "drawn"), *psnr = json_object_get(row, "psnr");
    const long long level = (long long)json_integer_value(json_object_get(row, "level"));
    kiln_print_part("%5lld %6lld %10lld %8.2f", level,
                    (long long)json_integer_value(json_object_get(row, "nodes")),
                    (long long)json_integer_value(json_object_get(row, "gaussians")),
                    number(row, "bytes") / (1 << 20));
    if (drawn)
        kiln_print_part(" %10lld %5.1f%%", (long long)json_integer_value(drawn),
                        all > 0 ? 100 * number(row, "drawn") / all : 0);
    for (size_t i = 0; drawn && figures && i < sizeof shown / sizeof *shown; i++) {
        const json_t *v = json_array_get(psnr, shown[i]);
        if (json_is_number(v))
            kiln_print_part(" %5.1f", json_number_value(v));
        else
            kiln_print_part(" %5s", level ? "exact" : "full");
    }
    kiln_print_gap();
}

void kiln_levels_info_print(const json_t *info)
{
    const json_t *rows = json_object_get(info, "rows"), *figures = json_object_get(info, "figures");
    const bool n = json_array_size(figures) == FIGURES;
    kiln_print_gap();
    if (!json_is_object(info)) {
        kiln_print("no levels of detail (kiln-lod makes them)");
        return;
    }
    if (!json_is_true(json_object_get(info, "current")))
        kiln_print("the levels of detail belong to earlier chunks; run kiln-lod");
    kiln_print_part("%5s %6s %10s %8s", "level", "nodes", "Gaussians", "MiB");
    if (json_is_true(json_object_get(info, "current")))
        kiln_print_part(" %10s %6s", "drawn", "share");
    if (n) kiln_print_part(" %5s %5s %5s %5s %5s", "near", "mid", "far", "1/2", "1/4");
    kiln_print_gap();
    const double all = number(json_array_get(rows, 0), "drawn");
    for (size_t i = 0; i < json_array_size(rows); i++) print_row(json_array_get(rows, i), all, n);
    if (n)
        kiln_print_wrapped("on the right: predicted PSNR in dB for the nearest, the median and the "
                           "farthest camera, and for the "
                           "median camera at 1/2 and 1/4 of its size; profile %s%s",
                           json_string_value(json_object_get(info, "profile")),
                           json_is_true(json_object_get(info, "antialiased")) ? ", antialiased"
                                                                              : "");
}
