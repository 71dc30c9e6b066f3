/* bake_times -- see the header. */
#include "stages/front/bake_times.h"

#include "base/file.h"
#include "schema/manifest.h"
#include "stages/engine/json_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The newest run of a stage. counters: NULL where there is none. */
typedef struct {
    json_t *counters;
    int64_t start_ns;
    double seconds;
} last_run;

static double number_of(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    return json_is_number(v) && json_number_value(v) >= 0 ? json_number_value(v) : NAN;
}

static last_run read_run(kiln_manifest *m, const char *stage)
{
    kiln_run_row row = {0};
    last_run r = {NULL, 0, NAN};
    bool found = false;
    if (kiln_run_row_last(m, stage, &found, &row, NULL) == KILN_OK && found) {
        r.start_ns = row.start_ns;
        r.seconds = ((double)row.stop_ns - (double)row.start_ns) * 1e-9;
        if (kiln_json_parse(row.counters, strlen(row.counters), 0, "a run", &r.counters, NULL,
                            NULL) != KILN_OK)
            r.counters = NULL;
    }
    kiln_run_row_release(&row);
    return r;
}

/* How many times as many units there are as were done; NAN: none was. */
static double whole_of(const json_t *counters)
{
    const json_t *units = json_object_get(counters, "units");
    const double done = number_of(units, "done"), cached = number_of(units, "cached");
    return done > 0 ? (done + (cached > 0 ? cached : 0)) / done : NAN;
}

/* Each stage has its own word for what it read. */
static double count_stage_rows(const json_t *counters)
{
    static const char *const keys[] = {"rows_read", "rows", "gaussians"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!isnan(number_of(counters, keys[i]))) return number_of(counters, keys[i]);
    return NAN;
}

static double views_of(const json_t *counters)
{
    static const char *const keys[] = {"cameras", "views"}, *const counts[] = {"cameras_left_out",
                                                                               "views_left_out"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (json_array_size(json_object_get(counters, keys[i])))
            return (double)json_array_size(json_object_get(counters, keys[i]));
        if (number_of(counters, counts[i]) > 0) return number_of(counters, counts[i]);
    }
    return NAN;
}

/* ---- size ------------------------------------------------------------------------------------ */
static kiln_status add_view(void *size, const kiln_camera *c, kiln_error *err)
{
    kiln_bake_size *z = size;
    const double pixels = (double)c->width * (double)c->height;
    (void)err;
    z->views++;
    z->pixels += pixels;
    z->photo_pixels += c->photo[0] ? pixels : 0;
    return KILN_OK;
}

static void read_views(kiln_manifest *m, kiln_bake_size *z)
{
    kiln_bake_size of_cameras = {0};
    if (kiln_cameras_each(m, add_view, &of_cameras, NULL) != KILN_OK || of_cameras.views == 0)
        return;
    z->views = of_cameras.views;
    z->pixels = of_cameras.pixels;
    z->photo_pixels = of_cameras.photo_pixels;
}

/* kiln-prune predicts the pairs of some views: a list, each with the pairs before and after. */
static double predicted_pairs(const json_t *prune, double views)
{
    const json_t *list = json_object_get(prune, "cameras");
    double sum = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *after = json_array_get(json_object_get(json_array_get(list, i), "pairs"), 1);
        if (!json_is_number(after)) return NAN;
        sum += json_number_value(after);
    }
    return json_array_size(list) && sum >= 0 ? sum / (double)json_array_size(list) * views : NAN;
}

/* Of the stages that have run, the later ones know better. */
static void take_bake_size(kiln_bake_size *z, const char *stage, const json_t *counters)
{
    const double dropped = number_of(counters, "rows_dropped"), kept = number_of(counters, "kept");
    if (!strcmp(stage, "import") && !isnan(number_of(counters, "rows_read")))
        z->rows = fmax(0, number_of(counters, "rows_read") - (dropped > 0 ? dropped : 0));
    if (!isnan(kept)) z->rows = kept;
    if (!strcmp(stage, "prune") && !isnan(predicted_pairs(counters, z->views)))
        z->pairs = predicted_pairs(counters, z->views);
    if (!isnan(number_of(counters, "pairs"))) z->pairs = number_of(counters, "pairs");
}

/* ---- reading --------------------------------------------------------------------------------- */
static kiln_manifest *open_manifest(const kiln_time_left *t)
{
    kiln_manifest *m;
    const bool is_open =
        kiln_is_file(t->manifest) &&
        kiln_manifest_open(t->manifest, KILN_OPEN_READ, "pipeline", true, &m, NULL) == KILN_OK;
    return is_open ? m : NULL;
}

void kiln_bake_times_read(kiln_time_left *t)
{
    kiln_manifest *m = open_manifest(t);
    if (!m) return;
    read_views(m, &t->size);
    for (size_t s = 0; s < t->n; s++) {
        kiln_timed_stage *g = &t->stage[s];
        const last_run r = read_run(m, g->name);
        const double all = r.seconds * whole_of(r.counters);
        if (isfinite(all) && all >= 0) {
            g->stored_s = all;
            g->rows = count_stage_rows(r.counters);
            g->views = views_of(r.counters);
        }
        take_bake_size(&t->size, g->name, r.counters);
        json_decref(r.counters);
    }
    kiln_manifest_close(m);
}

void kiln_bake_times_learn(kiln_time_left *t, size_t s, double took_s)
{
    kiln_manifest *m = open_manifest(t);
    if (!m) return;
    const last_run r = read_run(m, t->stage[s].name);
    const double all = took_s * whole_of(r.counters);
    if (r.start_ns >= t->bake_ns && isfinite(all)) t->stage[s].took_s = all;
    read_views(m, &t->size);
    take_bake_size(&t->size, t->stage[s].name, r.counters);
    json_decref(r.counters);
    kiln_manifest_close(m);
}
