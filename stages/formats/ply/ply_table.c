/* ply_table -- the plan: columns and header text. ply_encode.c has the values. */
#include "stages/formats/ply/ply_table.h"

#include "base/harmonics.h"
#include "base/option.h"
#include "schema/layers.h"
#include "stages/engine/json_text.h"
#include "stages/formats/ply/dropped_columns.h"
#include "stages/products/product_mark.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const role_planes[] = {
    [KILN_ROLE_NONE] = "",
    [KILN_ROLE_MEAN] = "means",
    [KILN_ROLE_LOG_SCALE] = "log_scales",
    [KILN_ROLE_QUAT] = "quats",
    [KILN_ROLE_OPACITY] = "opacity_logits",
    [KILN_ROLE_SH0] = "sh0",
    [KILN_ROLE_SHN] = "shN",
    [KILN_ROLE_RGB] = "rgb",
    [KILN_ROLE_FILTER] = "",
};

typedef struct {
    const kiln_export *e;
    const kiln_chunk *sample;
    kiln_ply_table *f;
    kiln_buffer *notes;
    bool moved; /* coordinates are measured from an origin other than 0 */
} planner;

static kiln_status add_ply_note(planner *p, const char *sentence, kiln_error *err)
{
    return p->notes
               ? kiln_buffer_printf(p->notes, err, "%s%s", p->notes->size ? "; " : "", sentence)
               : KILN_OK;
}

/* A name is a word of a header line: one with a line feed would be a line of its own. Names come
 * from the manifest. */
static bool is_word(const char *name)
{
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f) return false;
    return *name != '\0';
}

static kiln_status add_column(planner *p, const kiln_ply_column *c, kiln_error *err)
{
    kiln_ply_table *f = p->f;
    if (!is_word(c->name))
        return kiln_fail(err, KILN_E_IO,
                         "a column cannot be called '%s' in a PLY; import the scene again",
                         c->name);
    if (f->n_columns == KILN_PLY_COLUMNS_MAX)
        return kiln_fail(err, KILN_E_INPUT, "the layer has more than %d columns to write",
                         KILN_PLY_COLUMNS_MAX);
    f->columns[f->n_columns] = *c;
    f->columns[f->n_columns++].offset = f->row_bytes;
    f->row_bytes += kiln_type_size(c->type);
    return KILN_OK;
}

/* The kept raw copy of a column, where the layer has it. */
static void find_kept_plane(const planner *p, kiln_ply_column *c)
{
    snprintf(c->kept, sizeof c->kept, "extra/%s", c->name);
    const kiln_plane *plane = kiln_export_plane_of_all(p->e, c->kept);
    if (plane && plane->components == 1)
        c->kept_type = plane->type;
    else
        c->kept[0] = '\0';
}

static bool is_source(const planner *p)
{
    return !p->e->edited && p->e->n_bakes == 1 &&
           strcmp(p->e->bakes[0].layer->kind, kiln_layer_kinds[KILN_LAYER_source].name) == 0;
}

/* A column of a known meaning. */
static kiln_status add_known(planner *p, const char *name, kiln_type type, kiln_ply_use use,
                             bool folded, kiln_error *err)
{
    kiln_ply_column c = {.type = type, .role = use.role, .component = use.component};
    bool from_source = is_source(p);
    bool folds = folded && (use.role == KILN_ROLE_LOG_SCALE || use.role == KILN_ROLE_OPACITY ||
                            use.role == KILN_ROLE_FILTER);
    snprintf(c.name, sizeof c.name, "%s", name);
    if (use.role == KILN_ROLE_FILTER && !from_source) return KILN_OK;
    const char *plane = use.role == KILN_ROLE_RGB && p->f->splats ? "sh0" : role_planes[use.role];
    snprintf(c.plane, sizeof c.plane, "%s", plane);
    find_kept_plane(p, &c);
    if (folds && !from_source) c.kept[0] = '\0';
    c.kept_always = folds && c.kept[0];
    if (use.role == KILN_ROLE_MEAN && p->moved)
        c.type = p->e->keep_origin || (p->e->inria_columns && p->f->splats) ? KILN_TYPE_F32
                                                                            : KILN_TYPE_F64;
    bool whole_number = c.type != KILN_TYPE_F32 && c.type != KILN_TYPE_F64;
    /* a stage may have changed it */
    if (whole_number && use.role != KILN_ROLE_RGB && !from_source) c.type = KILN_TYPE_F32;
    if (use.role == KILN_ROLE_MEAN && c.type == KILN_TYPE_F32) c.kept[0] = '\0';
    return add_column(p, &c, err);
}

