/* kiln-knn -- measures how far apart the Gaussians or points of the source layer are, and makes
 * points Gaussians.
 *
 * The spacing needs neighbours from anywhere: one unit over the whole source layer, or ranges along
 * a curve (knn/spacing.c); its outputs go back to the source blocks as the layer `spacing`. For a
 * scene of points each block is then a unit of its own: the layer `initial`. Before that, one unit
 * seeks colours in the photos for the points of a COLMAP model that have none.
 *
 * Fallback. A value is missing when the layer has no more points than neighbours are asked for
 * (distCUDA2 would give infinities), and useless when it is infinite or so large that later sums
 * overflow. The stored spacing is then 1 % of the half edge of the root cube: small beside the
 * scene, visible in it. Counted and warned of. */
#include "base/count.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "base/quote.h"
#include "stages/engine/engine.h"
#include "stages/engine/json_text.h"
#include "stages/engine/meaning.h"
#include "stages/engine/parent/run_layers.h"
#include "stages/engine/devices/work.h"
#include "stages/knn/spacing.h"
#include "stages/knn/tracks.h"
#include "stages/knn/knn_units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    uint32_t neighbors;
    double initial_opacity;
    uint64_t range;
} o;

static const kiln_opt options[] = {
    KILN_OPTION_NUMBER("neighbors", &o.neighbors, "N", "neighbours averaged per point",
                       .letter = 'k', .def = "3", .range = "1..32", .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("initial-opacity", &o.initial_opacity, "X",
                       "opacity of Gaussians made from points", .def = "0.1",
                       .range = "0.001..0.999", .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("range", &o.range, "N",
                       "rows of a range; 0: chosen by rows, memory and devices", .def = "0",
                       .range = "0..4294967294", .flags = KILN_HIDDEN),
    KILN_OPTION_END,
};

static const kiln_cli cli = {.program = "kiln-knn",
                             .summary =
                                 "measures the spacing of the Gaussians and gives points a scale",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .options = options,
                             .common = kiln_common_options};

/* 2^120: squares of spacings up to here can be summed 256 times below the largest float32 */
static const double most2 = 0x1p120;

typedef struct {
    kiln_scene scene;
    kiln_layer *source;
    kiln_spacing spacing;
    kiln_tracks tracks;
    kiln_knn_unit colours_payload;
    kiln_unit colours;       /* COLMAP's points only */
    kiln_knn_unit *payloads; /* [source->n_chunks], points only */
    kiln_unit *units;
    bool points, grey;
    double initial_s; /* by the clock */
} measurement;

static void measurement_release(measurement *k)
{
    kiln_spacing_release(&k->spacing);
    kiln_units_release(&k->colours, 1);
    kiln_tracks_release(&k->tracks);
    if (k->units) kiln_units_release(k->units, k->source->n_chunks);
    free(k->units);
    free(k->payloads);
    kiln_layer_free(k->source);
}

static double fallback_spacing(const kiln_scene *s)
{
    double spacing = 0.01 * (s->has_root ? s->root_half : 1);
    return spacing * spacing <= most2 ? spacing : sqrt(most2);
}

/* ---- units ----------------------------------------------------------------------------------- */
static kiln_status measure_spacing(kiln_run *r, measurement *k, kiln_error *err)
{
    const double fallback = fallback_spacing(&k->scene);
    const kiln_spacing_options options_of = {.neighbors = o.neighbors,
                                             .fallback2 = (float)(fallback * fallback),
                                             .most2 = (float)most2,
                                             .range_rows = o.range};
    return kiln_spacing_measure(r, &k->scene, k->source, &options_of, &k->spacing, err);
}

/* What the points sum up, and the largest photo with its mask; whether one is needed at all only
 * the unit finds out, so that less will do where less is allowed (knn/colours.c). */
static uint64_t colours_ram(kiln_run *r, const measurement *k)
{
    const uint64_t base = KILN_UNIT_RAM + k->source->count * KILN_KNN_SUM_RAM,
                   may = kiln_run_unit_ram(r);
    uint64_t photo = 0;
    for (uint32_t i = 0; i < k->tracks.n_cameras; i++)
        photo = kiln_max_u64(photo, kiln_knn_photo_ram(&k->tracks.cameras[i]));
    return base + photo <= may ? base + photo : kiln_max_u64(base, may);
}

static kiln_status find_colours(kiln_run *r, measurement *k, kiln_error *err)
{
    if (!k->tracks.colmap) return KILN_OK;
    k->colours_payload = (kiln_knn_unit){.kind = KILN_KNN_COLOURS, .source = k->source->digest};
    kiln_hasher *h = kiln_run_key_bare(r, "colours");
    kiln_key_tracks(h, &k->tracks);
    for (uint32_t i = 0; i < k->source->n_chunks; i++) {
        kiln_key_plane(h, &k->source->chunks[i], "rgb");
        kiln_key_plane(h, &k->source->chunks[i], "extra/point_id");
    }
    k->colours = (kiln_unit){.name = "colours",
                             .key = kiln_key_end(h),
                             .payload = &k->colours_payload,
                             .payload_bytes = sizeof k->colours_payload,
                             .cost = k->source->count,
                             .ram = colours_ram(r, k)};
    return kiln_run_units(r, "looking for colours", &k->colours, 1, err);
}

/* A cloud without colours has no rgb plane, or one of zeros: many writers put 0 0 0 where they know
 * none. One coloured point is enough for black to mean black. Known by the planes' hashes, so
 * nothing is read. */
static kiln_status look_for_colour(measurement *k, kiln_error *err)
{
    k->grey = true;
    for (uint32_t i = 0; k->grey && i < k->source->n_chunks; i++) {
        const kiln_plane *rgb = kiln_chunk_plane(&k->source->chunks[i], "rgb");
        void *zeros;
        if (!rgb || rgb->data.raw_bytes == 0) continue;
        KILN_TRY(kiln_alloc(&zeros, rgb->data.raw_bytes, 1, "a black plane", err));
        /* a block's colours are 12 bytes a row, far from a second segment */
        k->grey = rgb->data.n_segments == 1 &&
                  kiln_hash_equal(kiln_hash_of(zeros, rgb->data.raw_bytes), rgb->data.segments[0]);
        free(zeros);
    }
    return KILN_OK;
}

/* Are there colours for points of this block? Their hashes go into its key. */
static bool key_colours(kiln_hasher *h, const measurement *k, const kiln_chunk *c)
{
    char rows[96], rgb[96];
    bool any = false;
    (void)snprintf(rows, sizeof rows, KILN_KNN_COLOURED_ROWS, c->name);
    (void)snprintf(rgb, sizeof rgb, KILN_KNN_COLOURED_RGB, c->name);
    for (uint32_t i = 0; i < k->colours.result.n; i++) {
        const kiln_unit_output *out = &k->colours.result.outputs[i];
        if (strcmp(out->name, rows) && strcmp(out->name, rgb)) continue;
        kiln_key_hash(h, "colours", out->hash);
        any = true;
    }
    return any;
}

static kiln_hash initial_key(kiln_run *r, const measurement *k, uint32_t block, bool *colours)
{
    const kiln_chunk *c = &k->source->chunks[block];
    const kiln_unit_result *spacing = &kiln_spacing_of(&k->spacing, block)->result;
    kiln_hasher *h = kiln_run_key_bare(r, "initial");
    kiln_key_f64(h, "opacity", o.initial_opacity);
    kiln_key_plane(h, c, "means");
    kiln_key_plane(h, c, "rgb");
    kiln_key_u64(h, "grey", k->grey);
    for (uint32_t i = 0; i < spacing->n; i++)
        if (!strcmp(spacing->outputs[i].name, c->name))
            kiln_key_hash(h, "spacing2", spacing->outputs[i].hash);
    *colours = key_colours(h, k, c);
    return kiln_key_end(h);
}

static uint64_t initial_ram(uint64_t rows)
{
    /* compute_initial's planes and the spacing; log_scales, quats, opacity_logits, sh0 */
    enum { ROW = 18 * 4, OUT = 11 * 4 };
    return rows * ROW + kiln_outputs_ram(rows * OUT) + (1u << 20);
}

static kiln_status make_gaussians(kiln_run *r, measurement *k, kiln_error *err)
{
    enum { ROW_NS = 130 };
    uint32_t n = k->source->n_chunks;
    const uint64_t start = kiln_now_ns();
    const bool shared = kiln_knn_is_shared(k->source->count, o.range, ROW_NS);
    KILN_TRY(look_for_colour(k, err));
    KILN_TRY(KILN_ALLOC(&k->payloads, n, "the units of knn", err));
    KILN_TRY(KILN_ALLOC(&k->units, n, "the units of knn", err));
    for (uint32_t i = 0; i < n; i++) {
        const kiln_chunk *c = &k->source->chunks[i];
        bool colours;
        const kiln_hash key = initial_key(r, k, i, &colours);
        k->payloads[i] = (kiln_knn_unit){.kind = KILN_KNN_INITIAL,
                                         .block = i,
                                         .opacity = (float)o.initial_opacity,
                                         .grey = k->grey,
                                         .source = k->source->digest,
                                         .spacing = kiln_spacing_of(&k->spacing, i)->key,
                                         .colours = colours ? k->colours.key : (kiln_hash){{0}}};
        k->units[i] = (kiln_unit){.key = key,
                                  .payload = &k->payloads[i],
                                  .payload_bytes = sizeof k->payloads[i],
                                  .cost = c->count,
                                  .ram = initial_ram(c->count),
                                  .planning = !shared};
        (void)snprintf(k->units[i].name, sizeof k->units[i].name, "block %s", c->name);
    }
    KILN_TRY(kiln_run_units(r, "making Gaussians", k->units, n, err));
    k->initial_s = 1e-9 * (double)(kiln_now_ns() - start);
    return KILN_OK;
}

/* ---- layers ---------------------------------------------------------------------------------- */
static kiln_status add_spacing(kiln_chunk *c, const kiln_unit *u, kiln_error *err)
{
    return kiln_chunk_add_output(c, &u->result, c->name, "spacing2", KILN_TYPE_F32, 1, err);
}

static kiln_status make_spacing_layer(kiln_run *r, const measurement *k, kiln_layer *l,
                                      kiln_error *err)
{
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        const kiln_chunk *from = &k->source->chunks[i];
        kiln_chunk *c = &l->chunks[i];
        memcpy(c->name, from->name, sizeof c->name);
        c->count = from->count;
        l->count += c->count;
        KILN_TRY(kiln_unit_refuse(r, kiln_spacing_of(&k->spacing, i),
                                  add_spacing(c, kiln_spacing_of(&k->spacing, i), err), err));
    }
    return KILN_OK;
}

static kiln_status add_made_planes(kiln_chunk *c, const kiln_unit_result *r, kiln_error *err)
{
    KILN_TRY(kiln_chunk_add_output(c, r, "log_scales", "log_scales", KILN_TYPE_F32, 3, err));
    KILN_TRY(kiln_chunk_add_output(c, r, "quats", "quats", KILN_TYPE_F32, 4, err));
    KILN_TRY(
        kiln_chunk_add_output(c, r, "opacity_logits", "opacity_logits", KILN_TYPE_F32, 1, err));
    return kiln_chunk_add_output(c, r, "sh0", "sh0", KILN_TYPE_F32, 3, err);
}

/* What the source has is kept as it is; its colours live on as sh0. */
static kiln_status make_initial_layer(kiln_run *r, const measurement *k, kiln_layer *l,
                                      kiln_error *err)
{
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        const kiln_chunk *from = &k->source->chunks[i];
        kiln_chunk *c = &l->chunks[i];
        const kiln_unit *spacing = kiln_spacing_of(&k->spacing, i);
        memcpy(c->name, from->name, sizeof c->name);
        c->count = from->count;
        l->count += c->count;
        for (uint32_t p = 0; p < from->n_planes; p++)
            if (strcmp(from->planes[p].name, "rgb"))
                KILN_TRY(kiln_chunk_add_copy(c, &from->planes[p], err));
        KILN_TRY(
            kiln_unit_refuse(r, &k->units[i], add_made_planes(c, &k->units[i].result, err), err));
        KILN_TRY(kiln_unit_refuse(r, spacing, add_spacing(c, spacing, err), err));
        KILN_TRY(kiln_chunk_read_bounds(r, &k->units[i], c, err));
    }
    return KILN_OK;
}

