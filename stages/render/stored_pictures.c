/* stored_pictures -- see the header. */
#include "stages/render/stored_pictures.h"

#include "base/memory.h"
#include "schema/units_find.h"
#include "stages/engine/hosts/decisions.h"
#include "stages/engine/json_text.h"
#include "stages/frame/view_place.h"
#include "stages/render/exposure.h"
#include "stages/render/photo.h"
#include "stages/render/picture_targets.h"
#include "stages/render/written.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- keys ------------------------------------------------------------------------------------ */
static int compare_path(const void *path, const void *source)
{
    return strcmp(path, ((const kiln_source_file *)source)->path);
}

const kiln_source_file *kiln_render_source_at(const kiln_render_plan *s, const char *path)
{
    return path[0] && s->n_sources
               ? bsearch(path, s->sources, s->n_sources, sizeof *s->sources, compare_path)
               : NULL;
}

void kiln_render_photo_key(kiln_hasher *h, const kiln_render_plan *s, const kiln_camera *c)
{
    const kiln_source_file *f = kiln_render_source_at(s, c->photo),
                           *mask = kiln_render_source_at(s, c->mask);
    if (f) kiln_key_hash(h, "photo", f->hash);
    kiln_key_text(h, "photo", c->photo);
    if (mask) kiln_key_hash(h, "mask", mask->hash); /* without masks the key of before */
    if (c->mask[0]) kiln_key_text(h, "mask", c->mask);
    kiln_key_u64(h, "distorted", c->distorted);
    if (!c->distorted || !c->photo[0]) return;
    kiln_key_u64(h, "undistorted by", s->o->undistort_filter);
    /* two lenses may have one pinhole, whose size is whole pixels */
    kiln_key_hash(h, "lens", kiln_camera_hash(c));
    kiln_key_u64(h, "photo width", c->photo_width);
    kiln_key_u64(h, "photo height", c->photo_height);
}

/* A part of the key. 1 stood for an earlier PNG, whose colours were over the background although
 * its alpha was straight; it is not used again, so that none of those counts as current. */
static uint64_t alpha_kind(const kiln_render_unit *u)
{
    enum { OF_NO_PNG = 1, STRAIGHT = 2 };
    if (!u->alpha) return 0;
    return u->format == KILN_PNG8 || u->format == KILN_PNG16 ? STRAIGHT : OF_NO_PNG;
}

static kiln_hash unit_key(kiln_run *r, const kiln_render_plan *s, const kiln_render_job *j,
                          const char *device_kind)
{
    KILN_KEY_LISTS(kiln_render_unit, 18496);
    const kiln_render_made *made = kiln_render_made_of(j);
    kiln_hasher *h = kiln_run_key_bare(
        /* against_full, crop and frame are of runs that store nothing; what stood there decides no
         * bit */
        r, "picture");
    kiln_key_hash(h, "picture",
                  kiln_view_request_picture_key(&j->request, &s->keys, &j->chunks, s->background,
                                                device_kind));
    kiln_render_photo_key(h, s, j->camera);
    kiln_key_text(h, "file", made->relative);
    kiln_key_u64(h, "format", made->unit.format);
    kiln_key_u64(h, "alpha", alpha_kind(&made->unit));
    kiln_key_u64(h, "depth", made->unit.depth[0] != '\0');
    kiln_render_exposure_key(h, s, j);
    /* without them the key of before */
    if (made->unit.depth_colours) kiln_key_u64(h, "depth colours", 1);
    return kiln_key_end(h);
}

/* Fast pictures have a device kind of their own, so that none passes for an exact one. */
static const char *kind_of_pictures(const kiln_render_plan *s, const char *device_kind)
{
    return s->o->fast ? KILN_RENDER_FAST_KIND : device_kind;
}

/* The kind that --devices names; NULL: a picture of either kind is good. */
static const char *named_kind(const kiln_run *r, const kiln_render_plan *s)
{
    return kind_of_pictures(s, kiln_run_named_kind(r));
}

static const char *first_kind(const kiln_run *r, const kiln_render_plan *s)
{
    const char *named = named_kind(r, s);
    return named ? named : "cpu";
}