static bool is_normal(const char *name)
{
    return name[0] == 'n' && name[1] && strchr("xyz", name[1]) && !name[2];
}

static kiln_status add_unknown(planner *p, const char *name, kiln_type type, kiln_error *err)
{
    if (p->e->no_normals && is_normal(name)) return KILN_OK;
    char sentence[160];
    kiln_ply_column c = {.type = type, .role = KILN_ROLE_NONE};
    snprintf(c.name, sizeof c.name, "%s", name);
    snprintf(c.plane, sizeof c.plane, "extra/%s", name);
    const kiln_plane *plane = kiln_export_plane_of_all(p->e, c.plane);
    if (plane && plane->type == type && plane->components == 1) return add_column(p, &c, err);
    if (p->e->cut && is_normal(name) && type == KILN_TYPE_F32) {
        c.plane[0] = '\0'; /* 0, as trainers write them: readers want the columns */
        return add_column(p, &c, err);
    }
    snprintf(sentence, sizeof sentence, "column '%s' of the source is not in %s and left out", name,
             p->e->cut           ? "levels of detail"
             : p->e->n_bakes > 1 ? "all bakes"
                                 : "this layer");
    return add_ply_note(p, sentence, err);
}

/* ---- the source's own columns ---------------------------------------------------------------- */

/* *layout NULL: none is known. */
static kiln_status source_layout(const kiln_export *e, json_t **layout, kiln_error *err)
{
    json_t *notes = NULL;
    *layout = NULL;
    if (e->n_bakes > 1 || strcmp(kiln_export_scene(e)->source_format, "ply") != 0) return KILN_OK;
    KILN_TRY(kiln_json_parse(kiln_export_scene(e)->notes, strlen(kiln_export_scene(e)->notes), 0,
                             "the scene's notes", &notes, NULL, err));
    *layout = json_incref(json_object_get(notes, "layout"));
    json_decref(notes);
    return KILN_OK;
}

/* A name has no blanks, but may have a ';' in it: the one before the next column's type is the last
 * before the next blank. */
static const char *end_of_name(const char *name)
{
    size_t n = strcspn(name, " ");
    if (!name[n]) return name + n; /* of the last column */
    while (n > 0 && name[n] != ';') n--;
    return name + n;
}

/* "float x;float y;..." as the reader's header has it. */
static kiln_status parse_columns(const char *text, kiln_ply_header *h, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&h->columns, KILN_PLY_COLUMNS_MAX, "columns", err));
    h->n_rows = 1;
    for (const char *at = text, *end; *at; at = end + (*end == ';')) {
        char type[16];
        kiln_ply_property *p = &h->columns[h->n_columns];
        const size_t space = strcspn(at, " ");
        const char *name = at + space + (at[space] == ' ');
        end = end_of_name(name);
        const size_t n = (size_t)(end - name);
        bool good = h->n_columns < KILN_PLY_COLUMNS_MAX && space < sizeof type && n > 0 &&
                    n < sizeof p->name;
        if (good) {
            memcpy(type, at, space);
            type[space] = '\0';
            memcpy(p->name, name, n);
            good = kiln_ply_type_find(type, &p->type);
        }
        if (!good)
            return kiln_fail(
                err, KILN_E_IO,
                "the scene's notes hold a column list that cannot be read; import again");
        h->n_columns++;
    }
    return KILN_OK;
}

static kiln_status add_named(planner *p, const char *name, kiln_error *err)
{
    kiln_ply_use use = kiln_ply_role(name, p->f->splats ? KILN_SCENE_SPLATS : KILN_SCENE_POINTS,
                                     p->f->splats, p->e->sh_degree);
    return add_known(p, name, use.role == KILN_ROLE_RGB ? KILN_TYPE_U8 : KILN_TYPE_F32, use, false,
                     err);
}

static kiln_status add_numbered(planner *p, const char *stem, uint32_t n, kiln_error *err)
{
    char name[32];
    for (uint32_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s_%u", stem, i);
        KILN_TRY(add_named(p, name, err));
    }
    return KILN_OK;
}