static kiln_status put_layers(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err)
{
    const measurement *k = context;
    kiln_layer *spacing = NULL, *initial = NULL;
    kiln_status st = KILN_OK;
    KILN_GO(kiln_stage_outputs_clear(m, "knn", err));
    KILN_GO(kiln_layer_new(KILN_LAYER_spacing, 0, k->source->n_chunks, &spacing, err));
    KILN_GO(make_spacing_layer(r, k, spacing, err));
    KILN_GO(kiln_run_put_layer(r, spacing, err));
    if (k->points) {
        KILN_GO(kiln_layer_new(KILN_LAYER_initial, 0, k->source->n_chunks, &initial, err));
        KILN_GO(make_initial_layer(r, k, initial, err));
        KILN_GO(kiln_run_put_layer(r, initial, err));
    }
done:
    kiln_layer_free(initial);
    kiln_layer_free(spacing);
    return st;
}

/* ---- report ---------------------------------------------------------------------------------- */
static kiln_status report_spacing(kiln_run *r, const measurement *k, kiln_error *err)
{
    const kiln_spacing *m = &k->spacing;
    const double min = sqrt(m->min2), median = sqrt(m->median2), max = sqrt(m->max2);
    const char *rows = k->points ? "points" : "gaussians";
    json_t *s = json_pack("{s:o, s:o, s:o, s:I, s:o}", "min", kiln_json_real(min), "median",
                          kiln_json_real(median), "max", kiln_json_real(max), "fallbacks",
                          (json_int_t)m->fallbacks, "fallback",
                          kiln_json_real(fallback_spacing(&k->scene)));
    json_t *out = kiln_run_report(r);
    if (json_object_set_new(out, rows, json_integer((json_int_t)k->source->count)) ||
        json_object_set_new(out, "neighbors", json_integer(o.neighbors)) ||
        json_object_set_new(out, "spacing", s))
        return kiln_fail(err, KILN_E_NOMEM, "cannot write the report");
    KILN_TRY(kiln_spacing_report(m, out, err));
    if (k->points && json_object_set_new(json_object_get(out, "phases"), "initial_s",
                                         kiln_json_real(k->initial_s)))
        return kiln_fail(err, KILN_E_NOMEM, "cannot write the report");
    if (m->fallbacks)
        kiln_warn("%llu of %s no usable distance to %s; their spacing is set to %g, 1 %% of the "
                  "scene's root cube",
                  (unsigned long long)m->fallbacks,
                  KILN_COUNT(k->source->count,
                             k->points ? "point has|points have" : "Gaussian has|Gaussians have"),
                  KILN_COUNT(o.neighbors, "neighbour"), fallback_spacing(&k->scene));
    if (k->points)
        KILN_TRY(kiln_meaning_put(out, err, "the Gaussians are made of points, " KILN_UNTRAINED));
    if (!kiln_run_prints(r)) return KILN_OK;
    kiln_print("spacing of %s: min %.4g, median %.4g, max %.4g",
               KILN_COUNT(k->source->count, k->points ? "point" : "Gaussian"), min, median, max);
    if (k->points)
        kiln_print("made %s of the points, " KILN_UNTRAINED,
                   KILN_COUNT(k->source->count, "Gaussian"));
    return KILN_OK;
}

