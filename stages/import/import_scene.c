#include "stages/import/import_scene.h"

#include "base/harmonics.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/memory.h"
#include "schema/layers.h"
#include "stages/engine/json_text.h"
#include "stages/engine/meaning.h"
#include "stages/import/activation.h"
#include "stages/import/dataset/findings.h"
#include "stages/select/up_axis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- scene row ------------------------------------------------------------------------------- */

/* {"dropped": {}, "clamped": {}, "writer": "", "dialect": "", "layout": {...}, ...}: what kiln-info
 * shows and what export needs to be lossless. */
static json_t *make_notes(const kiln_import_result *i, json_t *layout, json_t *cfg)
{
    const kiln_source_info *info = &i->scan.info;
    json_t *n =
        json_pack("{s:o*, s:o*, s:o, s:s*, s:s, s:b, s:b, s:b, s:b}", "dropped",
                  kiln_dropped_json(&i->counts), "clamped", kiln_clamped_json(&i->counts), "writer",
                  kiln_json_string(info->writer), "axes", info->axes[0] ? info->axes : NULL,
                  "dialect", info->dialect == KILN_DIALECT_2DGS ? "2dgs" : "3dgs", "folded",
                  info->folded, "wide", info->wide, "has_rgb", info->has_rgb, "random", i->random);
    json_t *files = i->n_parts > 1 ? kiln_join_files(i->parts, i->n_parts, true) : NULL;
    if (n && ((i->n_parts > 1 && json_object_set_new(n, "files", files) != 0) ||
              (layout && json_object_set(n, "layout", layout) != 0) ||
              (cfg && json_object_set(n, "cfg_args", cfg) != 0))) {
        json_decref(n);
        n = NULL;
    }
    return n;
}

/* The only file of rows is. */
static bool is_moved(const kiln_import_result *i)
{
    return i->n_parts == 1 && !kiln_similarity_is_identity(&i->parts[0].move);
}

static kiln_status parse_scene_json(const char *text, const char *what, json_t **out,
                                    kiln_error *err)
{
    *out = NULL;
    return *text ? kiln_json_parse(text, strlen(text), 0, what, out, NULL, err) : KILN_OK;
}

static kiln_status write_notes(const kiln_import_result *i, char *out, size_t capacity,
                               kiln_error *err)
{
    json_t *layout = NULL, *cfg = NULL;
    kiln_status st =
        parse_scene_json(i->scan.info.layout, "the columns of the source", &layout, err);
    if (st == KILN_OK) st = parse_scene_json(i->data.cfg_args, "cfg_args", &cfg, err);
    /* a comment may name the axis that was turned: our own is written instead */
    if (layout && is_moved(i) && json_object_del(layout, "comments") != 0)
        st = kiln_fail(err, KILN_E_BUG, "a layout without comments");
    json_t *n = st == KILN_OK ? make_notes(i, layout, cfg) : NULL;
    json_decref(layout);
    json_decref(cfg);
    if (st != KILN_OK) return st;
    size_t need = kiln_json_put(n, out, capacity - 1, JSON_COMPACT | JSON_SORT_KEYS);
    if (need > capacity - 1 && i->n_parts > 1 &&
        json_object_set_new(n, "files", kiln_join_files(i->parts, i->n_parts, false)) == 0) {
        kiln_say("the names of so many files cannot be stored with the scene; it keeps the number "
                 "of rows of each, in their order");
        need = kiln_json_put(n, out, capacity - 1, JSON_COMPACT | JSON_SORT_KEYS);
    }
    if (need > capacity - 1 && json_object_del(n, "layout") == 0) {
        kiln_warn(
            "the PLY header is too long to be stored; export will write its own column order");
        need = kiln_json_put(n, out, capacity - 1, JSON_COMPACT | JSON_SORT_KEYS);
    }
    json_decref(n);
    if (need == 0) return kiln_fail(err, KILN_E_NOMEM, "out of memory while describing the scene");
    if (need > capacity - 1)
        return kiln_fail(err, KILN_E_BUG, "the scene's notes need %zu bytes", need);
    out[need] = '\0';
    return KILN_OK;
}