static bool has_column(const planner *p, const char *name)
{
    for (uint32_t c = 0; c < p->f->n_columns; c++)
        if (strcmp(p->f->columns[c].name, name) == 0) return true;
    return false;
}

/* The source itself comes out as it was; of later layers other programs want the columns that all
 * Gaussians have: f_dc where the source had colours instead, and three scales where it had one. */
static kiln_status add_missing_colours(planner *p, kiln_error *err)
{
    if (!p->f->splats || is_source(p) || has_column(p, "f_dc_0")) return KILN_OK;
    return add_numbered(p, "f_dc", 3, err);
}

static kiln_status add_missing_scales(planner *p, kiln_type type, kiln_error *err)
{
    static const char *const names[] = {"scale_1", "scale_2"};
    for (int i = 0; i < 2 && !is_source(p); i++)
        KILN_TRY(add_known(p, names[i], type, kiln_ply_role(names[i], KILN_SCENE_SPLATS, true, 0),
                           false, err));
    return KILN_OK;
}

/* *used: the layer can be written with the columns of its source. */
static kiln_status add_source_columns(planner *p, const char *text, bool *used, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_ply_header h = {0};
    kiln_ply_use *uses = NULL;
    kiln_source_info *info = NULL;
    *used = false;
    KILN_GO(parse_columns(text, &h, err));
    KILN_GO(KILN_ALLOC(&uses, h.n_columns, "columns", err));
    KILN_GO(KILN_ALLOC(&info, 1, "columns", err));
    KILN_GO(kiln_ply_plan(&h, "the scene's notes", NULL, uses, info, err));
    *used = (info->kind == KILN_SCENE_SPLATS) == p->f->splats &&
            (!p->f->splats || info->sh_degree == p->e->sh_degree);
    for (uint32_t i = 0; i < h.n_columns && *used; i++) {
        const kiln_ply_property *c = &h.columns[i];
        if (uses[i].role == KILN_ROLE_NONE) {
            KILN_GO(add_unknown(p, c->name, c->type, err));
            continue;
        }
        if (uses[i].role == KILN_ROLE_RGB) KILN_GO(add_missing_colours(p, err));
        KILN_GO(add_known(p, c->name, c->type, uses[i], info->folded, err));
        if (uses[i].role == KILN_ROLE_LOG_SCALE &&
            kiln_ply_scales_of(uses, h.n_columns) == KILN_SCALES_ONE)
            KILN_GO(add_missing_scales(p, c->type, err));
    }
    if (*used && info->folded && !is_source(p))
        KILN_GO(add_ply_note(p, "filter_3D is folded into scales and opacities and left out", err));
done:
    free(info);
    free(uses);
    kiln_ply_header_release(&h);
    return st;
}

/* ---- INRIA's columns ------------------------------------------------------------------------- */

/* Asked of the bakes themselves: rows that stand for others have none, which are written as 0. */
static bool bakes_have_float(const kiln_export *e, const char *name)
{
    for (uint32_t k = 0; k < e->n_bakes; k++) {
        const kiln_layer *layer = e->bakes[k].layer;
        const kiln_plane *plane =
            layer->n_chunks ? kiln_chunk_plane(&layer->chunks[0], name) : NULL;
        if (layer->n_chunks && (!plane || plane->type != KILN_TYPE_F32)) return false;
    }
    return true;
}

/* all: 0 where a source has none. */
static kiln_status add_normals(planner *p, bool all, kiln_error *err)
{
    static const char *const names[] = {"nx", "ny", "nz"};
    if (p->e->no_normals) return KILN_OK;
    for (int i = 0; i < 3; i++) {
        kiln_ply_column c = {.type = KILN_TYPE_F32};
        snprintf(c.name, sizeof c.name, "%s", names[i]);
        snprintf(c.plane, sizeof c.plane, "extra/%s", names[i]);
        if (!all && !bakes_have_float(p->e, c.plane)) continue;
        const kiln_plane *plane = kiln_export_plane_of_all(p->e, c.plane);
        if (!plane || plane->type != KILN_TYPE_F32) c.plane[0] = '\0';
        KILN_TRY(add_column(p, &c, err));
    }
    return KILN_OK;
}

/* A column whose meaning has a plane of its own, such as a kept x of doubles, or that the table
 * has. */
