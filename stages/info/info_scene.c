/* info_scene -- the scene, and how many rows each layer has. */
#include "stages/info/info_internal.h"

#include "base/count.h"
#include "base/memory.h"
#include "base/quote.h"
#include "schema/layers.h"
#include "stages/engine/json_text.h"
#include "stages/select/move.h"

#include <stdlib.h>
#include <string.h>

static json_t *scene_json(const kiln_scene *s)
{
    static const char *const kinds[] = {"none", "points", "splats"};
    json_t *scene = json_pack(
        "{s:o, s:s, s:o, s:o, s:i, s:b, s:o, s:o, s:o, s:o, s:o}", "name",
        kiln_json_string(s->name), "kind", kinds[s->kind], "source",
        kiln_json_string(s->source_path), "format", kiln_json_string(s->source_format), "sh_degree",
        (int)s->sh_degree, "antialiased", s->antialiased, "frame", kiln_json_string(s->frame),
        "up_axis", kiln_json_string(s->up_axis), "unit", kiln_json_string(s->unit), "origin",
        kiln_info_vector(s->origin), "transforms", kiln_info_parsed(s->transforms));
    json_t *root = s->has_root ? json_pack("{s:o, s:o}", "centre", kiln_info_vector(s->root_centre),
                                           "half", kiln_json_real(s->root_half))
                               : json_null();
    json_t *background = s->has_background ? kiln_info_vector(s->background) : json_null();
    if (json_object_set_new(scene, "root", root) == 0 &&
        json_object_set_new(scene, "background", background) == 0 &&
        json_object_set_new(scene, "notes", kiln_info_parsed(s->notes)) == 0)
        return scene;
    json_decref(scene);
    return NULL;
}

/* ---- rows, by layer -------------------------------------------------------------------------- */
static bool has_rows(int kind) { return kiln_layer_kinds[kind].form >= KILN_FORM_DRAWABLE; }

static kiln_status get_layers(kiln_manifest *m, kiln_layer *layers[KILN_LAYER_KINDS],
                              kiln_error *err)
{
    for (int i = 0; i < KILN_LAYER_KINDS; i++) {
        const kiln_status st =
            has_rows(i) ? kiln_layer_get(m, kiln_layer_kinds[i].name, &layers[i], err) : KILN_OK;
        if (st != KILN_OK && st != KILN_E_STALE) return st;
    }
    return KILN_OK;
}

static const json_t *stage_of(const json_t *info, const char *name)
{
    const json_t *list = json_object_get(info, "stages");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *s = json_array_get(list, i);
        if (strcmp(json_string_value(json_object_get(s, "name")), name) == 0) return s;
    }
    return NULL;
}

/* What a partial stage lacks is known only as long as its output is of its input: no stale one is
 * asked. */
static bool is_partial(const json_t *info, const char *stage)
{
    const char *state = json_string_value(json_object_get(stage_of(info, stage), "state"));
    return state && strcmp(state, kiln_stage_state_name(KILN_STAGE_PARTIAL)) == 0;
}

/* Rows in blocks that `to`, made from `from` block by block, does not have. */
static uint64_t rows_of_gaps(const kiln_layer *from, const kiln_layer *to)
{
    uint64_t rows = 0;
    uint32_t k = 0; /* blocks are in the order of their names */
    if (!from || !to) return 0;
    for (uint32_t i = 0; i < from->n_chunks; i++) {
        while (k < to->n_chunks && strcmp(to->chunks[k].name, from->chunks[i].name) < 0) k++;
        if (k == to->n_chunks || strcmp(to->chunks[k].name, from->chunks[i].name) != 0)
            rows += from->chunks[i].count;
    }
    return rows;
}

static uint64_t import_lacks(const json_t *info)
{
    const json_t *report = json_object_get(stage_of(info, "import"), "run");
    return is_partial(info, "import")
               ? (uint64_t)json_integer_value(json_object_get(report, "rows_quarantined"))
               : 0;
}

/* Quarantined: rows that are missing because units failed, whichever stage gave them up. They are
 * no rows that a rule pruned. */
static kiln_status count_lacks(const json_t *info, kiln_layer *const layers[KILN_LAYER_KINDS],
                               json_t *counts, kiln_error *err)
{
    const kiln_layer *before = layers[KILN_LAYER_initial] ? layers[KILN_LAYER_initial]
                                                          : layers[KILN_LAYER_source],
                     *after = layers[KILN_LAYER_pruned], *baked = layers[KILN_LAYER_baked];
    const uint64_t by_prune = is_partial(info, "prune") ? rows_of_gaps(before, after) : 0;
    uint64_t lacks = import_lacks(info) + by_prune;
    if (is_partial(info, "knn"))
        lacks += rows_of_gaps(layers[KILN_LAYER_source], layers[KILN_LAYER_initial]);
    if (is_partial(info, "chunk") && after && baked && after->count > baked->count)
        lacks += after->count - baked->count;
    KILN_TRY(kiln_info_set(counts, "quarantined",
                           before || lacks ? kiln_info_count(lacks) : json_null(), err));
    const bool known = before && after && before->count >= after->count + by_prune;
    return kiln_info_set(
        counts, "pruned_away",
        known ? kiln_info_count(before->count - after->count - by_prune) : json_null(), err);
}