static bool is_turned(const kiln_move *m)
{
    return m->rotate[0] != 0 || m->rotate[1] != 0 || m->rotate[2] != 0;
}

kiln_axis kiln_import_up(const kiln_import_result *i)
{
    kiln_axis axis;
    kiln_similarity move;
    const char *text = i->up                     ? i->up
                       : i->scan.info.up_axis[0] ? i->scan.info.up_axis
                                                 : i->data.set.up_axis;
    (void)snprintf(axis.text, sizeof axis.text, "%s", text);
    kiln_similarity_of_move(&i->move, &move);
    if (!i->up && is_turned(&i->move)) kiln_turn_axis(&move, axis.text, sizeof axis.text);
    return axis;
}

kiln_status kiln_import_scene(const kiln_import_result *i, kiln_scene *s, kiln_error *err)
{
    const kiln_source_info *info = &i->scan.info;
    memset(s, 0, sizeof *s);
    snprintf(s->name, sizeof s->name, "%s", i->data.name);
    s->kind = info->kind;
    if (i->n_parts > 0) {
        snprintf(s->source_path, sizeof s->source_path, "%s", i->parts[0].path);
        snprintf(s->source_format, sizeof s->source_format, "%s",
                 i->n_parts > 1 ? KILN_JOINED_FORMAT : i->parts[0].reader->name);
    }
    if (i->random) snprintf(s->source_format, sizeof s->source_format, "%s", KILN_RANDOM_READER);
    s->rows_read = i->counts.read;
    s->rows_dropped = i->counts.read - i->counts.kept;
    s->sh_degree = info->sh_degree;
    s->antialiased = info->antialiased;
    memcpy(s->frame, i->data.set.frame, sizeof s->frame);
    const kiln_axis up = kiln_import_up(i);
    memcpy(s->up_axis, up.text, sizeof s->up_axis);
    memcpy(s->transforms, i->data.set.transforms, sizeof s->transforms);
    KILN_TRY(kiln_join_transforms(i->parts, i->n_parts, &i->move, s->transforms,
                                  sizeof s->transforms, err));
    memcpy(s->origin, i->scan.origin, sizeof s->origin);
    s->has_root = i->counts.kept > 0;
    memcpy(s->root_centre, i->cube.centre, sizeof s->root_centre);
    s->root_half = i->cube.half;
    s->has_background = i->has_background;
    memcpy(s->background, i->background, sizeof s->background);
    return write_notes(i, s->notes, sizeof s->notes, err);
}

/* ---- layer ----------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    kiln_type type;
    uint32_t components;
} planes[] = {
#define PLANE(name, type, components, meaning) {#name, KILN_TYPE_##type, components},
#include "schema/planes.def"
#undef PLANE
};

static kiln_status describe_plane(const kiln_source_info *info, const char *name, kiln_plane *p,
                                  kiln_error *err)
{
    snprintf(p->name, sizeof p->name, "%s", name);
    for (size_t k = 0; k < sizeof planes / sizeof *planes; k++)
        if (strcmp(planes[k].name, name) == 0) {
            p->type = planes[k].type;
            p->components =
                planes[k].components ? planes[k].components : kiln_sh_components(info->sh_degree);
            return KILN_OK;
        }
    for (uint32_t e = 0; e < info->n_extras; e++)
        if (strncmp(name, "extra/", 6) == 0 && strcmp(name + 6, info->extras[e].name) == 0) {
            p->type = info->extras[e].type;
            p->components = 1;
            return KILN_OK;
        }
    return kiln_fail(err, KILN_E_IO, "it has an output '%s', which is not a plane", name);
}

static int planes_by_name(const void *a, const void *b)
{
    return strcmp(((const kiln_plane *)a)->name, ((const kiln_plane *)b)->name);
}

static kiln_status take_planes(const kiln_source_info *info, const kiln_unit_result *res,
                               kiln_chunk *c, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&c->planes, res->n, "planes", err));
    for (uint32_t k = 0; k < res->n; k++) {
        if (strcmp(res->outputs[k].name, "stats") == 0 || res->outputs[k].segment != 0) continue;
        kiln_plane *p = &c->planes[c->n_planes++];
        KILN_TRY(describe_plane(info, res->outputs[k].name, p, err));
        KILN_TRY(kiln_unit_result_array(res, p->name, &p->data, err));
        if (p->data.raw_bytes != c->count * p->components * kiln_type_size(p->type))
            return kiln_fail(err, KILN_E_IO, "its plane '%s' has %llu bytes for %llu rows", p->name,
                             (unsigned long long)p->data.raw_bytes, (unsigned long long)c->count);
    }
    qsort(c->planes, c->n_planes, sizeof *c->planes, planes_by_name);
    return kiln_chunk_plane(c, "means") ? KILN_OK
                                        : kiln_fail(err, KILN_E_IO, "it has no plane 'means'");
}

/* A block without rows has no largest scale, so those two may be infinite; and no number at all is
 * NaN. */