static kiln_status report_colours(kiln_run *r, const measurement *k, kiln_error *err)
{
    json_t *c = NULL;
    json_int_t points = 0, coloured = 0, photos = 0;
    if (k->points && k->grey)
        kiln_say("the points have no colours; points that no photo colours become grey");
    if (!k->tracks.colmap) return KILN_OK;
    KILN_TRY(kiln_unit_counters(r, &k->colours, &c, err));
    int bad = json_unpack(c, "{s:I, s:I, s:I}", "points", &points, "coloured", &coloured, "photos",
                          &photos);
    const json_int_t damaged = json_integer_value(json_object_get(c, "damaged"));
    const json_t *damage = json_object_get(c, "damage");
    if (!bad && damaged > 0)
        kiln_warn("damaged photos that give no colours: %lld; the first is %.300s",
                  (long long)damaged, json_is_string(damage) ? json_string_value(damage) : "");
    json_decref(c);
    if (bad)
        return kiln_unit_refuse(r, &k->colours,
                                kiln_fail(err, KILN_E_IO, "its counters are incomplete"), err);
    json_t *out =
        json_pack("{s:I, s:I, s:I}", "points", points, "coloured", coloured, "photos", photos);
    /* out NULL: reported below */
    if (damaged > 0) (void)json_object_set_new(out, "photos_damaged", json_integer(damaged));
    if (json_object_set_new(kiln_run_report(r), "colourless", out))
        return kiln_fail(err, KILN_E_NOMEM, "cannot write the report");
    if (points && kiln_run_prints(r))
        kiln_print("%s without colour: %lld coloured from %s, %s %s", KILN_COUNT(points, "point"),
                   (long long)coloured, KILN_COUNT(photos, "photo"),
                   KILN_COUNT(points - coloured, "stays|stay"), k->grey ? "grey" : "black");
    return KILN_OK;
}