void kiln_pictures_key_job(kiln_run *r, kiln_render_job *j)
{
    j->any_key = unit_key(r, j->plan, j, "");
    j->first_key = unit_key(r, j->plan, j, first_kind(r, j->plan));
}

kiln_hash kiln_pictures_key(kiln_run *r, const kiln_render_plan *s)
{
    kiln_hasher *h = kiln_run_key(r);
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        kiln_key_text(h, "camera", s->jobs[i].camera->name);
        kiln_key_text(h, "split", s->jobs[i].camera->split);
        kiln_key_hash(h, "unit", s->jobs[i].any_key);
    }
    return kiln_key_end(h);
}

/* ---- what is there --------------------------------------------------------------------------- */
typedef struct {
    kiln_hash key;
    bool done, intact; /* its unit is stored; its files are still those that the unit wrote */
} picture;

/* Says whether the files of a stored unit are still those that it wrote, and a damaged photo is
 * still as it was. False if the counters do not describe them. */
static kiln_status files_intact(const kiln_render_unit *u, const char *counters, bool *intact,
                                kiln_error *err)
{
    json_t *c; /* NULL: they are no JSON, so no file is known */
    KILN_TRY(kiln_json_parse(counters, strlen(counters), 0, "counters", &c, NULL, err));
    *intact =
        json_is_object(c) &&
        (!u->picture[0] || kiln_written_is_intact(json_object_get(c, "picture"), u->picture)) &&
        (!u->depth[0] || kiln_written_is_intact(json_object_get(c, "depth"), u->depth)) &&
        (!json_object_get(c, "photo") ||
         kiln_photo_state_is(json_object_get(c, "photo"), u->photo)) &&
        (!json_is_true(json_object_get(c, "exposure_lost")) || u->exposure_lost) &&
        (!json_object_get(c, "mask") || kiln_photo_state_is(json_object_get(c, "mask"), u->mask));
    json_decref(c);
    return KILN_OK;
}

/* How long --gather waits in all for pictures of other hosts to be seen. KILN_FILES_MS says another
 * time. */
static int64_t patience_ms;

/* A kiln_unit_check_fn. Another host has renamed the files before it finished its part, but a
 * network file system can show that some seconds later. All waits of a run together take at most
 * `patience_ms`. */
static kiln_status check_files(kiln_run *r, const kiln_unit *u, const kiln_unit_result *result,
                               kiln_error *err)
{
    const kiln_render_unit *payload = u->payload_of(u->payload);
    for (int64_t pause_ms = 50;; pause_ms *= 2) {
        bool intact;
        KILN_TRY(files_intact(payload, result->counters, &intact, err));
        if (intact) return KILN_OK;
        if (pause_ms > patience_ms) pause_ms = patience_ms;
        if (pause_ms <= 0) break;
        patience_ms -= pause_ms;
        (void)nanosleep(
            &(struct timespec){.tv_sec = pause_ms / 1000, .tv_nsec = pause_ms % 1000 * 1000000},
            NULL);
        KILN_TRY(kiln_run_interrupted(r, err));
        kiln_written_look_again(payload->picture);
    }
    return kiln_fail(err, KILN_E_INPUT,
                     "%s: '%s' is not the picture that its task wrote, or its photo has changed",
                     u->name, payload->picture);
}

void kiln_pictures_wait_for_files(kiln_run *r)
{
    enum { PATIENCE_MS = 10000 };
    const char *given = getenv("KILN_FILES_MS");
    patience_ms = given ? strtol(given, NULL, 10) : PATIENCE_MS;
    kiln_run_checks_files(r, check_files);
}

/* Says whether the picture of this kind is stored and its files are intact. *done: it is stored,
 * but files may be missing or overwritten.
 */