static bool are_stats(const kiln_block_stats *s)
{
    bool sound =
        s->n <= KILN_BLOCK_ROWS && !isnan(s->max_log_scale) && !isnan(s->max_opacity_logit);
    for (int a = 0; a < 3; a++) sound = sound && isfinite(s->box_min[a]) && isfinite(s->box_max[a]);
    return sound;
}

static kiln_status take_block_bounds(kiln_run *r, const kiln_unit *u, uint64_t number,
                                     kiln_chunk *c, kiln_error *err)
{
    kiln_block_stats stats;
    KILN_TRY(kiln_unit_struct(r, u, "stats", &stats, sizeof stats, err));
    if (!are_stats(&stats))
        return kiln_unit_refuse(
            r, u, kiln_fail(err, KILN_E_IO, "its statistics belong to no block"), err);
    snprintf(c->name, sizeof c->name, "%08llu", (unsigned long long)number);
    c->count = stats.n;
    memcpy(c->box_min, stats.box_min, sizeof c->box_min);
    memcpy(c->box_max, stats.box_max, sizeof c->box_max);
    /* blocks are never culled: chunks have their reach */
    memcpy(c->reach_min, stats.box_min, sizeof c->reach_min);
    memcpy(c->reach_max, stats.box_max, sizeof c->reach_max);
    c->max_log_scale = stats.max_log_scale;
    c->max_opacity_logit = stats.max_opacity_logit;
    return KILN_OK;
}

static kiln_status take_block(const kiln_import_result *i, kiln_run *r, const kiln_unit *u,
                              uint64_t number, kiln_chunk *c, kiln_error *err)
{
    KILN_TRY(take_block_bounds(r, u, number, c, err));
    return kiln_unit_refuse(r, u, take_planes(&i->scan.info, &u->result, c, err), err);
}

/* names: of the planes, each ended by NUL. */
static kiln_status describe_planes(const kiln_source_info *info, const char *names, uint64_t bytes,
                                   kiln_chunk *c, kiln_error *err)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < bytes; i++) n += names[i] == '\0';
    KILN_TRY(KILN_ALLOC(&c->planes, n, "planes", err));
    for (const char *at = names; at < names + bytes; at += strlen(at) + 1) {
        kiln_plane *p = &c->planes[c->n_planes++];
        KILN_TRY(describe_plane(info, at, p, err));
        p->data.raw_bytes = c->count * p->components * kiln_type_size(p->type);
    }
    qsort(c->planes, c->n_planes, sizeof *c->planes, planes_by_name);
    return KILN_OK;
}

static kiln_status take_measured(const kiln_import_result *i, kiln_run *r, const kiln_unit *u,
                                 uint64_t number, kiln_chunk *c, kiln_error *err)
{
    void *names;
    uint64_t bytes;
    KILN_TRY(take_block_bounds(r, u, number, c, err));
    KILN_TRY(kiln_unit_data(r, u, KILN_PLANE_NAMES, &names, &bytes, err));
    const kiln_status st = describe_planes(&i->scan.info, names, bytes, c, err);
    free(names);
    return st;
}