static bool is_known_or_written(const planner *p, const char *name)
{
    bool is = kiln_ply_role(name, KILN_SCENE_SPLATS, false, p->e->sh_degree).role != KILN_ROLE_NONE;
    return is || has_column(p, name);
}

/* Columns of the other bakes that the sample lacks. */
static kiln_status tell_left_out(planner *p, const kiln_layer *layer, kiln_error *err)
{
    for (uint32_t i = 0; layer->n_chunks && i < layer->chunks[0].n_planes; i++) {
        const kiln_plane *plane = &layer->chunks[0].planes[i];
        if (strncmp(plane->name, "extra/", 6) != 0 || kiln_chunk_plane(p->sample, plane->name))
            continue;
        if (is_known_or_written(p, plane->name + 6)) continue;
        KILN_TRY(add_unknown(p, plane->name + 6, plane->type, err));
    }
    return KILN_OK;
}

/* Columns that INRIA's do not have are counted. */
static kiln_status tell_dropped(planner *p, kiln_error *err)
{
    kiln_buffer names = {0};
    uint32_t n = 0;
    kiln_status st = kiln_dropped_columns(p->e, &names, &n, err);
    if (st == KILN_OK && n && p->notes)
        st = kiln_buffer_printf(p->notes, err, "%s%s", p->notes->size ? "; " : "",
                                (const char *)names.data);
    kiln_buffer_release(&names);
    return st;
}

static bool has_columns(const kiln_scene *s)
{
    return strcmp(s->source_format, "ply") == 0 ||
           strcmp(s->source_format, KILN_JOINED_FORMAT) == 0;
}

/* What PLY sources had beside their known columns; other formats' extras have no meaning in a
 * PLY. */
static kiln_status add_extras(planner *p, kiln_error *err)
{
    if (!has_columns(kiln_export_scene(p->e))) return KILN_OK;
    for (uint32_t i = 0; i < p->sample->n_planes && !p->e->cut; i++) {
        const kiln_plane *plane = &p->sample->planes[i];
        if (strncmp(plane->name, "extra/", 6) == 0 && !is_known_or_written(p, plane->name + 6))
            KILN_TRY(add_unknown(p, plane->name + 6, plane->type, err));
    }
    for (uint32_t k = 0; k < p->e->n_bakes; k++)
        KILN_TRY(tell_left_out(p, p->e->bakes[k].layer, err));
    return KILN_OK;
}

/* Of Gaussians. Sources of other formats, and points that become Gaussians, name none: these get
 * all that INRIA's have. */
static bool any_names_columns(const kiln_export *e)
{
    for (uint32_t k = 0; k < e->n_bakes; k++)
        if (e->bakes[k].scene.kind == KILN_SCENE_SPLATS && has_columns(&e->bakes[k].scene))
            return true;
    return false;
}

static kiln_status add_default_columns(planner *p, kiln_error *err)
{
    static const char *const xyz[] = {"x", "y", "z"}, *const rgb[] = {"red", "green", "blue"};
    for (int i = 0; i < 3; i++) {
        kiln_ply_use use = {.role = KILN_ROLE_MEAN, .component = (uint32_t)i, .extra = -1};
        char kept[16];
        snprintf(kept, sizeof kept, "extra/%s", xyz[i]);
        bool wide = !p->f->splats && !p->e->keep_origin && kiln_export_plane_of_all(p->e, kept);
        KILN_TRY(add_known(p, xyz[i], wide ? KILN_TYPE_F64 : KILN_TYPE_F32, use, false, err));
    }
    if (p->f->splats) {
        KILN_TRY(add_normals(p, !any_names_columns(p->e), err));
        KILN_TRY(add_numbered(p, "f_dc", 3, err));
        KILN_TRY(add_numbered(p, "f_rest", kiln_sh_components(p->e->sh_degree), err));
        KILN_TRY(add_named(p, "opacity", err));
        KILN_TRY(add_numbered(p, "scale", 3, err));
        KILN_TRY(add_numbered(p, "rot", 4, err));
    } else if (kiln_export_plane_of_all(p->e, "rgb")) {
        for (int i = 0; i < 3; i++) KILN_TRY(add_named(p, rgb[i], err));
    }
    return add_extras(p, err);
}