static kiln_status find_of_kind(kiln_run *r, const kiln_render_plan *s, kiln_render_job *j,
                                const char *kind, picture *p, kiln_error *err)
{
    char *counters;
    *p = (picture){.key = unit_key(r, s, j, kind)};
    KILN_TRY(kiln_unit_counters_find(kiln_run_manifest(r), p->key, &p->done, &counters, err));
    const kiln_status st =
        p->done ? files_intact(kiln_render_unit_of(j), counters, &p->intact, err) : KILN_OK;
    free(counters);
    snprintf(j->device_kind, sizeof j->device_kind, "%s", kind);
    return st;
}

/* A picture of either kind is good unless --devices names one. Looks for no device. */
static kiln_status find_picture(kiln_run *r, const kiln_render_plan *s, kiln_render_job *j,
                                picture *p, kiln_error *err)
{
    KILN_TRY(find_of_kind(r, s, j, first_kind(r, s), p, err));
    return named_kind(r, s) || p->intact ? KILN_OK : find_of_kind(r, s, j, "cuda", p, err);
}

/* Those that have not been found intact. */
typedef struct {
    kiln_render_job **jobs; /* [n]; NULL: it is found */
    kiln_hash *keys;        /* [n] */
    uint64_t n;
} looking;

/* A kiln_units_found_fn. */
static kiln_status look_at_files(void *context, uint64_t i, int64_t unit, const char *counters,
                                 kiln_error *err)
{
    looking *x = context;
    bool intact;
    (void)unit;
    KILN_TRY(files_intact(kiln_render_unit_of(x->jobs[i]), counters, &intact, err));
    if (intact) x->jobs[i] = NULL;
    return KILN_OK;
}

static kiln_status look_for_keys(kiln_run *r, looking *x, kiln_error *err)
{
    uint64_t n = 0;
    KILN_TRY(kiln_units_find(kiln_run_manifest(r), x->keys, x->n, look_at_files, x, err));
    for (uint64_t i = 0; i < x->n; i++)
        if (x->jobs[i]) x->jobs[n++] = x->jobs[i];
    x->n = n;
    return KILN_OK;
}

/* As find_picture, for all of them. */
static kiln_status look_for_all(kiln_run *r, const kiln_render_plan *s, looking *x, kiln_error *err)
{
    for (uint64_t i = 0; i < x->n; i++) x->keys[i] = x->jobs[i]->first_key;
    KILN_TRY(look_for_keys(r, x, err));
    if (named_kind(r, s)) return KILN_OK;
    for (uint64_t i = 0; i < x->n; i++) x->keys[i] = unit_key(r, s, x->jobs[i], "cuda");
    return look_for_keys(r, x, err);
}

kiln_status kiln_pictures_are_fresh(kiln_run *r, kiln_render_plan *s, kiln_hash key, bool *fresh,
                                    kiln_error *err)
{
    looking x = {0};
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_run_is_fresh(r, key, fresh, err));
    if (!*fresh || s->n_jobs == 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&x.jobs, s->n_jobs, "pictures", err));
    KILN_GO(KILN_ALLOC_UNSET(&x.keys, s->n_jobs, "pictures", err));
    for (uint32_t i = 0; i < s->n_jobs; i++) x.jobs[i] = &s->jobs[i];
    x.n = s->n_jobs;
    /* one for all: one for each takes longer than to look */
    KILN_GO(kiln_manifest_begin(kiln_run_manifest(r), err));
    st = look_for_all(r, s, &x, err);
    kiln_manifest_rollback(kiln_run_manifest(r));
    *fresh = x.n == 0;
done:
    free(x.keys);
    free(x.jobs);
    return st;
}

/* ---- what is due ----------------------------------------------------------------------------- */
/* A unit whose file is missing or overwritten is due again. With --force every unit is. */
static kiln_status find_due(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        picture p = {0};
        if (!kiln_run_is_once(r)) KILN_TRY(find_picture(r, s, &s->jobs[i], &p, err));
        s->units[i].key = p.key;
        s->jobs[i].due = !p.intact || kiln_run_force(r);
    }
    return KILN_OK;
}

/* Drops the stored picture of this kind if its files are not there. */
static kiln_status forget_lost(kiln_run *r, const picture *p, kiln_error *err)
{
    if (!p->done || p->intact || kiln_run_is_frozen(r)) return KILN_OK;
    return kiln_unit_forget(kiln_run_manifest(r), p->key, err);
}