kiln_status kiln_import_layer(const kiln_import_result *i, kiln_run *r, const kiln_unit *blocks,
                              kiln_layer **out, kiln_error *err)
{
    kiln_layer *l = NULL;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&l, 1, "layer", err));
    *out = l;
    snprintf(l->kind, sizeof l->kind, "%s", kiln_layer_kinds[KILN_LAYER_source].name);
    l->sh_degree = i->scan.info.sh_degree;
    KILN_TRY(KILN_ALLOC(&l->chunks, i->scan.n_blocks, "blocks", err));
    for (uint64_t b = 0; b < i->scan.n_blocks; b++) {
        if (blocks[b].quarantined) continue;
        kiln_chunk *c = &l->chunks[l->n_chunks++];
        KILN_TRY(kiln_unit_pass(
            r, &blocks[b],
            (blocks[b].volatile_result ? take_measured : take_block)(i, r, &blocks[b], b, c, err)));
        l->count += c->count;
    }
    return kiln_run_refused(r, err);
}

/* As kiln_block_planes gives them. */
static kiln_status list_planes(const kiln_scan *scan, kiln_buffer *names, kiln_error *err)
{
    static const char splats[] = "means\0source_row\0log_scales\0quats\0opacity_logits\0sh0",
                      sh[] = "shN", points[] = "means\0source_row\0rgb";
    const bool is_splats = scan->info.kind == KILN_SCENE_SPLATS;
    KILN_TRY(kiln_buffer_put(names, is_splats ? splats : points,
                             is_splats ? sizeof splats : sizeof points, err));
    if (is_splats && scan->info.sh_degree) KILN_TRY(kiln_buffer_put(names, sh, sizeof sh, err));
    for (uint32_t e = 0; e < scan->info.n_extras; e++) {
        if (!scan->keep[e]) continue;
        KILN_TRY(kiln_buffer_printf(names, err, "extra/%s", scan->info.extras[e].name));
        KILN_TRY(kiln_buffer_put(names, "", 1, err));
    }
    return KILN_OK;
}

/* A box that says nothing: numbers that a plan can be made with. */
static kiln_status expect_block(const kiln_import_result *i, const kiln_buffer *names,
                                kiln_chunk *c, kiln_error *err)
{
    for (int a = 0; a < 3; a++) {
        c->box_min[a] = c->reach_min[a] = -1;
        c->box_max[a] = c->reach_max[a] = 1;
    }
    return describe_planes(&i->scan.info, (const char *)names->data, names->size, c, err);
}

kiln_status kiln_import_layer_expected(const kiln_import_result *i, kiln_layer **out,
                                       kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_buffer names = {0};
    kiln_layer *l = NULL;
    *out = NULL;
    KILN_GO(list_planes(&i->scan, &names, err));
    KILN_GO(KILN_ALLOC(&l, 1, "layer", err));
    snprintf(l->kind, sizeof l->kind, "%s", kiln_layer_kinds[KILN_LAYER_source].name);
    l->sh_degree = i->scan.info.sh_degree;
    l->count = i->scan.info.n_rows;
    KILN_GO(KILN_ALLOC(&l->chunks, i->scan.n_blocks, "blocks", err));
    for (uint32_t k = 0; k < i->n_parts; k++)
        for (uint64_t left = i->parts[k].scan.info.n_rows; left;) {
            kiln_chunk *c = &l->chunks[l->n_chunks];
            (void)snprintf(c->name, sizeof c->name, "%08u", l->n_chunks++);
            c->count = kiln_min_u64(left, KILN_BLOCK_ROWS);
            left -= c->count;
            KILN_GO(expect_block(i, &names, c, err));
        }
    *out = l;
    l = NULL;
done:
    kiln_layer_free(l);
    kiln_buffer_release(&names);
    return st;
}

/* ---- report ---------------------------------------------------------------------------------- */

static kiln_status put_report_member(json_t *report, const char *name, json_t *value,
                                     kiln_error *err)
{
    if (!value || json_object_set_new(report, name, value) != 0)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory while reporting");
    return KILN_OK;
}

static kiln_status put_count(json_t *report, const char *name, uint64_t n, kiln_error *err)
{
    return put_report_member(report, name, json_integer((json_int_t)n), err);
}

/* Remarks come of workers, which do not know that kiln convert calls --frame of import
 * --import-frame. */
