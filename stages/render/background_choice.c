/* background_choice -- see the header. */
#include "stages/render/background_choice.h"

#include "base/memory.h"
#include "stages/engine/json_text.h"
#include "stages/render/exposure.h"
#include "stages/render/outside.h"
#include "stages/render/stored_pictures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 4, LOOKED = 256 };

typedef struct {
    kiln_render_job *jobs; /* [n] owned, as are units */
    kiln_unit *units;
    uint32_t n;
} looks;

static void looks_release(looks *l)
{
    for (uint32_t i = 0; l->jobs && i < l->n; i++) kiln_view_chunks_release(&l->jobs[i].chunks);
    if (l->units) kiln_units_release(l->units, l->n);
    free(l->units);
    free(l->jobs);
}

/* A kiln_unit.payload_of, of a job: its picture, compared and not written. */
static const void *look_payload_of(const void *job)
{
    const kiln_render_job *j = job;
    kiln_render_unit *u = &j->plan->made->unit;
    (void)kiln_render_made_of(j);
    j->plan->made->job = NULL; /* the next to ask for a picture gets none of what follows */
    u->look_only = true;
    u->picture[0] = u->depth[0] = '\0';
    u->format = KILN_RENDER_NO_FILE;
    u->alpha = u->fast = u->measured = false;
    return u;
}

static kiln_hash look_key(kiln_run *r, const kiln_render_plan *s, const kiln_render_job *j)
{
    kiln_hasher *h = kiln_run_key_bare(r, "look for the background");
    kiln_key_hash(
        h, "picture",
        kiln_view_request_picture_key(&j->request, &s->keys, &j->chunks, s->background, ""));
    kiln_render_photo_key(h, s, j->camera);
    kiln_render_exposure_key(h, s, j);
    return kiln_key_end(h);
}

/* Of n cameras with photos, at most `most`, evenly spread. */
static kiln_status make_looks(kiln_run *r, kiln_render_plan *s, uint32_t most, looks *l,
                              kiln_error *err)
{
    uint32_t n = 0, seen = 0;
    for (uint32_t i = 0; i < s->n_cameras; i++) n += s->cameras[i].photo[0] != '\0';
    const uint32_t wanted = n < most ? n : most;
    KILN_TRY(KILN_ALLOC(&l->jobs, wanted, "cameras", err));
    KILN_TRY(KILN_ALLOC(&l->units, wanted, "units", err));
    for (uint32_t i = 0; i < s->n_cameras && l->n < wanted; i++) {
        if (!s->cameras[i].photo[0] || seen++ < (uint32_t)((uint64_t)l->n * n / wanted)) continue;
        kiln_render_job *j = &l->jobs[l->n];
        kiln_unit *u = &l->units[l->n++];
        KILN_TRY(kiln_render_job_make(s, j, &s->cameras[i], err));
        snprintf(u->name, sizeof u->name, "background of %.120s", s->cameras[i].name);
        u->key = look_key(r, s, j);
        u->payload = j;
        u->payload_of = look_payload_of;
        u->payload_bytes = sizeof(kiln_render_unit);
        u->n_outputs = 1;
        u->optional = u->planning = u->replaced = true; /* a camera that fails says nothing */
        u->volatile_result = kiln_run_is_once(r);
        kiln_render_size_uncounted(r, j, u);
    }
    return KILN_OK;
}

static kiln_status read_counters(const char *counters, kiln_outside *out, kiln_error *err)
{
    json_t *c; /* NULL: they are no JSON */
    KILN_TRY(kiln_json_parse(counters, strlen(counters), 0, "counters", &c, NULL, err));
    *out = kiln_outside_of_json(json_object_get(c, "outside"));
    json_decref(c);
    return KILN_OK;
}

/* *all: every look was there. */
static kiln_status find_stored(kiln_run *r, const looks *l, kiln_outside *views, bool *all,
                               kiln_error *err)
{
    *all = !kiln_run_force(r);
    for (uint32_t i = 0; i < l->n && *all; i++) {
        kiln_unit_result result;
        KILN_TRY(kiln_unit_find(kiln_run_manifest(r), l->units[i].key, all, &result, err));
        const kiln_status st = *all ? read_counters(result.counters, &views[i], err) : KILN_OK;
        kiln_unit_result_release(&result);
        KILN_TRY(st);
    }
    return KILN_OK;
}

static kiln_status look_at_photos(kiln_run *r, const looks *l, kiln_outside *views, kiln_error *err)
{
    bool all;
    KILN_TRY(find_stored(r, l, views, &all, err));
    if (all && kiln_run_is_once(r)) return KILN_OK;
    KILN_TRY(
        /* stored ones stay in use by that */
        kiln_run_units(r, "looking for the background of the photos", l->units, l->n, err));
    for (uint32_t i = 0; i < l->n && !all; i++) {
        json_t *c;
        views[i] = (kiln_outside){0};
        if (l->units[i].quarantined) continue;
        KILN_TRY(kiln_unit_counters(r, &l->units[i], &c, err));
        views[i] = kiln_outside_of_json(json_object_get(c, "outside"));
        json_decref(c);
    }
    return KILN_OK;
}

static kiln_status are_white(kiln_run *r, kiln_render_plan *s, uint32_t most, bool *white,
                             uint32_t *n, kiln_error *err)
{
    kiln_status st;
    looks l = {0};
    kiln_outside *views = NULL;
    double colour[3];
    char text[16];
    *white = false;
    KILN_GO(make_looks(r, s, most, &l, err));
    *n = l.n;
    KILN_GO(KILN_ALLOC(&views, l.n, "colours of photos", err));
    if (l.n > 0) KILN_GO(look_at_photos(r, &l, views, err));
    if (l.n > 0 && kiln_outside_differs(views, l.n, s->background, colour)) {
        kiln_colour_text(colour, text);
        *white = strcmp(text, "white") == 0;
    }
done:
    s->made->job = NULL; /* its job goes */
    free(views);
    looks_release(&l);
    return st;
}

static kiln_status take_first(void *context, const kiln_image *i, kiln_error *err)
{
    kiln_render_plan *s = context;
    (void)err;
    s->background_chosen = i->background[0] == 1 && i->background[1] == 1 && i->background[2] == 1;
    return KILN_OK;
}

kiln_status kiln_render_background_choose(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    bool white = false;
    uint32_t n = 0;
    if (strcmp(s->o->background, "scene") != 0 || s->scene.has_background || s->against)
        return KILN_OK;
    if (s->viewpoints.own) {
        KILN_TRY(are_white(r, s, FIRST, &white, &n, err));
        if (white && n == FIRST) KILN_TRY(are_white(r, s, LOOKED, &white, &n, err));
        s->background_chosen = white;
    } else {
        KILN_TRY(kiln_images_each(kiln_run_manifest(r), take_first, s, err));
    }
    for (int c = 0; c < 3; c++) s->background[c] = s->background_chosen ? 1 : 0;
    return KILN_OK;
}