/* Sets the key of a unit that is due to that of the device kind that will compute it: with --force
 * a picture of one kind would be compared with one of the other. */
static kiln_status choose_unit(kiln_run *r, const kiln_render_plan *s, kiln_render_job *j,
                               const char *kind, kiln_unit *u, kiln_error *err)
{
    picture p;
    if (!j->due) return KILN_OK;
    if (kind && !s->o->fast) {
        /* In a plan, also that of the other kind: if its file came back while tasks draw, hosts
         * would no longer list the same units. */
        KILN_TRY(find_of_kind(r, s, j, strcmp(kind, "cpu") ? "cpu" : "cuda", &p, err));
        KILN_TRY(forget_lost(r, &p, err));
    }
    if (!kind) KILN_TRY(kiln_run_device_kind(r, &kind, err));
    KILN_TRY(find_of_kind(r, s, j, kind_of_pictures(s, kind), &p, err));
    u->key = p.key;
    j->due = !p.intact || kiln_run_force(r);
    return forget_lost(r, &p, err);
}

/* The kind of devices that draws what is due, on every host of a plan; NULL: it is asked for when
 * the first picture is due. */
static kiln_status choose_kind(kiln_run *r, const kiln_render_plan *s, const char **kind,
                               kiln_error *err)
{
    bool due = false;
    *kind = NULL;
    if (kiln_run_tasks(r) == 0) return KILN_OK;
    for (uint32_t i = 0; i < s->n_jobs; i++) due = due || s->jobs[i].due;
    return kiln_run_decide_kind(r, due, kind, err);
}

/* Of the fast pictures that this run draws, the first and each 64th after it are also drawn
 * exactly. */
static kiln_status plan_fast(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    enum { MEASURED_OF = 64 };
    const char *kind = "cuda";
    uint32_t due = 0;
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        kiln_render_job *j = &s->jobs[i];
        if (j->due) j->measured = due++ % MEASURED_OF == 0;
    }
    if (due > 0) KILN_TRY(kiln_run_device_kind(r, &kind, err));
    if (strcmp(kind, "cuda") == 0) return KILN_OK;
    return kiln_fail(err, KILN_E_DEVICE,
                     "--fast needs a GPU, but no GPU can be used (kiln-doctor says why); --no-fast "
                     "draws exactly, on the CPU");
}

static kiln_status choose_units(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    const char *kind;
    KILN_TRY(find_due(r, s, err));
    KILN_TRY(kiln_picture_targets_check(r, s, err));
    KILN_TRY(kiln_picture_targets_begin(r, s, err));
    KILN_TRY(kiln_render_plan_expect(r, s, s->o->fast, err));
    KILN_TRY(choose_kind(r, s, &kind, err));
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        kiln_unit *u = &s->units[i];
        kiln_render_job *j = &s->jobs[i];
        snprintf(u->name, sizeof u->name, "camera %.140s", j->camera->name);
        if (j->level)
            snprintf(u->name, sizeof u->name, "level %u of camera %.120s", j->level,
                     j->camera->name);
        u->payload = j;
        u->payload_of = kiln_render_payload_of;
        u->payload_bytes = sizeof(kiln_render_unit);
        u->place = kiln_view_place(&s->scene, s->layer, &j->chunks);
        u->optional = true; /* a camera that fails does not stop the others */
        u->replaced = s->o->fast;
        u->volatile_result = kiln_run_is_once(r);
        if (!u->volatile_result) KILN_TRY(choose_unit(r, s, j, kind, u, err));
    }
    return s->o->fast ? plan_fast(r, s, err) : KILN_OK;
}

kiln_status kiln_pictures_choose(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    if (kiln_run_is_frozen(r)) return choose_units(r, s, err);
    KILN_TRY(kiln_manifest_begin(m, err));
    kiln_status st = choose_units(r, s, err);
    if (st == KILN_OK) st = kiln_manifest_commit(m, err);
    if (st != KILN_OK) kiln_manifest_rollback(m);
    return st;
}