static void say_remarks(const char *text)
{
    static const char option[] = "--frame ";
    const char *at = kiln_log_is_stage() ? NULL : strstr(text, option);
    if (at)
        kiln_say("%.*s--import-frame %s", (int)(at - text), text, at + strlen(option));
    else
        kiln_say("%s", text);
}

static void say_counts(const kiln_import_result *i)
{
    for (int d = 1; d < KILN_N_DROPS; d++)
        if (i->counts.dropped[d])
            kiln_warn("%llu row%s dropped: %s", (unsigned long long)i->counts.dropped[d],
                      i->counts.dropped[d] == 1 ? "" : "s", kiln_drop_text((kiln_drop)d));
    for (int c = 0; c < KILN_N_CLAMPS; c++)
        if (i->counts.clamped[c])
            kiln_say("%llu row%s: %s", (unsigned long long)i->counts.clamped[c],
                     i->counts.clamped[c] == 1 ? "" : "s", kiln_clamp_text((kiln_clamp)c));
    if (i->scan.info.dialect == KILN_DIALECT_2DGS)
        kiln_say("the scene is 2DGS: its surfels are drawn as flat 3D Gaussians, which is similar "
                 "to the trainer's pictures, but "
                 "not equal");
    if (i->scan.info.remarks[0]) say_remarks(i->scan.info.remarks);
    if (i->scan.info.notes[0]) kiln_warn("%s", i->scan.info.notes);
}

static kiln_status report_points(const kiln_import_result *i, json_t *report, kiln_error *err)
{
    if (i->scan.info.kind == KILN_SCENE_SPLATS || i->random) return KILN_OK;
    KILN_TRY(put_count(report, "points_read", i->counts.read, err));
    return put_count(report, "points_dropped", i->counts.read - i->counts.kept, err);
}

kiln_status kiln_import_report(const kiln_import_result *i, json_t *report, kiln_error *err)
{
    static const char *const kinds[] = {"none", "points", "splats"};
    KILN_TRY(put_report_member(report, "kind", json_string(kinds[i->scan.info.kind]), err));
    KILN_TRY(put_report_member(report, "source", kiln_json_string(i->data.rows_path), err));
    if (i->n_parts > 1)
        KILN_TRY(
            put_report_member(report, "files", kiln_join_files(i->parts, i->n_parts, true), err));
    KILN_TRY(put_count(report, "rows_read", i->counts.read, err));
    KILN_TRY(put_count(report, "rows_dropped", i->counts.read - i->counts.kept, err));
    KILN_TRY(put_report_member(report, "dropped", kiln_dropped_json(&i->counts), err));
    KILN_TRY(put_report_member(report, "clamped", kiln_clamped_json(&i->counts), err));
    KILN_TRY(put_report_member(report, "dropped_rows", json_incref(i->dropped_rows), err));
    if (i->n_missing) KILN_TRY(put_count(report, "blocks_missing", i->n_missing, err));
    if (i->n_missing) KILN_TRY(put_count(report, "rows_quarantined", i->rows_missing, err));
    KILN_TRY(put_count(report, "sh_degree", i->scan.info.sh_degree, err));
    KILN_TRY(put_report_member(report, "antialiased", json_boolean(i->scan.info.antialiased), err));
    KILN_TRY(report_points(i, report, err));
    KILN_TRY(put_count(report, "cameras", i->n_cameras, err));
    KILN_TRY(put_report_member(report, "synthetic_cameras", json_boolean(i->orbit != NULL), err));
    KILN_TRY(put_count(report, "frames_read", i->data.set.frames_read, err));
    KILN_TRY(put_count(report, "frames_dropped", i->data.set.frames_dropped, err));
    /* COLMAP's word for a frame */
    KILN_TRY(put_count(report, "images_read", i->data.set.frames_read, err));
    KILN_TRY(put_count(report, "images_dropped", i->data.set.frames_dropped, err));
    KILN_TRY(kiln_findings_json(&i->data, report, err));
    const char *activated = kiln_activation_noted(i->scan.info.notes);
    if (activated) KILN_TRY(kiln_meaning_put(report, err, "%s", activated));
    say_counts(i);
    return KILN_OK;
}