/* What comes behind the spacing. */
static void foresee_colours(kiln_run *r, const measurement *k)
{
    if (k->tracks.colmap) kiln_run_foresee_ram(r, colours_ram(r, k), 1);
    if (k->points)
        kiln_run_foresee_ram(r, initial_ram(kiln_layer_size_of(k->source).rows),
                             k->source->n_chunks);
}

static kiln_status bake_spacing(kiln_run *r, measurement *k, kiln_error *err)
{
    bool fresh;
    kiln_manifest *m = kiln_run_manifest(r);
    KILN_TRY(kiln_run_need(r, "import", err));
    KILN_TRY(kiln_scene_get(m, &k->scene, err));
    if (k->scene.kind == KILN_SCENE_NONE)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' holds neither Gaussians nor points; import a scene that has some, "
                         "or with --random-points N",
                         kiln_manifest_path(m));
    k->points = k->scene.kind == KILN_SCENE_POINTS;
    KILN_TRY(kiln_layer_current(m, KILN_LAYER_source, &k->source, err));
    KILN_TRY(kiln_tracks_get(m, &k->scene, &k->tracks, err));
    kiln_hasher *h = kiln_run_key(r);
    kiln_key_hash(h, "source", k->source->digest);
    kiln_key_u64(h, "points", k->points);
    kiln_key_f64(h, "fallback", fallback_spacing(&k->scene));
    kiln_key_tracks(h, &k->tracks);
    kiln_hash key = kiln_key_end(h);
    KILN_TRY(kiln_run_is_fresh(r, key, &fresh, err));
    if (fresh) return kiln_run_nothing_to_do(r, err);
    foresee_colours(r, k);
    if (!k->tracks.colmap) kiln_run_expect_work(r, kiln_work_knn((double)k->source->count));
    KILN_TRY(measure_spacing(r, k, err));
    KILN_TRY(find_colours(r, k, err));
    if (k->points) KILN_TRY(make_gaussians(r, k, err));
    KILN_TRY(report_spacing(r, k, err));
    KILN_TRY(report_colours(r, k, err));
    return kiln_run_commit(r, key, put_layers, k, err);
}

static kiln_status run_knn(kiln_run *r, kiln_error *err)
{
    measurement *k;
    KILN_TRY(KILN_ALLOC(&k, 1, "the state of knn", err));
    kiln_status st = bake_spacing(r, k, err);
    measurement_release(k);
    free(k);
    return st;
}

const kiln_stage_program kiln_stage_knn = {.name = "knn",
                                           .cli = &cli,
                                           .open = KILN_OPEN_WRITE,
                                           .flags = KILN_PROGRAM_ROUNDS | KILN_PROGRAM_UNDIVIDED,
                                           .run = run_knn,
                                           .unit = kiln_knn_compute};