/* Just what INRIA's save_ply writes for degree 3. Coefficients that are not there are 0, those
 * above degree 3 are left out. */
static kiln_status add_inria_columns(planner *p, kiln_error *err)
{
    enum { DEGREE = 3 };
    static const char *const xyz[] = {"x", "y", "z"};
    char name[32];
    for (int i = 0; i < 3; i++)
        KILN_TRY(add_known(p, xyz[i], KILN_TYPE_F32,
                           kiln_ply_role(xyz[i], KILN_SCENE_SPLATS, true, 0), false, err));
    KILN_TRY(add_normals(p, true, err));
    KILN_TRY(add_numbered(p, "f_dc", 3, err));
    for (uint32_t i = 0; i < kiln_sh_components(DEGREE); i++) {
        kiln_ply_column c = {.type = KILN_TYPE_F32};
        snprintf(name, sizeof name, "f_rest_%u", i);
        const kiln_ply_use use = kiln_ply_role(name, KILN_SCENE_SPLATS, true, DEGREE);
        snprintf(c.name, sizeof c.name, "%s", name);
        const bool is_there = use.component < kiln_sh_components(p->e->sh_degree);
        KILN_TRY(is_there ? add_known(p, name, KILN_TYPE_F32, use, false, err)
                          : add_column(p, &c, err));
    }
    KILN_TRY(add_named(p, "opacity", err));
    KILN_TRY(add_numbered(p, "scale", 3, err));
    KILN_TRY(add_numbered(p, "rot", 4, err));
    if (p->e->sh_degree > DEGREE)
        KILN_TRY(add_ply_note(p, "spherical harmonics above degree 3 are left out", err));
    return tell_dropped(p, err);
}

/* ---- header ---------------------------------------------------------------------------------- */

/* Texts of the manifest stay within their line. */
static kiln_status check_line(const char *text, size_t bytes, kiln_error *err)
{
    if (!memchr(text, '\n', bytes)) return KILN_OK;
    return kiln_fail(err, KILN_E_IO,
                     "a comment of the source is more than a line, as the scene's notes have it; "
                     "import the scene again");
}

static kiln_status put_comment(kiln_buffer *h, const char *kind, const char *text, kiln_error *err)
{
    KILN_TRY(check_line(text, strlen(text), err));
    return kiln_buffer_printf(h, err, "%s %s\n", kind, text);
}

static kiln_status put_hex_comment(kiln_buffer *h, const char *hex, kiln_error *err)
{
    char kind = 0;
    unsigned byte;
    for (size_t i = 0; hex[i] && hex[i + 1] && sscanf(hex + i, "%2x", &byte) == 1; i += 2) {
        unsigned char c = (unsigned char)byte;
        if (i == 0) {
            kind = (char)c;
            KILN_TRY(kiln_buffer_printf(h, err, "%s", kind == 'o' ? "obj_info" : "comment"));
        } else {
            KILN_TRY(check_line((const char *)&c, 1, err));
            KILN_TRY(kiln_buffer_put(h, &c, 1, err));
        }
    }
    return kiln_buffer_put(h, "\n", 1, err);
}

/* The source's own comments again, in their order. */
static kiln_status put_source_comments(kiln_buffer *h, const json_t *comments, kiln_error *err)
{
    size_t i;
    json_t *c;
    json_array_foreach(comments, i, c)
    {
        const char *text = json_string_value(c),
                   *hex = json_string_value(json_object_get(c, "hex"));
        if (text && strlen(text) >= 2)
            KILN_TRY(put_comment(h, text[0] == 'o' ? "obj_info" : "comment", text + 2, err));
        if (hex) KILN_TRY(put_hex_comment(h, hex, err));
    }
    return KILN_OK;
}

static kiln_status put_generator(kiln_buffer *h, kiln_error *err)
{
    return kiln_buffer_printf(h, err, "comment Generated by " KILN_PRODUCT_GENERATOR "%s\n",
                              kiln_version);
}

/* All rows of the source in its order are to be the source again, byte for byte. Fewer rows, or
 * another order, are a file of ours, and must say so: the next export would not dare to replace
 * it. */
