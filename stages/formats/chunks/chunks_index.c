/* chunks_index -- see the header. A function returns NULL if memory is gone, and so does json_pack
 * if one of its values is NULL, so only the caller of the whole looks. */
#include "stages/formats/chunks/chunks_index.h"

#include "base/file.h"
#include "kernels/view.h"
#include "stages/engine/json_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void kiln_chunks_file_name(const kiln_array *a, char out[KILN_CHUNKS_FILE_NAME])
{
    char hex[33];
    kiln_hash h = a->n_segments == 1
                      ? a->segments[0]
                      : kiln_hash_of(a->segments, a->n_segments * sizeof *a->segments);
    (void)snprintf(out, KILN_CHUNKS_FILE_NAME, "%s.bin", kiln_hash_hex(h, hex));
}

/* ---- values ---------------------------------------------------------------------------------- */

/* 63 bits: more than the numbers of JavaScript hold, so text. */
static json_t *code_json(uint64_t v) { return json_sprintf("%016llx", (unsigned long long)v); }
static json_t *integer_json(uint64_t v) { return json_integer((json_int_t)v); }
static json_t *vector_json(const float *v)
{
    return kiln_json_reals((const double[3]){(double)v[0], (double)v[1], (double)v[2]}, 3);
}

/* Sets a member; a value that was not made makes the object NULL, as json_pack does. */
static void set_index_member(json_t **object, const char *key, json_t *value)
{
    if (*object && json_object_set_new(*object, key, value) == 0) return;
    if (!*object) json_decref(value);
    json_decref(*object);
    *object = NULL;
}

/* Appends an item, likewise. */
static void append_index_item(json_t **array, json_t *item)
{
    if (*array && json_array_append_new(*array, item) == 0) return;
    if (!*array) json_decref(item);
    json_decref(*array);
    *array = NULL;
}

static json_t *file_json(const kiln_array *a, kiln_type type, uint32_t components)
{
    char name[KILN_CHUNKS_FILE_NAME];
    kiln_chunks_file_name(a, name);
    return json_pack("{s:s, s:I, s:s, s:I}", "type", kiln_type_name(type), "components",
                     (json_int_t)components, "file", name, "bytes", (json_int_t)a->raw_bytes);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static json_t *chunk_json(const kiln_chunk *c)
{
    json_t *planes = json_object();
    for (uint32_t i = 0; i < c->n_planes; i++)
        set_index_member(&planes, c->planes[i].name,
                         file_json(&c->planes[i].data, c->planes[i].type, c->planes[i].components));
    return json_pack("{s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
                     c->name, "parent", c->parent, "count", (json_int_t)c->count, "level",
                     (json_int_t)c->level, "hilbert_first", code_json(c->hilbert_lo),
                     "hilbert_last", code_json(c->hilbert_hi), "box_min", vector_json(c->box_min),
                     "box_max", vector_json(c->box_max), "reach_min", vector_json(c->reach_min),
                     "reach_max", vector_json(c->reach_max), "max_log_scale",
                     kiln_json_real((double)c->max_log_scale), "max_opacity_logit",
                     kiln_json_real((double)c->max_opacity_logit), "planes", planes);
}

static json_t *chunks_json(const kiln_export *e)
{
    json_t *chunks = json_array();
    for (uint32_t i = 0; i < e->n_chunks; i++)
        if (e->chunks[i].level == 0) append_index_item(&chunks, chunk_json(e->chunks[i].chunk));
    return chunks;
}

uint64_t kiln_chunks_rows(const kiln_export *e)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < e->n_chunks; i++) rows += e->chunks[i].level ? 0 : e->chunks[i].n;
    return rows;
}

/* Of the chunks that are written. */
static json_t *bounds_json(const kiln_export *e)
{
    float box_min[3], box_max[3], reach_min[3], reach_max[3];
    for (int k = 0; k < 3; k++) {
        box_min[k] = reach_min[k] = INFINITY;
        box_max[k] = reach_max[k] = -INFINITY;
        for (uint32_t i = 0; i < e->n_chunks; i++) {
            const kiln_chunk *c = e->chunks[i].chunk;
            if (e->chunks[i].level) continue;
            box_min[k] = fminf(box_min[k], c->box_min[k]);
            box_max[k] = fmaxf(box_max[k], c->box_max[k]);
            reach_min[k] = fminf(reach_min[k], c->reach_min[k]);
            reach_max[k] = fmaxf(reach_max[k], c->reach_max[k]);
        }
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "box_min", vector_json(box_min), "box_max",
                     vector_json(box_max), "reach_min", vector_json(reach_min), "reach_max",
                     vector_json(reach_max));
}