/* Rows of each layer that there is; chunks: of the baked one. */
static kiln_status add_layer_counts(kiln_manifest *m, const json_t *info, json_t *counts,
                                    kiln_error *err)
{
    kiln_layer *layers[KILN_LAYER_KINDS] = {NULL};
    kiln_status st = KILN_OK;
    KILN_GO(get_layers(m, layers, err));
    for (int i = 0; i < KILN_LAYER_KINDS; i++)
        if (has_rows(i))
            KILN_GO(kiln_info_set(counts, kiln_layer_kinds[i].name,
                                  layers[i] ? kiln_info_count(layers[i]->count) : json_null(),
                                  err));
    KILN_GO(kiln_info_set(counts, "chunks",
                          layers[KILN_LAYER_baked]
                              ? kiln_info_count(layers[KILN_LAYER_baked]->n_chunks)
                              : json_null(),
                          err));
    KILN_GO(count_lacks(info, layers, counts, err));
done:
    for (int i = 0; i < KILN_LAYER_KINDS; i++) kiln_layer_free(layers[i]);
    return st;
}

kiln_status kiln_info_scene(kiln_manifest *m, json_t *info, kiln_error *err)
{
    kiln_scene *s = NULL;
    json_t *counts = json_object();
    KILN_TRY(kiln_info_set(info, "counts", counts, err));
    KILN_TRY(KILN_ALLOC(&s, 1, "a scene", err));
    kiln_status st = kiln_scene_get(m, s, err);
    bool imported = st == KILN_OK;
    if (st == KILN_E_STALE) st = KILN_OK;
    if (st == KILN_OK)
        st = kiln_info_set(info, "scene", imported ? scene_json(s) : json_null(), err);
    if (st == KILN_OK)
        st = kiln_info_set(counts, "rows_read",
                           imported ? kiln_info_count(s->rows_read) : json_null(), err);
    if (st == KILN_OK)
        st = kiln_info_set(counts, "rows_dropped",
                           imported ? kiln_info_count(s->rows_dropped) : json_null(), err);
    if (st == KILN_OK) st = add_layer_counts(m, info, counts, err);
    free(s);
    return st;
}

/* ---- for people ------------------------------------------------------------------------------ */
void kiln_info_print_scene(const json_t *info)
{
    const json_t *s = json_object_get(info, "scene"), *c = json_object_get(info, "counts");
    static const char *const keys[] = {"rows_read", "rows_dropped", "pruned_away", "quarantined",
                                       "baked",     "chunks",       "cameras",     "photos",
                                       "tables",    "images"};
    enum { N = sizeof keys / sizeof *keys };
    static const char *const words[N] = {"rows read",   "dropped", "pruned away", "quarantined",
                                         "baked",       "chunks",  "cameras",     "photos",
                                         "tile tables", "images"};
    char buf[32], line[KILN_COLUMNS + 1] = "", item[64];
    kiln_print_wrapped("%s: %s '%s' (%s), SH degree %s%s", kiln_info_text(info, "manifest", "?"),
                       kiln_info_text(s, "kind", "nothing imported"),
                       kiln_info_text(s, "source", ""), kiln_info_text(s, "format", "-"),
                       kiln_info_count_text(s, "sh_degree", buf),
                       json_is_true(json_object_get(s, "antialiased")) ? ", antialiased" : "");
    for (size_t i = 0; i < N; i++) { /* lines end behind a comma */
        const int n = snprintf(item, sizeof item, "%s %s%s", words[i],
                               kiln_info_count_text(c, keys[i], buf), i + 1 < N ? "," : "");
        const size_t used = strlen(line);
        if (used + 1 + (size_t)n > KILN_COLUMNS) {
            kiln_print("%s", line);
            *line = '\0';
        }
        (void)snprintf(line + strlen(line), sizeof line - strlen(line), "%s%s",
                       *line ? " "
                       : i   ? "  "
                             : "",
                       item);
    }
    kiln_print("%s", line);
}

static void print_files(const json_t *files)
{
    enum { NAMED = 5 };
    const size_t n = json_array_size(files);
    if (n == 0) return;
    kiln_print("%s joined", KILN_COUNT(n, "file"));
    for (size_t i = 0; i < n && i < NAMED; i++) {
        const json_t *f = json_array_get(files, i),
                     *rows = json_is_object(f) ? json_object_get(f, "rows") : f;
        kiln_print("file %zu: %s%s%s", i, kiln_info_text(f, "path", ""),
                   json_is_object(f) ? ", " : "", KILN_COUNT(json_integer_value(rows), "row"));
    }
    if (n > NAMED) kiln_print("... and %zu more (--json)", n - NAMED);
}

/* Several files as one, and what was moved by --translate, --rotate and --scale. */
void kiln_info_print_joined_and_moved(const json_t *info)
{
    size_t i;
    const json_t *scene = json_object_get(info, "scene"), *o;
    print_files(json_object_get(json_object_get(scene, "notes"), "files"));
    json_array_foreach(json_object_get(scene, "transforms"), i, o)
    {
        char text[KILN_MOVE_TEXT];
        const json_t *file = json_object_get(o, "file");
        kiln_move m;
        if (!kiln_move_of_json(o, &m)) continue;
        kiln_move_text(&m, text, sizeof text);
        if (file)
            kiln_print("moved: file %lld: %s", (long long)json_integer_value(file), text);
        else
            kiln_print("moved: %s", text);
    }
}