static kiln_status put_generator_beside(const kiln_export *e, const json_t *comments,
                                        kiln_buffer *h, kiln_error *err)
{
    static const char mark[] = "c Generated by " KILN_PRODUCT_GENERATOR;
    size_t i;
    json_t *c;
    if (e->source_order && e->n_rows == kiln_export_scene(e)->rows_read) return KILN_OK;
    json_array_foreach(comments, i, c)
    {
        const char *text = json_string_value(c);
        if (text && strncmp(text, mark, sizeof mark - 1) == 0) return KILN_OK;
    }
    return put_generator(h, err);
}

kiln_status kiln_ply_put_comments(const kiln_export *e, kiln_buffer *h, kiln_error *err)
{
    const kiln_scene *s = kiln_export_scene(e);
    char up[sizeof s->up_axis];
    KILN_TRY(put_generator(h, err));
    kiln_export_up_axis(e, up, sizeof up);
    KILN_TRY(check_line(up, strlen(up), err));
    if (up[0]) KILN_TRY(kiln_buffer_printf(h, err, "comment Vertical axis: %s\n", up));
    bool surfels;
    KILN_TRY(kiln_export_is_2dgs(e, &surfels, err));
    if (!e->splats || !(s->antialiased || surfels)) return KILN_OK;
    return put_comment(h, "comment", surfels ? "SplatRenderMode: 2dgs" : "SplatRenderMode: mip",
                       err);
}

kiln_status kiln_ply_put_origin(const kiln_export *e, kiln_buffer *h, kiln_error *err)
{
    const double *o = e->base;
    if (!e->keep_origin || (o[0] == 0 && o[1] == 0 && o[2] == 0)) return KILN_OK;
    return kiln_buffer_printf(h, err, "comment Origin: %.17g %.17g %.17g, to be added to x y z\n",
                              o[0], o[1], o[2]);
}

static kiln_status put_header(const planner *p, const json_t *comments, kiln_error *err)
{
    kiln_buffer *h = &p->f->header;
    KILN_TRY(kiln_buffer_printf(h, err, "ply\nformat binary_little_endian 1.0\n"));
    if (comments) {
        KILN_TRY(put_source_comments(h, comments, err));
        KILN_TRY(put_generator_beside(p->e, comments, h, err));
    } else {
        KILN_TRY(kiln_ply_put_comments(p->e, h, err));
    }
    KILN_TRY(kiln_ply_put_origin(p->e, h, err));
    KILN_TRY(kiln_buffer_printf(h, err, "element vertex %llu\n", (unsigned long long)p->e->n_rows));
    for (uint32_t i = 0; i < p->f->n_columns; i++)
        KILN_TRY(kiln_buffer_printf(h, err, "property %s %s\n",
                                    kiln_ply_type_name(p->f->columns[i].type),
                                    p->f->columns[i].name));
    return kiln_buffer_printf(h, err, "end_header\n");
}

kiln_status kiln_ply_table_plan(const kiln_export *e, kiln_ply_table *out, kiln_buffer *notes,
                                kiln_error *err)
{
    kiln_status st = KILN_OK;
    planner p = {.e = e, .sample = kiln_export_sample(e), .f = out, .notes = notes};
    const double *o = e->base;
    json_t *layout = NULL;
    bool used = false;
    memset(out, 0, sizeof *out);
    out->splats = kiln_chunk_plane(p.sample, "log_scales") != NULL;
    p.moved = o[0] != 0 || o[1] != 0 || o[2] != 0;
    if (!e->keep_origin) memcpy(out->origin, o, sizeof out->origin);
    KILN_GO(KILN_ALLOC(&out->columns, KILN_PLY_COLUMNS_MAX, "columns", err));
    KILN_GO(source_layout(e, &layout, err));
    const bool inria = e->inria_columns && out->splats;
    const char *columns = inria ? NULL : json_string_value(json_object_get(layout, "columns"));
    if (inria) KILN_GO(add_inria_columns(&p, err));
    if (columns) KILN_GO(add_source_columns(&p, columns, &used, err));
    if (!used && !inria) KILN_GO(add_default_columns(&p, err));
    /* a comment may name the axis that was turned: our own is written instead, as for a scene that
     * import moved */
    KILN_GO(put_header(&p, used && !e->edited ? json_object_get(layout, "comments") : NULL, err));
done:
    json_decref(layout);
    return st;
}

void kiln_ply_table_release(kiln_ply_table *f)
{
    kiln_buffer_release(&f->header);
    free(f->columns);
    memset(f, 0, sizeof *f);
}