static json_t *scene_json(const kiln_export *e)
{
    const kiln_scene *s = kiln_export_scene(e);
    json_t *scene = json_pack(
        "{s:o, s:i, s:b, s:o, s:o, s:o, s:o}", "name", kiln_json_string(s->name), "sh_degree",
        (int)e->bakes[0].layer->sh_degree, "antialiased", s->antialiased, "origin",
        kiln_json_reals(s->origin, 3), "root_centre", kiln_json_reals(s->root_centre, 3),
        "root_half", kiln_json_real(s->root_half), "up_axis", kiln_json_string(s->up_axis));
    set_index_member(&scene, "unit", kiln_json_string(s->unit));
    set_index_member(&scene, "background",
                     s->has_background ? kiln_json_reals(s->background, 3) : json_null());
    set_index_member(&scene, "bounds", bounds_json(e));
    return scene;
}

/* ---- levels ---------------------------------------------------------------------------------- */

static json_t *level_json(const kiln_chunk *c)
{
    json_t *o = chunk_json(c), *errors = json_array();
    for (uint32_t i = 0; i < c->n_errors; i++)
        append_index_item(&errors, kiln_json_real((double)c->errors[i]));
    set_index_member(&o, "error_step", json_integer(c->error_step));
    set_index_member(&o, "errors", errors);
    return o;
}

static json_t *node_json(const kiln_level_tree *t, const kiln_level_node *n)
{
    json_t *o = json_pack("{s:s, s:s, s:o}", "name", n->name, "parent",
                          n->parent == KILN_NO_NODE ? "" : t->nodes[n->parent].name, "chunk",
                          n->chunk ? json_string(n->chunk->name) : json_null());
    json_t *levels = json_array();
    for (uint32_t k = 0; k < n->n_levels; k++) append_index_item(&levels, level_json(n->levels[k]));
    set_index_member(&o, "rows", integer_json(n->rows));
    set_index_member(&o, "box_min", vector_json(n->box_min));
    set_index_member(&o, "box_max", vector_json(n->box_max));
    set_index_member(&o, "reach_min", vector_json(n->reach_min));
    set_index_member(&o, "reach_max", vector_json(n->reach_max));
    set_index_member(&o, "levels", levels);
    return o;
}

static bool is_measured(const kiln_level_tree *t)
{
    return t->n_nodes && t->nodes[0].n_levels && t->nodes[0].levels[0]->n_errors;
}

static json_t *levels_json(const kiln_export *e)
{
    const kiln_layer *l = e->tree->levels;
    char hex[33];
    json_t *nodes = json_array(), *o = json_object();
    for (uint32_t i = 0; i < e->tree->n_nodes; i++)
        append_index_item(&nodes, node_json(e->tree, &e->tree->nodes[i]));
    set_index_member(&o, "digest", json_string(kiln_hash_hex(l->digest, hex)));
    set_index_member(&o, "rows", integer_json(l->count));
    set_index_member(&o, "measured",
                     is_measured(e->tree)
                         ? json_pack("{s:s, s:b, s:o}", "name", l->origin_profile, "antialiased",
                                     l->origin_antialiased, "near", kiln_json_real(l->origin_near))
                         : json_null());
    set_index_member(&o, "nodes", nodes);
    return o;
}

/* ---- cameras and tile tables ----------------------------------------------------------------- */

static json_t *camera_json(const kiln_camera *c)
{
    json_t *o = json_object();
    set_index_member(&o, "name", kiln_json_string(c->name));
    set_index_member(&o, "rotation", kiln_json_reals(c->r, 9));
    set_index_member(&o, "translation", kiln_json_reals(c->t, 3));
    set_index_member(&o, "width", integer_json(c->width));
    set_index_member(&o, "height", integer_json(c->height));
    set_index_member(&o, "fx", kiln_json_real(c->fx));
    set_index_member(&o, "fy", kiln_json_real(c->fy));
    set_index_member(&o, "cx", kiln_json_real(c->cx));
    set_index_member(&o, "cy", kiln_json_real(c->cy));
    set_index_member(&o, "model", kiln_json_string(c->model));
    set_index_member(&o, "params", kiln_json_reals(c->params, c->n_params));
    set_index_member(&o, "distorted", json_boolean(c->distorted));
    set_index_member(&o, "synthetic", json_boolean(c->synthetic));
    set_index_member(&o, "split", kiln_json_string(c->split));
    return o;
}

