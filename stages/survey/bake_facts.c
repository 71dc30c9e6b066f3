/* bake_facts -- see the header. */
#include "stages/survey/bake_facts.h"

#include "base/file.h"
#include "base/memory.h"
#include "stages/engine/json_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const stage_names[KILN_STAGE_COUNT] = {
#define STAGE(name, ...) #name,
#include "pipelines/stages.def"
#undef STAGE
};

/* Older runs recorded a row for each camera. */
static kiln_status parse_run_record(const char *text, json_t **out, kiln_error *err)
{
    return kiln_json_parse_short(text, strlen(text), KILN_FACTS_LISTED, "the record of a run", out,
                                 err);
}

/* The tasks of a run, and the clock of all. */
static kiln_status get_tasks(kiln_manifest *m, kiln_stage_facts *s, kiln_error *err)
{
    KILN_TRY(kiln_run_rows_of_tasks(m, &s->run, &s->tasks, &s->n_tasks, err));
    KILN_TRY(KILN_ALLOC(&s->task_counters, s->n_tasks, "the records of tasks", err));
    for (uint32_t i = 0; i < s->n_tasks; i++)
        KILN_TRY(parse_run_record(s->tasks[i].counters, &s->task_counters[i], err));
    KILN_TRY(kiln_run_clock_begin(&s->clock, s->n_tasks + 1, err));
    for (uint32_t i = 0; i < s->n_tasks; i++)
        kiln_run_clock_add(&s->clock, s->tasks[i].start_ns, s->tasks[i].stop_ns);
    kiln_run_clock_add(&s->clock, s->run.start_ns, s->run.stop_ns);
    kiln_run_clock_end(&s->clock);
    return KILN_OK;
}

static kiln_status get_stage(kiln_manifest *m, const char *name, kiln_stage_facts *s,
                             kiln_error *err)
{
    s->name = name;
    KILN_TRY(kiln_stage_get(m, name, &s->row, err));
    KILN_TRY(kiln_quarantine_get(m, name, &s->lost, &s->n_lost, err));
    KILN_TRY(kiln_run_row_last(m, name, &s->ran, &s->run, err));
    if (!s->ran) return KILN_OK;
    KILN_TRY(parse_run_record(s->run.counters, &s->counters, err));
    KILN_TRY(parse_run_record(s->run.parameters, &s->parameters, err));
    return get_tasks(m, s, err);
}

static kiln_status get_scene(kiln_manifest *m, kiln_bake_facts *f, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&f->scene, 1, "a scene", err));
    const kiln_status st = kiln_scene_get(m, f->scene, err);
    if (st != KILN_E_STALE) return st;
    free(f->scene);
    f->scene = NULL;
    return KILN_OK;
}

static kiln_status get_layers(kiln_manifest *m, kiln_bake_facts *f, kiln_error *err)
{
    for (int i = 0; i < KILN_LAYER_KINDS; i++) {
        const kiln_status st = kiln_layer_get(m, kiln_layer_kinds[i].name, &f->layers[i], err);
        if (st != KILN_OK && st != KILN_E_STALE) return st;
    }
    return KILN_OK;
}

kiln_status kiln_bake_facts_get(kiln_manifest *m, kiln_bake_facts *out, kiln_error *err)
{
    kiln_file_info file;
    *out = (kiln_bake_facts){.m = m};
    KILN_TRY(kiln_file_stat(kiln_manifest_path(m), &file, err));
    out->file_bytes = file.size;
    for (int i = 0; i < KILN_STAGE_COUNT; i++)
        KILN_TRY(get_stage(m, stage_names[i], &out->stages[i], err));
    KILN_TRY(get_scene(m, out, err));
    KILN_TRY(kiln_sources_get(m, &out->sources, &out->n_sources, err));
    KILN_TRY(get_layers(m, out, err));
    return kiln_bake_views_get(m, &out->views, err);
}

void kiln_bake_facts_release(kiln_bake_facts *f)
{
    for (int i = 0; i < KILN_STAGE_COUNT; i++) {
        kiln_stage_facts *s = &f->stages[i];
        json_decref(s->counters);
        json_decref(s->parameters);
        kiln_run_row_release(&s->run);
        for (uint32_t k = 0; k < s->n_tasks && s->task_counters; k++)
            json_decref(s->task_counters[k]);
        free(s->task_counters);
        kiln_run_rows_free(s->tasks, s->n_tasks);
        kiln_run_clock_release(&s->clock);
        free(s->lost);
    }
    for (int i = 0; i < KILN_LAYER_KINDS; i++) kiln_layer_free(f->layers[i]);
    kiln_bake_views_release(&f->views);
    free(f->sources);
    free(f->scene);
}

const kiln_stage_facts *kiln_bake_stage(const kiln_bake_facts *f, const char *name)
{
    int i = 0;
    while (i < KILN_STAGE_COUNT - 1 && strcmp(f->stages[i].name, name) != 0) i++;
    return &f->stages[i];
}

double kiln_stage_seconds(const kiln_stage_facts *s) { return kiln_run_clock_seconds(&s->clock); }

double kiln_bake_seconds(const kiln_bake_facts *f)
{
    double seconds = 0;
    for (int i = 0; i < KILN_STAGE_COUNT; i++) seconds += kiln_stage_seconds(&f->stages[i]);
    return seconds;
}

const kiln_layer *kiln_bake_last_layer(const kiln_bake_facts *f)
{
    static const int kinds[] = {KILN_LAYER_baked, KILN_LAYER_pruned, KILN_LAYER_initial,
                                KILN_LAYER_source};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (f->layers[kinds[i]]) return f->layers[kinds[i]];
    return NULL;
}

double kiln_json_number_of(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

uint64_t kiln_json_count_of(const json_t *object, const char *key)
{
    const json_int_t v = json_integer_value(json_object_get(object, key));
    return v > 0 ? (uint64_t)v : 0;
}

const char *kiln_json_text_of(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}