static json_t *profile_json(const char *name, bool antialiased, double near_m)
{
    return json_pack("{s:s, s:b, s:o}", "name", name, "antialiased", antialiased, "near",
                     kiln_json_real(near_m));
}

static json_t *band_json(const kiln_tile_band *b)
{
    json_t *o = json_object(), *arrays = json_object();
    set_index_member(&arrays, "tile_count", file_json(&b->tile_count, KILN_TYPE_U32, 1));
    set_index_member(&arrays, "tile_bytes", file_json(&b->tile_bytes, KILN_TYPE_U32, 1));
    set_index_member(&arrays, "rank_delta", file_json(&b->rank_delta, KILN_TYPE_U8, 1));
    set_index_member(&o, "row0", integer_json(b->row0));
    set_index_member(&o, "row1", integer_json(b->row1));
    set_index_member(&o, "pairs", integer_json(b->pairs));
    set_index_member(&o, "arrays", arrays);
    return o;
}

static json_t *table_json(const kiln_tile_table *t)
{
    char hex[33];
    json_t *o = json_object(), *arrays = json_object(), *bands = json_array();
    for (uint32_t i = 0; i < t->n_bands && bands; i++)
        if (json_array_append_new(bands, band_json(&t->bands[i])) != 0) {
            json_decref(bands);
            bands = NULL;
        }
    set_index_member(&arrays, "chunks", file_json(&t->chunks, KILN_TYPE_U8, 1));
    set_index_member(&arrays, "visible_slot", file_json(&t->visible_slot, KILN_TYPE_U32, 1));
    set_index_member(&arrays, "visible_row", file_json(&t->visible_row, KILN_TYPE_U16, 1));
    set_index_member(&o, "camera", kiln_json_string(t->camera));
    set_index_member(&o, "profile", profile_json(t->profile, t->antialiased, t->near_m));
    set_index_member(&o, "digest", json_string(kiln_hash_hex(t->digest, hex)));
    set_index_member(&o, "width", integer_json(t->width));
    set_index_member(&o, "height", integer_json(t->height));
    set_index_member(&o, "tile", integer_json(KILN_TILE));
    set_index_member(&o, "tiles_x", integer_json(t->tiles_x));
    set_index_member(&o, "tiles_y", integer_json(t->tiles_y));
    set_index_member(&o, "visible", integer_json(t->visible));
    set_index_member(&o, "pairs", integer_json(t->pairs));
    set_index_member(&o, "arrays", arrays);
    set_index_member(&o, "bands", bands);
    return o;
}

/* ---- the text -------------------------------------------------------------------------------- */

/* All but the cameras and the tables, which are the last members. */
static json_t *head_json(const kiln_export *e, bool with_tables)
{
    const kiln_layer *layer = e->bakes[0].layer;
    const kiln_export_views *v = e->views;
    char hex[33];
    json_t *index = json_pack("{s:s, s:i, s:o, s:{s:s, s:s, s:I}, s:o}", "format",
                              KILN_CHUNKS_FORMAT, "version", 1, "scene", scene_json(e), "layer",
                              "kind", layer->kind, "digest", kiln_hash_hex(layer->digest, hex),
                              "rows", (json_int_t)kiln_chunks_rows(e), "chunks", chunks_json(e));
    if (e->tree) set_index_member(&index, "levels", levels_json(e));
    set_index_member(&index, "profile",
                     with_tables && v->n_tables
                         ? profile_json(v->profile, v->antialiased, v->near_m)
                         : json_null());
    return index;
}

typedef struct {
    const kiln_export *e;
    kiln_text_sink_fn *sink;
    void *context;
    bool indented;
    uint64_t n; /* elements of the list before the one in work */
} index_text;

static kiln_status put_index_text(const index_text *t, const char *text, kiln_error *err)
{
    return t->sink(t->context, text, strlen(text), err);
}

/* Takes the value. */
static kiln_status make_text(const index_text *t, json_t *value, char **out, kiln_error *err)
{
    *out = kiln_json_text(value,
                          (t->indented ? JSON_INDENT(1) : JSON_COMPACT) | JSON_REAL_PRECISION(17));
    json_decref(value);
    if (*out) return KILN_OK;
    return kiln_fail(err, KILN_E_NOMEM, "out of memory while writing the index of '%s'",
                     t->e->target);
}

/* An element of a list that is a member of the whole: two levels deep. */
static kiln_status put_element(index_text *t, json_t *value, kiln_error *err)
{
    char *text;
    KILN_TRY(make_text(t, value, &text, err));
    kiln_status st = t->n++ ? put_index_text(t, ",", err) : KILN_OK;
    if (st == KILN_OK && t->indented) st = put_index_text(t, "\n  ", err);
    for (const char *line = text, *end; st == KILN_OK; line = end + 1) {
        end = strchr(line, '\n');
        st = t->sink(t->context, line, end ? (size_t)(end - line) : strlen(line), err);
        if (!end) break;
        if (st == KILN_OK) st = put_index_text(t, "\n  ", err);
    }
    free(text);
    return st;
}

static kiln_status put_camera(void *text, const kiln_camera *c, kiln_error *err)
{
    return put_element(text, camera_json(c), err);
}
static kiln_status put_table(void *text, const kiln_tile_table *t, kiln_error *err)
{
    return put_element(text, table_json(t), err);
}

static kiln_status begin_list(index_text *t, const char *name, kiln_error *err)
{
    t->n = 0;
    KILN_TRY(put_index_text(t, t->indented ? ",\n \"" : ",\"", err));
    KILN_TRY(put_index_text(t, name, err));
    return put_index_text(t, t->indented ? "\": [" : "\":[", err);
}

static kiln_status end_list(const index_text *t, kiln_error *err)
{
    return put_index_text(t, t->indented && t->n ? "\n ]" : "]", err);
}

static kiln_status put_head(const index_text *t, bool with_tables, kiln_error *err)
{
    char *text;
    KILN_TRY(make_text(t, head_json(t->e, with_tables), &text, err));
    text[strlen(text) - strlen(t->indented ? "\n}" : "}")] = '\0';
    const kiln_status st = put_index_text(t, text, err);
    free(text);
    return st;
}

kiln_status kiln_chunks_index_write(const kiln_export *e, bool with_tables, bool indented,
                                    kiln_text_sink_fn *sink, void *context, kiln_error *err)
{
    index_text t = {.e = e, .sink = sink, .context = context, .indented = indented};
    KILN_TRY(put_head(&t, with_tables, err));
    KILN_TRY(begin_list(&t, "cameras", err));
    KILN_TRY(kiln_cameras_each(e->views->m, put_camera, &t, err));
    KILN_TRY(end_list(&t, err));
    KILN_TRY(begin_list(&t, "tile_tables", err));
    if (with_tables) KILN_TRY(kiln_tile_tables_each(e->views->m, true, put_table, &t, err));
    KILN_TRY(end_list(&t, err));
    return put_index_text(&t, indented ? "\n}" : "}", err);
}

/* ---- files that it names --------------------------------------------------------------------- */

typedef struct {
    kiln_chunks_file_fn *fn;
    void *context;
} file_list;

static kiln_status tell_array(void *list, const char *name, const kiln_array *a, kiln_error *err)
{
    const file_list *l = list;
    char file[KILN_CHUNKS_FILE_NAME];
    kiln_chunks_file_name(a, file);
    return l->fn(l->context, file, a->raw_bytes)
               ? KILN_OK
               : kiln_fail(err, KILN_E_NOMEM, "out of memory for array '%s'", name);
}

static kiln_status tell_table(void *list, const kiln_tile_table *t, kiln_error *err)
{
    return kiln_chunks_each_array(t, tell_array, list, err);
}

kiln_status kiln_chunks_index_files(const kiln_export *e, bool with_tables, kiln_chunks_file_fn *fn,
                                    void *context, kiln_error *err)
{
    file_list l = {fn, context};
    for (uint32_t i = 0; i < e->n_chunks; i++) /* those of the levels are among them */
        for (uint32_t p = 0; p < e->chunks[i].chunk->n_planes; p++)
            KILN_TRY(tell_array(&l, e->chunks[i].chunk->planes[p].name,
                                &e->chunks[i].chunk->planes[p].data, err));
    return with_tables ? kiln_tile_tables_each(e->views->m, true, tell_table, &l, err) : KILN_OK;
}

kiln_status kiln_chunks_each_array(const kiln_tile_table *t, kiln_chunks_array_fn *fn,
                                   void *context, kiln_error *err)
{
    KILN_TRY(fn(context, "chunks", &t->chunks, err));
    KILN_TRY(fn(context, "visible_slot", &t->visible_slot, err));
    KILN_TRY(fn(context, "visible_row", &t->visible_row, err));
    for (uint32_t i = 0; i < t->n_bands; i++) {
        KILN_TRY(fn(context, "tile_count", &t->bands[i].tile_count, err));
        KILN_TRY(fn(context, "tile_bytes", &t->bands[i].tile_bytes, err));
        KILN_TRY(fn(context, "rank_delta", &t->bands[i].rank_delta, err));
    }
    return KILN_OK;
}
